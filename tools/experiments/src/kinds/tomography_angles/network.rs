//! The deep image prior: trained, kept as weights, and as what priors are the tangent of.

use super::problem::Scan;
use super::settings::{NetworkSettings, TrainingSettings};
use crate::kinds::prelude::*;
use posterior_linalg::operator::LinearOperator;
use posterior_networks::{Architecture, Array, Network, Selection};
use posterior_tomography::image_prior::DeepImagePriorOptions;
use posterior_tomography::linearised::{ConvolutionWeights, ImageTangent};
use posterior_tomography::psnr;
use posterior_tomography::reconstruction::{DeepImagePriorRequest, Method, network_view, reconstruct};
use posterior_tomography::running::Checkpointer;
use std::cell::OnceCell;

/// A trained network, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trained {
    /// All weights at the lowest loss.
    pub(super) weights: Vec<f32>,
    /// PSNR of the picture there (dB).
    pub(super) quality: f64,
    /// The highest PSNR of any picture on the way (dB), chosen with the truth that nobody has.
    pub(super) quality_with_truth: f64,
}

/// Trains on a scan, from a network or from fresh weights.
///
/// # Errors
/// A training whose loss stops being a number, interruption.
pub(super) fn train(
    scan: &Scan,
    truth: &[f64],
    (network, training): (&NetworkSettings, &TrainingSettings),
    (start, seed): (Option<Network<f32>>, u64),
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Trained> {
    let side = side_of(scan);
    let method = Method::DeepImagePrior(Box::new(DeepImagePriorRequest {
        network: network.unet(side),
        weight: Some(training.weight),
        training: DeepImagePriorOptions {
            learning_rate: training.learning_rate,
            iterations: training.iterations,
            ..DeepImagePriorOptions::default()
        },
        pretraining: None,
        seed,
    }));
    let Scan { projector, sinogram } = scan;
    let mut watch = |_, done, all, _| context.tell(stage, done, all);
    let found =
        reconstruct(projector, sinogram, &method, start, Some(truth), &mut Checkpointer::none(), &mut watch)?;
    let quality = psnr(&found.picture, truth);
    let quality_with_truth = found.report.best_quality.map_or(quality, |(best, _)| best.max(quality));
    let weights = found
        .network
        .map_or_else(Vec::new, |own| Selection::all(own.network.graph()).flatten(own.network.parameters()));
    Ok(Trained { weights, quality, quality_with_truth })
}

/// Images are square.
fn side_of(scan: &Scan) -> usize {
    scan.projector.geometry().image_shape().first().copied().unwrap_or(0)
}

impl Trained {
    /// The network again.
    ///
    /// # Errors
    /// Settings that make no network.
    pub(super) fn network(&self, settings: &NetworkSettings, side: usize) -> Result<Network<f32>> {
        let graph = Architecture::Unet(settings.unet(side)).graph()?;
        let mut network = Network::initialised(graph, Streams::new(0))?;
        let all = Selection::all(network.graph());
        all.assign(&self.weights, network.parameters_mut());
        Ok(network)
    }
}

/// A trained network with what it looks at.
pub(super) struct View {
    network: Network<f32>,
    input: Array<f32>,
    /// The weights of its convolutions.
    pub(super) weights: ConvolutionWeights,
    /// What its pictures are multiplied by.
    pub(super) unit: f64,
    jacobian: OnceCell<Mat<f32>>,
}

impl View {
    /// Of the scan that the network was trained on.
    ///
    /// # Errors
    /// A network without convolutions.
    pub(super) fn new(trained: &Trained, settings: &NetworkSettings, scan: &Scan) -> Result<Self> {
        let network = trained.network(settings, side_of(scan))?;
        let (scaled, input) = network_view(&scan.projector, &scan.sinogram)?;
        let weights = ConvolutionWeights::of(network.graph())?;
        Ok(Self { network, input, weights, unit: scaled.unit, jacobian: OnceCell::new() })
    }

    /// The Jacobian of its picture, in its own units.
    ///
    /// # Errors
    /// Those of the network.
    pub(super) fn tangent(&self) -> Result<ImageTangent<'_, f32>> {
        Ok(ImageTangent::new(&self.network, self.input.clone(), self.weights.selection())?)
    }

    /// The same stored, transposed (weights x pixels), when it is first asked for. Cost: half a product with each pixel; 4 bytes for each pixel and weight.
    ///
    /// # Errors
    /// Interruption.
    pub(super) fn jacobian(
        &self,
        tangent: &ImageTangent<'_, f32>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<&Mat<f32>> {
        if let Some(known) = self.jacobian.get() {
            return Ok(known);
        }
        let pixels = tangent.shape().0;
        let pixel = |at: usize| Mat::from_fn(pixels, 1, |i, _| f64::from(u8::from(i == at)));
        let found = tangent.rows_along(pixels, &pixel, &mut |done| context.tell(stage, done, pixels))?;
        Ok(self.jacobian.get_or_init(|| found))
    }
}
