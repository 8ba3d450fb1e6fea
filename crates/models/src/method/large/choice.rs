//! Which method, and why.

use super::plan::ScalablePlan;
use crate::options::{AutoOptions, EvidenceOptions, IterativeOptions, LargeTableOptions, SddOptions};
use crate::prepare::saved_plan;
use crate::{EXACT_ROWS, FitRequest, Method};

/// A method, and the sentence that explains it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The method with its options, never [`Method::Auto`].
    pub method: Method,
    /// Why.
    pub why: String,
}

/// What exact fits are taken to reach, in operations a second, and how many evaluations they are taken to need, when a time budget is to be kept.
const EXACT_RATE: f64 = 5e10;
const EXACT_EVALUATIONS: f64 = 100.0;

/// Chooses by rows, names of the inputs, memory and time.
///
/// Exact where that is minutes and fits; otherwise stochastic dual descent, whose cost a step is linear in rows and whose number of steps does not grow with them.
/// Where its blocks do not fit, or the kernel has no random features, inducing points. Where nothing fits, the least is what is refused.
pub fn choose(request: &FitRequest, rows: usize, features: &[String]) -> Chosen {
    let Method::Auto(options) = &request.method else {
        return Chosen { method: request.method.clone(), why: "as asked".into() };
    };
    let limit = request.limits.memory;
    let (exact, bounded) = (Method::Exact(options.exact()), Method::Svgp(options.stochastic_bound()));
    let descending = options.descending();
    let plan = saved_plan(rows, features.len());
    let exact_seconds = plan.flops_per_evaluation * EXACT_EVALUATIONS / EXACT_RATE;
    let sampled = request.prior.kernel.build::<f64>(features).ok().is_none_or(|k| k.features().is_ok());
    let descent = || ScalablePlan::new(request, &descending, rows, features.len());
    let bound = || ScalablePlan::new(request, &bounded, rows, features.len());
    // Nothing is gained by a fallback that needs more than what does not fit.
    let least = if sampled { descent().peak_bytes.min(bound().peak_bytes) } else { bound().peak_bytes };
    if plan.peak_bytes > limit && least > limit && plan.peak_bytes <= least {
        let why = format!("because {plan} for the exact method, and every other needs more");
        return Chosen { method: exact, why };
    }
    let reason = if rows > EXACT_ROWS {
        format!("because {rows} rows are more than {EXACT_ROWS}, beyond which exact evidences take long")
    } else if plan.peak_bytes > limit {
        format!("because {plan} for the exact method, above the limit")
    } else if request.start.hyperparameters().is_none()
        && request.limits.time.is_some_and(|budget| budget < exact_seconds)
    {
        format!("because the exact method may take {exact_seconds:.0} s, above the time budget")
    } else {
        let unused = note(unused(options));
        return Chosen { method: exact, why: format!("because {plan} and the limit allows it{unused}") };
    };
    if !sampled {
        return Chosen {
            method: Method::Sgpr(options.collapsed_bound()),
            why: format!(
                "{reason}; stochastic dual descent needs random features, which this kernel does not have{}",
                note(sampling(options))
            ),
        };
    }
    let descent = descent();
    if descent.peak_bytes > limit && bound().peak_bytes < descent.peak_bytes {
        let needed = descent.as_exact();
        return Chosen {
            method: bounded,
            why: format!(
                "{reason}; for stochastic dual descent {needed}, above the limit{}",
                note(sampling(options))
            ),
        };
    }
    Chosen { method: descending, why: reason }
}

/// What is said of settings of solvers where the exact posterior of all or of some rows was kept instead.
pub(crate) fn unused_by_exact(request: &FitRequest) -> &'static str {
    let Method::Auto(options) = &request.method else { return "" };
    let usual = SddOptions::default();
    let SddOptions { iterative, batches, .. } = &options.descent;
    let steps = iterative.large.iterations.is_some() || *batches != usual.batches;
    note(steps || solving(options))
}

fn note(unused: bool) -> &'static str {
    if unused { "; settings of other methods are not used" } else { "" }
}

/// Whether something was set that the exact method does not have.
fn unused(options: &AutoOptions) -> bool {
    let mut default = AutoOptions { restarts: options.restarts, ..AutoOptions::default() };
    default.descent.iterative.evidence = options.descent.iterative.evidence.clone();
    // Places are always set.
    let large = &options.descent.iterative.large;
    default.descent.iterative.large = LargeTableOptions {
        checkpoint: large.checkpoint.clone(),
        checkpoint_every: large.checkpoint_every,
        fresh: large.fresh,
        ..LargeTableOptions::default()
    };
    *options != default
}

/// Whether something was set that only methods with samples and a search of their own have. Bounds hold and bound hyperparameters as others do.
fn sampling(options: &AutoOptions) -> bool {
    let (IterativeOptions { evidence, search, .. }, usual) =
        (&options.descent.iterative, IterativeOptions::default());
    let own = EvidenceOptions {
        constraints: evidence.constraints.clone(),
        steps: evidence.steps,
        ..usual.evidence
    };
    solving(options) || *search != usual.search || *evidence != own
}

/// Whether something was set that only methods with samples have.
fn solving(options: &AutoOptions) -> bool {
    let of = |descent: &SddOptions| {
        let IterativeOptions { sampling, system, .. } = descent.iterative.clone();
        (sampling, system, descent.momentum, descent.tolerance)
    };
    of(&options.descent) != of(&SddOptions::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hyperparameter;
    use crate::options::{MethodName, Start};

    fn chosen(rows: usize, change: impl FnOnce(&mut FitRequest)) -> Chosen {
        let mut request = FitRequest::default();
        change(&mut request);
        choose(&request, rows, &["a".into(), "b".into()])
    }

    #[test]
    fn automatic_choices_follow_rows_memory_time_and_what_is_given() {
        let plain = chosen(500, |_| ());
        assert_eq!(plain.method.name(), MethodName::Exact);
        assert!(!plain.why.contains("not used"), "{}", plain.why);
        let noted = chosen(500, |r| r.method.iterative_mut().unwrap().sampling.samples = 7);
        assert!(noted.method.name() == MethodName::Exact && noted.why.contains("not used"), "{}", noted.why);
        let given = |r: &mut FitRequest| {
            r.start = Start::given(vec![Hyperparameter { name: "n".into(), values: vec![1.0] }]);
        };
        // Given hyperparameters are conditioned on, by the exact method as by others.
        assert_eq!(chosen(500, given).method.name(), MethodName::Exact);
        // 100 evaluations at 5,000 rows are 100 x 1.25e11 operations or more: minutes.
        assert_eq!(chosen(5000, |r| r.limits.time = Some(10.0)).method.name(), MethodName::Sdd);
        assert_eq!(chosen(5000, |r| r.limits.time = Some(1e5)).method.name(), MethodName::Exact);
        assert_eq!(chosen(EXACT_ROWS + 1, |_| ()).method.name(), MethodName::Sdd);
        // Forty rows in fifty kilobytes: refused for what they need themselves, not for what a method for large tables would.
        assert_eq!(chosen(40, |r| r.limits.memory = 50_000).method.name(), MethodName::Exact);
        // A million rows with 1,001 columns of weights are tens of gigabytes; inducing points need one for their table.
        let large = chosen(1_000_000, |r| r.method.iterative_mut().unwrap().sampling.samples = 1000);
        assert_eq!(large.method.name(), MethodName::Svgp, "{}", large.why);
        assert!(large.why.contains("not used"), "{}", large.why);
        assert!(!chosen(500, |r| r.seed = 7).why.contains("not used"));
        let held = chosen(7000, |r| {
            r.prior.kernel = "periodic".parse().unwrap();
            let noise =
                posterior_optim::Constraint::Fixed { parameter: "noise_variance".into(), value: None };
            r.method.iterative_mut().unwrap().evidence.constraints.fix.push(noise);
        });
        assert!(matches!(&held.method, Method::Sgpr(own) if own.constraints.fix.len() == 1), "{held:?}");
        assert!(!held.why.contains("not used"), "{}", held.why);
        let searched = chosen(7000, |r| {
            r.prior.kernel = "periodic".parse().unwrap();
            r.method.iterative_mut().unwrap().evidence.learning_rate = Some(0.2);
        });
        assert!(searched.why.contains("not used"), "{}", searched.why);
        let plain = chosen(7000, |r| r.prior.kernel = "periodic".parse().unwrap());
        assert!(!plain.why.contains("not used"), "{}", plain.why);
        assert_eq!(
            chosen(7000, |r| r.prior.kernel = "periodic".parse().unwrap()).method.name(),
            MethodName::Sgpr
        );
    }
}
