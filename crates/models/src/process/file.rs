//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::{FitRecord, GeneralisedSummary, Header, Process, ScalableSummary, Solver, StandInSummary};
use crate::calibration::{Calibration, Records};
use crate::method::{self, Stored, kind};
use crate::model::{Model, TableSource};
use crate::options::KernelPrecision;
use crate::output::{LikelihoodOutput, Output};
use crate::rows::TrainingRows;
use posterior_data::TransformedTarget;
use posterior_store::{Container, StoreError, Tensors};
use std::sync::Arc;

impl Process<'_> {
    /// The arrays of its file. Its size is about `4n² + 8n(D + 4)` bytes for the exact method: the packed factor, inputs, targets, weights, fingerprints;
    /// `8n(D + 1)` and the weights of mean and samples for iterative ones; `8m²` for bounds; each with `8n` for the fingerprints of the rows. Under other likelihoods than Gaussian noise it is as much for each latent function.
    pub(crate) fn tensors(&self) -> Tensors {
        let mut tensors = Tensors::default();
        self.predictor.write(&mut tensors);
        self.training.write(&mut tensors);
        if let Some(noise) = self.noise_of_places() {
            super::noise::tensors(noise, &mut tensors);
        }
        self.calibration.write(&mut tensors);
        tensors
    }
}

impl Model {
    pub(crate) fn of_process(container: Container<Header>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        check(&header).map_err(|e| tensors.corrupt(e))?;
        let training = TrainingRows::read(&mut tensors)?;
        let records = match &header.record.fit {
            FitRecord::Gaussian(fit) => {
                Records { numbers: std::slice::from_ref(&fit.recalibration), ..Records::default() }
            }
            FitRecord::Likelihood(fit) => Records {
                classes: fit.recalibration.as_ref(),
                tails: fit.intervals.as_ref(),
                ..Records::default()
            },
        };
        let calibration = Calibration::read(records, 1, &mut tensors)?;
        let process = match header.output.gaussian().and_then(|own| own.noise.as_ref()) {
            Some(own) => {
                let names = header.inputs.schema.feature_names();
                Some(Arc::new(super::noise::read(own, &names, &mut tensors)?))
            }
            None => None,
        };
        let predictor = method::read(header.stored(), &mut tensors)?;
        if let Some((name, _)) = tensors.iter().next() {
            return Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing")));
        }
        let Header { inputs, mut output, record } = header;
        if let Output::Gaussian(own) = &mut output {
            own.process = process;
        }
        Ok(Self::of_table(TableSource { inputs, output, record }, predictor, calibration, training))
    }
}

/// What numbers of a header must be, whoever wrote it.
fn check(header: &Header) -> Result<(), String> {
    header.inputs.sound()?;
    let sound = |own: &TransformedTarget| own.by.is_sound() && own.scale > 0.0 && own.mean.is_finite();
    if !header.inputs.standardisation.transform.as_deref().is_none_or(sound) {
        return Err("the map of its target is none".into());
    }
    match (&header.output, &header.record.fit) {
        (Output::Gaussian(_), FitRecord::Gaussian(_)) => Ok(()),
        (Output::Likelihood(own), FitRecord::Likelihood(_)) => own.sound(header.inputs.schema.features.len()),
        _ => Err("its likelihood is not that of its target".into()),
    }
}

impl Header {
    /// What a reader of its predictor is given.
    fn stored(&self) -> Stored<'_> {
        let record = &self.record;
        let stored = Stored {
            kind: "",
            method: &record.method,
            schema: &self.inputs.schema,
            kernel: &record.kernel,
            mean: record.mean,
            rows: record.rows,
            hyperparameters: &record.hyperparameters,
            likelihood: None,
            noise_floor: record.noise_floor.unwrap_or(0.0),
            cholesky: record.cholesky.unwrap_or_default(),
            inducing: None,
            solved: None,
            deep: None,
            level: None,
            variation: None,
            functions: None,
        };
        match (&record.fit, self.output.likelihood()) {
            (FitRecord::Likelihood(fit), Some(output)) => of_likelihood(stored, fit, output),
            _ => of_gaussian(stored, record.fit.scalable()),
        }
    }
}

/// The same of a fit to numbers with Gaussian noise.
fn of_gaussian<'a>(stored: Stored<'a>, solved: Option<&'a ScalableSummary>) -> Stored<'a> {
    let kind = match solved.map(|own| (&own.solver, own.precision)) {
        _ if stored.method == "exact" => kind::EXACT,
        Some((Solver::Collapsed | Solver::Stochastic { .. }, _)) => kind::INDUCING,
        Some((Solver::Features, _)) => match solved.and_then(|own| own.deep.as_ref()) {
            Some(deep) if deep.dense => kind::EMBEDDED,
            _ => kind::LOW_RANK,
        },
        Some((Solver::Variation, _)) => kind::GENERALISED,
        Some((Solver::Rows(_) | Solver::Inducing(_), KernelPrecision::Single)) => kind::SINGLE,
        Some((Solver::Rows(_) | Solver::Inducing(_), KernelPrecision::Double)) => kind::DOUBLE,
        None => "",
    };
    Stored {
        kind,
        inducing: solved.map(|own| own.inducing),
        solved,
        deep: solved.and_then(|own| own.deep.as_ref()),
        variation: solved.and_then(|own| own.gvi.as_ref()),
        ..stored
    }
}

/// The same of a fit under another likelihood.
fn of_likelihood<'a>(
    stored: Stored<'a>,
    fit: &'a GeneralisedSummary,
    output: &LikelihoodOutput,
) -> Stored<'a> {
    let kind = match stored.method {
        "gaussianised" if fit.stand_ins.is_some() => kind::INDEPENDENT,
        "variational" if fit.features.is_some() => kind::LOW_RANK,
        "variational" if fit.variation.is_some() => kind::GENERALISED,
        "variational" => kind::INDUCING,
        "laplace process" => kind::LAPLACE,
        _ => "",
    };
    let likelihood = match kind {
        kind::LOW_RANK => output.seen_in_training(),
        _ => output.likelihood.clone_box(),
    };
    let of_each = |own: &'a StandInSummary| {
        (&own.offsets[..], own.scale, own.members.iter().map(Header::stored).collect())
    };
    Stored {
        kind,
        likelihood: Some(likelihood),
        inducing: fit.bound.as_ref().map(|own| own.inducing),
        deep: fit.features.as_ref().map(|own| &own.learned),
        level: fit.features.as_ref().map(|own| own.level),
        variation: fit.variation.as_ref().map(|own| &own.learned),
        functions: fit.stand_ins.as_ref().map(of_each),
        ..stored
    }
}
