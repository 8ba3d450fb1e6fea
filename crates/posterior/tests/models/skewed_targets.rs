//! Targets that are mapped before they are learned, noise that differs from place to place, rows that count as several.

use crate::options::set;
use posterior::data::{Column, Selection, Table, TargetTransform};
use posterior::linalg::random::Streams;
use posterior::models::{Hyperparameter, ModelData, Question};
use posterior::optim::Signal;
use posterior::options::{OutputRequest, PriorSettings, Start, TargetTransformName};
use posterior::{FitRequest, Model, ModelError};
use rand_distr::{Distribution, StandardNormal};
use serde_json::json;

fn normals(count: usize, name: &str) -> Vec<f64> {
    let mut rng = Streams::new(11).stream(name);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// Prices that scatter by a share of themselves, along one input.
fn prices(rows: usize) -> Table {
    let noise = normals(rows, "skewed/prices");
    let x: Vec<f64> = (0..rows).map(|i| 4.0 * (i as f64 + 0.5) / rows as f64).collect();
    let y = x.iter().zip(&noise).map(|(x, e)| (3.0 + (1.5 * x).sin() + 0.3 * e).exp()).collect();
    Table::new("prices", vec![Column::numeric("x", x), Column::numeric("price", y)])
}

fn request() -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "price".into(), ..Selection::default() },
        ..FitRequest::default()
    };
    set(&mut request, json!({"steps": 25}));
    request
}

fn fitted(table: &Table, rows: &[usize], request: &FitRequest) -> Model {
    Model::fit(table, rows, request, &mut |_, _| Signal::Continue).unwrap()
}

fn all(table: &Table) -> Vec<usize> {
    (0..table.rows()).collect()
}

#[test]
fn the_logarithm_of_a_price_is_learned_and_predictions_are_prices() {
    let table = prices(200);
    let (even, odd): (Vec<usize>, Vec<usize>) = all(&table).into_iter().partition(|i| i % 2 == 0);
    let own = fitted(&table, &even, &request());
    assert_eq!(
        own.process().unwrap().inputs().standardisation.transform.as_ref().unwrap().by,
        TargetTransform::Log,
        "{:?}",
        own.process().unwrap().record().fit.gaussian().unwrap().transform
    );

    // The same by hand: a table of logarithms, learned as they are under the same hyperparameters.
    let mut logs = table.clone();
    let y = table.column("price").unwrap().clone();
    let posterior::data::Values::Numeric(prices) = &y.values else { panic!("numbers") };
    logs.columns[1] = Column::numeric("price", prices.iter().map(|y| y.ln()).collect());
    let plain = FitRequest {
        start: Start::given(own.process().unwrap().record().hyperparameters.clone()),
        output: OutputRequest { target_transform: TargetTransformName::None, ..request().output },
        ..request()
    };
    let by_hand = fitted(&logs, &even, &plain);
    let [a, b] = [
        own.process().unwrap().predict_with_truth(&table, Some(&odd)),
        by_hand.process().unwrap().predict_with_truth(&logs, Some(&odd)),
    ];
    let (a, b) = (a.unwrap(), b.unwrap());
    for i in 0..odd.len() {
        let (m, v) = (b.mean[i], b.deviation[i].powi(2));
        assert!((a.mean[i] / (m + 0.5 * v).exp() - 1.0).abs() < 1e-9);
        assert!((a.deviation[i] / (a.mean[i] * v.exp_m1().sqrt()) - 1.0).abs() < 1e-7);
    }
    for level in [0.025, 0.5, 0.9] {
        for (own, log) in a.quantile(level).iter().zip(b.quantile(level)) {
            assert!((own / log.exp() - 1.0).abs() < 1e-9);
        }
    }
    // The density gains the slope of the logarithm; intervals hold the same truths.
    let scale = own.process().unwrap().inputs().standardisation.target_in_units().1;
    let (scores, other) = (a.scores(scale).unwrap(), b.scores(1.0).unwrap());
    let slopes: f64 = odd.iter().map(|&i| prices[i].ln()).sum::<f64>() / odd.len() as f64;
    assert!((scores.nll - other.nll - slopes).abs() < 1e-9, "{} {}", scores.nll, other.nll);
    assert_eq!((scores.coverage_95, scores.coverage_50), (other.coverage_95, other.coverage_50));

    // Draws are prices; and a file holds all of it.
    let draws = own.process().unwrap().sample(&table, &odd, 40, 3, 1 << 30).unwrap();
    assert!(draws.iter().flatten().all(|y| *y > 0.0));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    own.save(&path).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!(loaded.process().unwrap().predict_with_truth(&table, Some(&odd)).unwrap(), a);
    // What any model is asked, and its own scores.
    let evaluation = loaded
        .evaluate(
            &ModelData::of_table(table.select(&odd)).unwrap(),
            &Question { memory: 1 << 30, ..Question::default() },
        )
        .unwrap();
    let posterior::models::Scores::Values { scores: asked, nll } = evaluation.scores else {
        panic!("numbers")
    };
    assert!((asked.nll - scores.nll).abs() < 1e-12 && (nll - scores.nll).abs() < 1e-9);
    assert!(!evaluation.funnel.unwrap().is_sure());
}

#[test]
fn what_is_left_as_it_is_has_a_funnel_with_its_remedy() {
    let table = prices(300);
    let plain = FitRequest {
        output: OutputRequest { target_transform: TargetTransformName::None, ..request().output },
        ..request()
    };
    let own = fitted(&table, &all(&table), &plain);
    let check = own.process().unwrap().record().fit.gaussian().unwrap().check.as_ref().unwrap();
    let funnel = check.warnings.iter().find(|w| w.contains("funnel")).unwrap();
    assert!(
        funnel.contains("--target-transform log") && funnel.contains("--noise heteroscedastic"),
        "{funnel}"
    );
    let mapped = fitted(&table, &all(&table), &request());
    assert!(
        mapped
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .check
            .as_ref()
            .unwrap()
            .warnings
            .iter()
            .all(|w| !w.contains("funnel"))
    );
    let facts = mapped.facts().text();
    assert!(facts.lines().any(|row| row.starts_with("target: log price, by the evidence of")), "{facts}");
}

#[test]
fn a_target_without_a_logarithm_is_named() {
    let mut table = prices(30);
    if let posterior::data::Values::Numeric(prices) = &mut table.columns[1].values {
        prices[16] = 0.0;
    }
    let log = FitRequest {
        output: OutputRequest { target_transform: TargetTransformName::Log, ..request().output },
        ..request()
    };
    let error = Model::fit(&table, &all(&table), &log, &mut |_, _| Signal::Continue).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("row 17, column `price`: 0 has no log") && error.len() < 300, "{error}");
    let power = FitRequest {
        output: OutputRequest { target_transform: TargetTransformName::YeoJohnson, ..request().output },
        ..request()
    };
    let own = fitted(&table, &all(&table), &power);
    assert!(matches!(
        own.process().unwrap().inputs().standardisation.transform.as_ref().unwrap().by,
        TargetTransform::YeoJohnson { .. }
    ));
    // A truth that the map has no image of is named as well; where it is not asked for, it is predicted.
    let own = fitted(&prices(30), &all(&table), &log);
    let error = own.process().unwrap().predict_with_truth(&table, None).unwrap_err().to_string();
    assert!(error.contains("row 17, column `price`: 0 has no log") && error.len() < 300, "{error}");
    assert_eq!(own.process().unwrap().predict(&table, None).unwrap().mean.len(), 30);
}

#[test]
fn heteroscedastic_noise_is_learned_saved_and_predicted() {
    let (rows, noise) = (300, normals(300, "skewed/places"));
    let x: Vec<f64> = (0..rows).map(|i| 4.0 * (f64::from(i) + 0.5) / f64::from(rows)).collect();
    let deviation = |x: f64| 0.05 + 0.25 * x;
    let y = x.iter().zip(&noise).map(|(x, e)| (1.5 * x).sin() + deviation(*x) * e).collect();
    let table = Table::new("places", vec![Column::numeric("x", x.clone()), Column::numeric("price", y)]);
    let mut places = request();
    places.columns.noise = Some("heteroscedastic".into());
    let own = fitted(&table, &all(&table), &places);
    let plain = fitted(&table, &all(&table), &request());
    let predicted = own.process().unwrap().predict(&table, None).unwrap();
    // Root mean square of the logarithms' errors: a fifth, as 300 squares tell it.
    let off = |of: &posterior::models::Predictions| {
        let each = x.iter().zip(&of.deviation).map(|(x, s)| (s / deviation(*x)).ln().powi(2));
        (each.sum::<f64>() / f64::from(rows)).sqrt()
    };
    let (places_off, plain_off) =
        (off(&predicted), off(&plain.process().unwrap().predict(&table, None).unwrap()));
    assert!(places_off < 0.3 && plain_off > 0.6, "{places_off} {plain_off}");
    let nll = |own: &Model| {
        own.process().unwrap().record().fit.gaussian().unwrap().check.as_ref().unwrap().scores.nll
    };
    assert!(nll(&own) < nll(&plain) - 0.1, "{} {}", nll(&own), nll(&plain));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    own.save(&path).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!(loaded.process().unwrap().predict(&table, None).unwrap(), predicted);
    assert_eq!(loaded.process().unwrap().output().gaussian().unwrap().noise.as_ref().unwrap().rows, 300);
}

#[test]
fn weights_of_rows_are_rows_that_repeat() {
    let table = prices(40);
    let counts: Vec<f64> = (0..40).map(|i| f64::from(1 + i % 3)).collect();
    let mut weighted = table.clone();
    weighted.columns.push(Column::numeric("w", counts.clone()));
    let repeated: Vec<usize> = (0..40).flat_map(|i| vec![i; counts[i] as usize]).collect();
    let mut asked = FitRequest {
        output: OutputRequest { target_transform: TargetTransformName::None, ..request().output },
        prior: PriorSettings { kernel: "matern32(ard)".parse().unwrap(), ..request().prior },
        ..request()
    };
    let given = |name: &str, values: Vec<f64>| Hyperparameter { name: name.into(), values };
    asked.start = Start::given(vec![
        given("matern32.variance", vec![1.1]),
        given("matern32.lengthscale", vec![0.8]),
        given("mean.constant", vec![0.1]),
        given("noise_variance", vec![0.2]),
    ]);
    let mut weighing = asked.clone();
    weighing.output.row_weights = Some("w".into());
    let own = fitted(&weighted, &all(&weighted), &weighing);
    assert_eq!(own.process().unwrap().inputs().schema.feature_names(), ["x"]);
    // Standard units are those of the rows, which weights do not change: the same rows once each give them.
    let other = fitted(&table.select(&repeated), &(0..repeated.len()).collect::<Vec<_>>(), &asked);
    let units = |m: &Model| {
        (
            m.process().unwrap().inputs().standardisation.target_mean,
            m.process().unwrap().inputs().standardisation.target_scale,
        )
    };
    assert_ne!(units(&own), units(&other));
    // What is compared is in standard units, of one target.
    let exact = own.process().unwrap().predictor().exact().unwrap();
    let data = exact.data();
    let rows = data.select(&repeated).unwrap();
    let once = posterior::gp::Observations::new(rows.inputs().to_owned(), rows.targets().to_owned(), None);
    let again = exact.model().clone().condition(once.unwrap()).unwrap();
    assert!((again.log_evidence() - exact.log_evidence()).abs() < 1e-8);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    own.save(&path).unwrap();
    let loaded = Model::load(&path).unwrap();
    let read = loaded.process().unwrap().predictor().exact().unwrap();
    assert_eq!(read.data().weights(), Some(&counts[..]));

    // Other methods refuse, and so does a weight that is none.
    let mut bound = FitRequest { method: posterior::options::MethodName::Sgpr.into(), ..request() };
    bound.output.row_weights = Some("w".into());
    let refused = Model::fit(&weighted, &all(&weighted), &bound, &mut |_, _| Signal::Continue);
    assert!(matches!(refused, Err(ModelError::Request(why)) if why.contains("--method exact")));
    weighted.columns[2] = Column::numeric("w", vec![0.0; 40]);
    let refused = Model::fit(&weighted, &all(&weighted), &weighing, &mut |_, _| Signal::Continue);
    assert!(refused.unwrap_err().to_string().contains("weights are positive"));
}

/// Amounts of which four in five are 0: nothing is predicted below 0, zeros are scored by the probability that lies on them, and upper ends hold their share of all rows, though residuals lie on one side.
#[test]
fn amounts_end_at_zero() {
    let (rows, noise, chance) = (400, normals(400, "amounts/noise"), normals(400, "amounts/chance"));
    let x: Vec<f64> = (0..rows).map(|i| (i as f64 + 0.5) / rows as f64).collect();
    // P(Z > 0.84) is a fifth.
    let amount = |i: usize| if chance[i] > 0.84 { (5.0 + 0.5 * x[i] + noise[i]).exp() } else { 0.0 };
    let y: Vec<f64> = (0..rows).map(amount).collect();
    let table = Table::new("amounts", vec![Column::numeric("x", x), Column::numeric("price", y.clone())]);
    let (even, odd): (Vec<usize>, Vec<usize>) = all(&table).into_iter().partition(|i| i % 2 == 0);
    let model = fitted(&table, &even, &request());
    let process = model.process().unwrap();
    let support = process.inputs().standardisation.transform.as_ref().unwrap().support;
    assert_eq!((support.floor, support.ceiling), (Some(0.0), None));
    let found = process.predict_with_truth(&table, Some(&odd)).unwrap();
    let [low, high] = [0.01, 0.95].map(|level| found.quantile(level));
    assert!(low.iter().all(|q| *q == 0.0) && found.mean.iter().all(|mean| *mean >= 0.0));
    let below = odd.iter().zip(&high).filter(|(i, q)| y[**i] <= **q).count() as f64 / odd.len() as f64;
    // Three deviations of a share of 200 rows, twice: those that tell the end and those that are counted.
    assert!((below - 0.95).abs() < 3.0 * (2.0 * 0.05 * 0.95 / 200.0f64).sqrt(), "{below}");
    let scores = model.evaluate(
        &ModelData::of_table(table).unwrap().selected(&odd).unwrap(),
        &Question { truth: true, memory: 4 << 30, ..Question::default() },
    );
    assert!(
        matches!(scores.unwrap().scores, posterior::models::Scores::Values { nll, .. } if nll.is_finite())
    );
}

/// A 0 where a logarithm was learned counts as below half of the least training value.
#[test]
fn a_zero_under_a_logarithm_is_scored() {
    // Times that scatter so much that some come near 0.
    let y: Vec<f64> = normals(200, "amounts/times").iter().map(|e| (3.0 + 1.3 * e).exp()).collect();
    let mut table = prices(200);
    table.columns[1] = Column::numeric("price", y.clone());
    let least = y.iter().copied().fold(f64::INFINITY, f64::min);
    let model = fitted(&table, &all(&table), &request());
    let process = model.process().unwrap();
    let own = process.inputs().standardisation.transform.as_ref().unwrap();
    assert_eq!((own.by, own.support.floor), (TargetTransform::Log, Some(0.5 * least)));
    let fresh = |value| {
        let column = Column::numeric("price", vec![value; 200]);
        Table::new("fresh", vec![table.columns[0].clone(), column])
    };
    let found = process.predict_with_truth(&fresh(0.0), Some(&[7, 100])).unwrap();
    let mapped = found.mapped.as_ref().unwrap();
    let densities = mapped.log_densities(&[0.0, 0.0]);
    for k in 0..2 {
        // What lies below, by the quantiles of the prediction.
        let below = |level: f64| {
            mapped.map.back(
                mapped.mean[k]
                    + mapped.deviation[k]
                        * posterior::metrics::half_width_factor((2.0 * level - 1.0_f64).abs())
                        * (level - 0.5_f64).signum(),
            )
        };
        let p = densities[k].exp();
        assert!(p > 0.0 && (below(p).ln() - (0.5 * least).ln()).abs() < 1e-6, "{p}");
    }
    assert!(found.scores(1.0).unwrap().nll.is_finite());
    assert!(process.predict_with_truth(&fresh(-1.0), Some(&[7])).is_err());
}
