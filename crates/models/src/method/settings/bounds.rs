//! Bounds of inducing points.

use super::{MethodSettings, RequestedMethod};
use crate::method::inference::{Cost, FitMonitor, Inference, Size, variational};
use crate::method::large::{self, Fitting, Outcome, StepSize, refuse_settings, stochastic_bound};
use crate::options::{InferenceName, SgprOptions, SvgpOptions, VariationalName};
use crate::{FileRows, Method, ModelError, Observed, ScalablePlan};
use posterior_gp::inducing::Plan as BoundPlan;

impl MethodSettings for SgprOptions {
    fn bound(&self, size: &StepSize<'_>) -> Option<BoundPlan> {
        Some(BoundPlan::collapsed(size.rows, size.inputs, 1, size.points()))
    }

    fn solve(&self, fitting: &mut Fitting<'_, '_>, _: &Method) -> Outcome {
        large::collapsed(fitting, self)
    }

    fn solve_from_disk(&self, fitting: &mut Fitting<'_, '_, FileRows>, _: &Method) -> Outcome {
        large::collapsed(fitting, self)
    }

    /// All functions' points are the same and stay: the rest is a closed form.
    fn for_labels(&self, _: &Method, inference: InferenceName, _: bool) -> Option<Method> {
        let fixed = || Method::Sgpr(Self { fixed_inducing: true, ..self.clone() });
        (inference == InferenceName::Gaussianised).then(fixed)
    }

    fn shared_bound(&self) -> Option<&SgprOptions> {
        Some(self)
    }
}

impl MethodSettings for SvgpOptions {
    fn check(&self, _: usize) -> Result<(), ModelError> {
        let length = Some(self.natural_length).filter(|_| self.variational == VariationalName::Natural);
        let length = length.filter(|v| !(*v > 0.0 && *v <= 1.0));
        refuse_settings([("the length of natural-gradient steps", length, "above 0 and at most 1")])
    }

    fn bound(&self, size: &StepSize<'_>) -> Option<BoundPlan> {
        Some(stochastic_bound(size.rows, size.inputs, size.points(), self.batch()))
    }

    fn closing_flops(&self, rows: usize, inputs: usize) -> f64 {
        ScalablePlan::closing_flops(self, rows, inputs)
    }

    fn solve(&self, fitting: &mut Fitting<'_, '_>, _: &Method) -> Outcome {
        large::stochastic(fitting, self, None)
    }

    fn solve_from_disk(&self, fitting: &mut Fitting<'_, '_, FileRows>, _: &Method) -> Outcome {
        large::stochastic(fitting, self, None)
    }

    fn for_labels(&self, own: &Method, inference: InferenceName, _: bool) -> Option<Method> {
        (inference == InferenceName::Variational).then(|| own.clone())
    }

    fn cost_of_labels(&self, _: RequestedMethod<'_>, size: Size) -> Cost {
        Cost::of_bound(self, size)
    }

    fn infer(
        &self,
        observed: &Observed,
        (request, _): RequestedMethod<'_>,
        kept: FitMonitor<'_, '_>,
    ) -> Inference {
        variational::fit(observed, (request, self), kept)
    }
}
