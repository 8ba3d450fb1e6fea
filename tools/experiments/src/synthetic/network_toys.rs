//! The two problems in one dimension on which variational linearised Laplace was shown.

use super::toy::{ToyRegression, noisy};
use posterior_linalg::random::Streams;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// Standard deviation of the noise of [`clustered_toy`].
pub(crate) const CLUSTERED_NOISE: f64 = 0.05;

/// The intervals of [`clustered_toy`] and the number of inputs on each.
pub(crate) const CLUSTERS: [(f64, f64, usize); 3] = [(-7.2, -4.8, 115), (-1.2, 1.2, 136), (4.8, 7.2, 149)];

/// Smallest and largest value of the function of [`clustered_toy`] on its intervals: the published range of the noisy values,
/// -0.61 to 0.90, less two standard deviations of the noise at both ends.
const RANGE: (f64, f64) = (-0.51, 0.80);

/// Hidden units in each of the two layers of the random network.
const HIDDEN: usize = 10;

/// 400 inputs uniform on the intervals of [`CLUSTERS`], ordered by interval, and noisy values of a function given by a network of
/// two hidden layers of ten tanh units with random weights, shifted and scaled so that on the intervals it runs from -0.51 to
/// 0.80.
///
/// A surrogate for the clusters of Izmailov et al. 2019 with their intervals, counts, range and noise (standard deviation 0.05); the
/// published values themselves come with that paper's software. Each seed has a function of its own.
///
/// Source: P. Izmailov, W. Maddox, P. Kirichenko, T. Garipov, D. Vetrov, A. G. Wilson, "Subspace inference for Bayesian deep
/// learning", UAI 2019, section 5.1 (the problem).
pub(crate) fn clustered_toy(streams: Streams) -> ToyRegression {
    let network = RandomNetwork::draw(&mut streams.stream("data/clustered-toy/function"));
    // The range on a grid that is fine beside the network's features.
    let grid = CLUSTERS
        .iter()
        .flat_map(|(low, high, _)| (0..=400).map(move |i| low + (high - low) * f64::from(i) / 400.0));
    let (low, high) = grid
        .map(|x| network.value(x))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    // A network that is constant to rounding would have no range; then only the shift matters.
    let scale = (RANGE.1 - RANGE.0) / (high - low).max(1e-9);
    let mut rng = streams.stream("data/clustered-toy/inputs");
    let mut x = Vec::new();
    for (low, high, count) in CLUSTERS {
        x.extend((0..count).map(|_| low + (high - low) * rng.random::<f64>()));
    }
    let function: Vec<f64> = x.iter().map(|x| RANGE.0 + scale * (network.value(*x) - low)).collect();
    let y = noisy(&function, CLUSTERED_NOISE, streams, "data/clustered-toy/noise");
    ToyRegression { x, y, function, noise: CLUSTERED_NOISE }
}

/// Standard deviation of the noise of [`sine_toy`].
pub(crate) const SINE_NOISE: f64 = 0.1;

/// [`sine_toy`] and its rows, counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SineToy {
    /// All 300 rows.
    pub(crate) data: ToyRegression,
    /// The 76 rows with inputs in (-1, -0.5) or (0.5, 1).
    pub(crate) train: Vec<usize>,
    /// The 74 rows with inputs in (-0.5, 0.5), between the training rows.
    pub(crate) validation: Vec<usize>,
    /// All rows.
    pub(crate) test: Vec<usize>,
}

/// `y = sin(4 x) + ε` at 300 equidistant inputs from -2 to 2, ε normal of standard deviation 0.1, with the rows for training,
/// validation (in the gap) and test.
///
/// The noise is that of the seed given here: the published data used NumPy's generator, whose numbers are not reproduced.
///
/// Source: the early-stopping problem of "Variational linearized Laplace approximation for Bayesian deep learning" (L. A. Ortega,
/// S. Rodríguez Santana, D. Hernández-Lobato, ICML 2024), figure 2.
pub(crate) fn sine_toy(streams: Streams) -> SineToy {
    let x: Vec<f64> = (0..300).map(|i| -2.0 + 4.0 * f64::from(i) / 299.0).collect();
    let function: Vec<f64> = x.iter().map(|x| (4.0 * x).sin()).collect();
    let y = noisy(&function, SINE_NOISE, streams, "data/sine-toy/noise");
    let rows = |chosen: &dyn Fn(f64) -> bool| (0..x.len()).filter(|&i| chosen(x[i].abs())).collect();
    SineToy {
        train: rows(&|size| size > 0.5 && size < 1.0),
        validation: rows(&|size| size < 0.5),
        test: rows(&|_| true),
        data: ToyRegression { x, y, function, noise: SINE_NOISE },
    }
}

/// `1 -> tanh -> tanh -> 1`.
struct RandomNetwork {
    first: [(f64, f64); HIDDEN],
    second: [[f64; HIDDEN]; HIDDEN],
    last: [f64; HIDDEN],
}

impl RandomNetwork {
    /// Biases of the first layer are wide, so that its steps spread over the three intervals; other weights have the variance
    /// that keeps the scale from layer to layer.
    fn draw(rng: &mut impl Rng) -> Self {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let unit = (HIDDEN as f64).sqrt().recip();
        Self {
            first: std::array::from_fn(|_| (normal(), 3.0 * normal())),
            second: std::array::from_fn(|_| std::array::from_fn(|_| 2.0 * unit * normal())),
            last: std::array::from_fn(|_| unit * normal()),
        }
    }

    fn value(&self, x: f64) -> f64 {
        let hidden = self.first.map(|(weight, bias)| (weight * x + bias).tanh());
        let unit =
            |weights: &[f64; HIDDEN]| weights.iter().zip(&hidden).map(|(w, h)| w * h).sum::<f64>().tanh();
        self.second.iter().zip(&self.last).map(|(weights, last)| last * unit(weights)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five standard errors of the variance of n normal numbers of variance 1.
    fn within(toy: &ToyRegression) -> bool {
        let n = toy.x.len() as f64;
        let square: f64 =
            toy.y.iter().zip(&toy.function).map(|(y, f)| ((y - f) / toy.noise).powi(2)).sum::<f64>() / n;
        (square - 1.0).abs() < 5.0 * (2.0 / n).sqrt()
    }

    #[test]
    fn clusters_have_their_counts_range_and_noise() {
        for seed in 0..50 {
            let toy = clustered_toy(Streams::new(seed));
            assert_eq!((toy.x.len(), toy.noise), (400, 0.05));
            for (low, high, count) in [(-7.2, -4.8, 115), (-1.2, 1.2, 136), (4.8, 7.2, 149)] {
                assert_eq!(toy.x.iter().filter(|x| (low..=high).contains(*x)).count(), count);
            }
            let low = toy.function.iter().fold(f64::INFINITY, |a, b| a.min(*b));
            let high = toy.function.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            // The inputs come near the places of the extremes, the grid comes nearer.
            assert!(low > -0.52 && high < 0.81 && high - low > 1.0, "{seed}: {low} {high}");
            assert!(within(&toy), "{seed}");
        }
        let (a, b) = (clustered_toy(Streams::new(0)), clustered_toy(Streams::new(1)));
        assert!(a == clustered_toy(Streams::new(0)) && a.function != b.function);
    }

    #[test]
    fn the_sine_has_the_published_rows() {
        let toy = sine_toy(Streams::new(0));
        assert_eq!(
            (toy.data.x.len(), toy.train.len(), toy.validation.len(), toy.test.len()),
            (300, 76, 74, 300)
        );
        assert_eq!((toy.data.x[0], toy.data.x[299]), (-2.0, 2.0));
        assert!(toy.train.iter().all(|i| !toy.validation.contains(i)));
        for (x, f) in toy.data.x.iter().zip(&toy.data.function) {
            // sin 4x = 4 sin x cos x cos 2x
            assert!((f - 4.0 * x.sin() * x.cos() * (2.0 * x).cos()).abs() < 1e-14);
        }
        assert!(within(&toy.data));
    }
}
