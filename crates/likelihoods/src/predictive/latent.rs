//! A Gaussian over the latent values of one input, as a model hands it over.

use crate::LikelihoodError;

/// A covariance of C latent values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Covariance<'a> {
    /// C variances; correlations are zero or not known.
    Diagonal(&'a [f64]),
    /// C x C numbers, row-major and symmetric. May be singular.
    Full(&'a [f64]),
}

/// `f ~ N(mean, covariance)` at one input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatentGaussian<'a> {
    /// C means.
    pub mean: &'a [f64],
    /// Their covariance.
    pub covariance: Covariance<'a>,
}

/// How much of a covariance was below zero and taken as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clipping {
    /// How many variances or eigenvalues.
    pub count: usize,
    /// The most negative one, or zero.
    pub least: f64,
}

/// A negative variance or eigenvalue of more than this part of the largest one is an error, not rounding: single precision
/// in a network and a thousand outputs stay well below it.
const ROUNDING: f64 = 1e-4;

impl Clipping {
    /// Records `value` if it is negative.
    pub(crate) fn record(&mut self, value: f64) {
        if value < 0.0 {
            self.count += 1;
            self.least = self.least.min(value);
        }
    }

    /// Both together.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self { count: self.count + other.count, least: self.least.min(other.least) }
    }

    /// Itself, if rounding explains it beside the largest value.
    pub(crate) fn checked(self, largest: f64) -> Result<Self, LikelihoodError> {
        if self.least < -ROUNDING * largest.abs() {
            return Err(LikelihoodError::NotPositiveSemidefinite { least: self.least, largest });
        }
        Ok(self)
    }
}

impl Covariance<'_> {
    /// Entry (i, j) of a covariance of n values.
    pub(crate) fn entry(&self, i: usize, j: usize, n: usize) -> f64 {
        match self {
            Self::Diagonal(variances) if i == j => variances[i],
            Self::Diagonal(_) => 0.0,
            Self::Full(entries) => entries[i * n + j],
        }
    }

    /// The i-th variance, zero if rounding made it negative.
    pub(crate) fn variance(&self, i: usize, n: usize) -> f64 {
        self.entry(i, i, n).max(0.0)
    }

    /// Length and finiteness for n values.
    pub(crate) fn check(&self, n: usize) -> Result<(), LikelihoodError> {
        let (entries, needed, what, remedy) = match self {
            Self::Diagonal(v) => (v, n, "the list of latent variances", "give one variance for each output"),
            Self::Full(v) => {
                (v, n * n, "the latent covariance", "give outputs x outputs numbers, row after row")
            }
        };
        if entries.len() != needed {
            return Err(LikelihoodError::Length {
                owner: "given",
                what,
                needed,
                found: entries.len(),
                remedy,
            });
        }
        match entries.iter().position(|v| !v.is_finite()) {
            Some(position) => {
                Err(LikelihoodError::NotFinite { what: "covariance", position, value: entries[position] })
            }
            None => Ok(()),
        }
    }
}

impl LatentGaussian<'_> {
    /// Lengths, finiteness and variances that are not clearly negative, for n values.
    ///
    /// # Errors
    /// [`LikelihoodError::Length`], [`LikelihoodError::NotFinite`] or [`LikelihoodError::NotPositiveSemidefinite`].
    pub fn check(&self, n: usize) -> Result<Clipping, LikelihoodError> {
        if self.mean.len() != n {
            return Err(LikelihoodError::Length {
                owner: "given",
                what: "the latent mean",
                needed: n,
                found: self.mean.len(),
                remedy: "check that the model has as many outputs as the likelihood",
            });
        }
        if let Some(position) = self.mean.iter().position(|v| !v.is_finite()) {
            return Err(LikelihoodError::NotFinite { what: "mean", position, value: self.mean[position] });
        }
        self.covariance.check(n)?;
        let (mut clipping, mut largest) = (Clipping::default(), 0.0f64);
        for i in 0..n {
            clipping.record(self.covariance.entry(i, i, n));
            largest = largest.max(self.covariance.entry(i, i, n));
        }
        clipping.checked(largest)
    }
}
