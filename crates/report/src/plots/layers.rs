//! A network: its layers one below the other, what reads what as lines beside them.

use crate::{
    figure::{Figure, WIDE_SIZE},
    input::LayerGraph,
    svg::{Anchor, Surface},
    text::{count, shorten},
};

/// More layers are counted in the caption only.
const MOST_LAYERS: usize = 600;
/// Lines side by side at most; those beyond share the outermost place.
const MOST_LANES: usize = 14;
/// Longer names are cut.
const LONGEST_NAME: usize = 38;
/// Between two layers.
const STEP: f64 = 21.0;
/// Between two lines.
const LANE: f64 = 11.0;

/// A line past other layers: from the output of one place to another below it, and how far from the layers it runs.
#[derive(Debug, PartialEq, Eq)]
struct Skip {
    from: usize,
    to: usize,
    lane: usize,
}

/// Lines that pass layers, each as near to these as those that begin above it leave room for.
fn skips(graph: &LayerGraph, places: usize) -> Vec<Skip> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (i, layer) in graph.layers.iter().enumerate().take(places) {
        pairs.extend(layer.inputs.iter().filter(|&&from| from < i).map(|&from| (from, i + 1)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    // Where the line of each lane ends.
    let mut ends: Vec<usize> = Vec::new();
    pairs
        .into_iter()
        .map(|(from, to)| {
            let free = ends.iter().position(|&end| end <= from);
            let lane = free.unwrap_or_else(|| ends.len().min(MOST_LANES - 1));
            match ends.get_mut(lane) {
                Some(end) => *end = to.max(*end),
                None => ends.push(to),
            }
            Skip { from, to, lane }
        })
        .collect()
}

/// The figure; `None` without layers.
pub(crate) fn layers(input: &LayerGraph) -> Option<Figure> {
    let places = input.layers.len().min(MOST_LAYERS);
    if places == 0 {
        return None;
    }
    let skips = skips(input, places);
    let lanes = skips.iter().map(|skip| skip.lane + 1).max().unwrap_or(0) as f64;
    let spine = 16.0 + LANE * lanes;
    let height = 44.0 + STEP * (places + 1) as f64;
    let mut s = Surface::new(WIDE_SIZE.0, height, format!("{}: {} layers", input.title, input.layers.len()));
    let y = |place: usize| 36.0 + STEP * place as f64;
    let columns = [spine + 14.0, spine + 292.0, spine + 456.0, spine + 612.0, spine + 628.0];
    let anchors = [Anchor::Start, Anchor::Start, Anchor::Start, Anchor::End, Anchor::Start];
    for ((x, anchor), head) in
        columns.iter().zip(anchors).zip(["layer", "operation", "output", "weights", ""])
    {
        s.text("title", *x, 16.0, anchor, head);
    }
    for (i, layer) in input.layers.iter().enumerate().take(places) {
        if layer.inputs.contains(&i) {
            s.line("axis", spine, y(i), spine, y(i + 1));
        }
    }
    for Skip { from, to, lane } in &skips {
        let x = spine - LANE * (lane + 1) as f64;
        let bend = 0.4 * STEP;
        let (upper, lower) = (y(*from) + bend, y(*to) - bend);
        s.segments("axis", [(spine, y(*from), x, upper), (x, upper, x, lower), (x, lower, spine, y(*to))]);
    }
    s.circle("dot", spine, y(0), 4.0);
    s.text("tick", columns[0], y(0) + 4.0, anchors[0], "input");
    s.text("tick", columns[2], y(0) + 4.0, anchors[2], &input.input);
    for (i, layer) in input.layers.iter().enumerate().take(places) {
        let at = y(i + 1);
        // What has weights is what uncertainty is about.
        match layer.weights.is_empty() {
            true => s.circle("dot", spine, at, 2.5),
            false => s.rect("column strong", spine - 5.0, at - 5.0, 10.0, 10.0),
        }
        let cells = [&layer.name, &layer.operation, &layer.shape, &layer.weights, &layer.note];
        for ((x, anchor), text) in columns.iter().zip(anchors).zip(cells) {
            s.text("tick", *x, at + 4.0, anchor, &shorten(text, LONGEST_NAME));
        }
    }
    let mut caption = input.caption.clone();
    if input.layers.len() > places {
        caption += &format!(" {} more layers are not drawn.", count(input.layers.len() - places));
    }
    Some(Figure {
        title: input.title.clone(),
        svg: s.finish("plot"),
        caption: caption.trim().to_owned(),
        legend: Vec::new(),
        wide: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::LayerBox;

    fn graph(inputs: &[&[usize]]) -> LayerGraph {
        let layer = |(i, inputs): (usize, &&[usize])| LayerBox {
            name: format!("layer {i}"),
            weights: if i == 0 { "12".into() } else { String::new() },
            inputs: inputs.to_vec(),
            ..LayerBox::default()
        };
        let layers = inputs.iter().enumerate().map(layer).collect();
        LayerGraph { title: "a < b".into(), input: "3".into(), layers, caption: String::new() }
    }

    #[test]
    fn lines_that_overlap_run_in_lanes_of_their_own() {
        // Two blocks with a skip each, and one line past both.
        let found = skips(&graph(&[&[0], &[1], &[2, 0], &[3], &[4, 3], &[5, 0]]), 6);
        let lanes: Vec<_> = found.iter().map(|s| (s.from, s.to, s.lane)).collect();
        assert_eq!(lanes, [(0, 3, 0), (0, 6, 1), (3, 5, 0)]);
        // What a file says wrongly (a layer that reads itself or one below it) is not drawn.
        assert!(skips(&graph(&[&[1], &[7]]), 2).is_empty());
    }

    #[test]
    fn every_layer_is_drawn_up_to_a_number() {
        let chain: Vec<Vec<usize>> = (0..1000).map(|i| vec![i]).collect();
        let chain: Vec<&[usize]> = chain.iter().map(Vec::as_slice).collect();
        let figure = layers(&graph(&chain)).unwrap();
        assert_eq!(figure.svg.matches("class=\"dot\"").count(), MOST_LAYERS);
        assert_eq!(figure.svg.matches("<line class=\"axis\"").count(), MOST_LAYERS);
        assert!(figure.caption.contains("400 more layers") && figure.svg.contains("a &lt; b"));
        assert!(layers(&graph(&[])).is_none());
    }

    #[test]
    fn many_lines_share_the_outermost_lane() {
        let inputs: Vec<Vec<usize>> = (0..60).map(|i| (0..=i).collect()).collect();
        let inputs: Vec<&[usize]> = inputs.iter().map(Vec::as_slice).collect();
        assert!(skips(&graph(&inputs), 60).iter().all(|skip| skip.lane < MOST_LANES));
    }
}
