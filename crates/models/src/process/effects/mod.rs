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

mod dependence;
mod importance;
mod shown;
mod sizes;
mod sources;

pub use dependence::{Averaged, Dependence, Place, PlaceUnit};

use crate::{ModelError, PredictionPlan, Predictor, Question};
use faer::{Mat, MatRef};
use posterior_data::{Schema, Standardisation};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use rand::seq::index;
use serde::Serialize;
use sizes::Sizes;
use sources::Source;

/// Standard deviations on either side in a central 95 % interval.
pub(super) const Z95: f64 = 1.959_963_984_540_054;

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

/// A model whose columns have effects: C functions of standardised inputs, and what is observed of them.
pub(super) trait Effective {
    /// What inputs are made of.
    fn schema(&self) -> &Schema;

    /// Their units.
    fn standardisation(&self) -> &Standardisation;

    /// By which rows are drawn.
    fn seed(&self) -> u64;

    /// What predicts the functions.
    fn predictor(&self) -> &dyn Predictor;

    /// What the shares of importance are shares of.
    fn variance_of(&self) -> &'static str;

    /// What is observed of the functions: a name for each number.
    fn observed(&self) -> Vec<String>;

    /// Averages of these, without noise, over each run of `each` rows of x, in units that people use: for each run and each number its centre and the ends of a central 95 % interval.
    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Vec<Vec<[f64; 3]>>, ModelError>;

    /// Operations that draws of one row of an average take beside the predictor's, about.
    fn drawn_flops(&self) -> f64 {
        0.0
    }

    /// Bytes that so many rows at a time and averages over so many runs of them take beside the predictor's blocks.
    fn beside(&self, rows: usize, runs: usize) -> u64;

    /// Means of the functions at the rows of x (m x D), m x C. Of several functions the mean over all is subtracted, which changes no probability.
    fn means(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        let mut means = self.predictor().means(x)?;
        if means.ncols() > 1 {
            for i in 0..means.nrows() {
                let common = means.row(i).iter().sum::<f64>() / means.ncols() as f64;
                means.row_mut(i).iter_mut().for_each(|m| *m -= common);
            }
        }
        Ok(means)
    }

    /// Floating-point operations of the mean at one row, and of one row of an average, about.
    fn work(&self) -> [f64; 2] {
        let [mean, average] = self.predictor().effort(self.schema().features.len());
        [mean, average + self.drawn_flops()]
    }

    /// Bytes that so many rows take at a time, those of averages over runs of so many rows included.
    fn bytes(&self, rows: usize, runs: usize) -> u64 {
        self.predictor().cost(rows).bytes.saturating_add(self.beside(rows, runs))
    }
}

impl Effects {
    /// Nothing, and why.
    fn none(rows_of: RowsOf, of: usize, model: &dyn Effective, why: String) -> Self {
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
    pub(super) fn of(
        model: &dyn Effective,
        given: Option<MatRef<'_, f64>>,
    ) -> Result<Option<Self>, ModelError> {
        let (rows_of, all) = match (model.predictor().training_inputs(), given) {
            (Some(own), _) => (RowsOf::Training, own),
            (None, Some(given)) => (RowsOf::Given, given),
            (None, None) => return Ok(None),
        };
        let (schema, standard) = (model.schema(), model.standardisation());
        let sources = Source::all(schema);
        let n = all.nrows();
        let sizes = match Sizes::of(model, &sources, n) {
            Ok(sizes) => sizes,
            Err(why) => return Ok(Some(Self::none(rows_of, n, model, why))),
        };
        let mut rng: ChaCha8Rng = Streams::new(model.seed()).stream("model/effects");
        let rows = index::sample(&mut rng, n, sizes.rows).into_vec();
        let x = Mat::from_fn(rows.len(), all.ncols(), |i, j| all[(rows[i], j)]);
        let groups: Vec<_> = sources.iter().map(|source| source.features.clone()).collect();
        let found = importance::total_effects(x.as_ref(), &groups, sizes.shifts, &mut |x| model.means(x))?;
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
    pub(super) fn plan(
        model: &dyn Effective,
        question: &Question,
    ) -> Result<Option<PredictionPlan>, ModelError> {
        let rows = model.predictor().training_inputs().map_or(sizes::MOST_ROWS, |x| x.nrows());
        let sources = Source::all(model.schema());
        let Ok(sizes) = Sizes::of(model, &sources, rows) else { return Ok(None) };
        let plan = sizes.plan(model, &sources);
        let plan = plan.beside(question.beside);
        plan.check(question.memory)?;
        Ok(Some(plan))
    }
}
