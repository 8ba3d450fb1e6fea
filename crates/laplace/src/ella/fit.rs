//! Landmarks, directions, and the pass over the data.

use super::options::{EllaOptions, EllaReport};
use super::plan::plan;
use super::posterior::Ella;
use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::checkpointer::SavedState;
use crate::error::check_memory;
use crate::learned::Learned;
use crate::problem::{Data, Part, Problem};
use crate::run::{Run, Stage};
use crate::scores::Scored;
use faer::Mat;
use posterior_likelihoods::Integration;
use posterior_linalg::random::Streams;
use posterior_linear::FeatureMap;
use posterior_linear::curvature::{Accumulator, FisherEstimate, Form, SumMatrix};
use posterior_linear::features::{LandmarkBasis, Projected, balanced_landmarks};
use posterior_networks::Precision;
use posterior_networks::train::{Examples, Targets};
use posterior_optim::Signal;
use posterior_store::Tensors;
use posterior_tangent::{Observed, Tangent, ranges};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const METHOD: &str = "ella";

/// Parts of the pass after which it may be kept.
const PARTS: usize = 20;

/// Where the pass stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Facts {
    report: EllaReport,
    fit: FitSums,
    /// Best score so far, and the examples then.
    best: Option<(f64, usize)>,
    best_fit: FitSums,
    waited: usize,
}

impl<T: Precision> Ella<T> {
    /// Decomposes landmarks and sums the curvature along what they see. Validation examples are needed where the options look at them. An interrupted call keeps its sums, from which the same call goes on.
    ///
    /// # Errors
    /// [`LaplaceError`]: options out of range, bad targets or inputs, more memory than allowed, interruption.
    pub fn fit(
        problem: &Problem<'_, T>,
        options: &EllaOptions,
        run: &mut Run<'_>,
    ) -> Result<(Self, FitSums, EllaReport), LaplaceError> {
        let &Problem { data: Data { network, examples, validation, likelihood }, selection, seed, memory } =
            problem;
        let outputs = problem.check()?;
        check(options, examples.len(), validation.is_some())?;
        let needed = plan(&problem.size(selection), options).bytes();
        let (landmarks, features) = (options.landmarks(examples.len()), options.features);
        let what = format_args!("ELLA with {landmarks} landmarks and {features} features");
        check_memory(needed, memory, what, "take fewer landmarks or features, or allow more memory")?;
        let tangent = Tangent::new(network, selection);
        let (mut facts, basis, saved) = match run.checkpointer.earlier() {
            Some(state) => {
                let (facts, mut tensors): (Facts, Tensors) = state.open(METHOD)?;
                let basis = tensors.columns::<T>("basis", None)?;
                let k = basis.ncols();
                (facts, basis, Some((tensors.matrix("sums", k, k)?, tensors.matrix("best", k, k)?)))
            }
            None => {
                let classes = classes(examples);
                let chosen = balanced_landmarks(examples.len(), classes.as_deref(), landmarks, seed);
                let mut rng = Streams::new(seed).stream("laplace/ella/outputs");
                let along: Vec<usize> = chosen
                    .iter()
                    .map(|&i| match &classes {
                        Some(classes) if !options.random_classes && classes[i] < outputs => classes[i],
                        _ => rng.random_range(0..outputs),
                    })
                    .collect();
                let (observed, mut stage) = (problem.observed(), run.stage(Stage::Landmarks));
                let found = LandmarkBasis::of(&tangent, &observed, (&chosen, &along), features, &mut stage)?;
                let report = EllaReport {
                    landmarks: chosen.len(),
                    eigenvalues: found.eigenvalues,
                    dropped: found.dropped,
                    ..EllaReport::default()
                };
                (Facts { report, ..Facts::default() }, found.basis, None)
            }
        };
        let basis = Arc::new(basis);
        let k = basis.ncols();
        let projected = Projected::new(&tangent, &basis)?;
        let mut sums = Accumulator::new(&projected.segments(), Form::Full, FisherEstimate::Exact)?;
        let mut best = Mat::zeros(k, k);
        if let Some((own, earlier)) = saved {
            let mut blocks = sums.blocks().to_vec();
            blocks.iter_mut().for_each(|block| block.matrix = SumMatrix::Dense(own.clone()));
            sums.restore(blocks, facts.fit)?;
            best = earlier;
        }
        // A part of the data stands for all of them only in a random order.
        let mut order: Vec<usize> = (0..examples.len()).collect();
        if options.val_every.is_some() {
            order.shuffle(&mut Streams::new(seed).stream("laplace/ella/order"));
        }
        let every = options.val_every.unwrap_or_else(|| examples.len().div_ceil(PARTS)).max(1);
        let save = |facts: &Facts, sums: &Accumulator, best: &Mat<f64>| {
            let mut tensors = Tensors::default();
            tensors.insert_columns("basis", basis.as_ref().as_ref());
            tensors.insert_matrix("sums", matrix(sums).as_ref());
            tensors.insert_matrix("best", best.as_ref());
            SavedState::new(METHOD, &Facts { fit: *sums.fit(), ..facts.clone() }, tensors)
        };
        let mut stopped = false;
        while sums.fit().examples < examples.len() && !facts.report.stopped_early {
            let seen = sums.fit().examples;
            let end = ((seen / every + 1) * every).min(examples.len());
            let part = Part { whole: examples, indices: order[..end].to_vec() };
            let source = Observed { examples: &part, likelihood };
            let before = (facts.clone(), sums.clone());
            let mut stage = |done, _| {
                let signal = run.tell(Stage::Curvature, done, examples.len());
                stopped |= signal == Signal::Stop;
                signal
            };
            if let Err(error) = sums.extend(&projected, &source, likelihood, seen, &mut stage) {
                run.checkpointer.keep(|| save(&facts, &sums, &best))?;
                return Err(error.into());
            }
            if let (Some(_), Some(validation)) = (options.val_every, validation) {
                let share = end as f64 / examples.len() as f64;
                let own = Ella { selection: selection.clone(), basis: basis.clone(), gram: matrix(&sums) };
                let held = Data { examples: validation, ..problem.data };
                let score = own.score(held, options.val_precision * share, run);
                if let Err(LaplaceError::Interrupted) = score {
                    // A part whose score is missing is summed again.
                    run.checkpointer.keep(|| save(&before.0, &before.1, &best))?;
                }
                let score = score?;
                facts.report.scores.push((end, score));
                if facts.best.is_none_or(|b| score < b.0) {
                    (facts.best, facts.best_fit) = (Some((score, end)), *sums.fit());
                    (facts.waited, best) = (0, own.gram);
                } else {
                    facts.waited += 1;
                    facts.report.stopped_early = facts.waited >= options.patience && end < examples.len();
                }
            }
            if stopped && end < examples.len() {
                run.checkpointer.keep(|| save(&facts, &sums, &best))?;
                return Err(LaplaceError::Interrupted);
            }
            run.checkpointer.offer(|| save(&facts, &sums, &best))?;
        }
        let mut report = facts.report;
        // What was scored is what is kept: of so many examples, for a prior that is scaled by their share.
        let (gram, fit) = match facts.best {
            Some(_) => (best, facts.best_fit),
            None => (matrix(&sums), *sums.fit()),
        };
        report.examples = fit.examples;
        if report.dropped > 0 {
            report.notes.push(format!(
                "{} of the {features} features that were asked for are none at the landmarks: {k} are kept",
                report.dropped
            ));
        }
        Ok((Ella { selection: selection.clone(), basis: basis.clone(), gram }, fit, report))
    }

    /// Mean negative log predictive density of held-out examples.
    fn score(&self, held: Data<'_, T>, precision: f64, run: &mut Run<'_>) -> Result<f64, LaplaceError> {
        let (posterior, count) = (self.condition(&[(precision, 1.0)])?, held.examples.len());
        let by = Scored { data: held, integration: Integration::Probit, displacement: None };
        let mut sums = [Ok(0.0)];
        by.add(
            &mut |x, wanted| posterior.latents(held.network, x, wanted),
            &[1.0],
            &mut sums,
            &mut |range| run.step(Stage::Validation, range.end, count),
        )?;
        let [sum] = sums;
        Ok(sum? / count.max(1) as f64)
    }
}

fn check(options: &EllaOptions, examples: usize, validation: bool) -> Result<(), LaplaceError> {
    let landmarks = options.landmarks(examples);
    let problem = if examples == 0 {
        "there are no examples to learn from".into()
    } else if landmarks == 0 || options.features == 0 {
        "ELLA needs at least one landmark and one feature".into()
    } else if landmarks > examples {
        format!(
            "{landmarks} landmarks were asked for, but there are {examples} examples: ask for no more than that"
        )
    } else if options.val_every == Some(0) || options.patience == 0 {
        "looks at held-out examples need at least one example between them and a patience of at least one"
            .into()
    } else if !(options.val_precision > 0.0 && options.val_precision.is_finite()) {
        "the prior precision for looks at held-out examples must be positive and finite".into()
    } else if options.val_every.is_some() && !validation {
        "to end early, held-out examples are needed: give some, or leave `val_every` out".into()
    } else {
        return Ok(());
    };
    Err(LaplaceError::Request(problem))
}

/// Each example's class, where targets are classes.
fn classes<T: Precision>(examples: &dyn Examples<T>) -> Option<Vec<usize>> {
    let mut all = Vec::with_capacity(examples.len());
    for range in ranges(0, examples.len(), 1024) {
        match examples.batch(&range.collect::<Vec<_>>(), None).1 {
            Targets::Classes(own) => all.extend(own.into_iter().map(|c| c as usize)),
            Targets::Values(_) => return None,
        }
    }
    Some(all)
}

/// The sums as a matrix with both triangles.
fn matrix(sums: &Accumulator) -> Mat<f64> {
    match sums.blocks() {
        [block] => match &block.matrix {
            SumMatrix::Dense(m) => Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i.max(j), i.min(j))]),
            _ => Mat::new(),
        },
        _ => Mat::new(),
    }
}
