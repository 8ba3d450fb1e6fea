//! Landmarks, directions, and the pass over the data.

use super::{Ella, EllaOptions, EllaReport};
use crate::accumulate::FitSums;
use crate::fit::Part;
use crate::keep::{Keeper, SavedState};
use crate::tune::{batch_nll, wanted};
use crate::{LaplaceError, Stage};
use faer::Mat;
use posterior_likelihoods::{Integration, OutputLikelihood, PredictiveRule};
use posterior_linalg::compiled_here;
use posterior_linalg::random::Streams;
use posterior_linear::FeatureMap;
use posterior_linear::curvature::{Accumulator, FisherEstimate, Form, SumMatrix};
use posterior_linear::features::{LandmarkBasis, Projected, balanced_landmarks};
use posterior_networks::train::{Examples, Targets};
use posterior_networks::{Network, PerNetworkPrecision, Precision, Selection};
use posterior_optim::Signal;
use posterior_store::Tensors;
use posterior_tangent::{Batch, Observed, Tangent, check_outputs, ranges};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

type Observer<'a> = &'a mut dyn FnMut(Stage, usize, usize) -> Signal;

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
    /// [`LaplaceError`]: options out of range, bad targets or inputs, more than `memory` bytes, interruption.
    pub fn fit(
        network: &Network<T>,
        selection: &Selection,
        examples: &dyn Examples<T>,
        validation: Option<&dyn Examples<T>>,
        likelihood: &OutputLikelihood,
        options: &EllaOptions,
        seed: u64,
        memory: u64,
        keeper: &mut Keeper<'_>,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<(Self, FitSums, EllaReport), LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a, 'k: 'a] run, (
            network: &'a Network<T> = network,
            selection: &'a Selection = selection,
            examples: &'a dyn Examples<T> = examples,
            validation: Option<&'a dyn Examples<T>> = validation,
            likelihood: &'a OutputLikelihood = likelihood,
            options: &'a EllaOptions = options,
            seed: u64 = seed,
            memory: u64 = memory,
            keeper: &'a mut Keeper<'k> = keeper,
            observer: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'b) = observer,
        ) -> Result<(Ella<T>, FitSums, EllaReport), LaplaceError>)
    }
}

fn check(options: &EllaOptions, examples: usize, validation: bool) -> Result<(), LaplaceError> {
    let refuse = |problem: &str| Err(LaplaceError::Request(problem.into()));
    if examples == 0 {
        return refuse("there are no examples to learn from");
    }
    let landmarks = options.landmarks(examples);
    if landmarks == 0 || options.features == 0 {
        return refuse("ELLA needs at least one landmark and one feature");
    }
    if landmarks > examples {
        return Err(LaplaceError::Request(format!(
            "{landmarks} landmarks were asked for, but there are {examples} examples: ask for no more than that"
        )));
    }
    if options.val_every == Some(0) || options.patience == 0 {
        return refuse(
            "looks at held-out examples need at least one example between them and a patience of at least one",
        );
    }
    if !(options.val_precision > 0.0 && options.val_precision.is_finite()) {
        return refuse("the prior precision for looks at held-out examples must be positive and finite");
    }
    if options.val_every.is_some() && !validation {
        return refuse("to end early, held-out examples are needed: give some, or leave `val_every` out");
    }
    Ok(())
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

fn run<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    likelihood: &OutputLikelihood,
    options: &EllaOptions,
    seed: u64,
    memory: u64,
    keeper: &mut Keeper<'_>,
    observer: Observer<'_>,
) -> Result<(Ella<T>, FitSums, EllaReport), LaplaceError> {
    let outputs = check_outputs(network, likelihood)?;
    likelihood.check_curvature()?;
    check(options, examples.len(), validation.is_some())?;
    let (curvature, batch, _) = super::plan(network, selection, examples.len(), likelihood, options);
    if curvature.saturating_add(batch) > memory {
        return Err(LaplaceError::Memory {
            what: format!(
                "ELLA with {} landmarks and {} features",
                options.landmarks(examples.len()),
                options.features
            ),
            needed: curvature.saturating_add(batch),
            allowed: memory,
            remedy: "take fewer landmarks or features, or allow more memory".into(),
        });
    }
    let tangent = Tangent::new(network, selection);
    let (mut facts, basis, saved) = match keeper.earlier() {
        Some(state) => {
            let (facts, mut tensors): (Facts, Tensors) = state.open(METHOD)?;
            let basis = tensors.columns::<T>("basis", None)?;
            let k = basis.ncols();
            (facts, basis, Some((tensors.matrix("sums", k, k)?, tensors.matrix("best", k, k)?)))
        }
        None => {
            let classes = classes(examples);
            let chosen = balanced_landmarks(
                examples.len(),
                classes.as_deref(),
                options.landmarks(examples.len()),
                seed,
            );
            let mut rng = Streams::new(seed).stream("laplace/ella/outputs");
            let along: Vec<usize> = chosen
                .iter()
                .map(|&i| match &classes {
                    Some(classes) if !options.random_classes && classes[i] < outputs => classes[i],
                    _ => rng.random_range(0..outputs),
                })
                .collect();
            let observed = Observed { examples, likelihood };
            let mut stage = |done, all| observer(Stage::Landmarks, done, all);
            let found =
                LandmarkBasis::of(&tangent, &observed, (&chosen, &along), options.features, &mut stage)?;
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
            let signal = observer(Stage::Curvature, done, examples.len());
            stopped |= signal == Signal::Stop;
            signal
        };
        if let Err(error) = sums.extend(&projected, &source, likelihood, seen, &mut stage) {
            keeper.keep(|| save(&facts, &sums, &best))?;
            return Err(error.into());
        }
        if let (Some(_), Some(validation)) = (options.val_every, validation) {
            let share = end as f64 / examples.len() as f64;
            let own = Ella { selection: selection.clone(), basis: basis.clone(), gram: matrix(&sums) };
            let score = own.score(network, validation, likelihood, options.val_precision * share, observer);
            if let Err(LaplaceError::Interrupted) = score {
                // A part whose score is missing is summed again.
                keeper.keep(|| save(&before.0, &before.1, &best))?;
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
            keeper.keep(|| save(&facts, &sums, &best))?;
            return Err(LaplaceError::Interrupted);
        }
        keeper.offer(|| save(&facts, &sums, &best))?;
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
            "{} of the {} features that were asked for are none at the landmarks: {k} are kept",
            report.dropped, options.features
        ));
    }
    Ok((Ella { selection: selection.clone(), basis: basis.clone(), gram }, fit, report))
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

impl<T: Precision> Ella<T> {
    /// Mean negative log predictive density of held-out examples.
    fn score(
        &self,
        network: &Network<T>,
        validation: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        precision: f64,
        observer: Observer<'_>,
    ) -> Result<f64, LaplaceError> {
        let posterior = self.condition(precision, 1.0)?;
        let rule = PredictiveRule::new(likelihood.clone(), Integration::Probit)?;
        let (mut sum, count) = (0.0, validation.len());
        for range in ranges(0, count, 512) {
            let batch = Batch::read(validation, range, likelihood)?;
            let latent = posterior.latent(network, &batch.x, wanted(Integration::Probit, likelihood))?;
            sum += batch_nll(&rule, &latent, &batch)?;
            if observer(Stage::Validation, batch.range.end, count) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(sum / count.max(1) as f64)
    }
}
