//! Problems in one dimension, and the grid on which posteriors are seen.

use super::error::{Result, refused};
use crate::synthetic::{self, ToyRegression};
use posterior_gp::Prediction;
use posterior_linalg::random::Streams;
use posterior_metrics::wasserstein2_marginals;
use posterior_networks::Array;
use posterior_networks::train::{Tabular, Targets};
use posterior_report::PosteriorPanel;
use serde::Deserialize;

/// Which problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Problem {
    /// A random network's function on three intervals.
    Clustered,
    /// A Matérn-3/2 process on two intervals, standardised.
    Matern,
    /// A sine on two intervals.
    Sine,
}

/// The table `[data]` of experiments in one dimension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ToySettings {
    /// The problem.
    pub(crate) problem: Problem,
    /// Seed of the data; the run's own if absent.
    pub(crate) seed: Option<u64>,
    /// Every so many rows are used.
    #[serde(default = "one")]
    pub(crate) every: usize,
    /// How far the grid reaches beyond the data.
    pub(crate) margin: f64,
    /// Points of the grid.
    pub(crate) grid: usize,
}

pub(crate) fn one() -> usize {
    1
}

/// A problem with its grid.
#[derive(Clone, Debug)]
pub(crate) struct Toy {
    /// Training inputs, ascending.
    pub(crate) x: Vec<f64>,
    /// Their targets.
    pub(crate) y: Vec<f64>,
    /// Standard deviation of the noise.
    pub(crate) noise: f64,
    /// Where posteriors are seen.
    pub(crate) grid: Vec<f64>,
    /// Intervals between training inputs that are wider than a tenth of their range.
    pub(crate) gaps: Vec<(f64, f64)>,
    /// Inputs and targets that no network is trained on, for problems that have some.
    pub(crate) validation: Option<(Vec<f64>, Vec<f64>)>,
}

/// A column of inputs.
pub(crate) fn column(values: &[f64]) -> Array<f64> {
    Array::new(vec![values.len(), 1], values.to_vec())
}

impl ToySettings {
    pub(crate) fn make(&self, seed: u64) -> Result<Toy> {
        if self.every == 0 || self.grid < 2 || self.grid > 100_000 {
            return refused("[data]: `every` must be at least 1 and `grid` between 2 and 100000");
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return refused("[data]: `margin` must be zero or positive");
        }
        let streams = Streams::new(self.seed.unwrap_or(seed));
        let mut validation = None;
        let ToyRegression { x, y, noise, .. } = match self.problem {
            Problem::Clustered => synthetic::clustered_toy(streams),
            Problem::Matern => synthetic::matern_toy(true, streams),
            Problem::Sine => {
                let toy = synthetic::sine_toy(streams);
                let pick = |rows: &[usize], v: &[f64]| rows.iter().map(|&i| v[i]).collect::<Vec<f64>>();
                let (data, train) = (&toy.data, &toy.train);
                validation = Some((pick(&toy.validation, &data.x), pick(&toy.validation, &data.y)));
                ToyRegression {
                    x: pick(train, &data.x),
                    y: pick(train, &data.y),
                    function: pick(train, &data.function),
                    noise: data.noise,
                }
            }
        };
        let mut rows: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (x, y): (Vec<f64>, Vec<f64>) = rows.into_iter().step_by(self.every).unzip();
        let [low, .., high] = x[..] else {
            return refused("[data]: `every` leaves fewer than two rows");
        };
        let gaps = x.windows(2).filter(|w| w[1] - w[0] > 0.1 * (high - low)).map(|w| (w[0], w[1])).collect();
        let width = high - low + 2.0 * self.margin;
        let grid =
            (0..self.grid).map(|i| low - self.margin + width * i as f64 / (self.grid - 1) as f64).collect();
        Ok(Toy { x, y, noise, grid, gaps, validation })
    }
}

impl Toy {
    /// Inputs and targets to train on.
    pub(crate) fn examples(&self) -> Tabular<f64> {
        Tabular::new(column(&self.x), Targets::Values(column(&self.y)))
    }

    /// Those for validation.
    pub(crate) fn unseen(&self) -> Option<Tabular<f64>> {
        let (x, y) = self.validation.as_ref()?;
        Some(Tabular::new(column(x), Targets::Values(column(y))))
    }

    /// Mean of values on the grid, over the points inside gaps; NaN without gaps.
    pub(crate) fn mean_in_gaps(&self, values: &[f64]) -> f64 {
        let inside = |x: f64| self.gaps.iter().any(|(low, high)| x > *low && x < *high);
        let own: Vec<f64> = self.grid.iter().zip(values).filter(|p| inside(*p.0)).map(|p| *p.1).collect();
        own.iter().sum::<f64>() / own.len() as f64
    }

    /// A picture of a posterior.
    pub(crate) fn panel(&self, mean: &[f64], deviation: &[f64], noise_variance: f64) -> PosteriorPanel {
        let variances = deviation.iter().map(|d| d * d);
        panel(&self.grid, mean.to_vec(), variances, noise_variance, (self.x.clone(), self.y.clone()))
    }
}

/// `sin 2x + cos 5x`: the function of the thesis' processes in one dimension.
pub(crate) fn waves(x: f64) -> f64 {
    (2.0 * x).sin() + (5.0 * x).cos()
}

/// Where [`steps`] jumps.
pub(crate) const JUMPS: [f64; 3] = [-0.6, 0.0, 0.4];

/// The function of the deep basis kernels in one dimension, on [-1, 1]: plateaus at 0.3, 0.9, -0.6 and 0 with jumps between them that are a hundredth wide, and a fast ripple.
pub(crate) fn steps(x: f64) -> f64 {
    let step = |at: f64| 1.0 / (1.0 + (-200.0 * (x - at)).exp());
    let [a, b, c] = JUMPS.map(step);
    0.3 * (1.0 - a) + 0.9 * (a - b) - 0.6 * (b - c) + 0.01 * (50.0 * (10.0 * x).sin()).sin()
}

/// 2-Wasserstein distances of the marginals of two posteriors at the same points (m).
pub(crate) fn marginal_distances(a: &Prediction, b: &Prediction) -> Vec<f64> {
    let marginal = |p: &Prediction, i: usize| (p.mean[(i, 0)], p.latent_variance[i].max(0.0).sqrt());
    (0..a.latent_variance.len()).map(|i| wasserstein2_marginals(marginal(a, i), marginal(b, i))).collect()
}

/// A picture of a process' posterior on a grid with rows of its data: inputs and targets.
pub(crate) fn posterior_panel(
    grid: &[f64],
    prediction: &Prediction,
    noise_variance: f64,
    train: (Vec<f64>, Vec<f64>),
) -> PosteriorPanel {
    let mean = prediction.mean.col(0).iter().copied().collect();
    panel(grid, mean, prediction.latent_variance.iter().copied(), noise_variance, train)
}

/// A picture of means and of the function's variances on a grid.
pub(crate) fn panel(
    grid: &[f64],
    mean: Vec<f64>,
    variances: impl Iterator<Item = f64>,
    noise_variance: f64,
    (train_input, train_target): (Vec<f64>, Vec<f64>),
) -> PosteriorPanel {
    let variances: Vec<f64> = variances.map(|v| v.max(0.0)).collect();
    PosteriorPanel {
        input: "x".into(),
        grid: grid.to_vec(),
        mean,
        latent_standard_deviation: variances.iter().map(|v| v.sqrt()).collect(),
        observed_standard_deviation: variances.iter().map(|v| (v + noise_variance).sqrt()).collect(),
        train_input,
        train_target,
        ..PosteriorPanel::default()
    }
}

/// The mean of some values.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    values.into_iter().for_each(|v| {
        sum += v;
        count += 1;
    });
    sum / count as f64
}

/// The standard deviation of some values, as of all there are.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    mean(values.iter().map(|v| (v - centre).powi(2))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_has_four_plateaus_and_a_ripple() {
        for (low, high, level) in [(-1.0, -0.6, 0.3), (-0.6, 0.0, 0.9), (0.0, 0.4, -0.6), (0.4, 1.0, 0.0)] {
            // 0.1 from the jumps a step is e^-20 from its end; the ripple is a hundredth.
            let inside = (0..50).map(|i| low + 0.1 + (high - low - 0.2) * f64::from(i) / 49.0);
            let worst = inside.map(|x| (steps(x) - level).abs()).fold(0.0, f64::max);
            assert!(worst <= 0.01 + 1e-8 && worst > 0.005, "{level}: {worst}");
        }
        // Halfway up each jump, but for the ripple.
        for (jump, middle) in JUMPS.into_iter().zip([0.6, 0.15, -0.3]) {
            assert!((steps(jump) - middle).abs() <= 0.01 + 1e-12, "{jump}: {}", steps(jump));
        }
    }
}
