//! Fingerprints of rows: a few bytes that tell whether a model has seen a row, without keeping the row.
//!
//! A fingerprint is a 53-bit digest of the numbers of a row as they were parsed, inputs first and targets behind them; -0 counts as 0. It depends on nothing else, so files written by
//! one release are understood by the next. 53 bits are what a double holds exactly, which is how model files store them.
//!
//! **How often chance makes an unseen row look seen.** A row collides with one of n others with a probability of at most n 2⁻⁵³, so of m rows n m 2⁻⁵³ are expected to: 1.1e-4 rows
//! for a million rows scored by a model of a million rows, that is, one row in one of nine thousand such evaluations. Rows whose numbers are all equal have one fingerprint: they cannot be
//! told apart, and are the same evidence. The digest is no cryptography: rows can be made to collide on purpose.

use faer::MatRef;

/// Bits of a fingerprint.
const BITS: u32 = 53;

/// The fingerprint of a row of numbers (inputs, then targets), below 2⁵³.
///
/// Words are mixed by the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn row_fingerprint(values: impl IntoIterator<Item = f64>) -> u64 {
    let mut state = 0u64;
    for (position, value) in values.into_iter().enumerate() {
        // Adding 0 makes -0 and 0 one.
        let word = (value + 0.0).to_bits();
        state = mixed(state ^ word).wrapping_add((position as u64).wrapping_mul(GOLDEN)).wrapping_add(GOLDEN);
    }
    mixed(state) >> (64 - BITS)
}

/// 2⁶⁴ over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The fingerprints of the rows that a model was trained on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFingerprints {
    /// In ascending order, those of equal rows included.
    sorted: Vec<u64>,
}

impl RowFingerprints {
    /// From fingerprints in any order.
    pub fn new(fingerprints: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = fingerprints.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// Of the rows of a matrix of inputs (n x D) with one target each.
    pub fn of(x: MatRef<'_, f64>, y: &[f64]) -> Self {
        Self::new(table_fingerprints(x, y))
    }

    /// These and others.
    pub fn with(&self, others: impl IntoIterator<Item = u64>) -> Self {
        Self::new(self.sorted.iter().copied().chain(others))
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.sorted.len()
    }

    /// How many rows have another one with the same numbers: their share is the probability that a fresh row of the same table equals one of these.
    pub fn repeated(&self) -> usize {
        let runs = self.sorted.chunk_by(|a, b| a == b).map(<[u64]>::len);
        runs.filter(|run| *run > 1).sum()
    }

    /// Whether a row of this fingerprint is among them.
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.sorted.binary_search(&fingerprint).is_ok()
    }

    /// As numbers, which doubles hold exactly.
    pub fn to_numbers(&self) -> Vec<f64> {
        self.sorted.iter().map(|f| *f as f64).collect()
    }

    /// Back from numbers; None where they are no fingerprints in ascending order.
    pub fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let whole = |v: &f64| *v >= 0.0 && *v < (1u64 << BITS) as f64 && v.fract() == 0.0;
        let ascending = numbers.windows(2).all(|w| w[0] <= w[1]);
        (ascending && numbers.iter().all(whole))
            .then(|| Self { sorted: numbers.iter().map(|v| *v as u64).collect() })
    }
}

/// The fingerprint of each row of a matrix of inputs (n x D) with one target each.
///
/// # Panics
/// When there are fewer targets than rows.
pub fn table_fingerprints(x: MatRef<'_, f64>, y: &[f64]) -> Vec<u64> {
    (0..x.nrows()).map(|i| row_fingerprint(x.row(i).iter().copied().chain([y[i]]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use std::collections::HashSet;

    #[test]
    fn fingerprints_tell_rows_apart_whatever_their_pattern() {
        // Small grids, permuted cells, shifted cells, cells that differ in one bit: patterns that weak digests confuse.
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for i in 0..60 {
            for j in 0..60 {
                rows.push(vec![f64::from(i), f64::from(j), 0.0]);
                rows.push(vec![f64::from(i), f64::from(j)]);
                rows.push(vec![0.5, f64::from(i), f64::from(j)]);
            }
        }
        rows.extend((0..64).map(|b| vec![f64::from_bits(1.5f64.to_bits() ^ (1 << b)), 7.0]));
        rows.extend((1..50).map(|n| vec![0.0; 3 + n]));
        let distinct: HashSet<Vec<u64>> =
            rows.iter().map(|r| r.iter().map(|v| v.to_bits()).collect()).collect();
        let found: HashSet<u64> = rows.iter().map(|r| row_fingerprint(r.iter().copied())).collect();
        assert_eq!(found.len(), distinct.len());
        assert!(found.iter().all(|f| *f < 1 << 53));
        assert_eq!(row_fingerprint([-0.0, 1.0]), row_fingerprint([0.0, 1.0]));
        assert_ne!(row_fingerprint([1.0, 2.0]), row_fingerprint([2.0, 1.0]));
        // Model files hold them.
        assert_eq!(row_fingerprint([0.1, -3.0, 1e9]), 4_528_210_205_492_922);
    }

    #[test]
    fn collisions_are_as_rare_as_they_are_said_to_be() {
        // Of all pairs among n fingerprints cut to 32 bits, n (n - 1) / 2 / 2^32 collide on average, with that variance (Poisson).
        let n = 300_000u64;
        let mut seen = HashSet::new();
        let repeated =
            (0..n).filter(|i| !seen.insert(row_fingerprint([*i as f64 * 0.25, 3.0]) >> 21)).count();
        let expected = (n * (n - 1) / 2) as f64 / 2f64.powi(32);
        assert!(
            (repeated as f64 - expected).abs() < 5.0 * expected.sqrt(),
            "{repeated}, expected {expected}"
        );
    }

    #[test]
    fn sets_know_their_rows_and_survive_as_numbers() {
        let x = Mat::from_fn(100, 3, |i, j| (i * 3 + j) as f64 * 0.1);
        let y: Vec<f64> = (0..100).map(f64::from).collect();
        let set = RowFingerprints::of(x.as_ref(), &y);
        assert!(table_fingerprints(x.as_ref(), &y).into_iter().all(|f| set.contains(f)));
        let moved: Vec<f64> = y.iter().map(|v| v + 1.0).collect();
        assert!(!table_fingerprints(x.as_ref(), &moved).into_iter().any(|f| set.contains(f)));
        let numbers = set.to_numbers();
        assert_eq!(RowFingerprints::from_numbers(&numbers), Some(set));
        for bad in [vec![2.0, 1.0], vec![-1.0], vec![0.5], vec![2f64.powi(53)], vec![f64::NAN]] {
            assert!(RowFingerprints::from_numbers(&bad).is_none(), "{bad:?}");
        }
    }
}
