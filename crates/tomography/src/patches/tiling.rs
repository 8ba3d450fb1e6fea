//! Patches that cover an image, every pixel once.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A rectangle of pixels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// Its rows.
    pub rows: Range<usize>,
    /// Its columns.
    pub columns: Range<usize>,
}

impl Patch {
    /// Its pixels in an image of that width, row-major.
    pub fn pixels(&self, width: usize) -> impl Iterator<Item = usize> + '_ {
        self.rows.clone().flat_map(move |i| self.columns.clone().map(move |j| i * width + j))
    }
}

/// Why an image cannot be tiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TilingError {
    /// A side of nothing.
    #[error(
        "an image of {height} x {width} pixels has no patches of side {side}: the side must be from 1 to the shorter side of the image"
    )]
    Side {
        /// Rows of the image.
        height: usize,
        /// Columns of the image.
        width: usize,
        /// Of a patch.
        side: usize,
    },
    /// A window that is not in the image.
    #[error("the window {}..{} is empty or not within the {length} {what} of the image", .window.start, .window.end)]
    Window {
        /// Rows or columns.
        what: &'static str,
        /// Of the window.
        window: Range<usize>,
        /// Of the image.
        length: usize,
    },
}

/// Patches of `side x side` from the upper left corner; the last one along an axis absorbs the remainder, and so is up to `2 side - 1` long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tiling {
    height: usize,
    width: usize,
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
}

impl Tiling {
    /// Of an image of `height x width`.
    ///
    /// # Errors
    /// [`TilingError::Side`] when a patch is empty or larger than the image.
    pub fn new(height: usize, width: usize, side: usize) -> Result<Self, TilingError> {
        if side == 0 || side > height || side > width {
            return Err(TilingError::Side { height, width, side });
        }
        let cut = |length: usize| -> Vec<Range<usize>> {
            let count = length / side;
            (0..count).map(|i| i * side..if i + 1 == count { length } else { (i + 1) * side }).collect()
        };
        Ok(Self { height, width, rows: cut(height), columns: cut(width) })
    }

    /// Only patches that touch a window: the window rounded outward to whole patches of the whole image's tiling.
    ///
    /// # Errors
    /// [`TilingError::Window`] when it is empty or not within the image.
    pub fn within(mut self, rows: Range<usize>, columns: Range<usize>) -> Result<Self, TilingError> {
        for (what, window, length) in [("rows", &rows, self.height), ("columns", &columns, self.width)] {
            if window.is_empty() || window.end > length {
                return Err(TilingError::Window { what, window: window.clone(), length });
            }
        }
        self.rows.retain(|own| own.start < rows.end && own.end > rows.start);
        self.columns.retain(|own| own.start < columns.end && own.end > columns.start);
        Ok(self)
    }

    /// Columns of the image.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Pixels of the image.
    pub fn image_pixels(&self) -> usize {
        self.height * self.width
    }

    /// All patches, row by row.
    pub fn patches(&self) -> Vec<Patch> {
        let row = |rows: &Range<usize>| {
            let rows = rows.clone();
            self.columns.iter().map(move |columns| Patch { rows: rows.clone(), columns: columns.clone() })
        };
        self.rows.iter().flat_map(row).collect()
    }
}
