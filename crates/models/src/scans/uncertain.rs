//! Where not to trust the picture.

use super::error::ScanError;
use super::pages;
use super::scan::{PlannedWork, Scan, ScanFiles, network_digest, read_scan_network, read_truth};
use crate::facts::{count, figure, fixed, nonzero, power};
use crate::{Fact, Facts};
use posterior_data::{ArrayValues, NumericArray, ReadOptions, write_npy, write_picture};
use posterior_notes::fixes::{DESCENT, G_PRIOR, MEMORY, SCAN_RANK};
use posterior_store::{Identity, json, numbers_digest};
use posterior_tomography::calibration::Calibration;
use posterior_tomography::patches::{Estimator, PatchCovariance, Tiling, patch_log_density};
use posterior_tomography::reconstruction::network_view;
use posterior_tomography::running::{Checkpointer, Watch};
use posterior_tomography::uncertainty::{
    self, ImagePriorChoice, PriorReport, UncertaintyOptions, UncertaintyReport,
};
use posterior_tomography::{TomographyError, psnr};
use serde::Serialize;
use std::path::PathBuf;

/// Added to every variance of patches, relative to the square of the picture's brightness.
const PATCH_JITTER: f64 = 1e-6;

/// Residual from which draws do not count as solved for.
const UNSOLVED: f64 = 0.1;

/// Sides of the patches that are scored.
const PATCHES: [usize; 5] = [1, 2, 3, 5, 10];

/// What is asked.
#[derive(Clone, Debug)]
pub struct UncertainRequest {
    /// The scan and what it measured.
    pub scan: ScanFiles,
    /// The network that made the picture.
    pub network: PathBuf,
    /// How.
    pub options: UncertaintyOptions,
    /// The truth, for comparison.
    pub truth: Option<PathBuf>,
    /// Where the standard deviations go.
    pub out: PathBuf,
    /// Where the picture goes.
    pub picture_out: Option<PathBuf>,
    /// Where the draws go (NPY, `[samples, ...]`).
    pub samples_out: Option<PathBuf>,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// Where the state is kept.
    pub checkpoint: PathBuf,
    /// Most memory.
    pub memory: u64,
}

/// What the posterior says of the truth.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// PSNR of the picture, dB.
    pub psnr: f64,
    /// Side of patches and log density of the truth, nats a pixel; none of volumes.
    pub patches: Vec<(usize, f64)>,
    /// Nominal and found shares of pixels within intervals.
    pub coverage: Vec<(f64, f64)>,
    /// The largest distance between the two.
    pub miscalibration: f64,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct UncertainOutcome {
    /// Its plan.
    pub planned: PlannedWork,
    /// What the sinogram was divided by; the report's numbers are in these units.
    pub unit: f64,
    /// What happened on the way.
    #[serde(flatten)]
    pub report: UncertaintyReport,
    /// Against the truth.
    pub score: Option<Score>,
    /// Median standard deviation of a pixel, in the units of the picture.
    pub median_deviation: f64,
    /// Largest.
    pub largest_deviation: f64,
    /// Pixels that were cut to the range of a picture's format.
    pub clipped_pixels: usize,
    /// The most memory of the process, where the system tells it.
    pub peak_memory_bytes: Option<u64>,
    /// Seconds.
    pub seconds: f64,
    /// What looks wrong.
    pub warnings: Vec<String>,
}

impl UncertainOutcome {
    /// What became of it, in order.
    pub fn facts(&self) -> Facts {
        let (report, score) = (&self.report, self.score.as_ref());
        let patches = score.into_iter().flat_map(|score| &score.patches).map(|(side, density)| {
            Fact::new(format!("log density, {side} x {side}, nats a pixel"), figure(*density, ""))
        });
        let inside = score.and_then(|score| score.coverage.iter().find(|(p, _)| (p - 0.9).abs() < 1e-6));
        Facts::new()
            .fact("random weights", count(report.weights, ""))
            .fact("measurements", count(report.measurements, ""))
            .with(prior(&report.prior))
            .fact("noise variance (network's units)", figure(report.noise_variance, ""))
            .fact("mean squared residual (network's units)", figure(report.residual, ""))
            .fact("draws", count(report.samples, ""))
            .fact("steps of their solves", count(report.steps, ""))
            .fact("largest relative residual", power(report.largest_residual, 1, ""))
            .fact("median standard deviation", figure(self.median_deviation, ""))
            .fact("largest standard deviation", figure(self.largest_deviation, ""))
            .maybe("PSNR, dB", score.map(|score| figure(score.psnr, "")))
            .with(patches)
            .maybe("pixels within 90 % intervals", inside.map(|(_, found)| fixed(100.0 * found, 1, "%")))
            .fact("seconds", fixed(self.seconds, 1, ""))
    }
}

/// The prior that was found.
fn prior(prior: &PriorReport) -> Facts {
    match prior {
        PriorReport::GPrior { fit, raised } => {
            let dimension = fit.turns.last().and_then(|turn| turn.by_prediction);
            Facts::new()
                .fact("precision", figure(fit.precision, ""))
                .fact("turns", count(fit.turns.len(), format!("({})", fit.reason)))
                .maybe("effective dimension", dimension.map(|own| figure(own, "")))
                .maybe("weights that move no measurement", nonzero(*raised, ""))
        }
        PriorReport::Filters(found) => {
            let filters = &found.filters;
            let blocks = found.blocks.iter().enumerate().map(|(k, name)| {
                let facts = Facts::new()
                    .fact("variance", figure(filters.log_variances[k].exp(), ""))
                    .fact("lengthscale", figure(filters.log_lengthscales[k].exp(), ""));
                Fact::new(format!("block {name}"), facts)
            });
            Facts::new()
                .fact("evidence, nats", figure(found.evidence, ""))
                .fact("steps", count(found.steps, format!("({})", found.reason)))
                .with(blocks)
        }
    }
}

/// The posterior around a network's picture, and its files. A checkpoint of the same request is gone on from, and removed at the end.
///
/// # Errors
/// [`ScanError`]; [`ScanError::interrupted`] where the watch stopped it: then the same request goes on.
pub fn uncertainty(
    request: &UncertainRequest,
    announce: &mut dyn FnMut(&PlannedWork, &[String]),
    watch: &mut Watch<'_>,
) -> Result<UncertainOutcome, ScanError> {
    let begun = std::time::Instant::now();
    let scan = Scan::read(&request.scan, request.memory)?;
    let geometry = scan.projector.geometry();
    let shape = geometry.image_shape();
    let reading = ReadOptions::limited(request.memory);
    let truth = request.truth.as_ref().map(|path| read_truth(geometry, path, &reading)).transpose()?;
    let mut warnings = scan.warnings.clone();
    let read = read_scan_network(&request.network, geometry)?;
    warnings.extend(read.notes);
    let (scaled, input) = network_view(&scan.projector, &scan.sinogram)?;
    let plan = uncertainty::plan(&scan.projector, read.network.graph(), &request.options)?;
    let remedy =
        format!("allow more ({MEMORY}), draw fewer samples, or take {G_PRIOR}, which stores no Jacobian");
    let planned =
        PlannedWork::of(&plan, &scan.projector, Some((&read.network, &input)), request.memory, &remedy)?;
    announce(&planned, &warnings);
    let settings = json!({
        "command": "uncertainty", "geometry": geometry, "options": request.options, "counts": request.scan.counts, "network": network_digest(&read.network),
    });
    let identity = Identity { settings, data: numbers_digest("sinogram", &[&scan.sinogram]) };
    let mut checkpointer = Checkpointer::in_file(&request.checkpoint, identity);
    // A variance that is given is one of the sinogram's measurements.
    let mut options = request.options.clone();
    if let ImagePriorChoice::GPrior(own) = &mut options.prior {
        own.noise_variance = own.noise_variance.map(|v| v / (scaled.unit * scaled.unit));
    }
    let mut found = uncertainty::infer(
        &scan.projector,
        &scaled.sinogram,
        (&read.network, input),
        &options,
        &mut checkpointer,
        watch,
    )?;
    let unit = scaled.unit;
    found.picture.iter_mut().chain(&mut found.deviations).for_each(|v| *v *= unit);
    found.samples.col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v *= unit));
    if found.report.residual > 4.0 * found.report.noise_variance {
        warnings.push(format!(
            "what the network's picture leaves of the measurements has {:.1} times the variance of the noise: it explains this sinogram badly; is it the network of this scan, and trained to its end?",
            found.report.residual / found.report.noise_variance
        ));
    }
    let dimension = match &found.report.prior {
        PriorReport::GPrior { fit, .. } => fit.turns.last().and_then(|turn| turn.by_prediction),
        PriorReport::Filters(_) => None,
    };
    if let Some(beyond) = dimension.filter(|gamma| *gamma > found.report.weights as f64) {
        warnings.push(format!(
            "the effective dimension is {beyond:.0} of {} weights, which cannot be: samples of the turns were not solved for; take more steps ({DESCENT}), or conjugate gradients (without it)",
            found.report.weights
        ));
    }
    if let PriorReport::Filters(own) = &found.report.prior {
        let (bound, blocks) = (own.filters.blocks_at_bound(), own.blocks.len());
        if bound > 0 {
            warnings.push(format!(
                "{bound} of {blocks} blocks of filters ended at the least variance that a search may give: the evidence would have made it smaller",
            ));
        }
    }
    if found.report.largest_residual > UNSOLVED {
        warnings.push(format!(
            "draws are not solved for: what is left of their systems is {:.2} of them; take more steps ({DESCENT}), or a larger {SCAN_RANK} without it",
            found.report.largest_residual
        ));
    }
    let score = match &truth {
        Some(truth) => {
            let covariance =
                PatchCovariance::Samples { images: found.samples.as_ref(), estimator: Estimator::Inflated };
            let mut patches = Vec::new();
            // Patches are of flat pictures.
            let sides = if shape.len() == 2 { &PATCHES[..] } else { &[] };
            for &side in sides.iter().filter(|s| **s <= shape[0].min(shape[1])) {
                let tiling = Tiling::new(shape[0], shape[1], side).map_err(TomographyError::from)?;
                let jitter = PATCH_JITTER * unit * unit;
                let density = patch_log_density(truth, &found.picture, covariance, &tiling, jitter)
                    .map_err(TomographyError::from)?;
                patches.push((side, density.per_pixel()));
            }
            let calibration =
                Calibration::new(truth, &found.picture, &found.deviations).map_err(TomographyError::from)?;
            Some(Score {
                psnr: psnr(&found.picture, truth),
                patches,
                coverage: calibration.curve(20),
                miscalibration: calibration.miscalibration(),
            })
        }
        None => None,
    };
    let mut clipped_pixels = write_picture(&request.out, &shape, &found.deviations)?;
    if let Some(path) = &request.picture_out {
        clipped_pixels += write_picture(path, &shape, &found.picture)?;
    }
    if let Some(path) = &request.samples_out {
        let whole: Vec<usize> = [found.samples.ncols()].into_iter().chain(shape.iter().copied()).collect();
        let values = found
            .samples
            .col_iter()
            .flat_map(|draw| draw.iter().zip(&found.picture).map(|(d, p)| d + p).collect::<Vec<f64>>())
            .collect();
        write_npy(path, &NumericArray::new(whole, ArrayValues::F64(values))?)?;
    }
    let mut sorted = found.deviations.clone();
    sorted.sort_by(f64::total_cmp);
    let outcome = UncertainOutcome {
        planned,
        unit,
        report: found.report.clone(),
        score,
        median_deviation: sorted[sorted.len() / 2],
        largest_deviation: sorted[sorted.len() - 1],
        clipped_pixels,
        peak_memory_bytes: crate::peak_memory_bytes(),
        seconds: begun.elapsed().as_secs_f64(),
        warnings,
    };
    if let Some(path) = &request.report {
        let page = pages::uncertainty(&shape, &found, truth.as_deref(), &outcome);
        pages::write(path, &page)?;
    }
    checkpointer.finish();
    Ok(outcome)
}
