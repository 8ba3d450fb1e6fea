//! A model's life: fitted, saved, loaded, damaged.

use crate::options::set;
use posterior::data::{Selection, Split, Table, synthetic};
use posterior::linalg::random::Streams;
use posterior::optim::{Reason, Signal};
use posterior::options::PriorSettings;
use posterior::{FitRequest, Model, ModelError};
use rand::RngExt;
use serde_json::json;

fn table() -> Table {
    synthetic::friedman(60, Streams::new(1))
}

fn request() -> FitRequest {
    let mut request =
        FitRequest { columns: Selection { target: "y".into(), ..Default::default() }, ..Default::default() };
    set(&mut request, json!({"steps": 15}));
    request
}

fn fitted(request: &FitRequest) -> Model {
    let table = table();
    let split = Split::random(table.rows(), 0.3, Streams::new(0));
    Model::fit(&table, &split.train, request, &mut |_, _| Signal::Continue).unwrap()
}

#[test]
fn a_round_trip_gives_bit_equal_predictions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.posterior");
    for kernel in ["matern32(ard)", "se(ard, x1, x2) * periodic(x3) + linear + white"] {
        let model = fitted(&FitRequest {
            prior: PriorSettings { kernel: kernel.parse().unwrap(), ..request().prior },
            ..request()
        });
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded.process().unwrap().header(), model.process().unwrap().header());
        assert_eq!(
            loaded.process().unwrap().predict(&table(), None).unwrap(),
            model.process().unwrap().predict(&table(), None).unwrap()
        );
        assert_eq!(
            loaded.process().unwrap().sample(&table(), &[0, 5, 7], 3, 9, 1 << 20).unwrap(),
            model.process().unwrap().sample(&table(), &[0, 5, 7], 3, 9, 1 << 20).unwrap()
        );
        assert!(matches!(
            model.process().unwrap().sample(&table(), &[0, 5, 7], 3, 9, 100),
            Err(ModelError::TooManySampleRows { .. })
        ));
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn the_same_seed_gives_the_same_model_bit_for_bit() {
    let mut request = request();
    set(&mut request, json!({"restarts": 2}));
    let (a, b) = (fitted(&request), fitted(&request));
    assert_eq!(a.process().unwrap().record().hyperparameters, b.process().unwrap().record().hyperparameters);
    assert_eq!(
        a.process().unwrap().predict(&table(), None).unwrap(),
        b.process().unwrap().predict(&table(), None).unwrap()
    );
}

#[test]
fn predictions_are_in_target_units_and_quantiles_are_normal() {
    let model = fitted(&FitRequest {
        prior: PriorSettings { kernel: "se(ard)".parse().unwrap(), ..request().prior },
        ..request()
    });
    let predictions = model.process().unwrap().predict_with_truth(&table(), None).unwrap();
    let scores = predictions.scores(model.process().unwrap().inputs().standardisation.target_scale).unwrap();
    assert!(scores.standardised.rmse < 0.6, "{scores:?}");
    let (low, middle, high) =
        (predictions.quantile(0.025), predictions.quantile(0.5), predictions.quantile(0.975));
    for i in 0..60 {
        assert!((middle[i] - predictions.mean[i]).abs() < 1e-9);
        assert!((high[i] - predictions.mean[i] - 1.959_963_984_54 * predictions.deviation[i]).abs() < 1e-6);
        assert!((high[i] + low[i] - 2.0 * predictions.mean[i]).abs() < 1e-9);
        assert!(predictions.deviation[i] > predictions.latent_deviation[i]);
    }
}

#[test]
fn known_noise_widens_the_intervals() {
    let mut table = table();
    let noise = (0..60).map(|i| if i % 2 == 0 { 0.01 } else { 25.0 }).collect();
    table.columns.push(posterior::data::Column::numeric("v", noise));
    let mut request = request();
    request.columns.noise = Some("v".into());
    let rows: Vec<usize> = (0..60).collect();
    let model = Model::fit(&table, &rows, &request, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(model.process().unwrap().inputs().schema.features.len(), 10);
    let predictions = model.process().unwrap().predict_with_truth(&table, None).unwrap();
    assert!(predictions.deviation[1] >= 5.0 && predictions.deviation[0] < 5.0);
}

#[test]
fn an_interrupted_fit_says_so() {
    let table = table();
    let rows: Vec<usize> = (0..60).collect();
    let model = Model::fit(&table, &rows, &request(), &mut |_, _| Signal::Stop).unwrap();
    assert!(model.was_interrupted());
    assert_eq!(model.process().unwrap().record().fit.gaussian().unwrap().reason, Reason::Interrupted);
}

#[test]
fn settings_out_of_range_are_errors() {
    let table = table();
    for (noise_floor, initial_noise) in [(-1.0, 0.1), (0.2, 0.1), (f64::NAN, 0.1), (0.0, f64::INFINITY)] {
        let request = FitRequest {
            prior: PriorSettings { noise_floor, initial_noise: Some(initial_noise), ..request().prior },
            ..request()
        };
        assert!(matches!(
            Model::fit(&table, &[0, 1, 2], &request, &mut |_, _| Signal::Continue),
            Err(ModelError::Setting { .. })
        ));
    }
}

/// Damaged model files are errors, or models that still predict; never panics. `POSTERIOR_FUZZ_ITERATIONS` sets how many.
#[test]
fn damaged_files_are_errors() {
    let iterations: u64 =
        std::env::var("POSTERIOR_FUZZ_ITERATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(3_000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.posterior");
    let small = synthetic::curve_with_gap(8, Streams::new(1));
    let rows: Vec<usize> = (0..8).collect();
    Model::fit(&small, &rows, &request(), &mut |_, _| Signal::Continue).unwrap().save(&path).unwrap();
    let valid = std::fs::read(&path).unwrap();
    let mut rng = Streams::new(3).stream("posterior/fuzz");
    let mut readable = 0;
    for _ in 0..iterations {
        let mut bytes = valid.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..5) {
                0 => bytes[at] ^= 1 << rng.random_range(0..8),
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, rng.random()),
                3 => bytes[at] = b"0129-,\"{}[]enull"[rng.random_range(0..16)],
                _ => {
                    let end = (at + rng.random_range(1..9)).min(bytes.len());
                    bytes[at..end].fill(0xff);
                }
            }
        }
        if let Ok(model) = Model::from_bytes(&bytes) {
            readable += 1;
            let _ = model.process().unwrap().predict(&small, None);
        }
    }
    println!("{iterations} damaged model files, {readable} still readable");
}
