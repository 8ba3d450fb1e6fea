//! **Examples as they stand in their files**: rows of a table, arrays and images, features of a head. What is trained, fitted, predicted and scored is read here.

use super::classes::apply_classes;
use super::examples::is_table;
use super::inputs::{InputRecord, read_examples};
use super::preparation::Preparation;
use super::{NetworkFileError, refuse};
use posterior_data::{
    ArrayValues, DataError, FeatureOptions, Notes, NumericArray, ReadOptions, Schema, Table, read_array,
    read_feature_matrix, read_images,
};
use posterior_networks::train::{Augmentation, Examples, Images, Tabular, Targets};
use posterior_networks::{Array, Precision};
use posterior_notes::fixes::{FEATURES, LABELS, LABELS_FILE, TARGET};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The last part of a path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Which truths are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// None.
    Nothing,
    /// Whole numbers from 0.
    Classes,
    /// Numbers for each example, in an array of this shape where they are not in a row.
    Numbers(&'a [usize]),
}

/// Examples before anything is done to them.
pub(crate) struct Raw {
    /// What they are called.
    pub(crate) name: String,
    /// `[examples, ...]`.
    pub(crate) inputs: NumericArray,
    /// What came true, and how many numbers that is for each example.
    pub(crate) truths: Option<(Vec<f64>, usize)>,
    /// Table: the rows that could be used.
    pub(crate) rows: Vec<usize>,
    /// Features: names of their columns.
    pub(crate) columns: Vec<String>,
    /// What was dropped or filled.
    pub(crate) notes: Vec<String>,
    /// The same of a table in numbers.
    pub(crate) found: Notes,
}

impl Raw {
    /// Rows of a table; the target becomes numbers of known classes, where there are some and it is wanted.
    pub(crate) fn of_table(
        table: &mut Table,
        schema: &Schema,
        classes: Option<&[String]>,
        truth: bool,
    ) -> Result<Self, NetworkFileError> {
        if let (Some(classes), true) = (classes, truth) {
            apply_classes(table, &schema.target, classes)?;
        }
        let extracted = schema.extract(table, &(0..table.rows()).collect::<Vec<_>>(), truth)?;
        let (n, d) = (extracted.x.nrows(), extracted.x.ncols());
        let values = (0..n * d).map(|k| extracted.x[(k / d, k % d)]).collect();
        let targets: Vec<Vec<f64>> = extracted.y.into_iter().chain(extracted.further).collect();
        let truths = (0..n).flat_map(|i| targets.iter().map(move |y| y[i])).collect();
        Ok(Self {
            name: file_name(&table.source),
            inputs: NumericArray::new(vec![n, d], ArrayValues::F64(values))?,
            truths: truth.then_some((truths, targets.len())),
            rows: extracted.rows,
            columns: Vec::new(),
            notes: extracted.notes.sentences(),
            found: extracted.notes.of_cells(),
        })
    }

    /// Arrays and images, put together in order or side by side ([`read_examples`]), with labels of their own or in files beside them.
    pub(crate) fn of_arrays(
        inputs: &[InputRecord],
        (names, data): (&[String], &[PathBuf]),
        labels: &[PathBuf],
        wanted: Wanted<'_>,
        reading: &ReadOptions,
    ) -> Result<Self, NetworkFileError> {
        let beside = if wanted == Wanted::Classes { labels } else { &[] };
        let set = read_examples(inputs, (names, data), beside, reading)?;
        let own = set.labels.map(|labels| (labels.into_iter().map(f64::from).collect(), 1));
        let truths = match (wanted, own) {
            (Wanted::Nothing, _) => None,
            (Wanted::Classes, None) => return refuse(format!("these files hold no labels: give {LABELS}")),
            (Wanted::Numbers(_), Some(_)) if !labels.is_empty() => {
                return refuse(format!("{} holds labels already; leave --labels out", data[0].display()));
            }
            (_, Some(own)) => Some(own),
            (Wanted::Numbers(shape), None) => Some(numbers(labels, (set.images.examples(), shape), reading)?),
        };
        let (rows, columns, notes, found) = Default::default();
        Ok(Self { name: file_name(&data[0]), inputs: set.images, truths, rows, columns, notes, found })
    }

    /// Arrays in memory, and what came true of each example.
    pub(crate) fn of_memory(name: &str, inputs: NumericArray, truths: (Vec<f64>, usize)) -> Self {
        let (rows, columns, notes, found) = Default::default();
        Self { name: name.into(), inputs, truths: Some(truths), rows, columns, notes, found }
    }

    /// Features of a head of so many inputs: columns by name, or in their order; labels in a column or in files beside them.
    pub(crate) fn of_features(
        (data, labels): (&[PathBuf], &[PathBuf]),
        width: usize,
        (columns, label): (Option<&[String]>, Option<&str>),
        wanted: Wanted<'_>,
        reading: &ReadOptions,
    ) -> Result<Self, NetworkFileError> {
        let (mut values, mut count, mut own, mut single) = (Vec::new(), 0, Vec::new(), true);
        let mut names = Vec::new();
        for path in data {
            // Tables are read by the names of the columns; arrays have only their order.
            let options = FeatureOptions {
                columns: columns.filter(|_| is_table(path)).map(<[String]>::to_vec),
                label_column: label.filter(|_| wanted != Wanted::Nothing).map(String::from),
                read: *reading,
            };
            let matrix = read_feature_matrix(path, &options)?;
            let shape = matrix.values.shape().to_vec();
            if shape[1] != width {
                let target = wanted != Wanted::Nothing && label.is_none();
                let hint = match target {
                    true => format!("; name the column of labels with {TARGET}"),
                    false => String::new(),
                };
                return refuse(format!(
                    "{}: {} columns of features, the head takes {width}{hint}",
                    path.display(),
                    shape[1]
                ));
            }
            count += shape[0];
            own.extend(matrix.labels.into_iter().flatten());
            names = matrix.column_names;
            single &= matches!(matrix.values.values(), ArrayValues::F32(_));
            values.extend(converted::<f64>(matrix.values.into_parts().1));
        }
        let truths = match (wanted, own.is_empty(), labels.is_empty()) {
            (Wanted::Nothing, ..) => None,
            (_, false, false) => return refuse("labels are given twice: by --target and by --labels"),
            (_, false, true) => Some((own, 1)),
            (_, true, true) => {
                return refuse(format!(
                    "these features have no labels: give {LABELS_FILE}, or their column with {TARGET}"
                ));
            }
            (_, true, false) => Some(numbers(labels, (count, &[]), reading)?),
        };
        let inputs = NumericArray::new(vec![count, width], in_precision(values, single))?;
        let (name, rows, notes) = (file_name(&data[0]), Vec::new(), Vec::new());
        Ok(Self { name, inputs, truths, rows, columns: names, notes, found: Notes::default() })
    }

    /// Refuses examples that a network with inputs of this shape cannot take.
    pub(crate) fn fit_for(self, input: &[usize], first: &Path) -> Result<Self, NetworkFileError> {
        let (name, own) = (&self.name, self.inputs.example_shape());
        if own.iter().product::<usize>() != input.iter().product::<usize>() {
            let hint = match self.rows.is_empty() {
                true => String::new(),
                false => format!("; choose columns with {FEATURES}"),
            };
            return refuse(format!(
                "{name}: the network takes examples of shape {input:?}, the data have shape {own:?}{hint}"
            ));
        }
        self.inputs.require_finite(first)?;
        let count = self.inputs.examples();
        if count == 0 {
            return refuse(format!("{name}: there are no examples"));
        }
        match self.truths.as_ref().map(|(values, width)| values.len() / (*width).max(1)) {
            Some(truths) if truths != count => {
                refuse(format!("{name}: {count} inputs, but targets for {truths}"))
            }
            _ => Ok(self),
        }
    }

    /// What came true of one example.
    pub(crate) fn truth(&self, example: usize) -> Vec<f64> {
        let own =
            |(values, width): &(Vec<f64>, usize)| values[example * width..(example + 1) * width].to_vec();
        self.truths.as_ref().map_or_else(Vec::new, own)
    }

    /// Examples to learn from, prepared; numbers of targets are changed by `target` first.
    pub(crate) fn examples<T: Precision>(
        self,
        classes: bool,
        preparation: &Preparation,
        input: &[usize],
        augmentation: Augmentation,
    ) -> Result<Arc<dyn Examples<T> + Send>, NetworkFileError> {
        let (values, width) = self.truths.unwrap_or_default();
        let targets = if classes {
            Targets::Classes(class_numbers(&values, &self.name)?)
        } else {
            let standard = |v: f64| match preparation {
                Preparation::Columns { standardisation, classes: None, .. } => standardisation.target(v),
                _ => v,
            };
            let values: Vec<T> = values.into_iter().map(|v| T::from_f64(standard(v))).collect();
            Targets::Values(Array::new(vec![values.len() / width.max(1), width], values))
        };
        let image = image_shape(self.inputs.example_shape());
        let shape = [&[self.inputs.examples()], input].concat();
        Ok(match (preparation, self.inputs) {
            (Preparation::Pixels { mean, deviation }, inputs)
                if matches!(inputs.values(), ArrayValues::U8(_)) =>
            {
                let ArrayValues::U8(bytes) = inputs.into_parts().1 else {
                    return refuse("these are no bytes");
                };
                Arc::new(Images::new(image, bytes, targets, mean, deviation, augmentation, input.to_vec()))
            }
            (Preparation::Columns { .. }, inputs) => {
                Arc::new(Tabular::new(preparation.inputs(&inputs, input)?.0, targets))
            }
            // Numbers as they are, without another copy of them.
            (_, inputs) => {
                Arc::new(Tabular::new(Array::new(shape, converted(inputs.into_parts().1)), targets))
            }
        })
    }
}

/// Numbers in a network's precision.
fn converted<T: Precision>(values: ArrayValues) -> Vec<T> {
    match values {
        ArrayValues::F32(v) => v.into_iter().map(|v| T::from_f64(v.into())).collect(),
        ArrayValues::F64(v) => v.into_iter().map(T::from_f64).collect(),
        ArrayValues::I64(v) => v.into_iter().map(|v| T::from_f64(v as f64)).collect(),
        ArrayValues::U8(v) => v.into_iter().map(|v| T::from_f64(v.into())).collect(),
    }
}

/// Numbers in single precision where their files had it.
pub(crate) fn in_precision(values: Vec<f64>, single: bool) -> ArrayValues {
    match single {
        true => ArrayValues::F32(values.into_iter().map(|v| v as f32).collect()),
        false => ArrayValues::F64(values),
    }
}

/// The array of a file of images, or of any other file of one.
pub(crate) fn any_array(path: &Path, reading: &ReadOptions) -> Result<NumericArray, DataError> {
    read_images(path, reading).or_else(|_| read_array(path, reading))
}

/// Channels, height and width of one image.
pub(crate) fn image_shape(shape: &[usize]) -> [usize; 3] {
    match shape[..] {
        [channels, height, width] => [channels, height, width],
        [height, width] => [1, height, width],
        _ => [1, 1, shape.iter().product()],
    }
}

/// Pixels with means and deviations of so many channels: given for each, one for all, or none.
pub(crate) fn pixels(
    mean: &[f64],
    deviation: &[f64],
    channels: usize,
) -> Result<Preparation, NetworkFileError> {
    let by_channel = |list: &[f64], default: f64, name: &str| match list.len() {
        0 => Ok(vec![default; channels]),
        1 => Ok(vec![list[0]; channels]),
        n if n == channels => Ok(list.to_vec()),
        n => refuse(format!("{name} has {n} numbers and the images {channels} channels")),
    };
    let (mean, deviation) = (by_channel(mean, 0.0, "--mean")?, by_channel(deviation, 1.0, "--std")?);
    if deviation.iter().any(|d| !(d.is_finite() && *d > 0.0)) || mean.iter().any(|m| !m.is_finite()) {
        return refuse("--mean must be finite and --std positive");
    }
    Ok(Preparation::Pixels { mean, deviation })
}

/// Whole numbers from 0.
pub(crate) fn class_numbers(values: &[f64], name: &str) -> Result<Vec<u32>, NetworkFileError> {
    let class = |(row, v): (usize, &f64)| {
        let class = *v as u32;
        if f64::from(class) == *v {
            return Ok(class);
        }
        refuse(format!(
            "{name}, row {}: the label is {v}; classes are whole numbers, counted from 0",
            row + 1
        ))
    };
    values.iter().enumerate().map(class).collect()
}

/// Targets from files of numbers: `[examples]`, `[examples, outputs]`, or shaped as the outputs of so many examples, whose axes of length 1 may be left out.
fn numbers(
    labels: &[PathBuf],
    (count, shape): (usize, &[usize]),
    reading: &ReadOptions,
) -> Result<(Vec<f64>, usize), NetworkFileError> {
    let (mut all, mut width, mut rows) = (Vec::new(), None, 0);
    for path in labels {
        let array = any_array(path, reading)?;
        array.require_finite(path)?;
        let own = match *array.shape() {
            [_] => 1,
            [_, width] => width,
            _ if alike(array.example_shape(), shape) => shape.iter().product(),
            _ => {
                return refuse(format!(
                    "{}: targets of shape {:?}; they must be [examples], [examples, outputs] or, as the outputs, [examples, {}]",
                    path.display(),
                    array.shape(),
                    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
                ));
            }
        };
        if width.is_some_and(|w| w != own) {
            return refuse(format!("{}: targets of another width than those before", path.display()));
        }
        width = Some(own);
        rows += array.examples();
        all.extend(array.to_f64());
    }
    let Some(width) = width else {
        return refuse(format!(
            "targets are needed: give {LABELS_FILE} with a number (or a row of numbers) for each example"
        ));
    };
    if rows != count {
        return refuse(format!("{count} inputs, but targets for {rows}"));
    }
    Ok((all, width))
}

/// Whether shapes are the same but for axes of length 1.
pub(crate) fn alike(a: &[usize], b: &[usize]) -> bool {
    let long = |shape: &[usize]| shape.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    long(a) == long(b)
}
