//! Joint log-likelihoods of several labels, which see whether a posterior knows how its errors depend on each other.

use super::LaplaceModel;
use super::asked::no_truths;
use super::model::in_precision;
use super::predict::{jacobian, target};
use crate::{JointRow, ModelData, ModelError, Question};
use posterior_laplace::LaplaceError;
use posterior_linalg::tiles::pieces;
use posterior_metrics::DyadicGroups;
use posterior_notes::fixes::MEMORY;

/// Of sets of the question's `joint_points` examples each, by dyadic sampling ([`DyadicGroups`]).
pub(super) fn scores(
    model: &LaplaceModel,
    data: &ModelData,
    question: &Question,
) -> Result<Vec<JointRow>, ModelError> {
    let (table, n) = (joint_log_likelihoods(model, data, question)?, data.len());
    let plain = model.predict_plain(data)?.log_density.unwrap_or_default();
    let row = |&points: &usize| {
        let groups = DyadicGroups::new(points, question.seed);
        Ok(JointRow { points, model: groups.score(&table, n)?, plain: groups.score(&plain, n)? })
    };
    question.joint_points.iter().map(row).collect()
}

/// `log p(y_i | f_s(x_i))` of each of the question's draws, `[draws, examples]`, in the target's units.
///
/// Memory: the draws of all weights, and the functions at some examples at a time.
pub(crate) fn joint_log_likelihoods(
    model: &LaplaceModel,
    data: &ModelData,
    question: &Question,
) -> Result<Vec<f64>, ModelError> {
    let Question { samples, seed, memory, .. } = *question;
    let Some(truth) = &data.truth else { return Err(no_truths(data)) };
    let weights = (samples as u64).saturating_mul(model.weights() as u64).saturating_mul(16);
    if weights > memory {
        return Err(LaplaceError::Memory {
            what: format!("{samples} draws of {} weights", model.weights()),
            needed: weights,
            allowed: memory,
            remedy: format!("draw fewer functions, or allow more ({MEMORY})"),
        }
        .into());
    }
    let units = model.header.data.target_scale();
    let outputs: usize = model.graph().output_shape().iter().product();
    let n = data.len();
    let mut table = vec![0.0; samples * n];
    let likelihood = model.likelihood().clone();
    // Functions come in the target's units where these are the target's.
    let own_units = |f: f64| if outputs == 1 { (f - units.0) / units.1 } else { f };
    let each = (memory / 32 / (samples * outputs).max(1) as u64).clamp(1, 1 << 20) as usize;
    // Where no functions are drawn, values at different inputs must be drawn together.
    let together = in_precision!(&model.numbers, fitted => !fitted.laplace.draws_functions());
    let each = if together { n } else { each };
    for range in pieces(n, each) {
        let piece = data.selected(&range.clone().collect::<Vec<_>>())?;
        let functions = model.function_samples(&piece, samples, seed, memory)?;
        for (k, function) in functions.chunks_exact(range.len() * outputs).enumerate() {
            for (i, f) in function.chunks_exact(outputs).enumerate() {
                let f: Vec<f64> = f.iter().map(|f| own_units(*f)).collect();
                let y = target(truth, range.start + i, units);
                table[k * n + range.start + i] =
                    likelihood.log_density(&y, &f) - jacobian(&likelihood, units.1);
            }
        }
    }
    Ok(table)
}
