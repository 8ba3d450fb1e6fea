//! Pictures with the class that was predicted, the true one, and the largest probabilities.

use super::class_name;
use crate::{
    figure::Figure,
    input::{ImageGallery, ImagePrediction},
    png,
    svg::{Anchor, Surface},
    text::{count, percent, shorten},
};

/// More pictures are not shown.
const MOST_IMAGES: usize = 12;
/// Bars below each picture.
const BARS: usize = 3;
/// Longer names of classes are cut.
const LONGEST_NAME: usize = 11;
/// Width of a tile; pictures fill the square above the words.
const WIDTH: f64 = 160.0;

/// The figure; `None` without pictures.
pub(crate) fn gallery(input: &ImageGallery) -> Option<Figure> {
    if input.images.is_empty() {
        return None;
    }
    let (mut tiles, mut shown, mut unusable) = (String::new(), 0, 0);
    for prediction in &input.images {
        if shown == MOST_IMAGES {
            break;
        }
        match png::data_uri(&prediction.image) {
            Some(address) => {
                tiles += &tile(prediction, &address, &input.class_names);
                shown += 1;
            }
            None => unusable += 1,
        }
    }
    let mut caption = input.caption.clone();
    if input.images.len() > shown + unusable {
        caption += &format!(" Shown: {shown} of {} pictures.", count(input.images.len()));
    }
    if unusable > 0 {
        caption += &format!(" Left out: {} pictures whose size does not fit their pixels.", count(unusable));
    }
    Some(Figure {
        title: input.title.clone(),
        svg: format!("<div class=\"gallery\">{tiles}</div>"),
        caption: caption.trim().to_owned(),
        legend: Vec::new(),
        wide: true,
    })
}

fn tile(prediction: &ImagePrediction, address: &str, class_names: &[String]) -> String {
    let mut ranked: Vec<(usize, f64)> = prediction
        .probabilities
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, p)| (0.0..=1.0 + 1e-4).contains(p))
        .collect();
    // Stable: the first of several equals is the prediction, as in the scores.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let name = |class: usize| shorten(&class_name(class_names, class), LONGEST_NAME);
    let best = ranked.first();
    let truth = prediction.label.map(name);
    let label = match (&best, &truth) {
        (Some(best), Some(truth)) => format!("A picture of {truth}, predicted {}", name(best.0)),
        (Some(best), None) => format!("A picture, predicted {}", name(best.0)),
        _ => "A picture without prediction".to_owned(),
    };
    let mut s = Surface::new(WIDTH, WIDTH + 22.0 + 20.0 * BARS as f64, label);
    s.image("pixels", (0.0, 0.0), (WIDTH, WIDTH), false, address);
    let right = best.is_some_and(|b| Some(b.0) == prediction.label);
    let words = match (&truth, right) {
        (Some(truth), true) => format!("✓ {truth}"),
        (Some(truth), false) => format!("✗ is {truth}"),
        (None, _) => "no class of these".to_owned(),
    };
    let class = if right || truth.is_none() { "right" } else { "wrong" };
    s.text(class, 0.0, WIDTH + 17.0, Anchor::Start, &words);
    for (i, (class, p)) in ranked.iter().take(BARS).enumerate() {
        let y = WIDTH + 23.0 + 20.0 * i as f64;
        s.rect("rail", 0.0, y, WIDTH, 17.0);
        s.rect("column", 0.0, y, (p.min(1.0) * WIDTH).max(1.0), 17.0);
        s.text("count", 4.0, y + 13.0, Anchor::Start, &name(*class));
        s.text("count", WIDTH - 4.0, y + 13.0, Anchor::End, &percent(*p));
    }
    s.finish("plot")
}
