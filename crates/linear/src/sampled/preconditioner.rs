//! What conjugate gradients are preconditioned with: the leading directions of the curvature and what is left of its diagonal.
//!
//! Few examples move many weights in few directions: the curvature's spectrum falls by orders of magnitude within its first hundred values, and without them conjugate gradients are left with little. Kronecker
//! factors of so few examples are no help: on 2,000 digits they needed several times the products that the diagonal does.

use super::model::{Observer, SampledModel};
use crate::curvature::{Accumulator, FisherEstimate, FitSums, Form};
use crate::features::FeatureMap;
use crate::structure::{Block, BlockMatrix, Conditioned, LowRank, Structure};
use crate::{LinearError, Prior};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::solve::{Nystrom, Preconditioner};

/// Columns of the root of `B` up to which the diagonal of the curvature is exact; above, it is estimated.
pub const EXACT_ROOTS: usize = 10;

impl<T: Real, F: FeatureMap<T>> SampledModel<'_, T, F> {
    /// The diagonal of the curvature of unscaled features, exact for likelihoods whose root has few columns, else from squares of `samples` noise draws of each example (its entries' relative error falls as
    /// `1 / sqrt(n samples)`); with it how well the model fits.
    ///
    /// # Errors
    /// Those of the features and of reading the data; [`LinearError::Interrupted`].
    pub fn curvature_diagonal(
        &self,
        samples: usize,
        seed: u64,
        observer: Observer<'_>,
    ) -> Result<(Vec<f64>, FitSums), LinearError> {
        let estimate = match self.likelihood().root_width() {
            width if width <= EXACT_ROOTS => FisherEstimate::Exact,
            _ => FisherEstimate::Noise { samples: samples.max(1), seed },
        };
        let mut sums = Accumulator::new(&self.features().segments(), Form::Diagonal, estimate)?;
        sums.extend(self.features(), self.source(), self.likelihood(), 0, observer)?;
        Ok((sums.finish()?.diagonal(), *sums.fit()))
    }

    /// The curvature of unscaled features, approximately: `rank` directions by Nyström's approximation, and what they leave of its `diagonal` (d).
    ///
    /// Cost: one product with `rank` vectors, about `14 d rank²` flops; memory five blocks of d x `rank` doubles, one of which is kept.
    /// Source: Frangella, Tropp and Udell (2023), *Randomized Nyström preconditioning*.
    ///
    /// # Errors
    /// As [`Self::curvature_diagonal`].
    pub fn leading_curvature(
        &self,
        diagonal: &[f64],
        rank: usize,
        seed: u64,
        observer: Observer<'_>,
    ) -> Result<Structure, LinearError> {
        let d = self.dimension();
        crate::check::same("entries of the curvature's diagonal", d, diagonal.len())?;
        crate::check::finite("entry of the curvature's diagonal", diagonal)?;
        let rank = rank.min(d);
        let factor: Mat<f64> = if rank == 0 {
            Mat::zeros(d, 0)
        } else {
            let test = Nystrom::<f64>::test_vectors(d, rank, seed);
            let plain = SampledModel::new(self.features(), self.source(), self.likelihood());
            let product = plain.curvature_product(test.as_ref(), None, &mut vec![0.0; rank], observer)?;
            match Nystrom::<f64>::of_products(test.as_ref(), product, T::EPSILON.to_f64()) {
                Ok(found) => {
                    let roots: Vec<f64> = found.eigenvalues().iter().map(|l| l.max(0.0).sqrt()).collect();
                    Mat::from_fn(d, roots.len(), |i, j| found.vectors()[(i, j)] * roots[j])
                }
                // Of examples that move nothing, say: the diagonal will do.
                Err(_) => Mat::zeros(d, 0),
            }
        };
        // An estimated diagonal may be smaller than what the directions have of it.
        let left = (0..d).map(|i| (diagonal[i] - factor.row(i).squared_norm_l2()).max(0.0)).collect();
        let matrix = BlockMatrix::LowRank(LowRank::new(factor, left));
        Ok(Structure::new(vec![Block { name: "all weights".into(), range: 0..d, matrix }])?)
    }
}

/// `(s M + A)^-1` with an approximate curvature `M` and prior precisions `A` of each weight; all in unscaled weights.
///
/// # Errors
/// Of other sizes, precisions that are not positive numbers, matrices that cannot be factored.
pub(super) fn condition(
    curvature: &Structure,
    precisions: &[f64],
    strength: f64,
) -> Result<Conditioned, LinearError> {
    let groups = || precisions.chunk_by(|a, b| a == b);
    let stretches: Vec<_> = groups().enumerate().map(|(group, own)| (own.len(), group)).collect();
    // Nobody asks for their names.
    let names = vec![String::new(); stretches.len()];
    let prior = Prior::grouped(&stretches, names, groups().map(|own| own[0]).collect()).map_err(|_| {
        let odd = precisions.iter().find(|a| !(a.is_finite() && **a > 0.0)).copied().unwrap_or(f64::NAN);
        LinearError::Option { name: "prior precision", value: odd, expected: "a positive finite number" }
    })?;
    Ok(curvature.condition(&prior, strength)?)
}

/// An approximate posterior as a preconditioner in scaled weights `z = w / s`: `(s S M S + A)^-1 = S^-1 (s M + S^-1 A S^-1)^-1 S^-1`. A weight whose scale is zero has its prior alone.
pub(crate) struct Factored<'a> {
    conditioned: Conditioned,
    scaled: Option<(&'a [f64], &'a [f64])>,
}

impl<'a> Factored<'a> {
    /// Of an approximate curvature of unscaled features, scales (None: ones), and prior precisions of scaled weights.
    ///
    /// # Errors
    /// Those of [`condition`].
    pub(crate) fn new(
        curvature: &Structure,
        scales: Option<&'a [f64]>,
        precisions: &'a [f64],
        strength: f64,
    ) -> Result<Self, LinearError> {
        let Some(scales) = scales else {
            return Ok(Self { conditioned: condition(curvature, precisions, strength)?, scaled: None });
        };
        let own = |(a, s): (&f64, &f64)| if *s == 0.0 { *a } else { a / (s * s) };
        let own: Vec<f64> = precisions.iter().zip(scales).map(own).collect();
        Ok(Self { conditioned: condition(curvature, &own, strength)?, scaled: Some((scales, precisions)) })
    }
}

impl Preconditioner<f64> for Factored<'_> {
    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        let Some((scales, precisions)) = self.scaled else {
            output.copy_from(self.conditioned.solve_columns(input));
            return;
        };
        let divided = |m: MatRef<'_, f64>| {
            let entry = |i: usize, j: usize| if scales[i] == 0.0 { 0.0 } else { m[(i, j)] / scales[i] };
            Mat::from_fn(m.nrows(), m.ncols(), entry)
        };
        output.copy_from(divided(self.conditioned.solve_columns(divided(input).as_ref()).as_ref()));
        for i in (0..scales.len()).filter(|i| scales[*i] == 0.0) {
            (0..input.ncols()).for_each(|j| output[(i, j)] = input[(i, j)] / precisions[i]);
        }
    }
}
