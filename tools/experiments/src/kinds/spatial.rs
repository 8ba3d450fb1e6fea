//! A quantity over the land, measured where people are: processes with and without learned features, as scores and as maps of what they predict and of what they take for near.
//!
//! Serves figure 4 of the deep basis kernels.

use crate::gaussian::MethodSettings;
use crate::kinds::prelude::*;
use crate::learned::{SCORES, check_learned, chosen_way, gaussian_process, score_columns, scored};
use crate::splits::Rows;
use crate::towns::Country;
use posterior_data::{Column, Table};
use posterior_kernels::KernelExpression;
use posterior_metrics::RegressionScores;
use posterior_models::Process;
use posterior_report::{Plane, PlaneKind, PlanePanel};
use rand::seq::SliceRandom;
use std::path::PathBuf;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// A table of two coordinates and a target (the last column), counted from the experiment's file; a country is made up if absent.
    file: Option<PathBuf>,
    /// Most rows of the table; as many are made up.
    rows: usize,
    /// The share of rows to test on.
    test: f64,
    /// Whether the target's logarithm is learned.
    logarithm: bool,
    /// Places on each side of the maps.
    grid: usize,
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
        if self.rows < 20 || self.rows > 10_000_000 {
            return refused("`rows` are from 20 to ten million");
        }
        let tested = self.test * self.rows as f64;
        if !(self.test > 0.0 && self.test < 1.0 && tested >= 1.0) {
            return refused("`test` is a share of the rows, between 0 and 1, that leaves at least one");
        }
        if !(5..=200).contains(&self.grid) {
            return refused("`grid` is between 5 and 200");
        }
        Ok(())
    }
}

/// Rows to learn from and rows to test on, as tables of `east`, `north` and `y`.
struct Places {
    train: Table,
    test: Table,
    /// Of the test rows.
    truth: Vec<f64>,
    /// The range of each coordinate.
    ranges: [(f64, f64); 2],
    /// What was made up.
    country: Option<Country>,
}

const NAMES: [&str; 2] = ["east", "north"];

impl Places {
    fn new(settings: &Settings, context: &Context<'_>) -> Result<Self> {
        let streams = Streams::new(context.seed);
        let (all, country) = match &settings.file {
            Some(file) => (Rows::of(&context.folder.join(file))?.at_most(Some(settings.rows), streams), None),
            None => {
                let country = Country::new(streams);
                (country.rows(settings.rows, streams), Some(country))
            }
        };
        if all.x.ncols() != 2 {
            return refused(format!(
                "two coordinates and a target are needed, not {} columns",
                all.x.ncols() + 1
            ));
        }
        if settings.logarithm && all.y.iter().any(|y| *y <= 0.0) {
            return refused("`logarithm` needs positive targets");
        }
        let value = |y: f64| if settings.logarithm { y.ln() } else { y };
        let mut order: Vec<usize> = (0..all.y.len()).collect();
        order.shuffle(&mut streams.stream("experiment/rows"));
        let count = (settings.test * all.y.len() as f64).round() as usize;
        if count == 0 || count + 10 > order.len() {
            return refused("too few rows: at least one to test on and ten to learn from are needed");
        }
        let (tested, learned) = order.split_at(count);
        let table = |rows: &[usize]| {
            let mut columns: Vec<Column> = NAMES
                .iter()
                .enumerate()
                .map(|(j, name)| Column::numeric(*name, rows.iter().map(|&i| all.x[(i, j)]).collect()))
                .collect();
            columns.push(Column::numeric("y", rows.iter().map(|&i| value(all.y[i])).collect()));
            Table::new("places", columns)
        };
        let range = |j: usize| {
            let column = || all.x.col(j).iter().copied();
            (column().fold(f64::INFINITY, f64::min), column().fold(f64::NEG_INFINITY, f64::max))
        };
        let ranges = [range(0), range(1)];
        if ranges.iter().any(|(low, high)| low >= high) {
            return refused("a coordinate is the same everywhere");
        }
        let truth = tested.iter().map(|&i| value(all.y[i])).collect();
        Ok(Self { train: table(learned), test: table(tested), truth, ranges, country })
    }

    /// Places on each side of the maps.
    fn grids(&self, count: usize) -> [Vec<f64>; 2] {
        self.ranges.map(|(low, high)| {
            (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
        })
    }

    fn middle(&self) -> [f64; 2] {
        self.ranges.map(|(low, high)| 0.5 * low + 0.5 * high)
    }
}

/// What one method found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    /// In standard deviations of the training targets.
    scores: RegressionScores,
    seconds: f64,
    /// Mean, deviation, and the correlations with the densest place and the middle.
    maps: Vec<PlanePanel>,
    /// How different correlations are about these two places.
    difference: f64,
    densest: [f64; 2],
    /// Of learned features: the way of training.
    chosen: Option<String>,
}

/// Steps from a place on each side, in which its correlations with its neighbourhood are looked at.
const STEPS: i32 = 4;

/// How different the correlations of the prior's function with what is around two places are (the root of the mean squared difference, over displacements of up to a fifth of the range): 0 of a
/// stationary kernel.
fn difference(process: &Process<'_>, ranges: [(f64, f64); 2], places: [[f64; 2]; 2]) -> Result<f64> {
    let around = |place: [f64; 2]| -> Result<Vec<f64>> {
        let mut points = [vec![place[0]], vec![place[1]]];
        for (i, j) in (-STEPS..=STEPS).flat_map(|i| (-STEPS..=STEPS).map(move |j| (i, j))) {
            for (axis, step) in [(0, i), (1, j)] {
                let (low, high) = ranges[axis];
                points[axis].push(place[axis] + 0.2 * (high - low) * f64::from(step) / f64::from(STEPS));
            }
        }
        let columns = NAMES.into_iter().zip(points).map(|(name, values)| Column::numeric(name, values));
        let x = process.standard_inputs(&Table::new("places", columns.collect()))?;
        let count = x.nrows() - 1;
        let (own, others) = (x.as_ref().subrows(0, 1), x.as_ref().subrows(1, count));
        let Some(prior) = process.predictor().prior() else {
            return refused("the covariance of a prior is wanted");
        };
        let variances = prior.variances(x.as_ref())?;
        let across = prior.cross(own, others)?;
        Ok((0..count).map(|k| across[(0, k)] / (variances[0] * variances[k + 1]).sqrt()).collect())
    };
    let [first, second] = places;
    let squares = around(first)?.into_iter().zip(around(second)?).map(|(a, b)| (a - b).powi(2));
    // Without variance there is no correlation.
    Ok(crate::toy::mean(squares.filter(|s| s.is_finite())).sqrt())
}

fn fit(
    settings: &Settings,
    method: &MethodSettings,
    places: &Places,
    context: &mut Context<'_>,
) -> Result<Found> {
    let kernel = settings.kernel.as_ref();
    let model = method.learn_table(&places.train, kernel, settings.seconds, context)?;
    let (process, summary) = gaussian_process(&model)?;
    let standard = &process.inputs().standardisation;
    let truth: Vec<f64> = places.truth.iter().map(|y| standard.target(*y)).collect();
    let scores = scored(process.predictor(), process.standard_inputs(&places.test)?.as_ref(), &truth)?;
    let (middle, grids) = (places.middle(), places.grids(settings.grid));
    let densest = process.inputs().densest.unwrap_or(middle);
    let marked = [("the densest place", densest), ("the middle", middle)];
    let Some(maps) = process.map_panels((&grids[0], &grids[1]), &marked)? else {
        return refused("a process of two coordinates has maps");
    };
    Ok(Found {
        scores,
        seconds: summary.seconds,
        maps,
        difference: difference(&process, places.ranges, [densest, middle])?,
        densest,
        chosen: chosen_way(summary),
    })
}

/// Training rows that are shown.
const DOTS: usize = 400;

/// Maps of one quantity by all methods.
fn maps(settings: &Settings, places: &Places, all: &[(&str, Found)]) -> Vec<Item> {
    let column = |name: &str| match places.train.column(name).map(|c| &c.values) {
        Ok(posterior_data::Values::Numeric(values)) => {
            values.iter().copied().step_by(values.len().div_ceil(DOTS).max(1)).collect()
        }
        _ => Vec::new(),
    };
    let [grid_x, grid_y] = places.grids(settings.grid);
    let logarithm = if settings.logarithm { "of the target's logarithm" } else { "of the target" };
    let quantities = [
        ("Posterior mean", format!("The mean {logarithm}, with some of the training rows."), true),
        ("Posterior standard deviation", format!("Of the function (without noise), in the unit {logarithm}."), false),
        (
            "What is near to the densest place",
            "Correlation of the prior's function with that where most rows are.".to_string(),
            false,
        ),
        (
            "What is near to the middle",
            "Correlation of the prior's function with that in the middle of the map. A stationary kernel has the same shape at both places.".to_string(),
            false,
        ),
    ];
    let plane = |title: &str, caption: String, dots: bool, panels: Vec<PlanePanel>| {
        let (points_x, points_y): (Vec<f64>, Vec<f64>) =
            if dots { (column(NAMES[0]), column(NAMES[1])) } else { Default::default() };
        Item::Plane(Plane {
            title: title.into(),
            x: NAMES[0].into(),
            y: NAMES[1].into(),
            grid_x: grid_x.clone(),
            grid_y: grid_y.clone(),
            panels,
            points_class: vec![0; points_x.len()],
            points_x,
            points_y,
            caption,
        })
    };
    let of_methods = |which: usize| {
        let panel = |(name, found): &(&str, Found)| {
            Some(PlanePanel { title: (*name).into(), ..found.maps.get(which)?.clone() })
        };
        all.iter().filter_map(panel).collect()
    };
    let mut figures: Vec<Item> = (quantities.into_iter().enumerate())
        .map(|(which, (title, caption, dots))| plane(title, caption, dots, of_methods(which)))
        .collect();
    if let Some(country) = &places.country {
        let caption = format!("The mean {logarithm} in the made-up country: waves, towns with edges, roads.");
        let values = truth(settings, country, [&grid_x, &grid_y]);
        figures.push(plane(
            "The truth",
            caption,
            false,
            vec![PlanePanel::new("mean", PlaneKind::Amount, values)],
        ));
    }
    figures
}

/// The made-up country over the grid.
fn truth(settings: &Settings, country: &Country, [grid_x, grid_y]: [&[f64]; 2]) -> Vec<f64> {
    let level = |at: [f64; 2]| {
        let mean = country.mean(at);
        // The mean of a log-normal variable.
        if settings.logarithm { mean } else { (mean + 0.5 * crate::towns::NOISE.powi(2)).exp() }
    };
    grid_y.iter().flat_map(|y| grid_x.iter().map(move |x| [*x, *y])).map(level).collect()
}

fn numbers(found: &Found) -> Result<Value> {
    let mut out = Map::new();
    put_all(&mut out, "", &[found.scores], &SCORES)?;
    out.insert("seconds".into(), json!(found.seconds));
    out.insert("difference_of_places".into(), json!(found.difference));
    out.insert("chosen".into(), json!(found.chosen));
    Ok(Value::Object(out))
}

/// Fits every method to the same rows.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let places = Places::new(settings, context)?;
    let mut all = Vec::new();
    for method in &settings.methods {
        let kernel = settings.kernel.as_ref().map(ToString::to_string);
        let data = (&settings.file, settings.rows, settings.test, settings.logarithm);
        let depends = (data, settings.grid, kernel, settings.seconds, method);
        let found =
            context.once(&method.name, &depends, |context| fit(settings, method, &places, context))?;
        all.push((method.name.as_str(), found));
    }
    let mut out = Measured::default();
    for (name, found) in &all {
        out.numbers["methods"][name] = numbers(found)?;
    }
    let columns = score_columns(&[
        ("difference_of_places", "difference of kernels"),
        ("seconds", "seconds"),
        ("chosen", "chosen way of training"),
    ]);
    let what = if settings.file.is_none() { "made up, " } else { "" };
    let densest = all.first().map(|(_, found)| found.densest).unwrap_or_default();
    out.tables.push(NumberTable::by_name(
            "Scores of test rows",
            "method",
            "methods",
            settings.methods.iter().map(|m| m.name.as_str()),
            &columns,
            "In units of the training targets' standard deviation (of their logarithm, where that is learned). The difference of kernels is that of correlations about the densest place and about the middle (root of the mean square): 0 of a stationary kernel.",
    ));
    out.figures = maps(settings, &places, &all);
    out.facts = vec![
        SummaryRow::new(
            "Rows, training and test",
            format!("{what}{} and {}", places.train.rows(), places.test.rows()),
        ),
        SummaryRow::new("Densest place", format!("{:.1}, {:.1}", densest[0], densest[1])),
    ];
    Ok(out)
}
