//! What is trained until rows that are set aside say that it is enough: features, or a mean and a covariance.

use super::{Deep, MethodSettings, RequestedMethod, shares};
use crate::method::deep::{self, Scatter, Work};
use crate::method::gvi;
use crate::method::inference::{self, FitMonitor, Inference};
use crate::method::large::{self, Fitting, Outcome, StepSize};
use crate::options::{
    BatchOptions, DbkOptions, DeepKind, DiskOptions, DklOptions, GviOptions, InducingOptions, InferenceName,
    LargeTableOptions, MethodName,
};
use crate::rows::MOST_SET_ASIDE;
use crate::{FileRows, Method, Observed};
use posterior_gp::Observations;

/// What is learned, in words.
const FEATURES: &str = "these features";

/// Settings of learned features.
trait Features {
    fn told(&self, name: MethodName) -> Deep<'_>;
    fn common(&mut self) -> &mut DbkOptions;
}

impl Features for DbkOptions {
    fn told(&self, name: MethodName) -> Deep<'_> {
        let kind = DeepKind { inducing: false, exact: name == MethodName::Dbk, dense: false };
        (self, kind, None)
    }

    fn common(&mut self) -> &mut DbkOptions {
        self
    }
}

impl Features for DklOptions {
    fn told(&self, name: MethodName) -> Deep<'_> {
        let kind = DeepKind { inducing: true, exact: name == MethodName::Dkl, dense: self.dense };
        (&self.deep, kind, self.embedding)
    }

    fn common(&mut self) -> &mut DbkOptions {
        &mut self.deep
    }
}

/// Of all methods with learned features.
impl<F: Features> MethodSettings for F {
    fn large(&self) -> Option<&LargeTableOptions> {
        Some(&self.told(MethodName::Dbk).0.large)
    }

    fn large_mut(&mut self) -> Option<&mut LargeTableOptions> {
        Some(&mut self.common().large)
    }

    fn disk(&self) -> Option<&DiskOptions> {
        Some(&self.told(MethodName::Dbk).0.disk)
    }

    fn deep(&self, name: MethodName) -> Option<Deep<'_>> {
        Some(self.told(name))
    }

    fn batches(&self) -> Option<&BatchOptions> {
        Some(&self.told(MethodName::Dbk).0.batches)
    }

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

    fn infers(&self) -> InferenceName {
        InferenceName::Variational
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
    shares! {
        large, large_mut: LargeTableOptions = |own| own.large;
        inducing: InducingOptions = |own| own.inducing;
        batches: BatchOptions = |own| own.batches;
    }

    fn gvi(&self) -> Option<&GviOptions> {
        Some(self)
    }

    fn steps(&self, _: usize) -> usize {
        self.steps()
    }

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

    fn infers(&self) -> InferenceName {
        InferenceName::Variational
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
