//! What columns do to predictions, against exchanged tables, joint covariances, draws, and what a likelihood predicts.

use crate::labelled;
use crate::options::set;
use posterior::data::{Column, Missing, Selection, Table, Values};
use posterior::models::{Dependence, Effects, ModelData, Place, PlaceUnit, Question, RowsOf};
use posterior::optim::Signal;
use posterior::options::{CalibrateName, InferenceName, MethodName, PriorSettings, Validation};
use posterior::{FitRequest, Model};
use serde_json::json;

const TOWNS: [&str; 3] = ["Hafen", "Nord", "Süd"];
const ROWS: usize = 60;
const Z95: f64 = 1.959_963_984_540_054;

/// Size (with gaps), town, a date, something without effect, and a price of all but that.
fn flats(rows: usize) -> Table {
    let at = |i: usize, k: f64| (i as f64 * k) % 1.0;
    let size = |i: usize| if i % 11 == 3 { f64::NAN } else { 20.0 + 90.0 * at(i, 0.618_034) };
    let town = |i: usize| (i * i + i / 3) % 3;
    let day = |i: usize| (27.0 * at(i, 0.754_878)) as usize + 1;
    let month = |i: usize| (12.0 * at(i, 0.531_7)) as usize + 1;
    let price = |i: usize| {
        let size = if size(i).is_nan() { 65.0 } else { size(i) };
        2.0 * size
            + 50.0 * town(i) as f64
            + 20.0 * (month(i) as f64 * 0.52).sin()
            + (i as f64 * 12.9898).sin()
    };
    let text = |of: &dyn Fn(usize) -> String| Values::Text((0..rows).map(|i| Some(of(i))).collect());
    Table::new(
        "flats",
        vec![
            Column::numeric("size", (0..rows).map(size).collect()),
            Column { name: "town".into(), values: text(&|i| TOWNS[town(i)].into()) },
            Column { name: "day".into(), values: text(&|i| format!("2021-{:02}-{:02}", month(i), day(i))) },
            Column::numeric("nothing", (0..rows).map(|i| at(i, 0.303)).collect()),
            Column::numeric("price", (0..rows).map(price).collect()),
        ],
    )
}

fn request(method: MethodName) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection {
            target: "price".into(),
            calendar: vec!["day".into()],
            missing: Missing::Indicator,
            ..Default::default()
        },
        method: method.into(),
        ..Default::default()
    };
    set(
        &mut request,
        json!({"steps": 15, "restarts": 1, "inducing": 20, "iterations": 30, "rank": 12, "batch": 64, "random-features": 200, "samples": 32, "precision": "f64"}),
    );
    request
}

fn fit(method: MethodName) -> Model {
    let rows: Vec<usize> = (0..ROWS).collect();
    Model::fit(&flats(ROWS), &rows, &request(method), &mut |_, _| Signal::Continue).unwrap()
}

/// The table with one column's cells replaced, row by row.
fn with(table: &Table, column: &str, values: Values) -> Table {
    let mut table = table.clone();
    let place = table.columns.iter().position(|c| c.name == column).unwrap();
    table.columns[place].values = values;
    table
}

/// The table with one column at one place everywhere; None where a place is no cell.
fn everywhere(table: &Table, curve: &Dependence, place: &Place) -> Option<Table> {
    let values = match (place, curve.unit) {
        (Place::Number(v), PlaceUnit::Column) => Values::Numeric(vec![*v; ROWS]),
        (Place::Category(name), _) if name == "(missing)" => Values::Numeric(vec![f64::NAN; ROWS]),
        (Place::Category(name), _) => Values::Text(vec![Some(name.clone()); ROWS]),
        _ => return None,
    };
    Some(with(table, &curve.column, values))
}

fn shares(effects: &Effects) -> Vec<(&str, f64, f64)> {
    effects.importance.iter().map(|i| (i.column.as_str(), i.share, i.standard_error)).collect()
}

/// Total effects over all pairs of rows of the table, by predictions of tables with exchanged cells.
fn by_tables(model: &Model, table: &Table, column: &str) -> f64 {
    let mean = |table: &Table| model.process().unwrap().predict(table, None).unwrap().mean;
    let own = mean(table);
    let centre = own.iter().sum::<f64>() / ROWS as f64;
    let variance = own.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (ROWS - 1) as f64;
    let cells = &table.column(column).unwrap().values;
    let mut sum = 0.0;
    for shift in 1..ROWS {
        let from = |i: usize| (i + shift) % ROWS;
        let moved = match cells {
            Values::Numeric(v) => Values::Numeric((0..ROWS).map(|i| v[from(i)]).collect()),
            Values::Text(v) => Values::Text((0..ROWS).map(|i| v[from(i)].clone()).collect()),
        };
        let found = mean(&with(table, column, moved));
        sum += own.iter().zip(found).map(|(a, b)| 0.5 * (a - b) * (a - b)).sum::<f64>();
    }
    sum / (ROWS * (ROWS - 1)) as f64 / variance
}

#[test]
fn importance_is_that_of_tables_whose_cells_are_exchanged() {
    let (table, model) = (flats(ROWS), fit(MethodName::Exact));
    let found = model.effects(None).unwrap().unwrap();
    assert_eq!((found.rows_of, found.rows, found.of), (RowsOf::Training, ROWS, ROWS));
    // One for each column of the table, whatever was made of it.
    assert_eq!(model.process().unwrap().inputs().schema.features.len(), 11);
    let shares = shares(&found);
    assert!(shares.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{shares:?}");
    let mut columns: Vec<&str> = shares.iter().map(|s| s.0).collect();
    assert_eq!((columns[0], columns[3]), ("size", "nothing"));
    columns.sort_unstable();
    assert_eq!(columns, ["day", "nothing", "size", "town"]);
    for (column, share, error) in shares {
        // 18 of the 59 partners of each row are drawn; what is left to chance is less than the standard error of new rows.
        let expected = by_tables(&model, &table, column);
        assert!((share - expected).abs() < 3.0 * error + 1e-9, "{column}: {share} +- {error}, {expected}");
    }
    assert_eq!(model.effects(None).unwrap().unwrap(), found);
}

#[test]
fn curves_are_averages_of_predictions_with_the_band_of_the_average() {
    let (table, model) = (flats(ROWS), fit(MethodName::Exact));
    let found = model.effects(None).unwrap().unwrap();
    assert_eq!(found.averaged_rows, ROWS);
    let scale = model.process().unwrap().inputs().standardisation.target_scale;
    let mut checked = 0;
    for curve in &found.dependence {
        let [output] = &curve.outputs[..] else { panic!("one target") };
        assert_eq!(output.name, "price");
        for (k, place) in curve.at.iter().enumerate() {
            let Some(moved) = everywhere(&table, curve, place) else { continue };
            let mean = model.process().unwrap().predict(&moved, None).unwrap().mean.iter().sum::<f64>()
                / ROWS as f64;
            // The whole covariance of all rows at once.
            let joint = model
                .process()
                .unwrap()
                .predictor()
                .joint(model.process().unwrap().standard_inputs(&moved).unwrap().as_ref())
                .unwrap()
                .unwrap();
            let sum: f64 = (0..ROWS).map(|j| joint.covariance.col(j).iter().sum::<f64>()).sum();
            let half = Z95 * scale * sum.sqrt() / ROWS as f64;
            let at = format!("{} {place:?}: {} {mean}", curve.column, output.mean[k]);
            assert!((output.mean[k] - mean).abs() < 1e-8 * mean.abs(), "{at}");
            for (end, expected) in [(output.lower[k], mean - half), (output.upper[k], mean + half)] {
                assert!((end - expected).abs() < 1e-5 * half + 1e-8, "{at} {end} {expected}");
            }
            checked += 1;
        }
    }
    // 25 sizes and a gap, three towns, 25 of nothing.
    assert_eq!(checked, 26 + 3 + 25);
    // A date moves along its days and through its cycles, which end where they began.
    let units: Vec<PlaceUnit> =
        found.dependence.iter().filter(|d| d.column == "day").map(|d| d.unit).collect();
    assert_eq!(units, [PlaceUnit::Days, PlaceUnit::MonthsOfYear, PlaceUnit::DaysOfWeek]);
    let year = found.dependence.iter().find(|d| d.unit == PlaceUnit::MonthsOfYear).unwrap();
    assert_eq!((&year.at[0], &year.at[24]), (&Place::Number(0.0), &Place::Number(12.0)));
    let mean = &year.outputs[0].mean;
    assert!((mean[0] - mean[24]).abs() < 1e-9 * mean[0].abs() && (mean[0] - mean[6]).abs() > 1.0, "{mean:?}");
}

#[test]
fn draws_scatter_as_the_band_says() {
    let (table, model) = (flats(ROWS), fit(MethodName::Exact));
    let found = model.effects(None).unwrap().unwrap();
    let curve = found.dependence.iter().find(|d| d.column == "town").unwrap();
    let rows: Vec<usize> = (0..ROWS).collect();
    for (k, place) in curve.at.iter().enumerate() {
        const DRAWS: usize = 2000;
        let moved = everywhere(&table, curve, place).unwrap();
        let draws = model.process().unwrap().sample(&moved, &rows, DRAWS, 5, 1 << 32).unwrap();
        let averages: Vec<f64> = draws.iter().map(|d| d.iter().sum::<f64>() / ROWS as f64).collect();
        let mean = averages.iter().sum::<f64>() / DRAWS as f64;
        let deviation =
            (averages.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / (DRAWS - 1) as f64).sqrt();
        let output = &curve.outputs[0];
        let expected = (output.upper[k] - output.lower[k]) / (2.0 * Z95);
        // Standard errors of a mean, σ/√S, and of a deviation, σ/√(2S); five of each.
        assert!((output.mean[k] - mean).abs() < 5.0 * expected / (DRAWS as f64).sqrt());
        assert!(
            (deviation / expected - 1.0).abs() < 5.0 / (2.0 * DRAWS as f64).sqrt(),
            "{deviation} {expected}"
        );
    }
}

#[test]
fn every_method_has_them_at_rows_of_its_own_or_at_those_given() {
    let table = flats(ROWS);
    let data = ModelData::of_table(table.clone()).unwrap();
    for (method, keeps) in [
        (MethodName::Cg, true),
        (MethodName::Sgpr, false),
        (MethodName::Svgp, false),
        (MethodName::Dbk, false),
        (MethodName::Gvi, false),
        (MethodName::Dkl, false),
    ] {
        let model = fit(method);
        assert_eq!(model.effects(None).unwrap().is_some(), keeps, "{method:?}");
        let found = model.effects(Some(&data)).unwrap().unwrap();
        assert_eq!(found.rows_of, if keeps { RowsOf::Training } else { RowsOf::Given }, "{method:?}");
        assert_eq!(found.importance.len(), 4, "{method:?}");
        let scale = model.process().unwrap().inputs().standardisation.target_scale;
        let curve = found.dependence.iter().find(|d| d.column == "town").unwrap();
        let output = &curve.outputs[0];
        let towns: Vec<usize> = (0..model.process().unwrap().inputs().schema.features.len())
            .filter(|j| model.process().unwrap().inputs().schema.features[*j].column() == "town")
            .collect();
        for (k, place) in curve.at.iter().enumerate() {
            // A method may hold rows back to judge by: of its own it has those that are left.
            let given =
                model.process().unwrap().standard_inputs(&everywhere(&table, curve, place).unwrap()).unwrap();
            let mut x = model
                .process()
                .unwrap()
                .predictor()
                .training_inputs()
                .map_or(given.clone(), |own| own.to_owned());
            let n = x.nrows();
            assert_eq!((found.of, found.averaged_rows), (n, n), "{method:?}");
            towns.iter().for_each(|&j| (0..n).for_each(|i| x[(i, j)] = given[(0, j)]));
            let joint = model.process().unwrap().predictor().joint(x.as_ref()).unwrap().unwrap();
            let back = |z: f64| model.process().unwrap().inputs().standardisation.target_back(z);
            let mean = back(joint.mean.col(0).iter().sum::<f64>() / n as f64);
            let sum: f64 = (0..n).map(|j| joint.covariance.col(j).iter().sum::<f64>()).sum();
            let half = Z95 * scale * sum.max(0.0).sqrt() / n as f64;
            // Rows of another order, and of one method other features of random numbers: sums in single precision.
            assert!((output.mean[k] - mean).abs() < 1e-6 * scale, "{method:?} {} {mean}", output.mean[k]);
            let found = 0.5 * (output.upper[k] - output.lower[k]);
            assert!((found - half).abs() < 1e-4 * half + 1e-6 * scale, "{method:?} {found} {half}");
        }
        // What was planned is what was asked.
        let plan =
            model.plan_model_report(&Question { memory: 1 << 33, ..Question::default() }).unwrap().unwrap();
        assert!(plan.rows > 0 && plan.peak_bytes > 0, "{plan:?}");
        assert!(model.plan_model_report(&Question { memory: 1 << 10, ..Question::default() }).is_err());
    }
}

#[test]
fn few_rows_and_constants_say_why_there_is_nothing() {
    let small = |rows: usize, slope: f64| {
        let y: Vec<f64> = (0..rows).map(|i| i as f64).collect();
        let x = y.iter().map(|y| slope * y).collect();
        let table = Table::new("t", vec![Column::numeric("x", x), Column::numeric("y", y)]);
        let mut request = FitRequest {
            columns: Selection { target: "y".into(), ..Default::default() },
            method: MethodName::Exact.into(),
            prior: PriorSettings { kernel: "se".parse().unwrap(), ..PriorSettings::default() },
            ..Default::default()
        };
        set(&mut request, json!({"steps": 5, "restarts": 1}));
        let all: Vec<usize> = (0..rows).collect();
        let model = Model::fit(&table, &all, &request, &mut |_, _| Signal::Continue).unwrap();
        model.effects(None).unwrap().unwrap()
    };
    let few = small(8, 1.0);
    assert!(few.importance.is_empty() && few.left_out.unwrap().contains("of 8 rows"), "few rows");
    let flat = small(20, 0.0);
    assert!(
        flat.dependence.is_empty() && flat.left_out.unwrap().contains("the same at all 20 rows"),
        "constant"
    );
    // A model of one column is a function of it alone: all of the variance, and its own posterior.
    let one = small(20, 1.0);
    assert_eq!((one.averaged_rows, one.importance.len(), one.dependence.len()), (1, 1, 1));
    assert!((one.importance[0].share - 1.0).abs() < 3.0 * one.importance[0].standard_error + 0.1);
}

/// Counts or classes of a number and a town.
fn labels(rows: usize, classes: Option<usize>) -> Table {
    let at = |i: usize| (i as f64 * 0.618_034) % 1.0;
    let level = |i: usize| 2.0 * at(i) + 0.8 * ((i * i) % 3) as f64 + 0.3 * (i as f64 * 12.9898).sin();
    let label = match classes {
        Some(classes) => Values::Text(
            (0..rows)
                .map(|i| Some(["low", "middle", "top"][(level(i) as usize).min(classes - 1)].into()))
                .collect(),
        ),
        None => Values::Numeric((0..rows).map(|i| (2.0 * level(i)).round().max(0.0)).collect()),
    };
    let town = (0..rows).map(|i| Some(TOWNS[(i * i) % 3].into())).collect();
    Table::new(
        "labels",
        vec![
            Column::numeric("size", (0..rows).map(at).collect()),
            Column { name: "town".into(), values: Values::Text(town) },
            Column { name: "label".into(), values: label },
        ],
    )
}

#[test]
fn averages_of_classes_and_counts_are_those_of_what_is_predicted() {
    for (classes, inference) in [
        (Some(2), InferenceName::Laplace),
        (Some(3), InferenceName::Gaussianised),
        (Some(3), InferenceName::Variational),
        (None, InferenceName::Variational),
    ] {
        let table = labels(ROWS, classes);
        let mut request = FitRequest {
            columns: Selection { target: "label".into(), ..Default::default() },
            prior: PriorSettings { kernel: "se(ard)".parse().unwrap(), ..PriorSettings::default() },
            validation: Validation { calibrate: CalibrateName::None, ..Validation::default() },
            ..Default::default()
        };
        request.output.inference = inference;
        if classes.is_none() {
            request.output.likelihood = posterior::options::LikelihoodName::Poisson;
        }
        set(&mut request, json!({"steps": 10, "restarts": 1, "inducing": 15, "iterations": 60}));
        let rows: Vec<usize> = (0..ROWS).collect();
        let model = labelled::fit(&table, &rows, &request).unwrap();
        let data = ModelData::of_table(table.clone()).unwrap();
        let found = model.effects(Some(&data)).unwrap().unwrap();
        assert_eq!(found.importance.len(), 2, "{inference:?}");
        let curve = found.dependence.iter().find(|d| d.column == "town").unwrap();
        let shown = match classes {
            Some(2) => vec![1],
            Some(count) => (0..count).collect(),
            None => vec![0],
        };
        assert_eq!(curve.outputs.len(), shown.len());
        for (k, place) in curve.at.iter().enumerate() {
            let moved = ModelData::of_table(everywhere(&table, curve, place).unwrap()).unwrap();
            let predicted = model.predictive(&moved, &labelled::question(false)).unwrap();
            for (output, class) in curve.outputs.iter().zip(&shown) {
                let values: Vec<f64> = match (&predicted.predicted, predicted.probabilities()) {
                    (_, Some(p)) => p.chunks(predicted.width).map(|row| row[*class]).collect(),
                    (posterior::models::Predicted::Moments { mean, .. }, None) => mean.clone(),
                    _ => panic!("probabilities or means"),
                };
                let expected = values.iter().sum::<f64>() / ROWS as f64;
                let [lower, mean, upper] = [output.lower[k], output.mean[k], output.upper[k]];
                assert!(lower <= mean && mean <= upper, "{lower} {mean} {upper}");
                // The mean of 400 draws whose deviation is about a quarter of the band, five standard errors; what is predicted of several classes may itself be of draws, of deviation ½ at most, 1000 for each of the 60 rows.
                let error = 5.0 * (0.25 * (upper - lower) / 400f64.sqrt() + 0.5 / 60_000f64.sqrt());
                assert!(
                    (mean - expected).abs() < error,
                    "{inference:?} {classes:?} {mean} {expected} {error}"
                );
                assert!(classes.is_none() || (0.0..=1.0).contains(&lower) && upper <= 1.0 + 1e-12);
            }
        }
    }
}
