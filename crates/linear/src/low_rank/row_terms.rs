//! What a likelihood says of rows whose latent values are Gaussian: a power of it, row by row, with the slopes in latent means and variances.
//!
//! The power α of the likelihood under the latent Gaussian is `(1/α) log E[p(yᵢ | f)^α]`: its limit α = 0 is the expected log density of a bound on the evidence, α = 1 the log predictive density of each row.

use super::ObservedRows;
use faer::Mat;
use posterior_likelihoods::{Likelihood, Slopes};
use posterior_linalg::parallel;
use posterior_linalg::tiles::pieces;
use std::ops::Range;

/// Rows of one parallel piece.
pub(super) const CHUNK: usize = 64;

/// The sum over some rows, with its slopes.
#[derive(Clone, Debug, PartialEq)]
pub struct RowTerms {
    /// The sum.
    pub value: f64,
    /// In the latent means, b x C.
    pub means: Mat<f64>,
    /// In the latent variances, b x C.
    pub variances: Mat<f64>,
    /// In the likelihood's own parameters.
    pub parameters: Vec<f64>,
}

/// What a piece of the rows says: slopes row after row.
pub(super) struct Piece {
    pub(super) value: f64,
    pub(super) means: Vec<f64>,
    pub(super) variances: Vec<f64>,
    pub(super) parameters: Vec<f64>,
}

impl RowTerms {
    /// The terms of rows with independent latent values `N(means, variances)` (b x C each), offsets of rows aside, for a power α in [0, 1] of the likelihood. Cost that of the likelihood for each row; the bits do not depend on
    /// the number of threads.
    pub fn of(
        likelihood: &dyn Likelihood,
        power: f64,
        rows: &ObservedRows<'_>,
        (latent_means, latent_variances): (&Mat<f64>, &Mat<f64>),
    ) -> Self {
        let (b, latents) = latent_means.shape();
        let (ranges, parts) = row_pieces(likelihood, power, rows, &|i, mean, variance| {
            for c in 0..latents {
                (mean[c], variance[c]) = (latent_means[(i, c)], latent_variances[(i, c)]);
            }
        });
        let mut out = Self {
            value: 0.0,
            means: Mat::zeros(b, latents),
            variances: Mat::zeros(b, latents),
            parameters: vec![0.0; likelihood.values().len()],
        };
        // Pieces are summed in their order, so that the result does not depend on the number of threads.
        for (rows, part) in ranges.into_iter().zip(parts) {
            out.value += part.value;
            out.parameters.iter_mut().zip(part.parameters).for_each(|(t, p)| *t += p);
            for (k, i) in rows.enumerate() {
                for c in 0..latents {
                    out.means[(i, c)] = part.means[k * latents + c];
                    out.variances[(i, c)] = part.variances[k * latents + c];
                }
            }
        }
        out
    }
}

/// Writes the latent means and variances of a row (C each).
pub(super) type LatentOf<'a> = dyn Fn(usize, &mut [f64], &mut [f64]) + Sync + 'a;

/// The term of each row with its slopes, piece by piece.
pub(super) fn row_pieces(
    likelihood: &dyn Likelihood,
    power: f64,
    rows: &ObservedRows<'_>,
    latent: &LatentOf<'_>,
) -> (Vec<Range<usize>>, Vec<Piece>) {
    let (latents, width) = (likelihood.outputs(), rows.targets.ncols());
    let own = likelihood.values().len();
    let ranges: Vec<_> = pieces(rows.targets.nrows(), CHUNK).collect();
    let piece = |range: &Range<usize>| {
        let (mut y, mut mean, mut variance) = (vec![0.0; width], vec![0.0; latents], vec![0.0; latents]);
        let (mut value, mut parameters) = (0.0, vec![0.0; own]);
        let mut of_row = vec![0.0; own];
        let mut means = vec![0.0; range.len() * latents];
        let mut variances = vec![0.0; range.len() * latents];
        for (k, i) in range.clone().enumerate() {
            y.iter_mut().enumerate().for_each(|(j, y)| *y = rows.targets[(i, j)]);
            latent(i, &mut mean, &mut variance);
            let offset = rows.offsets.map_or(0.0, |offsets| offsets[i]);
            mean.iter_mut().for_each(|mean| *mean += offset);
            let row = k * latents..(k + 1) * latents;
            let noisier = rows.noise.and_then(|noise| likelihood.with_row_noise(noise[i]));
            let likelihood: &dyn Likelihood = noisier.as_deref().unwrap_or(likelihood);
            of_row.fill(0.0);
            let (of_means, of_variances) = (&mut means[row.clone()], &mut variances[row.clone()]);
            let slopes = Slopes { means: of_means, variances: of_variances, parameters: &mut of_row };
            let weight = rows.weights.map_or(1.0, |weights| weights[i]);
            let (term, factor) = if power == 0.0 {
                (likelihood.expected_log_density(&y, &mean, &variance, slopes), weight)
            } else {
                // An energy is the negative term.
                (-likelihood.alpha_energy(power, &y, &mean, &variance, slopes), -weight)
            };
            value += weight * term;
            if factor != 1.0 {
                let scaled = means[row.clone()].iter_mut().chain(&mut variances[row]);
                scaled.for_each(|slope| *slope *= factor);
            }
            parameters.iter_mut().zip(&of_row).for_each(|(sum, own)| *sum += factor * own);
        }
        Piece { value, means, variances, parameters }
    };
    let parts = parallel::map(ranges.len(), 1, |i| piece(&ranges[i]));
    (ranges, parts)
}
