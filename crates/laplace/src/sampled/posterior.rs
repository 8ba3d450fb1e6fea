//! What a fit returns.

use super::SampledOptions;
use super::setting::Setting;
use super::way::Way;
use crate::plan::{check_joint, sampled_space};
use crate::predict::{Latent, Wanted};
use crate::{LaplaceError, Stage};
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::compiled_here;
use posterior_linalg::dense::product;
use posterior_linalg::tiles::pieces;
use posterior_linear::latent::add_inner_products;
use posterior_linear::sampled::SampledModel;
use posterior_linear::{FeatureMap, Prior};
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, PerNetworkPrecision, Precision, Selection};
use posterior_optim::Signal;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{Observed, Tangent, check_outputs};
use serde::{Deserialize, Serialize};

/// Draws of the weights from the linearised posterior, centred at zero: predictions keep the network as their mean.
#[derive(Clone, Debug)]
pub struct Sampled<T> {
    pub(super) selection: Selection,
    /// Weights in the network's own coordinates, d x K.
    pub(super) samples: Mat<T>,
    /// What further samples need.
    pub(super) setting: Setting,
    /// Diagonal of the unscaled curvature (d).
    pub(super) diagonal: Vec<f64>,
}

/// The small part of a file.
#[derive(Serialize, Deserialize)]
struct Header {
    setting: Setting,
    samples: usize,
}

impl<T: Precision> Sampled<T> {
    /// The weights of the tangent.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The samples, d x K.
    pub fn samples(&self) -> &Mat<T> {
        &self.samples
    }

    /// The prior that they were solved for, in scaled coordinates under a g-prior.
    pub fn prior(&self) -> &Prior {
        &self.setting.prior
    }

    /// `J zeta_j` of inputs, nC x K, batch by batch: `visit` gets the network's outputs and the products.
    fn moved(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        visit: &mut dyn FnMut(Vec<f64>, Mat<f64>),
    ) -> Result<(), LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] moved_by, (
            posterior: &'a Sampled<T> = self,
            network: &'a Network<T> = network,
            x: &'a Array<T> = x,
            visit: &'a mut (dyn FnMut(Vec<f64>, Mat<f64>) + 'b) = visit,
        ) -> Result<(), LaplaceError>)
    }

    /// Latent predictions: the network's outputs, and second moments of `J zeta` about zero, their known mean. Cost: a forward pass with K tangents for each input.
    ///
    /// # Errors
    /// When inputs do not fit.
    pub fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let outputs: usize = network.graph().output_shape().iter().product();
        let root = (self.samples.ncols() as f64).sqrt();
        let mut latent = Latent { outputs, mean: Vec::new(), covariance: Vec::new(), wanted, clipped: 0 };
        self.moved(network, x, &mut |mean, mut moved| {
            moved *= faer::Scale(1.0 / root);
            let start = latent.covariance.len();
            let examples = mean.len() / outputs;
            latent.covariance.resize(start + examples * Latent::size(outputs, wanted), 0.0);
            add_inner_products(moved.as_ref(), outputs, wanted, &mut latent.covariance[start..]);
            latent.mean.extend(mean);
        })?;
        Ok(latent)
    }

    /// Joint second moments of all outputs of all inputs, `[examples * C, examples * C]`: of rank K at most.
    ///
    /// # Errors
    /// When they would pass `memory` bytes or inputs do not fit.
    pub fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let outputs: usize = network.graph().output_shape().iter().product();
        let k = self.samples.ncols();
        check_joint(x.rows(), outputs, k, memory)?;
        let (mut rows, mut start) = (Mat::zeros(x.rows() * outputs, k), 0);
        self.moved(network, x, &mut |_, moved| {
            rows.subrows_mut(start, moved.nrows()).copy_from(&moved);
            start += moved.nrows();
        })?;
        Ok(product(rows.as_ref(), rows.transpose()) * faer::Scale(1.0 / k as f64))
    }

    /// The linearised network under each of the first `samples` draws, `g(x) + J(x) zeta_j`, `[examples * C, samples]`.
    ///
    /// # Errors
    /// When there are not as many draws, or inputs do not fit.
    pub fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
    ) -> Result<Mat<f64>, LaplaceError> {
        let kept = self.samples.ncols();
        if samples > kept {
            return Err(LaplaceError::Request(format!(
                "{samples} function samples were asked for, the posterior has {kept}: ask for no more, or extend it"
            )));
        }
        let outputs: usize = network.graph().output_shape().iter().product();
        let (mut out, mut start) = (Mat::zeros(x.rows() * outputs, samples), 0);
        self.moved(network, x, &mut |mean, moved| {
            for j in 0..samples {
                (0..mean.len()).for_each(|i| out[(start + i, j)] = mean[i] + moved[(i, j)]);
            }
            start += mean.len();
        })?;
        Ok(out)
    }

    /// The same posterior with `more` samples, those before untouched: sample j is the same as if all had been asked for at once, up to the solver's tolerance. The data and options are those of the fit, and so is the space.
    ///
    /// # Errors
    /// Those of a fit; interruption.
    pub fn extended(
        &self,
        network: &Network<T>,
        examples: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        more: usize,
        options: &SampledOptions,
        memory: u64,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Self, LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] extend, (
            posterior: &'a Sampled<T> = self,
            network: &'a Network<T> = network,
            examples: &'a dyn Examples<T> = examples,
            likelihood: &'a OutputLikelihood = likelihood,
            more: usize = more,
            options: &'a SampledOptions = options,
            memory: u64 = memory,
            observer: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'b) = observer,
        ) -> Result<Sampled<T>, LaplaceError>)
    }

    /// What belongs to the header of a file.
    pub fn header(&self) -> serde_json::Value {
        let header = Header { setting: self.setting.clone(), samples: self.samples.ncols() };
        posterior_store::to_shown_value(&header).unwrap_or_default()
    }

    /// Adds it to the arrays of a file.
    pub fn write(&self, tensors: &mut Tensors) {
        tensors.insert_columns("sampled.samples", self.samples.as_ref());
        tensors.insert_vector("sampled.diagonal", &self.diagonal);
    }

    /// Takes it from the arrays of a file and its [`Self::header`].
    ///
    /// # Errors
    /// When arrays are missing, of another network's size or not finite.
    pub fn read(
        selection: &Selection,
        header: &serde_json::Value,
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        let header: Header = serde_json::from_value(header.clone()).map_err(|e| tensors.corrupt(e))?;
        let weights = selection.len();
        if header.setting.prior.dimension() != weights || header.samples == 0 {
            return Err(tensors.corrupt(format!(
                "its prior is of {} weights, the network has {weights}",
                header.setting.prior.dimension()
            )));
        }
        let samples = tensors.columns::<T>("sampled.samples", Some((weights, header.samples)))?;
        let diagonal = tensors.vector("sampled.diagonal", weights)?;
        if !samples.is_all_finite() || diagonal.iter().any(|m| !(m.is_finite() && *m >= 0.0)) {
            return Err(tensors.corrupt("the samples are not finite"));
        }
        Ok(Self { selection: selection.clone(), samples, setting: header.setting, diagonal })
    }
}

fn moved_by<T: Precision>(
    posterior: &Sampled<T>,
    network: &Network<T>,
    x: &Array<T>,
    visit: &mut dyn FnMut(Vec<f64>, Mat<f64>),
) -> Result<(), LaplaceError> {
    let tangent = Tangent::new(network, &posterior.selection);
    for range in pieces(x.rows(), tangent.examples_at_once(posterior.samples.ncols())) {
        let features = tangent.at(x.slice_rows(range))?;
        let moved = features.apply(posterior.samples.as_ref())?;
        let wide = Mat::from_fn(moved.nrows(), moved.ncols(), |i, j| moved[(i, j)].to_f64());
        visit(features.outputs(), wide);
    }
    Ok(())
}

fn extend<T: Precision>(
    posterior: &Sampled<T>,
    network: &Network<T>,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    more: usize,
    options: &SampledOptions,
    memory: u64,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<Sampled<T>, LaplaceError> {
    check_outputs(network, likelihood)?;
    let tangent = Tangent::new(network, &posterior.selection);
    let observed = Observed { examples, likelihood };
    let model = posterior.setting.model(&tangent, &observed, likelihood, &posterior.diagonal)?;
    let kept = posterior.samples.ncols();
    let (layerwise, g_prior) = (posterior.prior().names().len() > 1, posterior.setting.g_prior);
    let asked = SampledOptions { layerwise, g_prior, ..options.clone() };
    // Where the fit worked, not where these alone would be less work.
    let space = sampled_space(network, &posterior.selection, examples.len(), likelihood, &asked);
    let options = SampledOptions { samples: more, em_steps: 0, space: Some(space), ..asked };
    let solver = &options.solver;
    let (bytes, batch, _) = super::plan(network, &posterior.selection, examples.len(), likelihood, &options);
    let needed = bytes.saturating_add(batch);
    if needed > memory {
        return Err(too_large(more, needed, memory));
    }
    let data = (network, &posterior.selection, examples);
    let way = Way::of(data, &model, (space, solver), memory - needed, observer)?;
    let directions = options.directions(way.dimension(&model), examples.len() * likelihood.root_width());
    let mut stage = |done, all| observer(Stage::Curvature, done, all);
    let seed = posterior.setting.seed;
    let curvature = way.curvature(&model, &posterior.diagonal, directions, seed, &mut stage)?;
    let drawn = posterior.setting.solve(
        &model,
        &way,
        &curvature,
        kept..kept + more,
        options.objective,
        None,
        &mut |progress, _| observer(Stage::Samples, progress.step, progress.steps_planned),
    )?;
    let own = narrowed(&model, &drawn.samples);
    let samples = Mat::from_fn(posterior.samples.nrows(), kept + more, |i, j| {
        if j < kept { posterior.samples[(i, j)] } else { own[(i, j - kept)] }
    });
    Ok(Sampled { samples, ..posterior.clone() })
}

/// The refusal of samples that pass the memory, with the way out.
pub(super) fn too_large(samples: usize, needed: u64, allowed: u64) -> LaplaceError {
    let what = format!("Laplace by {samples} samples");
    LaplaceError::Memory {
        what,
        needed,
        allowed,
        remedy: "take fewer samples, stay in weight space (`--space weights`), or allow more memory".into(),
    }
}

/// Samples in the network's own coordinates and precision.
pub(super) fn narrowed<T: Precision>(
    model: &SampledModel<'_, T, Tangent<'_, T>>,
    samples: &Mat<f64>,
) -> Mat<T> {
    let own = model.unscaled(samples.as_ref());
    Mat::from_fn(own.nrows(), own.ncols(), |i, j| T::from_f64(own[(i, j)]))
}
