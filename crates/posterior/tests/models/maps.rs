//! Maps of fitted processes: the prior's covariance whatever the method, predictions over the plane, and that reports stay small.

use crate::options::set;
use faer::Mat;
use posterior::data::{Column, Selection, Split, Table, Values, synthetic};
use posterior::linalg::random::Streams;
use posterior::linear::low_rank::ResidualVariance;
use posterior::models::Question;
use posterior::optim::Signal;
use posterior::options::MethodName;
use posterior::report::{RegressionReport, Report};
use posterior::{FitRequest, Model};
use serde_json::{Value, json};

fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match &table.column(name).unwrap().values {
        Values::Numeric(values) => values.clone(),
        _ => panic!("{name} is no column of numbers"),
    }
}

/// The first columns of Friedman's problem, whose inputs are uniform on [0, 1], with its target.
fn table(inputs: usize, rows: usize) -> Table {
    let all = synthetic::friedman(rows, Streams::new(3));
    let names = (1..=inputs).map(|j| format!("x{j}")).chain(["y".to_string()]);
    Table::new("t", names.map(|name| Column::numeric(name.clone(), numbers(&all, &name))).collect())
}

fn fit(method: MethodName, change: Value, inputs: usize) -> Model {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: method.into(),
        ..Default::default()
    };
    if matches!(method, MethodName::Dbk | MethodName::Svdbk) {
        set(&mut request, json!({"iterations": 30, "rank": 12, "batch": 64}));
    } else {
        request.prior.kernel = "se(ard)".parse().unwrap();
    }
    set(&mut request, change);
    let table = table(inputs, 150);
    let rows = Split::all(table.rows()).train;
    Model::fit(&table, &rows, &request, &mut |_, _| Signal::Continue).unwrap()
}

/// The squared exponential kernel of the model's hyperparameters at standardised rows.
fn squared_exponential(model: &Model, x: &Mat<f64>, i: usize, j: usize) -> f64 {
    let of = |end: &str| {
        let found = model.process().unwrap().record().hyperparameters.iter().find(|h| h.name.ends_with(end));
        &found
            .unwrap_or_else(|| panic!("{end}: {:?}", model.process().unwrap().record().hyperparameters))
            .values
    };
    let lengths = of("lengthscale");
    let square = |k: usize| ((x[(i, k)] - x[(j, k)]) / lengths[k]).powi(2);
    of("se.variance")[0] * (-0.5 * (0..x.ncols()).map(square).sum::<f64>()).exp()
}

fn inputs(model: &Model, inputs: usize) -> Mat<f64> {
    model.process().unwrap().standard_inputs(&table(inputs, 40)).unwrap()
}

#[test]
fn the_prior_of_every_method_with_a_kernel_is_its_kernel() {
    for (method, change, tolerance) in [
        (MethodName::Exact, json!({}), 1e-12),
        (MethodName::Sgpr, json!({"inducing": 20, "steps": 5}), 1e-12),
        (MethodName::Svgp, json!({"inducing": 20, "iterations": 20}), 1e-12),
        (MethodName::Cg, json!({"precision": "f64", "random-features": 100, "samples": 4}), 1e-12),
        // Single precision, of which distances keep six digits.
        (
            MethodName::Sdd,
            json!({"precision": "f32", "iterations": 50, "random-features": 100, "samples": 4}),
            1e-5,
        ),
    ] {
        let model = fit(method, change, 2);
        let x = inputs(&model, 2);
        let prior = model.process().unwrap().predictor().prior().unwrap();
        let gram = prior.gram(x.as_ref()).unwrap();
        let variances = prior.variances(x.as_ref()).unwrap();
        let cross = prior.cross(x.as_ref().subrows(0, 5), x.as_ref()).unwrap();
        let scale = variances[0];
        for i in 0..40 {
            for j in 0..40 {
                let expected = squared_exponential(&model, &x, i, j);
                assert!((gram[(i, j)] - expected).abs() < tolerance * scale, "{method} {i} {j}");
                assert_eq!(gram[(i, j)], gram[(j, i)], "{method}");
            }
            assert!((variances[i] - gram[(i, i)]).abs() <= tolerance * scale, "{method}");
            (0..5)
                .for_each(|k| assert!((cross[(k, i)] - gram[(k, i)]).abs() <= tolerance * scale, "{method}"));
        }
    }
}

#[test]
fn the_prior_of_learned_features_is_their_product_and_what_they_leave_out() {
    for (method, change) in [
        (MethodName::Dbk, json!({"objective": "evidence", "correction": "none"})),
        (MethodName::Svdbk, json!({"objective": "evidence", "correction": "full"})),
        (MethodName::Svdkl, json!({"objective": "evidence", "iterations": 30, "rank": 12, "batch": 64})),
    ] {
        let model = fit(method, change, 2);
        let x = inputs(&model, 2);
        let posterior = model.process().unwrap().predictor().low_rank().unwrap();
        let values = posterior.features().values(x.as_ref()).unwrap();
        let product = |i: usize, j: usize| -> f64 {
            (0..12).map(|k| values.features[(k, i)] * values.features[(k, j)]).sum()
        };
        let prior = model.process().unwrap().predictor().prior().unwrap();
        let gram = prior.gram(x.as_ref()).unwrap();
        let variances = prior.variances(x.as_ref()).unwrap();
        let cross = prior.cross(x.as_ref(), x.as_ref()).unwrap();
        for i in 0..40 {
            let left_out = match posterior.residual_variance() {
                ResidualVariance::None => 0.0,
                ResidualVariance::Uniform { largest } => (largest - product(i, i)).max(0.0),
                ResidualVariance::Own => (values.variances[i] - product(i, i)).max(0.0),
            };
            let expected = product(i, i) + left_out;
            assert!((gram[(i, i)] - expected).abs() < 1e-10 * expected, "{method}");
            assert!((variances[i] - expected).abs() < 1e-10 * expected, "{method}");
            for j in 0..40 {
                // What is left out is independent from place to place.
                assert!((cross[(i, j)] - product(i, j)).abs() < 1e-10 * expected, "{method}");
                assert!(i == j || (gram[(i, j)] - cross[(i, j)]).abs() < 1e-12 * expected, "{method}");
            }
        }
        let corrected = !matches!(posterior.residual_variance(), ResidualVariance::None);
        assert_eq!(corrected, method != MethodName::Dbk, "{method}");
    }
}

#[test]
fn one_input_has_a_map_of_its_covariance() {
    for method in [MethodName::Exact, MethodName::Svdbk] {
        let model = fit(method, json!({}), 1);
        let grid: Vec<f64> = (0..30).map(|i| f64::from(i) / 29.0).collect();
        let [covariance, correlation] = model.process().unwrap().kernel_panels(&grid).unwrap().unwrap();
        let x = model
            .process()
            .unwrap()
            .standard_inputs(&Table::new("g", vec![Column::numeric("x1", grid.clone())]))
            .unwrap();
        let square = model.process().unwrap().inputs().standardisation.target_scale.powi(2);
        let variances = model.process().unwrap().predictor().prior().unwrap().variances(x.as_ref()).unwrap();
        for i in 0..30 {
            assert!((correlation.values[31 * i] - 1.0).abs() < 1e-12, "{method:?}");
            assert!((covariance.values[31 * i] / (square * variances[i]) - 1.0).abs() < 1e-10);
            for j in 0..30 {
                assert_eq!(covariance.values[30 * i + j], covariance.values[30 * j + i], "{method:?}");
                assert!(correlation.values[30 * i + j].abs() <= 1.0 + 1e-12);
                if method == MethodName::Exact {
                    let expected = square * squared_exponential(&model, &x, i, j);
                    assert!((covariance.values[30 * i + j] - expected).abs() < 1e-10 * square);
                }
            }
        }
        assert!(model.process().unwrap().map_panels((&grid, &grid), &[]).unwrap().is_none());
        let model_report = model.model_report().unwrap();
        assert_eq!((model_report.posterior.is_some(), model_report.maps.len()), (true, 1));
        let report = RegressionReport {
            posterior: model_report.posterior,
            maps: model_report.maps,
            ..Default::default()
        };
        let html = Report::new("t", "", vec![report.into()]).to_html();
        assert!(html.len() < 500_000 && html.contains("Which places go together"), "{}", html.len());
        assert_eq!(html.matches("class=\"map\"").count(), 2);
    }
}

#[test]
fn two_inputs_have_maps_of_predictions_and_of_what_is_near() {
    for method in [MethodName::Exact, MethodName::Svgp, MethodName::Svdbk] {
        let change =
            if method == MethodName::Svgp { json!({"inducing": 20, "iterations": 20}) } else { json!({}) };
        let model = fit(method, change, 2);
        // Networks compute in single precision, and round differently in company.
        let scale = model.process().unwrap().inputs().standardisation.target_scale;
        let tolerance = if method == MethodName::Svdbk { 1e-5 * scale } else { 1e-9 };
        let (grid_x, grid_y) = (vec![0.1, 0.4, 0.7], vec![0.2, 0.9]);
        let place = [0.4, 0.9];
        let panels =
            model.process().unwrap().map_panels((&grid_x, &grid_y), &[("here", place)]).unwrap().unwrap();
        let at = |points: [Vec<f64>; 2]| {
            let [a, b] = points;
            Table::new("g", vec![Column::numeric("x2", b), Column::numeric("x1", a)])
        };
        for (k, (x, y)) in
            [(0.1, 0.2), (0.4, 0.2), (0.7, 0.2), (0.1, 0.9), (0.4, 0.9), (0.7, 0.9)].into_iter().enumerate()
        {
            let found = model.process().unwrap().predict(&at([vec![x], vec![y]]), None).unwrap();
            assert!((panels[0].values[k] - found.mean[0]).abs() < tolerance, "{method}");
            assert!((panels[1].values[k] - found.latent_deviation[0]).abs() < tolerance, "{method}");
            let rows = model
                .process()
                .unwrap()
                .standard_inputs(&at([vec![place[0], x], vec![place[1], y]]))
                .unwrap();
            let near = panels[2].values[k];
            assert!(near.abs() <= 1.0 + 1e-9, "{method}");
            if method != MethodName::Svdbk {
                let expected =
                    squared_exponential(&model, &rows, 0, 1) / squared_exponential(&model, &rows, 0, 0);
                assert!((near - expected).abs() < 1e-9, "{method}: {near} {expected}");
            }
        }
        assert_eq!(panels[2].mark, Some((0.4, 0.9)));
        let densest = model.process().unwrap().inputs().densest.unwrap();
        assert!(densest.iter().all(|v| (0.0..=1.0).contains(v)), "{densest:?}");
        let model_report = model.model_report().unwrap();
        assert!(model_report.posterior.is_none());
        assert_eq!(model_report.maps.iter().map(|m| m.panels.len()).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(model_report.maps[1].panels[0].mark, Some((densest[0], densest[1])));
        // Rows are shown where the model keeps them.
        assert_eq!(model_report.maps[0].points_x.len(), if method == MethodName::Exact { 150 } else { 0 });
        // The places are planned for, as rows are.
        let places = model_report.maps[0].grid_x.len() * model_report.maps[0].grid_y.len();
        let planned = model.plan_model_report(&Question { memory: 1 << 30, ..Question::default() });
        let planned = planned.unwrap().unwrap();
        // Beside the rows at which effects of columns are asked for.
        assert!(planned.rows >= places && places == 48 * 48 && planned.flops > 0.0, "{planned:?}");
        let report = RegressionReport { maps: model_report.maps, ..Default::default() };
        let html = Report::new("t", "", vec![report.into()]).to_html();
        assert!(html.len() < 500_000 && html.matches("class=\"map\"").count() == 4, "{}", html.len());
    }
    let three = fit(MethodName::Exact, json!({}), 3);
    assert!(
        three.model_report().unwrap().maps.is_empty() && three.process().unwrap().inputs().densest.is_none()
    );
    assert!(three.process().unwrap().kernel_panels(&[0.0, 1.0]).unwrap().is_none());
    let planned =
        three.plan_model_report(&Question { memory: 1 << 30, ..Question::default() }).unwrap().unwrap();
    assert!(planned.rows > 0 && three.plan_model_report(&Question::default()).is_err());
}
