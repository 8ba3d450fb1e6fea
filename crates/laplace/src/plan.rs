//! **Memory and work** of a fit, known before it starts.

use crate::accumulate::{Form, Head, weight_matrix};
use crate::fit::Approximation;
use crate::{FitOptions, LaplaceError};
use posterior_likelihoods::{OutputLikelihood, VectorLikelihood};
use posterior_networks::{Network, Precision, Selection};
use serde::{Deserialize, Serialize};

/// What a fit needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which curvature.
    pub curvature: String,
    /// Weights with a posterior.
    pub weights: usize,
    /// Examples.
    pub examples: usize,
    /// Outputs.
    pub outputs: usize,
    /// Bytes of the curvature, its factors and copies while it is factored.
    pub curvature_bytes: u64,
    /// Bytes of one batch's activations, sensitivities and gradients.
    pub batch_bytes: u64,
    /// Multiplications and additions.
    pub flops: f64,
}

impl Plan {
    /// Bytes at the peak, beside network and data.
    pub fn bytes(&self) -> u64 {
        self.curvature_bytes.saturating_add(self.batch_bytes)
    }

    /// For a fit with the given selection of weights.
    pub fn new<T: Precision>(
        network: &Network<T>,
        selection: &Selection,
        examples: usize,
        likelihood: &OutputLikelihood,
        approximation: &Approximation,
    ) -> Self {
        let graph = network.graph();
        let (d, c) = (selection.len() as u64, likelihood.outputs() as u64);
        let head = Head::of(graph, selection);
        let square = |n: u64| n.saturating_mul(n).saturating_mul(8);
        // Sum, scaled copy, factor.
        let dense = |n: u64| square(n).saturating_mul(3);
        let n = examples as f64;
        let width = approximation.estimate().map_or(c as f64, |e| e.width(likelihood) as f64);
        let backward = if head.is_some() { 0.0 } else { 2.0 * width * graph.flops() as f64 };
        let mut flops = n * (graph.flops() as f64 + backward);
        let batch = crate::observations::batch_size(network, width.max(1.0) as usize) as u64;
        let rows_at_once = batch.min(examples as u64) * width as u64;
        let number = size_of::<T>() as u64;
        // Rows of the Jacobian, and the same in double precision, up to the size at which the network cuts them.
        let piece = |weights: u64| {
            let one =
                if head.is_some() { 0 } else { weights.saturating_mul(rows_at_once * number).min(32 << 20) };
            one * 2 * rayon::current_num_threads() as u64
        };
        let (curvature_bytes, pieces) = match approximation {
            Approximation::Full => {
                let per_example = if head.is_some() { d as f64 * d as f64 } else { width * (d * d) as f64 };
                flops += n * per_example + (d as f64).powi(3) * 4.0 / 3.0;
                (dense(d), piece(d))
            }
            Approximation::Block => {
                let (mut bytes, mut largest) = (0u64, 0);
                for (_, range) in crate::accumulate::layers(graph, selection) {
                    let size: u64 = selection.parts()[range].iter().map(|p| p.length as u64).sum();
                    bytes = bytes.saturating_add(dense(size));
                    largest = largest.max(size);
                    flops += n * width * (size * size) as f64 + (size as f64).powi(3) * 4.0 / 3.0;
                }
                (bytes, piece(largest))
            }
            Approximation::Diagonal => {
                flops += n * width * d as f64;
                (d * 24, 0)
            }
            Approximation::Kronecker(_) => {
                let (mut bytes, mut largest) = (d * 8, 0);
                for part in selection.parts() {
                    let factors = match weight_matrix(graph, part.parameter) {
                        Some((outputs, inputs, _)) => vec![outputs as u64, inputs as u64],
                        None if part.length <= 1024 => vec![part.length as u64],
                        None => vec![],
                    };
                    for size in factors {
                        // Sum, eigenvectors, basis.
                        bytes = bytes.saturating_add(dense(size));
                        largest = largest.max(size);
                        flops += n * (size * size) as f64 + 20.0 * (size as f64).powi(3);
                    }
                }
                // What the eigendecomposition of one factor works in.
                (bytes.saturating_add(square(largest) * 3), 0)
            }
            Approximation::LowRank { rank, iterations, .. } => {
                let columns = (*rank as u64 + 10).min(d.max(1));
                flops += n * graph.flops() as f64 * 4.0 * columns as f64 * (*iterations as f64 + 1.0);
                let rows =
                    (crate::observations::batch_size(network, columns as usize) as u64).min(examples as u64);
                // Tangents before and after each operation.
                let tangents = rows.saturating_mul(graph.activations() as u64 * columns * 2 * number);
                (d.saturating_mul(columns).saturating_mul(8 * 3 + 2 * number), tangents)
            }
            Approximation::FunctionSpace { points } => {
                let rows = points.unwrap_or(examples).min(examples) as u64 * c;
                flops += (rows as f64).powi(2) * d as f64 + (rows as f64).powi(3) * 2.0;
                (dense(rows), square(rows))
            }
        };
        let sums = curvature_bytes / 3;
        let workers = crate::accumulate::workers(sums.try_into().unwrap_or(usize::MAX)) as u64;
        let at_once = (workers * batch).min(examples as u64);
        // Inputs as they were read and as they were gathered; trained weights, gradient and precisions as doubles.
        let inputs = at_once * graph.input_shape().iter().product::<usize>() as u64 * number * 2 + d * 8 * 6;
        let curvature_bytes = curvature_bytes.max(sums.saturating_mul(workers + 1));
        let activations = graph.activations() as u64 * number * at_once * (width as u64 + 1);
        Self {
            curvature: approximation.name().into(),
            weights: selection.len(),
            examples,
            outputs: c as usize,
            curvature_bytes,
            batch_bytes: activations.saturating_add(inputs).saturating_add(pieces),
            flops,
        }
    }

    /// Refuses what does not fit, with the way out.
    ///
    /// # Errors
    /// [`LaplaceError::Memory`].
    pub fn check(&self, options: &FitOptions) -> Result<(), LaplaceError> {
        if self.bytes() <= options.memory {
            return Ok(());
        }
        Err(LaplaceError::Memory {
            what: format!("the {} curvature of {} weights", self.curvature, self.weights),
            needed: self.bytes(),
            allowed: options.memory,
            remedy: "allow more memory, or choose another curvature: `kronecker` and `diagonal` need about as much as the network, \
                     `last-layer-kronecker` less"
                .into(),
        })
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} curvature of {} weights from {} examples: {} MB for curvature and factors, {} MB for batches, {:.1e} operations",
            self.curvature,
            self.weights,
            self.examples,
            self.curvature_bytes.div_ceil(1 << 20),
            self.batch_bytes.div_ceil(1 << 20),
            self.flops
        )
    }
}

impl Approximation {
    /// The form of its sums, if it is made of sums.
    pub fn form(&self) -> Option<Form> {
        match self {
            Self::Full => Some(Form::Full),
            Self::Block => Some(Form::Block),
            Self::Diagonal => Some(Form::Diagonal),
            Self::Kronecker(_) => Some(Form::Kronecker),
            Self::LowRank { .. } | Self::FunctionSpace { .. } => None,
        }
    }
}
