//! The precisions of networks, and where their code is compiled.

use crate::array::{Matrix, Shifted, products};
use crate::operation::{Operation, Prepared};
use faer::Mat;

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
}

macro_rules! compiled_here {
    ($($type:ty),*) => {$(
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
        }
    )*};
}

compiled_here!(f32, f64);
