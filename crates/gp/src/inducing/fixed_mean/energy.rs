//! The loss of a batch with all its gradients, written out by hand.
//!
//! With slopes `V̄_n` of the data term in `V(x_n)` (times n/r), `G = Σ k_n V̄_n k_nᵀ` over `k_n = k(Z, x_n)`, c divergences (one for each process) and `Y = c K_z + 2 G`:
//!
//! ```text
//! of k(x_n, x_n)   V̄_n
//! of k_n           -2 S k_n V̄_n
//! of K_z           ½ S Y S                      the divergence's own terms in K_z cancel
//! of L             tril((K_z S Y - 2 G) L H⁻¹)
//! ```
//!
//! and the logarithm of the amplitude gets the sum of all adjoints times what they are adjoints of. Spec `valla`, section 6.4, for blocks of C outputs, without the inverse of K_z.

use super::companion::Companion;
use super::covariance::{factored, inner};
use super::data_term::{Draws, Latents, data_term};
use super::{Batch, FixedMeanError, FixedMeanModel};
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Accum, Mat, Scale, unzip, zip};
use posterior_kernels::{LearnedBlockKernel, SetAdjoints};
use posterior_linalg::dense::{beside, multiply_into, product};
use posterior_linalg::tiles::pieces;
use posterior_linalg::triangular::{add_lower_product, symmetric_product};
use posterior_linalg::vectorised::{dispatch, dot};

/// An estimate of the loss with its gradient.
#[derive(Clone, Debug)]
pub struct FixedMeanEnergy {
    /// The data term and the divergence of the process itself, in nats.
    pub main: f64,
    /// The companion's data term, penalty and divergence; 0 where it takes no part.
    pub companion: f64,
    /// The divergence alone, which both contain.
    pub divergence: f64,
    /// Variances that rounding had made negative and that were taken as zero.
    pub clipped: usize,
    /// The largest amount added to a diagonal, relative to its mean.
    pub jitter: f64,
    /// The gradient of the sum of both.
    pub gradient: EnergyGradient,
}

/// A gradient by parts; those that are not learned are empty, or zero for the amplitude.
#[derive(Clone, Debug)]
pub struct EnergyGradient {
    /// In L, M x M, zero above its diagonal.
    pub root: Mat<f64>,
    /// In the companion's mean.
    pub companion: Vec<f64>,
    /// In the logarithm of the amplitude.
    pub log_amplitude: f64,
    /// In the kernel's natural values.
    pub kernel: Vec<f64>,
    /// In the likelihood's natural values.
    pub likelihood: Vec<f64>,
    /// In the inducing points' numbers, point after point.
    pub points: Vec<f64>,
}

/// The loss of order `alpha` that a batch estimates.
///
/// # Errors
/// What the kernel refuses, covariances that have no factor, sizes that do not fit.
pub fn energy<K: LearnedBlockKernel>(
    model: &FixedMeanModel<K>,
    batch: Batch<'_, K::Points>,
    alpha: f64,
    draws: Option<Draws>,
) -> Result<FixedMeanEnergy, FixedMeanError> {
    let (kernel, a, c) = (&model.kernel, model.amplitude, model.outputs());
    let (rows, full) = (kernel.count(batch.points), draws.is_some());
    FixedMeanError::same("means of the batch", rows * c, batch.means.len())?;
    let z = model.prepare()?;
    let gram = model.gram(&z);
    let each = kernel.pulled_at_once(c).max(1);
    let batch_and_companion = || -> Result<_, FixedMeanError> {
        let seen = see(model, batch.points, &z, each)?;
        Ok((seen, model.companion.as_ref().map(|mean| Companion::new(&gram, mean)).transpose()?))
    };
    let (seen, factored) = beside(gram.nrows(), batch_and_companion, || factored(&gram, &model.root));
    let (BatchCovariances { cross, own, mut kept }, companion) = seen?;
    let factored = factored?;
    let explained = product(factored.s.as_ref(), cross.as_ref());
    let (covariances, clipped) = covariances(&own, &cross, &explained, c, full);
    let scale = batch.rows as f64 / rows as f64;
    let term = |means: &[f64]| {
        let latents = Latents { means, covariances: &covariances };
        data_term(&*model.likelihood, alpha, draws, batch.targets, &latents, scale)
    };
    let mut data = term(batch.means)?;
    let mut jitter = factored.jitter;
    let main = data.value + factored.divergence;
    let companion = match companion {
        None => None,
        Some(companion) => {
            jitter = jitter.max(companion.jitter(&gram));
            let own = term(&companion.means(&cross))?;
            data.covariances.iter_mut().zip(&own.covariances).for_each(|(t, o)| *t += o);
            data.parameters.iter_mut().zip(&own.parameters).for_each(|(t, o)| *t += o);
            Some((companion, own))
        }
    };

    let learned = model.learned;
    let divergences = if companion.is_some() { 2.0 } else { 1.0 };
    let weighted = times_blocks(&cross, &data.covariances, (c, full), 1.0);
    let mut y = symmetric_product((cross.as_ref(), Rectangular), (weighted.transpose(), Rectangular), 2.0);
    // Now 2 G, which the gradient in L takes off.
    let mut bracket = y.clone();
    bracket *= Scale(-1.0);
    zip!(&mut y, &gram).for_each(|unzip!(y, k)| *y += divergences * k);
    let shared = product(factored.s.as_ref(), y.as_ref());
    let toward_root = || {
        multiply_into(bracket.as_mut(), Accum::Add, gram.as_ref(), shared.as_ref(), 1.0);
        let mut out = Mat::zeros(gram.nrows(), gram.nrows());
        let left = (bracket.as_ref(), Rectangular);
        add_lower_product(&mut out, left, (factored.shrunk.transpose(), Rectangular), 1.0);
        out
    };
    let toward_others = || -> Result<(f64, EnergyGradient), FixedMeanError> {
        let mut toward_gram =
            symmetric_product((shared.as_ref(), Rectangular), (factored.s.as_ref(), Rectangular), 0.5);
        let mut toward_cross = times_blocks(&explained, &data.covariances, (c, full), -2.0);
        let mut of_companion = 0.0;
        let mut gradient = EnergyGradient {
            root: Mat::new(),
            companion: Vec::new(),
            log_amplitude: 0.0,
            kernel: vec![0.0; if learned.kernel { kernel.values().len() } else { 0 }],
            likelihood: Vec::new(),
            points: Vec::new(),
        };
        if let Some((companion, own)) = &companion {
            of_companion = own.value + companion.penalty + factored.divergence;
            gradient.companion = companion.pullback(&cross, &own.means, &mut toward_gram, &mut toward_cross);
        }
        let blocks = as_blocks(&data.covariances, (c, full));
        let along_own: f64 = blocks.iter().zip(&own).map(|(b, k)| b * k).sum();
        if learned.amplitude {
            gradient.log_amplitude = along_own + inner(&toward_gram, &gram) + inner(&toward_cross, &cross);
        }
        if learned.inducing || learned.kernel {
            toward_cross *= Scale(a);
            toward_gram *= Scale(a);
            let blocks: Vec<f64> = blocks.iter().map(|b| a * b).collect();
            // What was prepared of more than one piece was not kept.
            let mut sets = pieces(rows, each).map(|points| {
                let x = kept.take().map_or_else(|| kernel.prepare(batch.points, points.clone(), None), Ok);
                let cross = toward_cross.transpose().subrows(points.start * c, points.len() * c);
                let own = &blocks[points.start * c * c..points.end * c * c];
                x.map(|x| SetAdjoints { x, cross, own })
            });
            let z = ((&model.points, Some(model.along.as_ref())), &z);
            let moved =
                kernel.pull_sets(&mut sets, z, toward_gram.as_ref(), learned.inducing, &mut gradient.kernel);
            if let Some(moved) = moved.map_err(FixedMeanError::kernel)? {
                gradient.points.reserve(moved.nrows() * moved.ncols());
                (0..moved.nrows()).for_each(|i| gradient.points.extend(moved.row(i).iter()));
            }
        }
        Ok((of_companion, gradient))
    };
    let (toward_root, toward_others) = beside(gram.nrows(), toward_root, toward_others);
    let (of_companion, mut gradient) = toward_others?;
    gradient.root = toward_root;
    if learned.likelihood {
        gradient.likelihood = data.parameters;
    }
    Ok(FixedMeanEnergy {
        main,
        companion: of_companion,
        divergence: factored.divergence,
        clipped,
        jitter,
        gradient,
    })
}

/// The kernels of a batch.
struct BatchCovariances<P> {
    /// Between the inducing points and all rows, M x r C.
    cross: Mat<f64>,
    /// Blocks of each row with itself, `[r, C, C]`.
    own: Vec<f64>,
    /// The rows as the kernel wants them, where all were prepared at one time.
    kept: Option<P>,
}

/// Those of a batch whose rows are prepared `each` at a time.
fn see<K: LearnedBlockKernel>(
    model: &FixedMeanModel<K>,
    points: &K::Points,
    z: &K::Prepared,
    each: usize,
) -> Result<BatchCovariances<K::Prepared>, FixedMeanError> {
    let (kernel, a, c) = (&model.kernel, model.amplitude, model.outputs());
    let rows = kernel.count(points);
    let prepared = |range| kernel.prepare(points, range, None).map_err(FixedMeanError::kernel);
    let scaled = |blocks: Vec<f64>| blocks.into_iter().map(|k| a * k);
    if rows <= each {
        let x = prepared(0..rows)?;
        let mut cross = kernel.tile(z, &x);
        cross *= Scale(a);
        return Ok(BatchCovariances { cross, own: scaled(kernel.diagonal(&x)).collect(), kept: Some(x) });
    }
    let (mut cross, mut own) = (Mat::zeros(model.inducing(), rows * c), Vec::with_capacity(rows * c * c));
    for range in pieces(rows, each) {
        let x = prepared(range.clone())?;
        let tile = kernel.tile(z, &x) * Scale(a);
        cross.as_mut().subcols_mut(range.start * c, range.len() * c).copy_from(&tile);
        own.extend(scaled(kernel.diagonal(&x)));
    }
    Ok(BatchCovariances { cross, own, kept: None })
}

/// Covariances of a batch, `[r, C]` or `[r, C, C]`, and how many variances rounding had made negative.
fn covariances(
    own: &[f64],
    cross: &Mat<f64>,
    explained: &Mat<f64>,
    c: usize,
    full: bool,
) -> (Vec<f64>, usize) {
    let (mut out, mut clipped) = (Vec::new(), 0);
    for (n, own) in own.chunks_exact(c * c).enumerate() {
        for i in 0..c {
            let column = cross.col_as_slice(n * c + i);
            for j in if full { 0..c } else { i..i + 1 } {
                let other = explained.col_as_slice(n * c + j);
                let less = dispatch(
                    #[inline(always)]
                    || dot(column, other),
                );
                let mut left = own[i * c + j] - less;
                // NaN stays.
                if i == j && left < 0.0 {
                    left = 0.0;
                    clipped += 1;
                }
                out.push(left);
            }
        }
    }
    (out, clipped)
}

/// The columns of each row's C outputs times a symmetric block, given as `[r, C]` diagonals or as `[r, C, C]` where `full`, times a number.
fn times_blocks(columns: &Mat<f64>, blocks: &[f64], (c, full): (usize, bool), scale: f64) -> Mat<f64> {
    let mut out = Mat::zeros(columns.nrows(), columns.ncols());
    for j in 0..columns.ncols() {
        let target = out.col_as_slice_mut(j);
        for k in if full { j / c * c..j / c * c + c } else { j..j + 1 } {
            let factor = scale * if full { blocks[j * c + k % c] } else { blocks[j] };
            target.iter_mut().zip(columns.col_as_slice(k)).for_each(|(t, v)| *t += factor * v);
        }
    }
    out
}

/// `[r, C]` diagonals as `[r, C, C]` blocks; blocks as they are.
fn as_blocks(blocks: &[f64], (c, full): (usize, bool)) -> Vec<f64> {
    if full {
        return blocks.to_vec();
    }
    let mut out = vec![0.0; blocks.len() * c];
    blocks.iter().enumerate().for_each(|(k, b)| out[k * c + k % c] = *b);
    out
}
