//! The collapsed bounds of several functions on the same rows, at little more than the price of one.
//!
//! Functions that share kernel, inducing points and rows share the features `A = L⁻¹ K_ZX`; only the precisions `p_k = 1/s_k` of their noise differ, and
//! for classes they hardly do: the pseudo-target of a label has one noise where the row is of the class and another where it is not, so that of C functions all but one agree
//! in every row. With the precision `b` that most of them have,
//!
//! ```text
//! Ψ_k = A diag(p_k) Aᵀ = A diag(b) Aᵀ + A_k diag(p_k - b) A_kᵀ,   A_k: the columns in which function k differs
//! ```
//!
//! costs `n m²` for all together and as much again for all differences, whatever C is; so does the pullback, whose adjoint of `a_i` is `2 b_i (Σ_k Γ_k) a_i`
//! plus what differs (the letters are those of `bound`). Kernel and factor are handled once instead of C times.

use super::CollapsedGp;
use super::bound::{CollapsedEvaluation, add};
use crate::inducing::prior::by_columns;
use crate::{GpError, Observations};
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Accum, Mat, MatRef};
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{Request, diagonal, pullback_diagonal};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::dense::{multiply_into, product};
use posterior_linalg::triangular::add_lower_product;
use posterior_linear::low_rank::{EvidenceGradient, EvidenceSums};
use posterior_optim::Parameters;
use std::ops::Range;

/// Bytes that the matrices of all functions may take together.
const MOST_BYTES: usize = 1 << 30;

/// How many functions' worth of passes over the rows an evaluation of the bounds of so many classes takes: two, one for what most agree on and one for where
/// they do not; as many as there are where their matrices (m x m each) take more than a gigabyte.
pub fn passes_of_classes(functions: usize, inducing: usize) -> usize {
    if fits(functions, inducing) { functions.min(2) } else { functions }
}

fn fits(functions: usize, inducing: usize) -> bool {
    functions.saturating_mul(inducing.saturating_mul(inducing)).saturating_mul(8) <= MOST_BYTES
}

/// A row in which a function's precision is not what most have.
#[derive(Clone, Copy)]
struct Different {
    row: usize,
    by: f64,
}

/// Functions (one target each) whose rows are the same.
pub(super) struct SharedInputs<'a> {
    parts: &'a [Observations],
    /// The precision that most functions have, by row.
    common: Vec<f64>,
    /// Where each function has another, in the order of rows.
    different: Vec<Vec<Different>>,
}

/// What a block of rows gives to all functions.
struct Block {
    rows: Range<usize>,
    /// A, m x b.
    features: Mat<f64>,
    /// Residuals, b x K.
    residuals: Mat<f64>,
    /// The same times the precisions.
    weighted: Mat<f64>,
}

impl<'a> SharedInputs<'a> {
    /// None where nothing is to be gained: parts of other rows or several targets, a noise that is learned, precisions that have little in common, or matrices that take too much memory.
    pub(super) fn new(model: &CollapsedGp, parts: &'a [Observations]) -> Option<Self> {
        let (first, rest) = parts.split_first()?;
        let same = |part: &Observations| part.inputs() == first.inputs();
        let one = parts.iter().all(|part| part.targets().ncols() == 1);
        let fixed = !model.learn_likelihood || !model.learn_hyperparameters;
        if rest.is_empty()
            || !one
            || !fixed
            || !fits(parts.len(), model.inducing.nrows())
            || !rest.iter().all(same)
        {
            return None;
        }
        let own = model.likelihood.noise_variance();
        let precision =
            |part: &Observations, row: usize| 1.0 / (own + part.noise_variances().map_or(0.0, |v| v[row]));
        let mut common = Vec::with_capacity(first.rows());
        let mut different = vec![Vec::new(); parts.len()];
        let mut sorted = Vec::with_capacity(parts.len());
        for row in 0..first.rows() {
            sorted.clear();
            sorted.extend(parts.iter().map(|part| precision(part, row)));
            sorted.sort_by(f64::total_cmp);
            let most = sorted.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?[0];
            for (part, different) in parts.iter().zip(&mut different) {
                let by = precision(part, row) - most;
                if by != 0.0 {
                    different.push(Different { row, by });
                }
            }
            common.push(most);
        }
        let passes = common.len() + different.iter().map(Vec::len).sum::<usize>();
        (passes < parts.len() * common.len()).then_some(Self { parts, common, different })
    }

    fn block(&self, model: &CollapsedGp, whitening: &Whitening, rows: Range<usize>) -> Block {
        let x = self.parts[0].inputs().subrows(rows.start, rows.len());
        let features = whitening.features(model.kernel(), model.inducing(), x);
        let mean = model.mean.evaluate(x);
        let residuals = Mat::from_fn(rows.len(), self.parts.len(), |i, k| {
            self.parts[k].targets()[(rows.start + i, 0)] - mean[(i, 0)]
        });
        let mut weighted = Mat::from_fn(rows.len(), self.parts.len(), |i, k| {
            self.common[rows.start + i] * residuals[(i, k)]
        });
        for (k, own) in self.differences(&rows).enumerate() {
            for d in own {
                weighted[(d.row - rows.start, k)] += d.by * residuals[(d.row - rows.start, k)];
            }
        }
        Block { rows, features, residuals, weighted }
    }

    /// Of each function, within these rows.
    fn differences(&self, rows: &Range<usize>) -> impl Iterator<Item = &[Different]> {
        self.different.iter().map(|all| {
            let start = all.partition_point(|d| d.row < rows.start);
            let end = all.partition_point(|d| d.row < rows.end);
            &all[start..end]
        })
    }

    /// What each function's evidence says, and the sum of the bounds: the first pass.
    fn evidences(
        &self,
        model: &CollapsedGp,
        whitening: &Whitening,
    ) -> Result<(Vec<EvidenceGradient>, f64), GpError> {
        let (m, count) = (model.inducing.nrows(), self.parts.len());
        let mut shared = Mat::zeros(m, m);
        let mut projected = Mat::zeros(m, count);
        let mut sums: Vec<EvidenceSums> = (0..count).map(|_| EvidenceSums::new(m, 1)).collect();
        let grow = |psi: &mut Mat<f64>, columns: MatRef<'_, f64>, by: &[f64]| {
            let scaled = scaled(columns, by);
            add_lower_product(psi, (scaled.as_ref(), Rectangular), (columns.transpose(), Rectangular), 1.0);
        };
        for rows in model.blocks(self.parts[0].rows()) {
            let block = self.block(model, whitening, rows);
            let (a, common) = (block.features.as_ref(), &self.common[block.rows.clone()]);
            let x = self.parts[0].inputs().subrows(block.rows.start, block.rows.len());
            let variances = diagonal(model.kernel(), x);
            grow(&mut shared, a, common);
            multiply_into(projected.as_mut(), Accum::Add, a, block.weighted.as_ref(), 1.0);
            let log_noise: f64 = common.iter().map(|p| (2.0 * std::f64::consts::PI / p).ln()).sum();
            let captured: f64 = common.iter().zip(&variances).map(|(p, v)| p * v).sum();
            for (k, (own, different)) in sums.iter_mut().zip(self.differences(&block.rows)).enumerate() {
                let columns = gather(a, different, block.rows.start);
                let by: Vec<f64> = different.iter().map(|d| d.by).collect();
                grow(&mut own.psi, columns.as_ref(), &by);
                own.rows += block.rows.len();
                own.log_noise += log_noise;
                own.variances += captured;
                for d in different {
                    own.log_noise -= (d.by / self.common[d.row]).ln_1p();
                    own.variances += d.by * variances[d.row - block.rows.start];
                }
                let pairs = block.residuals.col_as_slice(k).iter().zip(block.weighted.col_as_slice(k));
                own.squares += pairs.map(|(r, w)| r * w).sum::<f64>();
            }
        }
        let (mut out, mut value) = (Vec::with_capacity(count), 0.0);
        for (k, mut own) in sums.into_iter().enumerate() {
            own.psi += &shared;
            own.projected.col_mut(0).copy_from(projected.col(k));
            let solved = own.solve(1.0, JitterPolicy::NONE)?;
            value += solved.value;
            out.push(solved.gradient());
        }
        Ok((out, value))
    }

    /// The sum of the bounds with its gradient, zero in the noise. Cost `6 n m²` flops for what functions have in common, `4 m²` for each row in which one differs, `5 m³` for each function.
    pub(super) fn bound_and_gradient(&self, model: &CollapsedGp) -> Result<CollapsedEvaluation, GpError> {
        let (m, count) = (model.inducing.nrows(), self.parts.len());
        let (kernel, z, moving) = (model.kernel(), model.inducing(), model.learn_inducing);
        let whitening = model.whitening()?;

        let (evidences, value) = self.evidences(model, &whitening)?;
        let mut outer = Mat::zeros(m, m);
        let (mut all, mut weights) = (Mat::zeros(m, m), Mat::zeros(m, count));
        for (k, evidence) in evidences.iter().enumerate() {
            outer += evidence.outer();
            all += evidence.of_psi();
            weights.col_mut(k).copy_from(evidence.of_projected().col(0));
        }
        let through_factor = whitening.pull_back_factor(kernel, z, outer, moving);
        let mut parameters = through_factor.parameters;
        let mut inducing = through_factor.x;

        let mut mean_gradient = vec![0.0; model.mean.values().len()];
        for rows in model.blocks(self.parts[0].rows()) {
            let block = self.block(model, &whitening, rows);
            let x = self.parts[0].inputs().subrows(block.rows.start, block.rows.len());
            let mut precisions: Vec<f64> =
                self.common[block.rows.clone()].iter().map(|p| count as f64 * p).collect();
            // p_k (r_k - aᵀ c_k), summed over functions: they share the mean.
            let fitted = block.features.transpose() * &weights;
            let mut mean_adjoint = Mat::from_fn(block.rows.len(), 1, |i, _| {
                let p = self.common[block.rows.start + i];
                (0..count).map(|k| p * (block.residuals[(i, k)] - fitted[(i, k)])).sum()
            });
            let mut adjoint = product(all.as_ref(), block.features.as_ref());
            for (i, &p) in self.common[block.rows.clone()].iter().enumerate() {
                adjoint.col_as_slice_mut(i).iter_mut().for_each(|a| *a *= 2.0 * p);
            }
            for (k, different) in self.differences(&block.rows).enumerate() {
                let columns = gather(block.features.as_ref(), different, block.rows.start);
                let turned = product(evidences[k].of_psi(), columns.as_ref());
                for (j, d) in different.iter().enumerate() {
                    let i = d.row - block.rows.start;
                    let target = adjoint.col_as_slice_mut(i).iter_mut();
                    target.zip(turned.col_as_slice(j)).for_each(|(a, t)| *a += 2.0 * d.by * t);
                    mean_adjoint[(i, 0)] += d.by * (block.residuals[(i, k)] - fitted[(i, k)]);
                    precisions[i] += d.by;
                }
            }
            multiply_into(adjoint.as_mut(), Accum::Add, weights.as_ref(), block.weighted.transpose(), 1.0);
            let part = whitening.pull_back_features(kernel, z, x, &mut adjoint, moving);
            add(&mut parameters, &part.parameters);
            if let (Some(total), Some(part)) = (&mut inducing, part.x) {
                *total += part;
            }
            let of_variances: Vec<f64> = precisions.iter().map(|p| -0.5 * p).collect();
            add(
                &mut parameters,
                &pullback_diagonal(kernel, x, &of_variances, Request::PARAMETERS).parameters,
            );
            add(&mut mean_gradient, &model.mean.pullback(x, mean_adjoint.as_ref()));
        }
        let inducing = inducing.map_or_else(|| vec![0.0; m * z.ncols()], |g| by_columns(&g));
        let gradient = [parameters, mean_gradient, vec![0.0], inducing].concat();
        Ok(CollapsedEvaluation { value, gradient, relative_jitter: whitening.relative_jitter })
    }
}

/// The columns of a block in which a function differs.
fn gather(features: MatRef<'_, f64>, different: &[Different], start: usize) -> Mat<f64> {
    let mut out = Mat::zeros(features.nrows(), different.len());
    for (j, d) in different.iter().enumerate() {
        out.col_mut(j).copy_from(features.col(d.row - start));
    }
    out
}

fn scaled(columns: MatRef<'_, f64>, by: &[f64]) -> Mat<f64> {
    Mat::from_fn(columns.nrows(), columns.ncols(), |i, j| columns[(i, j)] * by[j])
}
