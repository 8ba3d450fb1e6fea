//! Classes by a line: a loss that is no parabola, the exact posterior of its two weights on a grid, and two Gaussians that stand for it.

use super::{Settings, spaced};
use crate::kinds::prelude::*;
use posterior_likelihoods::{Bernoulli, GaussHermite, Likelihood, Link, Slopes};
use posterior_report::{Plane, PlaneKind, PlanePanel};
use std::f64::consts::TAU;

/// Classes by a line.
#[derive(Clone, Deserialize)]
pub(super) struct Classes {
    /// Inputs of the points.
    pub(super) inputs: Vec<f64>,
    /// Their classes, 0 or 1.
    pub(super) labels: Vec<f64>,
    /// Of the prior of both weights.
    pub(super) prior_precision: f64,
    /// Weights are integrated over so many deviations of the best Gaussian to each side of its mean.
    pub(super) deviations: f64,
    /// At so many places along each weight.
    pub(super) grid: usize,
    /// Steps towards each Gaussian.
    pub(super) turns: usize,
}

impl Classes {
    pub(super) fn check(&self) -> Result<()> {
        let binary = self.labels.iter().all(|y| [0.0, 1.0].contains(y));
        if self.inputs.is_empty() || self.inputs.len() != self.labels.len() || !binary {
            return refused("[classes]: `inputs` and `labels` are as many, at least one, labels 0 or 1");
        }
        let precision = positive(self.prior_precision);
        if !precision || !(3.0..=20.0).contains(&self.deviations) {
            return refused("[classes]: `prior_precision` is positive, `deviations` from 3 to 20");
        }
        if !(20..=400).contains(&self.grid) || !(1..=10_000).contains(&self.turns) {
            return refused("[classes]: `grid` is 20 to 400, `turns` 1 to 10000");
        }
        Ok(())
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.inputs.iter().copied().zip(self.labels.iter().copied())
    }

    /// `log p(y | w) p(w)`
    fn log_joint(&self, [w0, w1]: [f64; 2]) -> f64 {
        let a = self.prior_precision;
        let likelihood: f64 = self.points().map(|(x, y)| Link::Logit.log_density(y, w0 + w1 * x)).sum();
        likelihood + (a / TAU).ln() - 0.5 * a * (w0 * w0 + w1 * w1)
    }

    /// Half steps of natural gradients from the prior, `P <- (1 - r) P + r (a I + Φ' C Φ)`, `m <- m + r P⁻¹ (Φ' s - a m)`, to where they rest: `expected` gives the slope s and the curvature C of a
    /// point with so much mean and variance of its function. At the function's mean alone that is Newton's method and Laplace's Gaussian.
    fn climbed(&self, expected: impl Fn(f64, f64, f64) -> (f64, f64)) -> WeightPair {
        const STEP: f64 = 0.5;
        let a = self.prior_precision;
        let mut q = WeightPair { mean: [0.0; 2], precision: [a, 0.0, a] };
        for _ in 0..self.turns {
            let mut wanted = [a, 0.0, a];
            let mut slope = [-a * q.mean[0], -a * q.mean[1]];
            for (x, y) in self.points() {
                let (mean, variance) = q.function(x);
                let (first, curvature) = expected(y, mean, variance);
                for (entry, of) in wanted.iter_mut().zip([1.0, x, x * x]) {
                    *entry += curvature * of;
                }
                slope = [slope[0] + first, slope[1] + first * x];
            }
            for (entry, wanted) in q.precision.iter_mut().zip(wanted) {
                *entry += STEP * (wanted - *entry);
            }
            let [s00, s01, s11] = q.covariance();
            q.mean[0] += STEP * (s00 * slope[0] + s01 * slope[1]);
            q.mean[1] += STEP * (s01 * slope[0] + s11 * slope[1]);
        }
        q
    }

    /// The bound on the log evidence by a Gaussian.
    fn bound(&self, q: &WeightPair, events: &Bernoulli) -> f64 {
        let (a, [s00, _, s11]) = (self.prior_precision, q.covariance());
        let size = q.mean[0].powi(2) + q.mean[1].powi(2) + s00 + s11;
        let divergence = 0.5 * (a * size - 2.0 + q.determinant().ln() - 2.0 * a.ln());
        let seen = self.points().map(|(x, y)| {
            let (mean, variance) = q.function(x);
            expected_log_density(events, y, mean, variance).0
        });
        seen.sum::<f64>() - divergence
    }
}

/// A Gaussian over the weights of a constant and the input; the precision's entries are (0, 0), (0, 1) and (1, 1).
struct WeightPair {
    mean: [f64; 2],
    precision: [f64; 3],
}

impl WeightPair {
    /// Of the precision.
    fn determinant(&self) -> f64 {
        let [p00, p01, p11] = self.precision;
        p00 * p11 - p01 * p01
    }

    fn covariance(&self) -> [f64; 3] {
        let ([p00, p01, p11], d) = (self.precision, self.determinant());
        [p11 / d, -p01 / d, p00 / d]
    }

    /// Mean and variance of the function at an input.
    fn function(&self, x: f64) -> (f64, f64) {
        let [s00, s01, s11] = self.covariance();
        (self.mean[0] + self.mean[1] * x, s00 + 2.0 * s01 * x + s11 * x * x)
    }

    fn log_density(&self, w: [f64; 2]) -> f64 {
        let ([p00, p01, p11], u, v) = (self.precision, w[0] - self.mean[0], w[1] - self.mean[1]);
        0.5 * self.determinant().ln() - TAU.ln() - 0.5 * (p00 * u * u + 2.0 * p01 * u * v + p11 * v * v)
    }

    /// The longest axis of its ellipse, one deviation long.
    fn axis(&self) -> [f64; 2] {
        let [s00, s01, s11] = self.covariance();
        let angle = 0.5 * (2.0 * s01).atan2(s00 - s11);
        let (sine, cosine) = angle.sin_cos();
        let length = (s00 * cosine * cosine + 2.0 * s01 * sine * cosine + s11 * sine * sine).sqrt();
        [length * cosine, length * sine]
    }

    /// The probability of an event at an input.
    fn probability(&self, rule: &GaussHermite, x: f64) -> f64 {
        let (mean, variance) = self.function(x);
        rule.nodes(mean, variance).map(|(f, weight)| weight * Link::Logit.probability(f)).sum()
    }
}

/// `E[log p(y | f)]` with its slope in the mean and its curvature, `-2` times the slope in the variance (Price's theorem).
fn expected_log_density(events: &Bernoulli, y: f64, mean: f64, variance: f64) -> (f64, f64, f64) {
    let (mut means, mut variances) = ([0.0], [0.0]);
    let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
    let value = events.expected_log_density(&[y], &[mean], &[variance], slopes);
    (value, means[0], -2.0 * variances[0])
}

/// The posterior at places of the plane.
struct Exact {
    axes: [Vec<f64>; 2],
    /// Row-major [second weight x first], summing to 1.
    weights: Vec<f64>,
    log_evidence: f64,
}

impl Exact {
    fn of(asked: &Classes, around: &WeightPair) -> Self {
        let [s00, _, s11] = around.covariance();
        let axis = |mean: f64, variance: f64| {
            let reach = asked.deviations * variance.sqrt();
            spaced(mean - reach, mean + reach, asked.grid)
        };
        let axes = [axis(around.mean[0], s00), axis(around.mean[1], s11)];
        let joint: Vec<f64> = axes[1]
            .iter()
            .flat_map(|&v| axes[0].iter().map(move |&u| [u, v]))
            .map(|w| asked.log_joint(w))
            .collect();
        let top = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = joint.iter().map(|j| (j - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        let cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0]);
        Self { axes, weights, log_evidence: top + (total * cell).ln() }
    }

    fn places(&self) -> impl Iterator<Item = ([f64; 2], f64)> {
        let across = self.axes[0].len();
        self.weights
            .iter()
            .enumerate()
            .map(move |(i, &w)| ([self.axes[0][i % across], self.axes[1][i / across]], w))
    }

    fn probability(&self, x: f64) -> f64 {
        self.places().map(|([w0, w1], weight)| weight * Link::Logit.probability(w0 + w1 * x)).sum()
    }
}

/// The posterior of a classifier of two weights, and what Gaussians make of it.
pub(super) fn classes(settings: &Settings) -> Result<(Value, Vec<Item>)> {
    let asked = &settings.classes;
    let events = Bernoulli::new(1, Link::Logit)?;
    let laplace = asked.climbed(|y, mean, _| Link::Logit.derivatives(y, mean));
    let best = asked.climbed(|y, mean, variance| {
        let (_, slope, curvature) = expected_log_density(&events, y, mean, variance);
        (slope, curvature)
    });
    let exact = Exact::of(asked, &best);
    let coarser = Exact::of(&Classes { grid: asked.grid / 2, ..asked.clone() }, &best);
    let rule = GaussHermite::new(64);
    let inputs = spaced(-settings.reach, settings.reach, settings.grid);
    let along = |p: &dyn Fn(f64) -> f64| inputs.iter().map(|&x| p(x)).collect::<Vec<f64>>();
    let truth = along(&|x| exact.probability(x));
    let predictions = [
        ("the best Gaussian", "best_gaussian", along(&|x| best.probability(&rule, x))),
        ("Laplace", "laplace", along(&|x| laplace.probability(&rule, x))),
        ("the mode alone", "mode", along(&|x| Link::Logit.probability(laplace.function(x).0))),
    ];
    let off = |p: &[f64]| p.iter().zip(&truth).map(|(p, t)| (p - t).abs()).fold(0.0, f64::max);
    // The loss along the longest axis of Laplace's ellipse, in deviations.
    let (axis, least) = (laplace.axis(), -asked.log_joint(laplace.mean));
    let loss =
        |t: f64| -asked.log_joint([laplace.mean[0] + t * axis[0], laplace.mean[1] + t * axis[1]]) - least;
    let deviations = spaced(-4.0, 4.0, settings.grid);
    let sides = [loss(-3.0), loss(3.0)];
    let divergence = |q: &WeightPair| exact.log_evidence - asked.bound(q, &events);
    let numbers = json!({
        "evidence": exact.log_evidence,
        "grid_error": (exact.log_evidence - coarser.log_evidence).abs(),
        "laplace_evidence": TAU.ln() - least - 0.5 * laplace.determinant().ln(),
        "divergence": {"best_gaussian": divergence(&best), "laplace": divergence(&laplace)},
        "loss_of_sides": sides[0].max(sides[1]) / sides[0].min(sides[1]),
        "off": predictions.iter().map(|(_, key, p)| ((*key).to_string(), json!(off(p)))).collect::<serde_json::Map<_, _>>(),
    });
    // What lies farther out has no colour.
    let middle = |axis: &[f64]| axis[axis.len() / 4..axis.len() - axis.len() / 4].to_vec();
    let [across, up] = [middle(&exact.axes[0]), middle(&exact.axes[1])];
    let map = |title: &str, log_density: &dyn Fn([f64; 2]) -> f64| {
        let at = |v: f64| across.iter().map(move |&u| log_density([u, v]).exp());
        PlanePanel::new(title, PlaneKind::Amount, up.iter().flat_map(|&v| at(v)).collect())
    };
    let panels = vec![
        map("exact", &|w| asked.log_joint(w) - exact.log_evidence),
        map("the best Gaussian", &|w| best.log_density(w)),
        map("Laplace", &|w| laplace.log_density(w)),
    ];
    let lines = |named: Vec<(&str, Vec<f64>)>, x: &[f64]| -> Vec<Line> {
        named.into_iter().map(|(name, y)| Line::new(name, x.to_vec(), y)).collect()
    };
    let parabola = deviations.iter().map(|t| 0.5 * t * t).collect();
    let shown = [("exact", truth.clone())].into_iter().chain(predictions.map(|(name, _, p)| (name, p)));
    let figures = vec![
        Curves::new(
            "The loss of a classifier along one line of weights",
            "deviations of Laplace's Gaussian from the mode",
            "nats",
            lines(vec![("loss", deviations.iter().map(|&t| loss(t)).collect()), ("parabola", parabola)], &deviations),
        )
        .captioned("The loss of a line for classes is convex and no parabola: to one side it rises more slowly than its curvature at the mode says.")
        .into(),
        Item::Plane(Plane {
            title: "The posterior of both weights".into(),
            x: "weight of the constant".into(),
            y: "weight of the input".into(),
            grid_x: across,
            grid_y: up,
            panels,
            caption: "Densities. The best Gaussian has the least divergence from the posterior; Laplace's has its curvature at the highest point.".into(),
            ..Plane::default()
        }),
        Curves::new("The probability of an event", "x", "probability", lines(shown.collect(), &inputs))
            .captioned("Averages over weights are less sure than the mode alone.")
            .into(),
    ];
    Ok((numbers, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Classes {
        Classes {
            inputs: vec![-1.2, -0.8, -0.2, 0.3, 0.7, 1.4],
            labels: vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            prior_precision: 0.05,
            deviations: 9.0,
            grid: 160,
            turns: 100,
        }
    }

    #[test]
    fn each_gaussian_is_where_what_it_climbs_is_highest() {
        let (asked, events) = (points(), Bernoulli::new(1, Link::Logit).unwrap());
        let best = asked.climbed(|y, mean, variance| {
            let (_, slope, curvature) = expected_log_density(&events, y, mean, variance);
            (slope, curvature)
        });
        let top = asked.bound(&best, &events);
        let laplace = asked.climbed(|y, mean, _| Link::Logit.derivatives(y, mean));
        let highest = asked.log_joint(laplace.mean);
        // Steps of 1e-3 to both sides lose a little, of the second order.
        for k in 0..5 {
            for by in [-1e-3, 1e-3] {
                let WeightPair { mut mean, mut precision } = WeightPair { ..best };
                if k < 2 {
                    mean[k] += by
                } else {
                    precision[k - 2] += by
                }
                let lost = top - asked.bound(&WeightPair { mean, precision }, &events);
                assert!(lost > 0.0 && lost < 1e-4, "{k} {by} {lost}");
                if k < 2 {
                    let mut w = laplace.mean;
                    w[k] += by;
                    let lost = highest - asked.log_joint(w);
                    assert!(lost > 0.0 && lost < 1e-5, "{k} {by} {lost}");
                }
            }
        }
        // Of sums over 1201 x 1201 places elsewhere.
        let exact = Exact::of(&asked, &best);
        assert!((exact.log_evidence + 2.756_464_02).abs() < 1e-6, "{}", exact.log_evidence);
        assert!(top < exact.log_evidence);
    }

    #[test]
    fn weights_that_the_prior_holds_at_nothing_guess() {
        let asked = Classes { prior_precision: 1e8, ..points() };
        let held = asked.climbed(|y, mean, _| Link::Logit.derivatives(y, mean));
        let exact = Exact::of(&asked, &held);
        assert!((exact.log_evidence - 6.0 * 0.5f64.ln()).abs() < 1e-5, "{}", exact.log_evidence);
        assert!((exact.probability(1.0) - 0.5).abs() < 1e-5);
    }
}
