//! The scalar formulas: no branches, no tables, no calls, so that loops over them become vector code.
//!
//! Sources: Cody and Waite (1980) for the argument reductions; fdlibm's form of the logarithm (Sun Microsystems, 1993);
//! the polynomials of erf and those of single precision are Chebyshev fits of this project (40-digit arithmetic or
//! better, errors below the rounding of the result).

mod double;
mod single;

pub use double::{erf_f64, exp_f64, ln_f64, tanh_f64};
pub use single::{erf_f32, exp_f32, ln_f32, tanh_f32};
