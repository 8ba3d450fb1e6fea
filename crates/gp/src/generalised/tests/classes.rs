//! Processes of classes: their risk, and learning in turns.

use super::super::learning::together;
use super::super::{ClassLearningOptions, learn_class_references, pointwise_class_risk};
use super::{kernel, process, se};
use crate::exact::ExactGp;
use crate::{MeanForm, Observations, Posterior};
use faer::Mat;
use posterior_likelihoods::{Gaussian, Likelihood, RobustMax};
use posterior_optim::{Adaptive, Optimiser, Parameters, Signal, UpdateRule};

const LABELS: [usize; 7] = [0, 1, 2, 1, 0, 2, 2];

fn points() -> Mat<f64> {
    Mat::from_fn(7, 1, |i, _| [-2.0, -1.3, -0.4, 0.1, 0.8, 1.1, 1.9][i])
}

/// Kernel, mean and noise of their own.
fn models() -> Vec<ExactGp> {
    let of = |text: &str, form: MeanForm, noise: f64| {
        ExactGp::new(kernel(text), form, Gaussian::new(noise, 1e-6), 1, 1)
    };
    let mut models = vec![
        of("se(lengthscale=0.8)", MeanForm::Constant, 0.3),
        of("linear + constant(variance=0.5)", MeanForm::Zero, 0.1),
        of("nngp(depth=1, relu)", MeanForm::Linear, 1.0),
    ];
    // Means that are not zero.
    for (model, places) in models.iter_mut().zip([1, 0, 2]) {
        let mut values = model.values();
        let last = values.len() - 1;
        (0..places).for_each(|k| values[last - 1 - k] = 0.2 + 0.1 * k as f64);
        model.set_values(&values);
    }
    models
}

#[test]
fn the_risk_of_classes_is_that_of_their_predictions_and_its_gradient_a_finite_difference() {
    let (x, models, likelihood) = (points(), models(), RobustMax::new(3, 0.02).unwrap());
    let risk = |models: &[ExactGp]| pointwise_class_risk(models, x.as_ref(), &LABELS, &likelihood).unwrap();
    let (value, gradients) = risk(&models);
    let found: Vec<_> = models
        .iter()
        .enumerate()
        .map(|(class, model)| {
            let targets = Mat::from_fn(7, 1, |i, _| f64::from(u8::from(LABELS[i] == class)));
            let data = Observations::new(x.clone(), targets, None).unwrap();
            model.clone().condition(data).unwrap().predict(x.as_ref()).unwrap()
        })
        .collect();
    let expected: f64 = (0..7)
        .map(|i| {
            let means: Vec<f64> = found.iter().map(|f| f.mean[(i, 0)]).collect();
            let variances: Vec<f64> = found.iter().map(|f| f.latent_variance[i]).collect();
            -likelihood.log_predictive_density(&[LABELS[i] as f64], &means, &variances) / 7.0
        })
        .sum();
    assert!((value - expected).abs() < 1e-9, "{value} {expected}");
    for (class, gradient) in gradients.iter().enumerate() {
        let values = models[class].values();
        assert_eq!(gradient.len(), values.len());
        for (i, g) in gradient.iter().enumerate() {
            let at = |shift: f64| {
                let mut moved = models.clone();
                let mut values = values.clone();
                values[i] += shift;
                moved[class].set_values(&values);
                risk(&moved).0
            };
            let h = 1e-5 * values[i].abs().max(0.1);
            let expected = (at(h) - at(-h)) / (2.0 * h);
            assert!((g - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{class} {i}: {g} {expected}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (x, models, likelihood) = (points(), models(), RobustMax::new(3, 0.02).unwrap());
    let refused = |models: &[ExactGp], labels: &[usize]| {
        pointwise_class_risk(models, x.as_ref(), labels, &likelihood).unwrap_err().to_string()
    };
    assert!(refused(&models[..2], &LABELS).contains("processes, one for each class: expected 3, got 2"));
    assert!(refused(&models, &LABELS[..6]).contains("labels, one for each row: expected 7, got 6"));
    assert!(refused(&models, &[0, 1, 2, 1, 0, 2, 3]).contains("from 0 to 2"));
}

/// Rows of each class about a place of its own.
fn classes() -> Vec<Mat<f64>> {
    let of = |middle: f64| Mat::from_fn(20, 1, |i, _| middle + 0.4 * (7 * i % 20) as f64 / 20.0);
    vec![of(-1.5), of(0.0), of(1.0)]
}

fn options(turns: usize) -> ClassLearningOptions {
    ClassLearningOptions {
        points: 4,
        turns,
        optimiser: Optimiser::Adaptive(Adaptive::new(UpdateRule::AdaBelief.rule(), 0.05)),
        steps: 60,
        least_risk: -10.0,
        likelihood: RobustMax::new(3, 0.01).unwrap(),
        seed: 3,
    }
}

#[test]
fn classes_learn_together_in_turns() {
    let begun = || (0..3).map(|_| process(se(1.0, 3.0))).collect::<Vec<_>>();
    let learn = |turns| {
        learn_class_references(begun(), &classes(), &options(turns), &mut |_, _| Signal::Continue).unwrap()
    };
    let found = learn(2);
    assert_eq!((found.turns.len(), found.rows.len(), found.interrupted), (2, 3, false));
    for own in found.rows.iter().chain(found.turns.iter().flat_map(|turn| &turn.rows)) {
        assert!(own.len() <= 4 && own.iter().all(|row| *row < 20), "{own:?}");
    }
    // Where turns ended is better than where they began, on the points that they were learned on.
    let (x, labels) = together(&classes(), &found.turns[1].rows);
    let likelihood = options(2).likelihood;
    let risk = |models: &[ExactGp]| pointwise_class_risk(models, x.as_ref(), &labels, &likelihood).unwrap().0;
    assert!((risk(&found.models) - found.turns[1].risk).abs() < 1e-12);
    assert!(found.turns[1].risk < risk(&begun()) - 0.05, "{:?} {}", found.turns, risk(&begun()));
    // The first turn of two is the only one of one; no turns choose what the kernels as they are say.
    let one = learn(1);
    assert_eq!((&one.turns[0], &one.rows), (&found.turns[0], &found.turns[1].rows));
    let none = learn(0);
    assert_eq!((none.rows, none.turns.len()), (found.turns[0].rows.clone(), 0));
    assert_eq!(none.models[0].values(), begun()[0].values());
    // What predicts: classes where they lie, with probabilities that are those of the likelihood.
    let predicts = found.clone().condition(&classes(), likelihood).unwrap();
    let at = Mat::from_fn(3, 1, |i, _| [-1.3, 0.2, 1.2][i]);
    let (found_there, latent) =
        (predicts.probabilities(at.as_ref()).unwrap(), predicts.latent(at.as_ref()).unwrap());
    for i in 0..3 {
        let own: Vec<f64> = (0..3).map(|c| found_there[(i, c)]).collect();
        assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-12 && own[i] > 0.7, "{own:?}");
        for c in 0..3 {
            let posterior = predicts.posteriors()[c].predict(at.as_ref()).unwrap();
            assert_eq!(
                (latent.mean[(i, c)], latent.variance[(i, c)]),
                (posterior.mean[(i, 0)], posterior.latent_variance[i])
            );
            let row = |from: &Mat<f64>| (0..3).map(|k| from[(i, k)]).collect::<Vec<f64>>();
            let density =
                likelihood.log_predictive_density(&[c as f64], &row(&latent.mean), &row(&latent.variance));
            assert!((own[c] - density.exp()).abs() < 1e-9, "{} {}", own[c], density.exp());
        }
    }
    let few = [classes()[0].clone(), classes()[1].clone(), Mat::zeros(0, 1)];
    assert!(found.clone().condition(&few, likelihood).unwrap_err().to_string().contains("rows of a class"));
    // An observer who has seen enough, and a risk that is low enough, end it.
    let stopped = learn_class_references(begun(), &classes(), &options(2), &mut |_, _| Signal::Stop).unwrap();
    assert!(stopped.interrupted && stopped.turns.len() == 1 && stopped.turns[0].steps == 1);
    let early = ClassLearningOptions { least_risk: 5.0, ..options(2) };
    let early = learn_class_references(begun(), &classes(), &early, &mut |_, _| Signal::Continue).unwrap();
    assert!(!early.interrupted && early.turns.iter().all(|turn| turn.steps == 1), "{:?}", early.turns);
}

#[test]
fn noise_goes_back_to_where_it_began_and_the_rest_goes_on() {
    // Two turns of one tiny step each: noise is a step away from its beginning, hyperparameters are two.
    let tiny = |turns| ClassLearningOptions {
        steps: 1,
        optimiser: Optimiser::Adaptive(Adaptive::adam(1e-3)),
        ..options(turns)
    };
    let begun: Vec<ExactGp> = (0..3).map(|_| process(se(1.0, 3.0))).collect();
    let moved = |turns| -> Vec<f64> {
        let found =
            learn_class_references(begun.clone(), &classes(), &tiny(turns), &mut |_, _| Signal::Continue)
                .unwrap();
        let (before, after) = (begun[0].values(), found.models[0].values());
        before.iter().zip(after).map(|(b, a)| (a / b).ln().abs()).collect()
    };
    let (one, two) = (moved(1), moved(2));
    let noise = one.len() - 1;
    assert!((one[noise] - 1e-3).abs() < 1e-6 && (two[noise] - 1e-3).abs() < 1e-6, "{one:?} {two:?}");
    assert!((two[0] / one[0] - 2.0).abs() < 0.01, "{one:?} {two:?}");
}
