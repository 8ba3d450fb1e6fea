//! **The same of classes**: one process for each class, with inducing points among the rows of that class alone. All learn together, by how likely their labels are on the points of all classes.
//!
//! Given kernels, the points of each class by greedy variance under its own kernel; given points, kernels, means and noises of all processes by [`pointwise_class_risk`] on these J M points; and so on. Kernels and means go on from the
//! turn before, noise goes back to where it began, as in the published program (erratum E8). The risk has a lower bound, so that each turn takes the steps that it is given.
//!
//! Source: spec `generalised_variational_inference`, sections 2.3, 4.2 and 16.3.

use super::{Descent, Selector, select_rows};
use crate::GpError;
use crate::exact::ExactGp;
use crate::generalised::class_posterior::ClassPosterior;
use crate::generalised::pointwise::pointwise_class_risk;
use faer::Mat;
use posterior_likelihoods::RobustMax;
use posterior_linalg::random::Streams;
use posterior_optim::{Objective, ObjectiveError, Observer, Optimiser, Parameters, Progress, State};
use serde::{Deserialize, Serialize};

/// How to learn.
#[derive(Clone, Debug)]
pub struct ClassLearningOptions {
    /// Inducing points of each class.
    pub points: usize,
    /// Turns: trainings, with points chosen before each and after the last; 0 chooses points and learns nothing.
    pub turns: usize,
    /// What takes the steps of a turn (published: AdaBelief with steps of 1e-2).
    pub optimiser: Optimiser,
    /// Steps of a turn (published: 300).
    pub steps: usize,
    /// The risk at which a turn ends.
    pub least_risk: f64,
    /// The classes, and how often a label is wrong (published: 0.01).
    pub likelihood: RobustMax,
    /// Of the order in which rows of equal variance are taken.
    pub seed: u64,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassAlternation {
    /// The rows of each class that were its inducing points, as they were chosen.
    pub rows: Vec<Vec<usize>>,
    /// The least risk that training came to.
    pub risk: f64,
    /// Its steps.
    pub steps: usize,
}

/// What was learned.
#[derive(Clone, Debug)]
pub struct LearnedClasses {
    /// The processes, one for each class.
    pub models: Vec<ExactGp>,
    /// The rows of each class that are its inducing points under these, as they were chosen.
    pub rows: Vec<Vec<usize>>,
    /// All turns.
    pub turns: Vec<ClassAlternation>,
    /// Whether the observer ended it.
    pub interrupted: bool,
}

impl LearnedClasses {
    /// The processes given their inducing points among the `inputs` (n_c x D of each class) that they were learned from: what predicts classes.
    ///
    /// # Errors
    /// [`GpError`]: inputs of fewer rows or another width than those, matrices that cannot be factored.
    pub fn condition(self, inputs: &[Mat<f64>], likelihood: RobustMax) -> Result<ClassPosterior, GpError> {
        crate::data::same_width("tables of inputs, one for each class", self.rows.len(), inputs.len())?;
        let width = inputs.first().map_or(0, Mat::ncols);
        for (own, rows) in inputs.iter().zip(&self.rows) {
            crate::data::same_width("columns of a class", width, own.ncols())?;
            let needed = rows.iter().max().map_or(0, |row| row + 1);
            if own.nrows() < needed {
                crate::data::same_width("rows of a class", needed, own.nrows())?;
            }
        }
        let (x, labels) = together(inputs, &self.rows);
        ClassPosterior::new(self.models, x.as_ref(), &labels, likelihood)
    }
}

/// Learns one process of one target for each class, and inducing points among its own rows (n_c x D each), in turns. The observer is told the steps of each search, the turn being the part of its progress.
///
/// Cost `turns · (Σ n_c M² + steps · J (J M)³)` and that of the kernels: a matrix of all points and its way back for each class and step.
///
/// # Errors
/// [`GpError`]: another number of processes or tables than classes, more points than rows of a class, nothing that could be factored.
pub fn learn_class_references(
    models: Vec<ExactGp>,
    inputs: &[Mat<f64>],
    options: &ClassLearningOptions,
    observer: &mut Observer<'_, State>,
) -> Result<LearnedClasses, GpError> {
    let classes = options.likelihood.classes();
    crate::data::same_width("processes, one for each class", classes, models.len())?;
    crate::data::same_width("tables of inputs, one for each class", classes, inputs.len())?;
    let streams = Streams::new(options.seed);
    let choose = |models: &[ExactGp], turn: usize| -> Result<Vec<Vec<usize>>, GpError> {
        let streams = streams.child("gp/inducing-turn", turn as u64);
        let of_class = |(class, (model, own)): (usize, (&ExactGp, &Mat<f64>))| {
            let streams = streams.child("gp/inducing-class", class as u64);
            select_rows(Selector::GreedyVariance, model.kernel(), own.as_ref(), options.points, streams)
        };
        models.iter().zip(inputs).enumerate().map(of_class).collect()
    };
    let noises: Vec<f64> = models.iter().map(|model| model.noise().noise_variance()).collect();
    let mut models = models;
    let mut rows = choose(&models, 0)?;
    let (mut turns, mut interrupted) = (Vec::new(), false);
    for turn in 0..options.turns {
        models.iter_mut().zip(&noises).for_each(|(model, noise)| begin_noise(model, *noise));
        let mut told = |progress: &Progress, state: &State| {
            observer(&Progress { part: turn, parts: options.turns, ..*progress }, state)
        };
        let (x, labels) = together(inputs, &rows);
        let (learned, risk, steps, stopped) = learn(models, (x, labels), options, &mut told)?;
        models = learned;
        turns.push(ClassAlternation { rows: rows.clone(), risk, steps });
        interrupted = stopped;
        if stopped {
            break;
        }
        rows = choose(&models, turn + 1)?;
    }
    Ok(LearnedClasses { models, rows, turns, interrupted })
}

/// Gives a process its noise; the rest stays.
fn begin_noise(model: &mut ExactGp, noise: f64) {
    let mut values = model.values();
    if let Some(last) = values.last_mut() {
        *last = noise;
    }
    model.set_values(&values);
}

/// The chosen rows of all classes, one class after the other, and their classes.
pub(in crate::generalised) fn together(inputs: &[Mat<f64>], rows: &[Vec<usize>]) -> (Mat<f64>, Vec<usize>) {
    let places: Vec<(usize, usize)> =
        rows.iter().enumerate().flat_map(|(class, own)| own.iter().map(move |&row| (class, row))).collect();
    let width = inputs.first().map_or(0, Mat::ncols);
    let x = Mat::from_fn(places.len(), width, |i, j| {
        let (class, row) = places[i];
        inputs[class][(row, j)]
    });
    (x, places.into_iter().map(|(class, _)| class).collect())
}

/// One training: the processes, their risk, steps, whether the observer ended it.
fn learn(
    models: Vec<ExactGp>,
    (x, labels): (Mat<f64>, Vec<usize>),
    options: &ClassLearningOptions,
    observer: &mut Observer<'_, State>,
) -> Result<(Vec<ExactGp>, f64, usize, bool), GpError> {
    let starts: Vec<Vec<f64>> = models.iter().map(Parameters::unconstrained).collect();
    let sizes = starts.iter().map(Vec::len).collect();
    let start = starts.concat();
    let mut objective = PointwiseClasses { models, sizes, x, labels, likelihood: options.likelihood };
    let descent = Descent {
        optimiser: options.optimiser.clone(),
        steps: options.steps,
        least_risk: options.least_risk,
        time: None,
    };
    let (found, stopped) = descent.minimise(&mut objective, &start, observer)?;
    objective.set(&found.theta);
    Ok((objective.models, found.value, found.steps, stopped))
}

/// The risk of the free parameters of all processes, one after the other. There may be millions of them, so that names are made when they are asked for.
struct PointwiseClasses {
    models: Vec<ExactGp>,
    /// Free parameters of each.
    sizes: Vec<usize>,
    x: Mat<f64>,
    labels: Vec<usize>,
    likelihood: RobustMax,
}

impl PointwiseClasses {
    fn set(&mut self, theta: &[f64]) {
        for (model, own) in self.models.iter_mut().zip(parts(&self.sizes, theta)) {
            model.set_unconstrained(own);
        }
    }
}

/// Parts of these sizes, one behind the other.
fn parts<'a>(sizes: &'a [usize], theta: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
    sizes.iter().scan(theta, |rest, &size| {
        let (own, behind) = rest.split_at(size);
        *rest = behind;
        Some(own)
    })
}

impl Objective for PointwiseClasses {
    fn dimension(&self) -> usize {
        self.sizes.iter().sum()
    }

    fn parameter_names(&self) -> Vec<String> {
        let of_class = |(class, model): (usize, &ExactGp)| -> Vec<String> {
            model.unconstrained_names().into_iter().map(|name| format!("class {class}: {name}")).collect()
        };
        self.models.iter().enumerate().flat_map(of_class).collect()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.set(theta);
        let failed = |error: GpError| ObjectiveError(error.to_string());
        let (value, natural) =
            pointwise_class_risk(&self.models, self.x.as_ref(), &self.labels, &self.likelihood)
                .map_err(failed)?;
        let chained = self.models.iter().zip(parts(&self.sizes, theta)).zip(&natural);
        let own = chained.flat_map(|((model, theta), natural)| model.chain(theta, natural));
        gradient.iter_mut().zip(own).for_each(|(g, o)| *g = o);
        Ok(value)
    }
}
