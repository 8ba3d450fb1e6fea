//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::header::GeneralisedHeader;
use super::latents::LatentPosterior;
use super::{FeatureSummary, GeneralisedModel, Target, events, laplace};
use crate::process::file::{add_fingerprints, add_sets, add_tails, fingerprints, sets, tails};
use crate::process::scalable::file::inducing_tensors;
use crate::process::{Header, Hyperparameter, ProcessModel, ProcessPosterior, deep, gvi, laplace_file};
use posterior_gp::Mean;
use posterior_gp::inducing::{InducingDistribution, InducingPosterior};
use posterior_linalg::cholesky::Cholesky;
use posterior_optim::Parameters;
use posterior_store::{Container, StoreError, Tensors};
use std::path::Path;
use std::sync::Arc;

/// What stands before the names of a function's arrays.
fn prefix(function: usize) -> String {
    format!("function.{function}.")
}

impl GeneralisedModel {
    /// Writes the file in one atomic step. Its size is that of a process's file for each latent function (gaussianised), of inducing points and a root for each (variational), or of a factor for each (laplace).
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.container().write(path)
    }

    /// What its file holds.
    pub(crate) fn container(&self) -> Container<GeneralisedHeader> {
        let mut tensors = Tensors::default();
        match &*self.posterior {
            LatentPosterior::Apart { posteriors, .. } => {
                for (k, posterior) in posteriors.iter().enumerate() {
                    tensors.extend_under(&prefix(k), crate::process::file::posterior_tensors(posterior));
                }
            }
            LatentPosterior::Inducing(posterior) => inducing_tensors(posterior, &mut tensors),
            LatentPosterior::Laplace(posterior) => laplace_file::insert(posterior, &mut tensors),
            LatentPosterior::Learned { posterior, .. } => deep::file::tensors(posterior, &mut tensors),
            LatentPosterior::Generalised(posterior) => gvi::file::tensors(posterior, &mut tensors),
        }
        add_fingerprints(self.fingerprints.as_deref(), &mut tensors);
        add_sets(self.sets.as_deref(), &mut tensors);
        add_tails(self.tails.as_ref(), &mut tensors);
        Container { header: self.header.clone(), tensors }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::read(path)?)
    }

    pub(crate) fn from_container(container: Container<GeneralisedHeader>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        check(&header).map_err(|e| tensors.corrupt(e))?;
        let fingerprints = fingerprints(&mut tensors)?;
        let sets = sets(header.fit.recalibration.as_ref(), &mut tensors)?;
        let counts = matches!(header.target, Target::Counts { .. });
        let tails = tails((header.fit.intervals.as_ref(), counts), &mut tensors)?;
        let posterior = match (header.method.as_str(), &header.fit.stand_ins) {
            ("gaussianised", Some(summary)) => {
                let outputs = header.likelihood.outputs();
                let (offsets, scale) = (summary.offsets.clone(), summary.scale);
                let finite = offsets.iter().all(|o| o.is_finite()) && scale.is_finite() && scale > 0.0;
                if summary.members.len() != outputs || offsets.len() != outputs || !finite {
                    return Err(tensors.corrupt("its latent functions are not those of its likelihood"));
                }
                let posteriors = summary.members.iter().enumerate();
                let posteriors = posteriors
                    .map(|(k, own)| member(&header, own, tensors.take_under(&prefix(k))))
                    .collect::<Result<_, _>>()?;
                LatentPosterior::Apart { posteriors, offsets, scale }
            }
            ("variational", _) if header.fit.features.is_some() => learned(&header, &mut tensors)?,
            ("variational", _) if header.fit.variation.is_some() => varied(&header, &mut tensors)?,
            ("variational", _) => LatentPosterior::Inducing(inducing(&header, &mut tensors)?),
            ("laplace process", _) => LatentPosterior::Laplace(laplace::read(&header, &mut tensors)?),
            (method, _) => return Err(tensors.corrupt(format!("its method `{method}` is not known"))),
        };
        if let Some((name, _)) = tensors.iter().next() {
            return Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing")));
        }
        Ok(Self { header, posterior: Arc::new(posterior), fingerprints, sets, tails })
    }
}

/// What numbers of a header must be, whoever wrote it.
fn check(header: &GeneralisedHeader) -> Result<(), String> {
    let d = header.schema.features.len();
    let standard = &header.standardisation;
    if header.input_ranges.0.iter().any(|range| range.input >= d) {
        return Err("its ranges do not fit its features".into());
    }
    if standard.feature_means.len() != d
        || standard.feature_scales.len() != d
        || !standard.feature_scales.iter().all(|s| *s > 0.0)
    {
        return Err("its standardisation does not fit its features".into());
    }
    let outputs = header.likelihood.outputs();
    let (functions, numbers) = match &header.target {
        Target::Classes { names } if names.count() == 2 && outputs == 1 => (1, 2),
        Target::Classes { names } => (names.count(), names.count()),
        Target::Counts { .. } => (1, 2),
        Target::Events { window, events } => {
            let sound = |[low, high]: &[f64; 2]| low.is_finite() && high.is_finite() && low < high;
            if window.len() != d || !window.iter().all(sound) || *events == 0 {
                return Err("its window is not one of its features".into());
            }
            (1, 2)
        }
        Target::Numbers { mean, scale } if mean.is_finite() && *scale > 0.0 && scale.is_finite() => (1, 2),
        Target::Numbers { .. } => return Err("the units of its target are no units".into()),
    };
    if outputs != functions || header.marginal.len() != numbers {
        return Err("its likelihood is not that of its target".into());
    }
    Ok(())
}

/// The process of one latent function, whose inputs are those of the model.
fn member(
    header: &GeneralisedHeader,
    own: &Header,
    tensors: Tensors,
) -> Result<ProcessPosterior, StoreError> {
    if own.schema != header.schema {
        return Err(tensors.corrupt("a latent function has other columns than the model"));
    }
    let model = ProcessModel::from_container(Container { header: own.clone(), tensors })?;
    match Arc::try_unwrap(model.into_posterior()) {
        Ok(posterior) => Ok(posterior),
        Err(_) => unreachable!("a posterior that was just read has one owner"),
    }
}

/// Kernel and means with the values of the header.
pub(super) fn parts(
    header: &GeneralisedHeader,
) -> Result<(Box<dyn posterior_kernels::Kernel<f64>>, Mean), String> {
    let names = header.schema.feature_names();
    let mut kernel = header.kernel.build::<f64>(&names).map_err(|e| e.to_string())?;
    let mut mean = Mean::new(header.mean, names.len(), header.likelihood.outputs());
    let segments = kernel.segments();
    for h in header.hyperparameters.iter().filter(|h| !h.name.starts_with("mean.")) {
        let bad = match segments.iter().find(|s| s.name == h.name) {
            Some(segment) => h.out_of_range(segment).is_some(),
            None => h.values.iter().any(|v| !v.is_finite() || *v <= 0.0),
        };
        if bad {
            return Err(format!("its hyperparameter `{}` is out of its range", h.name));
        }
    }
    if header.hyperparameters.iter().flat_map(|h| &h.values).any(|v| !v.is_finite()) {
        return Err("a hyperparameter is not finite".into());
    }
    for part in [&mut *kernel as &mut dyn Parameters, &mut mean] {
        if let Some(name) = Hyperparameter::give(&header.hyperparameters, part).first() {
            return Err(format!("it has no hyperparameter `{name}`"));
        }
    }
    Ok((kernel, mean))
}

fn learned(header: &GeneralisedHeader, tensors: &mut Tensors) -> Result<LatentPosterior, StoreError> {
    let Some(FeatureSummary { learned, level, .. }) = &header.fit.features else {
        return Err(tensors.corrupt("its features are not described"));
    };
    if !level.is_finite() {
        return Err(tensors.corrupt("its level is no number"));
    }
    let likelihood = events::likelihood(&header.target, &header.likelihood);
    let names = header.schema.feature_names();
    let posterior = deep::file::read_under(likelihood, (&header.kernel, &names), learned, tensors)?;
    Ok(LatentPosterior::Learned { posterior, level: *level })
}

/// A mean and a covariance.
fn varied(header: &GeneralisedHeader, tensors: &mut Tensors) -> Result<LatentPosterior, StoreError> {
    let Some(summary) = &header.fit.variation else {
        return Err(tensors.corrupt("its mean and covariance are not described"));
    };
    let names = header.schema.feature_names();
    let parts = (&header.kernel, header.mean, &names[..]);
    let likelihood = header.likelihood.clone_box();
    Ok(LatentPosterior::Generalised(gvi::file::read(likelihood, parts, &summary.learned, tensors)?))
}

fn inducing(header: &GeneralisedHeader, tensors: &mut Tensors) -> Result<InducingPosterior, StoreError> {
    let Some(summary) = &header.fit.bound else { return Err(tensors.corrupt("it has no bound")) };
    let (m, outputs) = (summary.inducing, header.likelihood.outputs());
    let z = tensors.matrix("inducing_inputs", m, header.schema.features.len())?;
    let factor = Cholesky::from_factor(tensors.factor("factor", m)?, Default::default());
    let means = tensors.matrix("inducing_means", m, outputs)?;
    let roots = (0..outputs).map(|k| tensors.factor(&format!("inducing_root_{k}"), m));
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    let distribution = InducingDistribution::new(means, roots).map_err(|e| tensors.corrupt(e))?;
    let (kernel, mean) = parts(header).map_err(|e| tensors.corrupt(e))?;
    let likelihood = header.likelihood.clone_box();
    let posterior = InducingPosterior::from_parts(kernel, mean, likelihood, z, factor, distribution);
    posterior.map_err(|e| tensors.corrupt(e))
}
