//! Pictures: the winners' processes as in the published figure, each with its rows and beside the published winner's, and what their objectives were made of on the way.

use super::problem::{Problem, curve, some};
use super::sweep::{Drawn, FitTask, Sweep};
use super::training::Band;
use crate::kinds::prelude::*;
use posterior_report::{PosteriorPanel, PosteriorPanels, TitledPosterior};

/// Half the width of a central 95 % interval in standard deviations.
const WIDTH: f64 = 1.96;
/// Every so many rows are drawn, or rings would cover the lines.
const EVERY: usize = 5;

/// The fit that was drawn for a task.
fn of<'d>(sweep: &Sweep<'_>, drawn: &'d [(FitTask, Drawn)], task: Option<usize>) -> Option<&'d Drawn> {
    let task = &sweep.tasks[task?];
    drawn.iter().find(|(own, _)| own == task).map(|(_, drawn)| drawn)
}

/// A mean with the central 95 % of new observations.
pub(crate) fn banded(name: String, grid: &[f64], band: &Band) -> Line {
    let error = band.observed.iter().map(|s| WIDTH * s).collect();
    Line { error, ..Line::new(name, grid.to_vec(), band.mean.clone()) }
}

/// Rings without a line.
pub(crate) fn rings(name: &str, (x, y): (Vec<f64>, Vec<f64>)) -> Line {
    Line { reference: x.into_iter().zip(y).collect(), ..Line::new(name, Vec::new(), Vec::new()) }
}

/// Rows of each part of a problem, one in [`EVERY`].
pub(crate) fn rows(problem: &Problem) -> [Line; 3] {
    [
        rings("training rows", some(&problem.train, EVERY)),
        rings("validation rows", some(&problem.validation, EVERY)),
        rings("test rows", some(&problem.test, EVERY)),
    ]
}

/// The curve itself.
pub(crate) fn truth(problem: &Problem, grid: &[f64]) -> Line {
    through("the curve", grid.iter().map(|x| (*x, curve(problem.number, *x))))
}

/// Lines over the inputs, as high as [`range`] says.
pub(crate) fn picture(title: impl Into<String>, lines: Vec<Line>, caption: impl Into<String>) -> Item {
    let y_range = range(&lines);
    Curves { y_range, ..Curves::new(title, "x", "y", lines).captioned(caption) }.into()
}

/// The ordinates that a picture shows: means and rows whole, bands as far as a span beyond them.
fn range(lines: &[Line]) -> Option<(f64, f64)> {
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (low, high) =
        bounds(&mut lines.iter().flat_map(|l| l.y.iter().copied().chain(l.reference.iter().map(|r| r.1))));
    let banded = lines.iter().flat_map(|l| l.y.iter().zip(&l.error).flat_map(|(y, e)| [y - e, y + e]));
    let (least, most) = bounds(&mut banded.into_iter());
    let span = high - low;
    let (low, high) = (low.min(least.max(low - span)), high.max(most.min(high + span)));
    (low < high).then_some((low - 0.03 * (high - low), high + 0.03 * (high - low)))
}

/// One curve: the winner, the published winner where it is another one, the truth, all kinds of rows.
fn panel(sweep: &Sweep<'_>, drawn: &[(FitTask, Drawn)], way: usize, place: usize) -> Option<Item> {
    let (own, grid, problem) = (sweep.of_curve(way, place), sweep.grid(), &sweep.problems[place]);
    let words = |i: usize| sweep.tasks[i].configuration.values().join(", ");
    let best = own.best?;
    let first = of(sweep, drawn, Some(best))?;
    let mut lines = vec![banded(format!("best: {}", words(best)), &grid, &first.after)];
    if let Some(other) = own.published.filter(|i| *i != best) {
        let name = format!("published: {}", words(other));
        lines.extend(of(sweep, drawn, Some(other)).map(|drawn| banded(name, &grid, &drawn.after)));
    }
    lines.push(truth(problem, &grid));
    lines.extend(rows(problem));
    lines.push(rings("inducing points", first.inducing.clone()));
    let name = &sweep.settings.ways[way].name;
    let title = format!("Curve {} ({name})", problem.number);
    let caption = format!(
        "Means with bands of {WIDTH} deviations of a new observation, tempered; one in {EVERY} rows, all inducing points of the best fit."
    );
    Some(picture(title, lines, caption))
}

/// What the objective of the best fit was made of.
fn course(sweep: &Sweep<'_>, drawn: &[(FitTask, Drawn)], way: usize, place: usize) -> Option<Item> {
    let own = of(sweep, drawn, sweep.of_curve(way, place).best)?;
    let mut lines = vec![
        through("risk", own.history.iter().map(|look| (look.step as f64, look.risk))),
        through("regulariser", own.history.iter().map(|look| (look.step as f64, look.regularisation))),
    ];
    if !own.validation_scores.is_empty() {
        let looks = own.validation_scores.iter().map(|look| (look.step as f64, look.nll));
        lines.push(through("validation NLL before tempering", looks));
    }
    // The beginning is far above the rest.
    let mut all: Vec<f64> = lines.iter().flat_map(|l| &l.y).copied().filter(|v| v.is_finite()).collect();
    all.sort_unstable_by(f64::total_cmp);
    let y_range = Some((*all.first()?, all[(9 * (all.len() - 1)) / 10])).filter(|(low, high)| low < high);
    let problem = &sweep.problems[place];
    let title =
        format!("Curve {}: the objective on its way ({})", problem.number, sweep.settings.ways[way].name);
    let caption = "The best fit. The highest tenth of the values is beyond the picture.";
    Some(Curves { y_range, ..Curves::new(title, "steps", "nats", lines).captioned(caption) }.into())
}

/// Pictures of each way of learning: all curves, each curve, each objective.
pub(super) fn figures(sweep: &Sweep<'_>, drawn: &[(FitTask, Drawn)]) -> Vec<Item> {
    let mut out = Vec::new();
    for (way, learning) in sweep.settings.ways.iter().enumerate() {
        let places = 0..sweep.problems.len();
        let small = places.clone().filter_map(|place| {
            let own = of(sweep, drawn, sweep.of_curve(way, place).best)?;
            let (problem, grid) = (&sweep.problems[place], sweep.grid());
            let (train_input, train_target) = some(&problem.train, EVERY);
            let panel = PosteriorPanel {
                input: "x".into(),
                mean: own.after.mean.clone(),
                latent_standard_deviation: own.after.latent.clone(),
                observed_standard_deviation: own.after.observed.clone(),
                true_function: grid.iter().map(|x| curve(problem.number, *x)).collect(),
                train_input,
                train_target,
                grid,
                ..PosteriorPanel::default()
            };
            Some(TitledPosterior::new(format!("curve {}", problem.number), panel))
        });
        let title = format!("The best fit to each curve ({})", learning.name);
        let caption = format!("Tempered. Training rows, one in {EVERY}.");
        out.push(PosteriorPanels::new(title, "y", small.collect(), caption).into());
        out.extend(places.clone().filter_map(|place| panel(sweep, drawn, way, place)));
        out.extend(places.filter_map(|place| course(sweep, drawn, way, place)));
    }
    out
}

/// Curves behind the pictures.
pub(super) fn series(sweep: &Sweep<'_>, drawn: &[(FitTask, Drawn)]) -> Value {
    let mut ways = Map::new();
    for (way, learning) in sweep.settings.ways.iter().enumerate() {
        let mut curves = Map::new();
        for (place, number) in sweep.settings.curves.iter().enumerate() {
            let own = sweep.of_curve(way, place);
            let both =
                json!({"ours": of(sweep, drawn, own.best), "published": of(sweep, drawn, own.published)});
            curves.insert(number.to_string(), both);
        }
        ways.insert(learning.name.clone(), Value::Object(curves));
    }
    json!({ "grid": sweep.grid(), "ways": ways })
}
