//! What a step knows of its rows alone.

use crate::GpError;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::solve::{
    DrawnPreconditioner, Preconditioner, PreconditionerChoice, System, largest_eigenvalue,
};

/// Power iterations for the length of a step; they leave it some per cent too long at most, of the hundred that are stable.
const POWER_ITERATIONS: usize = 10;

/// Some rows: how they are solved for.
pub(super) enum Block<T: Real> {
    /// By a factor of their matrix, in double precision whatever the values are in.
    Exact(Cholesky),
    /// By a sketch of it.
    Sketched {
        preconditioner: Box<dyn DrawnPreconditioner<T>>,
        /// `1 / λ_1(P^-1 K̃_II)`
        step: T,
    },
}

impl<T: Real> Block<T> {
    /// Of different rows; without a rank exactly. Cost: `b²` entries of K and `b³/3` flops, or `2 b² rank + 22 b rank² + 20 b²` of a sketch; memory `b²` numbers (of a sketch only while it is made, `b rank` after).
    ///
    /// What rounding of the values in single precision makes indefinite is factored with a little more on its diagonal, which shortens the step.
    pub(super) fn of(
        system: &System<'_, T>,
        rows: &[usize],
        rank: Option<usize>,
        seed: u64,
    ) -> Result<Self, GpError> {
        let mut own = Mat::zeros(rows.len(), rows.len());
        system.matrix().principal_into(rows, own.as_mut());
        let noise = rows.iter().map(|&i| system.noise()[i]);
        let Some(rank) = rank else {
            let noise: Vec<f64> = noise.map(Real::to_f64).collect();
            let buffer = Mat::zeros(rows.len(), rows.len());
            let factor = Cholesky::factor_with(buffer, JitterPolicy::default(), |mut matrix| {
                for j in 0..rows.len() {
                    for i in j..rows.len() {
                        matrix[(i, j)] = own[(i, j)].to_f64() + if i == j { noise[i] } else { 0.0 };
                    }
                }
            });
            return Ok(Self::Exact(factor?));
        };
        let own = Dense::new(own);
        let own = System::new(&own, noise.collect())?;
        let preconditioner = PreconditionerChoice::Nystrom { rank, seed }.build(&own)?;
        let product = Preconditioned { system: &own, preconditioner: &*preconditioner };
        let largest = largest_eigenvalue(&product, POWER_ITERATIONS, seed)?;
        Ok(Self::Sketched { preconditioner, step: T::from_f64(largest.recip()) })
    }

    /// `D` for a gradient G (both b x s).
    pub(super) fn direction(&self, gradient: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        let (b, s) = gradient.shape();
        match self {
            Self::Exact(factor) => {
                let mut wide = Mat::from_fn(b, s, |i, j| gradient[(i, j)].to_f64());
                factor.solve_in_place(wide.as_mut());
                for j in 0..s {
                    output
                        .as_mut()
                        .col_mut(j)
                        .iter_mut()
                        .zip(wide.col(j).iter())
                        .for_each(|(d, &w)| *d = T::from_f64(w));
                }
            }
            Self::Sketched { preconditioner, step } => {
                preconditioner.apply(gradient, output.as_mut());
                for j in 0..s {
                    output.as_mut().col_mut(j).iter_mut().for_each(|d| *d *= *step);
                }
            }
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
