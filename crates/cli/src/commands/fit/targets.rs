//! Several targets of one table: a model of each, one after the other, all in one file.

use super::cross_validation::{fit_and_score, for_fold};
use super::left_out::LeftOut;
use super::{
    Fits, Fitted, Found, Rows, draws_of, finished, first_part, fitted, observed_by, parted, read, read_as,
    refuse_folds, streamed,
};
use crate::args::{SplitArgs, TableArgs};
use crate::commands::{in_parts, read_files};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, check_outputs};
use posterior::FitRequest;
use posterior::data::{OutputKind, Split, Table};
use posterior::gp::GpError;
use posterior::models::{ChosenLikelihood, PreparedTable, choose_likelihood};
use posterior::notes::fixes::{LIKELIHOOD_GAUSSIAN, SEVERAL_TARGETS, STREAM_FALSE};
use posterior::options::{Limits, Start, Validation};
use posterior::targets::shared::{SharedKernel, SharedRows};
use posterior::targets::{TargetPlan, TargetsPlan, may_be_several, named, request_of};
use std::collections::BTreeMap;
use std::time::Instant;

/// What `--target` names.
pub(super) enum RequestedTargets {
    /// One column; its name, where it was looked up.
    One(Option<String>),
    /// Several.
    Several(Several),
}

/// Several columns, and the table, where it is read whole.
pub(super) struct Several {
    names: Vec<String>,
    table: Option<Table>,
}

/// Looks up what `--target` names.
pub(super) fn requested_targets(
    arguments: &TableArgs,
    request: &FitRequest,
    remarks: Remarks,
) -> Result<RequestedTargets, Failure> {
    let text = &request.columns.target;
    let one = |name| match arguments.share_kernel {
        true => Err(Failure::usage(format!(
            "--share-kernel is for several targets: name them, {SEVERAL_TARGETS}"
        ))),
        false => Ok(RequestedTargets::One(name)),
    };
    if request.output.of_events() || !may_be_several(text) {
        return one(None);
    }
    let files = &arguments.data[..];
    let first = match in_parts(streamed(arguments, request), files)? {
        true => first_part(arguments)?,
        false => None,
    };
    let (names, table) = match first {
        Some(part) => (named(text, &part)?, None),
        None => {
            let table = read_files(files, arguments.text, request.limits.memory, remarks)?;
            (named(text, &table)?, Some(table))
        }
    };
    match &names[..] {
        [name] => one(Some(name.clone())),
        _ => Ok(RequestedTargets::Several(Several { names, table })),
    }
}

/// Models of all of them.
pub(super) fn fit(
    arguments: &TableArgs,
    request: &FitRequest,
    several: Several,
    held_out: &SplitArgs,
    (remarks, started): (Remarks, Instant),
) -> Result<Fitted, Failure> {
    // From here on Ctrl-C ends whichever fit is under way, or is the next.
    Interrupt::listen();
    let work = Work::of(arguments, request, several, remarks)?;
    let budget = request.limits.time.map(|s| (s - started.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE));
    match &work.table {
        Some(table) if arguments.split.crosses() => {
            let from = (table, work.memory, remarks);
            let (fits, folds) = fit_and_score(&arguments.split, from, budget, |held_out, fold, budget| {
                work.fit(held_out, fold, budget)
            })?;
            Ok((fits, Some(folds)))
        }
        _ => Ok((work.fit(held_out, None, budget)?, None)),
    }
}

/// What is to be done.
struct Work<'a> {
    arguments: &'a TableArgs,
    memory: u64,
    /// What is asked for of each target.
    requests: Vec<FitRequest>,
    table: Option<Table>,
    /// What each target looks like, where the table is in memory.
    looks: Vec<ChosenLikelihood>,
    /// Targets that share a kernel, by their places.
    sharing: Vec<usize>,
    remarks: Remarks,
}

/// What targets share, and the rows of those that do, by their places.
type Shared = (Option<SharedKernel>, BTreeMap<usize, PreparedTable>);

impl<'a> Work<'a> {
    fn of(
        arguments: &'a TableArgs,
        request: &FitRequest,
        Several { names, table }: Several,
        remarks: Remarks,
    ) -> Result<Self, Failure> {
        let mut requests = Vec::with_capacity(names.len());
        for (place, name) in names.iter().enumerate() {
            let mut own = request_of(request, &names, name)?;
            arguments.give(&mut own)?;
            // What is saved on the way is of one target.
            let fresh = own.method.large().is_some_and(|large| large.fresh);
            if let Some(path) = own.method.large_mut().and_then(|large| large.checkpoint.as_mut()) {
                path.as_mut_os_string().push(format!(".target{}", place + 1));
                let there = Some(path.as_path()).filter(|path| path.exists() && !fresh);
                check_outputs(&[(there, OutputKind::Checkpoint)], &arguments.data, arguments.run.force)?;
            }
            requests.push(own);
        }
        let mut looks = Vec::new();
        match &table {
            Some(table) => {
                let rows: Vec<usize> = (0..table.rows()).collect();
                let asked = request.output.likelihood;
                for name in &names {
                    looks.push(choose_likelihood(table, name, &rows, asked, &request.columns)?);
                }
            }
            None => refuse_folds(arguments, "a table that is read part by part")?,
        }
        let numeric = looks.iter().enumerate().filter(|(_, own)| own.likelihood.is_none()).map(|(k, _)| k);
        let sharing: Vec<usize> = if arguments.share_kernel { numeric.collect() } else { Vec::new() };
        if arguments.share_kernel && table.is_none() {
            return Err(Failure::usage(format!(
                "--share-kernel is for tables in memory: {STREAM_FALSE} reads this one whole, or leave it out"
            )));
        }
        if arguments.share_kernel && sharing.len() < 2 {
            let taken = looks.iter().zip(&names).map(|(own, name)| format!("{name}: {}", own.name.as_str()));
            return Err(Failure::usage(format!(
                "--share-kernel is for two numeric targets at least, and these are taken as {}; leave it out, or say {LIKELIHOOD_GAUSSIAN}",
                taken.collect::<Vec<_>>().join(", ")
            )));
        }
        let memory = request.limits.memory;
        Ok(Self { arguments, memory, requests, table, looks, sharing, remarks })
    }

    /// All targets, of the rows that are not held out; a time budget is shared among those that are left.
    fn fit(&self, held_out: &SplitArgs, fold: Option<i64>, budget: Option<f64>) -> Result<Fits, Failure> {
        let begun = Instant::now();
        let left = |parts: usize| {
            budget.map(|s| ((s - begun.elapsed().as_secs_f64()) / parts as f64).max(f64::MIN_POSITIVE))
        };
        let (shared, mut ready) = self.share(held_out, fold, left(1))?;
        let table = self.table.as_ref().map_or(0, Table::memory);
        let rows = ready.values().map(|own| 8 * (own.rows() * (own.names().len() + 3)) as u64);
        let beside = TargetsPlan::beside(rows.fold(table, u64::saturating_add));
        let count = self.requests.len();
        if self.table.is_some() {
            let (mut all, silent) = (beside.clone(), Remarks { silent: true });
            for k in 0..count {
                let own = self.request((k, fold), shared.as_ref(), left(count), all.left(self.memory)?);
                let planned = match ready.get(&k) {
                    Some(rows) => TargetPlan::of_numbers(rows, &own),
                    None => planned(&self.rows(k, &own, held_out, silent)?.0, &own)?,
                };
                all.then(&planned, own.limits.memory)?;
            }
            self.remarks.say(format!("plan: {all}"));
        }
        let (mut plan, mut models, mut apart) = (beside, Vec::new(), Vec::new());
        for k in 0..count {
            let own = self.request((k, fold), shared.as_ref(), left(count - k), plan.left(self.memory)?);
            self.remarks.say(format!("target {} ({} of {count})", own.columns.target, k + 1));
            let (rows, left_out) = match ready.remove(&k) {
                Some(rows) => (Rows::Gaussian(Box::new(rows)), self.left_out(k, held_out)?),
                None => self.rows(k, &own, held_out, self.remarks)?,
            };
            plan.then(&planned(&rows, &own)?, own.limits.memory)?;
            models.push(fitted(rows, &own, self.remarks, self.arguments)?);
            apart.push(left_out);
        }
        let read = self.table.as_ref().map_or_else(Vec::new, |table| read_as(table, &self.looks));
        Ok(Fits { models, left_out: apart, shared, planned_bytes: plan.peak_bytes, read })
    }

    /// What is asked for of a target in a fold, within so many seconds and bytes.
    fn request(
        &self,
        (k, fold): (usize, Option<i64>),
        shared: Option<&SharedKernel>,
        time_budget: Option<f64>,
        memory: u64,
    ) -> FitRequest {
        let mut own = for_fold(&self.requests[k], fold);
        (own.limits.time, own.limits.memory) = (time_budget, memory);
        if let (Some(shared), Some(place)) = (shared, self.sharing.iter().position(|own| *own == k)) {
            own.start = Start::given(shared.of_target(place));
        }
        own
    }

    /// The rows of a target that train, and those that do not.
    fn rows(
        &self,
        k: usize,
        own: &FitRequest,
        held_out: &SplitArgs,
        remarks: Remarks,
    ) -> Result<(Rows, LeftOut), Failure> {
        if let Some(table) = &self.table {
            return parted(table, &self.looks[k], own, held_out, remarks);
        }
        match read(self.arguments, own, held_out, remarks)? {
            Found::Rows(rows, _) => Ok((rows, LeftOut::none())),
            Found::Table(table, looks) => parted(&table, &looks, own, held_out, remarks),
        }
    }

    /// The rows of a target that do not train, of a table in memory.
    fn left_out(&self, k: usize, held_out: &SplitArgs) -> Result<LeftOut, Failure> {
        let Some(table) = &self.table else { return Ok(LeftOut::none()) };
        Ok(LeftOut::of(table, &self.split(table, k, held_out)?.test))
    }

    /// The rows that train and those that do not: of classes each gives its share, so that every target is parted as it would be alone.
    fn split(&self, table: &Table, k: usize, held_out: &SplitArgs) -> Result<Split, Failure> {
        let own = &self.requests[k];
        let strata = self.looks[k].strata(table, &own.columns.target)?;
        held_out.split(Some(table), table.rows(), strata.as_deref(), draws_of(own))
    }

    /// Learns what numeric targets share, where they are to, from the rows that train.
    fn share(&self, held_out: &SplitArgs, fold: Option<i64>, budget: Option<f64>) -> Result<Shared, Failure> {
        let (Some(table), Some(&first)) = (&self.table, self.sharing.first()) else {
            return Ok((None, BTreeMap::new()));
        };
        let alone: Vec<&str> = (0..self.requests.len())
            .filter(|k| !self.sharing.contains(k))
            .map(|k| self.requests[k].columns.target.as_str())
            .collect();
        if !alone.is_empty() {
            self.remarks.say(format!("no numbers, hence with kernels of their own: {}", alone.join(", ")));
        }
        let split = self.split(table, first, held_out)?;
        let asked = self.sharing.iter().map(|k| FitRequest {
            validation: Validation { of_fold: fold.is_some(), ..self.requests[*k].validation },
            ..self.requests[*k].clone()
        });
        let asked = asked.collect::<Vec<_>>();
        let rows = SharedRows::from_table(table, &split.train, &asked)?;
        let memory = TargetsPlan::beside(table.memory()).left(self.memory)?;
        let request = FitRequest { limits: Limits { memory, time: budget }, ..asked[0].clone() };
        let plan = rows.plan(&request)?;
        if plan.peak_bytes > memory {
            return Err(GpError::Memory { plan, limit: memory }.into());
        }
        self.remarks.say(format!("plan of the kernel that is shared: {plan} of memory"));
        let found =
            observed_by(self.remarks, Interrupt::listen(), |observer| rows.search(&request, observer));
        let found = finished(found, &request, self.arguments)?;
        self.remarks.say(found.describe());
        let own = rows.into_own().into_iter().map(PreparedTable::Memory);
        Ok((Some(found), self.sharing.iter().copied().zip(own).collect()))
    }
}

/// What the fit of one target takes.
fn planned(rows: &Rows, request: &FitRequest) -> Result<TargetPlan, Failure> {
    Ok(match rows {
        Rows::Gaussian(rows) => TargetPlan::of_numbers(rows, request),
        Rows::Other(observed) => TargetPlan::of_labels(observed, request)?,
    })
}
