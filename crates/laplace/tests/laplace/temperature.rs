//! Temperature scaling against a grid, its own stationarity and closed forms.

use crate::common::*;
use posterior_laplace::{Data, LaplaceError, Learned, Problem, Run, Temperature, Wanted};
use posterior_likelihoods::{Bernoulli, Categorical, FullGaussian, Gaussian, Link, OutputLikelihood};
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Array, Network, Selection};
use posterior_optim::Signal;
use posterior_store::Tensors;

fn scaled(
    network: &Network<f64>,
    examples: &dyn Examples<f64>,
    likelihood: &OutputLikelihood,
) -> Result<Temperature, LaplaceError> {
    chosen(network, examples, likelihood, 1 << 30, &mut Run::default())
}

fn chosen(
    network: &Network<f64>,
    examples: &dyn Examples<f64>,
    likelihood: &OutputLikelihood,
    memory: u64,
    run: &mut Run<'_>,
) -> Result<Temperature, LaplaceError> {
    let data = Data { network, examples, validation: Some(examples), likelihood };
    let selection = &Selection::all(network.graph());
    Temperature::fit(&Problem { data, selection, seed: 0, memory }, run)
}

/// The mean of `-log p` of examples whose outputs are changed by hand.
fn nll(
    network: &Network<f64>,
    examples: &dyn Examples<f64>,
    likelihood: &OutputLikelihood,
    change: impl Fn(&mut [f64]),
) -> f64 {
    let each = |i: usize| {
        let mut f = network.forward(&examples.batch(&[i], None).0).unwrap().into_values();
        change(&mut f);
        -likelihood.log_density(&target(examples, i), &f)
    };
    (0..examples.len()).map(each).sum::<f64>() / examples.len() as f64
}

/// Examples whose classes are drawn from the softmax of `inverse` times the network's outputs.
fn classes(network: &Network<f64>, count: usize, inverse: f64) -> Tabular<f64> {
    let x = inputs(network, count, 5);
    let f = network.forward(&x).unwrap();
    let uniform = |z: f64| 0.5 * (1.0 + (0.797_884_560_8 * (z + 0.044_715 * z.powi(3))).tanh());
    let draws: Vec<f64> = normals(count, 6).into_iter().map(uniform).collect();
    let labels = draws.iter().enumerate().map(|(i, u)| {
        let weights: Vec<f64> = f.row(i).iter().map(|f| (inverse * f).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        weights.iter().position(|w| {
            sum += w / total;
            *u < sum
        })
    });
    let labels = labels.map(|label| label.unwrap_or(2) as u32).collect();
    Tabular::new(x, Targets::Classes(labels))
}

#[test]
fn no_temperature_of_a_grid_is_better() {
    let network = network(PERCEPTRON, 1);
    let categorical = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    let mut cases = vec![(categorical.clone(), classes(&network, 400, 2.5))];
    for link in [Link::Logit, Link::Probit] {
        let likelihood = OutputLikelihood::Bernoulli(Bernoulli::new(3, link).unwrap());
        let x = inputs(&network, 300, 8);
        // Events that follow the outputs, with enough noise that no temperature explains them all.
        let noise = normals(900, 9);
        let events = network.forward(&x).unwrap().into_values();
        let events = events.iter().zip(&noise).map(|(f, z)| f64::from(3.0 * f + z > 0.0)).collect();
        cases.push((likelihood, Tabular::new(x, Targets::Values(Array::new(vec![300, 3], events)))));
    }
    for (likelihood, examples) in cases {
        let found = scaled(&network, &examples, &likelihood).unwrap();
        let (t, at) = (found.temperature(), |t: f64| {
            nll(&network, &examples, &likelihood, |f| f.iter_mut().for_each(|f| *f /= t))
        });
        assert!(!found.report.at_edge && found.report.evaluations < 60, "{:?}", found.report);
        assert!((found.report.nll - at(t)).abs() < 1e-12 && (found.report.plain_nll - at(1.0)).abs() < 1e-12);
        for k in -400..=400 {
            let other = 10f64.powf(f64::from(k) / 200.0);
            assert!(at(other) >= found.report.nll - 1e-13, "{other} is better than {t}");
        }
        // At the minimum the difference quotient over a step h is the third derivative's, of order h^2.
        let h = 1e-4;
        assert!((at(t * (1.0 + h)) - at(t * (1.0 - h))).abs() / (2.0 * h) < 1e-6);
        assert_eq!(found.noise_factor(), 1.0);
    }
    // Labels that were drawn at an inverse temperature give it back; its standard error is below 0.25 here (from 400 curvatures).
    let found = scaled(&network, &classes(&network, 400, 2.5), &categorical).unwrap();
    assert!((1.0 / found.temperature() - 2.5).abs() < 1.0, "{}", found.temperature());
}

#[test]
fn noise_has_the_factor_that_a_grid_finds() {
    let network = network(PERCEPTRON, 1);
    let full = vec![1.0, 0.3, 0.0, 0.3, 0.5, -0.1, 0.0, -0.1, 2.0];
    let gaussians = [
        OutputLikelihood::Gaussian(Gaussian::independent(vec![0.5, 1.0, 2.0]).unwrap()),
        OutputLikelihood::FullGaussian(FullGaussian::new(3, full).unwrap()),
    ];
    for likelihood in gaussians {
        let examples = data(&network, &likelihood, 57, 3);
        let found = scaled(&network, &examples, &likelihood).unwrap();
        let with = |factor: f64| {
            nll(
                &network,
                &examples,
                &posterior_laplace::scores::scaled_noise(&likelihood, factor).unwrap(),
                |_| (),
            )
        };
        let factor = found.noise_factor();
        assert!((found.report.nll - with(factor)).abs() < 1e-12);
        for k in -300..=300 {
            assert!(with(factor * 1.02f64.powi(k)) >= found.report.nll - 1e-13);
        }
        let x = inputs(&network, 4, 9);
        let latent = found.latent(&network, &x, Wanted::Full).unwrap();
        assert_eq!(latent.mean, network.forward(&x).unwrap().values());
        assert_eq!(latent.covariance, vec![0.0; 4 * 9]);
        assert_eq!(found.temperature(), 1.0);
    }
    // Log variances as outputs: the factor is added to them.
    let network = crate::common::network(
        "kind = \"perceptron\"\ninputs = 2\nhidden = [4]\noutputs = 2\nactivation = \"tanh\"",
        2,
    );
    let (likelihood, x) = (heteroscedastic(), inputs(&network, 40, 1));
    let targets = Targets::Values(Array::new(vec![40, 1], normals(40, 2)));
    let examples = Tabular::new(x, targets);
    let found = scaled(&network, &examples, &likelihood).unwrap();
    let with = |factor: f64| nll(&network, &examples, &likelihood, |f| f[1] += factor.ln());
    let factor = found.noise_factor();
    assert!((found.report.nll - with(factor)).abs() < 1e-12);
    for k in -300..=300 {
        assert!(with(factor * 1.02f64.powi(k)) >= found.report.nll - 1e-13);
    }
}

#[test]
fn latents_are_scaled_logits_and_files_hold_them() {
    let network = network(PERCEPTRON, 1);
    let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    let examples = classes(&network, 200, 3.0);
    let found = scaled(&network, &examples, &likelihood).unwrap();
    let x = inputs(&network, 6, 12);
    let latent = found.latent(&network, &x, Wanted::Diagonal).unwrap();
    let expected: Vec<f64> =
        network.forward(&x).unwrap().values().iter().map(|f| f / found.temperature()).collect();
    assert_eq!((latent.mean, latent.covariance), (expected, vec![0.0; 18]));
    let mut tensors = Tensors::default();
    Learned::<f64>::write(&found, &mut tensors);
    let read = Temperature::read(&likelihood, found.report, &mut tensors).unwrap();
    assert_eq!(read, found);
    assert!(Temperature::read(&likelihood, found.report, &mut tensors).is_err());
    tensors.insert_vector("temperature", &[-1.0]);
    let error = Temperature::read(&likelihood, found.report, &mut tensors).unwrap_err();
    assert!(error.to_string().contains("no positive number"), "{error}");
}

#[test]
fn examples_that_say_nothing_stand_at_the_edge_and_others_are_refused() {
    let network = network(PERCEPTRON, 1);
    let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    let x = inputs(&network, 20, 5);
    let f = network.forward(&x).unwrap();
    let largest = |i: usize| (0..3).max_by(|a, b| f.row(i)[*a].total_cmp(&f.row(i)[*b])).unwrap() as u32;
    let right = Tabular::new(x.clone(), Targets::Classes((0..20).map(largest).collect()));
    let found = scaled(&network, &right, &likelihood).unwrap();
    assert!(found.report.at_edge && (found.temperature() - 1e-2).abs() < 1e-12);
    let least = |i: usize| (0..3).min_by(|a, b| f.row(i)[*a].total_cmp(&f.row(i)[*b])).unwrap() as u32;
    let wrong = Tabular::new(x, Targets::Classes((0..20).map(least).collect()));
    let found = scaled(&network, &wrong, &likelihood).unwrap();
    assert!(found.report.at_edge && (found.temperature() - 1e2).abs() < 1e-9);

    let counts = likelihoods().pop().unwrap();
    let error = scaled(&network, &data(&network, &counts, 5, 1), &counts).unwrap_err();
    assert!(error.to_string().contains("neither logits nor a noise variance"), "{error}");
    let none = Tabular::new(Array::new(vec![0, 3], Vec::new()), Targets::Classes(Vec::new()));
    let error = scaled(&network, &none, &likelihood).unwrap_err();
    assert!(error.to_string().contains("give some"), "{error}");
    let error = chosen(&network, &right, &likelihood, 100, &mut Run::default());
    assert!(matches!(error, Err(LaplaceError::Memory { .. })));
    let stopped = chosen(&network, &right, &likelihood, 1 << 30, &mut Run::new(|_, _, _| Signal::Stop));
    assert!(matches!(stopped, Err(LaplaceError::Interrupted)));
}
