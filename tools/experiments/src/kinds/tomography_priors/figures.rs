//! Pictures of the study of error bars: densities by patch, coverage, histograms, and what methods show.

use super::predictive::Scored;
use super::problem::Subject;
use super::uncertainty::UncertaintySettings;
use crate::kinds::prelude::*;
use posterior_report::{Distribution, Distributions, Image, ImageLayout, Picture};

/// Pixels of the report on which one of an image is drawn, at least and where it fits.
const SIDE: usize = 160;

/// Pixels between pictures, and their grey.
const BETWEEN: (usize, u8) = (4, 128);

/// Everything that is drawn.
pub(crate) struct Judged<'a> {
    pub(crate) settings: &'a UncertaintySettings,
    /// Of an image.
    pub(crate) shape: [usize; 2],
    pub(crate) subjects: &'a [Subject],
    /// By method, then by image.
    pub(crate) all: &'a [Vec<Scored>],
}

/// The pictures, image by image.
pub(crate) fn figures(judged: &Judged<'_>) -> Vec<Item> {
    let mut out = Vec::new();
    for (i, subject) in judged.subjects.iter().enumerate() {
        let lines = |of: &dyn Fn(&Scored) -> Vec<(f64, f64)>| {
            let line =
                |(k, own): (usize, &Vec<Scored>)| through(&judged.settings.methods[k].name, of(&own[i]));
            judged.all.iter().enumerate().map(line).collect::<Vec<Line>>()
        };
        let patches = lines(&|s| s.patches.iter().map(|(side, value)| (*side as f64, *value)).collect());
        let title = format!("{}: density of the truth by patch", subject.name);
        out.push(Curves::new(title, "side of a patch, pixels", "nats a pixel", patches).into());
        let mut coverage = lines(&|s| s.coverage.clone());
        coverage.push(Line::new("calibrated", vec![0.0, 1.0], vec![0.0, 1.0]));
        let title = format!("{}: coverage", subject.name);
        let curves = Curves::new(title, "level of an interval", "share of pixels within", coverage);
        out.push(curves.captioned("Below the diagonal error bars are too short.").into());
        for name in &judged.settings.pictures {
            let Some(k) = judged.settings.methods.iter().position(|m| m.name == *name) else { continue };
            out.push(histograms(subject, name, &judged.all[k][i]));
            out.push(shown(judged, subject, name, &judged.all[k][i]));
        }
    }
    out
}

fn errors(subject: &Subject, scored: &Scored) -> Vec<f64> {
    subject.truth.iter().zip(&scored.mean).map(|(x, m)| (x - m).abs()).collect()
}

fn histograms(subject: &Subject, method: &str, scored: &Scored) -> Item {
    Item::Distributions(Distributions {
        title: format!("{}: errors and standard deviations, {method}", subject.name),
        x: "absolute error, standard deviation".into(),
        range: None,
        series: vec![
            Distribution { name: "absolute errors".into(), values: errors(subject, scored) },
            Distribution { name: "standard deviations".into(), values: scored.deviations.clone() },
        ],
        caption: String::new(),
    })
}

/// Truth, reconstruction, error and standard deviation beside each other; the last two on one scale.
fn shown(judged: &Judged<'_>, subject: &Subject, method: &str, scored: &Scored) -> Item {
    let error = errors(subject, scored);
    let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let scale = largest(&error).max(largest(&scored.deviations)).max(f64::MIN_POSITIVE);
    let bright = largest(&subject.truth).max(f64::MIN_POSITIVE);
    let panels: [(&[f64], f64); 4] =
        [(&subject.truth, bright), (&scored.mean, bright), (&error, scale), (&scored.deviations, scale)];
    let row = panels.map(|(values, most)| values.iter().map(|v| v / most).collect::<Vec<f64>>());
    let image = mosaic(judged.shape, &[row.to_vec()]);
    let caption = format!(
        "From the left: truth, reconstruction, absolute error, standard deviation; white is {bright:.3} for the first two and {scale:.3} for the others."
    );
    Item::Picture(Picture { title: format!("{}: {method}", subject.name), image, caption })
}

/// Rows of pictures beside each other, 0 black and 1 white; as many in each row as in the first.
pub(crate) fn mosaic([height, width]: [usize; 2], rows: &[Vec<Vec<f64>>]) -> Image {
    let columns = rows.first().map_or(0, Vec::len).max(1);
    let fitting = (Image::LONGEST_SIDE - (columns - 1) * BETWEEN.0) / columns;
    let zoom = (SIDE.min(fitting) / width.max(height)).max(1);
    let side = |count: usize, size: usize| count * zoom * size + (count - 1) * BETWEEN.0;
    let (high, wide) = (side(rows.len().max(1), height), side(columns, width));
    let mut pixels = vec![BETWEEN.1; high * wide];
    for (place, row) in rows.iter().enumerate() {
        let top = place * (zoom * height + BETWEEN.0);
        for (place, values) in row.iter().take(columns).enumerate() {
            let left = place * (zoom * width + BETWEEN.0);
            for i in 0..zoom * height {
                for j in 0..zoom * width {
                    let value = values[i / zoom * width + j / zoom];
                    pixels[(top + i) * wide + left + j] = (255.0 * value.clamp(0.0, 1.0)) as u8;
                }
            }
        }
    }
    Image { layout: ImageLayout::Grey, height: high, width: wide, pixels }
}
