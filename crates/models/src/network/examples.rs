//! Examples to train on, from tables, arrays and images.

use super::classes::number_classes;
use super::open::SetAside;
use super::preparation::Preparation;
use super::reading::{Raw, Wanted, image_shape, pixels};
use super::{NetworkFileError, refuse};
use faer::Mat;
use posterior_data::{
    ArrayValues, ReadOptions, Schema, Selection, Split, Standardisation, TextOptions, is_table_name,
    read_table, split_part_name,
};
use posterior_linalg::random::Streams;
use posterior_networks::Precision;
use posterior_networks::train::{Augmentation, Examples, Loss, Subset};
use posterior_notes::fixes::TARGET;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which data to train on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataRequest {
    /// A table; or arrays or images (NPY, NPZ, IDX, CIFAR), several of which are put together.
    pub data: Vec<PathBuf>,
    /// Labels of images and arrays that hold none.
    pub labels: Vec<PathBuf>,
    /// How delimited text is read.
    pub text: TextOptions,
    /// Table: which columns.
    pub selection: Selection,
    /// Validation data of their own.
    pub validation: Vec<PathBuf>,
    /// Their labels.
    pub validation_labels: Vec<PathBuf>,
    /// Else this share of the examples is set aside, at random.
    pub validation_fraction: f64,
    /// Table: the labels in the order of the network's outputs; by value or alphabet where absent.
    pub class_names: Vec<String>,
    /// Images: mean of each channel, on the scale of 0 to 1; one number for all.
    pub mean: Vec<f64>,
    /// Images: standard deviation of each channel.
    pub deviation: Vec<f64>,
    /// Images: random changes while training.
    pub augmentation: Augmentation,
}

/// Examples with their preparation.
pub struct TrainingData<T> {
    /// To learn from.
    pub examples: Arc<dyn Examples<T> + Send>,
    /// To validate on.
    pub validation: Option<Arc<dyn Examples<T> + Send>>,
    /// Which of the examples those are, where a share was set aside.
    pub set_aside: Option<SetAside>,
    /// What was done to them.
    pub preparation: Preparation,
    /// What was dropped or filled.
    pub notes: Vec<String>,
}

/// The examples that are set aside where a share was asked for, and those that are not.
fn split(request: &DataRequest, examples: usize, seed: u64) -> Result<Option<Split>, NetworkFileError> {
    if !request.validation.is_empty() || request.validation_fraction <= 0.0 {
        return Ok(None);
    }
    let split = Split::random(examples, request.validation_fraction, Streams::new(seed));
    if split.train.is_empty() || split.test.is_empty() {
        return refuse("the validation share leaves no examples on one side: change it or add data");
    }
    Ok(Some(split))
}

/// Whether a file is a table with named columns.
pub fn is_table(path: &Path) -> bool {
    let name = split_part_name(path).0.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    is_table_name(path) && ![".npy", ".npz"].iter().any(|e| name.ends_with(e))
}

impl<T: Precision> TrainingData<T> {
    /// Reads everything. Inputs take the shape `input` of the network where they hold as many numbers. No file may take more memory than `reading` allows.
    ///
    /// # Errors
    /// When files, labels, columns and network do not fit.
    pub fn read(
        request: &DataRequest,
        input: &[usize],
        loss: Loss,
        seed: u64,
        reading: &ReadOptions,
    ) -> Result<Self, NetworkFileError> {
        let Some(first) = request.data.first() else {
            return refuse("there are no data: name their files");
        };
        if !(0.0..1.0).contains(&request.validation_fraction) {
            return refuse("the validation share must lie in [0, 1)");
        }
        let split = |examples: usize| split(request, examples, seed);
        let mut data = if is_table(first) {
            Self::from_table(request, first, input, loss, reading, &split)?
        } else {
            Self::from_arrays(request, input, loss, reading)?
        };
        if let Some(split) = split(data.examples.len())? {
            data.set_aside = Some(SetAside {
                fraction: request.validation_fraction,
                seed,
                of: data.examples.len(),
                examples: split.test.len(),
            });
            let whole = data.examples;
            data.validation = Some(Arc::new(Subset::new(whole.clone(), split.test)));
            data.examples = Arc::new(Subset::new(whole, split.train));
        }
        Ok(data)
    }

    fn from_table(
        request: &DataRequest,
        path: &Path,
        input: &[usize],
        loss: Loss,
        reading: &ReadOptions,
        split: &dyn Fn(usize) -> Result<Option<Split>, NetworkFileError>,
    ) -> Result<Self, NetworkFileError> {
        if request.data.len() > 1 || !request.labels.is_empty() {
            return refuse("give one table, whose target is a column");
        }
        let images = [
            (!request.mean.is_empty() || !request.deviation.is_empty(), "--mean and --std"),
            (request.augmentation != Augmentation::default(), "--flip and --shift"),
            (!request.validation_labels.is_empty(), "--validation-labels"),
        ];
        if let Some((_, flags)) = images.iter().find(|given| given.0) {
            return refuse(format!("{flags} belong to images and arrays, {} is a table", path.display()));
        }
        if !request.class_names.is_empty() && !loss.takes_classes() {
            return refuse(
                "--class-names belongs to losses of classes (--loss cross-entropy or gaussianised)",
            );
        }
        let mut table = read_table(path, reading)?;
        let mut notes = table.notes.clone();
        let classes = match loss.takes_classes() {
            true => Some(number_classes(&mut table, &request.selection.target, &request.class_names)?),
            false => None,
        };
        let rows: Vec<usize> = (0..table.rows()).collect();
        let schema = Schema::learn(&table, &request.selection, &rows)?;
        let raw = Raw::of_table(&mut table, &schema, None, true)?;
        notes.extend(raw.notes.iter().cloned());
        // Rows that are set aside have no part in means and scales either.
        let (count, width) = (raw.inputs.examples(), raw.inputs.example_shape().iter().product::<usize>());
        let train = split(count)?.map_or_else(|| (0..count).collect::<Vec<_>>(), |split| split.train);
        let values = raw.inputs.to_f64();
        let x = Mat::from_fn(train.len(), width, |i, j| values[train[i] * width + j]);
        let y: Vec<f64> = train.iter().flat_map(|&i| raw.truth(i)).collect();
        let standardisation = Standardisation::learn(x.as_ref(), &y);
        let preparation = Preparation::Columns { schema: schema.into(), standardisation, classes };
        let Preparation::Columns { schema, classes, .. } = &preparation else {
            return refuse("the table is none");
        };
        let prepared = |raw: Raw, path: &Path| {
            let raw = raw.fit_for(input, path)?;
            raw.examples(classes.is_some(), &preparation, input, Augmentation::default())
        };
        let examples = prepared(raw, path)?;
        let validation = match request.validation.first() {
            None => None,
            Some(path) => {
                let mut table = read_table(path, reading)?;
                let raw = Raw::of_table(&mut table, schema, classes.as_deref(), true)?;
                notes.extend(raw.notes.iter().map(|s| format!("validation: {s}")));
                Some(prepared(raw, path)?)
            }
        };
        Ok(Self { examples, validation, set_aside: None, preparation, notes })
    }

    fn from_arrays(
        request: &DataRequest,
        input: &[usize],
        loss: Loss,
        reading: &ReadOptions,
    ) -> Result<Self, NetworkFileError> {
        let columns = [
            (!request.selection.target.is_empty(), "--target"),
            (!request.class_names.is_empty(), "--class-names"),
        ];
        let named = columns.iter().filter(|given| given.0).map(|(_, flag)| *flag);
        if let Some(flag) = named.chain(request.selection.given()).next() {
            return refuse(format!("{flag} belongs to tables, these are images or arrays"));
        }
        if !loss.takes_classes() {
            return refuse(format!("{} needs numbers as targets: give a table with {TARGET}", loss.name()));
        }
        let arrays = |data: &[PathBuf], labels: &[PathBuf], augmentation: Augmentation| {
            let raw = Raw::of_arrays(&[], (&[], data), labels, Wanted::Classes, reading)?;
            let raw = raw.fit_for(input, &data[0])?;
            let scaled = !request.mean.is_empty() || !request.deviation.is_empty();
            let bytes = matches!(raw.inputs.values(), ArrayValues::U8(_));
            if !bytes && (scaled || augmentation != Augmentation::default()) {
                return refuse(
                    "--mean, --std, --flip and --shift are for images of bytes, and these are other numbers",
                );
            }
            let channels = image_shape(raw.inputs.example_shape())[0];
            let preparation = match bytes {
                true => pixels(&request.mean, &request.deviation, channels)?,
                false => Preparation::None,
            };
            Ok((raw.examples(true, &preparation, input, augmentation)?, preparation))
        };
        let (examples, preparation) = arrays(&request.data, &request.labels, request.augmentation)?;
        let validation = match request.validation.is_empty() {
            true => None,
            false => {
                let plain = Augmentation::default();
                Some(arrays(&request.validation, &request.validation_labels, plain)?.0)
            }
        };
        Ok(Self { examples, validation, set_aside: None, preparation, notes: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn rows_that_are_set_aside_have_no_part_in_means_and_scales() {
        let folder = tempfile::tempdir().unwrap();
        let split = Split::random(40, 0.25, Streams::new(3));
        // What is set aside lies far off.
        let mut text = "x,y\n".to_string();
        for i in 0..40 {
            let far = if split.test.contains(&i) { 1e6 } else { 0.0 };
            writeln!(text, "{},{}", i as f64 + far, i as f64 - far).unwrap();
        }
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let request = DataRequest {
            data: vec![path],
            selection: Selection { target: "y".into(), ..Selection::default() },
            validation_fraction: 0.25,
            ..DataRequest::default()
        };
        let data = TrainingData::<f64>::read(&request, &[1], Loss::Mse, 3, &ReadOptions::default()).unwrap();
        assert_eq!((data.examples.len(), data.validation.unwrap().len()), (30, 10));
        let Preparation::Columns { standardisation, .. } = data.preparation else { panic!("a table") };
        let mean = split.train.iter().map(|&i| i as f64).sum::<f64>() / 30.0;
        assert!((standardisation.feature_means[0] - mean).abs() < 1e-9);
        assert!((standardisation.target_mean - mean).abs() < 1e-9);
        assert!(standardisation.target_scale < 20.0);
    }
}
