//! A Gaussian process with Matérn-3/2 covariance, seen on two intervals.

use super::toy::{ToyRegression, noisy};
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::random::Streams;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// Lengthscale of the process of [`matern_toy`], in the units of its inputs before standardising.
pub(crate) const MATERN_LENGTHSCALE: f64 = 0.5;

/// Standard deviation of the noise of [`matern_toy`], before standardising.
pub(crate) const MATERN_NOISE: f64 = 0.15;

/// Inputs on each of the two intervals.
const PER_INTERVAL: usize = 200;

/// Added to the diagonal of the covariance before it is factored.
const NUGGET: f64 = 1e-8;

/// The toy problem of linearised Laplace: 200 inputs uniform on (-2, -1) and 200 on (0.5, 2.5); values of a Gaussian process of
/// mean 0, variance 1 and Matérn-3/2 covariance with lengthscale 0.5, plus normal noise of standard deviation 0.15. Both are
/// standardised if asked for, as in the source.
///
/// The process is drawn through the Cholesky factor of its 400 x 400 covariance, to which 1e-8 is added on the diagonal: inputs
/// that nearly coincide make it singular to rounding, and a deviation of 1e-4 vanishes in the noise. About 2·10⁷ operations.
///
/// Source: J. Antorán, J. Allingham, J. M. Hernández-Lobato, "Depth uncertainty in neural networks", NeurIPS 2020, "Matérn"
/// (the generator; its random numbers are not reproduced).
pub(crate) fn matern_toy(standardised: bool, streams: Streams) -> ToyRegression {
    let mut rng = streams.stream("data/matern-toy/inputs");
    let mut uniform = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    let mut x: Vec<f64> = (0..PER_INTERVAL).map(|_| uniform(-2.0, -1.0)).collect();
    x.extend((0..PER_INTERVAL).map(|_| uniform(0.5, 2.5)));
    let function = draw(&x, MATERN_LENGTHSCALE, &mut streams.stream("data/matern-toy/function"));
    let y = noisy(&function, MATERN_NOISE, streams, "data/matern-toy/noise");
    let toy = ToyRegression { x, y, function, noise: MATERN_NOISE };
    if standardised { toy.standardised() } else { toy }
}

/// `(1 + s) exp(-s)` with `s = √3 |a - b| / lengthscale`.
fn matern32(a: f64, b: f64, lengthscale: f64) -> f64 {
    let s = 3f64.sqrt() * (a - b).abs() / lengthscale;
    (1.0 + s) * (-s).exp()
}

fn covariance(x: &[f64], lengthscale: f64) -> Mat<f64> {
    Mat::from_fn(x.len(), x.len(), |i, j| {
        matern32(x[i], x[j], lengthscale) + if i == j { NUGGET } else { 0.0 }
    })
}

/// One draw of the process at the inputs.
fn draw(x: &[f64], lengthscale: f64, rng: &mut impl Rng) -> Vec<f64> {
    let white = Mat::from_fn(x.len(), 1, |_, _| StandardNormal.sample(rng));
    // Smallest eigenvalue 1e-8; rounding moves it by about n ε times the largest, 400 · 2e-16 · 400 = 4e-11.
    let factored = Cholesky::of(covariance(x, lengthscale).as_ref(), JitterPolicy::NONE)
        .expect("a covariance with its smallest eigenvalue well above rounding");
    factored.multiply_factor(white.as_ref()).col(0).iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covariance_is_the_integral_of_its_spectrum() {
        // S(ω) = 2 λ³ / (π (λ² + ω²)²) with λ = √3 / ℓ (Rasmussen and Williams 2006, equation 4.15, ν = 3/2, in angular
        // frequency), and k(r) = 2 ∫ S(ω) cos(ω r) dω over ω > 0, by the trapezoidal rule.
        let lengthscale = 0.5;
        let rate = 3f64.sqrt() / lengthscale;
        for r in [0.0, 0.1, 0.5, 1.3, 4.0] {
            let step = 0.02;
            let spectrum = |i: usize| {
                let omega = step * i as f64;
                let weight = if i == 0 { 0.5 } else { 1.0 };
                let density =
                    4.0 * rate.powi(3) / (std::f64::consts::PI * (rate.powi(2) + omega.powi(2)).powi(2));
                weight * density * (omega * r).cos()
            };
            let integral = (0..200_000).map(spectrum).sum::<f64>() * step;
            // Left out beyond ω = 4000: less than 4 λ³ / (3 π 4000³) < 1e-9.
            assert!((integral - matern32(0.3, 0.3 + r, lengthscale)).abs() < 1e-8, "{r} {integral}");
        }
    }

    #[test]
    fn draws_have_the_covariance() {
        let x = [-2.0, -1.9, -1.2, 0.5, 0.6, 2.4];
        let draws = 20_000;
        let mut rng = Streams::new(5).stream("test");
        let mut moments = vec![0.0; 36];
        for _ in 0..draws {
            let f = draw(&x, 0.5, &mut rng);
            (0..36).for_each(|k| moments[k] += f[k / 6] * f[k % 6] / draws as f64);
        }
        for k in 0..36 {
            let s = 3f64.sqrt() * (x[k / 6] - x[k % 6]).abs() / 0.5;
            let expected = (1.0 + s) * (-s).exp();
            // Var(f g) = 1 + k² for jointly normal f and g of variance 1; five standard errors.
            let tolerance = 5.0 * ((1.0 + expected * expected) / draws as f64).sqrt();
            assert!((moments[k] - expected).abs() < tolerance, "{k}: {} {expected}", moments[k]);
        }
    }

    #[test]
    fn the_toy_is_whitened_by_its_covariance_over_many_seeds() {
        // fᵀ K⁻¹ f is χ² with 400 degrees of freedom, so is the noise's square over its variance: every direction of the 400 has
        // the right variance, not only the large ones. And products at a distance agree with the kernel.
        let seeds = 40;
        let (mut whitened, mut noise) = (0.0, 0.0);
        let (mut product, mut variance) = (0.0, 0.0);
        for seed in 0..seeds {
            let toy = matern_toy(false, Streams::new(seed));
            assert!(toy.x[..200].iter().all(|x| (-2.0..-1.0).contains(x)));
            assert!(toy.x[200..].iter().all(|x| (0.5..2.5).contains(x)));
            let factored = Cholesky::of(covariance(&toy.x, 0.5).as_ref(), JitterPolicy::NONE).unwrap();
            let mut white = Mat::from_fn(400, 1, |i, _| toy.function[i]);
            factored.solve_factor_in_place(white.as_mut());
            whitened += white.col(0).iter().map(|v| v * v).sum::<f64>();
            noise += toy.y.iter().zip(&toy.function).map(|(y, f)| ((y - f) / 0.15).powi(2)).sum::<f64>();
            let k = matern32(toy.x[0], toy.x[1], 0.5);
            product += toy.function[0] * toy.function[1] - k;
            variance += 1.0 + k * k;
        }
        let degrees = 400.0 * seeds as f64;
        let tolerance = 5.0 * (2.0 / degrees).sqrt();
        assert!((whitened / degrees - 1.0).abs() < tolerance, "{}", whitened / degrees);
        assert!((noise / degrees - 1.0).abs() < tolerance, "{}", noise / degrees);
        assert!(product.abs() < 5.0 * variance.sqrt(), "{product}");
    }

    #[test]
    fn standardising_keeps_the_problem() {
        let (plain, standard) = (matern_toy(false, Streams::new(3)), matern_toy(true, Streams::new(3)));
        for values in [&standard.x, &standard.y] {
            let mean: f64 = values.iter().sum::<f64>() / 400.0;
            let square: f64 = values.iter().map(|v| v * v).sum::<f64>() / 400.0;
            assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12);
        }
        let scale = (plain.y[0] - plain.y[1]) / (standard.y[0] - standard.y[1]);
        assert!((standard.noise * scale / MATERN_NOISE - 1.0).abs() < 1e-12);
        for i in 0..400 {
            let (before, after) = (plain.y[i] - plain.function[i], standard.y[i] - standard.function[i]);
            assert!((before - after * scale).abs() < 1e-12);
        }
    }
}
