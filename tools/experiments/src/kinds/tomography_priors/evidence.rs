//! **The study `[evidence]`**: whose weights the evidence charges for, and whether blocks of the network share one variance; by the exact evidence and the exact posterior.

use super::problem::Subject;
use super::stored::{Correlation, StoredModel};
use super::trained::{Learner, Trained};
use crate::kinds::prelude::*;
use posterior_tomography::TomographyError;
use posterior_tomography::linearised::{ChargedWeights, ConvolutionWeights, LearnedHyperparameters};
use posterior_tomography::patches::{PatchCovariance, Tiling, patch_log_density, pseudo_inverse_stabiliser};

/// The table `[evidence]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct EvidenceSettings {
    /// Steps of L-BFGS at most.
    steps: usize,
    /// Eigenvectors of the projector that the stabiliser of variances is made of.
    eigenvectors: usize,
}

impl EvidenceSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if self.steps == 0 || self.eigenvectors == 0 {
            return refused("[evidence]: `steps` and `eigenvectors` are at least 1");
        }
        Ok(())
    }
}

/// Whose weights are charged for, and whether blocks share a variance, as they are called in the results.
const CELLS: [(&str, bool, bool); 4] = [
    ("optimum, single", true, true),
    ("optimum, layerwise", true, false),
    ("network, single", false, true),
    ("network, layerwise", false, false),
];

/// One choice on one image.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    /// Of the true image as one patch, nats a pixel.
    nll: f64,
    /// The same pixel by pixel.
    marginal: f64,
    /// Nats a measurement.
    evidence: f64,
    noise: f64,
    stabiliser: f64,
    /// Root mean variance of pixels.
    deviation: f64,
    log_variances: Vec<f64>,
    steps: usize,
}

/// Every choice on every image.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn run(
    settings: &EvidenceSettings,
    learner: &Learner<'_>,
    pictures: &[Trained],
    out: &mut Measured,
    context: &mut Context<'_>,
) -> Result<Value> {
    let mut all: Vec<Vec<Found>> = vec![Vec::new(); CELLS.len()];
    let mut blocks = Vec::new();
    for (subject, trained) in learner.problem.subjects.iter().zip(pictures) {
        let network = learner.network(trained)?;
        let mut model = None;
        for (k, cell) in CELLS.iter().enumerate() {
            let stage = format!("{}: evidence of the {}", subject.name, cell.0);
            let depends = (learner.depends(), settings, &subject.name, cell);
            let found = context.once(&stage, &depends, |context| {
                let model = made(&mut model, || StoredModel::new(&network, learner, subject, context))?;
                Ok(judge(settings, *cell, model, subject, learner, &stage, context)?)
            })?;
            all[k].push(found);
        }
        if blocks.is_empty() {
            let weights = ConvolutionWeights::of(network.graph())?;
            blocks = weights.blocks().iter().map(|b| b.name.clone()).collect();
        }
    }
    out.tables.push(table());
    out.figures.push(picture(&all, &blocks).into());
    numbers(&all)
}

fn judge(
    settings: &EvidenceSettings,
    (_, optimum, tied): (&str, bool, bool),
    model: &StoredModel,
    subject: &Subject,
    learner: &Learner<'_>,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Found, TomographyError> {
    let charged = if optimum { ChargedWeights::Optimum } else { model.held() };
    let evidence = model.evidence(charged, None);
    let learned = LearnedHyperparameters { tied, correlated: false, noise: true };
    let start = model.start(Correlation::None);
    let search = evidence.search(learned, &start, settings.steps, None, &mut |progress, _| {
        context.tell(stage, progress.step, settings.steps)
    })?;
    let at = search.hyperparameters;
    let noise = at.log_noise_variance.exp();
    let covariance = model.covariance(&at)?;
    let stabiliser = pseudo_inverse_stabiliser(model.normal().as_ref(), noise, settings.eigenvectors)?;
    let [height, width] = learner.problem.shape();
    let score = |tiling: Tiling| {
        let exact = PatchCovariance::Exact(covariance.as_ref());
        patch_log_density(&subject.truth, &model.picture, exact, &tiling, stabiliser)
    };
    let pixels = covariance.nrows();
    let variance = (0..pixels).map(|i| covariance[(i, i)]).sum::<f64>() / pixels as f64;
    Ok(Found {
        nll: -score(Tiling::new(height, width, height.min(width))?)?.per_pixel(),
        marginal: -score(Tiling::new(height, width, 1)?)?.per_pixel(),
        evidence: search.evidence / learner.problem.projector.geometry().measurements() as f64,
        noise,
        stabiliser,
        deviation: variance.max(0.0).sqrt(),
        log_variances: at.filters.log_variances,
        steps: search.steps,
    })
}

/// What is reported of a choice.
const QUANTITIES: [Quantity<Found>; 7] = [
    ("nll", "NLL, nats a pixel", |f| Some(f.nll)),
    ("marginal", "pixel by pixel", |f| Some(f.marginal)),
    ("evidence", "what was maximised, nats a measurement", |f| Some(f.evidence)),
    ("deviation", "root mean variance of pixels", |f| Some(f.deviation)),
    ("noise", "noise variance", |f| Some(f.noise)),
    ("stabiliser", "", |f| Some(f.stabiliser)),
    ("steps", "steps", |f| Some(f.steps as f64)),
];

fn numbers(all: &[Vec<Found>]) -> Result<Value> {
    let mut cells = Map::new();
    for ((name, ..), found) in CELLS.iter().zip(all) {
        let mut own = Map::new();
        put_all(&mut own, "", found, &QUANTITIES)?;
        cells.insert((*name).into(), Value::Object(own));
    }
    Ok(Value::Object(cells))
}

fn table() -> NumberTable {
    NumberTable::by_name(
        "Negative log density of the true image",
        "the evidence charges for",
        "evidence",
        CELLS.iter().map(|c| c.0),
        &shown_columns("", &QUANTITIES),
        "Means and standard errors over images. The whole image is one patch with the exact covariance (equation 7.6). What the two evidences maximise is not of the same measurements and cannot be compared.",
    )
}

/// Variances by block, on average over images.
fn picture(all: &[Vec<Found>], blocks: &[String]) -> Curves {
    let line = |((name, ..), found): (&(&str, bool, bool), &Vec<Found>)| {
        let mean = |k: usize| {
            let own = found.iter().filter_map(|f| f.log_variances.get(k));
            own.sum::<f64>() / found.len().max(1) as f64
        };
        by_step(*name, (0..blocks.len()).map(mean))
    };
    let lines = CELLS.iter().zip(all).map(line).collect();
    let named: Vec<String> = blocks.iter().enumerate().map(|(k, b)| format!("{k} {b}")).collect();
    Curves::new("Prior variances", "block", "mean log variance", lines).captioned(named.join(", "))
}
