//! A second search, where the first one ends at a function whose variance is more than a solver can follow under its noise.
//!
//! The evidence of smooth functions under little noise hardly changes while variance and lengthscales grow together, so that searches end anywhere on that ridge. To raise the noise of such a model until its system can be solved drowns what rows say (as much noise as the
//! targets have, where the variance is 10⁸); a search that may not go so far finds a model that is as good and can be solved.

use super::Fitting;
use super::all_rows::evidence_of_row;
use super::hyperparameters::{MOST_SIGNAL, Searched, initial, signal, source};
use super::stages::Stages;
use crate::method::training::{Allowance, CheckpointWriter, Found, Stage, Wanted, may_search_again};
use crate::options::IterativeOptions;
use crate::{Hyperparameter, ModelError, SolverPrecision};
use posterior_gp::exact::ExactGp;
use posterior_optim::Constraint;

/// A function's variance that is more than what can be followed by less than this factor is left to a little more noise.
const WORTH: f64 = 3.0;

/// Variances of the target that a function may have in any case, whatever its noise.
const LEAST: f64 = 10.0;

/// Of the time that is left, what the second search is told that it has; its stages take two fifths of that.
const SHARE: f64 = 0.6;

/// Hyperparameters that a solver in precision S can follow: those that were found, or, where their noise would have to be raised by much, those of a second search in which the function's variance has a bound. Given ones stay, those of searches that were asked for by name,
/// and where a variance is constrained already.
pub(crate) fn limited<T: SolverPrecision, S: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    options: &IterativeOptions,
    searched: Searched<T>,
) -> Result<Searched<T>, ModelError> {
    let Fitting { prepared, request, held, allowance, .. } = *fitting;
    let wanted = searched.as_found();
    let most = MOST_SIGNAL[usize::from(size_of::<S>() > 4)];
    let noise = wanted.noise().noise_variance();
    let ratio = signal(&wanted, prepared) / noise;
    let constrained = options.evidence.constraints.all();
    let known = searched.found.wanted.is_some();
    if ratio.is_nan() || ratio <= WORTH * most || known || !may_search_again(request, options) {
        return Ok(searched);
    }
    let largest = (most * noise).max(LEAST);
    let mut limits = bounds(&wanted, largest, largest / (ratio * noise));
    if limits.is_empty() {
        return Ok(searched);
    }
    if !constrained.iter().any(|known| known.parameter().starts_with("noise_variance")) {
        limits.push(between("noise_variance", (largest / most).max(noise), f64::MAX.sqrt()));
    }
    let mut own = options.clone();
    own.evidence.constraints.bound.extend(limits.iter().cloned());
    let within = &Allowance::new(allowance.left().map(|left| SHARE * left));
    let mut found = Found::default();
    // It begins anew after an interruption.
    let checkpoints = &mut CheckpointWriter::new(None, f64::INFINITY);
    let observer = &mut *fitting.observer;
    let second = &mut Fitting { prepared, request, held, allowance: within, checkpoints, observer };
    let mut stages = Stages { fitting: second, options: &own, hyperpriors: &searched.hyperpriors };
    let model = match stages.on_blocks::<T>(initial(prepared, request)?, &mut found) {
        Ok(model) => model,
        Err(ModelError::Interrupted) => return Err(ModelError::Interrupted),
        // There is a model at hand.
        Err(_) => return Ok(searched),
    };
    // These bounds are not the user's.
    let limit = |name: &String| limits.iter().any(|own| own.parameter() == name);
    found.blocks.iter_mut().for_each(|(fit, _)| fit.at_bounds.retain(|(name, _)| !limit(name)));
    let evidence = |model: &ExactGp| evidence_of_row(model, &prepared.data, request.seed);
    let (before, raised, after) = (evidence(&wanted), evidence(&searched.model), evidence(&model));
    let seconds = searched.found.seconds + found.seconds;
    // One without an evidence is worth less than any.
    let raised = raised.unwrap_or(f64::NEG_INFINITY);
    let Some(after) = after.ok().filter(|after| *after >= raised) else {
        let found = Found { seconds, ..searched.found };
        return Ok(Searched { found, ..searched });
    };
    // Where the first search had lost its way, what is found now is what the evidence wants.
    let fall = before.ok().map(|before| before - after).filter(|fall| *fall > 0.0);
    let found = Found {
        hyperparameters: Hyperparameter::of(&model),
        blocks: found.blocks,
        noise_raised_from: found.noise_raised_from,
        wanted: fall.map(|fall| Wanted {
            hyperparameters: Hyperparameter::of(&wanted),
            ratio,
            largest,
            fall,
        }),
        seconds,
        largest_jitter: searched.found.largest_jitter.max(found.largest_jitter),
        following_failed: None,
        search: None,
        ..searched.found
    };
    fitting.checkpoints.save::<T>(&found, Stage::Between)?;
    let source = source(prepared, &own, &found, &model);
    Ok(Searched { model, found, source, hyperpriors: searched.hyperpriors, solutions: None })
}

/// Upper bounds of the variances of a kernel's parts: an equal share of the largest for each, more for those that have more of it once all are scaled down by `factor`; of a sum twice the largest at most, of a product of sums what these make of it.
fn bounds(model: &ExactGp, largest: f64, factor: f64) -> Vec<Constraint> {
    let (values, segments) = (model.kernel().values(), model.kernel().segments());
    let mut first = 0;
    let mut all = Vec::new();
    for segment in &segments {
        let own = &values[first..first + segment.len()];
        first += segment.len();
        if segment.name.ends_with(".variance") {
            all.extend(segment.entry_names().into_iter().zip(own.iter().copied()));
        }
    }
    let share = largest / all.len().max(1) as f64;
    let upper = |value: f64| (factor * value).max(share);
    all.into_iter().map(|(name, value)| between(&name, upper(value) * 1e-12, upper(value))).collect()
}

fn between(parameter: &str, lower: f64, upper: f64) -> Constraint {
    Constraint::Between { parameter: parameter.into(), lower, upper }
}
