//! Losses of classes as numbers: against naive formulas and differences, at the targets, and in networks that can meet them.

use super::*;
use crate::{Array, GraphBuilder, Network};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_linalg::random::Streams;
use posterior_optim::{Rule, Schedule, Signal};

const MATCHINGS: [Matching; 4] =
    [Matching::MomentOriginal, Matching::Moment, Matching::Laplace, Matching::Variational];

fn gaussianised(matching: Matching, pseudo_count: f64) -> Loss {
    Loss::Gaussianised(GaussianisedLoss::new(matching, pseudo_count).unwrap())
}

fn classes(labels: &[u32]) -> Targets<f64> {
    Targets::Classes(labels.to_vec())
}

/// The digamma and trigamma functions, by recurrence to large arguments and Stirling's series there.
fn polygamma(x: f64) -> (f64, f64) {
    let (mut psi, mut slope) = (0.0, 0.0);
    for i in 0..40 {
        psi -= 1.0 / (x + f64::from(i));
        slope += (x + f64::from(i)).powi(-2);
    }
    let y = x + 40.0;
    psi += y.ln() - 0.5 / y - y.powi(-2) / 12.0 + y.powi(-4) / 120.0 - y.powi(-6) / 252.0;
    slope += 1.0 / y + 0.5 * y.powi(-2) + y.powi(-3) / 6.0 - y.powi(-5) / 30.0 + y.powi(-7) / 42.0;
    (psi, slope)
}

/// Target and weight as the table of the source has them.
fn printed(matching: Matching, a: f64) -> (f64, f64) {
    match matching {
        Matching::MomentOriginal => (a.ln() - 0.5 * (1.0 + 1.0 / a).ln(), 1.0 / (1.0 + 1.0 / a).ln()),
        Matching::Moment => (polygamma(a).0, 1.0 / polygamma(a).1),
        Matching::Laplace => (a.ln(), a),
        Matching::Variational => (a.ln() - 0.5 / a, a),
    }
}

#[test]
fn several_outputs_follow_the_naive_formula() {
    let outputs = Array::new(vec![3, 3], vec![0.3, -1.2, 0.5, 1.1, 0.4, -0.7, -2.0, 0.0, 3.0]);
    let labels = [2u32, 0, 1];
    for matching in MATCHINGS {
        for pseudo_count in [0.01, 0.1, 0.5] {
            let found = gaussianised(matching, pseudo_count).evaluate(&outputs, &classes(&labels), &[]);
            let mut sum = 0.0;
            for (n, label) in labels.iter().enumerate() {
                for (k, f) in outputs.row(n).iter().enumerate() {
                    let seen = if k == *label as usize { 1.0 } else { 0.0 };
                    let (m, weight) = printed(matching, pseudo_count + seen);
                    sum += weight * (f - m).powi(2) / 2.0;
                    let slope = weight * (f - m) / 3.0;
                    let own = found.cotangent.row(n)[k];
                    assert!((own - slope).abs() < 1e-12 * slope.abs().max(1.0), "{matching:?} {own} {slope}");
                }
            }
            assert!((found.sum - sum).abs() < 1e-12 * sum, "{matching:?} {pseudo_count}");
        }
    }
    let plain = Loss::OneHot.evaluate(&outputs, &classes(&labels), &[]);
    let square =
        |n: usize, k: usize| (outputs.row(n)[k] - f64::from(u8::from(k == labels[n] as usize))).powi(2) / 2.0;
    let naive: f64 = (0..9).map(|i| square(i / 3, i % 3)).sum();
    assert!((plain.sum - naive).abs() < 1e-14);
    // Whatever the loss, labels are scored by the softmax.
    let exact = Loss::CrossEntropy.evaluate(&outputs, &classes(&labels), &[]);
    assert_eq!((plain.nll, plain.correct), (exact.sum, exact.correct));
}

#[test]
fn weights_are_the_counts_to_the_last_bit() {
    for matching in [Matching::Laplace, Matching::Variational] {
        for pseudo_count in [0.001, 0.1, 0.3, 1.0 / 3.0, 0.7] {
            let labels = GaussianisedLoss::new(matching, pseudo_count).unwrap();
            let [other, own] = labels.pulls(4).unwrap();
            let slope = |pull: gaussianised::Pull| pull.at(1.0).1 - pull.at(0.0).1;
            // A difference of two slopes may round, the weight itself may not.
            let observed = Gaussianised::new(matching, pseudo_count).unwrap();
            assert_eq!(observed.class_precision(false).to_bits(), pseudo_count.to_bits());
            assert_eq!(observed.class_precision(true).to_bits(), (1.0 + pseudo_count).to_bits());
            assert!(
                (slope(other) - pseudo_count).abs() < 1e-12
                    && (slope(own) - 1.0 - pseudo_count).abs() < 1e-12
            );
        }
    }
}

#[test]
fn one_output_is_the_logit_of_the_second_class() {
    let outputs = Array::new(vec![4, 1], vec![0.7, -2.0, 30.0, -0.4]);
    let labels = [1u32, 0, 0, 1];
    // Table of the source: targets and variances of an event.
    for (matching, pseudo_count, target, variance) in [
        (Matching::Laplace, 0.1, 2.397895, 10.909091),
        (Matching::Moment, 0.1, 10.0, 102.866598),
        (Matching::Variational, 0.1, 8.280619, 32.592530),
        (Matching::Variational, 0.5, 1.817384, 4.265231),
    ] {
        let found = gaussianised(matching, pseudo_count).evaluate(&outputs, &classes(&labels), &[]);
        let mut sum = 0.0;
        for (i, label) in labels.iter().enumerate() {
            let m = if *label == 1 { target } else { -target };
            let f = outputs.values()[i];
            sum += (f - m).powi(2) / (2.0 * variance);
            let slope = (f - m) / variance / 4.0;
            assert!((found.cotangent.values()[i] - slope).abs() < 2e-6, "{matching:?}");
        }
        assert!((found.sum - sum).abs() < 1e-6 * sum, "{matching:?}: {} {sum}", found.sum);
    }
    let exact = Loss::CrossEntropy.evaluate(&outputs, &classes(&labels), &[]);
    let logistic: f64 = outputs
        .values()
        .iter()
        .zip(labels)
        .map(|(f, label)| if label == 1 { (-f).exp().ln_1p() } else { f.exp().ln_1p() })
        .sum();
    assert!((exact.sum - logistic).abs() < 1e-12 && exact.correct == 2, "{}", exact.sum);
    // The same as two outputs of which one is 0.
    let two = Array::new(vec![4, 2], outputs.values().iter().flat_map(|f| [0.0, *f]).collect());
    let pair = Loss::CrossEntropy.evaluate(&two, &classes(&labels), &[]);
    assert!((exact.sum - pair.sum).abs() < 1e-12 && exact.correct == pair.correct);
    for i in 0..4 {
        assert!((exact.cotangent.values()[i] - pair.cotangent.row(i)[1]).abs() < 1e-14);
    }
    let plain = Loss::OneHot.evaluate(&outputs, &classes(&labels), &[]);
    let squares = (0.7f64 - 1.0).powi(2) + (-2.0f64 + 1.0).powi(2) + 31.0f64.powi(2) + 1.4f64.powi(2);
    assert!((plain.sum - squares / 2.0).abs() < 1e-12);
}

#[test]
fn gradients_agree_with_differences() {
    let several = Array::new(vec![2, 4], vec![0.3, -1.2, 0.5, 0.1, 1.1, 0.4, -0.7, 0.2]);
    let one = Array::new(vec![3, 1], vec![0.3, -1.2, 2.5]);
    let mut cases: Vec<(Loss, &Array<f64>, Targets<f64>)> =
        vec![(Loss::OneHot, &several, classes(&[2, 0])), (Loss::OneHot, &one, classes(&[1, 0, 0]))];
    cases.push((Loss::CrossEntropy, &one, classes(&[1, 0, 0])));
    for matching in MATCHINGS {
        cases.push((gaussianised(matching, 0.1), &several, classes(&[2, 0])));
        if matching != Matching::MomentOriginal {
            cases.push((gaussianised(matching, 0.1), &one, classes(&[1, 0, 0])));
        }
    }
    for (loss, outputs, targets) in cases {
        assert_eq!(loss.check(&outputs.shape()[1..], &targets).unwrap(), 0);
        let rows = outputs.rows() as f64;
        let found = loss.evaluate(outputs, &targets, &[]);
        for i in 0..outputs.values().len() {
            let moved = |h: f64| {
                let mut o = outputs.clone();
                o.values_mut()[i] += h;
                loss.evaluate(&o, &targets, &[]).sum / rows
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((found.cotangent.values()[i] - slope).abs() < 1e-8, "{loss:?} {i}");
        }
    }
}

#[test]
fn huge_variances_keep_their_digits() {
    // A pseudo-count of 1e-60: variance 1e120, target -1e60. At its target an output pulls on nothing; at 0 the loss is m²/(2v) = 1/2.
    let labels = GaussianisedLoss::new(Matching::Moment, 1e-60).unwrap();
    let [other, _] = labels.pulls(3).unwrap();
    let (value, slope) = other.at(0.0);
    assert!((value - 0.5).abs() < 1e-12 && (slope * 1e60 - 1.0).abs() < 1e-12, "{value} {slope}");
    let (value, slope) = other.at(-1e60);
    assert!(value.abs() < 1e-12 && slope.abs() < 1e-72, "{value} {slope}");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert!(GaussianisedLoss::new(Matching::Variational, bad).is_err(), "{bad}");
    }
}

/// A linear map of one-hot inputs: every class can be given any outputs.
fn table(outputs: usize, rows: u32) -> (Network<f64>, Tabular<f64>) {
    let mut b = GraphBuilder::new(&[rows as usize]).unwrap();
    let x = b.linear("f", outputs, b.input()).unwrap();
    let network = Network::initialised(b.finish(x).unwrap(), Streams::new(3)).unwrap();
    let rows = rows as usize;
    let inputs = (0..rows * rows).map(|i| if i / rows == i % rows { 1.0 } else { 0.0 }).collect();
    let data =
        Tabular::new(Array::new(vec![rows, rows], inputs), classes(&(0..rows as u32).collect::<Vec<_>>()));
    (network, data)
}

#[test]
fn networks_that_meet_their_targets_are_as_sure_as_the_ceiling_says() {
    // Ten and two classes; ceilings of the source at a pseudo-count of 0.2.
    let printed = [
        (Matching::MomentOriginal, [0.9156, 0.5467]),
        (Matching::Moment, [0.9933, 0.9428]),
        (Matching::Laplace, [0.8571, 0.4000]),
        (Matching::Variational, [0.9797, 0.8426]),
    ];
    let run = |loss: Loss, outputs: usize, count: u32| {
        let (network, data) = table(outputs, count);
        let options = TrainOptions {
            loss,
            epochs: 1500,
            batch: count as usize,
            rule: Rule::adam(),
            learning_rate: 0.1,
            schedule: Schedule::Cosine,
            clip: None,
            patience: None,
            seed: 0,
        };
        let trained = train(network, &data, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
        let found = evaluate(&trained.network, &data, loss, &[]).unwrap();
        assert_eq!(found.accuracy, Some(1.0));
        (found, found.nll.unwrap())
    };
    for (matching, ceilings) in printed {
        let loss = gaussianised(matching, 0.2);
        let Loss::Gaussianised(own) = loss else { panic!("made so") };
        for (count, ceiling) in [2, 10].into_iter().zip(ceilings) {
            let (found, nll) = run(loss, count, count as u32);
            assert!(found.loss < 1e-6, "{matching:?} {count}: {}", found.loss);
            let known = Gaussianised::new(matching, 0.2).unwrap().confidence_ceiling(count);
            assert!((own.confidence_ceiling(count) - known).abs() < 1e-14);
            assert!((nll + known.ln()).abs() < 1e-3, "{matching:?} {count}");
            assert!(((-nll).exp() - ceiling).abs() < 1e-3, "{matching:?} {count}: {}", (-nll).exp());
        }
        if matching != Matching::MomentOriginal {
            let (_, nll) = run(loss, 1, 2);
            assert!((nll + own.confidence_ceiling(1).ln()).abs() < 1e-3, "{matching:?}");
        }
    }
    // One-hot regression: e / (e + 9) of ten classes, and an NLL of 1.461.
    let (_, nll) = run(Loss::OneHot, 10, 10);
    assert!((nll - 1.461).abs() < 1e-3, "{nll}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let labels = classes(&[0, 1, 2]);
    let refusal = |loss: Loss, outputs: &[usize], targets: &Targets<f64>| {
        loss.check(outputs, targets).unwrap_err().to_string()
    };
    let values = Targets::Values(Array::new(vec![1, 1], vec![0.5]));
    let variational = gaussianised(Matching::Variational, 0.1);
    for loss in [Loss::CrossEntropy, Loss::OneHot, variational] {
        assert!(refusal(loss, &[2], &labels).contains("class 2"), "{loss:?}");
        assert!(refusal(loss, &[1], &labels).contains("classes 0 to 1"), "{loss:?}");
        assert!(refusal(loss, &[1], &values).contains("classes as targets"), "{loss:?}");
    }
    assert!(refusal(Loss::Mse, &[1], &labels).contains("gaussianised"));
    let events = refusal(gaussianised(Matching::MomentOriginal, 0.1), &[1], &classes(&[0, 1]));
    assert!(events.contains("single output") && events.contains("variational"), "{events}");
}

#[test]
fn losses_are_read_and_written() {
    for (loss, text) in [
        (Loss::CrossEntropy, r#""cross-entropy""#),
        (Loss::OneHot, r#""one-hot""#),
        (
            gaussianised(Matching::MomentOriginal, 0.01),
            r#"{"gaussianised":{"matching":"moment-original","pseudo_count":0.01}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&loss).unwrap(), text);
        assert_eq!(serde_json::from_str::<Loss>(text).unwrap(), loss);
    }
    for bad in [
        r#"{"gaussianised":{"matching":"moment","pseudo_count":-1}}"#,
        r#"{"gaussianised":{"matching":"moment"}}"#,
        r#"{"gaussianised":{"pseudo_count":0.1,"prior_rate":1}}"#,
        r#""gaussianised""#,
    ] {
        assert!(serde_json::from_str::<Loss>(bad).is_err(), "{bad}");
    }
}

#[test]
fn low_ceilings_and_far_targets_are_said() {
    let remarks = |matching, count, outputs, single| {
        GaussianisedLoss::new(matching, count).unwrap().remarks(outputs, single).join("\n")
    };
    assert!(remarks(Matching::Laplace, 0.1, 10, true).contains("0.550"));
    assert!(remarks(Matching::Moment, 0.01, 10, true).contains("single precision"));
    assert!(!remarks(Matching::Moment, 0.01, 10, false).contains("single precision"));
    assert!(remarks(Matching::Moment, 0.01, 10, false).contains("100 nats"));
    assert_eq!(remarks(Matching::Variational, 0.1, 10, true), "");
}

#[test]
fn the_best_weights_are_those_of_the_lowest_nll_of_labels() {
    // Laplace matching with a large pseudo-count: its loss falls as outputs come back to targets that are close to each other, the NLL rises.
    let (network, data) = table(3, 3);
    let mut far = network.clone();
    far.parameters_mut()[0]
        .values_mut()
        .iter_mut()
        .enumerate()
        .for_each(|(i, v)| *v = if i % 4 == 0 { 6.0 } else { 0.0 });
    let options = TrainOptions {
        loss: gaussianised(Matching::Laplace, 1.0),
        epochs: 30,
        batch: 3,
        rule: Rule::adam(),
        learning_rate: 0.1,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 0,
    };
    let trained = train(far, &data, Some(&data), &options, None, &mut |_, _| Signal::Continue).unwrap();
    let history: Vec<Evaluation> = trained.state.history.iter().map(|r| r.validation.unwrap()).collect();
    assert!(history[29].loss < history[0].loss && history[29].nll > history[0].nll);
    assert_eq!(trained.best_epoch, Some(1));
}
