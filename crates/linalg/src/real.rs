//! The two precisions that networks and kernels come in.

use crate::vectorised::scalar;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// What there is one of for each precision, such as `Box<dyn Kernel<T>>`.
pub trait PerPrecision {
    /// The one for `T`.
    type Of<T: Real>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// f32 or f64: what kernel and network code is generic over. Its functions are the branch-free forms of
/// [`crate::vectorised`], so that loops over them become vector code inside [`crate::vectorised::dispatch`].
pub trait Real:
    sealed::Sealed
    + faer::traits::RealField
    + Copy
    + Default
    + Debug
    + Display
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// The smallest positive number with all its digits.
    const MIN_POSITIVE: Self;

    /// Rounds from double precision.
    fn from_f64(value: f64) -> Self;
    /// Widens to double precision, exactly.
    fn to_f64(self) -> f64;
    /// `self * a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// Magnitude.
    fn abs(self) -> Self;
    /// The larger, or the other where one is NaN.
    fn max(self, other: Self) -> Self;
    /// Sine (not vectorised).
    fn sin(self) -> Self;
    /// Cosine (not vectorised).
    fn cos(self) -> Self;
    /// Exponential; see [`crate::vectorised`] for the error.
    fn exp(self) -> Self;
    /// Natural logarithm; see [`crate::vectorised`] for the error.
    fn ln(self) -> Self;
    /// Hyperbolic tangent; see [`crate::vectorised`] for the error.
    fn tanh(self) -> Self;
    /// Error function; see [`crate::vectorised`] for the error.
    fn erf(self) -> Self;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// Calls `single` for f32, `double` for f64: what stands behind [`compiled_here`](crate::compiled_here).
    #[doc(hidden)]
    fn choose<A: PerPrecision, R: PerPrecision>(
        arguments: A::Of<Self>,
        single: fn(A::Of<f32>) -> R::Of<f32>,
        double: fn(A::Of<f64>) -> R::Of<f64>,
    ) -> R::Of<Self>;
}

/// Calls a function that is generic over [`Real`] such that it is compiled here, for both precisions, once.
///
/// Generic code is otherwise compiled in every crate that uses it with a type, again and again. The function that this macro stands in has no more
/// than the choice between two plain functions left to compile elsewhere. Arguments are listed with their types, in which lifetimes are named; other
/// generic parameters there may be none of. What `T` is, and the trait of what there is one of for each, are named first, since networks have a narrower
/// pair of their own.
///
/// ```
/// use posterior_linalg::{PerPrecision, Real, compiled_here};
///
/// /// The sum of squares.
/// pub fn squares<T: Real>(values: &[T]) -> T {
///     compiled_here!(T: Real, PerPrecision; ['a] sum_of_squares, (values: &'a [T] = values) -> T)
/// }
///
/// fn sum_of_squares<T: Real>(values: &[T]) -> T {
///     values.iter().map(|v| *v * *v).sum()
/// }
///
/// assert_eq!(squares(&[3.0f32, 4.0]), 25.0);
/// ```
#[macro_export]
macro_rules! compiled_here {
    ($T:ident: $bound:path, $family:path; [$($life:lifetime $(: $outlives:lifetime)?),*] $function:path, ($($name:ident: $type:ty = $value:expr),* $(,)?) -> $out:ty) => {{
        #[allow(dead_code)]
        struct Arguments<$($life $(: $outlives)?),*>(::std::marker::PhantomData<($(&$life (),)*)>);
        impl<$($life $(: $outlives)?),*> $family for Arguments<$($life),*> {
            type Of<$T: $bound> = ($($type,)*);
        }
        #[allow(dead_code)]
        struct Output<$($life $(: $outlives)?),*>(::std::marker::PhantomData<($(&$life (),)*)>);
        impl<$($life $(: $outlives)?),*> $family for Output<$($life),*> {
            type Of<$T: $bound> = $out;
        }
        fn single<$($life $(: $outlives)?),*>(
            ($($name,)*): <Arguments<$($life),*> as $family>::Of<f32>,
        ) -> <Output<$($life),*> as $family>::Of<f32> {
            $function($($name),*)
        }
        fn double<$($life $(: $outlives)?),*>(
            ($($name,)*): <Arguments<$($life),*> as $family>::Of<f64>,
        ) -> <Output<$($life),*> as $family>::Of<f64> {
            $function($($name),*)
        }
        <$T as $bound>::choose::<Arguments, Output>(($($value,)*), single, double)
    }};
}

macro_rules! real {
    ($type:ident, ($single:ident, $double:ident) -> $choice:ident, $exp:expr, $ln:expr, $tanh:expr, $erf:expr) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: Self = $type::EPSILON;
            const MIN_POSITIVE: Self = $type::MIN_POSITIVE;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $type::mul_add(self, a, b)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                $type::max(self, other)
            }
            #[inline(always)]
            fn sin(self) -> Self {
                $type::sin(self)
            }
            #[inline(always)]
            fn cos(self) -> Self {
                $type::cos(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $ln(self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                $tanh(self)
            }
            #[inline(always)]
            fn erf(self) -> Self {
                $erf(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
            #[inline(always)]
            fn choose<A: PerPrecision, R: PerPrecision>(
                arguments: A::Of<Self>,
                $single: fn(A::Of<f32>) -> R::Of<f32>,
                $double: fn(A::Of<f64>) -> R::Of<f64>,
            ) -> R::Of<Self> {
                let _ = ($single, $double);
                $choice(arguments)
            }
        }
    };
}

real!(f64, (single, double) -> double, scalar::exp_f64, scalar::ln_f64, scalar::tanh_f64, scalar::erf_f64);
real!(f32, (single, double) -> single, scalar::exp_f32, scalar::ln_f32, scalar::tanh_f32, scalar::erf_f32);
