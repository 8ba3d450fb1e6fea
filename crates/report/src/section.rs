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
    html += "<div class=\"figures\">\n";
    for figure in figures(report, &target) {
        html += &figure.html();
    }
    html += "</div>\n";
    if !report.notes.is_empty() {
        html += "<h3>What happened on the way</h3>\n";
        html += &tables::notes(&report.notes);
    }
    html += "<div class=\"tables\">\n";
    for (title, present, table) in [
        ("Scores", report.scores.is_some(), tables::scores(report)),
        ("The model", !report.summary.is_empty(), tables::facts(&report.summary)),
        (
            "Hyperparameters",
            !report.hyperparameters.is_empty(),
            tables::hyperparameters(&report.hyperparameters),
        ),
    ] {
        if present {
            html += &format!("<div class=\"block\"><h3>{title}</h3>{table}</div>\n");
        }
    }
    html + "</div>\n</section>\n"
}

/// All figures for which there is something to draw.
fn figures(report: &RegressionReport, target: &str) -> Vec<crate::figure::Figure> {
    let mut figures = Vec::new();
    if let Some(panel) = &report.posterior {
        figures.push(plots::posterior(panel, target));
    }
    if let Some(predictions) = &report.predictions {
        let points = Points::new(predictions);
        figures.push(plots::predictions(&points, target));
        figures.extend(plots::calibration(&points));
        figures.push(plots::distribution(&points));
        figures.push(plots::against_prediction(&points, target));
        let baseline = report.baseline.as_ref().map(|b| b.scores.width_95);
        figures.push(plots::widths(&points, report.target_unit.as_deref(), baseline));
    }
    figures.extend(plots::relevance(&report.lengthscales));
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
    let tile = |name: &str, value: String, unit: &str, foot: String| {
        format!(
            "<div class=\"tile\"><span class=\"name\">{name}</span><span class=\"value\">{value}<small> {}</small>\
             </span><span class=\"foot\">{}</span></div>",
            escape(unit),
            escape(&foot)
        )
    };
    format!(
        "<div class=\"tiles\">{}{}{}{}</div>\n",
        tile("typical error (RMSE)", number(scores.rmse, 3), unit, against(baseline.map(|b| b.rmse))),
        tile("95 % intervals hold", percent(scores.coverage_95), "", honest.to_owned()),
        tile("score in units (CRPS)", number(scores.crps, 3), unit, against(baseline.map(|b| b.crps))),
        tile("log score (NLL)", number(scores.nll, 3), "", against(baseline.map(|b| b.nll))),
    )
}
