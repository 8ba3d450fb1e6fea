//! **The fits of a sweep**: for each way of learning and each curve every configuration, with priors that are shared, and the best of them.

use super::configuration::Configuration;
use super::prior::{LearnedPrior, LearningSettings, PriorKernel, signal};
use super::problem::{Blocks, DataSettings, Problem, some};
use super::training::{Band, Scores, Trained, TrainingSettings};
use super::workers::{Stage, each};
use super::{CurveSettings, Settings};
use crate::kinds::prelude::*;
use posterior_gp::generalised::{Breakdown, ReferenceProcess};
use posterior_linear::low_rank::ValidationScore;
use std::sync::atomic::AtomicBool;

/// Names of the stages, in progress and journal.
const PRIORS: &str = "generalised-curves, priors";
const FITS: &str = "generalised-curves, fits";
const PICTURES: &str = "generalised-curves, pictures";

/// What may go wrong in one fit without taking thousands of others with it.
type Outcome<V> = Result<V, String>;

/// A prior that several fits share.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PriorTask {
    way: usize,
    curve: usize,
    kernel: PriorKernel,
    points: usize,
}

/// A fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FitTask {
    /// Position among the ways to learn.
    pub(super) way: usize,
    /// Position among the curves.
    pub(super) curve: usize,
    /// What is fitted.
    pub(super) configuration: Configuration,
    /// Position among the priors.
    prior: usize,
}

/// A fit that is looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Drawn {
    /// Before tempering.
    pub(super) before: Band,
    /// After it.
    pub(super) after: Band,
    /// The tempering factor.
    pub(super) alpha: f64,
    /// Inducing points: inputs and targets.
    pub(super) inducing: (Vec<f64>, Vec<f64>),
    /// The objective at looks.
    pub(super) history: Vec<Breakdown>,
    /// Looks at the rows held back, before tempering.
    pub(super) validation_scores: Vec<ValidationScore>,
}

/// Everything that was fitted.
pub(super) struct Sweep<'a> {
    pub(super) settings: &'a Settings,
    pub(super) problems: Vec<Problem>,
    streams: Streams,
    priors: Vec<Outcome<LearnedPrior>>,
    pub(super) tasks: Vec<FitTask>,
    /// What became of each.
    pub(super) found: Vec<Outcome<Scores>>,
}

/// What was fitted to one curve in one way: positions among the tasks.
pub(super) struct OfCurve<'a> {
    sweep: &'a Sweep<'a>,
    /// In the order of the grid.
    pub(super) all: Vec<usize>,
    /// The lowest validation NLL, the first of equals.
    pub(super) best: Option<usize>,
    /// The published winner, where it was fitted and has a result.
    pub(super) published: Option<usize>,
}

/// Settings without what only names them or says how long they may take.
fn depends(
    (data, blocks): (&DataSettings, &[usize]),
    number: usize,
    learning: &LearningSettings,
) -> (DataSettings, Vec<usize>, usize, LearningSettings) {
    // Blocks say what the split would.
    let data = DataSettings { split: super::problem::Split::Published, ..data.clone() };
    (data, blocks.to_vec(), number, LearningSettings { name: String::new(), ..learning.clone() })
}

/// Training of one configuration, its steps as they are counted.
fn training_of(training: &TrainingSettings, configuration: &Configuration) -> TrainingSettings {
    let steps = training.steps_of(configuration.kernel);
    TrainingSettings { steps, seconds: None, milliseconds: Default::default(), ..training.clone() }
}

fn shown<V>(result: Result<V>) -> Outcome<V> {
    result.map_err(|error| error.to_string())
}

impl<'a> Sweep<'a> {
    /// Fits everything that no earlier run has finished.
    pub(super) fn new(settings: &'a Settings, context: &mut Context<'_>) -> Result<Self> {
        let streams = Streams::new(context.seed);
        let problem = |number: &usize| {
            settings.data.problem(*number, blocks(settings, settings.curve(*number)?), streams)
        };
        let problems = settings.curves.iter().map(problem).collect::<Result<Vec<_>, _>>()?;
        let (priors, tasks) = tasks(settings, &problems)?;
        let mut sweep = Self { settings, problems, streams, priors: Vec::new(), tasks, found: Vec::new() };
        let stage = |name| Stage { name, workers: settings.workers };
        sweep.priors = each(
            &stage(PRIORS),
            &priors,
            context,
            |task| (sweep.depends(task.way, task.curve), task.kernel, task.points),
            |task, stop| {
                let (problem, way) = (&sweep.problems[task.curve], &settings.ways[task.way]);
                let asked = (task.kernel, task.points);
                Ok(stopped(LearnedPrior::learn(problem, asked, way, streams, &mut || signal(stop))))
            },
        )?;
        sweep.found = each(
            &stage(FITS),
            &sweep.tasks,
            context,
            |task| sweep.depends_of(task),
            |task, stop| {
                let trained = sweep.train(task, stop);
                let scores =
                    trained.and_then(|t| t.map(|t| t.scores(&sweep.problems[task.curve])).transpose());
                Ok(stopped(scores))
            },
        )?;
        let others = context.kept(FITS).saturating_sub(sweep.tasks.len());
        if others > 0 {
            context.notes.push(Note::information(format!(
                "the journal has {others} fits with other settings, which are not part of this sweep and were left alone"
            )));
        }
        sweep.warn(context);
        Ok(sweep)
    }

    fn depends(&self, way: usize, curve: usize) -> impl std::fmt::Debug + use<> {
        let number = self.settings.curves[curve];
        let blocks = self.settings.curve(number).map_or(&[][..], |known| blocks(self.settings, known));
        depends((&self.settings.data, blocks), number, &self.settings.ways[way])
    }

    /// Everything that a fit depends on besides seed and version.
    fn depends_of(&self, task: &FitTask) -> impl std::fmt::Debug + use<> {
        let training = training_of(&self.settings.training, &task.configuration);
        (self.depends(task.way, task.curve), training, task.configuration)
    }

    /// Fits; nothing if it is told to stop.
    fn train(&self, task: &FitTask, stop: &AtomicBool) -> Result<Option<Trained>> {
        let (problem, way) = (&self.problems[task.curve], &self.settings.ways[task.way]);
        let (prior, configuration) = (self.prior(task)?, &task.configuration);
        let reference: ReferenceProcess = prior.reference(
            problem,
            (configuration.prior, configuration.mode),
            way.noise_in,
            self.streams,
        )?;
        Trained::new(problem, reference, &self.settings.training, configuration, self.streams, &mut || {
            signal(stop)
        })
    }

    fn prior(&self, task: &FitTask) -> Result<&LearnedPrior> {
        let failed = |problem: &String| ExperimentError::Setting(format!("no prior was learned: {problem}"));
        self.priors[task.prior].as_ref().map_err(failed)
    }

    /// Says which fits have no result, and why.
    fn warn(&self, context: &mut Context<'_>) {
        let failed: Vec<(&FitTask, &String)> =
            self.tasks.iter().zip(&self.found).filter_map(|(t, f)| Some((t, f.as_ref().err()?))).collect();
        if let Some((task, problem)) = failed.first() {
            let (count, curve) = (failed.len(), self.settings.curves[task.curve]);
            context.notes.push(Note::warning(format!(
                "{count} of {} fits have no result; the first is curve {curve}, {}: {problem}",
                self.tasks.len(),
                task.configuration.values().join(", ")
            )));
        }
    }

    /// The fits to a curve in a way of learning.
    pub(super) fn of_curve(&self, way: usize, curve: usize) -> OfCurve<'_> {
        let own = |task: &FitTask| task.way == way && task.curve == curve;
        let all: Vec<usize> = (0..self.tasks.len()).filter(|&i| own(&self.tasks[i])).collect();
        let scored = |i: &&usize| self.found[**i].is_ok();
        let nll = |i: &usize| self.found[*i].as_ref().map_or(f64::INFINITY, |s| s.validation);
        let best = all.iter().filter(scored).min_by(|a, b| nll(a).total_cmp(&nll(b))).copied();
        let winner = self.known(curve).map(|known| known.winner);
        let published = all.iter().filter(scored).find(|i| Some(self.tasks[**i].configuration) == winner);
        OfCurve { sweep: self, published: published.copied(), best, all }
    }

    /// What was published of a curve.
    pub(super) fn known(&self, curve: usize) -> Option<&CurveSettings> {
        self.settings.curve(self.settings.curves[curve]).ok()
    }

    /// The best fit of each curve in each way of learning, and the published winner, once more for pictures.
    pub(super) fn draw(&self, context: &mut Context<'_>) -> Result<Vec<(FitTask, Drawn)>> {
        let mut tasks: Vec<FitTask> = Vec::new();
        for way in 0..self.settings.ways.len() {
            for curve in 0..self.problems.len() {
                let of = self.of_curve(way, curve);
                let wanted = [of.best, of.published];
                let both = wanted.into_iter().flatten().map(|i| self.tasks[i]);
                both.for_each(|task| {
                    if !tasks.contains(&task) {
                        tasks.push(task)
                    }
                });
            }
        }
        let (stage, grid) = (Stage { name: PICTURES, workers: self.settings.workers }, self.grid());
        let drawn = each(
            &stage,
            &tasks,
            context,
            |task| (self.depends_of(task), self.settings.points),
            |task, stop| {
                let Some(trained) = self.train(task, stop)? else { return Ok(None) };
                let rows = &self.prior(task)?.rows;
                let of_points = self.problems[task.curve].train.select(rows)?;
                Ok(Some(Drawn {
                    before: Band::of(&trained.before, &grid)?,
                    after: Band::of(&trained.after, &grid)?,
                    alpha: trained.tempered.factors[0],
                    inducing: some(&of_points, 1),
                    history: trained.history,
                    validation_scores: trained.validation_scores,
                }))
            },
        )?;
        Ok(tasks.into_iter().zip(drawn).collect())
    }

    /// Where pictures look.
    pub(super) fn grid(&self) -> Vec<f64> {
        super::grid(self.settings.points)
    }
}

impl OfCurve<'_> {
    /// How many configurations have a lower validation NLL than the published winner, and one.
    pub(super) fn rank(&self) -> Option<usize> {
        let found = &self.sweep.found;
        let own = found[self.published?].as_ref().ok()?.validation;
        let better = |i: &&usize| found[**i].as_ref().is_ok_and(|s| s.validation < own);
        Some(1 + self.all.iter().filter(better).count())
    }
}

/// An interruption is no result, an error is one.
fn stopped<V>(result: Result<Option<V>>) -> Option<Outcome<V>> {
    shown(result).transpose()
}

/// Test blocks of a curve.
fn blocks<'a>(settings: &Settings, known: &'a CurveSettings) -> &'a [usize] {
    Blocks::of(&known.blocks, settings.data.split)
}

/// Priors, each once, and fits.
fn tasks(settings: &Settings, problems: &[Problem]) -> Result<(Vec<PriorTask>, Vec<FitTask>)> {
    let (mut priors, mut fits): (Vec<PriorTask>, Vec<FitTask>) = (Vec::new(), Vec::new());
    for way in 0..settings.ways.len() {
        for (curve, problem) in problems.iter().enumerate() {
            let configurations = match &settings.grid {
                Some(grid) => grid.configurations(),
                None => vec![settings.curve(problem.number)?.winner],
            };
            for configuration in configurations {
                let points = configuration.points(problem.train.rows());
                let task = PriorTask { way, curve, kernel: configuration.prior, points };
                let prior = priors.iter().position(|known| *known == task).unwrap_or_else(|| {
                    priors.push(task);
                    priors.len() - 1
                });
                fits.push(FitTask { way, curve, configuration, prior });
            }
        }
    }
    Ok((priors, fits))
}
