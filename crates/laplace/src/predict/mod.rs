//! **Latent predictions** `f(x) ~ N(g(x), J(x) H^-1 J(x)^T)` (thesis eq. 3.39): the mean is the network itself, the covariance comes from the posterior's blocks, each in the
//! form that costs least.
//!
//! | block | what is done for each example |
//! |---|---|
//! | Kronecker or diagonal, fully connected | inputs and sensitivities are rotated; `V = sum_i delta'_i delta'_i^T (sum_j var_ij a'_j^2)`: no gradient is formed |
//! | Kronecker or diagonal, convolution | inputs and sensitivities are rotated, then one small gradient for each output |
//! | dense, low rank | rows of the Jacobian are whitened, a few examples at a time |
//! | output layer alone | features only (`head`) |
//!
//! A [`Predictor`] holds several posteriors that differ in prior and noise only: everything but the last step is shared between them, so that trying twenty priors on
//! validation data costs little more than trying one.

mod head;
mod outer;
mod prepared;

pub use prepared::Predictor;

use crate::LaplaceError;
use crate::accumulate::rows::{block_selection, gradients};
use faer::{Mat, MatRef};
use posterior_networks::{Array, Network, Outputs, Precision, Selection, Tap};
use posterior_tangent::{batch_size, doubles};
use prepared::PreparedBlock;

/// Which entries of a latent covariance are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Variances only: memory `C` for each example.
    Diagonal,
    /// All of `[C, C]`.
    Full,
}

/// Gaussian latent outputs of some inputs, `C` for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// Number of outputs.
    pub outputs: usize,
    /// `[examples, C]`.
    pub mean: Vec<f64>,
    /// `[examples, C]` or `[examples, C, C]`.
    pub covariance: Vec<f64>,
    /// Which of the two.
    pub wanted: Wanted,
    /// Variances that rounding had made negative and that were taken as zero.
    pub clipped: usize,
}

impl Latent {
    /// Outputs without any variance.
    pub fn certain(outputs: usize, mean: Vec<f64>) -> Self {
        Self { outputs, covariance: vec![0.0; mean.len()], mean, wanted: Wanted::Diagonal, clipped: 0 }
    }

    /// Adds the products of `[examples, C]` numbers with each other to the covariances.
    pub(crate) fn add_squares(&mut self, numbers: &[f64]) {
        let (c, wanted) = (self.outputs, self.wanted);
        for (own, place) in
            numbers.chunks_exact(c).zip(self.covariance.chunks_exact_mut(Self::size(c, wanted)))
        {
            match wanted {
                Wanted::Diagonal => place.iter_mut().zip(own).for_each(|(v, d)| *v += d * d),
                Wanted::Full => place.iter_mut().enumerate().for_each(|(k, v)| *v += own[k / c] * own[k % c]),
            }
        }
    }

    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.mean.len() / self.outputs.max(1)
    }

    /// Numbers of covariance for each example.
    pub(crate) fn size(outputs: usize, wanted: Wanted) -> usize {
        if wanted == Wanted::Full { outputs * outputs } else { outputs }
    }

    /// Mean and covariance of one example, as likelihoods take them.
    pub fn example(&self, i: usize) -> posterior_likelihoods::LatentGaussian<'_> {
        let (c, size) = (self.outputs, Self::size(self.outputs, self.wanted));
        let own = &self.covariance[i * size..(i + 1) * size];
        posterior_likelihoods::LatentGaussian {
            mean: &self.mean[i * c..(i + 1) * c],
            covariance: match self.wanted {
                Wanted::Full => posterior_likelihoods::Covariance::Full(own),
                Wanted::Diagonal => posterior_likelihoods::Covariance::Diagonal(own),
            },
        }
    }

    /// The variances of one example.
    pub fn variances(&self, i: usize) -> impl Iterator<Item = f64> + '_ {
        let step = if self.wanted == Wanted::Full { self.outputs + 1 } else { 1 };
        let size = Self::size(self.outputs, self.wanted);
        self.covariance[i * size..(i + 1) * size].iter().step_by(step).copied()
    }
}

/// Adds `rows rows^T` of each example's `C` rows (or its diagonal) to the covariances.
pub(crate) fn add_inner_products(rows: MatRef<'_, f64>, outputs: usize, wanted: Wanted, out: &mut [f64]) {
    let size = Latent::size(outputs, wanted);
    for (n, place) in out.chunks_exact_mut(size).enumerate() {
        let own = rows.subrows(n * outputs, outputs);
        match wanted {
            Wanted::Diagonal => {
                (0..outputs).for_each(|c| place[c] += own.row(c).squared_norm_l2());
            }
            Wanted::Full => {
                let product = own * own.transpose();
                (0..outputs * outputs).for_each(|k| place[k] += product[(k / outputs, k % outputs)]);
            }
        }
    }
}

/// Rows as a matrix of doubles.
pub(crate) fn matrix<T: Precision>(rows: &Array<T>) -> Mat<f64> {
    let columns = rows.row_len();
    Mat::from_fn(rows.rows(), columns, |i, j| rows.values()[i * columns + j].to_f64())
}

impl<T: Precision> Predictor<T> {
    /// The latent predictions of inputs `[examples, ...]` under each posterior.
    ///
    /// Memory: the activations and sensitivities of a batch of examples, and the result.
    ///
    /// # Errors
    /// When inputs do not fit the network or are not finite.
    pub fn latent(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
    ) -> Result<Vec<Latent>, LaplaceError> {
        let outputs = network.graph().output_shape().iter().product();
        let mut all: Vec<Latent> = (0..self.count())
            .map(|_| Latent { outputs, mean: Vec::new(), covariance: Vec::new(), wanted, clipped: 0 })
            .collect();
        let width = if self.head().is_some() { 1 } else { outputs };
        for range in posterior_linalg::tiles::pieces(x.rows(), batch_size(network, width)) {
            let (mean, covariances) = self.batch(network, x.slice_rows(range), wanted)?;
            for (latent, covariance) in all.iter_mut().zip(covariances) {
                latent.mean.extend_from_slice(&mean);
                latent.covariance.extend(covariance);
            }
        }
        Ok(all)
    }

    /// One batch: outputs and, for each posterior, covariances.
    fn batch(
        &self,
        network: &Network<T>,
        x: Array<T>,
        wanted: Wanted,
    ) -> Result<(Vec<f64>, Vec<Vec<f64>>), LaplaceError> {
        let trace = network.trace(x)?;
        let mean = doubles(trace.output().values());
        let outputs = trace.output().row_len();
        let size = Latent::size(outputs, wanted);
        let mut covariances = vec![vec![0.0; trace.rows() * size]; self.count()];
        if let Some(head) = self.head() {
            let u = head.values(&trace);
            self.add_head(head, u, wanted, &mut covariances);
            return Ok((mean, covariances));
        }
        let cotangents = identity(trace.rows(), network.graph().output_shape());
        let uses = |parameter: usize| {
            network.graph().nodes().iter().flat_map(|n| &n.parameters).filter(|p| **p == parameter).count()
        };
        if self.blocks().iter().any(|b| !matches!(b, PreparedBlock::Rows { .. })) {
            let mut shared: std::collections::BTreeMap<usize, Array<T>> = Default::default();
            for (_, parameter, tap) in trace.taps(self.tapped(), &cotangents)? {
                match tap {
                    Tap::Outer { inputs, sensitivities, transposed } if uses(parameter) == 1 => {
                        self.add_outer(
                            parameter,
                            inputs,
                            sensitivities,
                            transposed,
                            wanted,
                            &mut covariances,
                        );
                    }
                    tap => match shared.entry(parameter) {
                        std::collections::btree_map::Entry::Vacant(place) => {
                            place.insert(gradients(tap));
                        }
                        std::collections::btree_map::Entry::Occupied(mut place) => {
                            let rows = gradients(tap);
                            let sum = place.get_mut().values_mut();
                            sum.iter_mut().zip(rows.values()).for_each(|(s, g)| *s += *g);
                        }
                    },
                }
            }
            for (parameter, rows) in shared {
                self.add_vector(parameter, matrix(&rows).as_ref(), outputs, wanted, &mut covariances);
            }
        }
        for block in self.blocks() {
            let PreparedBlock::Rows { selection, posteriors } = block else { continue };
            let x = trace.input();
            network.jacobian_pieces(x, selection, &Outputs::All, |range, rows| {
                let rows = matrix(rows);
                for (posterior, out) in posteriors.iter().zip(&mut covariances) {
                    let white = posterior.whiten(rows.as_ref());
                    add_inner_products(
                        white.as_ref(),
                        outputs,
                        wanted,
                        &mut out[range.start * size..range.end * size],
                    );
                }
            })?;
        }
        Ok((mean, covariances))
    }

    /// Joint covariance `[examples * C, examples * C]` of all outputs of all inputs under each posterior: made only on request, since it grows with the square of the inputs.
    ///
    /// # Errors
    /// When it would pass `memory` bytes, or as [`Self::latent`].
    pub fn joint(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        memory: u64,
    ) -> Result<Vec<Mat<f64>>, LaplaceError> {
        let outputs: usize = network.graph().output_shape().iter().product();
        let rows = (x.rows() * outputs) as u64;
        let needed = rows * rows * 8 * self.count() as u64 + rows * self.selection().len() as u64 * 16;
        if needed > memory {
            return Err(LaplaceError::Memory {
                what: format!("the joint covariance of {} inputs", x.rows()),
                needed,
                allowed: memory,
                remedy: "ask for fewer inputs at a time, or draw function samples instead".into(),
            });
        }
        let rows = x.rows() * outputs;
        let mut sums = vec![Mat::zeros(rows, rows); self.count()];
        for (range, posteriors) in self.conditioned() {
            let selection = block_selection(network, self.selection(), range);
            let jacobian = matrix(&network.jacobian(x, &selection, &Outputs::All, memory)?);
            for (block, sum) in posteriors.iter().zip(&mut sums) {
                let white = block.whiten(jacobian.as_ref());
                *sum += &white * white.transpose();
            }
        }
        Ok(sums)
    }
}

/// `J(x) d` for a direction of the weights, `[examples, C]`.
///
/// # Errors
/// When inputs do not fit the network.
pub(crate) fn displaced<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    x: &Array<T>,
    direction: &[T],
) -> Result<Vec<f64>, LaplaceError> {
    let direction = Array::new(vec![1, direction.len()], direction.to_vec());
    let mut out = Vec::new();
    for range in posterior_linalg::tiles::pieces(x.rows(), batch_size(network, 2)) {
        let moved = network.trace(x.slice_rows(range))?.jvp(selection, &direction)?;
        out.extend(moved.values().iter().map(|v| v.to_f64()));
    }
    Ok(out)
}

/// The identity as cotangents of each example.
fn identity<T: Precision>(examples: usize, shape: &[usize]) -> Array<T> {
    let outputs: usize = shape.iter().product();
    let mut full = vec![examples * outputs];
    full.extend_from_slice(shape);
    let mut out = Array::zeros(full);
    out.values_mut().chunks_exact_mut(outputs).enumerate().for_each(|(r, row)| row[r % outputs] = T::ONE);
    out
}
