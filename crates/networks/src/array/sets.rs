//! How the rows of a block of tangents or cotangents share parameters.

/// Rows of a block come example by example: row `r` of `examples * width` belongs to example `r / width`, and is tangent `r % width` of it.
/// `Sets` says which rows meet the same set of parameters (going forward) or are summed into the same gradient (going back).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sets {
    /// All rows share one set.
    One,
    /// Tangent `k` of every example shares set `k`, of so many.
    Tangents(usize),
    /// Every row has its own.
    Rows,
}

impl Sets {
    /// The set of row `row`.
    #[inline(always)]
    pub(crate) fn of(self, row: usize) -> usize {
        match self {
            Self::One => 0,
            Self::Tangents(width) => row % width,
            Self::Rows => row,
        }
    }

    /// Number of sets among `rows` rows.
    pub(crate) fn count(self, rows: usize) -> usize {
        match self {
            Self::One => 1,
            Self::Tangents(width) => width,
            Self::Rows => rows,
        }
    }

    /// The rows of set `set`, as (first, step, count).
    pub(crate) fn rows(self, set: usize, rows: usize) -> (usize, usize, usize) {
        match self {
            Self::One => (0, 1, rows),
            Self::Tangents(width) => (set, width, rows / width),
            Self::Rows => (set, 1, 1),
        }
    }
}
