//! Passes over data.

use super::{BlockSum, FisherEstimate, FitSums, Form, OutputCurvature, Segment, sums};
use crate::features::{BatchSource, chunks};
use crate::structure::Structure;
use crate::{FeatureMap, LinearError};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_optim::Signal;
use std::ops::Range;

/// Bytes that the private sums of strips may take together.
const PRIVATE_SUMS: usize = 256 << 20;

/// Strips that data are cut into at least, if they have as many batches.
const STRIPS: usize = 32;

/// Batches of a strip at most.
const BATCHES_EACH: usize = 4;

/// Strips of the data that are summed apart at one time, each in private sums of so many bytes: as many as there are threads and room. None where not even two have room: then every batch is
/// added to the sums themselves, and threads share it. Which of the two does not depend on the number of threads, and strips are added up in their order: so neither do the sums.
pub fn strips_at_once(bytes: usize) -> Option<usize> {
    let room = PRIVATE_SUMS / bytes.max(1);
    (room >= 2).then(|| room.min(rayon::current_num_threads()))
}

/// Batches of a strip, for data of so many.
pub fn strip_batches(batches: usize) -> usize {
    (batches / STRIPS).clamp(1, BATCHES_EACH)
}

/// The sums of a curvature, while they are being made and after.
#[derive(Clone, Debug)]
pub struct Accumulator {
    form: Form,
    estimate: FisherEstimate,
    blocks: Vec<BlockSum>,
    fit: FitSums,
}

impl Accumulator {
    /// Empty sums for weights in segments.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without weights; [`LinearError::Factors`] when the Kronecker form is asked for some entries of a tensor.
    pub fn new(segments: &[Segment], form: Form, estimate: FisherEstimate) -> Result<Self, LinearError> {
        if segments.iter().all(|s| s.range.is_empty()) {
            return Err(LinearError::Empty { what: "selected weights" });
        }
        if form == Form::Kronecker && segments.iter().any(|s| !s.whole) {
            return Err(LinearError::Factors);
        }
        Ok(Self { form, estimate, blocks: sums::layout(segments, form), fit: FitSums::default() })
    }

    /// Which entries are kept.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How the Fisher matrix is estimated.
    pub fn estimate(&self) -> FisherEstimate {
        self.estimate
    }

    /// How well the model fits what was seen; its number of examples says where to go on.
    pub fn fit(&self) -> &FitSums {
        &self.fit
    }

    /// The sums, to be saved.
    pub fn blocks(&self) -> &[BlockSum] {
        &self.blocks
    }

    /// Takes up sums that were saved before, made for the same weights and form.
    ///
    /// # Errors
    /// [`LinearError::Foreign`] when their names or sizes differ or a value is not finite.
    pub fn restore(&mut self, blocks: Vec<BlockSum>, fit: FitSums) -> Result<(), LinearError> {
        let fits = blocks.len() == self.blocks.len()
            && self.blocks.iter().zip(&blocks).all(|(a, b)| a.same_layout(b) && b.is_finite());
        if !fits {
            return Err(LinearError::Foreign { what: "curvature" });
        }
        (self.blocks, self.fit) = (blocks, fit);
        Ok(())
    }

    /// Adds the examples from number `from` on: `self.fit().examples` to go on after an interruption, 0 to add further data. The observer is told the examples done and their number now and then;
    /// when it says stop, what is summed stays whole and can be continued.
    ///
    /// # Errors
    /// Those of features and data, outputs that are not finite, [`LinearError::Interrupted`].
    pub fn extend<T: Real, F: FeatureMap<T>>(
        &mut self,
        features: &F,
        source: &dyn BatchSource<F::Inputs>,
        likelihood: &OutputLikelihood,
        from: usize,
        observer: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<(), LinearError> {
        let count = source.examples();
        let size = features.examples_for_curvature(self.estimate, self.estimate.width(likelihood)).max(1);
        let batches: Vec<Range<usize>> =
            chunks(count.saturating_sub(from), size).map(|r| r.start + from..r.end + from).collect();
        // Strips of all the data, so that a sum that goes on after an interruption has those of one that was not interrupted.
        let strip = strip_batches(count.div_ceil(size));
        let at_once = strips_at_once(sums::bytes(&self.blocks));
        let (form, estimate) = (self.form, self.estimate);
        let add = |range: &Range<usize>, blocks: &mut [BlockSum], fit: &mut FitSums| {
            let (inputs, targets) = source.batch(range.clone())?;
            let features = features.at(inputs)?;
            let outputs = features.outputs();
            if let Some(position) = outputs.iter().position(|f| !f.is_finite()) {
                return Err(LinearError::Output { example: range.start + position / likelihood.outputs() });
            }
            let observed = OutputCurvature {
                likelihood,
                estimate,
                targets: &targets,
                outputs: &outputs,
                first: range.start,
            };
            features.add_curvature(form, &observed, blocks)?;
            fit.add_batch(likelihood, &targets, &outputs);
            Ok(())
        };
        for round in batches.chunks(at_once.map_or(1, |strips| strips * strip)) {
            let end = round.last().map_or(from, |r| r.end);
            if at_once.is_some() {
                let parts = parallel::map(round.len().div_ceil(strip), 1, |i| -> Result<_, LinearError> {
                    let own = &round[i * strip..round.len().min((i + 1) * strip)];
                    let (mut blocks, mut fit) = (sums::zeroed(&self.blocks), FitSums::default());
                    own.iter().try_for_each(|range| add(range, &mut blocks, &mut fit))?;
                    Ok((blocks, fit))
                });
                // In order, so that neither the first error nor the last digit depends on who was quicker.
                for part in parts {
                    let (blocks, fit) = part?;
                    sums::add(&mut self.blocks, &blocks);
                    self.fit.add(&fit);
                }
            } else {
                let (blocks, fit) = (&mut self.blocks, &mut self.fit);
                round.iter().try_for_each(|range| add(range, blocks, fit))?;
            }
            if observer(end, count) == Signal::Stop && end < count {
                return Err(LinearError::Interrupted);
            }
        }
        Ok(())
    }

    /// The curvature.
    ///
    /// # Errors
    /// [`LinearError::Empty`] when no example was seen; a sum that is not finite.
    pub fn finish(&self) -> Result<Structure, LinearError> {
        if self.fit.examples == 0 {
            return Err(LinearError::Empty { what: "examples to learn from" });
        }
        Ok(sums::structure(&self.blocks, self.fit.examples)?)
    }
}
