//! The objective and its gradient, of all rows in two passes or of a batch.

use super::super::learned_features::largest;
use super::super::{
    DataTerm, DataTermBuffers, EvidenceSums, FeatureValues, FeaturesAt, ObservedRows, ScaledRows,
    SolvedEvidence, TriangularSums,
};
use super::{Correction, LowRankData, LowRankTraining, Training};
use crate::LinearError;
use faer::Mat;
use posterior_linalg::cholesky::{CholeskyError, JitterPolicy};
use posterior_linalg::tiles::pieces;
use std::ops::Range;

/// Where neither squares nor triangles lead to a factor of W, training goes on with a little on its diagonal, which is told.
pub(super) const LAST_RESORT: JitterPolicy = JitterPolicy { initial: 1e-14, growth: 100.0, largest: 1e-6 };

/// What a pass over the rows leaves.
struct FirstPass<'f> {
    sums: EvidenceSums,
    /// What is kept of the rows.
    passed: Vec<Passed<'f>>,
    /// The row with the largest `|a|²`, and that number.
    most: (usize, f64),
}

/// A block of rows between the two passes.
struct Passed<'f> {
    rows: Range<usize>,
    traced: Option<Traced<'f>>,
}

/// What the way back needs of a block.
struct Traced<'f> {
    features: Box<dyn FeaturesAt + 'f>,
    scaled: ScaledRows,
    weights: Option<Vec<f64>>,
}

/// The evidence for each row, the gradient of that of all, how W was factored, and a look at the rows held back where one was due.
pub(super) struct Evaluated {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    pub(super) factored: Factored,
    pub(super) nll: Option<f64>,
}

/// How W was factored.
#[derive(Clone, Copy)]
pub(super) struct Factored {
    pub(super) jitter: f64,
    pub(super) by_triangles: bool,
}

impl Factored {
    pub(super) fn new(solved: &SolvedEvidence) -> Self {
        Self { jitter: solved.factor().info().jitter, by_triangles: solved.by_triangles() }
    }
}

impl LowRankTraining<'_> {
    /// Noise variances of rows, with what rests add to them.
    fn noise(&self, observed: &ObservedRows<'_>, rest: &[f64]) -> Vec<f64> {
        let own = self.likelihood.shared_noise_variance().unwrap_or(f64::NAN);
        let extra = |i: usize| if self.options.rest_as_noise { rest[i] } else { 0.0 };
        rest.iter()
            .enumerate()
            .map(|(i, _)| {
                let weight = observed.weights.map_or(1.0, |w| w[i]);
                (own + observed.noise.map_or(0.0, |n| n[i]) + extra(i)) / weight
            })
            .collect()
    }

    /// The prior variance of every row under the correction; `most` is the largest of the features' own.
    fn variances(&self, squares: &[f64], own: &[f64], most: f64) -> Vec<f64> {
        match self.options.correction {
            Correction::None => squares.to_vec(),
            Correction::Uniform => squares.iter().map(|k| most.max(*k)).collect(),
            Correction::Own => own.to_vec(),
        }
    }

    /// The largest `|a|²` of all training rows, where the correction needs it.
    pub(super) fn most(&self) -> Result<(usize, f64), LinearError> {
        let mut most = (0, 0.0);
        if self.options.correction == Correction::Uniform {
            for rows in pieces(self.data.row_count(), self.features.rows_at_once()) {
                let values = self.features.values(self.data.rows_in(rows.clone())?.data().inputs)?;
                if let Some((i, k)) = largest(&squares(&values.features))
                    && k > most.1
                {
                    most = (rows.start + i, k);
                }
            }
        }
        Ok(most)
    }

    /// The first pass over the data: sums, with what is kept of the rows for the second.
    fn pass(&self, keep: bool) -> Result<FirstPass<'_>, LinearError> {
        let most = self.most()?;
        let mut sums = EvidenceSums::new(self.features.rank(), 1);
        let each = self.features.bytes_of_row() + 8 * self.features.rank();
        let kept_rows = if keep { self.options.kept_bytes / each.max(1) } else { 0 };
        let mut passed = Vec::new();
        for rows in pieces(self.data.row_count(), self.features.rows_at_once()) {
            let traced = self.traced(rows.clone(), most.1)?;
            sums.add(&traced.scaled);
            let traced = (rows.end <= kept_rows).then_some(traced);
            passed.push(Passed { rows, traced });
        }
        Ok(FirstPass { sums, passed, most })
    }

    fn traced(&self, rows: Range<usize>, most: f64) -> Result<Traced<'_>, LinearError> {
        let block = self.data.rows_in(rows)?;
        let LowRankData { inputs, observed } = block.data();
        let features = self.features.at(inputs)?;
        let scaled = self.scaled(&observed, features.values(), most);
        Ok(Traced { features, scaled, weights: observed.weights.map(<[f64]>::to_vec) })
    }

    fn scaled(&self, observed: &ObservedRows<'_>, values: &FeatureValues, most: f64) -> ScaledRows {
        let squares = squares(&values.features);
        let variances = self.variances(&squares, &values.variances, most);
        let rest: Vec<f64> = variances.iter().zip(&squares).map(|(v, k)| v - k).collect();
        let noise = self.noise(observed, &rest);
        let residuals = match observed.offsets {
            Some(offsets) => Mat::from_fn(offsets.len(), 1, |i, _| observed.targets[(i, 0)] - offsets[i]),
            None => observed.targets.to_owned(),
        };
        ScaledRows::new(values.features.clone(), residuals, noise, variances)
    }

    /// The penalty's weight: none where rests are noise.
    fn penalty(&self) -> f64 {
        if self.options.rest_as_noise || self.options.correction == Correction::None {
            0.0
        } else {
            self.options.trace_weight
        }
    }

    /// The evidence of a pass. Where rounding has taken the identity out of W the rows are summed again by triangles, in one more pass over those that are not kept; where that leads nowhere either, the last resort is tried.
    fn solve(&self, pass: &FirstPass<'_>, last_resort: JitterPolicy) -> Result<SolvedEvidence, LinearError> {
        let penalty = self.penalty();
        match pass.sums.clone().solve(penalty, JitterPolicy::NONE) {
            Ok(solved) if solved.is_sound() => return Ok(solved),
            Err(error @ CholeskyError::NotFinite { .. }) => return Err(error.into()),
            _ => {}
        }
        match self.triangles(pass)?.solve(penalty) {
            Ok(solved) => Ok(solved),
            Err(_) => Ok(pass.sums.clone().solve(penalty, last_resort)?),
        }
    }

    /// The evidence with nothing kept for a second pass, and the largest `|a|²` where the correction needs it.
    pub(super) fn solved(&self, last_resort: JitterPolicy) -> Result<(SolvedEvidence, f64), LinearError> {
        let pass = self.pass(false)?;
        Ok((self.solve(&pass, last_resort)?, pass.most.1))
    }

    fn triangles(&self, pass: &FirstPass<'_>) -> Result<TriangularSums, LinearError> {
        let mut triangles = TriangularSums::new(self.features.rank(), 1);
        for Passed { rows, traced } in &pass.passed {
            match traced {
                Some(traced) => triangles.add(&traced.scaled),
                None => {
                    let block = self.data.rows_in(rows.clone())?;
                    let LowRankData { inputs, observed } = block.data();
                    let values = self.features.values(inputs)?;
                    triangles.add(&self.scaled(&observed, &values, pass.most.1));
                }
            }
        }
        Ok(triangles)
    }

    pub(super) fn evidence_and_gradient(&self) -> Result<Evaluated, LinearError> {
        let pass = self.pass(true)?;
        let solved = self.solve(&pass, LAST_RESORT)?;
        let FirstPass { passed, most, .. } = pass;
        let (value, factored) = (solved.value / self.data.row_count() as f64, Factored::new(&solved));
        if !value.is_finite() {
            return Err(LinearError::NotFinite {
                what: "the evidence after step",
                index: self.state.step,
                value,
            });
        }
        let nll = if self.is_due() { self.judged(&solved.posterior()?, most.1)? } else { None };
        let second = solved.gradient();
        let mut gradient = vec![0.0; self.state.theta.len()];
        let of_noise = self.decays.len();
        // One noise variance of its own: the chain rule of the likelihood is applied below, to the sum.
        let mut toward_noise = 0.0;
        let mut of_most = 0.0;
        for Passed { rows, traced } in passed {
            let count = rows.len();
            let Traced { features: traced, scaled, weights } = match traced {
                Some(kept) => kept,
                None => self.traced(rows, most.1)?,
            };
            let mut block = second.block(&scaled);
            let weight = |i: usize| weights.as_ref().map_or(1.0, |w| w[i]);
            let natural: f64 = block.noise.iter().enumerate().map(|(i, n)| n / weight(i)).sum();
            toward_noise += natural;
            let of_rest: Vec<f64> = match (self.options.rest_as_noise, self.options.correction) {
                (_, Correction::None) => vec![0.0; count],
                (true, _) => block.noise.iter().enumerate().map(|(i, n)| n / weight(i)).collect(),
                (false, _) => std::mem::take(&mut block.variances),
            };
            // A rest is what the process's own variance is above |a|²; the penalty's own slope in |a|² is in the features' gradient.
            if self.options.rest_as_noise {
                add_squares(&mut block.features, &traced.values().features, &of_rest, -1.0);
            }
            let own = match self.options.correction {
                Correction::Own => of_rest,
                _ => {
                    of_most += of_rest.iter().sum::<f64>();
                    vec![0.0; count]
                }
            };
            traced.pull_back(block.features, &own, &mut gradient[..of_noise])?;
        }
        if self.options.correction == Correction::Uniform && of_most != 0.0 {
            self.pull_back_most(most.0, of_most, &mut gradient[..of_noise])?;
        }
        gradient[of_noise..].copy_from_slice(&self.chain(&[toward_noise]));
        Ok(Evaluated { value, gradient, factored, nll })
    }

    /// The slope in the largest `|a|²`, which is that of one row.
    fn pull_back_most(&self, row: usize, slope: f64, gradient: &mut [f64]) -> Result<(), LinearError> {
        let traced = self.features.at(self.data.rows_in(row..row + 1)?.data().inputs)?;
        let features = &traced.values().features;
        let mut adjoint = Mat::zeros(features.nrows(), 1);
        add_squares(&mut adjoint, features, &[slope], 1.0);
        traced.pull_back(adjoint, &[0.0], gradient)
    }

    /// From the likelihood's natural gradient that in its numbers without constraints, of which those that are held have none.
    fn chain(&self, natural: &[f64]) -> Vec<f64> {
        self.likelihood.chain(&self.likelihood.unconstrained(), natural)
    }

    /// The objective for each row as a batch estimates it, and the gradient of the objective of all.
    pub(super) fn batch_and_gradient(
        &self,
        rows: &[usize],
        (power, kl): (f64, f64),
        buffers: &mut DataTermBuffers,
    ) -> Result<(f64, Vec<f64>), LinearError> {
        let batch = self.data.rows_at(rows)?;
        let LowRankData { inputs, observed } = batch.data();
        let traced = self.features.at(inputs)?;
        let values = traced.values();
        let squares = squares(&values.features);
        let most = largest(&squares).unwrap_or((0, 0.0));
        let share = if self.options.correction == Correction::None { 0.0 } else { self.options.trace_weight };
        let own = self.variances(&squares, &values.variances, most.1);
        let variances: Vec<f64> = squares.iter().zip(&own).map(|(k, v)| k + share * (v - k)).collect();
        let term = DataTerm::new(&self.q, &*self.likelihood, power);
        let (n, latents) = (self.data.row_count() as f64, self.q.latents());
        let scale = n / rows.len() as f64;
        let zero = Mat::zeros(rows.len(), latents);
        let slopes = term.slopes(values.features.as_ref(), zero, &variances, &observed, scale, buffers);
        let divergence = if kl == 0.0 { 0.0 } else { kl * self.q.divergence() };
        let value = (slopes.value - divergence) / n;
        if let Some(i) = slopes.exploded() {
            let (likelihood, row, steps) = (self.likelihood.name(), rows[i], self.state.step);
            return Err(LinearError::Exploded { likelihood, row, steps });
        }
        if !value.is_finite() {
            return Err(LinearError::NotFinite {
                what: "the objective after step",
                index: self.state.step,
                value,
            });
        }
        let h = slopes.of_prior_variances();
        let mut adjoint = std::mem::replace(term.features_adjoint(&slopes, buffers), Mat::new());
        let of_squares: Vec<f64> = h.iter().map(|h| (1.0 - share) * h).collect();
        add_squares(&mut adjoint, &values.features, &of_squares, 1.0);
        let mut of_own = vec![0.0; rows.len()];
        match self.options.correction {
            Correction::None => {}
            Correction::Own => of_own.iter_mut().zip(&h).for_each(|(o, h)| *o = share * h),
            Correction::Uniform => {
                let sum: f64 = h.iter().sum();
                let column = adjoint.col_as_slice_mut(most.0).iter_mut();
                column
                    .zip(values.features.col_as_slice(most.0))
                    .for_each(|(a, f)| *a += 2.0 * share * sum * f);
            }
        }
        let features = self.decays.len();
        let mut gradient = vec![0.0; features];
        traced.pull_back(adjoint, &of_own, &mut gradient)?;
        gradient.extend(self.chain(&slopes.parameters));
        match self.options.training {
            Training::Point { .. } => {
                let mean = &slopes.of_q.mean;
                (0..mean.ncols()).for_each(|c| gradient.extend_from_slice(mean.col_as_slice(c)));
            }
            _ => slopes.of_q.unconstrained_into(&self.q, kl, 1.0, &mut gradient),
        }
        Ok((value, gradient))
    }
}

/// `|a|²` of each column.
pub(super) fn squares(features: &Mat<f64>) -> Vec<f64> {
    (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect()
}

/// Adds `sign · 2 slope_i a_i`, the slope in the features of `slope_i |a_i|²`.
fn add_squares(adjoint: &mut Mat<f64>, features: &Mat<f64>, slopes: &[f64], sign: f64) {
    for (i, slope) in slopes.iter().enumerate() {
        let column = adjoint.col_as_slice_mut(i).iter_mut();
        column.zip(features.col_as_slice(i)).for_each(|(a, f)| *a += sign * 2.0 * slope * f);
    }
}
