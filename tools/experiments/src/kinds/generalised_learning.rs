//! A process and its inducing points learned in turns on a curve with blocks cut out: what it believes after each turn.
//!
//! Serves figure 3.2 of Wu's *Generalised variational inference for Gaussian processes* (spec `generalised_variational_inference`, section 16.4), which does not say which kernel it shows: several may be named.

use super::generalised_curves::figures::{banded, picture, rings};
use super::generalised_curves::prior::{LearnedPrior, LearningSettings, PriorKernel};
use super::generalised_curves::problem::{Blocks, DataSettings, some};
use super::generalised_curves::training::Band;
use super::generalised_curves::{Named, check_curve, grid, points_of};
use crate::kinds::prelude::*;
use posterior_gp::generalised::Alternation;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: DataSettings,
    /// The number of the curve.
    curve: usize,
    blocks: Blocks,
    /// Inducing points are the root of the number of rows of this power.
    power: u32,
    /// Kernels, one after the other.
    kernels: Vec<PriorKernel>,
    learning: LearningSettings,
    /// Points of the pictures.
    points: usize,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_curve(&self.data, &self.blocks, self.curve, self.points)?;
        self.learning.check()?;
        if !(1..=8).contains(&self.power) {
            return refused("`power` is a number from 1 to 8");
        }
        if !each_once(&self.kernels) || self.learning.turns == 0 {
            return refused("`kernels` are at least one, each once, and there is at least one turn");
        }
        Ok(())
    }
}

/// Numbers of a turn.
fn numbers(turn: &Alternation, inducing: &[f64], band: &Band, pinched: &Band) -> Value {
    let mut sorted = inducing.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let gaps = sorted.windows(2).map(|w| w[1] - w[0]);
    let between = mean(band.latent.iter().copied());
    let at = mean(pinched.latent.iter().copied());
    json!({
        "risk": turn.risk, "steps": turn.steps, "points": turn.rows.len(),
        "noise_deviation": turn.values.last().map(|v| v.sqrt()),
        "largest_gap": gaps.fold(0.0, f64::max), "deviation": between,
        "deviation_at_points": at, "pinched": at / between,
    })
}

/// What pictures of turns show.
const CAPTION: &str =
    "The exact process on the inducing points, with the central 95 % of new observations; one in 5 rows.";

/// Learns with every kernel and shows each turn.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let streams = Streams::new(context.seed);
    let blocks = settings.blocks.of(settings.data.split);
    let problem = settings.data.problem(settings.curve, blocks, streams)?;
    let (grid, asked) = (grid(settings.points), points_of(settings.power, problem.train.rows()));
    let mut measured = Measured::default();
    let (mut kernels, mut series) = (Map::new(), Map::new());
    for (done, &kernel) in settings.kernels.iter().enumerate() {
        let name = Named(kernel).to_string();
        let mut observer = || context.tell(&name, done, settings.kernels.len());
        let learned =
            LearnedPrior::learn(&problem, (kernel, asked), &settings.learning, streams, &mut observer)?
                .ok_or(ExperimentError::Interrupted)?;
        let (mut turns, mut bands) = (Map::new(), Vec::new());
        for (i, turn) in learned.turns.iter().enumerate() {
            let posterior = learned.posterior(&problem, kernel, Some(turn), streams)?;
            let inducing = some(&problem.train.select(&turn.rows)?, 1);
            let band = Band::of(&posterior, &grid)?;
            let at = Band::of(&posterior, &inducing.0)?;
            turns.insert((i + 1).to_string(), numbers(turn, &inducing.0, &band, &at));
            let title = format!("{name}, turn {}", i + 1);
            let lines = vec![
                banded("mean".into(), &grid, &band),
                rings("training rows", some(&problem.train, 5)),
                rings("inducing points", inducing.clone()),
            ];
            measured.figures.push(picture(title, lines, CAPTION));
            bands.push(json!({"band": band, "inducing": inducing}));
        }
        let names: Vec<String> = turns.keys().cloned().collect();
        measured.tables.push(NumberTable::by_name(
            &format!("Turns: {name}"),
            "turn",
            &format!("kernels.{name}.turns"),
            names.iter().map(String::as_str),
            &[
                ("risk", "minus the log evidence of a point"),
                ("points", "inducing points"),
                ("largest_gap", "largest gap between them"),
                ("noise_deviation", "learned noise"),
                ("deviation", "σ on average"),
                ("deviation_at_points", "at inducing points"),
                ("steps", "steps"),
            ],
            "The risk is that of the hyperparameters that the points of the turn led to.",
        ));
        let last = turns.get(&learned.turns.len().to_string()).cloned().unwrap_or_default();
        kernels.insert(
            name.clone(),
            json!({"turns": turns, "last": last, "settled": learned.settled, "count": learned.turns.len()}),
        );
        series.insert(name, Value::Array(bands));
    }
    measured.facts.push(SummaryRow::new(
        "rows",
        format!("{} to learn from, {asked} inducing points asked for", problem.train.rows()),
    ));
    series.insert("grid".into(), json!(grid));
    measured.numbers = json!({ "kernels": kernels });
    measured.series = Value::Object(series);
    Ok(measured)
}
