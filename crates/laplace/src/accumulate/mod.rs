//! **Summing the curvature** `M = sum_n J_n^T B_n J_n` over mini-batches, in the form that was asked for and in memory that does not grow with the data.
//!
//! | form | what is summed | passes back for each example |
//! |---|---|---|
//! | full | `[weights, weights]` | `C - 1` (softmax) or `C` |
//! | block | one matrix for each layer | the same, once for each layer |
//! | diagonal | one number for each weight | the same |
//! | Kronecker | `G_l = sum delta delta^T / T` and `Q_l = sum a a^T / n` for each weight matrix; small dense blocks (diagonal ones above 1,024 entries) for other parameters | the same, or one with a sampled or empirical Fisher matrix |
//!
//! When the weights are those of a fully connected output layer, its Jacobian is `I (x) [features, 1]`: nothing is sent back, and `M = sum_n B_n (x) u_n u_n^T` is
//! summed from features and output curvatures (`head`).
//!
//! Sums do not depend on the batch size (up to rounding), can be saved, resumed and continued with more data.

mod head;
pub(crate) mod rows;
mod sums;

pub(crate) use head::Head;
pub use sums::{BlockSum, SumMatrix};
pub(crate) use sums::{layers, weight_matrix};

use crate::roots::{FisherEstimate, cotangents};
use crate::{LaplaceError, Stage};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::evidence::DataFit;
use posterior_linear::structure::Structure;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Batch, batch_size, check_outputs, doubles, ranges};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes that the private sums of strips may take together.
const PRIVATE_SUMS: usize = 256 << 20;

/// Strips that data are cut into at least, if they have as many batches.
const STRIPS: usize = 32;

/// Batches of a strip at most.
const BATCHES_EACH: usize = 4;

/// Strips of the data that are summed apart at one time, each in private sums of so many bytes: as many as there are threads and room. None where not even two have room: then every batch is
/// added to the sums themselves, and threads share it. Which of the two does not depend on the number of threads, and strips are added up in their order: so neither do the sums.
pub(crate) fn strips_at_once(bytes: usize) -> Option<usize> {
    let room = PRIVATE_SUMS / bytes.max(1);
    (room >= 2).then(|| room.min(rayon::current_num_threads()))
}

/// Batches of a strip, for data of so many.
pub(crate) fn strip_batches(batches: usize) -> usize {
    (batches / STRIPS).clamp(1, BATCHES_EACH)
}

/// What is summed over a strip.
struct Sums {
    blocks: Vec<BlockSum>,
    fit: FitSums,
}

/// Which entries of the curvature are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// All.
    Full,
    /// Those within a layer.
    Block,
    /// The diagonal.
    Diagonal,
    /// Kronecker products for weight matrices.
    Kronecker,
}

/// How well the network fits the examples seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FitSums {
    /// Examples.
    pub examples: usize,
    /// `sum log p(y | f)`.
    pub log_likelihood: f64,
    /// `sum log p(y | y)` under Gaussian noise: the constant part.
    pub constant: f64,
}

impl FitSums {
    fn add(&mut self, other: &Self) {
        self.examples += other.examples;
        self.log_likelihood += other.log_likelihood;
        self.constant += other.constant;
    }

    /// Adds a batch with outputs `f`; the order of summation does not depend on threads.
    pub(crate) fn add_batch<T: Precision>(
        &mut self,
        likelihood: &OutputLikelihood,
        batch: &Batch<T>,
        f: &Array<T>,
    ) {
        let gaussian = is_gaussian(likelihood);
        let one = |i: usize| {
            let y = batch.target(i);
            let constant = if gaussian { likelihood.log_density(y, y) } else { 0.0 };
            (likelihood.log_density(y, &doubles(f.row(i))), constant)
        };
        let terms: Vec<(f64, f64)> =
            (0..batch.range.len()).into_par_iter().with_min_len(64).map(one).collect();
        self.examples += terms.len();
        for (log_likelihood, constant) in terms {
            self.log_likelihood += log_likelihood;
            self.constant += constant;
        }
    }

    /// The fit as the evidence wants it. Under Gaussian noise the noise variance of the evidence is a multiple of the likelihood's own.
    pub fn data_fit(&self, likelihood: &OutputLikelihood) -> DataFit {
        if !is_gaussian(likelihood) {
            return DataFit::LogLikelihood { value: self.log_likelihood };
        }
        let values = self.examples * likelihood.outputs();
        let constant = values as f64 * (2.0 * std::f64::consts::PI).ln();
        DataFit::Gaussian {
            residual_sum: 2.0 * (self.constant - self.log_likelihood),
            values,
            log_relative_precision: 2.0 * self.constant + constant,
        }
    }
}

/// Whether the noise is additive, Gaussian and the same everywhere.
pub(crate) fn is_gaussian(likelihood: &OutputLikelihood) -> bool {
    matches!(likelihood, OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_))
}

/// The sums of a curvature, while they are being made and after.
#[derive(Clone, Debug)]
pub struct Accumulator {
    form: Form,
    estimate: FisherEstimate,
    selection: Selection,
    head: Option<Head>,
    blocks: Vec<BlockSum>,
    fit: FitSums,
}

impl Accumulator {
    /// Empty sums for the selected weights of a network.
    ///
    /// # Errors
    /// When nothing is selected, or a Kronecker form is asked for entries of a parameter.
    pub fn new<T: Precision>(
        network: &Network<T>,
        selection: &Selection,
        form: Form,
        estimate: FisherEstimate,
    ) -> Result<Self, LaplaceError> {
        if selection.is_empty() {
            return Err(LaplaceError::Request("no weights are selected; select some".into()));
        }
        if form == Form::Kronecker && selection.parts().iter().any(|p| p.indices.is_some()) {
            return Err(LaplaceError::Request(
                "a sub-network has no Kronecker-factored curvature: use the full or the diagonal one".into(),
            ));
        }
        let head = Head::of(network.graph(), selection);
        let blocks = sums::layout(network.graph(), selection, form);
        let fit = FitSums::default();
        Ok(Self { form, estimate, selection: selection.clone(), head, blocks, fit })
    }

    /// Which entries are kept.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How the Fisher matrix is estimated.
    pub fn estimate(&self) -> FisherEstimate {
        self.estimate
    }

    /// The weights.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// How well the network fits what was seen; its number of examples says where to go on.
    pub fn fit(&self) -> &FitSums {
        &self.fit
    }

    /// The sums, to be saved.
    pub fn blocks(&self) -> &[BlockSum] {
        &self.blocks
    }

    /// Takes up sums that were saved before, made for the same network, selection and form.
    ///
    /// # Errors
    /// When their names or sizes differ or a value is not finite.
    pub fn restore(&mut self, blocks: Vec<BlockSum>, fit: FitSums) -> Result<(), LaplaceError> {
        let fits = blocks.len() == self.blocks.len()
            && self.blocks.iter().zip(&blocks).all(|(a, b)| a.same_layout(b) && b.is_finite());
        if !fits {
            let problem = "the saved curvature does not belong to this network and selection of weights";
            return Err(LaplaceError::Request(problem.into()));
        }
        self.blocks = blocks;
        self.fit = fit;
        Ok(())
    }

    /// Adds the examples from number `from` on: `self.fit().examples` to go on after an interruption, 0 to add further data. The observer is told the stage, the examples done and their number after each batch; when it says stop, what is
    /// summed stays whole and can be continued.
    ///
    /// # Errors
    /// Bad targets, outputs that are not finite, [`LaplaceError::Interrupted`].
    pub fn extend<T: Precision>(
        &mut self,
        network: &Network<T>,
        examples: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        from: usize,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<(), LaplaceError> {
        check_outputs(network, likelihood)?;
        let width = if self.needs_features_only() { 1 } else { self.estimate.width(likelihood) };
        let size = batch_size(network, width);
        let batches: Vec<_> = ranges(from, examples.len(), size).collect();
        // Strips of all the data, so that a sum that goes on after an interruption has those of one that was not interrupted.
        let strip = strip_batches(examples.len().div_ceil(size));
        let at_once = strips_at_once(sums::bytes(&self.blocks));
        for round in batches.chunks(at_once.map_or(1, |strips| strips * strip)) {
            let end = round.last().map_or(from, |r| r.end);
            if at_once.is_some() {
                let work = |own: &[Range<usize>]| -> Result<Sums, LaplaceError> {
                    let mut sums = Sums { blocks: sums::zeroed(&self.blocks), fit: FitSums::default() };
                    for range in own {
                        self.add(
                            network,
                            Batch::read(examples, range.clone(), likelihood)?,
                            likelihood,
                            &mut sums,
                        )?;
                    }
                    Ok(sums)
                };
                let parts: Vec<Result<Sums, LaplaceError>> = round.par_chunks(strip).map(work).collect();
                for part in parts {
                    let part = part?;
                    sums::add(&mut self.blocks, &part.blocks);
                    self.fit.add(&part.fit);
                }
            } else {
                let blocks = std::mem::take(&mut self.blocks);
                let mut sums = Sums { blocks, fit: self.fit };
                let added = round.iter().try_for_each(|range| {
                    self.add(
                        network,
                        Batch::read(examples, range.clone(), likelihood)?,
                        likelihood,
                        &mut sums,
                    )
                });
                (self.blocks, self.fit) = (sums.blocks, sums.fit);
                added?;
            }
            if self.form == Form::Kronecker && !self.needs_features_only() {
                rows::share_with_biases(network.graph(), &self.selection, &mut self.blocks);
            }
            if observer(Stage::Curvature, end, examples.len()) == Signal::Stop && end < examples.len() {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(())
    }

    /// Whether nothing is sent back: an output layer with its exact curvature.
    fn needs_features_only(&self) -> bool {
        self.head.is_some() && self.estimate == FisherEstimate::Exact
    }

    /// Adds one batch to `sums`.
    fn add<T: Precision>(
        &self,
        network: &Network<T>,
        mut batch: Batch<T>,
        likelihood: &OutputLikelihood,
        sums: &mut Sums,
    ) -> Result<(), LaplaceError> {
        let trace = network.trace(std::mem::replace(&mut batch.x, Array::zeros(vec![0])))?;
        let f = trace.output();
        let outputs = f.row_len();
        if let Some(position) = f.first_not_finite() {
            let example = batch.range.start + position / outputs.max(1);
            return Err(LaplaceError::NotFinite { what: "the output", example });
        }
        let blocks = &mut sums.blocks;
        match &self.head {
            Some(head) if self.needs_features_only() => {
                head.add(&trace, &batch, likelihood, blocks);
            }
            _ => {
                let rows = cotangents(self.estimate, likelihood, &batch, f)?;
                match self.form {
                    Form::Kronecker => rows::add_kronecker(&trace, &self.selection, &rows, blocks)?,
                    Form::Diagonal => {
                        rows::add_diagonal(network, trace.input(), &self.selection, &rows, blocks)?;
                    }
                    Form::Full | Form::Block => {
                        rows::add_dense(network, trace.input(), &self.selection, &rows, blocks)?;
                    }
                }
            }
        }
        sums.fit.add_batch(likelihood, &batch, f);
        Ok(())
    }

    /// The curvature.
    ///
    /// # Errors
    /// When no example was seen or a sum is not finite.
    pub fn finish(&self) -> Result<Structure, LaplaceError> {
        if self.fit.examples == 0 {
            return Err(LaplaceError::Request("there are no examples to learn from".into()));
        }
        sums::structure(&self.blocks, self.fit.examples)
    }
}
