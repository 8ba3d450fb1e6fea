//! Precisions of a classifier by step of expectation maximisation: with the full curvature, with approximations of it, and with samples; and the bounds of the evidence that they maximise.
//!
//! Serves figure 6.6 of the thesis (right) and figure 6.7.

use super::along::{arrival, maximum};
use super::fidelity::{check_priors, prior_name};
use crate::classifier::{Classifier, Curvature, LearnedPrecisions, NetworkSettings, TurnSettings, Untrained};
use crate::images::ImageSettings;
use crate::kinds::prelude::*;
use crate::training::TrainingSettings;
use posterior_laplace::sampled::{self, ModeSolver, Solver};
use posterior_laplace::{Data, PriorKind, Problem, Run, SampledOptions, Stage};
use posterior_likelihoods::Integration;
use posterior_linear::LinearError;
use posterior_linear::evidence::EvidenceOptions;
use posterior_linear::sampled::{ConjugateOptions, sampled_bound};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    turns: TurnSettings,
    /// Which weights share a precision.
    priors: Vec<PriorKind>,
    /// By which curvatures precisions are learned; the first is what others are compared with.
    curvatures: Vec<Curvature>,
    sampled: SampledSettings,
    bounds: Option<BoundSettings>,
    #[serde(rename = "network")]
    networks: Vec<NetworkSettings>,
}

/// The table `[sampled]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct SampledSettings {
    /// Samples of each turn.
    samples: usize,
    /// Relative residual to which they are solved.
    tolerance: f64,
}

/// The table `[bounds]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct BoundSettings {
    /// Curvatures whose bound is drawn; the first is what others are compared with.
    curvatures: Vec<Curvature>,
    /// The grid goes from the optimum over this to the optimum times this.
    span: f64,
    /// Its points.
    points: usize,
    /// Turns at most towards the optimum at which the bounds begin.
    steps: usize,
    /// It is reached when no logarithm moves by more.
    tolerance: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("network", self.networks.iter().map(|n| n.name.as_str()))?;
        check_priors(&self.priors)?;
        self.turns.check()?;
        let residual = |t: f64| t > 0.0 && t < 1.0;
        if self.curvatures.is_empty() || self.sampled.samples == 0 || !residual(self.sampled.tolerance) {
            return refused(
                "`curvatures` are at least one, `sampled.samples` at least 1, `sampled.tolerance` lies between 0 and 1",
            );
        }
        let wrong = |b: &BoundSettings| {
            b.curvatures.is_empty()
                || !(b.span > 1.0 && b.span.is_finite())
                || !(3..=10_000).contains(&b.points)
                || b.steps == 0
                || !positive(b.tolerance)
        };
        if self.bounds.as_ref().is_some_and(wrong) {
            return refused(
                "[bounds]: `curvatures` are at least one, `span` is above 1, `points` between 3 and 10000, `steps` at least 1, `tolerance` positive",
            );
        }
        Ok(())
    }
}

/// What turns with samples are called beside the curvatures.
const SAMPLED: &str = "sampled";

/// Memory that samples may take.
const MEMORY: u64 = 8 << 30;

/// Precisions by turns with samples (thesis, algorithm 4), without the g-prior.
fn by_samples(
    classifier: &mut Classifier,
    (kind, turns): (&PriorKind, &TurnSettings),
    own: SampledSettings,
    context: &mut Context<'_>,
) -> Result<(LearnedPrecisions, Vec<sampled::EmStep>)> {
    let options = SampledOptions {
        samples_em: own.samples,
        samples: 1,
        em_steps: turns.steps,
        solver: Solver::ConjugateGradients(ConjugateOptions { tolerance: own.tolerance, steps: 5000 }),
        mode: ModeSolver::Newton(turns.mode()),
        g_prior: false,
        layerwise: *kind == PriorKind::Layerwise,
        initial_precision: turns.initial_precision,
        tolerance: turns.tolerance,
        ..SampledOptions::default()
    };
    let data = Data::new(&classifier.network, classifier.train.as_ref(), &classifier.likelihood);
    let problem = Problem { data, selection: &classifier.selection, seed: context.seed, memory: MEMORY };
    let tell = |s: Stage, done, total| {
        context.tell(&format!("precisions by samples: {}", s.describe()), done, total)
    };
    let found = sampled::fit(&problem, &options, Integration::PlugIn, &mut Run::new(tell))?;
    context.notes.extend(found.notes.iter().map(|n| Note::information(format!("sampled: {n}"))));
    let turns = found.report.turns;
    let mut precisions: Vec<Vec<f64>> = turns.iter().map(|t| t.precisions.clone()).collect();
    precisions.push(found.precisions);
    let learned = LearnedPrecisions {
        groups: classifier.prior(kind, 1.0)?.names().to_vec(),
        precisions,
        effective_dimensions: turns.iter().map(|t| t.effective_dimensions.clone()).collect(),
        mode: Vec::new(),
    };
    Ok((learned, turns))
}

/// Trains every network and follows its precisions.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (mut numbers, mut series, mut out) = (Map::new(), Map::new(), Measured::default());
    for network in &settings.networks {
        let name = &network.name;
        let mut untrained = Untrained::new(&settings.data, &settings.training, network);
        out.facts.push(untrained.fact(context)?.0);
        let (mut own, mut curves) = (Map::new(), Map::new());
        for kind in &settings.priors {
            let learned = of_prior(settings, kind, &mut untrained, context)?;
            let prior = prior_name(kind);
            own.insert(prior.into(), of_traces(&learned));
            curves.insert(
                prior.into(),
                learned
                    .iter()
                    .map(|(n, l)| (n.to_string(), json!(l.precisions)))
                    .collect::<Map<_, _>>()
                    .into(),
            );
            out.tables.push(table_of_traces(name, kind, &learned));
            out.figures.extend(pictures_of_traces(name, kind, &learned));
        }
        if let Some(bounds) = &settings.bounds {
            let drawn = of_bounds(settings, bounds, &mut untrained, context)?;
            let names: Vec<&str> = drawn.curves.iter().map(|c| c.name.as_str()).collect();
            out.tables.push(NumberTable::by_name(
                &format!("{name}: optima of the bounds"),
                "bound by",
                &format!("networks.{name}.bounds"),
                names.iter().copied(),
                &[("optimum", "precision"), ("over_first", "over the first")],
                "The precision that maximises the bound of the evidence for one mode: that of the optimum by the first curvature.",
            ));
            out.figures.push(drawn.picture(name));
            own.insert("bounds".into(), drawn.numbers());
            curves.insert("bounds".into(), json!(drawn));
        }
        numbers.insert(name.clone(), Value::Object(own));
        series.insert(name.clone(), Value::Object(curves));
    }
    out.numbers = json!({ "networks": numbers });
    out.series = Value::Object(series);
    Ok(out)
}

/// Traces by every curvature and by samples.
fn of_prior<'s>(
    settings: &'s Settings,
    kind: &PriorKind,
    untrained: &mut Untrained<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<(&'s str, LearnedPrecisions)>> {
    let depends = (untrained.depends(), settings.turns, kind);
    let mut all = Vec::new();
    for &curvature in &settings.curvatures {
        let stage = format!("{} turns by {} curvature", prior_name(kind), curvature.name());
        let learned = context.once(&stage, &(depends, curvature), |context| {
            untrained.trained(context)?.learn(curvature, kind, &settings.turns, context)
        })?;
        all.push((curvature.name(), learned));
    }
    let stage = format!("{} turns by samples", prior_name(kind));
    let learned = context.once(&stage, &(depends, settings.sampled), |context| {
        let classifier = untrained.trained(context)?;
        Ok(by_samples(classifier, (kind, &settings.turns), settings.sampled, context)?.0)
    })?;
    all.push((SAMPLED, learned));
    Ok(all)
}

/// Key of a group of weights in the numbers, where dots part names.
fn key(group: &str) -> String {
    group.replace('.', "_")
}

fn of_traces(learned: &[(&str, LearnedPrecisions)]) -> Value {
    let first = learned.first().map_or(&[][..], |l| l.1.last());
    let mut out = Map::new();
    for (name, own) in learned {
        let last = own.last();
        let middle = &own.precisions[own.precisions.len() / 2];
        let gamma = own.effective_dimensions.last().map_or(f64::NAN, |g| g.iter().sum());
        let mut numbers = json!({"effective_dimension": gamma, "turns": own.precisions.len() - 1});
        if last.len() == 1 {
            numbers["precision"] = last[0].into();
            numbers["over_first"] = (last[0] / first[0]).into();
            let trace: Vec<f64> = own.precisions.iter().map(|p| p[0]).collect();
            numbers["arrival"] = arrival(&trace, last[0], 0.1).into();
        } else {
            let group = |g: usize| {
                // Whether it still grew in the second half.
                let of = json!({"precision": last[g], "growth": last[g] / middle[g], "over_first": last[g] / first[g]});
                (key(&own.groups[g]), of)
            };
            numbers["layers"] = (0..last.len()).map(group).collect::<Map<_, _>>().into();
            let apart = last.iter().zip(first).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
            numbers["largest_factor_from_first"] = apart.exp().into();
        }
        out.insert((*name).into(), numbers);
    }
    Value::Object(out)
}

fn table_of_traces(network: &str, kind: &PriorKind, learned: &[(&str, LearnedPrecisions)]) -> NumberTable {
    let (prefix, names) = (format!("networks.{network}.{}", prior_name(kind)), learned.iter().map(|l| l.0));
    if *kind == PriorKind::Scalar {
        return NumberTable::by_name(
            &format!("{network}: one precision"),
            "turns by",
            &prefix,
            names,
            &[
                ("precision", "last precision"),
                ("over_first", "over the first"),
                ("arrival", "turns to within a tenth of the last"),
                ("effective_dimension", "effective dimension"),
            ],
            "`sampled`: conjugate gradients for every turn on noise that stays.",
        );
    }
    let groups = learned.first().map_or(&[][..], |l| &l.1.groups);
    let rows = names.flat_map(|name| {
        let prefix = &prefix;
        groups.iter().map(move |group| {
            let cell = |what: &str| format!("{prefix}.{name}.layers.{}.{what}", key(group));
            (format!("{name}, {group}"), ["precision", "growth", "over_first"].map(cell).to_vec())
        })
    });
    NumberTable {
        title: format!("{network}: a precision for each layer"),
        head: ["turns by, layer", "last precision", "over half-way", "over the first"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
        caption: "Precisions of layers that the targets do not need keep growing.".into(),
    }
}

fn pictures_of_traces(network: &str, kind: &PriorKind, learned: &[(&str, LearnedPrecisions)]) -> Vec<Item> {
    let groups = learned.first().map_or(&[][..], |l| &l.1.groups);
    let picture = |g: usize| {
        let line =
            |(name, own): &(&str, LearnedPrecisions)| by_step(*name, own.precisions.iter().map(|p| p[g]));
        let title = match kind {
            PriorKind::Scalar => format!("{network}: precision by turn"),
            _ => format!("{network}: precision of {} by turn", groups[g]),
        };
        Curves::new(title, "turn", "precision", learned.iter().map(line).collect())
            .logarithmic(false, true)
            .into()
    };
    (0..groups.len()).map(picture).collect()
}

/// A bound along the precision.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Bound {
    name: String,
    values: Vec<f64>,
    optimum: f64,
}

/// All bounds of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Bounds {
    precisions: Vec<f64>,
    curves: Vec<Bound>,
}

/// Bounds for one mode: `-1/2 [a |w|² + log det(I + M / a)]` by every curvature, and `1/2 [d log a - a (|w|² + Tr H^-1)]` with the trace by samples; both without their constant.
fn of_bounds(
    settings: &Settings,
    bounds: &BoundSettings,
    untrained: &mut Untrained<'_>,
    context: &mut Context<'_>,
) -> Result<Bounds> {
    let depends = (untrained.depends(), settings.turns, bounds, settings.sampled);
    context.once("bounds", &depends, |context| {
        let classifier = untrained.trained(context)?;
        let turns = TurnSettings { steps: bounds.steps, tolerance: bounds.tolerance, ..settings.turns };
        let learned = classifier.learn(bounds.curvatures[0], &PriorKind::Scalar, &turns, context)?;
        let best = learned.last()[0];
        let squared_norm: f64 = learned.mode.iter().map(|w| w * w).sum();
        let step = 2.0 * bounds.span.ln() / (bounds.points - 1) as f64;
        let precisions: Vec<f64> =
            (0..bounds.points).map(|i| best / bounds.span * (step * i as f64).exp()).collect();
        let range = EvidenceOptions::default().precisions;
        let mut curves = Vec::new();
        let mut add = |name: &str, value: &dyn Fn(f64) -> Result<f64>| {
            let values = precisions.iter().map(|a| value(*a)).collect::<Result<_, _>>()?;
            curves.push(Bound { name: name.into(), values, optimum: maximum(range, 1e-6, value)? });
            Ok::<(), ExperimentError>(())
        };
        let prior = classifier.prior(&PriorKind::Scalar, best)?;
        for &curvature in &bounds.curvatures {
            let structure = classifier.curvature(curvature, context)?;
            add(curvature.name(), &|a| {
                let terms = structure.terms(&prior.with_precisions(&[a])?, 1.0).map_err(LinearError::from)?;
                Ok(-0.5 * (a * squared_norm + terms.log_determinant))
            })?;
        }
        let at_best = TurnSettings { initial_precision: best, steps: 1, ..turns };
        let (_, found) = by_samples(classifier, (&PriorKind::Scalar, &at_best), settings.sampled, context)?;
        let Some(turn) = found.first() else { return refused("no turn was taken by samples") };
        let d = classifier.selection.len();
        add(SAMPLED, &|a| Ok(sampled_bound(&[d], &[a], &[squared_norm], &turn.traces)))?;
        Ok(Bounds { precisions, curves })
    })
}

impl Bounds {
    fn numbers(&self) -> Value {
        let first = self.curves.first().map_or(f64::NAN, |c| c.optimum);
        let of = |c: &Bound| {
            (
                c.name.clone(),
                json!({"optimum": c.optimum, "over_first": c.optimum / first, "log_distance": (c.optimum / first).ln().abs()}),
            )
        };
        self.curves.iter().map(of).collect::<Map<_, _>>().into()
    }

    fn picture(&self, network: &str) -> Item {
        let (low, high) = (self.precisions[0], self.precisions[self.precisions.len() - 1]);
        let line = |c: &Bound| {
            let top = c.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Line {
                optimum: Some(c.optimum).filter(|a| *a >= low && *a <= high),
                ..Line::new(
                    c.name.clone(),
                    self.precisions.clone(),
                    c.values.iter().map(|v| v - top).collect(),
                )
            }
        };
        let lines: Vec<Line> = self.curves.iter().map(line).collect();
        // Others fall far below the first.
        let depth = lines.first().map_or(1.0, |l| l.y.iter().fold(1.0f64, |m, y| m.max(-y)));
        let title = format!("{network}: bounds of the evidence along the precision");
        Item::Curves(Curves {
            y_range: Some((-1.5 * depth, 0.05 * depth)),
            ..Curves::new(title, "prior precision a", "nats below the largest value", lines)
                .logarithmic(true, false)
                .captioned("Diamonds: optima. All for one mode, that of the optimum by the first curvature.")
        })
    }
}
