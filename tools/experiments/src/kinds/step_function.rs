//! A function with jumps in one dimension by processes with and without learned features: what each believes, what it takes for near, and what its error bars are worth.
//!
//! Serves figure 1 of the deep basis kernels.

use crate::gaussian::MethodSettings;
use crate::kinds::prelude::*;
use crate::learned::{SCORES, check_learned, chosen_way, gaussian_process, score_columns};
use crate::toy::{JUMPS, steps};
use posterior_data::{Column, Table};
use posterior_kernels::KernelExpression;
use posterior_metrics::RegressionScores;
use posterior_report::{Plane, PlanePanel, PosteriorPanel, PosteriorPanels, TitledPosterior};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Settings of the kind.
#[derive(Deserialize)]
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
    fn check(&self) -> Result<()> {
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
) -> Result<Found> {
    let model = method.learn_table(train, settings.kernel.as_ref(), settings.seconds, context)?;
    let (process, summary) = gaussian_process(&model)?;
    let scores = process.predict_with_truth(test, None)?.scores(1.0)?;
    let grid = even(settings.grid);
    let found = process.predict(&Table::new("grid", vec![Column::numeric("x", grid)]), None)?;
    let Some(kernel) = process.kernel_panels(&even(settings.kernel_grid))? else {
        return refused("a process of one input has a covariance");
    };
    Ok(Found {
        scores,
        seconds: summary.seconds,
        mean: found.mean,
        deviation: found.latent_deviation,
        observed: found.deviation,
        kernel,
        chosen: chosen_way(summary),
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

fn numbers(settings: &Settings, found: &Found) -> Result<Value> {
    let mut out = Map::new();
    put_all(&mut out, "", &[found.scores], &SCORES)?;
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
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
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
    let (mut out, grid) = (Measured::default(), even(settings.grid));
    for (name, found) in &all {
        out.numbers["methods"][name] = numbers(settings, found)?;
        out.series[name] = json!({"grid": grid, "mean": found.mean, "deviation": found.deviation});
    }
    let values = |name: &str| match train.column(name).map(|c| &c.values) {
        Ok(posterior_data::Values::Numeric(values)) => values.clone(),
        _ => Vec::new(),
    };
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
    out.figures = vec![
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
    out.tables = vec![
        NumberTable::by_name(
            "Scores of test rows",
            "method",
            "methods",
            names(),
            &score_columns(&[("seconds", "seconds")]),
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
    let rows = format!("{} and {}", settings.rows, settings.test);
    out.facts.push(SummaryRow::new("Rows, training and test", rows));
    Ok(out)
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
