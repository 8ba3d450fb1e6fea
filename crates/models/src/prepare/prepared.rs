//! Rows of a table as a process learns from them, stages of a fit, and the memory of exact processes.

use super::row_weights::row_weights;
use super::target_transform::{self, TransformChoice, at_the_fit};
use crate::options::EvidenceOptions;
use crate::{FitRequest, ModelError, TrainingRows};
use faer::Mat;
use posterior_data::{
    Extracted, Feature, InputRanges, Notes, Schema, Selection, Standardisation, Table, groups_of_rows,
    times_of_rows,
};
use posterior_gp::exact::{Criterion, Plan};
use posterior_gp::{Observations, Parting};
use posterior_optim::Progress;
use std::path::Path;
use std::sync::Arc;

/// What a fit is at, shown to its observer beside the progress of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FitStage {
    /// A search for hyperparameters; its parts are starts.
    Search,
    /// A search without one of some folds, whose rows are then predicted.
    Fold {
        /// Which, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// The joint search on blocks; its parts are starts.
    Blocks {
        /// Stages that are done.
        stage: usize,
    },
    /// Searches on neighbourhoods, which are its parts.
    Neighbourhoods,
    /// A search on all rows.
    EvidenceSearch {
        /// The solve under way; none after a step.
        solve: Option<Progress>,
    },
    /// Solvers on few rows, which are its parts: which of them is to solve for all.
    Forecast,
    /// Searches for heteroscedastic noise, in turns with the function.
    Noise,
    /// A solver.
    Solve,
    /// A stochastic bound, whose value is averaged over recent steps.
    Bound,
    /// The pass over all rows that ends it; its steps are rows.
    Closing,
    /// Training of features, whose value is the objective for each row; its parts are the ways that are tried.
    Features,
    /// Training of a mean and a covariance, the same.
    Variation,
}

/// Rows of a table as a process sees them. Columns of counts, which a `tanimoto` kernel compares, stay in their own units.
#[derive(Clone, Debug)]
pub struct Prepared<D = Observations> {
    /// Roles of the columns.
    pub schema: Schema,
    /// Means and scales.
    pub standardisation: Standardisation,
    /// Standardised inputs and targets.
    pub data: D,
    /// What was found and done.
    pub notes: Notes,
    /// The rows as they stand in their table, where they are few.
    pub(crate) originals: Option<Arc<OriginalRows>>,
    /// Which rows these are, those included that a fit holds back to judge and to choose by.
    pub training: TrainingRows,
    /// Where the inputs lie, in their own units.
    pub input_ranges: InputRanges,
    /// Which map the target goes through, and why.
    pub transform: TransformChoice,
}

/// Rows in their own units.
#[derive(Clone, Debug)]
pub(crate) struct OriginalRows {
    /// The number of each in its table, counted from 0.
    pub(crate) numbers: Vec<usize>,
    /// Inputs, n x D.
    pub(crate) x: Mat<f64>,
    /// Targets (n).
    pub(crate) y: Vec<f64>,
}

impl OriginalRows {
    /// So many are kept beside those in standard units, at most: those of which further models may be tried.
    pub(crate) const MOST: usize = 2000;

    /// The given ones.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        Self {
            numbers: rows.iter().map(|&i| self.numbers[i]).collect(),
            x: Mat::from_fn(rows.len(), self.x.ncols(), |i, j| self.x[(rows[i], j)]),
            y: rows.iter().map(|&i| self.y[i]).collect(),
        }
    }
}

impl Prepared {
    /// From the given rows of a table in memory.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming the cell, [`ModelError::Gp`].
    pub fn from_table(table: &Table, rows: &[usize], request: &FitRequest) -> Result<Self, ModelError> {
        let prepared = || {
            let schema = Schema::learn(table, &request.roles(), rows)?;
            let extracted = schema.extract(table, rows, true)?;
            let column = request.output.row_weights.as_ref();
            let weights = column.map(|column| row_weights(table, column, &extracted.rows)).transpose()?;
            let parting = parting(table, &request.columns, &extracted.rows)?;
            let hints = schema.hints(extracted.x.as_ref(), parting.is_some());
            let mut prepared = Self::from_extracted(schema, extracted, request, &table.source)?;
            prepared.notes.hints = hints;
            if let Some(weights) = weights {
                prepared.data = prepared.data.with_weights(weights)?;
            }
            if let Some(parting) = parting {
                prepared.data = prepared.data.with_parting(parting)?;
            }
            Ok(prepared)
        };
        prepared().map_err(|error: ModelError| error.in_table(table))
    }

    /// Rows of numbers in standard units, whose columns are called `x1`, `x2`, ... and whose target is `y`.
    pub fn standardised(data: Observations) -> Self {
        let columns = data.inputs().ncols();
        let feature = |j: usize| Feature::number(format!("x{}", j + 1), 0.0);
        let schema = Schema::of("y", (0..columns).map(feature).collect());
        let y: Vec<f64> = data.targets().col(0).iter().copied().collect();
        Self {
            training: TrainingRows::of_table(data.inputs(), &y),
            input_ranges: InputRanges::learn(&schema, data.inputs()),
            standardisation: Standardisation {
                feature_means: vec![0.0; columns],
                feature_scales: vec![1.0; columns],
                feature_maps: Vec::new(),
                target_mean: 0.0,
                target_scale: 1.0,
                transform: None,
            },
            notes: Notes::default(),
            originals: None,
            transform: TransformChoice::default(),
            schema,
            data,
        }
    }

    pub(crate) fn from_extracted(
        schema: Schema,
        extracted: Extracted,
        request: &FitRequest,
        path: &Path,
    ) -> Result<Self, ModelError> {
        let Extracted { x, y, noise, rows, notes, .. } = extracted;
        let counts = request.prior.kernel.count_columns(&schema.feature_names());
        schema.check_counts(path, &counts, x.as_ref(), &rows)?;
        let unscaled = unscaled(&schema, request);
        let y = y.unwrap_or_default();
        request.require_targets(path, &schema.target, y.len(), y.iter().copied())?;
        let training = TrainingRows::of_table(x.as_ref(), &y);
        let input_ranges = InputRanges::learn(&schema, x.as_ref());
        let mut standardisation = Standardisation::learn(x.as_ref(), &y).keeping(&unscaled);
        let names = schema.feature_names();
        let compared = target_transform::of_table(&names, &standardisation, (x.as_ref(), &y), request.seed);
        let transform = target_transform::choose(request, &compared)?;
        if let Some(by) = transform.chosen {
            let mapped = standardisation.transforming(by, &y);
            standardisation = mapped
                .map_err(|i| target_transform::no_image(by, &schema, Some(rows[i]), y[i], &at_the_fit()))?
                .bounded(transform.support);
        }
        let raw = x;
        let x = standardisation.features(raw.as_ref());
        let targets = Mat::from_fn(y.len(), 1, |i, _| standardisation.target(y[i]));
        let square = standardisation.target_scale * standardisation.target_scale;
        let noise = noise.map(|v| v.into_iter().map(|v| v / square).collect());
        let data = Observations::new(x, targets, noise)?;
        let few = rows.len() <= OriginalRows::MOST;
        let originals = few.then(|| Arc::new(OriginalRows { numbers: rows, x: raw, y }));
        Ok(Self { schema, standardisation, data, notes, originals, training, input_ranges, transform })
    }
}

/// How rows of a table are parted where some are left out, where that was said.
pub(crate) fn parting(
    table: &Table,
    selection: &Selection,
    rows: &[usize],
) -> Result<Option<Parting>, ModelError> {
    Ok(match (&selection.groups, &selection.time) {
        (Some(column), _) => {
            let groups = groups_of_rows(table, column)?;
            Some(Parting::Groups(rows.iter().map(|&row| groups[row]).collect()))
        }
        (None, Some(column)) => {
            let times = times_of_rows(table, column, selection.date_order)?;
            Some(Parting::Times(rows.iter().map(|&row| times[row]).collect()))
        }
        (None, None) => None,
    })
}

/// Inputs that stay in their own units: those that the kernel counts or tells apart, and columns of 0 and 1 made from categories and gaps.
pub(crate) fn unscaled(schema: &Schema, request: &FitRequest) -> Vec<usize> {
    let mut own = request.prior.kernel.unscaled_columns(&schema.feature_names());
    own.extend(schema.indicators());
    own
}

/// What an exact process needs whose hyperparameters are found by the criterion that is asked for.
pub(crate) fn exact_plan(evidence: &EvidenceOptions, rows: usize, features: usize) -> Plan {
    match evidence.criterion() {
        // Two further matrices are given back before anything is saved.
        Ok(Criterion::LeaveOneOut) => Plan::leave_one_out(rows, features, 1),
        _ => saved_plan(rows, features),
    }
}

/// What an exact process by the evidence needs until it is in its file, which holds the factor's triangle: it is packed beside the factor.
pub(crate) fn saved_plan(rows: usize, features: usize) -> Plan {
    let mut plan = Plan::evidence(rows, features, 1);
    let triangle = (rows as u64).saturating_mul(rows as u64 + 1) / 2;
    plan.peak_bytes = plan.peak_bytes.saturating_add(triangle.saturating_mul(8));
    plan
}

/// The (first) target of each row.
pub(crate) fn targets(data: &Observations) -> Vec<f64> {
    data.targets().col(0).iter().copied().collect()
}
