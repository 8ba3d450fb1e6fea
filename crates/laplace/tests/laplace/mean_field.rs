//! Mean-field fine-tuning against closed forms, finite differences with frozen noise, and itself after an interruption.

use crate::common::*;
use faer::Mat;
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::{Data, LaplaceError, Learned, MeanField, MeanFieldOptions, Problem, Run, Wanted};
use posterior_likelihoods::{Gaussian, OutputLikelihood, Prediction};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Architecture, Array, Network, Selection};
use posterior_optim::{Rule, Signal};
use posterior_store::Tensors;

const SGD: Rule = Rule::Sgd { momentum: 0.0, nesterov: false, weight_decay: 0.0 };
const LINEAR: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = []\noutputs = 1\nactivation = \"tanh\"";

fn tuned(
    network: &Network<f64>,
    examples: &dyn Examples<f64>,
    likelihood: &OutputLikelihood,
    options: &MeanFieldOptions,
) -> Result<MeanField<f64>, LaplaceError> {
    let data = Data::new(network, examples, likelihood);
    let selection = &Selection::all(network.graph());
    MeanField::fit(&Problem { data, selection, seed: 7, memory: 1 << 30 }, options, &mut Run::default())
}

/// One step of plain gradient descent on all examples at once, with deviations that begin at `log_deviation`.
fn one_step(log_deviation: f64, groups: usize) -> MeanFieldOptions {
    MeanFieldOptions {
        weight_decay: 0.03,
        epochs: 1,
        batch: 100,
        groups,
        rule: SGD,
        mean_rate: 1e-3,
        deviation_rates: (1e-3, 1e-3),
        initial_log_deviations: (log_deviation, log_deviation),
        learn_noise: false,
        samples: 4,
    }
}

#[test]
fn gradients_are_finite_differences_with_frozen_noise() {
    let network = network(PERCEPTRON, 1);
    let selection = Selection::all(network.graph());
    let weights = selection.flatten(network.parameters());
    for likelihood in likelihoods() {
        let examples = data(&network, &likelihood, 11, 3);
        let loss = |weights: &[f64], log_deviation: f64| {
            let mut moved = network.clone();
            selection.assign(weights, moved.parameters_mut());
            let found = tuned(&moved, &examples, &likelihood, &one_step(log_deviation, 3)).unwrap();
            (found.summary.history[0].nll, found)
        };
        let at = -1.5;
        let (_, found) = loss(&weights, at);
        let h = 1e-5;
        for k in (0..weights.len()).step_by(5) {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[k] += by;
                loss(&weights, at).0
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h) + 0.03 * weights[k];
            let own = (weights[k] - found.mean()[k]) / 1e-3;
            assert!((own - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{k}: {own} {expected}");
        }
        // All deviations together; the prior of each adds wd e^(2 psi) - 1/N.
        let d = weights.len() as f64;
        let expected = (loss(&weights, at + h).0 - loss(&weights, at - h).0) / (2.0 * h)
            + d * (0.03 * (2.0 * at).exp() - 1.0 / 11.0);
        let own: f64 = found.log_deviation().iter().map(|p| (at - p) / 1e-3).sum();
        assert!((own - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{own} {expected}");
    }
}

/// A linear model with Gaussian noise: features with a column of ones, posterior precision and mean.
fn linear(count: usize, noise: f64, precision: f64) -> (Network<f64>, Tabular<f64>, Mat<f64>, Mat<f64>) {
    let graph = Architecture::from_toml(LINEAR).unwrap().graph().unwrap();
    let network = Network::<f64>::initialised(graph, Streams::new(3)).unwrap();
    let mut x = inputs(&network, count, 4);
    // Columns that depend on each other, so that the mean-field deviations are not the posterior's.
    x.values_mut().chunks_exact_mut(2).for_each(|row| row[1] += 0.8 * row[0]);
    let z = normals(count, 5);
    let y: Vec<f64> =
        (0..count).map(|i| 1.5 * x.row(i)[0] - 0.5 * x.row(i)[1] + 0.3 + noise.sqrt() * z[i]).collect();
    let jacobian = jacobian(&network, &Selection::all(network.graph()), &x);
    let target = Mat::from_fn(count, 1, |i, _| y[i]);
    let mut h = (jacobian.transpose() * &jacobian) * faer::Scale(1.0 / noise);
    (0..3).for_each(|i| h[(i, i)] += precision);
    let mean = inverse(&h) * (jacobian.transpose() * target) * faer::Scale(1.0 / noise);
    let examples = Tabular::new(x, Targets::Values(Array::new(vec![count, 1], y)));
    (network, examples, h, mean)
}

#[test]
fn a_linear_model_has_its_known_optimum() {
    let (count, noise, decay) = (60, 0.2, 0.02);
    let (network, examples, h, mean) = linear(count, noise, decay * count as f64);
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![noise]).unwrap());
    let options = MeanFieldOptions {
        weight_decay: decay,
        epochs: 6000,
        batch: count,
        groups: 20,
        rule: SGD,
        mean_rate: 2e-3,
        deviation_rates: (0.1, 5e-3),
        initial_log_deviations: (-3.0, -2.0),
        learn_noise: false,
        samples: 20,
    };
    let found = tuned(&network, &examples, &likelihood, &options).unwrap();
    for i in 0..3 {
        // KL(q | posterior) is least where means agree and precisions are the diagonal of the posterior's.
        let deviation = h[(i, i)].powf(-0.5);
        let apart = (found.mean()[i] - mean[(i, 0)]).abs() / deviation;
        assert!(apart < 0.15, "mean {i} is {apart} deviations from the optimum");
        let log = found.log_deviation()[i] - deviation.ln();
        assert!(log.abs() < 0.05, "deviation {i} is off by a factor e^{log}");
    }
    // The recorded divergence is that of independent Gaussians from the prior.
    let precision = decay * count as f64;
    let each = |(m, p): (&f64, &f64)| {
        let ratio = (2.0 * p).exp() * precision;
        0.5 * (ratio + m * m * precision - 1.0 - ratio.ln())
    };
    let divergence: f64 = found.mean().iter().zip(found.log_deviation()).map(each).sum();
    let last = found.summary.history.last().unwrap();
    assert!((last.divergence - divergence).abs() < 1e-10, "{} {divergence}", last.divergence);
    assert_eq!((last.epoch, last.noise_factor), (6000, 1.0));
}

#[test]
fn noise_is_learned_from_residuals() {
    let (network, examples, _, _) = linear(400, 0.2, 4.0);
    // Begins at a noise that is 50 times too large; the residuals' own mean square is 0.2 within 5 sqrt(2/400).
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![10.0]).unwrap());
    let options = MeanFieldOptions {
        weight_decay: 0.01,
        epochs: 400,
        batch: 50,
        groups: 4,
        mean_rate: 1e-3,
        deviation_rates: (1e-3, 1e-4),
        initial_log_deviations: (-6.0, -6.0),
        ..MeanFieldOptions::default()
    };
    let found = tuned(&network, &examples, &likelihood, &options).unwrap();
    let OutputLikelihood::Gaussian(g) = found.likelihood() else { panic!("{:?}", found.likelihood()) };
    let variance = g.noise_variances()[0];
    assert!((variance / 0.2 - 1.0).abs() < 5.0 * (2.0f64 / 400.0).sqrt(), "{variance}");
}

#[test]
fn predictions_are_mixtures_over_the_draws() {
    let network = network(PERCEPTRON, 1);
    let x = inputs(&network, 5, 21);
    for likelihood in likelihoods() {
        let examples = data(&network, &likelihood, 30, 3);
        let options = MeanFieldOptions {
            initial_log_deviations: (-1.5, -1.0),
            epochs: 2,
            samples: 7,
            ..one_step(-1.0, 4)
        };
        let found = tuned(&network, &examples, &likelihood, &options).unwrap();
        let draws = found.sampled_outputs(&network, &x).unwrap();
        let targets = data(&network, &likelihood, 5, 8);
        let y: Vec<f64> = (0..5).flat_map(|i| target(&targets, i)).collect();
        let (width, mixed) = (likelihood.target_width(), found.predictive(&network, &x, Some(&y)).unwrap());
        let latent = found.latent(&network, &x, Wanted::Full).unwrap();
        for i in 0..5 {
            let f = |k: usize| &draws[(k * 5 + i) * 3..][..3];
            let density: f64 = (0..7)
                .map(|k| found.likelihood().log_density(&y[i * width..][..width], f(k)).exp() / 7.0)
                .sum();
            let own = mixed.log_densities.as_ref().unwrap()[i];
            assert!((own - density.ln()).abs() < 1e-10, "{own} {}", density.ln());
            let mean = |of: &dyn Fn(usize) -> f64| (0..7).map(of).sum::<f64>() / 7.0;
            for a in 0..3 {
                let centre = |c: usize| mean(&|k| f(k)[c]);
                assert!((latent.mean[i * 3 + a] - centre(a)).abs() < 1e-12);
                for b in 0..3 {
                    let expected = mean(&|k| (f(k)[a] - centre(a)) * (f(k)[b] - centre(b)));
                    assert!((latent.covariance[i * 9 + a * 3 + b] - expected).abs() < 1e-12);
                }
                match &mixed.predictions[i] {
                    Prediction::Classes(p) => {
                        let softmax = |k: usize| f(k)[a].exp() / f(k).iter().map(|f| f.exp()).sum::<f64>();
                        assert!((p[a] - mean(&softmax)).abs() < 1e-12);
                    }
                    Prediction::Moments { mean: m, variance, latent_variance }
                        if likelihood.name() == "gaussian" =>
                    {
                        let OutputLikelihood::Gaussian(g) = found.likelihood() else { panic!() };
                        let spread = mean(&|k| (f(k)[a] - centre(a)).powi(2));
                        assert!(
                            (m[a] - centre(a)).abs() < 1e-12 && (latent_variance[a] - spread).abs() < 1e-12
                        );
                        assert!((variance[a] - spread - g.noise_variances()[a]).abs() < 1e-12);
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn draws_of_a_linear_model_have_its_moments() {
    let (network, examples, _, _) = linear(60, 0.2, 1.2);
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.2]).unwrap());
    let samples = 4000;
    let options = MeanFieldOptions { samples, initial_log_deviations: (-1.0, -0.5), ..one_step(-1.0, 4) };
    let found = tuned(&network, &examples, &likelihood, &options).unwrap();
    let x = inputs(&network, 3, 30);
    let rows = jacobian(&network, found.selection(), &x);
    let latent = found.latent(&network, &x, Wanted::Diagonal).unwrap();
    for i in 0..3 {
        let mean: f64 = (0..3).map(|k| rows[(i, k)] * found.mean()[k]).sum();
        let variance: f64 = (0..3).map(|k| (rows[(i, k)] * found.log_deviation()[k].exp()).powi(2)).sum();
        // Five standard errors of a mean and of a Gaussian variance.
        assert!((latent.mean[i] - mean).abs() < 5.0 * (variance / samples as f64).sqrt());
        assert!((latent.covariance[i] / variance - 1.0).abs() < 5.0 * (2.0 / samples as f64).sqrt());
    }
}

#[test]
fn an_interrupted_fit_goes_on_to_the_same_numbers() {
    let network = network(PERCEPTRON, 1);
    let selection = Selection::all(network.graph());
    let likelihood = likelihoods().swap_remove(1);
    let examples = data(&network, &likelihood, 23, 3);
    for rule in [Rule::Sgd { momentum: 0.9, nesterov: false, weight_decay: 0.0 }, Rule::adam()] {
        let options = MeanFieldOptions { epochs: 4, batch: 6, rule, learn_noise: true, ..one_step(-2.0, 3) };
        let whole = tuned(&network, &examples, &likelihood, &options).unwrap();
        for stop in [1, 6, 15] {
            let mut kept = None;
            let mut write = |state: &SavedState| {
                kept = Some(state.clone());
                Ok(())
            };
            let data = Data::new(&network, &examples, &likelihood);
            let problem = Problem { data, selection: &selection, seed: 7, memory: 1 << 30 };
            let observer = |_, done, _| if done == stop { Signal::Stop } else { Signal::Continue };
            let checkpointer = Checkpointer::new(None, Some(&mut write));
            let stopped = MeanField::fit(&problem, &options, &mut Run::new(observer).keeping(checkpointer));
            assert!(matches!(stopped, Err(LaplaceError::Interrupted)));
            let again = |options: &MeanFieldOptions, seed: u64| {
                let mut run = Run::default().keeping(Checkpointer::new(kept.clone(), None));
                MeanField::fit(&Problem { seed, ..problem }, options, &mut run)
            };
            let found = again(&options, 7).unwrap();
            assert_eq!((found.mean(), found.log_deviation()), (whole.mean(), whole.log_deviation()));
            assert_eq!(found.likelihood(), whole.likelihood());
            assert_eq!(found.summary.history, whole.summary.history);
            let error = again(&options, 8).unwrap_err();
            assert!(error.to_string().contains("another seed"), "{error}");
        }
    }
}

#[test]
fn files_hold_what_predicts() {
    let network = network(LENET, 3);
    let likelihood = likelihoods().swap_remove(0);
    let examples = data(&network, &likelihood, 12, 3);
    let found = tuned(&network, &examples, &likelihood, &one_step(-2.0, 5)).unwrap();
    let mut tensors = Tensors::default();
    found.write(&mut tensors);
    let mut read = || {
        let parts = (found.selection().clone(), found.likelihood().clone(), found.samples());
        MeanField::<f64>::read(parts.0, parts.1, parts.2, found.summary.clone(), &mut tensors)
    };
    let again = read().unwrap();
    let x = inputs(&network, 4, 9);
    assert_eq!(again.sampled_outputs(&network, &x).unwrap(), found.sampled_outputs(&network, &x).unwrap());
    assert!(read().is_err(), "nothing is left to be read");
}

#[test]
fn bad_requests_and_divergence_say_what_is_wrong() {
    let network = network(PERCEPTRON, 1);
    let likelihood = likelihoods().swap_remove(1);
    let examples = data(&network, &likelihood, 20, 3);
    let problem = |options: MeanFieldOptions| {
        tuned(&network, &examples, &likelihood, &options).unwrap_err().to_string()
    };
    let fine = one_step(-2.0, 3);
    for (options, part) in [
        (MeanFieldOptions { weight_decay: 0.0, ..fine.clone() }, "must be positive"),
        (MeanFieldOptions { samples: 1, ..fine.clone() }, "at least 2 draws"),
        (MeanFieldOptions { groups: 0, ..fine.clone() }, "at least 1"),
        (MeanFieldOptions { rule: Rule::adamw(0.1), ..fine.clone() }, "at 0"),
        (MeanFieldOptions { initial_log_deviations: (1.0, 2.0), ..fine.clone() }, "at most 0"),
        (MeanFieldOptions { mean_rate: f64::NAN, ..fine.clone() }, "step sizes"),
    ] {
        let text = problem(options);
        assert!(text.contains(part), "{text}");
    }
    let text = problem(MeanFieldOptions { mean_rate: 1e200, epochs: 5, ..fine.clone() });
    assert!(text.contains("not finite at step") && text.contains("smaller learning rate"), "{text}");
    let selection = Selection::all(network.graph());
    let data = Data::new(&network, &examples, &likelihood);
    let problem = Problem { data, selection: &selection, seed: 0, memory: 1000 };
    let refused = MeanField::fit(&problem, &fine, &mut Run::default());
    assert!(matches!(refused, Err(LaplaceError::Memory { .. })));
}
