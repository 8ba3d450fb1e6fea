//! **Function space**: the same posterior through the tangent kernel `k(x, z) = J(x) J(z)^T / a`, exact for small data and blind to the number of weights
//! (spec `linearised_laplace`, section 5.11; `valla`, section 4.2).
//!
//! Which points, which kernel: the posterior itself is [`FunctionSpacePosterior`], of any kernel of several functions. The evidence needs the eigenvalues of `R^T J J^T R` only, which are those of
//! the curvature.

use crate::error::check_memory;
use crate::kernel_inputs::matrix;
use crate::learned::Learned;
use crate::plan::workspace::Workspace;
use crate::predict::{Latent, Wanted, no_inputs};
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use crate::scores::fit_of_the_network;
use crate::{FisherEstimate, LaplaceError};
use faer::Mat;
use posterior_gp::function_space::FunctionSpacePosterior;
use posterior_kernels::BlockKernel;
use posterior_linalg::dense::eigenvalues;
use posterior_linalg::random::Streams;
use posterior_linear::curvature::{FitSums, OutputCurvature};
use posterior_linear::structure::{Block, BlockMatrix, Diagonal, Structure, StructureError};
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_tangent::{Batch, TangentKernel, doubles};
use rand::seq::SliceRandom;
use std::sync::OnceLock;

/// Training points with their kernel, before a prior is chosen.
#[derive(Clone, Debug)]
pub struct FunctionSpace<T> {
    selection: Selection,
    x: Array<T>,
    /// Rows of the roots, `[points * width, outputs]`: the directions in which the points were observed.
    rows: Array<T>,
    /// `R^T J J^T R`.
    gram: Mat<f64>,
    /// Its eigenvalues, none negative, the largest first; found once.
    eigenvalues: OnceLock<Vec<f64>>,
    examples: usize,
}

/// Posteriors for some prior precisions and strengths.
#[derive(Clone, Debug)]
pub struct ConditionedFunctionSpace<T> {
    base: FunctionSpace<T>,
    posteriors: Vec<FunctionSpacePosterior>,
}

/// What errors call the kernel.
const NAME: &str = "the tangent kernel";

/// Refuses a kernel of so many rows that would pass `memory` bytes.
fn check_rows(rows: usize, memory: u64) -> Result<(), LaplaceError> {
    let needed = (rows as u64).saturating_mul(rows as u64).saturating_mul(8);
    let remedy = "take fewer points or outputs at a time, or a curvature of weights";
    check_memory(needed, memory, format_args!("the tangent kernel"), remedy)
}

/// The eigenvalues of a symmetric matrix, which has a name in errors, in ascending order.
pub(crate) fn finite_eigenvalues(matrix: &Mat<f64>, name: &str) -> Result<Vec<f64>, StructureError> {
    if !matrix.is_all_finite() {
        return Err(StructureError::NotFinite { block: name.into() });
    }
    eigenvalues(matrix.as_ref()).map_err(|_| StructureError::Eigen { block: name.into() })
}

/// A diagonal structure of as many entries as there are weights, with these values and zeros after them.
pub(crate) fn spectrum(mut values: Vec<f64>, weights: usize) -> Result<Structure, LaplaceError> {
    values.resize(weights, 0.0);
    let matrix = BlockMatrix::Diagonal(Diagonal::new(values));
    Ok(Structure::new(vec![Block { name: "spectrum".into(), range: 0..weights, matrix }])?)
}

impl<T: Precision> FunctionSpace<T> {
    /// The kernel of all examples, or of so many drawn at random (a subset-of-data process); also the sums over **all** examples that say how well the network fits.
    ///
    /// # Errors
    /// Bad targets or outputs; more memory than `memory` bytes.
    pub fn new(
        problem: &Problem<'_, T>,
        points: Option<usize>,
        run: &mut Run<'_>,
    ) -> Result<(Self, FitSums), LaplaceError> {
        let &Problem { data: Data { network, examples, likelihood, .. }, selection, seed, memory } = problem;
        let outputs = problem.check()?;
        let count = examples.len();
        let mut chosen: Vec<usize> = (0..count).collect();
        if let Some(points) = points.filter(|p| *p < count) {
            chosen.shuffle(&mut Streams::new(seed).stream("laplace/subset"));
            chosen.truncate(points);
            chosen.sort_unstable();
        }
        if chosen.is_empty() {
            return Err(LaplaceError::Request("there are no examples to learn from".into()));
        }
        let fit = fit_of_the_network(problem, &mut |_| Ok(()))?;
        let (x, _) = examples.batch(&chosen, None);
        let f = network.forward(&x)?;
        let mut targets = Vec::new();
        for &i in &chosen {
            targets.extend(Batch::read(examples, i..i + 1, likelihood)?.targets);
        }
        let (estimate, g) = (FisherEstimate::Exact, doubles(f.values()));
        let observed = OutputCurvature { likelihood, estimate, targets: &targets, outputs: &g, first: 0 };
        let roots = observed.roots::<T>()?;
        let rows = Array::new(vec![chosen.len() * roots.width, outputs], roots.values);
        check_rows(rows.rows(), memory)?;
        // Variances are differences of kernels: in single precision rounding alone can make them negative.
        let wide = network.cast::<f64>()?;
        let gram =
            TangentKernel::new(&wide, selection).gram(&x.cast(), Some(matrix::<T, f64>(&rows).as_ref()))?;
        run.step(Stage::Curvature, count, count)?;
        Ok((
            Self {
                selection: selection.clone(),
                x,
                rows,
                gram,
                eigenvalues: OnceLock::new(),
                examples: count,
            },
            fit,
        ))
    }

    /// Training points and their kernel again, as they were saved: inputs `[points, ...]`, roots `[points * width, outputs]`, the kernel between the roots, and how many
    /// examples the points were drawn from.
    ///
    /// # Errors
    /// When sizes do not fit each other or the network, or a number is not finite.
    pub fn from_parts(
        network: &Network<T>,
        selection: &Selection,
        x: Array<T>,
        rows: Array<T>,
        gram: Mat<f64>,
        examples: usize,
    ) -> Result<Self, LaplaceError> {
        let graph = network.graph();
        let outputs: usize = graph.output_shape().iter().product();
        let fits = x.rows() > 0
            && x.rows() <= examples
            && x.shape()[1..] == *graph.input_shape()
            && rows.shape() == [gram.nrows(), outputs]
            && gram.ncols() == gram.nrows()
            && gram.nrows() > 0
            && gram.nrows().is_multiple_of(x.rows());
        let finite =
            x.first_not_finite().is_none() && rows.first_not_finite().is_none() && gram.is_all_finite();
        if !(fits && finite) {
            let problem = "the saved training points do not belong to this network";
            return Err(LaplaceError::Request(problem.into()));
        }
        Ok(Self { selection: selection.clone(), x, rows, gram, eigenvalues: OnceLock::new(), examples })
    }

    /// The training points, `[points, ...]`.
    pub fn inputs(&self) -> &Array<T> {
        &self.x
    }

    /// The roots of the output curvature, `[points * width, outputs]`.
    pub fn roots(&self) -> &Array<T> {
        &self.rows
    }

    /// The kernel between the roots, `R^T J J^T R`.
    pub fn gram(&self) -> &Mat<f64> {
        &self.gram
    }

    /// Observed directions: points x width of the roots.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Points whose kernel is used, of how many examples.
    pub fn points(&self) -> (usize, usize) {
        (self.x.rows(), self.examples)
    }

    /// The spectrum of the curvature as a diagonal structure of as many entries as there are weights: what the evidence needs under one prior precision.
    ///
    /// # Errors
    /// When the kernel is not finite.
    pub fn spectrum(&self) -> Result<Structure, LaplaceError> {
        if self.eigenvalues.get().is_none() || !self.gram.is_all_finite() {
            self.remember(&finite_eigenvalues(&self.gram, NAME)?);
        }
        let values = self.eigenvalues.get().cloned().unwrap_or_default();
        spectrum(values, self.selection.len())
    }

    /// Keeps eigenvalues of the kernel that were found, in whatever order.
    pub(crate) fn remember(&self, values: &[f64]) {
        let mut values: Vec<f64> = values.iter().map(|v| v.max(0.0)).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        self.eigenvalues.get_or_init(|| values);
    }

    /// The posteriors under some prior precisions and strengths of the data.
    ///
    /// # Errors
    /// When there are none, or a factorisation fails.
    pub fn condition(&self, settings: &[(f64, f64)]) -> Result<ConditionedFunctionSpace<T>, LaplaceError> {
        let failed = |source| StructureError::Factor { block: NAME.into(), source };
        let each = settings.iter().map(|(precision, strength)| {
            FunctionSpacePosterior::new(self.gram.as_ref(), *precision, *strength).map_err(failed)
        });
        let posteriors = each.collect::<Result<Vec<_>, _>>()?;
        if posteriors.is_empty() {
            return Err(LaplaceError::Request("there is no prior precision to condition on".into()));
        }
        Ok(ConditionedFunctionSpace { base: self.clone(), posteriors })
    }
}

impl<T: Precision> ConditionedFunctionSpace<T> {
    /// Numbers that were observed.
    fn rows(&self) -> usize {
        self.base.rows.rows()
    }
}

impl<T: Precision> Learned<T> for ConditionedFunctionSpace<T> {
    /// Memory for the kernel between training points and a few inputs.
    fn latents(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
    ) -> Result<Vec<Latent>, LaplaceError> {
        let wide = network.cast::<f64>()?;
        let kernel = TangentKernel::new(&wide, &self.base.selection);
        let outputs = kernel.outputs();
        let mut all = vec![no_inputs(outputs, wanted); self.posteriors.len()];
        let (points, roots) = (self.base.x.cast::<f64>(), matrix::<T, f64>(&self.base.rows));
        let (observed, full) = ((&points, roots.as_ref()), wanted == Wanted::Full);
        let each = FunctionSpacePosterior::points_at_once(self.rows(), outputs);
        for range in posterior_linalg::tiles::pieces(x.rows(), each) {
            let x = x.slice_rows(range);
            let (means, wide) = (doubles(network.forward(&x)?.values()), x.cast());
            for (latent, posterior) in all.iter_mut().zip(&self.posteriors) {
                latent.mean.extend_from_slice(&means);
                let (covariances, clipped) = posterior.covariances(&kernel, observed, &wide, full)?;
                latent.covariance.extend(covariances);
                latent.clipped += clipped;
            }
        }
        Ok(all)
    }

    /// Under the first posterior.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let wide = network.cast::<f64>()?;
        let kernel = TangentKernel::new(&wide, &self.base.selection);
        check_rows(x.rows() * kernel.outputs(), memory)?;
        let (points, roots) = (self.base.x.cast::<f64>(), matrix::<T, f64>(&self.base.rows));
        Ok(self.posteriors[0].joint(&kernel, (&points, roots.as_ref()), &x.cast())?)
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        Workspace::at(network, &self.base.selection, examples).predicted_dually(self.rows() as u64)
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        let (graph, d) = (network.graph(), self.base.selection.len() as f64);
        let (rows, c) = (self.rows() as f64, graph.output_shape().iter().product::<usize>() as f64);
        (1.0 + 2.0 * c) * graph.flops() as f64 + rows * c * d + rows * rows * c
    }
}
