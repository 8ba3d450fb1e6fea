//! **The evidence from below, in weight space**: what any Gaussian over the weights says of the evidence, and turns that climb it.
//!
//! For a prior `w ~ N(0, I/a)`, noise of precision b and `q = N(m, S)`,
//!
//! ```text
//! 2 M(q, a, b) = n log b - n log 2π + d log a + log det S + d
//!                - a (|m|² + Tr S) - b (|Y - Φ m|² + Tr Φ S Φ')    <=  2 log p(Y | a, b)
//! ```
//!
//! with equality where q is the posterior. Turns of the best q for (a, b) and the best (a, b) for q, `a = d / (|m|² + Tr S)` and `b = n / (|Y - Φ m|² + Tr Φ S Φ')`, climb the evidence itself where q may be any Gaussian, and end where MacKay's fixed point is. Where q is kept, or has a diagonal covariance only, the best (a, b)
//! is another one than the evidence's: the price of a bound that is not tight everywhere alike.
//!
//! For few weights, whose covariances are dense; [`posterior_linear::sampled`] has the same turns by products alone.
//!
//! Source: Antorán (2024), section 2.3 and figure 3.2; spec `stochastic_gaussian_processes`, sections 9.4 and 10.

use crate::kinds::prelude::*;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linear::{LinearError, check};
use std::f64::consts::TAU;

/// Precisions of weights and noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Precisions {
    /// a, of the prior.
    pub(super) prior: f64,
    /// b, of the noise.
    pub(super) noise: f64,
}

/// Which Gaussians stand for the posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Family {
    /// Any: the best is the posterior.
    Full,
    /// Those with a diagonal covariance (mean field): the posterior's mean, and the inverse of its precision's diagonal.
    Diagonal,
}

/// A Gaussian over the weights.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WeightGaussian {
    mean: Vec<f64>,
    covariance: Mat<f64>,
    log_determinant: f64,
}

impl WeightGaussian {
    /// From a mean (d) and a covariance (d x d, its lower triangle).
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`]; [`LinearError::Cholesky`] where it is not positive definite.
    #[cfg(test)]
    fn new(mean: Vec<f64>, covariance: Mat<f64>) -> Result<Self, LinearError> {
        check::same("rows of the covariance", mean.len(), covariance.nrows())?;
        check::same("columns of the covariance", mean.len(), covariance.ncols())?;
        check::finite("mean weight", &mean)?;
        check::finite_matrix("covariance", covariance.as_ref())?;
        let log_determinant = Cholesky::of(covariance.as_ref(), JitterPolicy::NONE)?.log_determinant();
        Ok(Self { mean, covariance, log_determinant })
    }

    /// d
    pub(super) fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// d x d
    pub(super) fn covariance(&self) -> MatRef<'_, f64> {
        self.covariance.as_ref()
    }
}

/// Features of n examples (n x d) and their targets, with what every turn needs of them.
#[derive(Clone, Debug)]
pub(super) struct WeightBound {
    features: Mat<f64>,
    targets: Vec<f64>,
    /// `Φ' Φ`
    gram: Mat<f64>,
    /// `Φ' Y`
    moment: Mat<f64>,
}

impl WeightBound {
    /// Cost: `n d²` flops; memory `n d + d²`.
    ///
    /// # Errors
    /// [`LinearError::Empty`], [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub(super) fn new(features: Mat<f64>, targets: Vec<f64>) -> Result<Self, LinearError> {
        if features.ncols() == 0 || features.nrows() == 0 {
            return Err(LinearError::Empty { what: "features" });
        }
        check::same("targets", features.nrows(), targets.len())?;
        check::finite("target", &targets)?;
        check::finite_matrix("feature", features.as_ref())?;
        let gram = features.transpose() * &features;
        let moment = features.transpose() * Mat::from_fn(targets.len(), 1, |i, _| targets[i]);
        Ok(Self { features, targets, gram, moment })
    }

    /// `H = a I + b Φ' Φ`, factored.
    fn precision(&self, at: Precisions) -> Result<Cholesky, LinearError> {
        let d = self.gram.ncols();
        let h = Mat::from_fn(d, d, |i, j| at.noise * self.gram[(i, j)] + if i == j { at.prior } else { 0.0 });
        Ok(Cholesky::of(h.as_ref(), JitterPolicy::NONE)?)
    }

    /// The member of a family that is nearest to the posterior. Cost: `d³` flops.
    ///
    /// # Errors
    /// [`LinearError::Cholesky`] for precisions that are not positive.
    pub(super) fn best(&self, family: Family, at: Precisions) -> Result<WeightGaussian, LinearError> {
        let (d, factor) = (self.gram.ncols(), self.precision(at)?);
        let mean = factor.solve(self.moment.as_ref()).col(0).iter().map(|w| at.noise * w).collect();
        let (covariance, log_determinant) = match family {
            Family::Full => {
                let log_determinant = -factor.log_determinant();
                (factor.solve(Mat::identity(d, d).as_ref()), log_determinant)
            }
            Family::Diagonal => {
                let each: Vec<f64> =
                    (0..d).map(|j| (at.prior + at.noise * self.gram[(j, j)]).recip()).collect();
                let log_determinant = each.iter().map(|v| v.ln()).sum();
                (Mat::from_fn(d, d, |i, j| if i == j { each[i] } else { 0.0 }), log_determinant)
            }
        };
        Ok(WeightGaussian { mean, covariance, log_determinant })
    }

    /// `|m|² + Tr S` and `|Y - Φ m|² + Tr Φ S Φ'`.
    fn expected(&self, q: &WeightGaussian) -> [f64; 2] {
        let d = q.mean.len();
        let size =
            q.mean.iter().map(|w| w * w).sum::<f64>() + (0..d).map(|j| q.covariance[(j, j)]).sum::<f64>();
        let predicted = &self.features * Mat::from_fn(d, 1, |j, _| q.mean[j]);
        let misfit =
            self.targets.iter().enumerate().map(|(i, y)| (y - predicted[(i, 0)]).powi(2)).sum::<f64>();
        // Both are symmetric; a covariance is read by its lower triangle.
        let lower = |i: usize, j: usize| q.covariance[(i.max(j), i.min(j))];
        let spread =
            (0..d).flat_map(|j| (0..d).map(move |i| (i, j))).map(|(i, j)| self.gram[(i, j)] * lower(i, j));
        [size, misfit + spread.sum::<f64>()]
    }

    /// The bound, nats. Cost: `n d + d²` flops.
    ///
    /// # Errors
    /// [`LinearError::Shape`] for a Gaussian over other weights.
    pub(super) fn value(&self, q: &WeightGaussian, at: Precisions) -> Result<f64, LinearError> {
        check::same("weights of the Gaussian", self.gram.ncols(), q.mean.len())?;
        let [size, misfit] = self.expected(q);
        let (n, d) = (self.targets.len() as f64, q.mean.len() as f64);
        Ok(0.5
            * (n * (at.noise / TAU).ln() + d * at.prior.ln() + q.log_determinant + d
                - at.prior * size
                - at.noise * misfit))
    }

    /// The log evidence, nats: the bound at the posterior.
    ///
    /// # Errors
    /// As [`Self::best`].
    pub(super) fn evidence(&self, at: Precisions) -> Result<f64, LinearError> {
        self.value(&self.best(Family::Full, at)?, at)
    }

    /// The precisions at which the bound of a Gaussian is highest.
    ///
    /// # Errors
    /// [`LinearError::Shape`] for a Gaussian over other weights.
    pub(super) fn precisions(&self, q: &WeightGaussian) -> Result<Precisions, LinearError> {
        check::same("weights of the Gaussian", self.gram.ncols(), q.mean.len())?;
        let [size, misfit] = self.expected(q);
        Ok(Precisions { prior: q.mean.len() as f64 / size, noise: self.targets.len() as f64 / misfit })
    }

    /// Expectation maximisation: precisions and the bound of the best member of a family there, before the first and after each of so many turns. The bound never falls; with [`Family::Full`] it is the evidence.
    ///
    /// # Errors
    /// As [`Self::best`].
    pub(super) fn turns(
        &self,
        family: Family,
        from: Precisions,
        count: usize,
    ) -> Result<Vec<(Precisions, f64)>, LinearError> {
        let (mut at, mut out) = (from, Vec::with_capacity(count + 1));
        for _ in 0..=count {
            let q = self.best(family, at)?;
            out.push((at, self.value(&q, at)?));
            at = self.precisions(&q)?;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use posterior_linear::evidence::DualModel;
    use rand_distr::{Distribution as _, StandardNormal};

    fn normals(rows: usize, columns: usize, name: &str) -> Mat<f64> {
        let mut random = Streams::new(1).stream(name);
        Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut random))
    }

    /// More rows than weights, targets that the features explain in part.
    fn problem(rows: usize, weights: usize) -> WeightBound {
        let features = normals(rows, weights, "features");
        let (w, e) = (normals(weights, 1, "weights"), normals(rows, 1, "noise"));
        let targets = (&features * w).col(0).iter().zip(e.col(0).iter()).map(|(f, e)| f + 0.7 * e).collect();
        WeightBound::new(features, targets).unwrap()
    }

    const AT: Precisions = Precisions { prior: 0.6, noise: 3.0 };

    /// The logarithm of the density of the targets, whose covariance is `Φ Φ'/a + I/b`.
    fn direct(own: &WeightBound, at: Precisions) -> f64 {
        let n = own.targets.len();
        let covariance = &own.features * own.features.transpose();
        let covariance = Mat::from_fn(n, n, |i, j| {
            covariance[(i, j)] / at.prior + if i == j { at.noise.recip() } else { 0.0 }
        });
        let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::NONE).unwrap();
        let y = Mat::from_fn(n, 1, |i, _| own.targets[i]);
        let square = (y.transpose() * factor.solve(y.as_ref()))[(0, 0)];
        -0.5 * (n as f64 * TAU.ln() + factor.log_determinant() + square)
    }

    #[test]
    fn the_bound_is_tight_at_the_posterior_alone() {
        for (n, d) in [(12, 4), (5, 9)] {
            let own = problem(n, d);
            let exact = direct(&own, AT);
            assert!((own.evidence(AT).unwrap() - exact).abs() < 1e-9 * exact.abs(), "{n} {d}");
            // From the other side of the duality.
            let kernel = &own.features * own.features.transpose();
            let dual = DualModel::new(kernel.as_ref(), &own.targets, "").unwrap().evidence();
            let log_density = |(l, e): (&f64, &f64)| {
                let variance = l / AT.prior + AT.noise.recip();
                -0.5 * ((TAU * variance).ln() + e / variance)
            };
            let dual: f64 = dual.eigenvalues.iter().zip(&dual.energies).map(log_density).sum();
            assert!((dual - exact).abs() < 1e-9 * exact.abs(), "{dual} {exact}");
            let posterior = own.best(Family::Full, AT).unwrap();
            for k in 0..20 {
                let (moved, root) = (normals(d, 1, &format!("m{k}")), normals(d, d, &format!("s{k}")));
                let mean = (0..d).map(|j| posterior.mean[j] + 0.3 * moved[(j, 0)]).collect();
                let covariance = 0.1 * (&root * root.transpose()) + &posterior.covariance;
                let other = WeightGaussian::new(mean, covariance).unwrap();
                assert!(own.value(&other, AT).unwrap() < exact - 1e-3);
            }
            let diagonal = own.value(&own.best(Family::Diagonal, AT).unwrap(), AT).unwrap();
            assert!(diagonal < exact - 1e-2);
            // No other diagonal covariance is better.
            let best = own.best(Family::Diagonal, AT).unwrap();
            for j in 0..d {
                for factor in [0.9, 1.1] {
                    let mut covariance = best.covariance.clone();
                    covariance[(j, j)] *= factor;
                    let other = WeightGaussian::new(best.mean.clone(), covariance).unwrap();
                    assert!(own.value(&other, AT).unwrap() < diagonal);
                }
            }
        }
    }

    /// `E log p(Y, w) - E log q(w)` by draws, to four standard errors.
    #[test]
    fn the_bound_is_an_average() {
        let own = problem(10, 3);
        let root = Mat::from_fn(3, 3, |i, j| {
            if i == j {
                0.5
            } else if i > j {
                0.2
            } else {
                0.0
            }
        });
        let q = WeightGaussian::new(vec![0.3, -1.0, 0.2], &root * root.transpose()).unwrap();
        let draws = normals(3, 200_000, "draws");
        let log_determinant = 6.0 * 0.5f64.ln();
        let each: Vec<f64> = (0..draws.ncols())
            .map(|k| {
                let z = draws.col(k);
                let w = &root * z;
                let w = Mat::from_fn(3, 1, |j, _| q.mean[j] + w[j]);
                let f = &own.features * &w;
                let misfit: f64 = own.targets.iter().enumerate().map(|(i, y)| (y - f[(i, 0)]).powi(2)).sum();
                let joint = 0.5
                    * (10.0 * (AT.noise / TAU).ln() - AT.noise * misfit + 3.0 * (AT.prior / TAU).ln()
                        - AT.prior * w.squared_norm_l2());
                joint + 0.5 * (3.0 * TAU.ln() + log_determinant + z.squared_norm_l2())
            })
            .collect();
        let count = each.len() as f64;
        let mean = each.iter().sum::<f64>() / count;
        let error = (each.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count / count).sqrt();
        let value = own.value(&q, AT).unwrap();
        assert!((value - mean).abs() < 4.0 * error, "{value} {mean} +- {error}");
    }

    #[test]
    fn precisions_are_where_a_kept_bound_is_highest() {
        let own = problem(15, 4);
        let q = own.best(Family::Full, AT).unwrap();
        let best = own.precisions(&q).unwrap();
        let top = own.value(&q, best).unwrap();
        for (prior, noise) in [(1.02, 1.0), (0.98, 1.0), (1.0, 1.02), (1.0, 0.98)] {
            let beside = Precisions { prior: best.prior * prior, noise: best.noise * noise };
            assert!(own.value(&q, beside).unwrap() < top);
        }
        // And not where the evidence is.
        let end = own.turns(Family::Full, AT, 2000).unwrap();
        assert!((best.prior / end[2000].0.prior).ln().abs() > 1e-3);
    }

    #[test]
    fn turns_climb_to_the_fixed_point_of_the_evidence() {
        let own = problem(20, 5);
        for family in [Family::Full, Family::Diagonal] {
            let turns = own.turns(family, Precisions { prior: 10.0, noise: 0.1 }, 3000).unwrap();
            assert!(turns.windows(2).all(|pair| pair[1].1 >= pair[0].1 - 1e-10));
        }
        let (end, highest) = own.turns(Family::Full, AT, 3000).unwrap()[3000];
        let slope = |up: Precisions, down: Precisions| {
            (own.evidence(up).unwrap() - own.evidence(down).unwrap()) / 2e-4
        };
        let [up, down] = [1e-4f64, -1e-4].map(f64::exp);
        let prior =
            slope(Precisions { prior: end.prior * up, ..end }, Precisions { prior: end.prior * down, ..end });
        let noise =
            slope(Precisions { noise: end.noise * up, ..end }, Precisions { noise: end.noise * down, ..end });
        assert!(prior.abs() < 1e-5 && noise.abs() < 1e-5, "{prior} {noise}");
        // MacKay's update stands still there.
        let q = own.best(Family::Full, end).unwrap();
        let trace: f64 = (0..5).map(|j| q.covariance[(j, j)]).sum();
        let (gamma, norm) = (5.0 - end.prior * trace, q.mean.iter().map(|w| w * w).sum::<f64>());
        assert!((end.prior * norm / gamma - 1.0).abs() < 1e-6);
        // Mean field ends elsewhere, below.
        let (other, bound) = own.turns(Family::Diagonal, AT, 3000).unwrap()[3000];
        assert!(bound < highest && own.evidence(other).unwrap() < highest - 1e-4);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let own = problem(6, 2);
        let other = WeightGaussian::new(vec![0.0], Mat::identity(1, 1)).unwrap();
        assert!(matches!(own.value(&other, AT), Err(LinearError::Shape { .. })));
        assert!(WeightGaussian::new(vec![0.0; 2], Mat::zeros(2, 2)).is_err());
        assert!(WeightBound::new(Mat::zeros(3, 2), vec![0.0; 2]).is_err());
        assert!(matches!(
            WeightBound::new(Mat::zeros(2, 2), vec![0.0, f64::NAN]),
            Err(LinearError::NotFinite { .. })
        ));
        assert!(own.best(Family::Full, Precisions { prior: -100.0, noise: 1.0 }).is_err());
    }
}
