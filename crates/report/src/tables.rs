//! The tables: scores, hyperparameters, facts, notes. All text is escaped here.

use crate::{
    input::{Hyperparameter, RegressionReport, SummaryRow, Table},
    text::{count, escape, number, percent, with_unit},
};
use posterior_metrics::RegressionScores;
use posterior_notes::{Note, Severity};

type Get = fn(&RegressionScores) -> f64;

/// Scores with their standardised values, then the central intervals; beside the baseline's, if there is one.
pub(crate) fn scores(report: &RegressionReport) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    let baseline = report.baseline.as_ref().map(|b| (escape(&b.name), &b.scores));
    let unit = report.target_unit.as_deref();
    // Name, whether it is in units of the target, value, standardised value.
    let plain: [(&str, bool, Get, Option<Get>); 6] = [
        ("RMSE", true, |s| s.rmse, Some(|s| s.standardised.rmse)),
        ("MAE", true, |s| s.mae, Some(|s| s.standardised.mae)),
        ("R²", false, |s| s.r2.unwrap_or(f64::NAN), None),
        ("CRPS", true, |s| s.crps, Some(|s| s.standardised.crps)),
        ("NLL", false, |s| s.nll, Some(|s| s.standardised.nll)),
        ("CQM", false, |s| s.cqm, None),
    ];
    // R² is none where all truths are equal.
    let shown = |value: f64| if value.is_nan() { "–".to_owned() } else { number(value, 4) };
    let mut rows = String::new();
    for (label, has_unit, get, standardised) in plain {
        let cells = [
            Some(shown(get(scores))),
            Some(standardised.map_or("–".to_owned(), |get| number(get(scores), 4))),
            baseline.as_ref().map(|(_, b)| shown(get(b))),
        ];
        rows += &row(&with_unit(label, unit.filter(|_| has_unit)), &cells);
    }
    let name = baseline.as_ref().map(|(name, _)| name.as_str());
    let mut html = table(&["score", "this model", "standardised"], name, &rows);

    let intervals: [(&str, Get, Get); 4] = [
        ("50 %", |s| s.coverage_50, |s| s.width_50),
        ("80 %", |s| s.coverage_80, |s| s.width_80),
        ("90 %", |s| s.coverage_90, |s| s.width_90),
        ("95 %", |s| s.coverage_95, |s| s.width_95),
    ];
    let mut rows = String::new();
    for (level, coverage, width) in intervals {
        let other = baseline.as_ref().map(|(_, b)| number(width(b), 4));
        rows += &row(level, &[Some(percent(coverage(scores))), Some(number(width(scores), 4)), other]);
    }
    let width = escape(&with_unit("mean width", unit));
    let name = baseline.as_ref().map(|(name, _)| format!("width, {name}"));
    html += &table(&["interval", "coverage", &width], name.as_deref(), &rows);
    format!("<div class=\"pair\">{html}</div>")
}

/// Any table with a caption; everything is escaped here.
pub(crate) fn plain(content: &Table) -> String {
    let width = content.head.len();
    let rows: String = content
        .rows
        .iter()
        .map(|cells| {
            let at = |k: usize| cells.get(k).map_or("–", String::as_str);
            let cells: Vec<Option<String>> = (1..width).map(|k| Some(escape(at(k)))).collect();
            row(at(0), &cells)
        })
        .collect();
    let head: Vec<String> = content.head.iter().map(|h| escape(h)).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut caption = content.caption.clone();
    let beyond: usize = content.rows.iter().map(|r| r.len().saturating_sub(width)).sum();
    if beyond > 0 {
        caption += &format!(" Left out: {} cells beyond the last column.", count(beyond));
    }
    let table = if width == 0 { String::new() } else { table(&head, None, &rows) };
    if caption.is_empty() {
        table
    } else {
        format!("{table}<p class=\"under\">{}</p>", escape(caption.trim()))
    }
}

/// A table of rows under a head whose last cell may be absent. Everything is escaped already.
pub(crate) fn table(head: &[&str], last: Option<&str>, rows: &str) -> String {
    let head: String =
        head.iter().copied().chain(last).map(|h| format!("<th scope=\"col\">{h}</th>")).collect();
    format!("<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>")
}

/// A row under a name, which is escaped here, with the cells that are present.
pub(crate) fn row(name: &str, cells: &[Option<String>]) -> String {
    let cells: String = cells.iter().flatten().map(|c| format!("<td>{c}</td>")).collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(name))
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
    ordered.sort_by_key(|n| n.severity != Severity::Warning);
    let items: String = ordered
        .into_iter()
        .map(|n| {
            let (class, word) = match n.severity {
                Severity::Warning => ("warning", "Look at this: "),
                Severity::Information => ("information", ""),
            };
            format!("<li class=\"{class}\"><b>{word}</b>{}</li>", escape(&n.text()))
        })
        .collect();
    format!("<ul class=\"notes\">{items}</ul>")
}
