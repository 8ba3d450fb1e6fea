//! What a file says.

use crate::kinds::prelude::*;
use posterior_networks::architecture::Unet;
use posterior_tomography::design::Acquisition;

/// Settings of the kind.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Settings {
    /// Images over which curves are averaged.
    pub(super) images: u64,
    pub(super) scan: ScanSettings,
    pub(super) design: DesignChoices,
    pub(super) network: NetworkSettings,
    /// The deep image prior on the pilot scan, from fresh weights.
    pub(super) pilot_training: TrainingSettings,
    /// On a design, from the pilot's network, for its score.
    pub(super) scored_training: TrainingSettings,
    /// Between two priors of a design that trains further.
    pub(super) further_training: TrainingSettings,
    pub(super) total_variation: SmoothnessSettings,
    /// Most steps of the search for the variances and lengthscales of filters.
    pub(super) filter_steps: usize,
    pub(super) scores: ScoreSettings,
    #[serde(rename = "method")]
    pub(super) methods: Vec<MethodSettings>,
}

/// `[scan]`
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ScanSettings {
    /// Pixels of a side.
    pub(super) side: usize,
    /// Angles over 180 degrees that could be measured.
    pub(super) candidates: usize,
    /// Equidistant ones that are measured first.
    pub(super) pilot: usize,
    /// Standard deviation of the noise, as a share of the mean measurement.
    pub(super) noise: f64,
}

/// `[design]`
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DesignChoices {
    /// Angles at the end.
    pub(super) most: usize,
    /// Draws of the picture.
    pub(super) samples: usize,
    /// Added to the noise variance, relative to the mean variance of the pilot's measurements under the prior.
    pub(super) stabiliser: f64,
    /// Angles between two priors, where a prior is learned anew.
    pub(super) refresh_every: usize,
    /// Vectors of noise from which the scales of weights are estimated.
    pub(super) scale_draws: usize,
    /// Images of at most so many pixels have their covariances stored, 8 bytes for each pair of pixels, and the Jacobian of their network, 4 bytes for each pixel and weight.
    pub(super) stored_pixels: usize,
}

/// `[network]`
#[derive(Clone, Debug, Deserialize)]
pub(super) struct NetworkSettings {
    pub(super) channels: Vec<usize>,
    pub(super) skips: Vec<usize>,
    pub(super) norm: bool,
    pub(super) sigmoid: bool,
}

/// How the deep image prior is trained.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TrainingSettings {
    pub(super) iterations: usize,
    pub(super) learning_rate: f64,
    /// Of total variation, beside the mean squared error of a scan whose picture is about 1 bright.
    pub(super) weight: f64,
}

/// `[total_variation]`
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SmoothnessSettings {
    /// Its weight for the pilot scan, and for all longer ones.
    pub(super) pilot_weight: f64,
    pub(super) weight: f64,
    /// Most steps, and the share of the objective that the result may be above its minimum.
    pub(super) steps: usize,
    pub(super) tolerance: f64,
}

/// `[scores]`: numbers of angles.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ScoreSettings {
    /// At which total variation makes a picture.
    pub(super) total_variation: Vec<usize>,
    /// At which the deep image prior is trained.
    pub(super) network: Vec<usize>,
    /// That are in the tables.
    pub(super) table: Vec<usize>,
}

/// How angles are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Choice {
    /// Equidistant, where there is such a scan.
    Equidistant,
    /// The middle of the largest gap.
    LargestGaps,
    /// At random.
    Random,
    /// By a prior of pixels that know nothing of one another.
    Isotropic,
    /// By a Matérn-1/2 prior that the pilot scan chose.
    Matern,
    /// By the linearised deep image prior whose weights have the scales of a g-prior.
    GPrior,
    /// By the linearised deep image prior with a variance and a lengthscale for each block of filters.
    Filters,
    /// As the g-prior, with the network trained further whenever the prior is learned anew.
    Retrained,
}

/// One `[[method]]`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MethodSettings {
    pub(super) name: String,
    pub(super) choice: Choice,
    /// What is maximised, where a prior chooses.
    pub(super) acquisition: Option<Acquisition>,
    /// On so many images only.
    pub(super) images: Option<u64>,
}

impl Choice {
    /// Whether angles are chosen without any prior.
    pub(super) fn is_fixed(self) -> bool {
        matches!(self, Self::Equidistant | Self::LargestGaps | Self::Random)
    }
}

impl NetworkSettings {
    /// The network for images of this side.
    pub(super) fn unet(&self, side: usize) -> Unet {
        Unet {
            input: vec![1, side, side],
            channels: self.channels.clone(),
            skips: self.skips.clone(),
            norm: self.norm,
            sigmoid: self.sigmoid,
            ..Unet::small(self.norm)
        }
    }
}

impl Settings {
    /// What the parts of one image and method depend on: all but the other images, the other methods and the tables.
    pub(super) fn common(&self) -> Self {
        let scores = ScoreSettings { table: Vec::new(), ..self.scores.clone() };
        Self { images: 0, methods: Vec::new(), scores, ..self.clone() }
    }

    /// Images of a method.
    pub(super) fn images_of(&self, method: &MethodSettings) -> u64 {
        method.images.map_or(self.images, |images| images.min(self.images))
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        let (pilot, most, all) = (self.scan.pilot, self.design.most, self.scan.candidates);
        if self.images == 0 {
            return refused("give one image at least");
        }
        if pilot == 0 || !all.is_multiple_of(pilot) || !(pilot + 1..=all).contains(&most) {
            return refused(
                "`scan.pilot` divides `scan.candidates`, and `design.most` lies above the first and not above the second",
            );
        }
        if !positive(self.scan.noise) {
            return refused(
                "`scan.noise` is positive: without noise a second look at a ray is worth nothing",
            );
        }
        let at_least_one =
            [self.design.samples, self.design.refresh_every, self.design.scale_draws, self.filter_steps];
        if at_least_one.contains(&0) {
            return refused("samples, refresh_every, scale_draws and filter_steps are 1 at least");
        }
        for counts in [&self.scores.total_variation, &self.scores.network, &self.scores.table] {
            let ascending = counts.windows(2).all(|w| w[0] < w[1]);
            if !ascending || counts.iter().any(|count| !(pilot..=most).contains(count)) {
                return refused(format!("[scores] counts ascend from {pilot} to {most} at most"));
            }
        }
        check_names("method", self.methods.iter().map(|method| method.name.as_str()))?;
        for method in &self.methods {
            if method.choice.is_fixed() == method.acquisition.is_some() {
                return refused(format!(
                    "[[method]] `{}`: an acquisition is for choices by a prior, which need one",
                    method.name
                ));
            }
            if method.images == Some(0) {
                return refused(format!("[[method]] `{}`: one image at least", method.name));
            }
        }
        Ok(())
    }
}
