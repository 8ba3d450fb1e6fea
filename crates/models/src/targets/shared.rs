//! **One kernel, one noise for several numeric targets**: hyperparameters by the sum of the targets' evidences, in standard units,
//!
//! ```text
//! θ* = argmax  Σ_t log p(y_t | X, θ) + log p(θ)
//! ```
//!
//! under which the targets are independent processes with a mean of their own each. One factorisation serves all targets, and all of them say what the kernel is: of few rows that is more than one of them knows.
//! Where targets depend on the columns in different ways, a kernel of each is better, which is therefore the default.
//!
//! The sum is over rows that have all targets. Where these are too many for one matrix, it is the sum over blocks of them that all methods for large tables search by ([`posterior_gp::iterative::fit_on_blocks`]).
//! What comes after, the posterior of each, is of all rows that have its target, with columns and target in the units of the rows that the search saw.

use crate::hyperparameter::FunctionUnits;
use crate::options::{EvidenceOptions, HyperparameterOptions};
use crate::prepare::{at_the_fit, no_image};
use crate::{FitRequest, FitStage, Hyperparameter, ModelError, Prepared, TrainingRows, choose};
use faer::Mat;
use posterior_data::{Extracted, InputRanges, LEAST_TARGETS, Schema, Table, Unseen};
use posterior_gp::exact::{Criterion, FitOptions, Plan, log_evidence};
use posterior_gp::iterative::fit_on_blocks;
use posterior_gp::{Hyperprior, Observations};
use posterior_optim::{Observer, Reason};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The share of a time budget that is the search's.
const SEARCH_SHARE: f64 = 0.5;

/// What targets share, and how it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedKernel {
    /// The targets, in order.
    pub targets: Vec<String>,
    /// Rows that have all of them.
    pub rows: usize,
    /// Rows that have not, which the search did not see.
    pub rows_left_out: usize,
    /// Rows of each block that evidences are of: a single one of all rows, or some of them.
    pub blocks: Vec<usize>,
    /// What was maximised, summed over targets and blocks.
    pub criterion: Criterion,
    /// Log evidence of the standardised targets there, summed over targets and blocks, whatever was maximised.
    pub log_evidence: f64,
    /// All hyperparameters, in standard units; those of the mean target by target.
    pub hyperparameters: Vec<Hyperparameter>,
    /// Priors on hyperparameters that were added to it.
    pub hyperpriors: Vec<Hyperprior>,
    /// Why the best start ended.
    pub reason: Reason,
    /// Steps of the best start.
    pub steps: usize,
    /// Evaluations over all starts.
    pub evaluations: usize,
    /// Largest jitter that any evaluation needed.
    pub largest_jitter: f64,
    /// Hyperparameters that ended at a bound that was set for them, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// Wall-clock seconds of the search.
    pub seconds: f64,
}

/// Rows of targets that are to share a kernel.
#[derive(Clone, Debug)]
pub struct SharedRows {
    /// Those that have all targets, a column for each.
    joint: Observations,
    /// Those of each target, in the units of the joint ones.
    own: Vec<Prepared>,
    rows_left_out: usize,
}

impl SharedRows {
    /// From the given rows of a table in memory, and what is asked for of each target ([`crate::targets::names::request_of`]).
    ///
    /// # Errors
    /// As [`Prepared::from_table`]; [`ModelError::Usage`] for what has no kernel that could be shared or learned, for fewer than two targets, and where no row has all of them.
    pub fn from_table(table: &Table, rows: &[usize], requests: &[FitRequest]) -> Result<Self, ModelError> {
        Self::prepared(table, rows, requests).map_err(|error| error.in_table(table))
    }

    fn prepared(table: &Table, rows: &[usize], requests: &[FitRequest]) -> Result<Self, ModelError> {
        let usage = |problem: &str| Err(ModelError::Usage(problem.into()));
        let [first, _, ..] = requests else {
            return usage("--share-kernel is for two numeric targets at least: leave it out");
        };
        if first.method.deep().is_some() {
            return usage("--share-kernel is for kernels, and this method learns features: leave it out");
        }
        if first.learns_heteroscedastic_noise() {
            return usage(
                "--share-kernel has one noise for all targets and places, and --noise heteroscedastic learns it: leave one out",
            );
        }
        if first.output.row_weights.is_some() {
            return usage("--share-kernel counts all rows alike, and --row-weights does not: leave one out");
        }
        if first.start.hyperparameters().is_some() {
            return usage(
                "--share-kernel learns hyperparameters, and --hyperparameters gives them: leave one out",
            );
        }
        let targets =
            requests.iter().map(|own| table.column(&own.columns.target)).collect::<Result<Vec<_>, _>>()?;
        let complete: Vec<usize> =
            rows.iter().copied().filter(|row| targets.iter().all(|t| !t.is_missing(*row))).collect();
        if complete.is_empty() || (complete.len() < LEAST_TARGETS && !first.validation.of_fold) {
            return usage(&format!(
                "{} rows have all targets, and a kernel that they share needs {LEAST_TARGETS}: leave --share-kernel out",
                complete.len()
            ));
        }
        let known = |request: &FitRequest| Prepared::from_table(table, &complete, request);
        let all = requests.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let inputs = all[0].data.inputs().to_owned();
        // An infinite number in a target is no missing cell, and leaves out its row.
        if all.iter().any(|own| own.data.inputs() != inputs.as_ref()) {
            return usage(
                "--share-kernel is for targets whose numbers are finite in the same rows: leave out rows where one is not, or --share-kernel",
            );
        }
        let value = |i: usize, t: usize| all[t].data.targets()[(i, 0)];
        let joint = Observations::new(inputs, Mat::from_fn(all[0].data.rows(), all.len(), value), None)?;
        let rows_left_out = rows.len() - complete.len();
        let own = match rows_left_out {
            0 => all,
            _ => {
                let each = all.iter().zip(requests);
                each.map(|(known, request)| of_all_rows(table, rows, known, request))
                    .collect::<Result<_, _>>()?
            }
        };
        Ok(Self { joint, own, rows_left_out })
    }

    /// Rows that have all targets.
    pub fn rows(&self) -> usize {
        self.joint.rows()
    }

    /// The rows of each target, to be learned from under the hyperparameters that were found.
    pub fn into_own(self) -> Vec<Prepared> {
        self.own
    }

    /// The rows that every evaluation sees: one block of all, or some.
    fn blocks(&self, request: &FitRequest) -> Result<Vec<Vec<usize>>, ModelError> {
        let chosen = choose(request, self.rows(), &self.own[0].schema.feature_names()).method;
        if chosen.settings().leaves_one_out() {
            return Ok(vec![(0..self.rows()).collect()]);
        }
        let search = chosen.iterative().map_or_else(HyperparameterOptions::default, |own| own.search.clone());
        Ok(search.blocks(request.seed).rows(&self.joint)?)
    }

    /// What the search takes: memory and the work of an evaluation, rows included.
    ///
    /// # Errors
    /// Where there are no blocks.
    pub fn plan(&self, request: &FitRequest) -> Result<Plan, ModelError> {
        let (inputs, targets) = (self.joint.inputs().ncols(), self.joint.targets().ncols());
        let blocks = self.blocks(request)?;
        let largest = blocks.iter().map(Vec::len).max().unwrap_or_default();
        let planned = |rows: usize| match options(request).criterion {
            Criterion::Evidence => Plan::evidence(rows, inputs, targets),
            Criterion::LeaveOneOut => Plan::leave_one_out(rows, inputs, targets),
        };
        let mut plan = planned(largest);
        plan.rows = self.rows();
        plan.flops_per_evaluation = blocks.iter().map(|rows| planned(rows.len()).flops_per_evaluation).sum();
        let numbers = self.own.iter().map(|own| own.data.rows() * (inputs + 3)).sum::<usize>()
            + blocks.iter().map(|rows| rows.len() * (inputs + targets)).sum::<usize>();
        plan.peak_bytes = plan.peak_bytes.saturating_add((numbers as u64).saturating_mul(8));
        Ok(plan)
    }

    /// Searches. The request is that of any of the targets; of its time budget the search takes half at most.
    ///
    /// # Errors
    /// As [`posterior_gp::exact::fit`]; [`ModelError::Interrupted`].
    pub fn search(
        &self,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<SharedKernel, ModelError> {
        let started = Instant::now();
        let (names, targets) = (self.own[0].schema.feature_names(), self.own.len());
        let model = request.process(request.prior.kernel.build(&names)?, names.len(), targets);
        let mut options = options(request);
        options.hyperpriors = request.hyperpriors_of(&model, (names.len(), FunctionUnits::Target));
        options.steps.time =
            request.limits.time.map(|s| Duration::from_secs_f64((SEARCH_SHARE * s).clamp(0.0, 1e9)));
        let blocks = self.blocks(request)?;
        let (model, found) = fit_on_blocks(model, &self.joint, &blocks, &options, &mut |progress, _| {
            observer(progress, &FitStage::Search)
        })?;
        ModelError::heed(found.reason)?;
        let mut evidence = 0.0;
        for rows in &blocks {
            evidence += log_evidence(&model, &self.joint.select(rows)?, None)?.value;
        }
        Ok(SharedKernel {
            targets: self.own.iter().map(|own| own.schema.target.clone()).collect(),
            rows: self.rows(),
            rows_left_out: self.rows_left_out,
            blocks: blocks.iter().map(Vec::len).collect(),
            criterion: options.criterion,
            log_evidence: evidence,
            hyperparameters: Hyperparameter::of(&model),
            hyperpriors: options.hyperpriors,
            reason: found.reason,
            steps: found.steps,
            evaluations: found.attempts.iter().map(|a| a.evaluations).sum(),
            largest_jitter: found.largest_jitter,
            at_bounds: found.at_bounds,
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

/// The search as it is asked for.
fn options(request: &FitRequest) -> FitOptions {
    request.fit_options(request.method.evidence().unwrap_or(&EvidenceOptions::default()))
}

/// All rows that have one of the targets, as those that have all of them make columns and units.
fn of_all_rows(
    table: &Table,
    rows: &[usize],
    known: &Prepared,
    request: &FitRequest,
) -> Result<Prepared, ModelError> {
    // What only these rows hold is none of the categories that the search saw.
    let lenient = Schema { unseen: Unseen::Other, ..known.schema.clone() };
    let Extracted { x, y, rows, notes, .. } = lenient.extract(table, rows, true)?;
    let counts = request.prior.kernel.count_columns(&known.schema.feature_names());
    known.schema.check_counts(&table.source, &counts, x.as_ref(), &rows)?;
    let (standard, y) = (&known.standardisation, y.unwrap_or_default());
    if let Some((by, bad)) = standard.inadmissible(&y) {
        return Err(no_image(by, &known.schema, Some(rows[bad]), y[bad], &at_the_fit()));
    }
    let data = Observations::new(
        standard.features(x.as_ref()),
        Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i])),
        None,
    )?;
    Ok(Prepared {
        training: TrainingRows::of_table(x.as_ref(), &y),
        input_ranges: InputRanges::learn(&known.schema, x.as_ref()),
        schema: known.schema.clone(),
        standardisation: standard.clone(),
        data,
        notes,
        originals: None,
        transform: known.transform.clone(),
    })
}

impl SharedKernel {
    /// Whether it is the evidence of all rows, and not of blocks of them.
    pub fn is_of_all_rows(&self) -> bool {
        matches!(self.blocks[..], [rows] if rows == self.rows)
    }

    /// The hyperparameters of one of the targets, by its place among them: the mean is its own.
    pub fn of_target(&self, place: usize) -> Vec<Hyperparameter> {
        let count = self.targets.len().max(1);
        let own = |shared: &Hyperparameter| {
            let mut values = shared.values.clone();
            if shared.name.starts_with("mean.") {
                let each = values.len() / count;
                values = values.into_iter().skip(place * each).take(each).collect();
            }
            Hyperparameter { name: shared.name.clone(), values }
        };
        self.hyperparameters.iter().map(own).collect()
    }

    /// In a sentence.
    pub fn describe(&self) -> String {
        let of = match self.is_of_all_rows() {
            true => format!("{} rows", self.rows),
            false => format!("{} blocks of {} rows", self.blocks.len(), self.rows),
        };
        let left_out = match self.rows_left_out {
            0 => String::new(),
            n => format!("; {n} rows without one of them had no part in it"),
        };
        let by = match self.criterion {
            Criterion::Evidence => "evidences",
            Criterion::LeaveOneOut => "leave-one-out scores",
        };
        format!(
            "{} share kernel and noise, by the sum of their {by} on {of}; log evidence {:.3} (of the standardised targets){left_out}",
            self.targets.join(", "),
            self.log_evidence
        )
    }
}
