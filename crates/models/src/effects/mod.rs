//! **What columns do to a prediction**: how much of its variance needs each of them, and how its average moves along each.
//!
//! Both are asked of the posterior at rows of a table in which the cells of one column are exchanged, all features that were made of it together: columns of 0 and 1 of a text, parts of a date, what says that a cell is missing. So
//! they hold for every kernel and every method.
//!
//! ```text
//! importance    T_j = E[(f(x) - f(x with column j of another row))²] / (2 Var f(x))       f: posterior mean
//! dependence    a_j(v) = 1/R Σ_r f(x_r with column j at v)                                  f: the posterior's function, R rows that stay the same along the curve
//! ```
//!
//! `T_j` is the total effect of Sobol's decomposition where columns are independent of each other: the share of the variance that is gone when column j is known to nobody, its part in every interaction included. Sources: Jansen (1999), *Analysis of variance designs for model
//! output*; Saltelli et al. (2010); Friedman (2001), *Greedy function approximation*, section 8.2 (partial dependence).
//!
//! | file | what |
//! |---|---|
//! | `sources` | which features belong to which column, and what its cells may be |
//! | `importance` | total effects with their standard errors |
//! | `dependence` | curves, and what categories do |
//! | `sizes` | how many rows these are worth, and what they take |
//! | `shown` | as pictures |
//! | `maps` | maps over one or two inputs |
//! | `panel` | the posterior over one input |
//! | `components` | what a kernel is made of: covariances of categories, curves of columns, shares of a sum |

mod components;
mod dependence;
mod importance;
mod maps;
mod panel;
mod shown;
mod sizes;
mod sources;

pub use components::{CategoryCovariance, KernelParts, WarpCurve};
pub use dependence::{Averaged, Dependence, Place, PlaceUnit};
pub(crate) use panel::one_dimensional;

use crate::{ModelError, PredictionPlan, Process, Question};
use faer::{Mat, MatRef};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use rand::seq::index;
use serde::Serialize;
use sizes::Sizes;
use sources::Source;

/// Standard deviations on either side in a central 95 % interval.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// Columns that have a curve, the most important ones.
const MOST_CURVES: usize = 8;

/// Where the rows come from at which a model was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowsOf {
    /// Rows that it was trained on, which it keeps.
    Training,
    /// Rows that it was given: it keeps none of its own.
    Given,
}

/// What the columns of a table do to a model's predictions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effects {
    /// Whose rows these are.
    pub rows_of: RowsOf,
    /// Rows among which cells were exchanged, drawn at random by the model's seed.
    pub rows: usize,
    /// Of so many.
    pub of: usize,
    /// Rows, the first of these, over which curves are averages.
    pub averaged_rows: usize,
    /// What the shares are shares of.
    pub variance_of: &'static str,
    /// One for each column, the most important first.
    pub importance: Vec<Importance>,
    /// Of the most important columns, in the same order.
    pub dependence: Vec<Dependence>,
    /// Why there is nothing of these, where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// How much a column is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Importance {
    /// The column, as the table has it.
    pub column: String,
    /// The total effect `T_j`, a share of the variance; those of columns that act together add up to more than 1.
    pub share: f64,
    /// What of it may be the chance of the rows that were drawn.
    pub standard_error: f64,
}

impl Effects {
    /// Nothing, and why.
    fn none(rows_of: RowsOf, of: usize, model: &Process<'_>, why: String) -> Self {
        let (importance, dependence) = (Vec::new(), Vec::new());
        let variance_of = model.variance_of();
        Self {
            rows_of,
            rows: 0,
            of,
            averaged_rows: 0,
            variance_of,
            importance,
            dependence,
            left_out: Some(why),
        }
    }

    /// Of a model at rows that it keeps, or else at these (standardised); None where there are none of either. Cost: at most some ten thousand predictions, see [`Sizes`].
    ///
    /// # Errors
    /// As predictions of the model.
    pub(crate) fn of(
        model: &Process<'_>,
        given: Option<MatRef<'_, f64>>,
    ) -> Result<Option<Self>, ModelError> {
        let (rows_of, all) = match (model.predictor.training_inputs(), given) {
            (Some(own), _) => (RowsOf::Training, own),
            (None, Some(given)) => (RowsOf::Given, given),
            (None, None) => return Ok(None),
        };
        let (schema, standard) = (&model.inputs.schema, &model.inputs.standardisation);
        let sources = Source::all(schema);
        let n = all.nrows();
        let sizes = match Sizes::of(model, &sources, n) {
            Ok(sizes) => sizes,
            Err(why) => return Ok(Some(Self::none(rows_of, n, model, why))),
        };
        let mut rng: ChaCha8Rng = Streams::new(model.record.seed).stream("model/effects");
        let rows = index::sample(&mut rng, n, sizes.rows).into_vec();
        let x = Mat::from_fn(rows.len(), all.ncols(), |i, j| all[(rows[i], j)]);
        let groups: Vec<_> = sources.iter().map(|source| source.features.clone()).collect();
        let found =
            importance::total_effects(x.as_ref(), &groups, sizes.shifts, &mut |x| model.centred_means(x))?;
        let Some(found) = found else {
            let why =
                format!("its mean is the same at all {} rows: no column does anything to it", rows.len());
            return Ok(Some(Self::none(rows_of, n, model, why)));
        };
        let mut order: Vec<usize> = (0..sources.len()).collect();
        // Equal shares stay in the order of the table.
        order.sort_by(|&a, &b| found[b][0].total_cmp(&found[a][0]));
        let importance = order.iter().map(|&j| Importance {
            column: sources[j].column.to_string(),
            share: found[j][0],
            standard_error: found[j][1],
        });
        let background = x.subrows(0, sizes.background);
        let mut curves = Vec::new();
        for &j in order.iter().take(MOST_CURVES) {
            curves.extend(dependence::of_column(
                model,
                (schema, standard),
                &sources[j],
                x.as_ref(),
                background,
            )?);
        }
        Ok(Some(Self {
            rows_of,
            rows: rows.len(),
            of: n,
            averaged_rows: sizes.background,
            variance_of: model.variance_of(),
            importance: importance.collect(),
            dependence: curves,
            left_out: None,
        }))
    }

    /// What [`Self::of`] takes beside the model and its data, at most: rows that are not known yet are taken to be many. None where it will have nothing to say.
    pub(crate) fn plan(
        model: &Process<'_>,
        question: &Question,
    ) -> Result<Option<PredictionPlan>, ModelError> {
        let rows = model.predictor.training_inputs().map_or(sizes::MOST_ROWS, |x| x.nrows());
        let sources = Source::all(&model.inputs.schema);
        let Ok(sizes) = Sizes::of(model, &sources, rows) else { return Ok(None) };
        let plan = sizes.plan(model, &sources);
        let plan = plan.beside(question.beside);
        plan.check(question.memory)?;
        Ok(Some(plan))
    }
}
