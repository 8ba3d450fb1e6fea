//! Intervals that are made to hold what they say, on rows that nothing has seen.

use crate::options::set;
use posterior::data::{Selection, Split, Table, synthetic};
use posterior::linalg::random::Streams;
use posterior::models::{Guarantee, Hyperparameter, Predictions};
use posterior::optim::Signal;
use posterior::options::{CalibrateName, MethodName, Start, Validation};
use posterior::{FitRequest, Model, ModelError};
use serde_json::{Value, json};

fn request(method: MethodName, calibrate: CalibrateName, options: Value) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: method.into(),
        validation: Validation { calibrate, ..Validation::default() },
        ..Default::default()
    };
    set(&mut request, options);
    request
}

fn fit(table: &Table, request: &FitRequest) -> Result<Model, ModelError> {
    let rows = Split::all(table.rows()).train;
    Model::fit(table, &rows, request, &mut |_, _| Signal::Continue)
}

/// Hyperparameters of a model that believes in a twenty-fifth of the noise.
fn too_sure(table: &Table) -> Vec<Hyperparameter> {
    let own = request(MethodName::Exact, CalibrateName::None, json!({"restarts": 1}));
    let mut found = fit(table, &own).unwrap().process().unwrap().record().hyperparameters.clone();
    let noise = found.iter_mut().find(|h| h.name == "noise_variance").unwrap();
    noise.values[0] /= 25.0;
    found
}

/// Share of truths between two quantiles.
fn share(predictions: &Predictions, level: f64) -> f64 {
    let ends = [0.5 - level / 2.0, 0.5 + level / 2.0].map(|at| predictions.quantile(at));
    let truths = predictions.truth.as_ref().unwrap();
    let inside = truths.iter().enumerate().filter(|(i, y)| (ends[0][*i]..=ends[1][*i]).contains(*y)).count();
    inside as f64 / truths.len() as f64
}

#[test]
fn models_that_are_too_sure_are_brought_to_what_they_say() {
    let table = synthetic::friedman(600, Streams::new(1));
    let fresh = synthetic::friedman(1500, Streams::new(2));
    let hyperparameters = too_sure(&table);
    for (method, options) in [
        (MethodName::Exact, json!({})),
        // Rows that are held back tell it.
        (MethodName::Sap, json!({"held-back": 200, "samples": 32, "random-features": 1000})),
        (
            MethodName::Sgpr,
            json!({"held-back": 200, "inducing": 60, "fixed-inducing": true, "iterations": 1}),
        ),
    ] {
        let asked = |calibrate| FitRequest {
            start: Start::given(hyperparameters.clone()),
            ..request(method, calibrate, options.clone())
        };
        let plain = fit(&table, &asked(CalibrateName::None)).unwrap();
        let model = fit(&table, &asked(CalibrateName::Auto)).unwrap();
        let own = model
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .recalibration
            .clone()
            .unwrap_or_else(|| panic!("{method:?}"));
        assert!(
            plain.process().unwrap().record().fit.gaussian().unwrap().recalibration.is_none()
                && own.factor > 1.3,
            "{method:?}: {own:?}"
        );
        // These hyperparameters have seen all rows.
        let none = if method == MethodName::Exact { Guarantee::LeaveOneOut } else { Guarantee::Given };
        assert_eq!(own.guarantee, none);
        // Of as many rows as tell it and as are judged: 3.3 of both standard errors.
        let [before, after] =
            [&plain, &model].map(|m| m.process().unwrap().predict_with_truth(&fresh, None).unwrap());
        let error = (own.spread.powi(2) + 0.95 * 0.05 / 1500.0).sqrt();
        assert!(share(&before, 0.95) < 0.95 - 5.0 * error, "{method:?}: {}", share(&before, 0.95));
        assert!((share(&after, 0.95) - 0.95).abs() < 3.3 * error, "{method:?}: {}", share(&after, 0.95));
        // Other levels have factors of their own.
        for level in [0.5, 0.8f64] {
            let error = (level * (1.0 - level) * (1.0 / own.rows as f64 + 1.0 / 1500.0)).sqrt();
            let found = share(&after, level);
            assert!((found - level).abs() < 3.3 * error, "{method:?}, {level}: {found}");
        }
        // The function is what it was, and deviations of observations are multiplied.
        assert_eq!((&after.mean, &after.latent_deviation), (&before.mean, &before.latent_deviation));
        for (a, b) in after.deviation.iter().zip(&before.deviation) {
            assert!((a / b - own.factor).abs() < 1e-12);
        }
        assert!(after.scores(1.0).unwrap().nll < before.scores(1.0).unwrap().nll);
        // What warned of narrow intervals says what became of them.
        let said = |model: &Model, what: &str| {
            Model::notes(model).iter().filter(|note| note.text().contains(what)).count()
        };
        assert_eq!((said(&plain, "too narrow"), said(&model, "too narrow")), (1, 0));
        assert_eq!((said(&plain, "recalibrated"), said(&model, "recalibrated")), (0, 1));
        assert!(own.sentence().contains("recalibrated") && own.sentence().contains("--calibrate none"));
        // Files keep it, to the last bit.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.posterior");
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded.process().unwrap().header(), model.process().unwrap().header());
        assert_eq!(loaded.process().unwrap().predict_with_truth(&fresh, None).unwrap(), after);
    }
}

#[test]
fn what_holds_what_it_says_stays_as_it_is() {
    let table = synthetic::friedman(300, Streams::new(1));
    let fresh = synthetic::friedman(40, Streams::new(2));
    let options = json!({"restarts": 1});
    let [auto, none, asked] = [CalibrateName::Auto, CalibrateName::None, CalibrateName::Conformal]
        .map(|calibrate| fit(&table, &request(MethodName::Exact, calibrate, options.clone())).unwrap());
    let predict = |model: &Model| model.process().unwrap().predict(&fresh, None).unwrap();
    assert_eq!(predict(&auto), predict(&none));
    // Asked for, it is done: by little where there is little to do.
    let own = asked.process().unwrap().record().fit.gaussian().unwrap().recalibration.clone().unwrap();
    assert!((own.factor - 1.0).abs() < 0.2 && own.guarantee == Guarantee::Folds, "{own:?}");
    assert_ne!(predict(&asked).deviation, predict(&none).deviation);
    // Rows that nothing was learned from and nothing chosen by: the guarantee holds.
    let held = json!({"held-back": 60, "inducing": 40, "iterations": 20});
    let own = fit(&table, &request(MethodName::Sgpr, CalibrateName::Conformal, held)).unwrap();
    let own = own.process().unwrap().record().fit.gaussian().unwrap().recalibration.clone().unwrap();
    assert_eq!((own.guarantee, own.rows), (Guarantee::Holds, 60));
    assert!(own.sentence().contains("a probability of 95 % at least"), "{}", own.sentence());
}

#[test]
fn without_rows_to_judge_by_there_is_nothing_to_go_by() {
    let table = synthetic::friedman(120, Streams::new(1));
    let few = json!({"held-back": 0, "inducing": 20, "iterations": 3});
    let asked = |calibrate| request(MethodName::Sgpr, calibrate, few.clone());
    let error = fit(&table, &asked(CalibrateName::Conformal)).unwrap_err().to_string();
    assert!(error.contains("--held-back"), "{error}");
    assert!(
        fit(&table, &asked(CalibrateName::Auto))
            .unwrap()
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .recalibration
            .is_none()
    );
    let few = synthetic::friedman(15, Streams::new(1));
    let exact = request(MethodName::Exact, CalibrateName::Conformal, json!({"restarts": 1}));
    let error = fit(&few, &exact).unwrap_err().to_string();
    assert!(error.contains("judged on 15") && !error.contains("--held-back"), "{error}");
}

/// A table that holds its rows twice: a row's copy says all about it, and nothing of rows to come.
#[test]
fn duplicates_do_not_make_a_fit_sure() {
    let (table, fresh) =
        (synthetic::friedman(300, Streams::new(1)), synthetic::friedman(1500, Streams::new(2)));
    let twice: Vec<usize> = (0..300).chain(0..300).collect();
    let twice = table.select(&twice);
    for (method, options) in [
        (MethodName::Exact, json!({"restarts": 1})),
        (MethodName::Sap, json!({"samples": 32, "random-features": 1000})),
    ] {
        let model = fit(&twice, &request(method, CalibrateName::Auto, options)).unwrap();
        let check = model.process().unwrap().record().fit.gaussian().unwrap().check.clone().unwrap();
        match method {
            MethodName::Exact => assert_eq!((check.rows, check.duplicates), (300, 300)),
            _ => assert!(check.duplicates > check.rows / 2 && check.training_duplicates == 0, "{check:?}"),
        }
        let factor = model
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .recalibration
            .as_ref()
            .map_or(1.0, |own| own.factor);
        assert!(factor > 0.9, "{method}: {factor}");
        let inside = share(&model.process().unwrap().predict_with_truth(&fresh, None).unwrap(), 0.95);
        assert!(inside > 0.9, "{method}: {inside}, factor {factor}");
        assert!(model.described().contains("left out with them"), "{}", model.described());
    }
}
