//! **What a model reads**: columns of a table as standardised inputs.

use crate::{ModelError, Question};
use faer::Mat;
use posterior_data::stream::{StreamOptions, TableParts};
use posterior_data::{Extracted, Feature, InputRanges, Reading, Schema, Standardisation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Rows of a table as inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableInputs {
    /// Roles of the columns.
    pub schema: Schema,
    /// Means and scales of the features, and of numbers that are predicted with Gaussian noise.
    pub standardisation: Standardisation,
    /// Where the inputs lay in training, in their own units.
    pub input_ranges: InputRanges,
    /// The densest place of the training rows in their own units, of models of two numeric inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub densest: Option<[f64; 2]>,
}

impl TableInputs {
    /// Standardised features, m x D.
    pub(crate) fn standard(&self, extracted: &Extracted) -> Mat<f64> {
        self.standardisation.features(extracted.x.as_ref())
    }

    /// The columns where inputs are so many plain numbers.
    pub(crate) fn numeric<const D: usize>(&self) -> Option<[&str; D]> {
        let columns: Option<Vec<&str>> = self
            .schema
            .features
            .iter()
            .map(|feature| match feature {
                Feature::Number { column, reading: Reading::Plain, .. } => Some(column.as_str()),
                _ => None,
            })
            .collect();
        columns?.try_into().ok()
    }

    /// Parts of a table whose rows take so many numbers each while they are predicted. Cells that the model does not look at pass through as text, whatever they look like in which part, and a part's inputs and draws take no more than its cells would.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn cut(
        &self,
        files: &[PathBuf],
        question: &Question,
        numbers: usize,
    ) -> Result<StreamOptions, ModelError> {
        let schema = &self.schema;
        let sources: BTreeSet<&str> = schema.features.iter().map(Feature::column).collect();
        let text_columns = schema.text_columns();
        let text = schema.reading(question.text);
        let mut options = StreamOptions { text_columns, text, ..StreamOptions::default() };
        let most = usize::try_from(question.memory / 8).unwrap_or(usize::MAX);
        options.part_bytes = options.part_bytes.min(most).max(1 << 16);
        options.part_bytes =
            (options.part_bytes * sources.len() / numbers.max(1)).clamp(1 << 16, options.part_bytes);
        // Parquet says which columns are numbers.
        let parquet = |path: &PathBuf| {
            path.extension().is_some_and(|e| ["parquet", "pq"].iter().any(|p| e.eq_ignore_ascii_case(p)))
        };
        if !files.iter().all(parquet)
            && let Some(first) = TableParts::open(files, &options)?.next()
        {
            let numeric =
                |name: &String| sources.contains(name.as_str()) || schema.noise.as_ref() == Some(name);
            options.text_columns.extend(first?.table.names().into_iter().filter(|name| !numeric(name)));
        }
        Ok(options)
    }

    /// What its numbers must be, whoever wrote them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn sound(&self) -> Result<(), String> {
        let (d, standard) = (self.schema.features.len(), &self.standardisation);
        if self.input_ranges.0.iter().any(|range| range.input >= d) {
            return Err("its ranges do not fit its features".into());
        }
        let positive = standard.feature_scales.iter().chain([&standard.target_scale]).all(|s| *s > 0.0);
        let maps = standard.feature_maps.iter().all(|(j, map)| *j < d && map.is_sound());
        if standard.feature_means.len() != d || standard.feature_scales.len() != d || !positive || !maps {
            return Err("its standardisation does not fit its features".into());
        }
        Ok(())
    }
}
