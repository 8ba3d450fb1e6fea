//! The comparison of `--method auto`: what it will try, and what it chose.

use super::fit::Observer;
use super::noise::check_positive;
use super::request::LaplaceRequest;
use crate::ModelError;
use posterior_laplace::{AutoReport, Data, FitOptions, Laplace, Plan, auto};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Precision;
use std::time::Duration;

/// What `Auto` takes for its second and later candidates where no time is given.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Fits the candidates of [`auto`] and keeps the best; the options become those of the choice.
pub(crate) fn choose<T: Precision>(
    data: &Data<'_, T>,
    plain: &OutputLikelihood,
    request: &LaplaceRequest,
    options: &mut FitOptions,
    observer: Observer<'_>,
) -> Result<(Laplace<T>, AutoReport), ModelError> {
    let time = request
        .limits
        .time
        .map(|s| check_positive("the time", s, false).map(|()| Duration::from_secs_f64(s.min(1e9))));
    let mut observer = |_: &str, stage, done, total| observer(stage, done, total);
    let (laplace, report, own) = auto(data, plain, options, time.transpose()?, PATIENCE, &mut observer)?;
    *options = own;
    Ok((laplace, report))
}

/// What the comparison will try, in one sentence.
pub(crate) fn announced(plans: &[(&str, Plan)], examples: usize, unseen: Option<usize>) -> String {
    let names: Vec<&str> = plans.iter().map(|p| p.0).collect();
    let largest = plans.iter().map(|p| p.1.bytes()).max().unwrap_or(0);
    let operations: f64 = plans.iter().map(|p| p.1.flops).sum();
    let seconds: f64 = plans.iter().map(|p| p.1.seconds()).sum();
    let by = match unseen {
        Some(count) => format!("compared on {count} unseen examples"),
        None => "compared by the evidence".into(),
    };
    format!(
        "plan: {} from {examples} examples, {by}; up to {} MB, {operations:.1e} operations, about {:.0} s if all are tried",
        names.join(", "),
        largest.div_ceil(1 << 20),
        seconds.ceil()
    )
}
