//! Predictions of a process whose mean is the network.

use super::options::{FixedMeanKernel, FixedMeanOptions};
use crate::LaplaceError;
use crate::error::check_memory;
use crate::kernel_inputs::{KernelInputs, as_inputs, matrix, separable};
use crate::learned::Learned;
use crate::predict::{Latent, Wanted};
use faer::{Mat, MatRef};
use posterior_gp::inducing::fixed_mean::SparseCovariance;
use posterior_kernels::{BlockKernel, Separable, SeparablePoints};
use posterior_linalg::tiles::pieces;
use posterior_networks::derivatives::tangent_feature_size;
use posterior_networks::{Array, Network, Precision, Selection, TangentFeatures};
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::TangentKernel;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

/// Points whose covariances one thread works on at a time.
const PIECE: usize = 64;

/// Inducing points, kernel and root of S: the network is asked for its outputs, and for the points that the kernel sees.
#[derive(Debug)]
pub struct FixedMean<T: Precision> {
    kernel: FixedMeanKernel,
    kernel_inputs: KernelInputs,
    selection: Selection,
    outputs: usize,
    correlated: bool,
    /// Numbers of the inducing points, M x D.
    points: Mat<f64>,
    labels: Vec<usize>,
    /// The kernel's parameters.
    values: Vec<f64>,
    covariance: SparseCovariance<f64>,
    /// What predictions use, made at the first.
    ready: OnceLock<Ready<T>>,
}

/// What is made once for all predictions: rows in the network's own precision; the tangent in doubles, since its variances are small differences of large numbers.
#[derive(Debug)]
enum Ready<T: Precision> {
    Tangent { wide: Network<f64>, inducing: TangentFeatures<f64> },
    Rows(Box<Narrow<T>>),
}

/// A kernel of rows in the network's precision.
#[derive(Debug)]
struct Narrow<T: Precision> {
    kernel: Separable<T>,
    inducing: SeparablePoints<T>,
    covariance: SparseCovariance<T>,
}

impl<T: Precision> FixedMean<T> {
    /// From the numbers of the inducing points (point after point), the outputs that they look at, the kernel's parameters and the covariance.
    ///
    /// # Errors
    /// What does not fit each other or the network.
    pub(super) fn new(
        network: &Network<T>,
        selection: &Selection,
        options: &FixedMeanOptions,
        points: Vec<f64>,
        labels: &[usize],
        values: Vec<f64>,
        covariance: SparseCovariance<f64>,
    ) -> Result<Self, LaplaceError> {
        let graph = network.graph();
        let kernel_inputs = KernelInputs::of(&options.kernel, graph)?;
        let outputs: usize = graph.output_shape().iter().product();
        let (m, width) = (labels.len(), kernel_inputs.width(graph));
        let fits = points.len() == m * width
            && covariance.whitener().nrows() == m
            && labels.iter().all(|label| *label < outputs)
            && points.iter().chain(&values).all(|v| v.is_finite());
        if !fits || m == 0 {
            return Err(LaplaceError::Request("the inducing points do not belong to this network".into()));
        }
        Ok(Self {
            kernel: options.kernel.clone(),
            kernel_inputs,
            selection: selection.clone(),
            outputs,
            correlated: options.correlated(outputs),
            points: MatRef::from_row_major_slice(&points, m, width).to_owned(),
            labels: labels.to_vec(),
            values,
            covariance,
            ready: OnceLock::new(),
        })
    }

    /// The weights of the tangent kernel.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Numbers of the inducing points, M x D: inputs or features.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.points.as_ref()
    }

    /// The output that each inducing point looks at.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The root of S, and the prior variance.
    pub fn covariance(&self) -> &SparseCovariance<f64> {
        &self.covariance
    }

    fn directions<U: posterior_linalg::Real>(&self) -> Mat<U> {
        let one = |i: usize, j: usize| if self.labels[i] == j { U::ONE } else { U::ZERO };
        Mat::from_fn(self.labels.len(), self.outputs, one)
    }

    fn make(&self, network: &Network<T>) -> Result<Ready<T>, LaplaceError> {
        let m = self.labels.len();
        match &self.kernel {
            FixedMeanKernel::Tangent => {
                let wide = network.cast::<f64>()?;
                let z = as_inputs(&self.points, network.graph());
                let along = self.directions::<f64>();
                let inducing =
                    TangentKernel::new(&wide, &self.selection).prepare(&z, 0..m, Some(along.as_ref()))?;
                Ok(Ready::Tangent { wide, inducing })
            }
            FixedMeanKernel::Inputs(text) | FixedMeanKernel::Features(text) => {
                let mut kernel = separable::<T>(text, self.points.ncols(), self.outputs, self.correlated)?;
                if kernel.values().len() != self.values.len() {
                    let problem = format!(
                        "the kernel `{text}` has {} parameters, not {}",
                        kernel.values().len(),
                        self.values.len()
                    );
                    return Err(LaplaceError::Request(problem));
                }
                kernel.set_values(&self.values);
                let z = Mat::from_fn(m, self.points.ncols(), |i, j| T::from_f64(self.points[(i, j)]));
                let along = self.directions::<T>();
                let Ok(inducing) = kernel.prepare(&z, 0..m, Some(along.as_ref()));
                Ok(Ready::Rows(Box::new(Narrow { kernel, inducing, covariance: self.covariance.cast() })))
            }
        }
    }

    fn ready(&self, network: &Network<T>) -> Result<&Ready<T>, LaplaceError> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        let made = self.make(network)?;
        Ok(self.ready.get_or_init(|| made))
    }

    /// Covariances at some points, and how many variances rounding had made negative. Pieces are shared out among threads.
    fn covariances(
        &self,
        ready: &Ready<T>,
        seen: &Array<T>,
        full: bool,
    ) -> Result<(Vec<f64>, usize), LaplaceError> {
        let count = seen.rows();
        match ready {
            Ready::Tangent { wide, inducing } => {
                let kernel = TangentKernel::new(wide, &self.selection);
                let x = seen.cast::<f64>();
                Ok(self.covariance.covariances(&kernel, inducing, (&x, 0..count), full)?)
            }
            Ready::Rows(narrow) => {
                let x = matrix::<T, T>(seen);
                let pieces: Vec<Range<usize>> = pieces(count, PIECE).collect();
                let part = |range: Range<usize>| {
                    let Narrow { kernel, inducing, covariance } = &**narrow;
                    let Ok(part) = covariance.covariances(kernel, inducing, (&x, range), full);
                    part
                };
                let parts: Vec<(Vec<f64>, usize)> = pieces.into_par_iter().map(part).collect();
                let clipped = parts.iter().map(|part| part.1).sum();
                Ok((parts.into_iter().flat_map(|part| part.0).collect(), clipped))
            }
        }
    }

    /// What [`Learned::write`] wrote, for the same network, selection and options.
    ///
    /// # Errors
    /// Arrays that are missing, damaged or of something else.
    pub fn read(
        network: &Network<T>,
        selection: &Selection,
        options: &FixedMeanOptions,
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        let length = |tensors: &Tensors, name: &str| -> usize {
            tensors.shape(name).map_or(0, |shape| shape.iter().product())
        };
        let kernel_inputs =
            KernelInputs::of(&options.kernel, network.graph()).map_err(|e| tensors.corrupt(e))?;
        let m = length(tensors, "fixed_mean.labels");
        let labels = tensors.vector("fixed_mean.labels", m)?;
        let count = length(tensors, "fixed_mean.kernel");
        let values = tensors.vector("fixed_mean.kernel", count)?;
        let amplitude = tensors.vector("fixed_mean.amplitude", 1)?[0];
        let whitener = tensors.matrix("fixed_mean.whitener", m, m)?;
        let points = tensors.take::<f64>("fixed_mean.points", &[m, kernel_inputs.width(network.graph())])?;
        if labels.iter().any(|l| l.fract() != 0.0 || *l < 0.0) {
            return Err(tensors.corrupt("a label of an inducing point is no output"));
        }
        let labels: Vec<usize> = labels.iter().map(|l| *l as usize).collect();
        let covariance = SparseCovariance::from_parts(whitener, amplitude).map_err(|e| tensors.corrupt(e))?;
        let out = Self::new(network, selection, options, points, &labels, values, covariance);
        let out = out.map_err(|e| tensors.corrupt(e))?;
        out.ready(network).map_err(|e| tensors.corrupt(e))?;
        Ok(out)
    }
}

impl<T: Precision> Learned<T> for FixedMean<T> {
    /// The mean is the network's output bit for bit. Cost for each example: its way through the network, `2 C M² + 2 C² M` flops and C rows of the kernel; with the tangent kernel also C ways back.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let (ready, full) = (self.ready(network)?, wanted == Wanted::Full);
        self.kernel_inputs.latent(network, x, wanted, &mut |seen| self.covariances(ready, seen, full))
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let rows = (x.rows() * self.outputs) as u64;
        let needed = rows.saturating_mul(rows + self.labels.len() as u64).saturating_mul(16);
        let what = format_args!("the joint covariance of {} inputs", x.rows());
        check_memory(needed, memory, what, "ask for fewer inputs at a time")?;
        match self.ready(network)? {
            Ready::Tangent { wide, inducing } => {
                let kernel = TangentKernel::new(wide, &self.selection);
                Ok(self.covariance.joint(&kernel, inducing, &x.cast())?)
            }
            Ready::Rows(narrow) => {
                let Narrow { kernel, inducing, covariance } = &**narrow;
                let Ok(joint) = covariance.joint(kernel, inducing, &self.kernel_inputs.points(network, x)?);
                Ok(joint)
            }
        }
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let (graph, (m, width)) = (network.graph(), self.points().shape());
        let c: usize = graph.output_shape().iter().product();
        let batch = network.examples_at_once().min(examples.max(1));
        let forward = batch * graph.activations() * size_of::<T>();
        // Kernel rows, twice.
        let kernel = match &self.kernel {
            FixedMeanKernel::Tangent => {
                let size = tangent_feature_size(graph, self.selection());
                let piece = TangentKernel::new(network, self.selection()).points_at_once(2 * c).min(batch);
                // Features of a piece and a turned copy, those of the inducing points, the passes.
                8 * (piece * c * (2 * size + 2 * m) + m * size + piece * (1 + c) * graph.activations())
            }
            _ => size_of::<T>() * (batch * width + rayon::current_num_threads() * 64 * c * (2 * m + c)),
        };
        (forward + kernel) as u64
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        let (graph, (m, width)) = (network.graph(), self.points().shape());
        let c = graph.output_shape().iter().product::<usize>() as f64;
        let (m, forward) = (m as f64, graph.flops() as f64);
        let kernel = match &self.kernel {
            FixedMeanKernel::Tangent => {
                2.0 * c * forward + 2.0 * c * m * tangent_feature_size(graph, self.selection()) as f64
            }
            _ => 2.0 * m * (width as f64 + 10.0),
        };
        forward + kernel + 2.0 * c * m * m
    }

    fn write(&self, tensors: &mut Tensors) {
        let labels: Vec<f64> = self.labels.iter().map(|l| *l as f64).collect();
        tensors.insert_matrix("fixed_mean.points", self.points.as_ref());
        tensors.insert_vector("fixed_mean.labels", &labels);
        tensors.insert_vector("fixed_mean.kernel", &self.values);
        tensors.insert_vector("fixed_mean.amplitude", &[self.covariance.amplitude()]);
        tensors.insert_matrix("fixed_mean.whitener", self.covariance.whitener());
    }
}
