//! The exact method.

use super::{Asked, MethodSettings};
use crate::method::inference::{Cost, Inference, Kept, Size, laplace};
use crate::method::regression::{Draft, Learned, fit_exact};
use crate::options::{ExactOptions, InferenceName};
use crate::prepare::exact_plan;
use crate::{FitStage, Method, Observed, Prepared};
use posterior_gp::exact::Plan;
use posterior_optim::Observer;

impl MethodSettings for ExactOptions {
    fn leaves_one_out(&self) -> bool {
        true
    }

    fn plan(&self, _: Asked<'_>, rows: usize, inputs: usize) -> Plan {
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

    fn cost_of_labels(&self, asked: Asked<'_>, size: Size) -> Cost {
        Cost::of_functions(asked, size)
    }

    fn infer(&self, observed: &Observed, (request, _): Asked<'_>, kept: Kept<'_, '_>) -> Inference {
        laplace::fit(observed, (request, self), kept)
    }
}
