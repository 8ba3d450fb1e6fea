//! Examples to train on, from tables, arrays and images.

use super::{NetworkFileError, Preparation, SetAside, apply_classes, number_classes};
use faer::{Mat, MatRef};
use posterior_data::{
    ArrayValues, ImageSet, ReadOptions, Schema, Selection, Split, Standardisation, read_table,
};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Augmentation, Examples, Images, Loss, Subset, Tabular, Targets};
use posterior_networks::{Array, Precision};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which data to train on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataRequest {
    /// A table; or arrays or images (NPY, NPZ, IDX, CIFAR), several of which are put together.
    pub data: Vec<PathBuf>,
    /// Labels of images and arrays that hold none.
    pub labels: Vec<PathBuf>,
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
        let problem = "the validation share leaves no examples on one side: change it or add data";
        return Err(NetworkFileError::Request(problem.into()));
    }
    Ok(Some(split))
}

/// Whether a file is a table with named columns.
pub(crate) fn is_table(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".csv", ".tsv", ".txt", ".parquet", ".pq"].iter().any(|e| name.ends_with(e))
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
            return Err(NetworkFileError::Request("there are no data: give --data".into()));
        };
        if !(0.0..1.0).contains(&request.validation_fraction) {
            return Err(NetworkFileError::Request("the validation share must lie in [0, 1)".into()));
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
            return Err(NetworkFileError::Request("give one table, whose target is a column".into()));
        }
        let images = [
            (!request.mean.is_empty() || !request.deviation.is_empty(), "--mean and --std"),
            (request.augmentation != Augmentation::default(), "--flip and --shift"),
            (!request.validation_labels.is_empty(), "--validation-labels"),
        ];
        if let Some((_, flags)) = images.iter().find(|given| given.0) {
            let problem = format!("{flags} belong to images and arrays, {} is a table", path.display());
            return Err(NetworkFileError::Request(problem));
        }
        if !request.class_names.is_empty() && loss != Loss::CrossEntropy {
            let problem = "--class-names belongs to --loss cross-entropy";
            return Err(NetworkFileError::Request(problem.into()));
        }
        let mut table = read_table(path, reading)?;
        let mut notes = table.notes.clone();
        let classes = if loss == Loss::CrossEntropy {
            Some(number_classes(&mut table, &request.selection.target, &request.class_names)?)
        } else {
            None
        };
        let rows: Vec<usize> = (0..table.rows()).collect();
        let schema = Schema::learn(&table, &request.selection, &rows)?;
        let extracted = schema.extract(&table, &rows, true)?;
        notes.extend(extracted.notes.sentences());
        let y = extracted.y.clone().unwrap_or_default();
        // Rows that are set aside have no part in means and scales either.
        let standardisation = match split(y.len())? {
            None => Standardisation::learn(extracted.x.as_ref(), &y),
            Some(Split { train, .. }) => {
                let x = Mat::from_fn(train.len(), extracted.x.ncols(), |i, j| extracted.x[(train[i], j)]);
                Standardisation::learn(x.as_ref(), &train.iter().map(|&i| y[i]).collect::<Vec<_>>())
            }
        };
        let tabular = |x: MatRef<'_, f64>, y: &[f64]| -> Result<Tabular<T>, NetworkFileError> {
            let width: usize = input.iter().product();
            if x.ncols() != width {
                let problem = format!("the table gives {} features, the network takes {input:?}", x.ncols());
                return Err(NetworkFileError::Request(problem));
            }
            let x = standardisation.features(x);
            let values = (0..x.nrows())
                .flat_map(|i| (0..x.ncols()).map(move |j| (i, j)))
                .map(|(i, j)| T::from_f64(x[(i, j)]));
            let inputs = Array::new([&[x.nrows()], input].concat(), values.collect());
            let targets = match classes {
                Some(_) => Targets::Classes(y.iter().map(|&c| c as u32).collect()),
                None => {
                    let values = y.iter().map(|&v| T::from_f64(standardisation.target(v))).collect();
                    Targets::Values(Array::new(vec![y.len(), 1], values))
                }
            };
            Ok(Tabular::new(inputs, targets))
        };
        let examples = tabular(extracted.x.as_ref(), &y)?;
        let validation = match request.validation.first() {
            None => None,
            Some(path) => {
                let mut table = read_table(path, reading)?;
                if let Some(classes) = &classes {
                    apply_classes(&mut table, &schema.target, classes)?;
                }
                let rows: Vec<usize> = (0..table.rows()).collect();
                let extracted = schema.extract(&table, &rows, true)?;
                notes.extend(extracted.notes.sentences().into_iter().map(|s| format!("validation: {s}")));
                let examples = tabular(extracted.x.as_ref(), &extracted.y.unwrap_or_default())?;
                Some(Arc::new(examples) as Arc<dyn Examples<T> + Send>)
            }
        };
        let preparation = Preparation::Columns { schema, standardisation, classes };
        Ok(Self { examples: Arc::new(examples), validation, set_aside: None, preparation, notes })
    }

    fn from_arrays(
        request: &DataRequest,
        input: &[usize],
        loss: Loss,
        reading: &ReadOptions,
    ) -> Result<Self, NetworkFileError> {
        let columns = [
            (!request.selection.target.is_empty(), "--target"),
            (request.selection.features.is_some(), "--features"),
            (!request.class_names.is_empty(), "--class-names"),
        ];
        if let Some((_, flag)) = columns.iter().find(|given| given.0) {
            let problem = format!("{flag} belongs to tables, these are images or arrays");
            return Err(NetworkFileError::Request(problem));
        }
        let (examples, preparation) = Self::arrays(
            request,
            &request.data,
            &request.labels,
            input,
            loss,
            request.augmentation,
            reading,
        )?;
        let validation = if request.validation.is_empty() {
            None
        } else {
            let plain = Augmentation::default();
            let (validation, _) = Self::arrays(
                request,
                &request.validation,
                &request.validation_labels,
                input,
                loss,
                plain,
                reading,
            )?;
            Some(validation)
        };
        Ok(Self { examples, validation, set_aside: None, preparation, notes: Vec::new() })
    }

    fn arrays(
        request: &DataRequest,
        data: &[PathBuf],
        labels: &[PathBuf],
        input: &[usize],
        loss: Loss,
        augmentation: Augmentation,
        reading: &ReadOptions,
    ) -> Result<(Arc<dyn Examples<T> + Send>, Preparation), NetworkFileError> {
        let error = |problem: String| Err(NetworkFileError::Request(problem));
        if loss != Loss::CrossEntropy {
            return error(format!("{} needs numbers as targets: give a table with --target", loss.name()));
        }
        let set = ImageSet::read(data, labels, reading)?;
        let Some(classes) = set.labels else {
            return error("these files hold no labels: give --labels".into());
        };
        let shape = set.images.example_shape().to_vec();
        if shape.iter().product::<usize>() != input.iter().product::<usize>() {
            return error(format!(
                "the network takes examples of shape {input:?}, the data have shape {shape:?}"
            ));
        }
        set.images.require_finite(&data[0])?;
        let targets = Targets::Classes(classes);
        let (_, values) = set.images.into_parts();
        let ArrayValues::U8(bytes) = values else {
            if !request.mean.is_empty()
                || !request.deviation.is_empty()
                || augmentation != Augmentation::default()
            {
                return error(
                    "--mean, --std, --flip and --shift are for images of bytes, and these are other numbers"
                        .into(),
                );
            }
            let values: Vec<T> = match values {
                ArrayValues::F32(v) => v.into_iter().map(|v| T::from_f64(v.into())).collect(),
                ArrayValues::F64(v) => v.into_iter().map(T::from_f64).collect(),
                ArrayValues::I64(v) => v.into_iter().map(|v| T::from_f64(v as f64)).collect(),
                _ => Vec::new(),
            };
            let inputs = Array::new([&[targets.len()], input].concat(), values);
            return Ok((Arc::new(Tabular::new(inputs, targets)), Preparation::None));
        };
        let image: [usize; 3] = match shape[..] {
            [channels, height, width] => [channels, height, width],
            [height, width] => [1, height, width],
            _ => [1, 1, shape.iter().product()],
        };
        let by_channel = |list: &[f64], default: f64, name: &str| match list.len() {
            0 => Ok(vec![default; image[0]]),
            1 => Ok(vec![list[0]; image[0]]),
            n if n == image[0] => Ok(list.to_vec()),
            n => Err(NetworkFileError::Request(format!(
                "{name} has {n} numbers and the images {} channels",
                image[0]
            ))),
        };
        let (mean, deviation) =
            (by_channel(&request.mean, 0.0, "--mean")?, by_channel(&request.deviation, 1.0, "--std")?);
        if deviation.iter().any(|d| !(d.is_finite() && *d > 0.0)) || mean.iter().any(|m| !m.is_finite()) {
            return error("--mean must be finite and --std positive".into());
        }
        let images = Images::new(image, bytes, targets, &mean, &deviation, augmentation, input.to_vec());
        Ok((Arc::new(images), Preparation::Pixels { mean, deviation }))
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
