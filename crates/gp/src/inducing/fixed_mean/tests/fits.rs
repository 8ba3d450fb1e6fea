use super::*;
use crate::inducing::fixed_mean::{
    FixedMeanData, FixedMeanError, FixedMeanFitOptions, FixedMeanProcessFit, FixedMeanState, fit_fixed_mean,
};
use posterior_optim::{Reason, Signal};

/// Rows on a line; the given mean is too smooth, and its errors grow to the right.
struct Line {
    x: Mat<f64>,
    means: Mat<f64>,
    targets: Mat<f64>,
}

impl Line {
    fn new(rows: usize) -> Self {
        let x = Mat::from_fn(rows, 2, |i, j| {
            if j == 0 { 4.0 * i as f64 / rows as f64 - 2.0 } else { 0.3 * wave(7 * i) }
        });
        let means = Mat::from_fn(rows, 1, |i, _| x[(i, 0)].sin());
        let targets = Mat::from_fn(rows, 1, |i, _| {
            means[(i, 0)] + 0.05 * wave(13 * i) + if x[(i, 0)] > 0.0 { wave(31 * i + 1) } else { 0.0 }
        });
        Self { x, means, targets }
    }

    fn fit(
        &self,
        model: FixedMeanModel<Separable<f64>>,
        options: &FixedMeanFitOptions,
        state: Option<FixedMeanState>,
        stop: usize,
    ) -> Result<FixedMeanProcessFit<Separable<f64>>, FixedMeanError> {
        let points = |rows: &[usize]| Mat::from_fn(rows.len(), 2, |i, j| self.x[(rows[i], j)]);
        let data =
            FixedMeanData { points: &points, means: self.means.as_ref(), targets: self.targets.as_ref() };
        fit_fixed_mean(model, data, options, None, state, &mut |progress, _| {
            if progress.step == stop { Signal::Stop } else { Signal::Continue }
        })
    }
}

fn options(steps: usize, alpha: f64) -> FixedMeanFitOptions {
    FixedMeanFitOptions { steps, alpha, batch: 20, learning_rate: 0.02, ..FixedMeanFitOptions::default() }
}

#[test]
fn trained_roots_approach_the_closed_form() {
    let line = Line::new(100);
    let z = Mat::from_fn(4, 2, |i, j| if j == 0 { i as f64 - 1.5 } else { 0.0 });
    let model = plain(z, 0.4, "rbf(lengthscale=1)", 1.0);
    let mut best = model.clone();
    let points = |rows: &[usize]| Mat::from_fn(rows.len(), 2, |i, j| line.x[(rows[i], j)]);
    let data = FixedMeanData { points: &points, means: line.means.as_ref(), targets: line.targets.as_ref() };
    optimum(&mut best, data, 64);
    let all: Vec<usize> = (0..100).collect();
    let (points, flat, targets) = data.gather(&all);
    let batch = Batch { points: &points, means: &flat, targets: &targets, rows: 100 };
    let loss = |m: &_| super::super::energy(m, batch, 0.0, None).unwrap().main;
    let options = FixedMeanFitOptions { decay: 0.998, ..options(6000, 0.0) };
    let before = loss(&model) - loss(&best);
    let fit = line.fit(model, &options, None, 0).unwrap();
    let gap = loss(&fit.model) - loss(&best);
    assert!(before > 1.0 && (0.0..1e-2).contains(&gap), "{before} {gap}");
    assert_eq!((fit.reason, fit.state.step, fit.state.losses.len()), (Reason::Steps, 6000, 1200));
}

/// With a fixed mean the lower bound only ever pays for variance; predictive densities reward it where residuals are large.
#[test]
fn the_lower_bound_forgets_its_amplitude_and_densities_do_not() {
    let line = Line::new(100);
    let z = Mat::from_fn(6, 2, |i, j| if j == 0 { 0.8 * i as f64 - 2.0 } else { 0.0 });
    let mut model = plain(z, 0.05, "rbf(lengthscale=0.7)", 1.0);
    model.learned = Learned { amplitude: true, ..Learned::NONE };
    let learned = |alpha| line.fit(model.clone(), &options(2500, alpha), None, 0).unwrap().model.amplitude();
    let (bound, density) = (learned(0.0), learned(1.0));
    assert!(bound < 1e-3 && density > 0.1, "{bound} {density}");
}

#[test]
fn an_interrupted_fit_goes_on_to_the_same_numbers() {
    let line = Line::new(50);
    let model = |companion| {
        let kernel = Separable::independent(kernel("rbf(ard)"), 1);
        let z = Mat::from_fn(5, 2, |i, j| if j == 0 { i as f64 - 2.0 } else { 0.1 * i as f64 });
        FixedMeanModel::new(kernel, Box::new(Gaussian::new(0.1, 0.0)), z, vec![0; 5], 1.0, companion).unwrap()
    };
    let options =
        FixedMeanFitOptions { trajectory_every: Some(10), decay: 0.9, batch: 16, ..options(37, 0.5) };
    let whole = line.fit(model(true), &options, None, 0).unwrap();
    let half = line.fit(model(true), &options, None, 18).unwrap();
    assert_eq!(half.reason, Reason::Interrupted);
    let text = serde_json::to_string(&half.state).unwrap();
    let state: FixedMeanState = serde_json::from_str(&text).unwrap();
    let rest = line.fit(model(true), &options, Some(state.clone()), 0).unwrap();
    let without_time = |state: &FixedMeanState| FixedMeanState { seconds: 0.0, ..state.clone() };
    assert_eq!(without_time(&rest.state), without_time(&whole.state));
    assert_eq!(rest.model.unconstrained(), whole.model.unconstrained());
    let steps: Vec<usize> = whole.state.trajectory.iter().map(|t| t.0).collect();
    assert_eq!(steps, [0, 10, 20, 30]);
    assert_ne!(whole.state.trajectory[0].1, whole.state.trajectory[3].1);
    let error = line.fit(model(false), &options, Some(state.clone()), 0).unwrap_err().to_string();
    assert!(error.contains("parameters, not"), "{error}");
    let broken = FixedMeanState { theta: vec![f64::NAN; state.theta.len()], ..state };
    assert!(line.fit(model(true), &options, Some(broken), 0).is_err());
}

#[test]
fn patience_ends_the_fit_and_brings_the_best_back() {
    let line = Line::new(40);
    let z = Mat::from_fn(3, 2, |i, j| if j == 0 { i as f64 - 1.0 } else { 0.0 });
    let model = plain(z, 0.3, "rbf(lengthscale=1)", 1.0);
    let points = |rows: &[usize]| Mat::from_fn(rows.len(), 2, |i, j| line.x[(rows[i], j)]);
    let data = FixedMeanData { points: &points, means: line.means.as_ref(), targets: line.targets.as_ref() };
    let scores = [3.0, 1.0, 2.0, 1.5, 0.5];
    for restore_best in [true, false] {
        let options = FixedMeanFitOptions { val_every: 4, patience: 2, restore_best, ..options(100, 1.0) };
        let (mut asked, mut at_best) = (0, Vec::new());
        let mut validate = |model: &FixedMeanModel<Separable<f64>>| {
            asked += 1;
            if asked == 2 {
                at_best = model.unconstrained();
            }
            Ok(scores[asked - 1])
        };
        let fit = fit_fixed_mean(model.clone(), data, &options, Some(&mut validate), None, &mut |_, _| {
            Signal::Continue
        })
        .unwrap();
        assert_eq!((fit.reason, fit.state.step), (Reason::Patience, 16));
        assert_eq!(fit.state.scores, [(4, 3.0), (8, 1.0), (12, 2.0), (16, 1.5)]);
        assert_eq!(fit.model.unconstrained() == at_best, restore_best);
    }
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let line = Line::new(4);
    let z = || matrix(5, 2, 1);
    let says = |result: Result<FixedMeanProcessFit<Separable<f64>>, FixedMeanError>, what: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    };
    says(line.fit(plain(z(), 0.1, "rbf", 1.0), &options(5, 1.0), None, 0), "no more inducing points");
    let few = || plain(matrix(2, 2, 1), 0.1, "rbf", 1.0);
    says(line.fit(few(), &options(5, 1.5), None, 0), "alpha is 1.5");
    let draws = FixedMeanFitOptions { monte_carlo: Some(3), ..options(5, 1.0) };
    let mut with_noise = few();
    with_noise.learned = Learned::ALL;
    says(line.fit(with_noise, &draws, None, 0), "monte_carlo");
    let mut broken = Line::new(4);
    broken.targets[(2, 0)] = f64::NAN;
    says(broken.fit(few(), &options(5, 1.0), None, 0), "NaN");
    broken.means[(1, 0)] = f64::INFINITY;
    says(broken.fit(few(), &options(5, 1.0), None, 0), "row 1");
    let wild = FixedMeanFitOptions { learning_rate: 1e200, ..options(50, 1.0) };
    says(line.fit(few(), &wild, None, 0), "is not finite");
    let label = FixedMeanModel::new(
        Separable::independent(kernel("rbf"), 1),
        Box::new(Gaussian::new(0.1, 0.0)),
        z(),
        vec![3; 5],
        1.0,
        false,
    );
    assert!(label.unwrap_err().to_string().contains("label"));
}
