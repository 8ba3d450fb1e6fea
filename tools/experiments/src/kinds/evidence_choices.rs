//! Classifiers of images: what the error bars owe to the norm that the evidence charges for, to the point at which the curvature of the likelihood is taken, to biases, and to how long the network was trained.
//!
//! Every posterior keeps the network's outputs as its mean. Its precisions come from turns of mode and update, charged with the norm of the linear model's mode or with that of the trained weights; the likelihood's
//! curvature is taken at the trained weights or, for comparison, at that mode. Serves figures 5.7 and 5.8 of the thesis.

use super::fidelity::check_priors;
use crate::classifier::{
    Classifier, Curvature, NetworkSettings, Norm, Point, Predicted, TurnSettings, Untrained,
};
use crate::images::ImageSettings;
use crate::kinds::prelude::*;
use crate::training::TrainingSettings;
use posterior_laplace::PriorKind;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    turns: TurnSettings,
    /// Which weights share a precision.
    prior: PriorKind,
    /// The form of the curvature.
    curvature: Curvature,
    /// Passes over the data after which the network is looked at, the last of them last. Each is trained anew, on the same batches.
    epochs: Vec<usize>,
    #[serde(rename = "network")]
    networks: Vec<NetworkSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("network", self.networks.iter().map(|n| n.name.as_str()))?;
        check_priors(std::slice::from_ref(&self.prior))?;
        self.turns.check()?;
        if self.epochs.is_empty() || self.epochs[0] == 0 || self.epochs.windows(2).any(|w| w[0] >= w[1]) {
            return refused("`epochs` are positive numbers in ascending order");
        }
        if self.training.epochs.is_some() || self.training.steps.is_some() {
            return refused(
                "[training] has neither `epochs` nor `steps` here: `epochs` of the experiment say how long",
            );
        }
        Ok(())
    }
}

/// Norm and point, as they are called in the results.
const CELLS: [(&str, Norm, Point); 4] = [
    ("mode", Norm::Mode, Point::Trained),
    ("trained", Norm::Trained, Point::Trained),
    ("mode, curvature there", Norm::Mode, Point::Mode),
    ("trained, curvature at the mode", Norm::Trained, Point::Mode),
];

/// Of a posterior.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    nll: f64,
    ece: f64,
    /// Mean over outputs and images.
    deviation: f64,
    precisions: (f64, f64),
    predicted: Predicted,
}

/// A network at one time of its training.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Snapshot {
    epochs: usize,
    /// Of the network alone.
    plain_nll: f64,
    accuracy: f64,
    /// Mean W2 of the outputs between the posteriors by the two norms.
    distance: f64,
}

/// The posterior by one norm and one point.
fn found(
    settings: &Settings,
    (norm, point): (Norm, Point),
    classifier: &mut Classifier,
    context: &mut Context<'_>,
) -> Result<Found> {
    let curvatures = (settings.curvature, settings.curvature);
    let learned =
        classifier.learn_by(curvatures, (norm, point), &settings.prior, &settings.turns, context)?;
    let prior = classifier.prior(&settings.prior, 1.0)?.with_precisions(learned.last())?;
    let predicted = match point {
        Point::Trained => classifier.by_curvature(settings.curvature, &prior, context)?,
        Point::Mode => {
            let structure = classifier.curvature_at(settings.curvature, &learned.mode, context)?;
            classifier.by_structure(&structure, &prior, context)?
        }
    };
    let scores = classifier.scores(&predicted)?;
    let deviation =
        predicted.variances().map(|v| v.max(0.0).sqrt()).sum::<f64>() / predicted.mean.len() as f64;
    let precisions = learned.last();
    let low = precisions.iter().copied().fold(f64::INFINITY, f64::min);
    let high = precisions.iter().copied().fold(0.0, f64::max);
    Ok(Found { nll: scores.nll, ece: scores.ece, deviation, precisions: (low, high), predicted })
}

/// Trains every network for each of the times, with posteriors by both norms, and by all choices after the last.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (mut numbers, mut series, mut out) = (Map::new(), Map::new(), Measured::default());
    for network in &settings.networks {
        let name = &network.name;
        let (mut snapshots, mut cells) = (Vec::new(), Map::new());
        for (k, &epochs) in settings.epochs.iter().enumerate() {
            let training = TrainingSettings { epochs: Some(epochs), ..settings.training.clone() };
            let mut untrained = Untrained::new(&settings.data, &training, network);
            let last = k + 1 == settings.epochs.len();
            let count = if last { CELLS.len() } else { 2 };
            let depends = (untrained.depends(), settings.turns, &settings.prior, settings.curvature);
            let mut all = Vec::new();
            for (cell, norm, point) in &CELLS[..count] {
                let stage = format!("{name} after {epochs} epochs: {cell}");
                let own: Found = context.once(&stage, &(depends, cell), |context| {
                    found(settings, (*norm, *point), untrained.trained(context)?, context)
                })?;
                all.push(own);
            }
            let stage = format!("{name} after {epochs} epochs: the network alone");
            let snapshot: Snapshot = context.once(&stage, &depends, |context| {
                let classifier = untrained.trained(context)?;
                let plain = Predicted::certain(classifier.classes(), all[0].predicted.mean.clone());
                let scores = classifier.scores(&plain)?;
                let distance = all[0].predicted.wasserstein2(&all[1].predicted)?;
                Ok(Snapshot { epochs, plain_nll: scores.nll, accuracy: scores.accuracy, distance })
            })?;
            if last {
                out.facts.push(untrained.fact(context)?.0);
                cells.insert(
                    "network alone".into(),
                    json!({"nll": snapshot.plain_nll, "change": 0.0, "accuracy": snapshot.accuracy}),
                );
                let base = all[0].nll;
                for ((cell, ..), own) in CELLS.iter().zip(&all) {
                    cells.insert(
                        (*cell).into(),
                        json!({"nll": own.nll, "change": own.nll - base, "ece": own.ece, "deviation": own.deviation, "smallest_precision": own.precisions.0, "largest_precision": own.precisions.1}),
                    );
                }
                let change = |k: usize| (all[k].nll - base).abs();
                cells.insert("changes".into(), json!({"norm": change(1), "point": change(2)}));
            }
            snapshots.push(snapshot);
        }
        let best =
            (0..snapshots.len()).min_by(|&i, &j| snapshots[i].plain_nll.total_cmp(&snapshots[j].plain_nll));
        let best = best.unwrap_or(0);
        let (first, final_) = (snapshots[0].distance, snapshots[snapshots.len() - 1].distance);
        cells.insert(
            "training".into(),
            json!({"first_distance": first, "last_distance": final_, "best_distance": snapshots[best].distance, "best_epochs": snapshots[best].epochs}),
        );
        out.tables.push(table(name));
        out.figures.push(picture(name, &snapshots, best).into());
        series.insert(name.clone(), json!(snapshots));
        numbers.insert(name.clone(), Value::Object(cells));
    }
    out.numbers = json!({ "networks": numbers });
    out.series = Value::Object(series);
    Ok(out)
}

fn table(network: &str) -> NumberTable {
    NumberTable::by_name(
        network,
        "precisions by the norm of",
        &format!("networks.{network}"),
        std::iter::once("network alone").chain(CELLS.iter().map(|c| c.0)),
        &[
            ("nll", "test NLL"),
            ("change", "change"),
            ("ece", "ECE"),
            ("deviation", "deviation of outputs"),
            ("smallest_precision", "smallest precision"),
            ("largest_precision", "largest precision"),
        ],
        "Probit predictive, the curvature of the likelihood at the trained weights unless said otherwise. Changes are to the first posterior.",
    )
}

fn picture(name: &str, snapshots: &[Snapshot], best: usize) -> Curves {
    let x: Vec<f64> = snapshots.iter().map(|s| s.epochs as f64).collect();
    let distances = snapshots.iter().map(|s| s.distance).collect();
    let nll = snapshots.iter().map(|s| s.plain_nll).collect();
    let lines = vec![
        Line::new("W2 between posteriors by the two norms", x.clone(), distances),
        Line::new("test NLL of the network alone", x, nll),
    ];
    let caption = format!("The network alone is best after {} epochs.", snapshots[best].epochs);
    Curves::new(format!("{name}: along the training"), "epochs", "", lines)
        .logarithmic(false, true)
        .captioned(caption)
}
