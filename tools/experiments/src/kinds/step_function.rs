//! A function with jumps in one dimension by processes with and without learned features: what each believes, what it takes for near, and what its error bars are worth.
//!
//! Serves figure 1 of the deep basis kernels.

use super::Checked;
use crate::context::Context;
use crate::error::{ExperimentError, refused};
use crate::gaussian::MethodSettings;
use crate::learned::{FitSettings, SCORES, check_learned, put_scores};
use crate::measured::{Measured, NumberTable};
use crate::toy::{JUMPS, mean, steps};
use posterior_data::{Column, Selection, Table};
use posterior_kernels::KernelExpression;
use posterior_linalg::random::Streams;
use posterior_metrics::RegressionScores;
use posterior_models::options::{OutputRequest, TargetTransformName};
use posterior_models::{FitRequest, Prepared};
use posterior_report::{
    Item, Plane, PlanePanel, PosteriorPanel, PosteriorPanels, SummaryRow, TitledPosterior,
};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Settings of the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Training rows, uniform on [-1, 1].
    rows: usize,
    /// Test rows.
    test: usize,
    /// Variance of the noise.
    noise_variance: f64,
    /// Points of the grid on which posteriors are seen.
    grid: usize,
    /// Places on each side of the maps of covariances.
    kernel_grid: usize,
    /// The kernel of methods that have one.
    kernel: Option<KernelExpression>,
    /// Most seconds of each fit.
    seconds: Option<f64>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        check_learned(&self.methods, self.seconds)?;
        if self.rows < 10 || self.test == 0 || self.rows.max(self.test) > 1_000_000 {
            return refused("`rows` are at least 10, `test` rows at least 1, each at most a million");
        }
        if !(self.noise_variance >= 0.0 && self.noise_variance.is_finite()) {
            return refused("`noise_variance` is finite and not negative");
        }
        if !(50..=5000).contains(&self.grid) || !(10..=512).contains(&self.kernel_grid) {
            return refused("`grid` is between 50 and 5000, `kernel_grid` between 10 and 512");
        }
        Ok(())
    }
}

/// Rows of the function with noise, as a table of `x` and `y`.
fn draw(rows: usize, noise_variance: f64, streams: Streams, name: &str) -> Table {
    let mut rng = streams.stream(name);
    let noise = noise_variance.sqrt();
    let (mut x, mut y) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for _ in 0..rows {
        let at = rng.random_range(-1.0..1.0);
        let e: f64 = StandardNormal.sample(&mut rng);
        x.push(at);
        y.push(steps(at) + noise * e);
    }
    Table::new("a function with jumps", vec![Column::numeric("x", x), Column::numeric("y", y)])
}

/// Points from -1 to 1.
fn even(count: usize) -> Vec<f64> {
    (0..count).map(|i| -1.0 + 2.0 * i as f64 / (count - 1) as f64).collect()
}

/// What one method found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    scores: RegressionScores,
    seconds: f64,
    mean: Vec<f64>,
    /// Of the function.
    deviation: Vec<f64>,
    /// Of a new observation.
    observed: Vec<f64>,
    /// Covariance and correlation of its prior.
    kernel: [PlanePanel; 2],
    /// Of learned features: the way of training.
    chosen: Option<String>,
}

fn fit(
    settings: &Settings,
    method: &MethodSettings,
    (train, test): (&Table, &Table),
    context: &mut Context<'_>,
) -> Result<Found, ExperimentError> {
    let request = FitRequest {
        columns: Selection { target: "y".into(), ..Selection::default() },
        output: OutputRequest {
            // As published: targets as they are.
            target_transform: TargetTransformName::None,
            ..OutputRequest::default()
        },
        ..FitRequest::default()
    };
    let prepared = Prepared::from_table(train, &(0..train.rows()).collect::<Vec<_>>(), &request)?;
    let asked = FitSettings {
        kernel: settings.kernel.as_ref(),
        seconds: settings.seconds,
        memory: request.limits.memory,
        seed: context.seed,
    };
    let model = method.learn(prepared, &asked, &method.name, context)?;
    let Some(process) = model.process() else { return refused("it is a process") };
    let scores = process.predict_with_truth(test, None)?.scores(1.0)?;
    let grid = even(settings.grid);
    let found = process.predict(&Table::new("grid", vec![Column::numeric("x", grid)]), None)?;
    let Some(kernel) = process.kernel_panels(&even(settings.kernel_grid))? else {
        return refused("a process of one input has a covariance");
    };
    let Some(summary) = process.record().fit.gaussian() else { return refused("its targets are numbers") };
    let chosen = summary.scalable.as_ref().and_then(|s| s.deep.as_ref()).map(|d| d.chosen.clone());
    Ok(Found {
        scores,
        seconds: summary.seconds,
        mean: found.mean,
        deviation: found.latent_deviation,
        observed: found.deviation,
        kernel,
        chosen,
    })
}

/// How far from a jump counts as near it.
const NEAR: f64 = 0.05;

/// The plateau of a place.
fn plateau(x: f64) -> usize {
    JUMPS.iter().filter(|jump| x > **jump).count()
}

/// Mean correlations of pairs of places that are 0.1 to 0.3 apart: of those on one plateau, and of those with a jump between them. Distances count equally in both, so that a stationary kernel has the same for both.
fn correlations(grid: &[f64], correlation: &[f64]) -> (f64, f64) {
    let n = grid.len();
    let at = |lag: usize, same: bool| {
        let pairs = (0..n - lag).filter(|&j| (plateau(grid[j + lag]) == plateau(grid[j])) == same);
        mean(pairs.map(|j| correlation[(j + lag) * n + j]).filter(|c| c.is_finite()))
    };
    let lags = (1..n).filter(|lag| (0.1..0.3).contains(&(grid[*lag] - grid[0])));
    let both: Vec<(f64, f64)> =
        lags.map(|lag| (at(lag, true), at(lag, false))).filter(|b| (b.0 + b.1).is_finite()).collect();
    (mean(both.iter().map(|b| b.0)), mean(both.iter().map(|b| b.1)))
}

fn numbers(settings: &Settings, found: &Found) -> Result<Value, ExperimentError> {
    let mut out = Map::new();
    put_scores(&mut out, &[found.scores])?;
    let grid = even(settings.grid);
    let error = |i: usize| found.mean[i] - steps(grid[i]);
    let near = |x: f64| JUMPS.iter().any(|jump| (x - jump).abs() < NEAR);
    let squares = |at_jumps: bool| {
        mean((0..grid.len()).filter(|&i| near(grid[i]) == at_jumps).map(|i| error(i).powi(2))).sqrt()
    };
    // An interval with probability 95 %.
    let covered = |i: usize| f64::from(u8::from(error(i).abs() < 1.96 * found.deviation[i]));
    let (one_plateau, across) = correlations(&even(settings.kernel_grid), &found.kernel[1].values);
    let n = settings.kernel_grid;
    let variances: Vec<f64> = (0..n).map(|i| found.kernel[0].values[i * n + i]).collect();
    let least = variances.iter().copied().fold(f64::INFINITY, f64::min);
    let most = variances.iter().copied().fold(0.0, f64::max);
    let more = [
        ("seconds", found.seconds),
        ("rmse_at_jumps", squares(true)),
        ("rmse_elsewhere", squares(false)),
        ("function_coverage", mean((0..grid.len()).map(covered))),
        ("deviation", mean(found.deviation.iter().copied())),
        ("correlation_on_plateaus", one_plateau),
        ("correlation_across_jumps", across),
        ("least_over_largest_variance", least / most),
    ];
    out.extend(more.into_iter().map(|(key, value)| (key.to_string(), json!(value))));
    out.insert("chosen".into(), json!(found.chosen));
    Ok(Value::Object(out))
}

/// Fits every method to the same rows.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    let streams = Streams::new(context.seed);
    let of = |rows, name| draw(rows, settings.noise_variance, streams, name);
    let (train, test) = (of(settings.rows, "experiment/train"), of(settings.test, "experiment/test"));
    let mut all = Vec::new();
    for method in &settings.methods {
        let kernel = settings.kernel.as_ref().map(ToString::to_string);
        let data = (settings.rows, settings.test, settings.noise_variance);
        let depends = (data, settings.grid, settings.kernel_grid, kernel, settings.seconds, method);
        let found = context
            .once(&method.name, &depends, |context| fit(settings, method, (&train, &test), context))?;
        all.push((method.name.as_str(), found));
    }
    let mut own = Map::new();
    for (name, found) in &all {
        own.insert((*name).into(), numbers(settings, found)?);
    }
    let values = |name: &str| match train.column(name).map(|c| &c.values) {
        Ok(posterior_data::Values::Numeric(values)) => values.clone(),
        _ => Vec::new(),
    };
    let grid = even(settings.grid);
    let panel = |(name, found): &(&str, Found)| {
        TitledPosterior::new(
            *name,
            PosteriorPanel {
                input: "x".into(),
                grid: grid.clone(),
                mean: found.mean.clone(),
                latent_standard_deviation: found.deviation.clone(),
                observed_standard_deviation: found.observed.clone(),
                true_function: grid.iter().map(|x| steps(*x)).collect(),
                train_input: values("x"),
                train_target: values("y"),
                ..PosteriorPanel::default()
            },
        )
    };
    let maps = |which: usize, title: &str, caption: &str| {
        let grid = even(settings.kernel_grid);
        Item::Plane(Plane {
            title: title.into(),
            x: "x".into(),
            y: "another x".into(),
            grid_x: grid.clone(),
            grid_y: grid,
            panels: all
                .iter()
                .map(|(name, found)| PlanePanel { title: (*name).into(), ..found.kernel[which].clone() })
                .collect(),
            caption: caption.into(),
            ..Plane::default()
        })
    };
    let figures = vec![
        PosteriorPanels::new(
            "What each believes",
            "y",
            all.iter().map(panel).collect(),
            "The true function jumps at -0.6, 0 and 0.4.",
        )
        .into(),
        maps(
            0,
            "Which places go together: covariance",
            "Of the prior's function at two places, as each method has learned it.",
        ),
        maps(
            1,
            "Which places go together: correlation",
            "Blocks are plateaus: a kernel that has found the jumps lets nothing pass from one to the other.",
        ),
    ];
    let names = || settings.methods.iter().map(|m| m.name.as_str());
    let columns: Vec<(&str, &str)> = SCORES.into_iter().chain([("seconds", "seconds")]).collect();
    let tables = vec![
        NumberTable::by_name(
            "Scores of test rows",
            "method",
            "methods",
            names(),
            &columns,
            "A predictor that knows the function has an RMSE of 0.1, an MAE of 0.0798 and an NLL of -0.8836 where the noise has a variance of 0.01.",
        ),
        NumberTable::by_name(
            "Jumps and error bars",
            "method",
            "methods",
            names(),
            &[
                ("rmse_at_jumps", "RMSE of the mean within 0.05 of a jump"),
                ("rmse_elsewhere", "elsewhere"),
                ("deviation", "mean deviation of the function"),
                ("function_coverage", "truth within 1.96 deviations"),
                ("correlation_on_plateaus", "prior correlation on a plateau"),
                ("correlation_across_jumps", "across a jump"),
                ("least_over_largest_variance", "least over largest prior variance"),
                ("chosen", "chosen way of training"),
            ],
            "On the grid. Correlations are of places 0.1 to 0.3 apart, all distances alike.",
        ),
    ];
    let series = all.iter().map(|(name, f)| {
        ((*name).to_string(), json!({"grid": grid, "mean": f.mean, "deviation": f.deviation}))
    });
    let rows = format!("{} and {}", settings.rows, settings.test);
    Ok(Measured {
        numbers: json!({ "methods": own }),
        series: Value::Object(series.collect()),
        tables,
        figures,
        facts: vec![SummaryRow::new("Rows, training and test", rows)],
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_are_told_apart_by_jumps() {
        let grid = even(101);
        let by_plateau: Vec<f64> = grid
            .iter()
            .flat_map(|a| grid.iter().map(move |b| f64::from(u8::from(plateau(*a) == plateau(*b)))))
            .collect();
        assert_eq!(correlations(&grid, &by_plateau), (1.0, 0.0));
        let stationary: Vec<f64> =
            grid.iter().flat_map(|a| grid.iter().map(move |b| (-9.0 * (a - b).abs()).exp())).collect();
        let (along, across) = correlations(&grid, &stationary);
        assert!((along / across - 1.0).abs() < 1e-12 && along < 0.5, "{along} {across}");
        assert_eq!((plateau(-0.7), plateau(-0.1), plateau(0.1), plateau(0.9)), (0, 1, 2, 3));
    }

    #[test]
    fn rows_are_the_function_with_its_noise() {
        let streams = Streams::new(4);
        let column = |table: &Table, name: &str| match &table.column(name).unwrap().values {
            posterior_data::Values::Numeric(values) => values.clone(),
            _ => panic!("numbers"),
        };
        let table = draw(4000, 0.01, streams, "a");
        let (x, y) = (column(&table, "x"), column(&table, "y"));
        assert!(x.iter().all(|x| (-1.0..1.0).contains(x)));
        let square = mean(x.iter().zip(&y).map(|(x, y)| (y - steps(*x)).powi(2)));
        // Squares of a normal scatter by sqrt(2 / 4000) of their mean: 4.5 of these.
        assert!((square / 0.01 - 1.0).abs() < 0.1, "{square}");
        assert_eq!(column(&draw(4000, 0.01, streams, "a"), "y"), y);
        assert_ne!(column(&draw(4000, 0.01, streams, "b"), "x"), x);
    }
}
