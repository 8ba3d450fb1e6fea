//! The confusion matrix: which classes are taken for which.

use super::class_name;
use crate::{
    figure::{Figure, SIZE},
    input::ConfusionFigure,
    svg::{Anchor, Surface},
    text::{count, shorten},
};

/// Larger tables cannot be read.
const MOST_CLASSES: usize = 20;
/// Longer names of classes are cut.
const LONGEST_NAME: usize = 12;

/// The figure; `None` without classes.
pub(crate) fn confusion(input: &ConfusionFigure) -> Option<Figure> {
    let (n, counts) = (input.matrix.classes, &input.matrix.counts);
    if n == 0 {
        return None;
    }
    let mut caption =
        "Each row is a true class, each column a prediction; the stronger the colour, the larger the share \
                       of the row. Errors lie off the diagonal."
            .to_owned();
    let usable = n <= MOST_CLASSES && counts.len() == n * n;
    let svg = if usable {
        draw(input)
    } else {
        caption = if n > MOST_CLASSES {
            format!("Not drawn: a table of {} classes is too large to read.", count(n))
        } else {
            format!("Not drawn: {} counts for {} classes.", count(counts.len()), count(n))
        };
        let mut s = Surface::new(SIZE.0, 80.0, "No confusion matrix");
        s.text("empty", 0.5 * SIZE.0, 44.0, Anchor::Middle, "nothing to draw");
        s.finish("plot")
    };
    Some(Figure { title: "What is taken for what".into(), svg, caption, legend: Vec::new(), wide: false })
}

fn draw(input: &ConfusionFigure) -> String {
    let (n, counts) = (input.matrix.classes, &input.matrix.counts);
    let names: Vec<String> =
        (0..n).map(|k| shorten(&class_name(&input.class_names, k), LONGEST_NAME)).collect();
    let longest = names.iter().map(|n| n.chars().count()).max().unwrap_or(1) as f64;
    let left = 7.6 * longest + 16.0;
    let side = ((SIZE.0 - left - 6.0) / n as f64).min(44.0);
    let top = 30.0;
    let mut s =
        Surface::new(SIZE.0, top + side * n as f64 + 44.0, "Confusion matrix: true class by predicted class");
    s.text("title", 2.0, 16.0, Anchor::Start, "↓ true class");
    let bottom = top + side * n as f64;
    // Names that would run into each other below the columns are numbered instead.
    let fits = 7.6 * longest + 4.0 <= side;
    for (k, name) in names.iter().enumerate() {
        let middle = (k as f64 + 0.5) * side;
        s.text("tick", left - 8.0, top + middle + 4.5, Anchor::End, name);
        let below = if fits { name.clone() } else { (k + 1).to_string() };
        s.text("tick", left + middle, bottom + 17.0, Anchor::Middle, &below);
        let row = &counts[k * n..(k + 1) * n];
        let total = row.iter().map(|c| *c as f64).sum::<f64>().max(1.0);
        for (column, &c) in row.iter().enumerate() {
            let corner = (left + column as f64 * side + 0.5, top + k as f64 * side + 0.5);
            let class = if column == k { "share" } else { "share h1 off" };
            // A root makes rare confusions visible; an empty cell stays empty.
            s.cell("rail", corner, (side - 1.0, side - 1.0), 0.5);
            if c > 0 {
                s.cell(class, corner, (side - 1.0, side - 1.0), 0.85 * (c as f64 / total).sqrt());
            }
            let label = count(c);
            if c > 0 && 7.6 * label.chars().count() as f64 + 2.0 <= side {
                s.text("count", corner.0 + 0.5 * side, corner.1 + 0.5 * side + 4.0, Anchor::Middle, &label);
            }
        }
    }
    let words = if fits { "predicted class →" } else { "predicted class, numbered from the top →" };
    s.text("title", SIZE.0 - 6.0, bottom + 38.0, Anchor::End, words);
    s.finish("plot")
}
