//! What is **known** about an operator's matrix: a set of properties, closed under implication.
//!
//! A property that is not in the set may still hold; one that is in the set must. All but low rank are properties of square
//! matrices only.

use super::OperatorError;
use std::fmt;
use std::ops::BitOr;

/// A set of properties of a matrix. Union by `|`; sets are always complete (what is diagonal is also symmetric and triangular).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Structure(u16);

const SYMMETRIC: u16 = 1;
const SEMIDEFINITE: u16 = 1 << 1;
const DEFINITE: u16 = 1 << 2;
const LOWER: u16 = 1 << 3;
const UPPER: u16 = 1 << 4;
const DIAGONAL: u16 = 1 << 5;
const IDENTITY: u16 = 1 << 6;
const LOW_RANK: u16 = 1 << 7;

/// Names, the most telling first; a property is not spelled out when an earlier one in the set implies it.
const NAMES: [(u16, &str); 8] = [
    (IDENTITY, "the identity"),
    (DIAGONAL, "diagonal"),
    (DEFINITE, "positive definite"),
    (SEMIDEFINITE, "positive semidefinite"),
    (SYMMETRIC, "symmetric"),
    (LOWER, "lower triangular"),
    (UPPER, "upper triangular"),
    (LOW_RANK, "of low rank"),
];

impl Structure {
    /// Nothing is known.
    pub const GENERAL: Self = Self(0);
    /// `A = Aᵀ`.
    pub const SYMMETRIC: Self = Self::closed(SYMMETRIC);
    /// Symmetric, and `xᵀ A x >= 0` for all x.
    pub const POSITIVE_SEMIDEFINITE: Self = Self::closed(SEMIDEFINITE);
    /// Symmetric, and `xᵀ A x > 0` for all x other than 0.
    pub const POSITIVE_DEFINITE: Self = Self::closed(DEFINITE);
    /// Nothing but zeros above the diagonal.
    pub const LOWER_TRIANGULAR: Self = Self::closed(LOWER);
    /// Nothing but zeros below the diagonal.
    pub const UPPER_TRIANGULAR: Self = Self::closed(UPPER);
    /// Nothing but zeros off the diagonal.
    pub const DIAGONAL: Self = Self::closed(DIAGONAL);
    /// Ones on the diagonal, zeros elsewhere.
    pub const IDENTITY: Self = Self::closed(IDENTITY);
    /// Rank below both numbers of rows and columns: singular if square.
    pub const LOW_RANK: Self = Self::closed(LOW_RANK);

    /// Adds all that follows from the properties in `bits`.
    const fn closed(mut bits: u16) -> Self {
        if bits & IDENTITY != 0 {
            bits |= DIAGONAL | DEFINITE;
        }
        if bits & LOWER != 0 && bits & (UPPER | SYMMETRIC | SEMIDEFINITE | DEFINITE) != 0 {
            bits |= DIAGONAL;
        }
        if bits & UPPER != 0 && bits & (SYMMETRIC | SEMIDEFINITE | DEFINITE) != 0 {
            bits |= DIAGONAL;
        }
        if bits & DIAGONAL != 0 {
            bits |= SYMMETRIC | LOWER | UPPER;
        }
        if bits & DEFINITE != 0 {
            bits |= SEMIDEFINITE;
        }
        if bits & SEMIDEFINITE != 0 {
            bits |= SYMMETRIC;
        }
        Self(bits)
    }

    /// Whether all of `properties` are known to hold.
    pub const fn contains(self, properties: Self) -> bool {
        self.0 & properties.0 == properties.0
    }

    /// Refuses an operator that lacks what `method` relies on.
    ///
    /// # Errors
    /// [`OperatorError::Unsuitable`], naming the method, what it needs and what is known.
    pub const fn require(self, needed: Self, method: &'static str) -> Result<(), OperatorError> {
        if self.contains(needed) {
            Ok(())
        } else {
            Err(OperatorError::Unsuitable { method, needed, known: self })
        }
    }

    /// Whether it claims something that only a square matrix can be.
    pub(super) const fn needs_square(self) -> bool {
        self.0 & !LOW_RANK != 0
    }

    /// All but low rank.
    pub(super) const fn without_low_rank(self) -> Self {
        Self(self.0 & !LOW_RANK)
    }

    /// Of `A + B`.
    pub(super) const fn sum(self, other: Self) -> Self {
        let kept = self.0 & other.0 & !(IDENTITY | LOW_RANK | DEFINITE);
        let definite = if kept & SEMIDEFINITE != 0 { (self.0 | other.0) & DEFINITE } else { 0 };
        Self::closed(kept | definite)
    }

    /// Of `A B`, without low rank, which depends on shapes. Diagonal matrices commute, so their product keeps definiteness; others
    /// do not.
    pub(super) const fn product(self, other: Self) -> Self {
        if self.0 & IDENTITY != 0 {
            return other.without_low_rank();
        }
        if other.0 & IDENTITY != 0 {
            return self.without_low_rank();
        }
        let both = self.0 & other.0;
        let triangular = both & (LOWER | UPPER);
        let commuting = if both & DIAGONAL != 0 { both & (DIAGONAL | SEMIDEFINITE | DEFINITE) } else { 0 };
        Self::closed(triangular | commuting)
    }

    /// Of `c A`.
    pub(super) fn scaled(self, factor: f64) -> Self {
        let mut kept = self.0 & (SYMMETRIC | LOWER | UPPER | DIAGONAL | LOW_RANK);
        if factor >= 0.0 {
            kept |= self.0 & SEMIDEFINITE;
        }
        if factor > 0.0 {
            kept |= self.0 & DEFINITE;
        }
        if factor == 1.0 {
            kept |= self.0;
        }
        Self::closed(kept)
    }

    /// Of `Aᵀ`.
    pub(super) const fn transposed(self) -> Self {
        let mut bits = self.0 & !(LOWER | UPPER);
        if self.0 & LOWER != 0 {
            bits |= UPPER;
        }
        if self.0 & UPPER != 0 {
            bits |= LOWER;
        }
        Self::closed(bits)
    }

    /// Of `A ⊗ B` and of `diag(A, B)`: what holds for both parts; one part of low rank is enough.
    pub(super) const fn blocks(self, other: Self) -> Self {
        Self::closed((self.0 & other.0 & !LOW_RANK) | ((self.0 | other.0) & LOW_RANK))
    }
}

impl BitOr for Structure {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::closed(self.0 | other.0)
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Self::GENERAL;
        for (bit, name) in NAMES {
            if self.0 & bit != 0 && said.0 & bit == 0 {
                formatter.write_str(if said == Self::GENERAL { "" } else { " and " })?;
                formatter.write_str(name)?;
                said = said | Self::closed(bit);
            }
        }
        if *self == Self::GENERAL { formatter.write_str("a general matrix") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_added() {
        assert!(Structure::IDENTITY.contains(Structure::POSITIVE_DEFINITE | Structure::UPPER_TRIANGULAR));
        assert!(Structure::POSITIVE_DEFINITE.contains(Structure::SYMMETRIC));
        assert!(!Structure::SYMMETRIC.contains(Structure::POSITIVE_SEMIDEFINITE));
        assert!((Structure::LOWER_TRIANGULAR | Structure::UPPER_TRIANGULAR).contains(Structure::DIAGONAL));
        assert!((Structure::UPPER_TRIANGULAR | Structure::POSITIVE_DEFINITE).contains(Structure::DIAGONAL));
        assert!(!Structure::DIAGONAL.contains(Structure::POSITIVE_SEMIDEFINITE));
    }

    #[test]
    fn refusals_name_the_method_the_need_and_the_knowledge() {
        let error =
            Structure::SYMMETRIC.require(Structure::POSITIVE_DEFINITE, "conjugate gradients").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("conjugate gradients needs an operator that is positive definite"), "{text}");
        assert!(text.contains("known only to be symmetric"), "{text}");
        assert_eq!(Structure::POSITIVE_DEFINITE.require(Structure::SYMMETRIC, "x"), Ok(()));
        assert_eq!(Structure::GENERAL.to_string(), "a general matrix");
        let both = Structure::DIAGONAL | Structure::POSITIVE_DEFINITE;
        assert_eq!(both.to_string(), "diagonal and positive definite");
    }
}
