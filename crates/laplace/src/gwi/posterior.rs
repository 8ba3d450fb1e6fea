//! Predictions of a covariance around a network: means are its outputs, variances r.

use super::options::GwiOptions;
use super::prior::exact_process;
use crate::LaplaceError;
use crate::error::check_memory;
use crate::kernel_inputs::{KernelInputs, matrix, separable};
use crate::learned::Learned;
use crate::predict::{Latent, Wanted};
use faer::Mat;
use posterior_gp::exact::ExactPosterior;
use posterior_gp::generalised::{
    Coordinates, Family, GeneralisedError, GeneralisedGp, ReferenceProcess, VariationalKernel,
    VariationalMean,
};
use posterior_gp::{GpError, Observations};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_networks::{Array, Graph, Network, Precision};
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};

/// A covariance of functions around a network's outputs. The network is asked for these, and for what the kernel sees; everything else is in double precision.
#[derive(Clone, Debug)]
pub struct Gwi {
    kernel_inputs: KernelInputs,
    process: GeneralisedGp,
}

impl Gwi {
    /// Around a network.
    ///
    /// # Errors
    /// A process that is not one of this network's outputs, or does not see what the options say.
    pub(super) fn new(
        graph: &Graph,
        options: &GwiOptions,
        process: GeneralisedGp,
    ) -> Result<Self, LaplaceError> {
        let kernel_inputs = KernelInputs::of(&options.kernel, graph)?;
        let outputs: usize = graph.output_shape().iter().product();
        if process.functions() != outputs || process.inputs() != kernel_inputs.width(graph) {
            return Err(LaplaceError::Request("the process does not belong to this network".into()));
        }
        Ok(Self { kernel_inputs, process })
    }

    /// Q, with means that are what is left around the network (zero).
    pub fn process(&self) -> &GeneralisedGp {
        &self.process
    }

    /// What [`Learned::write`] wrote, for the same network and options.
    ///
    /// # Errors
    /// Arrays that are missing, damaged or of something else.
    pub fn read(
        graph: &Graph,
        options: &GwiOptions,
        likelihood: &OutputLikelihood,
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        let kernel_inputs = KernelInputs::of(&options.kernel, graph).map_err(|e| tensors.corrupt(e))?;
        let Some(text) = options.kernel.text() else {
            return Err(tensors.corrupt("gwi has no tangent kernel"));
        };
        let (d, c) = (kernel_inputs.width(graph), likelihood.outputs());
        let m = tensors.shape("gwi.inducing").and_then(|shape| shape.first().copied()).unwrap_or(0);
        let z = tensors.matrix("gwi.inducing", m, d)?;
        let numbers = tensors.matrix("gwi.pseudo_targets", m, c)?;
        let kernel = separable::<f64>(text, d, 1, false).map_err(|e| tensors.corrupt(e))?;
        let mut model = exact_process(kernel.kernel().clone_box(), 1.0, 1.0, (d, c));
        let values = admitted(tensors, "gwi.prior", &model)?;
        model.set_values(&values);
        let data = Observations::new(z, numbers, None).map_err(|e| tensors.corrupt(e))?;
        let factor = Cholesky::from_factor(tensors.factor("gwi.prior_factor", m)?, Default::default());
        let weights = tensors.matrix("gwi.prior_weights", m, c)?;
        let exact =
            ExactPosterior::from_parts(model, data, factor, weights).map_err(|e| tensors.corrupt(e))?;
        let factor = Cholesky::from_factor(tensors.factor("gwi.factor", m)?, Default::default());
        let reference = ReferenceProcess::from_parts(exact, factor, options.mode, false)
            .map_err(|e| tensors.corrupt(e))?;
        let mut kernels = Vec::with_capacity(c);
        for j in 0..c {
            let mut own = VariationalKernel::blank(options.family, &reference);
            let values = match options.family {
                // Entries below a diagonal, and exponents, have any sign; a variance may have come to nothing.
                Family::Cholesky | Family::Log | Family::Diagonal => {
                    tensors.vector(&kernel_name(j), own.values().len())?
                }
                _ => admitted(tensors, &kernel_name(j), &own)?,
            };
            if options.family == Family::Diagonal && values.iter().any(|v| *v < 0.0) {
                return Err(tensors.corrupt("a variance of weights is negative"));
            }
            own.set_values(&values);
            kernels.push(own);
        }
        let tempering = positive(tensors, "gwi.tempering", c)?;
        let mean = VariationalMean::Prior;
        let boxed = likelihood.clone_box();
        GeneralisedGp::from_parts(vec![reference], kernels, Coordinates::Whitened, mean, boxed)
            .and_then(|process| process.tempered(tempering))
            .map_err(LaplaceError::from)
            .and_then(|process| Self::new(graph, options, process))
            .map_err(|e| tensors.corrupt(e))
    }
}

impl<T: Precision> Learned<T> for Gwi {
    /// The mean is the network's output bit for bit, and outputs are independent. Cost for each example: its way through the network, M kernel values, `M²` flops and what the family's variances cost for each output.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let c = self.process.functions();
        self.kernel_inputs.latent(network, x, wanted, &mut |seen| {
            let found = self.process.latent(matrix::<T, f64>(seen).as_ref(), None)?;
            let mut covariance = Vec::with_capacity(seen.rows() * Latent::size(c, wanted));
            for i in 0..seen.rows() {
                for j in 0..c {
                    let own = found.variance[(i, j)];
                    match wanted {
                        Wanted::Diagonal => covariance.push(own),
                        Wanted::Full => covariance.extend((0..c).map(|k| if k == j { own } else { 0.0 })),
                    }
                }
            }
            Ok((covariance, found.clipped))
        })
    }

    /// Refused where the fixed sparse posterior kernel is no covariance at these inputs together.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let (c, count) = (self.process.functions(), x.rows());
        let (n, m) = (count as u64, self.process.reference(0).rank() as u64);
        let all = n.saturating_mul(c as u64);
        // The result; of one function its covariance, what it is made of, and features.
        let numbers = all.saturating_mul(all).saturating_add(n.saturating_mul(6 * n + 4 * m));
        let what = format_args!("the joint covariance of {count} inputs");
        check_memory(numbers.saturating_mul(8), memory, what, "ask for fewer inputs at a time")?;
        let seen: Mat<f64> = self.kernel_inputs.points(network, x)?;
        let mut joint = Mat::zeros(count * c, count * c);
        for j in 0..c {
            let own = self.process.covariance(seen.as_ref(), j)?;
            let fixed = self.process.kernels()[j].family() == Family::FixedSparsePosterior;
            if fixed && Cholesky::of(own.as_ref(), JitterPolicy::default()).is_err() {
                return Err(GpError::from(GeneralisedError::NoCovariance { points: count }).into());
            }
            for b in 0..count {
                for a in 0..count {
                    joint[(a * c + j, b * c + j)] = own[(a, b)];
                }
            }
        }
        Ok(joint)
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let (graph, process) = (network.graph(), self.process());
        let (m, width, c) = (process.reference(0).rank(), process.inputs(), process.functions());
        let batch = network.examples_at_once().min(examples.max(1));
        let forward = batch * graph.activations() * size_of::<T>();
        // Points of a batch, those of a piece as the kernel has them, features there and products of roots with them, one function at a time.
        let piece = batch.min(1024);
        (forward + 8 * (batch * (width + 2 * c) + piece * (2 * width + 4 * m + 4 * c) + 2 * m * m)) as u64
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        let process = self.process();
        let (m, width) = (process.reference(0).rank() as f64, process.inputs() as f64);
        let own = match process.kernels()[0].family() {
            Family::Diagonal | Family::Kernelised => 2.0 * m,
            _ => 2.0 * m * m,
        };
        let kernel = 2.0 * m * (width + 10.0) + m * m;
        network.graph().flops() as f64 + kernel + process.functions() as f64 * own
    }

    /// Everything that predictions need, so that nothing is computed again.
    fn write(&self, tensors: &mut Tensors) {
        let reference = self.process.reference(0);
        let exact = reference.posterior();
        tensors.insert_matrix("gwi.inducing", reference.inducing());
        tensors.insert_matrix("gwi.pseudo_targets", exact.data().targets());
        tensors.insert_vector("gwi.prior", &exact.model().values());
        tensors.insert_triangle("gwi.prior_factor", exact.cholesky().factor());
        tensors.insert_matrix("gwi.prior_weights", exact.weights());
        tensors.insert_triangle("gwi.factor", reference.whitening().cholesky.factor());
        for (c, kernel) in self.process.kernels().iter().enumerate() {
            tensors.insert_vector(kernel_name(c), &kernel.values());
        }
        tensors.insert_vector("gwi.tempering", self.process.tempering());
    }
}

fn kernel_name(c: usize) -> String {
    format!("gwi.kernel.{c}")
}

/// Natural values of a model, each within its range.
fn admitted(tensors: &mut Tensors, name: &str, model: &dyn Parameters) -> Result<Vec<f64>, StoreError> {
    let values = tensors.vector(name, model.values().len())?;
    match model.admits(&values) {
        true => Ok(values),
        false => Err(tensors.corrupt(format!("a number of `{name}` is out of its range"))),
    }
}

/// Numbers that must be above zero.
fn positive(tensors: &mut Tensors, name: &str, length: usize) -> Result<Vec<f64>, StoreError> {
    let values = tensors.vector(name, length)?;
    match values.iter().all(|v| *v > 0.0 && v.is_finite()) {
        true => Ok(values),
        false => Err(tensors.corrupt(format!("a number of `{name}` is not positive and finite"))),
    }
}
