//! **Bounds of a quantity**: amounts begin at 0, shares end at 1 or 100.

use serde::{Deserialize, Serialize};

/// Share of rows on a bound from which a target has one whatever its distribution looks like.
const ON_BOUND: f64 = 0.02;

/// Bounds of a quantity: a distribution that reaches beyond one has that mass on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Support {
    /// The least value that is told from 0, below which observations count as 0: 0 itself, or of a logarithm half of the least that was seen.
    pub floor: Option<f64>,
    /// The largest value there is.
    pub ceiling: Option<f64>,
}

impl Support {
    /// Whether there are no bounds.
    pub fn is_everywhere(&self) -> bool {
        *self == Self::default()
    }

    /// The value within the bounds that is next to this.
    pub fn nearest(self, y: f64) -> f64 {
        y.max(self.floor.unwrap_or(f64::NEG_INFINITY)).min(self.ceiling.unwrap_or(f64::INFINITY))
    }

    /// The bounds of a quantity that looks like an amount (from 0 on, the least value below a tenth of the median) or like a share (0 to 1, 0 to 100) with rows on a bound; and whether so many rows lie on one that a distribution of the target
    /// as it is has to end there.
    pub fn of_quantity(y: &[f64], least: f64) -> (Self, bool) {
        let mut sorted = y.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&largest), median) =
            (sorted.last(), sorted.get(sorted.len() / 2).copied().unwrap_or_default())
        else {
            return (Self::default(), false);
        };
        let on = |bound: f64| sorted.iter().filter(|y| **y == bound).count() as f64 / sorted.len() as f64;
        let from_zero = least >= 0.0 && (least == 0.0 || least < 0.1 * median);
        let ceiling =
            [1.0, 100.0].into_iter().find(|end| least >= 0.0 && largest == *end && on(*end) >= ON_BOUND);
        let support = Self { floor: from_zero.then_some(0.0), ceiling };
        (support, from_zero && on(0.0) >= ON_BOUND || ceiling.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_shares_have_bounds_and_other_numbers_have_none() {
        let of = |y: &[f64]| Support::of_quantity(y, y.iter().copied().fold(f64::INFINITY, f64::min));
        let (amount, share) =
            (Support { floor: Some(0.0), ceiling: None }, Support { floor: Some(0.0), ceiling: Some(1.0) });
        // Zeros in a tenth of the rows; values near 0, which only a map ends there; lengths that are far from it; differences.
        let zeros: Vec<f64> = (0..40).map(|i| f64::from(i % 10)).collect();
        let near: Vec<f64> = (1..40).map(|i| 0.1 * f64::from(i * i)).collect();
        assert_eq!((of(&zeros), of(&near)), ((amount, true), (amount, false)));
        assert_eq!(of(&[140.0, 160.0, 171.0, 180.0]), (Support::default(), false));
        assert_eq!(of(&[-1.0, 0.0, 2.0]), (Support::default(), false));
        // Largest values of 1 in many rows, and in no more than chance makes.
        let shares: Vec<f64> = (0..50).map(|i| (0.05 + f64::from(i % 5) * 0.3).min(1.0)).collect();
        assert_eq!(of(&shares), (share, true));
        let high: Vec<f64> = (0..50).map(|i| (60.0 + 10.0 * f64::from(i % 7)).min(100.0)).collect();
        assert_eq!(of(&high), (Support { floor: None, ceiling: Some(100.0) }, true));
        assert_eq!(amount.nearest(-3.0), 0.0);
        assert_eq!(share.nearest(7.0), 1.0);
    }
}
