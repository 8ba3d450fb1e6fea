//! Joint log-likelihoods of several labels, which see whether a posterior knows how its errors depend on each other.

use crate::model::Networks;
use crate::{JointRow, ModelData, ModelError, Question};
use posterior_laplace::LaplaceError;
use posterior_linalg::tiles::pieces;
use posterior_metrics::DyadicGroups;
use posterior_notes::fixes::MEMORY;

/// Of sets of the question's `joint_points` examples each, by dyadic sampling ([`DyadicGroups`]). The functions of all networks of an ensemble are its functions: a plain network is one; of networks with
/// error bars each is asked for the question's number of draws, so that all weigh the same.
pub(crate) fn scores(
    model: &Networks<'_>,
    data: &ModelData,
    question: &Question,
) -> Result<Vec<JointRow>, ModelError> {
    let mut table = Vec::new();
    for (k, member) in model.members().iter().enumerate() {
        table.extend(match model.is_plain() {
            true => densities(member, data)?,
            false => {
                let seed = model.seed_of(k, question.seed);
                log_likelihoods(member, data, &Question { seed, ..question.clone() })?
            }
        });
    }
    let (plain, n) = (densities(&model.first(), data)?, data.len());
    let row = |&points: &usize| {
        let groups = DyadicGroups::new(points, question.seed);
        Ok(JointRow { points, model: groups.score(&table, n)?, plain: groups.score(&plain, n)? })
    };
    question.joint_points.iter().map(row).collect()
}

/// Log densities of the truths under the network alone.
fn densities(model: &Networks<'_>, data: &ModelData) -> Result<Vec<f64>, ModelError> {
    model.predict_plain(data)?.log_density.ok_or_else(|| no_truths(data))
}

/// Scores were asked for, and there is nothing to score against.
pub(crate) fn no_truths(data: &ModelData) -> ModelError {
    ModelError::Request(format!("{}: there are no truths to score against", data.name))
}

/// `log p(y_i | f_s(x_i))` of each of the question's draws of one network, `[draws, examples]`, in the target's units.
///
/// Memory: the draws of all weights, and the functions at some examples at a time.
fn log_likelihoods(
    model: &Networks<'_>,
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
    let output = &model.output;
    let (centre, scale) = output.units;
    let outputs = output.outputs();
    let n = data.len();
    let mut table = vec![0.0; samples * n];
    // Functions come in the target's units where these are the target's.
    let own_units = |f: f64| if outputs == 1 { (f - centre) / scale } else { f };
    let each = (memory / 32 / (samples * outputs).max(1) as u64).clamp(1, 1 << 20) as usize;
    // Where no functions are drawn, values at different inputs must be drawn together.
    let each = if model.posterior()?.draws_functions() { each } else { n };
    for range in pieces(n, each) {
        let piece = data.selected(&range.clone().collect::<Vec<_>>())?;
        let functions = model.function_samples(&piece, samples, seed, memory)?;
        for (k, function) in functions.chunks_exact(range.len() * outputs).enumerate() {
            for (i, f) in function.chunks_exact(outputs).enumerate() {
                let f: Vec<f64> = f.iter().map(|f| own_units(*f)).collect();
                let y = output.in_units(truth, range.start + i);
                table[k * n + range.start + i] = output.likelihood.log_density(&y, &f) - output.jacobian();
            }
        }
    }
    Ok(table)
}
