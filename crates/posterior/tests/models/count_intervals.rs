//! Intervals of counts and of numbers with outliers, on rows that nothing has seen.

use super::labelled::{fit, question};
use crate::options::set;
use posterior::data::{Column, Selection, Split, Table};
use posterior::likelihoods::CountMixture;
use posterior::linalg::random::Streams;
use posterior::models::{Guarantee, ModelData, Predicted, Question, StreamModel};
use posterior::options::{CalibrateName, InferenceName, LikelihoodName, MethodName, Validation};
use posterior::{FitRequest, Model, Saved};
use rand::RngExt as _;
use rand_distr::{Distribution as _, Gamma, Poisson, StudentT};
use serde_json::json;

/// Counts that scatter more than a Poisson distribution allows, and numbers with outliers on one side only, along one column.
fn table(rows: usize, seed: u64) -> Table {
    let mut random = Streams::new(seed).stream("test");
    let (mut x, mut count, mut number) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let at: f64 = random.random();
        let rate = (1.0 + 2.5 * (5.0 * at).sin()).exp();
        let own = rate * Gamma::new(2.0, 0.5).unwrap().sample(&mut random);
        let student: f64 = StudentT::new(2.5).unwrap().sample(&mut random);
        x.push(at);
        count.push(Poisson::new(own.max(1e-9)).unwrap().sample(&mut random));
        number.push((6.0 * at).cos() + 0.1 * student.abs());
    }
    Table::new(
        "scatter",
        [("x", x), ("count", count), ("number", number)].map(|(n, v)| Column::numeric(n, v)).into(),
    )
}

fn request(target: &str, method: MethodName, calibrate: CalibrateName) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: target.into(), features: Some(vec!["x".into()]), ..Default::default() },
        method: method.into(),
        validation: Validation { calibrate, ..Validation::default() },
        ..Default::default()
    };
    let (likelihood, inference) = match target {
        "count" => (LikelihoodName::Poisson, InferenceName::Gaussianised),
        _ => (LikelihoodName::StudentT, InferenceName::Variational),
    };
    (request.output.likelihood, request.output.inference) = (likelihood, inference);
    request
}

fn fitted(table: &Table, request: &FitRequest) -> Model {
    fit(table, &Split::all(table.rows()).train, request).unwrap()
}

fn data(table: &Table) -> ModelData {
    ModelData::of_table(table.clone()).unwrap()
}

/// Shares of new rows between both ends, and where the ends are wrong on their own.
fn held(model: &Model, fresh: &Table, level: f64) -> [f64; 3] {
    let found = model.predictive(&data(fresh), &question(true)).unwrap();
    let Some(posterior::models::Truth::Values { values, .. }) = &found.truth else { panic!("numbers") };
    let [low, high] = [0.5 - 0.5 * level, 0.5 + 0.5 * level].map(|at| found.quantiles(at, true).unwrap());
    let share =
        |f: &dyn Fn(usize) -> bool| (0..values.len()).filter(|&i| f(i)).count() as f64 / values.len() as f64;
    [
        share(&|i| (low[i]..=high[i]).contains(&values[i])),
        share(&|i| values[i] < low[i]),
        share(&|i| values[i] > high[i]),
    ]
}

#[test]
fn counts_that_scatter_more_than_was_said_lie_in_their_intervals() {
    const FRESH: usize = 800;
    let (train, fresh) = (table(500, 1), table(FRESH, 2));
    for method in [MethodName::Exact, MethodName::Sgpr] {
        let of = |calibrate| {
            let mut asked = request("count", method, calibrate);
            set(&mut asked, json!({"restarts": 0, "steps": 8}));
            if method == MethodName::Sgpr {
                set(&mut asked, json!({"held-back": 199, "inducing": 25, "iterations": 8}));
            }
            fitted(&train, &asked)
        };
        let model = of(CalibrateName::Auto);
        let own = model.process().unwrap().record().fit.likelihood().unwrap().intervals.clone().unwrap();
        let guarantee = if method == MethodName::Exact { Guarantee::LeftOut } else { Guarantee::Holds };
        assert_eq!(own.guarantee, guarantee, "{own:?}");
        for level in [0.8, 0.95] {
            let [inside, below, above] = held(&model, &fresh, level);
            // Three deviations of both sets of rows; whole numbers make intervals hold more.
            let chance = 3.0 * (level * (1.0 - level) * (1.0 / own.rows as f64 + 1.0 / FRESH as f64)).sqrt();
            assert!(
                inside > level - chance && inside < level + chance + 0.04,
                "{method:?} {level}: {inside}"
            );
            let side = 0.5 * (1.0 - level) + chance;
            assert!(below < side && above < side, "{method:?} {level}: {below} {above}");
        }
        // What is told by the file is the same to the last bit.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.posterior");
        model.save(&path).unwrap();
        let again = Saved::load(&path).unwrap().into_only().unwrap();
        let of_rows = |model: &Model| {
            let found = model.predictive(&data(&fresh), &question(false)).unwrap();
            [0.025, 0.5, 0.99].map(|at| found.quantiles(at, true).unwrap())
        };
        assert_eq!(of_rows(&model), of_rows(&again));
        // Means and deviations are the model's own; without rows that tell quantiles are those of the mixture over the rate.
        let plain = of(CalibrateName::None);
        let [told, not] = [&model, &plain].map(|m| m.predictive(&data(&fresh), &question(false)).unwrap());
        let (Predicted::Moments { mean: a, .. }, Predicted::Moments { mean: b, .. }) =
            (&told.predicted, &not.predicted)
        else {
            panic!("counts")
        };
        assert_eq!(a, b);
        assert!(plain.process().unwrap().record().fit.likelihood().unwrap().intervals.is_none());
        let Predicted::Moments { mean, variance, latent_variance } = &not.predicted else { panic!("counts") };
        let medians = not.quantiles(0.5, true).unwrap();
        for i in (0..FRESH).step_by(97) {
            let own = CountMixture::from_moments(mean[i], variance[i], latent_variance[i]).unwrap();
            assert_eq!(medians[i], own.quantile(0.5));
        }
        assert!(told.quantiles(0.5, false).is_none());
        let asked = Question { quantiles: vec![0.5], latent: true, ..question(false) };
        let error = Model::predict(&plain, &data(&fresh), &asked).unwrap_err().to_string();
        assert!(error.contains("--calibrate auto"), "{error}");
        let answer =
            Model::predict(&model, &data(&fresh), &Question { quantiles: vec![0.9999], ..question(false) })
                .unwrap();
        assert!(answer.notes.iter().any(|note| note.contains("0.9999")), "{:?}", answer.notes);
        // Scores of fresh rows stand in an evaluation.
        let scores = model.evaluate(&data(&fresh), &question(true)).unwrap().intervals;
        assert!(scores.len() == 3 && (scores[2].coverage - held(&model, &fresh, 0.95)[0]).abs() < 1e-12);
    }
}

#[test]
fn outliers_on_one_side_widen_one_side() {
    let (train, fresh) = (table(600, 3), table(3000, 4));
    let mut asked = request("number", MethodName::Svgp, CalibrateName::Conformal);
    set(&mut asked, json!({"held-back": 299, "inducing": 20, "iterations": 600, "batch": 100}));
    let model = fitted(&train, &asked);
    let [inside, below, above] = held(&model, &fresh, 0.9);
    let chance = 3.0 * (0.09f64 * (1.0 / 299.0 + 1.0 / 3000.0)).sqrt();
    assert!((inside - 0.9).abs() < chance, "{inside}");
    assert!((below - 0.05).abs() < chance && (above - 0.05).abs() < chance, "{below} {above}");
}

#[test]
fn a_stream_forgets_what_was_told_before_its_rows() {
    let train = table(300, 5);
    let mut asked = request("count", MethodName::Sgpr, CalibrateName::Auto);
    set(&mut asked, json!({"held-back": 99, "inducing": 15, "iterations": 4}));
    let model = fitted(&train, &asked);
    assert!(model.process().unwrap().record().fit.likelihood().unwrap().intervals.is_some());
    let mut stream = StreamModel::start(Saved::from(model), 20).unwrap();
    let told = |stream: &StreamModel| {
        stream.model().report().unwrap()["header"]["fit"].get("intervals").is_some_and(|v| !v.is_null())
    };
    assert!(told(&stream));
    stream.learn(&table(50, 6), &(0..50).collect::<Vec<_>>()).unwrap();
    assert!(!told(&stream));
}
