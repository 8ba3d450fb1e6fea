//! Tables of classes by sparse processes on Gaussian pseudo-targets: each class a function, hyperparameters by the collapsed bound, pseudo-counts by the likelihood of labels.
//!
//! Serves tables 3 and 5 and figures 12 and 13 of Bui's *Likelihood approximations via Gaussian approximate inference*.

use crate::kinds::prelude::*;
use crate::labels::{
    ClassScores, Labelled, MadeUp, check_gaussian_labels, probabilities, squared_exponential,
};
use crate::toy::deviation;
use posterior_gp::exact::SeveralObservations;
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::inducing::collapsed::{CollapsedGp, CollapsedOptions, search_collapsed};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::inducing::{KMeansSettings, k_means};
use posterior_likelihoods::Gaussian;
use posterior_likelihoods::gaussianised::Matching;
use posterior_optim::Signal;
use std::path::PathBuf;
use std::time::Instant;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Folder with `TABLE.csv` (the last column is the class), counted from the experiment's file; empty: tables are made up.
    folder: PathBuf,
    /// Random splits.
    splits: usize,
    matchings: Vec<Matching>,
    /// Pseudo-counts that are compared.
    pseudo_counts: Vec<f64>,
    #[serde(rename = "table")]
    tables: Vec<TableSettings>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct TableSettings {
    /// Its name.
    name: String,
    /// Training rows.
    train: usize,
    /// Test rows.
    test: usize,
    /// Inducing points.
    inducing: usize,
    /// Steps of the search for hyperparameters at most.
    steps: usize,
    /// What stands in its place; always, or where there is no folder.
    made_up: MadeUp,
    /// Whether it is made up always.
    #[serde(default)]
    absent: bool,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_gaussian_labels(&self.matchings, &self.pseudo_counts)?;
        check_names("table", self.tables.iter().map(|t| t.name.as_str()))?;
        if self.splits == 0 {
            return refused("`splits` are at least 1");
        }
        if self.tables.iter().any(|t| t.inducing == 0 || t.inducing > t.train || t.steps == 0 || t.train < 10)
        {
            return refused(
                "[[table]]: at least 10 rows for `train`, 1 to as many `inducing` points, `steps` from 1",
            );
        }
        Ok(())
    }
}

/// What one pseudo-count gives on one split.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Tried {
    pseudo_count: f64,
    /// NLL of the labels that were learned from.
    train_nll: f64,
    /// NLL of a fifth of these, learned from the others under the hyperparameters of all.
    left_out_nll: f64,
    test: ClassScores,
    seconds: f64,
}

/// What is told of those that were chosen, in the order of the columns.
const QUANTITIES: [Quantity<Tried>; 6] = [
    ("error", "error, %", |t| Some(t.test.error)),
    ("nll", "NLL", |t| Some(t.test.nll)),
    ("ece_midpoint", "ECE, midpoints", |t| Some(t.test.ece_midpoint)),
    ("ece", "ECE", |t| Some(t.test.ece)),
    ("pseudo_count", "pseudo-count", |t| Some(t.pseudo_count)),
    ("seconds", "", |t| Some(t.seconds)),
];

/// The share of rows that are left out to choose: every fifth.
const FOLDS: usize = 5;

/// Processes of all classes on inducing points under one kernel.
fn condition(
    model: &CollapsedGp,
    data: &SeveralObservations,
    rows: Option<&[usize]>,
) -> Result<Vec<InducingPosterior>> {
    let one = |k: usize| -> Result<_> {
        let own: Observations = data.function(k);
        let own = rows.map_or_else(|| Ok(own.clone()), |rows| own.select(rows))?;
        Ok(model.clone().condition(&own)?.0)
    };
    (0..data.functions()).map(one).collect()
}

fn predict(posteriors: &[InducingPosterior], means: &[f64], x: MatRef<'_, f64>) -> Result<Vec<f64>> {
    let all: Vec<&InducingPosterior> = posteriors.iter().collect();
    let found = InducingPosterior::latent_of_all(&all, x)?;
    let mean = Mat::from_fn(x.nrows(), means.len(), |i, k| means[k] + found[k].mean[(i, 0)]);
    let variance = Mat::from_fn(x.nrows(), means.len(), |i, k| found[k].variance[(i, 0)].max(0.0));
    probabilities(mean.as_ref(), variance.as_ref())
}

/// The mean over columns of their standard deviations, times the root of their number; and the variance of all targets about theirs.
fn beginning(data: &SeveralObservations) -> (f64, f64) {
    let (x, d) = (data.inputs(), data.inputs().ncols());
    let column = |j: usize| deviation(&x.col(j).iter().copied().collect::<Vec<f64>>());
    let lengthscale = (0..d).map(column).sum::<f64>() / d as f64 * (d as f64).sqrt();
    let all: Vec<f64> = (0..data.functions())
        .flat_map(|k| data.function(k).targets().col(0).iter().copied().collect::<Vec<f64>>())
        .collect();
    let variance = mean(all.iter().map(|t| t * t));
    (if lengthscale > 0.0 { lengthscale } else { 1.0 }, variance.max(1e-6))
}

fn try_one(
    table: &TableSettings,
    (train, test): (&Labelled, &Labelled),
    inducing: &Mat<f64>,
    (matching, pseudo_count): (Matching, f64),
) -> Result<Tried> {
    let clock = Instant::now();
    let (data, means) = train.gaussian_labels(matching, pseudo_count)?;
    let (lengthscale, variance) = beginning(&data);
    let kernel = squared_exponential(variance, lengthscale, train.x.ncols())?;
    let noise = Gaussian::new(1e-9, 0.0);
    let mut model = CollapsedGp::new(kernel, MeanForm::Zero, noise, inducing.clone(), 1)?;
    (model.learn_inducing, model.learn_likelihood) = (false, false);
    let mut options = CollapsedOptions::default();
    options.steps.steps = table.steps;
    let parts: Vec<Observations> = (0..data.functions()).map(|k| data.function(k)).collect();
    let found = search_collapsed(model, &parts, &options, None, &mut |_, _| Signal::Continue)?;
    let posteriors = condition(&found.model, &data, None)?;
    let train_nll = train.scores(&predict(&posteriors, &means, train.x.as_ref())?)?.nll;
    let (left, kept): (Vec<usize>, Vec<usize>) = (0..train.y.len()).partition(|i| i % FOLDS == 0);
    let others = condition(&found.model, &data, Some(&kept))?;
    let left = train.select(&left);
    let left_out_nll = left.scores(&predict(&others, &means, left.x.as_ref())?)?.nll;
    let scores = test.scores(&predict(&posteriors, &means, test.x.as_ref())?)?;
    let seconds = clock.elapsed().as_secs_f64();
    Ok(Tried { pseudo_count, train_nll, left_out_nll, test: scores, seconds })
}

/// Every pseudo-count of one matching on one split.
fn split(
    settings: &Settings,
    table: &TableSettings,
    all: &Labelled,
    (matching, split): (Matching, usize),
    (stage, context): (&str, &mut Context<'_>),
) -> Result<Vec<Tried>> {
    let streams = Streams::new(context.seed).child("experiment/split", split as u64);
    let (mut train, mut test) = all.split((table.train, table.test), streams)?;
    train.scale_with(&mut test);
    let inducing = k_means(train.x.as_ref(), table.inducing, KMeansSettings::default(), streams)?;
    let mut out = Vec::new();
    for (done, &pseudo_count) in settings.pseudo_counts.iter().enumerate() {
        context.step(stage, done, settings.pseudo_counts.len())?;
        out.push(try_one(table, (&train, &test), &inducing, (matching, pseudo_count))?);
    }
    Ok(out)
}

fn least(tried: &[Tried], by: fn(&Tried) -> f64) -> Option<Tried> {
    tried.iter().copied().min_by(|a, b| by(a).total_cmp(&by(b)))
}

/// Fits every matching with every pseudo-count to every split of every table.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let mut out = Measured::default();
    for (index, table) in settings.tables.iter().enumerate() {
        let made_up = table.absent || settings.folder.as_os_str().is_empty();
        let all = match made_up {
            true => Labelled::made_up(
                &table.made_up,
                Streams::new(context.seed).child("experiment/table", index as u64),
            )?,
            false => {
                Labelled::read(&context.folder.join(&settings.folder).join(format!("{}.csv", table.name)))?
            }
        };
        let what = if made_up { "made up, " } else { "" };
        out.facts.push(SummaryRow::new(
            table.name.clone(),
            format!(
                "{what}{} and {} rows of {}, {} columns, {} classes",
                table.train,
                table.test,
                all.y.len(),
                all.x.ncols(),
                all.classes
            ),
        ));
        let mut lines = Vec::new();
        for &matching in &settings.matchings {
            let mut by_split: Vec<Vec<Tried>> = Vec::new();
            for number in 0..settings.splits {
                let stage = format!("{}, {}, split {number}", table.name, matching.name());
                let depends = (table, made_up, &settings.folder, &settings.pseudo_counts);
                by_split.push(context.once(&stage, &depends, |context| {
                    split(settings, table, &all, (matching, number), (&stage, context))
                })?);
            }
            let chosen = |by: fn(&Tried) -> f64| -> Vec<Tried> {
                by_split.iter().filter_map(|tried| least(tried, by)).collect()
            };
            let mut found = Map::new();
            put_all(&mut found, "", &chosen(|t| t.train_nll), &QUANTITIES)?;
            put_all(&mut found, "left_out_", &chosen(|t| t.left_out_nll), &QUANTITIES)?;
            out.numbers["tables"][&table.name][matching.name()] = Value::Object(found);
            let nll = |k: usize| mean(by_split.iter().map(|tried| tried[k].test.nll));
            let along = (0..settings.pseudo_counts.len()).map(nll).collect();
            lines.push(Line::new(matching.name(), settings.pseudo_counts.clone(), along));
            out.series[&table.name][matching.name()] = json!(by_split);
        }
        out.figures.push(Item::from(
            Curves::new(format!("{}: NLL of test rows", table.name), "pseudo-count", "NLL", lines)
                .logarithmic(true, false),
        ));
        let by_choice = |title: &str, prefix: &str| {
            NumberTable::by_name(
                &format!("{}: {title}", table.name),
                "matching",
                &format!("tables.{}", table.name),
                settings.matchings.iter().map(|m| m.name()),
                &shown_columns(prefix, &QUANTITIES),
                "Means over splits with standard errors.",
            )
        };
        out.tables.push(by_choice("pseudo-counts by the training labels", ""));
        out.tables.push(by_choice("pseudo-counts by labels of rows left out", "left_out_"));
    }
    Ok(out)
}
