//! The exact method.

use super::{MethodSettings, RequestedMethod, shares};
use crate::method::inference::{Cost, FitMonitor, Inference, Size, laplace};
use crate::method::regression::{Draft, Learned, fit_exact};
use crate::options::{EvidenceOptions, ExactOptions, InferenceName};
use crate::prepare::exact_plan;
use crate::{FitStage, Method, Observed, Prepared};
use posterior_gp::exact::Plan;
use posterior_optim::Observer;

impl MethodSettings for ExactOptions {
    shares! {
        evidence: EvidenceOptions = |own| own.evidence;
    }

    fn restarts(&self) -> usize {
        self.restarts
    }

    fn start_once(&mut self) {
        self.restarts = 1;
    }

    fn leaves_one_out(&self) -> bool {
        true
    }

    fn plan(&self, _: RequestedMethod<'_>, rows: usize, inputs: usize) -> Plan {
        exact_plan(&self.evidence, rows, inputs)
    }

    fn fit(
        &self,
        prepared: Prepared,
        draft: &mut Draft<'_>,
        observer: &mut Observer<'_, FitStage>,
    ) -> Learned {
        fit_exact(prepared, self, draft, observer)
    }

    fn for_labels(&self, own: &Method, inference: InferenceName, _: bool) -> Option<Method> {
        (inference != InferenceName::Variational).then(|| own.clone())
    }

    fn cost_of_labels(&self, asked: RequestedMethod<'_>, size: Size) -> Cost {
        Cost::of_functions(asked, size)
    }

    fn infer(
        &self,
        observed: &Observed,
        (request, _): RequestedMethod<'_>,
        kept: FitMonitor<'_, '_>,
    ) -> Inference {
        laplace::fit(observed, (request, self), kept)
    }
}
