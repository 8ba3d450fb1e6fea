//! Seconds, memory and scores of one posterior for an image classifier, as one JSON line: what the book's tables are made of.
//!
//! `cargo bench -p posterior-laplace --bench image_classifier -- NETWORK.onnx KIND TEST_COUNT MEAN DEVIATION TRAIN TEST`
//! with `KIND` as in the table below, `MEAN` and `DEVIATION` comma-separated by channel, and `TRAIN`, `TEST` either CIFAR files or `IMAGES:LABELS` IDX files.

use posterior_data::{ImageSet, ReadOptions};
use posterior_laplace::{
    Approximation, Data, FisherEstimate, FitOptions, Mode, PriorKind, Run, Tune, Wanted, Weights, fit,
};
use posterior_likelihoods::{Categorical, Integration, OutputLikelihood, PredictiveRule};
use posterior_metrics::Classes;
use posterior_networks::Network;
use posterior_networks::train::{Augmentation, Examples, Images, Targets};
use posterior_onnx::read_onnx;
use std::path::PathBuf;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

fn read(files: &str, mean: &[f64], deviation: &[f64], input: &[usize]) -> Result<Images<f32>, Failure> {
    let (images, labels) = match files.split_once(':') {
        Some((images, labels)) => (PathBuf::from(images), vec![PathBuf::from(labels)]),
        None => (PathBuf::from(files), vec![]),
    };
    let set = ImageSet::read(&[images], &labels, &ReadOptions::for_arrays())?;
    let shape = &set.images.shape()[1..];
    let shape: [usize; 3] =
        if shape.len() == 2 { [1, shape[0], shape[1]] } else { [shape[0], shape[1], shape[2]] };
    let (_, posterior_data::ArrayValues::U8(bytes)) = set.images.into_parts() else {
        return Err("images must hold bytes".into());
    };
    let targets = Targets::Classes(set.labels.ok_or("there are no labels")?);
    Ok(Images::new(shape, bytes, targets, mean, deviation, Augmentation::default(), input.to_vec()))
}

fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|k| k / 1024.0)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [network, kind, count, mean, deviation, train, test] = &arguments[..] else {
        return Err("arguments: NETWORK.onnx KIND TEST_COUNT MEAN DEVIATION TRAIN TEST".into());
    };
    let list = |text: &str| text.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>();
    let (mean, deviation) = (list(mean)?, list(deviation)?);
    let clock = Instant::now();
    let network: Network<f32> = read_onnx(network)?.network()?;
    let input = network.graph().input_shape().to_vec();
    let (train, test) = (read(train, &mean, &deviation, &input)?, read(test, &mean, &deviation, &input)?);
    let reading = clock.elapsed().as_secs_f64();
    let classes: usize = network.graph().output_shape().iter().product();
    let likelihood = OutputLikelihood::Categorical(Categorical::new(classes)?);
    let last = |approximation| (Weights::LastLayer, approximation);
    let exact = Approximation::Kronecker(FisherEstimate::Exact);
    let (weights, approximation) = match kind.as_str() {
        "kron" => (Weights::All, exact),
        "kron-mc" => {
            (Weights::All, Approximation::Kronecker(FisherEstimate::MonteCarlo { samples: 1, seed: 0 }))
        }
        "kron-ef" => (Weights::All, Approximation::Kronecker(FisherEstimate::Empirical)),
        "diag" => (Weights::All, Approximation::Diagonal),
        "full_last" => last(Approximation::Full),
        "kron_last" => last(exact),
        "diag_last" => last(Approximation::Diagonal),
        "low-rank" => (Weights::All, Approximation::LowRank { rank: 50, iterations: 2 }),
        other => return Err(format!("unknown kind {other}").into()),
    };
    let options = FitOptions {
        weights,
        approximation,
        prior: PriorKind::Scalar,
        mode: Mode::Trained,
        tune: Tune::Evidence,
        ..FitOptions::default()
    };
    let laplace = fit(&Data::new(&network, &train, &likelihood), &options, &mut Run::default())?;
    let count = count.parse::<usize>()?.min(test.len());
    let clock = Instant::now();
    let (mut probabilities, mut plain, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    let rule = laplace.rule(Integration::Probit)?;
    let alone = PredictiveRule::new(likelihood.clone(), Integration::PlugIn)?;
    let classes_of = |p| match p {
        posterior_likelihoods::Prediction::Classes(p) => p,
        _ => Vec::new(),
    };
    for start in (0..count).step_by(1000) {
        let indices: Vec<usize> = (start..(start + 1000).min(count)).collect();
        let (x, y) = test.batch(&indices, None);
        let latent = laplace.latent(&network, &x, Wanted::Full)?;
        for i in 0..indices.len() {
            probabilities.extend(classes_of(rule.predict(latent.example(i))?));
            plain.extend(classes_of(alone.predict(latent.example(i))?));
        }
        if let Targets::Classes(own) = y {
            labels.extend(own.into_iter().map(|l| l as usize));
        }
    }
    let predicting = clock.elapsed().as_secs_f64();
    let scores = Classes::new(&probabilities, classes, &labels)?.scores();
    let own = Classes::new(&plain, classes, &labels)?.scores();
    let evidence = laplace.summary.evidence.as_ref().map(|e| e.log_evidence);
    let [_, curvature, _, tuning] = laplace.summary.seconds;
    println!(
        "{{\"kind\": \"{kind}\", \"reading_s\": {reading:.3}, \"fit_s\": {curvature:.3}, \"tune_s\": {tuning:.3}, \"predict_s\": {predicting:.3}, \
         \"predict_ms_an_image\": {:.4}, \"peak_mb\": {:.0}, \"n_test\": {count}, \"log_evidence\": {:.2}, \"prior_precision\": {:.4}, \
         \"acc\": {:.4}, \"nll\": {:.5}, \"ece\": {:.5}, \"plain_acc\": {:.4}, \"plain_nll\": {:.5}, \"plain_ece\": {:.5}, \"planned_mb\": {}}}",
        1e3 * predicting / count as f64,
        peak_megabytes().unwrap_or(f64::NAN),
        evidence.unwrap_or(f64::NAN),
        laplace.prior().precisions()[0],
        scores.accuracy,
        scores.nll,
        scores.ece,
        own.accuracy,
        own.nll,
        own.ece,
        laplace.summary.plan.bytes() >> 20,
    );
    Ok(())
}
