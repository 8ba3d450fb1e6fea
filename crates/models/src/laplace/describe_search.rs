//! Posteriors that were found by a search of their own, in words.

use super::Networks;
use crate::text::{number, table};
use posterior_gp::generalised::{GeneralisedObjective, Mode, Reduction, Risk};
use posterior_laplace::fit::LearnedReport;
use posterior_laplace::gwi::{GwiOptions, GwiReport, PriorRows};
use posterior_laplace::scores::HeldOutReport;
use posterior_laplace::{Approximation, ella::EllaReport, fixed_mean::FixedMeanReport};
use posterior_report::{Curves, Line, SummaryRow};

/// Turns of expectation maximisation that are listed.
const LISTED: usize = 20;

/// What the model is.
pub(super) fn method(model: &Networks<'_>, form: &str) -> Option<String> {
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
pub(super) fn rows(model: &Networks<'_>) -> Option<Vec<SummaryRow>> {
    let row = |label: &str, value: String| SummaryRow::new(label, value);
    Some(match model.header().summary.learned.as_ref()? {
        LearnedReport::Temperature(report) => vec![
            row("number chosen on", format!("{} unseen rows", report.examples)),
            row(
                "their NLL, network's units",
                format!("{} (without it {})", number(report.nll), number(report.plain_nll)),
            ),
        ],
        LearnedReport::MeanField(report) => {
            let mut rows = vec![row("epochs", report.history.len().to_string())];
            if let Some(last) = report.history.last() {
                rows.push(row("mean loss of the last epoch", number(last.nll)));
                rows.push(row("divergence from the prior, nats", number(last.divergence)));
            }
            rows
        }
        LearnedReport::Sampled { report, .. } => {
            let (_, precisions) = model.precisions();
            let shown: Vec<String> = precisions.iter().take(10).map(|p| number(*p)).collect();
            let variances = report.gradient_variances.map(|v| {
                let less = if v.difference > 0.0 { "less" } else { "more" };
                let text = format!("the low-variance objective's are {less} noisy than the standard one's");
                row("gradients at the samples", text)
            });
            let mut rows = vec![
                row("prior precision", shown.join(", ")),
                row(
                    "chosen by",
                    format!(
                        "{} turns of expectation maximisation, ended by: {}{}",
                        report.turns.len(),
                        report.turns_ended,
                        model.header().summary.held_out.as_ref().map(tried).unwrap_or_default()
                    ),
                ),
                row(
                    "samples solved in",
                    format!("{} steps, ended by: {}", report.solver_steps, report.solver_ended),
                ),
            ];
            if let Some(span) = report.span {
                rows.push(row(
                    "worked on",
                    format!("in function space: {span} directions that the examples move"),
                ));
            }
            if report.directions > 0 {
                let text =
                    format!("the diagonal and {} leading directions of the curvature", report.directions);
                rows.push(row("conditioned by", text));
            }
            if let Some(distance) = report.displacement {
                let distance = number(distance * model.header().data.target_scale().1);
                let text = format!("{distance} from the network on average, which counts as variance");
                rows.push(row("optimum of the linearised model", text));
            }
            rows.extend(variances);
            rows
        }
        LearnedReport::FixedMean(report) => process(report),
        LearnedReport::Gwi(report) => around(report),
        LearnedReport::Ella(report) => ella(report),
    })
}

/// What unseen examples added to the choice of the turns.
fn tried(report: &HeldOutReport) -> String {
    format!(
        "; then {} settings on {} held-out examples: NLL {} (plain network {}, setting of the turns {})",
        report.grid.len(),
        report.examples,
        number(report.best.nll),
        number(report.plain_nll),
        report.grid.first().map_or_else(String::new, |first| number(first.nll))
    )
}

/// The first of a kernel's hyperparameters.
fn kernel(all: &[(String, f64)]) -> String {
    let shown: Vec<String> = all.iter().take(12).map(|(name, v)| format!("{name} {}", number(*v))).collect();
    let more = all.len().saturating_sub(12);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn process(report: &FixedMeanReport) -> Vec<SummaryRow> {
    let row = |label: &str, value: String| SummaryRow::new(label, value);
    let mut rows = vec![row("prior variance", number(report.amplitude))];
    if !report.kernel.is_empty() {
        rows.push(row("kernel", kernel(&report.kernel)));
    }
    rows.push(match (&report.reason, report.best_step) {
        (None, _) => row("learned by", "the closed form, in one pass".into()),
        (Some(reason), None) => row("learned by", format!("{} steps, ended by: {reason}", report.steps)),
        (Some(reason), Some(best)) => row(
            "learned by",
            format!(
                "{} steps, ended by: {reason}; kept is step {best}, the best on the validation rows",
                report.steps
            ),
        ),
    });
    if report.companion {
        rows.push(row("companion", "a second process with a mean of its own took part".into()));
    }
    rows.push(row("divergence from the prior, nats", number(report.divergence)));
    rows
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

fn around(report: &GwiReport) -> Vec<SummaryRow> {
    let row = |label: &str, value: String| SummaryRow::new(label, value);
    let prior = &report.prior;
    let from = match prior.learned_from {
        PriorRows::Unseen if prior.tried.is_empty() => {
            format!("the evidence of residuals of {} unseen rows", prior.rows)
        }
        PriorRows::Unseen => {
            format!("{} prior variances, tried on {} unseen rows", prior.tried.len(), prior.rows)
        }
        PriorRows::Training => {
            format!("the evidence of residuals of {} rows that the network has learned from", prior.rows)
        }
        PriorRows::Nothing => "no rows: as its text says".into(),
    };
    let mut rows = vec![
        row("prior of what the network leaves", kernel(&prior.kernel)),
        row("its variance over the data", number(prior.variance)),
        row("prior learned from", from),
        row("inducing points", prior.inducing.to_string()),
    ];
    rows.push(match report.best_step {
        None => row(
            "learned by",
            format!("a search of {} steps, ended by: {}; nothing judged it", report.steps, report.reason),
        ),
        Some(best) => row(
            "learned by",
            format!(
                "a search of {} steps, ended by: {}; kept is step {best}, the best on {} unseen rows",
                report.steps, report.reason, report.judged
            ),
        ),
    });
    if let Some(tempered) = &report.tempering {
        let all: Vec<String> = tempered.factors.iter().take(10).map(|factor| number(*factor)).collect();
        let more = if tempered.factors.len() > 10 { ", ..." } else { "" };
        rows.push(row(
            "variances multiplied by",
            format!(
                "{}{more} (NLL of these rows {} instead of {})",
                all.join(", "),
                number(tempered.after),
                number(tempered.before)
            ),
        ));
    }
    rows
}

fn ella(report: &EllaReport) -> Vec<SummaryRow> {
    vec![
        SummaryRow::new("landmarks", report.landmarks.to_string()),
        SummaryRow::new("examples in the curvature", report.examples.to_string()),
    ]
}

/// What rounding and the search did that no one asked for.
pub(super) fn remarks(report: &LearnedReport) -> Vec<String> {
    let mut out = Vec::new();
    match report {
        LearnedReport::FixedMean(report) => {
            if report.jitter > 0.0 {
                out.push(format!(
                    "{:.1e} of its mean was added to the diagonal of the kernel at the inducing points",
                    report.jitter
                ));
            }
            if report.clipped > 0 {
                out.push(format!(
                    "{} variances that rounding had made negative during the fit were taken as 0",
                    report.clipped
                ));
            }
        }
        LearnedReport::Gwi(report) => {
            let added = report.prior.jitter.max(report.jitter);
            if added > 1e-9 {
                out.push(format!(
                    "{added:.1e} of its mean was added to the diagonal of a kernel at the inducing points"
                ));
            }
        }
        LearnedReport::Ella(report) => {
            out.extend(report.notes.iter().cloned());
            if report.dropped > 0 {
                out.push(format!(
                    "{} of the directions asked for are none that rounding can tell from zero",
                    report.dropped
                ));
            }
        }
        LearnedReport::MeanField(report) if report.restarts > 0 => {
            out.push(format!(
                "the fine-tuning began anew {} times with half the step sizes",
                report.restarts
            ));
        }
        _ => {}
    }
    out
}

/// Turns of expectation maximisation.
pub(super) fn tables(model: &Networks<'_>) -> Vec<String> {
    let Some(LearnedReport::Sampled { report, .. }) = &model.header().summary.learned else {
        return Vec::new();
    };
    let head = ["turn", "prior precision", "effective dimensions", "noise factor", "seconds"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (k, turn) in report.turns.iter().take(LISTED).enumerate() {
        let precision = turn.precisions.first().copied().unwrap_or(f64::NAN);
        let dimensions: f64 = turn.effective_dimensions.iter().sum();
        rows.push(vec![
            (k + 1).to_string(),
            number(precision),
            number(dimensions),
            number(turn.noise_variance),
            format!("{:.2}", turn.seconds),
        ]);
    }
    vec![table(&rows)]
}

/// Scores on validation rows along the search.
pub(super) fn curves(report: &LearnedReport) -> Option<Curves> {
    let scores = match report {
        LearnedReport::FixedMean(report) => &report.scores,
        LearnedReport::Gwi(report) => &report.scores,
        LearnedReport::Ella(report) => &report.scores,
        _ => return None,
    };
    if scores.len() < 2 {
        return None;
    }
    let line = Line {
        name: "validation NLL".into(),
        x: scores.iter().map(|s| s.0 as f64).collect(),
        y: scores.iter().map(|s| s.1).collect(),
        ..Line::default()
    };
    Some(Curves {
        title: "Score on validation rows along the search".into(),
        x: "step".into(),
        y: "NLL (nats)".into(),
        lines: vec![line],
        ..Curves::default()
    })
}
