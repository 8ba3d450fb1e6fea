//! Criteria by brute force, and batches.

use crate::labelling::{Choosing, ClassGaussianLabels, Criterion, Latent, PoolPosterior, Scoring, choose};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_linalg::random::Streams;
use posterior_optim::Signal;

fn gaussian_labels(classes: usize) -> ClassGaussianLabels {
    ClassGaussianLabels::new(classes, &Gaussianised::new(Matching::Variational, 0.1).unwrap())
        .unwrap()
        .standardised()
}

fn scoring(criterion: Criterion, classes: usize) -> Scoring {
    Scoring::new(criterion, &gaussian_labels(classes), 0).unwrap()
}

fn entropy(p: f64) -> f64 {
    -p * p.ln() - (1.0 - p) * (1.0 - p).ln()
}

/// `E g(f)` under N(mean, variance), by a sum over a fine grid of ten deviations to both sides.
fn expected(mean: f64, variance: f64, g: impl Fn(f64) -> f64) -> f64 {
    let (count, step) = (800, 0.025);
    let total: f64 = (-count / 2..=count / 2).map(|k| (-0.5 * (k as f64 * step).powi(2)).exp()).sum();
    let term = |k: i32| {
        let x = k as f64 * step;
        (-0.5 * x * x).exp() / total * g(mean + variance.sqrt() * x)
    };
    (-count / 2..=count / 2).map(term).sum()
}

fn logistic(f: f64) -> f64 {
    1.0 / (1.0 + (-f).exp())
}

#[test]
fn values_of_two_classes_are_those_of_brute_force() {
    for (mean, variance) in [(0.0, 1.0), (1.3, 0.4), (-2.0, 9.0), (6.0, 30.0)] {
        let latent = Latent { mean: &[mean], variance: &[variance] };
        let p = expected(mean, variance, logistic);
        let whole = entropy(p);
        let information =
            whole - expected(mean, variance, |f| entropy(logistic(f).clamp(1e-16, 1.0 - 1e-16)));
        let found = scoring(Criterion::Entropy, 2);
        assert!((found.value(latent).unwrap() - whole).abs() < 1e-9, "{mean} {variance}");
        assert!((found.probabilities(latent).unwrap()[1] - p).abs() < 1e-9);
        let mutual = scoring(Criterion::MutualInformation, 2);
        assert!((mutual.value(latent).unwrap() - information).abs() < 1e-8, "{mean} {variance}");
        assert_eq!(scoring(Criterion::Variance, 2).value(latent).unwrap(), variance);
        let doubt = found.doubt(latent).unwrap();
        assert!((doubt.entropy - whole).abs() < 1e-9 && (doubt.removable - information).abs() < 1e-8);

        // What others will tell: a part of the variance explained, by a double sum.
        for left in [variance, 0.6 * variance, 0.05 * variance] {
            let after = expected(mean, variance - left, |m| {
                entropy(expected(m, left, logistic).clamp(1e-16, 1.0 - 1e-16))
            });
            let told = found.information_of_batch(latent, &[left]);
            assert!(
                (told - (whole - after)).abs() < 2e-3,
                "{mean} {variance} {left}: {told} {}",
                whole - after
            );
            assert_eq!(told, mutual.information_of_batch(latent, &[left]));
        }
        // All of it explained: all that there is to be told.
        let told = mutual.information_of_batch(latent, &[0.0]);
        assert!((told - information).abs() < 2e-3, "{told} {information}");
        assert_eq!(mutual.information_of_batch(latent, &[variance]), 0.0);
        let rest = scoring(Criterion::Variance, 2).information_of_batch(latent, &[0.25 * variance]);
        assert!((rest - 0.75 * variance).abs() < 1e-12);
    }
}

#[test]
fn two_classes_of_one_function_and_of_two_agree() {
    // Log-odds f of one function are differences of two of half the variance each.
    let two =
        ClassGaussianLabels::new(2, &Gaussianised::new(Matching::MomentOriginal, 0.1).unwrap()).unwrap();
    let several = Scoring::new(Criterion::MutualInformation, &two, 0).unwrap();
    let one = scoring(Criterion::MutualInformation, 2);
    for (mean, variance) in [(0.7, 1.5), (-1.0, 4.0)] {
        let event = Latent { mean: &[mean], variance: &[variance] };
        let classes =
            Latent { mean: &[-0.5 * mean, 0.5 * mean], variance: &[0.5 * variance, 0.5 * variance] };
        // A thousand draws of quantities below log 2: five standard errors.
        let five = 5.0 * 0.7 / 1000f64.sqrt();
        assert!((one.value(event).unwrap() - several.value(classes).unwrap()).abs() < five);
        assert!(
            (one.probabilities(event).unwrap()[1] - several.probabilities(classes).unwrap()[1]).abs() < five
        );
        // What a batch tells: 64 draws under the probit approximation, which is off by 0.02 in probabilities.
        let left = 0.3 * variance;
        let told = one.information_of_batch(event, &[left]);
        let also = several.information_of_batch(classes, &[0.5 * left, 0.5 * left]);
        assert!((told - also).abs() < 0.05, "{told} {also}");
        assert_eq!(several.information_of_batch(classes, classes.variance), 0.0);
    }
}

fn kernel() -> Box<dyn Kernel<f64>> {
    "se(lengthscale=0.7)".parse::<KernelExpression>().unwrap().build(&["x".into()]).unwrap()
}

fn chosen(
    pool: &mut PoolPosterior,
    criterion: Criterion,
    free: &[usize],
    pending: &[usize],
    n: usize,
) -> Vec<usize> {
    let (gaussian_labels, scoring) = (gaussian_labels(2), scoring(criterion, 2));
    let streams = Streams::new(5);
    let choosing = Choosing { gaussian_labels: &gaussian_labels, scoring: &scoring, pending, free, streams };
    let found = choose(pool, choosing, n, &mut |_, _| Signal::Continue).unwrap();
    assert!(found.iter().all(|c| c.probabilities.len() == 2 && c.value.is_finite()));
    found.into_iter().map(|c| c.row).collect()
}

/// Rows 0 to 5 at 0 with contradicting labels; rows 6 to 9 at 0.02, row 10 far away, where nothing is known but the mean of its neighbour 11, which has a label.
fn contradicting() -> PoolPosterior {
    let x = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.5, 6.0];
    let mut pool = PoolPosterior::prior(kernel(), Mat::from_fn(12, 1, |i, _| x[i]), 1);
    for row in 0..6 {
        pool.observe(row, &gaussian_labels(2).of_all(row % 2));
    }
    pool.observe(11, &gaussian_labels(2).of_all(1));
    pool
}

#[test]
fn criteria_tell_overlap_from_ignorance() {
    let free: Vec<usize> = (6..11).collect();
    // The same number of labels of both classes: a half, and sure of it.
    let overlap = chosen(&mut contradicting(), Criterion::Entropy, &free, &[], 1)[0];
    assert!((6..10).contains(&overlap), "{overlap}");
    assert_eq!(chosen(&mut contradicting(), Criterion::MutualInformation, &free, &[], 1), [10]);
    assert_eq!(chosen(&mut contradicting(), Criterion::Variance, &free, &[], 1), [10]);
    let mut random = chosen(&mut contradicting(), Criterion::Random, &free, &[], 9);
    random.sort_unstable();
    assert_eq!(random, free);
}

#[test]
fn a_batch_does_not_ask_for_duplicates() {
    // Two labels far apart; between them five duplicates of the least sure row, and others a little surer.
    let x = [-3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.1, 1.15, 2.9, -2.9];
    let pool = || {
        let mut pool = PoolPosterior::prior(kernel(), Mat::from_fn(11, 1, |i, _| x[i]), 1);
        pool.observe(0, &gaussian_labels(2).of_all(0));
        pool.observe(1, &gaussian_labels(2).of_all(1));
        pool
    };
    let free: Vec<usize> = (2..11).collect();
    for criterion in [Criterion::Entropy, Criterion::MutualInformation, Criterion::Variance] {
        let mut posterior = pool();
        let rows = chosen(&mut posterior, criterion, &free, &[], 3);
        let mut places: Vec<f64> = rows.iter().map(|&row| x[row]).collect();
        places.sort_by(f64::total_cmp);
        assert_eq!(places, [-1.1, 0.0, 1.15], "{criterion:?}");
        // The same as one after the other, by processes that know what the others asked for.
        let first = chosen(&mut posterior, criterion, &free, &[], 1);
        let rest: Vec<usize> = free.iter().copied().filter(|row| *row != first[0]).collect();
        let second = chosen(&mut posterior, criterion, &rest, &first, 1);
        assert_ne!(x[second[0]], x[first[0]], "{criterion:?}");
        // One at a time without the others in mind, it would be a copy.
        let copy = chosen(&mut posterior, criterion, &rest, &[], 1);
        assert_eq!(x[copy[0]], x[first[0]], "{criterion:?}");
    }
}

#[test]
fn an_interruption_leaves_the_posterior_as_it_was() {
    let mut pool = contradicting();
    let before = pool.clone();
    let (gaussian_labels, scoring) = (gaussian_labels(2), scoring(Criterion::Entropy, 2));
    let free: Vec<usize> = (6..11).collect();
    let choosing = Choosing {
        gaussian_labels: &gaussian_labels,
        scoring: &scoring,
        pending: &[10],
        free: &free,
        streams: Streams::new(0),
    };
    let mut watch = |done, _| if done == 1 { Signal::Stop } else { Signal::Continue };
    assert!(choose(&mut pool, choosing, 3, &mut watch).is_err());
    assert!((0..12).all(|j| pool.variance(j, 0) == before.variance(j, 0)));
    assert_eq!(pool.observations(), before.observations());
}
