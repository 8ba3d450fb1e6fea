//! Cox processes: intensities that events were drawn from, files, refusals.

use posterior::data::{Column, Table};
use posterior::linalg::random::Streams;
use posterior::models::{ModelData, Observed, Predicted, Question};
use posterior::optim::Signal;
use posterior::options::{InferenceName, LikelihoodName, Window};
use posterior::{FitRequest, Model, ModelError, Saved};
use rand::RngExt;
use serde_json::{Value, json};
use std::path::PathBuf;

const WINDOW: f64 = 10.0;

/// Two bumps on a low level, events for each unit of time; 8 + 120 √(2π) 0.8 + 60 √(2π) 1.2 of them and so on are expected.
fn intensity(t: f64) -> f64 {
    let bump = |at: f64, width: f64| (-0.5 * ((t - at) / width).powi(2)).exp();
    8.0 + 120.0 * bump(3.0, 0.8) + 60.0 * bump(7.5, 1.0)
}

/// Events of an intensity of at most `most` in a box, by thinning.
fn thinned(most: f64, sides: &[f64], seed: u64, rate: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let mut rng = Streams::new(seed).stream("thinning");
    let volume: f64 = sides.iter().product();
    let expected = most * volume;
    let count: f64 = rand_distr::Distribution::sample(&rand_distr::Poisson::new(expected).unwrap(), &mut rng);
    let mut out = Vec::new();
    for _ in 0..count as usize {
        let place: Vec<f64> = sides.iter().map(|side| side * rng.random::<f64>()).collect();
        if most * rng.random::<f64>() < rate(&place) {
            out.push(place);
        }
    }
    out
}

fn table(names: &[&str], events: &[Vec<f64>]) -> Table {
    let column = |(j, name): (usize, &&str)| Column::numeric(*name, events.iter().map(|e| e[j]).collect());
    Table::new("events.csv", names.iter().enumerate().map(column).collect())
}

/// A small network of so many inputs and outputs in a folder: the one that is taken by itself is made for tables of thousands of rows.
fn network(folder: &tempfile::TempDir, inputs: usize, outputs: usize) -> PathBuf {
    let path = folder.path().join(format!("{inputs}-{outputs}.toml"));
    let text = format!(
        "kind = 'residual_perceptron'\ninputs = {inputs}\nwidth = 24\nblocks = 2\noutputs = {outputs}\nactivation = 'tanh'\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn request(window: &str, method: Value) -> FitRequest {
    let mut options =
        json!({"rank": 32, "iterations": 2500, "batch": 256, "step-size": 0.003, "held-back": 50});
    options.as_object_mut().unwrap().extend(method.as_object().unwrap().clone());
    let mut request =
        FitRequest { method: serde_json::from_value(options).unwrap(), ..FitRequest::default() };
    request.output.window = Some(window.parse::<Window>().unwrap());
    request
}

fn fit(table: &Table, request: &FitRequest) -> Result<Model, ModelError> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    let observed = Observed::of_events(table, &rows, request)?;
    Model::fit_observed(observed, request, &mut |_, _| Signal::Continue)
}

fn question() -> Question {
    Question { memory: 4 << 30, ..Question::default() }
}

/// Mean intensities at places, and quantiles.
fn predicted(model: &Model, at: Table) -> (Vec<f64>, impl Fn(f64) -> Vec<f64>) {
    let found = model.predictive(&ModelData::of_table(at).unwrap(), &question()).unwrap();
    let Predicted::Moments { mean, .. } = found.predicted.clone() else { panic!("moments") };
    (mean, move |level| found.quantiles(level, true).unwrap())
}

#[test]
fn bumps_are_found_and_their_intensity_is_inside_its_intervals() {
    let events = thinned(140.0, &[WINDOW], 1, |t| intensity(t[0]));
    let count = events.len() as f64;
    let table = self::table(&["t"], &events);
    let grid: Vec<f64> = (0..200).map(|i| WINDOW * (i as f64 + 0.5) / 200.0).collect();
    // Whether the variance is corrected, without which learned features are too sure of themselves.
    let folder = tempfile::tempdir().unwrap();
    for (method, outputs, corrected) in [
        (json!({"method": "svdbk", "iterations": 3000, "step-size": 0.005}), 32, true),
        (json!({"method": "svdkl", "objective": "evidence", "rank": 16}), 2, false),
        (json!({"method": "dbk", "objective": "evidence"}), 32, false),
    ] {
        let what = method.to_string();
        let mut own = json!({"iterations": 600, "step-size": 0.01, "basis": network(&folder, 1, outputs)});
        own.as_object_mut().unwrap().extend(method.as_object().unwrap().clone());
        let method = own;
        let model = fit(&table, &request("t=0:10", method)).unwrap();
        let places = self::table(&["t"], &grid.iter().map(|t| vec![*t]).collect::<Vec<_>>());
        let (mean, quantiles) = predicted(&model, places);
        // The integral is a sum over places: within four deviations of a Poisson number, and as the model says.
        let integral: f64 = mean.iter().sum::<f64>() * WINDOW / 200.0;
        assert!((integral - count).abs() < 4.0 * count.sqrt(), "{what}: {integral} {count}");
        let features = model.process().unwrap().record().fit.likelihood().unwrap().features.as_ref().unwrap();
        assert!((features.expected_events.unwrap() / integral - 1.0).abs() < 0.01, "{what}: {features:?}");
        assert_eq!(features.learned.tried.len(), 1, "{what}");
        // The bumps: where they are and how high, within what 300 and 150 events can tell.
        let highest = |range: std::ops::Range<usize>| {
            range.clone().max_by(|a, b| mean[*a].total_cmp(&mean[*b])).map(|i| (grid[i], mean[i])).unwrap()
        };
        let (first, second) = (highest(0..100), highest(110..200));
        assert!((first.0 - 3.0).abs() < 0.5 && (first.1 / 128.0).ln().abs() < 0.3, "{what}: {first:?}");
        assert!((second.0 - 7.5).abs() < 0.7 && (second.1 / 68.0).ln().abs() < 0.35, "{what}: {second:?}");
        // Between them hardly anything.
        assert!(mean[108] < 45.0 && mean[2] < 40.0, "{what}: {} {}", mean[108], mean[2]);
        let (low, high) = (quantiles(0.025), quantiles(0.975));
        let inside =
            (0..200).filter(|&i| low[i] <= intensity(grid[i]) && intensity(grid[i]) <= high[i]).count();
        assert!(!corrected || inside >= 160, "{what}: {inside} of 200");
        assert!((0..200).all(|i| low[i] > 0.0 && low[i] < mean[i] && mean[i] < high[i]), "{what}");
        // Better than an even intensity: by at least half of what the true one is, in the mean over its events; and events that were held back say so within four standard errors of as many.
        let total: f64 = grid.iter().map(|t| intensity(*t)).sum();
        let over =
            |f: &dyn Fn(usize) -> f64| (0..200).map(|i| intensity(grid[i]) * f(i)).sum::<f64>() / total;
        let best = over(&|i| (intensity(grid[i]) * 200.0 / total).ln());
        let own = |i: usize| (mean[i] * WINDOW / integral).ln();
        let gain = over(&own);
        assert!(gain > 0.5 * best && gain < best, "{what}: {gain} {best}");
        let spread = over(&|i| (own(i) - gain).powi(2)).sqrt();
        let check = model.process().unwrap().record().fit.likelihood().unwrap().check.as_ref().unwrap();
        assert!(
            (-check.scores.nll - gain).abs() < 4.0 * spread / 50f64.sqrt(),
            "{what}: {check:?} {gain} {spread}"
        );
        assert!(check.rows == 50 && check.baseline_nll == 0.0, "{what}: {check:?}");
    }
}

#[test]
fn places_in_a_plane_are_learned_and_survive_their_file() {
    let rate = |p: &[f64]| 400.0 * (-0.5 * ((p[0] - 1.0).powi(2) + (p[1] - 0.7).powi(2)) / 0.09).exp() + 80.0;
    let events = thinned(480.0, &[2.0, 3.0], 2, rate);
    let table = table(&["x", "y"], &events);
    let folder = tempfile::tempdir().unwrap();
    let method = json!({"method": "svdbk", "objective": "evidence", "iterations": 1500, "step-size": 0.005, "basis": network(&folder, 2, 32)});
    let model = fit(&table, &request("x=0:2,y=0:3", method)).unwrap();
    let at = |x: f64, y: f64| predicted(&model, self::table(&["x", "y"], &[vec![x, y]])).0[0];
    let (bump, flat) = (at(1.0, 0.7), at(1.0, 2.5));
    assert!((bump / 480.0).ln().abs() < 0.4 && (flat / 80.0).ln().abs() < 0.5, "{bump} {flat}");
    // Columns may stand in another order, with others between them.
    let columns = ["y", "z", "x"].map(|n| Column::numeric(n, vec![if n == "x" { 1.0 } else { 0.7 }]));
    assert_eq!(predicted(&model, Table::new("p.csv", columns.into())).0[0], at(1.0, 0.7));

    let path = folder.path().join("m.posterior");
    model.save(&path).unwrap();
    let back = Saved::load(&path).unwrap().into_only().unwrap();
    let data = ModelData::of_table(table.clone()).unwrap();
    assert_eq!(model.predictive(&data, &question()).unwrap(), back.predictive(&data, &question()).unwrap());
    assert_eq!(model.described(), back.described());
    let described = model.described();
    for said in [
        "in the window x=0:2, y=0:3, a volume of 6",
        "events expected in the window",
        "more than an even intensity",
    ] {
        assert!(described.contains(said), "{said}: {described}");
    }
    // Draws are of the logarithm, and their exponentials have the mean intensity.
    let few = data.selected(&[0, 1]).unwrap();
    let draws = back.sample(&few, &Question { samples: 4000, ..question() }).unwrap().to_f64();
    let found = back.predictive(&few, &question()).unwrap();
    for i in 0..2 {
        let mean = draws.chunks(2).map(|d| d[i].exp()).sum::<f64>() / 4000.0;
        let error = found.latent_deviation[i] / 4000f64.sqrt();
        assert!((mean - found.latent_mean[i]).abs() < 6.0 * error, "{mean} {} {error}", found.latent_mean[i]);
    }
    let seen = back.trained_on(&data).unwrap().unwrap();
    assert_eq!(seen.seen.len(), events.len());
    // One column is drawn, two are not; no table has truths to score against.
    assert!(back.model_report().unwrap().posterior.is_none());
    let error = back.evaluate(&data, &Question { truth: true, ..question() }).unwrap_err().to_string();
    assert!(error.contains("no row of a table tells"), "{error}");
    let outside = ModelData::of_table(self::table(&["x", "y"], &[vec![1.0, 1.0], vec![1.0, 3.5]])).unwrap();
    let error = back.predictive(&outside, &question()).unwrap_err().to_string();
    assert!(error.contains("row 2, column `y`: 3.5 lies outside of the window 0 to 3"), "{error}");
}

#[test]
fn one_column_is_drawn_and_an_interrupted_fit_goes_on_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.checkpoint");
    let table = table(&["t"], &thinned(140.0, &[WINDOW], 3, |t| intensity(t[0])));
    let mut request = request("t=0:10", json!({"method": "svdbk", "iterations": 60}));
    let whole = fit(&table, &request).unwrap();
    let panel = whole.model_report().unwrap().posterior.unwrap();
    assert_eq!((panel.input.as_str(), panel.grid[0], *panel.grid.last().unwrap()), ("t", 0.0, 10.0));
    assert!(panel.mean.iter().all(|rate| *rate > 0.0) && panel.samples.len() == 6);
    let large = request.method.large_mut().unwrap();
    (large.checkpoint, large.checkpoint_every) = (Some(path.clone()), 1e9);
    let rows: Vec<usize> = (0..table.rows()).collect();
    let mut seen = 0;
    let observed = Observed::of_events(&table, &rows, &request).unwrap();
    let stopped = Model::fit_observed(observed, &request, &mut |_, _| {
        seen += 1;
        if seen == 40 { Signal::Stop } else { Signal::Continue }
    });
    assert!(matches!(stopped, Err(ModelError::Interrupted)) && path.exists());
    let resumed = fit(&table, &request).unwrap();
    assert!(
        resumed.process().unwrap().record().fit.likelihood().unwrap().features.as_ref().unwrap().resumed_from
            >= 38
    );
    let data = ModelData::of_table(table).unwrap();
    assert_eq!(
        whole.predictive(&data, &question()).unwrap(),
        resumed.predictive(&data, &question()).unwrap()
    );
}

#[test]
fn what_is_no_process_of_events_is_refused_with_its_place() {
    let events: Vec<Vec<f64>> = (0..40).map(|i| vec![0.1 + 0.2 * i as f64]).collect();
    let good = table(&["t"], &events);
    let quick = || request("t=0:10", json!({"method": "svdbk", "iterations": 5, "held-back": 4}));
    let with = |place: usize, value: f64| {
        let mut events = events.clone();
        events[place][0] = value;
        table(&["t"], &events)
    };
    for (bad, message) in [
        (with(6, -0.5), "events.csv, row 7, column `t`: -0.5 lies outside of the window 0 to 10"),
        (with(0, 10.5), "row 1, column `t`: 10.5 lies outside"),
        (with(3, f64::NAN), "row 4"),
        (table(&["t"], &events[..5]), "5 events are too few"),
        (table(&["x"], &events), "no column"),
    ] {
        let error = fit(&bad, &quick()).unwrap_err().to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
    // The same event twice is said, and not refused.
    let twice = fit(&with(1, 0.1), &quick()).unwrap();
    assert!(twice.notes().iter().any(|note| note.text().contains("1 event is where another is")));
    let refused = |change: &dyn Fn(&mut FitRequest)| {
        let mut request = quick();
        change(&mut request);
        fit(&good, &request).unwrap_err().to_string()
    };
    for (change, message) in [
        (
            &(|r: &mut FitRequest| r.output.window = None) as &dyn Fn(&mut FitRequest),
            "--window COLUMN=LOW:HIGH",
        ),
        (&|r| r.columns.target = "t".into(), "--target names what is predicted"),
        (&|r| r.columns.features = Some(vec!["t".into()]), "in place of --features"),
        (&|r| r.columns.exposure = Some("t".into()), "--exposure is of counts"),
        (&|r| r.output.row_weights = Some("t".into()), "--row-weights"),
        (&|r| r.output.inference = InferenceName::Laplace, "leave --inference out"),
        (&|r| r.method = posterior::options::MethodName::Svgp.into(), "svgp has no intensities"),
        (&|r| r.method = posterior::options::MethodName::Gvi.into(), "gvi has no intensities"),
        (&|r| r.method = posterior::options::MethodName::Auto.into(), "--method svdbk"),
        (&|r| r.output.window = Some("t=0:10,t=0:10".parse().unwrap()), "names the column `t` twice"),
        (&|r| r.output.window = Some("t=-1e308:1e308".parse().unwrap()), "volume"),
        (&|r| r.prior.initial_noise = Some(0.7), "--set prior.initial-noise"),
        (&|r| r.limits.memory = 1 << 20, "memory"),
    ] {
        let error = refused(change);
        assert!(error.contains(message), "{message}: {error}");
    }
    // A window says what the table is; beside a target it means nothing.
    assert!(quick().output.of_events());
    let mut other = quick();
    other.output.likelihood = LikelihoodName::Poisson;
    assert!(!other.output.of_events());
}
