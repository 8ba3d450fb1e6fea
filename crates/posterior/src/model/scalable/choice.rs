//! Which method, and why.

use crate::{FitRequest, Method};
use posterior_gp::exact::Plan;

/// Up to so many rows the exact method is chosen, if it fits: its cubic cost is then minutes on two cores.
pub const EXACT_ROWS: usize = 6000;

/// A method, and the sentence that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The method, never [`Method::Auto`].
    pub method: Method,
    /// Why.
    pub why: String,
}

/// Chooses by rows, names of the inputs, and memory.
///
/// Exact where that is minutes and fits; otherwise stochastic dual descent, whose cost a step is linear in rows and whose number of steps does not grow with them.
/// A kernel without random features cannot be sampled so, and gets inducing points.
pub fn choose(request: &FitRequest, rows: usize, features: &[String]) -> Chosen {
    if request.method != Method::Auto {
        return Chosen { method: request.method, why: "as asked".into() };
    }
    let plan = Plan::evidence(rows, features.len(), 1);
    if rows <= EXACT_ROWS && plan.peak_bytes <= request.options.memory_limit {
        return Chosen { method: Method::Exact, why: format!("because {plan} and the limit allows it") };
    }
    let reason = if rows > EXACT_ROWS {
        format!("because {rows} rows are more than {EXACT_ROWS}, beyond which exact evidences take long")
    } else {
        format!("because {plan} for the exact method, above the limit")
    };
    let sampled = request.kernel.build::<f64>(features).ok().is_none_or(|k| k.features().is_ok());
    if sampled {
        Chosen { method: Method::Sdd, why: reason }
    } else {
        Chosen {
            method: Method::Sgpr,
            why: format!(
                "{reason}; stochastic dual descent needs random features, which this kernel does not have"
            ),
        }
    }
}
