//! A smooth curve with a gap, and a standard problem with irrelevant inputs.

use crate::{Column, Table};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Standard deviation of the noise of [`curve_with_gap`].
pub const CURVE_NOISE: f64 = 0.1;

/// The noiseless function of [`curve_with_gap`].
pub fn curve(x: f64) -> f64 {
    (1.5 * x).sin() + 0.3 * x + 0.25 * (4.0 * x).cos()
}

/// `rows` noisy values of a smooth function on [-4, -0.8] and [1.2, 4], with nothing observed between: columns `x`, `y`.
pub fn curve_with_gap(rows: usize, streams: Streams) -> Table {
    let mut rng = streams.stream("data/curve");
    let (mut x, mut y) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for _ in 0..rows {
        // The left piece has 3.2 of the 6.0 units of length.
        let u: f64 = rng.random::<f64>() * 6.0;
        let at = if u < 3.2 { -4.0 + u } else { 1.2 + (u - 3.2) };
        let noise: f64 = StandardNormal.sample(&mut rng);
        x.push(at);
        y.push(curve(at) + CURVE_NOISE * noise);
    }
    Table::new("synthetic curve", vec![Column::numeric("x", x), Column::numeric("y", y)])
}

/// Friedman's first problem (Friedman 1991): `y = 10 sin(π x1 x2) + 20 (x3 - ½)² + 10 x4 + 5 x5 + ε` with ten inputs uniform
/// on [0, 1], of which five are irrelevant, and standard normal noise. Columns `x1` to `x10`, `y`.
pub fn friedman(rows: usize, streams: Streams) -> Table {
    let mut rng = streams.stream("data/friedman");
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); 11];
    for _ in 0..rows {
        let x: Vec<f64> = (0..10).map(|_| rng.random()).collect();
        let noise: f64 = StandardNormal.sample(&mut rng);
        let value = 10.0 * (std::f64::consts::PI * x[0] * x[1]).sin()
            + 20.0 * (x[2] - 0.5).powi(2)
            + 10.0 * x[3]
            + 5.0 * x[4]
            + noise;
        x.into_iter().chain([value]).zip(&mut columns).for_each(|(v, column)| column.push(v));
    }
    let name = |j: usize| if j == 10 { "y".to_string() } else { format!("x{}", j + 1) };
    let columns =
        columns.into_iter().enumerate().map(|(j, values)| Column::numeric(name(j), values)).collect();
    Table::new("Friedman's problem", columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    fn numbers(table: &Table, name: &str) -> Vec<f64> {
        match &table.column(name).unwrap().values {
            Values::Numeric(values) => values.clone(),
            Values::Text(_) => panic!("text"),
        }
    }

    #[test]
    fn the_curve_leaves_its_gap_and_has_its_noise() {
        let table = curve_with_gap(4_000, Streams::new(1));
        let (x, y) = (numbers(&table, "x"), numbers(&table, "y"));
        assert!(x.iter().all(|v| (-4.0..=-0.8).contains(v) || (1.2..=4.0).contains(v)));
        let square: f64 = x.iter().zip(&y).map(|(x, y)| (y - curve(*x)).powi(2)).sum::<f64>() / 4_000.0;
        // Five standard errors of a variance from 4,000 normal draws.
        assert!((square / CURVE_NOISE.powi(2) - 1.0).abs() < 5.0 * (2.0f64 / 4_000.0).sqrt());
        assert_eq!(table, curve_with_gap(4_000, Streams::new(1)));
    }

    #[test]
    fn friedman_has_ten_inputs_and_unit_noise() {
        let table = friedman(4_000, Streams::new(1));
        assert_eq!(table.columns.len(), 11);
        let x: Vec<Vec<f64>> = (1..=5).map(|j| numbers(&table, &format!("x{j}"))).collect();
        let y = numbers(&table, "y");
        let residual = |i: usize| {
            y[i] - 10.0 * (std::f64::consts::PI * x[0][i] * x[1][i]).sin()
                - 20.0 * (x[2][i] - 0.5).powi(2)
                - 10.0 * x[3][i]
                - 5.0 * x[4][i]
        };
        let square: f64 = (0..4_000).map(|i| residual(i).powi(2)).sum::<f64>() / 4_000.0;
        assert!((square - 1.0).abs() < 5.0 * (2.0f64 / 4_000.0).sqrt());
    }
}
