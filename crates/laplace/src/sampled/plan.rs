//! What a fit needs, known before it starts, and the space that follows from it.

use super::options::{SampledOptions, Solver, Space};
use crate::plan::needs::Needs;
use crate::plan::workspace::{Use, Workspace, after};
use crate::problem::Size;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::sampled::Update;
use posterior_networks::Precision;
use posterior_tangent::GramPlan;

/// Blocks of weights x samples, in doubles: frozen noise twice, right-hand sides, a solver's own five with its product, samples before, four of the preconditioner, two of a checkpoint.
const BLOCKS: u64 = 16;

/// Blocks of weights x leading directions, in doubles: while they are found, and while they precondition.
const DIRECTION_BLOCKS: (u64, u64) = (6, 3);

/// Products with the data for one turn's mode that a plan counts on.
const MODE_PRODUCTS: f64 = 40.0;

/// Products for one turn's samples, where options do not say.
const SAMPLE_PRODUCTS: f64 = 40.0;

/// What [`fit`](super::fit()) needs, about: samples and their solver; one batch; work.
pub fn plan<T: Precision>(size: &Size<'_, T>, options: &SampledOptions) -> Needs {
    chosen(size, options).1
}

/// Where [`fit`](super::fit()) works, and what it needs there.
pub(super) fn chosen<T: Precision>(size: &Size<'_, T>, options: &SampledOptions) -> (Space, Needs) {
    Samples { size: *size, options }.chosen()
}

/// Bytes that function space may take where weights would take fewer.
const MOST_BYTES: u64 = 2 << 30;

/// Matrices of observed numbers that are alive while eigenvectors are found: kernel, vectors, and three of what finds them; beside these, columns of blocks.
const DECOMPOSED: (u64, u64) = (5, 200);

/// Blocks of weights x samples, in doubles, that function space makes: normals, what is lifted, samples, their narrowed copies.
const LIFTED_BLOCKS: u64 = 6;

/// What is asked for.
struct Samples<'a, T: Precision> {
    size: Size<'a, T>,
    options: &'a SampledOptions,
}

impl<T: Precision> Samples<'_, T> {
    /// The space, and what it needs.
    fn chosen(&self) -> (Space, Needs) {
        let numbers = self.size.examples * self.size.likelihood.outputs();
        match self.options.space {
            Some(Space::Weights) => (Space::Weights, self.weights()),
            Some(Space::Functions) => (Space::Functions, self.functions()),
            None if self.options.suits_functions() && numbers < self.size.selection.len() => {
                let (weights, functions) = (self.weights(), self.functions());
                // Without what depends on the number of threads, with which neither the space nor the samples may change.
                if functions.flops < weights.flops
                    && functions.curvature_bytes <= weights.curvature_bytes.max(MOST_BYTES)
                {
                    (Space::Functions, functions)
                } else {
                    (Space::Weights, weights)
                }
            }
            None => (Space::Weights, self.weights()),
        }
    }

    /// Samples of the turns, and the more of these and those for predictions.
    fn samples(&self) -> (u64, u64) {
        let (early, last) = (self.options.samples_em as u64, self.options.samples as u64);
        (early, early.max(last))
    }

    /// Settings that are tried on unseen examples, at most: along precisions, and where there is noise to learn along it and along precisions again.
    fn tries(&self) -> f64 {
        let noise = is_gaussian(self.size.likelihood) && self.options.learn_noise != Some(false);
        (self.options.validation_tries * if noise { 3 } else { 1 }) as f64
    }

    /// Vectors by which the spectrum is known.
    fn probes(&self) -> u64 {
        let options = self.options;
        let asked = options.update == Update::Evidence;
        if asked { options.spectrum_probes as u64 * options.spectrum_steps as u64 } else { 0 }
    }

    /// The diagonal's pass: its bytes, and its multiplications and additions.
    fn diagonal(&self) -> (u64, f64) {
        let (space, width) = (Workspace::of(&self.size), self.size.likelihood.root_width() as u64);
        let workers = space.workers(8 * self.size.selection.len() as u64, width).unwrap_or(1);
        let work =
            self.size.examples as f64 * self.size.network.graph().flops() as f64 * (1.0 + 2.0 * width as f64);
        (space.batch_bytes(width, Use::Squares).saturating_mul(workers), work)
    }

    fn weights(&self) -> Needs {
        let (options, space, examples) = (self.options, Workspace::of(&self.size), self.size.examples);
        let (d, number) = (self.size.selection.len() as u64, size_of::<T>() as u64);
        let (early, most) = self.samples();
        let rows = (examples * self.size.likelihood.root_width()) as u64;
        let block = d.saturating_mul(most);
        let k = options.directions(self.size.selection.len(), rows as usize) as u64;
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
        Needs { curvature_bytes: bytes, batch_bytes: batch, flops: work }
    }

    fn functions(&self) -> Needs {
        let (options, space, examples) = (self.options, Workspace::of(&self.size), self.size.examples);
        let (d, number) = (self.size.selection.len() as u64, size_of::<T>() as u64);
        let (early, most) = self.samples();
        let rows = examples as u64 * space.outputs;
        let gram = GramPlan::new(self.size.network, self.size.selection, examples);
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
        let (n, flops) = (rows as f64, self.size.network.graph().flops() as f64);
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
        Needs { curvature_bytes: bytes, batch_bytes: batch, flops: diagonal + kernel + products + through }
    }
}
