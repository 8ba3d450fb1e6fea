//! Energies of a batch with their slopes.

use super::FixedMeanError;
use posterior_likelihoods::{CorrelatedSlopes, Likelihood, Slopes, sampled_alpha_energy};
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use std::ops::Range;

/// Rows of one parallel piece.
const CHUNK: usize = 64;

/// Outputs of all rows up to which one thread computes their energies.
const ALONE: usize = 256;

/// Energies by Monte Carlo over the whole covariance of a row's outputs.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    /// Pairs of draws that mirror each other, of each row.
    pub pairs: usize,
    /// Where they come from: streams of the step.
    pub streams: Streams,
}

/// Latent Gaussians of a batch.
pub(super) struct Latents<'a> {
    /// r x C, row after row.
    pub(super) means: &'a [f64],
    /// `[r, C]` variances, or `[r, C, C]` with [`Draws`].
    pub(super) covariances: &'a [f64],
}

/// The sum of energies and its slopes, all times a scale.
pub(super) struct DataTerm {
    pub(super) value: f64,
    /// r x C, row after row.
    pub(super) means: Vec<f64>,
    /// As the covariances.
    pub(super) covariances: Vec<f64>,
    pub(super) parameters: Vec<f64>,
}

/// The energies of order α. Pieces are summed in their order, so that the result does not depend on the number of threads.
pub(super) fn data_term(
    likelihood: &dyn Likelihood,
    alpha: f64,
    draws: Option<Draws>,
    targets: &[f64],
    latents: &Latents<'_>,
    scale: f64,
) -> Result<DataTerm, FixedMeanError> {
    let (c, width, own) = (likelihood.outputs(), likelihood.target_width(), likelihood.values().len());
    let rows = latents.means.len() / c;
    let size = latents.covariances.len() / rows.max(1);
    let piece = |range: Range<usize>| -> Result<DataTerm, FixedMeanError> {
        let mut out = DataTerm {
            value: 0.0,
            means: vec![0.0; range.len() * c],
            covariances: vec![0.0; range.len() * size],
            parameters: vec![0.0; own],
        };
        for (k, i) in range.enumerate() {
            let y = &targets[i * width..(i + 1) * width];
            let mean = &latents.means[i * c..(i + 1) * c];
            let covariance = &latents.covariances[i * size..(i + 1) * size];
            let means = &mut out.means[k * c..(k + 1) * c];
            let covariances = &mut out.covariances[k * size..(k + 1) * size];
            out.value += match draws {
                Some(Draws { pairs, streams }) => {
                    let mut rng = streams.child("gp/fixed-mean-row", i as u64).stream("draws");
                    let slopes = CorrelatedSlopes { means, covariance: covariances };
                    sampled_alpha_energy(likelihood, alpha, y, (mean, covariance), pairs, &mut rng, slopes)?
                }
                None => {
                    let slopes = Slopes { means, variances: covariances, parameters: &mut out.parameters };
                    likelihood.alpha_energy(alpha, y, mean, covariance, slopes)
                }
            };
        }
        Ok(out)
    };
    let pieces: Vec<Range<usize>> = pieces(rows, CHUNK).collect();
    // Few rows of one output are done before another thread would have begun.
    let alone = draws.is_none() && latents.means.len() <= ALONE;
    let parts: Vec<Result<DataTerm, FixedMeanError>> = match alone {
        true => pieces.into_iter().map(piece).collect(),
        false => parallel::map(pieces.len(), 1, |i| piece(pieces[i].clone())),
    };
    let mut total = DataTerm {
        value: 0.0,
        means: Vec::with_capacity(rows * c),
        covariances: Vec::with_capacity(rows * size),
        parameters: vec![0.0; own],
    };
    for part in parts {
        let part = part?;
        total.value += scale * part.value;
        total.means.extend(part.means.iter().map(|s| scale * s));
        total.covariances.extend(part.covariances.iter().map(|s| scale * s));
        total.parameters.iter_mut().zip(part.parameters).for_each(|(t, p)| *t += scale * p);
    }
    Ok(total)
}
