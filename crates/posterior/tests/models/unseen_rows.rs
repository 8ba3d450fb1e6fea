//! What a fit says of rows to come, and how rows are predicted that are unlike those of training: other categories, other groups, newer ones.

use posterior::data::{Column, Selection, Table, Values};
use posterior::linalg::random::Streams;
use posterior::models::{CheckedOn, FitCheck, Predictions};
use posterior::optim::Signal;
use posterior::{FitRequest, Model};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

fn request(target: &str) -> FitRequest {
    let selection = Selection { target: target.into(), ..Selection::default() };
    FitRequest { columns: selection, ..FitRequest::default() }
}

fn fitted(table: &Table, request: &FitRequest) -> Model {
    let rows: Vec<usize> = (0..table.rows()).collect();
    Model::fit(table, &rows, request, &mut |_, _| Signal::Continue).unwrap()
}

fn check(model: &Model) -> FitCheck {
    model.process().unwrap().record().fit.gaussian().unwrap().check.clone().unwrap()
}

/// Coverage of central 90 % intervals, and the root mean square error in standard deviations of the truths.
fn scores(predictions: &Predictions) -> [f64; 2] {
    let truths = predictions.truth.as_ref().unwrap();
    let [low, high] = [0.05, 0.95].map(|at| predictions.quantile(at));
    let n = truths.len() as f64;
    let inside = truths.iter().enumerate().filter(|(i, y)| (low[*i]..=high[*i]).contains(*y)).count() as f64;
    let mean = truths.iter().sum::<f64>() / n;
    let square = |others: &[f64]| truths.iter().zip(others).map(|(y, m)| (y - m).powi(2)).sum::<f64>();
    [inside / n, (square(&predictions.mean) / square(&vec![mean; truths.len()])).sqrt()]
}

fn text(name: &str, cells: Vec<String>) -> Column {
    Column { name: name.into(), values: Values::Text(cells.into_iter().map(Some).collect()) }
}

/// Sales of 40 shops with effects of deviation 1, by size: noise of 0.5.
fn sales(rows: usize, stream: &str) -> Table {
    let mut effects = Streams::new(5).stream("sales/effects");
    let effects: Vec<f64> = (0..40).map(|_| StandardNormal.sample(&mut effects)).collect();
    let mut rng = Streams::new(5).stream(stream);
    let (mut shops, mut sizes, mut sales) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (shop, size, noise): (usize, f64, f64) =
            (rng.random_range(0..40), rng.random_range(-1.5..1.5), StandardNormal.sample(&mut rng));
        shops.push(format!("S{shop:02}"));
        sizes.push(size);
        sales.push(effects[shop] + size + 0.5 * noise);
    }
    let numbers = [("size", sizes), ("sales", sales)].map(|(name, values)| Column::numeric(name, values));
    Table::new("sales", std::iter::once(text("shop", shops)).chain(numbers).collect())
}

/// A lengthscale for each of 40 columns of 0 and 1 covered 70 % of fresh rows, and the fit said 96 %.
#[test]
fn categories_of_few_rows_each_are_predicted_as_the_fit_says() {
    let (table, fresh) = (sales(100, "sales/old"), sales(800, "sales/new"));
    let model = fitted(&table, &request("sales"));
    let record = model.process().unwrap().record();
    assert_eq!(record.kernel.to_string(), "matern32(ard) * categorical(shop) + categorical(shop)");
    let found = model.process().unwrap().predict_with_truth(&fresh, None).unwrap();
    let [coverage, rmse] = scores(&found);
    // Three standard errors of 800 rows, and as much for the 100 that the model is of.
    assert!((0.84..=0.96).contains(&coverage), "{coverage}");
    // By the law: noise and what 2.5 rows leave of an effect, 0.5² (1 + 1/2.5) of 1 + 0.75 + 0.25.
    assert!(rmse < 0.55, "{rmse}");
    let said = check(&model);
    assert_eq!((said.on, said.rows), (CheckedOn::Folds, 100));
    let rows = found.truth.iter().flatten().zip(&found.mean).zip(&found.deviation);
    let inside = rows.filter(|((y, mean), own)| (**y - **mean).abs() <= 1.96 * **own).count() as f64 / 800.0;
    // Of 100 rows a share of 0.95 has a standard error of 0.022.
    assert!((said.scores.coverage_95 - inside).abs() < 3.0 * 0.023, "{} {inside}", said.scores.coverage_95);
    // A shop that nobody knows varies as shops do: 1 + 0.25 of variance beside the size.
    let mut unknown = fresh.select(&[0, 1, 2]);
    unknown.columns[0] = text("shop", ["X", "Y", "S00"].map(String::from).to_vec());
    let found = model.process().unwrap().predict_with_truth(&unknown, None).unwrap();
    let wide = &found.deviation;
    assert!((0.85..1.5).contains(&wide[0]) && wide[1] > 0.85 && wide[2] < 0.9 * wide[0], "{wide:?}");
}

/// Weights of animals in pens with effects of deviation 2, of which the feed of a pen says nothing; noise of 0.5.
fn pens(numbers: std::ops::Range<usize>) -> Table {
    let mut rng = Streams::new(9).stream(&format!("pens/{}", numbers.start));
    let (mut pens, mut feeds, mut weeks, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for pen in numbers {
        let (effect, feed): (f64, f64) = (StandardNormal.sample(&mut rng), rng.random_range(40.0..60.0));
        for week in 0..5 {
            let noise: f64 = StandardNormal.sample(&mut rng);
            pens.push(1000.0 + pen as f64);
            feeds.push(feed);
            weeks.push(f64::from(week));
            weights.push(100.0 + 2.0 * effect + 0.3 * f64::from(week) + 0.5 * noise);
        }
    }
    let columns = [("pen", pens), ("feed", feeds), ("week", weeks), ("weight", weights)];
    Table::new("pens", columns.map(|(name, values)| Column::numeric(name, values)).to_vec())
}

#[test]
fn rows_of_new_groups_are_predicted_as_the_fit_says() {
    let (table, fresh) = (pens(0..30), pens(500..700));
    // Nobody said it: the column is named, with the flag.
    let silent = fitted(&table, &request("weight"));
    let hints = &silent.process().unwrap().record().fit.gaussian().unwrap().data.hints;
    assert!(
        hints.iter().any(|hint| hint.contains("`pen` looks like") && hint.contains("--groups pen")),
        "{hints:?}"
    );
    let mut asked = request("weight");
    asked.columns.groups = Some("pen".into());
    let model = fitted(&table, &asked);
    assert!(model.process().unwrap().record().fit.gaussian().unwrap().data.hints.is_empty());
    let found = model.process().unwrap().predict_with_truth(&fresh, None).unwrap();
    let [coverage, rmse] = scores(&found);
    // 200 groups: a share of 0.9 of as many has a standard error of 0.02, and the deviation of 30 is known to 13 %.
    assert!((0.80..=0.97).contains(&coverage), "{coverage}");
    assert!(rmse < 1.05, "no better than the mean: {rmse}");
    // Groups are left out whole: the error is that of new ones, not of rows beside their own group.
    let said = check(&model);
    assert_eq!(said.on, CheckedOn::Folds);
    assert!(said.scores.rmse > 0.8 && check(&silent).scores.rmse < 0.5, "{said:?}");
    // The same predictions where the new table lacks the column.
    let mut without = fresh.clone();
    without.columns.remove(0);
    let blind = model.process().unwrap().predict_with_truth(&without, None).unwrap();
    assert_eq!((&blind.mean, &blind.deviation), (&found.mean, &found.deviation));
    // Known groups are known again.
    let known = model.process().unwrap().predict_with_truth(&table, None).unwrap();
    assert!(known.deviation[0] < 0.5 * found.deviation[0]);
}

/// A walk along days: what lies between known days is known, what follows is not.
#[test]
fn newer_rows_that_are_predicted_worse_are_told_of() {
    let days = |from: usize, to: usize| {
        let mut rng = Streams::new(3).stream("walk");
        let mut level = 0.0;
        let steps: Vec<f64> = (0..to)
            .map(|_| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                level += noise;
                level
            })
            .collect();
        let date = |day: usize| format!("2023-{:02}-{:02}", 1 + day / 28, 1 + day % 28);
        let numbers = Column::numeric("y", steps[from..to].to_vec());
        Table::new("walk", vec![text("day", (from..to).map(date).collect()), numbers])
    };
    let table = days(0, 120);
    let model = fitted(&table, &request("y"));
    let told = |model: &Model| check(model).warnings.iter().any(|text| text.contains("--time day"));
    assert!(told(&model), "{:?}", check(&model).warnings);
    // Judged in blocks of time, errors are those of newer rows.
    let mut asked = request("y");
    asked.columns.time = Some("day".into());
    let ahead = fitted(&table, &asked);
    let (own, other) = (check(&ahead), check(&model));
    assert!(!told(&ahead) && own.scores.rmse > 2.0 * other.scores.rmse, "{own:?}");
    assert!(own.rows < 120, "the first span only teaches");
}
