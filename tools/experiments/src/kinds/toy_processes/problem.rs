//! Data in one dimension with their exact posterior on a grid.

use crate::context::Context;
use crate::error::{ExperimentError, refused};
use crate::gaussian::{Covariance, MethodSettings, normals};
use crate::toy::{posterior_panel, waves};
use faer::Mat;
use posterior_gp::exact::ExactGp;
use posterior_gp::inducing::collapsed::CollapsedGp;
use posterior_gp::{MeanForm, Observations, Posterior, Prediction};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_report::PosteriorPanel;
use serde::Deserialize;

/// Most rows: the exact posterior factors a matrix of all of them.
const MOST_ROWS: usize = 12_000;

/// Most features of a linear model: as many squared are factored.
const MOST_FEATURES: usize = 8000;

/// Rows that are drawn in a picture.
const DRAWN: usize = 300;

/// Where inputs lie.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Inputs {
    /// Normal around 0: more rows fill the same interval.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// A grid around 0: more rows reach further.
    EquallySpaced {
        /// From one to the next.
        spacing: f64,
    },
    /// Half around minus `centre`, half around plus.
    Clusters {
        /// Where they lie.
        centre: f64,
        /// Standard deviation of each.
        deviation: f64,
    },
}

/// An entry of `[[problem]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProblemSettings {
    /// Its name.
    pub(super) name: String,
    /// Where its inputs lie.
    inputs: Inputs,
    /// How many there are.
    pub(super) rows: usize,
    /// The grid's first point.
    from: f64,
    /// Its last.
    to: f64,
    /// Its points.
    grid: usize,
    /// A point of the grid is near the data when an input lies within this distance.
    near: f64,
    /// Names of its methods; all if absent.
    methods: Option<Vec<String>>,
    /// Numbers of features of linear models that stand for the process.
    #[serde(default)]
    pub(super) random_features: Vec<usize>,
}

impl ProblemSettings {
    pub(super) fn check(&self, methods: &[MethodSettings]) -> Result<(), ExperimentError> {
        let wrong = |problem: &str| refused(format!("[[problem]] `{}`: {problem}", self.name));
        if !(2..=MOST_ROWS).contains(&self.rows) || !(2..=100_000).contains(&self.grid) {
            return wrong(&format!(
                "`rows` must be between 2 and {MOST_ROWS}, since all are factored, and `grid` between 2 and 100000"
            ));
        }
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let sensible = match self.inputs {
            Inputs::Normal { deviation } => positive(deviation),
            Inputs::EquallySpaced { spacing } => positive(spacing),
            Inputs::Clusters { centre, deviation } => positive(centre) && positive(deviation),
        };
        if !sensible || !positive(self.near) || !positive(self.to - self.from) {
            return wrong("`near`, `to` less `from` and all numbers of `inputs` must be positive");
        }
        if let Some(names) = &self.methods {
            let known = names.iter().all(|name| methods.iter().any(|m| m.name == *name));
            if !known {
                return wrong("`methods` names entries of [[method]]");
            }
        }
        let counts = &self.random_features;
        if counts.iter().any(|c| !(2..=MOST_FEATURES).contains(c) || c % 2 == 1) {
            return wrong(&format!("`random_features` are even numbers from 2 to {MOST_FEATURES}"));
        }
        if counts.iter().enumerate().any(|(i, c)| counts[..i].contains(c)) {
            return wrong("`random_features` are different numbers");
        }
        Ok(())
    }

    /// Whether a method is among its own.
    pub(super) fn has(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|own| own.iter().any(|name| name == method))
    }

    fn inputs(&self, streams: Streams) -> Mat<f64> {
        let z = normals(self.rows, 1, streams, "experiment/inputs");
        let middle = (self.rows - 1) as f64 / 2.0;
        Mat::from_fn(self.rows, 1, |i, _| match self.inputs {
            Inputs::Normal { deviation } => deviation * z[(i, 0)],
            Inputs::EquallySpaced { spacing } => spacing * (i as f64 - middle),
            Inputs::Clusters { centre, deviation } => {
                let side = if i.is_multiple_of(2) { -centre } else { centre };
                side + deviation * z[(i, 0)]
            }
        })
    }
}

/// Data, grid, and the exact posterior on it.
pub(super) struct Problem {
    pub(super) name: String,
    pub(super) covariance: Covariance,
    pub(super) data: Observations,
    pub(super) grid: Vec<f64>,
    /// The grid, m x 1.
    pub(super) points: Mat<f64>,
    pub(super) exact: Prediction,
    /// Which points of the grid have training inputs close by.
    pub(super) near: Vec<bool>,
}

impl Problem {
    pub(super) fn new(
        settings: &ProblemSettings,
        covariance: &Covariance,
        noise: f64,
        context: &mut Context<'_>,
    ) -> Result<Self, ExperimentError> {
        context.step(&format!("{}, exact posterior", settings.name), 0, 1)?;
        let streams = Streams::new(context.seed);
        let x = settings.inputs(streams);
        let e = normals(settings.rows, 1, streams, "experiment/noise");
        let y = Mat::from_fn(settings.rows, 1, |i, _| waves(x[(i, 0)]) + noise * e[(i, 0)]);
        let step = (settings.to - settings.from) / (settings.grid - 1) as f64;
        let grid: Vec<f64> = (0..settings.grid).map(|i| settings.from + i as f64 * step).collect();
        let points = Mat::from_fn(grid.len(), 1, |i, _| grid[i]);
        let mut sorted: Vec<f64> = x.col(0).iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let near = |g: &f64| {
            let after = sorted.partition_point(|x| x < g);
            let close = |i: usize| sorted.get(i).is_some_and(|x| (x - g).abs() <= settings.near);
            close(after) || after.checked_sub(1).is_some_and(close)
        };
        let near = grid.iter().map(near).collect();
        let data = Observations::new(x, y, None)?;
        let gaussian = Gaussian::new(noise * noise, 0.0);
        let model = ExactGp::new(covariance.kernel()?, MeanForm::Zero, gaussian, 1, 1);
        let exact = model.condition(data.clone())?.predict(points.as_ref())?;
        let (name, covariance) = (settings.name.clone(), covariance.clone());
        Ok(Self { name, covariance, data, grid, points, exact, near })
    }

    /// The collapsed posterior of inducing points (m x 1) on the grid.
    pub(super) fn collapsed(
        &self,
        inducing: Mat<f64>,
        noise_variance: f64,
    ) -> Result<Prediction, ExperimentError> {
        let noise = Gaussian::new(noise_variance, 0.0);
        let model = CollapsedGp::new(self.covariance.kernel()?, MeanForm::Zero, noise, inducing, 1)?;
        Ok(model.condition(&self.data)?.0.predict(self.points.as_ref())?)
    }

    /// A picture with some of the rows that lie on the grid.
    pub(super) fn panel(&self, prediction: &Prediction, noise_variance: f64) -> PosteriorPanel {
        let (x, y) = (self.data.inputs(), self.data.targets());
        let ends = (self.grid[0], self.grid[self.grid.len() - 1]);
        let mut inside: Vec<usize> =
            (0..x.nrows()).filter(|&i| x[(i, 0)] >= ends.0 && x[(i, 0)] <= ends.1).collect();
        inside.sort_by(|&i, &j| x[(i, 0)].total_cmp(&x[(j, 0)]));
        let rows: Vec<usize> = inside.iter().copied().step_by(inside.len().div_ceil(DRAWN).max(1)).collect();
        let pick = |m: faer::MatRef<'_, f64>| rows.iter().map(|&i| m[(i, 0)]).collect();
        posterior_panel(&self.grid, prediction, noise_variance, (pick(x), pick(y)))
    }
}
