//! **What rows say of weights of inducing points**: of a function `φ(x)ᵀ v` around output c, with whitened features `φ = L⁻¹ k(Z, x)` and the prior `v ~ N(0, I)`,
//!
//! ```text
//! G_c = Σ_n B_cc(n) φ(x_n) φ(x_n)ᵀ,   r_c(x) = a (k(x, x) - |φ(x)|²) + a φ(x)ᵀ (I + a G_c)⁻¹ φ(x)
//! ```
//!
//! is Laplace's covariance at the network under the prior variance a: where training of weights begins, and, before anything is trained, what each prior variance would predict. With `G_c = V diag(g) Vᵀ` a row costs `O(M²)` once and `O(M)` for every a.

use super::pseudo_targets::AtRows;
use crate::LaplaceError;
use crate::rows::{Rows, amplitudes, scored};
use faer::Mat;
use posterior_gp::GpError;
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{Kernel, diagonal};
use posterior_likelihoods::Likelihood;
use posterior_linalg::dense::{Eigen, eigen, product};
use posterior_linalg::tiles::pieces;
use posterior_linear::low_rank::{ObservedRows, RowTerms};

/// Rows of which features are computed at a time.
pub(super) const BLOCK: usize = 1024;

/// The kernel with prior variance 1 at its inducing points.
pub(super) struct Whitened<'a> {
    pub(super) kernel: &'a dyn Kernel<f64>,
    pub(super) inducing: &'a Mat<f64>,
    pub(super) whitening: &'a Whitening,
}

impl Whitened<'_> {
    /// `G_c` of each output (M x M), of the `chosen` rows, `share` times. Cost `n C M²` flops.
    pub(super) fn curvatures(
        &self,
        likelihood: &dyn Likelihood,
        of: &Rows,
        (chosen, share): (&[usize], f64),
    ) -> Vec<Mat<f64>> {
        let (m, c) = (self.inducing.nrows(), likelihood.outputs());
        let mut out = vec![Mat::<f64>::zeros(m, m); c];
        let (mut at, mut entries) = (AtRows::new(likelihood, of), vec![0.0; c]);
        for range in pieces(chosen.len(), BLOCK) {
            let rows = &chosen[range];
            let features = self.whitening.features(self.kernel, self.inducing.as_ref(), of.at(rows).as_ref());
            let mut weights = Mat::zeros(rows.len(), c);
            for (i, &row) in rows.iter().enumerate() {
                at.curvature_diagonal(row, &mut entries);
                entries.iter().enumerate().for_each(|(j, b)| weights[(i, j)] = share * b);
            }
            for (j, sum) in out.iter_mut().enumerate() {
                let weighted = Mat::from_fn(m, rows.len(), |k, i| weights[(i, j)] * features[(k, i)]);
                *sum += product(weighted.as_ref(), features.transpose());
            }
        }
        out
    }

    /// The prior variances that were tried with their scores on rows that were not learned from (minus the mean log predictive density, nats), those that have none left out.
    ///
    /// # Errors
    /// Eigenvalues that cannot be found; where no variance has a score.
    pub(super) fn amplitudes(
        &self,
        curvatures: &[Mat<f64>],
        likelihood: &dyn Likelihood,
        held: &Rows,
        rows: &[usize],
    ) -> Result<Vec<(f64, f64)>, LaplaceError> {
        let amplitudes: Vec<f64> = amplitudes().collect();
        let spectra: Vec<Eigen> =
            curvatures.iter().map(|sum| eigen(sum.as_ref())).collect::<Result<_, _>>().map_err(|_| {
                LaplaceError::Request("the curvature at the inducing points is not finite".into())
            })?;
        let mut totals = vec![0.0; amplitudes.len()];
        for range in pieces(rows.len(), BLOCK) {
            let rows = &rows[range];
            let points = held.at(rows);
            let features = self.whitening.features(self.kernel, self.inducing.as_ref(), points.as_ref());
            let own = diagonal(self.kernel, points.as_ref());
            let left = |i: usize| f64::max(own[i] - features.col(i).squared_norm_l2(), 0.0);
            let left: Vec<f64> = (0..rows.len()).map(left).collect();
            // Features along the eigenvectors, squared.
            let squares: Vec<Mat<f64>> = spectra
                .iter()
                .map(|spectrum| {
                    let mut along = product(spectrum.vectors.transpose(), features.as_ref());
                    along.col_iter_mut().for_each(|c| c.iter_mut().for_each(|v| *v *= *v));
                    along
                })
                .collect();
            let pick = |m: &Mat<f64>| Mat::from_fn(rows.len(), m.ncols(), |i, j| m[(rows[i], j)]);
            let (targets, means) = (pick(&held.targets), pick(&held.means));
            let observed =
                ObservedRows { targets: targets.as_ref(), noise: None, weights: None, offsets: None };
            for (a, total) in amplitudes.iter().zip(&mut totals) {
                let variance = |i: usize, c: usize| {
                    let pairs = squares[c].col_as_slice(i).iter().zip(&spectra[c].values);
                    a * (left[i] + pairs.map(|(s, g)| s / (1.0 + a * g.max(0.0))).sum::<f64>())
                };
                let variances = Mat::from_fn(rows.len(), means.ncols(), variance);
                *total -= RowTerms::of(likelihood, 1.0, &observed, (&means, &variances)).value;
            }
        }
        let scores = totals.into_iter().map(|total| total / rows.len() as f64);
        scored(amplitudes.into_iter().zip(scores))
    }
}

/// The factor of the kernel's matrix at its inducing points, with as much jitter as references have.
///
/// # Errors
/// Where no jitter that is allowed is enough.
pub(super) fn whitening(kernel: &dyn Kernel<f64>, inducing: &Mat<f64>) -> Result<Whitening, LaplaceError> {
    let more = posterior_linalg::cholesky::JitterPolicy { initial: 1e-10, growth: 10.0, largest: 1e-4 };
    Whitening::new(kernel, inducing.as_ref(), posterior_gp::generalised::JITTER, more)
        .map_err(|error| GpError::from(error).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::AMPLITUDES_TRIED;
    use faer::linalg::solvers::DenseSolveCore;
    use posterior_kernels::{KernelExpression, cross, gram};
    use posterior_likelihoods::{Categorical, Slopes};

    fn wave(rows: usize, columns: usize, salt: f64) -> Mat<f64> {
        Mat::from_fn(rows, columns, |i, j| 1.5 * (1.9 * (i * columns + j) as f64 + salt).sin())
    }

    fn inverse(m: &Mat<f64>) -> Mat<f64> {
        m.partial_piv_lu().inverse()
    }

    #[test]
    fn prior_variances_are_scored_as_the_inverse_of_the_whole_matrix_scores_them() {
        let columns = ["x0".to_string(), "x1".to_string()];
        let kernel: Box<dyn Kernel<f64>> = "rbf(variance=1.3, lengthscale=0.8)"
            .parse::<KernelExpression>()
            .unwrap()
            .build(&columns)
            .unwrap();
        let of = Rows {
            points: wave(14, 2, 0.2),
            means: wave(14, 3, 0.9),
            targets: Mat::from_fn(14, 1, |i, _| (i % 3) as f64),
        };
        let held = Rows {
            points: wave(9, 2, 4.0),
            means: wave(9, 3, 5.0),
            targets: Mat::from_fn(9, 1, |i, _| (i % 2) as f64),
        };
        let z = of.at(&[0, 3, 7, 11]);
        let whitening = whitening(&*kernel, &z).unwrap();
        let at = Whitened { kernel: &*kernel, inducing: &z, whitening: &whitening };
        let likelihood = Categorical::new(3).unwrap();
        let (chosen, share) = ([0, 1, 2, 4, 6, 9, 13], 2.0);
        let curvatures = at.curvatures(&likelihood, &of, (&chosen, share));
        let rows: Vec<usize> = (0..9).collect();
        let tried = at.amplitudes(&curvatures, &likelihood, &held, &rows).unwrap();
        assert_eq!(tried.len(), AMPLITUDES_TRIED);

        // Without features: the covariance of function values at inducing points under the prior a K and observations of curvature B, all by inverses.
        let k = gram(&*kernel, z.as_ref());
        let (kx, kh) = (
            cross(&*kernel, z.as_ref(), of.at(&chosen).as_ref()),
            cross(&*kernel, z.as_ref(), held.points.as_ref()),
        );
        let b = |row: usize, c: usize| {
            let p: Vec<f64> = (0..3).map(|j| of.means[(row, j)].exp()).collect();
            let p = p[c] / p.iter().sum::<f64>();
            share * p * (1.0 - p)
        };
        for (a, score) in [tried[0], tried[13], tried[28]] {
            let mut total = 0.0;
            let weights = inverse(&k);
            let posterior: Vec<Mat<f64>> = (0..3)
                .map(|c| {
                    // Observations see K⁻¹ K_ZX of the values u, whose prior is a K.
                    let seen = &weights * &kx;
                    let scaled = Mat::from_fn(4, 7, |m, i| b(chosen[i], c) * seen[(m, i)]);
                    inverse(&(&weights * faer::Scale(1.0 / a) + &scaled * seen.transpose()))
                })
                .collect();
            let mut slopes = (vec![0.0; 3], vec![0.0; 3]);
            for i in 0..9 {
                let seen = &weights * kh.col(i).as_mat();
                let explained = (kh.col(i).transpose() * &seen)[0];
                let variance =
                    |c: usize| a * (1.3 - explained) + (seen.transpose() * &posterior[c] * &seen)[(0, 0)];
                let variances: Vec<f64> = (0..3).map(variance).collect();
                let means: Vec<f64> = held.means.row(i).iter().copied().collect();
                let place = Slopes { means: &mut slopes.0, variances: &mut slopes.1, parameters: &mut [] };
                total += likelihood.alpha_energy(1.0, &[held.targets[(i, 0)]], &means, &variances, place);
            }
            assert!((score - total / 9.0).abs() < 1e-7 * (1.0 + score.abs()), "{a}: {score} {}", total / 9.0);
        }
    }
}
