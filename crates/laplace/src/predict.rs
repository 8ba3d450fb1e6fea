//! **Latent predictions** of networks ([`posterior_linear::latent`]), batch by batch.

use crate::LaplaceError;
use crate::error::check_memory;
use faer::{Mat, MatRef};
use posterior_linalg::tiles::pieces;
use posterior_linear::FeatureMap;
use posterior_linear::latent::Posteriors;
use posterior_linear::structure::Conditioned;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_tangent::{Head, Tangent, batch_size, segments};
use std::ops::Deref;

pub use posterior_linear::latent::{Latent, Wanted};

/// What to do where a joint covariance passes the memory.
const OR_SAMPLES: &str = "ask for fewer inputs at a time, or draw function samples instead";

/// Refuses a joint covariance of so many numbers, made from rows of so many columns, that would pass `memory` bytes.
pub(crate) fn check_joint(
    inputs: usize,
    outputs: usize,
    columns: usize,
    memory: u64,
) -> Result<(), LaplaceError> {
    let rows = (inputs * outputs) as u64;
    let needed = rows.saturating_mul(rows).saturating_mul(8).saturating_add(rows * columns as u64 * 24);
    check_memory(needed, memory, format_args!("the joint covariance of {inputs} inputs"), OR_SAMPLES)
}

/// Posteriors over the selected weights of one network that share everything but prior and noise.
pub struct Predictor<T> {
    selection: Selection,
    posteriors: Posteriors<T>,
}

impl<T> Deref for Predictor<T> {
    type Target = Posteriors<T>;

    fn deref(&self) -> &Posteriors<T> {
        &self.posteriors
    }
}

impl<T: Precision> Predictor<T> {
    /// Prepares posteriors that were conditioned from one structure.
    ///
    /// # Errors
    /// When they are not of the selected weights.
    pub fn new(
        network: &Network<T>,
        selection: &Selection,
        posteriors: Vec<Conditioned>,
    ) -> Result<Self, LaplaceError> {
        let posteriors = Posteriors::new(&segments(network.graph(), selection), posteriors)?;
        Ok(Self { selection: selection.clone(), posteriors })
    }

    /// The weights.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The output layer, where these are posteriors of its weights that need nothing sent back.
    pub(crate) fn head(&self, network: &Network<T>) -> Option<Head> {
        Head::of(network.graph(), &self.selection).filter(|head| head.predicts(&self.posteriors))
    }

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
        let tangent = Tangent::new(network, &self.selection);
        let width = if self.head(network).is_some() { 1 } else { tangent.outputs() };
        latents(&tangent, &self.posteriors, (x, batch_size(network, width)), wanted)
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
        let tangent = Tangent::new(network, &self.selection);
        let rows = (x.rows() * tangent.outputs()) as u64;
        let needed = rows * rows * 8 * self.count() as u64 + rows * self.selection.len() as u64 * 16;
        check_memory(
            needed,
            memory,
            format_args!("the joint covariance of {} inputs", x.rows()),
            OR_SAMPLES,
        )?;
        Ok(self.posteriors.joint(&*tangent.at(x.clone())?)?)
    }
}

/// Latent predictions without any input yet.
pub(crate) fn no_inputs(outputs: usize, wanted: Wanted) -> Latent {
    Latent { outputs, mean: Vec::new(), covariance: Vec::new(), wanted, clipped: 0 }
}

/// The latent predictions of inputs, so many at a time, under each posterior of the weights of some features.
pub(crate) fn latents<T: Precision, F: FeatureMap<T, Inputs = Array<T>>>(
    map: &F,
    posteriors: &Posteriors<T>,
    (x, at_once): (&Array<T>, usize),
    wanted: Wanted,
) -> Result<Vec<Latent>, LaplaceError> {
    let mut all = vec![no_inputs(map.outputs(), wanted); posteriors.count()];
    for range in pieces(x.rows(), at_once) {
        let features = map.at(x.slice_rows(range))?;
        let covariances = posteriors.covariances(&*features, wanted)?;
        for (latent, covariance) in all.iter_mut().zip(covariances) {
            latent.mean.extend(features.outputs());
            latent.covariance.extend(covariance);
        }
    }
    Ok(all)
}

/// `J(x) d` for a direction of the weights, `[examples, C]`.
///
/// # Errors
/// When inputs do not fit the network.
#[inline(never)]
pub(crate) fn displaced<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    x: &Array<T>,
    direction: &[T],
) -> Result<Vec<f64>, LaplaceError> {
    let tangent = Tangent::new(network, selection);
    let direction = MatRef::from_column_major_slice(direction, direction.len(), 1);
    let mut out = Vec::new();
    for range in pieces(x.rows(), batch_size(network, 2)) {
        let moved = tangent.at(x.slice_rows(range))?.apply(direction)?;
        out.extend(moved.col(0).iter().map(|v| v.to_f64()));
    }
    Ok(out)
}

/// The mode minus the trained weights, where a fit counts it.
pub(crate) fn displacement<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    mode: &[f64],
    distance: Option<f64>,
) -> Option<Vec<T>> {
    distance?;
    let trained: Vec<f64> = selection.flatten(network.parameters()).iter().map(|v| v.to_f64()).collect();
    Some(between(&trained, mode))
}

/// From some weights to others, in the network's precision.
pub(crate) fn between<T: Precision>(from: &[f64], to: &[f64]) -> Vec<T> {
    to.iter().zip(from).map(|(w, v)| T::from_f64(w - v)).collect()
}
