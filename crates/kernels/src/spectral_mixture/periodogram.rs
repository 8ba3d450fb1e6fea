//! Where a mixture of spectra begins: at the waves that targets are nearly made of.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use std::f64::consts::TAU;

/// Rows that are looked at, at most.
const ROWS: usize = 1000;

/// Frequencies in a cycle of the whole range: three, so that no peak falls between two.
const FINER: f64 = 3.0;

/// Most frequencies of a column.
const MOST: usize = 1500;

/// What a wave must take of the squares that are left, times the rows: noise alone takes some `2 ln(frequencies)` with its best.
const SURE: f64 = 25.0;

/// Halvings of the interval that a peak is sought in.
const GOLDEN_STEPS: usize = 24;

/// A wave along one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wave {
    /// Place of the column among those that are looked at.
    pub(super) column: usize,
    /// Cycles in one unit of the column.
    pub(super) frequency: f64,
    /// Half of the squared amplitude.
    pub(super) variance: f64,
    /// The range of the column's values.
    pub(super) range: f64,
}

/// What targets are nearly made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waves {
    /// The best first.
    pub(super) waves: Vec<Wave>,
    /// The variance of what they leave.
    pub(super) rest: f64,
}

/// At most `count` waves, each the one that takes most of what those before it leave (least-squares periodogram of unevenly spaced places, J. Scargle 1982; all amplitudes are fitted anew together), as long as it takes more than noise would. Of many rows a thousand, evenly
/// by number.
///
/// Cost: some 20 flops for each row, frequency, column and wave: a hundredth of a second for each column and wave.
pub(super) fn waves(columns: &[Vec<f64>], targets: &[f64], count: usize) -> Waves {
    let n = targets.len();
    let kept = n.min(ROWS);
    // No even step, whose aliases evenly spaced places would have.
    let golden = 0.618_033_988_749_894_9;
    let row = |k: usize| match n <= ROWS {
        true => k,
        false => ((k as f64 + (k as f64 * golden).fract()) * n as f64 / kept as f64) as usize % n,
    };
    let rows: Vec<usize> = (0..kept).map(row).collect();
    let columns: Vec<Vec<f64>> =
        columns.iter().map(|column| rows.iter().map(|i| column[*i]).collect()).collect();
    let y: Vec<f64> = rows.iter().map(|i| targets[*i]).collect();
    let mean = y.iter().sum::<f64>() / kept.max(1) as f64;
    let y: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let mut left = y.clone();
    let mut found: Vec<Wave> = Vec::new();
    while found.len() < count && 2 * found.len() + 4 < kept {
        let squares: f64 = left.iter().map(|y| y * y).sum();
        let best = columns
            .iter()
            .enumerate()
            .filter_map(|(d, column)| {
                let (frequency, range) = peak(column, &left)?;
                Some((d, frequency, range, taken(column, &left, frequency)))
            })
            .max_by(|a, b| a.3.total_cmp(&b.3));
        let Some((column, frequency, range, gain)) = best else { break };
        if gain.is_nan() || gain * kept as f64 <= SURE * squares {
            break;
        }
        found.push(Wave { column, frequency, range, variance: 0.0 });
        let Some((variances, rest)) = fitted(&columns, &y, &found) else {
            found.pop();
            break;
        };
        found.iter_mut().zip(variances).for_each(|(wave, variance)| wave.variance = variance);
        left = rest;
    }
    let rest = left.iter().map(|y| y * y).sum::<f64>() / kept.max(1) as f64;
    Waves { waves: found, rest }
}

/// The frequency along a column that takes most of the squares of `y`, and the column's range; none of a column with fewer than four values.
fn peak(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let mut values = x.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (first, last) = (*values.first()?, *values.last()?);
    let range = last - first;
    if values.len() < 4 || !(range > 0.0 && range.is_finite()) {
        return None;
    }
    let step = 1.0 / (FINER * range);
    // Up to the frequency that as many even places could tell.
    let most = ((0.5 * FINER * values.len() as f64) as usize).clamp(2, MOST);
    let mut sums = vec![[0.0f64; 5]; most];
    for (x, y) in x.iter().zip(y) {
        // Cosines and sines of all multiples by one rotation after the other.
        let (turn_sine, turn_cosine) = (TAU * step * (x - first)).sin_cos();
        let (mut cosine, mut sine) = (turn_cosine, turn_sine);
        for own in &mut sums {
            own[0] += cosine * y;
            own[1] += sine * y;
            own[2] += cosine * cosine;
            own[3] += sine * sine;
            own[4] += cosine * sine;
            (cosine, sine) =
                (cosine * turn_cosine - sine * turn_sine, sine * turn_cosine + cosine * turn_sine);
        }
    }
    let (k, _) = sums
        .iter()
        .map(|[c, s, cc, ss, cs]| gain([*c, *s], [*cc, *ss, *cs]))
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    // The golden section on either side.
    let ratio = 0.618_033_988_749_894_9;
    let (mut low, mut high) = ((k as f64 + 0.05) * step, (k as f64 + 2.0) * step);
    for _ in 0..GOLDEN_STEPS {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if taken(x, y, a) >= taken(x, y, b) { high = b } else { low = a }
    }
    Some((0.5 * (low + high), range))
}

/// What the best wave of a frequency takes of the squares of `y`.
fn taken(x: &[f64], y: &[f64], frequency: f64) -> f64 {
    let mut sums = [0.0; 5];
    for (x, y) in x.iter().zip(y) {
        let (sine, cosine) = (TAU * frequency * x).sin_cos();
        let terms = [cosine * y, sine * y, cosine * cosine, sine * sine, cosine * sine];
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    gain([sums[0], sums[1]], [sums[2], sums[3], sums[4]])
}

/// `bᵀ A⁻¹ b` of two normal equations; 0 where they are singular.
fn gain([c, s]: [f64; 2], [cc, ss, cs]: [f64; 3]) -> f64 {
    let determinant = cc * ss - cs * cs;
    if determinant > 1e-9 * cc * ss {
        (c * c * ss - 2.0 * c * s * cs + s * s * cc) / determinant
    } else {
        0.0
    }
}

/// Half of the squared amplitudes of all waves together with a constant, by least squares, and what they leave; none where two of them are the same.
fn fitted(columns: &[Vec<f64>], y: &[f64], waves: &[Wave]) -> Option<(Vec<f64>, Vec<f64>)> {
    let (n, width) = (y.len(), 2 * waves.len() + 1);
    let design = Mat::from_fn(n, width, |i, k| match k.checked_sub(1) {
        None => 1.0,
        Some(k) => {
            let wave = waves[k / 2];
            let angle = TAU * wave.frequency * columns[wave.column][i];
            if k % 2 == 0 { angle.cos() } else { angle.sin() }
        }
    });
    let mut normal = design.transpose() * &design;
    // Two waves that are nearly one share what they have.
    (0..width).for_each(|k| normal[(k, k)] += 1e-6 * n as f64);
    let right = design.transpose() * Mat::from_fn(n, 1, |i, _| y[i]);
    let found = normal.llt(Side::Lower).ok()?.solve(&right);
    let fit = &design * &found;
    let variance = |k: usize| 0.5 * (found[(2 * k + 1, 0)].powi(2) + found[(2 * k + 2, 0)].powi(2));
    Some(((0..waves.len()).map(variance).collect(), (0..n).map(|i| y[i] - fit[(i, 0)]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    fn places(n: usize, name: &str) -> Vec<f64> {
        let mut rng = Streams::new(7).stream(name);
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    /// Two waves along two columns in noise, at uneven places: within a hundredth of a cycle over the range.
    #[test]
    fn waves_are_found_in_noise() {
        for n in [150, 1000, 5000] {
            let (a, b, noise) = (places(n, "a"), places(n, "b"), places(n, "noise"));
            let y: Vec<f64> = (0..n)
                .map(|i| {
                    3.0 + 2.0 * (TAU * 1.37 * a[i] + 0.4).sin() + (TAU * 3.1 * b[i]).cos() + 0.5 * noise[i]
                })
                .collect();
            let found = waves(&[a, b], &y, 5);
            assert_eq!(found.waves.len(), 2, "{n}: {found:?}");
            for (wave, (column, frequency, variance)) in
                found.waves.iter().zip([(0, 1.37, 2.0), (1, 3.1, 0.5)])
            {
                assert_eq!(wave.column, column);
                assert!((wave.frequency - frequency).abs() * wave.range < 0.1, "{n}: {wave:?}");
                assert!((wave.variance / variance).ln().abs() < 0.35, "{n}: {wave:?}");
            }
            assert!((found.rest - 0.25).abs() < 0.08, "{n}: {found:?}");
        }
    }

    #[test]
    fn noise_and_what_does_not_vary_have_none() {
        let (x, noise) = (places(400, "x"), places(400, "noise"));
        assert!(waves(std::slice::from_ref(&x), &noise, 3).waves.is_empty());
        assert!(waves(&[vec![1.0; 400]], &x, 3).waves.is_empty());
        assert!(waves(&[x], &vec![2.0; 400], 3).waves.is_empty());
        assert!(waves(&[Vec::new()], &[], 3).waves.is_empty() && waves(&[], &[1.0], 3).waves.is_empty());
        // Even places: nothing is taken for what its aliases are.
        let even: Vec<f64> = (0..3000).map(f64::from).collect();
        let y: Vec<f64> = even.iter().map(|x| (TAU * x / 24.0).sin()).collect();
        let found = waves(&[even], &y, 1).waves[0];
        assert!((1.0 / found.frequency - 24.0).abs() < 0.05, "{found:?}");
    }
}
