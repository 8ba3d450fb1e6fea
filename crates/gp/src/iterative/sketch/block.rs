//! What a step knows of its rows alone.

use crate::GpError;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::solve::{
    DrawnPreconditioner, Preconditioner, PreconditionerChoice, System, largest_eigenvalue,
};

/// Power iterations for the length of a step; they leave it some per cent too long at most, of the hundred that are stable.
const POWER_ITERATIONS: usize = 10;

/// Some rows: how they are solved for.
pub(super) struct Block<T: Real> {
    preconditioner: Box<dyn DrawnPreconditioner<T>>,
    /// `1 / λ_1(P^-1 K̃_II)`
    step: T,
}

impl<T: Real> Block<T> {
    /// Of different rows. Cost: `b²` entries of K, `2 b² rank + 22 b rank² + 20 b²` flops; memory `b²` numbers while it is made, `b rank` after.
    pub(super) fn of(
        system: &System<'_, T>,
        rows: &[usize],
        rank: usize,
        seed: u64,
    ) -> Result<Self, GpError> {
        let mut own = Mat::zeros(rows.len(), rows.len());
        system.matrix().principal_into(rows, own.as_mut());
        let own = Dense::new(own);
        let own = System::new(&own, rows.iter().map(|&i| system.noise()[i]).collect())?;
        let preconditioner = PreconditionerChoice::Nystrom { rank, seed }.build(&own)?;
        let product = Preconditioned { system: &own, preconditioner: &*preconditioner };
        let largest = largest_eigenvalue(&product, POWER_ITERATIONS, seed)?;
        Ok(Self { preconditioner, step: T::from_f64(largest.recip()) })
    }

    /// `D` for a gradient G (both b x s).
    pub(super) fn direction(&self, gradient: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.preconditioner.apply(gradient, output.as_mut());
        for j in 0..output.ncols() {
            output.as_mut().col_mut(j).iter_mut().for_each(|d| *d *= self.step);
        }
    }
}

/// `P^-1 K̃_II`, whose eigenvalues are positive though it is not symmetric.
struct Preconditioned<'a, T: Real> {
    system: &'a System<'a, T>,
    preconditioner: &'a dyn Preconditioner<T>,
}

impl<T: Real> LinearOperator<T> for Preconditioned<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.system.shape()
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.preconditioner.apply(self.system.multiply(input).as_ref(), output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        let mut between = Mat::zeros(input.nrows(), input.ncols());
        self.preconditioner.apply(input, between.as_mut());
        self.system.apply(between.as_ref(), output);
    }
}
