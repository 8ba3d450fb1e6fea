//! Whole numbers that may contain the number of examples: the arithmetic of shapes.

use std::fmt;

/// `fixed + batch * B`, where `B >= 1` is the unknown number of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    pub(super) fixed: i64,
    pub(super) batch: i64,
}

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
        let at_one = self.at_one().ok_or_else(|| format!("{self} does not fit into 64 bits"))?;
        match self.batch {
            0 => Ok(self.fixed.signum()),
            b if b > 0 && at_one > 0 => Ok(1),
            b if b < 0 && at_one < 0 => Ok(-1),
            _ => Err(UNKNOWN.into()),
        }
    }

    /// The number for one example, if it can be counted.
    pub(super) fn at_one(self) -> Option<i64> {
        self.fixed.checked_add(self.batch)
    }

    /// The sign of `self - other`.
    pub(super) fn compare(self, other: Self) -> Result<i64, String> {
        if let (Some(a), Some(b)) = (self.known(), other.known()) {
            return Ok(a.cmp(&b) as i64);
        }
        self.subtract(other)?.sign()
    }

    /// Both parts with their counterparts, by a function that is none where the result does not fit.
    fn both(self, sign: &str, other: Self, f: impl Fn(i64, i64) -> Option<i64>) -> Result<Self, String> {
        let parts = f(self.fixed, other.fixed).zip(f(self.batch, other.batch));
        let (fixed, batch) = parts.ok_or_else(|| overflow(self, sign, other))?;
        Ok(Self { fixed, batch })
    }

    pub(super) fn add(self, other: Self) -> Result<Self, String> {
        self.both("+", other, i64::checked_add)
    }

    pub(super) fn subtract(self, other: Self) -> Result<Self, String> {
        self.both("-", other, i64::checked_sub)
    }

    pub(super) fn multiply(self, other: Self) -> Result<Self, String> {
        let (factor, of) = match (self.known(), other.known()) {
            (Some(factor), _) => (factor, other),
            (None, Some(factor)) => (factor, self),
            (None, None) => return Err(UNKNOWN.into()),
        };
        let parts = of.fixed.checked_mul(factor).zip(of.batch.checked_mul(factor));
        let (fixed, batch) = parts.ok_or_else(|| overflow(self, "*", other))?;
        Ok(Self { fixed, batch })
    }

    /// Quotient towards zero, as ONNX divides whole numbers.
    pub(super) fn divide(self, other: Self) -> Result<Self, String> {
        let fits = |quotient: Option<i64>| quotient.ok_or_else(|| overflow(self, "/", other));
        // The remainder of a division by -1 is 0, also where the quotient does not fit.
        let divides = |of: i64, divisor: i64| of.checked_rem(divisor).unwrap_or(0) == 0;
        if let (0, 0, divisor) = (self.fixed, other.fixed, other.batch)
            && divisor != 0
            && divides(self.batch, divisor)
        {
            return Ok(Self::from(fits(self.batch.checked_div(divisor))?));
        }
        let divisor = other.known().ok_or(UNKNOWN)?;
        if divisor == 0 {
            return Err(format!("{self} / 0 is a division by zero"));
        }
        if self.batch != 0 && !(divides(self.fixed, divisor) && divides(self.batch, divisor)) {
            return Err(UNKNOWN.into());
        }
        let fixed = fits(self.fixed.checked_div(divisor))?;
        Ok(Self { fixed, batch: fits(self.batch.checked_div(divisor))? })
    }

    /// Remainder with the sign of the divisor (`fmod` false) or of the dividend.
    pub(super) fn remainder(self, other: Self, like_c: bool) -> Result<Self, String> {
        let (Some(a), Some(b)) = (self.known(), other.known()) else { return Err(UNKNOWN.into()) };
        if b == 0 {
            return Err(format!("{a} mod 0 is a division by zero"));
        }
        // That of the least number and -1 is 0, though their quotient does not fit.
        let r = a.wrapping_rem(b);
        Ok(Self::from(if !like_c && r != 0 && (r < 0) != (b < 0) { r + b } else { r }))
    }
}

fn overflow(a: Dimension, sign: &str, b: Dimension) -> String {
    format!("{a} {sign} {b} does not fit into 64 bits")
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

    /// The least number over, modulo and compared with others: no result wraps around, and each refusal shows the numbers.
    #[test]
    fn numbers_at_the_end_of_their_range() {
        let (least, most) = (Dimension::from(i64::MIN), Dimension::from(i64::MAX));
        let one = Dimension::from(1);
        let minus = Dimension::from(-1);
        let batches = |batch: i64| Dimension { fixed: 0, batch };
        let refused = |result: Result<Dimension, String>, shown: &str| {
            assert_eq!(result.unwrap_err(), format!("{shown} does not fit into 64 bits"));
        };
        refused(least.divide(minus), "-9223372036854775808 / -1");
        refused(batches(i64::MIN).divide(minus), "-9223372036854775808*batch / -1");
        refused(batches(i64::MIN).divide(batches(-1)), "-9223372036854775808*batch / -1*batch");
        refused(
            Dimension { fixed: i64::MIN, batch: 2 }.divide(minus),
            "(-9223372036854775808 + 2*batch) / -1",
        );
        refused(least.multiply(minus), "-9223372036854775808 * -1");
        refused(most.add(one), "9223372036854775807 + 1");
        refused(Dimension::from(0).subtract(least), "0 - -9223372036854775808");
        for like_c in [false, true] {
            assert_eq!(least.remainder(minus, like_c), Ok(0.into()));
            assert!(least.remainder(0.into(), like_c).unwrap_err().contains("division by zero"));
        }
        assert_eq!(least.remainder(most, false), Ok((i64::MAX - 1).into()));
        // Their difference does not fit, their order is known.
        assert_eq!((least.compare(most), most.compare(least)), (Ok(-1), Ok(1)));
        assert!(batches(i64::MAX).add(most).unwrap().compare(0.into()).unwrap_err().contains("64 bits"));
    }
}
