//! Error bars of trained networks by every method, on the same rows: tables whose networks are trained here, and networks that came with their images.
//!
//! Serves the tables of VaLLA and of fixed-mean processes (figures 4 to 6 and table 1 of the former). Rows that a network has not seen are of two kinds: what methods choose by (the noise of the plain network, a
//! temperature, when to stop) is chosen on the validation rows, and all are scored on the test rows, which choose nothing.
//!
//! | file | what |
//! |---|---|
//! | `task` | rows and networks |
//! | `members` | networks that are trained |
//! | `method` | what is fitted, and its scores |
//! | `scores` | scores on test rows, coverage of intervals |
//! | `ranks` | who is first in a task, and on average |
//! | `beyond` | corrupted and turned images, joint scores, reliability |

mod beyond;
mod members;
mod method;
mod ranks;
mod scores;
mod task;

use crate::kinds::prelude::*;
use method::{Found, MethodSettings};
use ranks::Ranks;
use task::TaskSettings;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    #[serde(rename = "task")]
    tasks: Vec<TaskSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("task", self.tasks.iter().map(|t| t.name.as_str()))?;
        check_names("method", self.methods.iter().map(|m| m.name.as_str()))?;
        self.tasks.iter().try_for_each(TaskSettings::check)?;
        for method in &self.methods {
            method.check()?;
            if let Some(name) =
                method.tasks.iter().flatten().find(|n| !self.tasks.iter().any(|t| t.name == **n))
            {
                return refused(format!("[[method]] `{}`: there is no task `{name}`", method.name));
            }
        }
        if self.methods.first().is_none_or(|m| !m.is_network()) {
            return refused(
                "the first [[method]] is the network alone (`baseline = \"network\"`): others are compared with it",
            );
        }
        Ok(())
    }
}

/// Fits every method to every task.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (mut numbers, mut tables, mut facts) = (Map::new(), Vec::new(), Vec::new());
    let (mut figures, mut series, mut ranks) = (Vec::new(), Map::new(), Ranks::default());
    for task_settings in &settings.tasks {
        let name = &task_settings.name;
        // Read and trained when the first part asks for it: a run that has all its parts needs neither.
        let mut task = None;
        let (mut own, mut shown, mut others) = (Map::new(), Vec::new(), Vec::new());
        let mut scored = Vec::new();
        let mut alone: Option<Found> = None;
        for method in settings.methods.iter().filter(|m| m.is_for(name)) {
            let stage = format!("{name}: {}", method.name);
            let found: Found = context.once(&stage, &(task_settings, method), |context| {
                if task.is_none() {
                    task = Some(task_settings.open(context)?);
                }
                match &task {
                    Some(task) => method.run(task, &stage, context),
                    None => refused("there is no task"),
                }
            })?;
            let first = alone.get_or_insert_with(|| found.clone());
            own.insert(method.name.clone(), found.numbers(first));
            shown.push(method.name.as_str());
            context.notes.extend(found.remarks(&stage));
            scored.push((method.name.clone(), found.scored.clone()));
            others.extend(found.beyond.clone().map(|beyond| (method.name.clone(), beyond)));
        }
        facts.push(SummaryRow::new(format!("{name}: rows"), task_settings.describe()));
        tables.push(NumberTable::by_name(
            name,
            "method",
            &format!("tasks.{name}"),
            shown.iter().copied(),
            task_settings.columns(),
            "Scores on test rows, which choose nothing. NLL: nats; `difference` is to the network alone, with the noise that it leaves in training. Seconds are of the fit and of predicting all test rows; memory is the most that the process held meanwhile, data and network included.",
        ));
        ranks.add(&mut own);
        figures.extend(scores::coverage_figure(name, &scored));
        figures.extend(beyond::figures(name, &others));
        series.insert(name.clone(), json!(others));
        numbers.insert(name.clone(), Value::Object(own));
    }
    tables.push(ranks.table(settings.methods.iter().map(|m| m.name.as_str())));
    Ok(Measured {
        numbers: json!({ "tasks": numbers, "ranks": ranks.numbers() }),
        series: Value::Object(series),
        tables,
        figures,
        facts,
        notes: Vec::new(),
    })
}
