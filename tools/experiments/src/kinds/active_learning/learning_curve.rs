//! One method on one pool: labels one after the other, and how good predictions of other rows are.

use super::ProblemSettings;
use super::problem::Problem;
use crate::kinds::prelude::*;
use posterior_decisions::labelling::{
    Choosing, ClassGaussianLabels, Criterion, Latent, Learned, PoolPosterior, Scoring, choose, learn,
    prior_kernel,
};
use posterior_kernels::Kernel;
use posterior_likelihoods::gaussianised::Gaussianised;
use posterior_metrics::Classes;

/// How a method asks for labels of a problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking<'a> {
    pub(super) settings: &'a ProblemSettings,
    pub(super) criterion: Criterion,
    pub(super) gaussianised: Gaussianised,
}

/// Scores by the number of labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LearningCurve {
    pub(super) labels: Vec<usize>,
    pub(super) accuracy: Vec<f64>,
    /// Mean log probability of the test labels, nats.
    pub(super) log_likelihood: Vec<f64>,
    /// Rows in the order in which they were labelled.
    pub(super) rows: Vec<usize>,
}

struct Model {
    gaussian_labels: ClassGaussianLabels,
    posterior: PoolPosterior,
    learned: Option<Learned>,
}

impl Model {
    fn new(
        problem: &Problem,
        asking: &Asking<'_>,
        rows: &[usize],
        before: Option<Learned>,
        seed: u64,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let expression = &asking.settings.kernel;
        let own = ClassGaussianLabels::new(problem.classes, &asking.gaussianised)?;
        let classes: Vec<usize> = rows.iter().map(|&row| problem.labels[row]).collect();
        let (kernel, gaussian_labels, learned): (Box<dyn Kernel<f64>>, _, _) = if asking.settings.learned {
            let gaussian_labels = own.standardised();
            let learned = match before {
                Some(known) if !known.is_outgrown(rows.len(), problem.classes) => known,
                _ => {
                    let d = problem.inputs.ncols();
                    let inputs = Mat::from_fn(rows.len(), d, |i, j| problem.inputs[(rows[i], j)]);
                    let mut watch = |done, total| context.tell("hyperparameters", done, total);
                    let data = (inputs.as_ref(), classes.as_slice());
                    learn(expression, &problem.names, &gaussian_labels, data, seed, &mut watch)?
                }
            };
            (prior_kernel(expression, &problem.names, Some(&learned))?, gaussian_labels, Some(learned))
        } else {
            (expression.build(&problem.names)?, own, None)
        };
        let observed: Vec<_> = classes.iter().map(|&class| gaussian_labels.of_all(class)).collect();
        let posterior = PoolPosterior::prior(kernel, problem.inputs.clone(), gaussian_labels.functions());
        Ok(Self { posterior: posterior.conditioned(rows, &observed)?, gaussian_labels, learned })
    }
}

/// Class probabilities of some rows.
fn probabilities(model: &Model, scoring: &Scoring, rows: std::ops::Range<usize>) -> Result<Vec<f64>> {
    let mut out = Vec::with_capacity(rows.len() * model.gaussian_labels.classes());
    for row in rows {
        let (mean, variance) = model.posterior.latent(row, &model.gaussian_labels);
        out.extend(scoring.probabilities(Latent { mean: &mean, variance: &variance })?);
    }
    Ok(out)
}

/// A map of the plane after so many labels.
pub(super) struct Snapshot {
    pub(super) labels: usize,
    /// Of the second class, at each of the rows behind pool and test set.
    pub(super) probabilities: Vec<f64>,
}

/// Labels rows of the pool until there are enough. Rows behind pool and test set are looked at when there are as many labels as in `looks`.
pub(super) fn follow(
    problem: &Problem,
    asking: &Asking<'_>,
    (looks, streams): (&[usize], Streams),
    stage: &str,
    context: &mut Context<'_>,
) -> Result<(LearningCurve, Vec<Snapshot>)> {
    let &ProblemSettings { pool, test, initial, labels, batch, every, .. } = asking.settings;
    // The same for all methods: the first of each class there is in a random order, then the next.
    let mut order: Vec<usize> = (0..pool).collect();
    rand::seq::SliceRandom::shuffle(&mut order[..], &mut streams.stream("experiment/first-labels"));
    let mut rows: Vec<usize> = (0..problem.classes)
        .filter_map(|class| order.iter().copied().find(|&row| problem.labels[row] == class))
        .take(initial)
        .collect();
    let rest: Vec<usize> = order.into_iter().filter(|row| !rows.contains(row)).collect();
    rows.extend(&rest[..initial.saturating_sub(rows.len()).min(rest.len())]);
    let seed = streams.seed();
    let mut model = Model::new(problem, asking, &rows, None, seed, context)?;
    let scoring = Scoring::new(asking.criterion, &model.gaussian_labels, 0)?;
    let truth = &problem.labels[pool..pool + test];
    let (mut course, mut snapshots) = (LearningCurve::default(), Vec::new());
    let mut next = rows.len();
    loop {
        if rows.len() >= next {
            let p = probabilities(&model, &scoring, pool..pool + test)?;
            let scores = Classes::new(&p, problem.classes, truth)?.scores();
            course.labels.push(rows.len());
            course.accuracy.push(scores.accuracy);
            course.log_likelihood.push(-scores.nll);
            next = rows.len() + every;
        }
        if looks.get(snapshots.len()).is_some_and(|wanted| rows.len() >= *wanted) {
            let p = probabilities(&model, &scoring, pool + test..problem.inputs.nrows())?;
            let probabilities = p.chunks_exact(problem.classes).map(|p| p[1]).collect();
            snapshots.push(Snapshot { labels: rows.len(), probabilities });
        }
        if rows.len() >= labels {
            break;
        }
        context.step(stage, rows.len(), labels)?;
        let mut is_free = vec![true; pool];
        rows.iter().for_each(|&row| is_free[row] = false);
        let free: Vec<usize> = (0..pool).filter(|&row| is_free[row]).collect();
        let streams = streams.child("experiment/labels", rows.len() as u64);
        let choosing = Choosing {
            gaussian_labels: &model.gaussian_labels,
            scoring: &scoring,
            pending: &[],
            free: &free,
            streams,
        };
        let count = batch.min(labels - rows.len());
        let chosen =
            choose(&mut model.posterior, choosing, count, &mut |_, _| posterior_optim::Signal::Continue)?;
        for chosen in chosen {
            model.posterior.observe(chosen.row, &model.gaussian_labels.of_all(problem.labels[chosen.row]));
            rows.push(chosen.row);
        }
        if model.learned.as_ref().is_some_and(|l| l.is_outgrown(rows.len(), problem.classes)) {
            let before = model.learned.take();
            model = Model::new(problem, asking, &rows, before, seed, context)?;
        }
    }
    course.rows = rows;
    Ok((course, snapshots))
}

impl LearningCurve {
    /// The first number of labels from which on, at some score, `values` is at least `level`; None where it never was.
    pub(super) fn reached(&self, values: &[f64], level: f64) -> Option<usize> {
        values.iter().position(|v| *v >= level).map(|place| self.labels[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_reached_where_they_first_are() {
        let course = LearningCurve {
            labels: vec![10, 20, 30],
            accuracy: vec![0.5, 0.8, 0.7],
            ..LearningCurve::default()
        };
        assert_eq!(course.reached(&course.accuracy, 0.75), Some(20));
        assert_eq!(course.reached(&course.accuracy, 0.5), Some(10));
        assert_eq!(course.reached(&course.accuracy, 0.9), None);
    }
}
