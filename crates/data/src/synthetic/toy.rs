//! Regression problems in one dimension with their truth.

use crate::standardise::mean_and_scale;
use crate::{Column, Table};

/// Noisy values of a function of one input, and the truth behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct ToyRegression {
    /// What the problem is called; the `source` of its table.
    pub name: &'static str,
    /// Inputs (n).
    pub x: Vec<f64>,
    /// Observed values (n): `function` plus independent normal noise.
    pub y: Vec<f64>,
    /// The noiseless function at each input (n), in the units of `y`.
    pub function: Vec<f64>,
    /// Standard deviation of the noise, in the units of `y`. The noise precision of a model is `1 / noise²`.
    pub noise: f64,
}

impl ToyRegression {
    /// Columns `x` and `y`.
    pub fn table(&self) -> Table {
        let columns = vec![Column::numeric("x", self.x.clone()), Column::numeric("y", self.y.clone())];
        Table::new(self.name, columns)
    }

    /// The same problem with `x` and `y` of mean 0 and population standard deviation 1; function and noise are taken along, so
    /// that the noise becomes its former value over the standard deviation of `y`.
    pub fn standardised(mut self) -> Self {
        let (mean, scale) = mean_and_scale(|i| self.x[i], self.x.len());
        self.x.iter_mut().for_each(|v| *v = (*v - mean) / scale);
        let (mean, scale) = mean_and_scale(|i| self.y[i], self.y.len());
        self.y.iter_mut().chain(&mut self.function).for_each(|v| *v = (*v - mean) / scale);
        self.noise /= scale;
        self
    }
}
