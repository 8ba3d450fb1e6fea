//! Hooks between epochs: what they change, what is kept, what survives an interruption.

use super::*;
use crate::{Array, GraphBuilder, Network, Selection};
use posterior_linalg::random::Streams;
use posterior_optim::{Progress, Reason, Rule, Schedule, Signal};

/// `y = 2 x_0 - x_1 + 0.5` with a little structure on top.
fn data(count: usize) -> Tabular<f64> {
    let x: Vec<f64> = (0..2 * count).map(|i| ((i * 37 % 101) as f64 / 50.0) - 1.0).collect();
    let y = x.chunks(2).map(|x| 2.0 * x[0] - x[1] + 0.5 + 0.1 * (5.0 * x[0]).sin()).collect();
    Tabular::new(Array::new(vec![count, 2], x), Targets::Values(Array::new(vec![count, 1], y)))
}

fn network() -> Network<f64> {
    let mut b = GraphBuilder::new(&[2]).unwrap();
    let x = b.linear("line", 1, b.input()).unwrap();
    Network::initialised(b.finish(x).unwrap(), Streams::new(5)).unwrap()
}

fn options(loss: Loss, rule: Rule) -> TrainOptions {
    TrainOptions {
        loss,
        epochs: 8,
        batch: 7,
        rule,
        learning_rate: 1e-2,
        schedule: Schedule::Cosine,
        clip: None,
        patience: None,
        seed: 1,
    }
}

/// Doubles the decay of the weight (not of the bias) at every second epoch; the score says that epoch 4 is best.
struct Doubling {
    keep: Keep,
    interrupt_at: Option<usize>,
    noise: bool,
}

impl EpochHook<f64> for Doubling {
    fn keep(&self) -> Keep {
        self.keep
    }
    fn start(&mut self, _: &Network<f64>, memory: &mut String) -> Result<Adjustment<f64>, TrainError> {
        *memory = "0.01".into();
        Ok(Adjustment { weight_decay: vec![0.01, 0.0], log_variance: None, score: None })
    }
    fn due(&self, epoch: usize) -> bool {
        epoch.is_multiple_of(2)
    }
    fn run(
        &mut self,
        network: &Network<f64>,
        epoch: usize,
        log_variance: &[f64],
        memory: &mut String,
    ) -> Result<Option<Adjustment<f64>>, TrainError> {
        assert_eq!(network.mode(), crate::Mode::Evaluation);
        if self.interrupt_at.take_if(|e| *e == epoch).is_some() {
            *memory = "must not be seen".into();
            return Ok(None);
        }
        let decay = 2.0 * memory.parse::<f64>().unwrap();
        *memory = decay.to_string();
        let log_variance = (self.noise && !log_variance.is_empty()).then(|| vec![-1.0 - epoch as f64]);
        let score = Some((epoch as f64 - 4.2).abs());
        Ok(Some(Adjustment { weight_decay: vec![decay, 0.0], log_variance, score }))
    }
}

fn doubling(keep: Keep, noise: bool) -> Doubling {
    Doubling { keep, interrupt_at: None, noise }
}

#[test]
fn decay_is_that_of_each_parameter_and_changes_between_epochs() {
    let examples = data(7);
    let plain = Rule::Sgd { momentum: 0.0, nesterov: false, weight_decay: 0.5 };
    let options = TrainOptions { schedule: Schedule::Constant, ..options(Loss::Mse, plain) };
    let mut hook = doubling(Keep::Last, false);
    let trained =
        train_with(network(), &examples, None, &options, Some(&mut hook), None, &mut |_, _| Signal::Continue)
            .unwrap();
    // The same by hand: gradient descent on the mean square with a decay of the two weights.
    let all = Selection::all(network().graph());
    let mut theta = all.flatten(network().parameters());
    let indices: Vec<usize> = (0..7).collect();
    let (x, Targets::Values(y)) = examples.batch(&indices, None) else { panic!() };
    for epoch in 0..8 {
        let decay = 0.01 * 2f64.powi(epoch / 2);
        let mut slope = [decay * theta[0], decay * theta[1], 0.0];
        for n in 0..7 {
            let error = theta[0] * x.row(n)[0] + theta[1] * x.row(n)[1] + theta[2] - y.values()[n];
            slope[0] += 2.0 / 7.0 * error * x.row(n)[0];
            slope[1] += 2.0 / 7.0 * error * x.row(n)[1];
            slope[2] += 2.0 / 7.0 * error;
        }
        theta.iter_mut().zip(slope).for_each(|(t, s)| *t -= 1e-2 * s);
    }
    let found = all.flatten(trained.network.parameters());
    found.iter().zip(&theta).for_each(|(f, t)| assert!((f - t).abs() < 1e-13, "{f} {t}"));
    assert_eq!(trained.state.hook.unwrap().weight_decay, [0.16, 0.0]);
}

#[test]
fn the_hook_chooses_the_weights_and_holds_the_noise() {
    let examples = data(20);
    let options = options(Loss::Gaussian, Rule::adam());
    let run = |keep, epochs| {
        let mut hook = doubling(keep, true);
        let options = TrainOptions { epochs, schedule: Schedule::Constant, ..options };
        train_with(network(), &examples, None, &options, Some(&mut hook), None, &mut |_, _| Signal::Continue)
            .unwrap()
    };
    let best = run(Keep::Score, 8);
    assert_eq!(best.best_epoch, Some(4));
    assert_eq!(best.network.parameters(), run(Keep::Last, 4).network.parameters());
    assert_eq!(best.noise_variance, [(-5.0f64).exp()]);
    let last = run(Keep::Last, 8);
    assert_eq!((last.best_epoch, &last.noise_variance[..]), (None, &[(-9.0f64).exp()][..]));
}

/// A score that is no number is kept, goes through a checkpoint and loses to any other.
#[test]
fn a_score_that_is_no_number_is_not_the_best_for_ever() {
    struct Unscored(Doubling);
    impl EpochHook<f64> for Unscored {
        fn keep(&self) -> Keep {
            self.0.keep()
        }
        fn start(&mut self, n: &Network<f64>, memory: &mut String) -> Result<Adjustment<f64>, TrainError> {
            self.0.start(n, memory)
        }
        fn due(&self, epoch: usize) -> bool {
            self.0.due(epoch)
        }
        fn run(
            &mut self,
            network: &Network<f64>,
            epoch: usize,
            log_variance: &[f64],
            memory: &mut String,
        ) -> Result<Option<Adjustment<f64>>, TrainError> {
            let mut found = self.0.run(network, epoch, log_variance, memory)?;
            if let Some(found) = found.as_mut().filter(|_| epoch == 2) {
                found.score = Some(f64::NAN);
            }
            Ok(found)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.checkpoint");
    let (examples, options) = (data(20), options(Loss::Mse, Rule::adam()));
    let (mut hook, mut seen) = (Unscored(doubling(Keep::Score, false)), 0);
    let mut observer = |_: &Progress, state: &TrainState<f64>| {
        if state.best.as_ref().is_some_and(|best| best.score.is_nan()) {
            state.save(&path, network().graph(), &options, "line").unwrap();
            let read = TrainState::<f64>::load(&path, network().graph(), &options, "line").unwrap();
            assert!(read.best.unwrap().score.is_nan());
            seen += 1;
        }
        Signal::Continue
    };
    let trained =
        train_with(network(), &examples, None, &options, Some(&mut hook), None, &mut observer).unwrap();
    assert!(seen > 0);
    assert_eq!(trained.best_epoch, Some(4));
}

#[test]
fn runs_with_hooks_resume_bit_for_bit_even_from_within_the_hook() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.checkpoint");
    let examples = data(20);
    let options = options(Loss::Gaussian, Rule::adam());
    let keep = Keep::Score;
    let whole = train_with(
        network(),
        &examples,
        None,
        &options,
        Some(&mut doubling(keep, true)),
        None,
        &mut |_, _| Signal::Continue,
    )
    .unwrap();
    let graph = whole.network.graph();
    let again = |state: &TrainState<f64>| {
        state.save(&path, graph, &options, "line").unwrap();
        let state = TrainState::load(&path, graph, &options, "line").unwrap();
        let mut hook = doubling(keep, true);
        let resumed =
            train_with(network(), &examples, None, &options, Some(&mut hook), Some(state), &mut |_, _| {
                Signal::Continue
            })
            .unwrap();
        assert_eq!(resumed.state, whole.state);
        assert_eq!(resumed.network.parameters(), whole.network.parameters());
        assert_eq!(resumed.noise_variance, whole.noise_variance);
    };
    // Three steps make an epoch: 6 and 24 end one with a hook.
    for stop in [1, 5, 6, 7, 12, 24] {
        let mut observer = |p: &Progress, _: &_| if p.step == stop { Signal::Stop } else { Signal::Continue };
        let mut hook = doubling(keep, true);
        let part =
            train_with(network(), &examples, None, &options, Some(&mut hook), None, &mut observer).unwrap();
        assert!(part.reason == Reason::Interrupted && part.state.step == stop);
        again(&part.state);
    }
    for epoch in [2, 8] {
        let mut hook = Doubling { interrupt_at: Some(epoch), ..doubling(keep, true) };
        let mut seen = None;
        let part = train_with(network(), &examples, None, &options, Some(&mut hook), None, &mut |p, s| {
            seen = Some((p.step, s.clone()));
            Signal::Continue
        })
        .unwrap();
        assert!(part.reason == Reason::Interrupted && part.state.hook.as_ref().unwrap().due);
        // The observer sees a state that can be saved.
        assert_eq!(seen.unwrap(), (3 * epoch, part.state.clone()));
        again(&part.state);
    }
    // With another kind of run the state says no.
    let mut observer = |p: &Progress, _: &_| if p.step == 5 { Signal::Stop } else { Signal::Continue };
    let plain = train(network(), &examples, None, &options, None, &mut observer).unwrap();
    let mut hook = doubling(keep, true);
    let mut go = |_: &Progress, _: &TrainState<f64>| Signal::Continue;
    let text = |r: Result<Trained<f64>, TrainError>| r.unwrap_err().to_string();
    let message =
        text(train_with(network(), &examples, None, &options, Some(&mut hook), Some(plain.state), &mut go));
    assert!(message.contains("other hooks"), "{message}");
    let message = text(train(network(), &examples, None, &options, Some(whole.state), &mut go));
    assert!(message.contains("other hooks"), "{message}");
}

#[test]
fn what_a_hook_may_not_do_is_refused() {
    struct Bad(Vec<f64>);
    impl EpochHook<f64> for Bad {
        fn keep(&self) -> Keep {
            Keep::Last
        }
        fn start(&mut self, _: &Network<f64>, _: &mut String) -> Result<Adjustment<f64>, TrainError> {
            Ok(Adjustment { weight_decay: self.0.clone(), log_variance: None, score: None })
        }
        fn due(&self, _: usize) -> bool {
            false
        }
        fn run(
            &mut self,
            _: &Network<f64>,
            _: usize,
            _: &[f64],
            _: &mut String,
        ) -> Result<Option<Adjustment<f64>>, TrainError> {
            Ok(None)
        }
    }
    let examples = data(9);
    for decays in [vec![0.1], vec![0.1, -1.0], vec![f64::NAN, 0.0]] {
        let options = options(Loss::Mse, Rule::adam());
        let run =
            train_with(network(), &examples, None, &options, Some(&mut Bad(decays)), None, &mut |_, _| {
                Signal::Continue
            });
        assert!(run.unwrap_err().to_string().contains("weight decay"));
    }
    for (keep, patience) in [(Keep::Score, Some(2)), (Keep::Validation, None)] {
        let options = TrainOptions { patience, ..options(Loss::Mse, Rule::adam()) };
        let validation = data(3);
        let validation = patience.map(|_| &validation as &dyn Examples<f64>);
        let mut hook = doubling(keep, false);
        let run =
            train_with(network(), &examples, validation, &options, Some(&mut hook), None, &mut |_, _| {
                Signal::Continue
            });
        assert!(run.unwrap_err().to_string().contains("validation"));
    }
}
