//! Tables in random parts or standard folds by methods that learn everything themselves: deep kernels and generalised inference beside plain processes, and what more features are worth.
//!
//! Serves table 1 of the deep basis kernels, the question of how many features they need, and the regression benchmarks that Wu's *Generalised variational inference* announced. Each fit is a part of its own, so that days of them can be interrupted.

mod choices;

use crate::gaussian::MethodSettings;
use crate::kinds::prelude::*;
use crate::learned::{
    FitSettings, SCORES, check_learned, gaussian_process, has_kernel, score_columns, scored,
};
use crate::splits::{FOLDS, InputScale, Rows, ScaledBy};
use crate::tables::Fold;
use choices::ChoiceSettings;
use posterior_gp::exact::EmbeddedPosterior;
use posterior_kernels::KernelExpression;
use posterior_metrics::{Average, RegressionScores};
use posterior_models::{Method, Predictor, Prepared, peak_memory_bytes, reset_peak_memory};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Folder with `TABLE.csv.gz` (the last column is the target), counted from the experiment's file; empty: Friedman's problem stands in for every table.
    folder: PathBuf,
    /// Most rows of a table, chosen by chance; all if absent. As many are made up without a folder.
    rows: Option<usize>,
    /// Random partitions of each table; without them there are `folds`.
    splits: Option<usize>,
    /// Standard folds (`TABLE.fold.csv.gz`, 0 to 9) that are test rows in turn; tables that are made up are parted into ten.
    #[serde(default)]
    folds: Vec<usize>,
    /// The share of rows to test on.
    #[serde(default = "fifth")]
    test: f64,
    /// How inputs are scaled.
    #[serde(default)]
    inputs: InputScale,
    /// Which rows say how inputs and target are scaled.
    #[serde(default)]
    scaled_by: ScaledBy,
    /// The kernel of methods that have one.
    kernel: Option<KernelExpression>,
    /// Kernels by method, where they are not all the same.
    #[serde(default)]
    kernel_of: BTreeMap<String, KernelExpression>,
    /// Most seconds of each fit.
    seconds: Option<f64>,
    /// Most memory of each fit, gigabytes.
    #[serde(default = "eight")]
    memory: f64,
    #[serde(rename = "table")]
    tables: Vec<TableSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
    /// Most training rows by method, for those that cannot take all.
    #[serde(default)]
    rows_of: BTreeMap<String, usize>,
    ranks: Option<RankSettings>,
    /// Choices among methods by validation.
    #[serde(default, rename = "choice")]
    choices: Vec<ChoiceSettings>,
}

/// A table.
#[derive(Clone, Debug, Deserialize)]
struct TableSettings {
    /// Its name, as in the name of its file.
    name: String,
    /// Names of the methods that it is given to; all if absent.
    methods: Option<Vec<String>>,
    /// Most seconds of each fit to it, instead of those of all tables.
    seconds: Option<f64>,
}

/// Numbers of features, or of inducing points, that some methods are tried with.
#[derive(Clone, Debug, Deserialize)]
struct RankSettings {
    /// Which methods.
    methods: Vec<String>,
    /// How many, ascending.
    values: Vec<usize>,
}

fn fifth() -> f64 {
    0.2
}

fn eight() -> f64 {
    8.0
}

impl Settings {
    fn method(&self, name: &str) -> Result<&MethodSettings> {
        let found = self.methods.iter().find(|m| m.name == name);
        found.ok_or_else(|| {
            ExperimentError::Setting(format!("there is no [[method]] `{name}`, which other settings name"))
        })
    }

    /// The kernel of a method, if it has one.
    fn kernel_of(&self, method: &MethodSettings) -> Option<&KernelExpression> {
        let own = self.kernel_of.get(&method.name).or(self.kernel.as_ref());
        own.filter(|_| has_kernel(&method.options))
    }

    /// Parts of a table.
    fn parts(&self) -> usize {
        self.splits.unwrap_or(self.folds.len())
    }

    /// The methods that a table is given to.
    fn methods_of(&self, table: &TableSettings) -> Vec<&MethodSettings> {
        let own = table.methods.as_ref();
        self.methods.iter().filter(|m| own.is_none_or(|own| own.contains(&m.name))).collect()
    }
}

/// The method with another number of features.
fn with_rank(method: &MethodSettings, rank: usize) -> Result<MethodSettings> {
    let key = match &method.options {
        Method::Sgpr(_) | Method::Svgp(_) => "inducing",
        Method::Dbk(_) | Method::Svdbk(_) | Method::Dkl(_) | Method::Svdkl(_) => "rank",
        other => {
            return refused(format!(
                "[ranks]: `{}` is {}, which has no features to count",
                method.name,
                other.name()
            ));
        }
    };
    method.with(&Table::from_iter([(key.to_string(), toml::Value::Integer(rank as i64))]))
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_learned(&self.methods, self.seconds)?;
        check_names("table", self.tables.iter().map(|t| t.name.as_str()))?;
        match (self.splits, &self.folds[..]) {
            (Some(1..=1000), []) => {}
            (None, folds) if !folds.is_empty() && folds.iter().all(|fold| *fold < FOLDS) => {}
            _ => {
                return refused(
                    "either `splits` from 1 to 1000, or `folds`, at least one number from 0 to 9: random partitions and standard folds are two things",
                );
            }
        }
        if !(self.test > 0.0 && self.test < 1.0) {
            return refused("`test` is a share of the rows, between 0 and 1");
        }
        let limits = self.tables.iter().map(|t| t.seconds).chain([Some(self.memory)]);
        if limits.flatten().any(|limit| !positive(limit)) {
            return refused("`seconds` of a table and `memory` (in gigabytes) must be positive");
        }
        if self.rows.is_some_and(|rows| rows < 20) || self.rows_of.values().any(|rows| *rows < 10) {
            return refused("`rows` are at least 20, those of [rows_of] at least 10");
        }
        if self.folder.as_os_str().is_empty() && self.rows.is_none_or(|rows| rows > 100_000) {
            return refused("data that are made up need `rows`, at most 100000");
        }
        let of_tables = self.tables.iter().flat_map(|t| t.methods.iter().flatten());
        let of_choices = self.choices.iter().flat_map(|choice| &choice.methods);
        let named = self.rows_of.keys().chain(self.kernel_of.keys()).chain(of_tables).chain(of_choices);
        named
            .chain(self.ranks.iter().flat_map(|r| &r.methods))
            .try_for_each(|n| self.method(n).map(|_| ()))?;
        if self.tables.iter().any(|t| self.methods_of(t).is_empty()) {
            return refused("[[table]]: `methods` names at least one");
        }
        self.choices.iter().try_for_each(ChoiceSettings::check)?;
        let names = self.methods.iter().map(|m| m.name.as_str());
        check_names("method", names.chain(self.choices.iter().map(|choice| choice.name.as_str())))?;
        let Some(ranks) = &self.ranks else { return Ok(()) };
        let ascending = ranks.values.windows(2).all(|w| w[0] < w[1]);
        if ranks.methods.is_empty() || ranks.values.first().is_none_or(|r| *r == 0) || !ascending {
            return refused("[ranks]: at least one of `methods`, and `values` from 1, ascending");
        }
        for name in &ranks.methods {
            with_rank(self.method(name)?, ranks.values[0])?;
        }
        Ok(())
    }
}

/// What one method found on one part.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    scores: RegressionScores,
    /// Of the fit.
    seconds: f64,
    steps: usize,
    /// Rows to learn from, those included that the fit sets aside.
    rows: usize,
    /// Features or inducing points.
    points: Option<usize>,
    /// Most memory of the whole process while it fitted and predicted.
    peak_bytes: Option<u64>,
    /// Of learned features: which way of training was chosen, by how many rows, and in how many directions features differ.
    chosen: Option<(String, usize, f64)>,
    /// Mean negative log density of the rows that the fit set aside and did not learn from, where it did.
    #[serde(default)]
    validation: Option<f64>,
    /// Why it ended.
    ended: String,
}

/// One fit, and what is known of it elsewhere.
struct Task<'a> {
    table: &'a TableSettings,
    split: usize,
    fold: &'a Fold,
}

impl Settings {
    /// Fits a method to a part of a table and scores it; from the journal, where an equal fit (of whatever name) was finished before. None where the fit was refused or failed, with a note.
    fn found(
        &self,
        task: &Task<'_>,
        method: &MethodSettings,
        context: &mut Context<'_>,
    ) -> Result<Option<Found>> {
        let stage = format!("{}, split {}, {}", task.table.name, task.split, method.name);
        let seconds = method.seconds(task.table.seconds.or(self.seconds));
        let kernel = self.kernel_of(method).map(ToString::to_string);
        let most = self.rows_of.get(&method.name);
        let data = (&self.folder, self.rows, self.test, self.inputs, self.scaled_by);
        let depends = (
            (&task.table.name, task.split, data),
            (&method.options, method.initial_noise, kernel, seconds, self.memory, most),
        );
        let found = context.once("deep-tables", &depends, |context| {
            self.fit(task, method, (seconds, most), &stage, context)
        });
        match found {
            Ok(found) => Ok(Some(found)),
            // One fit that does not fit into memory, or diverges, must not take hundreds of others with it.
            Err(
                error @ (ExperimentError::Model(_) | ExperimentError::Gp(_) | ExperimentError::Metrics(_)),
            ) => {
                context.notes.push(Note::warning(format!("{stage}: no result; {error}")));
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    fn fit(
        &self,
        task: &Task<'_>,
        method: &MethodSettings,
        (seconds, most): (Option<f64>, Option<&usize>),
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Found> {
        let all = &task.fold.train;
        let rows = most.map_or(all.rows(), |most| (*most).min(all.rows()));
        let train = if rows < all.rows() { all.select(&(0..rows).collect::<Vec<_>>())? } else { all.clone() };
        let asked = FitSettings {
            kernel: self.kernel_of(method),
            seconds,
            memory: (self.memory * (1u64 << 30) as f64) as u64,
            seed: context.seed.wrapping_add(task.split as u64),
        };
        reset_peak_memory();
        let model = method.learn(Prepared::standardised(train), &asked, stage, context)?;
        let (process, summary) = gaussian_process(&model)?;
        let scores = scored(process.predictor(), task.fold.test.as_ref(), &task.fold.truth)?;
        let predictor: &dyn Predictor = process.predictor();
        // Reported only of methods whose points are not the training rows.
        let rows_carry =
            predictor.training().is_some() || predictor.posterior::<EmbeddedPosterior>().is_some();
        let points = (!rows_carry).then(|| predictor.support());
        let scalable = summary.scalable.as_ref();
        let deep = scalable.and_then(|s| s.deep.as_ref());
        let gvi = scalable.and_then(|s| s.gvi.as_ref());
        let way = deep.map(|d| (d.chosen.clone(), d.validation_rows, d.diagnostics.effective_rank));
        let validation = gvi.and_then(|g| g.best()).map(|best| best.tempered_nll.unwrap_or(best.nll));
        Ok(Found {
            scores,
            seconds: summary.seconds,
            steps: summary.steps,
            rows,
            points,
            peak_bytes: peak_memory_bytes(),
            chosen: way.or(gvi.map(|g| (g.chosen.clone(), g.validation_rows, g.prior.inducing as f64))),
            validation,
            ended: scalable.map_or_else(|| summary.reason.to_string(), |s| s.ended.clone()),
        })
    }
}

/// What is averaged over partitions beside scores.
const QUANTITIES: [Quantity<Found>; 7] = [
    ("rows", "rows to learn from", |f| Some(f.rows as f64)),
    ("set_aside", "of which set aside", |f| Some(f.chosen.as_ref()?.1 as f64)),
    ("points", "features or inducing points", |f| Some(f.points? as f64)),
    ("effective_rank", "effective rank", |f| Some(f.chosen.as_ref()?.2)),
    ("steps", "steps", |f| Some(f.steps as f64)),
    ("seconds", "", |f| Some(f.seconds)),
    ("megabytes", "", |f| Some(f.peak_bytes? as f64 / 1e6)),
];

/// Averages over partitions.
fn summary(found: &[Found], splits: usize) -> Result<Value> {
    let mut out = Map::new();
    out.insert("splits_counted".into(), json!(found.len()));
    out.insert("failed".into(), json!(splits - found.len()));
    if found.is_empty() {
        return Ok(Value::Object(out));
    }
    put_all(&mut out, "", &found.iter().map(|f| f.scores).collect::<Vec<_>>(), &SCORES)?;
    put_all(&mut out, "", found, &QUANTITIES)?;
    let ways = || found.iter().filter_map(|f| Some(f.chosen.as_ref()?.0.as_str()));
    if ways().next().is_some() {
        out.insert("chosen".into(), json!(counted(ways())));
    }
    out.insert("ended".into(), json!(counted(found.iter().map(|f| f.ended.as_str()))));
    let each =
        found.iter().map(|f| json!({"nll": f.scores.nll, "rmse": f.scores.rmse, "seconds": f.seconds}));
    out.insert("each".into(), Value::Array(each.collect()));
    Ok(Value::Object(out))
}

/// Texts with how often they occur, the most frequent first.
fn counted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = 0;
    for text in texts {
        *counts.entry(text).or_default() += 1;
        all += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = |(text, count): (&str, usize)| {
        if all == count { text.to_string() } else { format!("{text} ({count} of {all})") }
    };
    counts.into_iter().map(shown).collect::<Vec<_>>().join("; ")
}

/// What methods found by number of features.
type RankCurve<'a> = (&'a str, Vec<(usize, Vec<Found>)>);

/// A score against the number of features.
fn along_ranks(table: &str, y: &str, courses: &[RankCurve<'_>], score: impl Fn(&Found) -> f64) -> Item {
    let line = |(name, by_rank): &RankCurve<'_>| {
        let mut line = Line::new(*name, Vec::new(), Vec::new());
        for (rank, found) in by_rank {
            let Ok(average) = Average::of(&found.iter().map(&score).collect::<Vec<f64>>()) else { continue };
            line.x.push(*rank as f64);
            line.y.push(average.mean);
            line.error.push(average.standard_error.unwrap_or(0.0));
        }
        line
    };
    Curves::new(format!("{table}: {y} by number of features"), "features", y, courses.iter().map(line).collect())
        .logarithmic(true, false)
        .captioned("Means over partitions, with a band of one standard error on each side. Each point is a fit of its own.")
        .into()
}

/// All of one table, also by number of features.
fn of_table(
    settings: &Settings,
    index: usize,
    measured: &mut Measured,
    context: &mut Context<'_>,
) -> Result<()> {
    let table = &settings.tables[index];
    let streams = Streams::new(context.seed).child("experiment/table", index as u64);
    let made_up = settings.folder.as_os_str().is_empty();
    let all = match made_up {
        true => Rows::made_up(settings.rows.unwrap_or(20), streams),
        false if settings.folds.is_empty() => {
            Rows::read(&context.folder.join(&settings.folder), &table.name)?
        }
        false => Rows::read_folded(&context.folder.join(&settings.folder), &table.name)?,
    };
    let whole = all.y.len();
    let all = all.at_most(settings.rows, streams);
    let methods = settings.methods_of(table);
    let swept: Vec<&MethodSettings> = match &settings.ranks {
        Some(ranks) => methods.iter().copied().filter(|m| ranks.methods.contains(&m.name)).collect(),
        None => Vec::new(),
    };
    let ranks: &[usize] = settings.ranks.as_ref().map_or(&[], |r| &r.values);
    let mut found: Vec<Vec<Option<Found>>> = vec![Vec::new(); methods.len()];
    let mut by_rank: Vec<RankCurve<'_>> =
        swept.iter().map(|m| (m.name.as_str(), ranks.iter().map(|r| (*r, Vec::new())).collect())).collect();
    // All methods on one partition before the next: what is interrupted can be compared as far as it has come.
    let units = (settings.inputs, settings.scaled_by);
    for part in 0..settings.parts() {
        let (split, fold) = match settings.folds.get(part) {
            Some(fold) => (*fold, all.fold(*fold, units, streams)?),
            None => (part, all.split((part, settings.test), units, streams)?),
        };
        if part == 0 {
            let (train, test) = (fold.train.rows(), fold.test.nrows());
            let of = if whole > all.y.len() { format!(" of {whole}") } else { String::new() };
            let what = if made_up { "made up, " } else { "" };
            let text = format!(
                "{what}{train} rows to learn from and {test} to test on{of}, {} columns",
                fold.test.ncols()
            );
            measured.facts.push(SummaryRow::new(table.name.clone(), text));
        }
        let task = Task { table, split, fold: &fold };
        for (method, found) in methods.iter().zip(&mut found) {
            found.push(settings.found(&task, method, context)?);
        }
        for (method, (_, course)) in swept.iter().zip(&mut by_rank) {
            for (rank, found) in course {
                found.extend(settings.found(&task, &with_rank(method, *rank)?, context)?);
            }
        }
    }
    for (method, found) in methods.iter().zip(&found) {
        let found: Vec<Found> = found.iter().flatten().cloned().collect();
        measured.numbers["tables"][&table.name][&method.name] = summary(&found, settings.parts())?;
    }
    let mut names: Vec<&str> = methods.iter().map(|m| m.name.as_str()).collect();
    let of_table = |choice: &&ChoiceSettings| methods.iter().any(|m| choice.methods.contains(&m.name));
    for choice in settings.choices.iter().filter(of_table) {
        let on_part = |part: usize| {
            choice
                .choose(methods.iter().zip(&found).map(|(m, found)| (m.name.as_str(), found[part].as_ref())))
        };
        let chosen: Vec<Found> = (0..settings.parts()).filter_map(on_part).collect();
        measured.numbers["tables"][&table.name][&choice.name] = summary(&chosen, settings.parts())?;
        names.push(&choice.name);
    }
    for (name, course) in &by_rank {
        for (rank, found) in course {
            measured.numbers["ranks"][&table.name][*name][rank.to_string()] =
                summary(found, settings.parts())?;
        }
    }
    let columns = score_columns(&[
        ("seconds_shown", "seconds"),
        ("megabytes_shown", "MB of the process"),
        ("splits_counted", "splits"),
    ]);
    measured.tables.push(NumberTable::by_name(
        &table.name,
        "method",
        &format!("tables.{}", table.name),
        names.iter().copied(),
        &columns,
        "Means over partitions with standard errors, in units of the target's standard deviation. Memory is the largest of the whole program, data included, while a method fitted and predicted.",
    ));
    let mut how = shown_columns("", &QUANTITIES);
    let more = [("ended", "ended by"), ("chosen", "chosen way of training"), ("failed", "without a result")];
    how.extend(more.map(|(key, head)| (key.to_string(), head)));
    measured.tables.push(NumberTable::by_name(
        &format!("{}: how fits went", table.name),
        "method",
        &format!("tables.{}", table.name),
        names.iter().copied(),
        &how,
        "Learned features set rows aside of those that they are given, to stop and to choose by.",
    ));
    if !by_rank.is_empty() {
        measured.figures.push(along_ranks(&table.name, "NLL", &by_rank, |f| f.scores.nll));
        measured.figures.push(along_ranks(&table.name, "RMSE", &by_rank, |f| f.scores.rmse));
        measured.figures.push(along_ranks(&table.name, "seconds", &by_rank, |f| f.seconds));
        for (name, course) in &by_rank {
            let names: Vec<String> = course.iter().map(|(rank, _)| rank.to_string()).collect();
            let columns = score_columns(&[
                ("effective_rank_shown", "effective rank"),
                ("seconds_shown", "seconds"),
                ("splits_counted", "splits"),
            ]);
            measured.tables.push(NumberTable::by_name(
                &format!("{}: {name} by number of features", table.name),
                "features",
                &format!("ranks.{}.{name}", table.name),
                names,
                &columns,
                "Means over partitions with standard errors.",
            ));
        }
    }
    Ok(())
}

/// Fits every method to every partition of every table.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let mut measured = Measured { numbers: json!({"tables": {}, "ranks": {}}), ..Measured::default() };
    for index in 0..settings.tables.len() {
        of_table(settings, index, &mut measured, context)?;
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn texts_are_counted() {
        assert_eq!(counted(["a", "b", "b"].into_iter()), "b (2 of 3); a (1 of 3)");
        assert_eq!(counted(["a", "a"].into_iter()), "a");
    }
}
