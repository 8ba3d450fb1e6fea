//! A posterior again from what was saved of it.
//!
//! The curvature is saved as it was summed and factored anew with the same prior, so that predictions are those of before.

use super::choices::Choices;
use super::curvature::Curvature;
use super::options::{Approximation, FitOptions};
use super::result::{Chosen, Laplace, Origin};
use super::summary::{FitSummary, LearnedReport};
use crate::LaplaceError;
use crate::accumulate::{Accumulator, BlockSum};
use crate::ella::{Ella, EllaReport};
use crate::fixed_mean::FixedMean;
use crate::function_space::FunctionSpace;
use crate::gwi::Gwi;
use crate::learned::{Learned, LearnedPosterior};
use crate::mean_field::MeanField;
use crate::sampled::Sampled;
use crate::temperature::Temperature;
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::compiled_here;
use posterior_linear::structure::{Block, BlockMatrix, LowRank, Structure};
use posterior_networks::{Network, PerNetworkPrecision, Precision, Selection};
use posterior_store::{StoreError, Tensors};

/// A curvature as it was saved.
pub enum RestoredCurvature<T> {
    /// Sums ([`blocks`](posterior_linear::curvature::Accumulator::blocks)).
    Sums(Vec<BlockSum>),
    /// Leading eigenvectors times the roots of their eigenvalues, `[weights, rank]`, and the diagonal of the rest; in unscaled features.
    LowRank {
        /// The factor.
        factor: Mat<f64>,
        /// The rest of the diagonal.
        residual: Vec<f64>,
    },
    /// Training points.
    FunctionSpace(FunctionSpace<T>),
    /// Directions and the curvature along them.
    Ella(Ella<T>),
    /// None: the posterior itself.
    Learned(LearnedPosterior<T>),
}

impl<T: Precision> LearnedPosterior<T> {
    /// From its arrays as they were saved, for a fit with these options under a likelihood.
    ///
    /// # Errors
    /// When they are missing, or of another network or fit.
    pub fn read(
        network: &Network<T>,
        selection: &Selection,
        options: &FitOptions,
        likelihood: &OutputLikelihood,
        report: Option<&LearnedReport>,
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] read, (
            network: &'a Network<T> = network,
            selection: &'a Selection = selection,
            options: &'a FitOptions = options,
            likelihood: &'a OutputLikelihood = likelihood,
            report: Option<&'a LearnedReport> = report,
            tensors: &'a mut Tensors = tensors,
        ) -> Result<LearnedPosterior<T>, StoreError>)
    }
}

fn read<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    options: &FitOptions,
    likelihood: &OutputLikelihood,
    report: Option<&LearnedReport>,
    tensors: &mut Tensors,
) -> Result<LearnedPosterior<T>, StoreError> {
    let posterior: Box<dyn Learned<T>> = match (&options.approximation, report) {
        (Approximation::Temperature, Some(LearnedReport::Temperature(report))) => {
            Box::new(Temperature::read(likelihood, *report, tensors)?)
        }
        (Approximation::MeanField(own), Some(LearnedReport::MeanField(report))) => {
            let draws = (own.samples, options.seed);
            let read =
                MeanField::<T>::read(selection.clone(), likelihood.clone(), draws, report.clone(), tensors);
            Box::new(read.map_err(|e| tensors.corrupt(e))?)
        }
        (Approximation::Sampled(_), Some(LearnedReport::Sampled { header, .. })) => {
            Box::new(Sampled::<T>::read(selection, header, tensors)?)
        }
        (Approximation::FixedMean(own), Some(LearnedReport::FixedMean(_))) => {
            Box::new(FixedMean::<T>::read(network, selection, own, tensors)?)
        }
        (Approximation::Gwi(own), Some(LearnedReport::Gwi(_))) => {
            Box::new(Gwi::read(network.graph(), own, likelihood, tensors)?)
        }
        _ => return Err(tensors.corrupt("its header does not say how its posterior was found")),
    };
    Ok(LearnedPosterior(posterior))
}

/// All that is saved of a posterior besides its network.
pub struct SavedPosterior<T> {
    /// What was asked of the fit: curvature, prior and predictive are those of before.
    pub options: FitOptions,
    /// The uncertain weights.
    pub selection: Selection,
    /// The likelihood that the curvature was summed with ([`Laplace::base_likelihood`]).
    pub base_likelihood: OutputLikelihood,
    /// The noise variance relative to it.
    pub noise_variance: f64,
    /// Prior precisions, one for each group.
    pub precisions: Vec<f64>,
    /// The mode, flat.
    pub mode: Vec<f64>,
    /// The curvature.
    pub curvature: RestoredCurvature<T>,
    /// What was done and chosen.
    pub summary: FitSummary,
}

impl<T: Precision> Laplace<T> {
    /// The posterior that was saved. Costs the factorisations (or eigendecompositions) of the curvature, and no pass over data.
    ///
    /// # Errors
    /// When parts do not belong to the network or to each other, or a number is not finite.
    pub fn restore(network: &Network<T>, saved: SavedPosterior<T>) -> Result<Self, LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] restore, (
            network: &'a Network<T> = network,
            saved: SavedPosterior<T> = saved,
        ) -> Result<Laplace<T>, LaplaceError>)
    }

    /// The low-rank factor and the rest of the diagonal in unscaled features, to be saved; None for other curvatures.
    pub fn low_rank_parts(&self) -> Option<(Mat<f64>, Vec<f64>)> {
        let [Block { matrix: BlockMatrix::LowRank(m), .. }] = self.structure()?.blocks() else { return None };
        let scales = self.structure()?.scales();
        // Weights that were dropped have no curvature.
        let back = |i: usize, v: f64| if scales[i] > 0.0 { v / scales[i] } else { 0.0 };
        let (rows, columns) = (m.factor().nrows(), m.factor().ncols());
        let factor = Mat::from_fn(rows, columns, |i, j| back(i, m.factor()[(i, j)]));
        let residual = m.residual().iter().enumerate().map(|(i, v)| back(i, back(i, *v))).collect();
        Some((factor, residual))
    }
}

/// See [`Laplace::restore`].
fn restore<T: Precision>(network: &Network<T>, saved: SavedPosterior<T>) -> Result<Laplace<T>, LaplaceError> {
    let SavedPosterior { options, selection, noise_variance, precisions, mode, summary, .. } = saved;
    let likelihood = saved.base_likelihood;
    posterior_tangent::check_outputs(network, &likelihood)?;
    if mode.len() != selection.len() || mode.iter().any(|w| !w.is_finite()) {
        return Err(LaplaceError::Request("the saved mode does not belong to these weights".into()));
    }
    if !(noise_variance.is_finite() && noise_variance > 0.0) {
        return Err(LaplaceError::Request("the saved noise is not a positive number".into()));
    }
    let kind = match &saved.curvature {
        RestoredCurvature::Learned(_) => options.approximation.searched_prior(),
        _ => Choices::of(network.graph(), &selection, &options).prior,
    };
    let prior = kind.prior(network.graph(), &selection, 1.0)?.with_precisions(&precisions)?;
    let conditioned = |curvature| Origin::Curvature(Box::new(curvature));
    let origin = match saved.curvature {
        RestoredCurvature::Sums(blocks) => {
            let Some(form) = options.approximation.form() else {
                return Err(LaplaceError::Request("the saved curvature is not one of sums".into()));
            };
            let estimate = options.approximation.estimate();
            let mut sums = Accumulator::new(network, &selection, form, estimate)?;
            sums.restore(blocks, summary.fit)?;
            conditioned(Curvature::Structure { structure: kind.scaled(sums.finish()?)?, sums: Some(sums) })
        }
        RestoredCurvature::LowRank { factor, residual } => {
            let d = selection.len();
            if factor.nrows() != d || residual.len() != d {
                return Err(LaplaceError::Request(
                    "the saved low-rank curvature does not belong to these weights".into(),
                ));
            }
            let matrix = BlockMatrix::LowRank(LowRank::new(factor, residual));
            let structure = Structure::new(vec![Block { name: "all weights".into(), range: 0..d, matrix }])?;
            conditioned(Curvature::Structure { structure: kind.scaled(structure)?, sums: None })
        }
        RestoredCurvature::FunctionSpace(points) => conditioned(Curvature::FunctionSpace(points)),
        RestoredCurvature::Ella(ella) => conditioned(Curvature::Ella(ella, EllaReport::default())),
        RestoredCurvature::Learned(LearnedPosterior(posterior)) => Origin::Search(posterior),
    };
    let integration = options.integration;
    Laplace::of(
        network,
        Chosen { origin, selection, likelihood, noise_variance, prior, mode, integration, summary },
    )
}
