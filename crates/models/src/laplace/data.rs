//! Inputs to ask a model about, with truths where there are some.

use super::numbers::{class_numbers, converted, numbers};
use super::source::file_name;
use super::{InputKind, LaplaceModel, ModelData, Truth};
use crate::ModelError;
use crate::data::rows;
use crate::network::{Preparation, apply_classes, is_table};
use posterior_data::{
    ArrayValues, FeatureOptions, ImageSet, NumericArray, ReadOptions, Table, read_feature_matrix, read_table,
};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::{Array, Precision};
use std::ops::Range;
use std::path::PathBuf;

impl LaplaceModel {
    /// Reads files of the kind that the model learned from: a table with the same columns; arrays or images; features. Truths come from the table, the files themselves or
    /// `labels`, and are left alone unless asked for. No file may take more memory than `reading` allows.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit the model.
    pub fn read(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
        truth: bool,
        reading: &ReadOptions,
    ) -> Result<ModelData, ModelError> {
        let refuse = |problem: String| Err(ModelError::Request(problem));
        let Some(first) = data.first() else { return refuse("there are no data: give --data".into()) };
        let labels = if truth { labels } else { &[] };
        let read = match &self.header.data.inputs {
            InputKind::Features { columns, label } => {
                self.read_features(data, labels, truth, columns, label.as_deref(), reading)?
            }
            InputKind::Prepared { preparation: Preparation::Columns { .. } } if is_table(first) => {
                if data.len() > 1 || !labels.is_empty() {
                    return refuse("give one table, whose target is a column".into());
                }
                self.read_rows(read_table(first, reading)?, truth)?
            }
            InputKind::Prepared { .. } if is_table(first) => {
                return refuse(format!(
                    "the model learned from arrays or images; {} is a table",
                    first.display()
                ));
            }
            InputKind::Prepared { .. } => self.read_arrays(data, labels, truth, reading)?,
        };
        let shape = self.graph().input_shape();
        let found: usize = read.inputs.example_shape().iter().product();
        if found != shape.iter().product::<usize>() {
            let own = read.inputs.example_shape();
            return refuse(format!(
                "{}: the network takes examples of shape {shape:?}, these have shape {own:?}",
                read.name
            ));
        }
        read.inputs.require_finite(first)?;
        if read.is_empty() {
            return refuse(format!("{}: there are no examples", read.name));
        }
        if let Some(count) = read.truth.as_ref().map(Truth::len).filter(|n| *n != read.len()) {
            return refuse(format!("{}: {} inputs, but truths for {count}", read.name, read.len()));
        }
        Ok(read)
    }

    /// The rows of a table in memory.
    ///
    /// # Errors
    /// When columns are missing, hold other things than numbers, or a class that training does not know.
    pub fn read_rows(&self, mut table: Table, truth: bool) -> Result<ModelData, ModelError> {
        let InputKind::Prepared { preparation: Preparation::Columns { schema, classes, .. } } =
            &self.header.data.inputs
        else {
            return Err(ModelError::Request("the model did not learn from a table".into()));
        };
        let original = table.clone();
        if let (Some(classes), true) = (classes, truth) {
            apply_classes(&mut table, &schema.target, classes)?;
        }
        let all: Vec<usize> = (0..table.rows()).collect();
        let extracted = schema.extract(&table, &all, truth)?;
        let (n, d) = (extracted.x.nrows(), extracted.x.ncols());
        let values = (0..n * d).map(|k| extracted.x[(k / d, k % d)]).collect();
        let truth = extracted.y.filter(|_| truth).map(|y| self.truth(y, 1)).transpose()?;
        let (name, inputs) =
            (file_name(&original.source), NumericArray::new(vec![n, d], ArrayValues::F64(values))?);
        let (notes, table) = (extracted.notes.sentences(), Some((original, extracted.rows)));
        Ok(ModelData { notes, table, ..ModelData::new(name, inputs, truth) })
    }

    /// Numbers as truths of the model's likelihood.
    fn truth(&self, values: Vec<f64>, width: usize) -> Result<Truth, ModelError> {
        let likelihood = self.likelihood();
        if let OutputLikelihood::Categorical(c) = likelihood {
            let classes: Vec<usize> =
                class_numbers(&values, "truths")?.into_iter().map(|c| c as usize).collect();
            if let Some(row) = classes.iter().position(|k| *k >= c.classes()) {
                let problem = format!(
                    "row {}: class {} is beyond the {} classes of the network",
                    row + 1,
                    classes[row],
                    c.classes()
                );
                return Err(ModelError::Request(problem));
            }
            return Ok(Truth::Classes(classes));
        }
        if width != likelihood.target_width() {
            let problem = format!(
                "truths have {width} numbers for each example, the model predicts {}",
                likelihood.target_width()
            );
            return Err(ModelError::Request(problem));
        }
        for (row, y) in values.chunks_exact(width.max(1)).enumerate() {
            likelihood.check_target(y).map_err(|e| ModelError::Request(format!("row {}: {e}", row + 1)))?;
        }
        Ok(Truth::Values { values, width })
    }

    fn read_arrays(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
        truth: bool,
        reading: &ReadOptions,
    ) -> Result<ModelData, ModelError> {
        let set = ImageSet::read(data, &[], reading)?;
        let own = set.labels.map(|labels| (labels.into_iter().map(f64::from).collect::<Vec<_>>(), 1));
        let truth = match (truth, labels.is_empty(), own) {
            (false, _, _) => None,
            (true, true, Some((values, width))) => Some(self.truth(values, width)?),
            (true, true, None) => {
                return Err(ModelError::Request("these files hold no labels: give --labels".into()));
            }
            (true, false, Some(_)) => {
                let problem = format!("{} holds labels already; leave --labels out", data[0].display());
                return Err(ModelError::Request(problem));
            }
            (true, false, None) => {
                let (values, width) = numbers(labels, set.images.examples(), reading)?;
                Some(self.truth(values, width)?)
            }
        };
        Ok(ModelData::new(file_name(&data[0]), set.images, truth))
    }

    fn read_features(
        &self,
        data: &[PathBuf],
        labels: &[PathBuf],
        truth: bool,
        columns: &[String],
        label: Option<&str>,
        reading: &ReadOptions,
    ) -> Result<ModelData, ModelError> {
        let width: usize = self.graph().input_shape().iter().product();
        let (mut values, mut count, mut own, mut single) = (Vec::new(), 0, Vec::new(), true);
        for path in data {
            // Tables are read by the names of the columns; arrays have only their order.
            let options = FeatureOptions {
                columns: is_table(path).then(|| columns.to_vec()),
                label_column: label.filter(|_| truth).map(String::from),
                read: *reading,
            };
            let matrix = read_feature_matrix(path, &options)?;
            let shape = matrix.values.shape().to_vec();
            if shape[1] != width {
                let problem =
                    format!("{}: {} columns of features, the head takes {width}", path.display(), shape[1]);
                return Err(ModelError::Request(problem));
            }
            count += shape[0];
            own.extend(matrix.labels.into_iter().flatten());
            single &= matches!(matrix.values.values(), ArrayValues::F32(_));
            values.extend(converted::<f64>(matrix.values.into_parts().1));
        }
        let values = if single {
            ArrayValues::F32(values.into_iter().map(|v| v as f32).collect())
        } else {
            ArrayValues::F64(values)
        };
        let truth = match (truth, own.is_empty()) {
            (false, _) => None,
            (true, false) => Some(self.truth(own, 1)?),
            (true, true) => {
                let (values, width) = numbers(labels, count, reading)?;
                Some(self.truth(values, width)?)
            }
        };
        Ok(ModelData::new(file_name(&data[0]), NumericArray::new(vec![count, width], values)?, truth))
    }

    /// What is to be known of inputs beside those of the fit: numbers outside their range, and, if `allowed` and not refused, of another kind. Nothing for models of older versions, which
    /// recorded neither.
    ///
    /// # Errors
    /// Numbers of another kind (bytes for floating-point numbers, say), unless `allowed`.
    pub fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        let Some(record) = &self.header.data.record else { return Ok(Vec::new()) };
        let mut notes: Vec<String> =
            record.check_kind(&data.name, &data.inputs, allowed)?.into_iter().collect();
        let names = match &self.header.data.inputs {
            InputKind::Prepared { preparation: Preparation::Columns { schema, .. } } => {
                schema.feature_names()
            }
            InputKind::Prepared { .. } => Vec::new(),
            InputKind::Features { columns, .. } => columns.clone(),
        };
        notes.extend(record.sentences(&data.inputs, &names));
        Ok(notes)
    }

    /// Prepared inputs of some examples, as the network takes them.
    pub(super) fn prepared<T: Precision>(
        &self,
        data: &ModelData,
        range: Range<usize>,
    ) -> Result<Array<T>, ModelError> {
        let piece = rows(&data.inputs, range)?;
        let input = self.graph().input_shape();
        match &self.header.data.inputs {
            InputKind::Prepared { preparation } => Ok(preparation.inputs::<T>(&piece, input)?.0),
            InputKind::Features { .. } => {
                let count = piece.examples();
                Ok(Array::new([&[count], input].concat(), converted(piece.into_parts().1)))
            }
        }
    }
}
