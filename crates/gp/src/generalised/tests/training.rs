//! Training: what it reaches, how it ends, and that it goes on where it was.

use super::super::{
    Coordinates, Family, GeneralisedData, GeneralisedGp, GeneralisedObjective, GeneralisedOptions,
    GeneralisedState, GeneralisedTraining, Mode, Reduction, ReferenceProcess, Risk, VariationalMean,
    fit_generalised,
};
use super::{Bends, process, se};
use crate::MeanForm;
use crate::Observations;
use crate::inducing::collapsed::{CollapsedGp, collapsed_bound};
use faer::{Mat, MatRef};
use posterior_likelihoods::{CloneLikelihood, Gaussian};
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};
use posterior_linear::training::Patience;
use posterior_optim::{Progress, Reason, Rule, Signal};

fn wave(n: usize, shift: f64) -> Observations {
    let x = Mat::from_fn(n, 1, |i, _| -2.0 + shift + 4.0 * i as f64 / n as f64);
    let y = Mat::from_fn(n, 1, |i, _| (2.0 * x[(i, 0)]).sin() + 0.4 * ((37 * i % 23) as f64 / 22.0 - 0.5));
    Observations::new(x, y, None).unwrap()
}

fn options(regulariser: &str, risk: Risk, reduction: Reduction) -> GeneralisedOptions {
    GeneralisedOptions {
        objective: GeneralisedObjective {
            risk,
            reduction,
            regulariser: regulariser.parse().unwrap(),
            weight: 1.0,
            rows_together: 32,
        },
        steps: 600,
        batch: 1000,
        patience: Patience {
            rule: Rule::adam(),
            learning_rate: 0.02,
            check_every: 20,
            patience: 10_000,
            rate_drops: 1,
            settles: true,
        },
        time: None,
        seed: 3,
        kept_bytes: 1 << 20,
    }
}

fn model(data: &Observations, family: Family, mean: VariationalMean) -> GeneralisedGp {
    let rows: Vec<usize> = (0..8).map(|k| k * data.rows() / 8).collect();
    let posterior = process(se(1.0, 0.7)).condition(data.select(&rows).unwrap()).unwrap();
    let reference = ReferenceProcess::new(posterior, Mode::Prior, false, 0.0).unwrap();
    let likelihood = Gaussian::new(0.1, 0.0).clone_box();
    let parts = (family, Coordinates::Whitened);
    GeneralisedGp::begin(vec![reference], parts, mean, likelihood, data.inputs()).unwrap()
}

#[test]
fn variational_inference_reaches_the_collapsed_bound() {
    let data = wave(60, 0.0);
    let mut begun = model(&data, Family::Cholesky, VariationalMean::Inducing(Mat::zeros(8, 1)));
    begun.learn_likelihood = false;
    let z = begun.reference(0).inducing().to_owned();
    let given = GeneralisedData { observations: &data, given: None };
    let asked = options("kl", Risk::Expected, Reduction::Sum);
    let fitted = fit_generalised(begun, given, None, &asked, None, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!((fitted.reason, fitted.steps), (Reason::Steps, 600));
    let mut collapsed =
        CollapsedGp::new(se(1.0, 0.7), MeanForm::Zero, Gaussian::new(0.1, 0.0), z, 1).unwrap();
    collapsed.jitter = 0.0;
    let expected = -collapsed_bound(&collapsed, &data).unwrap() / 60.0;
    let reached = super::super::generalised_objective(&fitted.model, &asked.objective, &given).unwrap().value;
    assert!(reached >= expected - 1e-10 && reached < expected + 1e-4, "{reached} {expected}");
}

#[test]
fn every_family_learns_with_a_network_as_mean_and_is_better_on_rows_held_back() {
    let (data, held) = (wave(60, 0.0), wave(30, 0.03));
    let given = GeneralisedData { observations: &data, given: None };
    let aside = GeneralisedData { observations: &held, given: None };
    for family in Family::ALL {
        for regulariser in ["projected-renyi=0.5", "wasserstein-symmetric-roots"] {
            let mean = VariationalMean::Embedding(Box::new(Bends(vec![[0.4, 1.3, 0.2, -0.1]])));
            let asked = options(regulariser, Risk::Predictive, Reduction::Mean);
            let begun = model(&data, family, mean);
            let fitted =
                fit_generalised(begun, given, Some(aside), &asked, None, &mut |_, _| Signal::Continue)
                    .unwrap();
            let validation_scores = &fitted.state.training.validation_scores;
            let best = fitted.best.unwrap();
            assert!(
                best.nll < validation_scores[0].nll && best.nll < 1.2,
                "{family:?} {regulariser}: {best:?}"
            );
            // What is kept is what the best look saw.
            let at = fitted.model.latent(held.inputs(), None).unwrap();
            let likelihood = fitted.model.likelihood();
            let nll: f64 = (0..30)
                .map(|i| {
                    let (m, v) = (at.mean[(i, 0)], at.variance[(i, 0)]);
                    -likelihood.log_predictive_density(&[held.targets()[(i, 0)]], &[m], &[v]) / 30.0
                })
                .sum();
            assert!((nll - best.nll).abs() < 1e-9);
            assert!(!fitted.state.history.is_empty());
        }
    }
}

#[test]
fn rows_beyond_those_that_are_looked_at_together_matter_in_full_batches() {
    let data = wave(60, 0.0);
    let given = GeneralisedData { observations: &data, given: None };
    let mean = VariationalMean::Embedding(Box::new(Bends(vec![[0.4, 1.3, 0.2, -0.1]])));
    let begun = model(&data, Family::Cholesky, mean);
    for regulariser in ["squared-difference", "wasserstein", "wasserstein-two-batches"] {
        let mut asked = options(regulariser, Risk::Predictive, Reduction::Mean);
        asked.objective.rows_together = 8;
        asked.steps = 40;
        // Steps of no length, so that nothing but the rows changes.
        (asked.patience.check_every, asked.patience.learning_rate) = (1, 1e-14);
        let fitted =
            fit_generalised(begun.clone(), given, None, &asked, None, &mut |_, _| Signal::Continue).unwrap();
        let found: Vec<f64> = fitted.state.history.iter().map(|own| own.regularisation).collect();
        assert_eq!(found.len(), 40);
        let first = super::super::generalised_objective(&begun, &asked.objective, &given).unwrap();
        let away = |value: &&f64| (**value / first.regularisation - 1.0).abs() > 0.01;
        assert!(found.iter().filter(away).count() > 30, "{regulariser}: {found:?} {first:?}");
        // All rows together are no draw, unless halves matter.
        asked.objective.rows_together = 60;
        let fitted =
            fit_generalised(begun.clone(), given, None, &asked, None, &mut |_, _| Signal::Continue).unwrap();
        let found: Vec<f64> = fitted.state.history.iter().map(|own| own.regularisation).collect();
        let same = found.iter().all(|value| (value / found[0] - 1.0).abs() < 1e-6);
        assert_eq!(same, regulariser != "wasserstein-two-batches", "{regulariser}: {found:?}");
    }
}

#[test]
fn orders_that_kernels_do_not_admit_are_refused_before_the_first_step() {
    let data = wave(60, 0.0);
    let given = GeneralisedData { observations: &data, given: None };
    let fitted = |family, order: &str, mode| {
        let mut begun = model(&data, family, VariationalMean::Constant(vec![0.0]));
        let posterior = begun.reference(0).posterior().clone();
        begun.references = vec![ReferenceProcess::new(posterior, mode, false, 0.0).unwrap()];
        let mut asked = options(&format!("projected-renyi={order}"), Risk::Predictive, Reduction::Mean);
        asked.steps = 3;
        fit_generalised(begun, given, None, &asked, None, &mut |_, _| Signal::Continue)
    };
    // A kernelised variance begins at up to twice the prior's, in rows far from inducing points.
    let times = {
        let begun = model(&data, Family::Kernelised, VariationalMean::Prior);
        let found = begun.latent(data.inputs(), None).unwrap();
        (0..60).map(|i| found.variance[(i, 0)]).fold(0.0, f64::max)
    };
    assert!(times > 1.0 && times < 2.0, "{times}");
    let limit = times / (times - 1.0);
    let below = format!("{:.4}", 0.999 * limit);
    assert!(fitted(Family::Kernelised, &below, Mode::Prior).is_ok());
    let above = format!("{:.4}", 1.001 * limit);
    let error = fitted(Family::Kernelised, &above, Mode::Prior).unwrap_err().to_string();
    assert!(
        error.contains(&above)
            && error.contains("kernelised")
            && error.contains(&format!("an order below {limit:.3}"))
            && error.contains("cholesky or sparse-posterior"),
        "{error}"
    );
    for family in [Family::Cholesky, Family::SparsePosterior] {
        assert!(fitted(family, "50", Mode::Prior).is_ok(), "{family:?}");
    }
    let error = fitted(Family::Kernelised, "1.5", Mode::Posterior).unwrap_err().to_string();
    assert!(error.contains("the prior as reference"), "{error}");
    assert!(fitted(Family::Kernelised, "0.9", Mode::Posterior).is_ok());
}

/// A mean that is no number once its parameter has moved by so much.
#[derive(Clone, Debug)]
struct Cliff {
    at: f64,
    edge: f64,
}

struct CliffAt(Mat<f64>);

impl Embedding for Cliff {
    fn inputs(&self) -> usize {
        1
    }
    fn width(&self) -> usize {
        1
    }
    fn unconstrained(&self) -> Vec<f64> {
        vec![self.at]
    }
    fn set_unconstrained(&mut self, numbers: &[f64]) {
        self.at = numbers[0];
    }
    fn rows_at_once(&self) -> usize {
        100
    }
    fn bytes_of_row(&self) -> usize {
        8
    }
    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        let value = if self.at.abs() > self.edge { f64::NAN } else { self.at };
        Ok(Mat::from_fn(x.nrows(), 1, |_, _| value))
    }
    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError> {
        Ok(Box::new(CliffAt(self.embedded(x)?)))
    }
    fn clone_box(&self) -> Box<dyn Embedding> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl EmbeddedAt for CliffAt {
    fn embedded(&self) -> MatRef<'_, f64> {
        self.0.as_ref()
    }
    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError> {
        gradient[0] += slopes.col(0).iter().sum::<f64>();
        Ok(())
    }
    fn pull_back_inputs(&self, _: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(Mat::zeros(self.0.nrows(), 1))
    }
}

#[test]
fn an_objective_that_stops_being_a_number_ends_with_what_was_finite_before() {
    let (data, held) = (wave(60, 0.0), wave(30, 0.03));
    // Targets far up pull the mean over the edge.
    let up = |data: &Observations| {
        let y = Mat::from_fn(data.rows(), 1, |i, _| 5.0 + data.targets()[(i, 0)]);
        Observations::new(data.inputs().to_owned(), y, None).unwrap()
    };
    let (data, held) = (up(&data), up(&held));
    let given = GeneralisedData { observations: &data, given: None };
    let aside = GeneralisedData { observations: &held, given: None };
    let asked = GeneralisedOptions {
        steps: 400,
        ..options("projected-hellinger", Risk::Predictive, Reduction::Mean)
    };
    let begin = |at: f64, edge: f64| {
        model(&data, Family::Diagonal, VariationalMean::Embedding(Box::new(Cliff { at, edge })))
    };
    let run = |begun: GeneralisedGp, aside: Option<GeneralisedData<'_>>| {
        let mut ignored = |_: &Progress, _: &GeneralisedTraining<'_>| Signal::Continue;
        fit_generalised(begun, given, aside, &asked, None, &mut ignored)
    };
    for aside in [None, Some(aside)] {
        let fitted = run(begin(0.0, 0.5), aside).unwrap();
        assert_eq!(fitted.reason, Reason::Diverged);
        let step = fitted.state.irregularities.diverged.unwrap();
        assert!(step > 20 && step < 400, "{step}");
        // Smaller steps were tried before.
        assert_eq!(fitted.state.training.drops.len(), 3);
        let latent = fitted.model.latent(data.inputs(), None).unwrap();
        let mean = latent.mean[(0, 0)];
        assert!(mean > 0.3 && mean <= 0.5, "{mean}");
        assert!((0..60).all(|i| latent.variance[(i, 0)].is_finite()));
        // The state is one to go on from.
        let text = serde_json::to_string(&fitted.state).unwrap();
        assert_eq!(serde_json::from_str::<GeneralisedState>(&text).unwrap(), fitted.state);
    }
    // The very last step is looked at as well.
    let late = GeneralisedOptions { steps: 1, ..asked.clone() };
    let fitted =
        fit_generalised(begin(0.0, 1e-3), given, None, &late, None, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!((fitted.reason, fitted.state.irregularities.diverged), (Reason::Diverged, Some(2)));
    assert_eq!(fitted.model.latent(data.inputs(), None).unwrap().mean[(0, 0)], 0.0);
    // What is no number before the first step leads nowhere.
    let error = run(begin(1.0, 0.5), None).unwrap_err().to_string();
    assert!(error.contains("step 1") && error.contains("Lower the step size"), "{error}");
}

#[test]
fn a_last_batch_of_one_row_goes_without_two_batches_and_is_counted() {
    let data = wave(33, 0.0);
    let given = GeneralisedData { observations: &data, given: None };
    let begun = model(&data, Family::Diagonal, VariationalMean::Constant(vec![0.0]));
    let mut asked = options("wasserstein-two-batches", Risk::Predictive, Reduction::Mean);
    (asked.batch, asked.steps) = (16, 9);
    let fitted =
        fit_generalised(begun.clone(), given, None, &asked, None, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!((fitted.steps, fitted.state.irregularities.left_out), (9, 3));
    let refused = |asked: &GeneralisedOptions| {
        fit_generalised(begun.clone(), given, None, asked, None, &mut |_, _| Signal::Continue)
            .unwrap_err()
            .to_string()
    };
    let error = refused(&GeneralisedOptions { batch: 1, ..asked.clone() });
    assert!(error.contains("take at least 2, or the regulariser wasserstein"), "{error}");
    asked.objective.rows_together = 1;
    assert!(refused(&asked).contains("the number of rows together is 1: take at least 2"));
}

#[test]
fn runs_go_on_where_they_were_bit_for_bit_on_batches_and_without_kept_features() {
    let (data, held) = (wave(60, 0.0), wave(30, 0.03));
    let given = GeneralisedData { observations: &data, given: None };
    let aside = GeneralisedData { observations: &held, given: None };
    for (kept_bytes, regulariser, batch) in [
        (0, "projected-hellinger", 16),
        (1 << 20, "projected-hellinger", 16),
        (1 << 20, "wasserstein", 60),
        (1 << 20, "wasserstein-two-batches", 60),
    ] {
        let mut asked = GeneralisedOptions {
            batch,
            steps: 90,
            kept_bytes,
            ..options(regulariser, Risk::Predictive, Reduction::Mean)
        };
        asked.objective.rows_together = 12;
        let begun = model(&data, Family::Diagonal, VariationalMean::Constant(vec![0.0]));
        let whole =
            fit_generalised(begun.clone(), given, Some(aside), &asked, None, &mut |_, _| Signal::Continue)
                .unwrap();
        let first = GeneralisedOptions { ..asked.clone() };
        let part = fit_generalised(begun.clone(), given, Some(aside), &first, None, &mut |progress, _| {
            if progress.step == 40 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        assert_eq!(part.reason, Reason::Interrupted);
        let text = serde_json::to_string(&part.state).unwrap();
        let state: GeneralisedState = serde_json::from_str(&text).unwrap();
        let rest = fit_generalised(begun.clone(), given, Some(aside), &asked, Some(state), &mut |_, _| {
            Signal::Continue
        })
        .unwrap();
        assert_eq!(rest.state.training.theta, whole.state.training.theta);
        // A state of another process is refused.
        let other = model(&data, Family::Kernelised, VariationalMean::Prior);
        let error =
            fit_generalised(other, given, None, &asked, Some(whole.state), &mut |_, _| Signal::Continue);
        assert!(error.is_err());
    }
}
