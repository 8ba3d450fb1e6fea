//! What files say.

use super::largest_step::{StepSearch, with_automatic_step};
use crate::gaussian::{MethodSettings, check_methods};
use crate::kinds::prelude::*;
use crate::tables::{SetSettings, check_tables};
use std::path::PathBuf;

/// Most training rows: the exact weights need a factor of `8n²` bytes, 3.2 GB.
pub(super) const MOST_ROWS: usize = 20_000;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Folder with `NAME.csv.gz` (the last column is the target) and `NAME.fold.csv.gz`, counted from the experiment's file; empty: data are
    /// drawn from the prior.
    pub(super) folder: PathBuf,
    /// Which folds are test sets in turn; curves are those of the first.
    pub(super) folds: Vec<usize>,
    /// Most training rows, chosen by chance; all if absent. As many are made up without a folder.
    pub(super) rows: Option<usize>,
    /// Random features of the function that made-up targets come from.
    pub(super) features: usize,
    /// Megabytes that may hold the kernel matrix, in double precision.
    pub(super) cache_mb: usize,
    /// Steps at which errors are looked at, at most: logarithmically spaced.
    pub(super) checkpoints: usize,
    /// Relative residuals whose first passes are told.
    #[serde(default)]
    goals: Vec<f64>,
    /// Nats above the exact mean's negative log density of test targets whose first passes are told.
    #[serde(default)]
    nll_goals: Vec<f64>,
    /// Horizontal axes.
    pub(super) against: Vec<Axis>,
    /// What is drawn.
    pub(super) quantities: Vec<Quantity>,
    #[serde(rename = "noise")]
    pub(super) noises: Vec<NoiseSettings>,
    #[serde(rename = "set")]
    pub(super) sets: Vec<SetSettings>,
    #[serde(rename = "method")]
    pub(super) methods: Vec<Entry>,
}

/// An entry of `[[noise]]`: a noise level that every set is solved with. The targets stay what they are.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct NoiseSettings {
    /// Its name in tables.
    pub(super) name: String,
    /// Its standard deviation; that of the set if absent.
    pub(super) deviation: Option<f64>,
}

/// An entry of `[[method]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Entry {
    /// Its name in tables, its solver, and when it ends.
    #[serde(flatten)]
    pub(super) method: MethodSettings,
    /// Methods of a group share tables and figures.
    #[serde(default)]
    pub(super) group: String,
    /// A share of the step size that dual descent would find, which it has instead.
    pub(super) step_share: Option<f64>,
    /// Whether, and how, its largest stable step is searched as well.
    pub(super) largest_step: Option<StepSearch>,
}

/// A horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Axis {
    /// Steps.
    Steps,
    /// Rows of the kernel matrix that were multiplied with, in units of all: products with the whole matrix.
    Passes,
    /// Seconds of the solver.
    Seconds,
}

/// A measure of what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Quantity {
    /// Root mean squared error at the test points.
    Rmse,
    /// Negative log density of test targets, nats each, by the mean as it is and the exact variances: what is missing is the mean's.
    Nll,
    /// Root mean squared distance from the exact mean at the test points.
    FromExact,
    /// `‖α - α⋆‖₂ / ‖α⋆‖₂`
    Euclidean,
    /// `‖α - α⋆‖_K / ‖α⋆‖_K`: in the kernel's Hilbert space.
    Function,
    /// `‖K(α - α⋆)‖₂ / ‖Kα⋆‖₂`: at the training rows.
    Predictions,
    /// `‖z - K̃α‖₂ / ‖z‖₂`: what is left of the system.
    Residual,
}

impl Axis {
    /// What it is called.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Passes => "passes",
            Self::Seconds => "seconds",
        }
    }
}

impl Quantity {
    /// All of them with their keys in the numbers and what they are called.
    pub(super) const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Rmse, "rmse", "test RMSE"),
        (Self::Nll, "nll", "test NLL"),
        (Self::FromExact, "from_exact", "RMSE to the exact mean"),
        (Self::Euclidean, "euclidean", "relative error of the weights"),
        (Self::Function, "function", "relative error in the K-norm"),
        (Self::Predictions, "predictions", "relative error in the K²-norm"),
        (Self::Residual, "residual", "relative residual"),
    ];

    /// What it is called.
    pub(super) fn title(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}

/// What passes are counted to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// A relative residual.
    Residual(f64),
    /// Nats above the exact mean's negative log density.
    Nll(f64),
}

impl Settings {
    /// The goals with their keys in the numbers and what they are called.
    pub(super) fn goals(&self) -> impl Iterator<Item = (String, String, Goal)> {
        let residuals = self.goals.iter().enumerate().map(|(i, &goal)| {
            let title = format!("passes to a residual of {goal:e}");
            (format!("passes_to_{}", i + 1), title, Goal::Residual(goal))
        });
        let densities = self.nll_goals.iter().enumerate().map(|(i, &goal)| {
            let title = format!("passes to {goal} nats above the exact NLL");
            (format!("passes_to_nll_{}", i + 1), title, Goal::Nll(goal))
        });
        residuals.chain(densities)
    }

    /// Names of the groups, in the order of the file.
    pub(super) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for method in &self.methods {
            if !groups.contains(&method.group.as_str()) {
                groups.push(&method.group);
            }
        }
        groups
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_tables(&self.sets, &self.folds, &self.folder, self.rows)?;
        check_names("noise", self.noises.iter().map(|n| n.name.as_str()))?;
        let methods: Vec<MethodSettings> = self.methods.iter().map(|m| m.method.clone()).collect();
        check_methods(&methods)?;
        if self.noises.iter().filter_map(|n| n.deviation).any(|d| !positive(d)) {
            return refused("[[noise]]: `deviation` must be positive");
        }
        self.rows.map_or(Ok(()), check_rows)?;
        if self.features == 0 || !(2..=200).contains(&self.checkpoints) {
            return refused("`features` must be at least 1 and `checkpoints` between 2 and 200");
        }
        if self.goals.iter().chain(&self.nll_goals).any(|goal| !positive(*goal)) {
            return refused("`goals` are relative residuals above 0, `nll_goals` nats above 0");
        }
        if self.against.is_empty() || self.quantities.is_empty() {
            return refused("`against` and `quantities` name at least one thing to draw each");
        }
        for method in &self.methods {
            let (solver, _) = method.method.rows_solver(1, 0)?;
            if let Some(share) = method.step_share {
                let told = with_automatic_step(&solver).is_none();
                if told || !positive(share) {
                    return refused(format!(
                        "[[method]] `{}`: `step-share` is a positive share of the step size that sdd finds, beside no `step-size`",
                        method.method.name
                    ));
                }
            }
            if let Some(problem) = method.largest_step.and_then(|s| s.problem(&solver)) {
                return refused(format!("[[method]] `{}`: {problem}", method.method.name));
            }
        }
        Ok(())
    }
}

/// Refuses more rows than can be solved directly.
pub(super) fn check_rows(rows: usize) -> Result<()> {
    if rows > MOST_ROWS {
        return refused(format!(
            "{rows} training rows are more than the {MOST_ROWS} whose weights are computed directly: set `rows`"
        ));
    }
    Ok(())
}
