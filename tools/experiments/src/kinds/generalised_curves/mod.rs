//! The published sweep of generalised variational inference: ten curves with blocks cut out, every combination of inducing points, prior, variational kernel, mode, regulariser and step size on each, and what wins by the rows held back.
//!
//! Serves table 7.1 and figure 7.5 of Wu's *Generalised variational inference for Gaussian processes*; without a `[grid]` the published winners alone are fitted. Spec `generalised_variational_inference`, sections 15 to 17.
//!
//! | file | what |
//! |---|---|
//! | `problem` | curves, blocks, splits |
//! | `layer`, `mean` | a layer of tangents, as a map that a kernel acts on; the variational mean that is made of it |
//! | `prior` | the process that regularises, learned once for all fits that share it |
//! | `configuration` | the grid |
//! | `training` | one fit with its scores |
//! | `workers` | many at once, by a journal |
//! | `sweep` | which fits there are, and what became of them |
//! | `tallies` | which values of each option do best |
//! | `report`, `figures` | numbers, tables, pictures |

mod configuration;
pub(super) mod figures;
mod layer;
mod mean;
pub(super) mod prior;
pub(super) mod problem;
mod report;
mod sweep;
mod tallies;
#[cfg(test)]
mod tests;
pub(super) mod training;
pub(super) mod workers;

pub(super) use configuration::{Configuration, Named, points_of};

use crate::kinds::prelude::*;
use configuration::Grid;
use prior::LearningSettings;
use problem::{Blocks, CURVES, DataSettings};

use training::TrainingSettings;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: DataSettings,
    /// Numbers of the curves that are fitted.
    curves: Vec<usize>,
    /// Threads; all that the program may use if absent or 0. Results are the same for any number.
    #[serde(default)]
    workers: usize,
    /// Points of the pictures.
    points: usize,
    /// Ways to learn the process that regularises.
    #[serde(rename = "learning")]
    ways: Vec<LearningSettings>,
    training: TrainingSettings,
    /// The options; the published winners alone if absent.
    grid: Option<Grid>,
    #[serde(rename = "curve")]
    known: Vec<CurveSettings>,
}

/// What was published of a curve.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CurveSettings {
    /// From 1.
    pub(crate) number: usize,
    pub(crate) blocks: Blocks,
    /// What won (table 7.1).
    pub(crate) winner: Configuration,
}

impl Settings {
    /// The published facts about a curve.
    fn curve(&self, number: usize) -> Result<&CurveSettings> {
        let found = self.known.iter().find(|known| known.number == number);
        found.ok_or_else(|| {
            ExperimentError::Setting(format!(
                "there is no [[curve]] of `number` {number}, which is in `curves`"
            ))
        })
    }
}

/// So many equispaced inputs over those of the curves.
pub(super) fn grid(points: usize) -> Vec<f64> {
    (0..points).map(|i| -2.0 + 4.0 * i as f64 / (points - 1) as f64).collect()
}

/// Refuses settings of one curve that make no sense; `points` are those of its pictures.
pub(super) fn check_curve(data: &DataSettings, blocks: &Blocks, curve: usize, points: usize) -> Result<()> {
    data.check()?;
    blocks.check()?;
    check_numbers("`curve`", &[curve])?;
    match (20..=5000).contains(&points) {
        true => Ok(()),
        false => refused("`points` of pictures are from 20 to 5000"),
    }
}

/// Refuses numbers of curves that are none, and those that are there twice.
fn check_numbers(name: &str, numbers: &[usize]) -> Result<()> {
    if !each_once(numbers) || numbers.iter().any(|n| !(1..=CURVES).contains(n)) {
        return refused(format!("{name} are numbers from 1 to {CURVES}, each once"));
    }
    Ok(())
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        self.data.check()?;
        self.training.check()?;
        self.ways.iter().try_for_each(LearningSettings::check)?;
        self.grid.as_ref().map_or(Ok(()), Grid::check)?;
        check_numbers("`curves`", &self.curves)?;
        check_numbers("[[curve]]: `number`", &self.known.iter().map(|k| k.number).collect::<Vec<_>>())?;
        for curve in &self.known {
            curve.blocks.check()?;
            curve.winner.check()?;
        }
        self.curves.iter().try_for_each(|number| self.curve(*number).map(|_| ()))?;
        check_names("learning", self.ways.iter().map(|way| way.name.as_str()))?;
        if !(20..=5000).contains(&self.points) || self.workers > 1024 {
            return refused("`points` of pictures are from 20 to 5000, `workers` at most 1024");
        }
        Ok(())
    }
}

/// Fits everything and reports what won.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let sweep = sweep::Sweep::new(settings, context)?;
    let drawn = sweep.draw(context)?;
    let mut measured = report::measured(&sweep);
    measured.figures = figures::figures(&sweep, &drawn);
    measured.series = figures::series(&sweep, &drawn);
    Ok(measured)
}
