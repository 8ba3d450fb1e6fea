//! The columns of a table as a network wants them that was trained on columns: by their names, in its order and in its own units.
//!
//! A fit standardises its columns by its own rows. A network that was trained on a table did so by others, and what its file says of that must not be lost: `(x - m) / s` of the table is put into the file's units by a
//! constant layer in front of the network, which its architecture and weights in a model's file then have as well.

use super::basis::refuse;
use crate::ModelError;
use crate::network::Preparation;
use posterior_data::Standardisation;
use posterior_networks::Network;
use posterior_networks::graph::InputScaling;
use posterior_notes::fixes::FEATURES;

/// Columns whose order may be another than a network's: putting them in order is a matrix of their square.
const MOST_MOVED: usize = 2048;

/// The features of a table: their names, and what a fit does to them first.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) names: &'a [String],
    pub(crate) standardisation: &'a Standardisation,
}

/// What stands between a table's standardised columns and a network.
pub(crate) enum Scaling {
    /// Nothing: its file says nothing of columns.
    Unknown,
    /// Its own units and order.
    Known(InputScaling),
}

impl Scaling {
    /// For the summary, behind the network's name.
    pub(crate) fn in_words(&self) -> &'static str {
        match self {
            Self::Unknown => {
                ", whose file says nothing of columns: it sees those of the table in their order, standardised"
            }
            Self::Known(own) if own.order.iter().enumerate().all(|(k, from)| k == *from) => {
                ", whose columns are known: its own scaling of inputs is kept"
            }
            Self::Known(_) => {
                ", whose columns are known: they are put in its order, and its own scaling of inputs is kept"
            }
        }
    }

    /// The network behind it.
    pub(crate) fn before(self, network: Network<f32>) -> Result<Network<f32>, ModelError> {
        match self {
            Self::Known(own) if !own.is_identity() => Ok(network.with_inputs(&own)?),
            _ => Ok(network),
        }
    }
}

/// From a table's standardised columns to the inputs that a trained network was given, by what its file says of them.
///
/// # Errors
/// Names the first column that only one of the two has; networks of images.
pub(crate) fn scaling(
    file: &str,
    preparation: &Preparation,
    columns: Columns<'_>,
) -> Result<Scaling, ModelError> {
    let (schema, own) = match preparation {
        Preparation::None => return Ok(Scaling::Unknown),
        Preparation::Pixels { .. } => {
            return refuse(format!(
                "{file} was trained on images, whose bytes it scales: columns of a table are none, take a network that was trained on such columns"
            ));
        }
        Preparation::Columns { schema, standardisation, .. } => (schema, standardisation),
    };
    let (known, table) = (schema.feature_names(), columns.standardisation);
    let listed = || known.join(",");
    let place = |name: &String| columns.names.iter().position(|own| own == name);
    if let Some(missing) = known.iter().find(|name| place(name).is_none()) {
        return refuse(format!(
            "{file} was trained on the column `{missing}`, which is not among the table's features ({}): it takes {}; give columns the names that they had then",
            columns.names.join(","),
            listed()
        ));
    }
    if let Some(stranger) = columns.names.iter().find(|name| !known.contains(name)) {
        return refuse(format!(
            "{file} was not trained on the column `{stranger}`, which is among the table's features: choose those that it takes, {FEATURES} {}",
            listed()
        ));
    }
    let order: Vec<usize> = known.iter().filter_map(place).collect();
    if own.feature_means.len() != known.len()
        || own.feature_scales.len() != known.len()
        || own.feature_scales.iter().any(|scale| scale.is_nan() || *scale <= 0.0)
        || order.len() != columns.names.len()
    {
        return refuse(format!("{file} is damaged: its standardisation does not fit its columns"));
    }
    let first = order.iter().enumerate().find(|(k, from)| *k != **from);
    if let Some((k, from)) = first.filter(|_| order.len() > MOST_MOVED) {
        return refuse(format!(
            "{file} takes `{}` where the table has `{}`: put the columns in its order, of more than {MOST_MOVED} it is not changed",
            columns.names[*from], columns.names[k]
        ));
    }
    // x = mean + scale z of the table is (x - m) / s of the file.
    let pairs = || order.iter().zip(own.feature_means.iter().zip(&own.feature_scales));
    let gains = pairs().map(|(from, (_, s))| table.feature_scales[*from] / s).collect();
    let shifts = pairs().map(|(from, (m, s))| (table.feature_means[*from] - m) / s).collect();
    Ok(Scaling::Known(InputScaling { order, gains, shifts }))
}
