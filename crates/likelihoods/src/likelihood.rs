//! The word that every likelihood speaks, for one observation and its C latent values.

use crate::error::{check_each, check_width};
use crate::expectation::{Slopes, product};
use crate::{LikelihoodError, Prediction};
use posterior_optim::Parameters;
use rand::Rng;

/// `p(y | f)` for one observation `y` that depends on C latent values `f`; C = 1 is a case like any other.
///
/// Shapes: `y` holds [`target_width`](Self::target_width) numbers, `f` and gradients hold [`outputs`](Self::outputs) = C,
/// matrices are row-major, and S is [`root_width`](Self::root_width). Densities are in nats, against the counting measure for
/// classes, events and counts. What is learned of the likelihood itself it says as [`Parameters`].
///
/// Targets should have passed [`check_target`](Self::check_target); others give NaN or the density of the formula, never a
/// panic. Latent values that are not finite give results that may be NaN.
///
/// A new likelihood writes the six methods without a body; the others follow from them, expectations under a Gaussian by
/// Gauss-Hermite quadrature, and are replaced where something better is known.
///
/// A density may be **flat** between jumps, as that of [`RobustMax`](crate::RobustMax) is ([`is_flat`](Self::is_flat)): then gradient, curvature and root are zero and say nothing, while expectations under a Gaussian are smooth and have slopes. What seeks a mode or
/// reads a curvature asks [`check_curvature`](Self::check_curvature) first.
///
/// # Panics
/// Every method that takes slices panics when one of them has not the length stated: that is a fault of the program, not of
/// its data.
pub trait Likelihood: CloneLikelihood + Parameters + std::fmt::Debug + Send + Sync {
    /// C, the number of latent values of one observation.
    fn outputs(&self) -> usize;

    /// `log p(y | f)`. Cost O(C), for correlated noise O(C²).
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64;

    /// `∂ log p / ∂f` (C numbers). Cost as [`log_density`](Self::log_density).
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]);

    /// The entries of `B`, the positive semi-definite matrix of a generalised Gauss-Newton approximation: the
    /// [`hessian`](Self::hessian) where that is positive semi-definite for all `f`, else (and for overdispersed counts, where it needs no
    /// target) the Fisher matrix `E[∇ log p ∇ log pᵀ]` under `y ~ p(. | f)`. C numbers, its diagonal, where [`is_diagonal`](Self::is_diagonal), else all
    /// C x C.
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]);

    /// Mean and variance of each number of a target under `p(. | f)`.
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]);

    /// Draws `y ~ p(. | f)` ([`target_width`](Self::target_width) numbers).
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]);

    /// Its name in messages and configurations.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// How many numbers one target has: C by default, 1 for a class index, C/2 for heteroscedastic noise.
    fn target_width(&self) -> usize {
        self.outputs()
    }

    /// Whether `y` can be observed at all. By default any finite numbers can.
    ///
    /// # Errors
    /// [`LikelihoodError::Length`] or [`LikelihoodError::Target`], which name the number and what would be valid.
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(self.name(), self.target_width(), y)?;
        check_each(self.name(), y, f64::is_finite, "drop the row or fill in the missing value")
    }

    /// Whether `B` is diagonal for all targets and latent values, as it is for outputs that are independent.
    fn is_diagonal(&self) -> bool {
        true
    }

    /// Whether [`curvature`](Self::curvature) and the root depend on `y`. Where not, they can be asked for at inputs without
    /// targets, with any `y` of the right length.
    fn curvature_needs_target(&self) -> bool {
        false
    }

    /// Whether the [`hessian`](Self::hessian) is positive semi-definite for all targets and latent values, so that modes can be sought with it.
    fn is_log_concave(&self) -> bool {
        true
    }

    /// Whether the log density is constant between jumps, so that its gradient and curvature are zero almost everywhere although data do speak of the latent values.
    fn is_flat(&self) -> bool {
        false
    }

    /// Refuses a likelihood whose curvature says nothing: for methods that need one (Laplace's approximation, modes, slopes at single latent values) to ask before they begin.
    ///
    /// # Errors
    /// [`LikelihoodError::Flat`], with what to do instead, where the density [is flat](Self::is_flat).
    fn check_curvature(&self) -> Result<(), LikelihoodError> {
        if self.is_flat() { Err(LikelihoodError::Flat { owner: self.name() }) } else { Ok(()) }
    }

    /// `-∂² log p / ∂f²` exactly (C x C), by default `B`. Indefinite for heteroscedastic noise and for Student's t.
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.curvature(y, f, out);
    }

    /// `B` (C x C).
    fn curvature(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        let n = self.outputs();
        assert_eq!(out.len(), n * n, "a matrix of the outputs has C x C numbers");
        if self.is_diagonal() {
            self.curvature_entries(y, f, &mut out[..n]);
            spread_diagonal(n, out);
        } else {
            self.curvature_entries(y, f, out);
        }
    }

    /// The diagonal of a curvature by which steps towards a mode get there soon, where that is not `B` (C numbers, of densities that are not log-concave and outputs that are independent): above 0, and the
    /// [`hessian`](Self::hessian) where that is enough. False, and nothing written, where it is `B`, as by default.
    fn step_curvature(&self, _y: &[f64], _f: &[f64], _out: &mut [f64]) -> bool {
        false
    }

    /// `B u` (C numbers): O(C) where `B` is diagonal, else O(C²).
    fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        let n = self.outputs();
        assert_eq!((u.len(), out.len()), (n, n), "B maps C numbers to C numbers");
        if self.is_diagonal() {
            self.curvature_entries(y, f, out);
            out.iter_mut().zip(u).for_each(|(b, u)| *b *= u);
            return;
        }
        let mut matrix = vec![0.0; n * n];
        self.curvature_entries(y, f, &mut matrix);
        for (out, row) in out.iter_mut().zip(matrix.chunks_exact(n)) {
            *out = row.iter().zip(u).map(|(b, u)| b * u).sum();
        }
    }

    /// S, the number of columns of the root, at most C.
    fn root_width(&self) -> usize {
        self.outputs()
    }

    /// `R` (C x S) with `R Rᵀ = B`: for standard normal `e` the product `R e` is noise of covariance `B`, which exists even where
    /// `B⁻¹` does not. By default square roots of a diagonal `B`, else a factor at the cost of `O(C³)`; NaN where there is none.
    fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        let n = self.outputs();
        assert_eq!(out.len(), n * n, "the root has C x S numbers");
        if self.is_diagonal() {
            self.curvature_entries(y, f, &mut out[..n]);
            out[..n].iter_mut().for_each(|b| *b = b.sqrt());
            spread_diagonal(n, out);
            return;
        }
        self.curvature_entries(y, f, out);
        let mut root = faer::Mat::new();
        match crate::predictive::root(out, n, &mut root) {
            Ok(_) => out.iter_mut().enumerate().for_each(|(k, r)| *r = root[(k / n, k % n)]),
            Err(_) => out.fill(f64::NAN),
        }
    }

    /// The variance of additive Gaussian noise that all outputs share, if that is what this likelihood is: the best Gaussian
    /// approximations of all latent functions then have one covariance.
    fn shared_noise_variance(&self) -> Option<f64> {
        None
    }

    /// The likelihood of an observation to whose Gaussian noise a known variance is added; None where there is no such noise.
    fn with_row_noise(&self, _variance: f64) -> Option<Box<dyn Likelihood>> {
        None
    }

    /// `E[log p(y | f)]` for independent `f_c ~ N(mean_c, variance_c)`, with its gradient: writes the slopes in means and
    /// variances (`E[∂/∂f]` and `½ E[∂²/∂f²]`; Bonnet 1964, Price 1958; of a flat density the slopes of the expectation, which jumps make) and **adds** those in the likelihood's own parameters.
    ///
    /// By default Gauss-Hermite quadrature with `20^C` nodes, which is for a few latent values.
    ///
    /// # Panics
    /// By default, when there are parameters: only the likelihood itself can say how they matter.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        product::expected_log_density(self, y, mean, variance, slopes)
    }

    /// The energy `-(1/α) log E[p(y | f)^α]` for independent `f_c ~ N(mean_c, variance_c)` and α in [0, 1], with its slopes: writes those in means and variances and
    /// **adds** those in the likelihood's own parameters. α = 0 is its limit, minus the [expected log density](Self::expected_log_density); α = 1 minus the
    /// log predictive density of the target. Sources: Hernández-Lobato et al., *Black-box alpha divergence minimization*, ICML 2016; spec `valla`, section 6.3.
    ///
    /// By default Gauss-Hermite quadrature with `20^C` nodes, which is for a few latent values. What is known better: Gaussian noise of any kind in closed form;
    /// heteroscedastic noise, Student's t, events and counts by one-dimensional integrals near rounding; softmax classes exactly for α < 1, and by the extended probit
    /// approximation at α = 1 ([`Categorical`](crate::Categorical)); robust-max classes exactly.
    ///
    /// # Panics
    /// By default, when there are parameters: only the likelihood itself can say how they matter.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        product::alpha_energy(self, alpha, y, (mean, variance), slopes)
    }

    /// Mean and variance of each number of a target for independent `f_c ~ N(mean_c, variance_c)`. By default by quadrature, as
    /// [`expected_log_density`](Self::expected_log_density).
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        product::predictive_moments(self, mean, variance, out);
    }

    /// The predictive distribution of an observation for independent `f_c ~ N(mean_c, variance_c)`, exact to quadrature:
    /// probabilities of classes or events, or the moments of each number of the target.
    fn predict(&self, mean: &[f64], variance: &[f64]) -> Prediction {
        let width = self.target_width();
        let (mut means, mut variances) = (vec![0.0; width], vec![0.0; width]);
        self.predictive_moments(mean, variance, (&mut means, &mut variances));
        let latent_variance = variance[..width].to_vec();
        Prediction::Moments { mean: means, variance: variances, latent_variance }
    }

    /// `log E[p(y | f)]` for independent `f_c ~ N(mean_c, variance_c)`, the log predictive density of a target. By default by
    /// quadrature, as [`expected_log_density`](Self::expected_log_density).
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        product::log_predictive_density(self, y, mean, variance)
    }
}

/// Copies of boxed likelihoods; every likelihood that is [`Clone`] has them.
pub trait CloneLikelihood {
    /// A copy in a box.
    fn clone_box(&self) -> Box<dyn Likelihood>;
}

impl<L: Likelihood + Clone + 'static> CloneLikelihood for L {
    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Likelihood> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl Parameters for Box<dyn Likelihood> {
    fn segments(&self) -> Vec<posterior_optim::Segment> {
        (**self).segments()
    }
    fn values(&self) -> Vec<f64> {
        (**self).values()
    }
    fn set_values(&mut self, values: &[f64]) {
        (**self).set_values(values);
    }
}

/// Turns `n` numbers at the beginning of an n x n matrix into its diagonal, with zeros beside it.
fn spread_diagonal(n: usize, matrix: &mut [f64]) {
    matrix[n..].fill(0.0);
    for i in (1..n).rev() {
        matrix[i * n + i] = std::mem::replace(&mut matrix[i], 0.0);
    }
}

/// The contract on lengths, shared by the methods of all likelihoods.
pub(crate) fn assert_lengths(likelihood: &dyn Likelihood, y: &[f64], f: &[f64]) {
    assert_eq!(y.len(), likelihood.target_width(), "the width of a target");
    assert_eq!(f.len(), likelihood.outputs(), "the number of latent values");
}

/// [`Parameters`] of likelihoods that learn nothing.
macro_rules! no_parameters {
    ($likelihood:ty) => {
        impl posterior_optim::Parameters for $likelihood {
            fn segments(&self) -> Vec<posterior_optim::Segment> {
                Vec::new()
            }
            fn values(&self) -> Vec<f64> {
                Vec::new()
            }
            fn set_values(&mut self, values: &[f64]) {
                assert!(values.is_empty(), "this likelihood has no parameters");
            }
        }
    };
}
pub(crate) use no_parameters;
