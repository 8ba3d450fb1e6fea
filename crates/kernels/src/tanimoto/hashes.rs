//! Consistent weighted sampling: random hashes that agree as often as the Tanimoto kernel says.

use posterior_linalg::random::Streams;
use posterior_linalg::vectorised::dispatch;
use rand::RngExt;

/// L random hashes of vectors of D counts. A hash is one coordinate and a whole number, and two vectors have the same hash with
/// probability `Σ min(x, z) / Σ max(x, z)`. As features: one random sign for each hash.
///
/// Hashing a vector costs about 15 flops for each of its non-zero counts and each hash; the parameters are 3 D L numbers in single
/// precision, which moves probabilities by its rounding only (equal counts still meet).
///
/// Sources: S. Ioffe, "Improved consistent sampling, weighted minhash and L1 sketching", ICDM 2010; A. Tripp and others, "Tanimoto random features
/// for scalable molecular machine learning", NeurIPS 2023, section 3; spec, section 6.2.
#[derive(Clone, Debug)]
pub struct Hashes {
    count: usize,
    dimension: usize,
    seed: u64,
    /// For coordinate i and hash l at `i L + l`: `R`, `1/R`, `log C` of gamma variables of shape 2, and a uniform β.
    rates: Vec<f32>,
    log_thresholds: Vec<f32>,
    offsets: Vec<f32>,
}

/// A vector without counts has this for a coordinate.
const EMPTY: u32 = u32::MAX;

impl Hashes {
    /// Draws `count` hashes for vectors of `dimension` counts.
    pub fn new(dimension: usize, count: usize, streams: Streams) -> Self {
        let mut rng = streams.stream("kernels/hashes");
        let size = dimension.saturating_mul(count);
        // -log of a uniform number in (0, 1].
        let mut exponential = || -(1.0 - rng.random::<f64>()).ln();
        let (mut rates, mut log_thresholds) = (Vec::with_capacity(size), Vec::with_capacity(size));
        for _ in 0..size {
            rates.push((exponential() + exponential()).max(1e-30) as f32);
            log_thresholds.push((exponential() + exponential()).max(1e-30).ln() as f32);
        }
        let offsets = (0..size).map(|_| rng.random::<f32>()).collect();
        Self { count, dimension, seed: rng.random(), rates, log_thresholds, offsets }
    }

    /// L.
    pub fn count(&self) -> usize {
        self.count
    }

    /// D.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Bytes of the parameters.
    pub fn bytes(&self) -> usize {
        3 * self.rates.len() * size_of::<f32>()
    }

    /// All hashes of one vector, given as its coordinates (each once) and counts: the coordinate and its number. Counts of 0 may
    /// be left out; a vector without counts has one hash of its own. `None` when a count is negative or not a number.
    ///
    /// # Panics
    /// When a coordinate is D or more.
    pub fn hash(&self, counts: impl Iterator<Item = (usize, f64)>) -> Option<Vec<(u32, i32)>> {
        let mut best = vec![f32::INFINITY; self.count];
        let mut coordinates = vec![EMPTY; self.count];
        let mut numbers = vec![0.0f32; self.count];
        for (i, value) in counts {
            assert!(i < self.dimension, "counts have coordinates 0 to {}", self.dimension);
            if !(0.0..f64::INFINITY).contains(&value) {
                return None;
            }
            if value > 0.0 {
                let range = i * self.count..(i + 1) * self.count;
                let (rates, offsets) = (&self.rates[range.clone()], &self.offsets[range.clone()]);
                let thresholds = &self.log_thresholds[range];
                let log = value.ln() as f32;
                dispatch(
                    #[inline(always)]
                    || {
                        step(
                            log,
                            i as u32,
                            (rates, offsets, thresholds),
                            (&mut best, &mut coordinates, &mut numbers),
                        );
                    },
                );
            }
        }
        Some(coordinates.into_iter().zip(numbers.into_iter().map(|t| t as i32)).collect())
    }

    /// Calls `write(l, ±1)` with the sign of every hash of one vector; with NaN when a count is negative or not a number.
    pub fn signs(&self, counts: impl Iterator<Item = (usize, f64)>, mut write: impl FnMut(usize, f64)) {
        match self.hash(counts) {
            Some(hashes) => {
                for (l, hash) in hashes.into_iter().enumerate() {
                    write(l, self.sign(l, hash));
                }
            }
            None => (0..self.count).for_each(|l| write(l, f64::NAN)),
        }
    }

    /// An independent sign for each hash: one bit of a mixture of it with the seed (the finalizer of SplitMix64, Steele and others 2014).
    fn sign(&self, l: usize, (coordinate, number): (u32, i32)) -> f64 {
        let mix = |mut z: u64| {
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let key = u64::from(coordinate) << 32 | u64::from(number as u32);
        let own = mix(self.seed.wrapping_add((l as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        if mix(own ^ key) >> 63 == 0 { 1.0 } else { -1.0 }
    }
}

/// One coordinate against the best of those before.
#[inline(always)]
fn step(
    log: f32,
    coordinate: u32,
    (rates, offsets, thresholds): (&[f32], &[f32], &[f32]),
    (best, coordinates, numbers): (&mut [f32], &mut [u32], &mut [f32]),
) {
    // Adding and subtracting it rounds to whole numbers.
    const MAGIC: f32 = 12_582_912.0;
    let n = best.len();
    let (rates, offsets, thresholds) = (&rates[..n], &offsets[..n], &thresholds[..n]);
    let (coordinates, numbers) = (&mut coordinates[..n], &mut numbers[..n]);
    for l in 0..n {
        let position = log / rates[l] + offsets[l];
        let rounded = (position + MAGIC) - MAGIC;
        let number = if rounded > position { rounded - 1.0 } else { rounded };
        // log a = log C - log y - R with log y = R (t - β)
        let score = thresholds[l] - rates[l] * (number - offsets[l]) - rates[l];
        let wins = score < best[l];
        best[l] = if wins { score } else { best[l] };
        coordinates[l] = if wins { coordinate } else { coordinates[l] };
        numbers[l] = if wins { number } else { numbers[l] };
    }
}
