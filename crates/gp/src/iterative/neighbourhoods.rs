//! Hyperparameters of large data from the evidence on neighbourhoods of random rows.

use crate::data::same_width;
use crate::exact::{ExactGp, FitOptions, fit};
use crate::{GpError, Observations};
use faer::MatRef;
use posterior_linalg::random::Streams;
use posterior_optim::{Observer, Parameters, Progress, Reason};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// How many neighbourhoods of which size; the defaults are the published ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Neighbourhoods {
    /// How many.
    pub count: usize,
    /// Rows of each, the centre included.
    pub size: usize,
    /// Seed of the centres.
    pub seed: u64,
}

impl Default for Neighbourhoods {
    fn default() -> Self {
        Self { count: 10, size: 10_000, seed: 0 }
    }
}

/// What the evidence of one neighbourhood gave. The posterior is not among it: its factor has `size²` numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourhoodFit {
    /// Rows it was found on.
    pub rows: usize,
    /// The natural parameters found, in the order of the model's.
    pub values: Vec<f64>,
    /// Their log evidence.
    pub log_evidence: f64,
    /// Why the search ended.
    pub reason: Reason,
    /// Most that was added to a diagonal.
    pub largest_jitter: f64,
}

/// The rows nearest to row `centre` in Euclidean distance, itself first; ties go to earlier rows. Cost `nD` flops and a selection.
///
/// # Panics
/// When there is no such row.
pub fn nearest_rows(inputs: MatRef<'_, f64>, centre: usize, size: usize) -> Vec<usize> {
    let n = inputs.nrows();
    assert!(centre < n, "row {centre} of {n}");
    let mut squares = vec![0.0; n];
    for d in 0..inputs.ncols() {
        let origin = inputs[(centre, d)];
        squares.iter_mut().zip(inputs.col(d).iter()).for_each(|(q, v)| *q += (v - origin) * (v - origin));
    }
    squares[centre] = -1.0;
    let mut order: Vec<usize> = (0..n).collect();
    let by_distance = |a: &usize, b: &usize| squares[*a].total_cmp(&squares[*b]).then(a.cmp(b));
    if size < n {
        order.select_nth_unstable_by(size, by_distance);
        order.truncate(size);
    }
    order.sort_unstable_by(by_distance);
    order
}

/// Fits `model` by exact evidence on neighbourhoods of random rows, one after the other, and gives it the arithmetic means of what was found, of
/// variances those of their roots; with what each found, for inspection. `earlier` are those that an interrupted search with the same arguments had finished; none otherwise.
/// The observer is told each step, the part of its progress being the neighbourhood, with those that are finished: with them the search can go on later.
/// When it says stop, the last fit is [`Reason::Interrupted`] and the averages are those of what there is. With no more rows than one
/// neighbourhood has, one fit on all of them.
///
/// Neighbourhoods keep the density of the data; a uniform sample would thin them and make lengthscales too long. But a column that hardly varies in
/// a neighbourhood has any lengthscale there, and one huge value dominates a mean: [`super::fit_on_blocks`] maximises one objective instead, and is the
/// default of models. Inputs should be standardised. Source: spec `stochastic_gaussian_processes`, section 9.2.
///
/// # Errors
/// Those of [`fit`], and [`GpError::Empty`] for no neighbourhoods or neighbourhoods of nothing.
pub fn fit_on_neighbourhoods(
    model: &ExactGp,
    data: &Observations,
    neighbourhoods: Neighbourhoods,
    options: &FitOptions,
    earlier: Vec<NeighbourhoodFit>,
    observer: &mut Observer<'_, [NeighbourhoodFit]>,
) -> Result<(ExactGp, Vec<NeighbourhoodFit>), GpError> {
    if neighbourhoods.count == 0 || neighbourhoods.size == 0 {
        return Err(GpError::Empty { what: "the set of neighbourhoods" });
    }
    same_width("columns of the inputs", model.mean().input_dimension(), data.inputs().ncols())?;
    let n = data.rows();
    let count = if neighbourhoods.size >= n { 1 } else { neighbourhoods.count };
    let mut rng = Streams::new(neighbourhoods.seed).stream("gp/centres");
    let unsound = |f: &NeighbourhoodFit| f.values.iter().any(|v| !v.is_finite());
    if earlier.len() > count || earlier.iter().any(unsound) {
        let problem =
            format!("it must have at most {count} finished neighbourhoods, all with finite parameters");
        return Err(GpError::State { problem });
    }
    let mut fits = earlier;
    for done in 0..count {
        let centre = rng.random_range(0..n);
        if done < fits.len() {
            same_width(
                "hyperparameters of an earlier neighbourhood",
                model.values().len(),
                fits[done].values.len(),
            )?;
            continue;
        }
        let rows = nearest_rows(data.inputs(), centre, neighbourhoods.size);
        let found = fit(model.clone(), data.select(&rows)?, options, &mut |progress, _| {
            observer(&Progress { part: done, parts: count, ..*progress }, &fits)
        })?;
        fits.push(NeighbourhoodFit {
            rows: rows.len(),
            values: found.posterior.model().values(),
            log_evidence: found.log_evidence,
            reason: found.reason,
            largest_jitter: found.largest_jitter,
        });
        if found.reason == Reason::Interrupted {
            break;
        }
    }
    let mut averaged = model.clone();
    averaged.set_values(&averages(model, &fits));
    Ok((averaged, fits))
}

/// The published averages: arithmetic means of lengthscales and of **standard deviations**, that of the noise and that of the function, whose
/// squares the model has (spec, section 9.2). Deviations of 0.1 and 0.5 average to 0.3.
fn averages(model: &ExactGp, fits: &[NeighbourhoodFit]) -> Vec<f64> {
    let squared = model.segments().into_iter().flat_map(|s| vec![s.name.ends_with("variance"); s.len()]);
    let count = fits.len() as f64;
    squared
        .enumerate()
        .map(|(i, squared)| match squared {
            true => (fits.iter().map(|f| f.values[i].sqrt()).sum::<f64>() / count).powi(2),
            false => fits.iter().map(|f| f.values[i]).sum::<f64>() / count,
        })
        .collect()
}
