//! **Divergences of function values, point by point**: `D[Q, P] = (1/n) Σ_i D₀[N(m_Q(x_i), r(x_i, x_i)), N(m_P(x_i), k(x_i, x_i))]`, projected regularisation.
//!
//! Nothing is asked of correlations, so that D may be zero for different processes; in exchange it costs O(1) a point, where the divergences of [whole batches](super::same_batch) cost O(n²) a point. Source: spec
//! `generalised_variational_inference`, section 11, with errata E16 to E19: the report's "Kullback-Leibler divergence of Q from P" is that of P from Q, and both are here; its Rényi divergence of order ½ is twice its Bhattacharyya
//! distance; its Hellinger distance is the squared one, `1 - exp(-B)`.

use super::formulas::{self, Point};
use super::{DivergenceError, text};
use posterior_linalg::vectorised::dispatch;
use serde::{Deserialize, Serialize};

/// From which of two distributions logarithms are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// `KL[P, Q] = E_P[log P/Q]`: the posterior covers what the prior deems possible. What the report prints (erratum E16).
    #[default]
    PriorToPosterior,
    /// `KL[Q, P] = E_Q[log Q/P]`: that of variational inference.
    PosteriorToPrior,
}

/// By what a posterior Q is kept near a prior P. In text and files: `kullback-leibler` (`=prior-to-posterior`, or `=posterior-to-prior`), `renyi=0.5`, `bhattacharyya`, `hellinger`, `wasserstein`, `squared-difference`,
/// `symmetric-kullback-leibler`.
///
/// All are zero where Q = P and positive elsewhere. Those that [are invariant](Self::is_invariant) do not change with the units of the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Divergence {
    /// Kullback and Leibler's.
    KullbackLeibler {
        /// From which of both.
        direction: Direction,
    },
    /// Rényi's of Q from P: `log E_P[(Q/P)^order] / (order - 1)`, which tends to KL[Q, P] as the order tends to 1. Above 1 it is infinite for variances of Q from [`Self::largest_variance`].
    Renyi {
        /// Positive, finite and not 1.
        order: f64,
    },
    /// `B = -log ∫ √(PQ)`, half of Rényi's of order ½.
    Bhattacharyya,
    /// The squared Hellinger distance `1 - ∫ √(PQ) = 1 - exp(-B)`: at most 1, so that its slopes vanish far from P.
    Hellinger,
    /// The squared 2-Wasserstein distance, in squared units of the target.
    Wasserstein,
    /// Squared differences of means and of variances; units are mixed.
    SquaredDifference,
    /// `√(KL[P, Q] + KL[Q, P])`, with a kink where Q = P.
    SymmetricKullbackLeibler,
}

/// A normal distribution of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    /// Its mean.
    pub mean: f64,
    /// Its variance.
    pub variance: f64,
}

/// Normal distributions of single numbers, one for each of n rows (and outputs: rows may be of any kind).
#[derive(Clone, Copy, Debug)]
pub struct Normals<'a> {
    /// Means (n).
    pub means: &'a [f64],
    /// Variances (n).
    pub variances: &'a [f64],
}

/// A divergence with its derivatives in the posterior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slopes {
    /// Its value, in nats where it is invariant.
    pub value: f64,
    /// In the posterior's mean.
    pub mean: f64,
    /// In the posterior's variance.
    pub variance: f64,
}

impl Divergence {
    /// Whether its order is one.
    ///
    /// # Errors
    /// [`DivergenceError::Order`] unless an order is positive, finite and not 1.
    pub fn check(&self) -> Result<(), DivergenceError> {
        match *self {
            Self::Renyi { order } if !(order.is_finite() && order > 0.0 && order != 1.0) => {
                let remedy = "give a positive number that is not 1, such as 0.5; at 1 it is kullback-leibler=posterior-to-prior";
                Err(DivergenceError::Order { what: "the Rényi divergence", value: order, remedy })
            }
            _ => Ok(()),
        }
    }

    /// Whether it stays the same when both distributions are carried along an invertible map, other units of the target among them. Only these, taken [between inducing values](Self::of_whitened), are divergences of processes that share
    /// their conditional given inducing values.
    pub fn is_invariant(&self) -> bool {
        !matches!(self, Self::Wasserstein | Self::SquaredDifference)
    }

    /// The variance of the posterior from which on the divergence from a prior of that variance is infinite: `order/(order - 1)` times it for Rényi's above order 1, else none, which is infinity.
    pub fn largest_variance(&self, prior: f64) -> f64 {
        match *self {
            Self::Renyi { order } if order > 1.0 => order / (order - 1.0) * prior,
            _ => f64::INFINITY,
        }
    }

    /// The divergence of two normals with its slopes in the posterior, to a few units in the last place, also where they almost agree and where an order is almost 1. Cost some 50 to 150 flops.
    ///
    /// | inputs | value | slopes |
    /// |---|---|---|
    /// | a variance that is negative, infinite or NaN; means that are not finite | NaN | NaN |
    /// | a variance below 2.2e-308, zero among them | the largest: 1 (Hellinger) or infinity | 0 |
    /// | the same for Wasserstein and squared difference | as ever | as ever; `-∞` (Wasserstein) at Q = 0 < P, where the derivative is |
    /// | Rényi from its largest variance; a value beyond 1.8e308 | infinity | 0 |
    ///
    /// A slope beyond the largest number is infinite. Whoever minimises takes no step to where the value is not finite: keep variances above a floor, and below [`Self::largest_variance`], or halve the step. The order is taken for [checked](Self::check).
    pub fn between(&self, prior: Normal, posterior: Normal) -> Slopes {
        let (delta, prior, posterior) = (posterior.mean - prior.mean, prior.variance, posterior.variance);
        let at = Point { delta, prior, posterior };
        self.with_formula(One(at))
    }

    /// The average of the divergences of n pairs of normals; slopes of the average are written, those in means to `means` and those in variances to `variances` (n each). Each row has the bits of [`Self::between`] times 1/n, and rows that are not finite are treated
    /// as there: one makes the average infinite or NaN, but not the slopes of others.
    ///
    /// Cost as there for each row, by vector code on one thread, without allocation; sums are in fixed groups. Measured on one core with vectors of 512 bits: 2 ns (squared difference) to 14 ns (Hellinger, symmetric) a row, 7 for Kullback-Leibler and 12 for Rényi, of which divisions and roots take most.
    ///
    /// # Errors
    /// Sizes that differ, no rows, an order that is none.
    pub fn mean_over(
        &self,
        prior: Normals<'_>,
        posterior: Normals<'_>,
        means: &mut [f64],
        variances: &mut [f64],
    ) -> Result<f64, DivergenceError> {
        self.check()?;
        let n = posterior.means.len();
        let sizes = [
            ("variances of the posterior", posterior.variances.len()),
            ("means of the prior", prior.means.len()),
            ("variances of the prior", prior.variances.len()),
            ("slopes in means", means.len()),
            ("slopes in variances", variances.len()),
        ];
        sizes.into_iter().try_for_each(|(what, size)| DivergenceError::same(what, n, size))?;
        if n == 0 {
            return Err(DivergenceError::Empty { what: "the batch" });
        }
        Ok(self.with_formula(Average { prior, posterior, means, variances }))
    }

    /// Does something with the formula of this divergence, which is a function of its own for each, so that no loop asks which it is.
    fn with_formula<W: Work>(&self, work: W) -> W::Output {
        // Closures, as functions that are handed over would be called from within loops.
        macro_rules! with {
            ($at:ident => $formula:expr) => {
                work.with(
                    #[inline(always)]
                    |$at| $formula,
                )
            };
        }
        match *self {
            Self::KullbackLeibler { direction: Direction::PriorToPosterior } => {
                with!(at => formulas::kullback_leibler(Direction::PriorToPosterior, at))
            }
            Self::KullbackLeibler { direction: Direction::PosteriorToPrior } => {
                with!(at => formulas::kullback_leibler(Direction::PosteriorToPrior, at))
            }
            Self::Renyi { order } => with!(at => formulas::renyi(order, at)),
            Self::Bhattacharyya => with!(at => formulas::bhattacharyya(at)),
            Self::Hellinger => with!(at => formulas::hellinger(at)),
            Self::Wasserstein => with!(at => formulas::wasserstein(at)),
            Self::SquaredDifference => with!(at => formulas::squared_difference(at)),
            Self::SymmetricKullbackLeibler => with!(at => formulas::symmetric_kullback_leibler(at)),
        }
    }
}

/// What is done with a formula.
trait Work {
    type Output;
    fn with(self, formula: impl Fn(Point) -> Slopes) -> Self::Output;
}

/// One point.
struct One(Point);

impl Work for One {
    type Output = Slopes;
    #[inline(always)]
    fn with(self, formula: impl Fn(Point) -> Slopes) -> Slopes {
        dispatch(
            #[inline(always)]
            || formula(self.0),
        )
    }
}

/// The average over rows.
struct Average<'a> {
    prior: Normals<'a>,
    posterior: Normals<'a>,
    means: &'a mut [f64],
    variances: &'a mut [f64],
}

/// Rows whose values are summed at one time.
const TILE: usize = 64;

/// Sums beside one another, as one would wait for each of its terms.
const LANES: usize = 8;

impl Work for Average<'_> {
    type Output = f64;
    #[inline(always)]
    fn with(self, formula: impl Fn(Point) -> Slopes) -> f64 {
        let Self { prior, posterior, means, variances } = self;
        let n = means.len();
        let share = 1.0 / n as f64;
        dispatch(
            #[inline(always)]
            || {
                let mut sums = [0.0; LANES];
                // Written here first: arrays of our own are not what is read, for all a compiler knows.
                let (mut values, mut in_means, mut in_variances) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
                for start in (0..n).step_by(TILE) {
                    let length = TILE.min(n - start);
                    let piece = |all: &'_ [f64]| -> [f64; TILE] {
                        let mut piece = [1.0; TILE];
                        piece[..length].copy_from_slice(&all[start..start + length]);
                        piece
                    };
                    let (mean_of_prior, of_prior) = (piece(prior.means), piece(prior.variances));
                    let (mean, of_posterior) = (piece(posterior.means), piece(posterior.variances));
                    for i in 0..TILE {
                        let delta = mean[i] - mean_of_prior[i];
                        let slopes = formula(Point { delta, prior: of_prior[i], posterior: of_posterior[i] });
                        values[i] = slopes.value;
                        in_means[i] = slopes.mean * share;
                        in_variances[i] = slopes.variance * share;
                    }
                    means[start..start + length].copy_from_slice(&in_means[..length]);
                    variances[start..start + length].copy_from_slice(&in_variances[..length]);
                    // Nothing after the last row.
                    values[length..].fill(0.0);
                    for group in values.chunks_exact(LANES) {
                        sums.iter_mut().zip(group).for_each(|(sum, value)| *sum += value);
                    }
                }
                sums.iter().sum::<f64>() * share
            },
        )
    }
}

impl std::fmt::Display for Divergence {
    /// As files have it.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text::write(self, out)
    }
}
