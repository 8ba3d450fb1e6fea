//! The method that is ours to choose.

use super::{MethodSettings, shares};
use crate::Method;
use crate::options::{AutoOptions, BatchOptions, InferenceName, IterativeOptions, SgprOptions};

impl MethodSettings for AutoOptions {
    shares! {
        iterative, iterative_mut: IterativeOptions = |own| own.descent.iterative;
        batches: BatchOptions = |own| own.descent.batches;
    }

    fn restarts(&self) -> usize {
        self.restarts
    }

    fn start_once(&mut self) {
        self.restarts = 1;
    }

    fn tolerance(&self) -> Option<f64> {
        self.descent.tolerance
    }

    fn is_automatic(&self) -> bool {
        true
    }

    fn compared_with(&self, chosen: &Method) -> Option<&AutoOptions> {
        matches!(chosen, Method::Sdd(_)).then_some(self)
    }

    fn for_labels(&self, _: &Method, inference: InferenceName, small: bool) -> Option<Method> {
        Some(match inference {
            InferenceName::Variational => self.stochastic_bound().into(),
            InferenceName::Gaussianised if !small => {
                SgprOptions { fixed_inducing: true, ..self.collapsed_bound() }.into()
            }
            _ => Method::Exact(self.exact()),
        })
    }
}
