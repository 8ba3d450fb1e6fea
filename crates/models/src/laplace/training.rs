//! Examples with the targets that a likelihood describes, from tables, arrays, images and features.

use super::numbers::{class_numbers, converted, image_shape, values};
use super::seen::{fingerprints, target_of, with_truths};
use super::source::file_name;
use super::{DataSource, InputKind, InputRecord, LaplaceModelError, LikelihoodKind, Preprocess};
use crate::network::{Preparation, apply_classes, check_names, is_table, named, number_classes};
use posterior_data::{
    ArrayValues, FeatureOptions, ImageSet, NumericArray, ReadOptions, Schema, Standardisation, Table, Values,
    read_feature_matrix, read_table,
};
use posterior_networks::train::{Augmentation, Examples, Images, Tabular, Targets};
use posterior_networks::{Array, Precision};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Examples and what was done to them.
pub(super) struct TrainingSet<T> {
    pub(super) examples: Arc<dyn Examples<T> + Send>,
    pub(super) inputs: InputKind,
    /// Kind and range of the inputs, before anything is done to them.
    pub(super) record: InputRecord,
    /// Of each example with its target, as they stand in their files.
    pub(super) fingerprints: Vec<u64>,
    pub(super) class_names: Vec<String>,
    pub(super) notes: Vec<String>,
}

fn request<T>(problem: impl Into<String>) -> Result<T, LaplaceModelError> {
    Err(LaplaceModelError::Request(problem.into()))
}

/// What to read.
pub(super) struct Reading<'a> {
    pub(super) source: &'a DataSource,
    /// Limits of reading a file.
    pub(super) limits: ReadOptions,
    /// Shape of the network's input.
    pub(super) input: &'a [usize],
    pub(super) likelihood: LikelihoodKind,
    /// Whether the network is a head on features.
    pub(super) head: bool,
    /// Preparation that is known: the network's own, or that of the training data.
    pub(super) known: Option<&'a InputKind>,
    /// Whether that is what the network's file says: then a request that says something else is refused.
    pub(super) from_network: bool,
}

impl Reading<'_> {
    /// Reads files of examples with their targets.
    pub(super) fn read<T: Precision>(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
    ) -> Result<TrainingSet<T>, LaplaceModelError> {
        let Some(first) = data.first() else { return request("there are no data: give --data") };
        let set = if self.head {
            self.features(data, labels)?
        } else if is_table(first) {
            if data.len() > 1 || !labels.is_empty() {
                return request("give one table, whose target is a column");
            }
            self.table(first)?
        } else {
            self.arrays(data, labels)?
        };
        self.with_names(set)
    }

    /// With the names of classes that were given, where the data have none.
    pub(super) fn with_names<T>(&self, mut set: TrainingSet<T>) -> Result<TrainingSet<T>, LaplaceModelError> {
        if !self.source.class_names.is_empty() && set.class_names.is_empty() {
            check_names(&self.source.class_names)?;
            set.class_names = self.source.class_names.clone();
        }
        Ok(set)
    }

    fn classes(&self) -> bool {
        self.likelihood == LikelihoodKind::Categorical
    }

    /// Refuses flags that say something about data of another kind.
    fn refuse_flags(&self, given: &[(bool, &str)], kind: &str) -> Result<(), LaplaceModelError> {
        match given.iter().find(|g| g.0) {
            Some((_, flags)) => request(format!("{flags} say nothing about {kind}: leave them out")),
            None => Ok(()),
        }
    }

    fn table<T: Precision>(&self, path: &Path) -> Result<TrainingSet<T>, LaplaceModelError> {
        let source = self.source;
        let scales = !source.mean.is_empty() || !source.deviation.is_empty();
        let pixels = source.preprocess == Preprocess::Pixels;
        self.refuse_flags(&[(scales, "--mean and --std"), (pixels, "--preprocess pixels")], "a table")?;
        let mut table = read_table(path, &self.limits)?;
        let mut notes = table.notes.clone();
        let known = match self.known {
            Some(InputKind::Prepared {
                preparation: Preparation::Columns { schema, standardisation, classes },
            }) => Some((schema.clone(), standardisation.clone(), classes.clone())),
            _ => None,
        };
        let rows: Vec<usize> = (0..table.rows()).collect();
        let (schema, standardisation, classes) = match known {
            Some((schema, standardisation, classes)) => {
                let selection = &self.source.selection;
                let other_target = !selection.target.is_empty() && selection.target != schema.target;
                let asked = self.source.preprocess != Preprocess::Auto
                    || selection.features.is_some()
                    || other_target;
                if self.from_network && asked {
                    return request(format!(
                        "the network's file says which columns it reads and how (target `{}`): leave --features, --preprocess and another --target out",
                        schema.target
                    ));
                }
                if self.classes() && classes.is_none() {
                    return request(
                        "the network was trained on a numeric target, which is no class: choose another --likelihood",
                    );
                }
                if let Some(classes) = &classes {
                    apply_classes(&mut table, &schema.target, classes)?;
                }
                (schema, standardisation, classes)
            }
            None => self.learn(&mut table, &rows)?,
        };
        let extracted = schema.extract(&table, &rows, true)?;
        notes.extend(extracted.notes.sentences());
        let width: usize = self.input.iter().product();
        if extracted.x.ncols() != width {
            return request(format!(
                "{}: the table gives {} features, the network takes {:?}; choose columns with --features",
                path.display(),
                extracted.x.ncols(),
                self.input
            ));
        }
        let y = extracted.y.unwrap_or_default();
        let x = standardisation.features(extracted.x.as_ref());
        let (n, raw) = (x.nrows(), extracted.x.as_ref());
        let cells = (0..n * width).map(|k| raw[(k / width, k % width)]).collect();
        let cells = NumericArray::new(vec![n, width], ArrayValues::F64(cells))?;
        let record = InputRecord::of(&cells, width);
        let fingerprints = with_truths(fingerprints(&cells), |i| [y[i]]);
        drop(cells);
        let values =
            (0..x.nrows()).flat_map(|i| (0..width).map(move |j| (i, j))).map(|(i, j)| T::from_f64(x[(i, j)]));
        let inputs = Array::new([&[x.nrows()], self.input].concat(), values.collect());
        let targets = if self.classes() {
            Targets::Classes(y.iter().map(|&c| c as u32).collect())
        } else {
            let value =
                |v: &f64| T::from_f64(if classes.is_some() { *v } else { standardisation.target(*v) });
            Targets::Values(Array::new(vec![y.len(), 1], y.iter().map(value).collect()))
        };
        let class_names = match &classes {
            Some(classes) => named(classes, &self.source.class_names)?,
            None => Vec::new(),
        };
        if let (None, Some(classes), true) =
            (self.known_classes(), &classes, self.source.class_names.is_empty())
            && classes.iter().any(|c| c.parse::<f64>().is_err())
        {
            notes.push(format!(
                "labels are taken for the network's outputs in alphabetical order ({}); if they are in another, give --class-names",
                classes.iter().take(20).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
        let preparation = Preparation::Columns { schema, standardisation, classes };
        let examples = Arc::new(Tabular::new(inputs, targets));
        let inputs = InputKind::Prepared { preparation };
        Ok(TrainingSet { examples, inputs, record, fingerprints, class_names, notes })
    }

    /// Classes that are known before the data are read.
    fn known_classes(&self) -> Option<&[String]> {
        match self.known {
            Some(InputKind::Prepared { preparation: Preparation::Columns { classes, .. } }) => {
                classes.as_deref()
            }
            _ => None,
        }
    }

    /// Roles, scales and classes of a table that no network's file knows about.
    fn learn(
        &self,
        table: &mut Table,
        rows: &[usize],
    ) -> Result<(Schema, Standardisation, Option<Vec<String>>), LaplaceModelError> {
        let selection = &self.source.selection;
        if selection.target.is_empty() {
            return request("--target is needed: which column should be predicted?");
        }
        let text = matches!(table.column(&selection.target)?.values, Values::Text(_));
        let event = self.likelihood == LikelihoodKind::Bernoulli;
        let classes = if self.classes() || (event && text) {
            // Numbers may be given names, text must be named as it is.
            let names: &[String] = if text { &self.source.class_names } else { &[] };
            Some(number_classes(table, &selection.target, names)?)
        } else {
            None
        };
        if let Some(classes) = classes.as_ref().filter(|c| event && c.len() != 2) {
            return request(format!(
                "an event happens or not, but column `{}` has {} values",
                selection.target,
                classes.len()
            ));
        }
        let schema = Schema::learn(table, selection, rows)?;
        let extracted = schema.extract(table, rows, true)?;
        let y = extracted.y.unwrap_or_default();
        let mut standardisation = Standardisation::learn(extracted.x.as_ref(), &y);
        let standardise = self.source.preprocess == Preprocess::Standardise;
        if !standardise {
            standardisation.feature_means.fill(0.0);
            standardisation.feature_scales.fill(1.0);
        }
        let numeric = matches!(self.likelihood, LikelihoodKind::Gaussian | LikelihoodKind::Heteroscedastic);
        if !(standardise && numeric) {
            (standardisation.target_mean, standardisation.target_scale) = (0.0, 1.0);
        }
        Ok((schema, standardisation, classes))
    }

    fn arrays<T: Precision>(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
    ) -> Result<TrainingSet<T>, LaplaceModelError> {
        let columns = &self.source.selection;
        let named = [(!columns.target.is_empty(), "--target"), (columns.features.is_some(), "--features")];
        self.refuse_flags(&named, "images and arrays")?;
        let own = if self.classes() { labels } else { &[] };
        let set = ImageSet::read(data, own, &self.limits)?;
        self.check_shape(&set.images)?;
        set.images.require_finite(&data[0])?;
        let count = set.images.examples();
        let targets = match (self.classes(), set.labels) {
            (true, Some(classes)) => Targets::Classes(classes),
            (true, None) => return request("these files hold no labels: give --labels"),
            (false, _) => values(labels, count, &self.limits)?,
        };
        self.prepared(set.images, targets)
    }

    /// Refuses examples of another size than the network's input.
    pub(super) fn check_shape(&self, inputs: &NumericArray) -> Result<(), LaplaceModelError> {
        let shape = inputs.example_shape();
        if shape.iter().product::<usize>() != self.input.iter().product::<usize>() {
            return request(format!(
                "the network takes examples of shape {:?}, the data have shape {shape:?}",
                self.input
            ));
        }
        Ok(())
    }

    /// Arrays as the network takes them.
    pub(super) fn prepared<T: Precision>(
        &self,
        inputs: NumericArray,
        targets: Targets<T>,
    ) -> Result<TrainingSet<T>, LaplaceModelError> {
        let (count, shape) = (inputs.examples(), inputs.example_shape().to_vec());
        let preparation = self.pixels(&inputs, &shape)?;
        let bytes = matches!(inputs.values(), ArrayValues::U8(_));
        let groups = if shape.len() == 1 && !bytes { shape[0] } else { image_shape(&shape)[0] };
        let record = InputRecord::of(&inputs, groups);
        let fingerprints = with_truths(fingerprints(&inputs), |i| target_of(&targets, i));
        let (_, numbers) = inputs.into_parts();
        let examples: Arc<dyn Examples<T> + Send> = match (&preparation, numbers) {
            (Preparation::Pixels { mean, deviation }, ArrayValues::U8(bytes)) => {
                let image = image_shape(&shape);
                let plain = Augmentation::default();
                Arc::new(Images::new(image, bytes, targets, mean, deviation, plain, self.input.to_vec()))
            }
            (_, numbers) => {
                let inputs = Array::new([&[count], self.input].concat(), converted(numbers));
                Arc::new(Tabular::new(inputs, targets))
            }
        };
        let inputs = InputKind::Prepared { preparation };
        let (class_names, notes) = (Vec::new(), Vec::new());
        Ok(TrainingSet { examples, inputs, record, fingerprints, class_names, notes })
    }

    /// What is done to arrays.
    fn pixels(
        &self,
        images: &posterior_data::NumericArray,
        shape: &[usize],
    ) -> Result<Preparation, LaplaceModelError> {
        let source = self.source;
        let bytes = matches!(images.values(), ArrayValues::U8(_));
        let given = !source.mean.is_empty() || !source.deviation.is_empty();
        if let Some(InputKind::Prepared { preparation: preparation @ Preparation::Pixels { mean, .. } }) =
            self.known
            && !given
            && matches!(source.preprocess, Preprocess::Auto | Preprocess::Pixels)
        {
            let channels = image_shape(shape)[0];
            if bytes && mean.len() != channels {
                return request(format!(
                    "the network was trained on images of {} channels, these have {channels}",
                    mean.len()
                ));
            }
            return Ok(preparation.clone());
        }
        let scaled = match source.preprocess {
            Preprocess::Auto => bytes || given,
            Preprocess::Pixels => true,
            Preprocess::Raw => false,
            Preprocess::Standardise => {
                return request(
                    "only the columns of a table can be standardised; for images give --mean and --std",
                );
            }
        };
        if (scaled && !bytes) || (given && !scaled) {
            return request(
                "--mean, --std and --preprocess pixels are for images of bytes, and these are other numbers (or are asked to stay as they are)",
            );
        }
        if !scaled {
            return Ok(Preparation::None);
        }
        let channels = image_shape(shape)[0];
        let by_channel = |list: &[f64], default: f64, name: &str| match list.len() {
            0 => Ok(vec![default; channels]),
            1 => Ok(vec![list[0]; channels]),
            n if n == channels => Ok(list.to_vec()),
            n => request(format!("{name} has {n} numbers and the images {channels} channels")),
        };
        let (mean, deviation) =
            (by_channel(&source.mean, 0.0, "--mean")?, by_channel(&source.deviation, 1.0, "--std")?);
        if deviation.iter().any(|d| !(d.is_finite() && *d > 0.0)) || mean.iter().any(|m| !m.is_finite()) {
            return request("--mean must be finite and --std positive");
        }
        Ok(Preparation::Pixels { mean, deviation })
    }

    fn features<T: Precision>(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
    ) -> Result<TrainingSet<T>, LaplaceModelError> {
        let source = self.source;
        let scales = !source.mean.is_empty() || !source.deviation.is_empty();
        let prepared = !matches!(source.preprocess, Preprocess::Auto | Preprocess::Raw);
        self.refuse_flags(&[(scales, "--mean and --std"), (prepared, "--preprocess")], "features")?;
        let target = &source.selection.target;
        let options = FeatureOptions {
            label_column: (!target.is_empty()).then(|| target.clone()),
            columns: self.source.selection.features.clone(),
            read: self.limits,
        };
        let width: usize = self.input.iter().product();
        let (mut all, mut rows, mut own, mut columns): (Vec<T>, _, Vec<f64>, _) =
            (Vec::new(), 0, Vec::new(), Vec::new());
        let (mut record, mut seen) = (None, Vec::new());
        for path in data {
            let matrix = read_feature_matrix(path, &options)?;
            let shape = matrix.values.shape().to_vec();
            if shape[1] != width {
                return request(format!(
                    "{}: {} columns of features, the head takes {width}; name the column of labels with --target",
                    path.display(),
                    shape[1]
                ));
            }
            let found = InputRecord::of(&matrix.values, width);
            seen.extend(fingerprints(&matrix.values));
            record = Some(record.map_or(found.clone(), |r: InputRecord| r.merged(&found)));
            rows += shape[0];
            own.extend(matrix.labels.iter().flatten());
            columns = matrix.column_names;
            all.extend(converted::<T>(matrix.values.into_parts().1));
        }
        let targets = match (options.label_column.is_some(), labels.is_empty()) {
            (true, false) => return request("labels are given twice: by --target and by --labels"),
            (true, true) if self.classes() => Targets::Classes(class_numbers(&own, &file_name(&data[0]))?),
            (true, true) => {
                Targets::Values(Array::new(vec![rows, 1], own.iter().map(|v| T::from_f64(*v)).collect()))
            }
            (false, true) => {
                return request(
                    "these features have no labels: give --labels FILE, or their column with --target",
                );
            }
            (false, false) => match (self.classes(), values::<T>(labels, rows, &self.limits)?) {
                (true, Targets::Values(list)) => {
                    let numbers: Vec<f64> = list.values().iter().map(|v| v.to_f64()).collect();
                    Targets::Classes(class_numbers(&numbers, &file_name(&labels[0]))?)
                }
                (_, targets) => targets,
            },
        };
        if targets.len() != rows {
            return request(format!("{rows} rows of features, but {} labels", targets.len()));
        }
        let Some(record) = record else { return request("there are no data: give --data") };
        let inputs = InputKind::Features { columns, label: options.label_column };
        let fingerprints = with_truths(seen, |i| target_of(&targets, i));
        let examples = Arc::new(Tabular::new(Array::new([&[rows], self.input].concat(), all), targets));
        let (class_names, notes) = (Vec::new(), Vec::new());
        Ok(TrainingSet { examples, inputs, record, fingerprints, class_names, notes })
    }
}
