//! The **array kernels**: the one module that touches numbers in bulk.
//!
//! Operations and derivatives are written in terms of the functions here and never loop over elements themselves, so another
//! backend (a GPU, say) is another implementation of this module and nothing else. Everything runs on all threads
//! of the current rayon pool; work is cut by threads only where that cannot be seen in the numbers, and sums into pieces that depend on sizes alone, so results
//! are the same bits on any number of threads.

mod batch;
pub(crate) mod convolution;
mod elementwise;
mod pool;
pub(crate) mod products;
mod reductions;
mod sets;
mod sparse;
mod tables;
mod windows;

mod activation;

pub(crate) use crate::precision::Precision;
pub use activation::Activation;
pub(crate) use activation::{activate, activate_second, activate_tangent};
pub use batch::Array;
pub(crate) use batch::{LARGE, batch_shape};
pub(crate) use convolution::Shifted;
mod joins;
mod normalise;
#[cfg(test)]
mod tests;
pub(crate) use elementwise::*;
pub(crate) use joins::{Piece, add_piece, extract, place};
pub(crate) use normalise::*;
pub use pool::WAITING_BYTES;
pub use products::{Matrix, add_gram, product};
pub(crate) use products::{outer, products, products_apart};
pub(crate) use reductions::*;
pub(crate) use sets::Sets;
pub(crate) use sparse::SparseMap;
pub(crate) use tables::{add_rows, look_up, transpose_rows};
pub(crate) use windows::{MaximumWindows, Windows, extremes_of_groups, put, take};

/// Frees the buffers of dropped arrays that wait for others (up to half a gigabyte of each precision): for programs that are done with networks for a while, and for measurements.
pub fn release_buffers() {
    <f32 as Shifted>::pool().clear();
    <f64 as Shifted>::pool().clear();
}

/// Elements below which work is not worth a second thread: handing a piece to another thread costs a few microseconds.
const SERIAL: usize = 1 << 14;

/// Pieces of so many values that one thread takes at a time.
fn together(length: usize) -> usize {
    (SERIAL / length.max(1)).max(1)
}

/// Length of the pieces that `length` elements are cut into for the threads: not for sums.
fn piece(length: usize) -> usize {
    if length <= SERIAL {
        length.max(1)
    } else {
        length.div_ceil(4 * rayon::current_num_threads()).max(SERIAL / 2)
    }
}
