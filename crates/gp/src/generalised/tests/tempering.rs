//! Tempering against what it should do.

use super::super::{
    Coordinates, Family, GeneralisedData, GeneralisedGp, Mode, ReferenceProcess, TemperingMethod,
    VariationalMean,
};
use super::{Bends, X, all, column, reference, se};
use crate::exact::ExactGp;
use crate::{MeanForm, Observations};
use faer::Mat;
use posterior_likelihoods::{CloneLikelihood, Gaussian, Likelihood, Poisson, RobustMax};
use posterior_optim::{Adaptive, Optimiser};

fn begun(likelihood: Box<dyn Likelihood>) -> GeneralisedGp {
    let mean = VariationalMean::Embedding(Box::new(Bends(vec![[0.4, 1.3, 0.2, -0.1]])));
    let parts = (Family::Diagonal, Coordinates::Whitened);
    GeneralisedGp::begin(vec![reference(Mode::Prior)], parts, mean, likelihood, column(&X).as_ref()).unwrap()
}

#[test]
fn the_closed_form_is_the_numerical_minimiser() {
    let observations = all();
    let data = GeneralisedData { observations: &observations, given: None };
    let model = begun(Gaussian::new(0.2, 0.0).clone_box());
    let (closed, told) = model.clone().temper(&data, &TemperingMethod::Best).unwrap();
    let gradient =
        TemperingMethod::Gradient { optimiser: Optimiser::Adaptive(Adaptive::adam(0.02)), steps: 3000 };
    let (_, other) = model.clone().temper(&data, &gradient).unwrap();
    assert!((told.factors[0] / other.factors[0] - 1.0).abs() < 1e-5, "{told:?} {other:?}");
    assert!(told.after <= told.before && (told.after - other.after).abs() < 1e-9);
    // Means stay; variances of observations are multiplied.
    let x = column(&[0.3, 5.0]);
    let (before, after) = (model.latent(x.as_ref(), None).unwrap(), closed.latent(x.as_ref(), None).unwrap());
    assert_eq!(before.mean, after.mean);
    for i in 0..2 {
        assert!((after.variance[(i, 0)] / before.variance[(i, 0)] / told.factors[0] - 1.0).abs() < 1e-12);
    }
    let noise = closed.likelihood().shared_noise_variance().unwrap();
    assert!((noise / 0.2 / told.factors[0] - 1.0).abs() < 1e-12);
    // Its own expectation: afterwards the mean of squares over variances is one.
    let at = closed.latent(observations.inputs(), None).unwrap();
    let mean: f64 = (0..6)
        .map(|i| {
            (observations.targets()[(i, 0)] - at.mean[(i, 0)]).powi(2) / (at.variance[(i, 0)] + noise) / 6.0
        })
        .sum();
    assert!((mean - 1.0).abs() < 1e-12);
}

#[test]
fn weights_that_are_all_alike_change_nothing_and_others_count_rows_more_often() {
    let rows = all();
    let counts = Observations::new(column(&X), column(&[0.0, 3.0, 1.0, 0.0, 2.0, 5.0]), None).unwrap();
    let likelihoods =
        [(Gaussian::new(0.2, 0.0).clone_box(), &rows), (Poisson::new(1).unwrap().clone_box(), &counts)];
    for (likelihood, rows) in likelihoods {
        let told = |rows: &Observations| {
            let data = GeneralisedData { observations: rows, given: None };
            begun(likelihood.clone_box()).temper(&data, &TemperingMethod::Best).unwrap().1
        };
        let plain = told(rows);
        let heavy = told(&rows.clone().with_weights(vec![10.0; 6]).unwrap());
        assert!((heavy.factors[0] / plain.factors[0] - 1.0).abs() < 1e-6, "{plain:?} {heavy:?}");
        assert!((heavy.before - plain.before).abs() < 1e-12 && (heavy.after - plain.after).abs() < 1e-9);
        // A row of weight 2 is two rows.
        let twice = told(&rows.select(&[0, 1, 1, 2, 3, 4, 5, 5, 5]).unwrap());
        let weighted = told(&rows.clone().with_weights(vec![1.0, 2.0, 1.0, 1.0, 1.0, 3.0]).unwrap());
        assert!((weighted.factors[0] / twice.factors[0] - 1.0).abs() < 1e-6, "{twice:?} {weighted:?}");
        assert!((weighted.before - twice.before).abs() < 1e-12);
    }
}

#[test]
fn every_class_has_the_factor_that_a_search_over_a_grid_finds() {
    // Classes that follow from where a row is, but for every fourth.
    let x = Mat::from_fn(60, 1, |i, _| -2.0 + 4.0 * ((29 * i % 60) as f64) / 59.0);
    let class = |x: f64| if x < -0.3 { 0 } else { 1 + usize::from(x > 0.3) };
    let targets = Mat::from_fn(60, 1, |i, _| ((class(x[(i, 0)]) + usize::from(i % 4 == 0)) % 3) as f64);
    let rows = Observations::new(x.clone(), targets, None).unwrap();
    let data = GeneralisedData { observations: &rows, given: None };
    let one_hot = Mat::from_fn(3, 3, |i, c| f64::from(u8::from(i == c)) - 1.0 / 3.0);
    let z = Observations::new(column(&[X[0], X[2], X[4]]), one_hot, None).unwrap();
    let shared = ExactGp::new(se(1.2, 0.8), MeanForm::Zero, Gaussian::new(0.1, 0.0), 1, 3);
    let reference = ReferenceProcess::new(shared.condition(z).unwrap(), Mode::Prior, false, 0.0).unwrap();
    let bends = vec![[2.0, -1.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.5], [2.0, 1.5, 0.0, 0.0]];
    let model = GeneralisedGp::begin(
        vec![reference],
        (Family::Diagonal, Coordinates::Whitened),
        VariationalMean::Embedding(Box::new(Bends(bends))),
        RobustMax::new(3, 0.01).unwrap().clone_box(),
        x.as_ref(),
    )
    .unwrap();
    let (_, told) = model.clone().temper(&data, &TemperingMethod::Best).unwrap();
    let score = |factors: &[f64]| {
        let latent = model.clone().tempered(factors.to_vec()).unwrap().latent(x.as_ref(), None).unwrap();
        let own = |i: usize| {
            let of = |m: &Mat<f64>| (0..3).map(|c| m[(i, c)]).collect::<Vec<f64>>();
            let y = [rows.targets()[(i, 0)]];
            -model.likelihood().log_predictive_density(&y, &of(&latent.mean), &of(&latent.variance))
        };
        (0..60).map(own).sum::<f64>() / 60.0
    };
    assert!((score(&told.factors) - told.after).abs() < 1e-9 && told.after <= told.before);
    // One class has none: its best is at the end of what is searched.
    assert!(told.factors.iter().all(|factor| (1e-4..=1e4).contains(factor)), "{told:?}");
    // Coarse to fine, coordinate by coordinate on a grid of logarithms, each in turn until none moves.
    let most = 1e4_f64.ln();
    let mut logs = [0.0; 3];
    let mut width = 4.0;
    while width > 1e-3 {
        for _ in 0..6 {
            for c in 0..3 {
                let at = |k: i32| {
                    let mut moved = logs;
                    moved[c] = f64::clamp(logs[c] + 0.1 * width * f64::from(k), -most, most);
                    (score(&moved.map(f64::exp)), moved)
                };
                logs = (-10..=10).map(at).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1;
            }
        }
        width *= 0.4;
    }
    let found = score(&logs.map(f64::exp));
    assert!((found - told.after).abs() < 1e-5, "{found} {told:?} {logs:?}");
}

#[test]
fn other_likelihoods_are_searched_for_by_their_predictive_density() {
    let targets = column(&[0.0, 3.0, 1.0, 0.0, 2.0, 5.0]);
    let observations = Observations::new(column(&X), targets, None).unwrap();
    let data = GeneralisedData { observations: &observations, given: None };
    let model = begun(Poisson::new(1).unwrap().clone_box());
    let (tempered, told) = model.temper(&data, &TemperingMethod::Best).unwrap();
    assert!(told.after <= told.before);
    let score = |factor: f64| {
        let latent =
            tempered.clone().tempered(vec![factor]).unwrap().latent(observations.inputs(), None).unwrap();
        let own = |i: usize| {
            let (m, v) = (latent.mean[(i, 0)], latent.variance[(i, 0)]);
            -tempered.likelihood().log_predictive_density(&[observations.targets()[(i, 0)]], &[m], &[v])
        };
        (0..6).map(own).sum::<f64>() / 6.0
    };
    let best = score(told.factors[0]);
    assert!((best - told.after).abs() < 1e-9, "{best} {told:?}");
    for times in [0.9, 1.1] {
        assert!(score(times * told.factors[0]) >= best - 1e-9);
    }
}
