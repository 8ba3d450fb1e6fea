//! Pairs of positions along one axis, and the pairs that a layer makes of them.
//!
//! All that a layer does to a covariance `K[p, q]` between positions of two images is done to their rows and to their columns: a filter moves both positions
//! together, the windows of a pool move each by itself.
//!
//! ```text
//! convolution  (p, q)  is the sum over d     of  (s p + d, s q + d)
//! pool         (p, q)  is the sum over d, e  of  (s p + d, s q + e)
//! ```

use super::layers::{ImageLayerError, Slide};

/// Pairs of positions `[p, q]`, ascending.
pub(super) type Pairs = Vec<[u32; 2]>;

/// Most terms of the sums along one axis.
const MOST_TERMS: usize = 1 << 22;

/// For each of some sums, the numbers of its terms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Terms {
    /// Where each sum's terms begin, and where the last one's end.
    starts: Vec<u32>,
    terms: Vec<u32>,
}

impl Terms {
    /// Each sum is its own only term.
    pub(super) fn identity(count: usize) -> Self {
        Self { starts: (0..=count as u32).collect(), terms: (0..count as u32).collect() }
    }

    /// How many sums.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The terms of sum `i`.
    #[inline(always)]
    pub(super) fn of(&self, i: usize) -> &[u32] {
        &self.terms[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    /// For each of `count` terms, the sums that it is in.
    pub(super) fn transposed(&self, count: usize) -> Self {
        let mut sums = vec![Vec::new(); count];
        for i in 0..self.count() {
            self.of(i).iter().for_each(|&term| sums[term as usize].push(i as u32));
        }
        Self::of_lists(sums)
    }

    fn of_lists(lists: Vec<Vec<u32>>) -> Self {
        let mut starts = vec![0];
        for list in &lists {
            starts.push(starts[starts.len() - 1] + list.len() as u32);
        }
        Self { starts, terms: lists.concat() }
    }
}

/// Each position with itself.
pub(super) fn diagonal(positions: usize) -> Pairs {
    (0..positions as u32).map(|p| [p, p]).collect()
}

/// The pairs that a filter sees along one axis, to make the pairs `wanted`.
pub(super) fn filtered(slide: &Slide, wanted: &Pairs) -> Result<(Pairs, Terms), ImageLayerError> {
    behind(wanted, slide.size, |[p, q], d| Some([slide.tap(p, d)?, slide.tap(q, d)?]))
}

/// The pairs that the windows of a pool see along one axis, to make the pairs `wanted`.
pub(super) fn pooled(slide: &Slide, wanted: &Pairs) -> Result<(Pairs, Terms), ImageLayerError> {
    let size = slide.size;
    behind(wanted, size.saturating_mul(size), |[p, q], k| {
        Some([slide.tap(p, k / size)?, slide.tap(q, k % size)?])
    })
}

/// The pairs that come up as one of `count` terms of a wanted pair, and which these are.
fn behind(
    wanted: &Pairs,
    count: usize,
    term: impl Fn([usize; 2], usize) -> Option<[usize; 2]>,
) -> Result<(Pairs, Terms), ImageLayerError> {
    let pairs = wanted.len().saturating_mul(count);
    if pairs > MOST_TERMS {
        return Err(ImageLayerError::Pairs { pairs, most: MOST_TERMS });
    }
    let terms = |pair: &[u32; 2]| -> Vec<[u32; 2]> {
        let pair = pair.map(|p| p as usize);
        (0..count).filter_map(|k| term(pair, k)).map(|pair| pair.map(|p| p as u32)).collect()
    };
    let mut inputs: Pairs = wanted.iter().flat_map(terms).collect();
    inputs.sort_unstable();
    inputs.dedup();
    let place = |pair: [u32; 2]| inputs.partition_point(|other| *other < pair) as u32;
    let lists = wanted.iter().map(|pair| terms(pair).into_iter().map(place).collect()).collect();
    Ok((inputs, Terms::of_lists(lists)))
}
