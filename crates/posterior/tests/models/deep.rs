//! Learned features: training, files, interruptions, refusals.

use crate::options::set;
use posterior::data::{Selection, Split, Table, synthetic};
use posterior::linalg::random::Streams;
use posterior::networks::{Architecture, Network, safetensors};
use posterior::optim::Signal;
use posterior::options::MethodName;
use posterior::{FitRequest, ProcessModel};
use serde_json::{Value, json};
use std::path::Path;

fn table(n: usize, seed: u64) -> Table {
    synthetic::friedman(n, Streams::new(seed))
}

fn request(method: MethodName, change: Value) -> FitRequest {
    let mut request = FitRequest {
        selection: Selection { target: "y".into(), ..Default::default() },
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

fn fit(request: &FitRequest) -> Result<ProcessModel, String> {
    let table = table(400, 1);
    let rows = Split::all(table.rows()).train;
    ProcessModel::fit(&table, &rows, request, &mut |_, _| Signal::Continue).map_err(|e| e.to_string())
}

fn saved(model: &ProcessModel, path: &Path) -> ProcessModel {
    model.save(path).unwrap();
    ProcessModel::load(path).unwrap()
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
        let header = model.header();
        let deep = header.fit.scalable.as_ref().unwrap().deep.as_ref().unwrap();
        assert_eq!((deep.validation_rows, deep.rank), (36, 16), "{method}");
        assert_eq!(deep.tried.len(), if chooses { 5 } else { 1 }, "{method} {change}");
        let best = |t: &posterior::TriedSetting| t.nll.min(t.refitted_nll.unwrap_or(f64::INFINITY));
        let chosen = deep.tried.iter().find(|t| t.name == deep.chosen).unwrap();
        assert!(deep.tried.iter().all(|t| best(t) >= best(chosen)));
        assert!(deep.diagnostics.effective_rank >= 1.0 && deep.diagnostics.effective_rank <= 16.0);
        // Better than the mean of the target, on rows that nobody has seen.
        let check = header.fit.check.as_ref().unwrap();
        assert!(check.scores.rmse < 0.75, "{method} {change}: {:?}", check.scores);
        // Beside it, what a plain process says of the same rows.
        assert_eq!(check.tried.len(), 1);
        assert_eq!((check.tried[0].method.as_str(), check.tried[0].outcome.as_str()), ("exact", "360 rows"));
        let worse = check.scores.nll > check.tried[0].scores.unwrap().nll;
        let told = check.warnings.iter().any(|w| w.contains("an exact process of 360 rows"));
        assert!(worse || !told, "{:?}", check.warnings);
        let predictions = model.predict(&fresh, None).unwrap();
        assert!(predictions.deviation.iter().all(|d| *d > 0.0 && d.is_finite()));
        let again = saved(&model, &folder.path().join("model.posterior"));
        assert_eq!(again.predict(&fresh, None).unwrap(), predictions, "{method} {change}");
        assert_eq!(again.header(), header);
    }
}

#[test]
fn an_interrupted_training_goes_on_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = table(50, 2);
    for (method, change) in
        [(MethodName::Svdbk, json!({})), (MethodName::Dkl, json!({"objective": "evidence"}))]
    {
        let path = folder.path().join(format!("{method}.checkpoint"));
        let mut request = request(method, change);
        let whole = fit(&request).unwrap().predict(&fresh, None).unwrap();
        set(&mut request, json!({"checkpoint": path, "checkpoint-every": 1e-9}));
        let (table, mut seen) = (table(400, 1), 0);
        let rows = Split::all(table.rows()).train;
        // In the middle of the second way, where there are several.
        let stop = if method == MethodName::Dkl { 50 } else { 170 };
        let stopped = ProcessModel::fit(&table, &rows, &request, &mut |_, _| {
            seen += 1;
            if seen == stop { Signal::Stop } else { Signal::Continue }
        });
        assert!(stopped.unwrap().was_interrupted());
        assert!(path.exists());
        let resumed = fit(&request).unwrap();
        assert!(resumed.header().fit.scalable.as_ref().unwrap().resumed_from > 0);
        assert_eq!(resumed.predict(&fresh, None).unwrap().mean, whole.mean, "{method}");
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
    let deep = frozen.header().fit.scalable.as_ref().unwrap().deep.clone().unwrap();
    assert_eq!((deep.rank, deep.chosen.as_str()), (6, "the evidence of all rows"));
    assert!(deep.origin.contains("net.safetensors"), "{}", deep.origin);
    // The network is as it was: its last layer is regressed on, nothing else is learned.
    let begun = with(json!({"basis": path})).unwrap();
    assert!(
        begun.header().fit.check.as_ref().unwrap().scores.nll
            < frozen.header().fit.check.as_ref().unwrap().scores.nll
    );
    assert_eq!(with(json!({"basis": text})).unwrap().header().method, "dbk");
    for (change, message) in [
        (json!({"basis": path, "rank": 7}), "has 6 outputs, and --rank asks for 7"),
        (json!({"basis": text, "freeze-basis": true}), "has no weights that --freeze-basis could keep"),
        (json!({"freeze-basis": true}), "name it with --basis"),
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
    assert_ne!(kept.predict(&fresh, None).unwrap().mean, learned.predict(&fresh, None).unwrap().mean);
    assert!(
        behind(json!({"embedding": 3})).unwrap_err().contains("has 6 outputs, and --embedding asks for 3")
    );
    let narrow = folder.path().join("narrow.toml");
    std::fs::write(&narrow, "kind = 'perceptron'\ninputs = 3\nhidden = [4]\noutputs = 2").unwrap();
    let error = with(json!({"basis": narrow})).unwrap_err();
    assert!(error.contains("takes 3 inputs, the table has 10 columns"), "{error}");
    for (method, change, message) in [
        (MethodName::Dbk, json!({"objective": "evidence", "trace-weight": 0.5}), "--trace-weight"),
        (MethodName::Dbk, json!({"objective": "evidence", "divergence-weight": 0.5}), "--divergence-weight"),
        (MethodName::Svdkl, json!({"objective": "evidence", "correction": "noise"}), "--correction noise"),
        (MethodName::Dkl, json!({"correction": "noise"}), "--correction noise"),
    ] {
        let error = fit(&request(method, change)).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let mut strange = request(MethodName::Dbk, json!({}));
    strange.kernel = "se".parse().unwrap();
    assert!(fit(&strange).unwrap_err().contains("--kernel says nothing to dbk"));
    let points = fit(&request(MethodName::Dkl, json!({"rank": 5000, "objective": "evidence"}))).unwrap_err();
    assert!(points.contains("5000 inducing points"), "{points}");
    let mut exact = request(MethodName::Exact, json!({}));
    exact.method = MethodName::Exact.into();
    set(&mut exact, json!({"objective": "predictive"}));
    assert!(fit(&exact).unwrap_err().contains("belong to learned features"));
    let mut given = request(MethodName::Dbk, json!({}));
    given.hyperparameters = Some(Vec::new());
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
    let model = ProcessModel::fit(&few, &rows, &request, &mut |_, _| Signal::Continue).unwrap();
    assert!(model.predict(&few, None).unwrap().deviation.iter().all(|d| d.is_finite()));
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
    let deep = model.header().fit.scalable.as_ref().unwrap().deep.clone().unwrap();
    assert!(deep.diagnostics.effective_rank < 1.01, "{:?}", deep.diagnostics);
}
