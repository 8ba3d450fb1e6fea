use super::{MEASUREMENTS, PIXELS, Small, wave};
use crate::linearised::*;
use faer::{Mat, MatRef};
use posterior_linalg::operator::LinearOperator;
use posterior_linear::FeatureMap;

fn hyperparameters(blocks: usize) -> FilterHyperparameters {
    FilterHyperparameters {
        log_variances: (0..blocks).map(|k| 0.4 * wave(k + 1) - 0.5).collect(),
        log_lengthscales: (0..blocks).map(|k| 0.8 * wave(k + 11)).collect(),
    }
}

/// `A^-1` from the formula, weight by weight.
pub(super) fn dense_covariance(weights: &ConvolutionWeights, at: &FilterHyperparameters) -> Mat<f64> {
    let mut out = Mat::zeros(weights.len(), weights.len());
    for (k, block) in weights.blocks().iter().enumerate() {
        let n = block.positions();
        let side = block.kernel[0];
        for range in block.ranges() {
            for start in range.step_by(n) {
                for p in 0..n {
                    for q in 0..n {
                        let (a, b) =
                            ((p / side) as f64 - (q / side) as f64, (p % side) as f64 - (q % side) as f64);
                        let jitter = if p == q { FILTER_JITTER } else { 0.0 };
                        let rho = (-(a * a + b * b).sqrt() / at.log_lengthscales[k].exp()).exp() + jitter;
                        out[(start + p, start + q)] = at.log_variances[k].exp() * rho;
                    }
                }
            }
        }
    }
    out
}

#[test]
fn blocks_are_those_of_the_network_and_hold_every_convolution_once() {
    let small = Small::new(true);
    let names: Vec<&str> = small.weights.blocks().iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["in", "down0", "skip0", "up0", "out"]);
    let mut seen = vec![false; small.weights.len()];
    for range in small.weights.blocks().iter().flat_map(|b| b.ranges()) {
        for i in range {
            assert!(!std::mem::replace(&mut seen[i], true));
        }
    }
    assert!(seen.iter().all(|s| *s));
    // Neither biases nor norms.
    assert!(
        small.weights.selection().parts().iter().all(|p| p.name.ends_with("weight") && p.shape.len() == 4)
    );
}

#[test]
fn published_networks_have_the_published_numbers_of_weights() {
    use posterior_networks::{Architecture, architecture::Unet};
    for (unet, convolutions) in [(Unet::small(false), 76_608), (Unet::deep(501, 501), 2_964_480)] {
        let graph = Architecture::Unet(unet).graph().unwrap();
        assert_eq!(ConvolutionWeights::of(&graph).unwrap().len(), convolutions);
    }
}

#[test]
fn products_of_the_prior_are_those_of_its_covariance() {
    let small = Small::new(false);
    let at = hyperparameters(small.weights.blocks().len());
    let prior = FilterPrior::new(&small.weights, at.clone()).unwrap();
    let dense = dense_covariance(&small.weights, &at);
    let d = small.weights.len();
    let mut root = Mat::<f64>::identity(d, d);
    prior.apply_root(root.as_mut());
    assert!((&root * root.transpose() - &dense).norm_max() < 1e-12);
    let mut transposed = Mat::<f64>::identity(d, d);
    prior.apply_root_transpose(transposed.as_mut());
    assert!((transposed - root.transpose()).norm_max() < 1e-14);
    let mut covariance = Mat::<f64>::identity(d, d);
    prior.apply_covariance(covariance.as_mut());
    assert!((covariance - dense).norm_max() < 1e-14);
    let endless = FilterHyperparameters { log_variances: vec![f64::NAN; 5], ..at };
    assert!(FilterPrior::new(&small.weights, endless).is_err());
}

#[test]
fn kernels_from_parts_are_those_of_the_jacobian() {
    let small = Small::new(true);
    let at = hyperparameters(small.weights.blocks().len());
    let jacobian = small.jacobian();
    let grams = DistanceGrams::new(&small.weights, jacobian.as_ref());
    let dense = jacobian.transpose() * dense_covariance(&small.weights, &at) * &jacobian;
    let scale = dense.norm_max();
    assert!((grams.kernel(&at) - &dense).norm_max() < 1e-12 * scale);
    // The root of the prior over pictures gives the same.
    let tangent = small.tangent();
    let prior = WeightPrior::Filters(FilterPrior::new(&small.weights, at).unwrap());
    let root = PriorRoot::new(&tangent, prior).unwrap().to_dense();
    assert!((&root * root.transpose() - dense).norm_max() < 1e-11 * scale);
}

#[test]
fn slopes_of_the_kernel_are_finite_differences() {
    let small = Small::new(false);
    let at = hyperparameters(small.weights.blocks().len());
    let grams = DistanceGrams::new(&small.weights, small.jacobian().as_ref());
    let weight = Mat::from_fn(PIXELS, PIXELS, |i, j| wave(i + 3 * j) + wave(j + 3 * i));
    let trace = |at: &FilterHyperparameters| {
        let k = grams.kernel(at);
        (0..PIXELS * PIXELS)
            .map(|p| k[(p / PIXELS, p % PIXELS)] * weight[(p / PIXELS, p % PIXELS)])
            .sum::<f64>()
    };
    let [variances, lengthscales] = grams.slopes(&at, weight.as_ref());
    let h = 1e-5;
    for k in 0..small.weights.blocks().len() {
        let (mut up, mut down) = (at.clone(), at.clone());
        (up.log_variances[k], down.log_variances[k]) = (up.log_variances[k] + h, down.log_variances[k] - h);
        let slope = (trace(&up) - trace(&down)) / (2.0 * h);
        assert!((slope - variances[k]).abs() < 1e-6 * (1.0 + slope.abs()), "{slope} {}", variances[k]);
        let (mut up, mut down) = (at.clone(), at.clone());
        (up.log_lengthscales[k], down.log_lengthscales[k]) =
            (up.log_lengthscales[k] + h, down.log_lengthscales[k] - h);
        let slope = (trace(&up) - trace(&down)) / (2.0 * h);
        assert!((slope - lengthscales[k]).abs() < 1e-6 * (1.0 + slope.abs()), "{slope} {}", lengthscales[k]);
    }
}

#[test]
fn measurements_are_a_feature_map_with_exact_transposes_and_rows() {
    let small = Small::new(true);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let dense = small.projector.matrix() * small.jacobian().transpose();
    let d = small.weights.len();
    for range in [0..MEASUREMENTS, 3..9] {
        let rows = measured.at(range.clone()).unwrap();
        let own = dense.subrows(range.start, range.len());
        let w = Mat::from_fn(d, 3, |i, j| wave(i + 5 * j));
        let u = Mat::from_fn(range.len(), 3, |i, j| wave(9 * i + j));
        assert!((rows.apply(w.as_ref()).unwrap() - own * &w).norm_max() < 1e-12);
        assert!((rows.apply_transpose(u.as_ref()).unwrap() - own.transpose() * &u).norm_max() < 1e-12);
        let mut seen = 0;
        rows.rows(None, 2..d, &mut |examples, values| {
            assert_eq!(examples.start, seen);
            seen = examples.end;
            let expected = own.submatrix(examples.start, 2, examples.len(), d - 2);
            assert!((values - expected).norm_max() < 1e-12);
        })
        .unwrap();
        assert_eq!(seen, range.len());
    }
    assert!(measured.at(0..MEASUREMENTS + 1).is_err());
    let sinogram = small.sinogram();
    let trained = tangent.weights();
    let moved = &dense * MatRef::from_column_major_slice(&trained, d, 1);
    for (i, t) in measured.linear_targets(&sinogram).unwrap().iter().enumerate() {
        let expected = sinogram[i] + moved[(i, 0)] - measured.measured_picture()[i];
        assert!((t - expected).abs() < 1e-12);
    }
}
