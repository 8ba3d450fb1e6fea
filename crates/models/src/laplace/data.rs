//! Inputs to ask a model about, with truths where there are some.

use super::training::predicted_shape;
use super::{InputKind, LaplaceModel, ModelData, Truth};
use crate::data::rows;
use crate::network::{Preparation, Raw, Wanted, class_numbers, converted, is_table};
use crate::{Files, ModelError};
use posterior_data::{ReadOptions, Table, read_table};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::{Array, Precision};
use posterior_notes::fixes::DATA;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        self.read_files(&Files { data, inputs: &[], labels, truth, reading: *reading })
    }

    /// As [`Self::read`], of files that may each be an input of the network.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_files(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        let &Files { data, inputs, labels, truth, ref reading } = files;
        let refuse = |problem: String| Err(ModelError::Request(problem));
        let Some(first) = data.first() else { return refuse(format!("there are no data: give {DATA}")) };
        if !inputs.is_empty()
            && (is_table(first) || matches!(self.header.data.inputs, InputKind::Features { .. }))
        {
            return refuse(format!(
                "--input is for arrays, one for each input of a network: give tables and features with {DATA}"
            ));
        }
        let labels = if truth { labels } else { &[] };
        let predicted = self.predicted_shape();
        let wanted = match self.likelihood() {
            _ if !truth => Wanted::Nothing,
            OutputLikelihood::Categorical(_) => Wanted::Classes,
            _ => Wanted::Numbers(&predicted),
        };
        let raw = match &self.header.data.inputs {
            InputKind::Features { columns, label } => {
                let width = self.graph().input_shape().iter().product();
                let named = (Some(&columns[..]), label.as_deref());
                Raw::of_features((data, labels), width, named, wanted, reading)?
            }
            InputKind::Prepared { preparation: Preparation::Columns { .. } } if is_table(first) => {
                if data.len() > 1 || !labels.is_empty() {
                    return refuse("give one table, whose target is a column".into());
                }
                return self.read_rows(read_table(first, reading)?, truth);
            }
            InputKind::Prepared { .. } if is_table(first) => {
                return refuse(format!(
                    "the model learned from arrays or images; {} is a table",
                    first.display()
                ));
            }
            InputKind::Prepared { .. } => {
                Raw::of_arrays(&self.header.network.inputs, (inputs, data), labels, wanted, reading)?
            }
        };
        self.checked(raw, first, None)
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
        let raw = Raw::of_table(&mut table, schema, classes.as_deref(), truth)?;
        self.checked(raw, &original.source.clone(), Some(original))
    }

    /// Examples that fit the network, with truths that fit the likelihood.
    fn checked(&self, raw: Raw, first: &Path, table: Option<Table>) -> Result<ModelData, ModelError> {
        let Raw { name, inputs, truths, rows, found, .. } = raw.fit_for(self.graph().input_shape(), first)?;
        let truth = truths.map(|(values, width)| self.truth(values, width)).transpose()?;
        let table = table.map(|table| (Arc::new(table), rows));
        let notes = found.sentences();
        Ok(ModelData { notes, found, table, ..ModelData::new(name, inputs, truth) })
    }

    /// The shape of what is predicted of an example.
    pub(super) fn predicted_shape(&self) -> Vec<usize> {
        predicted_shape(self.graph().output_shape(), self.likelihood().target_width())
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

    /// What is to be known of inputs beside those of the fit: numbers outside their range, and, if `allowed` and not refused, of another kind. Nothing for networks in memory.
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
