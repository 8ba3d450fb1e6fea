//! **One prior precision of a conjugate model**, learned by the published updates. Kernel and targets are known by their spectrum, so that everything about a precision
//! is a sum over eigenvalues.
//!
//! Source: Antorán (2024), chapters 5 and 6; MacKay (1992); spec `linearised_laplace`, sections 3.3 and 5.1.

use crate::kinds::prelude::*;
use crate::tangent::Tangent;
use posterior_linear::evidence::{EvidenceOptions, SpectralEvidence};
use std::f64::consts::TAU;

/// A tangent model with known noise and one prior precision.
pub(super) struct Conjugate {
    /// In units of the noise.
    spectrum: SpectralEvidence,
    dimension: usize,
    noise_variance: f64,
}

/// What is known at one precision.
pub(super) struct Point {
    /// `|w|²` of the mode.
    pub(super) squared_norm: f64,
    /// `gamma`.
    pub(super) effective_dimension: f64,
    /// `log p(y | w)` at the mode.
    pub(super) log_likelihood: f64,
    /// The log evidence, exact.
    pub(super) log_evidence: f64,
}

/// How the precision moves once the mode is known. All three rest at the same points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Update {
    /// `a <- gamma(a) / |w|²` (MacKay 1992).
    MacKay,
    /// The maximum over `a` of the bound `M(w, a)` with the mode held: never lowers the evidence.
    MaximisedBound,
    /// `a <- d / (|w|² + Tr H^-1)`, classical expectation maximisation: never lowers the evidence, and slow, since the covariance is held too.
    DecoupledElbo,
}

/// The way of an update: precisions and their log evidences, the start first.
pub(super) struct Learned(pub(super) Vec<(f64, f64)>);

impl Learned {
    /// The last precision.
    pub(super) fn precision(&self) -> f64 {
        self.0.last().map_or(f64::NAN, |step| step.0)
    }
}

impl Conjugate {
    pub(super) fn new(tangent: &Tangent) -> Result<Self> {
        let (dimension, noise_variance) = (tangent.dimension(), tangent.noise_variance);
        Ok(Self { spectrum: tangent.spectrum()?, dimension, noise_variance })
    }

    /// Of the curvature, in units of the noise; those of weights beyond the targets are zero and left out.
    pub(super) fn eigenvalues(&self) -> &[f64] {
        &self.spectrum.eigenvalues
    }

    /// `log p(y | w)` for a squared residual in units of the noise.
    pub(super) fn log_likelihood(&self, squared_residual: f64) -> f64 {
        -0.5 * (squared_residual + self.spectrum.values as f64 * (TAU * self.noise_variance).ln())
    }

    pub(super) fn at(&self, precision: f64) -> Point {
        let (mut squared_norm, mut effective_dimension, mut residual) = (0.0, 0.0, self.spectrum.rest);
        for (l, e) in self.eigenvalues().iter().zip(&self.spectrum.energies) {
            let whole = l + precision;
            squared_norm += e * l / (whole * whole);
            effective_dimension += l / whole;
            residual += e * (precision / whole).powi(2);
        }
        let log_likelihood = self.log_likelihood(residual);
        let log_evidence = log_likelihood + self.bound(squared_norm, precision);
        Point { squared_norm, effective_dimension, log_likelihood, log_evidence }
    }

    /// `-1/2 a |w|² - 1/2 sum log(1 + l_i / a)`: the bound `M(w, a)` (equation 6.2) less what does not depend on `a`.
    pub(super) fn bound(&self, squared_norm: f64, precision: f64) -> f64 {
        let log_determinant: f64 = self.eigenvalues().iter().map(|l| (l / precision).ln_1p()).sum();
        -0.5 * (precision * squared_norm + log_determinant)
    }

    /// The precision within a range that maximises the bound: the root of `a |w|² = sum l_i / (l_i + a)`, by bisection on `log a` to rounding. The left side rises and the right one
    /// falls, so there is one root; a root outside the range gives its nearer end.
    pub(super) fn maximise_bound(&self, squared_norm: f64, range: (f64, f64)) -> f64 {
        let gamma = |a: f64| self.eigenvalues().iter().map(|l| l / (l + a)).sum::<f64>();
        let rises = |a: f64| a * squared_norm < gamma(a);
        if !rises(range.0) {
            return range.0;
        }
        if rises(range.1) {
            return range.1;
        }
        let (mut low, mut high) = (range.0.ln(), range.1.ln());
        // 60 halvings of at most e^1420 leave less than 1e-15.
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if rises(middle.exp()) { low = middle } else { high = middle }
        }
        (0.5 * (low + high)).exp()
    }

    /// The classical update's `|w|² + Tr H^-1`.
    pub(super) fn spread(&self, precision: f64, point: &Point) -> f64 {
        point.squared_norm + (self.dimension as f64 - point.effective_dimension) / precision
    }

    /// At most `steps` updates, until no logarithm changes by more than 1e-6, within the bounds of fits.
    pub(super) fn learn(&self, update: Update, start: f64, steps: usize) -> Learned {
        let (low, high) = EvidenceOptions::default().precisions;
        let mut precision = start;
        let mut trace = Vec::new();
        let mut converged = false;
        loop {
            let point = self.at(precision);
            trace.push((precision, point.log_evidence));
            if converged || trace.len() > steps {
                return Learned(trace);
            }
            let wanted = match update {
                Update::MacKay => point.effective_dimension / point.squared_norm,
                Update::MaximisedBound => self.maximise_bound(point.squared_norm, (low, high)),
                Update::DecoupledElbo => self.dimension as f64 / self.spread(precision, &point),
            };
            let next = wanted.clamp(low, high);
            converged = (next / precision).ln().abs() <= 1e-6;
            precision = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::linalg::solvers::DenseSolveCore;
    use faer::{Mat, Scale};
    use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
    use posterior_linalg::random::Streams;
    use posterior_optim::check;
    use rand_distr::{Distribution, StandardNormal};

    const UPDATES: [Update; 3] = [Update::MacKay, Update::MaximisedBound, Update::DecoupledElbo];

    fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
        let mut rng = Streams::new(11).stream(name);
        Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
    }

    /// Features, targets that follow them with unit normal errors, noise of the given variance.
    fn tangent(features: Mat<f64>, noise_variance: f64) -> Tangent {
        let (n, d) = (features.nrows(), features.ncols());
        let signal = &features * normal(d, 1, "weights") + normal(n, 1, "noise");
        Tangent {
            grid: Mat::zeros(0, d),
            targets: (0..n).map(|i| signal[(i, 0)]).collect(),
            network_mean: vec![],
            trained: vec![0.0; d],
            offset: 0.0,
            noise_variance,
            features,
        }
    }

    /// The log evidence from its definition.
    fn brute_force(tangent: &Tangent, precision: f64) -> f64 {
        let n = tangent.targets.len();
        let mut covariance = &tangent.features * tangent.features.transpose() * Scale(precision.recip());
        (0..n).for_each(|i| covariance[(i, i)] += tangent.noise_variance);
        let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::NONE).unwrap();
        let mut white = Mat::from_fn(n, 1, |i, _| tangent.targets[i]);
        factor.solve_factor_in_place(white.as_mut());
        -0.5 * (white.squared_norm_l2() + factor.log_determinant() + n as f64 * TAU.ln())
    }

    /// More rows than weights, and fewer.
    fn cases() -> [Tangent; 2] {
        [(12, 4), (4, 15)].map(|(n, d)| tangent(normal(n, d, "phi"), 0.7))
    }

    #[test]
    fn the_bounds_are_ordered_and_touch() {
        for tangent in cases() {
            let model = Conjugate::new(&tangent).unwrap();
            let (d, s) = (tangent.dimension(), tangent.noise_variance);
            let (here, n) = (0.8, tangent.targets.len() as f64);
            let point = model.at(here);
            let m = tangent.features.transpose() * &tangent.features * Scale(1.0 / s);
            let mut h = m.clone();
            (0..d).for_each(|i| h[(i, i)] += here);
            let covariance = h.partial_piv_lu().inverse();
            let targets = faer::ColRef::from_slice(&tangent.targets);
            let mean = &covariance * tangent.features.transpose() * targets * Scale(1.0 / s);
            assert!((point.squared_norm - mean.squared_norm_l2()).abs() < 1e-10);
            let squares = (targets - &tangent.features * &mean).squared_norm_l2() / s;
            assert!((point.log_likelihood - model.log_likelihood(squares)).abs() < 1e-10);
            // M(w, a) with the likelihood term restored, and the Gaussian evidence lower bound with mean and covariance held, from its definition.
            let coupled = |a: f64| point.log_likelihood + model.bound(point.squared_norm, a);
            let trace = |p: Mat<f64>| (0..d).map(|i| p[(i, i)]).sum::<f64>();
            let decoupled = |a: f64| {
                let fit = -0.5 * (n * (TAU * s).ln() + squares + trace(&m * &covariance));
                let spread = point.squared_norm + trace(covariance.clone());
                fit - 0.5 * (a * spread - d as f64 * (1.0 + a.ln()) - covariance.determinant().ln())
            };
            let evidence = |a: f64| brute_force(&tangent, a);
            for a in [0.01, 0.3, 0.8, 2.0, 50.0] {
                assert!((model.at(a).log_evidence - evidence(a)).abs() < 1e-9, "{a}");
                assert!(decoupled(a) <= coupled(a) + 1e-9 && coupled(a) <= evidence(a) + 1e-9, "{a}");
                if a != here {
                    assert!(decoupled(a) < coupled(a) && coupled(a) < evidence(a), "{a}");
                }
            }
            assert!((coupled(here) - evidence(here)).abs() < 1e-9);
            assert!((decoupled(here) - evidence(here)).abs() < 1e-9);
            let slope = |f: &dyn Fn(f64) -> f64, a: f64| check::gradient(|t| f(t[0].exp()), &[a.ln()])[0];
            assert!((slope(&coupled, here) - slope(&evidence, here)).abs() < 1e-6);
            assert!((slope(&decoupled, here) - slope(&evidence, here)).abs() < 1e-6);
            // The maximum of each bound is where its update leads.
            let best = model.maximise_bound(point.squared_norm, (1e-8, 1e10));
            assert!(slope(&coupled, best).abs() < 1e-7);
            assert!(slope(&decoupled, d as f64 / model.spread(here, &point)).abs() < 1e-7);
        }
    }

    #[test]
    fn maximising_the_bound_stays_within_its_range() {
        let spectrum =
            |l: f64| SpectralEvidence { eigenvalues: vec![l], energies: vec![1.0], rest: 0.0, values: 1 };
        let of = |l: f64| Conjugate { spectrum: spectrum(l), dimension: 1, noise_variance: 1.0 };
        assert_eq!(of(1.0).maximise_bound(0.0, (1e-3, 1e3)), 1e3);
        assert_eq!(of(0.0).maximise_bound(1.0, (1e-3, 1e3)), 1e-3);
        // One eigenvalue: a n = l / (l + a), a quadratic.
        let (l, n) = (3.0f64, 0.7f64);
        let expected = 0.5 * (-l + (l * l + 4.0 * l / n).sqrt());
        assert!((of(l).maximise_bound(n, (1e-8, 1e10)) - expected).abs() < 1e-13);
    }

    #[test]
    fn updates_rest_at_the_largest_evidence_and_expectation_maximisation_never_lowers_it() {
        for tangent in cases() {
            let model = Conjugate::new(&tangent).unwrap();
            for (start, update) in [1e-3, 1e3].into_iter().flat_map(|s| UPDATES.map(|u| (s, u))) {
                let learned = model.learn(update, start, 5_000);
                assert!(learned.0.len() <= 5_000, "{update:?}");
                let slope =
                    check::gradient(|t| brute_force(&tangent, t[0].exp()), &[learned.precision().ln()])[0];
                assert!(slope.abs() < 1e-4, "{update:?}: {slope}");
                let rises = learned.0.windows(2).all(|w| w[1].1 >= w[0].1 - 1e-10);
                assert!(rises || update == Update::MacKay, "{update:?}");
            }
        }
    }

    #[test]
    fn the_updates_take_the_published_numbers_of_steps() {
        // Spec `linearised_laplace`, section 5.1: about 2 / 5 / 100 steps published, 3 / 4 / 144-164 on synthetic data with d = 2700 and an
        // effective dimension near 100, to one per cent. Here: 200 rows with curvatures from 1e3 to 1e-3, d = 2700, from a tenth of the true precision.
        let (n, d) = (200, 2700);
        let raw = normal(n, d, "phi");
        let scale = |i: usize| 10f64.powf(1.5 - 3.0 * i as f64 / n as f64) / (d as f64).sqrt();
        let model = Conjugate::new(&tangent(Mat::from_fn(n, d, |i, j| raw[(i, j)] * scale(i)), 1.0)).unwrap();
        let best = model.learn(Update::MacKay, 0.1, 1_000).precision();
        let gamma = model.at(best).effective_dimension;
        assert!((gamma - 100.0).abs() < 15.0, "{gamma}");
        let steps = UPDATES.map(|update| {
            let learned = model.learn(update, 0.1, 1_000);
            assert!(learned.0.len() < 1_000);
            learned.0.iter().position(|s| (s.0 / best - 1.0).abs() < 0.01).unwrap()
        });
        assert!(steps[0] <= steps[1] && steps[0] <= 4 && steps[1] <= 6, "{steps:?}");
        // Classical updates need of the order of d / gamma times a logarithm, 27 x 5.
        assert!((70..=270).contains(&steps[2]), "{steps:?}");
    }
}
