//! The tables: scores, hyperparameters, facts, notes. All text is escaped here.

use crate::{
    input::{Hyperparameter, Note, NoteLevel, RegressionReport, SummaryRow},
    text::{escape, number, percent, with_unit},
};
use posterior_metrics::RegressionScores;

/// Scores with their standardised values and, if there is one, the baseline's.
pub(crate) fn scores(report: &RegressionReport) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    let baseline = report.baseline.as_ref();
    let unit = report.target_unit.as_deref();
    let mut rows = String::new();
    // (label, better direction, value in units, standardised value)
    type Get = fn(&RegressionScores) -> f64;
    let plain: [(&str, bool, Get, Option<Get>); 5] = [
        ("RMSE", true, |s| s.rmse, Some(|s| s.standardised.rmse)),
        ("MAE", true, |s| s.mae, Some(|s| s.standardised.mae)),
        ("CRPS", true, |s| s.crps, Some(|s| s.standardised.crps)),
        ("NLL", false, |s| s.nll, Some(|s| s.standardised.nll)),
        ("CQM", false, |s| s.cqm, None),
    ];
    for (label, has_unit, get, standardised) in plain {
        let name = with_unit(label, unit.filter(|_| has_unit));
        let standardised = standardised.map_or("–".to_owned(), |get| number(get(scores), 4));
        let other = baseline.map(|b| number(get(&b.scores), 4));
        rows += &row(&name, &number(get(scores), 4), &standardised, other.as_deref());
    }
    let intervals: [(&str, Get, Get); 4] = [
        ("50 %", |s| s.coverage_50, |s| s.width_50),
        ("80 %", |s| s.coverage_80, |s| s.width_80),
        ("90 %", |s| s.coverage_90, |s| s.width_90),
        ("95 %", |s| s.coverage_95, |s| s.width_95),
    ];
    for (level, coverage, width) in intervals {
        let other = baseline.map(|b| percent(coverage(&b.scores)));
        rows += &row(
            &format!("coverage of {level} intervals"),
            &percent(coverage(scores)),
            "–",
            other.as_deref(),
        );
        let other = baseline.map(|b| number(width(&b.scores), 4));
        let name = with_unit(&format!("mean width of {level} intervals"), unit);
        rows += &row(&name, &number(width(scores), 4), "–", other.as_deref());
    }
    let head = baseline.map_or(String::new(), |b| format!("<th scope=\"col\">{}</th>", escape(&b.name)));
    format!(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">score</th><th scope=\"col\">this model</th>\
         <th scope=\"col\">standardised</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn row(name: &str, value: &str, standardised: &str, baseline: Option<&str>) -> String {
    let last = baseline.map_or(String::new(), |b| format!("<td>{b}</td>"));
    format!("<tr><th scope=\"row\">{}</th><td>{value}</td><td>{standardised}</td>{last}</tr>", escape(name))
}

/// Hyperparameters with unit and meaning.
pub(crate) fn hyperparameters(parameters: &[Hyperparameter]) -> String {
    let rows: String = parameters
        .iter()
        .map(|p| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"left\">{}</td><td class=\"words\">{}</td></tr>",
                escape(&p.name),
                number(p.value, 4),
                escape(&p.unit),
                escape(&p.meaning)
            )
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"parameters\"><thead><tr><th scope=\"col\">name</th><th scope=\"col\">value\
         </th><th scope=\"col\" class=\"left\">unit</th><th scope=\"col\" class=\"left\">what it means</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>"
    )
}

/// Facts as a list of labels and values.
pub(crate) fn facts(rows: &[SummaryRow]) -> String {
    let items: String = rows
        .iter()
        .map(|r| format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(&r.label), escape(&r.value)))
        .collect();
    format!("<dl class=\"facts\">{items}</dl>")
}

/// Notes, warnings first.
pub(crate) fn notes(notes: &[Note]) -> String {
    let mut ordered: Vec<&Note> = notes.iter().collect();
    ordered.sort_by_key(|n| n.level != NoteLevel::Warning);
    let items: String = ordered
        .into_iter()
        .map(|n| {
            let (class, word) = match n.level {
                NoteLevel::Warning => ("warning", "Look at this: "),
                NoteLevel::Information => ("information", ""),
            };
            format!("<li class=\"{class}\"><b>{word}</b>{}</li>", escape(&n.text))
        })
        .collect();
    format!("<ul class=\"notes\">{items}</ul>")
}
