//! A process for programs: what was fitted and how that went, beside the header of its file.

use crate::{
    FitRecord, FitSummary, GaussianOutput, GeneralisedSummary, LikelihoodOutput, Output, Process,
    ProcessRecord,
};
use posterior_store::{StoreError, json, to_shown_value};
use serde_json::Value;

/// All that programs are told of a process.
///
/// # Errors
/// When JSON cannot hold it.
pub(crate) fn report(model: &Process<'_>) -> Result<Value, StoreError> {
    let (schema, record) = (&model.inputs.schema, model.record);
    let notes: Vec<String> = model.notes().into_iter().map(|n| n.text()).collect();
    let mut found = match (model.output, &record.fit) {
        (Output::Gaussian(output), FitRecord::Gaussian(fit)) => of_numbers(output, record, fit),
        (Output::Likelihood(output), FitRecord::Likelihood(fit)) => of_labels(output, fit),
        _ => json!({}),
    };
    if let Some(solver) = &record.solver {
        found["solver"] = solver.clone().into();
        found["classes"] = model.output.class_names().into();
    }
    let header = to_shown_value(&model.header())?;
    let parts = to_shown_value(&model.parts())?;
    for (key, value) in [
        ("kind", json!("model")),
        ("method", json!(record.method)),
        ("n", json!(record.rows)),
        ("features", json!(schema.feature_names())),
        ("target", json!(schema.target)),
        ("kernel", json!(record.kernel.to_string())),
        ("hyperparameters", json!(record.hyperparameters)),
        ("seconds", json!(record.fit.seconds())),
        ("notes", json!(notes)),
        ("seed", json!(record.seed)),
        ("header", header),
    ] {
        found[key] = value;
    }
    // What its kernel is made of, where that is something.
    if !parts.as_object().is_some_and(serde_json::Map::is_empty) {
        found["parts"] = parts;
    }
    Ok(found)
}

/// What only models of numbers with Gaussian noise have, and how their fit went.
fn of_numbers(output: &GaussianOutput, record: &ProcessRecord, fit: &FitSummary) -> Value {
    json!({
        "choice": fit.choice,
        // What it is mapped by, and what was compared.
        "target_transform": fit.transform,
        // How far observations scatter at each place, and what weighs rows.
        "heteroscedastic_noise": output.noise,
        "weights": fit.weights,
        "log_evidence": fit.log_evidence,
        // Rows that were added to a fit whose hyperparameters stayed.
        "continued": record.continued,
        "large_table": fit.scalable,
        // How good it is on rows that had no part in it.
        "check": fit.check,
        "recalibration": fit.recalibration,
        "hyperparameter_source": fit.hyperparameter_source,
        "at_bounds": fit.at_bounds,
        "hyperpriors": fit.hyperpriors,
        "steps": fit.steps,
        "evaluations": fit.evaluations,
        "ended": fit.reason,
        "starts": fit.attempts,
        "jitter": record.cholesky.unwrap_or_default().jitter,
        "largest_jitter": fit.largest_jitter,
        "planned_memory_bytes": fit.plan.peak_bytes,
        "data": fit.data,
    })
}

/// The same of models under another likelihood.
fn of_labels(output: &LikelihoodOutput, fit: &GeneralisedSummary) -> Value {
    let gaussian_labels = fit.gaussian_labels.as_ref().map(|s| {
        json!({
            "matching": s.gaussianised.matching(),
            "pseudo_count": s.gaussianised.pseudo_count(),
            "tried": s.tried,
            "tried_on_rows": s.tried_on,
            "bounds": s.bounds,
        })
    });
    json!({
        "choice": fit.choice,
        "tried": fit.tried,
        "likelihood": output.likelihood,
        "likelihood_choice": fit.likelihood_choice,
        "marginal": output.marginal,
        "gaussian_labels": gaussian_labels,
        "bound": fit.bound,
        "mode": fit.mode,
        "learned_features": fit.features,
        // How good it is on rows that had no part in it.
        "check": fit.check,
        "recalibration": fit.recalibration,
        "intervals": fit.intervals,
        "weights": fit.weights,
        "at_bounds": fit.at_bounds,
        "hyperparameter_source": fit.hyperparameter_source,
        "hyperpriors": fit.hyperpriors,
        "steps": fit.steps,
        "evaluations": fit.evaluations,
        "ended": fit.reason,
        "largest_jitter": fit.largest_jitter,
        "planned_memory_bytes": fit.plan.peak_bytes,
        "data": fit.data,
    })
}
