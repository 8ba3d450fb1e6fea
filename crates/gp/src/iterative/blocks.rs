//! Hyperparameters of large data from **one joint objective**: the sum of exact evidences over blocks of rows that share them.
//!
//! ```text
//! θ* = argmax  Σ_b log p(y_b | X_b, θ) + log p(θ)
//! ```
//!
//! Some blocks are uniform samples, which see every column vary and fix the long range; some are neighbourhoods of random rows, which keep the density
//! of the data and fix the noise and the short range. Each alone misleads: samples call variation finer than their spacing noise, and a column that hardly
//! varies within a neighbourhood has any lengthscale there. Maxima of single blocks need not be averaged, because there is only one. Blocks are taken as
//! independent given θ, a composite likelihood (Vecchia 1988; Lindsay 1988), whose maximum is consistent though its curvature is no measure of certainty.
//!
//! Cost of an evaluation: `Σ_b m_b³` flops; memory: one block's matrix.

use super::neighbourhoods::nearest_rows;
use crate::data::same_width;
use crate::exact::{ExactGp, FitOptions, Part, Plan, SeveralObservations, maximise};
use crate::search::Searched;
use crate::{GpError, Observations};
use posterior_linalg::random::Streams;
use posterior_optim::{Attempt, Observer, Reason, State};
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// How many blocks of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Blocks {
    /// Uniform samples without repetition; a row may be in several.
    pub uniform: usize,
    /// Neighbourhoods of random rows.
    pub neighbourhoods: usize,
    /// Rows of each.
    pub size: usize,
    /// Seed of the rows.
    pub seed: u64,
}

impl Default for Blocks {
    /// Four of each kind, of 500 rows: an evaluation is `10⁹` flops.
    fn default() -> Self {
        Self { uniform: 4, neighbourhoods: 4, size: 500, seed: 0 }
    }
}

impl Blocks {
    /// The rows of every block, uniform ones first, for inputs n x D; one block of all rows where a block would hold them. Cost `neighbourhoods · n D`.
    ///
    /// # Errors
    /// [`GpError::Empty`] for no blocks, or blocks of nothing.
    pub fn rows(&self, data: &Observations) -> Result<Vec<Vec<usize>>, GpError> {
        let n = data.rows();
        if self.uniform.saturating_add(self.neighbourhoods) == 0 || self.size == 0 {
            return Err(GpError::Empty { what: "the set of blocks" });
        }
        if self.size >= n {
            return Ok(vec![(0..n).collect()]);
        }
        let mut rng = Streams::new(self.seed).stream("gp/blocks/centres");
        let centres = index::sample(&mut rng, n, self.neighbourhoods.min(n)).into_vec();
        let near = centres.into_iter().map(|centre| nearest_rows(data.inputs(), centre, self.size));
        Ok((0..self.uniform).map(|b| self.uniform_rows(n, b)).chain(near).collect())
    }

    /// The rows of a uniform block, of so many: all where a block has room for them.
    pub fn uniform_rows(&self, rows: usize, block: usize) -> Vec<usize> {
        if self.size >= rows {
            return (0..rows).collect();
        }
        let mut rng = Streams::new(self.seed).child("gp/blocks/uniform", block as u64).stream("rows");
        index::sample(&mut rng, rows, self.size).into_vec()
    }

    /// Memory and the work of one evaluation on `rows` rows with `inputs` columns.
    pub fn plan(&self, rows: usize, inputs: usize) -> Plan {
        let count = if self.size >= rows { 1 } else { self.uniform.saturating_add(self.neighbourhoods) };
        let own = Plan::evidence(self.size.min(rows), inputs, 1);
        let flops = own.flops_per_evaluation * count as f64;
        // The blocks' own copies of inputs and targets beside one matrix.
        let copies =
            (self.size.min(rows) as u64).saturating_mul(count as u64).saturating_mul(8 * (inputs as u64 + 3));
        Plan { peak_bytes: own.peak_bytes.saturating_add(copies), flops_per_evaluation: flops, ..own }
    }
}

/// What a search on blocks found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockFit {
    /// Rows of each block.
    pub sizes: Vec<usize>,
    /// The objective at the maximum for each target value, hyperpriors included: comparable for the same blocks only.
    pub value: Option<f64>,
    /// Why the best start ended.
    pub reason: Reason,
    /// Its steps.
    pub steps: usize,
    /// What became of each start.
    pub attempts: Vec<Attempt>,
    /// Most that was added to a diagonal.
    pub largest_jitter: f64,
    /// Hyperparameters at a bound of the options' constraints, with the bound.
    pub at_bounds: Vec<(String, f64)>,
}

/// Maximises the summed criterion of `options` over blocks of rows of `data`, from the values of `model`. The observer is told of every step and may
/// end the search; what it found so far is then [`Reason::Interrupted`].
///
/// # Errors
/// [`GpError::Memory`] before anything is allocated; [`GpError::Empty`] for no or empty blocks; those of [`crate::exact::fit`].
///
/// # Panics
/// When a block names a row that is not there.
pub fn fit_on_blocks(
    model: ExactGp,
    data: &Observations,
    blocks: &[Vec<usize>],
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<(ExactGp, BlockFit), GpError> {
    same_width("columns of the inputs", model.mean().input_dimension(), data.inputs().ncols())?;
    let parts: Vec<Observations> = blocks.iter().map(|rows| data.select(rows)).collect::<Result<_, _>>()?;
    let plans = parts.iter().map(|part| options.plan(part));
    let sizes = parts.iter().map(Observations::rows).collect();
    let parts: Vec<Part<'_>> = parts.iter().map(Part::One).collect();
    search(model, (&parts, sizes), (options, plans.max_by_key(|plan| plan.peak_bytes)), observer)
}

/// The same for several functions with one kernel and noise of their own each, in blocks of rows: the sum of their evidences.
///
/// # Errors
/// As [`fit_on_blocks`].
///
/// # Panics
/// When a block names a row that is not there.
pub fn fit_several_on_blocks(
    model: ExactGp,
    data: &SeveralObservations,
    blocks: &[Vec<usize>],
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<(ExactGp, BlockFit), GpError> {
    let parts: Vec<SeveralObservations> =
        blocks.iter().map(|rows| data.select(rows)).collect::<Result<_, _>>()?;
    for part in &parts {
        same_width("columns of the inputs", model.mean().input_dimension(), part.inputs().ncols())?;
    }
    let plans = parts.iter().map(SeveralObservations::plan);
    let sizes = parts.iter().map(SeveralObservations::rows).collect();
    let parts: Vec<Part<'_>> = parts.iter().map(Part::Several).collect();
    search(model, (&parts, sizes), (options, plans.max_by_key(|plan| plan.peak_bytes)), observer)
}

fn search(
    model: ExactGp,
    (parts, sizes): (&[Part<'_>], Vec<usize>),
    (options, largest): (&FitOptions, Option<Plan>),
    observer: &mut Observer<'_, State>,
) -> Result<(ExactGp, BlockFit), GpError> {
    if parts.is_empty() {
        return Err(GpError::Empty { what: "the set of blocks" });
    }
    if let Some(plan) = largest.filter(|plan| plan.peak_bytes > options.memory_limit) {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    let (searched, _) = maximise(model, parts, options, observer)?;
    let Searched { model, attempts, reason, steps, largest_jitter, at_bounds } = searched;
    let value = attempts.iter().filter_map(|a| a.value).min_by(f64::total_cmp).map(|v| -v);
    Ok((model, BlockFit { sizes, value, reason, steps, attempts, largest_jitter, at_bounds }))
}
