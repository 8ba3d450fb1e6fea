//! What a fit returns.

use super::options::SampledOptions;
use super::plan::{chosen, plan};
use super::setting::{Setting, Solving};
use super::space_solver::SpaceSolver;
use crate::LaplaceError;
use crate::error::check_memory;
use crate::fit::{Approximation, FitOptions};
use crate::learned::Learned;
use crate::plan::needs::Needs;
use crate::plan::workspace::moved_bytes;
use crate::predict::{Latent, Wanted, check_joint, no_inputs};
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use faer::Mat;
use posterior_linalg::dense::product;
use posterior_linalg::tiles::pieces;
use posterior_linear::latent::add_inner_products;
use posterior_linear::sampled::SampledModel;
use posterior_linear::{FeatureMap, Prior};
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_notes::fixes::{NETWORK_SAMPLES, SPACE_WEIGHTS};
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
        let tangent = Tangent::new(network, &self.selection);
        for range in pieces(x.rows(), tangent.examples_at_once(self.samples.ncols())) {
            let features = tangent.at(x.slice_rows(range))?;
            let moved = features.apply(self.samples.as_ref())?;
            let wide = Mat::from_fn(moved.nrows(), moved.ncols(), |i, j| moved[(i, j)].to_f64());
            visit(features.outputs(), wide);
        }
        Ok(())
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
        let &Data { network, examples, likelihood, .. } = data;
        check_outputs(network, likelihood)?;
        let tangent = Tangent::new(network, &self.selection);
        let observed = data.observed();
        let model = self.setting.model(&tangent, &observed, likelihood, &self.diagonal)?;
        let kept = self.samples.ncols();
        let (layerwise, g_prior) = (self.prior().names().len() > 1, self.setting.g_prior);
        let asked = SampledOptions { layerwise, g_prior, ..options.clone() };
        // Where the fit worked, not where these alone would be less work.
        let size = data.size(&self.selection);
        let (space, _) = chosen(&size, &asked);
        let options = SampledOptions { samples: more, em_steps: 0, space: Some(space), ..asked };
        let needs = plan(&size, &options);
        check_samples(more, needs, memory)?;
        let seed = self.setting.seed;
        let memory = memory - needs.bytes();
        let problem = Problem { data: *data, selection: &self.selection, seed, memory };
        let way = SpaceSolver::of(&problem, &model, (space, &options.solver), run)?;
        let directions = options.directions(way.dimension(&model), examples.len() * likelihood.root_width());
        let mut stage = run.stage(Stage::Curvature);
        let curvature = way.curvature(&model, &self.diagonal, directions, seed, &mut stage)?;
        drop(stage);
        let by = Solving { way, curvature, objective: options.objective };
        let drawn = self.setting.solve(&model, &by, kept..kept + more, None, &mut |progress, _| {
            run.tell(Stage::Samples, progress.step, progress.steps_planned)
        })?;
        let own = narrowed(&model, &drawn.samples);
        let samples = Mat::from_fn(self.samples.nrows(), kept + more, |i, j| {
            if j < kept { self.samples[(i, j)] } else { own[(i, j - kept)] }
        });
        Ok(Sampled { samples, ..self.clone() })
    }

    /// What belongs to the header of a file.
    pub fn header(&self) -> serde_json::Value {
        let header = Header { setting: self.setting.clone(), samples: self.samples.ncols() };
        posterior_store::to_shown_value(&header).unwrap_or_default()
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

/// Refuses samples that pass the memory.
pub(super) fn check_samples(samples: usize, needs: Needs, memory: u64) -> Result<(), LaplaceError> {
    let remedy =
        format!("take fewer samples, stay in weight space (`{SPACE_WEIGHTS}`), or allow more memory");
    check_memory(needs.bytes(), memory, format_args!("Laplace by {samples} samples"), &remedy)
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
    /// The network's outputs, and second moments of `J zeta` about zero, their known mean. Cost: a forward pass with K tangents for each input.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let outputs: usize = network.graph().output_shape().iter().product();
        let root = (self.samples.ncols() as f64).sqrt();
        let mut latent = no_inputs(outputs, wanted);
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

    /// Second moments, of rank K at most.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
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
                "the model has {kept} samples: ask for more than that ({NETWORK_SAMPLES})"
            )));
        };
        let extended = self.extended(data, more, own, options.memory, run)?;
        let header = extended.header();
        Ok((Box::new(extended), header))
    }

    /// The linearised network under each of the first draws that the file holds, `g(x) + J(x) zeta_j`.
    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Result<Option<Vec<f64>>, LaplaceError> {
        let kept = self.samples.ncols();
        if samples > kept {
            return Err(LaplaceError::Request(format!(
                "{samples} function samples were asked for, the posterior has {kept}: ask for no more, or extend it"
            )));
        }
        let mut drawn = vec![Vec::new(); samples];
        self.moved(network, x, &mut |mean, moved| {
            for (j, own) in drawn.iter_mut().enumerate() {
                own.extend(mean.iter().enumerate().map(|(i, mean)| mean + moved[(i, j)]));
            }
        })?;
        Ok(Some(drawn.concat()))
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        moved_bytes(network, self.selection(), examples, self.samples().ncols())
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        network.graph().flops() as f64 * (1.0 + 2.0 * self.samples().ncols() as f64)
    }

    fn write(&self, tensors: &mut Tensors) {
        tensors.insert_columns("sampled.samples", self.samples.as_ref());
        tensors.insert_vector("sampled.diagonal", &self.diagonal);
    }
}
