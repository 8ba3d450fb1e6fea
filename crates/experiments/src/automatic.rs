//! What a user gets: no hyperparameters given, nothing chosen, a budget of time.

use super::ExperimentError;
use super::context::Context;
use super::gaussian::{Fitted, Job, Run};
use faer::{Mat, MatRef};
use posterior_data::{Column, Selection, Table};
use posterior_gp::{Posterior, Prediction};
use posterior_models::{FitRequest, Prepared, ProcessModel};
use serde::Deserialize;

/// Settings of the default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AutomaticSettings {
    /// Seconds for everything: `--time-budget`.
    pub(crate) seconds: f64,
}

const TARGET: &str = "y";

/// A table with the given columns.
fn table(inputs: MatRef<'_, f64>, target: Option<MatRef<'_, f64>>) -> Table {
    let column = |name: String, m: MatRef<'_, f64>, j: usize| {
        Column::numeric(name, m.col(j).iter().copied().collect())
    };
    let mut columns: Vec<Column> =
        (0..inputs.ncols()).map(|j| column(format!("x{}", j + 1), inputs, j)).collect();
    columns.extend(target.map(|y| column(TARGET.into(), y, 0)));
    Table::new("experiment", columns)
}

impl AutomaticSettings {
    /// Fits as `posterior fit gp --data TABLE --target y --time-budget SECONDS` does; the job's prior and settings are not looked at.
    pub(crate) fn fit(
        &self,
        job: &Job<'_>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Run, ExperimentError> {
        let request = FitRequest {
            selection: Selection { target: TARGET.into(), ..Selection::default() },
            time_budget: Some(self.seconds),
            seed: job.seed,
            ..FitRequest::default()
        };
        let table = table(job.data.inputs(), Some(job.data.targets()));
        let rows: Vec<usize> = (0..job.data.rows()).collect();
        let prepared = Prepared::from_table(&table, &rows, &request)?;
        let model = ProcessModel::fit_prepared(prepared, &request, &mut |progress, _| {
            context.tell(stage, progress.step, progress.steps_planned)
        })?;
        let (steps, points) = (model.header().fit.steps, model.header().rows);
        Ok(Run {
            fitted: Fitted::Automatic(Box::new(model)),
            seconds: 0.0,
            steps,
            points,
            step_size: None,
            trace: Vec::new(),
        })
    }
}

/// Marginals at inputs (m x D) in the units of the data that a model was fitted to.
pub(super) fn predict(model: &ProcessModel, x: MatRef<'_, f64>) -> Result<Prediction, posterior_gp::GpError> {
    let standard = &model.header().standardisation;
    let found = model.posterior().predict(standard.features(x).as_ref())?;
    Ok(Prediction {
        mean: Mat::from_fn(found.mean.nrows(), found.mean.ncols(), |i, j| {
            standard.target_back(found.mean[(i, j)])
        }),
        latent_variance: found.latent_variance.iter().map(|v| standard.variance_back(*v)).collect(),
        noise_variance: standard.variance_back(found.noise_variance),
        clipped: found.clipped,
    })
}
