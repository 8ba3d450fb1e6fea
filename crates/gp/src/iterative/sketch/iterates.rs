//! Y and V.

use super::acceleration::Momentum;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use rayon::prelude::*;

/// Numbers that one thread works on at a time.
const CHUNK: usize = 1 << 14;

/// Where gradients are wanted, and the memory of the acceleration (n x s each); nothing else is stored, because `W = (Y - α V) / (1 - α)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Iterates<T> {
    pub(super) ahead: Mat<T>,
    pub(super) memory: Mat<T>,
    /// α of the last step: 0 where Y is W.
    pub(super) mixed: f64,
}

impl<T: Real> Iterates<T> {
    /// At rest.
    pub(super) fn at(start: Mat<T>) -> Self {
        Self { memory: start.clone(), ahead: start, mixed: 0.0 }
    }

    /// A step along `-directions` (b x k) of some rows, of the first k columns.
    pub(super) fn step(&mut self, rows: &[usize], directions: MatRef<'_, T>, momentum: Option<Momentum>) {
        let mut along = [T::ONE, T::ZERO];
        self.mixed = 0.0;
        if let Some(Momentum { alpha, beta, gamma }) = momentum {
            self.drift(directions.ncols(), T::from_f64(beta), T::from_f64(alpha * beta));
            along = [1.0 - alpha + alpha * gamma, gamma].map(T::from_f64);
            self.mixed = alpha;
        }
        for (j, own) in directions.col_iter().enumerate() {
            let (ahead, memory) = (self.ahead.col_as_slice_mut(j), self.memory.col_as_slice_mut(j));
            for (&i, &d) in rows.iter().zip(own.iter()) {
                ahead[i] -= along[0] * d;
                memory[i] -= along[1] * d;
            }
        }
    }

    /// All rows of the first k columns: with `E = V - Y`, V becomes `Y + keep E` and Y `Y + share E`.
    fn drift(&mut self, k: usize, keep: T, share: T) {
        for j in 0..k {
            let (ahead, memory) = (self.ahead.col_as_slice_mut(j), self.memory.col_as_slice_mut(j));
            ahead.par_chunks_mut(CHUNK).zip(memory.par_chunks_mut(CHUNK)).for_each(|(ahead, memory)| {
                dispatch(
                    #[inline(always)]
                    || {
                        for (y, v) in ahead.iter_mut().zip(memory) {
                            let apart = *v - *y;
                            *v = keep.mul_add(apart, *y);
                            *y = share.mul_add(apart, *y);
                        }
                    },
                );
            });
        }
    }

    /// A column of W.
    pub(super) fn weights(&self, column: usize) -> impl Iterator<Item = T> {
        let (part, scale) = (T::from_f64(self.mixed), T::from_f64(1.0 / (1.0 - self.mixed)));
        let (ahead, memory) = (self.ahead.col_as_slice(column), self.memory.col_as_slice(column));
        ahead.iter().zip(memory).map(move |(&y, &v)| if part == T::ZERO { y } else { scale * (y - part * v) })
    }

    /// Forgets the velocity of a column.
    pub(super) fn rest(&mut self, column: usize) {
        let weights: Vec<T> = self.weights(column).collect();
        self.ahead.col_as_slice_mut(column).copy_from_slice(&weights);
        self.memory.col_as_slice_mut(column).copy_from_slice(&weights);
    }

    /// Two columns change places.
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        for matrix in [&mut self.ahead, &mut self.memory] {
            (0..matrix.nrows())
                .for_each(|i| (matrix[(i, a)], matrix[(i, b)]) = (matrix[(i, b)], matrix[(i, a)]));
        }
    }
}
