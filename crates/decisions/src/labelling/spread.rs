//! **The first rows**, before there is anything to learn from: spread over the pool. Each is drawn with a probability that grows with its squared distance from the nearest row that was
//! taken before, so that rows differ, duplicates are not taken twice, and a lone outlier is not sure to be taken.
//!
//! Cost `n D` for each row. Source: Arthur and Vassilvitskii, *k-means++: the advantages of careful seeding* (2007).

use faer::MatRef;
use posterior_linalg::random::Streams;
use rand::RngExt;

/// `count` different rows of `free` (places in `inputs`, n x D), far from each other and from those `taken`; fewer where there are not so many.
pub fn spread(
    inputs: MatRef<'_, f64>,
    taken: &[usize],
    free: &[usize],
    count: usize,
    streams: Streams,
) -> Vec<usize> {
    let mut rng = streams.stream("decisions/spread");
    let distance = |a: usize, b: usize| -> f64 {
        (0..inputs.ncols()).map(|j| (inputs[(a, j)] - inputs[(b, j)]).powi(2)).sum()
    };
    let nearest = |row: usize| taken.iter().map(|&t| distance(row, t)).fold(f64::INFINITY, f64::min);
    let mut left: Vec<(usize, f64)> = free.iter().map(|&row| (row, nearest(row))).collect();
    let mut chosen = Vec::new();
    while chosen.len() < count && !left.is_empty() {
        let total: f64 = left.iter().map(|(_, d)| d).sum();
        let place = if total > 0.0 && total.is_finite() {
            let mut rest = rng.random::<f64>() * total;
            let crossed = left.iter().position(|(_, d)| {
                rest -= d;
                rest < 0.0 && *d > 0.0
            });
            // Rounding may leave a little.
            crossed.or_else(|| left.iter().rposition(|(_, d)| *d > 0.0)).unwrap_or(0)
        } else {
            // Nothing was taken yet, or all that is left are duplicates.
            rng.random_range(0..left.len())
        };
        let (row, _) = left.remove(place);
        left.iter_mut().for_each(|(other, d)| *d = d.min(distance(*other, row)));
        chosen.push(row);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn duplicates_wait_until_all_else_is_taken() {
        // Four places, ten duplicates of each.
        let inputs = Mat::from_fn(40, 2, |i, j| [[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [9.0, 9.0]][i % 4][j]);
        let free: Vec<usize> = (0..40).collect();
        for seed in 0..20 {
            let chosen = spread(inputs.as_ref(), &[], &free, 4, Streams::new(seed));
            let mut places: Vec<usize> = chosen.iter().map(|row| row % 4).collect();
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3]);
            assert_eq!(chosen, spread(inputs.as_ref(), &[], &free, 4, Streams::new(seed)));
        }
        // One that was taken before stands for its duplicates, too.
        let rest: Vec<usize> = (1..40).collect();
        let chosen = spread(inputs.as_ref(), &[0], &rest, 3, Streams::new(1));
        assert!(chosen.iter().all(|row| row % 4 != 0), "{chosen:?}");
        // Then duplicates, each once, and no more than there are.
        let mut all = spread(inputs.as_ref(), &[0], &rest, 100, Streams::new(1));
        all.sort_unstable();
        assert_eq!(all, rest);
    }
}
