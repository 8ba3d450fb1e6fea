//! Numbers and tables: winners beside the published ones, and what each option is worth.

use super::configuration::Configuration;
use super::problem::Problem;
use super::sweep::{OfCurve, Sweep};
use super::tallies::{median, tallies};
use super::training::Scores;
use crate::kinds::prelude::*;

/// The words for a configuration in one cell.
fn words(configuration: &Configuration) -> String {
    configuration.values().join(", ")
}

/// Numbers of a fit.
fn numbers(configuration: &Configuration, scores: Option<&Scores>, problem: &Problem) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("words".into(), json!(words(configuration)));
    for (name, value) in super::configuration::OPTIONS.iter().zip(configuration.values()) {
        out.insert((*name).into(), json!(value));
    }
    let Some(s) = scores else { return out };
    let rows = problem.rows().map(|rows| rows as f64);
    let parts = [s.train, s.validation, s.test];
    let full = parts.iter().zip(rows).map(|(nll, n)| nll * n).sum::<f64>() / rows.iter().sum::<f64>();
    out.insert("full".into(), json!(full));
    out.extend(json!(s).as_object().cloned().unwrap_or_default());
    out
}

/// What became of one curve.
fn of_curve(sweep: &Sweep<'_>, curve: usize, own: &OfCurve<'_>) -> Value {
    let of = |i: Option<usize>| {
        i.and_then(|i| Some((sweep.tasks[i].configuration, sweep.found[i].as_ref().ok()?)))
    };
    let problem = &sweep.problems[curve];
    let mut out = Map::new();
    let best = of(own.best);
    out.insert("fits".into(), json!(own.all.iter().filter(|i| sweep.found[**i].is_ok()).count()));
    if let Some((configuration, scores)) = &best {
        out.insert("ours".into(), Value::Object(numbers(configuration, Some(scores), problem)));
    }
    let Some(known) = sweep.known(curve) else { return Value::Object(out) };
    let published = of(own.published);
    out.insert("published".into(), Value::Object(numbers(&known.winner, published.map(|p| p.1), problem)));
    if let (Some((configuration, ours)), Some((_, theirs))) = (best, published) {
        out.insert("same".into(), json!(configuration == known.winner));
        out.insert("behind".into(), json!(theirs.validation - ours.validation));
        out.insert("behind_on_test".into(), json!(theirs.test - ours.test));
        out.insert("rank".into(), json!(own.rank()));
    }
    Value::Object(out)
}

/// Sums over the curves of a way of learning.
fn over_curves(sweep: &Sweep<'_>, way: usize) -> Value {
    let curves: Vec<OfCurve<'_>> = (0..sweep.problems.len()).map(|c| sweep.of_curve(way, c)).collect();
    let scores = |i: usize| sweep.found[i].as_ref().ok();
    let best: Vec<&Scores> = curves.iter().filter_map(|c| scores(c.best?)).collect();
    let published: Vec<&Scores> = curves.iter().filter_map(|c| scores(c.published?)).collect();
    let mean = |of: &[&Scores], value: fn(&Scores) -> f64| {
        of.iter().map(|s| value(s)).sum::<f64>() / of.len() as f64
    };
    let means = |of: &[&Scores]| {
        json!({
            "train": mean(of, |s| s.train), "validation": mean(of, |s| s.validation),
            "test": mean(of, |s| s.test), "coverage_90": mean(of, |s| s.coverage_90),
        })
    };
    let fits: Vec<usize> = (0..sweep.tasks.len()).filter(|i| sweep.tasks[*i].way == way).collect();
    let found: Vec<&Scores> = fits.iter().filter_map(|i| scores(*i)).collect();
    let ranks: Vec<f64> = curves.iter().filter_map(|c| c.rank()).map(|r| r as f64).collect();
    json!({
        "fits": fits.len(),
        "failed": fits.len() - found.len(),
        "seconds": found.iter().map(|s| s.seconds).sum::<f64>(),
        "mean_seconds": mean(&found, |s| s.seconds),
        "most_seconds": found.iter().map(|s| s.seconds).fold(0.0, f64::max),
        "mean_steps": mean(&found, |s| s.steps as f64),
        "median_validation": median(found.iter().map(|s| s.validation).collect()),
        "same": curves.iter().filter(|c| c.best.is_some() && c.best == c.published).count(),
        "median_rank": median(ranks),
        "worst_validation": best.iter().map(|s| s.validation).fold(f64::NEG_INFINITY, f64::max),
        "least_validation": best.iter().map(|s| s.validation).fold(f64::INFINITY, f64::min),
        "ours": means(&best),
        "published": means(&published),
    })
}

/// Tables of a way of learning, whose numbers are under `prefix`.
fn tables(sweep: &Sweep<'_>, way: usize, prefix: &str) -> Vec<NumberTable> {
    let curves: Vec<String> = sweep.settings.curves.iter().map(usize::to_string).collect();
    let by_curve = |title: &str, columns: &[(&str, &str)], caption: &str| {
        let (names, place) = (curves.iter().map(String::as_str), format!("{prefix}.curves"));
        NumberTable::by_name(
            &format!("{title} ({})", sweep.settings.ways[way].name),
            "curve",
            &place,
            names,
            columns,
            caption,
        )
    };
    let scores = |of: &'static str| -> Vec<(String, &'static str)> {
        let heads = [
            ("points", "M"),
            ("alpha", "tempering"),
            ("train", "NLL of training rows"),
            ("validation", "of validation rows"),
            ("test", "of test rows"),
            ("full", "of all rows"),
            ("rmse", "RMSE of test rows"),
            ("coverage_90", "coverage of 90 %"),
            ("steps", "steps"),
        ];
        heads.into_iter().map(|(key, head)| (format!("{of}.{key}"), head)).collect()
    };
    let level = "The curves themselves with their noise score 0.726 on average.";
    let own = scores("ours");
    let own: Vec<(&str, &str)> = own.iter().map(|(key, head)| (key.as_str(), *head)).collect();
    if sweep.settings.grid.is_none() {
        let columns = [vec![("published.words", "setting")], own].concat();
        return vec![by_curve("The settings of the file", &columns, level)];
    }
    let beside = [
        ("ours.words", "ours: power, prior, kernel, mode, regulariser, step size"),
        ("published.words", "published"),
        ("same", "the same"),
        ("rank", "rank of the published one"),
        ("ours.validation", "validation NLL of ours"),
        ("published.validation", "of the published one"),
        ("ours.test", "test NLL of ours"),
        ("published.test", "of the published one"),
    ];
    let mut out = vec![
        by_curve(
            "Winners beside the published ones",
            &beside,
            "By the NLL of the rows held back, by which tempering was chosen as well. Numbers of the published settings are those of our own fits.",
        ),
        by_curve("Winners", &own, level),
    ];
    for (option, values) in tallies(sweep, way) {
        out.push(NumberTable::by_name(
            &format!("By {option} ({})", sweep.settings.ways[way].name),
            option,
            &format!("{prefix}.options.{option}"),
            values.iter().map(|t| t.value.as_str()),
            &[
                ("wins", "curves won"),
                ("published", "won as published"),
                ("median", "median validation NLL"),
                ("rank", "mean rank"),
                ("fits", "fits"),
            ],
            "Medians over all fits with the value; ranks by medians on each curve, averaged over curves.",
        ));
    }
    out
}

/// Numbers, tables and facts.
pub(super) fn measured(sweep: &Sweep<'_>) -> Measured {
    let mut ways = Map::new();
    let mut out = Measured::default();
    for (way, learning) in sweep.settings.ways.iter().enumerate() {
        let curves = (0..sweep.problems.len()).map(|curve| {
            let number = sweep.settings.curves[curve].to_string();
            (number, of_curve(sweep, curve, &sweep.of_curve(way, curve)))
        });
        let mut options = Map::new();
        for (option, values) in tallies(sweep, way) {
            let own = values.iter().map(|t| (t.value.clone(), json!(t)));
            options.insert(option.into(), Value::Object(own.collect()));
        }
        ways.insert(
            learning.name.clone(),
            json!({
                "curves": Value::Object(curves.collect()), "options": options,
                "all": over_curves(sweep, way),
            }),
        );
        out.tables.extend(tables(sweep, way, &format!("ways.{}", learning.name)));
    }
    for problem in &sweep.problems {
        let rows = problem.rows();
        out.facts.push(SummaryRow::new(
            format!("curve {}", problem.number),
            format!("{} rows to learn from, {} held back, {} to test on", rows[0], rows[1], rows[2]),
        ));
    }
    out.facts.push(SummaryRow::new("fits", sweep.tasks.len().to_string()));
    out.numbers = json!({ "ways": ways });
    out
}
