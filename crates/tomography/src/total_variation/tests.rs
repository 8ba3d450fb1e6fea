use super::*;
use crate::{
    Filter, ParallelBeam, Projector, TomographyError, filtered_back_projection, phantom, psnr, simulate,
};
use faer::Mat;
use posterior_linalg::operator::Dense;
use posterior_linalg::random::Streams;
use posterior_optim::{Progress, Reason, Signal, check};
use rand_distr::{Distribution, StandardNormal};

fn normal(many: usize, name: &str) -> Vec<f64> {
    let mut stream = Streams::new(2).stream(name);
    (0..many).map(|_| StandardNormal.sample(&mut stream)).collect()
}

/// By pairs of places, each looked at by itself.
fn plain(image: &[f64], [d, h, w]: [usize; 3], mean: bool) -> f64 {
    let at = |k: usize, i: usize, j: usize| image[(k * h + i) * w + j];
    let mut sums = [(0.0, 0.0); 3];
    for (k, i, j) in (0..d * h * w).map(|p| (p / (h * w), p / w % h, p % w)) {
        let nexts = [(k + 1, i, j), (k, i + 1, j), (k, i, j + 1)];
        for (sum, (a, b, c)) in sums.iter_mut().zip(nexts) {
            if a < d && b < h && c < w {
                *sum = (sum.0 + (at(a, b, c) - at(k, i, j)).abs(), sum.1 + 1.0);
            }
        }
    }
    sums.iter().map(|(sum, pairs)| if mean && *pairs > 0.0 { sum / pairs } else { *sum }).sum()
}

#[test]
fn values_subgradients_and_transposes() {
    for shape in [[1, 5, 4], [3, 4, 5], [1, 1, 6]] {
        let n = shape.iter().product();
        let image = normal(n, "image");
        for mean in [false, true] {
            let variation =
                if mean { TotalVariation::mean(&shape) } else { TotalVariation::sum(&shape) }.unwrap();
            let value = plain(&image, shape, mean);
            assert!((variation.value(&image) - value).abs() < 1e-12 * value);
            let mut gradient = vec![0.0; n];
            variation.add_subgradient(&image, 2.0, &mut gradient);
            let numeric = check::gradient(|x| 2.0 * plain(x, shape, mean), &image);
            check::assert_close(&gradient, &numeric, 1e-7, 1e-7);
            // Flat images are at a kink in every direction; the subgradient there is 0.
            let mut flat = vec![0.0; n];
            variation.add_subgradient(&vec![3.0; n], 1.0, &mut flat);
            assert_eq!(flat, vec![0.0; n]);
            let (edges, mut differences, mut back) = (normal(3 * n, "edges"), vec![0.0; 3 * n], vec![0.0; n]);
            variation.differences(&image, &mut differences);
            variation.add_transpose(&edges, &mut back);
            let a: f64 = differences.iter().zip(&edges).map(|(a, b)| a * b).sum();
            let b: f64 = image.iter().zip(&back).map(|(a, b)| a * b).sum();
            assert!((a - b).abs() < 1e-12 * a.abs().max(1.0));
        }
    }
    assert!(matches!(TotalVariation::sum(&[4]), Err(TomographyError::ImageShape { .. })));
}

fn quiet<V>() -> impl FnMut(&Progress, &V) -> Signal {
    |_, _| Signal::Continue
}

#[test]
fn two_pixels_have_a_closed_form() {
    // ½ ‖x - y‖² + λ |x₁ - x₂|: the mean stays, and half the difference is shrunk by λ / 1 · ½ · 2.
    let identity = Dense::new(Mat::<f64>::identity(2, 2));
    let variation = TotalVariation::sum(&[1, 2]).unwrap();
    for (y, weight) in [([1.0, 3.0], 0.4), ([3.0, 1.0], 0.4), ([1.0, 1.5], 0.9), ([-1.0, 2.0], 0.0)] {
        let problem = Penalised::new(&identity, &y, &variation, weight).unwrap();
        let options = PrimalDualOptions {
            tolerance: 1e-12,
            non_negative: false,
            largest: Some(10.0),
            ..PrimalDualOptions::default()
        };
        let found = reconstruct(&problem, &[0.0, 0.0], None, &options, &mut quiet()).unwrap();
        let (mean, half) = (0.5 * (y[0] + y[1]), 0.5 * (y[1] - y[0]));
        // d/dh of ½ · 2 (h - half)² + 2 λ |h|: h = half, less λ.
        let shrunk = half.signum() * (half.abs() - weight).max(0.0);
        check::assert_close(&found.image, &[mean - shrunk, mean + shrunk], 1e-5, 1e-5);
        let exact = (half - shrunk).powi(2) + 2.0 * weight * shrunk.abs();
        assert!(found.value >= exact - 1e-14 && found.value - found.gap <= exact + 1e-14);
    }
}

/// A scan of 24 x 24 pixels at 12 angles with noise.
fn small() -> (Projector, Vec<f64>, Vec<f64>) {
    let projector = Projector::new(ParallelBeam::usual(24, 24, 12).unwrap()).unwrap();
    let truth = phantom::shepp_logan(24, 24);
    let sinogram = simulate(&projector, &truth, 0.05, Streams::new(4)).unwrap().sinogram;
    (projector, truth, sinogram)
}

#[test]
fn both_methods_agree_and_the_gap_bounds_the_distance() {
    let (projector, truth, sinogram) = small();
    let variation = TotalVariation::sum(&[24, 24]).unwrap();
    let problem = Penalised::new(&projector, &sinogram, &variation, 1e-3).unwrap();
    let start = filtered_back_projection(&projector, &sinogram, Filter::RamLak, None).unwrap();
    let tight = PrimalDualOptions { tolerance: 1e-6, steps: 100_000, ..PrimalDualOptions::default() };
    let mut gaps = Vec::new();
    let best = reconstruct(&problem, &start, None, &tight, &mut |progress, state| {
        gaps.push((state.value, state.bound));
        assert_eq!(progress.value, Some(state.value));
        Signal::Continue
    })
    .unwrap();
    assert_eq!((best.reason, best.at_largest), (Reason::Tolerance, 0));
    assert!((problem.value(&best.image) - best.value).abs() < 1e-12 * best.value);
    // Every bound is below every value, and the intervals shrink.
    assert!(gaps.iter().all(|(value, bound)| *bound <= best.value && *value >= best.value - best.gap));
    let usual = reconstruct(&problem, &start, None, &PrimalDualOptions::default(), &mut quiet()).unwrap();
    assert!(usual.value - best.value <= usual.gap && usual.reason == Reason::Tolerance);
    println!(
        "primal-dual: {} steps to 1e-3, {} to 1e-6; {:.2} dB, start {:.2} dB",
        usual.steps,
        best.steps,
        psnr(&best.image, &truth),
        psnr(&start, &truth)
    );
    assert!(psnr(&best.image, &truth) > psnr(&start, &truth) + 2.0);
    let adam = AdamOptions { steps: 6_000, ..AdamOptions::default() };
    let outcome = reconstruct_by_adam(&problem, &start, None, &adam, &mut quiet()).unwrap();
    let above = (outcome.value - best.value) / best.value;
    println!("adam: {above:.2e} above the minimum");
    assert!((-1e-6..0.02).contains(&above), "{above}");
    assert!((problem.value(&outcome.theta) - outcome.value).abs() < 1e-12);
}

#[test]
fn resumed_runs_end_in_the_same_bits() {
    let (projector, _, sinogram) = small();
    let variation = TotalVariation::mean(&[24, 24]).unwrap();
    let problem = Penalised::new(&projector, &sinogram, &variation, 0.3).unwrap();
    let start = vec![0.1; 576];
    let options = PrimalDualOptions { steps: 40, tolerance: 0.0, ..PrimalDualOptions::default() };
    let mut saved = None;
    let whole = reconstruct(&problem, &start, None, &options, &mut |progress, state| {
        if progress.step == 17 {
            saved = Some(state.clone());
        }
        Signal::Continue
    })
    .unwrap();
    let resumed = reconstruct(&problem, &start, saved.clone(), &options, &mut quiet()).unwrap();
    assert_eq!(resumed, whole);
    let other = PrimalDualState { data: vec![0.0; 3], ..saved.unwrap() };
    let refused = reconstruct(&problem, &start, Some(other), &options, &mut quiet());
    assert!(matches!(refused, Err(TomographyError::State(_))));
    let adam = AdamOptions { steps: 30, ..AdamOptions::default() };
    let mut saved = None;
    let whole = reconstruct_by_adam(&problem, &start, None, &adam, &mut |progress, state| {
        if progress.step == 11 {
            saved = Some(state.clone());
        }
        Signal::Continue
    })
    .unwrap();
    let resumed = reconstruct_by_adam(&problem, &start, saved, &adam, &mut quiet()).unwrap();
    assert_eq!((resumed.theta, resumed.value), (whole.theta, whole.value));
}

#[test]
fn volumes_and_unsuitable_problems() {
    let identity = Dense::new(Mat::<f64>::identity(27, 27));
    let variation = TotalVariation::sum(&[3, 3, 3]).unwrap();
    let y: Vec<f64> = (0..27).map(|p| f64::from(p / 9) + 0.1 * ((p * 7 % 5) as f64)).collect();
    let problem = Penalised::new(&identity, &y, &variation, 1.0).unwrap();
    // So heavy a penalty leaves nothing but the mean.
    let options = PrimalDualOptions { tolerance: 1e-9, steps: 50_000, ..PrimalDualOptions::default() };
    let found = reconstruct(&problem, &y, None, &options, &mut quiet()).unwrap();
    let mean = y.iter().sum::<f64>() / 27.0;
    check::assert_close(&found.image, &[mean; 27], 1e-4, 1e-4);
    assert!(matches!(
        Penalised::new(&identity, &y[..26], &variation, 1.0),
        Err(TomographyError::SinogramShape { .. })
    ));
    assert!(matches!(Penalised::new(&identity, &y, &variation, -1.0), Err(TomographyError::Option { .. })));
    let endless = PrimalDualOptions { balance: 0.0, ..options };
    assert!(matches!(
        reconstruct(&problem, &y, None, &endless, &mut quiet()),
        Err(TomographyError::Option { .. })
    ));
}

/// The mean over chains of their means, and its standard error.
fn over_chains(prior: &VariationPrior, options: &ChainOptions, of: impl Fn(&[f64]) -> f64) -> (f64, f64) {
    let means: Vec<f64> = (0..24)
        .map(|seed| {
            let chain =
                prior.draw(&ChainOptions { seed, ..options.clone() }, &mut |_, _| Signal::Continue).unwrap();
            assert!((0.5..0.99).contains(&chain.accepted), "{}", chain.accepted);
            let draws = chain.pictures.ncols();
            (0..draws).map(|j| of(chain.pictures.col_as_slice(j))).sum::<f64>() / draws as f64
        })
        .collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn draws_of_total_variation_have_the_moments_of_its_density() {
    let options = ChainOptions { draws: 400, thin: 3, warm_up: 300, leaps: 12, ..ChainOptions::default() };
    // Two pixels: half the sum is normal, and the difference has a density of one dimension.
    let (weight, precision) = (1.7, 0.6);
    let pair = VariationPrior::new(TotalVariation::sum(&[1, 2]).unwrap(), weight, precision).unwrap();
    let (mut mass, mut moment) = (0.0, 0.0);
    for i in 0..200_000 {
        let d = (f64::from(i) + 0.5) * 1e-4;
        let density = (-weight * d - 0.25 * precision * d * d).exp();
        (mass, moment) = (mass + density, moment + d * density);
    }
    let (found, error) = over_chains(&pair, &options, |x| (x[1] - x[0]).abs());
    assert!((found - moment / mass).abs() < 4.5 * error, "{found} {} {error}", moment / mass);
    let (found, error) = over_chains(&pair, &options, |x| 0.5 * (x[0] + x[1]).powi(2));
    assert!((found - 1.0 / precision).abs() < 4.5 * error, "{found} {error}");
    // Pictures: `E x . dE/dx` is the number of pixels for any density, and total variation is homogeneous.
    let variation = TotalVariation::sum(&[5, 4]).unwrap();
    let picture = VariationPrior::new(variation.clone(), weight, precision).unwrap();
    let virial = |x: &[f64]| weight * variation.value(x) + precision * x.iter().map(|v| v * v).sum::<f64>();
    let (found, error) = over_chains(&picture, &options, virial);
    assert!(error < 0.1 && (found - 20.0).abs() < 4.5 * error, "{found} {error}");
}
