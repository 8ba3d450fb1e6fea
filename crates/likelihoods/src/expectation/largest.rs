//! **Which of several independent Gaussians is the largest**, with slopes.
//!
//! For `f_l ~ N(m_l, s_l²)` the largest is `f_j` with probability
//!
//! ```text
//! S_j = ∫ N(x; m_j, s_j²) ∏_(l ≠ j) Φ((x - m_l) / s_l) dx
//! ```
//!
//! (spec `generalised_variational_inference`, section 2.3, in x instead of the nodes of one class). The spec takes a Gauss-Hermite rule for each class, whose nodes lie as widely as that class scatters: where another scatters far less, its Φ is a step between two nodes,
//! and no fixed number of them is enough. Here all classes share Gauss-Legendre panels that are as long as the narrowest class that still bends there allows. They begin where the largest value can begin, at the highest of all lower ends
//! `m_l - 8.3 s_l`: there every class that matters bends already, so that classes only drop out from there on, panels only grow longer, and places are counted from there without losing the digits of a narrow class beside a wide one.
//!
//! Slopes in means are `-T_jl` and, of class j itself, `Σ_l T_jl`, with `T_jl = ∫ N_j N_l ∏_(k ≠ j, l) Φ_k dx`; those in variances half the second derivatives in means. Of the two forms of `∂T_jl/∂m`, directly and by parts, the one that divides by the larger
//! of both deviations is taken, so that nothing cancels where one of them is small; the limit at zero is among its values.

use super::gauss_legendre::{GaussLegendre, NODES};
use crate::special::normal_tail::distribution;
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Deviations beyond which a Gaussian counts as nothing: Φ(-8.3) is 5e-17.
const REACH: f64 = 8.3;
/// What Φ is at least, `Φ(-REACH)`: rounding leaves zeros, by which nothing should be divided.
const LEAST_DISTRIBUTION: f64 = 5e-17;
/// Where all values may be below with no more than this probability nothing has begun.
const NOTHING: f64 = 1e-18;
/// Variances below this count as none: squares of inverse deviations stay numbers.
const LEAST_VARIANCE: f64 = 1e-150;

/// Length of a panel in deviations of the narrowest of so many classes. The largest of `n` equal Gaussians scatters about `1 / √(2 log n)` times as widely as each; with these lengths the relative error of their shares is below 1e-14 for ten classes and 1e-11 for ten thousand.
fn panel_length(classes: usize) -> f64 {
    (3.6 / (classes as f64).log2().sqrt()).min(3.0)
}

/// The Gaussians that can be the largest.
struct Contest {
    /// Those with a variance.
    members: Vec<usize>,
    /// `(x₀ - m) / s` of each at the beginning of the panels, x₀.
    offsets: Vec<f64>,
    deviations: Vec<f64>,
    /// Those without one that share the largest of their values: it is x₀, below which nothing is the largest. Empty where others are larger for certain.
    certain: Vec<usize>,
}

/// Nodes of one panel and what the members are there, class after class.
struct Panel {
    weights: [f64; NODES],
    /// `(x - m) / s`.
    standard: Vec<[f64; NODES]>,
    /// `Φ` of it.
    distribution: Vec<[f64; NODES]>,
    /// `N(x; m, s²) / Φ`, the slope of `log Φ` in x.
    ratio: Vec<[f64; NODES]>,
    /// Sums of the ratios of later members.
    behind: Vec<[f64; NODES]>,
}

impl Contest {
    /// None when a number is not finite.
    fn new(mean: &[f64], variance: &[f64]) -> Option<Self> {
        if mean.is_empty() || !mean.iter().chain(variance).all(|v| v.is_finite()) {
            return None;
        }
        let deviation = |l: usize| if variance[l] < LEAST_VARIANCE { 0.0 } else { variance[l].sqrt() };
        let lower_end = |l: usize| mean[l] - REACH * deviation(l);
        let first = (1..mean.len()).fold(0, |best, l| if lower_end(l) > lower_end(best) { l } else { best });
        let below = REACH * deviation(first);
        let mut contest =
            Self { members: Vec::new(), offsets: Vec::new(), deviations: Vec::new(), certain: Vec::new() };
        for (l, &m) in mean.iter().enumerate() {
            let (own, from) = (deviation(l), (mean[first] - m) - below);
            if own > 0.0 && from / own < REACH {
                contest.members.push(l);
                // At least that but for rounding, which a narrow class should not wait for.
                contest.offsets.push((from / own).max(-REACH));
                contest.deviations.push(own);
            } else if own == 0.0 && below == 0.0 && m == mean[first] {
                contest.certain.push(l);
            }
        }
        Some(contest)
    }

    /// Visits the panels, to the upper end of one member or of all.
    fn visit(&self, until: Option<usize>, mut each: impl FnMut(&mut Panel)) {
        let mut panel = Panel::of(self.members.len());
        let (mut place, mut begun) = (0.0, false);
        loop {
            let bends = |k: usize| self.offsets[k] + place / self.deviations[k] < REACH;
            let (mut count, mut narrowest) = (0, f64::INFINITY);
            for k in (0..self.members.len()).filter(|&k| bends(k)) {
                count += 1;
                narrowest = narrowest.min(self.deviations[k]);
            }
            if count == 0 || until.is_some_and(|k| !bends(k)) {
                return;
            }
            let length = narrowest * panel_length(count);
            // The probability that all are below only grows: panels are passed over at the beginning alone.
            begun = begun || self.all_below(place + length) > NOTHING;
            if begun {
                let rule = GaussLegendre::standard();
                panel.weights = rule.weights.map(|w| 0.5 * length * w);
                panel.at(self, rule.nodes.map(|x| place + 0.5 * length * (1.0 + x)));
                each(&mut panel);
            }
            place += length;
        }
    }

    /// The probability that all members are below a place.
    fn all_below(&self, place: f64) -> f64 {
        let each = self.offsets.iter().zip(&self.deviations);
        each.map(|(offset, deviation)| distribution(offset + place / deviation)).product()
    }

    /// The beginning as a panel whose first node alone has a weight, 1.
    fn beginning(&self) -> Panel {
        let mut panel = Panel::of(self.members.len());
        panel.weights[0] = 1.0;
        panel.at(self, [0.0; NODES]);
        panel
    }
}

impl Panel {
    fn of(members: usize) -> Self {
        let zeros = || vec![[0.0; NODES]; members];
        Self {
            weights: [0.0; NODES],
            standard: zeros(),
            distribution: zeros(),
            ratio: zeros(),
            behind: zeros(),
        }
    }

    /// Moves the nodes to so far from the beginning.
    fn at(&mut self, contest: &Contest, places: [f64; NODES]) {
        let Self { standard, distribution, ratio, .. } = self;
        dispatch(
            #[inline(always)]
            || {
                for (k, z) in standard.iter_mut().enumerate() {
                    let (offset, inverse) = (contest.offsets[k], 1.0 / contest.deviations[k]);
                    for n in 0..NODES {
                        // Far above its reach a class is below for certain; so far that squares stay numbers.
                        z[n] = (offset + places[n] * inverse).min(40.0);
                    }
                }
                let standard = standard.as_flattened();
                for (phi, &z) in distribution.as_flattened_mut().iter_mut().zip(standard) {
                    *phi = (0.5 + 0.5 * Real::erf(FRAC_1_SQRT_2 * z)).max(LEAST_DISTRIBUTION);
                }
                for (ratio, &z) in ratio.as_flattened_mut().iter_mut().zip(standard) {
                    *ratio = Real::exp(-0.5 * z * z);
                }
                for (k, (ratio, phi)) in ratio.iter_mut().zip(distribution).enumerate() {
                    let scale = 1.0 / ((2.0 * PI).sqrt() * contest.deviations[k]);
                    for n in 0..NODES {
                        ratio[n] *= scale / phi[n];
                    }
                }
            },
        );
    }

    /// The weights times the probability that all but one member are below.
    #[inline(always)]
    fn others(&self, but: Option<usize>) -> [f64; NODES] {
        let mut product = self.weights;
        for (_, phi) in self.distribution.iter().enumerate().filter(|&(k, _)| Some(k) != but) {
            for n in 0..NODES {
                product[n] *= phi[n];
            }
        }
        product
    }

    /// Leaves the sums of the ratios of all members behind each, but one; returns those of all. Not all less one: a narrow class would take the digits of the others.
    #[inline(always)]
    fn sum_ratios(&mut self, but: Option<usize>) -> [f64; NODES] {
        let mut sum = [0.0; NODES];
        for k in (0..self.ratio.len()).rev() {
            self.behind[k] = sum;
            if Some(k) != but {
                for n in 0..NODES {
                    sum[n] += self.ratio[k][n];
                }
            }
        }
        sum
    }
}

/// Writes `S_j` of all classes; their sum is 1 to 1e-12 (tests: for variances in any ratio from 1 to 1e18, and none). NaN when an argument is not finite. A variance below zero, as rounding makes it, counts as zero;
/// of several classes without a variance that share the largest mean each has an equal part.
///
/// Cost O(C): some 100 nodes of two classes and 150 of a hundred, up to twice as many where deviations differ by a factor of 30, each with one error function, one exponential and a division a class, some 8 ns with AVX-512 (2.5 µs for two classes, 10 µs for ten).
pub(crate) fn largest_probabilities(mean: &[f64], variance: &[f64], out: &mut [f64]) {
    assert!(mean.len() == variance.len() && mean.len() == out.len(), "one number for each class");
    let Some(contest) = Contest::new(mean, variance) else { return out.fill(f64::NAN) };
    let mut sums = vec![[0.0; NODES]; contest.members.len()];
    contest.visit(None, |panel| {
        dispatch(
            #[inline(always)]
            || {
                let all = panel.others(None);
                for (sum, ratio) in sums.iter_mut().zip(&panel.ratio) {
                    for n in 0..NODES {
                        sum[n] += all[n] * ratio[n];
                    }
                }
            },
        );
    });
    out.fill(0.0);
    contest.members.iter().zip(&sums).for_each(|(&l, sum)| out[l] = sum.iter().sum());
    let below = contest.beginning().others(None)[0];
    contest.certain.iter().for_each(|&l| out[l] = below / contest.certain.len() as f64);
}

/// `S_j` of one class, as [`largest_probabilities`] has it, with its slopes in means and variances, which are written (C numbers each). Slopes of classes without a variance are their limits, and zero where these are infinite: between
/// classes without one that share the largest mean.
pub(crate) fn largest_probability(
    class: usize,
    (mean, variance): (&[f64], &[f64]),
    (means, variances): (&mut [f64], &mut [f64]),
) -> f64 {
    let lengths = [variance.len(), means.len(), variances.len()];
    assert!(class < mean.len() && lengths.iter().all(|n| *n == mean.len()), "one number for each class");
    means.fill(0.0);
    variances.fill(0.0);
    let Some(contest) = Contest::new(mean, variance) else {
        means.iter_mut().chain(variances).for_each(|s| *s = f64::NAN);
        return f64::NAN;
    };
    let own = contest.members.iter().position(|&l| l == class);
    let (mut sums, shares) = (Sums::new(own, contest.members.len()), contest.certain.len() as f64);
    if own.is_some() {
        contest.visit(own, |panel| sums.add(&contest, panel, 1.0, false));
    } else if contest.certain.contains(&class) {
        sums.add(&contest, &mut contest.beginning(), 1.0 / shares, false);
    } else {
        return 0.0;
    }
    if let (Some(own), false) = (own, contest.certain.is_empty()) {
        let mut panel = contest.beginning();
        sums.add(&contest, &mut panel, 1.0, true);
        // What stands there is as another class whose Gaussian is that one node.
        let (others, slope) = (panel.others(Some(own)), panel.sum_ratios(Some(own)));
        let density = others[0] * panel.ratio[own][0] * panel.distribution[own][0];
        let own_slope = panel.standard[own][0] / contest.deviations[own];
        for &l in &contest.certain {
            means[l] = -density / shares;
            variances[l] = -0.5 * density * (slope[0] - own_slope) / shares;
        }
        means[class] = density;
        variances[class] = 0.5 * density * own_slope;
    }
    let total = |lanes: &[f64; NODES]| lanes.iter().sum::<f64>();
    for (k, &l) in contest.members.iter().enumerate().filter(|&(k, _)| Some(k) != own) {
        (means[l], variances[l]) = (-total(&sums.toward[k]), -0.5 * total(&sums.bend[k]));
    }
    means[class] += total(&sums.own_toward);
    variances[class] += 0.5 * total(&sums.own_bend);
    total(&sums.value)
}

/// What is summed over panels for one class, node by node, so that sums are as wide as vectors.
struct Sums {
    /// Its place among the members; none for a class without a variance, whose Gaussian is the node itself.
    own: Option<usize>,
    value: [f64; NODES],
    /// `T` with each member, and their sum.
    toward: Vec<[f64; NODES]>,
    own_toward: [f64; NODES],
    /// `∂T/∂m` in the mean of each member, and the sum of those in its own mean.
    bend: Vec<[f64; NODES]>,
    own_bend: [f64; NODES],
}

impl Sums {
    fn new(own: Option<usize>, members: usize) -> Self {
        let (zero, zeros) = ([0.0; NODES], || vec![[0.0; NODES]; members]);
        Self { own, value: zero, toward: zeros(), own_toward: zero, bend: zeros(), own_bend: zero }
    }

    /// Adds a panel, times a factor; of a `step`, at which all members begin to count, only what a form by parts has beside its integral.
    fn add(&mut self, contest: &Contest, panel: &mut Panel, factor: f64, step: bool) {
        dispatch(
            #[inline(always)]
            || {
                let mut terms = panel.others(self.own);
                panel.sum_ratios(self.own);
                let (mut own_slope, mut own_deviation) = ([0.0; NODES], 0.0);
                if let Some(own) = self.own {
                    own_deviation = contest.deviations[own];
                    for n in 0..NODES {
                        terms[n] *= panel.ratio[own][n] * panel.distribution[own][n];
                        own_slope[n] = panel.standard[own][n] / own_deviation;
                    }
                }
                let counted = if step { 0.0 } else { 1.0 };
                let [mut before, mut own_toward, mut own_bend] = [[0.0; NODES]; 3];
                for n in 0..NODES {
                    terms[n] *= factor;
                    self.value[n] += counted * terms[n];
                }
                for k in (0..panel.ratio.len()).filter(|&k| Some(k) != self.own) {
                    let (ratio, standard, behind) = (&panel.ratio[k], &panel.standard[k], &panel.behind[k]);
                    let (toward, bend) = (&mut self.toward[k], &mut self.bend[k]);
                    let inverse = 1.0 / contest.deviations[k];
                    // Of the two Gaussians the wider one's logarithm is differentiated.
                    let wider = contest.deviations[k] >= own_deviation;
                    for n in 0..NODES {
                        let both = terms[n] * ratio[n];
                        let slope = if wider { standard[n] * inverse } else { own_slope[n] };
                        let direct = counted * both * slope;
                        let partial = both * if step { 1.0 } else { before[n] + behind[n] - slope };
                        before[n] += ratio[n];
                        toward[n] += counted * both;
                        own_toward[n] += counted * both;
                        bend[n] += if wider { direct } else { partial };
                        own_bend[n] += if wider { partial } else { direct };
                    }
                }
                for n in 0..NODES {
                    self.own_toward[n] += own_toward[n];
                    self.own_bend[n] += own_bend[n];
                }
            },
        );
    }
}
