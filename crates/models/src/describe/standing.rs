//! How good a model is beside a baseline, and what is said of it wherever it is described in short.

use super::likelihood::{checked, tempered};
use crate::calibration::NetworkRecalibration;
use crate::facts::{count, ended, figures};
use crate::model::Networks;
use crate::text::number;
use crate::{
    Fact, Facts, FitSummary, GeneralisedSummary, LikelihoodOutput, Model, Output, Process, Target, Tempering,
};
use posterior_laplace::UnseenScores;
use posterior_notes::fixes::{EVALUATE, STEPS, TEST_FRACTION, VALIDATION_DATA};
use posterior_optim::Reason;

/// NLL of standardised numbers under a standard normal distribution.
const STANDARD_NLL: f64 = 1.418_938_533_204_672_7;

/// What is said of a result that is no better than that of its baseline.
pub(crate) const NO_BETTER: &str = "no better than the baseline";
/// What is said of a search or a solver that stopped on its way.
const NOT_CONVERGED: &str = "not converged";

/// What every description of a model has.
#[derive(Default)]
pub(crate) struct Standing {
    /// The score on rows that the fit did not learn from, and that of a baseline.
    pub scores: Facts,
    /// That it is no better than the baseline, or has not converged.
    pub alerts: Facts,
    /// What was read otherwise than it is written, in sentences.
    pub data: Vec<String>,
}

impl Standing {
    pub(crate) fn of(model: &Model) -> Self {
        match (model.process(), model.networks()) {
            (Some(own), _) => Self::of_process(&own),
            (None, Some(own)) if own.is_ensemble() => Self::of_ensemble(&own),
            (None, Some(own)) => Self::of_network(&own),
            (None, None) => Self::default(),
        }
    }

    fn of_process(model: &Process<'_>) -> Self {
        let fit = &model.record.fit;
        let mut own = match (model.output, fit.gaussian(), fit.likelihood()) {
            (Output::Gaussian(_), Some(fit), _) => Self::of_numbers(fit),
            (Output::Likelihood(output), _, Some(fit)) => Self::of_labels(output, fit),
            _ => Self::default(),
        };
        if own.scores.headlines().text().is_empty() {
            let none = format!("none: every row was learned from ({TEST_FRACTION} 0.2 leaves rows out)");
            own.scores = own.scores.headline("score", none);
        }
        own
    }

    fn of_numbers(fit: &FitSummary) -> Self {
        let check = fit.check.as_ref();
        let baseline =
            "always the training mean: RMSE about 1, NLL about 1.4189 (of the standardised target)";
        let mut scores = Facts::new();
        let mut alerts = Facts::new();
        if let Some(check) = check {
            scores = scores.with(check.facts("").into_iter().next().map(Fact::headline));
            scores = scores.headline("baseline", baseline);
            let [rmse, nll] = [check.scores.rmse, check.scores.nll];
            let worse = Facts::new()
                .maybe("", (rmse >= 1.0).then(|| format!("RMSE {rmse:.4} instead of 1")))
                .maybe("", (nll >= STANDARD_NLL).then(|| format!("NLL {nll:.4} instead of 1.4189")));
            alerts = alerts.with(alert(NO_BETTER, &worse));
            if check.converged == Some(false) {
                alerts = alerts.with(check.facts("").into_iter().filter_map(|fact| {
                    (fact.label == "converged")
                        .then(|| Fact { label: NOT_CONVERGED.into(), ..fact }.headline())
                }));
            }
        }
        let searched = fit.scalable.is_none() && fit.hyperparameter_source.is_none();
        let open = searched.then(|| stopped(fit.reason)).flatten();
        Self { scores, alerts: alerts.with(open), data: fit.data.sentences() }
    }

    fn of_labels(output: &LikelihoodOutput, fit: &GeneralisedSummary) -> Self {
        let mut scores = Facts::new();
        let mut alerts = Facts::new();
        if let Some(check) = &fit.check {
            let events = matches!(output.target, Target::Events { .. });
            let after = tempered(fit);
            let nll = after.map_or(check.scores.nll, |own| own.nll_after);
            let least = if events { 0.0 } else { check.baseline_nll };
            let baseline: String = match events {
                true => "0 nats, by an even intensity".into(),
                false => format!("NLL {least:.4}, without inputs"),
            };
            let own = checked(check, &output.target, after).headline();
            scores = scores.with([own]).headline("baseline", baseline);
            let worse = (nll >= least).then(|| format!("NLL {nll:.4} instead of {least:.4}"));
            alerts = alerts.with(alert(NO_BETTER, &Facts::new().maybe("", worse)));
        }
        let searched = fit.bound.is_none() && fit.features.is_none() && fit.variation.is_none();
        let open = searched.then(|| stopped(fit.reason)).flatten();
        Self { scores, alerts: alerts.with(open), data: fit.data.sentences() }
    }

    fn of_network(model: &Networks<'_>) -> Self {
        let header = model.header();
        let unseen = model.unseen();
        let held_out = header.summary.held_out.as_ref().filter(|_| !header.options.seen_by_network);
        let pair = unseen.map(|own| (own.nll, own.plain_nll, own.examples));
        let pair = pair.or_else(|| {
            let shift = model.unit_shift();
            held_out.map(|own| (own.best.nll + shift, own.plain_nll + shift, own.examples))
        });
        let scores = match pair {
            Some((nll, plain, rows)) => Facts::new()
                .headline("validation rows", format!("{rows}: NLL {}", number(nll)))
                .headline("baseline", format!("NLL {}, by the network alone", number(plain)))
                .with(recalibrated(model)),
            None => unscored(),
        };
        // Of chosen precisions the network alone is one choice, to a hair.
        let sure = |own: &UnseenScores| own.nll - own.plain_nll > (2.0 * own.difference_error).max(1e-3);
        let worse = unseen
            .filter(sure)
            .map(|own| format!("NLL {} instead of {}", number(own.nll), number(own.plain_nll)));
        let open = header.summary.maximised.as_ref().is_some_and(|own| !own.converged);
        let open = open.then(|| {
            Fact::new(NOT_CONVERGED, "the search for the prior precision ended at its limit of steps")
                .headline()
        });
        let alerts = Facts::new().with(alert(NO_BETTER, &Facts::new().maybe("", worse))).with(open);
        Self { scores, alerts, data: header.data.notes.clone() }
    }

    fn of_ensemble(model: &Networks<'_>) -> Self {
        let each: Vec<Self> = model.members().iter().map(Self::of_network).collect();
        let unseen: Vec<UnseenScores> = model.members().iter().filter_map(Networks::unseen).collect();
        let of = |score: fn(&UnseenScores) -> f64| {
            let all: Vec<f64> = unseen.iter().map(score).collect();
            Fact::new("NLL of each network", figures(&all, 8))
        };
        let scores = match unseen.first() {
            None => unscored(),
            Some(first) => {
                let (own, baseline) = match model.is_plain() {
                    true => (of(|own| own.plain_nll), Facts::new().and("these networks, each alone")),
                    false => (
                        of(|own| own.nll),
                        Facts::new().and(of(|own| own.plain_nll)).and("by the networks alone"),
                    ),
                };
                let rows = Facts::apart(": ").and(count(first.examples, "")).and(own);
                let scores = Facts::new().headline("validation rows", rows).headline("baseline", baseline);
                scores.with(recalibrated(model))
            }
        };
        // Error bars that nobody asked for harm no one.
        let named = model.names().iter().zip(&each).filter(|_| !model.is_plain());
        let alerts = grouped(named.map(|(name, own)| (name.clone(), &own.alerts)));
        let mut data: Vec<String> = each.into_iter().flat_map(|own| own.data).collect();
        data.dedup();
        Self { scores, alerts, data }
    }
}

/// The score of class probabilities after their recalibration, which may be by more rows than compared methods.
fn recalibrated(model: &Networks<'_>) -> Option<Fact> {
    let NetworkRecalibration::Classes(own) = model.recalibration()? else { return None };
    let Tempering { nll_before, nll_after, applied, .. } = own.tempering;
    let scores = format!("{}: NLL {} ({} before)", own.rows, number(nll_after), number(nll_before));
    applied.then(|| Fact::new("validation rows, after recalibration", scores).headline())
}

/// The alerts of several as one for each label, with those that it is about.
pub(crate) fn grouped<'a>(each: impl Iterator<Item = (String, &'a Facts)>) -> Facts {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (name, alerts) in each {
        for fact in alerts.clone() {
            let said = format!("{name} ({})", fact.said());
            match found.iter_mut().find(|(label, _)| *label == fact.label) {
                Some((_, all)) => all.push(said),
                None => found.push((fact.label, vec![said])),
            }
        }
    }
    Facts::new().with(found.into_iter().map(|(label, all)| Fact::new(label, all.join(", ")).headline()))
}

/// Nothing is known of networks on rows that they were not trained on.
fn unscored() -> Facts {
    let none = format!(
        "none: no rows that the network was not trained on ({VALIDATION_DATA} FILE, or {EVALUATE:#})"
    );
    Facts::new().headline("score", none)
}

/// Something that is not left out, where there is something.
fn alert(label: &str, said: &Facts) -> Option<Fact> {
    let said = said.to_string();
    (!said.is_empty()).then(|| Fact::new(label, said).headline())
}

/// That a search ended on its way.
fn stopped(reason: Reason) -> Option<Fact> {
    let open = matches!(reason, Reason::Steps | Reason::Time | Reason::Diverged);
    let more = if reason == Reason::Steps { format!(" ({STEPS}=N allows more)") } else { String::new() };
    open.then(|| Fact::new(NOT_CONVERGED, format!("the search ended by {}{more}", ended(reason))).headline())
}
