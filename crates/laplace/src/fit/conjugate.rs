//! **The linearised model in closed form**, where its noise is Gaussian and one precision is shared: the optimum of weights and hyperparameters together, by one eigendecomposition.
//!
//! In turns (mode, hyperparameters, mode, ...) the same point is approached linearly, and may be left for another on the way. In function space nothing more is needed; in weight space the
//! curvature was summed in the network's precision, so that what comes out here is where the turns begin.

use super::choices::LARGEST;
use super::curvature::Curvature;
use super::fitting::{Fitting, Solved};
use super::options::{Approximation, NoiseModel, Tune};
use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::function_space::FunctionSpace;
use crate::predict::displaced;
use crate::prior::PriorKind;
use crate::problem::Data;
use crate::run::{Run, Stage};
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::{DataFit, DualModel, PrimalModel, SpectralEvidence};
use posterior_linear::mode::{self, ModeProblem, Predictor};
use posterior_linear::structure::BlockMatrix;
use posterior_networks::{Network, Precision, Selection};
use posterior_tangent::{Observed, Tangent, batch_size, doubles, ranges};

/// Targets and kernel of a posterior in function space.
pub(super) struct Dual {
    model: DualModel,
    /// `max |f0| / max |g|`.
    offset: f64,
}

/// The inner product.
pub(super) fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The square of a norm.
pub(super) fn square(values: &[f64]) -> f64 {
    inner(values, values)
}

impl<T: Precision> Fitting<'_, T> {
    /// Whether mode and hyperparameters have a closed form that costs no more than the curvature did.
    pub(super) fn is_conjugate(&self, curvature: &Curvature<T>) -> bool {
        let options = self.options;
        let small = match curvature {
            Curvature::FunctionSpace(points) => {
                points.points().0 == self.data.examples.len() && points.rows() <= LARGEST
            }
            Curvature::Structure { structure, .. } => match structure.blocks() {
                [block] => matches!(block.matrix, BlockMatrix::Dense(_)) && block.range.len() <= LARGEST,
                _ => false,
            },
            Curvature::Ella(..) => false,
        };
        // Every exact curvature, and no block or estimate that happens to be one dense matrix.
        let exact =
            matches!(options.approximation, Approximation::Full | Approximation::FunctionSpace { .. });
        small
            && exact
            && is_gaussian(&self.likelihood)
            && options.tune == Tune::Evidence
            && options.noise == NoiseModel::Scale
            && self.prior == PriorKind::Scalar
    }

    /// Targets and kernel of function space, ready to be solved for any precision and noise.
    pub(super) fn dual(&self, points: &FunctionSpace<T>, run: &mut Run<'_>) -> Result<Dual, LaplaceError> {
        // `R^T (y - g + J v)` of all points, in double precision: they are differences of large numbers.
        let at = self.at_examples(&self.data.network.cast()?, run)?;
        let outputs = self.likelihood.outputs();
        let residuals: Vec<f64> = at.targets.iter().zip(at.offsets()).map(|(y, f)| y - f).collect();
        let width = points.rows() / self.data.examples.len();
        let rows = doubles(points.roots().values());
        let own = rows.chunks_exact(outputs).enumerate();
        let values = own.map(|(row, root)| inner(root, &residuals[row / width * outputs..][..outputs]));
        let values: Vec<f64> = values.collect();
        let model = DualModel::new(points.gram().as_ref(), &values, "the tangent kernel")?;
        points.remember(model.eigenvalues());
        Ok(Dual { model, offset: at.offset() })
    }

    /// The linearised model's optimum for the current precision and noise.
    pub(super) fn dual_mode(
        &self,
        points: &FunctionSpace<T>,
        dual: &Dual,
        solved: &Solved,
        fit: &FitSums,
    ) -> Result<mode::Mode, LaplaceError> {
        let (a, s) = (solved.prior.precisions()[0], solved.noise_variance);
        let coefficients = dual.model.coefficients(a, s);
        let network: Network<f64> = self.data.network.cast()?;
        let (count, outputs) = (self.data.examples.len(), self.likelihood.outputs());
        let width = points.rows() / count;
        let roots = doubles(points.roots().values());
        let mut cotangents = Vec::with_capacity(count * outputs);
        for i in 0..count {
            let rows = i * width..(i + 1) * width;
            cotangents
                .extend((0..outputs).map(|c| {
                    rows.clone().map(|r| roots[r * outputs + c] * coefficients[r] / a).sum::<f64>()
                }));
        }
        let weights = self.pulled_back(&network, &cotangents)?;
        // What is left of the targets is the noise's share of them, `s` times the coefficients.
        let residual_sum = s * s * square(&coefficients);
        let log_likelihood = match fit.data_fit(&self.likelihood) {
            DataFit::Gaussian { values, log_relative_precision, .. } => {
                DataFit::Gaussian { residual_sum, values, log_relative_precision }.log_likelihood(1.0)
            }
            other => other.log_likelihood(1.0),
        };
        Ok(mode::Mode {
            loss: -log_likelihood / s + 0.5 * a * square(&weights),
            weights,
            log_likelihood,
            newton_steps: 1,
            products: 0,
            remaining: 0.0,
            converged: true,
            offset: dual.offset,
        })
    }

    /// What targets and curvature say to the evidence of the linearised model.
    pub(super) fn spectral(
        &self,
        curvature: &Curvature<T>,
        dual: Option<&Dual>,
        fit: &FitSums,
        run: &mut Run<'_>,
    ) -> Result<Option<SpectralEvidence>, LaplaceError> {
        Ok(Some(match (curvature, dual) {
            (_, Some(dual)) => dual.model.evidence(),
            (Curvature::Structure { structure, .. }, None) => {
                let [block] = structure.blocks() else { return Ok(None) };
                let BlockMatrix::Dense(dense) = &block.matrix else { return Ok(None) };
                let DataFit::Gaussian { residual_sum, values, .. } = fit.data_fit(&self.likelihood) else {
                    return Ok(None);
                };
                let problem = self.problem();
                let (tangent, observed) =
                    (Tangent::new(problem.network, &self.selection), problem.observed());
                let slope = residual_slope(&without_prior(&tangent, &observed), run)?;
                let precision = T::EPSILON.to_f64();
                PrimalModel::new(dense.matrix(), &slope, residual_sum, &self.trained, values, precision)?
                    .evidence()
            }
            _ => return Ok(None),
        }))
    }
}

/// The linear model of a network's tangent without a prior.
pub(super) fn without_prior<'a, T: Precision>(
    tangent: &'a Tangent<'a, T>,
    observed: &'a Observed<'a, T>,
) -> ModeProblem<'a, T, Tangent<'a, T>> {
    ModeProblem {
        features: tangent,
        source: observed,
        likelihood: &**observed.likelihood,
        quadratic: is_gaussian(observed.likelihood),
        precisions: vec![0.0; tangent.trained().len()],
        strength: 1.0,
        predictor: Predictor::Affine,
    }
}

/// `J^T B (y - g)` of a problem without a prior, at the trained weights.
pub(super) fn residual_slope<T: Precision>(
    problem: &ModeProblem<'_, T, Tangent<'_, T>>,
    run: &mut Run<'_>,
) -> Result<Vec<f64>, LaplaceError> {
    let mut stage = run.stage(Stage::Mode);
    let (_, slope) = problem.loss_and_gradient(problem.features.trained(), &mut stage)?;
    Ok(slope.into_iter().map(|g| -g).collect())
}

/// Root of the mean square of `J d` over all examples and outputs.
pub(super) fn mean_displacement<T: Precision>(
    data: &Data<'_, T>,
    selection: &Selection,
    direction: &[T],
    run: &mut Run<'_>,
) -> Result<f64, LaplaceError> {
    let &Data { network, examples, .. } = data;
    let (mut sum, mut values, count) = (0.0, 0, examples.len());
    for range in ranges(0, count, batch_size(network, 2)) {
        let (x, _) = examples.batch(&range.clone().collect::<Vec<_>>(), None);
        let moved = displaced(network, selection, &x, direction)?;
        sum += square(&moved);
        values += moved.len();
        run.step(Stage::Mode, range.end, count)?;
    }
    Ok((sum / values.max(1) as f64).sqrt())
}
