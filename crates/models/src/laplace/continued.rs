//! Further data for a saved model.

use super::fit::{Observer, assemble};
use super::noise::plain_likelihood;
use super::request::{DataSource, LikelihoodKind};
use super::training_set::{Reading, TrainingSet};
use crate::calibration::Calibration;
use crate::method::Fitted;
use crate::model::Networks;
use crate::network::{digests, file_name};
use crate::record::{InputKind, NetworkHeader};
use crate::{Model, ModelError};
use posterior_data::ReadOptions;
use posterior_laplace::{FitOptions, Run};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_networks::Precision;
use std::path::Path;
use std::time::Instant;

impl Networks<'_> {
    /// The same model with further data added to its sums. The earlier data are not needed.
    ///
    /// # Errors
    /// For ensembles, curvatures that are not sums, modes that need all data, and as for a fit.
    pub fn continued(
        &self,
        data: &DataSource,
        options: &FitOptions,
        announce: &mut dyn FnMut(&str),
        observer: Observer<'_>,
    ) -> Result<Model, ModelError> {
        match (self.fitted::<f32>(), self.fitted::<f64>()) {
            (Some(fitted), _) => continue_in(self, fitted, data, options, announce, observer),
            (_, Some(fitted)) => continue_in(self, fitted, data, options, announce, observer),
            _ => Err(ModelError::Request(
                "an ensemble of networks cannot be continued: fit it anew with all rows".into(),
            )),
        }
    }
}

fn continue_in<T: Precision>(
    model: &Networks<'_>,
    fitted: &Fitted<T>,
    data: &DataSource,
    options: &FitOptions,
    announce: &mut dyn FnMut(&str),
    observer: Observer<'_>,
) -> Result<Model, ModelError> {
    let started = Instant::now();
    let header = model.record;
    let likelihood = match header.base_likelihood {
        OutputLikelihood::Categorical(_) => LikelihoodKind::Categorical,
        OutputLikelihood::Bernoulli(_) => LikelihoodKind::Bernoulli,
        OutputLikelihood::Poisson(_) => LikelihoodKind::Poisson,
        OutputLikelihood::HeteroscedasticGaussian(_) => LikelihoodKind::Heteroscedastic,
        OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_) => LikelihoodKind::Gaussian,
        OutputLikelihood::StudentT(_)
        | OutputLikelihood::NegativeBinomial(_)
        | OutputLikelihood::RobustMax(_) => {
            return Err(ModelError::Request(format!(
                "a model of {} targets cannot be continued; fit it again with all data",
                header.base_likelihood.name()
            )));
        }
    };
    let mut data = data.clone();
    // Roles and preparation are those of the first fit.
    data.preprocess = header.data.preprocess;
    if let InputKind::Features { columns, label } = &header.data.inputs {
        let named = crate::network::is_table(data.data.first().map_or(Path::new(""), |p| p.as_path()));
        data.columns.features = named.then(|| columns.clone());
        data.columns.target = label.clone().unwrap_or_default();
    }
    let head = matches!(header.data.inputs, InputKind::Features { .. });
    let input = fitted.network.graph().input_shape();
    let predicted = model.output.predicted_shape();
    let reading = Reading {
        source: &data,
        limits: ReadOptions { text: data.text, ..ReadOptions::limited(options.memory) },
        input,
        inputs: &header.network.inputs,
        predicted: &predicted,
        likelihood,
        head,
        known: Some(&header.data.inputs),
        from_network: false,
    };
    let set = reading.read::<T>(&data.data, &data.labels)?;
    if fitted.laplace.summary.learned.is_some() && header.options.approximation.is_learned() {
        return improve(model, fitted, &set, options, (announce, observer));
    }
    announce(&format!("adding {} examples to {}", set.examples.len(), header.data.examples));
    let plain =
        plain_likelihood(&fitted.network, &*set.examples, &header.base_likelihood, options, observer)?;
    let mut run = Run::new(observer);
    let laplace = fitted.laplace.extended(&fitted.network, &*set.examples, options, &mut run)?;
    let mut record = header.data.clone();
    record.examples += set.examples.len();
    record.files.extend(data.data.iter().map(|p| file_name(p)));
    record.sha256.extend(digests(data.data.iter().chain(&data.labels)));
    if let Some(before) = &record.record {
        if before.kind != set.record.kind {
            let problem = "these data hold another kind of numbers than those of the fit (bytes, whole or floating-point numbers): convert them";
            return Err(ModelError::Request(problem.into()));
        }
        record.record = Some(before.merged(&set.record));
    }
    record.notes.extend(set.notes);
    let weights = (header.data.examples as f64, set.examples.len() as f64);
    let plain = pooled(&header.plain_likelihood, &plain, weights)?;
    let added = format!(
        "{} examples were added to the {} of an earlier fit",
        set.examples.len(),
        header.data.examples
    );
    let header = NetworkHeader {
        notes: std::iter::once(added).chain(forgotten(model)).collect(),
        ..NetworkHeader::new((header.network.clone(), record), options.clone(), plain, &laplace)
    };
    let known = model.training.with(set.fingerprints);
    Ok(assemble(fitted.network.clone(), laplace, (header, started), (known, Calibration::default())))
}

/// A posterior by a search of its own, with more of what it is made of, from the data of its fit.
fn improve<T: Precision>(
    model: &Networks<'_>,
    fitted: &Fitted<T>,
    set: &TrainingSet<T>,
    options: &FitOptions,
    (announce, observer): (&mut dyn FnMut(&str), Observer<'_>),
) -> Result<Model, ModelError> {
    let (started, header) = (Instant::now(), model.record);
    let strange = model.training.count(&set.fingerprints).map_or(0, |known| set.fingerprints.len() - known);
    if strange > 0 || set.examples.len() != header.data.examples {
        return Err(ModelError::Request(format!(
            "a model by `{}` goes on with the data of its fit: these are {} examples, {strange} of which it does not know, and it was fitted to {}",
            header.options.approximation.name(),
            set.examples.len(),
            header.data.examples
        )));
    }
    announce("going on with the data of the fit");
    let mut run = Run::new(observer);
    let laplace = fitted.laplace.improved(&fitted.network, &*set.examples, options, &mut run)?;
    let (records, plain) = ((header.network.clone(), header.data.clone()), header.plain_likelihood.clone());
    let header = NetworkHeader {
        notes: header.notes.iter().cloned().chain(forgotten(model)).collect(),
        ..NetworkHeader::new(records, options.clone(), plain, &laplace)
    };
    let known = model.training.clone();
    Ok(assemble(fitted.network.clone(), laplace, (header, started), (known, Calibration::default())))
}

/// What was told of the model before, if anything was.
fn forgotten(model: &Networks<'_>) -> Option<String> {
    model.recalibration()?;
    Some("what recalibrated the earlier fit (--calibrate) was told of that fit and is dropped".into())
}

/// Mean squared residuals over both sets of examples.
fn pooled(
    a: &OutputLikelihood,
    b: &OutputLikelihood,
    weights: (f64, f64),
) -> Result<OutputLikelihood, ModelError> {
    let (OutputLikelihood::Gaussian(a), OutputLikelihood::Gaussian(b)) = (a, b) else { return Ok(a.clone()) };
    let total = weights.0 + weights.1;
    let pairs = a.noise_variances().iter().zip(b.noise_variances());
    let variances = pairs.map(|(a, b)| (a * weights.0 + b * weights.1) / total).collect();
    Ok(OutputLikelihood::Gaussian(Gaussian::independent(variances)?))
}
