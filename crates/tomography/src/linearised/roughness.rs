//! How rough the pictures of a block are, and the prior over its lengthscale that this makes (TV-PredCP).
//!
//! `kappa_k = E TV(phi w)` for weights of block k alone. With `u_p = phi_i - phi_j` for neighbouring pixels and `v_p = u_p A_k^-1 u_p'` it is `sqrt(2 / pi) sum_p sqrt(v_p)`: the thesis calls the closed form too costly, but with
//! `v_p = a^-1 sum_D rho(D / psi) q_pD` it costs a few numbers for each pair of neighbours.
//!
//! Source: Antorán (2024), equations 7.8 and 7.9; spec `tomography`, section 5.3 (F3, F5).

use super::filters::{FilterHyperparameters, correlations, distances};
use super::weights::{ConvolutionWeights, WeightBlock};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use std::f64::consts::PI;

/// Least size of a derivative of kappa in the logarithm of the lengthscale, relative to kappa: below it the prior says nothing more.
const LEAST_SLOPE: f64 = 1e-9;

/// `q_pD` of one block: pairs of neighbours x distances.
#[derive(Clone, Debug)]
struct BlockTerms {
    distances: Vec<f64>,
    terms: Mat<f64>,
}

/// What expected total variation needs of a Jacobian, for every block with filters of several positions.
#[derive(Clone, Debug)]
pub struct RoughnessTerms {
    blocks: Vec<Option<BlockTerms>>,
}

/// Expected total variation of one block, and its derivatives in the logarithm of the lengthscale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roughness {
    /// `kappa_k`.
    pub value: f64,
    /// `d kappa / d log psi`.
    pub slope: f64,
    /// `d² kappa / d (log psi)²`.
    pub bend: f64,
}

impl Roughness {
    /// `-kappa + log |d kappa / d psi|` of one lengthscale, and its derivatives in the log variance and the log lengthscale.
    ///
    /// The density is over psi itself; nothing is added for the logarithm in which it is searched.
    pub fn log_density(self, log_lengthscale: f64) -> (f64, [f64; 2]) {
        let Self { value, slope, bend } = self;
        let floor = LEAST_SLOPE * value.abs().max(f64::MIN_POSITIVE);
        let density = -value + slope.abs().max(floor).ln() - log_lengthscale;
        // Where the slope is at its floor the floor moves with kappa.
        let turned = if slope.abs() > floor { bend / slope } else { slope / value.max(f64::MIN_POSITIVE) };
        (density, [0.5 * (1.0 - value), -slope + turned - 1.0])
    }
}

impl RoughnessTerms {
    /// Of the transposed Jacobian of a picture (d x pixels) of the given shape. Cost: `2 d` flops for each pair and distance.
    pub fn new<T: Real>(weights: &ConvolutionWeights, shape: &[usize], jacobian: MatRef<'_, T>) -> Self {
        let pairs = neighbours(shape);
        let of = |block: &WeightBlock| {
            (block.positions() > 1).then(|| {
                let (distances, which) = distances(&block.kernel);
                let own: Vec<Vec<f64>> = parallel::map(pairs.len(), 1, |pair| {
                    let (i, j) = pairs[pair];
                    block_terms(block, &which, distances.len(), jacobian, i, j)
                });
                let terms = Mat::from_fn(own.len(), distances.len(), |p, d| own[p][d]);
                BlockTerms { distances, terms }
            })
        };
        Self { blocks: weights.blocks().iter().map(of).collect() }
    }

    /// Expected total variation of a block's pictures; None where filters have one position.
    pub fn of_block(&self, block: usize, hyperparameters: &FilterHyperparameters) -> Option<Roughness> {
        let BlockTerms { distances, terms } = self.blocks[block].as_ref()?;
        let variance = hyperparameters.log_variances[block].exp();
        let [rho, slope, bend] = correlations(distances, hyperparameters.log_lengthscales[block]);
        let mut out = Roughness::default();
        for row in terms.row_iter() {
            let sum = |f: &[f64]| variance * row.iter().zip(f).map(|(q, f)| q * f).sum::<f64>();
            let (v, dv, ddv) = (sum(&rho), sum(&slope), sum(&bend));
            if v > f64::MIN_POSITIVE {
                let root = v.sqrt();
                out.value += (2.0 / PI).sqrt() * root;
                out.slope += dv / ((2.0 * PI).sqrt() * root);
                out.bend += (ddv / root - 0.5 * dv * dv / (v * root)) / (2.0 * PI).sqrt();
            }
        }
        Some(out)
    }

    /// The log density of all lengthscales, and its derivatives in all log variances and all log lengthscales.
    pub fn log_density(&self, hyperparameters: &FilterHyperparameters) -> (f64, [Vec<f64>; 2]) {
        let mut sum = 0.0;
        let mut slopes = [vec![0.0; self.blocks.len()], vec![0.0; self.blocks.len()]];
        for k in 0..self.blocks.len() {
            if let Some(roughness) = self.of_block(k, hyperparameters) {
                let (density, [variance, lengthscale]) =
                    roughness.log_density(hyperparameters.log_lengthscales[k]);
                sum += density;
                (slopes[0][k], slopes[1][k]) = (variance, lengthscale);
            }
        }
        (sum, slopes)
    }
}

/// Pairs of neighbouring pixels of a picture or volume of the given shape, axis by axis.
pub(super) fn neighbours(shape: &[usize]) -> Vec<(usize, usize)> {
    let pixels: usize = shape.iter().product();
    let mut out = Vec::new();
    for (axis, length) in shape.iter().enumerate() {
        let step: usize = shape[axis + 1..].iter().product();
        out.extend((0..pixels).filter(|i| i / step % length + 1 < *length).map(|i| (i, i + step)));
    }
    out
}

/// For one pair: sums over filters and positions p, q of products of differences, by distance of p and q.
fn block_terms<T: Real>(
    block: &WeightBlock,
    which: &[usize],
    distances: usize,
    jacobian: MatRef<'_, T>,
    i: usize,
    j: usize,
) -> Vec<f64> {
    let n = block.positions();
    let (mut out, mut difference) = (vec![0.0; distances], vec![0.0; n]);
    for range in block.ranges() {
        for filter in range.step_by(n) {
            for (p, own) in difference.iter_mut().enumerate() {
                *own = jacobian[(filter + p, i)].to_f64() - jacobian[(filter + p, j)].to_f64();
            }
            for p in 0..n {
                for q in 0..n {
                    out[which[p * n + q]] += difference[p] * difference[q];
                }
            }
        }
    }
    out
}
