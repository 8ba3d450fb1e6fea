//! A folder of networks as one model: each is fitted by the same request, in the order of their names.

use super::recalibration::check_calibration;
use crate::laplace::{CurvatureChoice, LaplaceRequest, NetworkSource, ValidationSource, settled};
use crate::network::{digest, digests, file_name};
use crate::options::CalibrateName;
use crate::{Model, ModelError};
use posterior_laplace::{FitOptions, Stage};
use posterior_notes::fixes::CHECKPOINT;
use posterior_optim::Signal;
use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Files that are taken for networks.
const EXTENSIONS: [&str; 4] = ["onnx", "safetensors", "pt", "pth"];

/// Whether a request's network is a folder, that is an ensemble.
pub fn is_asked(request: &LaplaceRequest) -> bool {
    matches!(&request.network, NetworkSource::File { path, .. } if path.is_dir())
}

/// Fits every network file (`.onnx`, `.safetensors`, `.pt`, `.pth`) of the folder that the request names as its network. `plain` leaves the members' error bars out of predictions: choose a curvature that costs little then.
///
/// With a checkpoint, the sums of the member under way stand in a file beside it, and so does each member that is finished: a request that goes on does not fit those again.
///
/// # Errors
/// When the folder holds fewer than two networks; as [`Model::fit_laplace`], with the network's name; as [`Model::ensemble`].
pub fn fit(
    request: &LaplaceRequest,
    plain: bool,
    announce: &mut dyn FnMut(&str),
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<Model, ModelError> {
    let NetworkSource::File { path: folder, architecture, output, strip_softmax } = &request.network else {
        return Err(ModelError::Request(
            "an ensemble is made of network files: give a folder of them".into(),
        ));
    };
    check_calibration(request)?;
    let files = network_files(folder)?;
    let (mut members, mut names, mut finished) = (Vec::new(), Vec::new(), Vec::new());
    // A member that was nearly done when someone said stop is finished; no other is begun.
    let stopped = Cell::new(false);
    let mut observer = |stage, done, total| {
        let signal = observer(stage, done, total);
        stopped.set(stopped.get() || signal == Signal::Stop);
        signal
    };
    for (k, path) in files.iter().enumerate() {
        let name = file_name(path);
        announce(&format!("network {} of {}: {name}", k + 1, files.len()));
        let beside = |what: &str| request.checkpoint.as_deref().map(|p| beside(p, &format!("{name}.{what}")));
        let own = LaplaceRequest {
            network: NetworkSource::File {
                path: path.clone(),
                architecture: architecture.clone(),
                output: output.clone(),
                strip_softmax: *strip_softmax,
            },
            checkpoint: beside("sums"),
            validation: ValidationSource { calibrate: CalibrateName::None, ..request.validation.clone() },
            ..request.clone()
        };
        let done = beside("finished");
        let earlier = done.as_deref().filter(|p| request.resume && p.exists());
        let model = match earlier.map(|p| finished_member(p, path, request)).transpose()? {
            Some(model) => {
                announce(&format!("{name} was fitted before"));
                model
            }
            None => Model::fit_laplace(&own, announce, &mut observer).map_err(|e| named(e, &name))?,
        };
        if let (Some(done), None) = (&done, earlier) {
            model.container()?.replace(done)?;
        }
        finished.extend(done);
        members.push(model);
        names.push(name);
        if stopped.get() && k + 1 < files.len() {
            return Err(ModelError::Interrupted);
        }
    }
    let ensemble = Model::ensemble(members, names, plain)?.recalibrated(request, announce)?;
    for path in finished {
        // One that cannot be removed does no harm.
        let _ = std::fs::remove_file(path);
    }
    Ok(ensemble)
}

/// Whether an interrupted fit of a folder's networks has left anything for one that goes on from this checkpoint.
pub fn has_checkpoint(folder: &Path, checkpoint: &Path) -> bool {
    let kept = |network: &PathBuf| {
        let name = file_name(network);
        ["sums", "finished"].iter().any(|what| beside(checkpoint, &format!("{name}.{what}")).exists())
    };
    network_files(folder).is_ok_and(|files| files.iter().any(kept))
}

/// What failed, with the member's name; an interruption stays one.
fn named(error: ModelError, name: &str) -> ModelError {
    if error.is_interruption() || error.is_usage() {
        return error;
    }
    ModelError::Request(format!("{name}: {error}"))
}

/// A file beside another.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().into();
    name.push(format!(".{what}"));
    name.into()
}

/// The network files of a folder, by name; hidden ones and others are left out.
fn network_files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let refuse = |problem: String| Err(ModelError::Request(format!("{}: {problem}", folder.display())));
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return refuse(format!("the folder of networks cannot be read ({error})")),
    };
    let network = |path: &PathBuf| {
        let hidden = file_name(path).starts_with('.');
        let known = |e: &std::ffi::OsStr| EXTENSIONS.iter().any(|known| e.eq_ignore_ascii_case(known));
        !hidden && path.is_file() && path.extension().is_some_and(known)
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(network).collect();
    files.sort();
    if files.len() < 2 {
        let found = files.len();
        return refuse(format!(
            "an ensemble needs at least two network files (.onnx, .safetensors, .pt) in its folder, there are {found}"
        ));
    }
    Ok(files)
}

/// A member that an earlier run of the same request has finished.
fn finished_member(path: &Path, network: &Path, request: &LaplaceRequest) -> Result<Model, ModelError> {
    let model = Model::load(path)?;
    let Some(own) = model.networks() else { return other_member(path, "another network") };
    let header = own.header();
    let own = digest(network).ok();
    let automatic = request.curvature == CurvatureChoice::Auto;
    let mut options = settled(&request.fit_options()).0;
    // These follow from the request and the likelihood, or do not change what is found.
    options.integration = header.options.integration;
    options.seen_by_network = header.options.seen_by_network;
    options.memory = header.options.memory;
    if header.auto.is_some() {
        // A comparison has chosen these, and a search that it chose decides on the others itself.
        let FitOptions { weights, approximation, .. } = header.options.clone();
        options = FitOptions { weights, approximation, ..options };
        if options.approximation.is_learned() {
            let FitOptions { prior, initial_precision, tune, noise, mode, .. } = header.options.clone();
            options = FitOptions { prior, initial_precision, tune, noise, mode, ..options };
        }
    }
    let (data, validation) = (&request.data, &request.validation);
    let held_out = header.data.held_out.as_ref().map_or(&[][..], |held_out| &held_out.sha256);
    let problem = if own.is_none() || header.network.sha256 != own {
        "another network"
    } else if header.data.sha256 != digests(data.data.iter().chain(&data.labels)) {
        "other data"
    } else if held_out != digests(validation.data.iter().chain(&validation.labels)) {
        "other validation data"
    } else if header.options != options || header.auto.is_some() != automatic {
        "other settings"
    } else {
        return Ok(model);
    };
    other_member(path, problem)
}

/// A member of another fit.
fn other_member(path: &Path, problem: &str) -> Result<Model, ModelError> {
    Err(ModelError::Request(format!(
        "{}: it is a finished member of an ensemble with {problem}: start without --resume, or name another file with {CHECKPOINT}",
        path.display()
    )))
}
