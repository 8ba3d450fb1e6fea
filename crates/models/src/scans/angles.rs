//! The angles at which to look next.

use super::error::{ScanError, refuse};
use super::scan::{PlannedWork, network_digest, read_geometry, read_scan_network, read_sinogram};
use posterior_data::ReadOptions;
use posterior_linalg::operator::LinearOperator;
use posterior_networks::{Array, Network};
use posterior_notes::fixes::{
    DEEP_IMAGE_PRIOR, DESIGN_G_PRIOR, DESIGN_NETWORK, DESIGN_SAMPLES, MEASURED, MEASURED_ANGLES, MEMORY,
    PRIOR_ISOTROPIC, PRIOR_MATERN,
};
use posterior_optim::{LoopOptions, Reason, Signal};
use posterior_store::{Identity, numbers_digest};
use posterior_tomography::design::{
    Acquisition, DesignMethod, DesignPlan, DesignSettings, DesignState, Designer,
};
use posterior_tomography::linearised::{
    ConvolutionWeights, GPriorOptions, ImageTangent, MeasuredTangent, PriorRoot, WeightPrior,
};
use posterior_tomography::priors::{Isotropic, NoiseModel, PilotEvidence};
use posterior_tomography::reconstruction::network_view;
use posterior_tomography::running::{Checkpointer, Stage, Watch};
use posterior_tomography::uncertainty::{self, ImagePriorChoice, UncertaintyOptions};
use posterior_tomography::{Projector, TomographyError};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is believed of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum DesignPrior {
    /// The linearised network that explains the angles so far (--network)
    #[default]
    GPrior,
    /// Neighbours are alike: a Matérn-1/2 kernel whose lengthscale fits the angles so far
    Matern,
    /// Every pixel by itself
    Isotropic,
}

/// What is asked.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct DesignRequest {
    /// The scanner with all angles that it could measure (TOML)
    #[cfg_attr(feature = "clap", arg(value_name = "GEOMETRY"))]
    pub geometry: PathBuf,
    /// What the measured angles measured, in the order of --measured (.npy)
    #[cfg_attr(feature = "clap", arg(value_name = "SINOGRAM"))]
    pub sinogram: PathBuf,
    /// Numbers of the angles that were measured, from 0
    #[cfg_attr(feature = "clap", arg(long, value_name = "N,...", value_delimiter = ',', required = true))]
    pub measured: Vec<usize>,
    /// The measurements are counts of photons, not line integrals
    #[cfg_attr(feature = "clap", arg(long))]
    pub counts: bool,
    /// What is believed of pictures
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value = "g-prior"))]
    pub prior: DesignPrior,
    /// The network that explains the measurements, for --prior g-prior
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE.safetensors"))]
    pub network: Option<PathBuf>,
    /// What is maximised
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value = "variance"))]
    pub criterion: Acquisition,
    /// Further angles
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 5))]
    pub count: usize,
    /// Draws of the picture; 0 computes covariances exactly
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 1000))]
    pub samples: usize,
    /// Seed of the draws
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0))]
    pub seed: u64,
    /// Where the state is kept.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub checkpoint: PathBuf,
    /// Most memory.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub memory: u64,
}

/// What is kept between runs, beside what the prior keeps of itself.
#[derive(Default, Serialize, Deserialize)]
struct SavedDesign {
    #[serde(default)]
    angles: Vec<NextAngle>,
    #[serde(flatten)]
    prior: serde_json::Map<String, serde_json::Value>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct DesignOutcome {
    /// The next angles in order: numbers, degrees, scores.
    pub angles: Vec<NextAngle>,
    /// The noise variance that was used, in units of the sinogram.
    pub noise_variance: f64,
    /// Its plan, beside that of the prior.
    pub planned: PlannedWork,
    /// Facts about the prior.
    pub prior: serde_json::Value,
    /// Seconds.
    pub seconds: f64,
    /// What looks wrong.
    pub warnings: Vec<String>,
}

/// One angle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextAngle {
    /// Its number among the scanner's, from 0.
    pub angle: usize,
    /// Degrees.
    pub degrees: f64,
    /// What it is worth.
    pub score: f64,
}

/// What is believed of pictures: a root of their covariance, the variance of the noise in the same units, and facts.
type Believed<'a> = (Box<dyn LinearOperator<f64> + 'a>, f64, serde_json::Value);

/// Chooses angles one by one, each by what is not known after those before it. A checkpoint of the same request is gone on from, and removed at the end.
///
/// Source: Antorán (2024), section 7.5; spec `tomography`, section 9.
///
/// # Errors
/// [`ScanError`]; [`ScanError::interrupted`] where the watch stopped it: then the same request goes on.
pub fn design(
    request: &DesignRequest,
    announce: &mut dyn FnMut(&str, &[String]),
    watch: &mut Watch<'_>,
) -> Result<DesignOutcome, ScanError> {
    let begun = std::time::Instant::now();
    let (geometry, warnings) = read_geometry(&request.geometry)?;
    let scanner = Projector::new(geometry)?;
    if request.measured.is_empty() {
        return refuse(format!(
            "no angle was measured: begin with a few equidistant ones ({MEASURED_ANGLES}), which any design does as well"
        ));
    }
    let pilot = scanner.at_angles(&request.measured)?;
    if let Some(twice) =
        (1..request.measured.len()).find(|i| request.measured[..*i].contains(&request.measured[*i]))
    {
        return refuse(format!(
            "angle {} is measured twice: name every angle once ({MEASURED})",
            request.measured[twice]
        ));
    }
    let left = scanner.geometry().angles().len().saturating_sub(request.measured.len());
    if request.count > left {
        return refuse(format!("{} further angles are asked for, and only {left} are left", request.count));
    }
    let options = ReadOptions::limited(request.memory);
    let (sinogram, dark) = read_sinogram(pilot.geometry(), &request.sinogram, request.counts, &options)?;
    let warnings: Vec<String> = warnings.into_iter().chain(dark).collect();
    let network = match (request.prior, &request.network) {
        (DesignPrior::GPrior, Some(path)) => Some(read_scan_network(path, pilot.geometry())?),
        _ => None,
    };
    let settings = posterior_store::json!({
        "command": "design", "geometry": scanner.geometry(), "measured": request.measured, "prior": request.prior,
        "network": network.as_ref().map(|read| network_digest(&read.network)), "acquisition": request.criterion,
        "count": request.count, "counts": request.counts, "samples": request.samples, "seed": request.seed,
    });
    let identity = Identity { settings, data: numbers_digest("sinogram", &[&sinogram]) };
    let mut checkpointer = Checkpointer::in_file(&request.checkpoint, identity);
    let earlier = checkpointer.earlier::<SavedDesign>()?.map_or_else(Vec::new, |(kept, _)| kept.angles);
    let method = match request.samples {
        0 => DesignMethod::Exact,
        samples => DesignMethod::Sampled { samples },
    };
    let plan_design = |columns: usize, seen: Option<(&Network<f32>, &Array<f32>)>| {
        let all = request.measured.len() + request.count;
        let plan = DesignPlan::of(&scanner, columns, method, request.measured.len(), all);
        let plan = plan.work(&scanner, seen.map(|(network, _)| network.graph().flops()));
        let remedy = format!("allow more ({MEMORY}), draw fewer {DESIGN_SAMPLES}, or choose fewer angles");
        PlannedWork::of(&plan, &scanner, seen, request.memory, &remedy)
    };
    let shape = scanner.geometry().image_shape();
    // The prior of a network is of what stands here; the unit is that of its pictures.
    let (weights, input, tangent);
    let (mut seen, mut unit) = (None, 1.0);
    let (root, noise_variance, prior): Believed<'_> = match request.prior {
        DesignPrior::GPrior => {
            let read = network.as_ref().ok_or_else(|| {
                ScanError::Request(format!("the g-prior needs {DESIGN_NETWORK}: the one that `{DEEP_IMAGE_PRIOR:#}` made of the angles so far"))
            })?;
            let (scaled, of_network) = network_view(&pilot, &sinogram)?;
            input = of_network;
            (seen, unit) = (Some((&read.network, &input)), scaled.unit);
            let own = GPriorOptions { samples: 8, turns: 8, seed: request.seed, ..GPriorOptions::default() };
            let search = UncertaintyOptions {
                prior: ImagePriorChoice::GPrior(own.clone()),
                samples: 0,
                seed: request.seed,
                ..UncertaintyOptions::default()
            };
            let graph = read.network.graph();
            let plan = uncertainty::plan(&pilot, graph, &search)?;
            let remedy = format!("allow more ({MEMORY}), or take {PRIOR_MATERN}");
            let planned = PlannedWork::of(&plan, &pilot, seen, request.memory, &remedy)?;
            announce(&format!("the prior: {}", planned.describe()), &read.notes);
            weights = ConvolutionWeights::of(graph)?;
            plan_design(weights.len(), seen)?;
            tangent = ImageTangent::new(&read.network, input.clone(), weights.selection())?;
            let measured = MeasuredTangent::new(&tangent, &pilot)?;
            let (fit, found) = uncertainty::fit_g_prior(
                &measured,
                &scaled.sinogram,
                &own,
                &search,
                &mut checkpointer,
                watch,
            )?;
            let root = PriorRoot::new(&tangent, WeightPrior::Independent(fit.deviations(&found)))?;
            let facts = posterior_store::json!({ "name": "g-prior", "precision": fit.precision, "unit": scaled.unit, "turns": fit.turns.len() });
            (Box::new(root), fit.noise_variance, facts)
        }
        DesignPrior::Matern => {
            let [height, width] = shape[..] else {
                return refuse("the Matérn prior is one of pictures, not of volumes");
            };
            let bytes = PilotEvidence::bytes(sinogram.len());
            if bytes > request.memory {
                return refuse(format!(
                    "a Matérn prior's evidence for {} measurements takes {:.1} GB, above the limit of {:.1}: allow more ({MEMORY}), or take {PRIOR_ISOTROPIC} or {DESIGN_G_PRIOR:-}",
                    sinogram.len(),
                    bytes as f64 / 1e9,
                    request.memory as f64 / 1e9
                ));
            }
            announce(&format!("the prior: at most {:.2} GB", bytes as f64 / 1e9), &[]);
            let evidence = PilotEvidence::new(&pilot, &sinogram, (height, width), NoiseModel::Fitted)
                .map_err(TomographyError::from)?;
            let start = evidence.usual_start(1e-3);
            let steps = LoopOptions::default().steps;
            let fit = evidence
                .fit(start, &LoopOptions::default(), &mut |progress| {
                    watch(Stage::Hyperparameters, progress.step, steps, progress.value)
                })
                .map_err(TomographyError::from)?;
            if fit.reason == Reason::Interrupted {
                return Err(TomographyError::Interrupted.into());
            }
            let root = fit.prior.root(4.0).map_err(TomographyError::from)?;
            let facts = posterior_store::json!({ "name": "matern", "lengthscale": fit.prior.lengthscale, "variance": fit.prior.variance, "steps": fit.steps });
            (Box::new(root), fit.noise_variance, facts)
        }
        DesignPrior::Isotropic => {
            let mean = sinogram.iter().map(|y| y * y).sum::<f64>() / sinogram.len() as f64;
            let noise_variance = 0.0025 * mean;
            let root = Isotropic::of_measurements(&pilot, &sinogram, noise_variance)?;
            let variance = root.variance();
            let facts = posterior_store::json!({ "name": "isotropic", "variance": variance, "noise": "taken as 5 % of the root mean square of the measurements" });
            (Box::new(root), noise_variance, facts)
        }
    };
    let planned = plan_design(root.shape().1, seen)?;
    announce(&format!("the angles: {}", planned.describe()), &warnings);
    let settings = DesignSettings {
        acquisition: request.criterion,
        method,
        noise_variance,
        stabiliser: 0.0,
        seed: request.seed,
    };
    let (beside, tensors) = checkpointer.earlier::<SavedDesign>()?.unwrap_or_default();
    let mut kept = SavedDesign { angles: earlier, ..beside };
    let chosen = request.measured.iter().copied().chain(kept.angles.iter().map(|next| next.angle));
    let state =
        DesignState { settings, chosen: chosen.collect(), since: request.measured.len(), refreshes: 0 };
    let mut designer = Designer::resume(&scanner, &*root, state).map_err(TomographyError::from)?;
    let mut failed = None;
    while kept.angles.len() < request.count {
        let best = designer.step().map_err(TomographyError::from)?;
        let degrees = scanner.geometry().angles()[best.angle].to_degrees();
        kept.angles.push(NextAngle { angle: best.angle, degrees, score: best.value });
        let signal = watch(Stage::Angles, kept.angles.len(), request.count, Some(best.value));
        let stopped = checkpointer.offer_or_keep(signal, || (&kept, tensors.clone()), &mut failed);
        if let Some(error) = failed {
            return Err(error.into());
        }
        if stopped == Signal::Stop {
            return Err(TomographyError::Interrupted.into());
        }
    }
    checkpointer.finish();
    Ok(DesignOutcome {
        angles: kept.angles,
        noise_variance: noise_variance * (unit * unit),
        planned,
        prior,
        seconds: begun.elapsed().as_secs_f64(),
        warnings,
    })
}
