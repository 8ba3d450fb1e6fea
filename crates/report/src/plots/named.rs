//! Named numbers with their intervals, one below the other.

use crate::{
    figure::{Figure, SIZE},
    input::NamedValues,
    svg::{Anchor, Range, Scale, Surface},
    text::{count, number, shorten},
};

/// More are counted in the caption only.
const MOST_ROWS: usize = 30;
/// Longer names are cut.
const LONGEST_NAME: usize = 24;

/// The figure; `None` without a number.
pub(crate) fn named(input: &NamedValues) -> Option<Figure> {
    let usable: Vec<_> = input.rows.iter().filter(|row| row.value.is_finite()).collect();
    let unusable = input.rows.len() - usable.len();
    let shown = &usable[..usable.len().min(MOST_ROWS)];
    if shown.is_empty() {
        return None;
    }
    let interval = |[low, high]: [f64; 2]| (low.is_finite() && high.is_finite()).then_some([low, high]);
    let step = if shown.len() <= 10 { 27.0 } else { 20.0 };
    let height = (34.0 + step * shown.len() as f64).max(90.0);
    let mut s = Surface::new(SIZE.0, height, format!("{}: {}", input.title, input.x));
    let longest =
        shown.iter().map(|row| row.name.chars().count().min(LONGEST_NAME)).max().unwrap_or(0) as f64;
    let left = (7.6 * longest + 14.0).clamp(40.0, 210.0);
    let ends = shown.iter().flat_map(|row| {
        let ends = interval(row.interval).into_iter().flatten();
        ends.chain([row.value]).chain(input.bars.then_some(0.0)).collect::<Vec<_>>()
    });
    let range = Range::of(ends);
    let range = if input.bars { range } else { range.padded(0.04) };
    let scale = Scale { range, from: left, to: SIZE.0 - 74.0 };
    s.text("title", left, 16.0, Anchor::Start, &format!("{} →", input.x));
    for (i, row) in shown.iter().enumerate() {
        let middle = 30.0 + step * (i as f64 + 0.5);
        let at = scale.map(row.value);
        s.text("tick", left - 8.0, middle, Anchor::End, &shorten(&row.name, LONGEST_NAME));
        s.rect("rail", left, middle - 9.0, scale.to - left, 10.0);
        if input.bars {
            let zero = scale.map(0.0);
            s.rect("column strong", zero.min(at), middle - 9.0, (at - zero).abs().max(1.0), 10.0);
        }
        if let Some([low, high]) = interval(row.interval) {
            s.line(
                if input.bars { "whisker" } else { "mark" },
                scale.map(low),
                middle - 4.0,
                scale.map(high),
                middle - 4.0,
            );
        }
        if !input.bars {
            s.circle("dot", at, middle - 4.0, 4.0);
        }
        s.text("tick", SIZE.0 - 4.0, middle, Anchor::End, &number(row.value, 3));
    }
    s.line("axis", left, 26.0, left, height - 4.0);
    let mut caption = input.caption.clone();
    if usable.len() > MOST_ROWS {
        caption += &format!(" {} more are not shown.", count(usable.len() - MOST_ROWS));
    }
    if unusable > 0 {
        caption += &format!(" Left out: {} without a finite value.", count(unusable));
    }
    Some(Figure {
        title: input.title.clone(),
        svg: s.finish("plot"),
        caption: caption.trim().to_owned(),
        legend: Vec::new(),
        wide: false,
    })
}
