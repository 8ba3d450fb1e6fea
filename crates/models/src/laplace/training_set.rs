//! Examples with the targets that a likelihood describes, from tables, arrays, images and features.

use super::request::{DataSource, LikelihoodKind};
use crate::ModelError;
use crate::network::{
    InputRecord as NetworkInputRecord, Preparation, Preprocess, Raw, Wanted, apply_classes, check_names,
    image_shape, is_table, named as named_classes, number_classes, pixels,
};
use crate::record::{InputKind, InputRecord};
use crate::rows::prints_of_examples;
use crate::targets::named;
use posterior_data::{
    ArrayValues, NumericArray, ReadOptions, Schema, Standardisation, Table, Values, read_table,
};
use posterior_networks::Precision;
use posterior_networks::train::{Augmentation, Examples};
use posterior_notes::fixes::{CLASS_NAMES, MEAN, STD};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Examples and what was done to them.
pub(crate) struct TrainingSet<T> {
    pub(crate) examples: Arc<dyn Examples<T> + Send>,
    pub(crate) inputs: InputKind,
    /// Kind and range of the inputs, before anything is done to them.
    pub(crate) record: InputRecord,
    /// Of each example with its target, as they stand in their files.
    pub(crate) fingerprints: Vec<u64>,
    pub(crate) class_names: Vec<String>,
    pub(crate) notes: Vec<String>,
}

fn request<T>(problem: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Request(problem.into()))
}

/// What to read.
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a DataSource,
    /// Limits of reading a file.
    pub(crate) limits: ReadOptions,
    /// Shape of the network's input.
    pub(crate) input: &'a [usize],
    /// The network's inputs, where it has several.
    pub(crate) inputs: &'a [NetworkInputRecord],
    /// Shape of what is predicted of an example ([`predicted_shape`](crate::network::predicted_shape)).
    pub(crate) predicted: &'a [usize],
    pub(crate) likelihood: LikelihoodKind,
    /// Whether the network is a head on features.
    pub(crate) head: bool,
    /// Preparation that is known: the network's own, or that of the training data.
    pub(crate) known: Option<&'a InputKind>,
    /// Whether that is what the network's file says: then a request that says something else is refused.
    pub(crate) from_network: bool,
}

/// Examples, and how they are read again.
pub(crate) struct Found {
    raw: Raw,
    inputs: InputKind,
    class_names: Vec<String>,
    /// Columns or channels whose ranges are recorded.
    groups: usize,
}

impl Reading<'_> {
    /// Reads files of examples with their targets.
    pub(crate) fn read<T: Precision>(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
    ) -> Result<TrainingSet<T>, ModelError> {
        let Some(first) = data.first() else {
            return request("there are no data: name their files");
        };
        if !self.source.inputs.is_empty() && (self.head || is_table(first)) {
            return request(
                "--input is for arrays, one for each input of a network: name tables and features without --input",
            );
        }
        let found = if self.head {
            self.features(data, labels)?
        } else if is_table(first) {
            if data.len() > 1 || !labels.is_empty() {
                return request("give one table, whose target is a column");
            }
            self.table(first)?
        } else {
            self.arrays(data, labels)?
        };
        self.set(found, first)
    }

    /// Examples as the network takes them, with the names of classes that were given, where the data have none.
    pub(crate) fn set<T: Precision>(&self, found: Found, first: &Path) -> Result<TrainingSet<T>, ModelError> {
        let Found { raw, inputs, mut class_names, groups } = found;
        let mut raw = raw.fit_for(self.input, first)?;
        if !self.source.class_names.is_empty() && class_names.is_empty() {
            check_names(&self.source.class_names)?;
            class_names = self.source.class_names.clone();
        }
        let record = InputRecord::of(&raw.inputs, groups);
        let fingerprints = prints_of_examples(&raw.inputs, |i| raw.truth(i));
        let notes = std::mem::take(&mut raw.notes);
        let examples =
            raw.examples(self.classes(), inputs.preparation(), self.input, Augmentation::default())?;
        Ok(TrainingSet { examples, inputs, record, fingerprints, class_names, notes })
    }

    fn classes(&self) -> bool {
        self.likelihood == LikelihoodKind::Categorical
    }

    fn wanted(&self) -> Wanted<'_> {
        if self.classes() { Wanted::Classes } else { Wanted::Numbers(self.predicted) }
    }

    /// Refuses flags that say something about data of another kind.
    fn refuse_flags(&self, given: &[(bool, &str)], kind: &str) -> Result<(), ModelError> {
        match given.iter().find(|g| g.0) {
            Some((_, flags)) => request(format!("{flags} say nothing about {kind}: leave them out")),
            None => Ok(()),
        }
    }

    fn table(&self, path: &Path) -> Result<Found, ModelError> {
        let source = self.source;
        let scales = !source.mean.is_empty() || !source.deviation.is_empty();
        let pixels = source.preprocess == Preprocess::Pixels;
        self.refuse_flags(&[(scales, "--mean and --std"), (pixels, "--preprocess pixels")], "a table")?;
        let mut table = read_table(path, &self.limits)?;
        let mut notes = table.notes.clone();
        let known = match self.known.map(InputKind::preparation) {
            Some(Preparation::Columns { schema, standardisation, classes }) => {
                Some((Schema::clone(schema), standardisation.clone(), classes.clone()))
            }
            _ => None,
        };
        let rows: Vec<usize> = (0..table.rows()).collect();
        let (schema, standardisation, classes) = match known {
            Some((schema, standardisation, classes)) => {
                let selection = &self.source.columns;
                let other_target = !selection.target.is_empty() && {
                    let names = named(&selection.target, &table)?;
                    names.split_first() != Some((&schema.target, &schema.further_targets[..]))
                };
                let asked = self.source.preprocess != Preprocess::Auto
                    || selection.features.is_some()
                    || other_target;
                let flags: Vec<&str> =
                    selection.given().into_iter().filter(|flag| *flag != "--features").collect();
                if !flags.is_empty() {
                    return request(format!(
                        "which columns are read and how is known already (target `{}`): leave {} out",
                        schema.target,
                        flags.join(", ")
                    ));
                }
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
        let mut raw = Raw::of_table(&mut table, &schema, None, true)?;
        notes.append(&mut raw.notes);
        raw.notes = notes;
        let class_names = match &classes {
            Some(classes) => named_classes(classes, &self.source.class_names)?,
            None => Vec::new(),
        };
        if let (None, Some(classes), true) =
            (self.known_classes(), &classes, self.source.class_names.is_empty())
            && classes.iter().any(|c| c.parse::<f64>().is_err())
        {
            raw.notes.push(format!(
                "labels are taken for the network's outputs in alphabetical order ({}); if they are in another, give {CLASS_NAMES}",
                classes.iter().take(20).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
        let groups = raw.inputs.example_shape().iter().product();
        let preparation = Preparation::Columns { schema: schema.into(), standardisation, classes };
        Ok(Found { raw, inputs: InputKind::Prepared { preparation }, class_names, groups })
    }

    /// Classes that are known before the data are read.
    fn known_classes(&self) -> Option<&[String]> {
        match self.known?.preparation() {
            Preparation::Columns { classes, .. } => classes.as_deref(),
            _ => None,
        }
    }

    /// Roles, scales and classes of a table that no network's file knows about.
    fn learn(
        &self,
        table: &mut Table,
        rows: &[usize],
    ) -> Result<(Schema, Standardisation, Option<Vec<String>>), ModelError> {
        let mut selection = self.source.columns.clone();
        if selection.target.is_empty() {
            return request("--target is needed: which column should be predicted?");
        }
        let mut names = named(&selection.target, table)?.into_iter();
        selection.target = names.next().unwrap_or_default();
        let further: Vec<String> = names.collect();
        if self.classes() && !further.is_empty() {
            return request(format!(
                "a classifier has one target, and --target names {}: choose one column, or another --likelihood",
                further.len() + 1
            ));
        }
        // What is predicted is no feature, unless that is asked for, which is refused.
        selection.exclude.extend(further.iter().cloned());
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
        let mut schema = Schema::learn(table, &selection, rows)?;
        schema.further_targets = further;
        let extracted = schema.extract(table, rows, true)?;
        let y = extracted.y.unwrap_or_default();
        let mut standardisation = Standardisation::learn(extracted.x.as_ref(), &y);
        let standardise = self.source.preprocess == Preprocess::Standardise;
        if !standardise {
            standardisation.feature_means.fill(0.0);
            standardisation.feature_scales.fill(1.0);
        }
        let numeric = matches!(self.likelihood, LikelihoodKind::Gaussian | LikelihoodKind::Heteroscedastic);
        if standardise && numeric && !schema.further_targets.is_empty() {
            return request(
                "--preprocess standardise scales one target, and --target names several: leave it out, and give the table with its columns as the network was trained on them",
            );
        }
        if !(standardise && numeric) {
            (standardisation.target_mean, standardisation.target_scale) = (0.0, 1.0);
        }
        Ok((schema, standardisation, classes))
    }

    fn arrays(&self, data: &[PathBuf], labels: &[PathBuf]) -> Result<Found, ModelError> {
        let columns = &self.source.columns;
        let given = columns.given().into_iter().map(|flag| (true, flag));
        let named: Vec<_> = std::iter::once((!columns.target.is_empty(), "--target")).chain(given).collect();
        self.refuse_flags(&named, "images and arrays")?;
        let data = (&self.source.inputs[..], data);
        self.pictures(Raw::of_arrays(self.inputs, data, labels, self.wanted(), &self.limits)?)
    }

    /// Arrays, as images where they are some.
    pub(crate) fn pictures(&self, raw: Raw) -> Result<Found, ModelError> {
        let inputs = InputKind::Prepared { preparation: self.pixels(&raw.inputs)? };
        let shape = raw.inputs.example_shape();
        let bytes = matches!(raw.inputs.values(), ArrayValues::U8(_));
        let groups = if shape.len() == 1 && !bytes { shape[0] } else { image_shape(shape)[0] };
        Ok(Found { raw, inputs, class_names: Vec::new(), groups })
    }

    /// What is done to arrays.
    fn pixels(&self, images: &NumericArray) -> Result<Preparation, ModelError> {
        let (source, shape) = (self.source, images.example_shape());
        let bytes = matches!(images.values(), ArrayValues::U8(_));
        let given = !source.mean.is_empty() || !source.deviation.is_empty();
        if let Some(preparation @ Preparation::Pixels { mean, .. }) = self.known.map(InputKind::preparation)
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
                return request(format!(
                    "only the columns of a table can be standardised; for images give {MEAN} and {STD}"
                ));
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
        Ok(pixels(&source.mean, &source.deviation, image_shape(shape)[0])?)
    }

    fn features(&self, data: &[PathBuf], labels: &[PathBuf]) -> Result<Found, ModelError> {
        let source = self.source;
        let scales = !source.mean.is_empty() || !source.deviation.is_empty();
        let prepared = !matches!(source.preprocess, Preprocess::Auto | Preprocess::Raw);
        self.refuse_flags(&[(scales, "--mean and --std"), (prepared, "--preprocess")], "features")?;
        let given = source.columns.given().into_iter().filter(|flag| *flag != "--features");
        self.refuse_flags(&given.map(|flag| (true, flag)).collect::<Vec<_>>(), "features")?;
        let target = &source.columns.target;
        let label = (!target.is_empty()).then(|| target.clone());
        let groups: usize = self.input.iter().product();
        let named = (source.columns.features.as_deref(), label.as_deref());
        let mut raw = Raw::of_features((data, labels), groups, named, self.wanted(), &self.limits)?;
        let inputs = InputKind::Features { columns: std::mem::take(&mut raw.columns), label };
        Ok(Found { raw, inputs, class_names: Vec::new(), groups })
    }
}
