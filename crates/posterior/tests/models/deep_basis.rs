//! What learned features begin with: networks that were trained elsewhere, their last layers, and none.

use crate::options::set;
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef};
use posterior::data::{Column, Extracted, Selection, Split, Standardisation, Table, synthetic};
use posterior::gp::inducing::collapsed::{CollapsedGp, collapsed_bound};
use posterior::gp::{MeanForm, Observations};
use posterior::likelihoods::Gaussian;
use posterior::linalg::random::Streams;
use posterior::linear::low_rank::{Correction, LowRankData, LowRankOptions, LowRankPosterior, ObservedRows};
use posterior::models::DeepSummary;
use posterior::network::Preparation;
use posterior::networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior::networks::{Activation, Architecture, Array, GraphBuilder, Network, Operation};
use posterior::onnx::definitions::{
    DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TensorTypeProto, TypeProto, ValueInfoProto, element_type,
};
use posterior::optim::{Parameters, Signal};
use posterior::options::MethodName;
use posterior::{FitRequest, Model};
use prost::Message;
use serde_json::{Value, json};
use std::path::Path;

const ROWS: usize = 160;

/// Ten columns, of which five matter.
fn table(seed: u64) -> Table {
    synthetic::friedman(ROWS, Streams::new(seed))
}

fn request(method: MethodName, change: Value) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: method.into(),
        ..Default::default()
    };
    set(
        &mut request,
        json!({"iterations": 60, "batch": 32, "step-size": 0.005, "held-back": 0, "objective": "evidence"}),
    );
    set(&mut request, change);
    request
}

fn fit_to(table: &Table, request: &FitRequest) -> Result<Model, String> {
    let rows = Split::all(table.rows()).train;
    Model::fit(table, &rows, request, &mut |_, _| Signal::Continue).map_err(|e| e.to_string())
}

fn fit(request: &FitRequest) -> Result<Model, String> {
    fit_to(&table(1), request)
}

fn deep(model: &Model) -> &DeepSummary {
    model
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
        .as_ref()
        .unwrap()
}

fn low_rank(model: &Model) -> &LowRankPosterior {
    model.process().unwrap().predictor().low_rank().unwrap()
}

fn noise(model: &Model) -> f64 {
    model.process().unwrap().record().hyperparameter("noise_variance").unwrap()[0]
}

/// Inputs and targets of a table in the units of a model.
fn standardised(model: &Model, table: &Table) -> (Mat<f64>, Vec<f64>) {
    let inputs = model.process().unwrap().inputs();
    let rows = Split::all(table.rows()).train;
    let Extracted { x, y, .. } = inputs.schema.extract(table, &rows, true).unwrap();
    let y = y.unwrap().into_iter().map(|y| inputs.standardisation.target(y)).collect();
    (inputs.standardisation.features(x.as_ref()), y)
}

/// The rows that a model was trained on: all but the tenth that it drew to stop by.
fn trained_on(model: &Model) -> (Mat<f64>, Vec<f64>) {
    let (x, y) = standardised(model, &table(1));
    let mut rng = Streams::new(model.process().unwrap().record().seed).stream("model/set-aside");
    let aside: Vec<usize> = rand::seq::index::sample(&mut rng, ROWS, ROWS / 10).into_iter().collect();
    let rest: Vec<usize> = (0..ROWS).filter(|i| !aside.contains(i)).collect();
    assert_eq!(deep(model).trained_rows, rest.len());
    (Mat::from_fn(rest.len(), x.ncols(), |i, j| x[(rest[i], j)]), rest.iter().map(|&i| y[i]).collect())
}

fn perceptron(outputs: usize) -> (Network<f32>, Architecture) {
    let text = format!(
        "kind = 'perceptron'\ninputs = 10\nhidden = [12, 8]\noutputs = {outputs}\nactivation = 'tanh'"
    );
    let architecture = Architecture::from_toml(&text).unwrap();
    (Network::initialised(architecture.graph().unwrap(), Streams::new(5)).unwrap(), architecture)
}

/// A trained network as a file, with what it says of its columns if it does.
fn write(path: &Path, (network, architecture): &(Network<f32>, Architecture), columns: Option<&Preparation>) {
    let mut metadata = [(ARCHITECTURE_KEY.to_string(), architecture.to_toml().unwrap())].into();
    if let Some(columns) = columns {
        let metadata: &mut std::collections::BTreeMap<String, String> = &mut metadata;
        metadata.insert("posterior.preparation".into(), serde_json::to_string(columns).unwrap());
    }
    save_safetensors(path, network, &metadata).unwrap();
}

/// The columns of a table as a network was trained on them: by other rows, whose units are far from those of this table.
fn other_units(table: &Table) -> Preparation {
    let request = request(MethodName::Dbk, json!({}));
    let schema =
        posterior::data::Schema::learn(table, &request.columns, &Split::all(table.rows()).train).unwrap();
    let count = schema.features.len();
    let standardisation = Standardisation {
        feature_means: (0..count).map(|j| 0.3 + 0.05 * j as f64).collect(),
        feature_scales: (0..count).map(|j| 0.2 + 0.1 * j as f64).collect(),
        feature_maps: Vec::new(),
        target_mean: 10.0,
        target_scale: 4.0,
        transform: None,
    };
    Preparation::Columns { schema: schema.into(), standardisation, classes: None }
}

/// What a network makes of rows, in doubles, one row for each.
fn outputs(network: &Network<f32>, rows: MatRef<'_, f64>) -> Mat<f64> {
    let numbers = (0..rows.nrows()).flat_map(|i| (0..rows.ncols()).map(move |j| rows[(i, j)] as f32));
    let out = network.forward(&Array::new(vec![rows.nrows(), rows.ncols()], numbers.collect())).unwrap();
    let (width, values) = (out.row_len(), out.values());
    Mat::from_fn(rows.nrows(), width, |i, j| f64::from(values[i * width + j]))
}

/// Bayesian linear regression with weights N(0, 1): means and variances of the function.
fn regression(phi: &Mat<f64>, y: &[f64], at: &Mat<f64>, noise: f64) -> (Vec<f64>, Vec<f64>) {
    let m = phi.ncols();
    let mut a = phi.transpose() * phi;
    (0..m).for_each(|j| a[(j, j)] += noise);
    let y = Mat::from_fn(y.len(), 1, |i, _| y[i]);
    let lu = a.partial_piv_lu();
    let mean = at * lu.solve(phi.transpose() * y);
    let solved = lu.solve(at.transpose());
    let variance = |i: usize| noise * (0..m).map(|j| at[(i, j)] * solved[(j, i)]).sum::<f64>();
    ((0..at.nrows()).map(|i| mean[(i, 0)]).collect(), (0..at.nrows()).map(variance).collect())
}

/// The largest difference, relative to the largest reference.
fn error(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    found.iter().zip(expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs())) / largest
}

/// Means and variances of a model's function, in standard units.
fn latent(model: &Model, x: &Mat<f64>) -> (Vec<f64>, Vec<f64>) {
    let found = low_rank(model).latent(x.as_ref()).unwrap();
    let column = |m: &Mat<f64>| (0..m.nrows()).map(|i| m[(i, 0)]).collect();
    (column(&found.mean), column(&found.variance))
}

fn loads_the_same(model: &Model, folder: &Path) {
    let path = folder.join("model.posterior");
    model.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(again.process().unwrap().header(), model.process().unwrap().header());
    let fresh = table(2);
    assert_eq!(
        again.process().unwrap().predict(&fresh, None).unwrap(),
        model.process().unwrap().predict(&fresh, None).unwrap()
    );
}

/// The table with its features the other way round.
fn reversed(table: &Table) -> Table {
    let (target, features): (Vec<_>, Vec<_>) = table.columns.iter().cloned().partition(|c| c.name == "y");
    Table::new("reversed", features.into_iter().rev().chain(target).collect())
}

#[test]
fn a_network_that_knows_its_columns_sees_them_in_its_own_units_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let (path, plain) = (folder.path().join("net.safetensors"), folder.path().join("plain.safetensors"));
    let trained = perceptron(6);
    let columns = other_units(&table(1));
    write(&path, &trained, Some(&columns));
    write(&plain, &trained, None);
    let of = |basis: &Path| request(MethodName::Dbk, json!({"basis": basis, "freeze-basis": true}));
    let model = fit(&of(&path)).unwrap();
    let origin = &deep(&model).origin;
    assert!(
        origin.ends_with("net.safetensors, whose columns are known: its own scaling of inputs is kept"),
        "{origin}"
    );
    // What the network makes of columns in their own units, standardised as its file says.
    let Preparation::Columns { schema, standardisation, .. } = &columns else { unreachable!() };
    let fresh = table(2);
    let raw = schema.extract(&fresh, &Split::all(ROWS).train, true).unwrap().x;
    let expected = outputs(&trained.0, standardisation.features(raw.as_ref()).as_ref());
    let (x, _) = standardised(&model, &fresh);
    let found = low_rank(&model).features().values(x.as_ref()).unwrap().features;
    assert!((found.transpose() - &expected).norm_max() < 1e-5 * expected.norm_max());
    loads_the_same(&model, folder.path());
    // Without these words it is another function of the columns, and the summary says what it sees.
    let unknown = fit(&of(&plain)).unwrap();
    assert!(deep(&unknown).origin.contains("says nothing of columns"), "{}", deep(&unknown).origin);
    let other = low_rank(&unknown).features().values(x.as_ref()).unwrap().features;
    assert!((other.transpose() - &expected).norm_max() > 0.05 * expected.norm_max());

    // The same columns in another order are put in the network's.
    let turned = fit_to(&reversed(&table(1)), &of(&path)).unwrap();
    assert!(deep(&turned).origin.contains("they are put in its order"), "{}", deep(&turned).origin);
    let mean = |model: &Model| model.process().unwrap().predict(&fresh, None).unwrap().mean;
    assert!(error(&mean(&turned), &mean(&model)) < 1e-4);
    loads_the_same(&turned, folder.path());
    // What is learned from there on are the network's own weights, under labels as well.
    let learned = fit(&request(MethodName::Svdbk, json!({"basis": path}))).unwrap();
    assert!(error(&mean(&learned), &mean(&model)) > 1e-3);
    loads_the_same(&learned, folder.path());
    // A kernel behind it sees the same.
    for change in [json!({"rank": 9}), json!({"dense": true, "iterations": 5, "batch": null})] {
        let mut behind = request(MethodName::Dkl, json!({"basis": path, "freeze-basis": true}));
        set(&mut behind, change);
        let behind = fit(&behind).unwrap();
        assert!(deep(&behind).origin.contains("scaling of inputs is kept"));
        loads_the_same(&behind, folder.path());
    }
}

#[test]
fn columns_that_a_network_was_not_trained_on_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let all = table(1);
    let names: Vec<String> = all.names().into_iter().filter(|name| name != "y").collect();
    write(&path, &perceptron(6), Some(&other_units(&all)));
    let of = |table: &Table| {
        fit_to(table, &request(MethodName::Dbk, json!({"basis": path, "freeze-basis": true}))).unwrap_err()
    };
    let mut renamed = all.clone();
    let place = renamed.columns.iter().position(|c| c.name == names[3]).unwrap();
    renamed.columns[place].name = "wind".into();
    let message = of(&renamed);
    assert!(
        message.contains(&format!("net.safetensors was trained on the column `{}`", names[3])),
        "{message}"
    );
    assert!(message.contains("wind"), "{message}");
    let mut wider = all.clone();
    wider.columns.push(Column::numeric("rain", vec![0.5; ROWS]));
    let message = of(&wider);
    assert!(message.contains("was not trained on the column `rain`"), "{message}");
    assert!(message.contains(&format!("--features {}", names.join(","))), "{message}");
    let images = Preparation::Pixels { mean: vec![0.5], deviation: vec![0.5] };
    write(&path, &perceptron(6), Some(&images));
    assert!(of(&all).contains("was trained on images"));
}

#[test]
fn a_frozen_last_layer_is_bayesian_regression_on_what_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let trained = perceptron(3);
    write(&path, &trained, None);
    let hidden = json!({"basis": path, "basis-layer": "last-hidden", "freeze-basis": true});
    let model = fit(&request(MethodName::Dbk, hidden.clone())).unwrap();
    assert_eq!(deep(&model).rank, 9);
    let origin = &deep(&model).origin;
    assert!(origin.starts_with("what the last layer of the trained network "), "{origin}");
    assert!(origin.contains("reads, with a constant 1 for its bias"), "{origin}");
    // The hidden part of the same weights, put together by hand.
    let mut builder = GraphBuilder::new(&[10]).unwrap();
    let mut value = builder.input();
    for (k, width) in [12, 8].into_iter().enumerate() {
        value = builder.linear(&format!("layer{k}"), width, value).unwrap();
        value = builder.activation(&format!("act{k}"), Activation::Tanh, value).unwrap();
    }
    let graph = builder.finish(value).unwrap();
    let before = Network::new(graph, trained.0.parameters()[..4].to_vec()).unwrap();
    let features = |x: &Mat<f64>| {
        let own = outputs(&before, x.as_ref());
        Mat::from_fn(x.nrows(), 9, |i, j| if j < 8 { own[(i, j)] } else { 1.0 })
    };
    let ((x, y), (at, _)) = (trained_on(&model), standardised(&model, &table(2)));
    let (mean, variance) = regression(&features(&x), &y, &features(&at), noise(&model));
    let found = latent(&model, &at);
    assert!(error(&found.0, &mean) < 1e-6, "{:e}", error(&found.0, &mean));
    assert!(error(&found.1, &variance) < 1e-6, "{:e}", error(&found.1, &variance));
    loads_the_same(&model, folder.path());

    // Its outputs are another basis, and the layer of a file that ends otherwise is not taken.
    let outputs = fit(&request(MethodName::Dbk, json!({"basis": path, "freeze-basis": true}))).unwrap();
    assert_eq!(deep(&outputs).rank, 3);
    // Behind a kernel a constant says nothing.
    let mut behind = request(MethodName::Dkl, hidden);
    set(&mut behind, json!({"rank": 10}));
    let behind = fit(&behind).unwrap();
    let text = deep(&behind).architecture.clone().unwrap();
    assert_eq!(Architecture::from_toml(&text).unwrap().graph().unwrap().output_shape(), [8]);
    // Learned from there on, and of an architecture that is drawn.
    let drawn = folder.path().join("drawn.toml");
    std::fs::write(&drawn, trained.1.to_toml().unwrap()).unwrap();
    for file in [&path, &drawn] {
        let learned =
            fit(&request(MethodName::Svdbk, json!({"basis": file, "basis-layer": "last-hidden"}))).unwrap();
        assert_eq!(deep(&learned).rank, 9);
        loads_the_same(&learned, folder.path());
    }
}

#[test]
fn networks_without_a_last_layer_are_refused_with_what_they_end_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relu.toml");
    let layers =
        "[[layer]]\nname = 'a'\noperation = 'linear'\noutputs = 4\n[[layer]]\nname = 'b'\noperation = ";
    let with = |last: &str, change: Value| {
        std::fs::write(&path, format!("kind = 'layers'\ninput = [10]\n{layers}'{last}'\n")).unwrap();
        let mut request = request(MethodName::Dbk, json!({"basis": path, "basis-layer": "last-hidden"}));
        set(&mut request, change);
        fit(&request)
    };
    let message = with("relu", json!({})).unwrap_err();
    assert!(
        message.contains("layer `b` (relu)") && message.contains("--set basis-layer=last-hidden"),
        "{message}"
    );
    // Probabilities are made behind the last layer.
    assert_eq!(deep(&with("softmax", json!({})).unwrap()).rank, 11);
    assert_eq!(deep(&with("sigmoid", json!({})).unwrap()).rank, 11);
    let message = with("relu", json!({"basis": null})).unwrap_err();
    assert!(message.contains("name it with --set basis"), "{message}");
    let message = with("softmax", json!({"rank": 7})).unwrap_err();
    assert!(
        message.contains("has 11 features before its last layer, and --set rank asks for 7"),
        "{message}"
    );
}

/// The layers of a perceptron as ONNX, in the names and shapes of exporters.
fn write_onnx(path: &Path, network: &Network<f32>) {
    let axis = |length: usize| DimensionProto { dim_value: Some(length as i64), ..Default::default() };
    let value = |name: &str, width: usize| {
        let batch = DimensionProto { dim_param: Some("n".into()), ..Default::default() };
        let shape = Some(TensorShapeProto { dim: vec![batch, axis(width)] });
        let tensor_type = Some(TensorTypeProto { elem_type: Some(element_type::FLOAT), shape });
        ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type }) }
    };
    let (mut nodes, mut tensors, mut last) = (Vec::new(), Vec::new(), "input".to_string());
    for (k, node) in network.graph().nodes().iter().enumerate() {
        let parameters = node.parameters.iter().map(|&p| &network.parameters()[p]);
        let names: Vec<String> = (0..node.parameters.len()).map(|p| format!("/fc.{k}/{p}")).collect();
        let (operator, transposed) = match &node.operation {
            Operation::Linear(_) => ("Gemm", true),
            _ => ("Tanh", false),
        };
        for (name, array) in names.iter().zip(parameters) {
            // What multiplies stands as rows of inputs here.
            let (dims, values) = match array.shape() {
                &[rows, columns] if transposed => {
                    let from = array.values();
                    let turned =
                        (0..columns).flat_map(|j| (0..rows).map(move |i| from[i * columns + j])).collect();
                    (vec![columns as i64, rows as i64], turned)
                }
                shape => (shape.iter().map(|&d| d as i64).collect(), array.values().to_vec()),
            };
            tensors.push(TensorProto {
                name: Some(name.clone()),
                dims,
                data_type: Some(element_type::FLOAT),
                float_data: values,
                ..Default::default()
            });
        }
        let made = format!("/fc.{k}/output");
        nodes.push(NodeProto {
            op_type: Some(operator.into()),
            name: Some(format!("/fc.{k}/{operator}")),
            input: std::iter::once(last).chain(names).collect(),
            output: vec![made.clone()],
            ..Default::default()
        });
        last = made;
    }
    let outputs = network.graph().output_shape()[0];
    let graph = GraphProto {
        node: nodes,
        name: Some("perceptron".into()),
        initializer: tensors,
        input: vec![value("input", network.graph().input_shape()[0])],
        output: vec![value(&last, outputs)],
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        producer_name: Some("test".into()),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..Default::default()
    };
    std::fs::write(path, model.encode_to_vec()).unwrap();
}

#[test]
fn onnx_files_are_the_same_basis_as_safetensors() {
    let folder = tempfile::tempdir().unwrap();
    let (onnx, other) = (folder.path().join("net.onnx"), folder.path().join("net.safetensors"));
    let trained = perceptron(4);
    write_onnx(&onnx, &trained.0);
    write(&other, &trained, None);
    let fresh = table(2);
    for layer in ["outputs", "last-hidden"] {
        let of = |path: &Path, frozen: bool| {
            let change = json!({"basis": path, "basis-layer": layer, "freeze-basis": frozen});
            fit(&request(MethodName::Dbk, change)).unwrap()
        };
        let kept = [of(&onnx, true), of(&other, true)];
        assert_eq!(deep(&kept[0]).rank, if layer == "outputs" { 4 } else { 9 });
        assert!(deep(&kept[0]).origin.contains("net.onnx"), "{}", deep(&kept[0]).origin);
        let [mean, same] =
            kept.each_ref().map(|model| model.process().unwrap().predict(&fresh, None).unwrap().mean);
        assert!(error(&mean, &same) < 1e-6, "{layer}: {:e}", error(&mean, &same));
        loads_the_same(&kept[0], folder.path());
        let begun = of(&onnx, false);
        assert!(error(&begun.process().unwrap().predict(&fresh, None).unwrap().mean, &mean) > 1e-4);
        loads_the_same(&begun, folder.path());
    }
    std::fs::write(&onnx, b"not a model").unwrap();
    assert!(fit(&request(MethodName::Dbk, json!({"basis": onnx}))).unwrap_err().contains("net.onnx"));
}

/// Matrices of an inducing-point model from its file and header alone: `Q` between its rows and of some places with them, and the prior variances of both.
struct Dense {
    rows: Mat<f64>,
    cross: Mat<f64>,
    own: Vec<f64>,
    there: Vec<f64>,
    /// `q(x, x)` of the places.
    explained: Vec<f64>,
    kernel: Box<dyn posterior::kernels::Kernel<f64>>,
    points: Mat<f64>,
}

fn dense(model: &Model, path: &Path, x: &Mat<f64>, at: &Mat<f64>) -> Dense {
    let record = model.process().unwrap().record();
    let mut kernel =
        record.kernel.build::<f64>(&model.process().unwrap().inputs().schema.feature_names()).unwrap();
    let values: Vec<f64> = kernel
        .segments()
        .iter()
        .flat_map(|segment| record.hyperparameter(&segment.name).unwrap().to_vec())
        .collect();
    kernel.set_values(&values);
    model.save(path).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = tensors.tensor("model.0.inducing_inputs").unwrap();
    let numbers: Vec<f64> =
        tensor.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let [m, d] = tensor.shape() else { panic!("no matrix") };
    let points = Mat::from_fn(*m, *d, |i, j| numbers[i * d + j]);
    let gram = |a: &Mat<f64>, b: &Mat<f64>| posterior::kernels::cross(&*kernel, a.as_ref(), b.as_ref());
    let mut z = gram(&points, &points);
    let jitter = 1e-6 * (0..*m).map(|j| z[(j, j)]).sum::<f64>() / *m as f64;
    (0..*m).for_each(|j| z[(j, j)] += jitter);
    let (zx, zt) = (gram(&points, x), gram(&points, at));
    let lu = z.partial_piv_lu();
    let (sx, st) = (lu.solve(&zx), lu.solve(&zt));
    let q = |a: &Mat<f64>, b: &Mat<f64>| (0..a.ncols()).map(|i| a.col(i).transpose() * b.col(i)).collect();
    Dense {
        rows: zx.transpose() * &sx,
        cross: zt.transpose() * &sx,
        own: posterior::kernels::diagonal(&*kernel, x.as_ref()),
        there: posterior::kernels::diagonal(&*kernel, at.as_ref()),
        explained: q(&zt, &st),
        kernel,
        points,
    }
}

#[test]
fn inducing_points_among_the_rows_are_the_published_approximations() {
    let folder = tempfile::tempdir().unwrap();
    let mut predicted = Vec::new();
    for (correction, of_rows, of_places) in [
        // Whether what is left out is noise of the rows, and whether it is variance of the places: SoR, DTC, VFE, FITC.
        ("none", false, false),
        ("prediction", false, true),
        ("full", false, true),
        ("noise", true, true),
    ] {
        let change = json!({"basis": "none", "rank": 12, "correction": correction});
        let mut request = request(MethodName::Dkl, change);
        request.prior.kernel = "matern52(ard)".parse().unwrap();
        let model = fit(&request).unwrap();
        let summary = deep(&model);
        assert_eq!(summary.origin, "no network: inducing points among the rows");
        assert!(summary.inducing && summary.architecture.is_none() && summary.rank == 12, "{summary:?}");
        assert!(summary.refitted || summary.chosen == "the evidence of all rows", "{summary:?}");
        let ((x, y), (at, _)) = (trained_on(&model), standardised(&model, &table(2)));
        let path = folder.path().join("points.posterior");
        let dense = dense(&model, &path, &x, &at);
        let s2 = noise(&model);
        let n = x.nrows();
        let mut k = dense.rows.clone();
        for i in 0..n {
            k[(i, i)] += s2 + if of_rows { dense.own[i] - dense.rows[(i, i)] } else { 0.0 };
        }
        let lu = k.partial_piv_lu();
        let targets = Mat::from_fn(n, 1, |i, _| y[i]);
        let mean = &dense.cross * lu.solve(&targets);
        let solved = lu.solve(dense.cross.transpose());
        let variance = |i: usize| {
            let prior = if of_places { dense.there[i] } else { dense.explained[i] };
            prior - (0..n).map(|j| dense.cross[(i, j)] * solved[(j, i)]).sum::<f64>()
        };
        let mean: Vec<f64> = (0..ROWS).map(|i| mean[(i, 0)]).collect();
        let variance: Vec<f64> = (0..ROWS).map(variance).collect();
        let found = latent(&model, &at);
        assert!(error(&found.0, &mean) < 1e-7, "{correction}: {:e}", error(&found.0, &mean));
        assert!(error(&found.1, &variance) < 1e-7, "{correction}: {:e}", error(&found.1, &variance));
        loads_the_same(&model, folder.path());
        predicted.push(found.1);
        // Of its hyperparameters those of the kernel belong to columns.
        assert_eq!(
            model.process().unwrap().record().hyperparameter("matern52.lengthscale").map(<[f64]>::len),
            Some(10)
        );
        if correction == "full" {
            is_the_collapsed_bound(&model, (&x, &y), dense);
        }
    }
    assert!(error(&predicted[0], &predicted[1]) > 1e-3);
}

/// The objective of the evidence with its penalty is the bound that `--method sgpr` maximises.
fn is_the_collapsed_bound(model: &Model, (x, y): (&Mat<f64>, &[f64]), dense: Dense) {
    let s2 = noise(model);
    let targets = Mat::from_fn(y.len(), 1, |i, _| y[i]);
    let observed = ObservedRows { targets: targets.as_ref(), noise: None, weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let options =
        LowRankOptions { correction: Correction::Own, trace_weight: 1.0, ..LowRankOptions::default() };
    let posterior = low_rank(model);
    let own = posterior::linear::low_rank::objective(
        posterior.features(),
        posterior.likelihood(),
        &data,
        &options,
        &[],
    )
    .unwrap()
    .0 * y.len() as f64;
    let mut noise = Gaussian::new(s2, 0.0);
    noise.set_values(&[s2]);
    let mut sparse = CollapsedGp::new(dense.kernel, MeanForm::Zero, noise, dense.points, 1).unwrap();
    sparse.jitter = 1e-6;
    let rows = Observations::new(x.clone(), targets.clone(), None).unwrap();
    let bound = collapsed_bound(&sparse, &rows).unwrap();
    assert!((own - bound).abs() < 1e-8 * bound.abs(), "{own} {bound}");
    // Both by dense algebra: log N(y | 0, Q + s²) and the trace.
    let mut k = dense.rows.clone();
    (0..y.len()).for_each(|i| k[(i, i)] += s2);
    let factor = k.llt(faer::Side::Lower).unwrap();
    let determinant: f64 = (0..y.len()).map(|i| 2.0 * factor.L()[(i, i)].ln()).sum();
    let fit = (targets.transpose() * factor.solve(&targets))[(0, 0)];
    let rest: f64 = (0..y.len()).map(|i| dense.own[i] - dense.rows[(i, i)]).sum();
    let n = y.len() as f64;
    let expected = -0.5 * (n * (2.0 * std::f64::consts::PI).ln() + determinant + fit + rest / s2);
    assert!((own - expected).abs() < 1e-6 * expected.abs(), "{own} {expected}");
}

#[test]
fn without_a_network_nothing_that_is_said_of_one_is_taken() {
    let of = |method: MethodName, change: Value| {
        let mut all = request(method, json!({"basis": "none", "rank": 8}));
        set(&mut all, change);
        fit(&all)
    };
    for (method, change, message) in [
        (MethodName::Dbk, json!({}), "--set basis=none leaves dbk and svdbk without features"),
        (MethodName::Svdbk, json!({}), "--set basis=none leaves dbk and svdbk without features"),
        (MethodName::Dkl, json!({"embedding": 2}), "--set embedding counts a network's outputs"),
        (MethodName::Svdkl, json!({"freeze-basis": true}), "--set freeze-basis keeps a network as it is"),
        (MethodName::Dkl, json!({"dense": true, "rank": null, "batch": null}), "that is --method exact"),
        (
            MethodName::Svdkl,
            json!({"basis-layer": "last-hidden"}),
            "--set basis-layer takes the last layer off",
        ),
        (MethodName::Dkl, json!({"rank": 5000}), "5000 inducing points"),
    ] {
        let error = of(method, change).unwrap_err();
        assert!(error.contains(message), "{method}: {error}");
    }
    // On batches, in several ways, and in words.
    let folder = tempfile::tempdir().unwrap();
    let model = of(MethodName::Svdkl, json!({"objective": null})).unwrap();
    assert!(
        deep(&model).tried.iter().all(|tried| !tried.name.contains("network")),
        "{:?}",
        deep(&model).tried
    );
    loads_the_same(&model, folder.path());
    let facts = model.facts().rows();
    let text = facts.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>().join("\n");
    assert!(text.contains("no network: inducing points among the rows, 8 under"), "{text}");
    // A kernel of one column by its name.
    let mut named = request(MethodName::Dkl, json!({"basis": "none", "rank": 8}));
    let columns = table(1).names();
    named.prior.kernel = format!("se({}) + matern32({})", columns[0], columns[1]).parse().unwrap();
    loads_the_same(&fit(&named).unwrap(), folder.path());
}

#[test]
fn plans_know_how_many_outputs_a_network_has() {
    let folder = tempfile::tempdir().unwrap();
    let of = |outputs: usize| {
        let path = folder.path().join(format!("{outputs}.toml"));
        let text = format!("kind = 'perceptron'\ninputs = 10\nhidden = [4]\noutputs = {outputs}");
        std::fs::write(&path, text).unwrap();
        path
    };
    let (few, many) = (of(16), of(2048));
    let names: Vec<String> = table(1).names().into_iter().filter(|name| name != "y").collect();
    let planned = |request: &FitRequest| Model::plan_fit(request, ROWS, &names).1;
    let plan = |basis: &Path| planned(&request(MethodName::Dbk, json!({"basis": basis})));
    // Roots and factors of 2,048 features with their moments.
    assert!(plan(&many) > plan(&few) + 2048 * 2048 * 8 * 12, "{} {}", plan(&many), plan(&few));
    let mut small = request(MethodName::Dbk, json!({"basis": many}));
    small.limits.memory = plan(&many) - 1;
    assert!(plan(&few) < small.limits.memory);
    assert!(fit(&small).unwrap_err().contains("memory"));
    // What the last layer reads is narrow again.
    let hidden = request(MethodName::Dbk, json!({"basis": many, "basis-layer": "last-hidden"}));
    assert!(planned(&hidden) <= plan(&few));
    // Inducing points are as many as asked for, whatever they stand behind; the process itself acts on the outputs.
    let points = |basis: Value| planned(&request(MethodName::Svdkl, json!({"basis": basis, "rank": 16})));
    assert!(points(json!(many)) < plan(&many));
    assert!(points(json!("none")) < points(json!(many)));
    let behind = |basis: &Path| {
        let change = json!({"dense": true, "batch": null, "basis": basis});
        Model::plan_fit(&request(MethodName::Dkl, change), 5000, &names).1
    };
    assert!(behind(&many) > behind(&few) + 5000 * 8 * 2000);
}
