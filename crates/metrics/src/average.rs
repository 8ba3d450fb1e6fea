//! A mean and how well it is known.

use crate::MetricsError;
use serde::{Deserialize, Serialize};

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Average {
    /// The mean.
    pub mean: f64,
    /// Standard deviation of the values (divisor n - 1) over the root of their number; none for a single value.
    pub standard_error: Option<f64>,
}

impl Average {
    /// The average of independent values, such as scores of several seeds.
    ///
    /// # Errors
    /// [`MetricsError::Empty`], or `NotFinite` naming the value, or `Overflow`.
    pub fn of(values: &[f64]) -> Result<Self, MetricsError> {
        if values.is_empty() {
            return Err(MetricsError::Empty);
        }
        if let Some(row) = values.iter().position(|v| !v.is_finite()) {
            return Err(MetricsError::NotFinite { what: "value", row, value: values[row] });
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        if !(mean.is_finite() && squares.is_finite()) {
            return Err(MetricsError::Overflow);
        }
        let standard_error = (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
        Ok(Self { mean, standard_error })
    }

    /// The average of `a - b` pair by pair: whether one method beats another on the same rows is known far better than either
    /// score, because hard rows are hard for both.
    ///
    /// # Errors
    /// As [`Average::of`], and [`MetricsError::Unequal`].
    pub fn of_differences(a: &[f64], b: &[f64]) -> Result<Self, MetricsError> {
        let (left, right) = (a.len(), b.len());
        if left != right {
            return Err(MetricsError::Unequal { left_what: "values", left, right_what: "values", right });
        }
        Self::of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_and_refusals() {
        let average = Average::of(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!(average.mean, 3.0);
        // Squares 4 + 1 + 0 + 9 = 14; √(14/3/4).
        assert!((average.standard_error.unwrap() - (14.0f64 / 12.0).sqrt()).abs() < 1e-15);
        assert_eq!(Average::of(&[5.0]), Ok(Average { mean: 5.0, standard_error: None }));
        assert_eq!(
            Average::of_differences(&[3.0, 4.0], &[1.0, 2.0]),
            Ok(Average { mean: 2.0, standard_error: Some(0.0) })
        );
        assert_eq!(Average::of(&[]), Err(MetricsError::Empty));
        assert!(matches!(Average::of(&[0.0, f64::NAN]), Err(MetricsError::NotFinite { row: 1, .. })));
        assert_eq!(Average::of(&[1e300, -1e300]), Err(MetricsError::Overflow));
        assert!(Average::of_differences(&[1.0], &[]).is_err());
    }
}
