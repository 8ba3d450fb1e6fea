//! What `fit` and `evaluate` take from files that flags name.

use crate::args::TableArgs;
use crate::output::{Failure, check_outputs};
use posterior::data::{OutputKind, TargetTransform, resolved};
use posterior::models::Hyperparameter;
use posterior::notes::fixes::NOISE_HETEROSCEDASTIC;
use posterior::options::Start;
use posterior::{FitRequest, Saved};
use std::path::{Path, PathBuf};

impl TableArgs {
    /// Puts the hyperparameters that are given for the target into the request for it, where some are, with what the target of such a model was mapped by.
    pub(crate) fn give(&self, request: &mut FitRequest) -> Result<(), Failure> {
        if let Some(path) = &self.hyperparameters {
            let (hyperparameters, transform) = given(path, &request.columns.target)?;
            request.start = Start::Given { hyperparameters, transform };
        }
        Ok(())
    }

    /// The request, with a checkpoint beside the model where no other place is named.
    pub(crate) fn request(&self) -> Result<FitRequest, Failure> {
        let mut request = self.request.clone();
        let named = self.request.method.large().and_then(|large| large.checkpoint.as_deref());
        if let Some(large) = request.method.large_mut() {
            large.checkpoint = Some(checkpoint_place(named, &self.run.out));
        }
        (request.columns.groups, request.columns.time) = (self.split.groups.clone(), self.split.time.clone());
        // What says which rows go together tells nothing of the target.
        let features = request.columns.features.clone().unwrap_or_default();
        request.columns.exclude.extend(self.split.columns().filter(|column| !features.contains(column)));
        let inputs = [self.run.config.as_ref(), self.split.file(), self.hyperparameters.as_ref()];
        let inputs = self.data.iter().chain(inputs.into_iter().flatten());
        // What stands in the ordinary place is forgotten by --fresh, whatever it is.
        let ordinary = request.method.large().filter(|large| !large.fresh);
        let ordinary = ordinary.and_then(|large| large.checkpoint.as_deref()).filter(|path| path.exists());
        let outputs =
            [(Some(self.run.out.as_path()), OutputKind::Model), (named.or(ordinary), OutputKind::Checkpoint)];
        check_outputs(&outputs, inputs, self.run.force)?;
        Ok(request)
    }
}

/// Hyperparameters, and what the target that they are of was mapped by.
type Given = (Vec<Hyperparameter>, Option<TargetTransform>);

/// Those of a process, of several targets those of this one. What is learned of heteroscedastic noise is no number that could be given.
fn of_model(model: &Saved, path: &Path, target: &str) -> Result<Given, Failure> {
    let shown = path.display();
    let own = model.only().or_else(|| model.of_target(target)).ok_or_else(|| {
        Failure::usage(format!(
            "{shown} has no target `{target}`, whose hyperparameters it could give: it has {}",
            model.names().join(", ")
        ))
    })?;
    let no_kernel = || Failure::usage(format!("{shown} is no Gaussian process: it has no kernel"));
    let own = own.process().ok_or_else(no_kernel)?;
    if own.output().gaussian().is_some_and(|own| own.noise.is_some()) {
        return Err(Failure::usage(format!(
            "{shown} has a noise for each place, which its hyperparameters do not say: learn them anew, with {NOISE_HETEROSCEDASTIC} or without"
        )));
    }
    let transform = own.inputs().standardisation.transform.as_ref();
    Ok((own.record().hyperparameters.clone(), transform.map(|own| own.by)))
}

/// Where the checkpoint of a command goes: where it is told to, through links that the user names, or beside its output. Whatever link is found there later is replaced.
pub(crate) fn checkpoint_place(named: Option<&Path>, out: &Path) -> PathBuf {
    named.map_or_else(|| beside(out), |path| resolved(path).unwrap_or_else(|_| path.into()))
}

/// Where the checkpoint of a fit goes unless told otherwise: `MODEL.checkpoint`.
fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_os_string();
    name.push(".checkpoint");
    out.with_file_name(name)
}

/// The hyperparameters of a model file, of the model of this target in a file of several, or of a JSON object of names and numbers (or lists of them), in standard units, and what the target of such a model was mapped by.
fn given(path: &Path, target: &str) -> Result<Given, Failure> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) {
        let failed = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot read hyperparameters from {}: {e}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Values {
            One(f64),
            Many(Vec<f64>),
        }
        let map: std::collections::BTreeMap<String, Values> =
            serde_json::from_str(&text).map_err(|e| failed(&e))?;
        let named = |(name, values)| match values {
            Values::One(v) => Hyperparameter { name, values: vec![v] },
            Values::Many(values) => Hyperparameter { name, values },
        };
        return Ok((map.into_iter().map(named).collect(), None));
    }
    of_model(&Saved::load(path)?, path, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_beside_its_model() {
        assert_eq!(beside(Path::new("a/b.posterior")), Path::new("a/b.posterior.checkpoint"));
    }
}
