//! Fits of every likelihood: optima, resuming, interruption, refusals.

use super::*;
use crate::GpError;
use crate::inducing::InducingError;
use crate::inducing::collapsed::collapsed_bound;
use crate::rows::reversed::ReversedRows;
use posterior_likelihoods::predictive::Prediction;
use posterior_optim::{Constraint, Parameters, Reason, Signal};

fn options(steps: usize, variational: VariationalOptimizer) -> StochasticOptions {
    StochasticOptions { steps, batch: 1000, variational, learning_rate: 0.05, ..StochasticOptions::default() }
}

const NATURAL: VariationalOptimizer = VariationalOptimizer::NaturalGradient { length: 0.5, warm_up: 10 };

fn fit(model: &StochasticGp, data: &Observations, options: &StochasticOptions) -> StochasticFit {
    fit_stochastic(model.clone(), data, options, None, &mut |_, _| Signal::Continue).unwrap()
}

#[test]
fn natural_gradients_find_the_optimum_of_every_likelihood_and_adam_finds_the_same() {
    for (likelihood, data) in cases(30) {
        let mut model = model("matern32(ard)", MeanForm::Constant, likelihood.clone(), 4);
        (model.learn_hyperparameters, model.learn_inducing) = (false, false);
        let natural = fit(&model, &data, &options(120, NATURAL));
        let q = natural.posterior.distribution();
        let there = stochastic_bound_and_gradient(&model, q, whole(&data), Wanted::DISTRIBUTION).unwrap();
        let slope = there.of_q.of_mean(q, 1.0).norm_max();
        let slopes = there.of_q.of_roots(q, 1.0).iter().map(|g| g.norm_max()).fold(0.0, f64::max);
        assert!(slope < 1e-6 && slopes < 1e-6, "{}: {slope:e} {slopes:e}", likelihood.name());
        let mut slow = options(500, VariationalOptimizer::Adam);
        slow.learning_rate = 0.1;
        slow.schedule = posterior_optim::Schedule::Cosine;
        let adam = fit(&model, &data, &slow);
        let bound = stochastic_bound(&model, adam.posterior.distribution(), &data).unwrap();
        assert!(
            bound <= there.value + 1e-9 && bound > there.value - 0.02,
            "{}: {bound} {}",
            likelihood.name(),
            there.value
        );
    }
}

/// Whatever moves q: what is held stays to the bit, what is bounded stays inside, and a fit that was interrupted goes on exactly.
#[test]
fn held_and_bounded_parameters_stay_where_they_are_told() {
    let (likelihood, data) = cases(60).swap_remove(0);
    let model = model("matern32(ard)", MeanForm::Constant, likelihood, 6);
    let value = |fit: &StochasticFit, name: &str| {
        let segments = fit.model.segments();
        let before = segments.iter().take_while(|s| s.name != name).map(|s| s.len()).sum::<usize>();
        fit.model.values()[before]
    };
    for variational in [NATURAL, VariationalOptimizer::Adam] {
        let free = fit(&model, &data, &options(60, variational));
        let learned = value(&free, "matern32.variance");
        let constraints = vec![
            Constraint::Fixed { parameter: "lengthscale".into(), value: Some(0.37) },
            Constraint::Between {
                parameter: "matern32.variance".into(),
                lower: 1.5 * learned,
                upper: 9.0 * learned,
            },
        ];
        let asked = StochasticOptions { constraints, ..options(400, variational) };
        let held = fit(&model, &data, &asked);
        assert_eq!(value(&held, "matern32.lengthscale"), 0.37);
        assert!((1.5..=9.0).contains(&(value(&held, "matern32.variance") / learned)));
        assert_ne!(
            value(&held, "mean.constant"),
            value(&fit(&model, &data, &options(0, variational)), "mean.constant")
        );
        let half = StochasticOptions { steps: 200, ..asked.clone() };
        let first = fit(&model, &data, &half);
        let on = &mut |_: &_, _: &_| Signal::Continue;
        let second = fit_stochastic(model.clone(), &data, &asked, Some(&first.state), on).unwrap();
        assert_eq!(second.model.values(), held.model.values());
        // Without the constraints it is the state of another fit.
        let other = options(400, variational);
        assert!(fit_stochastic(model.clone(), &data, &other, Some(&first.state), on).is_err());
    }
    let unknown = vec![Constraint::Fixed { parameter: "scale".into(), value: None }];
    let asked = StochasticOptions { constraints: unknown, ..options(5, NATURAL) };
    let refused = fit_stochastic(model, &data, &asked, None, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(refused.to_string().contains("no such parameter"), "{refused}");
}

#[test]
fn everything_is_learned_together_from_batches() {
    for (likelihood, data) in cases(100) {
        let model = model("matern32(ard)", MeanForm::Constant, likelihood.clone(), 12);
        let before = stochastic_bound(&model, &model.prior(), &data).unwrap();
        let mut frozen = model.clone();
        (frozen.learn_hyperparameters, frozen.learn_inducing) = (false, false);
        let mut options = options(150, VariationalOptimizer::NaturalGradient { length: 0.2, warm_up: 20 });
        (options.batch, options.learning_rate) = (25, 0.02);
        let exact =
            |fit: &StochasticFit| stochastic_bound(&fit.model, fit.posterior.distribution(), &data).unwrap();
        let (some, all) = (exact(&fit(&frozen, &data, &options)), exact(&fit(&model, &data, &options)));
        assert!(before < some && some < all, "{}: {before} {some} {all}", likelihood.name());
    }
}

#[test]
fn the_learned_bound_with_gaussian_noise_is_below_the_collapsed_one() {
    let (likelihood, data) = cases(80).swap_remove(0);
    let model = model("matern32(ard)", MeanForm::Constant, likelihood, 8);
    let gap = |batch, variational| {
        let mut options = options(200, variational);
        options.batch = batch;
        let fit = fit(&model, &data, &options);
        let bound = stochastic_bound(&fit.model, fit.posterior.distribution(), &data).unwrap();
        collapsed_bound(&collapsed(&fit.model), &data).unwrap() - bound
    };
    // On all rows with steps of full length q is the best for the parameters before Adam's last step. That moved each of some 20 by at most 0.01, where
    // the bound's curvature is at most some number of rows and targets, 160: ½ · 20 · 160 · 0.01².
    let whole = gap(80, VariationalOptimizer::NaturalGradient { length: 1.0, warm_up: 0 });
    assert!(whole > 0.0 && whole < 0.16, "{whole}");
    assert!(gap(20, NATURAL) > whole);
    // What closes a fit on batches is that collapsed model.
    let fit = fit(&model, &data, &options(30, NATURAL));
    let (expected, own) = (collapsed(&fit.model), fit.model.collapsed().unwrap());
    assert_eq!(collapsed_bound(&own, &data).unwrap(), collapsed_bound(&expected, &data).unwrap());
    let (posterior, bound) = own.condition(&data).unwrap();
    let found = stochastic_bound(&fit.model, posterior.distribution(), &data).unwrap();
    assert!((found - bound).abs() < 1e-8 * bound.abs(), "{found} {bound}");
    for (likelihood, _) in cases(20).into_iter().filter(|(own, _)| own.shared_noise_variance().is_none()) {
        assert!(super::model("se", MeanForm::Zero, likelihood, 4).collapsed().is_none());
    }
}

#[test]
fn predictions_of_classes_events_and_counts_learn_from_the_data() {
    for (likelihood, data) in cases(120) {
        let mut model = model("matern32(ard)", MeanForm::Constant, likelihood.clone(), 15);
        (model.learn_hyperparameters, model.learn_inducing) = (false, false);
        let fit = fit(&model, &data, &options(25, NATURAL));
        let score = |q: InducingDistribution| {
            let posterior = model.posterior(q).unwrap();
            posterior.log_predictive_density(data.inputs(), data.targets()).unwrap().iter().sum::<f64>()
        };
        let (before, after) = (score(model.prior()), score(fit.posterior.distribution().clone()));
        assert!(after > before + 10.0, "{}: {before} {after}", likelihood.name());
        for prediction in fit.posterior.predict_observations(data.inputs()).unwrap() {
            match prediction {
                Prediction::Classes(p) => assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12),
                Prediction::Events(p) => assert!(p.iter().all(|p| (0.0..=1.0).contains(p))),
                Prediction::Moments { variance, latent_variance, .. } => {
                    // The latent variance of a count is that of the logarithm of its rate: another unit.
                    let noisy = likelihood.name() != "poisson";
                    let mut pairs = variance.iter().zip(&latent_variance);
                    assert!(pairs.all(|(v, l)| *l >= 0.0 && if noisy { v > l } else { *v > 0.0 }));
                }
            }
        }
    }
}

#[test]
fn a_saved_state_goes_on_bit_for_bit() {
    for variational in [NATURAL, VariationalOptimizer::Adam] {
        for case in [0, 5] {
            let (likelihood, data) = cases(50).swap_remove(case);
            let model = model("se(ard)", MeanForm::Constant, likelihood, 5);
            let mut options = options(25, variational);
            options.batch = 8;
            let mut saved = None;
            let whole = fit_stochastic(model.clone(), &data, &options, None, &mut |progress, iterate| {
                if progress.step == 11 {
                    saved = Some(serde_json::to_string(&iterate.state(progress)).unwrap());
                }
                Signal::Continue
            })
            .unwrap();
            let state: StochasticState = serde_json::from_str(&saved.unwrap()).unwrap();
            let resumed =
                fit_stochastic(model.clone(), &data, &options, Some(&state), &mut |_, _| Signal::Continue)
                    .unwrap();
            // Time goes on where it stopped, too.
            assert!(resumed.state.seconds >= state.seconds && state.seconds > 0.0);
            assert_eq!(StochasticState { seconds: whole.state.seconds, ..resumed.state }, whole.state);
            assert_eq!(resumed.posterior.distribution(), whole.posterior.distribution());
            // A state of another model is refused, as is a damaged one.
            let mut other = model.clone();
            other.learn_inducing = false;
            let mut ignore = |_: &_, _: &StochasticIterate<'_>| Signal::Continue;
            assert!(fit_stochastic(other, &data, &options, Some(&state), &mut ignore).is_err());
            let late = StochasticOptions { time: Some(std::time::Duration::from_secs(5)), ..options.clone() };
            let spent = StochasticState { seconds: 6.0, ..state.clone() };
            let ended = fit_stochastic(model.clone(), &data, &late, Some(&spent), &mut ignore).unwrap();
            assert_eq!((ended.reason, ended.steps), (Reason::Time, 11));
            let mut damaged = state.clone();
            damaged.step = 3;
            assert!(fit_stochastic(model.clone(), &data, &options, Some(&damaged), &mut ignore).is_err());
            let mut damaged = state.clone();
            damaged.roots[0] = -1.0;
            let error = fit_stochastic(model, &data, &options, Some(&damaged), &mut ignore).unwrap_err();
            assert!(error.to_string().contains("cannot be resumed"), "{error}");
        }
    }
}

#[test]
fn observers_and_budgets_end_a_fit() {
    let (likelihood, data) = cases(30).swap_remove(1);
    let model = model("se", MeanForm::Zero, likelihood, 4);
    let mut seen = Vec::new();
    let fit = fit_stochastic(model.clone(), &data, &options(50, NATURAL), None, &mut |progress, iterate| {
        seen.push(progress.value.unwrap());
        assert!(iterate.length().is_some() && iterate.model().latents() == 1);
        if progress.step == 7 { Signal::Stop } else { Signal::Continue }
    })
    .unwrap();
    assert_eq!((fit.reason, fit.steps, seen.len()), (Reason::Interrupted, 7, 7));
    let mut none = options(50, NATURAL);
    none.time = Some(std::time::Duration::ZERO);
    let fit = fit_stochastic(model, &data, &none, None, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!((fit.reason, fit.steps), (Reason::Time, 0));
}

#[test]
fn bad_requests_are_answered() {
    let (likelihood, data) = cases(20).swap_remove(1);
    let model = model("se", MeanForm::Zero, likelihood, 4);
    let run = |model: &StochasticGp, data: &Observations, options: &StochasticOptions| {
        fit_stochastic(model.clone(), data, options, None, &mut |_, _| Signal::Continue).unwrap_err()
    };
    for change in [
        |o: &mut StochasticOptions| o.batch = 0,
        |o: &mut StochasticOptions| o.learning_rate = f64::NAN,
        |o: &mut StochasticOptions| {
            o.variational = VariationalOptimizer::NaturalGradient { length: 1.5, warm_up: 0 };
        },
    ] {
        let mut options = StochasticOptions::default();
        change(&mut options);
        assert!(matches!(run(&model, &data, &options), GpError::Inducing(InducingError::Option { .. })));
    }
    let small = StochasticOptions { memory_limit: 10, ..StochasticOptions::default() };
    assert!(matches!(run(&model, &data, &small), GpError::Inducing(InducingError::Memory { .. })));
    let fine = StochasticOptions::default();
    let half = Observations::new(data.inputs().to_owned(), Mat::from_fn(20, 1, |_, _| 0.5), None).unwrap();
    assert!(run(&model, &half, &fine).to_string().contains("target of row 0"));
    let noisy =
        Observations::new(data.inputs().to_owned(), data.targets().to_owned(), Some(vec![0.1; 20])).unwrap();
    assert!(run(&model, &noisy, &fine).to_string().contains("bernoulli"));
    let wide = Observations::new(Mat::zeros(20, 3), data.targets().to_owned(), None).unwrap();
    assert!(matches!(run(&model, &wide, &fine), GpError::Shape { .. }));
    // The index of a class is one number.
    let softmax = Box::new(Categorical::new(3).unwrap());
    let softmax = StochasticGp::new(kernel("se"), MeanForm::Zero, softmax, Mat::zeros(3, 2)).unwrap();
    let two = Observations::new(data.inputs().to_owned(), Mat::zeros(20, 2), None).unwrap();
    assert!(matches!(run(&softmax, &two, &fine), GpError::Shape { .. }));
}

#[test]
fn rows_from_elsewhere_give_the_fit_of_rows_in_memory() {
    for (likelihood, data) in cases(90) {
        let model = model("matern32(ard)", MeanForm::Constant, likelihood, 6);
        let mut options = options(12, NATURAL);
        options.batch = 40;
        let own = fit(&model, &data, &options);
        let mut source = ReversedRows::new(&data);
        let other =
            fit_stochastic(model.clone(), &source, &options, None, &mut |_, _| Signal::Continue).unwrap();
        assert_eq!(other.state.theta, own.state.theta);
        assert_eq!((other.state.mean, other.state.roots), (own.state.mean, own.state.roots));
        assert!(other.plan.peak_bytes < own.plan.peak_bytes);
        assert_eq!(source.most_at_once(), 90, "the check of all targets, and batches of 40");
        source.fails = true;
        let failed =
            fit_stochastic(model, &source, &options, None, &mut |_, _| Signal::Continue).unwrap_err();
        assert!(failed.to_string().contains("the disk is gone"), "{failed}");
    }
}
