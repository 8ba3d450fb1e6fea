//! Data in one dimension with their exact posterior on a grid.

use crate::gaussian::{Covariance, MethodSettings};
use crate::kinds::prelude::*;
use crate::line::{Inputs, KnownLine};
use crate::toy::posterior_panel;
use posterior_gp::inducing::collapsed::CollapsedGp;
use posterior_gp::{MeanForm, Posterior, Prediction};
use posterior_likelihoods::Gaussian;
use posterior_report::PosteriorPanel;

/// Most rows: the exact posterior factors a matrix of all of them.
const MOST_ROWS: usize = 12_000;

/// Most features of a linear model: as many squared are factored.
const MOST_FEATURES: usize = 8000;

/// Rows that are drawn in a picture.
const DRAWN: usize = 300;

/// An entry of `[[problem]]`.
#[derive(Clone, Debug, Deserialize)]
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
    pub(super) fn check(&self, methods: &[MethodSettings]) -> Result<()> {
        let wrong = |problem: &str| refused(format!("[[problem]] `{}`: {problem}", self.name));
        if !(2..=MOST_ROWS).contains(&self.rows) || !(2..=100_000).contains(&self.grid) {
            return wrong(&format!(
                "`rows` must be between 2 and {MOST_ROWS}, since all are factored, and `grid` between 2 and 100000"
            ));
        }
        if !self.inputs.is_positive() || !positive(self.near) || !positive(self.to - self.from) {
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
}

/// Data with their exact posterior, and how near they are.
pub(super) struct Problem {
    pub(super) name: String,
    pub(super) line: KnownLine,
    /// Which points of the grid have training inputs close by.
    pub(super) near: Vec<bool>,
}

impl Problem {
    pub(super) fn new(
        settings: &ProblemSettings,
        covariance: &Covariance,
        noise: f64,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        context.step(&format!("{}, exact posterior", settings.name), 0, 1)?;
        let streams = Streams::new(context.seed);
        let x = settings.inputs.draw(settings.rows, streams);
        let grid = (settings.from, settings.to, settings.grid);
        let (line, _) = KnownLine::new(covariance.clone(), x, noise, grid, streams)?;
        let x = line.data.inputs();
        let mut sorted: Vec<f64> = x.col(0).iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let near = |g: &f64| {
            let after = sorted.partition_point(|x| x < g);
            let close = |i: usize| sorted.get(i).is_some_and(|x| (x - g).abs() <= settings.near);
            close(after) || after.checked_sub(1).is_some_and(close)
        };
        let near = line.grid.iter().map(near).collect();
        Ok(Self { name: settings.name.clone(), line, near })
    }

    /// The collapsed posterior of inducing points (m x 1) on the grid.
    pub(super) fn collapsed(&self, inducing: Mat<f64>) -> Result<Prediction> {
        let line = &self.line;
        let noise = Gaussian::new(line.noise_variance, 0.0);
        let model = CollapsedGp::new(line.covariance.kernel()?, MeanForm::Zero, noise, inducing, 1)?;
        Ok(model.condition(&line.data)?.0.predict(line.points.as_ref())?)
    }

    /// A picture with some of the rows that lie on the grid.
    pub(super) fn panel(&self, prediction: &Prediction) -> PosteriorPanel {
        let line = &self.line;
        let (x, y) = (line.data.inputs(), line.data.targets());
        let ends = (line.grid[0], line.grid[line.grid.len() - 1]);
        let mut inside: Vec<usize> =
            (0..x.nrows()).filter(|&i| x[(i, 0)] >= ends.0 && x[(i, 0)] <= ends.1).collect();
        inside.sort_by(|&i, &j| x[(i, 0)].total_cmp(&x[(j, 0)]));
        let rows: Vec<usize> = inside.iter().copied().step_by(inside.len().div_ceil(DRAWN).max(1)).collect();
        let pick = |m: faer::MatRef<'_, f64>| rows.iter().map(|&i| m[(i, 0)]).collect();
        posterior_panel(&line.grid, prediction, line.noise_variance, (pick(x), pick(y)))
    }
}
