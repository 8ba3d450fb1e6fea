//! The default: what is tried, what is left out and why, and when the network itself is kept.

use crate::common::{inputs, network};
use posterior_laplace::{AutoReport, ComparedBy, Data, FitOptions, Laplace, LaplaceError, Stage, auto};
use posterior_likelihoods::{Categorical, Integration, OutputLikelihood};
use posterior_networks::train::{Tabular, Targets};
use posterior_networks::{Array, Network};
use posterior_optim::Signal;
use std::time::Duration;

const COPIES: usize = 120;

fn softmax(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|f| f.exp()).sum();
    logits.iter().map(|f| f.exp() / total).collect()
}

/// Every input many times, with classes in the proportions of `network`'s own probabilities. What the rounding leaves over goes to the most probable class, so that the labels are never less
/// certain than the network.
fn calibrated(network: &Network<f64>, different: usize, seed: u64) -> Tabular<f64> {
    let x = inputs(network, different, seed);
    let f = network.forward(&x).unwrap();
    let (mut values, mut classes) = (Vec::new(), Vec::new());
    for n in 0..different {
        let p = softmax(f.row(n));
        let mut counts: Vec<usize> = p.iter().map(|p| (p * COPIES as f64) as usize).collect();
        let best = (0..p.len()).max_by(|a, b| p[*a].total_cmp(&p[*b])).unwrap();
        counts[best] += COPIES - counts.iter().sum::<usize>();
        for (class, count) in counts.into_iter().enumerate() {
            classes.extend(std::iter::repeat_n(class as u32, count));
        }
        (0..COPIES).for_each(|_| values.extend_from_slice(x.row(n)));
    }
    Tabular::new(Array::new(vec![different * COPIES, 3], values), Targets::Classes(classes))
}

/// The same network with logits four times as large.
fn overconfident(network: &Network<f64>) -> Network<f64> {
    let mut loud = network.clone();
    let last = loud.parameters().len() - 2;
    for values in &mut loud.parameters_mut()[last..] {
        values.values_mut().iter_mut().for_each(|v| *v *= 4.0);
    }
    loud
}

fn choose(
    network: &Network<f64>,
    data: &Tabular<f64>,
    validation: &Tabular<f64>,
    options: &FitOptions,
    time: Option<Duration>,
    observer: &mut dyn FnMut(&str, Stage, usize, usize) -> Signal,
) -> Result<(Laplace<f64>, AutoReport), LaplaceError> {
    let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    compare(network, data, Some(validation), &likelihood, options, time, observer)
}

/// As [`auto`], without what was chosen to be fitted.
fn compare(
    network: &Network<f64>,
    data: &Tabular<f64>,
    validation: Option<&Tabular<f64>>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
    time: Option<Duration>,
    observer: &mut dyn FnMut(&str, Stage, usize, usize) -> Signal,
) -> Result<(Laplace<f64>, AutoReport), LaplaceError> {
    let unseen = validation.map(|v| v as &dyn posterior_networks::train::Examples<f64>);
    let patience = Duration::from_secs(5);
    let fitted = Data { validation: unseen, ..Data::new(network, data, likelihood) };
    let (laplace, report, own) = auto(&fitted, likelihood, options, time, patience, observer)?;
    assert_eq!(own.integration, laplace.integration());
    Ok((laplace, report))
}

fn quiet(_: &str, _: Stage, _: usize, _: usize) -> Signal {
    Signal::Continue
}

#[test]
fn nothing_beats_a_calibrated_network() {
    let network = network(crate::common::PERCEPTRON, 4);
    let (data, validation) = (calibrated(&network, 20, 1), calibrated(&network, 15, 2));
    let (laplace, report) =
        choose(&network, &data, &validation, &FitOptions::default(), None, &mut quiet).unwrap();
    assert_eq!((report.beats_plain, report.compared_by), (Some(false), ComparedBy::UnseenExamples));
    // The best of many may be better by chance, by less than it would need to be.
    let scores = laplace.summary.unseen.unwrap();
    assert!(scores.nll + scores.difference_error >= scores.plain_nll, "{report:?}");
    assert_eq!(laplace.integration(), Integration::PlugIn);
    assert!(laplace.summary.notes.iter().any(|n| n.contains("no posterior predicts better")));
    // All candidates were tried, and the best of them is the one kept.
    // A temperature that beats nothing is none of them.
    let posteriors = report.candidates.iter().filter(|c| c.name != "temperature");
    let scores: Vec<f64> = posteriors.filter_map(|c| c.nll).collect();
    assert!(scores.len() >= 5);
    assert_eq!(scores.iter().copied().fold(f64::INFINITY, f64::min), report.nll.unwrap());
    let chosen = report.candidates.iter().find(|c| c.name == report.chosen).unwrap();
    assert_eq!(chosen.nll, report.nll);
    // Plain predictions are the network's own.
    let x = inputs(&network, 4, 9);
    let rule = laplace.rule(laplace.integration()).unwrap();
    let latent = laplace.latent(&network, &x, posterior_laplace::Wanted::Full).unwrap();
    let f = network.forward(&x).unwrap();
    for i in 0..4 {
        let posterior_likelihoods::Prediction::Classes(p) = rule.predict(latent.example(i)).unwrap() else {
            panic!()
        };
        p.iter().zip(softmax(f.row(i))).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
    }
}

#[test]
fn a_posterior_beats_an_overconfident_network() {
    let calm = network(crate::common::PERCEPTRON, 4);
    let (data, validation) = (calibrated(&calm, 20, 1), calibrated(&calm, 15, 2));
    let loud = overconfident(&calm);
    let (laplace, report) =
        choose(&loud, &data, &validation, &FitOptions::default(), None, &mut quiet).unwrap();
    assert_eq!(report.beats_plain, Some(true), "{report:?}");
    let (own, plain) = (report.nll.unwrap(), report.plain_nll.unwrap());
    assert!(own < plain - 0.02, "{own} {plain}");
    assert_eq!(laplace.integration(), FitOptions::default().integration);
    assert!(laplace.summary.notes.iter().any(|n| n.contains(&format!("`{}` was chosen", report.chosen))));
}

#[test]
fn candidates_without_room_or_time_are_named() {
    let network = network(crate::common::PERCEPTRON, 4);
    let (data, validation) = (calibrated(&network, 3, 1), calibrated(&network, 2, 2));
    let all = FitOptions::default();
    // Two seconds leave the long searches out for their time; what is asked here is what memory does.
    let time = Some(Duration::from_secs(2));
    let late = |why: &str| why.contains("are left");
    let (_, report) = choose(&network, &data, &validation, &all, time, &mut quiet).unwrap();
    let mut needs: Vec<u64> = report.candidates.iter().map(|c| c.plan.bytes()).collect();
    assert!(report.candidates.iter().all(|c| c.skipped.as_deref().is_none_or(late)), "{report:?}");
    // A long search does not take the time of a short one.
    let first = report.candidates.iter().position(|c| c.name == "temperature").unwrap();
    let searches: Vec<f64> = report.candidates[first..].iter().map(|c| c.plan.seconds()).collect();
    assert!(searches.len() > 2 && searches.is_sorted(), "{searches:?}");
    needs.sort_unstable();
    needs.dedup();
    let memory = needs[needs.len() / 2];
    let some = FitOptions { memory, ..all.clone() };
    let (_, report) = choose(&network, &data, &validation, &some, time, &mut quiet).unwrap();
    let mut left_out = 0;
    for candidate in &report.candidates {
        match &candidate.skipped {
            None => assert!(candidate.plan.bytes() <= memory && candidate.nll.is_some()),
            Some(why) => {
                left_out += 1;
                assert!(candidate.nll.is_none());
                assert_eq!(candidate.plan.bytes() > memory, why.contains("above the limit"), "{why}");
                assert!(late(why) || why.contains("above the limit"), "{why}");
            }
        }
    }
    assert!(left_out > 0 && left_out < report.candidates.len());

    let nothing = FitOptions { memory: 1000, ..all.clone() };
    let error = choose(&network, &data, &validation, &nothing, None, &mut quiet).err().unwrap().to_string();
    for candidate in &report.candidates {
        assert!(error.contains(&format!("{}: ", candidate.name)), "{error}");
    }
    let hurried = choose(&network, &data, &validation, &all, Some(Duration::ZERO), &mut quiet);
    let error = hurried.err().unwrap().to_string();
    assert!(error.contains("kronecker: it would take about") && error.contains("are left"), "{error}");
}

#[test]
fn interruptions_are_passed_on() {
    let network = network(crate::common::PERCEPTRON, 4);
    let (data, validation) = (calibrated(&network, 3, 1), calibrated(&network, 2, 2));
    let mut seen = Vec::new();
    // The first posterior is fitted; the second is being scored.
    let mut observer = |name: &str, stage, _: usize, _: usize| {
        seen.push((name.to_string(), stage));
        if name == "last-layer" && stage == Stage::Validation { Signal::Stop } else { Signal::Continue }
    };
    let result = choose(&network, &data, &validation, &FitOptions::default(), None, &mut observer);
    assert!(matches!(result, Err(LaplaceError::Interrupted)));
    assert_eq!(seen.first().unwrap().0, "last-layer-kronecker");
    assert_eq!(seen.last().unwrap(), &("last-layer".to_string(), Stage::Validation));
}

/// Without unseen examples the evidence decides between structures of the same weights, whose exact one it is largest for, and nothing is said about the plain network.
#[test]
fn without_unseen_examples_the_evidence_decides() {
    let network = network(crate::common::PERCEPTRON, 4);
    let classes = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    let data = calibrated(&network, 3, 1);
    let (laplace, report) =
        compare(&network, &data, None, &classes, &FitOptions::default(), None, &mut quiet).unwrap();
    assert_eq!((report.compared_by, report.beats_plain, report.nll), (ComparedBy::Evidence, None, None));
    let evidence = |i: usize| report.candidates[i].log_evidence.unwrap();
    assert!(report.candidates.len() == 2 && evidence(1) >= evidence(0), "{report:?}");
    assert_eq!(report.chosen, "last-layer");
    assert_ne!(laplace.integration(), Integration::PlugIn);
    assert!(laplace.summary.notes.iter().any(|n| n.contains("not compared on unseen data")));
    // Numbers with noise: all weights, which the noise is estimated with.
    let gaussian = crate::common::likelihoods().swap_remove(1);
    let numbers = crate::common::data(&network, &gaussian, 60, 3);
    let (laplace, report) =
        compare(&network, &numbers, None, &gaussian, &FitOptions::default(), None, &mut quiet).unwrap();
    assert_eq!(laplace.selection().len(), network.graph().trainable());
    let names: Vec<&str> = report.candidates.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["kronecker", "full"]);
    assert_eq!(report.chosen, "full");
    // Where memory is short the last layer is better than nothing, and said to be.
    let needs: Vec<u64> = report.candidates.iter().map(|c| c.plan.bytes()).collect();
    let short = FitOptions { memory: needs.iter().min().unwrap() - 1, ..FitOptions::default() };
    let (laplace, report) = compare(&network, &numbers, None, &gaussian, &short, None, &mut quiet).unwrap();
    assert!(report.chosen.starts_with("last-layer"), "{report:?}");
    assert!(laplace.summary.notes.iter().any(|n| n.contains("noise and intervals too small")));
}
