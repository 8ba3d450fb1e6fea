//! The densest place of rows of two columns.

use faer::MatRef;

/// The densest place of some rows (n x 2): the mean of those in the cell of an even histogram that has, with its neighbours, most of them (the first of several). None without rows, or where a
/// column is constant or not finite. Cost `O(n)`.
pub(crate) fn densest_place(x: MatRef<'_, f64>) -> Option<[f64; 2]> {
    if x.ncols() != 2 || x.nrows() == 0 {
        return None;
    }
    let range = |j: usize| {
        let low = x.col(j).iter().copied().fold(f64::INFINITY, f64::min);
        let high = x.col(j).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (low, high - low)
    };
    let ranges = [range(0), range(1)];
    if !ranges.iter().all(|(low, span)| low.is_finite() && span.is_finite() && *span > 0.0) {
        return None;
    }
    let cell = |i: usize, j: usize| {
        let (low, span) = ranges[j];
        // A float-to-integer cast saturates.
        (((x[(i, j)] - low) / span * CELLS as f64) as usize).min(CELLS - 1)
    };
    let mut counts = vec![0usize; CELLS * CELLS];
    (0..x.nrows()).for_each(|i| counts[cell(i, 0) * CELLS + cell(i, 1)] += 1);
    let around = |place: usize| -> usize {
        let (a, b) = (place / CELLS, place % CELLS);
        let near = |v: usize| v.saturating_sub(1)..=(v + 1).min(CELLS - 1);
        near(a).flat_map(|a| near(b).map(move |b| (a, b))).map(|(a, b)| counts[a * CELLS + b]).sum()
    };
    let occupied = (0..counts.len()).filter(|&place| counts[place] > 0);
    let best = occupied.max_by_key(|&place| (around(place), std::cmp::Reverse(place)))?;
    let own: Vec<usize> = (0..x.nrows()).filter(|&i| cell(i, 0) * CELLS + cell(i, 1) == best).collect();
    let mean = |j: usize| own.iter().map(|&i| x[(i, j)]).sum::<f64>() / own.len() as f64;
    Some([mean(0), mean(1)])
}

/// Cells on each side of the histogram in which the densest place is looked for.
const CELLS: usize = 24;
