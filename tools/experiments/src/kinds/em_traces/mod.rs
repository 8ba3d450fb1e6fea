//! Expectation maximisation on a network that came with its weights, by number of samples: precision, effective dimension and norms by turn.
//!
//! Serves figure 6.4 of the thesis.

use super::along::arrival;
use crate::kinds::prelude::*;
use crate::opened::{ImageSettings, Opened};
use posterior_laplace::sampled::{self, EmStep, ModeSolver, Solver};
use posterior_laplace::{Data, ModeOptions, Problem, Run, SampledOptions, Stage};
use posterior_likelihoods::Integration;
use posterior_linear::sampled::{ConjugateOptions, SampledModel};
use posterior_tangent::{Observed, Tangent};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    images: ImageSettings,
    turns: EmSettings,
    /// Numbers of samples, ascending: each has turns of its own.
    samples: Vec<usize>,
    /// Turns with the smallest number on noise of another seed, so often in all.
    repeats: usize,
}

/// The table `[turns]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct EmSettings {
    /// The precision of the first turn.
    initial_precision: f64,
    /// Turns.
    steps: usize,
    /// Relative residual to which samples are solved.
    tolerance: f64,
    /// The optimum is found when a Newton step promises less, nats.
    mode_tolerance: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        let turns = &self.turns;
        if self.samples.is_empty() || self.samples[0] == 0 || !self.samples.is_sorted_by(|a, b| a < b) {
            return refused("`samples` are numbers of samples, ascending, at least one");
        }
        if self.repeats == 0 || turns.steps == 0 || self.images.examples == 0 || self.images.classes < 2 {
            return refused("`repeats`, `steps` and `examples` are at least 1, `classes` at least 2");
        }
        if !positive(turns.initial_precision) || !positive(turns.mode_tolerance) {
            return refused("[turns]: `initial_precision` and `mode_tolerance` are positive");
        }
        if !(positive(turns.tolerance) && turns.tolerance < 1.0) {
            return refused("[turns]: `tolerance` lies between 0 and 1");
        }
        Ok(())
    }
}

/// Memory that a fit may take.
const MEMORY: u64 = 8 << 30;

/// The turns with one number of samples on one seed's noise.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Trace {
    turns: Vec<EmStep>,
    /// The precision after the last turn.
    precision: f64,
    notes: Vec<String>,
}

impl Trace {
    /// By turn, that before the first included.
    fn precisions(&self) -> Vec<f64> {
        self.turns.iter().map(|t| t.precisions[0]).chain([self.precision]).collect()
    }

    fn last(&self, of: impl Fn(&EmStep) -> f64) -> f64 {
        self.turns.last().map_or(f64::NAN, of)
    }
}

fn dimension(turn: &EmStep) -> f64 {
    turn.effective_dimensions.iter().sum()
}

/// Length of the optimum.
fn mode_norm(turn: &EmStep) -> f64 {
    turn.squared_norms.iter().sum::<f64>().sqrt()
}

/// Root mean square length of the samples.
fn sample_norm(turn: &EmStep) -> f64 {
    turn.traces.iter().sum::<f64>().sqrt()
}

impl Opened {
    fn trace(
        &self,
        turns: EmSettings,
        (samples, seed): (usize, u64),
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Trace> {
        let options = SampledOptions {
            samples_em: samples,
            samples: 1,
            em_steps: turns.steps,
            solver: Solver::ConjugateGradients(ConjugateOptions { tolerance: turns.tolerance, steps: 5000 }),
            mode: ModeSolver::Newton(ModeOptions {
                tolerance: turns.mode_tolerance,
                inner_steps: 1000,
                ..ModeOptions::default()
            }),
            g_prior: false,
            initial_precision: turns.initial_precision,
            // All turns: traces of one length.
            tolerance: 0.0,
            ..SampledOptions::default()
        };
        let data = Data::new(&self.network, self.examples.as_ref(), &self.likelihood);
        let problem = Problem { data, selection: &self.selection, seed, memory: MEMORY };
        let tell = |s: Stage, done, total| context.tell(&format!("{stage}: {}", s.describe()), done, total);
        let found = sampled::fit(&problem, &options, Integration::PlugIn, &mut Run::new(tell))?;
        // That they were still moving is what was asked for.
        let notes = found.notes.into_iter().filter(|n| !n.starts_with("precisions were still moving"));
        Ok(Trace { turns: found.report.turns, precision: found.precisions[0], notes: notes.collect() })
    }

    /// `Tr M`.
    fn curvature_trace(&self, context: &mut Context<'_>) -> Result<f64> {
        let tangent = Tangent::new(&self.network, &self.selection);
        let observed = Observed { examples: self.examples.as_ref(), likelihood: &self.likelihood };
        let model = SampledModel::new(&tangent, &observed, &self.likelihood);
        let mut tell = |done, all| context.tell("trace of the curvature", done, all);
        let (diagonal, _) = model.curvature_diagonal(1, 0, &mut tell)?;
        Ok(diagonal.iter().sum())
    }
}

/// Follows the precision with every number of samples.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (mut opened, images) = (None, &settings.images);
    let depends = (images, settings.turns);
    let trace = context.once("trace of the curvature", images, |context| {
        made(&mut opened, || images.open(context.folder))?.curvature_trace(context)
    })?;
    let mut all = Vec::new();
    for (i, &samples) in settings.samples.iter().enumerate() {
        let mut own = Vec::new();
        for repeat in 0..(if i == 0 { settings.repeats } else { 1 }) {
            // The same noise for all numbers: the first sample is one of each.
            let seed = Streams::new(context.seed).child("experiment/noise", repeat as u64).seed();
            let stage = format!("{}, noise {repeat}", name(samples));
            let found: Trace = context.once(&stage, &(depends, samples), |context| {
                made(&mut opened, || images.open(context.folder))?.trace(
                    settings.turns,
                    (samples, seed),
                    &stage,
                    context,
                )
            })?;
            context.notes.extend(found.notes.iter().map(|n| Note::information(format!("{stage}: {n}"))));
            own.push(found);
        }
        all.push((samples, own));
    }
    Ok(measured(settings, &all, trace))
}

/// As in results.
fn name(samples: usize) -> String {
    if samples == 1 { "1 sample".into() } else { format!("{samples} samples") }
}

/// Traces by number of samples; several of the smallest.
type Traces = [(usize, Vec<Trace>)];

fn numbers(all: &Traces, curvature_trace: f64) -> Value {
    let most = all.last().map_or(f64::NAN, |(_, traces)| traces[0].precision);
    let of = |trace: &Trace| {
        let published = 2.0 * trace.last(|t| t.precisions[0]) * trace.last(dimension);
        json!({
            "precision": trace.precision,
            "over_most": trace.precision / most,
            "arrival": arrival(&trace.precisions(), trace.precision, 0.1),
            "effective_dimension": trace.last(dimension),
            "mode_norm": trace.last(mode_norm),
            "sample_norm": trace.last(sample_norm),
            "published_criterion": published,
            "criterion_over_trace": published / curvature_trace,
            "seconds": trace.turns.iter().map(|t| t.seconds).sum::<f64>(),
        })
    };
    let counts: Map<String, Value> = all.iter().map(|(k, traces)| (name(*k), of(&traces[0]))).collect();
    // For claims about any numbers of samples.
    let ends = [all.first(), all.last()].map(|a| a.map_or(Value::Null, |(_, traces)| of(&traces[0])));
    let (mut least, mut largest, mut latest) = (f64::INFINITY, 0.0f64, Some(0));
    for trace in all.first().map_or(&[][..], |a| &a.1) {
        (least, largest) = (least.min(trace.precision), largest.max(trace.precision));
        latest = latest.zip(arrival(&trace.precisions(), trace.precision, 0.1)).map(|(a, b)| a.max(b));
    }
    json!({
        "samples": counts,
        "fewest": ends[0],
        "most": ends[1],
        "repeats": {"least_over_most": least / most, "largest_over_most": largest / most, "latest_arrival": latest},
        "curvature_trace": curvature_trace,
    })
}

fn measured(settings: &Settings, all: &Traces, curvature_trace: f64) -> Measured {
    let table = NumberTable::by_name(
        "Turns by number of samples",
        "samples of each turn",
        "samples",
        all.iter().map(|a| name(a.0)).collect::<Vec<_>>().iter().map(String::as_str),
        &[
            ("precision", "last precision"),
            ("over_most", "over that of the most samples"),
            ("arrival", "turns to within a tenth of the last"),
            ("effective_dimension", "effective dimension γ"),
            ("mode_norm", "length of the optimum"),
            ("sample_norm", "length of the samples"),
            ("criterion_over_trace", "2 a γ over Tr M"),
        ],
        "Noise stays the same from turn to turn; each number of samples has the smaller ones' among its own.",
    );
    let repeats = NumberTable::of_quantities(
        &format!("Turns with {} on several seeds' noise, and the curvature", name(settings.samples[0])),
        ["quantity", "value"],
        &[
            ("least last precision, over that of the most samples", "repeats.least_over_most"),
            ("largest", "repeats.largest_over_most"),
            ("most turns to within a tenth of the last", "repeats.latest_arrival"),
            ("trace of the curvature, Tr M", "curvature_trace"),
        ],
    );
    let picture = |title: &str, y: &str, of: &dyn Fn(&Trace) -> Vec<f64>| -> Item {
        let line = |(k, traces): &(usize, Vec<Trace>)| by_step(name(*k), of(&traces[0]));
        Curves::new(title.to_string(), "turn".to_string(), y.to_string(), all.iter().map(line).collect())
            .logarithmic(false, true)
            .into()
    };
    let by_turn = |of: fn(&EmStep) -> f64| move |t: &Trace| t.turns.iter().map(of).collect::<Vec<f64>>();
    let series = |(k, traces): &(usize, Vec<Trace>)| {
        let one = |t: &Trace| json!({"precisions": t.precisions(), "effective_dimensions": by_turn(dimension)(t), "mode_norms": by_turn(mode_norm)(t), "sample_norms": by_turn(sample_norm)(t)});
        (name(*k), traces.iter().map(one).collect::<Value>())
    };
    let images = &settings.images;
    let file = images.network.file_name().map_or_else(String::new, |f| f.to_string_lossy().into_owned());
    Measured {
        numbers: numbers(all, curvature_trace),
        series: all.iter().map(series).collect::<Map<_, _>>().into(),
        tables: vec![table, repeats],
        figures: vec![
            picture("Precision by turn", "precision", &Trace::precisions),
            picture("Effective dimension by turn", "effective dimension", &by_turn(dimension)),
            picture("Length of the optimum by turn", "length of the weights", &by_turn(mode_norm)),
            picture("Length of the samples by turn", "length of the weights", &by_turn(sample_norm)),
        ],
        facts: vec![SummaryRow::new(file, format!("the first {} of its training images", images.examples))],
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_optim::Reason;

    /// Turns at these precisions, the last of which leads to the last; everything else is as if it were of four weights.
    fn trace(precisions: &[f64]) -> Trace {
        let (last, before) = precisions.split_last().unwrap();
        let turn = |a: &f64| EmStep {
            precisions: vec![*a],
            noise_variance: 1.0,
            effective_dimensions: vec![3.0],
            by_prediction: Some(3.0),
            by_weight: 3.0,
            squared_norms: vec![4.0],
            traces: vec![9.0],
            bound: 0.0,
            convergence: None,
            log_likelihood: 0.0,
            mode_steps: 1,
            mode_converged: Some(true),
            solver_steps: 1,
            solver_ended: Reason::Tolerance,
            seconds: 1.0,
        };
        Trace { turns: before.iter().map(turn).collect(), precision: *last, notes: Vec::new() }
    }

    #[test]
    fn traces_are_summed_up() {
        let few = vec![trace(&[100.0, 12.0, 10.0, 10.0]), trace(&[100.0, 50.0, 9.0, 8.0])];
        let found = numbers(&[(1, few), (4, vec![trace(&[100.0, 30.0, 10.5])])], 120.0);
        let of = |path: [&str; 2]| found[path[0]][path[1]].as_f64().unwrap();
        assert_eq!((of(["fewest", "precision"]), of(["most", "precision"])), (10.0, 10.5));
        // The second turn leads to within a tenth of the last.
        assert_eq!(of(["fewest", "arrival"]), 2.0);
        assert_eq!((of(["fewest", "mode_norm"]), of(["fewest", "sample_norm"])), (2.0, 3.0));
        assert!((of(["repeats", "least_over_most"]) - 8.0 / 10.5).abs() < 1e-12);
        assert!((of(["repeats", "largest_over_most"]) - 10.0 / 10.5).abs() < 1e-12);
        // The other noise needs three.
        assert_eq!(of(["repeats", "latest_arrival"]), 3.0);
        // 2 a gamma = 2 x 30 x 3 of the last turn.
        assert!((of(["most", "criterion_over_trace"]) - 180.0 / 120.0).abs() < 1e-12);
        assert_eq!(found["samples"]["4 samples"], found["most"]);
    }
}
