//! Bounds of inducing points.

use super::{MethodSettings, RequestedMethod, shares};
use crate::method::inference::{Cost, FitMonitor, Inference, Size, variational};
use crate::method::large::{
    self, Fitting, Outcome, StepSize, closing_flops, refuse_settings, stochastic_bound,
};
use crate::options::{
    BatchOptions, DiskOptions, InducingOptions, InferenceName, LargeTableOptions, SgprOptions, SvgpOptions,
    VariationalName,
};
use crate::{FileRows, Method, ModelError, Observed};
use posterior_gp::inducing::Plan as BoundPlan;

impl MethodSettings for SgprOptions {
    shares! {
        large, large_mut: LargeTableOptions = |own| own.large;
        disk: DiskOptions = |own| own.disk;
        inducing: InducingOptions = |own| own.inducing;
    }

    fn steps(&self, _: usize) -> usize {
        self.steps()
    }

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
    shares! {
        large, large_mut: LargeTableOptions = |own| own.large;
        disk: DiskOptions = |own| own.disk;
        inducing: InducingOptions = |own| own.inducing;
        batches: BatchOptions = |own| own.batches;
    }

    fn steps(&self, _: usize) -> usize {
        self.steps()
    }

    fn check(&self, _: usize) -> Result<(), ModelError> {
        let length = Some(self.natural_length).filter(|_| self.variational == VariationalName::Natural);
        let length = length.filter(|v| !(*v > 0.0 && *v <= 1.0));
        refuse_settings([("the length of natural-gradient steps", length, "above 0 and at most 1")])
    }

    fn bound(&self, size: &StepSize<'_>) -> Option<BoundPlan> {
        Some(stochastic_bound(size.rows, size.inputs, size.points(), self.batch()))
    }

    fn closing_flops(&self, rows: usize, inputs: usize) -> f64 {
        closing_flops(self, rows, inputs)
    }

    fn solve(&self, fitting: &mut Fitting<'_, '_>, _: &Method) -> Outcome {
        large::stochastic(fitting, self, None)
    }

    fn solve_from_disk(&self, fitting: &mut Fitting<'_, '_, FileRows>, _: &Method) -> Outcome {
        large::stochastic(fitting, self, None)
    }

    fn infers(&self) -> InferenceName {
        InferenceName::Variational
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
