//! Gradients against finite differences; training on a step, against a process that cannot have one.

use super::*;
use crate::exact::{ExactGp, FitOptions, fit};
use crate::{MeanForm, Observations, Posterior};
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};
use posterior_linear::training::{Patience, TrainingState};
use posterior_optim::{Parameters, Reason, Rule, Signal, check};
use rand_distr::{Distribution, StandardNormal};

/// `tanh(A x + a) B`: A of w x D, a of w, B of w x h, one after the other by columns.
#[derive(Clone, Debug)]
struct Hidden {
    inputs: usize,
    outputs: usize,
    first: Mat<f64>,
    shift: Vec<f64>,
    last: Mat<f64>,
    /// Rows at once.
    rows: usize,
}

struct Passed<'a> {
    of: &'a Hidden,
    x: Mat<f64>,
    hidden: Mat<f64>,
    out: Mat<f64>,
}

fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(7).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

impl Hidden {
    fn new(inputs: usize, width: usize, outputs: usize) -> Self {
        let shift = normal(width, 1, "shift").col_as_slice(0).to_vec();
        let (first, last) = (normal(width, inputs, "first"), normal(width, outputs, "last"));
        Self { inputs, outputs, first, shift, last, rows: 5 }
    }

    fn hidden(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        let z = x * self.first.transpose();
        Mat::from_fn(z.nrows(), z.ncols(), |i, j| (z[(i, j)] + self.shift[j]).tanh())
    }
}

fn entries(m: &Mat<f64>) -> impl Iterator<Item = f64> + '_ {
    (0..m.ncols()).flat_map(|j| m.col_as_slice(j).iter().copied())
}

impl Embedding for Hidden {
    fn inputs(&self) -> usize {
        self.inputs
    }
    fn width(&self) -> usize {
        self.outputs
    }
    fn unconstrained(&self) -> Vec<f64> {
        entries(&self.first).chain(self.shift.iter().copied()).chain(entries(&self.last)).collect()
    }
    fn set_unconstrained(&mut self, numbers: &[f64]) {
        let w = self.shift.len();
        let (first, rest) = numbers.split_at(w * self.inputs);
        let (shift, last) = rest.split_at(w);
        self.first = MatRef::from_column_major_slice(first, w, self.inputs).to_owned();
        self.shift = shift.to_vec();
        self.last = MatRef::from_column_major_slice(last, w, self.outputs).to_owned();
    }
    fn rows_at_once(&self) -> usize {
        self.rows
    }
    fn bytes_of_row(&self) -> usize {
        8 * self.shift.len()
    }
    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(self.hidden(x) * &self.last)
    }
    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError> {
        let hidden = self.hidden(x);
        let out = &hidden * &self.last;
        Ok(Box::new(Passed { of: self, x: x.to_owned(), hidden, out }))
    }
    fn clone_box(&self) -> Box<dyn Embedding> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl EmbeddedAt for Passed<'_> {
    fn embedded(&self) -> MatRef<'_, f64> {
        self.out.as_ref()
    }
    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError> {
        let last = self.hidden.transpose() * slopes;
        let inner = self.inner(slopes);
        let first = inner.transpose() * &self.x;
        let shift: Vec<f64> = (0..inner.ncols()).map(|j| inner.col_as_slice(j).iter().sum()).collect();
        let all = entries(&first).chain(shift).chain(entries(&last));
        gradient.iter_mut().zip(all).for_each(|(g, own)| *g += own);
        Ok(())
    }
    fn pull_back_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(self.inner(slopes) * &self.of.first)
    }
}

impl Passed<'_> {
    /// Slopes before the hidden layer bends.
    fn inner(&self, slopes: MatRef<'_, f64>) -> Mat<f64> {
        let back = slopes * self.of.last.transpose();
        Mat::from_fn(back.nrows(), back.ncols(), |i, j| back[(i, j)] * (1.0 - self.hidden[(i, j)].powi(2)))
    }
}

fn kernel(text: &str, columns: usize) -> Box<dyn Kernel<f64>> {
    let names: Vec<String> = (0..columns).map(|i| format!("g{i}")).collect();
    text.parse::<KernelExpression>().unwrap().build(&names).unwrap()
}

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        patience: Patience {
            rule: Rule::adam(),
            learning_rate: 0.02,
            check_every: 10,
            patience: 60,
            rate_drops: 2,
            settles: true,
        },
        weight_decay: 1e-4,
        steps: 300,
        time: None,
        kept_bytes: 1 << 20,
    }
}

#[test]
fn gradients_of_weights_hyperparameters_mean_and_noise_are_finite_differences() {
    for (text, mean) in [
        ("se(ard)", MeanForm::Zero),
        ("matern52 + linear", MeanForm::Constant),
        ("matern32(ard, variance=1.3)", MeanForm::Linear),
    ] {
        let (x, y) = (normal(14, 3, "x"), normal(14, 2, "y"));
        let noise = (0..14).map(|i| 0.05 + 0.01 * f64::from(i)).collect();
        let data = Observations::new(x, y, Some(noise)).unwrap();
        let mut model = ExactGp::new(kernel(text, 2), mean, Gaussian::new(0.3, 1e-6), 2, 2);
        let mut values = model.values();
        // A mean that is not zero.
        let of_mean = model.kernel().values().len()..values.len() - 1;
        values[of_mean].iter_mut().enumerate().for_each(|(i, v)| *v = 0.3 - 0.2 * i as f64);
        model.set_values(&values);
        let hidden = Hidden::new(3, 4, 2);
        // Rows that are kept for the way back, and rows that pass twice.
        for kept_bytes in [1 << 20, 8 * 4 * 10] {
            let options = EmbeddedOptions { kept_bytes, ..options() };
            let objective =
                |theta: &[f64]| embedded_objective(&model, &hidden, &data, &options, theta).unwrap();
            let (value, gradient, theta) = objective(&[]);
            assert_eq!(theta.len(), hidden.unconstrained().len() + model.unconstrained().len());
            let embedded = hidden.embedded(data.inputs()).unwrap();
            let noise = data.noise_variances().map(<[f64]>::to_vec);
            let behind = Observations::new(embedded, data.targets().to_owned(), noise).unwrap();
            let exact = crate::exact::log_evidence(&model, &behind, None).unwrap().value;
            assert!((value - exact).abs() < 1e-10, "{value} {exact}");
            let numeric = check::gradient(|theta| objective(theta).0, &theta);
            check::assert_close(&gradient, &numeric, 2e-6, 2e-6);
        }
    }
}

/// A step at 0 with noise of deviation 0.1, on [-1, 1].
fn step(n: usize, name: &str) -> Observations {
    let white = normal(n, 1, name);
    let x = Mat::from_fn(n, 1, |i, _| -1.0 + 2.0 * (i as f64 + 0.5) / n as f64);
    let y = Mat::from_fn(n, 1, |i, _| f64::signum(x[(i, 0)]) + 0.1 * white[(i, 0)]);
    Observations::new(x, y, None).unwrap()
}

fn nll(posterior: &dyn Posterior, data: &Observations) -> f64 {
    let prediction = posterior.predict(data.inputs()).unwrap();
    let each = prediction.observed_variance().into_iter().enumerate().map(|(i, v)| {
        let z = data.targets()[(i, 0)] - prediction.mean[(i, 0)];
        0.5 * ((2.0 * std::f64::consts::PI * v).ln() + z * z / v)
    });
    each.sum::<f64>() / data.rows() as f64
}

fn process(text: &str, inputs: usize) -> ExactGp {
    ExactGp::new(kernel(text, inputs), MeanForm::Zero, Gaussian::new(0.1, 1e-6), inputs, 1)
}

fn trained(
    (train, held): (&Observations, Option<&Observations>),
    options: &EmbeddedOptions,
    (state, stop): (Option<TrainingState>, usize),
) -> (EmbeddedFit, TrainingState) {
    let mut saved = None;
    let embedding = Box::new(Hidden { rows: 4096, ..Hidden::new(1, 8, 2) });
    let fitted =
        fit_embedded(process("se(ard)", 2), embedding, train, held, options, state, &mut |p, run| {
            saved = Some(run.state().clone());
            if p.step == stop { Signal::Stop } else { Signal::Continue }
        });
    (fitted.unwrap(), saved.unwrap())
}

#[test]
fn a_step_is_learned_better_than_by_the_kernel_alone() {
    let (train, held, test) = (step(60, "train"), step(31, "held"), step(200, "test"));
    let (fitted, _) = trained((&train, Some(&held)), &options(), (None, usize::MAX));
    let observer = &mut |_: &_, _: &_| Signal::Continue;
    let plain = fit(process("se(ard)", 1), train.clone(), &FitOptions::default(), observer).unwrap();
    let (deep, plain) = (nll(&fitted.posterior, &test), nll(&plain.posterior, &test));
    // Noise of deviation 0.1 has an entropy of -0.88 nats.
    assert!(deep < plain - 0.2 && deep < -0.5, "{deep} {plain}");
    let best = fitted.best.unwrap();
    assert!((nll(&fitted.posterior, &held) - best.nll).abs() < 1e-12);
    assert!(fitted.state.validation_scores.iter().all(|look| look.nll >= best.nll));
    assert!(fitted.posterior.smallest_correlation() < 0.5);
    let exact = fitted.posterior.exact();
    let evidence = crate::exact::log_evidence(exact.model(), exact.data(), None).unwrap().value;
    assert!((exact.log_evidence() - evidence).abs() < 1e-9 * evidence.abs());
}

#[test]
fn a_run_goes_on_bit_for_bit_and_patience_ends_it() {
    let (train, held) = (step(30, "train"), step(15, "held"));
    let options = EmbeddedOptions { steps: 40, ..options() };
    let (whole, _) = trained((&train, Some(&held)), &options, (None, usize::MAX));
    let (stopped, state) = trained((&train, Some(&held)), &options, (None, 17));
    assert_eq!(stopped.reason, Reason::Interrupted);
    let text = serde_json::to_string(&state).unwrap();
    let state = serde_json::from_str(&text).unwrap();
    let (resumed, _) = trained((&train, Some(&held)), &options, (Some(state), usize::MAX));
    assert_eq!(resumed.state.validation_scores, whole.state.validation_scores);
    assert_eq!(resumed.posterior.exact().weights(), whole.posterior.exact().weights());
    let patience = Patience {
        learning_rate: 0.5,
        check_every: 1,
        patience: 5,
        rate_drops: 1,
        settles: false,
        ..options.patience
    };
    let impatient = EmbeddedOptions { patience, steps: 5000, ..options };
    let (fitted, _) = trained((&train, Some(&held)), &impatient, (None, usize::MAX));
    assert_eq!((fitted.reason, fitted.state.drops.len()), (Reason::Patience, 1));
    // Without rows held back the last parameters count.
    let (last, state) = trained((&train, None), &options, (None, usize::MAX));
    assert!(last.best.is_none() && state.validation_scores.is_empty() && last.reason == Reason::Steps);
}

#[test]
fn predictions_are_those_of_the_process_behind_the_map() {
    let data = Observations::new(normal(12, 3, "x"), normal(12, 1, "y"), None).unwrap();
    let hidden = Hidden::new(3, 4, 2);
    let embedded = hidden.embedded(data.inputs()).unwrap();
    let behind = Observations::new(embedded, data.targets().to_owned(), None).unwrap();
    let exact = process("matern52(ard)", 2).condition(behind).unwrap();
    let posterior = EmbeddedPosterior::new(Box::new(hidden.clone()), exact.clone()).unwrap();
    let x = normal(5, 3, "new");
    let g = hidden.embedded(x.as_ref()).unwrap();
    assert_eq!(posterior.predict(x.as_ref()).unwrap(), exact.predict(g.as_ref()).unwrap());
    let (joint, other) = (posterior.joint(x.as_ref()).unwrap(), exact.joint(g.as_ref()).unwrap());
    assert_eq!((joint.mean, joint.covariance), (other.mean, other.covariance));
    let draw =
        |p: &dyn Posterior, x: MatRef<'_, f64>| p.sample(x, 0, 4, &mut Streams::new(1).stream("s")).unwrap();
    assert_eq!(draw(&posterior, x.as_ref()), draw(&exact, g.as_ref()));
    assert!(
        posterior.predict(normal(5, 2, "narrow").as_ref()).unwrap_err().to_string().contains("expected 3")
    );
    let infinite = Mat::from_fn(1, 3, |_, _| f64::INFINITY);
    assert!(matches!(posterior.predict(infinite.as_ref()), Err(crate::GpError::NotFinite { .. })));
    let wider = Hidden::new(3, 4, 5);
    assert!(EmbeddedPosterior::new(Box::new(wider), exact).is_err());
}

#[test]
fn a_map_that_makes_the_same_of_all_rows_is_survived_and_seen() {
    let data = step(20, "train");
    let mut hidden = Hidden { rows: 4096, ..Hidden::new(1, 3, 2) };
    let zero = vec![0.0; hidden.unconstrained().len()];
    hidden.set_unconstrained(&zero);
    let mut model = process("se(ard)", 2);
    // With hardly any noise the matrix of ones is singular to rounding.
    let mut values = model.values();
    *values.last_mut().unwrap() = 1.1e-18;
    model = ExactGp::new(model.kernel().clone_box(), MeanForm::Zero, Gaussian::new(1.1e-18, 0.0), 2, 1);
    model.set_values(&values);
    let options = EmbeddedOptions { steps: 1, weight_decay: 0.0, ..options() };
    let fitted =
        fit_embedded(model, Box::new(hidden), &data, None, &options, None, &mut |_, _| Signal::Continue)
            .unwrap();
    assert!(fitted.state.largest_jitter > 0.0, "{}", fitted.state.largest_jitter);
    assert!(fitted.posterior.smallest_correlation() > 0.999);
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = step(10, "train");
    let refused = |options: EmbeddedOptions, inputs: usize, width: usize| {
        let embedding = Box::new(Hidden::new(inputs, 3, width));
        let observer = &mut |_: &_, _: &_| Signal::Continue;
        fit_embedded(process("se", 2), embedding, &data, None, &options, None, observer)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(options(), 1, 3).contains("outputs of the map: expected 2, got 3"));
    assert!(refused(options(), 2, 2).contains("columns of the inputs: expected 2, got 1"));
    let decay = EmbeddedOptions { weight_decay: f64::NAN, ..options() };
    assert!(refused(decay, 1, 2).contains("weight decay"));
    let patience = Patience { check_every: 0, ..options().patience };
    assert!(refused(EmbeddedOptions { patience, ..options() }, 1, 2).contains("steps between looks"));
}
