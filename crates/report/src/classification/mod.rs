//! A classification model on one dataset: verdict, tiles, figures, tables.

mod figures;
mod tables;
mod verdict;

use crate::{
    input::ClassificationReport,
    section::{block, tile},
    tables::{facts, notes},
    text::{escape, number, percent},
};

/// The section as HTML; `id` is its anchor.
pub(crate) fn render(report: &ClassificationReport, id: &str) -> String {
    let mut html = format!("<section id=\"{id}\">\n<h2>{}</h2>\n", escape(&report.dataset));
    for (class, text) in [("lead", report.description.clone()), ("verdict", verdict::verdict(report))] {
        if !text.is_empty() {
            html += &format!("<p class=\"{class}\">{}</p>\n", escape(&text));
        }
    }
    html += &tiles(report);
    html += "<div class=\"figures dense\">\n";
    html += &block("The methods side by side", tables::has_methods(report), &tables::methods(report));
    for figure in figures::figures(report) {
        html += &figure.html();
    }
    html += &block("Joint log-likelihood", !report.joint.is_empty(), &tables::joint(&report.joint));
    for item in &report.more {
        html += &crate::figures::item(item);
    }
    html += "</div>\n<div class=\"tables\">\n";
    html += &block("The model", !report.summary.is_empty(), &facts(&report.summary));
    html += &block("What happened on the way", !report.notes.is_empty(), &notes(&report.notes));
    html + "</div>\n</section>\n"
}

/// The four numbers to remember.
fn tiles(report: &ClassificationReport) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    let plain = report.plain.as_ref();
    let against = |value: Option<String>| match (plain, value) {
        (Some(plain), Some(value)) => format!("{} {value}", plain.name),
        _ => String::new(),
    };
    let plain = plain.map(|p| &p.scores);
    format!(
        "<div class=\"tiles\">{}{}{}{}</div>\n",
        tile(
            "predicted correctly",
            percent(scores.accuracy),
            "",
            against(plain.map(|p| percent(p.accuracy)))
        ),
        tile("log score (NLL)", number(scores.nll, 3), "", against(plain.map(|p| number(p.nll, 3)))),
        tile("calibration error (ECE)", number(scores.ece, 3), "", against(plain.map(|p| number(p.ece, 3)))),
        tile("Brier score", number(scores.brier, 3), "", against(plain.map(|p| number(p.brier, 3)))),
    )
}
