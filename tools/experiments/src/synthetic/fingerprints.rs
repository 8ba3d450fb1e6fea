//! Sparse fingerprints of counts with a target drawn from a Gaussian process over them.

use super::toy::noisy;
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::random::Streams;
use posterior_linalg::sparse::SparseRows;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Geometric, StandardNormal};

/// Rows up to which the target is drawn: its covariance and its factor take 16 n² bytes, 1 GiB.
pub(crate) const MOST_FINGERPRINTS: usize = 8_000;

/// Added to the diagonal of the covariance of variance 1 before it is factored: equal fingerprints make it singular.
const NUGGET: f64 = 1e-8;

/// The shape of `count_fingerprints`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FingerprintSettings {
    /// n: rows.
    pub rows: usize,
    /// D: columns.
    pub columns: usize,
    /// Families of rows that have most of their counts in common, as molecules with one scaffold have.
    pub families: usize,
    /// Columns that a family has in common.
    pub shared: usize,
    /// Mean number of columns that a row has for itself.
    pub own: usize,
    /// Variance of the function.
    pub variance: f64,
    /// Standard deviation of the noise.
    pub noise: f64,
}

impl Default for FingerprintSettings {
    fn default() -> Self {
        Self { rows: 2_000, columns: 1024, families: 60, shared: 40, own: 15, variance: 1.0, noise: 0.2 }
    }
}

/// Fingerprints with a target and the truth behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CountFingerprints {
    /// Counts, n x D.
    pub(crate) counts: SparseRows<f64>,
    /// The family of each row (n).
    pub(crate) family: Vec<usize>,
    /// Observed values (n): `function` plus independent normal noise.
    pub(crate) y: Vec<f64>,
    /// The function at each row (n).
    pub(crate) function: Vec<f64>,
    /// What was asked for.
    pub(crate) settings: FingerprintSettings,
}

/// Why no fingerprints can be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FingerprintError {
    /// More rows than a covariance is factored for.
    #[error(
        "{rows} rows were asked for; the target is drawn through the covariance of all rows, for up to {MOST_FINGERPRINTS}"
    )]
    Rows {
        /// How many.
        rows: usize,
    },
    /// No columns or families, or more common columns than columns.
    #[error(
        "fingerprints need 1 to 16,777,216 columns, a family and at most as many shared and own columns as columns, not {0:?}"
    )]
    Shape(FingerprintSettings),
    /// A variance or a noise that is none.
    #[error("variance and noise are finite and not negative, not {variance} and {noise}")]
    Scale {
        /// The variance.
        variance: f64,
        /// The standard deviation of the noise.
        noise: f64,
    },
}

/// Rows of sparse counts, as fingerprints of molecules are, whose target is a draw from a Gaussian process with Tanimoto covariance
/// `v Σ min(x, z) / Σ max(x, z)` plus noise, so that a model of this covariance is the right one and its predictive accuracy the best that there is.
///
/// Every family has columns with counts in common (the popular columns more often); a row keeps each with probability 0.85, its count now
/// and then one more, and has some of its own. Rows of a family then share about half of their counts, others a tenth. `n³/3` operations
/// and 16 n² bytes for the target.
///
/// # Errors
/// [`FingerprintError`].
pub(crate) fn count_fingerprints(
    settings: FingerprintSettings,
    streams: Streams,
) -> Result<CountFingerprints, FingerprintError> {
    check(&settings)?;
    let mut rng = streams.stream("data/fingerprints/families");
    let families: Vec<Vec<(u32, f64)>> =
        (0..settings.families).map(|_| entries(settings.shared, settings.columns, &mut rng)).collect();
    let mut rng = streams.stream("data/fingerprints/rows");
    let (mut offsets, mut indices, mut values, mut family) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.rows {
        let own = rng.random_range(0..=2 * settings.own).min(settings.columns);
        let which = rng.random_range(0..families.len());
        let mut row = entries(own, settings.columns, &mut rng);
        for &(column, count) in &families[which] {
            if rng.random::<f64>() < 0.85 {
                let more = if rng.random::<f64>() < 0.15 { 1.0 } else { 0.0 };
                row.push((column, count + more));
            }
        }
        row.sort_unstable_by_key(|&(column, _)| column);
        for (column, count) in row {
            match indices.last().copied().filter(|_| indices.len() > offsets[offsets.len() - 1]) {
                Some(last) if last == column => values[indices.len() - 1] += count,
                _ => {
                    indices.push(column);
                    values.push(count);
                }
            }
        }
        offsets.push(values.len());
        family.push(which);
    }
    let counts = SparseRows::new(settings.columns, offsets, indices, values)
        .expect("rows that were sorted and whose equal columns were added up");
    let mut rng = streams.stream("data/fingerprints/function");
    let white = Mat::from_fn(settings.rows, 1, |_, _| StandardNormal.sample(&mut rng));
    // Rounding moves the smallest eigenvalue, 1e-8, by about n ε times the largest: 8,000 · 2e-16 · 8,000 = 1.4e-8 at the very worst, where all
    // rows are equal; families keep the largest far below. The jitter covers that corner.
    let factored = Cholesky::of(covariance(&counts).as_ref(), JitterPolicy::default())
        .expect("a covariance with its smallest eigenvalue above rounding");
    let root = settings.variance.sqrt();
    let function: Vec<f64> =
        factored.multiply_factor(white.as_ref()).col(0).iter().map(|f| root * f).collect();
    let y = noisy(&function, settings.noise, streams, "data/fingerprints/noise");
    Ok(CountFingerprints { counts, family, y, function, settings })
}

fn check(settings: &FingerprintSettings) -> Result<(), FingerprintError> {
    let &FingerprintSettings { rows, columns, families, shared, own, variance, noise } = settings;
    if rows > MOST_FINGERPRINTS {
        return Err(FingerprintError::Rows { rows });
    }
    let possible = (1..=1 << 24).contains(&columns) && (1..=1 << 20).contains(&families);
    if !possible || shared > columns || own > columns || shared.saturating_mul(families) > 1 << 28 {
        return Err(FingerprintError::Shape(*settings));
    }
    let good = |v: f64| v.is_finite() && v >= 0.0;
    if good(variance) && good(noise) { Ok(()) } else { Err(FingerprintError::Scale { variance, noise }) }
}

/// Columns, some perhaps twice, with counts of 1 and more. The chance of column c falls like `1/√c`, as some substructures are common.
fn entries(count: usize, columns: usize, rng: &mut impl Rng) -> Vec<(u32, f64)> {
    let more = Geometric::new(0.6).expect("a probability");
    let mut row: Vec<(u32, f64)> = (0..count)
        .map(|_| {
            let u: f64 = rng.random();
            let column = ((u * u * columns as f64) as usize).min(columns - 1);
            (column as u32, 1.0 + more.sample(rng) as f64)
        })
        .collect();
    row.sort_unstable_by_key(|&(column, _)| column);
    row.dedup_by_key(|entry| entry.0);
    row
}

/// The Tanimoto covariance of variance 1, with its nugget; both triangles.
fn covariance(counts: &SparseRows<f64>) -> Mat<f64> {
    let n = counts.rows();
    let sums: Vec<f64> = (0..n).map(|i| counts.row(i).1.iter().sum()).collect();
    let mut out = Mat::zeros(n, n);
    let mut dense = vec![0.0; counts.columns()];
    for j in 0..n {
        let (columns, values) = counts.row(j);
        columns.iter().zip(values).for_each(|(&c, &v)| dense[c as usize] = v);
        for i in j..n {
            let (columns, values) = counts.row(i);
            let shared: f64 = columns.iter().zip(values).map(|(&c, v)| v.min(dense[c as usize])).sum();
            let all = sums[i] + sums[j] - shared;
            // Two empty fingerprints are alike.
            let value = if all > 0.0 { shared / all } else { 1.0 };
            out[(i, j)] = value;
            out[(j, i)] = value;
        }
        out[(j, j)] += NUGGET;
        columns.iter().for_each(|&c| dense[c as usize] = 0.0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covariances_are_minima_over_maxima() {
        let settings = FingerprintSettings { rows: 60, columns: 200, families: 4, ..Default::default() };
        let made = count_fingerprints(settings, Streams::new(1)).unwrap();
        assert_eq!(made, count_fingerprints(settings, Streams::new(1)).unwrap());
        let (k, dense) = (covariance(&made.counts), made.counts.to_dense());
        let (mut within, mut across) = (Vec::new(), Vec::new());
        for i in 0..60 {
            assert!((0..200).all(|d| dense[(i, d)] >= 0.0 && dense[(i, d)].fract() == 0.0));
            for j in 0..i {
                let pairs = (0..200).map(|d| (dense[(i, d)], dense[(j, d)]));
                let (least, most) =
                    pairs.fold((0.0, 0.0), |(l, m), (a, b)| (l + f64::min(a, b), m + f64::max(a, b)));
                assert!((k[(i, j)] - least / most).abs() < 1e-14);
                let list = if made.family[i] == made.family[j] { &mut within } else { &mut across };
                list.push(k[(i, j)]);
            }
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        assert!(mean(&within) > 2.0 * mean(&across), "{} {}", mean(&within), mean(&across));
    }

    #[test]
    fn targets_have_their_covariance_and_noise() {
        let settings =
            FingerprintSettings { rows: 800, columns: 300, variance: 2.5, noise: 0.3, ..Default::default() };
        let made = count_fingerprints(settings, Streams::new(2)).unwrap();
        let factored = Cholesky::of(covariance(&made.counts).as_ref(), JitterPolicy::NONE).unwrap();
        let f = Mat::from_fn(800, 1, |i, _| made.function[i]);
        // fᵀ K⁻¹ f / (v n) is a mean of n squares of normal numbers: five standard errors.
        let square = (f.transpose() * factored.solve(f.as_ref()))[(0, 0)] / (2.5 * 800.0);
        assert!((square - 1.0).abs() < 5.0 * (2.0f64 / 800.0).sqrt(), "{square}");
        let noise: f64 = made.y.iter().zip(&made.function).map(|(y, f)| (y - f).powi(2)).sum::<f64>() / 800.0;
        assert!((noise / 0.09 - 1.0).abs() < 5.0 * (2.0f64 / 800.0).sqrt(), "{noise}");
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let with = |change: fn(&mut FingerprintSettings)| {
            let mut settings = FingerprintSettings::default();
            change(&mut settings);
            count_fingerprints(settings, Streams::new(0)).unwrap_err()
        };
        assert_eq!(with(|s| s.rows = 8_001), FingerprintError::Rows { rows: 8_001 });
        assert!(matches!(with(|s| s.columns = 0), FingerprintError::Shape(_)));
        assert!(matches!(with(|s| s.columns = usize::MAX), FingerprintError::Shape(_)));
        assert!(matches!(with(|s| s.families = 0), FingerprintError::Shape(_)));
        assert!(matches!(with(|s| s.shared = 2000), FingerprintError::Shape(_)));
        assert!(matches!(with(|s| s.noise = f64::NAN), FingerprintError::Scale { .. }));
        let none = FingerprintSettings { rows: 0, ..Default::default() };
        assert!(count_fingerprints(none, Streams::new(0)).unwrap().y.is_empty());
    }
}
