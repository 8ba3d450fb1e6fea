//! Inputs to ask a model about, with truths where there are some.

use super::networks::Networks;
use crate::network::{InputRecord as NetworkInputRecord, Preparation, Raw, Wanted, is_table};
use crate::record::{InputKind, InputRecord, NetworkHeader};
use crate::{Files, ModelData, ModelError};
use posterior_data::{ReadOptions, Table, read_table};
use posterior_likelihoods::OutputLikelihood;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a network reads.
#[derive(Clone, Debug)]
pub(crate) struct NetworkInputs {
    /// Where inputs stand in files, and what is done to them.
    pub(crate) kind: InputKind,
    /// Their kind and range at the fit; none of networks in memory.
    pub(crate) record: Option<InputRecord>,
    /// The network's inputs, where it has several.
    pub(crate) arrays: Vec<NetworkInputRecord>,
    /// Shape of an example, as the network takes it.
    pub(crate) shape: Vec<usize>,
}

impl NetworkInputs {
    /// Of a network that takes examples of this shape.
    pub(crate) fn new(header: &NetworkHeader, shape: Vec<usize>) -> Self {
        let (data, arrays) = (&header.data, header.network.inputs.clone());
        Self { kind: data.inputs.clone(), record: data.record.clone(), arrays, shape }
    }
}

impl Networks<'_> {
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
        let own = &self.inputs;
        let &Files { data, inputs, labels, truth, ref reading } = files;
        let refuse = |problem: String| Err(ModelError::Request(problem));
        let Some(first) = data.first() else { return refuse("there are no data: name their files".into()) };
        if !inputs.is_empty() && (is_table(first) || matches!(own.kind, InputKind::Features { .. })) {
            let problem = "--input is for arrays, one for each input of a network: name tables and features without --input";
            return refuse(problem.into());
        }
        let labels = if truth { labels } else { &[] };
        let predicted = self.output.predicted_shape();
        let wanted = match self.output.likelihood {
            _ if !truth => Wanted::Nothing,
            OutputLikelihood::Categorical(_) => Wanted::Classes,
            _ => Wanted::Numbers(&predicted),
        };
        let raw = match &own.kind {
            InputKind::Features { columns, label } => {
                let width = own.shape.iter().product();
                let named = (Some(&columns[..]), label.as_deref());
                Raw::of_features((data, labels), width, named, wanted, reading)?
            }
            InputKind::Prepared { preparation: Preparation::Columns { schema, .. } } if is_table(first) => {
                if data.len() > 1 || !labels.is_empty() {
                    return refuse("give one table, whose target is a column".into());
                }
                let text = schema.reading(reading.text);
                return self.read_rows(read_table(first, &ReadOptions { text, ..*reading })?, truth);
            }
            InputKind::Prepared { .. } if is_table(first) => {
                return refuse(format!(
                    "the model learned from arrays or images; {} is a table",
                    first.display()
                ));
            }
            InputKind::Prepared { .. } => {
                Raw::of_arrays(&own.arrays, (inputs, data), labels, wanted, reading)?
            }
        };
        self.checked(raw, first, None)
    }

    /// The rows of a table in memory.
    ///
    /// # Errors
    /// When columns are missing, hold other things than numbers, or a class that training does not know.
    pub fn read_rows(&self, mut table: Table, truth: bool) -> Result<ModelData, ModelError> {
        let Preparation::Columns { schema, classes, .. } = self.inputs.kind.preparation() else {
            return Err(ModelError::Request("the model did not learn from a table".into()));
        };
        let original = table.clone();
        let raw = Raw::of_table(&mut table, schema, classes.as_deref(), truth)?;
        self.checked(raw, &original.source.clone(), Some(original))
    }

    /// Examples that fit the network, with truths that fit the likelihood.
    fn checked(&self, raw: Raw, first: &Path, table: Option<Table>) -> Result<ModelData, ModelError> {
        let Raw { name, inputs, truths, rows, found, .. } = raw.fit_for(&self.inputs.shape, first)?;
        let truth = truths.map(|(values, width)| self.output.truth(values, width)).transpose()?;
        let table = table.map(|table| (Arc::new(table), rows));
        let notes = found.sentences();
        Ok(ModelData { notes, found, table, ..ModelData::new(name, inputs, truth) })
    }

    /// What is to be known of inputs beside those of the fit, of each network once: numbers outside their range, and, if `allowed` and not refused, of another kind. Nothing for networks in memory.
    ///
    /// # Errors
    /// Numbers of another kind (bytes for floating-point numbers, say), unless `allowed`.
    pub fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        let mut all: Vec<String> = Vec::new();
        for NetworkInputs { kind, record, .. } in self.members().iter().map(|member| &member.inputs) {
            let Some(record) = record else { continue };
            let mut notes: Vec<String> =
                record.check_kind(&data.name, &data.inputs, allowed)?.into_iter().collect();
            notes.extend(record.sentences(&data.inputs, &kind.names()));
            notes.retain(|note| !all.contains(note));
            all.append(&mut notes);
        }
        Ok(all)
    }
}
