//! One model on one dataset: verdict, tiles, figures, tables.

use crate::{
    input::RegressionReport,
    plots,
    points::Points,
    tables,
    text::{escape, number, percent, with_unit},
    verdict::{Honesty, honesty, verdict},
};

/// The section as HTML; `id` is its anchor.
pub(crate) fn render(report: &RegressionReport, id: &str) -> String {
    let target = with_unit(&report.target, report.target_unit.as_deref());
    let mut html = format!("<section id=\"{id}\">\n<h2>{}</h2>\n", escape(&report.dataset));
    for (class, text) in [("lead", report.description.clone()), ("verdict", verdict(report))] {
        if !text.is_empty() {
            html += &format!("<p class=\"{class}\">{}</p>\n", escape(&text));
        }
    }
    html += &tiles(report);
    let figures = figures(report, &target);
    // Facts and notes stand beside the scores, or fill the place beside a figure that would stand alone.
    let facts = block("The model", !report.summary.is_empty(), &tables::facts(&report.summary));
    let notes = block("What happened on the way", !report.notes.is_empty(), &tables::notes(&report.notes));
    let mut beside = String::new();
    if !(facts.is_empty() && notes.is_empty()) {
        beside = format!("<div class=\"stack\">{facts}{notes}</div>\n");
    }
    html += "<div class=\"figures\">\n";
    for figure in &figures {
        html += &figure.html();
    }
    if !figures.iter().filter(|f| !f.wide).count().is_multiple_of(2) {
        html += &std::mem::take(&mut beside);
    }
    for item in &report.more {
        html += &crate::figures::item(item);
    }
    html += &format!("</div>\n<div class=\"tables{}\">\n", if beside.is_empty() { " alone" } else { "" });
    html += &block("Scores", report.scores.is_some(), &tables::scores(report));
    html += &beside;
    let parameters = tables::hyperparameters(&report.hyperparameters);
    html += &block("Hyperparameters", !report.hyperparameters.is_empty(), &parameters);
    for table in &report.tables {
        html += &block(&escape(&table.title), true, &tables::plain(table));
    }
    html + "</div>\n</section>\n"
}

/// A card with a heading; nothing if its content is absent.
pub(crate) fn block(title: &str, present: bool, content: &str) -> String {
    if present { format!("<div class=\"block\"><h3>{title}</h3>{content}</div>\n") } else { String::new() }
}

/// All figures for which there is something to draw.
fn figures(report: &RegressionReport, target: &str) -> Vec<crate::figure::Figure> {
    let mut figures = Vec::new();
    if let Some(panel) = &report.posterior {
        figures.push(plots::posterior(panel, target));
    }
    figures.extend(report.maps.iter().filter_map(plots::plane));
    if let Some(predictions) = &report.predictions {
        let points = Points::new(predictions);
        figures.push(plots::predictions(&points, report.rows, target));
        figures.extend(plots::calibration(&points));
        figures.push(plots::distribution(&points));
        figures.push(plots::against_prediction(&points, target));
        let baseline = report.baseline.as_ref().map(|b| b.scores.width_95);
        figures.push(plots::widths(&points, report.target_unit.as_deref(), baseline));
    }
    figures.extend(plots::relevance(&report.lengthscales));
    figures.extend(report.warps.iter().map(plots::curves));
    figures
}

/// The four numbers to remember.
fn tiles(report: &RegressionReport) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    let unit = report.target_unit.as_deref().unwrap_or("");
    let against = |value: Option<f64>| match value {
        Some(value) => format!("baseline {}", number(value, 3)),
        None => String::new(),
    };
    let baseline = report.baseline.as_ref().map(|b| &b.scores);
    let honest = match honesty(scores.coverage_95, scores.n) {
        Honesty::Kept => "as promised",
        Honesty::Overconfident => "overconfident",
        Honesty::Cautious => "too cautious",
    };
    format!(
        "<div class=\"tiles\">{}{}{}{}</div>\n",
        tile("RMSE", number(scores.rmse, 3), unit, against(baseline.map(|b| b.rmse))),
        tile("95 % intervals hold", percent(scores.coverage_95), "", honest.to_owned()),
        tile("probabilistic error (CRPS)", number(scores.crps, 3), unit, against(baseline.map(|b| b.crps))),
        tile("log score (NLL)", number(scores.nll, 3), "", against(baseline.map(|b| b.nll))),
    )
}

/// One number to remember: its name and value (neither escaped here), unit, and what to compare it with.
pub(crate) fn tile(name: &str, value: String, unit: &str, foot: String) -> String {
    format!(
        "<div class=\"tile\"><span class=\"name\">{name}</span><span class=\"value\">{value}<small> {}</small>\
         </span><span class=\"foot\">{}</span></div>",
        escape(unit),
        escape(&foot)
    )
}
