//! The network: pretrained on ellipses once, and trained on every image from there.

use super::Settings;
use super::problem::{Problem, Subject};
use crate::kinds::prelude::*;
use posterior_networks::architecture::Unet;
use posterior_networks::{Architecture, Array, Network, Selection};
use posterior_optim::{Clock, Reason};
use posterior_tomography::image_prior::{DeepImagePrior, DeepImagePriorOptions, network_input, pretrain};
use posterior_tomography::reconstruction::{DeepImagePriorRequest, Trials, choose_weight};
use posterior_tomography::total_variation::{Penalised, TotalVariation};
use posterior_tomography::{Filter, TomographyError, filtered_back_projection, psnr};
use std::time::Instant;

/// A network after its training on one image.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trained {
    pub(crate) weights: Vec<f32>,
    pub(crate) psnr: f64,
    /// Of the filtered back-projection, which the network looks at.
    filtered_psnr: f64,
    /// Weight of total variation.
    weight: f64,
    best_step: usize,
    seconds: f64,
}

/// Pretrained weights, and what they cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pretrained {
    weights: Vec<f32>,
    seconds: f64,
}

/// Trains networks for the images of a problem.
pub(crate) struct Learner<'a> {
    pub(crate) problem: &'a Problem,
    request: &'a DeepImagePriorRequest,
    network: Network<f32>,
    /// Everything that a trained network depends on.
    depends: String,
}

impl<'a> Learner<'a> {
    /// With the network that every training begins with: pretrained where the settings say so.
    ///
    /// # Errors
    /// A network that does not fit; a training that fails or is interrupted.
    pub(crate) fn new(
        settings: &'a Settings,
        problem: &'a Problem,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let request = &settings.prior;
        let [height, width] = problem.shape();
        let unet = Unet { input: vec![1, height, width], outputs: 1, ..request.network.clone() };
        let graph = Architecture::Unet(unet.clone()).graph()?;
        let streams = Streams::new(request.seed).child("experiment/tomography network", context.seed);
        let mut network = Network::initialised(graph, streams)?;
        if let Some(options) = &request.pretraining {
            let depends = (problem.scan, &unet, options, request.seed);
            let found: Pretrained = context.once("pretraining", &depends, |context| {
                let begun = Instant::now();
                let fresh = network.clone();
                let trained = pretrain(fresh, &problem.projector, options, None, &mut |progress, _| {
                    context.tell("pretraining", progress.step, progress.steps_planned)
                })?;
                if trained.reason == Reason::Interrupted {
                    return Err(ExperimentError::Interrupted);
                }
                let all = Selection::all(trained.network.graph());
                let weights = all.flatten(trained.network.parameters());
                Ok(Pretrained { weights, seconds: begun.elapsed().as_secs_f64() })
            })?;
            assign(&mut network, &found.weights)?;
        }
        let depends = format!("{} {request:?}", problem.depends);
        Ok(Self { problem, request, network, depends })
    }

    /// Trainable weights of the network.
    pub(crate) fn weights(&self) -> usize {
        self.network.graph().trainable()
    }

    /// What a part of the run depends on, beside its own settings and the image.
    pub(crate) fn depends(&self) -> &str {
        &self.depends
    }

    /// The network with some weights.
    ///
    /// # Errors
    /// Weights of another network.
    pub(crate) fn network(&self, trained: &Trained) -> Result<Network<f32>> {
        let mut network = self.network.clone();
        assign(&mut network, &trained.weights)?;
        Ok(network)
    }

    /// What the network looks at: the filtered back-projection of an image's measurements.
    ///
    /// # Errors
    /// [`TomographyError`].
    pub(crate) fn input(&self, subject: &Subject) -> Result<Array<f32>, TomographyError> {
        let sinogram = self.problem.measure(subject)?;
        let first = filtered_back_projection(&self.problem.projector, &sinogram, Filter::RamLak, None)?;
        Ok(network_input(&self.problem.shape(), &first))
    }

    /// The network after its training on an image; with channels dropped at a rate where there is one.
    ///
    /// # Errors
    /// A training that fails or is interrupted; a journal that cannot be written.
    pub(crate) fn picture(
        &self,
        subject: &Subject,
        dropout: Option<f64>,
        context: &mut Context<'_>,
    ) -> Result<Trained> {
        let dropped = if dropout.is_some() { " with dropped channels" } else { "" };
        let stage = format!("{}: network{dropped}", subject.name);
        let depends = (&self.depends, &subject.name, dropout);
        context.once(&stage, &depends, |context| self.train(subject, dropout, &stage, context))
    }

    fn train(
        &self,
        subject: &Subject,
        dropout: Option<f64>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Trained> {
        let begun = Instant::now();
        let (projector, shape) = (&self.problem.projector, self.problem.shape());
        let sinogram = self.problem.measure(subject)?;
        let first = filtered_back_projection(projector, &sinogram, Filter::RamLak, None)?;
        let weight = match self.request.weight {
            Some(weight) => weight,
            None => {
                let mut watch = |trials: &Trials| {
                    context.tell("weight of total variation", trials.made.len(), Trials::ALL)
                };
                let seed = self.request.seed;
                choose_weight(projector, &sinogram, &shape, &first, seed, None, &mut watch)?.weight
            }
        };
        let variation = TotalVariation::sum(&shape)?;
        let objective = Penalised::new(projector, &sinogram, &variation, weight)?;
        let options = DeepImagePriorOptions { dropout, ..self.request.training.clone() };
        let (input, truth) = (network_input(&shape, &first), Some(&subject.truth[..]));
        let mut training =
            DeepImagePrior::new(self.network.clone(), input, &objective, &options, truth, None)?;
        let reason = training
            .run(Clock::start(), &mut |progress, _| context.tell(stage, progress.step, options.iterations))?;
        if reason == Reason::Interrupted {
            return Err(ExperimentError::Interrupted);
        }
        let (network, picture, state) = training.finish()?;
        Ok(Trained {
            weights: Selection::all(network.graph()).flatten(network.parameters()),
            psnr: psnr(&picture, &subject.truth),
            filtered_psnr: psnr(&first, &subject.truth),
            weight,
            best_step: state.best_step,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

/// Gives a network its weights. The journal is a file that somebody may have changed.
fn assign(network: &mut Network<f32>, weights: &[f32]) -> Result<(), TomographyError> {
    let all = Selection::all(network.graph());
    if all.len() != weights.len() {
        let (what, expected, found) = ("weights of the network in the journal", all.len(), weights.len());
        return Err(TomographyError::Shape { what, expected, found });
    }
    all.assign(weights, network.parameters_mut());
    Ok(())
}

/// PSNR and seconds of every image.
///
/// # Errors
/// Numbers without an average.
pub(crate) fn numbers(problem: &Problem, pictures: &[Trained]) -> Result<Value> {
    let mut out = Map::new();
    for (subject, own) in problem.subjects.iter().zip(pictures) {
        let own = json!({"psnr": own.psnr, "filtered_psnr": own.filtered_psnr, "weight": own.weight, "best_step": own.best_step, "seconds": own.seconds});
        out.insert(subject.name.clone(), own);
    }
    let mut mean = Map::new();
    let quantities: [Quantity<Trained>; 2] =
        [("psnr", "", |p| Some(p.psnr)), ("filtered_psnr", "", |p| Some(p.filtered_psnr))];
    put_all(&mut mean, "", pictures, &quantities)?;
    out.insert("mean".into(), Value::Object(mean));
    Ok(Value::Object(out))
}

/// The same as a table.
pub(crate) fn table(problem: &Problem) -> NumberTable {
    NumberTable::by_name(
        "Pictures of the network",
        "image",
        "pictures",
        problem.subjects.iter().map(|s| s.name.as_str()),
        &[
            ("filtered_psnr", "PSNR of the filtered back-projection, dB"),
            ("psnr", "PSNR of the network, dB"),
            ("weight", "weight of total variation"),
            ("best_step", "best step"),
            ("seconds", "seconds"),
        ],
        "Trained from the pretrained weights on; the best step is that of the lowest loss.",
    )
}
