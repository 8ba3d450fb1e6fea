//! Modes by every method.

use super::features::Opaque;
use super::{normal, normals};
use crate::LinearError;
use crate::features::{DenseFeatures, FeatureMap, Indices};
use crate::mode::{DescentOptions, ModeProblem, NewtonCgOptions, NewtonOptions, descend, newton, newton_cg};
use posterior_likelihoods::{Categorical, IndependentGaussian, Poisson, VectorLikelihood};
use posterior_optim::{Adam, Lbfgs, Optimiser, Schedule, Sgd, Signal, check};

struct Case {
    features: DenseFeatures,
    likelihood: Box<dyn VectorLikelihood>,
    targets: Vec<f64>,
    offset: Vec<f64>,
    source: Indices,
    precisions: Vec<f64>,
}

impl Case {
    fn new(name: &str, examples: usize, dimension: usize) -> Self {
        let (likelihood, targets): (Box<dyn VectorLikelihood>, Vec<f64>) = match name {
            "softmax" => {
                (Box::new(Categorical::new(3).unwrap()), (0..examples).map(|i| (i * i % 3) as f64).collect())
            }
            "poisson" => {
                let counts = (0..3 * examples).map(|i| (i * 7 % 5) as f64).collect();
                (Box::new(Poisson::new(3).unwrap()), counts)
            }
            _ => {
                (Box::new(IndependentGaussian::new(vec![0.5, 1.0, 2.0]).unwrap()), normals(3 * examples, "y"))
            }
        };
        Self {
            features: DenseFeatures::new(normal(3 * examples, dimension, "phi"), 3).unwrap(),
            likelihood,
            targets,
            offset: normals(3 * examples, "offset"),
            source: Indices(examples),
            precisions: (0..dimension).map(|i| 0.5 + 0.1 * i as f64).collect(),
        }
    }

    fn problem(&self) -> ModeProblem<'_, DenseFeatures> {
        ModeProblem::new(&self.features, &self.source, &*self.likelihood, &self.targets)
            .unwrap()
            .with_offset(&self.offset)
            .unwrap()
    }
}

const NAMES: [&str; 3] = ["softmax", "poisson", "gaussian"];
/// More rows than weights, and fewer: Newton's method in both forms.
const SIZES: [(usize, usize); 2] = [(12, 6), (4, 20)];

#[test]
fn the_objective_has_the_stated_gradient_and_value() {
    for name in NAMES {
        let case = Case::new(name, 5, 4);
        let problem = case.problem().with_chunk(2);
        let w = normals(4, "w");
        let mut gradient = vec![0.0; 4];
        let value = problem.objective(&w, &case.precisions, &mut gradient).unwrap();
        let f = case.features.whole() * crate::dense::column(&w);
        let width = case.likelihood.target_width();
        let mut direct = 0.0;
        for i in 0..5 {
            let f: Vec<f64> = (0..3).map(|c| f[(3 * i + c, 0)] + case.offset[3 * i + c]).collect();
            direct -= case.likelihood.log_density(&case.targets[i * width..(i + 1) * width], &f);
        }
        assert!((problem.log_likelihood(&w).unwrap() + direct).abs() < 1e-12);
        direct += (0..4).map(|i| 0.5 * case.precisions[i] * w[i] * w[i]).sum::<f64>();
        assert!((value - direct).abs() < 1e-12);
        let numeric = check::gradient(|w| problem.objective(w, &case.precisions, &mut [0.0; 4]).unwrap(), &w);
        check::assert_close(&gradient, &numeric, 1e-8, 1e-9);
    }
}

#[test]
fn all_methods_find_the_same_mode() {
    for (name, (examples, dimension)) in NAMES.iter().flat_map(|n| SIZES.map(|s| (n, s))) {
        let case = Case::new(name, examples, dimension);
        let problem = case.problem();
        let start = vec![0.0; dimension];
        let exact = newton(&problem, &case.precisions, &start, NewtonOptions::default()).unwrap();
        assert!(exact.converged && exact.gradient_norm < 1e-9 && exact.steps < 12, "{name}: {exact:?}");
        // Stationarity, independently: A w = Phi' d log p / df.
        let f = problem.outputs(&exact.weights).unwrap();
        let (width, mut slope) = (case.likelihood.target_width(), vec![0.0; f.len()]);
        for i in 0..examples {
            let y = &case.targets[i * width..(i + 1) * width];
            case.likelihood.gradient(y, &f[3 * i..3 * i + 3], &mut slope[3 * i..3 * i + 3]);
        }
        let back = case.features.whole().transpose() * crate::dense::column(&slope);
        for i in 0..dimension {
            assert!((case.precisions[i] * exact.weights[i] - back[(i, 0)]).abs() < 1e-9);
        }
        // The matrix-free methods see the products only.
        let opaque = Opaque(&case.features);
        let hidden = ModeProblem::new(&opaque, &case.source, &*case.likelihood, &case.targets)
            .unwrap()
            .with_offset(&case.offset)
            .unwrap()
            .with_chunk(3);
        assert!(matches!(
            newton(&hidden, &case.precisions, &start, NewtonOptions::default()),
            Err(LinearError::NoMatrix { .. })
        ));
        let options = NewtonCgOptions { tolerance: 1e-16, ..Default::default() };
        let free = newton_cg(&hidden, &case.precisions, &start, options).unwrap();
        assert!(free.converged, "{name}: {free:?}");
        check::assert_close(&free.weights, &exact.weights, 1e-6, 1e-7);
        let options = DescentOptions {
            optimiser: Optimiser::Lbfgs(Lbfgs::default()),
            gradient_tolerance: 1e-8,
            ..Default::default()
        };
        let descended =
            descend(&hidden, &case.precisions, &start, &options, &mut |_, _| Signal::Continue).unwrap();
        // The precisions are at least 0.5, so the distance to the mode is at most twice the gradient.
        let distance = distance(&descended.weights, &exact.weights);
        assert!(distance <= 2.0 * descended.gradient_norm + 1e-9, "{name}: {distance} {descended:?}");
        assert!(distance < 1e-5, "{name}: {distance}");
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn mini_batches_reach_the_mode() {
    let case = Case::new("softmax", 60, 6);
    let problem = case.problem();
    let exact = newton(&problem, &case.precisions, &[0.0; 6], NewtonOptions::default()).unwrap();
    let run = |optimiser: Optimiser, average: Option<f64>, seed: u64| {
        let options =
            DescentOptions { optimiser, steps: 3_000, batch: 20, average, seed, ..Default::default() };
        descend(&problem, &case.precisions, &[0.0; 6], &options, &mut |_, _| Signal::Continue).unwrap()
    };
    let squared_distance = |w: &[f64]| distance(w, &exact.weights).powi(2);
    let adam = || Optimiser::Adam(Adam::new(0.02).scheduled(Schedule::Cosine));
    let mut falling = Sgd::new(1e-3, 0.9, true);
    falling.schedule = Schedule::Cosine;
    for (name, result) in
        [("adam", run(adam(), None, 1)), ("momentum", run(Optimiser::Sgd(falling), None, 1))]
    {
        // Step sizes that fall to zero take the noise with them: within a twentieth of the way from zero to the mode.
        let relative = distance(&result.weights, &exact.weights) / distance(&[0.0; 6], &exact.weights);
        assert!(relative < 0.05, "{name}: {relative}");
        assert!(result.objective >= exact.objective - 1e-12 && result.steps == 3_000);
        // What is reported belongs to all data at the weights returned.
        let mut gradient = vec![0.0; 6];
        let value = problem.objective(&result.weights, &case.precisions, &mut gradient).unwrap();
        assert!((value - result.objective).abs() < 1e-12);
        assert!((distance(&gradient, &[0.0; 6]) - result.gradient_norm).abs() < 1e-12);
    }
    assert_eq!(run(adam(), None, 5).weights, run(adam(), None, 5).weights);
    assert_ne!(run(adam(), None, 5).weights, run(adam(), None, 6).weights);
    // A constant step size keeps the last iterate at a distance, which an average over some 200 iterates reduces several times.
    let constant = || Optimiser::Sgd(Sgd::new(1e-3, 0.9, true));
    let over_seeds = |average| -> f64 {
        (0..6).map(|seed| squared_distance(&run(constant(), average, seed).weights)).sum()
    };
    let (last, averaged) = (over_seeds(None), over_seeds(Some(0.005)));
    assert!(averaged < 0.5 * last, "{averaged} against {last}");
}

#[test]
fn an_observer_stops_the_descent() {
    let case = Case::new("poisson", 10, 3);
    let options = DescentOptions { batch: 4, steps: 50, ..Default::default() };
    let mut seen = 0;
    let result = descend(&case.problem(), &case.precisions, &[0.0; 3], &options, &mut |progress, _| {
        seen = progress.step;
        if progress.step == 7 { Signal::Stop } else { Signal::Continue }
    })
    .unwrap();
    assert_eq!((seen, result.steps, result.converged), (7, 7, false));
}

#[test]
fn newton_recovers_from_a_far_start() {
    // Poisson curvature at large rates is far from that at the mode: full steps alone would jump between extremes.
    let case = Case::new("poisson", 12, 6);
    let start = vec![4.0; 6];
    let near = newton(&case.problem(), &case.precisions, &[0.0; 6], NewtonOptions::default()).unwrap();
    let far = newton(&case.problem(), &case.precisions, &start, NewtonOptions::default()).unwrap();
    let free = newton_cg(&case.problem(), &case.precisions, &start, NewtonCgOptions::default()).unwrap();
    assert!(far.converged && free.converged, "{far:?} {free:?}");
    check::assert_close(&far.weights, &near.weights, 1e-8, 1e-9);
    check::assert_close(&free.weights, &near.weights, 1e-3, 1e-4);
}

#[test]
fn problems_refuse_what_does_not_fit() {
    let case = Case::new("softmax", 4, 2);
    let new = |source: &Indices, targets: &[f64]| {
        ModeProblem::new(&case.features, source, &*case.likelihood, targets).map(|p| p.rows())
    };
    assert_eq!(new(&Indices(4), &[0.0, 1.0, 2.0, 0.0]).unwrap(), 12);
    assert!(matches!(new(&Indices(4), &[0.0]), Err(LinearError::Shape { .. })));
    for bad in [3.0, 0.5, -1.0, f64::NAN] {
        let result = new(&Indices(4), &[0.0, 1.0, bad, 0.0]);
        assert!(matches!(result, Err(LinearError::Target { example: 2, .. })), "{result:?}");
    }
    let two = Categorical::new(2).unwrap();
    assert!(ModeProblem::new(&case.features, &case.source, &two, &[0.0; 4]).is_err());
    let problem = case.problem();
    assert!(case.problem().with_offset(&[0.0]).is_err());
    assert!(case.problem().with_offset(&[f64::NAN; 12]).is_err());
    let options = NewtonOptions::default();
    for (precisions, start) in
        [(vec![1.0], vec![0.0; 2]), (vec![1.0, 0.0], vec![0.0; 2]), (vec![1.0; 2], vec![f64::NAN; 2])]
    {
        assert!(newton(&problem, &precisions, &start, options).is_err());
        assert!(newton_cg(&problem, &precisions, &start, NewtonCgOptions::default()).is_err());
        let any = DescentOptions::default();
        assert!(descend(&problem, &precisions, &start, &any, &mut |_, _| Signal::Continue).is_err());
    }
    let small = NewtonOptions { memory_limit: 100, ..options };
    assert!(matches!(
        newton(&problem, &[1.0; 2], &[0.0; 2], small),
        Err(LinearError::TooLarge { bytes: 192, .. })
    ));
    for options in [
        DescentOptions { batch: 0, ..Default::default() },
        DescentOptions { average: Some(0.0), ..Default::default() },
        DescentOptions { average: Some(f64::NAN), ..Default::default() },
        DescentOptions { optimiser: Optimiser::Lbfgs(Lbfgs::default()), batch: 2, ..Default::default() },
    ] {
        let result = descend(&problem, &[1.0; 2], &[0.0; 2], &options, &mut |_, _| Signal::Continue);
        assert!(matches!(result, Err(LinearError::Option { .. })), "{options:?}");
    }
    let wild =
        DescentOptions { optimiser: Optimiser::Sgd(Sgd::new(1e300, 0.9, false)), ..Default::default() };
    assert!(descend(&problem, &[1.0; 2], &[0.0; 2], &wild, &mut |_, _| Signal::Continue).is_err());
    assert_eq!(problem.features().dimension(), 2);
}
