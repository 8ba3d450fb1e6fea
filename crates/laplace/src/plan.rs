//! **Memory and work** of a fit, known before it starts.

pub(crate) mod needs;
mod prediction;
mod searches;
pub(crate) mod workspace;

pub use needs::Needs;

use crate::LaplaceError;
use crate::accumulate::FisherEstimate;
use crate::error::check_memory;
use crate::fit::{Approximation, Choices, FitOptions, LARGEST, kernel_bytes, kernels};
use crate::problem::Size;
use posterior_linear::curvature::{is_gaussian, layers};
use posterior_networks::Precision;
use posterior_notes::fixes::SPACE_WEIGHTS;
use posterior_tangent::{Head, segments};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use workspace::{Use, Workspace, after};

/// Copies of a dense curvature at the peak: the sums, the matrix, the posterior's factor and the predictor's (or what they are made from).
const DENSE_COPIES: u64 = 4;

/// Further ones while eigenvectors are found, for a closed form under Gaussian noise, and multiplications and additions for that times the cube of the size.
const EIGENVECTORS: (u64, f64) = (3, 9.0);

/// Newton's steps to an optimum that is found by kernels: what is counted on.
const NEWTON_STEPS: f64 = 8.0;

/// Multiplications and additions a second that a plan counts on.
const RATE: f64 = 3e10;

/// What a fit needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which curvature.
    pub curvature: String,
    /// Weights with a posterior.
    pub weights: usize,
    /// Examples.
    pub examples: usize,
    /// Outputs.
    pub outputs: usize,
    /// Memory and work.
    #[serde(flatten)]
    pub needs: Needs,
}

impl Deref for Plan {
    type Target = Needs;

    fn deref(&self) -> &Needs {
        &self.needs
    }
}

impl Plan {
    /// Of a fit with these options.
    ///
    /// # Errors
    /// A kernel on features of a network that has none.
    #[inline(never)]
    pub fn new<T: Precision>(size: &Size<'_, T>, options: &FitOptions) -> Result<Self, LaplaceError> {
        let &Size { network, selection, examples, likelihood, .. } = size;
        let approximation = &options.approximation;
        let planned = |needs| Self {
            curvature: approximation.name().into(),
            weights: if approximation.has_weights() { selection.len() } else { 0 },
            examples,
            outputs: likelihood.outputs(),
            needs,
        };
        if let Some(needs) = searches::searched(size, approximation)? {
            return Ok(planned(needs));
        }
        let graph = network.graph();
        let (d, c) = (selection.len() as u64, likelihood.outputs() as u64);
        let (head, segments) = (Head::of(graph, selection), segments(graph, selection));
        let square = |n: u64| n.saturating_mul(n).saturating_mul(8);
        let n = examples as f64;
        let estimate = approximation.estimate();
        let width = estimate.width(likelihood) as u64;
        // With its exact curvature an output layer sends nothing back.
        let head = head.filter(|_| estimate == FisherEstimate::Exact);
        let backward = if head.is_some() { 0.0 } else { 2.0 * width as f64 * graph.flops() as f64 };
        let mut flops = n * (graph.flops() as f64 + backward);
        let space = Workspace::of(size);
        let eigenvectors = |size: u64| match is_gaussian(likelihood) && size <= LARGEST as u64 {
            true => (EIGENVECTORS.0, EIGENVECTORS.1 * (size as f64).powi(3)),
            false => (0, 0.0),
        };
        let workspace = |dense: bool, used: Use| match &head {
            Some(head) => space.head(head, dense),
            None => space.batch_bytes(width, used),
        };
        // Bytes of the sums, of everything while they are factored, of one worker's batch, and of what is done by all together after that.
        let (sums, factored, batch, shared) = match approximation {
            Approximation::Full => {
                let per_example = (d as f64).powi(2) * if head.is_some() { 1.0 } else { width as f64 };
                let (copies, more) = eigenvectors(d);
                flops += n * per_example + (d as f64).powi(3) * 4.0 / 3.0 + more;
                (
                    square(d),
                    square(d).saturating_mul(DENSE_COPIES + copies),
                    workspace(true, Use::Rows { by_layer: false }),
                    0,
                )
            }
            Approximation::Block => {
                let mut sums = 0u64;
                for (_, range) in layers(&segments) {
                    let size: u64 = segments[range].iter().map(|s| s.range.len() as u64).sum();
                    sums = sums.saturating_add(square(size));
                    flops += n * width as f64 * (size as f64).powi(2) + (size as f64).powi(3) * 4.0 / 3.0;
                }
                (sums, sums.saturating_mul(DENSE_COPIES), workspace(true, Use::Rows { by_layer: true }), 0)
            }
            Approximation::Diagonal => {
                flops += n * (width * d) as f64;
                (d * 8, d * 24, workspace(true, Use::Squares), 0)
            }
            Approximation::Kronecker(_) => {
                let (mut sums, mut largest) = (0u64, 0);
                for segment in &segments {
                    let factors = match segment.matrix {
                        Some(m) => vec![m.outputs as u64, m.inputs as u64],
                        None if segment.range.len() <= 1024 => vec![segment.range.len() as u64],
                        None => vec![],
                    };
                    for size in factors {
                        sums = sums.saturating_add(square(size));
                        largest = largest.max(size);
                        flops += n * (size * size) as f64 + 20.0 * (size as f64).powi(3);
                    }
                }
                // Sums, factors with their eigenvectors, bases twice and in the network's precision; variances of all weights likewise; what the eigendecomposition of one factor works in.
                let bases = sums.saturating_mul(5).saturating_add(sums / 8 * size_of::<T>() as u64);
                let factored = bases.saturating_add(d * 24 + square(largest).saturating_mul(3));
                (sums, factored, workspace(false, Use::Factors), 0)
            }
            Approximation::LowRank { rank, iterations, .. } => {
                let columns = (*rank as u64 + 10).min(d.max(1));
                flops += space.tangent_flops(columns) * (*iterations as f64 + 1.0);
                // The subspace, its image, the orthogonal factor and what makes it, in doubles; vectors, products and their sum in the network's precision.
                let number = size_of::<T>() as u64;
                let subspace = d.saturating_mul(columns).saturating_mul(8 * 4 + 3 * number);
                (d * 8, subspace, space.batch_bytes(width, Use::Squares), space.tangents(columns))
            }
            Approximation::FunctionSpace { points } => {
                let count = points.unwrap_or(examples).min(examples) as u64;
                let rows = count * FisherEstimate::Exact.width(likelihood) as u64;
                let (copies, more) = eigenvectors(rows);
                flops += (rows as f64).powi(2) * d as f64 + (rows as f64).powi(3) * 2.0 + more;
                (
                    0,
                    square(rows).saturating_mul(5 + copies).saturating_add(d * 24),
                    0,
                    space.kernel(count, rows / count.max(1)),
                )
            }
            // Planned above.
            _ => (0, 0, 0, 0),
        };
        let own = Choices::of(graph, selection, options);
        let by_kernel = kernels(graph, selection, (own.mode, &own.prior), (examples, likelihood), options);
        let rows = n * c as f64;
        // Kernels of all groups, and Newton's steps of the turns of mode and hyperparameters.
        flops += by_kernel.map_or(0.0, |_| {
            n * 2.0 * (1 + c) as f64 * graph.flops() as f64
                + rows * rows * d as f64
                + NEWTON_STEPS * options.alternations as f64 * rows.powi(3)
        });
        let kernels = by_kernel.map_or(0, |groups| {
            kernel_bytes(groups, examples * c as usize).saturating_add(space.kernel(n as u64, c))
        });
        let width = if head.is_some() { 1 } else { width };
        let workers = space.workers(sums, width);
        // Private sums are added up before anything is factored.
        let collected = workers.map_or(sums, |w| sums.saturating_mul(w + 1));
        let batches = batch.saturating_mul(workers.unwrap_or(1));
        Ok(planned(Needs {
            curvature_bytes: factored.saturating_add(kernels).max(collected).saturating_add(d * 8 * 6),
            batch_bytes: batches.max(after(batches, shared)),
            flops,
        }))
    }

    /// Seconds that it takes, about: at a modest rate, so that a budget is rather kept than used up.
    pub fn seconds(&self) -> f64 {
        self.flops / RATE
    }

    /// Refuses what does not fit, with the way out.
    ///
    /// # Errors
    /// [`LaplaceError::Memory`].
    pub fn check(&self, options: &FitOptions) -> Result<(), LaplaceError> {
        let remedy = if options.approximation.is_learned() {
            format!(
                "allow more memory, or ask for less: fewer samples (in weight space, `{SPACE_WEIGHTS}`), inducing points or rows of a batch"
            )
        } else {
            "allow more memory, or choose another curvature: `kronecker` and `diagonal` need about as much as the network, \
             `last-layer-kronecker` less"
                .into()
        };
        let what = format_args!("the {} curvature of {} weights", self.curvature, self.weights);
        check_memory(self.bytes(), options.memory, what, &remedy)
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.weights {
            0 => self.curvature.clone(),
            weights => format!("{} curvature of {weights} weights", self.curvature),
        };
        write!(
            f,
            "{what} from {} examples: {} MB for curvature and factors, {} MB for batches, {:.1e} operations, about {}",
            self.examples,
            self.curvature_bytes.div_ceil(1 << 20),
            self.batch_bytes.div_ceil(1 << 20),
            self.flops,
            seconds_for_people(self.seconds())
        )
    }
}

/// Rounded up, and in minutes or hours where they are many.
fn seconds_for_people(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "a second".into(),
        s if s < 120.0 => format!("{:.0} s", s.ceil()),
        s if s < 7200.0 => format!("{:.0} minutes", (s / 60.0).ceil()),
        s => format!("{:.0} hours", (s / 3600.0).ceil()),
    }
}
