//! The criterion as an objective of the free hyperparameters: on one set of rows, or summed over several that share them.

use super::evidence::{Evaluation, log_evidence_and_gradient};
use super::fit::{Criterion, FitOptions};
use super::leave_one_out::leave_one_out_and_gradient;
use super::model::ExactGp;
use super::several::{SeveralObservations, log_evidence_of_several};
use crate::search::{self, Scored, Searched};
use crate::{GpError, Observations};
use faer::Mat;
use posterior_optim::{Observer, Parameters, State};

/// Data that are taken as independent of other parts given the hyperparameters.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// Targets that share their noise.
    One(&'a Observations),
    /// Functions with noise of their own each; their criterion is the evidence.
    Several(&'a SeveralObservations),
}

impl Part<'_> {
    fn values(&self) -> usize {
        match self {
            Self::One(data) => data.rows() * data.targets().ncols(),
            Self::Several(data) => data.rows() * data.functions(),
        }
    }
}

/// Maximises the criterion, summed over `parts`, plus hyperpriors, from several starts; with a buffer of the size of the last part. Cost of an evaluation: the sum over parts; memory: the largest part's.
pub(crate) fn maximise(
    model: ExactGp,
    parts: &[Part<'_>],
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<(Searched<ExactGp>, Option<Mat<f64>>), GpError> {
    let count = parts.iter().map(Part::values).sum();
    let second = Some(quiet(&model));
    // The n x n buffer, handed from evaluation to evaluation.
    let mut kept: Option<Mat<f64>> = None;
    let evaluate = |model: &ExactGp| -> Result<Scored, GpError> {
        let mut all = Scored { value: 0.0, gradient: vec![0.0; model.values().len()], jitter: 0.0 };
        for part in parts {
            let buffer = kept.take();
            let found = match (part, options.criterion) {
                (Part::One(data), Criterion::Evidence) => log_evidence_and_gradient(model, data, buffer),
                (Part::One(data), Criterion::LeaveOneOut) => leave_one_out_and_gradient(model, data, buffer),
                (Part::Several(data), _) => log_evidence_of_several(model, data, buffer),
            };
            let Evaluation { value, gradient, cholesky, buffer } = found?;
            kept = Some(buffer);
            all.jitter = all.jitter.max(cholesky.jitter);
            all.value += value;
            all.gradient.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
        }
        Ok(all)
    };
    let searched = search::maximise(model, count, options, second, evaluate, observer)?;
    Ok((searched, kept))
}

/// The model's values with little noise.
///
/// Evidences tend to have one maximum that calls fine variation noise and one that calls it signal (Rasmussen and Williams
/// 2006, section 5.4.1), so the second start is on the other side of that divide from a usual first.
fn quiet(model: &ExactGp) -> Vec<f64> {
    let mut values = model.values();
    if let Some(noise) = values.last_mut() {
        let floor = model.noise().floor();
        *noise = noise.min(if floor > 0.0 { 3.0 * floor } else { 1e-3 * *noise });
    }
    values
}
