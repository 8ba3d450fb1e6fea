//! Y, and how far V is from it.

use super::acceleration::Momentum;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::vectorised::dispatch;

/// Numbers that one thread works on at a time.
const CHUNK: usize = 1 << 14;

/// A scale below this is multiplied out.
const LEAST_SCALE: f64 = 1e-6;

/// Where gradients are wanted, and the velocity `E = V - Y` of the acceleration (n x s each); nothing else is stored, because `W = Y - α E / (1 - α)`.
///
/// Outside of its block a step multiplies E with a number, `β (1 - α)`, which is kept beside it instead of applied: E is written where the block is, and where its scale has become small, and only read elsewhere. What a step touches of all rows is one read of both and one write of Y, which the next gradient reads whole in any case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Iterates<T> {
    pub(super) ahead: Mat<T>,
    /// `E / scale`
    pub(super) velocity: Mat<T>,
    pub(super) scale: f64,
    /// α of the last step: 0 where Y is W.
    pub(super) mixed: f64,
}

impl<T: Real> Iterates<T> {
    /// At rest.
    pub(super) fn at(start: Mat<T>) -> Self {
        Self { velocity: Mat::zeros(start.nrows(), start.ncols()), ahead: start, scale: 1.0, mixed: 0.0 }
    }

    /// A step along `-directions` (b x k) of some rows, of the first k columns; the others have no velocity.
    pub(super) fn step(&mut self, rows: &[usize], directions: MatRef<'_, T>, momentum: Option<Momentum>) {
        let mut along = [T::ONE, T::ZERO];
        self.mixed = 0.0;
        if let Some(Momentum { alpha, beta, gamma }) = momentum {
            self.drift(directions.ncols(), T::from_f64(alpha * beta * self.scale));
            self.scale *= beta * (1.0 - alpha);
            if self.scale < LEAST_SCALE {
                self.velocity *= faer::Scale(T::from_f64(self.scale));
                self.scale = 1.0;
            }
            let ahead = 1.0 - alpha + alpha * gamma;
            along = [ahead, (gamma - ahead) / self.scale].map(T::from_f64);
            self.mixed = alpha;
        }
        for (j, own) in directions.col_iter().enumerate() {
            let (ahead, velocity) = (self.ahead.col_as_slice_mut(j), self.velocity.col_as_slice_mut(j));
            for (&i, &d) in rows.iter().zip(own.iter()) {
                ahead[i] -= along[0] * d;
                velocity[i] -= along[1] * d;
            }
        }
    }

    /// All rows of the first k columns: Y becomes `Y + share velocity`.
    fn drift(&mut self, k: usize, share: T) {
        for j in 0..k {
            let (ahead, velocity) = (self.ahead.col_as_slice_mut(j), self.velocity.col_as_slice(j));
            parallel::chunks(ahead, CHUNK, 1, |chunk, ahead| {
                let velocity = &velocity[chunk * CHUNK..][..ahead.len()];
                dispatch(
                    #[inline(always)]
                    || ahead.iter_mut().zip(velocity).for_each(|(y, &e)| *y = share.mul_add(e, *y)),
                );
            });
        }
    }

    /// A column of W.
    pub(super) fn weights(&self, column: usize) -> impl Iterator<Item = T> {
        let part = T::from_f64(self.mixed / (1.0 - self.mixed) * self.scale);
        let (ahead, velocity) = (self.ahead.col_as_slice(column), self.velocity.col_as_slice(column));
        ahead.iter().zip(velocity).map(move |(&y, &e)| y - part * e)
    }

    /// Forgets the velocity of a column.
    pub(super) fn rest(&mut self, column: usize) {
        let weights: Vec<T> = self.weights(column).collect();
        self.ahead.col_as_slice_mut(column).copy_from_slice(&weights);
        self.velocity.col_as_slice_mut(column).fill(T::ZERO);
    }

    /// Two columns change places.
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        for matrix in [&mut self.ahead, &mut self.velocity] {
            (0..matrix.nrows())
                .for_each(|i| (matrix[(i, a)], matrix[(i, b)]) = (matrix[(i, b)], matrix[(i, a)]));
        }
    }
}
