//! **The objective**: the risk of the rows plus `λ` times a regulariser, with its gradient in everything that is trained.
//!
//! What is minimised is, for each of n rows, `(1/n) Σ risk + λ D` where rows are averaged, and `(1/n) Σ risk + λ D / n` where they are summed. A batch stands for all rows.
//!
//! Every term depends on the process through its means and variances at the rows (a regulariser of matrices also through the covariances of some, one of inducing values through their distribution); slopes in these are
//! formulas, and go back through mean and kernels once.
//!
//! Source: spec `generalised_variational_inference`, sections 5, 12 and 13.

use super::error::GeneralisedError;
use super::fit::gathered;
use super::model::{GeneralisedGp, KnownRows};
use super::regulariser::{Regularisation, RegularisedRows, Regulariser};
use super::risk::{Reduction, Risk};
use super::variational::Evaluated;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_linalg::random::ChaCha8Rng;
use posterior_linear::low_rank::{ObservedRows, RowTerms};
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// What is minimised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GeneralisedObjective {
    /// What is asked of the data.
    pub risk: Risk,
    /// How rows are put together.
    pub reduction: Reduction,
    /// What keeps the process near its reference.
    pub regulariser: Regulariser,
    /// λ. Regularisers of marginals and of rows together are averages over functions, those of inducing values (which are divergences of all functions at once) and the risk of Gaussian rows of several targets are sums.
    pub weight: f64,
    /// Rows whose covariances a regulariser of matrices looks at together: their number cubed is what a step then costs. Each step of training draws them anew from its batch; an evaluation outside of training looks at the first ones.
    pub rows_together: usize,
}

/// Rows that are looked at in a step.
pub(super) struct Batch<'a> {
    pub(super) observations: &'a Observations,
    pub(super) given: Option<MatRef<'a, f64>>,
    pub(super) known: &'a KnownRows,
    /// Rows that they stand for.
    pub(super) rows: usize,
    /// Those of them that a regulariser of matrices looks at; None for all in their order.
    pub(super) together: Option<Vec<usize>>,
}

/// The objective on some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralisedEvaluation {
    /// What is minimised, for each row.
    pub value: f64,
    /// Mean risk of a row, nats.
    pub risk: f64,
    /// The regulariser before its weight.
    pub regularisation: f64,
    /// The gradient of the value in the natural parameters of the process, in their order.
    pub gradient: Vec<f64>,
    /// Variances (of functions at rows) that were raised to their floor.
    pub floored: usize,
    /// Variances of the reference (of processes at rows) that were raised to theirs.
    pub reference_floored: usize,
    /// Eigenvalues that a regulariser of matrices clipped, or took the real part of.
    pub clipped: usize,
    /// Roots of eigenvalues in a regulariser of matrices that drown in rounding, whose slopes are therefore not theirs.
    pub unresolved: usize,
    /// Largest jitter of a covariance in a regulariser of matrices, relative to the mean of its diagonal; 1e-8 at least in a distance of Wasserstein on one batch.
    pub regulariser_jitter: f64,
    /// Whether the regulariser was left out, because a batch of one row has no two parts.
    pub left_out: bool,
    /// Largest jitter of a matrix of a kernel of its own, relative to the mean of its diagonal.
    pub relative_jitter: f64,
}

impl GeneralisedObjective {
    /// Refuses what has no meaning for these kernels and this mean.
    ///
    /// # Errors
    /// [`GeneralisedError`].
    pub fn check(&self, model: &GeneralisedGp) -> Result<(), GpError> {
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Err(GeneralisedError::Option {
                option: "the weight of the regulariser",
                value: self.weight,
                remedy: "take a positive finite number",
            }
            .into());
        }
        if self.rows_together < 2 {
            return Err(GeneralisedError::Option {
                option: "the number of rows together",
                value: self.rows_together as f64,
                remedy: "take at least 2",
            }
            .into());
        }
        self.regulariser.check(model)
    }

    /// Refuses batches of so many rows that none of them could be parted in two where that is needed.
    ///
    /// # Errors
    /// [`GeneralisedError::Option`].
    pub(super) fn check_batches(&self, rows: usize) -> Result<(), GpError> {
        if matches!(self.regulariser, Regulariser::WassersteinOfTwo) && rows < 2 {
            return Err(GeneralisedError::Option {
                option: "the number of rows of a batch",
                value: rows as f64,
                remedy: "wasserstein-two-batches compares two parts of it: take at least 2, or the regulariser wasserstein",
            }
            .into());
        }
        Ok(())
    }

    /// Rows of a batch of b that are looked at together, None for all in their order: the first ones, or a draw in random order, which says what is in which half where halves matter.
    pub(super) fn together(&self, b: usize, draw: Option<&mut ChaCha8Rng>) -> Option<Vec<usize>> {
        if !self.regulariser.is_of_matrices() {
            return None;
        }
        let rows = b.min(self.rows_together);
        let in_halves = matches!(self.regulariser, Regulariser::WassersteinOfTwo);
        match draw {
            Some(rng) if rows < b || in_halves => Some(index::sample(rng, b, rows).into_vec()),
            _ => (rows < b).then(|| (0..rows).collect()),
        }
    }
}

/// The objective on all rows of `observations`, with its gradient.
///
/// # Errors
/// [`GpError`]: rows that do not fit, a regulariser that is not admitted, matrices that cannot be factored.
pub fn generalised_objective(
    model: &GeneralisedGp,
    objective: &GeneralisedObjective,
    data: &super::GeneralisedData<'_>,
) -> Result<GeneralisedEvaluation, GpError> {
    objective.check(model)?;
    objective.check_batches(data.observations.rows())?;
    model.check(data)?;
    let known = model.known(data.observations.inputs())?;
    objective_on(model, objective, data, &known)
}

/// The same of rows of which is known what does not change: what one step of training costs. Rows and objective have passed their checks.
///
/// # Errors
/// As [`generalised_objective`].
pub fn objective_on(
    model: &GeneralisedGp,
    objective: &GeneralisedObjective,
    data: &super::GeneralisedData<'_>,
    known: &KnownRows,
) -> Result<GeneralisedEvaluation, GpError> {
    let super::GeneralisedData { observations, given } = *data;
    let rows = observations.rows();
    let together = objective.together(rows, None);
    evaluate(model, objective, &Batch { observations, given, known, rows, together })
}

pub(super) fn evaluate(
    model: &GeneralisedGp,
    objective: &GeneralisedObjective,
    batch: &Batch<'_>,
) -> Result<GeneralisedEvaluation, GpError> {
    let Batch { observations, known, .. } = batch;
    let x = observations.inputs();
    let (b, functions) = (x.nrows(), model.functions());
    let features = |c: usize| &known.of[model.place(c)].features;
    let at = model.mean.at(x, model.prior_means(known), features)?;
    let evaluated = model.evaluated(known, x)?;
    // What is looked at together, where that is not the whole batch in its order.
    let some = batch.together.as_deref();
    let chosen = some.map(|rows| (gathered(x, rows), known.select(rows)));
    let apart = match &chosen {
        Some((x, known)) => model.evaluated(known, x.as_ref())?,
        None => Vec::new(),
    };
    let together = match &chosen {
        Some((x, known)) => RegularisedRows { rows: some, x: x.as_ref(), known, kernels: &apart },
        None => RegularisedRows { rows: None, x, known, kernels: &evaluated },
    };
    let variances = Mat::from_fn(b, functions, |i, c| evaluated[c].variances[i]);
    let observed = ObservedRows {
        targets: observations.targets(),
        noise: observations.noise_variances(),
        weights: observations.weights(),
        offsets: observations.offsets(),
    };
    let terms = match batch.given {
        Some(given) => {
            let latent = &at.values + given;
            RowTerms::of(model.likelihood(), objective.risk.power(), &observed, (&latent, &variances))
        }
        None => RowTerms::of(model.likelihood(), objective.risk.power(), &observed, (&at.values, &variances)),
    };
    let risk = -terms.value / b as f64;
    let weight = match objective.reduction {
        Reduction::Mean => objective.weight,
        Reduction::Sum => objective.weight / batch.rows as f64,
    };
    let regularisation = objective.regulariser.evaluate(model, batch, (&at.values, &evaluated), &together)?;
    let Regularisation { value, means, variances: of_variances, covariances, weights, .. } = &regularisation;

    let layout = model.layout();
    let mut gradient = vec![0.0; layout.last().map_or(0, |range| range.end)];
    let scale = -1.0 / b as f64;
    let slopes = Mat::from_fn(b, functions, |i, c| {
        scale * terms.means[(i, c)] + means.as_ref().map_or(0.0, |m| weight * m[(i, c)])
    });
    model.mean.pull_back(&at, &slopes, features, &mut gradient[layout[0].clone()])?;
    if let Some(weights) = weights {
        let own = &mut gradient[layout[0].clone()];
        let of_mean = weights.mean.iter().flat_map(|column| column.iter());
        own.iter_mut().zip(of_mean).for_each(|(g, w)| *g += weight * w);
    }
    for c in 0..functions {
        let slopes: Vec<f64> = (0..b)
            .map(|i| {
                scale * terms.variances[(i, c)] + of_variances.as_ref().map_or(0.0, |v| weight * v[(i, c)])
            })
            .collect();
        let own = &mut gradient[layout[1 + c].clone()];
        evaluated[c].pull_back(&slopes, own);
        if let Some(adjoint) = covariances.get(c) {
            let scaled = adjoint * faer::Scale(weight);
            together.kernels[c].pull_back_covariance(scaled.as_ref(), own);
        }
        if let Some(weights) = weights {
            let scaled = &weights.roots[c] * faer::Scale(weight);
            model.kernels[c].pull_back_root(scaled.as_ref(), own);
        }
    }
    let of_likelihood = &mut gradient[layout[1 + functions].clone()];
    of_likelihood.iter_mut().zip(&terms.parameters).for_each(|(g, p)| *g += scale * p);
    Ok(GeneralisedEvaluation {
        value: risk + weight * value,
        risk,
        regularisation: *value,
        gradient,
        floored: evaluated.iter().map(Evaluated::floored).sum(),
        reference_floored: known.raised(),
        clipped: regularisation.clipped,
        unresolved: regularisation.unresolved,
        regulariser_jitter: regularisation.relative_jitter,
        left_out: regularisation.left_out,
        relative_jitter: evaluated.iter().map(Evaluated::relative_jitter).fold(0.0, f64::max),
    })
}
