//! A network with the posterior over its weights, in either precision.

use super::Read;
use crate::latent::{Beyond, Draws};
use crate::model::Networks;
use crate::network::{NETWORK, Preparation, add_network, graph_of, is_single, take_network};
use crate::record::NetworkHeader;
use crate::{Batch, Cost, Latent, ModelError, NetworkPosterior, Predictor, Want};
use faer::Mat;
use posterior_data::NumericArray;
use posterior_laplace::accumulate::FitSums;
use posterior_laplace::function_space::FunctionSpace;
use posterior_laplace::learned::{LearnedPosterior, SampledPredictions};
use posterior_laplace::saved::{add_selection, add_sums, read_selection, sums};
use posterior_laplace::scores::wanted;
use posterior_laplace::{
    Approximation, Ella, FisherEstimate, Laplace, Latent as Outputs, RestoredCurvature, SavedPosterior,
    Wanted,
};
use posterior_likelihoods::{Integration, OutputLikelihood};
use posterior_networks::{Array, Graph, Network, Precision, Selection};
use posterior_store::{StoreError, Tensors};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

pub(crate) const KIND: &str = "network";

/// Examples whose covariances are kept at one time.
pub(crate) const PIECE: usize = 512;

/// A network and the posterior over its weights, in one precision.
pub struct Fitted<T> {
    /// The network.
    pub network: Network<T>,
    /// The posterior.
    pub laplace: Laplace<T>,
}

impl<T> fmt::Debug for Fitted<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fitted").finish_non_exhaustive()
    }
}

/// The same, with what is done to examples before the network sees them.
#[derive(Debug)]
pub(crate) struct NetworkPredictor<T> {
    pub(super) fitted: Arc<Fitted<T>>,
    preparation: Preparation,
}

/// A fit as a predictor.
#[inline(never)]
pub(crate) fn predictor<T: Precision>(fitted: Fitted<T>, preparation: Preparation) -> Arc<dyn Predictor> {
    Arc::new(NetworkPredictor { fitted: Arc::new(fitted), preparation })
}

impl<T: Precision> NetworkPredictor<T> {
    /// Examples as the network takes them.
    fn prepared(&self, x: &NumericArray) -> Result<Array<T>, ModelError> {
        Ok(self.preparation.inputs::<T>(x, self.fitted.network.graph().input_shape())?.0)
    }

    fn integration(&self, want: &Want) -> Integration {
        want.integration.unwrap_or(self.fitted.laplace.integration())
    }

    /// Which entries of covariances are needed. Joint densities alone need correlations under Gaussian noise.
    fn entries(&self, want: &Want) -> Wanted {
        let likelihood = self.fitted.laplace.likelihood();
        match likelihood {
            OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_) if !want.scored => {
                Wanted::Diagonal
            }
            _ => wanted(self.integration(want), likelihood),
        }
    }
}

impl<T: Precision> Predictor for NetworkPredictor<T> {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = self.prepared(x.arrays()?)?;
        let Fitted { network, laplace } = &*self.fitted;
        if want.plain {
            let f = network.forward(&x)?;
            let values = f.values().iter().map(|v| v.to_f64()).collect();
            return Ok(Outputs::certain(f.row_len(), values).into());
        }
        let latent = Latent::from(laplace.latent(network, &x, self.entries(want))?);
        if self.integration(want) == Integration::PlugIn {
            return Ok(latent);
        }
        let draws = Arc::new(OwnDraws { fitted: self.fitted.clone(), x });
        Ok(Latent { beyond: Beyond::Draws(draws), ..latent })
    }

    fn cost(&self, rows: usize) -> Cost {
        self.latent_cost(rows, &Want::default())
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let Fitted { network, laplace } = &*self.fitted;
        add_network(NETWORK, network, out);
        out.insert_vector("prior.precisions", laplace.prior().precisions());
        out.insert_vector("mode", laplace.mode());
        add_selection(laplace.selection(), out);
        if laplace.add_learned(out) {
            return Ok(Value::Null);
        }
        if let Some(sums) = laplace.sums() {
            add_sums(sums, out);
        } else if let Some((factor, residual)) = laplace.low_rank_parts() {
            out.insert_matrix("low_rank.factor", factor.as_ref());
            out.insert_vector("low_rank.residual", &residual);
        } else if let Some(ella) = laplace.ella() {
            ella.write(out);
        } else if let Some(points) = laplace.function_space() {
            for (name, array) in [("points.inputs", points.inputs()), ("points.roots", points.roots())] {
                out.insert(name, array.shape().to_vec(), array.values());
            }
            out.insert_triangle("points.kernel", points.gram().as_ref());
        }
        Ok(Value::Null)
    }

    fn latents(&self) -> usize {
        self.graph().output_shape().iter().product()
    }

    fn is_coupled(&self) -> bool {
        true
    }

    fn network(&self) -> Option<&dyn NetworkPosterior> {
        Some(self)
    }
}

impl<T: Precision> NetworkPosterior for NetworkPredictor<T> {
    fn graph(&self) -> &Graph {
        self.fitted.network.graph()
    }

    fn precision(&self) -> &'static str {
        if size_of::<T>() == 4 { "f32" } else { "f64" }
    }

    fn weights(&self) -> usize {
        self.fitted.laplace.selection().len()
    }

    fn precisions(&self) -> (&[String], &[f64]) {
        let prior = self.fitted.laplace.prior();
        (prior.names(), prior.precisions())
    }

    fn draws_functions(&self) -> bool {
        self.fitted.laplace.draws_functions()
    }

    fn function_samples(
        &self,
        x: &NumericArray,
        count: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Vec<f64>, ModelError> {
        let Fitted { network, laplace } = &*self.fitted;
        Ok(laplace.function_samples(network, &self.prepared(x)?, count, seed, memory)?)
    }

    fn observed(&self) -> (OutputLikelihood, Integration) {
        let laplace = &self.fitted.laplace;
        (laplace.likelihood().clone(), laplace.integration())
    }

    fn covariance(&self, x: &NumericArray, memory: u64) -> Result<Mat<f64>, ModelError> {
        let Fitted { network, laplace } = &*self.fitted;
        Ok(laplace.joint(network, &self.prepared(x)?, memory)?)
    }

    fn latent_cost(&self, examples: usize, want: &Want) -> Cost {
        let Fitted { network, laplace } = &*self.fitted;
        Cost {
            bytes: laplace.latent_bytes(network, examples.min(PIECE), self.entries(want)),
            flops: laplace.latent_flops(network, examples),
        }
    }
}

/// What a posterior predicts of some examples that no latent Gaussian gives, if it does.
#[derive(Debug)]
struct OwnDraws<T> {
    fitted: Arc<Fitted<T>>,
    x: Array<T>,
}

impl<T: Precision> Draws for OwnDraws<T> {
    fn predictive(&self, targets: Option<&[f64]>) -> Result<Option<SampledPredictions>, ModelError> {
        let Fitted { network, laplace } = &*self.fitted;
        Ok(laplace.own_predictive(network, &self.x, targets).transpose()?)
    }
}

/// Makes a predictor again. The curvature is saved as it was summed, so that a model can be continued with further data; factoring it again gives the posterior that was saved.
pub(crate) fn read(_: Value, record: &NetworkHeader, tensors: &mut Tensors) -> Read {
    let graph = graph_of(&record.network.architecture, tensors)?;
    match is_single(tensors) {
        true => restored::<f32>(graph, record, tensors),
        false => restored::<f64>(graph, record, tensors),
    }
}

fn restored<T: Precision>(graph: Graph, record: &NetworkHeader, tensors: &mut Tensors) -> Read {
    let NetworkHeader { options, base_likelihood, summary, .. } = record;
    let network = take_network::<T>(NETWORK, graph, tensors)?;
    let selection = read_selection(network.graph(), &record.selected, tensors)?;
    let precisions = tensors.vector("prior.precisions", record.group_count)?;
    let mode = tensors.vector("mode", selection.len())?;
    let curvature = match options.approximation.form() {
        Some(form) => {
            let estimate = match options.approximation {
                Approximation::Kronecker(estimate) => estimate,
                _ => FisherEstimate::Exact,
            };
            RestoredCurvature::Sums(sums(&network, &selection, form, estimate, tensors)?)
        }
        None if options.approximation.is_learned() => {
            let learned = summary.learned.as_ref();
            let posterior =
                LearnedPosterior::read(&network, &selection, options, base_likelihood, learned, tensors)?;
            RestoredCurvature::Learned(posterior)
        }
        None => curvature(&network, &selection, &summary.fit, tensors)?,
    };
    let saved = SavedPosterior {
        options: options.clone(),
        selection,
        base_likelihood: base_likelihood.clone(),
        noise_variance: record.noise_variance,
        precisions,
        mode,
        curvature,
        summary: summary.clone(),
    };
    let laplace = Laplace::restore(&network, saved).map_err(|e| tensors.corrupt(e))?;
    Ok(predictor(Fitted { network, laplace }, record.data.inputs.preparation().clone()))
}

/// A curvature that is not one of sums.
pub(super) fn curvature<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    fit: &FitSums,
    tensors: &mut Tensors,
) -> Result<RestoredCurvature<T>, StoreError> {
    if tensors.shape("ella.basis").is_some() {
        return Ok(RestoredCurvature::Ella(Ella::read(selection, tensors)?));
    }
    let d = selection.len();
    if let Some(shape) = tensors.shape("low_rank.factor") {
        let [_, rank] = shape[..] else { return Err(tensors.corrupt("its low-rank factor is no matrix")) };
        return Ok(RestoredCurvature::LowRank {
            factor: tensors.matrix("low_rank.factor", d, rank)?,
            residual: tensors.vector("low_rank.residual", d)?,
        });
    }
    let mut array = |name: &str| -> Result<Array<T>, StoreError> {
        let shape = tensors.shape(name).unwrap_or_default();
        if shape.len() < 2 {
            return Err(tensors.corrupt(format!("tensor `{name}` is missing or has shape {shape:?}")));
        }
        let values = tensors.take(name, &shape)?;
        Ok(Array::new(shape, values))
    };
    let (inputs, roots) = (array("points.inputs")?, array("points.roots")?);
    let n = roots.rows();
    let lower = tensors.triangle("points.kernel", n)?;
    let gram = Mat::from_fn(n, n, |i, j| lower[(i.max(j), i.min(j))]);
    let points = FunctionSpace::from_parts(network, selection, inputs, roots, gram, fit.examples);
    Ok(RestoredCurvature::FunctionSpace(points.map_err(|e| tensors.corrupt(e))?))
}

impl<'a> Networks<'a> {
    /// Network and posterior, where it is one network in the precision asked for.
    pub fn fitted<T: Precision>(&self) -> Option<&'a Fitted<T>> {
        self.predictor.fitted()
    }
}
