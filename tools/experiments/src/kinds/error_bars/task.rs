//! Rows and networks of a task.

use super::beyond::BeyondSettings;
use super::members::Recipe;
use super::scores::{Columns, OF_CLASSES, OF_NUMBERS};
use crate::kinds::prelude::*;
use crate::pictures::{self, Pictures};
use crate::tables::{SetSettings, Source};
use crate::training::TrainingSettings;
use posterior_data::{ArrayValues, NumericArray};
use posterior_gp::Observations;
use posterior_models::laplace::{Arrays, LikelihoodKind, NumberFormat};
use posterior_models::{ModelData, Truth};
use posterior_networks::train::{Loss, Tabular, Targets};
use posterior_networks::{Array, Network};
use rand::seq::SliceRandom;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use toml::Table;

/// One `[[task]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TaskSettings {
    /// Its name in tables.
    pub(super) name: String,
    table: Option<TableSettings>,
    images: Option<ImageSettings>,
}

/// A table in standard folds with a network that is trained here.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct TableSettings {
    /// Folder with `NAME.csv.gz` and `NAME.fold.csv.gz`, counted from the experiment's file; empty: made up.
    folder: PathBuf,
    /// The name of its files; that of the task if absent.
    name: Option<String>,
    /// Columns beside the target.
    columns: usize,
    /// Rows for training and validation: at most so many, by chance; all if absent. As many are made up.
    rows: Option<usize>,
    /// Share of them that the network is not trained on.
    validation: f64,
    /// The network without the sizes of its ends.
    network: Table,
    training: TrainingSettings,
    /// The fold for testing, 0 to 9; the same for all seeds.
    fold: usize,
    /// Networks that are trained: seed `s` gives error bars to the one with number `s` (of as many, in turn), and ensembles are of all of them.
    members: usize,
}

/// Images with a network that came with them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct ImageSettings {
    /// The network's file.
    network: PathBuf,
    /// Its training images (IDX with `labels`, or CIFAR).
    data: Vec<PathBuf>,
    #[serde(default)]
    labels: Vec<PathBuf>,
    /// The first so many of them; all if absent.
    train: Option<usize>,
    /// Test images: the first half is for validation, the second is scored.
    test: Vec<PathBuf>,
    #[serde(default)]
    test_labels: Vec<PathBuf>,
    /// The first so many of them; all if absent.
    tested: Option<usize>,
    /// Images of another kind, to be told apart.
    foreign: Vec<PathBuf>,
    #[serde(default)]
    foreign_labels: Vec<PathBuf>,
    classes: usize,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    beyond: Option<BeyondSettings>,
}

/// Rows and networks.
pub(super) struct Task {
    /// Networks, the first of which is given error bars.
    pub(super) networks: Vec<Network<f64>>,
    /// What they were trained on.
    pub(super) data: Arrays,
    /// What chooses.
    pub(super) unseen: Arrays,
    /// What is scored.
    pub(super) test: ModelData,
    /// What else is asked of images.
    pub(super) beyond: Option<BeyondSettings>,
    /// Images of another kind.
    pub(super) foreign: Option<ModelData>,
    /// Tables: the training rows for a process.
    pub(super) observations: Option<Observations>,
    /// What outputs mean.
    pub(super) likelihood: LikelihoodKind,
    /// Double for tables, single for images.
    pub(super) numbers: NumberFormat,
    /// Mean and deviation of each channel; none for tables.
    pub(super) channels: (Vec<f64>, Vec<f64>),
}

impl TaskSettings {
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |problem: &str| refused(format!("[[task]] `{}`: {problem}", self.name));
        match (&self.table, &self.images) {
            (Some(table), None) => {
                if !(table.validation > 0.0 && table.validation < 0.9)
                    || table.members == 0
                    || table.columns == 0
                    || table.fold > 9
                {
                    return wrong(
                        "`validation` lies between 0 and 0.9, `fold` between 0 and 9, `members` and `columns` are at least 1",
                    );
                }
                if table.folder.as_os_str().is_empty()
                    && table.rows.is_none_or(|r| !(100..=100_000).contains(&r))
                {
                    return wrong("a table that is made up needs `rows`, 100 to 100000");
                }
                Ok(())
            }
            (None, Some(images)) if images.classes < 2 => wrong("`classes` are at least 2"),
            (None, Some(_)) => Ok(()),
            _ => wrong("it needs either `table` or `images`"),
        }
    }

    /// Columns of its table of scores.
    pub(super) fn columns(&self) -> Columns {
        if self.table.is_some() { OF_NUMBERS } else { OF_CLASSES }
    }

    /// Its rows in a sentence.
    pub(super) fn describe(&self) -> String {
        match (&self.table, &self.images) {
            (Some(table), _) => format!(
                "a tenth for testing, {:.0} % of the others for validation, networks trained on the rest",
                100.0 * table.validation
            ),
            (_, Some(_)) => "the first half of the test images for validation, the second for testing".into(),
            _ => String::new(),
        }
    }

    pub(super) fn open(&self, context: &mut Context<'_>) -> Result<Task> {
        match (&self.table, &self.images) {
            (Some(table), _) => table.open(&self.name, context),
            (_, Some(images)) => images.open(context.folder),
            _ => refused("a task needs either `table` or `images`"),
        }
    }
}

/// Rows of a matrix as an array of doubles.
fn rows_of(x: MatRef<'_, f64>, rows: &[usize]) -> Vec<f64> {
    rows.iter().flat_map(|&i| x.row(i).iter().copied().collect::<Vec<_>>()).collect()
}

fn doubles(shape: Vec<usize>, values: Vec<f64>) -> Result<NumericArray> {
    Ok(NumericArray::new(shape, ArrayValues::F64(values))?)
}

impl TableSettings {
    fn open(&self, task: &str, context: &mut Context<'_>) -> Result<Task> {
        let streams = Streams::new(0).child("experiment/task", 0);
        let set = SetSettings {
            name: self.name.clone().unwrap_or_else(|| task.into()),
            table: None,
            noise: 0.3,
            signal: 1.0,
            lengthscales: vec![1.0; self.columns],
            made_up: false,
            rows: None,
            draw_folds: false,
        };
        let folder = (!self.folder.as_os_str().is_empty()).then(|| context.folder.join(&self.folder));
        let source = Source::open(&set, folder.as_deref(), self.rows, 2000, Streams::new(0))?;
        let fold = source.fold(self.fold, self.rows, streams)?;
        let (x, y) = (fold.train.inputs(), fold.train.targets());
        let mut order: Vec<usize> = (0..x.nrows()).collect();
        order.shuffle(&mut streams.stream("experiment/validation"));
        let held = ((self.validation * order.len() as f64).ceil() as usize).clamp(1, order.len() - 1);
        let (unseen, train) = order.split_at(held);
        // Tables have rows that stand in them several times: those of both parts choose nothing.
        let bits = |i: &usize| x.row(*i).iter().map(|v| v.to_bits()).collect::<Vec<u64>>();
        let known: HashSet<Vec<u64>> = train.iter().map(bits).collect();
        let unseen: Vec<usize> = unseen.iter().copied().filter(|i| !known.contains(&bits(i))).collect();
        if unseen.is_empty() {
            return refused(format!("{task}: every validation row stands in the training rows as well"));
        }
        if unseen.len() < held {
            let repeated = held - unseen.len();
            context.notes.push(Note::information(format!(
                "{task}: {repeated} of {held} validation rows stand in the training rows as well and were left out"
            )));
        }
        let part = |rows: &[usize]| -> Result<Arrays> {
            let targets: Vec<f64> = rows.iter().map(|&i| y[(i, 0)]).collect();
            Ok(Arrays {
                inputs: doubles(vec![rows.len(), x.ncols()], rows_of(x, rows))?,
                targets: doubles(vec![rows.len()], targets)?,
            })
        };
        let examples = Tabular::new(
            Array::new(vec![train.len(), x.ncols()], rows_of(x, train)),
            Targets::Values(Array::new(vec![train.len(), 1], train.iter().map(|&i| y[(i, 0)]).collect())),
        );
        let networks = self.networks(task, &examples, context)?;
        let all: Vec<usize> = (0..fold.test.nrows()).collect();
        let inputs = doubles(vec![all.len(), x.ncols()], rows_of(fold.test.as_ref(), &all))?;
        Ok(Task {
            networks,
            data: part(train)?,
            unseen: part(&unseen)?,
            test: ModelData::new(task, inputs, Some(Truth::Values { values: fold.truth, width: 1 })),
            beyond: None,
            foreign: None,
            observations: Some(fold.train),
            likelihood: LikelihoodKind::Gaussian,
            numbers: NumberFormat::Double,
            channels: (Vec::new(), Vec::new()),
        })
    }
}

impl TableSettings {
    /// The networks, that of the run's seed first.
    fn networks(
        &self,
        task: &str,
        examples: &Tabular<f64>,
        context: &mut Context<'_>,
    ) -> Result<Vec<Network<f64>>> {
        let mut description = self.network.clone();
        description.insert("inputs".into(), (self.columns as i64).into());
        description.insert("outputs".into(), 1.into());
        let (seed, members) = (context.seed, self.members as u64);
        let recipe = Recipe { description: &description, training: &self.training, loss: Loss::Mse };
        let seeds = (0..members).map(|k| (seed + k) % members);
        seeds.map(|own| recipe.network(task, self, examples, own, context)).collect()
    }
}

impl ImageSettings {
    fn open(&self, base: &Path) -> Result<Task> {
        let network = pictures::network(base, &self.network)?;
        let train = Pictures::read(base, &self.data, &self.labels, self.train)?;
        let test = Pictures::read(base, &self.test, &self.test_labels, self.tested)?;
        let foreign =
            Pictures::read(base, &self.foreign, &self.foreign_labels, self.tested)?.like(train.shape);
        let (count, half) = (test.labels.len(), test.labels.len() / 2);
        let truth: Vec<usize> = test.labels[half..].iter().map(|l| *l as usize).collect();
        [&train, &test].into_iter().try_for_each(|images| images.check_labels(self.classes))?;
        if half == 0 {
            return refused("there are no two test images");
        }
        Ok(Task {
            networks: vec![network],
            data: train.arrays(0..train.labels.len())?,
            unseen: test.arrays(0..half)?,
            test: ModelData::new("the test images", test.array(half..count)?, Some(Truth::Classes(truth))),
            beyond: self.beyond.clone(),
            foreign: Some(ModelData::new(
                "the foreign images",
                foreign.array(0..foreign.labels.len())?,
                None,
            )),
            observations: None,
            likelihood: LikelihoodKind::Categorical,
            numbers: NumberFormat::Single,
            channels: (self.mean.clone(), self.deviation.clone()),
        })
    }
}
