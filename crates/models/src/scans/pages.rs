//! Reports.

use super::error::ScanError;
use super::picture::ReconstructOutcome;
use super::uncertain::UncertainOutcome;
use crate::Facts;
use posterior_data::create_atomically;
use posterior_report::{
    Curves, Distribution, Distributions, FiguresReport, Image, ImageLayout, Item, Line, Note, Picture, Report,
};
use posterior_tomography::uncertainty::{PriorReport, Uncertainty};
use std::io::Write;
use std::path::Path;

/// Draws that are shown.
const SHOWN: usize = 6;

/// A picture (of a volume its middle slice) in greys between two values.
fn grey(title: &str, caption: &str, shape: &[usize], values: &[f64], low: f64, high: f64) -> Item {
    let [height, width] = shape[shape.len() - 2..] else { unreachable!("pictures have two axes") };
    let each = height * width;
    let middle = values.len() / each / 2;
    let range = (high - low).max(f64::MIN_POSITIVE);
    let pixels = values[middle * each..(middle + 1) * each]
        .iter()
        .map(|v| (255.0 * ((v - low) / range).clamp(0.0, 1.0)).round() as u8)
        .collect();
    let image = Image { layout: ImageLayout::Grey, height, width, pixels };
    Item::Picture(Picture { title: title.into(), image, caption: caption.into() })
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)))
}

fn page(title: &str, text: &str, facts: &Facts, items: Vec<Item>, warnings: &[String]) -> Report {
    let (summary, notes) = (facts.rows(), warnings.iter().map(Note::warning).collect());
    let section = FiguresReport { title: title.into(), text: text.into(), summary, items, notes };
    Report::new(title, "", vec![section.into()])
}

/// Writes a page in one step.
pub(crate) fn write(path: &Path, page: &Report) -> Result<(), ScanError> {
    Ok(create_atomically(path, |out| out.write_all(page.to_html().as_bytes()))?)
}

/// Truth and error beside a picture.
fn beside_truth(shape: &[usize], picture: &[f64], truth: Option<&[f64]>) -> Vec<Item> {
    let (low, high) = extremes(truth.unwrap_or(picture));
    let mut items = vec![grey("Picture", "", shape, picture, low, high)];
    if let Some(truth) = truth {
        items.push(grey("Truth", "", shape, truth, low, high));
        let errors: Vec<f64> = picture.iter().zip(truth).map(|(a, b)| (a - b).abs()).collect();
        let largest = extremes(&errors).1;
        let caption = format!("White is {largest:.3}.");
        items.push(grey("Absolute error", &caption, shape, &errors, 0.0, largest));
    }
    items
}

/// The page of a reconstruction.
pub(crate) fn reconstruction(
    shape: &[usize],
    picture: &[f64],
    truth: Option<&[f64]>,
    outcome: &ReconstructOutcome,
) -> Report {
    let mut items = beside_truth(shape, picture, truth);
    if !outcome.report.losses.is_empty() {
        let (x, y) = outcome.report.losses.iter().map(|(s, l)| (*s as f64, *l)).unzip();
        let curves = Curves::new("Loss", "step", "loss", vec![Line::new("training", x, y)]);
        items.push(Item::Curves(curves.logarithmic(false, true)));
    }
    if let Some(held_back) = &outcome.report.held_back {
        let (x, y) = held_back.trials.iter().map(|t| (t.weight, t.error)).unzip();
        let line = Line { optimum: Some(held_back.weight), ..Line::new("total variation", x, y) };
        let error = "squared error on held-back measurements";
        let curves = Curves::new("Weight of total variation", "weight", error, vec![line]);
        items.push(Item::Curves(curves.logarithmic(true, true)));
    }
    page("A picture from a sinogram", "", &outcome.facts(), items, &outcome.warnings)
}

/// The page of a posterior.
pub(crate) fn uncertainty(
    shape: &[usize],
    found: &Uncertainty,
    truth: Option<&[f64]>,
    outcome: &UncertainOutcome,
) -> Report {
    let mut items = beside_truth(shape, &found.picture, truth);
    let largest = extremes(&found.deviations).1;
    let caption = format!("White is {largest:.3}: there the picture is least to be trusted.");
    items.push(grey("Standard deviation", &caption, shape, &found.deviations, 0.0, largest));
    let (low, high) = extremes(&found.picture);
    for j in 0..SHOWN.min(found.samples.ncols()) {
        let draw: Vec<f64> = found.samples.col(j).iter().zip(&found.picture).map(|(d, p)| d + p).collect();
        let caption = if j == 0 { "What the measurements leave possible." } else { "" };
        items.push(grey(&format!("Draw {}", j + 1), caption, shape, &draw, low, high));
    }
    if let Some(score) = &outcome.score {
        let (x, y): (Vec<f64>, Vec<f64>) = score.coverage.iter().copied().unzip();
        let lines = vec![Line::new("found", x.clone(), y), Line::new("ideal", x.clone(), x)];
        let curves = Curves::new("Coverage", "nominal share of pixels", "share within the interval", lines);
        let caption = "Below the ideal line intervals are too narrow, above too wide.";
        items.push(Item::Curves(curves.captioned(caption)));
    }
    if let Some(truth) = truth {
        let errors = found.picture.iter().zip(truth).map(|(a, b)| (a - b).abs()).collect();
        items.push(Item::Distributions(Distributions {
            title: "Errors and standard deviations".into(),
            x: "brightness".into(),
            series: vec![
                Distribution { name: "absolute error".into(), values: errors },
                Distribution { name: "standard deviation".into(), values: found.deviations.clone() },
            ],
            ..Distributions::default()
        }));
    }
    if let PriorReport::GPrior { fit, .. } = &outcome.report.prior {
        let turns: Vec<f64> = (1..=fit.turns.len()).map(|t| t as f64).collect();
        let precisions = fit.turns.iter().map(|t| t.precisions[0]).collect();
        let dimensions = fit.turns.iter().map(|t| t.by_prediction.unwrap_or(t.by_weight)).collect();
        for (title, y, values) in [
            ("Precision by turn", "precision", precisions),
            ("Effective dimension by turn", "effective dimension", dimensions),
        ] {
            let line = Line::new("expectation maximisation", turns.clone(), values);
            let curves = Curves::new(title, "turn", y, vec![line]);
            items.push(Item::Curves(curves.logarithmic(false, true)));
        }
    }
    let text = "The picture is the network's; its error bars come from the linear model that the network is near its weights.";
    page("Where not to trust the picture", text, &outcome.facts(), items, &outcome.warnings)
}
