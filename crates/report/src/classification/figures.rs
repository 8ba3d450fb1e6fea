//! The pictures of a classification report, made of the kinds that any page uses.

use crate::{
    figure::Figure,
    input::{
        ClassificationReport, ConfusionFigure, Curves, Distribution, Distributions, ImageGallery,
        ImagePrediction, Line, OutOfDistribution, ShiftCurve, ShiftCurves,
    },
    plots,
    text::number,
};

/// All figures for which there is something to draw.
pub(super) fn figures(report: &ClassificationReport) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(report.plane.as_ref().and_then(plots::plane));
    figures.extend(report.reliability.as_ref().map(plots::reliability));
    if !report.confidences.is_empty() {
        figures.push(confidences(&report.confidences));
    }
    if let Some(matrix) = &report.confusion {
        let input = ConfusionFigure { class_names: report.class_names.clone(), matrix: matrix.clone() };
        figures.extend(plots::confusion(&input));
    }
    for (title, caption, images) in [
        ("Most certain", "Held-out pictures of which the model is surest.", &report.most_certain),
        (
            "Least certain",
            "Held-out pictures of which the model is least sure: would you have known?",
            &report.least_certain,
        ),
    ] {
        figures.extend(gallery(title, caption, images, &report.class_names));
    }
    figures.extend(report.shifts.iter().flat_map(shift));
    figures.extend(report.out_of_distribution.iter().flat_map(out_of_distribution));
    figures.extend(report.evidence.iter().map(plots::curves));
    figures
}

fn confidences(series: &[Distribution]) -> Figure {
    plots::distributions(&Distributions {
        title: "How sure it is".into(),
        x: "confidence: probability of the predicted class".into(),
        range: Some((0.0, 1.0)),
        series: series.to_vec(),
        caption: "A model that is sure of everything has one column at 1.".into(),
    })
}

fn gallery(title: &str, caption: &str, images: &[ImagePrediction], class_names: &[String]) -> Option<Figure> {
    plots::gallery(&ImageGallery {
        title: title.into(),
        class_names: class_names.to_vec(),
        images: images.to_vec(),
        caption: caption.into(),
    })
}

type Get = fn(&ShiftCurve) -> &[f64];

/// One picture per score that any method has.
fn shift(shift: &ShiftCurves) -> Vec<Figure> {
    let scores: [(&str, Get, &str); 4] = [
        ("NLL", |c| &c.nll, "Lower is better: how well the probabilities hold as inputs become strange."),
        ("ECE", |c| &c.ece, "Lower is better: whether the model notices that it is right less often."),
        ("accuracy", |c| &c.accuracy, "Higher is better."),
        (
            "mean entropy",
            |c| &c.entropy,
            "A model that knows its limits becomes less certain as inputs become strange.",
        ),
    ];
    let mut figures = Vec::new();
    for (name, get, caption) in scores {
        if shift.methods.iter().chain(&shift.references).all(|m| get(m).is_empty()) {
            continue;
        }
        let reference = |method: &str| -> Vec<(f64, f64)> {
            let same = shift.references.iter().filter(|r| r.method == method);
            same.flat_map(|r| r.at.iter().copied().zip(get(r).iter().copied())).collect()
        };
        let line = |curve: &ShiftCurve| Line {
            name: curve.method.clone(),
            // A score that was not measured is no point left out.
            x: if get(curve).is_empty() { Vec::new() } else { curve.at.clone() },
            y: get(curve).to_vec(),
            reference: reference(&curve.method),
            ..Line::default()
        };
        let mut lines: Vec<Line> = shift.methods.iter().map(line).collect();
        // References of methods that are not measured here stand alone.
        for other in &shift.references {
            if !lines.iter().any(|l| l.name == other.method) {
                lines.push(Line {
                    name: other.method.clone(),
                    reference: reference(&other.method),
                    ..Line::default()
                });
            }
        }
        figures.push(plots::curves(&Curves {
            title: format!("{} under shift", capitalised(name)),
            x: shift.parameter.clone(),
            y: name.into(),
            lines,
            caption: caption.into(),
            ..Curves::default()
        }));
    }
    figures
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |c| c.to_uppercase().chain(characters).collect())
}

/// One picture per method, on one range.
fn out_of_distribution(input: &OutOfDistribution) -> Vec<Figure> {
    let highest = input
        .methods
        .iter()
        .flat_map(|m| m.inside.iter().chain(&m.outside))
        .copied()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    input
        .methods
        .iter()
        .map(|method| {
            let auc = method.auc.map_or(String::new(), |auc| format!(", AUC {}", number(auc, 3)));
            let series = [(&input.inside, &method.inside), (&input.outside, &method.outside)];
            plots::distributions(&Distributions {
                title: format!("Familiar or strange? {}{auc}", method.name),
                x: "entropy of the prediction (nats)".into(),
                range: (highest > 0.0).then_some((0.0, highest)),
                series: series.map(|(name, values)| Distribution { name: name.clone(), values: values.clone() }).into(),
                caption: "The further apart the two, the better strange inputs are noticed. The AUC is the probability \
                          that a strange input gets the larger entropy."
                    .into(),
            })
        })
        .collect()
}
