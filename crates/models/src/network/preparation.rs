//! What is done to data before a network sees them.

use super::{NetworkFileError, refuse};
use posterior_data::{ArrayValues, NumericArray, Schema, Standardisation};
use posterior_networks::{Array, Precision};
use serde::{Deserialize, Serialize};

/// From data in their own units to a network's inputs, and from its outputs back. Stored in the metadata of networks trained here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Preparation {
    /// Numbers as they are.
    #[default]
    None,
    /// Bytes become `(byte / 255 - mean) / deviation`, by channel.
    Pixels {
        /// One for each channel, on the scale of 0 to 1.
        mean: Vec<f64>,
        /// One for each channel.
        deviation: Vec<f64>,
    },
    /// Columns of a table, standardised.
    Columns {
        /// Which columns.
        schema: Box<Schema>,
        /// Their means and scales, and the target's.
        standardisation: Standardisation,
        /// The classes of the target, where it has some; then it has no units.
        classes: Option<Vec<String>>,
    },
}

impl Preparation {
    /// Where a file keeps it.
    pub(super) const KEY: &str = "posterior.preparation";

    /// Inputs of a network with examples shaped `input`, and a note on what was done.
    pub(crate) fn inputs<T: Precision>(
        &self,
        array: &NumericArray,
        input: &[usize],
    ) -> Result<(Array<T>, Option<String>), NetworkFileError> {
        let examples = array.examples();
        let width: usize = input.iter().product();
        if array.len() != examples * width || array.shape().is_empty() {
            return refuse(format!(
                "the network takes examples of shape {input:?}, the array has shape {:?}: its first axis must count examples",
                array.shape()
            ));
        }
        let mut values = array.to_f64();
        let mut note = None;
        match self {
            Self::Pixels { mean, deviation } => {
                if matches!(array.values(), ArrayValues::U8(_)) {
                    let plane = width / mean.len().max(1);
                    for (i, v) in values.iter_mut().enumerate() {
                        let channel = (i % width) / plane.max(1);
                        *v = (*v / 255.0 - mean[channel]) / deviation[channel];
                    }
                    note = Some("bytes were scaled as in training".into());
                } else {
                    note = Some(
                        "the network was trained on scaled bytes; these numbers are taken as scaled already"
                            .into(),
                    );
                }
            }
            Self::Columns { standardisation, .. } => {
                for row in values.chunks_exact_mut(width.max(1)) {
                    let known = row.iter_mut().enumerate().take(standardisation.feature_means.len());
                    known.for_each(|(j, v)| *v = standardisation.feature(j, *v));
                }
                note = Some("inputs were standardised as in training".into());
            }
            Self::None => {}
        }
        let shape: Vec<usize> = std::iter::once(examples).chain(input.iter().copied()).collect();
        Ok((Array::new(shape, values.into_iter().map(T::from_f64).collect()), note))
    }

    /// Mean and scale that take a regression output to the target's units.
    pub(crate) fn target_units(&self) -> (f64, f64) {
        match self {
            Self::Columns { standardisation: s, classes: None, .. } => (s.target_mean, s.target_scale),
            _ => (0.0, 1.0),
        }
    }

    /// Outputs in the target's units.
    pub(super) fn outputs<T: Precision>(&self, mut outputs: Array<T>) -> (Array<T>, Option<String>) {
        match self {
            Self::Columns { standardisation, classes: None, .. } if outputs.row_len() == 1 => {
                for v in outputs.values_mut() {
                    *v = T::from_f64(standardisation.target_back(v.to_f64()));
                }
                (outputs, Some("outputs are in the target's units".into()))
            }
            Self::Columns { classes: None, .. } => {
                (outputs, Some("outputs belong to the standardised target: a mean and a log variance".into()))
            }
            _ => (outputs, None),
        }
    }
}

/// What is done to data before the network sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Preprocess {
    /// As the network's file says, else bytes / 255
    ///
    /// Other numbers are taken as they are.
    #[default]
    Auto,
    /// Numbers as they are, bytes too.
    Raw,
    /// Bytes become (byte / 255 - mean) / std
    Pixels,
    /// Columns (and a numeric target) are standardised
    ///
    /// Those of a table, that is.
    Standardise,
}
