//! A picture from a sinogram.

use super::error::{ScanError, refuse};
use super::pages;
use super::scan::{PlannedWork, Scan, ScanFiles, network_digest, read_truth};
use crate::Facts;
use crate::facts::{count, figure, fixed, nonzero, power};
use posterior_data::{ReadOptions, write_picture};
use posterior_linalg::random::Streams;
use posterior_networks::safetensors::{ARCHITECTURE_KEY, read_network, save_safetensors};
use posterior_networks::{Architecture, Network};
use posterior_notes::fixes::{MEMORY, WEIGHT};
use posterior_store::{Identity, json, numbers_digest};
use posterior_tomography::reconstruction::{self, Method, ReconstructionReport, network_view};
use posterior_tomography::running::{Checkpointer, Watch};
use posterior_tomography::{TomographyError, psnr};
use serde::Serialize;
use std::path::PathBuf;

/// What is asked.
#[derive(Clone, Debug)]
pub struct ReconstructRequest {
    /// The scan and what it measured.
    pub scan: ScanFiles,
    /// How.
    pub method: Method,
    /// A network to begin with.
    pub start: Option<PathBuf>,
    /// The truth, for comparison.
    pub truth: Option<PathBuf>,
    /// Where the picture goes.
    pub out: PathBuf,
    /// Where the network goes.
    pub network_out: Option<PathBuf>,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// Where the state is kept.
    pub checkpoint: PathBuf,
    /// Most memory.
    pub memory: u64,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct ReconstructOutcome {
    /// Its plan.
    pub planned: PlannedWork,
    /// What happened on the way.
    #[serde(flatten)]
    pub report: ReconstructionReport,
    /// Peak signal-to-noise ratio against the truth, dB.
    pub psnr: Option<f64>,
    /// Mean square of what the picture leaves of the measurements.
    pub residual: f64,
    /// Pixels that were cut to the range of the picture's format.
    pub clipped_pixels: usize,
    /// The most memory of the process, where the system tells it.
    pub peak_memory_bytes: Option<u64>,
    /// Seconds.
    pub seconds: f64,
    /// What looks wrong.
    pub warnings: Vec<String>,
}

impl ReconstructOutcome {
    /// What became of it, in order.
    pub fn facts(&self) -> Facts {
        let report = &self.report;
        let best = report.best_quality.map(|(quality, _)| figure(quality, ""));
        Facts::new()
            .fact("mean squared residual", figure(self.residual, ""))
            .maybe("PSNR, dB", self.psnr.map(|own| figure(own, "")))
            .maybe("weight of total variation", report.weight.map(|own| format!("{own:e}")))
            .maybe("loss", report.loss.map(|own| figure(own, "")))
            .maybe("relative gap to the minimum, at most", report.gap.map(|own| power(own, 1, "")))
            .maybe("steps", nonzero(report.steps, ""))
            .maybe("ended", report.reason.map(|own| own.to_string()))
            .maybe("weights of the network", report.weights.map(|own| count(own, "")))
            .maybe("best PSNR on the way (known only with the truth), dB", best)
            .fact("seconds", fixed(self.seconds, 1, ""))
    }
}

/// Reconstructs, and writes picture, network and report. A checkpoint of the same request is gone on from, and removed at the end.
///
/// # Errors
/// [`ScanError`]; [`ScanError::interrupted`] where the watch stopped it: then the same request goes on.
pub fn reconstruct(
    request: &ReconstructRequest,
    announce: &mut dyn FnMut(&PlannedWork, &[String]),
    watch: &mut Watch<'_>,
) -> Result<ReconstructOutcome, ScanError> {
    let begun = std::time::Instant::now();
    let scan = Scan::read(&request.scan, request.memory)?;
    let geometry = scan.projector.geometry();
    let options = ReadOptions::limited(request.memory);
    let truth = request.truth.as_ref().map(|path| read_truth(geometry, path, &options)).transpose()?;
    let mut warnings = scan.warnings.clone();
    let start = match &request.start {
        Some(path) => {
            let read = read_network::<f32>(path, None)?;
            warnings.extend(read.notes);
            if let Method::DeepImagePrior(own) = &request.method {
                let asked = reconstruction::architecture(&own.network, &scan.projector);
                if read.architecture != Architecture::Unet(asked) {
                    return refuse(format!(
                        "{}: it is another network than the one that is asked for: give the --channels, --skips and --no-norm of the run that wrote it, and a scan of pictures of its size",
                        path.display()
                    ));
                }
            }
            Some(read.network)
        }
        None => None,
    };
    let plan = reconstruction::plan(&scan.projector, &request.method)?;
    let remedy = format!("allow more ({MEMORY}), or take fewer channels");
    plan.within(request.memory, &remedy)?;
    let timed = match &request.method {
        Method::DeepImagePrior(own) => {
            let unet = reconstruction::architecture(&own.network, &scan.projector);
            let graph = Architecture::Unet(unet).graph().map_err(|e| TomographyError::Network(e.into()))?;
            let network =
                Network::<f32>::initialised(graph, Streams::new(0)).map_err(TomographyError::Network)?;
            Some((network, network_view(&scan.projector, &scan.sinogram)?.1))
        }
        _ => None,
    };
    let planned = PlannedWork::of(
        &plan,
        &scan.projector,
        timed.as_ref().map(|(network, input)| (network, input)),
        request.memory,
        &remedy,
    )?;
    drop(timed);
    announce(&planned, &warnings);
    let began = start.as_ref().map(network_digest);
    let settings = json!({
        "command": "reconstruct", "geometry": geometry, "method": request.method, "counts": request.scan.counts, "start": began,
    });
    let identity = Identity { settings, data: numbers_digest("sinogram", &[&scan.sinogram]) };
    // What is made at once keeps nothing, and leaves alone what another method has kept there.
    let mut checkpointer = match &request.method {
        Method::Filtered(_) => Checkpointer::none(),
        _ => Checkpointer::in_file(&request.checkpoint, identity),
    };
    let found = reconstruction::reconstruct(
        &scan.projector,
        &scan.sinogram,
        &request.method,
        start,
        truth.as_deref(),
        &mut checkpointer,
        watch,
    )?;
    let projected = scan.projector.project(&found.picture)?;
    let squares: f64 = projected.iter().zip(&scan.sinogram).map(|(a, y)| (a - y).powi(2)).sum();
    if found.report.at_largest > 0 {
        warnings.push(format!(
            "{} pixels stand at the largest value that the search allows: the picture may be brighter there",
            found.report.at_largest
        ));
    }
    if found.report.held_back.as_ref().is_some_and(|h| h.at_edge) {
        warnings.push(format!(
            "the best weight of total variation is at the edge of those tried: try others ({WEIGHT})"
        ));
    }
    if let (Some(path), Some(network)) = (&request.network_out, &found.network) {
        let architecture = Architecture::Unet(network.architecture.clone());
        let text = architecture.to_toml().or_else(|e| refuse(e.to_string()))?;
        let metadata = [(ARCHITECTURE_KEY.to_string(), text)].into();
        save_safetensors(path, &network.network, &metadata)?;
    }
    let clipped_pixels = write_picture(&request.out, &geometry.image_shape(), &found.picture)?;
    let outcome = ReconstructOutcome {
        planned,
        psnr: truth.as_ref().map(|t| psnr(&found.picture, t)),
        residual: squares / scan.sinogram.len() as f64,
        clipped_pixels,
        peak_memory_bytes: crate::peak_memory_bytes(),
        seconds: begun.elapsed().as_secs_f64(),
        report: found.report,
        warnings,
    };
    if let Some(path) = &request.report {
        let page = pages::reconstruction(&geometry.image_shape(), &found.picture, truth.as_deref(), &outcome);
        pages::write(path, &page)?;
    }
    checkpointer.finish();
    Ok(outcome)
}
