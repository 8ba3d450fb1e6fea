//! Numbers, tables and curves of both objectives.

use super::descents::{Errors, Variances};
use super::{OBJECTIVES, Settings};
use crate::kinds::prelude::*;

/// Descents with their objective and size of batches.
pub(super) type Found = (&'static str, usize, Errors);

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half the largest distance between repeats.
fn spread(values: &[f64]) -> f64 {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    0.5 * (high - low)
}

/// Errors by size of batches, which are ascending: of the weights, or in the posterior's norm.
fn curve(found: &[Found], name: &str, of: fn(&Errors) -> &[f64]) -> Vec<(f64, f64)> {
    found.iter().filter(|f| f.0 == name).map(|f| (f.1 as f64, mean(of(&f.2)))).collect()
}

fn of_weights(errors: &Errors) -> &[f64] {
    &errors.errors
}

fn in_norm(errors: &Errors) -> &[f64] {
    &errors.norm_errors
}

/// The size of batches with which a curve of errors first comes down to one: between sizes by the straight line of both logarithms; the smallest size where it lies below from the beginning, none where it
/// never does.
fn size_for(curve: &[(f64, f64)], error: f64) -> Option<f64> {
    let first = curve.iter().position(|p| p.1 <= error)?;
    let Some(before) = first.checked_sub(1) else { return Some(curve[0].0) };
    let ((x0, y0), (x1, y1)) = (curve[before], curve[first]);
    let share = (y0 / error).ln() / (y0 / y1).ln();
    Some((x0.ln() + share * (x1 / x0).ln()).exp())
}

pub(super) fn measured(
    settings: &Settings,
    fact: SummaryRow,
    found: &[Found],
    variances: &Variances,
) -> Measured {
    let numbers = numbers(settings, found, variances);
    let rows: Vec<String> = settings.batches.iter().map(|b| format!("batch {b}")).collect();
    let table = |name: &str| {
        NumberTable::by_name(
            &format!("Errors of samples: {name} objective"),
            "examples of a batch",
            &format!("objectives.{name}"),
            rows.iter().map(String::as_str),
            &[
                ("start", "at the start"),
                ("error", "after all steps"),
                ("spread", "of repeats, ±"),
                ("norm_error", "in the posterior's norm"),
                ("share", "step size, of the inverse largest curvature"),
                ("at_edge", "at an end of the grid"),
                ("size_of_other", "batches of the low-variance objective for the same error of the weights"),
                ("advantage", "so much smaller"),
                ("advantage_in_norm", "the same in the posterior's norm"),
            ],
            "Relative error of the weights, the mean over samples, of the average that descent returns. The step size is the one with the least loss on the training images; both objectives have the same loss up to a constant.",
        )
    };
    let line = |(name, batch, errors): &Found| {
        through(format!("{name}, {batch}"), errors.points.iter().map(|p| (p.0 as f64, p.1)))
    };
    let by_size = OBJECTIVES.iter().map(|(name, _)| through(*name, curve(found, name, of_weights)));
    let heading = |title: &str, x: &str, lines| {
        Curves::new(title.to_string(), x.to_string(), "relative error of the weights".to_string(), lines)
    };
    let series = |(name, batch, errors): &Found| {
        (format!("{name}, batch {batch}"), json!({"points": errors.points, "tried": errors.tried}))
    };
    Measured {
        series: found.iter().map(series).collect::<Map<_, _>>().into(),
        tables: vec![
            table(OBJECTIVES[0].0),
            table(OBJECTIVES[1].0),
            NumberTable {
                title: "Noise of the solution".into(),
                head: ["examples of a batch".into(), "loss above the minimum, standard over low-variance".into()].into(),
                rows: rows.iter().map(|row| (row.clone(), vec![format!("noise_ratio.{row}")])).collect(),
                caption: "With the same batches and the largest step with which neither diverges. An epoch shows every image once, so that noise cancels over an epoch: where that is short, errors fall faster than with the root of the batches' size, and less of a ratio of variances is left as one of sizes.".into(),
            },
            NumberTable::of_quantities(
                "Variances of gradients at the solution",
                ["quantity", "value"],
                &[
                    ("single images, standard objective", "variances.standard"),
                    ("single images, low-variance objective", "variances.low_variance"),
                    ("the first over the second", "variances.ratio"),
                    ("the first minus the second, by their formula", "variances.difference"),
                    ("what was measured, over that", "variances.measured_difference_over_formula"),
                    ("how many standard errors lie between them", "variances.measured_difference_in_errors"),
                    ("average leverage", "variances.leverage"),
                    ("trace of the curvature", "variances.trace"),
                    ("2 a γ, of the published criterion", "variances.published"),
                    ("effective dimension γ", "variances.effective_dimension"),
                    ("largest curvature over the prior precision", "variances.condition"),
                ],
            ),
        ],
        figures: vec![
            heading(
                "Errors of posterior samples by size of the batches",
                "examples of a batch",
                by_size.collect(),
            )
            .logarithmic(true, true)
            .into(),
            heading("Errors of posterior samples", "step", found.iter().map(line).collect())
                .logarithmic(false, true)
                .captioned("Names end in the number of examples of a batch.")
                .into(),
        ],
        facts: vec![fact],
        notes: Vec::new(),
        numbers,
    }
}

/// The loss above its minimum that the second of two objectives comes to, over that of the first, with the same batches and the largest step with which neither diverges: there it is the gradient's noise, and not what the steps have not reached.
fn noise_ratio(found: &[Found], batch: usize) -> Option<f64> {
    let tried = |name: &str| found.iter().find(|f| f.0 == name && f.1 == batch).map(|f| &f.2.tried);
    let (low, standard) = (tried(OBJECTIVES[0].0)?, tried(OBJECTIVES[1].0)?);
    low.iter().zip(standard).rev().find_map(|(a, b)| Some(b.1? / a.1?))
}

fn numbers(settings: &Settings, found: &[Found], variances: &Variances) -> Value {
    let low = curve(found, OBJECTIVES[0].0, of_weights);
    let low_in_norm = curve(found, OBJECTIVES[0].0, in_norm);
    let mut objectives = Map::new();
    for (name, ..) in OBJECTIVES {
        let of = |(_, batch, errors): &Found| {
            let error = mean(&errors.errors);
            let at_edge = errors.chosen == 0 || errors.chosen + 1 == errors.tried.len();
            let size = size_for(&low, error);
            let numbers = json!({
                "start": errors.points.first().map(|p| p.1),
                "error": error,
                "spread": spread(&errors.errors),
                "norm_error": mean(&errors.norm_errors),
                "share": errors.tried[errors.chosen].0,
                "step_size": errors.step_size,
                "at_edge": u8::from(at_edge),
                "diverged": errors.tried.iter().filter(|t| t.1.is_none()).count(),
                "size_of_other": size,
                "advantage": size.map(|s| *batch as f64 / s),
                "advantage_in_norm": size_for(&low_in_norm, mean(&errors.norm_errors)).map(|s| *batch as f64 / s),
            });
            (format!("batch {batch}"), numbers)
        };
        let mut own: Map<String, Value> = found.iter().filter(|f| f.0 == name).map(of).collect();
        // For claims about any sizes.
        for (which, batch) in [("smallest", settings.batches.first()), ("largest", settings.batches.last())] {
            let numbers = batch.and_then(|b| own.get(&format!("batch {b}"))).cloned();
            own.insert(which.into(), numbers.unwrap_or_default());
        }
        objectives.insert(name.into(), Value::Object(own));
    }
    let noise: Map<String, Value> =
        settings.batches.iter().map(|b| (format!("batch {b}"), noise_ratio(found, *b).into())).collect();
    let of_largest = |key: &str| objectives[OBJECTIVES[1].0]["largest"][key].clone();
    let (formulas, [low, standard]) = (variances.formulas, variances.measured);
    let precision = settings.descent.precision;
    let (of_weights, in_norm) = (of_largest("advantage"), of_largest("advantage_in_norm"));
    json!({
        "objectives": objectives,
        "batch_advantage": of_weights,
        "batch_advantage_in_norm": in_norm,
        "noise_ratio": noise,
        "variances": {
            "trace": formulas.trace,
            "published": formulas.published,
            "published_criterion": formulas.published / formulas.trace,
            "difference": formulas.difference,
            "low_variance": low,
            "standard": standard,
            "ratio": standard / low,
            "measured_difference_over_formula": (standard - low) / formulas.difference,
            "measured_difference_in_errors": (standard - low - formulas.difference).abs() / variances.error,
            // Of single images' curvatures in the posterior, sum Tr(M_i H^-1 M_i) / Tr M.
            "leverage": low / (variances.images as f64 * formulas.trace),
            "effective_dimension": 0.5 * formulas.published / precision,
            "condition": variances.steepness / precision,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_an_error_lie_on_lines_of_logarithms() {
        let curve = [(10.0, 0.8), (40.0, 0.4), (160.0, 0.2)];
        assert_eq!(size_for(&curve, 0.9), Some(10.0));
        assert!((size_for(&curve, 0.4).unwrap() - 40.0).abs() < 1e-9);
        // The error falls with the root of the size.
        assert!((size_for(&curve, 0.8 / 2f64.sqrt()).unwrap() - 20.0).abs() < 1e-9);
        assert!((size_for(&curve, 0.25).unwrap() - 102.4).abs() < 1e-9);
        assert_eq!(size_for(&curve, 0.1), None);
    }

    #[test]
    fn repeats_are_summed_up() {
        assert_eq!((mean(&[1.0, 2.0, 6.0]), spread(&[1.0, 2.0, 6.0]), spread(&[3.0])), (3.0, 2.5, 0.0));
    }
}
