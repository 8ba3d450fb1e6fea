//! Whole numbers that may contain the number of examples: the arithmetic of shapes.

use std::fmt;

/// `fixed + batch * B`, where `B >= 1` is the unknown number of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    pub(super) fixed: i64,
    pub(super) batch: i64,
}

const OVERFLOW: &str = "a number in the arithmetic of shapes overflows";
const UNKNOWN: &str =
    "the arithmetic of shapes depends on the number of examples in a way that is not linear";

impl From<i64> for Dimension {
    fn from(fixed: i64) -> Self {
        Self { fixed, batch: 0 }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fixed, self.batch) {
            (fixed, 0) => write!(f, "{fixed}"),
            (0, 1) => write!(f, "batch"),
            (0, batch) => write!(f, "{batch}*batch"),
            (fixed, batch) => write!(f, "({fixed} + {batch}*batch)"),
        }
    }
}

impl Dimension {
    /// The number, if it does not depend on the number of examples.
    pub(super) fn known(self) -> Option<i64> {
        (self.batch == 0).then_some(self.fixed)
    }

    /// -1, 0 or 1 where the sign is the same for every number of examples.
    fn sign(self) -> Result<i64, String> {
        let at_one = self.fixed.checked_add(self.batch).ok_or(OVERFLOW)?;
        match self.batch {
            0 => Ok(self.fixed.signum()),
            b if b > 0 && at_one > 0 => Ok(1),
            b if b < 0 && at_one < 0 => Ok(-1),
            _ => Err(UNKNOWN.into()),
        }
    }

    /// The sign of `self - other`.
    pub(super) fn compare(self, other: Self) -> Result<i64, String> {
        self.subtract(other)?.sign()
    }

    pub(super) fn add(self, other: Self) -> Result<Self, String> {
        let fixed = self.fixed.checked_add(other.fixed).ok_or(OVERFLOW)?;
        Ok(Self { fixed, batch: self.batch.checked_add(other.batch).ok_or(OVERFLOW)? })
    }

    pub(super) fn subtract(self, other: Self) -> Result<Self, String> {
        let fixed = self.fixed.checked_sub(other.fixed).ok_or(OVERFLOW)?;
        Ok(Self { fixed, batch: self.batch.checked_sub(other.batch).ok_or(OVERFLOW)? })
    }

    pub(super) fn multiply(self, other: Self) -> Result<Self, String> {
        let (factor, of) = match (self.known(), other.known()) {
            (Some(factor), _) => (factor, other),
            (None, Some(factor)) => (factor, self),
            (None, None) => return Err(UNKNOWN.into()),
        };
        let fixed = of.fixed.checked_mul(factor).ok_or(OVERFLOW)?;
        Ok(Self { fixed, batch: of.batch.checked_mul(factor).ok_or(OVERFLOW)? })
    }

    /// Quotient towards zero, as ONNX divides whole numbers.
    pub(super) fn divide(self, other: Self) -> Result<Self, String> {
        if let (0, 0, divisor) = (self.fixed, other.fixed, other.batch)
            && divisor != 0
            && self.batch % divisor == 0
        {
            return Ok(Self::from(self.batch / divisor));
        }
        let divisor = other.known().ok_or(UNKNOWN)?;
        if divisor == 0 {
            return Err("the arithmetic of shapes divides by zero".into());
        }
        if self.batch != 0 && (self.fixed % divisor != 0 || self.batch % divisor != 0) {
            return Err(UNKNOWN.into());
        }
        let fixed = self.fixed.checked_div(divisor).ok_or(OVERFLOW)?;
        Ok(Self { fixed, batch: self.batch.checked_div(divisor).ok_or(OVERFLOW)? })
    }

    /// Remainder with the sign of the divisor (`fmod` false) or of the dividend.
    pub(super) fn remainder(self, other: Self, like_c: bool) -> Result<Self, String> {
        let (Some(a), Some(b)) = (self.known(), other.known()) else { return Err(UNKNOWN.into()) };
        let r = a.checked_rem(b).ok_or("the arithmetic of shapes divides by zero")?;
        Ok(Self::from(if !like_c && r != 0 && (r < 0) != (b < 0) { r + b } else { r }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_agrees_with_every_batch_size() {
        let all: Vec<Dimension> = [(0, 0), (1, 0), (-1, 0), (6, 0), (0, 1), (0, 4), (2, 4), (-3, 0), (3, -5)]
            .map(|(fixed, batch)| Dimension { fixed, batch })
            .to_vec();
        let at = |d: Dimension, b: i64| d.fixed + d.batch * b;
        let mut results = 0;
        for &x in &all {
            for &y in &all {
                for b in 1..20 {
                    let (u, v) = (at(x, b), at(y, b));
                    assert_eq!(at(x.add(y).unwrap(), b), u + v);
                    assert_eq!(at(x.subtract(y).unwrap(), b), u - v);
                    for (value, expected) in [
                        (x.multiply(y), Some(u * v)),
                        (x.divide(y), u.checked_div(v)),
                        (
                            x.remainder(y, false),
                            (v != 0).then(|| u - v * (u as f64 / v as f64).floor() as i64),
                        ),
                    ] {
                        if let Ok(value) = value {
                            results += 1;
                            assert_eq!(Some(at(value, b)), expected, "{x} and {y} at {b}");
                        }
                    }
                    if let Ok(sign) = x.compare(y) {
                        assert_eq!(sign, (u - v).signum(), "{x} and {y} at {b}");
                    }
                }
            }
        }
        assert!(results > 1000, "most of the arithmetic is possible: {results}");
        assert!(Dimension::from(i64::MAX).add(Dimension::from(1)).is_err());
        assert!(Dimension::from(i64::MIN).divide(Dimension::from(-1)).is_err());
        assert!(Dimension::from(1).divide(Dimension::from(0)).is_err());
    }
}
