//! The ten-line programs: plain matrices, files, functions.

use faer::Mat;
use posterior::data::{Delimiter, ReadOptions, TextOptions};
use posterior::linalg::random::Streams;
use posterior::linearised::{Approximation, Weights};
use posterior::networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior::networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior::networks::{Architecture, Array, Network};
use posterior::optim::{Rule, Schedule, Signal};
use posterior::options::MethodName;
use posterior::{Error, Fitted, Gp, Laplace, Rows};

fn truth(a: f64, b: f64) -> f64 {
    (2.0 * a).sin() + 0.5 * b
}

/// Points of a grid that is turned, and a smooth function with little noise.
fn data(count: usize) -> (Vec<[f64; 2]>, Vec<f64>) {
    let x: Vec<[f64; 2]> =
        (0..count).map(|i| [(i as f64 * 0.618) % 1.0 * 3.0, (i as f64 * 0.414) % 1.0 * 2.0]).collect();
    let noise = |i: usize| 0.02 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
    let y = x.iter().enumerate().map(|(i, [a, b])| truth(*a, *b) + noise(i)).collect();
    (x, y)
}

#[test]
fn rows_of_every_form_are_the_same_matrix() {
    let expected = Mat::from_fn(2, 2, |i, j| (i * 2 + j) as f64);
    let arrays = [[0.0, 1.0], [2.0, 3.0]];
    let vectors = vec![vec![0.0, 1.0], vec![2.0, 3.0]];
    assert_eq!(arrays.to_matrix().unwrap(), expected);
    assert_eq!(arrays.as_slice().to_matrix().unwrap(), expected);
    assert_eq!(arrays.to_vec().to_matrix().unwrap(), expected);
    assert_eq!(vectors.to_matrix().unwrap(), expected);
    assert_eq!(vectors.as_slice().to_matrix().unwrap(), expected);
    assert_eq!(expected.to_matrix().unwrap(), expected);
    assert_eq!(expected.as_ref().to_matrix().unwrap(), expected);
    assert_eq!([5.0, 6.0].to_matrix().unwrap().shape(), (2, 1));
    let ragged = vec![vec![0.0], vec![1.0, 2.0]].to_matrix().unwrap_err();
    assert_eq!((ragged.row, ragged.found, ragged.expected), (1, 2, 1));
}

#[test]
fn processes_are_fitted_asked_saved_and_sampled() {
    let (x, y) = data(80);
    let folder = tempfile::tempdir().unwrap();
    for method in [MethodName::Exact, MethodName::Cg, MethodName::Sgpr] {
        let mut builder = Gp::builder().kernel("se(ard)").method(method).seed(3);
        if let Some(options) = builder.request_mut().method.iterative_mut() {
            options.sampling.samples = 8;
        }
        let process = builder.fit(&x, &y).unwrap();
        let new = [[1.0, 1.0], [2.2, 0.4]];
        let predicted = process.predict(&new).unwrap();
        for (i, [a, b]) in new.into_iter().enumerate() {
            assert!(
                (predicted.mean().unwrap()[i] - truth(a, b)).abs() < 0.1,
                "{method}: {}",
                predicted.mean().unwrap()[i]
            );
        }
        let path = folder.path().join("m.posterior");
        process.save(&path).unwrap();
        let again = Fitted::load(&path).unwrap().predict(&new).unwrap();
        assert_eq!(again.mean().unwrap(), predicted.mean().unwrap());
        // Samples are functions: the same values at the same places, in whatever company, within a few of their deviations of the mean.
        let functions = process.functions(8, 5).unwrap();
        assert_eq!(functions.count(), 8);
        let (all, one) = (functions.values(&new).unwrap(), functions.values(&[new[1]]).unwrap());
        let scale = y.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for j in 0..8 {
            assert!((all[(1, j)] - one[(0, j)]).abs() < 1e-5 * scale, "{method}");
            let away = (all[(0, j)] - predicted.mean().unwrap()[0]).abs();
            assert!(away < 6.0 * predicted.latent_std().unwrap()[0] + 0.02, "{method}: {away}");
        }
        let spread = (0..8).map(|j| all[(0, j)]).collect::<Vec<_>>();
        assert!(spread.iter().any(|v| *v != spread[0]), "{method}");
    }
}

#[test]
fn tables_serve_as_well_as_matrices() {
    let (x, y) = data(40);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let rows = x.iter().zip(&y).map(|([a, b], y)| format!("{a},{b},{y}\n"));
    std::fs::write(&path, format!("x1,x2,height\n{}", rows.collect::<String>())).unwrap();
    let process = Gp::builder().target("height").fit_file(&path).unwrap();
    let (from_file, from_rows) = (process.predict_file(&path).unwrap(), process.predict(&x).unwrap());
    assert_eq!(from_file.mean().unwrap(), from_rows.mean().unwrap());
    let same = Gp::builder().fit(&x, &y).unwrap().predict(&x).unwrap();
    assert_eq!(same.mean().unwrap(), from_rows.mean().unwrap());
}

#[test]
fn classes_and_counts_are_fitted_asked_and_saved() {
    let (x, y) = data(60);
    let labels: Vec<&str> = y.iter().map(|y| if *y > 0.8 { "high" } else { "low" }).collect();
    let fitted = Gp::builder().seed(2).classify(&x, &labels).unwrap();
    assert_eq!(fitted.class_names(), ["high", "low"]);
    let predicted = fitted.predict(&x).unwrap();
    let probabilities = predicted.probabilities().unwrap();
    let right = labels.iter().enumerate().filter(|(i, l)| (probabilities[2 * i] > 0.5) == (**l == "high"));
    assert!(right.count() >= 57 && predicted.predictive().removable_entropy.is_some());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.posterior");
    fitted.save(&path).unwrap();
    let again = Fitted::load(&path).unwrap().predict(&x).unwrap();
    assert_eq!(again.predictive(), predicted.predictive());
    // Labels of numbers are in the order of their values.
    let grades: Vec<u32> = y.iter().map(|y| if *y > 0.8 { 10 } else { 9 }).collect();
    let graded = Gp::builder().seed(2).classify(&x, &grades).unwrap();
    assert_eq!(graded.class_names(), ["9", "10"]);
    // Rates that grow along the first column.
    let counts: Vec<u32> = x.iter().map(|[a, _]| (3.0 * a).round() as u32).collect();
    let counted = Gp::builder().count(&x, &counts).unwrap();
    assert!(counted.class_names().is_empty());
    let rates = counted.predict(&[[0.3, 1.0], [2.7, 1.0]]).unwrap();
    let mean = rates.mean().unwrap();
    assert!(mean[0] < 2.5 && mean[1] > 5.0, "{mean:?}");
    // From a file, as the target looks.
    let table = folder.path().join("t.csv");
    let rows: String = x.iter().zip(&labels).map(|([a, b], l)| format!("{a},{b},{l}\n")).collect();
    std::fs::write(&table, format!("a,b,level\n{rows}")).unwrap();
    let from_file = Gp::builder().target("level").seed(2).fit_labels_file(&table).unwrap();
    assert_eq!(from_file.predict_file(&table).unwrap().len(), 60);
    let message = Gp::builder().classify(&x, &["a"; 60]).unwrap_err().to_string();
    assert!(message.contains("only one class"), "{message}");
    let message = Gp::builder().classify(&x, &["a"; 6]).unwrap_err().to_string();
    assert!(message.contains("60 rows of inputs and 6 targets"), "{message}");
    let message = Gp::builder().target("b").fit_labels_file(&table).unwrap_err().to_string();
    assert!(message.contains("Gaussian noise"), "{message}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let (x, y) = data(10);
    let fit = |kernel: &str, x: &[[f64; 2]], y: &[f64]| Gp::builder().kernel(kernel).fit(x, y).map(|_| ());
    assert!(matches!(fit("se", &x, &y[..9]), Err(Error::Targets { rows: 10, targets: 9 })));
    assert!(matches!(fit("no such kernel", &x, &y), Err(Error::Kernel(_))));
    assert!(matches!(fit("se", &[[f64::NAN, 0.0]; 10], &y), Err(Error::Model(_))));
    let message = |x: &[[f64; 2]], y: &[f64]| fit("se", x, y).unwrap_err().to_string();
    assert!(message(&x[..2], &y[..2]).contains("in 2 of the rows to learn from, and a fit needs 3"));
    assert!(message(&x, &[4.5; 10]).contains("all 10 targets `y` are 4.5"));
    assert!(message(&x[..3], &[1.0, f64::INFINITY, 2.0]).contains("row 2, column `y`: inf"));
    let counted = Gp::builder().count(&x[..2], &[1, 4]).unwrap_err().to_string();
    assert!(counted.contains("in 2 of the rows"), "{counted}");
    let process = Gp::builder().fit(&x, &y).unwrap();
    let narrow = process.predict(&[[1.0]]).unwrap_err().to_string();
    assert!(narrow.contains("2 columns") && narrow.contains("have 1"), "{narrow}");
    let infinite = process.predict(&[[1.0, 0.0], [f64::INFINITY, 0.0]]).unwrap_err();
    assert!(matches!(infinite, Error::NotFinite { row: 1, column: 0, .. }));
    assert_eq!(process.functions(0, 0).unwrap().values(&x).unwrap().shape(), (10, 0));
    // Columns of text have no place in a matrix.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "a,colour,y\n1,red,1\n2,blue,2\n3,red,2.5\n4,blue,4\n").unwrap();
    let mut builder = Gp::builder().target("y");
    builder.request_mut().columns.categories = vec!["colour".into()];
    let process = builder.fit_file(&path).unwrap();
    assert_eq!(process.predict_file(&path).unwrap().len(), 4);
    assert!(matches!(process.predict(&[[1.0, 0.0, 1.0]]), Err(Error::ByTable { .. })));
}

/// A small network for numbers, trained a little on a plane with noise.
fn plane() -> (Network<f64>, Architecture, Vec<[f64; 2]>, Vec<f64>) {
    let (x, y) = data(120);
    let text = "kind = 'perceptron'\ninputs = 2\nhidden = [6]\noutputs = 1\nactivation = 'tanh'";
    let architecture = Architecture::from_toml(text).unwrap();
    let network = Network::<f64>::initialised(architecture.graph().unwrap(), Streams::new(1)).unwrap();
    let inputs = Array::new(vec![120, 2], x.iter().flatten().copied().collect());
    let examples = Tabular::new(inputs, Targets::Values(Array::new(vec![120, 1], y.clone())));
    let (loss, rule, schedule) = (Loss::Mse, Rule::adam(), Schedule::Constant);
    let options = TrainOptions {
        loss,
        epochs: 150,
        batch: 30,
        rule,
        learning_rate: 0.02,
        schedule,
        clip: None,
        patience: None,
        seed: 0,
    };
    let trained = train(network, &examples, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
    (trained.network, architecture, x, y)
}

#[test]
fn networks_in_memory_and_in_files_get_the_same_error_bars() {
    let (network, architecture, x, y) = plane();
    let folder = tempfile::tempdir().unwrap();
    let (file, model) = (folder.path().join("net.safetensors"), folder.path().join("net.posterior"));
    let metadata = [(ARCHITECTURE_KEY.to_string(), architecture.to_toml().unwrap())].into();
    save_safetensors(&file, &network, &metadata).unwrap();
    let fitted = Laplace::of(&network).gaussian().fit(&x, &y).unwrap();
    // Without unseen rows the evidence compares; the network is not judged by what it has seen.
    let header = fitted.model().networks().unwrap().header();
    assert!(header.auto.is_some() && header.summary.unseen.is_none());
    assert_eq!(header.network.format, "memory");
    let new = [[0.4, 0.3], [30.0, -20.0]];
    let here = fitted.predict(&new).unwrap();
    let (mean, std) = (here.mean().unwrap(), here.std().unwrap());
    assert!((mean[0] - truth(0.4, 0.3)).abs() < 0.3 && std[1].powi(2) > 2.0 * std[0].powi(2));
    fitted.save(&model).unwrap();
    assert_eq!(Fitted::load(&model).unwrap().predict(&new).unwrap().predictive(), here.predictive());
    let matrix = Mat::from_fn(120, 2, |i, j| x[i][j]);
    let there = Laplace::of(file.as_path()).gaussian().fit(&matrix, &y).unwrap().predict(&new).unwrap();
    assert_eq!(there.predictive(), here.predictive());
    // The same rows in a table file: of a text that says how it is read.
    let write = |name: &str, rows: &[[f64; 2]], y: &[f64]| {
        let cells = rows.iter().zip(y).map(|([a, b], y)| format!("{a};{b};{y}\n"));
        let path = folder.path().join(name);
        std::fs::write(&path, cells.fold("a;b;y\n".to_string(), |text, row| text + &row)).unwrap();
        path
    };
    let mut builder = Laplace::of(file.as_path()).gaussian();
    builder.request_mut().data.columns.target = "y".into();
    let from_files = builder.fit_files([write("t.csv", &x, &y)], []).unwrap();
    let path = write("new.csv", &new, &[0.0, 0.0]);
    assert_eq!(from_files.predict_file(&path).unwrap().mean().unwrap(), mean);
    let text = TextOptions { delimiter: Some(Delimiter::Semicolon), ..TextOptions::default() };
    let reading = ReadOptions { text, ..ReadOptions::for_arrays() };
    assert_eq!(from_files.predict_files_as([path], reading).unwrap().mean().unwrap(), mean);
    // One curvature, and rows that the network has not seen.
    let (unseen, targets) = (x[..60].to_vec(), y[..60].to_vec());
    let shifted: Vec<[f64; 2]> = unseen.iter().map(|[a, b]| [a + 0.011, b - 0.007]).collect();
    let builder = Laplace::of(&network).gaussian().curvature(Approximation::Full).weights(Weights::LastLayer);
    let scored = builder.clone().unseen(&shifted, &targets).unwrap().fit(&x, &y).unwrap();
    assert_eq!(scored.model().networks().unwrap().header().summary.unseen.unwrap().examples, 60);
    assert!(scored.model().networks().unwrap().header().auto.is_none());
    let told = |result: Result<Fitted, Error>| result.map(|_| ()).unwrap_err().to_string();
    let seen = told(builder.clone().unseen(&unseen, &targets).unwrap().fit(&x, &y));
    assert!(seen.contains("60 of 60 rows"), "{seen}");
    let fewer = told(builder.clone().fit(&x, &y[1..]));
    assert!(fewer.contains("120 inputs, but targets for 119"), "{fewer}");
    let columns = told(builder.clone().fit(&y, &y));
    assert!(columns.contains("shape [2]"), "{columns}");
    let classes = told(Laplace::of(&network).categorical().fit(&x, &[0u8; 120]));
    assert!(classes.contains("one output"), "{classes}");
    let nan = told(builder.fit(&vec![[0.0, f64::NAN]; 120], &y));
    assert!(nan.contains("the inputs"), "{nan}");
}
