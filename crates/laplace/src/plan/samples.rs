//! What ELLA and samples need.

use super::workspace::{Workspace, after};
use crate::LaplaceError;
use crate::ella::EllaOptions;
use crate::sampled::{SampledOptions, Solver, Space};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::{Network, Precision, Selection};
use posterior_tangent::GramPlan;

/// Numbers of the landmarks' rows that are held at one time.
const HELD: u64 = 1 << 25;

/// Blocks of weights x samples, in doubles: frozen noise twice, right-hand sides, a solver's own five with its product, samples before, four of the preconditioner, two of a checkpoint.
const BLOCKS: u64 = 16;

/// Blocks of weights x leading directions, in doubles: while they are found, and while they precondition.
const DIRECTION_BLOCKS: (u64, u64) = (6, 3);

/// Products with the data for one turn's mode that a plan counts on.
const MODE_PRODUCTS: f64 = 40.0;

/// Products for one turn's samples, where options do not say.
const SAMPLE_PRODUCTS: f64 = 40.0;

/// Bytes of landmarks, directions and curvature, bytes of one batch, and multiplications and additions of [`Ella::fit`](crate::Ella::fit).
pub fn ella<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: usize,
    likelihood: &OutputLikelihood,
    options: &EllaOptions,
) -> (u64, u64, f64) {
    let outputs = likelihood.outputs() as u64;
    let space = Workspace { network, selection, examples: examples as u64, outputs };
    let (d, m) = (selection.len() as u64, options.landmarks(examples).min(examples) as u64);
    let (k, number) = ((options.features as u64).min(m), size_of::<T>() as u64);
    let squares = |n: u64| n.saturating_mul(n).saturating_mul(8);
    // Kernel, its vectors and what finds them; rows over some weights, their gradients, and a product's buffers; the directions in doubles, as made, and kept.
    let kernel = squares(m).saturating_mul(4);
    let rows = HELD.min(m.saturating_mul(d)).saturating_mul(8);
    let directions = d.saturating_mul(k).saturating_mul(8 + 3 * number);
    let bytes = kernel.saturating_add(rows).saturating_add(directions).saturating_add(squares(k) * 40);
    // Rows over a stretch of the weights are counted above; here are the passes of the landmarks that they come from.
    let landmarks = Workspace { examples: m, ..space };
    let space = Workspace { examples: examples as u64, ..landmarks };
    let batch = landmarks
        .batch_bytes(1, super::Use::Factors)
        .max(space.one_way(k))
        .saturating_add(16 * examples as u64);
    let (flops, n) = (network.graph().flops() as f64, examples as f64);
    let (d, m, k) = (d as f64, m as f64, k as f64);
    let passes = (m * d / HELD as f64).ceil().max(1.0);
    let landmarks = 3.0 * m * flops * passes + m * m * d + 9.0 * m.powi(3) + m * flops * (1.0 + 2.0 * k);
    let pass = n * (flops * (1.0 + 2.0 * k) + k * k * likelihood.root_width() as f64);
    (bytes, batch, landmarks + pass)
}

/// Bytes of samples and their solver, bytes of one batch, and multiplications and additions, about, of [`fit`](crate::sampled::fit).
pub fn sampled<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: usize,
    likelihood: &OutputLikelihood,
    options: &SampledOptions,
) -> (u64, u64, f64) {
    Samples { network, selection, examples, likelihood, options }.chosen().1
}

/// Where [`fit`](crate::sampled::fit) works.
pub(crate) fn sampled_space<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: usize,
    likelihood: &OutputLikelihood,
    options: &SampledOptions,
) -> Space {
    Samples { network, selection, examples, likelihood, options }.chosen().0
}

/// Bytes that function space may take where weights would take fewer.
const MOST_BYTES: u64 = 2 << 30;

/// Matrices of observed numbers that are alive while eigenvectors are found: kernel, vectors, and three of what finds them; beside these, columns of blocks.
const DECOMPOSED: (u64, u64) = (5, 200);

/// Blocks of weights x samples, in doubles, that function space makes: normals, what is lifted, samples, their narrowed copies.
const LIFTED_BLOCKS: u64 = 6;

/// What is asked for.
struct Samples<'a, T: Precision> {
    network: &'a Network<T>,
    selection: &'a Selection,
    examples: usize,
    likelihood: &'a OutputLikelihood,
    options: &'a SampledOptions,
}

impl<'a, T: Precision> Samples<'a, T> {
    /// The space, and what it needs.
    fn chosen(&self) -> (Space, (u64, u64, f64)) {
        let numbers = self.examples * self.likelihood.outputs();
        match self.options.space {
            Some(Space::Weights) => (Space::Weights, self.weights()),
            Some(Space::Functions) => (Space::Functions, self.functions()),
            None if self.options.suits_functions() && numbers < self.selection.len() => {
                let (weights, functions) = (self.weights(), self.functions());
                // Without what depends on the number of threads, with which neither the space nor the samples may change.
                if functions.2 < weights.2 && functions.0 <= weights.0.max(MOST_BYTES) {
                    (Space::Functions, functions)
                } else {
                    (Space::Weights, weights)
                }
            }
            None => (Space::Weights, self.weights()),
        }
    }

    fn workspace(&self) -> Workspace<'a, T> {
        let (network, selection) = (self.network, self.selection);
        let (examples, outputs) = (self.examples as u64, self.likelihood.outputs() as u64);
        Workspace { network, selection, examples, outputs }
    }

    /// Samples of the turns, and the more of these and those for predictions.
    fn samples(&self) -> (u64, u64) {
        let (early, last) = (self.options.samples_em as u64, self.options.samples as u64);
        (early, early.max(last))
    }

    /// Settings that are tried on unseen examples, at most: along precisions, and where there is noise to learn along it and along precisions again.
    fn tries(&self) -> f64 {
        let noise = is_gaussian(self.likelihood) && self.options.learn_noise != Some(false);
        (self.options.validation_tries * if noise { 3 } else { 1 }) as f64
    }

    /// Vectors by which the spectrum is known.
    fn probes(&self) -> u64 {
        let options = self.options;
        let asked = options.update == crate::sampled::Update::Evidence;
        if asked { options.spectrum_probes as u64 * options.spectrum_steps as u64 } else { 0 }
    }

    /// The diagonal's pass: its bytes, and its multiplications and additions.
    fn diagonal(&self) -> (u64, f64) {
        let (space, width) = (self.workspace(), self.likelihood.root_width() as u64);
        let workers = space.workers(8 * self.selection.len() as u64, width).unwrap_or(1);
        let work = self.examples as f64 * self.network.graph().flops() as f64 * (1.0 + 2.0 * width as f64);
        (space.batch_bytes(width, super::Use::Squares).saturating_mul(workers), work)
    }

    fn weights(&self) -> (u64, u64, f64) {
        let (options, space, examples) = (self.options, self.workspace(), self.examples);
        let (d, number) = (self.selection.len() as u64, size_of::<T>() as u64);
        let (early, most) = self.samples();
        let rows = (examples * self.likelihood.root_width()) as u64;
        let block = d.saturating_mul(most);
        let k = options.directions(self.selection.len(), rows as usize) as u64;
        let directions = d.saturating_mul(k).saturating_mul(8);
        let found = directions.saturating_mul(DIRECTION_BLOCKS.0);
        let kept = directions.saturating_mul(DIRECTION_BLOCKS.1);
        let mut bytes = block.saturating_mul(8 * BLOCKS + 3 * number).saturating_add(kept).max(found);
        bytes = bytes.saturating_add(d * 8 * 12);
        bytes = bytes.saturating_add(d.saturating_mul(self.probes()).saturating_mul(8));
        // The mode's outputs of all examples.
        bytes = bytes.saturating_add(examples as u64 * space.outputs * 16);
        let product = |k: u64| space.tangent_flops(k);
        let per_turn = match &options.solver {
            Solver::Descent(descent) => descent.epochs as f64,
            Solver::ConjugateGradients(own) => SAMPLE_PRODUCTS.min(own.steps as f64),
            Solver::DualDescent(dual) => {
                // Targets, solution and what the solver keeps of them; the stored kernel is within what is left of the memory.
                bytes = bytes.saturating_add(rows.saturating_mul(most).saturating_mul(8 * 8));
                if options.g_prior { dual.steps as f64 } else { 2.0 }
            }
        };
        let mode = MODE_PRODUCTS * product(1);
        let turns = options.em_steps as f64 * (product(early) * (per_turn + 1.0) + mode);
        // Their product, orthogonal vectors and factors; those again for every precision.
        let own = d as f64 * (k as f64).powi(2);
        let begin = if k == 0 { 0.0 } else { product(k) + 7.0 * own };
        let conditioned = own * (2.0 * options.em_steps as f64 + 1.0);
        let (squares, diagonal) = self.diagonal();
        // Those that are tried, with predictions of about as many examples.
        let tries = self.tries();
        let last = product(options.samples as u64) * ((per_turn + 1.0) * (1.0 + tries) + tries);
        let work = diagonal + begin + conditioned + turns + last;
        // The diagonal's pass comes first.
        let batch = squares.max(after(squares, space.tangents(most.max(k).max(1))));
        (bytes, batch, work)
    }

    fn functions(&self) -> (u64, u64, f64) {
        let (options, space, examples) = (self.options, self.workspace(), self.examples);
        let (d, number) = (self.selection.len() as u64, size_of::<T>() as u64);
        let (early, most) = self.samples();
        let rows = examples as u64 * space.outputs;
        let gram = GramPlan::new(self.network, self.selection, examples);
        let square = rows.saturating_mul(rows).saturating_mul(8);
        let k = options.directions(rows as usize, rows as usize) as u64;
        let making = square.saturating_add(gram.bytes());
        // Rows were freed before, but allocators keep blocks of their sizes: a ResNet-20's process kept half a gigabyte.
        let decomposing = square.saturating_mul(DECOMPOSED.0).saturating_add(8 * rows * DECOMPOSED.1);
        let decomposing = after(gram.bytes(), decomposing);
        // Blocks as in weight space, of the span; of weights, those that go in and out.
        let own =
            rows.saturating_mul(most * BLOCKS + self.probes() + k * DIRECTION_BLOCKS.0).saturating_mul(8);
        let lifted = d.saturating_mul(most).saturating_mul(8 * LIFTED_BLOCKS + 3 * number);
        let solving = square.saturating_add(own).saturating_add(lifted);
        let bytes = making.max(decomposing).max(solving).saturating_add(d * 8 * 12);
        let (n, flops) = (rows as f64, self.network.graph().flops() as f64);
        let made = gram.made() as f64 * flops * (1.0 + 2.0 * space.outputs as f64);
        let kernel = made + n * n * gram.row as f64 + 9.0 * n.powi(3);
        let per_turn = match &options.solver {
            Solver::ConjugateGradients(own) => SAMPLE_PRODUCTS.min(own.steps as f64),
            _ => SAMPLE_PRODUCTS,
        };
        let turn = early as f64 * (per_turn + 1.0) + MODE_PRODUCTS;
        let tries = self.tries();
        let last = options.samples as f64 * per_turn * (1.0 + tries);
        let products = 4.0 * n * n * (k as f64 + options.em_steps as f64 * turn + last);
        // Lifting, and predictions of about as many examples of those that are tried.
        let lifted_samples = space.tangent_flops(options.samples as u64);
        let through = space.tangent_flops(early + 1) + lifted_samples * (1.0 + 2.0 * tries);
        let (squares, diagonal) = self.diagonal();
        let batch = squares.max(after(squares, space.tangents(most).max(space.rows(gram.at_once as u64))));
        (bytes, batch, diagonal + kernel + products + through)
    }
}

/// Refuses a joint covariance of so many numbers, made from rows of so many columns, that would pass `memory` bytes.
pub(crate) fn check_joint(
    inputs: usize,
    outputs: usize,
    columns: usize,
    memory: u64,
) -> Result<(), LaplaceError> {
    let rows = (inputs * outputs) as u64;
    let needed = rows.saturating_mul(rows).saturating_mul(8).saturating_add(rows * columns as u64 * 24);
    if needed <= memory {
        return Ok(());
    }
    Err(LaplaceError::Memory {
        what: format!("the joint covariance of {inputs} inputs"),
        needed,
        allowed: memory,
        remedy: "ask for fewer inputs at a time, or draw function samples instead".into(),
    })
}
