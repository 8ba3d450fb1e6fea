//! How good a fit is on rows that had no part in it.

use super::events;
use super::observed::Observed;
use crate::calibration::JudgedRows;
use crate::output::{Observing, baseline, noise_square};
use crate::rows::mean_and_error;
use crate::{
    CheckedOn, LabelCheck, LabelScores, Latent, ModelError, Predicted, Predictive, Predictor, Target, Want,
};
use posterior_data::Split;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_metrics::Classes;

/// A check, with the predictions that it is of.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) check: LabelCheck,
    /// None of events, which are no rows.
    pub(crate) rows: Option<JudgedRows>,
    /// `-log p(y)` of each of these rows in nats, in the target's units.
    pub(crate) surprises: Vec<f64>,
}

impl Judged {
    /// From the latent values of some rows, their truths as the likelihood takes them, what there is to know of targets without inputs, and the rows' offsets.
    pub(crate) fn of(
        on: CheckedOn,
        latents: Latent,
        (target, likelihood): (&Target, &OutputLikelihood),
        truths: &[f64],
        (marginal, offsets): (&[f64], Option<&[f64]>),
    ) -> Result<Self, ModelError> {
        let remedy = match likelihood {
            OutputLikelihood::Poisson(_) => "; --likelihood negative-binomial learns how much counts scatter",
            _ => "",
        };
        let latents = latents.with_offsets(offsets);
        let observing = Observing::new(likelihood, target, None)?;
        let Predictive { mut predicted, width, log_density, .. } =
            observing.predictive(&latents, Some(truths))?;
        let baseline = &baseline(target, marginal, truths, offsets);
        let rows = truths.len();
        let mean_nll = |l: &[f64]| -l.iter().sum::<f64>() / rows.max(1) as f64;
        let nll = mean_nll(log_density.as_deref().unwrap_or_default());
        let mut scores = LabelScores { nll, accuracy: None, ece: None, within_two_deviations: None };
        let (mut warnings, mut own) = (Vec::new(), truths.to_vec());
        match &mut predicted {
            Predicted::Classes(p) => {
                let labels: Vec<usize> = truths.iter().map(|y| *y as usize).collect();
                let found = Classes::new(p, width, &labels)?.scores();
                (scores.accuracy, scores.ece) = (Some(found.accuracy), Some(found.ece));
            }
            Predicted::Moments { mean, variance, latent_variance } => {
                let (shift, scale) = target.units();
                own.iter_mut().for_each(|y| *y = shift + scale * *y);
                let inside = (0..rows).filter(|&i| (own[i] - mean[i]).powi(2) <= 4.0 * variance[i]).count();
                let share = inside as f64 / rows.max(1) as f64;
                scores.within_two_deviations = Some(share);
                // Chebyshev's inequality allows no less than three quarters; counts that scatter as the model says keep well above nine tenths.
                let least = 0.9 - 2.576 * (0.09 / rows.max(1) as f64).sqrt();
                if share < least {
                    warnings.push(format!(
                        "{:.1} % of {rows} rows only lie within two predicted standard deviations: targets scatter more than the likelihood allows{remedy}",
                        100.0 * share
                    ));
                }
                if let Some(noise) = noise_square(target, likelihood) {
                    *variance = latent_variance.iter().map(|latent| latent + noise).collect();
                }
            }
            Predicted::Events(_) => {}
        }
        let baseline_nll = mean_nll(baseline);
        // Within a standard error of the difference nothing is said.
        let differences: Vec<f64> =
            log_density.iter().flatten().zip(baseline).map(|(own, other)| other - own).collect();
        let [gain, error] = mean_and_error(&differences);
        if gain > -error {
            warnings.push(format!(
                "the inputs tell next to nothing of the target: NLL {nll:.4} beside {baseline_nll:.4} for its distribution alone{remedy}"
            ));
        }
        let check =
            LabelCheck { on, rows, training_duplicates: 0, duplicates: 0, scores, baseline_nll, warnings };
        let surprises = log_density.unwrap_or_default().into_iter().map(|density| -density).collect();
        Ok(Self {
            check,
            rows: Some(JudgedRows { predicted, width, truths: own, shares: marginal.to_vec() }),
            surprises,
        })
    }
}

/// Scores of rows that were held back; of events beside nodes that the seed moves.
pub(crate) fn judged(
    predictor: &dyn Predictor,
    likelihood: &OutputLikelihood,
    held: &Observed,
    (marginal, seed): (&[f64], u64),
) -> Result<Judged, ModelError> {
    if matches!(held.target, Target::Events { .. }) {
        let check = events::judged(predictor, held, seed)?;
        return Ok(Judged { check, rows: None, surprises: Vec::new() });
    }
    let latents = predictor.latent(held.data.inputs().into(), &Want::default())?;
    let kind = (&held.target, likelihood);
    Judged::of(CheckedOn::HeldBack, latents, kind, &held.targets(), (marginal, held.data.offsets()))
}

/// `-log p(y)` of each of these rows, nats.
pub(crate) fn surprises(
    predictor: &dyn Predictor,
    likelihood: &OutputLikelihood,
    held: &Observed,
) -> Result<Vec<f64>, ModelError> {
    let latents =
        predictor.latent(held.data.inputs().into(), &Want::default())?.with_offsets(held.data.offsets());
    let observing = Observing::new(likelihood, &held.target, None)?;
    let found = observing.predictive(&latents, Some(&held.targets()))?;
    Ok(found.log_density.unwrap_or_default().into_iter().map(|density| -density).collect())
}

/// Rows below which halves say nothing of hyperparameters.
const FEWEST: usize = 8;

/// **Rows that are predicted from the others, under hyperparameters that their own half had no part in.**
///
/// Predicting a row from the others has a closed form under given hyperparameters. Where these were learned on the same rows, the scores are too good: 0.475 nats a row, beside 0.590 on new rows, with a
/// lengthscale for each of 61 columns and 666 rows of credit ratings. They also prefer models that overfit. So the rows are parted in two
/// halves, each with its share of every class; hyperparameters are learned on one half, and every row of the other is predicted from all others under them. A search on half the rows costs an eighth of one on
/// all, twice that a quarter.
///
/// The latent values of `rows`, as `predict` gives them for all rows under hyperparameters of those at some places in `rows`: of each half, those that the other half chose. Of very few rows, and where hyperparameters are
/// given (not `learned`), under those of all rows.
pub(crate) fn crossed(
    observed: &Observed,
    rows: &[usize],
    (learned, seed): (bool, u64),
    mut predict: impl FnMut(&[usize]) -> Result<Latent, ModelError>,
) -> Result<Latent, ModelError> {
    if !learned || rows.len() < FEWEST {
        return predict(&(0..rows.len()).collect::<Vec<_>>());
    }
    let classes: Option<Vec<usize>> = match &observed.target {
        Target::Classes { .. } => {
            let all = observed.targets();
            Some(rows.iter().map(|&row| all[row] as usize).collect())
        }
        _ => None,
    };
    let half = |k| {
        let streams = Streams::new(seed).child("model/halves", 0);
        Split::fold(rows.len(), (2, k), classes.as_deref(), streams).map_err(ModelError::Request)
    };
    let first = half(0)?;
    let mut out = predict(&first.train)?;
    out.take(&predict(&half(1)?.train)?, &first.train);
    Ok(out)
}
