//! **Random features**: finite maps φ whose inner products are a kernel on average, and functions drawn from its prior with them.
//!
//! By Bochner's theorem a stationary kernel is the mean of `cos ω·(x - z)` over its spectral law, so a few thousand cosines with random
//! frequencies make functions with that covariance; the Tanimoto kernel is the probability that two random hashes agree, so random
//! signs of hashes do. Such a function can be evaluated and differentiated anywhere, which draws through a factored
//! matrix cannot.
//!
//! | kernel | features |
//! |---|---|
//! | `se` | normal frequencies |
//! | `matern12`, `matern32`, `matern52` | multivariate t with 1, 3, 5 degrees of freedom: one χ² variable for all coordinates of a frequency |
//! | `rq` | normal with a gamma factor |
//! | products of these | sums of independent frequencies |
//! | `spectral_mixture` | normal frequencies around plus or minus those of each component |
//! | `additive` | frequencies on random sets of columns, each with its own law |
//! | `categorical` | itself: exact; times waves: waves whose amplitude and sign differ by category |
//! | `linear`, `constant` | themselves: exact |
//! | `tanimoto` | signs of consistent weighted samples |
//! | sums, multiples | one after another; times a root; products with sums are sums of products |
//!
//! **Widened laws.** Under a noise of a part ε of a smooth function's variance, the posterior's variance near data is that of frequencies whose mass is about ε: of a thousand that are drawn from the law itself none is among them, and samples are far too sure ([`FrequencyDraw::Widened`]). Half of the frequencies are
//! drawn from the law p, as many each from the law stretched by each of twelve factors `t_k` up to where hardly anything of p is left; a wave has the weight `p(ω) / Σ_k π_k t_k^{-D} p(ω / t_k)`, at most 2, with `π_k` the shares; a frequency of several independent blocks (a product's factors, an additive kernel's columns) is stretched in all of them or in one (importance sampling from a mixture, stratified: unbiased, and bounded by its first part; T. Hesterberg, "Weighted average importance sampling and defensive mixture distributions", Technometrics 1995).
//!
//! With d features and `V = (1 + k(2Δ))/2 - k(Δ)²`, amplitude 1, the variance of `φ(x)·φ(x + Δ)` is `(V + ½)/d` for [`FeatureForm::Phase`] and `2V/d` for
//! [`FeatureForm::Paired`], which is never more for these kernels.
//!
//! Sources: spec `stochastic_gaussian_processes`, sections 5 and 6; A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS
//! 2007; D. Sutherland, J. Schneider, "On the error of random Fourier features", UAI 2015.

mod categories;
mod draws;
mod frequencies;
mod groups;
mod halton;
mod law;
mod map;
mod recipe;
mod term;
mod turns;
mod waves;
mod widened;

pub use categories::CategoryFeatures;
pub use draws::PriorDraws;
pub use groups::PriorDrawGroups;
pub use halton::halton;
pub use law::SpectralLaw;
pub use map::RandomFeatures;
pub use recipe::{FeatureError, FeatureRecipe, Spectrum};

use serde::{Deserialize, Serialize};

/// How features are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureSettings {
    /// Features of each random term; an odd number is rounded up in the paired form. 2,000 unless set (spec, section 5).
    pub count: usize,
    /// Cosines with phases, or cosines and sines.
    pub form: FeatureForm,
    /// How frequencies are drawn.
    pub frequencies: FrequencyDraw,
}

impl Default for FeatureSettings {
    fn default() -> Self {
        Self { count: 2000, form: FeatureForm::Paired, frequencies: FrequencyDraw::Independent }
    }
}

/// The form of wave features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum FeatureForm {
    /// `√(2/d) cos(ω_l·x + τ_l)` with uniform phases: the form of the thesis.
    Phase,
    /// `√(2/d) cos(ω_l·x)` and `√(2/d) sin(ω_l·x)` with d/2 frequencies.
    #[default]
    Paired,
}

/// How the frequencies of waves are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum FrequencyDraw {
    /// Independently.
    #[default]
    Independent,
    /// In blocks of D orthogonal directions with independent lengths.
    Orthogonal,
    /// From a randomised Halton sequence. Best with few columns.
    QuasiRandom,
    /// Half of them independently, the others from wider and wider laws, weighted for what that is too often: where there is little noise, what data leave open are waves that are hardly ever drawn.
    Widened,
}

#[cfg(test)]
mod tests;
