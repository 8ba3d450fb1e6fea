//! The precisions of networks, and where their code is compiled.

use crate::array::{Matrix, Shifted, products};
use crate::operation::{Operation, Prepared};
use faer::Mat;

/// What there is one of for each precision of networks, such as `Network<T>`.
pub trait PerNetworkPrecision {
    /// The one for `T`.
    type Of<T: Precision>;
}

/// f32 or f64: the precisions that networks come in.
///
/// Generic code is compiled in every crate that uses it with a type, so that each crate which runs a network would bring its own copy of all layers.
/// What the hidden methods reach is not: each is a plain function of this crate for either precision, and the only way to the code behind it.
pub trait Precision: Shifted {
    #[doc(hidden)]
    fn prepare(operation: &Operation, inputs: &[&[usize]]) -> Result<Prepared<Self>, String>;
    #[doc(hidden)]
    fn multiply(out: &mut [Self], accumulate: bool, a: Matrix<'_, Self>, b: Matrix<'_, Self>);
    #[doc(hidden)]
    fn add_gram(sum: &mut Mat<f64>, rows: &[Self], columns: usize);
    /// Calls `single` for f32, `double` for f64: what stands behind [`compiled_here`](posterior_linalg::compiled_here).
    #[doc(hidden)]
    fn choose<A: PerNetworkPrecision, R: PerNetworkPrecision>(
        arguments: A::Of<Self>,
        single: fn(A::Of<f32>) -> R::Of<f32>,
        double: fn(A::Of<f64>) -> R::Of<f64>,
    ) -> R::Of<Self>;
}

macro_rules! precisions {
    ($($type:ty: ($single:ident, $double:ident) -> $choice:ident),*) => {$(
        impl Precision for $type {
            fn prepare(operation: &Operation, inputs: &[&[usize]]) -> Result<Prepared<Self>, String> {
                operation.layer(inputs)
            }
            fn multiply(out: &mut [Self], accumulate: bool, a: Matrix<'_, Self>, b: Matrix<'_, Self>) {
                products::multiply(out, accumulate, a, b);
            }
            fn add_gram(sum: &mut Mat<f64>, rows: &[Self], columns: usize) {
                products::add_rows(sum, rows, columns);
            }
            #[inline(always)]
            fn choose<A: PerNetworkPrecision, R: PerNetworkPrecision>(
                arguments: A::Of<Self>,
                $single: fn(A::Of<f32>) -> R::Of<f32>,
                $double: fn(A::Of<f64>) -> R::Of<f64>,
            ) -> R::Of<Self> {
                let _ = ($single, $double);
                $choice(arguments)
            }
        }
    )*};
}

precisions!(f32: (single, double) -> single, f64: (single, double) -> double);
