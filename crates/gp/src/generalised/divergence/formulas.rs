//! **The divergences of two normals on the line**, each a function of `Δ = μ_q - μ_p` and the variances P and Q with its slopes, without branches.
//!
//! With `x = (P - Q)/Q`, `y = (Q - P)/P`, the mean variance `m = (P + Q)/2`, `H = αP + (1-α)Q`, and `p(x) = x - log(1 + x)`, which is exact to the last digits near 0:
//!
//! ```text
//!                     value                                 in μ_q      in Q
//! KL[P, Q]            ½ (p(x) + Δ²/Q)                       Δ/Q         -½ (x/Q + Δ²/Q²)
//! KL[Q, P]            ½ (p(y) + Δ²/P)                       Δ/P         ½ y/Q
//! Rényi               ½ (p(y) - p((1-α)y)/(1-α) + αΔ²/H)    αΔ/H        ½ α ((Q - P)/(QH) - (1-α)Δ²/H²)
//! Bhattacharyya B     ½ log(m/√(PQ)) + Δ²/(8m)              Δ/(4m)      ((Q - P)/(mQ) - ½ Δ²/m²)/8
//! Hellinger           1 - exp(-B)                           exp(-B) times those of B
//! Wasserstein         Δ² + (√P - √Q)²                       2Δ          1 - √P/√Q
//! squared difference  Δ² + (P - Q)²                         2Δ          2(Q - P)
//! symmetric KL D      √(KL[P, Q] + KL[Q, P])                ½ Δ(1/P + 1/Q)/D
//!                                                           ¼ ((Q - P)(Q + P)/(PQ²) - Δ²/Q²)/D
//! ```
//!
//! All equal the formulas of spec `generalised_variational_inference`, section 11, term by term; differences of almost equal numbers are taken before anything is rounded. Squares of Δ are
//! taken after a division, so that neither tiny nor huge variances lose them. Divisions are what vector units do slowest (eight take sixteen cycles), so that inverses are shared.

use super::stable::{excess, gap, log_one_plus, one_minus_exp};
use super::{Direction, Slopes};
use posterior_linalg::Real;

/// A point of the table above: Δ, P and Q.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) delta: f64,
    pub(super) prior: f64,
    pub(super) posterior: f64,
}

impl Point {
    /// Whether these are two normals; a variance of zero is a normal, too.
    #[inline(always)]
    fn is_valid(self) -> bool {
        let is_variance = |v: f64| (v >= 0.0) & v.is_finite();
        self.delta.is_finite() & is_variance(self.prior) & is_variance(self.posterior)
    }

    /// The logarithm of the other variance over that whose inverse is given, also where the ratio itself over- or underflows.
    #[inline(always)]
    fn log_ratio(self, inverse: f64) -> f64 {
        2.0 * Real::ln(self.prior.sqrt() * self.posterior.sqrt() * inverse)
    }

    /// Whether both have densities, as far as numbers with all their digits reach.
    #[inline(always)]
    fn has_densities(self) -> bool {
        self.prior.min(self.posterior) >= f64::MIN_POSITIVE
    }

    /// What is said of it: NaN where there are no normals; without densities the value is at the `ceiling`, unless there is none because none are needed; there, and where it is infinite, nothing is to be followed.
    #[inline(always)]
    fn settled(self, raw: Slopes, ceiling: Option<f64>) -> Slopes {
        let valid = self.is_valid();
        let value = match ceiling {
            Some(ceiling) if !self.has_densities() => ceiling,
            _ => raw.value,
        };
        let value = if valid { value } else { f64::NAN };
        let flat = (ceiling.is_some() & !self.has_densities()) | (value == f64::INFINITY);
        let slope = |slope: f64| {
            let slope = if flat { 0.0 } else { slope };
            if valid { slope } else { f64::NAN }
        };
        Slopes { value, mean: slope(raw.mean), variance: slope(raw.variance) }
    }
}

/// Kullback-Leibler.
#[inline(always)]
pub(super) fn kullback_leibler(direction: Direction, at: Point) -> Slopes {
    let Point { delta, prior, posterior } = at;
    let raw = match direction {
        Direction::PriorToPosterior => {
            let inverse = 1.0 / posterior;
            let (x, e) = ((prior - posterior) * inverse, delta * inverse);
            Slopes {
                value: 0.5 * (excess(x, at.log_ratio(inverse)) + delta * e),
                mean: e,
                variance: -0.5 * (x * inverse + e * e),
            }
        }
        Direction::PosteriorToPrior => {
            let inverse = 1.0 / prior;
            let (y, e) = ((posterior - prior) * inverse, delta * inverse);
            Slopes {
                value: 0.5 * (excess(y, at.log_ratio(inverse)) + delta * e),
                mean: e,
                variance: 0.5 * (y / posterior),
            }
        }
    };
    at.settled(raw, Some(f64::INFINITY))
}

/// Rényi of order α, of Q from P. Of the two ways to write it (the divergence of P from Q of order 1-α is `(1-α)/α` times it) that one is taken which weighs the difference of the variances with at most ½.
#[inline(always)]
pub(super) fn renyi(order: f64, at: Point) -> Slopes {
    let Point { delta, prior, posterior } = at;
    let rest = 1.0 - order;
    let from_prior = order > 0.5;
    let (base, other) = if from_prior { (prior, posterior) } else { (posterior, prior) };
    let (weight, factor) = if from_prior { (rest, 1.0) } else { (order, order / rest) };
    let inverse = 1.0 / base;
    // H; not positive outside the domain.
    let mixture = weight.mul_add(other - base, base);
    let of_mixture = 1.0 / mixture;
    let e = delta * of_mixture;
    let spread = factor * gap((other - base) * inverse, at.log_ratio(inverse), weight);
    let raw = Slopes {
        value: if mixture > 0.0 { 0.5 * (spread + order * (delta * e)) } else { f64::INFINITY },
        mean: order * e,
        variance: 0.5 * order * ((posterior - prior) * of_mixture / posterior - rest * (e * e)),
    };
    at.settled(raw, Some(f64::INFINITY))
}

/// The slopes of B as the table has them, wherever there are densities.
#[inline(always)]
fn affinity(at: Point) -> Slopes {
    let Point { delta, prior, posterior } = at;
    let (root_prior, root_posterior) = (prior.sqrt(), posterior.sqrt());
    let difference = (prior - posterior) / (root_prior + root_posterior);
    // m/√(PQ) - 1; as a product of two, neither of which over- or underflows.
    let spread = 0.5 * difference * (difference * (1.0 / (root_prior * root_posterior)));
    let inverse = 1.0 / (0.5 * prior + 0.5 * posterior);
    let e = delta * inverse;
    Slopes {
        value: 0.5 * log_one_plus(spread) + 0.125 * (delta * e),
        mean: 0.25 * e,
        variance: 0.125 * ((posterior - prior) * inverse / posterior - 0.5 * (e * e)),
    }
}

/// Bhattacharyya.
#[inline(always)]
pub(super) fn bhattacharyya(at: Point) -> Slopes {
    at.settled(affinity(at), Some(f64::INFINITY))
}

/// The squared Hellinger distance.
#[inline(always)]
pub(super) fn hellinger(at: Point) -> Slopes {
    let of = affinity(at);
    let value = one_minus_exp(of.value);
    let overlap = Real::exp(-of.value);
    // Where the overlap underflows, slopes of B may be infinite.
    let times = |slope: f64| if overlap > 0.0 { overlap * slope } else { 0.0 };
    at.settled(Slopes { value, mean: times(of.mean), variance: times(of.variance) }, Some(1.0))
}

/// The squared 2-Wasserstein distance.
#[inline(always)]
pub(super) fn wasserstein(at: Point) -> Slopes {
    let Point { delta, prior, posterior } = at;
    let (root_prior, root_posterior) = (prior.sqrt(), posterior.sqrt());
    let both = root_prior + root_posterior;
    let difference = if both > 0.0 { (prior - posterior) / both } else { 0.0 };
    // With a prior of no variance the distance is the posterior's variance, down to zero.
    let variance = if prior == 0.0 { 1.0 } else { -difference / root_posterior };
    let raw = Slopes { value: delta * delta + difference * difference, mean: 2.0 * delta, variance };
    at.settled(raw, None)
}

/// The squared differences of means and variances.
#[inline(always)]
pub(super) fn squared_difference(at: Point) -> Slopes {
    let Point { delta, prior, posterior } = at;
    let difference = posterior - prior;
    let raw = Slopes {
        value: delta * delta + difference * difference,
        mean: 2.0 * delta,
        variance: 2.0 * difference,
    };
    at.settled(raw, None)
}

/// The root of both Kullback-Leibler divergences; at its kink, where the normals agree, slopes are the subgradient 0.
#[inline(always)]
pub(super) fn symmetric_kullback_leibler(at: Point) -> Slopes {
    let Point { delta, prior, posterior } = at;
    let precisions = 1.0 / prior + 1.0 / posterior;
    // Twice the sum under the root is a² + b².
    let a = ((prior - posterior) / prior.sqrt() / posterior.sqrt()).abs();
    let b = delta.abs() * precisions.sqrt();
    let largest = a.max(b);
    let (a, b) = (a / largest, b / largest);
    let root = if largest < f64::INFINITY { largest * (a * a + b * b).sqrt() } else { largest };
    let e = delta / posterior;
    let of_sum = (posterior - prior) / prior * ((posterior + prior) / posterior) / posterior - e * e;
    let apart = largest > 0.0;
    let scale = std::f64::consts::FRAC_1_SQRT_2;
    let slope = |slope: f64| if apart { slope } else { 0.0 };
    let raw = Slopes {
        value: if apart { scale * root } else { 0.0 },
        mean: slope(scale * (delta * precisions) / root),
        variance: slope(0.5 * scale * of_sum / root),
    };
    at.settled(raw, Some(f64::INFINITY))
}
