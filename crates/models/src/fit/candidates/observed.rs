//! What is tried beside the default of classes and counts.

use super::found;
use crate::options::Limits;
use crate::prepare::{FeatureMaps, OriginalRows, maps_in_words, maps_of};
use crate::rows::worse_by;
use crate::{FitRecord, FitRequest, FitStage, Model, ModelError, Observed, Target};
use faer::{Mat, MatRef};
use posterior_notes::fixes::EXACT;
use posterior_optim::{Observer, Reason};
use std::time::Instant;

impl Model {
    /// Learns from rows that are ready: pseudo-targets, bound or mode, hyperparameters, posterior. Methods that have no closed form for rows left out are judged on some that are held back. Of few rows, maps of
    /// skewed features are tried, and kept where rows are predicted better, beyond the standard error of that.
    ///
    /// The observer is told each step of everything that happens and may end it.
    ///
    /// # Errors
    /// [`ModelError`]: what does not go together, not enough memory; [`ModelError::Interrupted`] when the observer ended it.
    pub fn fit_observed(
        observed: Observed,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<Self, ModelError> {
        if !is_open(&observed, request) {
            return Ok(Self::fit_judged(observed, request, observer)?.0);
        }
        let started = Instant::now();
        let x = observed.original_features();
        let maps = maps_of(&observed.schema, request, x.as_ref());
        let (mut best, judged) = Self::fit_judged(observed.clone(), request, observer)?;
        let mut known = judged.map_or_else(Vec::new, |own| own.surprises);
        for own in maps {
            let spent = started.elapsed().as_secs_f64();
            let left = request.limits.time.map(|budget| budget - spent);
            if known.is_empty() || left.is_some_and(|left| left < spent) {
                break;
            }
            let mut changed =
                FitRequest { limits: Limits { time: left, ..request.limits }, ..request.clone() };
            // What is tried is not gone on with.
            if let Some(large) = changed.method.large_mut() {
                large.checkpoint = None;
            }
            let words = maps_in_words(&own, &observed.schema);
            let mapped = observed.mapped(own, x.as_ref())?;
            match found(Self::fit_judged(mapped, &changed, observer)) {
                Ok(Some((mut model, Some(judged)))) => {
                    let Some((gain, error)) = worse_by(&known, &judged.surprises) else { continue };
                    if let Some(fit) = likelihood_record(&mut model) {
                        fit.choice.push_str(&format!(
                            "; {words}, because the NLL on left-out rows is {gain:.3} +- {error:.3} below that of what was tried before ({EXACT} takes columns as they are)"
                        ));
                    }
                    (best, known) = (model, judged.surprises);
                }
                Ok(_) => {}
                Err(_) => {
                    if let Some(fit) = likelihood_record(&mut best) {
                        fit.reason = Reason::Interrupted;
                    }
                    break;
                }
            }
        }
        if let Some(fit) = likelihood_record(&mut best) {
            fit.seconds = started.elapsed().as_secs_f64();
        }
        Ok(best)
    }
}

impl Observed {
    /// Features in their own units, n x D.
    pub(crate) fn original_features(&self) -> Mat<f64> {
        let z = self.data.inputs();
        Mat::from_fn(z.nrows(), z.ncols(), |i, j| self.standardisation.feature_back(j, z[(i, j)]))
    }

    /// The same with maps of some features (x in their own units).
    pub(crate) fn mapped(&self, maps: FeatureMaps, x: MatRef<'_, f64>) -> Result<Self, ModelError> {
        let standardisation = self.standardisation.clone().mapping(maps, x);
        let data = self.data.clone().with_inputs(standardisation.features(x))?;
        Ok(Self { standardisation, data, ..self.clone() })
    }
}

/// Whether nothing is said that decides what is tried.
fn is_open(observed: &Observed, request: &FitRequest) -> bool {
    let rows = observed.rows();
    (super::FEWEST..=OriginalRows::MOST).contains(&rows)
        && request.method.settings().is_automatic()
        && request.prior.kernel == FitRequest::default().prior.kernel
        && request.start.hyperparameters().is_none()
        && !matches!(observed.target, Target::Events { .. })
}

fn likelihood_record(model: &mut Model) -> Option<&mut crate::GeneralisedSummary> {
    match super::record(model) {
        Some(FitRecord::Likelihood(fit)) => Some(fit),
        _ => None,
    }
}
