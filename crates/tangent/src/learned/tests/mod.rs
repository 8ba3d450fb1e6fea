//! Ways back against finite differences.

use super::*;
use faer::Mat;
use posterior_kernels::KernelExpression;
use posterior_linalg::random::Streams;
use posterior_linear::low_rank::LearnedFeatures;
use posterior_networks::{Architecture, Network};
use posterior_optim::check;
use rand_distr::{Distribution, StandardNormal};

fn network(outputs: usize) -> Network<f64> {
    let text = format!("kind = 'residual_perceptron'\ninputs = 3\nwidth = 5\noutputs = {outputs}");
    Network::initialised(Architecture::from_toml(&text).unwrap().graph().unwrap(), Streams::new(3)).unwrap()
}

fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(2).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

fn kernel(columns: usize) -> Box<dyn posterior_kernels::Kernel<f64>> {
    let names: Vec<String> = (0..columns).map(|i| format!("x{i}")).collect();
    "se(ard) + linear".parse::<KernelExpression>().unwrap().build(&names).unwrap()
}

/// Slopes in features and variances of arbitrary weights go back to every parameter.
fn check_way_back(features: Box<dyn LearnedFeatures>) {
    let x = normal(6, 3, "rows");
    let (of_features, of_variances) = (normal(features.rank(), 6, "slopes"), normal(6, 1, "of variances"));
    let sum = |features: &dyn LearnedFeatures| {
        let values = features.values(x.as_ref()).unwrap();
        let own: f64 = (0..6)
            .map(|i| {
                let pairs = values.features.col_as_slice(i).iter().zip(of_features.col_as_slice(i));
                pairs.map(|(a, b)| a * b).sum::<f64>() + values.variances[i] * of_variances[(i, 0)]
            })
            .sum();
        own
    };
    let theta = features.unconstrained();
    assert_eq!(features.decays().len(), theta.len());
    let mut moved = features.clone_box();
    let numeric = check::gradient(
        |theta| {
            moved.set_unconstrained(theta).unwrap();
            sum(&*moved)
        },
        &theta,
    );
    let traced = features.at(x.as_ref()).unwrap();
    assert_eq!(traced.values().features, features.values(x.as_ref()).unwrap().features);
    let mut gradient = vec![0.0; theta.len()];
    traced.pull_back(of_features.clone(), of_variances.col_as_slice(0), &mut gradient).unwrap();
    check::assert_close(&gradient, &numeric, 3e-6, 3e-6);
}

#[test]
fn outputs_go_back_to_weights() {
    check_way_back(Box::new(NetworkFeatures::new(network(4))));
}

#[test]
fn embeddings_go_back_to_weights_whatever_the_slopes_and_frozen_ones_have_none() {
    use posterior_linear::embedding::Embedding;
    let embedding = NetworkEmbedding::new(network(2));
    let (x, slopes) = (normal(6, 3, "rows"), normal(6, 2, "slopes"));
    let theta = embedding.unconstrained();
    let mut moved = embedding.clone_box();
    let numeric = check::gradient(
        |theta| {
            moved.set_unconstrained(theta);
            let out = moved.embedded(x.as_ref()).unwrap();
            (0..2).map(|j| (0..6).map(|i| out[(i, j)] * slopes[(i, j)]).sum::<f64>()).sum()
        },
        &theta,
    );
    let at = embedding.at(x.as_ref()).unwrap();
    assert_eq!(at.embedded(), embedding.embedded(x.as_ref()).unwrap());
    let mut gradient = vec![0.0; theta.len()];
    at.pull_back(slopes.as_ref(), &mut gradient).unwrap();
    check::assert_close(&gradient, &numeric, 3e-6, 3e-6);
    assert_eq!((embedding.inputs(), embedding.width()), (3, 2));
    // More rows than pass at a time are what they are one by one.
    let many = normal(embedding.rows_at_once() + 3, 3, "many");
    let last = many.nrows() - 1;
    let all = embedding.embedded(many.as_ref()).unwrap();
    let alone = embedding.embedded(many.as_ref().subrows(last, 1)).unwrap();
    assert!((all.subrows(last, 1) - alone).norm_max() < 1e-14);
    let wide = normal(2, 4, "wide");
    assert!(embedding.embedded(wide.as_ref()).unwrap_err().to_string().contains("expected 3, found 4"));
    let frozen = NetworkEmbedding::frozen(network(2));
    assert!(frozen.unconstrained().is_empty());
    frozen.at(x.as_ref()).unwrap().pull_back(slopes.as_ref(), &mut []).unwrap();
}

#[test]
fn inducing_points_go_back_to_network_kernel_and_points() {
    check_way_back(Box::new(DeepInducing::new(Some(network(2)), kernel(2), normal(4, 2, "z")).unwrap()));
    check_way_back(Box::new(DeepInducing::<f64>::new(None, kernel(3), normal(4, 3, "z")).unwrap()));
}

#[test]
fn inducing_features_are_those_of_nystrom() {
    // K_xZ K_ZZ⁻¹ K_Zx, up to the jitter.
    let (x, z) = (normal(6, 3, "rows"), normal(4, 3, "z"));
    let kernel = kernel(3);
    let features = DeepInducing::<f64>::new(None, kernel.clone_box(), z.clone()).unwrap();
    let values = features.values(x.as_ref()).unwrap();
    let cross = posterior_kernels::cross(&*kernel, z.as_ref(), x.as_ref());
    let gram = posterior_kernels::gram(&*kernel, z.as_ref());
    let solved = faer::linalg::solvers::Solve::solve(&gram.partial_piv_lu(), &cross);
    let expected = cross.transpose() * solved;
    let found = values.features.transpose() * &values.features;
    assert!((found - expected).norm_max() < 1e-4);
}

#[test]
fn frozen_features_have_nothing_to_learn_and_widths_are_checked() {
    let frozen = NetworkFeatures::frozen(network(4));
    assert!(frozen.unconstrained().is_empty());
    let mut none: Vec<f64> = Vec::new();
    let x = normal(2, 3, "rows");
    frozen.at(x.as_ref()).unwrap().pull_back(Mat::zeros(4, 2), &[0.0, 0.0], &mut none).unwrap();
    let behind =
        DeepInducing::new(Some(network(2)), kernel(2), normal(4, 2, "z")).unwrap().with_frozen_network();
    assert!(behind.decays().iter().all(|decays| !decays));
    check_way_back(Box::new(behind));
    let error = DeepInducing::new(Some(network(2)), kernel(3), normal(4, 3, "z")).unwrap_err();
    assert!(error.to_string().contains("expected 2, found 3"), "{error}");
}

/// A network's features on a step with noise, trained and held back rows.
fn steps(n: usize, name: &str) -> (Mat<f64>, Mat<f64>) {
    let mut rng = Streams::new(4).stream(name);
    let x = Mat::<f64>::from_fn(n, 3, |_, _| {
        2.0 * rand_distr::Uniform::new(0.0, 1.0).unwrap().sample(&mut rng) - 1.0
    });
    let y = Mat::from_fn(n, 1, |i, _| {
        let e: f64 = StandardNormal.sample(&mut rng);
        f64::signum(x[(i, 0)]) + 0.2 * e
    });
    (x, y)
}

mod mapped;

mod training {
    use super::*;
    use posterior_likelihoods::{Bernoulli, Gaussian, Likelihood, Link};
    use posterior_linear::low_rank::{
        Correction, LowRankData, LowRankFit, LowRankOptions, LowRankState, ObservedRows, Training,
        fit_low_rank,
    };
    use posterior_optim::{Reason, Signal};

    fn observed(y: &Mat<f64>) -> ObservedRows<'_> {
        ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None }
    }

    fn all_features() -> Vec<(Box<dyn LearnedFeatures>, Vec<Correction>)> {
        let deep = DeepInducing::new(Some(network(2)), kernel(2), normal(4, 2, "z")).unwrap();
        vec![
            (Box::new(NetworkFeatures::new(network(4))), vec![Correction::None, Correction::Uniform]),
            (Box::new(deep), vec![Correction::None, Correction::Own]),
        ]
    }

    fn run(features: &dyn LearnedFeatures, options: &LowRankOptions, n: usize) -> LowRankFit {
        let (x, y) = steps(n, "train");
        let (there, then) = steps(100, "held");
        let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
        let held = LowRankData { inputs: there.as_ref(), observed: observed(&then) };
        let likelihood = Box::new(Gaussian::new(0.3, 1e-6));
        let observer = &mut |_: &_, _: &_| Signal::Continue;
        fit_low_rank(features.clone_box(), likelihood, &data, Some(&held), options, None, observer).unwrap()
    }

    #[test]
    fn gradients_of_every_objective_are_finite_differences() {
        for (features, corrections) in all_features() {
            for correction in corrections {
                let trainings = [
                    (Training::Evidence, false),
                    (Training::Evidence, true),
                    (Training::Batches { size: 40, power: 0.0, divergence_weight: 1.0 }, false),
                    (Training::Batches { size: 40, power: 1.0, divergence_weight: 0.5 }, false),
                    (Training::Point { size: 40 }, false),
                ];
                for (training, rest_as_noise) in trainings {
                    let options = LowRankOptions {
                        training,
                        correction,
                        rest_as_noise,
                        trace_weight: 0.7,
                        weight_decay: 0.0,
                        learning_rate: 1e-4,
                        ..LowRankOptions::default()
                    };
                    let (x, y) = steps(40, "train");
                    let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
                    let likelihood = Gaussian::new(0.3, 1e-6);
                    let (values, gradient, theta) =
                        posterior_linear::low_rank::objective(&*features, &likelihood, &data, &options, &[])
                            .unwrap();
                    assert!(values.is_finite());
                    let numeric = check::gradient(
                        |theta| {
                            posterior_linear::low_rank::objective(
                                &*features,
                                &likelihood,
                                &data,
                                &options,
                                theta,
                            )
                            .unwrap()
                            .0
                        },
                        &theta,
                    );
                    check::assert_close(&gradient, &numeric, 2e-5, 2e-5);
                }
            }
        }
    }

    #[test]
    fn a_step_is_learned_its_noise_is_found_and_kept_rows_do_not_show() {
        for training in
            [Training::Evidence, Training::Batches { size: 32, power: 1.0, divergence_weight: 0.1 }]
        {
            let options = LowRankOptions {
                training,
                learning_rate: 1e-2,
                steps: 300,
                check_every: 20,
                ..LowRankOptions::default()
            };
            let fit = run(&NetworkFeatures::new(network(4)), &options, 200);
            // Noise of deviation 0.2 has an entropy of -0.19 nats.
            assert!(fit.best.unwrap().nll < 0.25, "{:?}", fit.best);
            let noise = fit.posterior.likelihood().shared_noise_variance().unwrap();
            assert!((0.02..0.12).contains(&noise), "{noise}");
            assert!((1.0..=4.0).contains(&fit.diagnostics.effective_rank), "{:?}", fit.diagnostics);
            let twice = LowRankOptions { kept_bytes: 0, ..options };
            let again = run(&NetworkFeatures::new(network(4)), &twice, 200);
            assert!((again.best.unwrap().nll - fit.best.unwrap().nll).abs() < 1e-9);
        }
    }

    #[test]
    fn a_run_goes_on_bit_for_bit_and_patience_ends_it() {
        let (x, y) = steps(120, "train");
        let (there, then) = steps(60, "held");
        let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
        let held = LowRankData { inputs: there.as_ref(), observed: observed(&then) };
        for training in
            [Training::Evidence, Training::Batches { size: 32, power: 0.0, divergence_weight: 1.0 }]
        {
            let options = LowRankOptions {
                training,
                learning_rate: 5e-3,
                steps: 60,
                check_every: 10,
                ..LowRankOptions::default()
            };
            let fit = |state: Option<LowRankState>, stop: usize| {
                let mut saved = None;
                let features = Box::new(NetworkFeatures::new(network(4)));
                let likelihood = Box::new(Gaussian::new(0.3, 1e-6));
                let out =
                    fit_low_rank(features, likelihood, &data, Some(&held), &options, state, &mut |p, run| {
                        saved = Some(run.state().clone());
                        if p.step == stop { Signal::Stop } else { Signal::Continue }
                    })
                    .unwrap();
                (out, saved.unwrap())
            };
            let (whole, _) = fit(None, usize::MAX);
            let (stopped, state) = fit(None, 25);
            assert_eq!(stopped.reason, Reason::Interrupted);
            let text = serde_json::to_string(&state).unwrap();
            let (resumed, _) = fit(Some(serde_json::from_str(&text).unwrap()), usize::MAX);
            assert_eq!(resumed.validation_scores, whole.validation_scores);
            assert_eq!(resumed.posterior.distribution(), whole.posterior.distribution());
        }
        let short = LowRankOptions {
            patience: 30,
            learning_rate: 0.3,
            steps: 5000,
            check_every: 10,
            ..LowRankOptions::default()
        };
        let fit = run(&NetworkFeatures::new(network(4)), &short, 50);
        assert_eq!(fit.reason, Reason::Patience);
        assert!(fit.steps < 5000);
    }

    #[test]
    fn a_look_without_a_density_is_saved_as_others_are() {
        let (x, y) = steps(40, "train");
        let (there, mut then) = steps(10, "held");
        // Its square is beyond all numbers.
        then[(3, 0)] = 1e200;
        let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
        let held = LowRankData { inputs: there.as_ref(), observed: observed(&then) };
        let options = LowRankOptions { steps: 3, check_every: 1, ..LowRankOptions::default() };
        let features = Box::new(NetworkFeatures::new(network(4)));
        let likelihood = Box::new(Gaussian::new(0.3, 1e-6));
        let fit = fit_low_rank(features, likelihood, &data, Some(&held), &options, None, &mut |_, _| {
            Signal::Continue
        });
        let state = fit.unwrap().state;
        assert!(state.validation_scores.iter().all(|look| look.nll == f64::MAX));
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<LowRankState>(&text).unwrap(), state);
    }

    #[test]
    fn classes_are_learned_from_batches() {
        let (x, y) = steps(300, "train");
        let y = Mat::from_fn(300, 1, |i, _| f64::from(u8::from(y[(i, 0)] > 0.0)));
        let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
        let options = LowRankOptions {
            training: Training::Batches { size: 50, power: 0.0, divergence_weight: 1.0 },
            learning_rate: 1e-2,
            steps: 400,
            ..LowRankOptions::default()
        };
        let likelihood: Box<dyn Likelihood> = Box::new(Bernoulli::new(1, Link::Logit).unwrap());
        let features = Box::new(NetworkFeatures::new(network(4)));
        let fit =
            fit_low_rank(features, likelihood, &data, None, &options, None, &mut |_, _| Signal::Continue)
                .unwrap();
        let found = fit.posterior.log_predictive_density(x.as_ref(), &data.observed).unwrap() / 300.0;
        assert!(found > -0.25, "{found}");
        let as_noise = LowRankOptions { rest_as_noise: true, ..options.clone() };
        let likelihood: Box<dyn Likelihood> = Box::new(Bernoulli::new(1, Link::Logit).unwrap());
        let features = Box::new(NetworkFeatures::new(network(4)));
        let refused =
            fit_low_rank(features, likelihood, &data, None, &as_noise, None, &mut |_, _| Signal::Continue);
        assert!(refused.unwrap_err().to_string().contains("exact evidence only"));
        let evidence = LowRankOptions { training: Training::Evidence, ..options };
        let likelihood: Box<dyn Likelihood> = Box::new(Bernoulli::new(1, Link::Logit).unwrap());
        let features = Box::new(NetworkFeatures::new(network(4)));
        let refused =
            fit_low_rank(features, likelihood, &data, None, &evidence, None, &mut |_, _| Signal::Continue);
        assert!(refused.unwrap_err().to_string().contains("Gaussian noise"));
    }

    #[test]
    fn draws_are_functions_with_the_posterior_moments() {
        let options = LowRankOptions {
            correction: Correction::Uniform,
            corrected: true,
            trace_weight: 0.1,
            steps: 50,
            ..LowRankOptions::default()
        };
        let fit = run(&NetworkFeatures::new(network(4)), &options, 60);
        let (x, _) = steps(5, "there");
        let marginals = fit.posterior.latent(x.as_ref()).unwrap();
        let (mean, covariance) = fit.posterior.joint(x.as_ref(), 0).unwrap();
        assert!((&mean - &marginals.mean).norm_max() < 1e-12);
        let count = 20_000;
        let draws = fit.posterior.draws(x.as_ref(), 0, count, &mut Streams::new(1).stream("draws")).unwrap();
        for i in 0..5 {
            assert!((covariance[(i, i)] - marginals.variance[(i, 0)]).abs() < 1e-12);
            let m: f64 = draws.row(i).iter().sum::<f64>() / count as f64;
            let deviation = covariance[(i, i)].sqrt();
            // Five standard errors.
            assert!((m - mean[(i, 0)]).abs() < 5.0 * deviation / (count as f64).sqrt());
            let v: f64 = draws.row(i).iter().map(|d| (d - m).powi(2)).sum::<f64>() / count as f64;
            assert!((v / covariance[(i, i)] - 1.0).abs() < 5.0 * (2.0 / count as f64).sqrt());
        }
    }
}
