//! What one image looks like to its priors, and where designs look at it.

use super::known::Known;
use super::scores::ScoredDesign;
use super::settings::{Choice, Settings};
use crate::kinds::prelude::*;
use crate::kinds::tomography_priors::mosaic;
use posterior_report::{Picture, Table};
use posterior_tomography::TomographyError;
use posterior_tomography::measured::ObservedPrior;

/// Angles of a design that are shown.
const FIRST: usize = 20;

/// An image as truth, network and priors have it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Looks {
    truth: Vec<f64>,
    network: Vec<f64>,
    /// Standard deviations of pixels under each prior.
    deviations: Vec<(String, Vec<f64>)>,
}

/// Draws the priors of the pilot scan on an image: those with a network that any method uses, the others being the same at every pixel.
///
/// # Errors
/// Those of training and priors; interruption.
pub(super) fn looks(known: &mut Known<'_>, stage: &str, context: &mut Context<'_>) -> Result<Looks> {
    let view = known.view(context)?;
    let tangent = view.tangent()?;
    let network = tangent.picture().iter().map(|v| v * view.unit).collect();
    let used = |choice: Choice| known.settings.methods.iter().any(|m| m.choice == choice);
    let [by_scales, by_filters] = [used(Choice::GPrior), used(Choice::Filters)];
    let mut roots = Vec::new();
    if by_scales {
        roots.push(("g-prior", known.g_prior(&tangent, &view, stage, context)?));
    }
    if by_filters {
        roots.push(("filters", known.filters(&tangent, &view, stage, context)?));
    }
    let mut deviations = Vec::new();
    for (name, root) in roots {
        let observed = ObservedPrior::new(&*root, &known.problem.scanner, known.problem.noise_variance)
            .map_err(TomographyError::from)?;
        let draws = observed.prior_samples(known.settings.design.samples, Streams::new(known.problem.seed));
        deviations.push((name.to_string(), root_mean_squares(&draws)));
    }
    Ok(Looks { truth: known.problem.truth.clone(), network, deviations })
}

/// Values from 0 to the largest as grey.
fn grey(title: String, values: &[f64], side: usize, caption: String) -> Item {
    let largest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let shares = values.iter().map(|value| value / largest).collect();
    Item::Picture(Picture { title, image: mosaic([side; 2], &[vec![shares]]), caption })
}

impl Looks {
    /// As pictures.
    pub(super) fn items(&self, side: usize) -> Vec<Item> {
        let picture = "0 is black, the largest value white.".to_string();
        let mut items = vec![
            grey("The first image".into(), &self.truth, side, picture.clone()),
            grey("What the pilot's network makes of it".into(), &self.network, side, picture),
        ];
        for (name, values) in &self.deviations {
            let largest = values.iter().copied().fold(0.0, f64::max);
            let caption = format!(
                "Standard deviation of each pixel before any further angle: white is {largest:.3}. Priors without a network have the same at every pixel."
            );
            items.push(grey(format!("The prior by {name}"), values, side, caption));
        }
        items
    }
}

/// The first angles of every method on the first image.
pub(super) fn first_angles(settings: &Settings, all: &[Vec<ScoredDesign>]) -> Item {
    let degrees = |angle: &usize| 180.0 * *angle as f64 / settings.scan.candidates as f64;
    let row = |name: &String, course: &ScoredDesign| {
        let angles: Vec<String> =
            course.design.chosen.iter().take(FIRST).map(|angle| format!("{:.1}", degrees(angle))).collect();
        vec![name.clone(), angles.join(", ")]
    };
    let each = settings.methods.iter().zip(all);
    Item::Table(Table {
        title: format!("The first {FIRST} angles on the first image"),
        head: vec!["angles by".into(), "degrees, in the order of the scan".into()],
        rows: each.filter_map(|(m, courses)| Some(row(&m.name, courses.first()?))).collect(),
        caption: format!("The first {} are the pilot scan.", settings.scan.pilot),
    })
}

/// What every angle was worth at the first steps of each design on the first image: a line for each step.
pub(super) fn worth(settings: &Settings, all: &[Vec<ScoredDesign>]) -> Vec<Item> {
    let degrees = |angle: usize| 180.0 * angle as f64 / settings.scan.candidates as f64;
    let line = |(step, scores): (usize, &Vec<Option<f64>>)| {
        let there = scores.iter().enumerate().filter_map(|(angle, score)| Some((degrees(angle), (*score)?)));
        through(format!("angle {}", settings.scan.pilot + step + 1), there)
    };
    let mut items = Vec::new();
    for (method, courses) in settings.methods.iter().zip(all) {
        let Some(course) = courses.first().filter(|c| !c.design.scores.is_empty()) else { continue };
        let lines = course.design.scores.iter().enumerate().map(line).collect();
        let caption = "One line for each further angle, before it was chosen; angles that are in the scan have no value.";
        let title = format!("{}: what each angle is worth on the first image", method.name);
        items.push(Curves::new(title, "degrees", "score", lines).captioned(caption).into());
    }
    items
}
