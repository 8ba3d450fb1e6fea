//! Mixtures by hand, files, folders, and what is refused.

use super::fit::{fit as fit_folder, has_checkpoint, is_asked};
use crate::laplace::LaplaceRequest;
use crate::laplace::fit::NetworkDescription;
use crate::laplace::request::LikelihoodKind;
use crate::network::Preprocess;
use crate::{Files, Model, ModelData, ModelError, Predicted, Predictive, Question, Saved, Truth};
use posterior_data::{ArrayValues, NumericArray, write_npy};
use posterior_laplace::{Approximation, FisherEstimate, FitOptions};
use posterior_likelihoods::{Categorical, Gaussian, Integration, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior_networks::train::{Tabular, Targets};
use posterior_networks::{Architecture, Array, Network};
use posterior_optim::Signal;
use rand_distr::{Distribution, StandardNormal};
use std::collections::BTreeMap;
use std::path::Path;

fn normals(count: usize, seed: u64) -> Vec<f64> {
    let mut rng = Streams::new(seed).stream("models/test");
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

fn text(inputs: usize, outputs: usize) -> String {
    format!(
        "kind = \"perceptron\"\ninputs = {inputs}\nhidden = [4]\noutputs = {outputs}\nactivation = \"tanh\"\n"
    )
}

fn network(inputs: usize, outputs: usize, seed: u64) -> Network<f64> {
    let graph = Architecture::from_toml(&text(inputs, outputs)).unwrap().graph().unwrap();
    Network::initialised(graph, Streams::new(seed)).unwrap()
}

fn gaussian(outputs: usize) -> OutputLikelihood {
    OutputLikelihood::Gaussian(Gaussian::independent(vec![0.3; outputs]).unwrap())
}

fn classes(count: usize) -> OutputLikelihood {
    OutputLikelihood::Categorical(Categorical::new(count).unwrap())
}

/// A network of some inputs with error bars from 30 random examples.
fn member(inputs: usize, likelihood: &OutputLikelihood, seed: u64) -> Model {
    let network = network(inputs, likelihood.outputs(), seed);
    let x = Array::new(vec![30, inputs], normals(30 * inputs, 1));
    let targets = match likelihood {
        OutputLikelihood::Categorical(c) => {
            Targets::Classes((0..30).map(|i| (i * 7 % c.classes()) as u32).collect())
        }
        other => Targets::Values(Array::new(vec![30, other.outputs()], normals(30 * other.outputs(), 2))),
    };
    let options = FitOptions {
        approximation: Approximation::Kronecker(FisherEstimate::Exact),
        integration: if matches!(likelihood, OutputLikelihood::Categorical(_)) {
            Integration::MonteCarlo { samples: 64, seed: 0 }
        } else {
            Integration::Probit
        },
        ..FitOptions::default()
    };
    let examples = Tabular::new(x, targets);
    let about = NetworkDescription::default();
    let observer = &mut |_, _, _| Signal::Continue;
    Model::fit_network(network, &examples, None, likelihood, &options, about, observer).unwrap()
}

fn members(likelihood: &OutputLikelihood) -> Model {
    with(likelihood, false)
}

fn with(likelihood: &OutputLikelihood, plain: bool) -> Model {
    let own = (0..3).map(|k| member(2, likelihood, 10 + k)).collect();
    Model::ensemble(own, ["a", "b", "c"].map(String::from).to_vec(), plain).unwrap()
}

fn data(likelihood: &OutputLikelihood, count: usize) -> ModelData {
    let inputs = NumericArray::new(vec![count, 2], ArrayValues::F64(normals(2 * count, 5))).unwrap();
    let truth = match likelihood {
        OutputLikelihood::Categorical(c) => Truth::Classes((0..count).map(|i| i % c.classes()).collect()),
        other => Truth::Values { values: normals(count * other.outputs(), 6), width: other.outputs() },
    };
    ModelData::new("test", inputs, Some(truth))
}

fn question() -> Question {
    Question { memory: 1 << 30, truth: true, seed: 4, ..Question::default() }
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} {b}");
}

fn moments(predictive: &Predictive) -> [&[f64]; 3] {
    let Predicted::Moments { mean, variance, latent_variance } = &predictive.predicted else { panic!() };
    [mean, variance, latent_variance]
}

#[test]
fn classes_are_averaged() {
    for plain in [false, true] {
        let (likelihood, n) = (classes(3), 7);
        let (ensemble, data) = (with(&likelihood, plain), data(&likelihood, n));
        let mixed = ensemble.predictive(&data, &question()).unwrap();
        let own: Vec<Predictive> = ensemble
            .networks()
            .unwrap()
            .members()
            .iter()
            .map(|m| if plain { m.predict_plain(&data) } else { m.predict(&data, None) }.unwrap())
            .collect();
        let p = |k: usize| own[k].probabilities().unwrap();
        for (i, probability) in mixed.probabilities().unwrap().iter().enumerate() {
            close(*probability, (p(0)[i] + p(1)[i] + p(2)[i]) / 3.0);
        }
        for i in 0..n {
            let density = |k: usize| own[k].log_density.as_ref().unwrap()[i].exp();
            let found = mixed.log_density.as_ref().unwrap()[i];
            close(found, ((density(0) + density(1) + density(2)) / 3.0).ln());
        }
        // Scores come from the mixture, with truths.
        let scored = ensemble.evaluate(&data, &question()).unwrap();
        assert_eq!((scored.len(), scored.compared.baseline_name), (n, "first plain network"));
    }
}

#[test]
fn numbers_have_the_moments_and_densities_of_the_mixture() {
    for (outputs, plain) in [(1, false), (1, true), (2, false)] {
        let (likelihood, n) = (gaussian(outputs), 5);
        let (ensemble, data) = (with(&likelihood, plain), data(&likelihood, n));
        let mixed = ensemble.predictive(&data, &question()).unwrap();
        let own: Vec<Predictive> = ensemble
            .networks()
            .unwrap()
            .members()
            .iter()
            .map(|m| if plain { m.predict_plain(&data) } else { m.predict(&data, None) }.unwrap())
            .collect();
        let [mean, variance, latent] = moments(&mixed);
        for i in 0..n * outputs {
            let of = |what: usize| [0, 1, 2].map(|k| moments(&own[k])[what][i]);
            let average = |v: [f64; 3]| v.iter().sum::<f64>() / 3.0;
            close(mean[i], average(of(0)));
            let spread = average(of(0).map(|m| m * m)) - average(of(0)).powi(2);
            close(variance[i], average(of(1)) + spread);
            close(latent[i], average(of(2)) + spread);
            close(mixed.latent_deviation[i].powi(2), latent[i]);
        }
        for i in 0..n {
            let density = |k: usize| own[k].log_density.as_ref().unwrap()[i].exp();
            close(
                mixed.log_density.as_ref().unwrap()[i],
                ((density(0) + density(1) + density(2)) / 3.0).ln(),
            );
        }
        assert!(!mixed.gaussian && mixed.quantiles(0.9, true).is_none());
        let asked = Question { quantiles: vec![0.1], ..question() };
        assert!(ensemble.check(&asked).unwrap_err().to_string().contains("mixtures"));
    }
}

#[test]
fn draws_come_from_the_members_in_turn() {
    let (likelihood, n) = (gaussian(2), 4);
    for plain in [false, true] {
        let (ensemble, data) = (with(&likelihood, plain), data(&likelihood, n));
        let asked = Question { samples: 5, draws_apart: true, ..question() };
        let draws = ensemble.sample(&data, &asked).unwrap();
        assert_eq!(draws.shape(), [5, n, 2]);
        let draws = draws.to_f64();
        let functions: Vec<Vec<f64>> = ensemble
            .networks()
            .unwrap()
            .members()
            .iter()
            .map(|m| m.predict_plain(&data).unwrap().latent_mean)
            .collect();
        for (k, draw) in draws.chunks_exact(2 * n).enumerate() {
            // Of plain networks there is nothing but their function; error bars move draws away from it.
            assert_eq!(draw == functions[k % 3], plain);
        }
        let covariance = ensemble.covariance(&data, &asked).unwrap().to_f64();
        let joint =
            |k: usize| ensemble.networks().unwrap().members()[k].joint_covariance(&data, 1 << 30).unwrap();
        let joint: Vec<_> = (0..3).map(joint).collect();
        let mean = |i: usize| (0..3).map(|k| functions[k][i]).sum::<f64>() / 3.0;
        for i in 0..2 * n {
            for j in 0..2 * n {
                let means =
                    (0..3).map(|k| functions[k][i] * functions[k][j]).sum::<f64>() / 3.0 - mean(i) * mean(j);
                let own = (0..3).map(|k| joint[k][(i, j)]).sum::<f64>() / 3.0;
                close(covariance[i * 2 * n + j], means + if plain { 0.0 } else { own });
            }
        }
    }
}

#[test]
fn joint_scores_average_products_over_the_members() {
    let (likelihood, n) = (classes(3), 6);
    let (ensemble, data) = (with(&likelihood, true), data(&likelihood, n));
    let asked = Question { joint_points: vec![1, n], samples: 3, ..question() };
    let rows = ensemble.joint_scores(&data, &asked).unwrap();
    let mixed = ensemble.predictive(&data, &question()).unwrap().log_density.unwrap();
    close(rows[0].model.mean, mixed.iter().sum::<f64>() / n as f64);
    // Draws of members with error bars are their own functions, as many of each.
    let with_bars = members(&likelihood);
    let rows = with_bars.joint_scores(&data, &asked).unwrap();
    assert!(rows.iter().all(|row| row.model.mean.is_finite() && row.model.mean != row.plain.mean));
}

#[test]
fn a_file_holds_all_members() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.posterior");
    let likelihood = classes(3);
    for plain in [false, true] {
        let (ensemble, data) = (with(&likelihood, plain), data(&likelihood, 6));
        ensemble.save(&path).unwrap();
        let back = Saved::load(&path).unwrap().into_only().unwrap();
        assert_eq!(
            (back.networks().unwrap().names(), back.networks().unwrap().is_plain()),
            (ensemble.networks().unwrap().names(), plain)
        );
        let question = question();
        let predictive = |model: &Model| model.predictive(&data, &question).unwrap();
        assert_eq!(predictive(&back), predictive(&ensemble));
        let facts = back.described();
        assert!(facts.contains("ensemble of 3") && facts.contains("a, b, c"), "{facts}");
        assert_eq!(back.report().unwrap()["members"].as_array().unwrap().len(), 3);
        assert!(back.trained_on(&data).unwrap().is_none());
        let alone = back.networks().unwrap().members()[0].plan(&data, &question, 0).unwrap();
        let plan = back.plan(&data, &question, 0).unwrap();
        assert!(plan.flops > 2.9 * alone.flops && plan.peak_bytes > alone.peak_bytes);
        let small = Question { memory: alone.peak_bytes, ..question.clone() };
        assert!(matches!(back.plan(&data, &small, 0), Err(ModelError::PredictionMemory { .. })));
    }
    // A file that lacks a member's arrays says so.
    let mut container = posterior_store::Container::<serde_json::Value>::read(&path).unwrap();
    container.tensors.take_under("model.0.model.2.");
    container.write(&path).unwrap();
    let error = Saved::load(&path).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}

#[test]
fn members_that_differ_are_refused() {
    let refused = |members: Vec<Model>, part: &str| {
        let names = (0..members.len()).map(|k| format!("n{k}")).collect();
        let error = Model::ensemble(members, names, false).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(Vec::new(), "at least two networks, there is none");
    refused(vec![member(2, &gaussian(1), 1)], "there is one");
    refused(
        vec![member(2, &gaussian(1), 1), member(3, &gaussian(1), 2)],
        "`n1` and `n0` differ in their shape of an input ([3] and [2])",
    );
    refused(vec![member(2, &gaussian(1), 1), member(2, &gaussian(2), 2)], "outputs");
    refused(vec![member(2, &gaussian(3), 1), member(2, &classes(3), 2)], "likelihood");
}

/// Networks in a folder, with examples beside it.
fn folder(root: &Path, seeds: &[u64]) -> LaplaceRequest {
    let networks = root.join("networks");
    std::fs::create_dir(&networks).unwrap();
    for seed in seeds {
        let metadata = BTreeMap::from([(ARCHITECTURE_KEY.to_string(), text(2, 3))]);
        let network = network(2, 3, *seed).cast::<f32>().unwrap();
        save_safetensors(&networks.join(format!("net-{seed}.safetensors")), &network, &metadata).unwrap();
    }
    std::fs::write(networks.join("readme.txt"), "no network").unwrap();
    let x = NumericArray::new(vec![40, 2], ArrayValues::F64(normals(80, 3))).unwrap();
    let y = NumericArray::new(vec![40], ArrayValues::I64((0..40).map(|i| i % 3).collect())).unwrap();
    write_npy(&root.join("x.npy"), &x).unwrap();
    write_npy(&root.join("y.npy"), &y).unwrap();
    let files = ([root.join("x.npy")], [root.join("y.npy")]);
    LaplaceRequest::new(networks, files.0, files.1, LikelihoodKind::Categorical)
}

#[test]
fn a_folder_is_one_model_and_goes_on_after_an_interruption() {
    let root = tempfile::tempdir().unwrap();
    let mut request = folder(root.path(), &[3, 1, 2]);
    assert!(is_asked(&request));
    let fit = |request: &LaplaceRequest, stop: usize| {
        let (mut calls, mut lines) = (0, Vec::new());
        let fitted = fit_folder(request, true, &mut |line| lines.push(line.to_string()), &mut |_, _, _| {
            calls += 1;
            if stop > 0 && calls >= stop { Signal::Stop } else { Signal::Continue }
        });
        (fitted, lines, calls)
    };
    let (whole, lines, calls) = fit(&request, 0);
    let whole = whole.unwrap();
    assert_eq!(
        whole.networks().unwrap().names(),
        ["net-1.safetensors", "net-2.safetensors", "net-3.safetensors"]
    );
    assert!(lines.iter().any(|l| l.contains("network 2 of 3: net-2.safetensors")), "{lines:?}");
    let files = Files {
        data: &request.data.data.clone(),
        inputs: &[],
        labels: &request.data.labels.clone(),
        truth: true,
        reading: posterior_data::ReadOptions::limited(1 << 30),
    };
    let data = Model::read(&whole, &files).unwrap();
    let expected = whole.predictive(&data, &question()).unwrap();
    // All three have learned from these rows.
    assert_eq!(whole.trained_on(&data).unwrap().unwrap().seen.len(), 40);

    request.checkpoint = Some(root.path().join("sums"));
    request.resume = true;
    let (stopped, ..) = fit(&request, calls / 2);
    assert!(stopped.err().unwrap().is_interruption());
    assert!(root.path().join("sums.net-1.safetensors.finished").exists());
    let mut other = request.clone();
    other.seed = 99;
    let error = fit(&other, 0).0.err().unwrap().to_string();
    assert!(error.contains("other settings"), "{error}");
    // Scores of other rows are another fit's; how much memory may be used is no part of it.
    let mut other = request.clone();
    other.validation.data = vec![root.path().join("y.npy")];
    let error = fit(&other, 0).0.err().unwrap().to_string();
    assert!(error.contains("other validation data"), "{error}");
    let mut other = request.clone();
    other.curvature = crate::laplace::CurvatureChoice::Auto;
    assert!(fit(&other, 0).0.err().unwrap().to_string().contains("other settings"));
    let begun = |name: &str| has_checkpoint(&root.path().join("networks"), &root.path().join(name));
    assert!(begun("sums") && !begun("others"));
    request.limits.memory /= 2;
    let (again, lines, _) = fit(&request, 0);
    assert!(lines.iter().any(|l| l.contains("net-1.safetensors was fitted before")), "{lines:?}");
    assert_eq!(again.unwrap().predictive(&data, &question()).unwrap(), expected);
    let left = std::fs::read_dir(root.path()).unwrap().flatten().map(|e| e.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("sums")), "no file is left over");

    let few = tempfile::tempdir().unwrap();
    let request = folder(few.path(), &[1]);
    let error = fit(&request, 0).0.err().unwrap().to_string();
    assert!(error.contains("at least two network files"), "{error}");
    let mut request = request;
    request.network = crate::laplace::NetworkSource::file(few.path().join("nowhere"));
    assert!(fit(&request, 0).0.err().unwrap().to_string().contains("cannot be read"));
}

#[test]
fn members_with_scales_of_their_own_are_mixed_in_the_targets_units() {
    let root = tempfile::tempdir().unwrap();
    let metadata = BTreeMap::from([(ARCHITECTURE_KEY.to_string(), text(2, 1))]);
    let own = |k: u64| {
        let net = root.path().join(format!("{k}.safetensors"));
        save_safetensors(&net, &network(2, 1, k), &metadata).unwrap();
        // Rows of another place and scale.
        let (x, z) = (normals(80, k), normals(40, 50 + k));
        let line = |i: usize| {
            format!("{},{},{}\n", x[2 * i], x[2 * i + 1], 100.0 * k as f64 + 3.0 * k as f64 * z[i])
        };
        let table = root.path().join(format!("{k}.csv"));
        std::fs::write(&table, format!("a,b,y\n{}", (0..40).map(line).collect::<String>())).unwrap();
        let mut request = LaplaceRequest::new(net, [table], Vec::<String>::new(), LikelihoodKind::Gaussian);
        request.data.columns.target = "y".into();
        request.data.preprocess = Preprocess::Standardise;
        Model::fit_laplace(&request, &mut |_| {}, &mut |_, _, _| Signal::Continue).unwrap()
    };
    let ensemble = Model::ensemble(vec![own(1), own(2)], vec!["one".into(), "two".into()], false).unwrap();
    let path = [root.path().join("2.csv")];
    let data = Model::read(
        &ensemble,
        &Files {
            data: &path,
            inputs: &[],
            labels: &[],
            truth: true,
            reading: posterior_data::ReadOptions::limited(1 << 30),
        },
    )
    .unwrap();
    let mixed = ensemble.predictive(&data, &question()).unwrap();
    let own: Vec<Predictive> =
        ensemble.networks().unwrap().members().iter().map(|m| m.predict(&data, None).unwrap()).collect();
    let (centre, scale) = ensemble.networks().unwrap().members()[0].header().data.target_scale();
    for i in 0..40 {
        let mean = 0.5 * (moments(&own[0])[0][i] + moments(&own[1])[0][i]);
        close(moments(&mixed)[0][i], mean);
        assert!(
            (centre + scale * mixed.latent_mean[i] - mean).abs() < 1e-9,
            "latent values are in the first member's units"
        );
        let deviation = scale * mixed.latent_deviation[i];
        assert!((deviation.powi(2) / moments(&mixed)[2][i] - 1.0).abs() < 1e-9);
    }
    // The rows of the second member's training are seen by it.
    assert_eq!(ensemble.trained_on(&data).unwrap().unwrap().seen.len(), 40);
}

/// A folder of regression networks with a table for the fit, one to recalibrate by and one to score; targets scatter much more than the noise that is given.
fn numbers(root: &Path) -> (LaplaceRequest, std::path::PathBuf) {
    let networks = root.join("networks");
    std::fs::create_dir(&networks).unwrap();
    let metadata = BTreeMap::from([(ARCHITECTURE_KEY.to_string(), text(2, 1))]);
    for seed in [1, 2] {
        save_safetensors(&networks.join(format!("{seed}.safetensors")), &network(2, 1, seed), &metadata)
            .unwrap();
    }
    let table = |name: &str, rows: usize, seed: u64| {
        let (x, z) = (normals(2 * rows, seed), normals(rows, seed + 50));
        let line = |i: usize| format!("{},{},{}\n", x[2 * i], x[2 * i + 1], 3.0 * z[i]);
        let path = root.join(name);
        std::fs::write(&path, format!("a,b,y\n{}", (0..rows).map(line).collect::<String>())).unwrap();
        path
    };
    let train = table("train.csv", 60, 5);
    let mut request = LaplaceRequest::new(networks, [train], Vec::<String>::new(), LikelihoodKind::Gaussian);
    request.data.columns.target = "y".into();
    request.options.noise = posterior_laplace::NoiseModel::Fixed;
    request.initial_noise = Some(0.25);
    request.validation.data = vec![table("validation.csv", 400, 7)];
    (request, table("new.csv", 2000, 9))
}

#[test]
fn rows_that_no_member_has_seen_recalibrate_the_mixture() {
    let root = tempfile::tempdir().unwrap();
    let (mut request, new) = numbers(root.path());
    let fit =
        |request: &LaplaceRequest| fit_folder(request, false, &mut |_| {}, &mut |_, _, _| Signal::Continue);
    let own = fit(&request).unwrap();
    let Some(crate::calibration::NetworkRecalibration::Numbers(factors)) =
        own.networks().unwrap().recalibration()
    else {
        panic!()
    };
    let factor = factors[0].as_ref().unwrap().factor;
    assert!(factor > 2.0 && factors[0].as_ref().unwrap().guarantee == crate::Guarantee::Holds, "{factors:?}");
    let files = Files {
        data: &[new],
        inputs: &[],
        labels: &[],
        truth: true,
        reading: posterior_data::ReadOptions::limited(1 << 30),
    };
    let data = Model::read(&own, &files).unwrap();
    let asked = Question { quantiles: vec![0.025, 0.975], ..question() };
    own.check(&asked).unwrap();
    let found = own.predictive(&data, &asked).unwrap();
    let Some(Truth::Values { values, .. }) = &data.truth else { panic!() };
    let [low, high] = [0.025, 0.975].map(|level| found.quantiles(level, true).unwrap());
    let inside = values.iter().zip(low.iter().zip(&high)).filter(|(y, (l, h))| y >= l && y <= h).count();
    // Beta(380, 21) of the rows that told it, and as many as are scored.
    assert!((inside as f64 / 2000.0 - 0.95).abs() < 0.04, "{inside}");
    request.validation.calibrate = crate::options::CalibrateName::None;
    let plain = fit(&request).unwrap();
    assert!(plain.networks().unwrap().recalibration().is_none() && plain.check(&asked).is_err());
    let before = plain.predictive(&data, &question()).unwrap();
    for i in 0..2000 {
        close(moments(&found)[0][i], moments(&before)[0][i]);
        close(moments(&found)[1][i], factor * factor * moments(&before)[1][i]);
    }
    // The density of the mixture as far apart as its deviations: f times as wide about its mean, member by member.
    let members: Vec<Predictive> =
        plain.networks().unwrap().members().iter().map(|m| m.predict(&data, None).unwrap()).collect();
    for i in 0..20 {
        let y = moments(&before)[0][i] + (values[i] - moments(&before)[0][i]) / factor;
        let density = |m: &Predictive| {
            let [mean, variance, _] = moments(m);
            (-0.5 * (y - mean[i]).powi(2) / variance[i]).exp() / (std::f64::consts::TAU * variance[i]).sqrt()
        };
        let expected = (members.iter().map(density).sum::<f64>() / 2.0 / factor).ln();
        let own = found.log_density.as_ref().unwrap()[i];
        assert!((own - expected).abs() < 1e-9, "{i}: {own} {expected}");
    }
    // The file has it.
    let path = root.path().join("two.posterior");
    own.save(&path).unwrap();
    let back = Saved::load(&path).unwrap().into_only().unwrap();
    assert_eq!(back.predictive(&data, &asked).unwrap(), found);
    assert!(back.notes().iter().any(|n| n.text().contains("intervals are recalibrated")));
    // Rows that nobody gave cannot tell.
    request.validation.calibrate = crate::options::CalibrateName::Conformal;
    request.validation.data.clear();
    assert!(fit(&request).err().unwrap().to_string().contains("give --validation-data"));
}

#[test]
fn classes_of_a_folder_have_sets() {
    let root = tempfile::tempdir().unwrap();
    let mut request = folder(root.path(), &[3, 1]);
    let x = NumericArray::new(vec![300, 2], ArrayValues::F64(normals(600, 13))).unwrap();
    let labels = (0..300).map(|i| (i * 7 % 11 % 3) as i64).collect();
    write_npy(&root.path().join("vx.npy"), &x).unwrap();
    write_npy(&root.path().join("vy.npy"), &NumericArray::new(vec![300], ArrayValues::I64(labels)).unwrap())
        .unwrap();
    request.validation.data = vec![root.path().join("vx.npy")];
    request.validation.labels = vec![root.path().join("vy.npy")];
    request.validation.calibrate = crate::options::CalibrateName::Conformal;
    let own = fit_folder(&request, true, &mut |_| {}, &mut |_, _, _| Signal::Continue).unwrap();
    let likelihood = classes(3);
    let asked = Question { sets: vec![0.9], ..question() };
    own.check(&asked).unwrap();
    let found = own.predictive(&data(&likelihood, 50), &asked).unwrap();
    assert_eq!(found.sets.len(), 1);
    assert!(own.described().contains("sets of classes"), "{}", own.described());
}
