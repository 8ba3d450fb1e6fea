//! Tempering against what it should do.

use super::super::{
    Coordinates, Family, GeneralisedData, GeneralisedGp, Mode, TemperingWay, VariationalMean,
};
use super::{Bends, X, all, column, reference};
use crate::Observations;
use posterior_likelihoods::{CloneLikelihood, Gaussian, Likelihood, Poisson};
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
    let (closed, told) = model.clone().temper(&data, &TemperingWay::Best).unwrap();
    let gradient =
        TemperingWay::Gradient { optimiser: Optimiser::Adaptive(Adaptive::adam(0.02)), steps: 3000 };
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
fn other_likelihoods_are_searched_for_by_their_predictive_density() {
    let targets = column(&[0.0, 3.0, 1.0, 0.0, 2.0, 5.0]);
    let observations = Observations::new(column(&X), targets, None).unwrap();
    let data = GeneralisedData { observations: &observations, given: None };
    let model = begun(Poisson::new(1).unwrap().clone_box());
    let (tempered, told) = model.temper(&data, &TemperingWay::Best).unwrap();
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
