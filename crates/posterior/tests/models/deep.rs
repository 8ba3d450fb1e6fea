//! Learned features: training, files, interruptions, refusals.

use crate::options::set;
use posterior::data::{Selection, Split, Table, synthetic};
use posterior::gp::exact::EmbeddedPosterior;
use posterior::linalg::random::Streams;
use posterior::networks::{Architecture, Network, safetensors};
use posterior::optim::Signal;
use posterior::options::{MethodName, Start};
use posterior::{FitRequest, Model};
use serde_json::{Value, json};
use std::path::Path;

fn table(n: usize, seed: u64) -> Table {
    synthetic::friedman(n, Streams::new(seed))
}

fn request(method: MethodName, change: Value) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: method.into(),
        ..Default::default()
    };
    set(
        &mut request,
        json!({"iterations": 120, "rank": 16, "batch": 64, "step-size": 0.005, "held-back": 40}),
    );
    set(&mut request, change);
    request
}

fn fit(request: &FitRequest) -> Result<Model, String> {
    let table = table(400, 1);
    let rows = Split::all(table.rows()).train;
    Model::fit(&table, &rows, request, &mut |_, _| Signal::Continue).map_err(|e| e.to_string())
}

fn saved(model: &Model, path: &Path) -> Model {
    model.save(path).unwrap();
    Model::load(path).unwrap()
}

fn write(path: &Path, network: &Network<f32>, architecture: &Architecture) {
    let metadata = [("posterior.architecture".to_string(), architecture.to_toml().unwrap())].into();
    safetensors::save_safetensors(path, network, &metadata).unwrap();
}

#[test]
fn every_method_learns_chooses_on_rows_set_aside_and_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = table(200, 2);
    for (method, change) in [
        (MethodName::Dbk, json!({})),
        (MethodName::Dbk, json!({"objective": "evidence", "correction": "full", "trace-weight": 0.1})),
        (MethodName::Svdbk, json!({"objective": "predictive", "divergence-weight": 1.0})),
        (MethodName::Svdbk, json!({"objective": "point"})),
        (MethodName::Dkl, json!({"objective": "evidence"})),
        (MethodName::Dkl, json!({"objective": "evidence", "correction": "noise"})),
        (MethodName::Svdkl, json!({"objective": "evidence"})),
    ] {
        let chooses = change == json!({});
        let model = fit(&request(method, change.clone())).unwrap();
        let own = model.process().unwrap().record().fit.gaussian().unwrap();
        let deep = own.scalable.as_ref().unwrap().deep.as_ref().unwrap();
        assert_eq!((deep.validation_rows, deep.rank), (36, 16), "{method}");
        // Where noise begins is chosen in predictive training, too.
        // All rows are looked at after batches have led there.
        let on_all = method != MethodName::Svdbk && method != MethodName::Svdkl;
        let begun = on_all && change["objective"] == "evidence" && change["correction"] != "noise";
        let ways = if chooses { 7 } else { 1 + usize::from(begun || change["objective"] == "predictive") };
        assert_eq!(deep.tried.len(), ways, "{method} {change}");
        let best = |t: &posterior::models::TriedSetting| t.nll.min(t.refitted_nll.unwrap_or(f64::INFINITY));
        let chosen = deep.tried.iter().find(|t| t.name == deep.chosen).unwrap();
        assert!(deep.tried.iter().all(|t| best(t) >= best(chosen)));
        assert!(deep.diagnostics.effective_rank >= 1.0 && deep.diagnostics.effective_rank <= 16.0);
        // Better than the mean of the target, on rows that nobody has seen.
        let check = own.check.as_ref().unwrap();
        assert!(check.scores.rmse < 0.75, "{method} {change}: {:?}", check.scores);
        // Beside it, what a plain process says of the same rows.
        assert_eq!(check.tried.len(), 1);
        assert_eq!((check.tried[0].method.as_str(), check.tried[0].outcome.as_str()), ("exact", "360 rows"));
        let worse = check.scores.nll > check.tried[0].scores.unwrap().nll;
        let told = check.warnings.iter().any(|w| w.contains("an exact process of 360 rows"));
        assert!(worse || !told, "{:?}", check.warnings);
        let predictions = model.process().unwrap().predict(&fresh, None).unwrap();
        assert!(predictions.deviation.iter().all(|d| *d > 0.0 && d.is_finite()));
        let again = saved(&model, &folder.path().join("model.posterior"));
        assert_eq!(again.process().unwrap().predict(&fresh, None).unwrap(), predictions, "{method} {change}");
        assert_eq!(again.process().unwrap().header(), model.process().unwrap().header());
    }
}

#[test]
fn an_interrupted_training_goes_on_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = table(50, 2);
    for (method, change, outputs) in
        [(MethodName::Svdbk, json!({}), 16), (MethodName::Dkl, json!({"objective": "evidence"}), 2)]
    {
        let path = folder.path().join(format!("{method}.checkpoint"));
        let mut request = request(method, change);
        // How well it learns does not matter.
        let text = format!("kind = 'perceptron'\ninputs = 10\nhidden = [12]\noutputs = {outputs}");
        let basis = folder.path().join(format!("{method}.toml"));
        std::fs::write(&basis, text).unwrap();
        set(&mut request, json!({"basis": basis, "held-back": 0}));
        let whole = fit(&request).unwrap().process().unwrap().predict(&fresh, None).unwrap();
        set(&mut request, json!({"checkpoint": path, "checkpoint-every": 1e-9}));
        let (table, mut seen) = (table(400, 1), 0);
        let rows = Split::all(table.rows()).train;
        // In the middle of the second way, where there are several.
        let stop = if method == MethodName::Dkl { 50 } else { 170 };
        let stopped = Model::fit(&table, &rows, &request, &mut |_, _| {
            seen += 1;
            if seen == stop { Signal::Stop } else { Signal::Continue }
        });
        assert!(stopped.unwrap().was_interrupted());
        assert!(path.exists());
        // How often a checkpoint is written is no part of what it belongs to.
        set(&mut request, json!({"checkpoint-every": 60}));
        let resumed = fit(&request).unwrap();
        assert!(
            resumed
                .process()
                .unwrap()
                .record()
                .fit
                .gaussian()
                .unwrap()
                .scalable
                .as_ref()
                .unwrap()
                .resumed_from
                > 0
        );
        assert_eq!(resumed.process().unwrap().predict(&fresh, None).unwrap().mean, whole.mean, "{method}");
        assert!(!path.exists());
    }
}

#[test]
fn trained_networks_are_begun_from_or_kept_and_what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let architecture =
        Architecture::from_toml("kind = 'perceptron'\ninputs = 10\nhidden = [12]\noutputs = 6").unwrap();
    let network = Network::<f32>::initialised(architecture.graph().unwrap(), Streams::new(5)).unwrap();
    let path = folder.path().join("net.safetensors");
    write(&path, &network, &architecture);
    let text = folder.path().join("arch.toml");
    std::fs::write(&text, architecture.to_toml().unwrap()).unwrap();
    let with = |change: Value| {
        let mut all = json!({"rank": null, "objective": "evidence"});
        all.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        fit(&request(MethodName::Dbk, all))
    };
    let frozen = with(json!({"basis": path, "freeze-basis": true})).unwrap();
    let deep = frozen
        .process()
        .unwrap()
        .record()
        .fit
        .gaussian()
        .unwrap()
        .scalable
        .as_ref()
        .unwrap()
        .deep
        .clone()
        .unwrap();
    assert_eq!((deep.rank, deep.chosen.as_str()), (6, "the evidence of all rows"));
    assert!(deep.origin.contains("net.safetensors"), "{}", deep.origin);
    // The network is as it was: its last layer is regressed on, nothing else is learned.
    let begun = with(json!({"basis": path})).unwrap();
    assert!(
        begun.process().unwrap().record().fit.gaussian().unwrap().check.as_ref().unwrap().scores.nll
            < frozen.process().unwrap().record().fit.gaussian().unwrap().check.as_ref().unwrap().scores.nll
    );
    assert_eq!(with(json!({"basis": text})).unwrap().process().unwrap().record().method, "dbk");
    for (change, message) in [
        (json!({"basis": path, "rank": 7}), "has 6 outputs, and --set rank asks for 7"),
        (json!({"basis": text, "freeze-basis": true}), "has no weights that --set freeze-basis could keep"),
        (json!({"freeze-basis": true}), "name it with --set basis"),
        (json!({"rank": 0}), "the rank"),
        (json!({"objective": "leave-one-out"}), "belongs to exact processes"),
        (json!({"basis": folder.path().join("absent.toml")}), "absent.toml"),
    ] {
        let error = with(change).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    // Behind inducing points the outputs of a file are the embedding, whether it is kept or learned.
    let behind = |change: Value| {
        let mut all = json!({"rank": 8, "objective": "evidence", "basis": path});
        all.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        fit(&request(MethodName::Dkl, all))
    };
    let kept = behind(json!({"freeze-basis": true})).unwrap();
    let learned = behind(json!({})).unwrap();
    let fresh = table(20, 3);
    assert_ne!(
        kept.process().unwrap().predict(&fresh, None).unwrap().mean,
        learned.process().unwrap().predict(&fresh, None).unwrap().mean
    );
    assert!(
        behind(json!({"embedding": 3}))
            .unwrap_err()
            .contains("has 6 outputs, and --set embedding asks for 3")
    );
    let narrow = folder.path().join("narrow.toml");
    std::fs::write(&narrow, "kind = 'perceptron'\ninputs = 3\nhidden = [4]\noutputs = 2").unwrap();
    let error = with(json!({"basis": narrow})).unwrap_err();
    assert!(error.contains("takes 3 inputs, the table has 10 columns"), "{error}");
    for (method, change, message) in [
        (MethodName::Dbk, json!({"objective": "evidence", "trace-weight": 0.5}), "--set trace-weight"),
        (
            MethodName::Dbk,
            json!({"objective": "evidence", "divergence-weight": 0.5}),
            "--set divergence-weight",
        ),
        (
            MethodName::Svdkl,
            json!({"objective": "evidence", "correction": "noise"}),
            "--set correction=noise",
        ),
        (MethodName::Dkl, json!({"correction": "noise"}), "--set correction=noise"),
    ] {
        let error = fit(&request(method, change)).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let mut strange = request(MethodName::Dbk, json!({}));
    strange.prior.kernel = "se".parse().unwrap();
    assert!(fit(&strange).unwrap_err().contains("--kernel says nothing to dbk"));
    let points = fit(&request(MethodName::Dkl, json!({"rank": 5000, "objective": "evidence"}))).unwrap_err();
    assert!(points.contains("5000 inducing points"), "{points}");
    let mut exact = request(MethodName::Exact, json!({}));
    exact.method = MethodName::Exact.into();
    set(&mut exact, json!({"objective": "predictive"}));
    assert!(fit(&exact).unwrap_err().contains("belong to deep kernels"));
    let mut given = request(MethodName::Dbk, json!({}));
    given.start = Start::given(Vec::new());
    assert!(fit(&given).unwrap_err().contains("learns its features"));
}

#[test]
fn more_basis_functions_than_rows_and_features_that_are_all_equal_are_fitted_and_said() {
    let few = table(24, 1);
    let rows = Split::all(few.rows()).train;
    let request = request(
        MethodName::Dbk,
        json!({"rank": 40, "objective": "evidence", "held-back": 0, "iterations": 30}),
    );
    let model = Model::fit(&few, &rows, &request, &mut |_, _| Signal::Continue).unwrap();
    assert!(model.process().unwrap().predict(&few, None).unwrap().deviation.iter().all(|d| d.is_finite()));
    assert!(
        model
            .described()
            .contains("40 outputs of a residual perceptron of 3 blocks of width 128; more than the 22 rows"),
        "{}",
        model.described()
    );
    assert!(
        !fit(&self::request(MethodName::Dbk, json!({"objective": "point"})))
            .unwrap()
            .described()
            .contains("more than the")
    );
    // One direction: a network whose outputs are copies of one another.
    let folder = tempfile::tempdir().unwrap();
    let architecture =
        Architecture::from_toml("kind = 'perceptron'\ninputs = 10\nhidden = []\noutputs = 4").unwrap();
    let mut network = Network::<f32>::initialised(architecture.graph().unwrap(), Streams::new(5)).unwrap();
    for array in network.parameters_mut() {
        let row = array.row_len();
        let first = array.values()[..row].to_vec();
        array.values_mut().chunks_mut(row).for_each(|r| r.copy_from_slice(&first));
    }
    let path = folder.path().join("equal.safetensors");
    write(&path, &network, &architecture);
    let change = json!({"rank": null, "objective": "evidence", "basis": path, "freeze-basis": true});
    let model = fit(&self::request(MethodName::Dbk, change)).unwrap();
    let deep = model
        .process()
        .unwrap()
        .record()
        .fit
        .gaussian()
        .unwrap()
        .scalable
        .as_ref()
        .unwrap()
        .deep
        .clone()
        .unwrap();
    assert!(deep.diagnostics.effective_rank < 1.01, "{:?}", deep.diagnostics);
    assert!(model.described().contains("effective rank 1.00"), "{}", model.described());
    let change =
        json!({"rank": null, "objective": "evidence", "basis": path, "freeze-basis": true, "held-back": 0});
    let unchecked = fit(&self::request(MethodName::Dbk, change)).unwrap().described();
    assert!(
        unchecked.contains("the 4 features have collapsed to nearly one direction (effective rank 1.00)"),
        "{unchecked}"
    );
}

#[test]
fn noise_begins_above_its_floor_wherever_that_is_and_a_fit_that_ends_there_says_so() {
    let with = |floor: f64, initial: Option<f64>, change: Value| {
        let mut all = json!({"held-back": 0, "iterations": 40});
        all.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let mut request = request(MethodName::Dbk, all);
        (request.prior.noise_floor, request.prior.initial_noise) = (floor, initial);
        fit(&request).unwrap()
    };
    let ways = |model: &Model| {
        model
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .scalable
            .clone()
            .unwrap()
            .deep
            .unwrap()
            .tried
            .len()
    };
    // A first noise from below is no way where the floor is no lower; said by a user it is no choice either.
    assert_eq!(ways(&with(1e-4, None, json!({}))), 7);
    assert_eq!(ways(&with(0.05, None, json!({}))), 6);
    assert_eq!(ways(&with(1e-4, Some(0.1), json!({}))), 6);
    // What the fit ends at is told: the table has less noise than this floor.
    let model = with(
        0.6,
        None,
        json!({"objective": "point", "iterations": 3000, "step-size": 0.02, "patience": 9000}),
    );
    let noise = model.process().unwrap().record().hyperparameter("noise_variance").unwrap()[0];
    assert!((0.6..0.606).contains(&noise), "{noise}");
    assert!(model.described().contains("is at its floor"), "{}", model.described());
    assert_eq!(model.process().unwrap().record().noise_floor, Some(0.6));
    assert_eq!(
        with(0.0, None, json!({"objective": "point"})).process().unwrap().record().noise_floor,
        Some(1e-6)
    );
}

/// The exact process behind a network.
fn dense(change: Value) -> FitRequest {
    let mut request =
        request(MethodName::Dkl, json!({"dense": true, "rank": null, "batch": null, "iterations": 60}));
    set(&mut request, change);
    request
}

#[test]
fn the_process_itself_stands_behind_a_network_and_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = table(60, 2);
    let model = fit(&dense(json!({}))).unwrap();
    let own = model.process().unwrap().record().fit.gaussian().unwrap();
    let summary = own.scalable.clone().unwrap();
    let deep = summary.deep.clone().unwrap();
    assert!(deep.dense && !deep.inducing && deep.rank == 2);
    assert_eq!((deep.tried.len(), deep.chosen.as_str()), (1, "the evidence of all rows"));
    // The evidence in the header is that of the rows that were learned from, at what the file holds.
    let behind = model.process().unwrap().predictor().posterior::<EmbeddedPosterior>().unwrap();
    let exact = behind.exact();
    assert_eq!(exact.data().rows(), 324);
    let evidence = posterior::gp::exact::log_evidence(exact.model(), exact.data(), None).unwrap().value;
    assert!((own.log_evidence.unwrap() - evidence).abs() < 1e-9 * evidence.abs());
    // What the rows set aside said of it is what its predictions say of them: the check on other rows is as good.
    let check = own.check.as_ref().unwrap();
    assert!(check.scores.rmse < 0.75, "{:?}", check.scores);
    assert_eq!((check.tried.len(), check.tried[0].outcome.as_str()), (1, "360 rows"));
    assert!(deep.smallest_correlation.unwrap() < 0.99 && deep.diagnostics.effective_rank >= 1.0);
    assert!(
        model.process().unwrap().record().hyperparameters.len() > 1,
        "{:?}",
        model.process().unwrap().record().hyperparameters
    );
    let again = saved(&model, &folder.path().join("dense.posterior"));
    let predictions = model.process().unwrap().predict(&fresh, None).unwrap();
    assert!(predictions.deviation.iter().all(|d| *d > 0.0 && d.is_finite()));
    assert_eq!(again.process().unwrap().predict(&fresh, None).unwrap(), predictions);
    assert_eq!(again.process().unwrap().header(), model.process().unwrap().header());
    // Hyperparameters are those of the kernel behind the network, and of no column.
    let model_report = posterior::Model::model_report(&model).unwrap();
    assert!(model_report.lengthscales.is_empty());
    assert!(model_report.hyperparameters.iter().any(|h| h.unit == "of the network's outputs"));
    // Samples are functions: the same values in whatever company, around the mean.
    let process = posterior::Fitted::load(folder.path().join("dense.posterior")).unwrap();
    let x: Vec<Vec<f64>> =
        (0..4).map(|i| (0..10).map(|j| ((7 * i + 3 * j) % 11) as f64 / 11.0).collect()).collect();
    let functions = process.functions(400, 5).unwrap();
    let (all, one) = (functions.values(&x).unwrap(), functions.values(&x[2..3].to_vec()).unwrap());
    let there = process.predict(&x).unwrap().mean().unwrap().to_vec();
    for i in 0..4 {
        let mean = (0..400).map(|j| all[(i, j)]).sum::<f64>() / 400.0;
        let square = (0..400).map(|j| (all[(i, j)] - mean).powi(2)).sum::<f64>() / 400.0;
        // Five standard errors.
        assert!((mean - there[i]).abs() < 5.0 * (square / 400.0).sqrt(), "{mean} {}", there[i]);
    }
    // The network is in single precision, and adds up in another order where there are other rows.
    let scale = there.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    assert!((0..400).all(|j| (all[(2, j)] - one[(0, j)]).abs() < 1e-5 * scale));
    let draw = |model: &Model| model.process().unwrap().sample(&fresh, &[0, 3, 7], 2000, 4, 1 << 30).unwrap();
    let draws = draw(&model);
    assert_eq!(draw(&again), draws);
    for (place, row) in [0, 3, 7].into_iter().enumerate() {
        let mean = draws.iter().map(|d| d[place]).sum::<f64>() / 2000.0;
        let deviation = predictions.latent_deviation[row];
        // Five standard errors.
        assert!((mean - predictions.mean[row]).abs() < 5.0 * deviation / 2000f64.sqrt());
    }
    // A file whose network is of another width than its rows is none.
    let bytes = std::fs::read(folder.path().join("dense.posterior")).unwrap();
    for cut in [bytes.len() / 3, bytes.len() - 9] {
        assert!(Model::from_bytes(&bytes[..cut]).is_err());
    }
}

#[test]
fn an_interrupted_training_of_the_process_itself_goes_on_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = table(50, 2);
    let path = folder.path().join("dense.checkpoint");
    let mut request = dense(json!({}));
    let whole = fit(&request).unwrap().process().unwrap().predict(&fresh, None).unwrap();
    set(&mut request, json!({"checkpoint": path, "checkpoint-every": 1e-9}));
    let (table, mut seen) = (table(400, 1), 0);
    let rows = Split::all(table.rows()).train;
    let stopped = Model::fit(&table, &rows, &request, &mut |_, _| {
        seen += 1;
        if seen == 33 { Signal::Stop } else { Signal::Continue }
    });
    assert!(stopped.unwrap().was_interrupted() && path.exists());
    let resumed = fit(&request).unwrap();
    assert_eq!(
        resumed.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().resumed_from,
        33
    );
    assert_eq!(resumed.process().unwrap().predict(&fresh, None).unwrap(), whole);
    assert!(!path.exists());
}

/// Steps between plateaus, with little noise, on one column.
fn jumps(n: usize, seed: u64) -> Table {
    use rand_distr::{Distribution, StandardNormal};
    let mut rng = Streams::new(seed).stream("jumps");
    let x: Vec<f64> = (0..n).map(|i| -1.0 + 2.0 * (i as f64 + 0.5) / n as f64).collect();
    let level = |x: f64| [0.0, 2.0, -1.0, 1.0][((x + 1.0) * 2.0) as usize];
    let noisy = |x: &f64| {
        let white: f64 = StandardNormal.sample(&mut rng);
        level(*x) + 0.1 * white
    };
    let y = x.iter().map(noisy).collect();
    let column = posterior::data::Column::numeric;
    Table::new("jumps", vec![column("x", x), column("y", y)])
}

#[test]
fn jumps_are_learned_better_than_by_the_kernel_alone() {
    let (train, test) = (jumps(300, 1), jumps(777, 2));
    let rows = Split::all(train.rows()).train;
    let of = |request: &FitRequest| {
        let model = Model::fit(&train, &rows, request, &mut |_, _| Signal::Continue).unwrap();
        model.process().unwrap().predict_with_truth(&test, None).unwrap().scores(1.0).unwrap().nll
    };
    let deep = of(&dense(json!({"iterations": 600, "held-back": 0})));
    let mut plain = dense(json!({}));
    plain.method = MethodName::Exact.into();
    plain.prior.kernel = "se".parse().unwrap();
    let plain = of(&plain);
    // Noise of deviation 0.1 has an entropy of -0.88 nats.
    assert!(deep < plain - 0.3, "{deep} {plain}");
}

#[test]
fn the_process_itself_keeps_a_frozen_network_and_refuses_what_means_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let architecture =
        Architecture::from_toml("kind = 'perceptron'\ninputs = 10\nhidden = [12]\noutputs = 3").unwrap();
    let network = Network::<f32>::initialised(architecture.graph().unwrap(), Streams::new(5)).unwrap();
    let path = folder.path().join("net.safetensors");
    write(&path, &network, &architecture);
    let learned = fit(&dense(json!({"basis": path}))).unwrap();
    let kept = fit(&dense(json!({"basis": path, "freeze-basis": true}))).unwrap();
    let of = |model: &Model| {
        let behind = model.process().unwrap().predictor().posterior::<EmbeddedPosterior>().unwrap();
        (behind.embedding().unconstrained().len(), behind.exact().data().inputs().to_owned())
    };
    // Frozen, there is nothing in it to learn; the kernel and the noise are.
    let standard = kept.process().unwrap().standard_inputs(&table(400, 1)).unwrap();
    assert_eq!((of(&kept).0, of(&kept).1.ncols()), (0, 3));
    assert!(of(&learned).0 > 0 && of(&learned).1 != of(&kept).1 && standard.ncols() == 10);
    assert_ne!(kept.process().unwrap().record().hyperparameter("noise_variance").unwrap(), [0.3]);
    // From a file it is a network like another.
    let again = saved(&kept, &folder.path().join("kept.posterior"));
    let fresh = table(20, 3);
    assert_eq!(
        again.process().unwrap().predict(&fresh, None).unwrap(),
        kept.process().unwrap().predict(&fresh, None).unwrap()
    );
    // A network that makes the same of all rows: a constant, which is said.
    let mut same = network.clone();
    same.parameters_mut().iter_mut().for_each(|array| array.values_mut().fill(0.0));
    let constant = folder.path().join("constant.safetensors");
    write(&constant, &same, &architecture);
    let model = fit(&dense(json!({"basis": constant, "freeze-basis": true}))).unwrap();
    let deep = model
        .process()
        .unwrap()
        .record()
        .fit
        .gaussian()
        .unwrap()
        .scalable
        .as_ref()
        .unwrap()
        .deep
        .clone()
        .unwrap();
    assert!(deep.smallest_correlation.unwrap() > 0.999);
    let told = posterior::Model::notes(&model);
    assert!(told.iter().any(|note| note.text().contains("is a constant")), "{told:?}");
    for (change, message) in [
        (json!({"rank": 16}), "--set rank is a number of inducing points"),
        (json!({"correction": "full"}), "--set correction is for what inducing points leave out"),
        (json!({"trace-weight": 0.5}), "--set trace-weight"),
        (json!({"divergence-weight": 0.5}), "--set divergence-weight"),
        (json!({"batch": 32}), "--set batch says nothing beside --set dense"),
        (json!({"objective": "point"}), "--set objective takes evidence only"),
        (json!({"objective": "predictive"}), "--set objective takes evidence only"),
        (json!({"basis": path, "embedding": 2}), "has 3 outputs, and --set embedding asks for 2"),
        (json!({"freeze-basis": true}), "name it with --set basis"),
    ] {
        let error = fit(&dense(change.clone())).unwrap_err();
        assert!(error.contains(message), "{change}: {error}");
    }
    let mut batches = dense(json!({}));
    batches.method = MethodName::Svdkl.into();
    set(&mut batches, json!({"dense": true}));
    assert!(fit(&batches).unwrap_err().contains("svdkl steps on batches"));
    let mut little = dense(json!({}));
    little.limits.memory = 1 << 20;
    let error = fit(&little).unwrap_err();
    assert!(error.contains("above the limit of 1.0 MB") && error.contains("--method svdkl"), "{error}");
}
