//! Posteriors that were found by a search of their own, in words.

use crate::facts::{count, figure, figures, nonzero, power};
use crate::model::Networks;
use crate::text::{number, table_under};
use crate::{Fact, Facts};
use posterior_gp::generalised::{GeneralisedObjective, Mode, Reduction, Risk};
use posterior_laplace::fit::LearnedReport;
use posterior_laplace::gwi::{GwiOptions, GwiReport, PriorRows};
use posterior_laplace::sampled::SampledReport;
use posterior_laplace::scores::HeldOutReport;
use posterior_laplace::{Approximation, fixed_mean::FixedMeanReport};
use posterior_report::{Curves, Line};
use std::fmt::Display;

/// Turns of expectation maximisation that are listed.
const LISTED: usize = 20;

/// What the model is.
pub(crate) fn method(model: &Networks<'_>, form: &str) -> Option<String> {
    let header = model.header();
    Some(match &header.options.approximation {
        Approximation::FixedMean(own) => {
            let what = if form == "valla" {
                "variational linearised Laplace"
            } else {
                "fixed-mean Gaussian process"
            };
            format!(
                "{what} (a sparse process with the network as its mean), {} inducing points",
                own.inducing(header.data.examples, model.likelihood().outputs())
            )
        }
        Approximation::Gwi(own) => format!("a covariance around the network by {}", objective(own)),
        Approximation::Sampled(own) => {
            format!("linearised Laplace by {} samples of {} weights", own.samples, model.weights())
        }
        Approximation::Ella(own) => format!(
            "linearised Laplace along {} directions of {} weights (ELLA)",
            own.features,
            model.weights()
        ),
        Approximation::MeanField(own) => format!(
            "mean-field fine-tuning of {} weights, predictions by {} draws of them",
            model.weights(),
            own.samples
        ),
        Approximation::Temperature => {
            "the network with one number chosen on unseen rows (temperature scaling)".into()
        }
        _ => return None,
    })
}

/// What was found, after the likelihood; None where a curvature and its prior say it.
pub(crate) fn facts(model: &Networks<'_>) -> Option<Facts> {
    Some(match model.header().summary.learned.as_ref()? {
        LearnedReport::Temperature(report) => {
            Facts::new().fact("number chosen on", count(report.examples, "unseen rows")).fact(
                "their NLL, network's units",
                figure(report.nll, format!("(without it {})", number(report.plain_nll))),
            )
        }
        LearnedReport::MeanField(report) => {
            let last = report.history.last();
            Facts::new()
                .fact("epochs", count(report.history.len(), ""))
                .maybe("mean loss of the last epoch", last.map(|last| figure(last.nll, "")))
                .with(last.map(|last| divergence(last.divergence)))
        }
        LearnedReport::Sampled { report, .. } => sampled(model, report),
        LearnedReport::FixedMean(report) => process(report),
        LearnedReport::Gwi(report) => around(report),
        LearnedReport::Ella(report) => Facts::new()
            .fact("landmarks", count(report.landmarks, ""))
            .fact("examples in the curvature", count(report.examples, "")),
    })
}

fn divergence(nats: f64) -> Fact {
    Fact::new("divergence from the prior, nats", figure(nats, ""))
}

/// Steps of something, and why they ended.
fn steps(steps: usize, unit: &str, ended: impl Display) -> Facts {
    Facts::new().and(count(steps, unit)).fact("ended by:", ended.to_string())
}

fn sampled(model: &Networks<'_>, report: &SampledReport) -> Facts {
    let (_, precisions) = model.precisions();
    let header = model.header();
    let turns = steps(report.turns.len(), "iterations of expectation maximisation", report.turns_ended);
    let chosen = Facts::apart("; ").and(turns).maybe("", header.summary.held_out.as_ref().map(tried));
    let span = report.span.map(|span| format!("in function space: {span} directions that the examples move"));
    let leading = (report.directions > 0)
        .then(|| format!("the diagonal and {} leading directions of the curvature", report.directions));
    let far = "from the network on average, which counts as variance";
    let distance = report.displacement.map(|own| figure(own * header.data.target_scale().1, far));
    let gradients = report.gradient_variances.map(|own| {
        let less = if own.difference > 0.0 { "less" } else { "more" };
        format!("the low-variance objective's are {less} noisy than the standard one's")
    });
    Facts::new()
        .fact("prior precision", figures(precisions, 10))
        .fact("chosen by", chosen)
        .fact("samples solved in", steps(report.solver_steps, "steps", report.solver_ended))
        .maybe("worked on", span)
        .maybe("conditioned by", leading)
        .maybe("optimum of the linearised model", distance)
        .maybe("gradients at the samples", gradients)
}

/// What unseen examples added to the choice of the turns.
fn tried(report: &HeldOutReport) -> String {
    format!(
        "then {} settings on {} held-out examples: NLL {} (plain network {}, setting of the EM iterations {})",
        report.grid.len(),
        report.examples,
        number(report.best.nll),
        number(report.plain_nll),
        report.grid.first().map_or_else(String::new, |first| number(first.nll))
    )
}

/// The first of a kernel's hyperparameters.
fn kernel(all: &[(String, f64)]) -> Facts {
    let shown = all.iter().take(12).map(|(name, value)| Fact::new(name, figure(*value, "")));
    Facts::new().with(shown).maybe("and", nonzero(all.len().saturating_sub(12), "more"))
}

fn process(report: &FixedMeanReport) -> Facts {
    let best = report.best_step.map(|best| format!("{best}, the best on the validation rows"));
    let learned = match report.reason {
        None => Facts::new().and("the closed form, in one pass"),
        Some(reason) => {
            let steps = steps(report.steps, "steps", reason);
            Facts::apart("; ").and(steps).maybe("kept is step", best)
        }
    };
    Facts::new()
        .fact("prior variance", figure(report.amplitude, ""))
        .maybe("kernel", (!report.kernel.is_empty()).then(|| kernel(&report.kernel)))
        .fact("learned by", learned)
        .maybe("companion", report.companion.then_some("a second process with a mean of its own took part"))
        .with([divergence(report.divergence)])
}

/// What was minimised, and in which family.
fn objective(own: &GwiOptions) -> String {
    let GeneralisedObjective { risk, reduction, regulariser, weight, .. } = &own.objective;
    let name = regulariser.to_string();
    let inference = match name.starts_with("wasserstein") {
        true => "Gaussian Wasserstein inference",
        false => "generalised variational inference",
    };
    let risk = match risk {
        Risk::Predictive => "predictive",
        Risk::Expected => "expected",
    };
    let rows = match reduction {
        Reduction::Mean => "averaged",
        Reduction::Sum => "summed",
    };
    let family = own.family.description();
    let mode = match own.mode {
        Mode::Prior => "the prior",
        Mode::Posterior => "the prior's posterior",
    };
    let times = if *weight == 1.0 { String::new() } else { format!("{} times ", number(*weight)) };
    format!("{inference} ({risk} risk, {rows}; {times}{name} from {mode}; {family})")
}

fn around(report: &GwiReport) -> Facts {
    let GwiReport { prior, judged, .. } = report;
    let rows = prior.rows;
    let from = match prior.learned_from {
        PriorRows::Unseen if prior.tried.is_empty() => {
            format!("the evidence of residuals of {rows} unseen rows")
        }
        PriorRows::Unseen => format!("{} prior variances, tried on {rows} unseen rows", prior.tried.len()),
        PriorRows::Training => {
            format!("the evidence of residuals of {rows} rows that the network has learned from")
        }
        PriorRows::Nothing => "no rows: as its text says".into(),
    };
    let kept = match report.best_step {
        None => "nothing judged it".into(),
        Some(best) => format!("kept is step {best}, the best on {judged} unseen rows"),
    };
    let searched = steps(report.steps, "steps", report.reason);
    let tempering = report.tempering.as_ref().map(|own| {
        let more = (own.factors.len() > 10).then_some("...");
        let (after, before) = (number(own.after), number(own.before));
        let nll = format!("(NLL of these rows {after} instead of {before})");
        Fact { unit: nll, ..Fact::from(figures(&own.factors, 10).maybe("", more)) }
    });
    Facts::new()
        .fact("prior of what the network leaves", kernel(&prior.kernel))
        .fact("its variance over the data", figure(prior.variance, ""))
        .fact("prior learned from", from)
        .fact("inducing points", count(prior.inducing, ""))
        .fact("learned by", Facts::apart("; ").fact("a search of", searched).and(kept))
        .maybe("variances multiplied by", tempering)
}

/// What rounding and the search did that no one asked for.
pub(crate) fn remarks(report: &LearnedReport) -> Facts {
    let added = |jitter: f64, least: f64, what: &str| (jitter > least).then(|| power(jitter, 1, what));
    match report {
        LearnedReport::FixedMean(own) => {
            let kernel = "of its mean was added to the diagonal of the kernel at the inducing points";
            let clipped = "variances that rounding had made negative during the fit were taken as 0";
            Facts::new().maybe("", added(own.jitter, 0.0, kernel)).maybe("", nonzero(own.clipped, clipped))
        }
        LearnedReport::Gwi(own) => {
            let kernel = "of its mean was added to the diagonal of a kernel at the inducing points";
            Facts::new().maybe("", added(own.prior.jitter.max(own.jitter), 1e-9, kernel))
        }
        LearnedReport::Ella(own) => {
            let dropped = "of the directions asked for are none that rounding can tell from zero";
            let notes = own.notes.iter().map(|note| note.as_str().into());
            Facts::new().with(notes).maybe("", nonzero(own.dropped, dropped))
        }
        LearnedReport::MeanField(own) => {
            let restarts = nonzero(own.restarts, "times with half the step sizes");
            Facts::new().maybe("the fine-tuning began anew", restarts)
        }
        _ => Facts::new(),
    }
}

/// Turns of expectation maximisation.
pub(crate) fn tables(model: &Networks<'_>) -> Vec<String> {
    let Some(LearnedReport::Sampled { report, .. }) = &model.header().summary.learned else {
        return Vec::new();
    };
    let head = ["turn", "prior precision", "effective dimensions", "noise factor", "seconds"];
    let rows = report.turns.iter().take(LISTED).enumerate().map(|(k, turn)| {
        let precision = turn.precisions.first().copied().unwrap_or(f64::NAN);
        let dimensions: f64 = turn.effective_dimensions.iter().sum();
        let [precision, dimensions, noise] = [precision, dimensions, turn.noise_variance].map(number);
        [(k + 1).to_string(), precision, dimensions, noise, format!("{:.2}", turn.seconds)]
    });
    vec![table_under(head, rows)]
}

/// Scores on validation rows along the search.
pub(crate) fn curves(report: &LearnedReport) -> Option<Curves> {
    let scores = match report {
        LearnedReport::FixedMean(report) => &report.scores,
        LearnedReport::Gwi(report) => &report.scores,
        LearnedReport::Ella(report) => &report.scores,
        _ => return None,
    };
    if scores.len() < 2 {
        return None;
    }
    let (x, y) = scores.iter().map(|(step, nll)| (*step as f64, *nll)).unzip();
    let line = Line::new("validation NLL", x, y);
    Some(Curves::new("Score on validation rows along the search", "step", "NLL (nats)", vec![line]))
}
