//! Tables of counts: a Tanimoto kernel sees them as they are.

use crate::options::set;
use faer::Mat;
use faer::prelude::Solve;
use posterior::data::{Column, Selection, Split, Table};
use posterior::optim::Signal;
use posterior::options::PriorSettings;
use posterior::{FitRequest, Model, ModelError};
use serde_json::json;

fn table(rows: usize, lowest: f64) -> Table {
    let counts = |from: usize, to: usize| (0..rows).map(move |i| ((i * from + i * i) % to) as f64);
    let (a, b, c): (Vec<f64>, Vec<f64>, Vec<f64>) =
        (counts(3, 5).collect(), counts(1, 4).collect(), counts(2, 7).map(|v| v + lowest).collect());
    let y = (0..rows).map(|i| 2.0 + a[i] - 0.5 * b[i] + (c[i] * 0.4).sin()).collect();
    let columns = [("a", a), ("b", b), ("c", c), ("y", y)];
    Table::new("counts.csv", columns.map(|(name, values)| Column::numeric(name, values)).into())
}

fn fit(table: &Table, kernel: &str) -> Result<Model, ModelError> {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        prior: PriorSettings { kernel: kernel.parse().unwrap(), ..PriorSettings::default() },
        ..Default::default()
    };
    set(&mut request, json!({"restarts": 1, "steps": 5}));
    Model::fit(table, &Split::all(table.rows()).train, &request, &mut |_, _| Signal::Continue)
}

fn numbers(table: &Table, name: &str) -> Vec<f64> {
    (0..table.rows()).map(|i| table.column(name).unwrap().cell(i).parse().unwrap()).collect()
}

#[test]
fn predictions_are_those_of_the_counts() {
    let (train, fresh) = (table(25, 0.0), table(40, 0.0));
    let model = fit(&train, "tanimoto").unwrap();
    let standard = &model.process().unwrap().inputs().standardisation;
    assert_eq!((&standard.feature_means[..], &standard.feature_scales[..]), (&[0.0; 3][..], &[1.0; 3][..]));
    let value = |name: &str| {
        let found = model.process().unwrap().record().hyperparameters.iter().find(|h| h.name.contains(name));
        found
            .unwrap_or_else(|| panic!("{name}: {:?}", model.process().unwrap().record().hyperparameters))
            .values[0]
    };
    let (variance, noise, mean) = (value("tanimoto.variance"), value("noise"), value("mean"));
    let rows = |t: &Table| -> Vec<[f64; 3]> {
        let columns = ["a", "b", "c"].map(|name| numbers(t, name));
        (0..t.rows()).map(|i| [columns[0][i], columns[1][i], columns[2][i]]).collect()
    };
    let kernel = |x: &[f64; 3], z: &[f64; 3]| {
        let sum = |pick: fn(f64, f64) -> f64| x.iter().zip(z).map(|(a, b)| pick(*a, *b)).sum::<f64>();
        variance * if sum(f64::max) == 0.0 { 1.0 } else { sum(f64::min) / sum(f64::max) }
    };
    let (x, z, y) = (rows(&train), rows(&fresh), numbers(&train, "y"));
    let n = x.len();
    let matrix = Mat::from_fn(n, n, |i, j| kernel(&x[i], &x[j]) + if i == j { noise } else { 0.0 });
    let targets = Mat::from_fn(n, 1, |i, _| standard.target(y[i]) - mean);
    let weights = matrix.partial_piv_lu().solve(&targets);
    let predictions = model.process().unwrap().predict(&fresh, None).unwrap();
    for (i, z) in z.iter().enumerate() {
        let sum: f64 = (0..n).map(|j| kernel(z, &x[j]) * weights[(j, 0)]).sum();
        let expected = standard.target_back(mean + sum);
        assert!((predictions.mean[i] - expected).abs() < 1e-8, "{i}: {} {expected}", predictions.mean[i]);
    }
}

#[test]
fn only_columns_that_are_compared_must_be_counts() {
    let below = table(25, -2.0);
    // Other columns are standardised as ever.
    let model = fit(&below, "tanimoto(a, b) + se(c)").unwrap();
    let standard = &model.process().unwrap().inputs().standardisation;
    assert_eq!(standard.feature_scales[..2], [1.0, 1.0]);
    assert!(standard.feature_means[2] != 0.0 && standard.feature_scales[2] != 1.0);
    assert!(model.process().unwrap().predict(&below, None).unwrap().mean.iter().all(|m| m.is_finite()));
    let expected = "counts.csv, row 1, column `c`: -2 is negative";
    let error = fit(&below, "tanimoto").unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let model = fit(&table(25, 0.0), "tanimoto").unwrap();
    let error = model.process().unwrap().predict(&below, None).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(model.process().unwrap().sample(&below, &[0, 1], 1, 0, u64::MAX).is_err());
}
