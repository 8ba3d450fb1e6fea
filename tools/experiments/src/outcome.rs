//! What came out, as files and tables.

use super::measured::Measured;
use super::numbers::{cell, shown};
use super::{ExpectationResult, ExperimentError, PublishedResult};
use posterior_data::{DataError, replace_atomically, to_shown_value};
use posterior_report::{FiguresReport, Item, Note, Report, SummaryRow, Table};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The numbers of one seed.
#[derive(Clone, Debug, Serialize)]
pub struct SeedNumbers {
    /// The seed.
    pub seed: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Its numbers.
    pub numbers: Value,
    /// The curves behind its pictures.
    pub series: Value,
}

/// Everything that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the experiment's file.
    pub name: String,
    /// Heading.
    pub title: String,
    /// What was reproduced.
    pub source: String,
    /// What is to be seen.
    pub description: String,
    /// Which code ran it.
    pub kind: String,
    /// Whether it was run with smaller settings.
    pub quick: bool,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Seconds in all.
    pub seconds: f64,
    /// Parts that an earlier run had finished.
    pub reused: usize,
    /// What differs from the source.
    pub reductions: Vec<String>,
    /// The settings as they were run.
    pub settings: Value,
    /// Published numbers beside ours.
    pub published: Vec<PublishedResult>,
    /// What was expected, and whether it holds.
    pub expectations: Vec<ExpectationResult>,
    /// Means over seeds.
    pub mean: Value,
    /// Standard errors over seeds; null for a single one.
    pub standard_error: Value,
    /// All numbers.
    pub by_seed: Vec<SeedNumbers>,
    #[serde(skip)]
    pub(crate) measured: Measured,
}

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// To be looked at.
    pub report: PathBuf,
    /// Every number.
    pub results: PathBuf,
}

impl Outcome {
    /// Whether every expectation holds.
    pub fn holds(&self) -> bool {
        self.expectations.iter().all(|e| e.holds == Some(true))
    }

    /// The tables: expectations, published numbers, and those of the kind.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        let texts = |head: &[&str]| head.iter().map(|t| t.to_string()).collect::<Vec<_>>();
        let number = |v: Option<f64>| v.map_or_else(|| "not found".into(), shown);
        for table in &self.measured.tables {
            let row = |(name, paths): &(String, Vec<String>)| {
                let cells = paths.iter().map(|path| cell(&self.mean, &self.standard_error, path));
                std::iter::once(name.clone()).chain(cells).collect()
            };
            tables.push(Table {
                title: table.title.clone(),
                head: table.head.clone(),
                rows: table.rows.iter().map(row).collect(),
                caption: table.caption.clone(),
            });
        }
        if !self.published.is_empty() {
            let row = |p: &PublishedResult| {
                let own = &p.published;
                vec![own.what.clone(), shown(own.value), number(p.found), own.note.clone()]
            };
            tables.push(Table {
                title: "Published numbers beside ours".into(),
                head: texts(&["number", "published", "ours", "remark"]),
                rows: self.published.iter().map(row).collect(),
                caption: "What keeps the two from being equal is listed under the reductions.".into(),
            });
        }
        if !self.expectations.is_empty() {
            let row = |e: &ExpectationResult| {
                let own = &e.expectation;
                let relation = match (&own.above, &own.below, own.within) {
                    (Some(_), _, _) => "above".to_string(),
                    (_, Some(_), _) => "below".to_string(),
                    (_, _, within) => format!("within {} % of", shown(100.0 * within.unwrap_or(0.0))),
                };
                let holds = e.holds.map_or("cannot be told", |h| if h { "yes" } else { "no" });
                let numbers = format!("{} {relation} {}", number(e.found), number(e.compared));
                vec![own.claim.clone(), numbers, holds.into()]
            };
            tables.push(Table {
                title: "What should come out".into(),
                head: texts(&["claim", "found", "holds"]),
                rows: self.expectations.iter().map(row).collect(),
                caption: String::new(),
            });
        }
        tables
    }

    /// The report.
    pub fn report(&self) -> Report {
        let fact = SummaryRow::new;
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let mut summary = vec![
            fact("Source", self.source.clone()),
            fact("Seeds", seeds.join(", ")),
            fact("Seconds", shown(self.seconds)),
        ];
        summary.extend(self.measured.facts.clone());
        let held = self.expectations.iter().filter(|e| e.holds == Some(true)).count();
        if !self.expectations.is_empty() {
            summary.push(fact("Expectations that hold", format!("{held} of {}", self.expectations.len())));
        }
        let mut notes: Vec<Note> = self
            .reductions
            .iter()
            .map(|r| Note::information(format!("Differs from the source: {r}")))
            .collect();
        notes.extend(self.measured.notes.clone());
        let mut items = self.measured.figures.clone();
        items.extend(self.tables().into_iter().map(Item::Table));
        let section = FiguresReport {
            title: self.title.clone(),
            text: self.description.clone(),
            summary,
            items,
            notes,
        };
        let quick = if self.quick { ": a quick run with smaller settings" } else { "" };
        Report::new(self.title.clone(), format!("After {}{quick}", self.source), vec![section.into()])
    }

    /// Writes `report.html` and `results.json` into a folder, which is created if needed; each file in one atomic step.
    ///
    /// # Errors
    /// When the folder cannot be created or a file not be written.
    pub fn write(&self, folder: &Path) -> Result<Written, ExperimentError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| ExperimentError::Create { path: folder.into(), source })?;
        let (report, results) = (folder.join("report.html"), folder.join("results.json"));
        replace_atomically(&results, |file| {
            serde_json::to_writer_pretty(&mut *file, &to_shown_value(self)?)?;
            file.write_all(b"\n")
        })
        .and_then(|()| replace_atomically(&report, |file| file.write_all(self.report().to_html().as_bytes())))
        .map_err(DataError::from)?;
        Ok(Written { report, results })
    }
}
