//! What a fit returns.

use super::options::SampledOptions;
use super::plan::{chosen, plan};
use super::setting::Setting;
use super::way::Way;
use crate::LaplaceError;
use crate::error::check_memory;
use crate::fit::{Approximation, FitOptions};
use crate::learned::Learned;
use crate::plan::needs::Needs;
use crate::plan::workspace::moved_bytes;
use crate::predict::{Latent, Wanted, check_joint};
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use faer::Mat;
use posterior_linalg::compiled_here;
use posterior_linalg::dense::product;
use posterior_linalg::tiles::pieces;
use posterior_linear::latent::add_inner_products;
use posterior_linear::sampled::SampledModel;
use posterior_linear::{FeatureMap, Prior};
use posterior_networks::{Array, Network, PerNetworkPrecision, Precision, Selection};
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{Tangent, check_outputs};
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
        data: &Data<'_, T>,
        more: usize,
        options: &SampledOptions,
        memory: u64,
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'r: 'a] extend, (
            posterior: &'a Sampled<T> = self,
            data: &'a Data<'a, T> = data,
            more: usize = more,
            options: &'a SampledOptions = options,
            memory: u64 = memory,
            run: &'a mut Run<'r> = run,
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
    data: &Data<'_, T>,
    more: usize,
    options: &SampledOptions,
    memory: u64,
    run: &mut Run<'_>,
) -> Result<Sampled<T>, LaplaceError> {
    let &Data { network, examples, likelihood, .. } = data;
    check_outputs(network, likelihood)?;
    let tangent = Tangent::new(network, &posterior.selection);
    let observed = data.observed();
    let model = posterior.setting.model(&tangent, &observed, likelihood, &posterior.diagonal)?;
    let kept = posterior.samples.ncols();
    let (layerwise, g_prior) = (posterior.prior().names().len() > 1, posterior.setting.g_prior);
    let asked = SampledOptions { layerwise, g_prior, ..options.clone() };
    // Where the fit worked, not where these alone would be less work.
    let size = data.size(&posterior.selection);
    let (space, _) = chosen(&size, &asked);
    let options = SampledOptions { samples: more, em_steps: 0, space: Some(space), ..asked };
    let needs = plan(&size, &options);
    check_samples(more, needs, memory)?;
    let seed = posterior.setting.seed;
    let memory = memory - needs.bytes();
    let problem = Problem { data: *data, selection: &posterior.selection, seed, memory };
    let way = Way::of(&problem, &model, (space, &options.solver), run)?;
    let directions = options.directions(way.dimension(&model), examples.len() * likelihood.root_width());
    let mut stage = run.stage(Stage::Curvature);
    let curvature = way.curvature(&model, &posterior.diagonal, directions, seed, &mut stage)?;
    drop(stage);
    let drawn = posterior.setting.solve(
        &model,
        &way,
        &curvature,
        kept..kept + more,
        options.objective,
        None,
        &mut |progress, _| run.tell(Stage::Samples, progress.step, progress.steps_planned),
    )?;
    let own = narrowed(&model, &drawn.samples);
    let samples = Mat::from_fn(posterior.samples.nrows(), kept + more, |i, j| {
        if j < kept { posterior.samples[(i, j)] } else { own[(i, j - kept)] }
    });
    Ok(Sampled { samples, ..posterior.clone() })
}

/// Refuses samples that pass the memory.
pub(super) fn check_samples(samples: usize, needs: Needs, memory: u64) -> Result<(), LaplaceError> {
    let remedy = "take fewer samples, stay in weight space (`--space weights`), or allow more memory";
    check_memory(needs.bytes(), memory, format_args!("Laplace by {samples} samples"), remedy)
}

/// Samples in the network's own coordinates and precision.
pub(super) fn narrowed<T: Precision>(
    model: &SampledModel<'_, T, Tangent<'_, T>>,
    samples: &Mat<f64>,
) -> Mat<T> {
    let own = model.unscaled(samples.as_ref());
    Mat::from_fn(own.nrows(), own.ncols(), |i, j| T::from_f64(own[(i, j)]))
}

impl<T: Precision> Learned<T> for Sampled<T> {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        Sampled::latent(self, network, x, wanted)
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        Sampled::joint(self, network, x, memory)
    }

    fn draws_functions(&self) -> bool {
        true
    }

    /// With further samples; those that there are stay.
    fn improved(
        &self,
        data: &Data<'_, T>,
        options: &FitOptions,
        run: &mut Run<'_>,
    ) -> Result<(Box<dyn Learned<T>>, serde_json::Value), LaplaceError> {
        let Approximation::Sampled(own) = &options.approximation else {
            return Err(LaplaceError::Request(
                "samples are asked for by options of another posterior".into(),
            ));
        };
        let kept = self.samples().ncols();
        let Some(more) = own.samples.checked_sub(kept).filter(|more| *more > 0) else {
            return Err(LaplaceError::Request(format!(
                "the model has {kept} samples: ask for more than that (--samples)"
            )));
        };
        let extended = self.extended(data, more, own, options.memory, run)?;
        let header = extended.header();
        Ok((Box::new(extended), header))
    }

    /// The samples that the file holds, the first so many.
    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let drawn = Sampled::function_samples(self, network, x, samples)?;
        Ok((0..drawn.ncols()).flat_map(|k| drawn.col_as_slice(k).to_vec()).collect())
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        moved_bytes(network, self.selection(), examples, self.samples().ncols())
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        network.graph().flops() as f64 * (1.0 + 2.0 * self.samples().ncols() as f64)
    }

    fn write(&self, tensors: &mut Tensors) {
        Sampled::write(self, tensors);
    }
}
