//! What is trained until rows that are set aside say that it is enough: features, or a mean and a covariance.

use super::{MethodSettings, RequestedMethod};
use crate::method::deep::{self, Scatter, Work};
use crate::method::gvi;
use crate::method::inference::{self, FitMonitor, Inference};
use crate::method::large::{self, Fitting, Outcome, StepSize};
use crate::options::{DbkOptions, GviOptions, InferenceName};
use crate::rows::MOST_SET_ASIDE;
use crate::{FileRows, Method, Observed};
use posterior_gp::Observations;

/// What is learned, in words.
const FEATURES: &str = "these features";

/// Of all methods with learned features; which features is what [`Method::deep`] says.
impl MethodSettings for DbkOptions {
    fn step_from_disk(&self, size: &StepSize<'_>) -> Option<(u64, f64, usize)> {
        if is_dense(size.method) {
            return None;
        }
        let own = deep::work((size.request, size.method), Scatter::Gaussian, size.rows, size.inputs)?;
        // The order of an epoch; rows that are set aside.
        let order = (size.rows as u64).saturating_mul(8);
        let aside = (size.rows.min(2 * MOST_SET_ASIDE) as u64).saturating_mul(8 * (size.inputs as u64 + 2));
        Some((own.bytes.saturating_add(order).saturating_add(aside), own.flops_per_step, own.steps))
    }

    fn training(
        &self,
        asked: RequestedMethod<'_>,
        scatter: Scatter,
        (rows, inputs): (usize, usize),
    ) -> Option<Work> {
        deep::work(asked, scatter, rows, inputs)
    }

    fn solve(&self, fitting: &mut Fitting<'_, '_>, own: &Method) -> Outcome {
        match is_dense(own) {
            true => large::fit(fitting, own, FEATURES, deep::fit_dense),
            false => large::fit(fitting, own, FEATURES, deep::fit::<Observations>),
        }
    }

    fn solve_from_disk(&self, fitting: &mut Fitting<'_, '_, FileRows>, own: &Method) -> Outcome {
        large::fit(fitting, own, FEATURES, deep::fit::<FileRows>)
    }

    fn for_labels(&self, own: &Method, inference: InferenceName, _: bool) -> Option<Method> {
        (inference == InferenceName::Variational).then(|| own.clone())
    }

    fn infer(&self, observed: &Observed, asked: RequestedMethod<'_>, kept: FitMonitor<'_, '_>) -> Inference {
        inference::features(observed, asked, kept)
    }
}

/// Whether features are those of a process itself behind a network.
fn is_dense(own: &Method) -> bool {
    matches!(own.deep(), Some((_, kind, _)) if kind.dense)
}

impl MethodSettings for GviOptions {
    fn training(
        &self,
        asked: RequestedMethod<'_>,
        scatter: Scatter,
        (rows, inputs): (usize, usize),
    ) -> Option<Work> {
        Some(gvi::work(self, asked.0, (rows, inputs, scatter.functions())))
    }

    fn solve(&self, fitting: &mut Fitting<'_, '_>, own: &Method) -> Outcome {
        large::fit(fitting, own, "this mean and covariance", gvi::fit)
    }

    fn for_labels(&self, own: &Method, inference: InferenceName, _: bool) -> Option<Method> {
        (inference == InferenceName::Variational).then(|| own.clone())
    }

    fn infer(
        &self,
        observed: &Observed,
        (request, _): RequestedMethod<'_>,
        kept: FitMonitor<'_, '_>,
    ) -> Inference {
        inference::variation(observed, (request, self), kept)
    }
}
