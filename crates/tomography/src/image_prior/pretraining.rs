//! A beginning for the weights: pictures of ellipses from their filtered back-projections.

use crate::TomographyError;
use crate::phantom::random_ellipses;
use crate::{Filter, Projector, filtered_back_projection, simulate};
use posterior_linalg::parallel;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_networks::train::{Examples, Loss, Targets, TrainOptions, TrainState, Trained, train};
use posterior_networks::{Array, Network};
use posterior_optim::{Observer, Rule, Schedule};
use serde::{Deserialize, Serialize};

/// Diameter of the disk of the ellipses' centres, as a share of the picture's side: the published one of walnuts.
const DIAMETER: f64 = 0.4745;

/// How a network is pretrained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PretrainOptions {
    /// Pictures to learn from.
    pub pictures: usize,
    /// Pictures that choose the epoch.
    pub validation: usize,
    /// Passes over the pictures.
    pub epochs: usize,
    /// Pictures of a step.
    pub batch: usize,
    /// Largest step size of the one cycle.
    pub learning_rate: f64,
    /// Noise of the measurements, as a share of their mean size.
    pub noise: f64,
    /// Seed of pictures, noise and order.
    pub seed: u64,
}

impl Default for PretrainOptions {
    /// A tenth of the published pictures (32 000 and 20 epochs), which is minutes and not days of two cores.
    fn default() -> Self {
        Self {
            pictures: 3200,
            validation: 320,
            epochs: 3,
            batch: 32,
            learning_rate: 5e-4,
            noise: 0.05,
            seed: 0,
        }
    }
}

/// Random ellipses, measured with noise and back-projected: made when they are asked for, the same for the same number.
pub struct EllipseExamples<'a> {
    projector: &'a Projector,
    input: Vec<usize>,
    count: usize,
    noise: f64,
    streams: Streams,
}

impl<'a> EllipseExamples<'a> {
    /// So many for a scan of flat pictures, with a share of noise and a seed.
    ///
    /// # Errors
    /// [`TomographyError::Option`] for scans of volumes; those of a measurement and its filtered back-projection.
    pub fn new(
        projector: &'a Projector,
        count: usize,
        noise: f64,
        seed: u64,
    ) -> Result<Self, TomographyError> {
        let shape = projector.geometry().image_shape();
        if shape.len() != 2 {
            return Err(TomographyError::Option {
                name: "pretraining",
                value: shape.len() as f64,
                expected: "pictures of two dimensions: volumes begin with fresh weights",
            });
        }
        let input = [1].into_iter().chain(shape).collect();
        let examples = Self { projector, input, count, noise, streams: Streams::new(seed) };
        // What cannot be measured or back-projected is said before anything is learned.
        examples.example(0)?;
        Ok(examples)
    }

    /// Input and picture with a number.
    fn example(&self, number: usize) -> Result<(Vec<f64>, Vec<f64>), TomographyError> {
        let streams = self.streams.child("tomography/pretraining", number as u64);
        let (height, width) = (self.input[1], self.input[2]);
        let picture = random_ellipses(height, width, DIAMETER, streams, 0);
        let measured = simulate(self.projector, &picture, self.noise, streams)?;
        let input = filtered_back_projection(self.projector, &measured.sinogram, Filter::RamLak, None)?;
        Ok((input, picture))
    }
}

impl Examples<f32> for EllipseExamples<'_> {
    fn len(&self) -> usize {
        self.count
    }

    fn input_shape(&self) -> &[usize] {
        &self.input
    }

    fn batch(&self, indices: &[usize], _: Option<&mut ChaCha8Rng>) -> (Array<f32>, Targets<f32>) {
        let made = parallel::map(indices.len(), 1, |i| self.example(indices[i]));
        let pixels = self.input[1] * self.input[2];
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for example in made {
            // What cannot be measured becomes NaN, which training refuses by name.
            let (input, picture) =
                example.unwrap_or_else(|_| (vec![f64::NAN; pixels], vec![f64::NAN; pixels]));
            inputs.extend(input.into_iter().map(|v| v as f32));
            targets.extend(picture.into_iter().map(|v| v as f32));
        }
        let shape: Vec<usize> = [indices.len()].into_iter().chain(self.input.iter().copied()).collect();
        let targets = Array::new(vec![indices.len(), pixels], targets);
        (Array::new(shape, inputs), Targets::Values(targets))
    }
}

/// Trains a network to make pictures of filtered back-projections, with the best weights on pictures of ellipses that it has not seen.
///
/// Source: Barbano et al. (2022); spec `tomography`, section 4.3: Adam with a weight decay of 1e-5, one cycle of the step size.
///
/// # Errors
/// [`TomographyError::Train`]; those of [`EllipseExamples::new`].
pub fn pretrain(
    network: Network<f32>,
    projector: &Projector,
    options: &PretrainOptions,
    state: Option<TrainState<f32>>,
    observer: &mut Observer<'_, TrainState<f32>>,
) -> Result<Trained<f32>, TomographyError> {
    let seed = options.seed;
    let of = |count, name| {
        let own = Streams::new(seed).child(name, 0).seed();
        EllipseExamples::new(projector, count, options.noise, own)
    };
    let (training, validation) =
        (of(options.pictures, "training")?, of(options.validation.max(1), "validation")?);
    let options = TrainOptions {
        loss: Loss::Mse,
        epochs: options.epochs,
        batch: options.batch,
        rule: Rule::adam().with_weight_decay(1e-5),
        learning_rate: options.learning_rate,
        schedule: Schedule::OneCycle { warm_up: 0.3 },
        clip: Some(1.0),
        patience: None,
        seed,
    };
    Ok(train(network, &training, Some(&validation), &options, state, observer)?)
}
