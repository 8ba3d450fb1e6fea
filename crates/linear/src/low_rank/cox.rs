//! **Cox processes**: events whose intensity is `λ(x) = exp(μ(x) + a(x)ᵀ w)`.
//!
//! The log density of the events in a domain is `Σ log λ(x_e) - ∫ λ(x) dx`. Under `w ~ N(m, R Rᵀ)` the intensity is log-normal, so that with nodes `x_q` and weights `ω_q` of a quadrature of the domain
//!
//! ```text
//! E_q[log p] = Σ_e [μ(x_e) + a_eᵀ m] - Σ_q ρ_q        ρ_q = ω_q exp(μ_q + a_qᵀ m + ½ |Rᵀ a_q|²)
//! of m         Σ_e a_e - Σ_q ρ_q a_q                  of the covariance  G = -½ Σ_q ρ_q a_q a_qᵀ
//! of a_e       m                                      of a_q             -ρ_q (m + R Rᵀ a_q)
//! ```
//!
//! in closed form. [`CoxRows`] says the same row by row, so that events and nodes may pass in batches of both. Source: spec `deep_kernel_decomposition`, section 4.6.

use super::{DataGradient, WeightDistribution};
use crate::LinearError;
use crate::check::same;
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Mat, MatRef};
use posterior_likelihoods::{Likelihood, LikelihoodError, Slopes};
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::triangular::add_lower_product;
use posterior_optim::{Parameters, Segment};
use rand::Rng;

/// An interval of time, or of whatever events happen along.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    lower: f64,
    upper: f64,
}

impl Interval {
    /// From its ends.
    ///
    /// # Errors
    /// [`LinearError::Option`] unless both are finite and the first is the smaller.
    pub fn new(lower: f64, upper: f64) -> Result<Self, LinearError> {
        if lower.is_finite() && upper.is_finite() && lower < upper {
            Ok(Self { lower, upper })
        } else {
            let expected = "a finite number above the beginning of the interval";
            Err(LinearError::Option { name: "end of the interval", value: upper, expected })
        }
    }

    /// Midpoints of `count` equal parts, with their width: a quadrature whose error falls with the square of the count.
    pub fn nodes(&self, count: usize) -> (Vec<f64>, f64) {
        let width = (self.upper - self.lower) / count.max(1) as f64;
        ((0..count).map(|i| self.lower + width * (i as f64 + 0.5)).collect(), width)
    }

    /// Whether all events are inside.
    ///
    /// # Errors
    /// [`LinearError::Option`] with the first event that is not, NaN included.
    pub fn check(&self, events: &[f64]) -> Result<(), LinearError> {
        match events.iter().find(|t| !(self.lower..=self.upper).contains(*t)) {
            Some(&value) => {
                Err(LinearError::Option { name: "time of an event", value, expected: "inside the interval" })
            }
            None => Ok(()),
        }
    }
}

/// Features of points (m x k) with the prior means of the log intensity there (k).
#[derive(Clone, Copy, Debug)]
pub struct CoxPoints<'a> {
    /// m x k.
    pub features: MatRef<'a, f64>,
    /// μ.
    pub means: &'a [f64],
    /// What each point counts: of events 1, or events over those of a batch; of nodes their weights in the quadrature.
    pub weight: f64,
}

/// The expected log density with its slopes.
#[derive(Clone, Debug)]
pub struct CoxSlopes {
    /// In nats.
    pub value: f64,
    /// In q.
    pub of_q: DataGradient,
    /// In the features of the events, m x E.
    pub events: Mat<f64>,
    /// In the features of the nodes, m x Q.
    pub nodes: Mat<f64>,
    /// Minus the slope in the prior mean at each node: the expected number of events there. At each event it is the event's weight.
    pub expected: Vec<f64>,
}

impl WeightDistribution {
    /// Posterior mean intensities at points, `exp(μ + aᵀm + ½|Rᵀa|²)`, of the first function.
    ///
    /// # Errors
    /// [`LinearError::NotFinite`] where the exponent overflows: the intensity has no mean that a number could hold.
    pub fn intensities(&self, points: CoxPoints<'_>) -> Result<Vec<f64>, LinearError> {
        same("features of the points", self.rank(), points.features.nrows())?;
        same("prior means of the points", points.features.ncols(), points.means.len())?;
        let rooted = self.rooted(0, points.features);
        let fitted = points.features.transpose() * self.mean().col(0);
        let rate = |i: usize| {
            let value = (points.means[i] + fitted[i] + 0.5 * rooted.col(i).squared_norm_l2()).exp();
            match value.is_finite() {
                true => Ok(value),
                false => {
                    Err(LinearError::NotFinite { what: "the expected intensity at point", index: i, value })
                }
            }
        };
        (0..points.means.len()).map(rate).collect()
    }
}

/// The expected log density of events under q, with its slopes. Cost `(E + 2 Q) m² ` flops.
///
/// # Errors
/// When sizes differ, or an intensity overflows.
pub fn cox_slopes(
    q: &WeightDistribution,
    events: CoxPoints<'_>,
    nodes: CoxPoints<'_>,
) -> Result<CoxSlopes, LinearError> {
    let m = q.rank();
    same("features of the events", m, events.features.nrows())?;
    same("prior means of the events", events.features.ncols(), events.means.len())?;
    let expected: Vec<f64> = q.intensities(nodes)?.into_iter().map(|rate| nodes.weight * rate).collect();
    let mean = q.mean_of(0);
    let dot = |i: usize| events.features.col(i).iter().zip(mean).map(|(a, m)| a * m).sum::<f64>();
    let logs: f64 = (0..events.means.len()).map(|i| events.means[i] + dot(i)).sum();
    let value = events.weight * logs - expected.iter().sum::<f64>();

    let mut of_mean = Mat::zeros(m, 1);
    for i in 0..events.means.len() {
        (0..m).for_each(|j| of_mean[(j, 0)] += events.weight * events.features[(j, i)]);
    }
    let scaled = Mat::from_fn(m, expected.len(), |j, i| expected[i] * nodes.features[(j, i)]);
    (0..expected.len()).for_each(|i| (0..m).for_each(|j| of_mean[(j, 0)] -= scaled[(j, i)]));
    let mut covariance = Mat::zeros(m, m);
    let transposed = (nodes.features.transpose(), Rectangular);
    add_lower_product(&mut covariance, (scaled.as_ref(), Rectangular), transposed, -0.5);
    mirror_lower(covariance.as_mut());

    let turned = &q.roots()[0] * q.rooted(0, nodes.features);
    Ok(CoxSlopes {
        value,
        of_q: DataGradient { mean: of_mean, covariances: vec![covariance] },
        events: Mat::from_fn(m, events.means.len(), |j, _| events.weight * mean[j]),
        nodes: Mat::from_fn(m, expected.len(), |j, i| -expected[i] * (mean[j] + turned[(j, i)])),
        expected,
    })
}

/// Events (target 1) and nodes of a quadrature (target 0) as rows of one table, whose log intensity is their latent value: `E_q[log p] = Σ_e m_e - Σ_q exp(m_q + ½ v_q)` is then a sum over rows as that of any likelihood is. The
/// logarithm of a node's weight in the quadrature is the offset of its row ([`ObservedRows::offsets`](super::ObservedRows)).
///
/// Powers of the likelihood are those of cells that are infinitely small: `(1/α) log E[λ^α] = m + ½ α v` of an event, and of a node the same for all α, minus its expected intensity. So α = 0 is the bound on the evidence and
/// α = 1 the log density of the events under the mean intensity, which is the log predictive density here. A row is no outcome of its own: there is nothing to draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoxRows;

impl Parameters for CoxRows {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }

    fn values(&self) -> Vec<f64> {
        Vec::new()
    }

    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "it has no parameters");
    }
}

impl CoxRows {
    /// The term of a row for a power of the likelihood, with its slopes in mean and variance.
    fn term(y: &[f64], mean: f64, variance: f64, power: f64) -> (f64, f64, f64) {
        if y[0] == 1.0 {
            (mean + 0.5 * power * variance, 1.0, 0.5 * power)
        } else {
            let expected = (mean + 0.5 * variance).exp();
            (-expected, -expected, -0.5 * expected)
        }
    }
}

impl Likelihood for CoxRows {
    fn outputs(&self) -> usize {
        1
    }

    fn name(&self) -> &'static str {
        "cox"
    }

    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        let owner = self.name();
        match *y {
            [0.0 | 1.0] => Ok(()),
            [value] => {
                let remedy = "rows are events, 1, or nodes of a quadrature, 0".into();
                Err(LikelihoodError::Target { owner, position: 0, value, remedy })
            }
            _ => {
                let (what, needed, remedy) = ("target", 1, "give one number: whether the row is an event");
                Err(LikelihoodError::Length { owner, what, needed, found: y.len(), remedy })
            }
        }
    }

    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        Self::term(y, f[0], 0.0, 0.0).0
    }

    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        out[0] = Self::term(y, f[0], 0.0, 0.0).1;
    }

    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        out[0] = if y[0] == 1.0 { 0.0 } else { f[0].exp() };
    }

    fn curvature_needs_target(&self) -> bool {
        true
    }

    /// Of the number of events in a cell of this expectation.
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        (mean[0], variance[0]) = (f[0].exp(), f[0].exp());
    }

    fn sample(&self, _: &[f64], _: &mut dyn Rng, out: &mut [f64]) {
        out[0] = f64::NAN;
    }

    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        let value;
        (value, slopes.means[0], slopes.variances[0]) = Self::term(y, mean[0], variance[0], 0.0);
        value
    }

    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        let (value, of_mean, of_variance) = Self::term(y, mean[0], variance[0], alpha);
        (slopes.means[0], slopes.variances[0]) = (-of_mean, -of_variance);
        -value
    }

    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        let rate = (mean[0] + 0.5 * variance[0]).exp();
        (out.0[0], out.1[0]) = (rate, rate + rate * rate * variance[0].exp_m1());
    }

    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        Self::term(y, mean[0], variance[0], 1.0).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::low_rank::{DataTerm, DataTermBuffers, ObservedRows, natural_step};
    use posterior_linalg::random::Streams;
    use posterior_optim::check;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
        let mut rng = Streams::new(9).stream(name);
        Mat::from_fn(rows, columns, |_, _| {
            0.5 * {
                let e: f64 = StandardNormal.sample(&mut rng);
                e
            }
        })
    }

    /// 1, cos and sin of some frequencies.
    fn waves(at: &[f64]) -> Mat<f64> {
        Mat::from_fn(7, at.len(), |j, i| {
            let frequency = j.div_ceil(2) as f64 * std::f64::consts::PI;
            match (j, j % 2) {
                (0, _) => 1.0,
                (_, 1) => (frequency * at[i]).cos(),
                _ => (frequency * at[i]).sin(),
            }
        })
    }

    #[test]
    fn slopes_are_finite_differences_and_the_value_is_the_expectation() {
        let (m, events, nodes) = (3, 4, 5);
        let (e, n) = (normal(m, events, "events"), normal(m, nodes, "nodes"));
        let means = ([0.1, -0.2, 0.3, 0.0], [0.2, 0.1, -0.3, 0.4, 0.0]);
        let of = |q: &WeightDistribution, e: &Mat<f64>, n: &Mat<f64>| {
            let events = CoxPoints { features: e.as_ref(), means: &means.0, weight: 1.7 };
            let nodes = CoxPoints { features: n.as_ref(), means: &means.1, weight: 0.4 };
            cox_slopes(q, events, nodes).unwrap()
        };
        let mut q = WeightDistribution::prior(m, 1, true);
        let start: Vec<f64> = (0..q.unconstrained_len()).map(|i| 0.2 - 0.05 * i as f64).collect();
        let flat =
            |a: &Mat<f64>| (0..a.ncols()).flat_map(|i| a.col_as_slice(i).to_vec()).collect::<Vec<f64>>();
        let point = [start.clone(), flat(&e), flat(&n)].concat();
        let split = start.len();
        let numeric = check::gradient(
            |point| {
                let mut q = WeightDistribution::prior(m, 1, true);
                q.set_unconstrained(&point[..split]);
                let e = Mat::from_fn(m, events, |j, i| point[split + i * m + j]);
                let n = Mat::from_fn(m, nodes, |j, i| point[split + events * m + i * m + j]);
                of(&q, &e, &n).value - q.divergence()
            },
            &point,
        );
        q.set_unconstrained(&start);
        let slopes = of(&q, &e, &n);
        let mut exact = Vec::new();
        slopes.of_q.unconstrained_into(&q, 1.0, 1.0, &mut exact);
        exact.extend(flat(&slopes.events));
        exact.extend(flat(&slopes.nodes));
        check::assert_close(&exact, &numeric, 1e-6, 1e-6);

        // The mean over draws of w of the log density, within five of its standard errors.
        let (draws, mut rng) = (200_000, Streams::new(1).stream("draws"));
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let white = Mat::<f64>::from_fn(m, 1, |_, _| StandardNormal.sample(&mut rng));
            let w = q.mean() + &q.roots()[0] * white;
            let at = |a: &Mat<f64>, i: usize| (0..m).map(|j| a[(j, i)] * w[(j, 0)]).sum::<f64>();
            let logs: f64 = (0..events).map(|i| means.0[i] + at(&e, i)).sum();
            let integral: f64 = (0..nodes).map(|i| 0.4 * (means.1[i] + at(&n, i)).exp()).sum();
            let value = 1.7 * logs - integral;
            (sum, squares) = (sum + value, squares + value * value);
        }
        let mean = sum / draws as f64;
        let error = ((squares / draws as f64 - mean * mean) / draws as f64).sqrt();
        assert!((mean - slopes.value).abs() < 5.0 * error, "{mean} {} {error}", slopes.value);
    }

    #[test]
    fn rows_of_events_and_nodes_say_what_the_process_says() {
        let (m, events, nodes) = (3, 4, 5);
        let (e, n) = (normal(m, events, "events"), normal(m, nodes, "nodes"));
        let weight = 0.4_f64;
        let mut q = WeightDistribution::prior(m, 1, true);
        let start: Vec<f64> = (0..q.unconstrained_len()).map(|i| 0.2 - 0.05 * i as f64).collect();
        q.set_unconstrained(&start);
        let whole = cox_slopes(
            &q,
            CoxPoints { features: e.as_ref(), means: &[0.0; 4], weight: 1.0 },
            CoxPoints { features: n.as_ref(), means: &[0.0; 5], weight },
        )
        .unwrap();
        let features = Mat::from_fn(m, 9, |j, i| if i < 4 { e[(j, i)] } else { n[(j, i - 4)] });
        let targets = Mat::from_fn(9, 1, |i, _| f64::from(u8::from(i < 4)));
        let offsets: Vec<f64> = (0..9).map(|i| if i < 4 { 0.0 } else { weight.ln() }).collect();
        let rows =
            ObservedRows { targets: targets.as_ref(), noise: None, weights: None, offsets: Some(&offsets) };
        let own: Vec<f64> = (0..9).map(|i| features.col(i).squared_norm_l2()).collect();
        let term = DataTerm::new(&q, &CoxRows, 0.0);
        let mut buffers = DataTermBuffers::default();
        let zero = || Mat::zeros(9, 1);
        let slopes = term.slopes(features.as_ref(), zero(), &own, &rows, 1.0, &mut buffers);
        assert!((slopes.value - whole.value).abs() < 1e-12);
        assert!((&slopes.of_q.mean - &whole.of_q.mean).norm_max() < 1e-12);
        assert!((&slopes.of_q.covariances[0] - &whole.of_q.covariances[0]).norm_max() < 1e-12);
        let h = slopes.of_prior_variances();
        let adjoint = term.features_adjoint(&slopes, &mut buffers);
        for i in 0..9 {
            for j in 0..m {
                let expected = if i < 4 { whole.events[(j, i)] } else { whole.nodes[(j, i - 4)] };
                assert!((adjoint[(j, i)] + 2.0 * h[i] * features[(j, i)] - expected).abs() < 1e-12);
            }
        }
        // At power 1 it is the log density under the mean intensity, here of the closed form.
        let value =
            DataTerm::new(&q, &CoxRows, 1.0).value(features.as_ref(), zero(), &own, &rows, &mut buffers);
        let points = CoxPoints { features: features.as_ref(), means: &offsets, weight: 1.0 };
        let rates = q.intensities(points).unwrap();
        let expected: f64 = rates.iter().enumerate().map(|(i, r)| if i < 4 { r.ln() } else { -r }).sum();
        assert!((value - expected).abs() < 1e-12, "{value} {expected}");
        for bad in [&[0.5][..], &[f64::NAN], &[], &[1.0, 0.0]] {
            assert!(CoxRows.check_target(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn slopes_of_every_power_are_finite_differences() {
        for (y, power) in [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.0, 0.0), (0.0, 0.7), (0.0, 1.0)] {
            let value = |at: &[f64]| {
                let (mut means, mut variances) = ([0.0], [0.0]);
                let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
                CoxRows.alpha_energy(power, &[y], &at[..1], &at[1..], slopes)
            };
            let at = [0.3, 0.8];
            let numeric = check::gradient(value, &at);
            let (mut means, mut variances) = ([0.0], [0.0]);
            let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
            CoxRows.alpha_energy(power, &[y], &at[..1], &at[1..], slopes);
            check::assert_close(&[means[0], variances[0]], &numeric, 1e-7, 1e-7);
        }
    }

    #[test]
    fn an_intensity_is_found_from_its_events() {
        // 300 (1 + sin 2πt) events a unit of time, drawn by thinning.
        let truth = |t: f64| 300.0 * (1.0 + (2.0 * std::f64::consts::PI * t).sin());
        let mut rng = Streams::new(3).stream("thinning");
        let uniform = rand_distr::Uniform::new(0.0, 1.0).unwrap();
        let mut events = Vec::new();
        for _ in 0..600 {
            let (t, u): (f64, f64) = (uniform.sample(&mut rng), uniform.sample(&mut rng));
            if 600.0 * u < truth(t) {
                events.push(t);
            }
        }
        let domain = Interval::new(0.0, 1.0).unwrap();
        domain.check(&events).unwrap();
        let (at, width) = domain.nodes(200);
        let (of_events, of_nodes) = (waves(&events), waves(&at));
        let level = (events.len() as f64).ln();
        let (means, node_means) = (vec![level; events.len()], vec![level; at.len()]);
        let mut q = WeightDistribution::prior(7, 1, true);
        let mut last = f64::NEG_INFINITY;
        for _ in 0..60 {
            let events = CoxPoints { features: of_events.as_ref(), means: &means, weight: 1.0 };
            let nodes = CoxPoints { features: of_nodes.as_ref(), means: &node_means, weight: width };
            let slopes = cox_slopes(&q, events, nodes).unwrap();
            last = slopes.value - q.divergence();
            natural_step(&mut q, &slopes.of_q, 0.3).unwrap();
        }
        assert!(last.is_finite());
        let nodes = CoxPoints { features: of_nodes.as_ref(), means: &node_means, weight: 1.0 };
        let found = q.intensities(nodes).unwrap();
        let total: f64 = found.iter().map(|r| r * width).sum();
        assert!((total / events.len() as f64 - 1.0).abs() < 0.05, "{total} {}", events.len());
        // Root mean square error over the mean intensity: with some 7 weights and 300 events about √(7/300) = 0.15.
        let square: f64 = at.iter().zip(&found).map(|(t, f)| (f - truth(*t)).powi(2) * width).sum();
        assert!(square.sqrt() / 300.0 < 0.3, "{}", square.sqrt() / 300.0);
    }

    #[test]
    fn times_outside_and_intensities_that_overflow_are_refused() {
        let domain = Interval::new(0.0, 2.0).unwrap();
        for bad in [-0.5, 2.5, f64::NAN] {
            assert!(domain.check(&[1.0, bad]).unwrap_err().to_string().contains("inside the interval"));
        }
        assert!(Interval::new(1.0, 1.0).is_err() && Interval::new(0.0, f64::INFINITY).is_err());
        let q = WeightDistribution::prior(1, 1, true);
        let features = Mat::from_fn(1, 1, |_, _| 100.0);
        let points = CoxPoints { features: features.as_ref(), means: &[0.0], weight: 1.0 };
        assert!(q.intensities(points).unwrap_err().to_string().contains("expected intensity"));
    }
}
