//! How often rounding puts a correlation above 1, and by how much.
//!
//! Dual maps take such correlations for 1, without a word: their loops have no branches, and what is cut off is rounding. Whoever wants to know asks ([`crate::Kernel::clipped_correlations`]), and pays for the matrix once more.

use super::activation::{DualMap, Side};
use super::scales::Affine;
use posterior_linalg::Real;
use serde::{Deserialize, Serialize};

/// Correlations between sums before activations that came out above 1 and counted as 1, over all pairs of points and layers (and positions of images).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClippedCorrelations {
    /// How many.
    pub count: u64,
    /// How many correlations there were.
    pub of: u64,
    /// By how much the largest was above 1; 0 where none was. Some ε of the precision, unless sums of many channels or columns lose more.
    pub largest: f64,
}

impl ClippedCorrelations {
    /// All of several.
    pub(crate) fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |a, b| Self {
            count: a.count + b.count,
            of: a.of + b.of,
            largest: a.largest.max(b.largest),
        })
    }

    /// Adds those of `states`, covariances before a layer, with their variances and what the map makes of them.
    #[inline(always)]
    pub(super) fn look<T: Real>(
        &mut self,
        map: impl DualMap<T>,
        affine: Affine<T>,
        sides: impl Iterator<Item = (Side<T>, Side<T>)>,
        states: &[T],
    ) {
        for (&state, (a, b)) in states.iter().zip(sides) {
            let above = map.clipped(a, state.mul_add(affine.gain, affine.offset), b);
            self.of += 1;
            if above > T::ZERO {
                self.count += 1;
                self.largest = self.largest.max(above.to_f64());
            }
        }
    }
}
