//! `posterior train --laplace`: from flags to options, and what was learned as text.

use crate::args::{FisherArg, OnlineArgs, OnlineCurvatureArg, OnlinePriorArg, OnlineRuleArg};
use crate::output::{number, table_under};
use posterior::linearised::online::HyperparameterRule;
use posterior::linearised::{Approximation, OnlineOptions, OnlineReport, PriorKind, Weights};

pub(super) fn options(a: &OnlineArgs, memory: u64, seed: u64) -> Option<OnlineOptions> {
    if !a.laplace {
        return None;
    }
    let estimate = a.laplace_fisher.unwrap_or(FisherArg::Exact).estimate(seed);
    let (weights, approximation) = match a.laplace_curvature {
        OnlineCurvatureArg::Kronecker => (Weights::All, Approximation::Kronecker(estimate)),
        OnlineCurvatureArg::Diagonal => (Weights::All, Approximation::Diagonal),
        OnlineCurvatureArg::Full => (Weights::All, Approximation::Full),
        OnlineCurvatureArg::LastLayer => (Weights::LastLayer, Approximation::Full),
    };
    Some(OnlineOptions {
        weights,
        approximation,
        prior: match a.laplace_prior {
            OnlinePriorArg::Scalar => PriorKind::Scalar,
            OnlinePriorArg::Layerwise => PriorKind::Layerwise,
            OnlinePriorArg::Parameter => PriorKind::Parameter,
        },
        burn_in: a.laplace_burn_in,
        every: a.laplace_every,
        steps: a.laplace_steps,
        rule: match a.laplace_rule {
            OnlineRuleArg::Adam => HyperparameterRule::Adam { learning_rate: 0.1 },
            OnlineRuleArg::Mackay => HyperparameterRule::Mackay,
        },
        first_order: a.laplace_first_order,
        select: a.laplace_select,
        memory,
        ..OnlineOptions::default()
    })
}

/// The moves of the hyperparameters and where they ended.
pub(super) fn summary(report: &OnlineReport) -> Vec<String> {
    let rows = report.trace.iter().map(|step| {
        let ends = step.precisions.iter();
        let (low, high) = ends.fold((f64::INFINITY, 0.0f64), |(low, high), a| (low.min(*a), high.max(*a)));
        let precisions =
            if low == high { number(low) } else { format!("{} to {}", number(low), number(high)) };
        let effective = number(step.effective_dimension);
        [step.epoch.to_string(), number(step.log_evidence), effective, precisions]
    });
    let head = ["after epoch", "log evidence", "effective weights", "precisions"];
    let final_ones: Vec<String> = report
        .groups
        .iter()
        .zip(&report.precisions)
        .map(|(group, a)| format!("{group} {}", number(*a)))
        .collect();
    let mut lines = vec![table_under(head, rows), String::new()];
    lines.push(format!("prior precisions: {}", final_ones.join(", ")));
    lines
}
