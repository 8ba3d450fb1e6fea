//! What follows a search on blocks by itself: what plans state and what fits do have one home.

use crate::method::training::table_bytes;
use crate::options::IterativeOptions;
use crate::{EXACT_POSTERIOR_ROWS, FitRequest};
use posterior_gp::exact;

/// Evaluations of an exact evidence that begins near its maximum.
pub(crate) const REFINING_EVALUATIONS: f64 = 12.0;

/// Most operations where nothing limits the time, some minutes on two cores: of exact evidences, and of stochastic searches.
const EXACTLY: f64 = 2e13;
const BY_STEPS: f64 = 5e12;

/// Share of the rate of factorisations that products with kernels reach.
const OF_PRODUCTS: f64 = 0.4;

/// What of the memory exact evidences of a search may take, beside the data.
pub(crate) fn refining_memory(limit: u64) -> u64 {
    limit / 2
}

/// A search on all rows that goes on from where blocks led.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Following {
    /// At the peak, beside the table.
    pub(crate) bytes: u64,
    /// Operations of evidences of blocks that take as long.
    pub(crate) flops: f64,
}

/// What is followed: a request with its options, rows (with those that are held back) and inputs.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    pub(crate) request: &'a FitRequest,
    pub(crate) options: &'a IterativeOptions,
    pub(crate) rows: usize,
    pub(crate) inputs: usize,
}

impl Blocks<'_> {
    /// The exact evidence, where `auto` may take it: within the memory and, where there is no budget, within minutes.
    pub(crate) fn exactly(&self) -> Option<Following> {
        let plan = exact::Plan::evidence(self.rows, self.inputs, 1);
        let automatic = self.request.method.settings().is_automatic();
        let wanted = automatic && self.options.goes_on_to_all_rows() && self.rows <= EXACT_POSTERIOR_ROWS;
        let found =
            Following { bytes: plan.peak_bytes, flops: REFINING_EVALUATIONS * plan.flops_per_evaluation };
        let fits = plan.peak_bytes <= refining_memory(self.request.limits.memory);
        (wanted && fits && self.in_minutes(found.flops, EXACTLY)).then_some(found)
    }

    /// Steps of the stochastic search, where the larger block is less than half of the rows: the same.
    pub(crate) fn by_steps(&self) -> Option<Following> {
        let Self { request, options, rows, inputs } = *self;
        let search = &options.search;
        if !options.goes_on_to_all_rows()
            || rows <= 2 * search.refining_rows
            || search.probes.min(search.search_passes) == 0
        {
            return None;
        }
        let own = options.following_blocks();
        let search = own.stochastic_search(request.seed, rows, request.limits.memory);
        let plan = search.plan::<f64>(rows, inputs, 1);
        let bytes = plan.peak_bytes.saturating_add(own.saved_solutions(rows));
        let fits = table_bytes(rows, inputs, own.system.bytes_of_number()).saturating_add(bytes)
            <= request.limits.memory;
        let flops = search.steps as f64 * plan.flops_per_evaluation;
        (fits && self.in_minutes(flops, BY_STEPS)).then_some(Following { bytes, flops: flops / OF_PRODUCTS })
    }

    fn in_minutes(&self, flops: f64, most: f64) -> bool {
        self.request.limits.time.is_some() || flops <= most
    }
}

impl Following {
    /// Whether so many seconds, if they are limited, are enough at so many operations a second.
    pub(crate) fn is_in_time(&self, seconds: Option<f64>, rate: f64) -> bool {
        seconds.is_none_or(|seconds| self.flops <= seconds * rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{HyperparameterSearch, Limits, MethodName, ObjectiveName};

    fn request(method: MethodName, memory: u64, time_budget: Option<f64>) -> FitRequest {
        FitRequest {
            method: method.into(),
            limits: Limits { memory, time: time_budget },
            ..FitRequest::default()
        }
    }

    fn of(request: &FitRequest, rows: usize) -> [Option<Following>; 2] {
        let options = request.method.iterative().unwrap();
        let blocks = Blocks { request, options, rows, inputs: 5 };
        [blocks.exactly(), blocks.by_steps()]
    }

    #[test]
    fn what_follows_is_what_fits() {
        let plenty = 16 << 30;
        let auto = request(MethodName::Auto, plenty, None);
        let [exact, steps] = of(&auto, 9000);
        // n³ and some n² of each of 12 evaluations.
        let exact = exact.unwrap();
        assert!((exact.flops / (12.0 * 9000f64.powi(3)) - 1.0).abs() < 0.4, "{exact:?}");
        assert!(steps.unwrap().flops < exact.flops);
        // More rows are too many for minutes, not for a budget; still more are for neither, but steps go on.
        let shape = |request: &FitRequest, rows| of(request, rows).map(|own| own.is_some());
        assert_eq!(shape(&auto, 15_000), [false, true]);
        let budget = request(MethodName::Auto, plenty, Some(60.0));
        assert_eq!((shape(&budget, 15_000), shape(&budget, 21_000)), ([true, true], [false, true]));
        assert_eq!((shape(&auto, 60_000), shape(&budget, 60_000)), ([false, false], [false, true]));
        assert!(!of(&budget, 60_000)[1].unwrap().is_in_time(Some(30.0), 1e10));
        assert!(of(&budget, 15_000)[0].unwrap().is_in_time(None, 1.0));
        // Where the larger block has half of the rows, and for what is asked for by name, nothing is exact.
        assert_eq!(shape(&auto, 8000), [true, false]);
        assert_eq!(shape(&request(MethodName::Sap, plenty, None), 9000), [false, true]);
        // Memory: a matrix in half of it; the table, solutions and their copies in all of it.
        assert_eq!(shape(&request(MethodName::Auto, 1 << 30, None), 9000), [false, true]);
        let least = |rows: usize| {
            let mut own = request(MethodName::Sap, plenty, Some(1e9));
            let options = own.method.iterative().unwrap().clone();
            let blocks = Blocks { request: &own, options: &options, rows, inputs: 5 };
            let found = blocks.by_steps().unwrap().bytes + table_bytes(rows, 5, 8);
            own.limits.memory = found - 1;
            // Less memory keeps no matrix, so that it is needed for less.
            of(&own, rows)[1].is_none_or(|less| less.bytes < found)
        };
        assert!(least(9000));
        // What climbs something else, has no steps, or is told another number of rows.
        let changes: [fn(&mut IterativeOptions); 4] = [
            |o| o.evidence.objective = Some(ObjectiveName::LeaveOneOut),
            |o| o.evidence.steps = Some(0),
            |o| o.search.refining_rows = 300,
            |o| o.search.hyperparameter_search = HyperparameterSearch::Neighbourhoods,
        ];
        for change in changes {
            let mut own = auto.clone();
            change(own.method.iterative_mut().unwrap());
            assert_eq!(shape(&own, 9000), [false, false]);
        }
    }
}
