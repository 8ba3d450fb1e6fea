//! **Which weights** are uncertain: all, the last layer's, those with certain names, or a sub-network of single entries.

use crate::LaplaceError;
use crate::accumulate::{Accumulator, FisherEstimate, Form};
use crate::problem::Data;
use crate::run::{Run, Stage};
use posterior_linalg::random::Streams;
use posterior_networks::{Graph, Operation, Precision, Selection};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The weights that get a posterior; all others stay as they were trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// All trainable ones.
    #[default]
    All,
    /// Those of the last layer that has any.
    LastLayer,
    /// Parameters whose names match one of the patterns.
    Matching(Vec<String>),
    /// The so many entries that a criterion puts first.
    Subnetwork {
        /// How many.
        size: usize,
        /// Which.
        choice: Choice,
    },
}

/// How a sub-network is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Choice {
    /// Largest posterior variance
    ///
    /// Under a diagonal approximation with unit prior precision (Daxberger et al. 2021).
    #[default]
    Variance,
    /// Largest magnitude.
    Magnitude,
    /// At random.
    Random,
}

impl Weights {
    /// The selection. Needs the data only for sub-networks of largest variance, one pass.
    ///
    /// Without `affine`, gains and offsets of normalisation layers are left out (spec `linearised_laplace`, section 4.5).
    ///
    /// # Errors
    /// When nothing matches, or the sub-network is empty or larger than the network.
    pub fn select<T: Precision>(
        &self,
        data: &Data<'_, T>,
        affine: bool,
        seed: u64,
        run: &mut Run<'_>,
    ) -> Result<Selection, LaplaceError> {
        let graph = data.network.graph();
        let all = Selection::all(graph);
        let all = if affine { all } else { without_affine(graph, &all)? };
        match self {
            Self::All => Ok(all),
            Self::LastLayer => Ok(Selection::last_layer(graph)?),
            Self::Matching(patterns) => {
                let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
                Ok(Selection::matching(graph, &patterns)?)
            }
            Self::Subnetwork { size, choice } => {
                if *size == 0 || *size > all.len() {
                    return Err(LaplaceError::Request(format!(
                        "a sub-network of {size} weights was asked for, the network has {}: choose between 1 and that",
                        all.len()
                    )));
                }
                let mut order: Vec<usize> = (0..all.len()).collect();
                match choice {
                    Choice::Random => {
                        order.shuffle(&mut Streams::new(seed).stream("laplace/subnetwork"));
                    }
                    Choice::Magnitude => {
                        let w = all.flatten(data.network.parameters());
                        sort_descending(&mut order, |i| w[i].to_f64().abs());
                    }
                    Choice::Variance => {
                        let mut sums =
                            Accumulator::new(data.network, &all, Form::Diagonal, FisherEstimate::Exact)?;
                        let mut own = Run::new(|_, done, total| run.tell(Stage::Subnetwork, done, total));
                        sums.extend(data, 0, &mut own)?;
                        // The variance 1 / (m + 1) is largest where the curvature is least.
                        let diagonal = sums.finish()?.diagonal();
                        sort_descending(&mut order, |i| -diagonal[i]);
                    }
                }
                let mut mask = vec![false; all.len()];
                order[..*size].iter().for_each(|&i| mask[i] = true);
                Ok(all.masked(graph, &mask))
            }
        }
    }
}

/// Largest first; equal ones in their order.
fn sort_descending(order: &mut [usize], value: impl Fn(usize) -> f64) {
    order.sort_by(|&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
}

/// The selection without gains and offsets of normalisation layers.
fn without_affine(graph: &Graph, all: &Selection) -> Result<Selection, LaplaceError> {
    let affine = affine_parameters(graph);
    if affine.is_empty() {
        return Ok(all.clone());
    }
    let mask: Vec<bool> = all
        .parts()
        .iter()
        .flat_map(|p| std::iter::repeat_n(!affine.contains(&p.parameter), p.length))
        .collect();
    let rest = all.masked(graph, &mask);
    if rest.is_empty() {
        return Err(LaplaceError::Request(
            "the network has no weights but those of normalisation layers".into(),
        ));
    }
    Ok(rest)
}

/// Gains and offsets that follow a normalisation.
fn affine_parameters(graph: &Graph) -> Vec<usize> {
    let mut found = Vec::new();
    for node in graph.nodes() {
        let follows = || {
            // Layer and group norm are three nodes: normalise, gain, shift.
            let mut value = node.inputs.first().copied();
            while let Some(n) = value.and_then(|v| v.node()) {
                let before = &graph.nodes()[n];
                match before.operation {
                    Operation::Normalise(_) => return true,
                    Operation::Gain(_) | Operation::Bias(_) => value = before.inputs.first().copied(),
                    _ => return false,
                }
            }
            false
        };
        let affine = match node.operation {
            Operation::BatchNorm(_) => true,
            Operation::Gain(_) | Operation::Bias(_) => follows(),
            _ => false,
        };
        if affine {
            found.extend(node.parameters.iter().copied().filter(|p| graph.parameters()[*p].trainable));
        }
    }
    found
}
