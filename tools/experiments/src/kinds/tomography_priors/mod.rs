//! Pictures of scans whose truth is known, and what Gaussian priors say about their errors: the linearised deep image prior by every choice of its hyperparameters, dropped channels, priors over pixels.
//!
//! A network is pretrained on ellipses once and trained on every image from there; then follow the studies that the file asks for. Serves the U-Net column of table 5.1, table 7.1 and figures 7.3 and 7.5 to 7.13 of the thesis (spec `tomography`).
//!
//! | file | idea |
//! |---|---|
//! | `problem` | images, their scans |
//! | `trained` | the network: pretrained once, trained on every image |
//! | `stored` | its linear model with stored matrices: search, evidence, covariance |
//! | `evidence` | **study** `[evidence]`: whose weights the evidence charges for, one variance or one for each block |
//! | `predictive` | what a method says of an image, and its scores |
//! | `methods` | ways to such a predictive that the network's tangent gives |
//! | `baselines` | and those without: dropped channels, pixels, total variation |
//! | `uncertainty` | **study** `[uncertainty]`: methods side by side |
//! | `figures` | its pictures |
//! | `roughness` | **study** `[roughness]`: expected total variation against lengthscale, in closed form and by samples |
//! | `draws` | pictures that priors expect: total variation, pixels, the linearised network |
//! | `traces` | hyperparameters along the search, with and without the prior that expects smooth pictures |

mod baselines;
mod draws;
mod evidence;
mod figures;
mod methods;
mod predictive;
mod problem;
mod roughness;
mod stored;
mod traces;
mod trained;
mod uncertainty;

#[cfg(test)]
mod tests;

use crate::kinds::prelude::*;
use evidence::EvidenceSettings;
pub(super) use figures::mosaic;
use posterior_tomography::reconstruction::DeepImagePriorRequest;
use problem::{ImageSettings, Problem, ScanSettings};
use roughness::RoughnessSettings;
use trained::Learner;
use uncertainty::UncertaintySettings;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    scan: ScanSettings,
    #[serde(rename = "image")]
    images: Vec<ImageSettings>,
    /// The network, its pretraining and its training on every image. Without a weight of total variation it is chosen on measurements that are held back.
    prior: DeepImagePriorRequest,
    #[serde(default)]
    evidence: Option<EvidenceSettings>,
    #[serde(default)]
    uncertainty: Option<UncertaintySettings>,
    #[serde(default)]
    roughness: Option<RoughnessSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        self.scan.check()?;
        check_names("image", self.images.iter().map(|i| i.name.as_str()))?;
        self.images.iter().try_for_each(ImageSettings::check)?;
        if self.prior.training.dropout.is_some() {
            return refused(
                "[prior]: `dropout` belongs to the method that drops channels, not to the network of all others",
            );
        }
        self.evidence.as_ref().map_or(Ok(()), EvidenceSettings::check)?;
        self.uncertainty.as_ref().map_or(Ok(()), |own| own.check(self.scan.side))?;
        self.roughness.as_ref().map_or(Ok(()), RoughnessSettings::check)?;
        match (&self.evidence, &self.uncertainty, &self.roughness) {
            (None, None, None) => refused("give at least one of [evidence], [uncertainty] and [roughness]"),
            _ => Ok(()),
        }
    }
}

/// Trains the network on every image, and does what is asked for with it.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let problem = Problem::new(settings, context)?;
    let learner = Learner::new(settings, &problem, context)?;
    let (mut out, mut numbers, mut series) = (Measured::default(), Map::new(), Map::new());
    let geometry = problem.projector.geometry();
    out.facts.push(SummaryRow::new("Measurements", geometry.measurements().to_string()));
    out.facts.push(SummaryRow::new("Weights of the network", learner.weights().to_string()));
    let mut pictures = Vec::new();
    for subject in &problem.subjects {
        pictures.push(learner.picture(subject, None, context)?);
    }
    numbers.insert("pictures".into(), trained::numbers(&problem, &pictures)?);
    if let Some(own) = &settings.evidence {
        let found = evidence::run(own, &learner, &pictures, &mut out, context)?;
        numbers.insert("evidence".into(), found);
    }
    if let Some(own) = &settings.uncertainty {
        let (found, lines) = uncertainty::run(own, &learner, &pictures, &mut out, context)?;
        numbers.insert("uncertainty".into(), found);
        series.insert("uncertainty".into(), lines);
    }
    if let Some(own) = &settings.roughness {
        let (found, lines) = roughness::run(own, &learner, &pictures, &mut out, context)?;
        numbers.insert("roughness".into(), found);
        series.insert("roughness".into(), lines);
    }
    out.tables.insert(0, trained::table(&problem));
    out.numbers = Value::Object(numbers);
    out.series = Value::Object(series);
    Ok(out)
}
