//! What residuals say of the noise: whether it depends on the inputs, and whether it has outliers.

use crate::rows::robust_moments;
use faer::MatRef;

/// How often chance alone says that noise depends on some input, at most.
const CHANCE: f64 = 1e-3;

/// The least square of a standardised residual whose logarithm is taken: smaller ones are one and the same, so that few rows near their prediction do not decide.
const LEAST_SQUARE: f64 = 1e-3;

/// Robust standard deviations beyond which a row is an outlier: normal rows are once in five hundred million.
const OUTLIER: f64 = 6.0;

/// Robust standard deviations beyond which rows make a heavy tail, and how many do: of 2,000 normal rows one in eight tables has a single one.
const FAR: f64 = 4.0;
const FEWEST_FAR: usize = 3;

/// Whether the size of standardised residuals depends on a column of x (n x D): the logarithms of their squares are regressed on each with its square. Under equal noise n R² of a
/// regression on two variables is a χ² variable of two degrees of freedom, which exceeds t with probability exp(-t/2).
pub(super) fn noise_depends_on(residuals: &[f64], x: MatRef<'_, f64>) -> bool {
    let sizes: Vec<f64> = residuals.iter().map(|z| (z * z).max(LEAST_SQUARE).ln()).collect();
    let sizes = centred(&sizes);
    let bound = 2.0 * (x.ncols() as f64 / CHANCE).ln();
    (0..x.ncols()).any(|j| {
        let column: Vec<f64> = x.col(j).iter().copied().collect();
        explained(&sizes, &column) * residuals.len() as f64 > bound
    })
}

/// The share of the variance of centred values that a column and its square explain.
fn explained(values: &[f64], column: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let total = dot(values, values);
    let first = centred(column);
    let length = dot(&first, &first);
    if total <= 0.0 || length <= 0.0 {
        return 0.0;
    }
    let squares = centred(&first.iter().map(|v| v * v).collect::<Vec<_>>());
    let slope = dot(&squares, &first) / length;
    let second: Vec<f64> = squares.iter().zip(&first).map(|(s, f)| s - slope * f).collect();
    let rest = dot(&second, &second);
    let linear = dot(values, &first).powi(2) / length;
    // Of a column of two values the square says nothing more.
    let curved =
        if rest > 1e-9 * dot(&squares, &squares) { dot(values, &second).powi(2) / rest } else { 0.0 };
    (linear + curved) / total
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|v| v - mean).collect()
}

/// How many robust standard deviations each residual is away from their median; none where more than half are equal.
fn distances(residuals: &[f64]) -> Vec<f64> {
    let [median, deviation] = robust_moments(residuals.iter().copied());
    match deviation > 0.0 {
        true => residuals.iter().map(|r| (r - median).abs() / deviation).collect(),
        false => Vec::new(),
    }
}

/// Residuals beyond [`OUTLIER`] robust standard deviations, the furthest first.
pub(super) fn outliers(residuals: &[f64]) -> Vec<usize> {
    let distances = distances(residuals);
    let mut far: Vec<usize> = (0..distances.len()).filter(|&i| distances[i] > OUTLIER).collect();
    far.sort_by(|&i, &j| distances[j].total_cmp(&distances[i]));
    far
}

/// Whether there are outliers among residuals, or more of them far away than normal ones have.
pub(super) fn has_heavy_tails(residuals: &[f64]) -> bool {
    let distances = distances(residuals);
    let beyond = |bound: f64| distances.iter().filter(|d| **d > bound).count();
    beyond(OUTLIER) > 0 || beyond(FAR) >= FEWEST_FAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(n: usize, k: u64) -> Vec<f64> {
        let mut rng = Streams::new(7).child("model/signs-test", k).stream("normal");
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    #[test]
    fn noise_that_depends_on_a_column_or_a_category_is_noticed_and_equal_noise_is_not() {
        let n = 400;
        // A number, and a category of two in five rows.
        let x = Mat::from_fn(n, 2, |i, j| match j {
            0 => (i as f64 / n as f64 - 0.5) * 3.46,
            _ => f64::from(u8::from(i % 5 < 2)),
        });
        let mut wrong = 0;
        for k in 0..200 {
            let z = normal(n, k);
            wrong += usize::from(noise_depends_on(&z, x.as_ref()));
            let scaled = |by: &dyn Fn(usize) -> f64| -> Vec<f64> {
                z.iter().enumerate().map(|(i, z)| by(i) * z).collect()
            };
            let grows = scaled(&|i| (0.8 * x[(i, 0)]).exp());
            let apart = scaled(&|i| 1.0 + 2.0 * x[(i, 1)]);
            let middle = scaled(&|i| 0.3 + x[(i, 0)].powi(2));
            for (name, z) in [("grows", grows), ("apart", apart), ("middle", middle)] {
                assert!(noise_depends_on(&z, x.as_ref()), "{k} {name}");
            }
        }
        // One in a thousand is expected: of 200 tables more than two are once in a thousand.
        assert!(wrong <= 2, "{wrong}");
    }

    #[test]
    fn outliers_are_found_whatever_their_size_and_normal_rows_are_none() {
        let mut heavy = 0;
        for k in 0..200 {
            let mut z = normal(300, k);
            heavy += usize::from(has_heavy_tails(&z));
            assert!(outliers(&z).is_empty());
            (z[137], z[20]) = (1e4, -9.0);
            assert_eq!(outliers(&z), [137, 20]);
            // Ratios of normal numbers, which are Cauchy ones.
            let ratios: Vec<f64> =
                normal(300, k).iter().zip(normal(300, k + 1000)).map(|(a, b)| a / b).collect();
            assert!(has_heavy_tails(&ratios));
        }
        assert!(heavy <= 1, "{heavy}");
        assert!(outliers(&[1.0, 1.0, 1.0, 50.0]).is_empty(), "no scale");
    }
}
