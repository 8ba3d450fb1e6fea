//! **Noise learned on the way.** A first fit to few rows counts as noise what its inducing points could not say. Every row of a stream is predicted before it is learned, so that the rows say themselves how far they scatter: the product of these
//! predictive densities is the evidence, and the noise variance that is taken is the one at which it is largest,
//!
//! ```text
//! L(v) = sum_n w_n log N(y_n - mu_n; 0, s_n + v)        mu_n, s_n: latent mean and variance before row n was learned
//! ```
//!
//! on a grid of candidates between the fit's floor and four times the target's variance at the fit. Weights fall by a factor e in 10,000 rows, so that a world that moves is followed and no sum grows without end; the fit's own noise counts as 50 rows.
//! A residual beyond five of the present standard deviations counts as five: no single row moves the noise far, and noise with heavy tails ends at the scatter of most rows.
//!
//! Under another noise all rows so far are weighed anew, exactly: their sums are `sum_n a_n a_n^T / v` and `sum_n a_n t_n / v`. Variance that the inducing points leave unexplained is part of `s_n` and not of the noise.
//!
//! Source: Dawid, *Present position and potential developments: some personal views: statistical theory: the prequential approach*, 1984.

use super::model::StreamModel;
use crate::ModelError;
use faer::{Mat, MatRef};
use posterior_gp::inducing::InducingPosterior;
use posterior_likelihoods::Gaussian;
use posterior_notes::fixes::STREAM_NOISE_FIXED;
use posterior_store::{StoreError, Tensors};

/// Candidates, with equal ratios between them.
const CANDIDATES: usize = 64;

/// Rows after which one counts a factor e less.
const MEMORY: f64 = 10_000.0;

/// Rows that the fit's own noise counts as.
const START_ROWS: f64 = 50.0;

/// Standard deviations beyond which a residual counts as if it were there.
const FAR: f64 = 5.0;

/// The largest noise in squared units of the fit, in which the target's variance is 1.
const LARGEST: f64 = 4.0;

/// The least noise, where the fit's floor is lower.
const LEAST: f64 = 1e-6;

/// A noise variance on its way, in squared units of the fit.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedNoise {
    /// That of the fit.
    start: f64,
    /// The one that is taken now.
    variance: f64,
    /// Least and largest candidate.
    range: [f64; 2],
    /// The evidence at each candidate, up to a constant.
    log_evidence: Vec<f64>,
    /// Rows that it was learned from.
    rows: u64,
    /// Rows beyond five standard deviations.
    far: u64,
}

impl LearnedNoise {
    /// From the noise of a fit and its floor.
    pub(crate) fn new(start: f64, floor: f64) -> Self {
        let range = [LEAST.max(2.0 * floor).min(start), LARGEST.max(start)];
        let mut out = Self { start, variance: start, range, log_evidence: Vec::new(), rows: 0, far: 0 };
        let prior = |v: f64| -0.5 * START_ROWS * (v.ln() + start / v);
        out.log_evidence = (0..CANDIDATES).map(|j| prior(out.candidate(j))).collect();
        out
    }

    fn candidate(&self, j: usize) -> f64 {
        let [least, largest] = self.range;
        least * (largest / least).powf(j as f64 / (CANDIDATES - 1) as f64)
    }

    /// The noise variance of the fit.
    pub fn start(&self) -> f64 {
        self.start
    }

    /// The noise variance that is taken.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Rows that it was learned from.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them were beyond five standard deviations and counted as five.
    pub fn far(&self) -> u64 {
        self.far
    }

    /// Adds rows that were predicted before they were learned: residuals and latent variances, in the units of the fit; then takes the best candidate, refined by a parabola through its neighbours.
    pub(crate) fn learn(&mut self, rows: impl Iterator<Item = (f64, f64)>) {
        let candidates: Vec<f64> = (0..CANDIDATES).map(|j| self.candidate(j)).collect();
        let keep = (-1.0 / MEMORY).exp();
        for (residual, latent) in rows {
            let latent = latent.max(0.0);
            let farthest = FAR * FAR * (latent + self.variance);
            let square = residual * residual;
            self.far += u64::from(square > farthest);
            let square = square.min(farthest);
            for (sum, noise) in self.log_evidence.iter_mut().zip(&candidates) {
                let variance = latent + noise;
                *sum = keep * *sum - 0.5 * (variance.ln() + square / variance);
            }
            self.rows += 1;
        }
        let l = &self.log_evidence;
        let best = (0..CANDIDATES).max_by(|a, b| l[*a].total_cmp(&l[*b])).unwrap_or(0);
        let mut at = best as f64;
        if best > 0 && best + 1 < CANDIDATES {
            let bend = l[best - 1] - 2.0 * l[best] + l[best + 1];
            if bend < 0.0 {
                at += (0.5 * (l[best - 1] - l[best + 1]) / bend).clamp(-0.5, 0.5);
            }
        }
        let [least, largest] = self.range;
        self.variance = least * (largest / least).powf(at / (CANDIDATES - 1) as f64);
    }

    /// Puts it among the arrays of a state.
    pub(crate) fn add_to(&self, tensors: &mut Tensors) {
        let mut values = vec![self.start, self.variance, self.range[0], self.range[1]];
        values.extend([self.rows as f64, self.far as f64]);
        values.extend(&self.log_evidence);
        tensors.insert_vector(NOISE, &values);
    }

    /// From what [`Self::add_to`] gave; None where noise is not learned.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub(crate) fn taken_from(tensors: &mut Tensors) -> Result<Option<Self>, StoreError> {
        let Some(values) = tensors.optional_vector(NOISE, 6 + CANDIDATES)? else { return Ok(None) };
        let (head, log_evidence) = values.split_at(6);
        let [start, variance, least, largest, rows, far] = [0, 1, 2, 3, 4, 5].map(|i| head[i]);
        let ordered = 0.0 < least && least <= start && start <= largest && largest.is_finite();
        let whole = |v: f64| (0.0..9e15).contains(&v);
        if !ordered || !(least..=largest).contains(&variance) || !whole(rows) || !whole(far) {
            return Err(tensors.corrupt("its learned noise is none"));
        }
        let (rows, far) = (rows as u64, far as u64);
        let log_evidence = log_evidence.to_vec();
        Ok(Some(Self { start, variance, range: [least, largest], log_evidence, rows, far }))
    }
}

const NOISE: &str = "learned_noise";

impl StreamModel {
    /// Whether there is a noise that rows could teach: that of numbers with Gaussian noise, unless the table says what it is.
    pub fn has_noise_to_learn(&self) -> bool {
        let process = self.model().process();
        process.is_some_and(|own| own.output.gaussian().is_some() && own.inputs.schema.noise.is_none())
    }

    /// Whether the noise is learned from here on, or stays what it is now.
    ///
    /// # Errors
    /// [`ModelError::Request`] for labels, which have no noise of their own, and for a table that says the noise of each row.
    pub fn learn_noise(&mut self, learned: bool) -> Result<(), ModelError> {
        if !learned {
            self.noise = None;
            return Ok(());
        }
        let process = self.process()?;
        let Some(floor) = process.output.gaussian().and(process.record.noise_floor) else {
            return Err(ModelError::Request(
                "the noise of a stream is learned where numbers are observed with Gaussian noise: leave out --noise"
                    .into(),
            ));
        };
        if process.inputs.schema.noise.is_some() {
            return Err(ModelError::Request(format!(
                "this model is told the noise of each row, which is not learned: leave out --noise, or take {STREAM_NOISE_FIXED}"
            )));
        }
        let start = process.predictor.noise_variance();
        let start = start.ok_or_else(|| ModelError::Request("this process has no Gaussian noise".into()))?;
        if self.noise.is_none() {
            self.noise = Some(LearnedNoise::new(start, floor));
        }
        Ok(())
    }

    /// The noise that is learned, if it is.
    pub fn noise(&self) -> Option<&LearnedNoise> {
        self.noise.as_ref()
    }

    /// A standard deviation in the target's units of a variance in those of the fit.
    pub fn deviation_in_units(&self, variance: f64) -> f64 {
        let units = self.model().process().map(|own| own.inputs.standardisation.variance_back(variance));
        units.unwrap_or(variance).sqrt()
    }

    /// The noise after rows (b x D) with targets (b) that `posterior` has not learned, and by what the sums of all rows before are multiplied under it. None where it stays.
    pub(crate) fn noise_after(
        &self,
        posterior: &InducingPosterior,
        x: MatRef<'_, f64>,
        targets: &Mat<f64>,
    ) -> Result<Option<(LearnedNoise, f64)>, ModelError> {
        let Some(noise) = &self.noise else { return Ok(None) };
        let latent = posterior.latent(x)?;
        let mut new = noise.clone();
        let row = |i: usize| (targets[(i, 0)] - latent.mean[(i, 0)], latent.variance[(i, 0)]);
        new.learn((0..x.nrows()).map(row));
        let factor = noise.variance / new.variance;
        Ok(Some((new, factor)))
    }
}

/// The same process with this noise.
pub(crate) fn with_noise(
    posterior: &InducingPosterior,
    variance: f64,
    floor: f64,
) -> Result<InducingPosterior, ModelError> {
    Ok(posterior.with_likelihood(Box::new(Gaussian::new(variance, floor)))?)
}
