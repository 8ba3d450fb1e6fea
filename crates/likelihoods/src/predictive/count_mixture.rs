//! **Counts whose log rate is Gaussian**: the distribution function and quantiles of the predictive mixture.

use super::log_integral::significant;
use crate::expectation::GaussLegendre;
use crate::special::normal_tail::log_distribution;
use crate::special::saddle_point::stirling_error;
use crate::special::softmax::log_sum_exp;
use std::f64::consts::PI;

/// A dispersion that stands for none: the Poisson distribution to rounding.
const POISSON: f64 = 1e200;
/// The largest whole number that is told apart from its neighbours.
const LAST: f64 = 9_007_199_254_740_992.0;
/// Intervals of the search for the part of an integrand that matters.
const INTERVALS: usize = 32;
/// Relative accuracy of a panel of the quadrature, how often it is halved at most, and how far below the largest (nats) it is taken as it is.
const ACCURACY: f64 = 1e-8;
const HALVINGS: usize = 6;
const NEGLIGIBLE: f64 = 25.0;
/// Standard deviations of the log rate beyond which its distribution function is flat.
const FLAT: f64 = 7.0;

/// Negative binomial counts of dispersion r whose log mean is `f ~ N(m, v)`.
///
/// Given f, `P(Y <= y | f) = P(f < log(r T₁/T₂))` for independent `T₁ ~ Gamma(y + 1)` and `T₂ ~ Gamma(r)`, by the relation between the
/// negative binomial and the beta distribution. So the mixture has
///
/// `P(Y <= y) = ∫ p(t) Φ((t - m)/√v) dt`,
///
/// where p is the density of `log(r T₁/T₂)`. Its integrand is log-concave and bends at two known places, however large the counts, the
/// rates or the latent variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountMixture {
    log_mean: f64,
    deviation: f64,
    dispersion: f64,
}

impl CountMixture {
    /// From the mean and variance of the count, and the variance of its rate (`E[exp(f)]² (exp(v) - 1)`), as
    /// [`Likelihood::predictive_moments`](crate::Likelihood::predictive_moments) has them. None unless mean and variance are positive and
    /// all are finite.
    pub fn from_moments(mean: f64, variance: f64, rate_variance: f64) -> Option<Self> {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        if !(positive(mean) && positive(variance) && rate_variance.is_finite()) {
            return None;
        }
        let log_variance = (rate_variance.max(0.0) / mean / mean).ln_1p();
        // `exp(v)/r`, what Poisson counts of this rate do not explain.
        let excess = variance - mean - rate_variance.max(0.0);
        let dispersion = match excess > 1e-12 * variance {
            true => (log_variance + 2.0 * mean.ln() - excess.ln()).exp().clamp(1e-6, POISSON),
            false => POISSON,
        };
        Some(Self { log_mean: mean.ln() - 0.5 * log_variance, deviation: log_variance.sqrt(), dispersion })
    }

    /// `log P(Y <= y)` and `log P(Y > y)`, both without loss where they are small. Cost: some hundreds of densities.
    pub fn log_tails(&self, count: f64) -> (f64, f64) {
        if count < 0.0 {
            return (f64::NEG_INFINITY, 0.0);
        }
        let first = self.log_tail(count, 1.0);
        // The other is 1 less this, unless that has few digits.
        let other = |log: f64| (-log.exp()).ln_1p();
        match first {
            f if f < -1.0 => (f, other(f)),
            f if f < -1e-3 => (f, (-f.exp_m1()).ln()),
            _ => {
                let upper = self.log_tail(count, -1.0);
                (other(upper), upper)
            }
        }
    }

    /// One tail: `log ∫ p(t) Φ(side (t - m)/√v) dt`.
    fn log_tail(&self, count: f64, side: f64) -> f64 {
        let (a, r) = (count.floor() + 1.0, self.dispersion);
        // `log p` around its mode `t = log a`, in u = t - log a. By the smaller of both, so that little cancels.
        let constant = 0.5 * (2.0 * PI * (1.0 / a + 1.0 / r)).ln() + stirling_error(a) + stirling_error(r)
            - stirling_error(a + r);
        let (least, sign) = if a <= r { (a, 1.0) } else { (r, -1.0) };
        let share = least / (a + r);
        let density = |u: f64| {
            let x = sign * u;
            // Before the exponential overflows, `1 - share` has no part in the sum any more.
            let log = if x < 700.0 { (share * x.exp_m1()).ln_1p() } else { share.ln() + x };
            least * x - (a + r) * log - constant
        };
        let (middle, s) = (self.log_mean - a.ln(), self.deviation);
        let width = (1.0 / a + 1.0 / r).sqrt();
        let (mut low, mut high) =
            (middle.min(0.0) - 12.0 * width - 60.0 / a, middle.max(0.0) + 12.0 * width + 60.0 / r);
        if s <= 0.0 {
            // A step: the tail of p itself.
            (low, high) = if side > 0.0 { (middle, high) } else { (low, middle) };
        }
        let integrand =
            |u: f64| density(u) + if s > 0.0 { log_distribution(side * (u - middle) / s) } else { 0.0 };
        let (low, high) = match significant(low, high, INTERVALS, integrand) {
            Ok(range) => range,
            Err(peak) => return peak,
        };
        let mut ends = vec![low, high, 0.5 * (low + high), 0.0, middle, middle - FLAT * s, middle + FLAT * s];
        ends.retain(|end| (low..=high).contains(end));
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        let panels: Vec<(f64, [f64; 2])> =
            ends.windows(2).map(|pair| (panel(&integrand, [pair[0], pair[1]]), [pair[0], pair[1]])).collect();
        let least = panels.iter().map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max) - NEGLIGIBLE;
        let refined: Vec<f64> = panels
            .iter()
            .map(|(whole, ends)| refined(&integrand, *whole, *ends, (least, HALVINGS)))
            .collect();
        log_sum_exp(&refined).min(0.0)
    }

    /// How far out a count lies, one side negative and the other positive: the logarithm of twice the smaller tail, half of the count's
    /// own probability on either side (the mid-distribution). Grows with the count.
    pub fn score(&self, count: f64) -> f64 {
        let (last, own) = (self.log_tails(count - 1.0), self.log_tails(count));
        let (below, above) = (log_sum_exp(&[last.0, own.0]), log_sum_exp(&[last.1, own.1]));
        // Sums of two probabilities: twice the mean.
        if below < above { below } else { -above }
    }

    /// The largest count whose [`Self::score`] is at most this; -1 if none is.
    pub fn last_up_to(&self, score: f64) -> f64 {
        self.last_before(|count| {
            let above = self.score(count) - score;
            // Equal scores are at most this.
            if above == 0.0 { -f64::MIN_POSITIVE } else { above }
        })
    }

    /// The quantile at `level` in (0, 1): the smallest count with `P(Y <= y) >= level`.
    pub fn quantile(&self, level: f64) -> f64 {
        1.0 + self.last_before(|count| {
            let (below, above) = self.log_tails(count);
            if level < 0.5 { below - level.ln() } else { (-level).ln_1p() - above }
        })
    }

    /// The largest count at which an increasing function is below 0, or -1. Cost: about ten values of the function.
    fn last_before(&self, g: impl Fn(f64) -> f64) -> f64 {
        let at = |count: f64| (count, g(count));
        let mut low = at(0.0);
        if low.1 >= 0.0 {
            return -1.0;
        }
        // A bracket in `log(1 + y)`, from the median of the rate in strides that double.
        let (start, count) = (self.log_mean.exp().ln_1p(), |log: f64| log.exp_m1().floor().min(LAST));
        let scatter =
            self.deviation + (1.0 / self.dispersion).sqrt().min(3.0) + (-0.5 * self.log_mean).exp().min(1.0);
        let mut high = at(count(start) + 1.0);
        let mut stride = scatter;
        while high.1 < 0.0 {
            if high.0 >= LAST {
                return LAST;
            }
            (low, high) = (high, at(count(high.0.ln_1p() + stride).max(high.0 + 1.0)));
            stride *= 2.0;
        }
        stride = scatter;
        while low.0 == 0.0 && count(high.0.ln_1p() - stride) > 0.0 {
            let probe = at(count(high.0.ln_1p() - stride));
            if probe.1 < 0.0 { low = probe } else { (high, stride) = (probe, 2.0 * stride) }
        }
        // By turns where a line meets 0 and half way, both in `log(1 + y)`.
        let mut by_line = true;
        while high.0 - low.0 > 1.0 {
            let share = if by_line && (high.1 - low.1).is_finite() { low.1 / (low.1 - high.1) } else { 0.5 };
            let log = low.0.ln_1p() + share * (high.0.ln_1p() - low.0.ln_1p());
            let probe = at(count(log).clamp(low.0 + 1.0, high.0 - 1.0));
            by_line = !by_line;
            if probe.1 < 0.0 { low = probe } else { high = probe }
        }
        low.0
    }
}

/// `log ∫ exp(g)` over a panel by Gauss-Legendre quadrature.
fn panel(g: &impl Fn(f64) -> f64, [low, high]: [f64; 2]) -> f64 {
    let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
    let GaussLegendre { nodes, weights } = GaussLegendre::standard();
    let values = nodes.map(|node| g(centre + half * node));
    let peak = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if peak == f64::NEG_INFINITY {
        return peak;
    }
    let sum: f64 = values.iter().zip(weights).map(|(value, weight)| weight * (value - peak).exp()).sum();
    peak + (half * sum).ln()
}

/// The same, halved until both halves agree with the whole, unless all is below the `least` that matters.
fn refined(
    g: &impl Fn(f64) -> f64,
    whole: f64,
    [low, high]: [f64; 2],
    (least, halvings): (f64, usize),
) -> f64 {
    if whole < least || halvings == 0 {
        return whole;
    }
    let middle = 0.5 * (low + high);
    let halves = [[low, middle], [middle, high]];
    let each = halves.map(|ends| panel(g, ends));
    let sum = log_sum_exp(&each);
    if (sum - whole).abs() <= ACCURACY || sum.is_nan() {
        return sum;
    }
    log_sum_exp(&[0, 1].map(|k| refined(g, each[k], halves[k], (least, halvings - 1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Likelihood, NegativeBinomial, Poisson};
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, Normal};

    /// Counts of this mean, deviation of the log rate, and dispersion (none: Poisson), with their likelihood.
    fn of(
        mean: f64,
        deviation: f64,
        dispersion: Option<f64>,
    ) -> (CountMixture, Box<dyn Likelihood>, [f64; 2]) {
        let likelihood: Box<dyn Likelihood> = match dispersion {
            Some(r) => Box::new(NegativeBinomial::new(r).unwrap()),
            None => Box::new(Poisson::new(1).unwrap()),
        };
        let v = deviation * deviation;
        let m = mean.ln() - 0.5 * v;
        let (mut means, mut variances) = ([0.0], [0.0]);
        likelihood.predictive_moments(&[m], &[v], (&mut means, &mut variances));
        let rate_variance = v.exp_m1() * means[0] * means[0];
        (CountMixture::from_moments(means[0], variances[0], rate_variance).unwrap(), likelihood, [m, v])
    }

    const DISPERSIONS: [Option<f64>; 5] = [None, Some(0.05), Some(1.0), Some(20.0), Some(1e5)];

    #[test]
    fn tails_are_sums_of_probabilities() {
        for dispersion in DISPERSIONS {
            for (mean, deviation) in [
                (0.01, 0.0),
                (0.01, 5.0),
                (0.7, 0.3),
                (4.0, 0.0),
                (4.0, 1.5),
                (90.0, 1e-3),
                (90.0, 0.1),
                (400.0, 3.0),
            ] {
                let (own, likelihood, [m, v]) = of(mean, deviation, dispersion);
                let mut sum = 0.0;
                for count in 0..=150 {
                    sum += likelihood.log_predictive_density(&[f64::from(count)], &[m], &[v]).exp();
                    let (below, above) = own.log_tails(f64::from(count));
                    let at = format!("{dispersion:?} {mean} {deviation} {count}: {} for {sum}", below.exp());
                    assert!((below.exp() - sum).abs() < 1e-8 * sum, "{at}");
                    assert!((above.exp() + below.exp() - 1.0).abs() < 1e-12, "{at}");
                }
            }
        }
    }

    /// Far out on either side and for large counts, where differences of tails are single probabilities.
    #[test]
    fn far_tails_keep_their_digits() {
        for (mean, deviation, dispersion) in [
            (4.0, 0.0, None),
            (4.0, 0.5, Some(2.0)),
            (3900.0, 0.05, None),
            (3900.0, 4.0, Some(3.0)),
            (1e6, 5.0, Some(0.5)),
        ] {
            let (own, likelihood, [m, v]) = of(mean, deviation, dispersion);
            for count in [1.0, 3.0, 40.0, 3000.0, 5000.0] {
                let ((below, above), (last_below, last_above)) =
                    (own.log_tails(count), own.log_tails(count - 1.0));
                let found = match below < above {
                    true => below.exp() - last_below.exp(),
                    false => last_above.exp() - above.exp(),
                };
                let exact = likelihood.log_predictive_density(&[count], &[m], &[v]).exp();
                let tolerance = 1e-6 * exact + 1e-8 * below.min(above).exp();
                assert!(
                    (found - exact).abs() <= tolerance,
                    "{mean} {deviation} {count}: {found} for {exact}"
                );
            }
        }
    }

    #[test]
    fn quantiles_are_the_first_counts_that_reach_their_level() {
        for dispersion in DISPERSIONS {
            for mean in [0.01, 1.0, 60.0, 3900.0, 1e6] {
                for deviation in [0.0, 1e-4, 0.3, 2.0, 5.0] {
                    let (own, ..) = of(mean, deviation, dispersion);
                    for level in [0.025, 0.3, 0.5, 0.95] {
                        let q = own.quantile(level);
                        let at = |count: f64| own.log_tails(count).0.exp();
                        let told = format!("{dispersion:?} {mean} {deviation} {level}: {q}");
                        assert!(q >= 0.0 && q.fract() == 0.0, "{told}");
                        assert!(at(q) > level - 1e-9 && at(q - 1.0) < level + 1e-9, "{told}");
                    }
                }
            }
        }
        // A mean of 3,900 that is due to rare and large rates, and one that is not.
        let [far, near] = [4.0, 0.5].map(|deviation| of(3900.0, deviation, Some(3.0)).0);
        assert_eq!([far.quantile(0.05), far.quantile(0.5)], [0.0, 1.0]);
        assert!(near.quantile(0.05) > 700.0);
    }

    #[test]
    #[ignore = "slow"]
    fn quantiles_against_a_million_draws() {
        let mut random = Streams::new(1).stream("counts");
        for dispersion in [None, Some(0.3), Some(10.0)] {
            for mean in [0.01, 3.0, 3900.0, 1e6] {
                for deviation in [0.0, 0.5, 2.5, 5.0] {
                    let (own, likelihood, [m, v]) = of(mean, deviation, dispersion);
                    let rates = Normal::new(m, v.sqrt()).unwrap();
                    let mut draws: Vec<f64> = (0..1_000_000)
                        .map(|_| {
                            let mut y = [0.0];
                            likelihood.sample(&[rates.sample(&mut random)], &mut random, &mut y);
                            y[0]
                        })
                        .collect();
                    draws.sort_by(f64::total_cmp);
                    let share = |count: f64| draws.partition_point(|y| *y <= count) as f64 / 1e6;
                    for level in [0.05, 0.25, 0.5, 0.95, 0.995] {
                        let q = own.quantile(level);
                        // Ten deviations of a share of so many draws are 0.005.
                        assert!(
                            share(q - 1.0) < level + 0.005 && share(q) > level - 0.005,
                            "{dispersion:?} {mean} {deviation} {level}: {q}, shares {} and {}",
                            share(q - 1.0),
                            share(q)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn scores_grow_and_are_turned_round() {
        for (mean, deviation, dispersion) in [
            (1e-6, 0.0, None),
            (0.3, 1.0, Some(2.0)),
            (4.0, 0.0, None),
            (90.0, 0.5, Some(4.0)),
            (5e3, 0.01, None),
            (1e6, 3.0, Some(1.0)),
        ] {
            let (own, ..) = of(mean, deviation, dispersion);
            let scatter = mean.sqrt() + mean * (deviation + dispersion.map_or(0.0, |r| 1.0 / r.sqrt()));
            let mut counts: Vec<f64> =
                (0..40).map(|k| (mean + (f64::from(k) - 8.0) * scatter).floor().max(0.0)).collect();
            counts.dedup();
            let scores: Vec<f64> = counts.iter().map(|count| own.score(*count)).collect();
            assert!(
                scores.iter().all(|s| s.is_finite()) && scores.is_sorted_by(|a, b| a < b),
                "{mean}: {scores:?}"
            );
            for (count, score) in counts.iter().zip(&scores) {
                assert_eq!(own.last_up_to(*score), *count, "{mean} {deviation}");
            }
            assert_eq!(own.last_up_to(-f64::MAX), -1.0);
        }
        assert!(CountMixture::from_moments(0.0, 1.0, 0.0).is_none());
        assert!(CountMixture::from_moments(1.0, f64::INFINITY, 0.0).is_none());
    }
}
