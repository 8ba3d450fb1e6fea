//! Samples of a process that ask for the next points.

use super::{column, spaced};
use crate::covariance::normals;
use crate::gaussian::Covariance;
use crate::kinds::prelude::*;
use crate::toy::posterior_panel;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::{GpError, MeanForm, Observations, Posterior};
use posterior_kernels::gram;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_report::{PosteriorPanel, PosteriorPanels, TitledPosterior};
use rand::RngExt as _;

/// Points that samples ask for.
#[derive(Deserialize)]
pub(super) struct Next {
    pub(super) kernel: String,
    pub(super) noise: f64,
    /// Points to begin with, by chance.
    pub(super) points: usize,
    /// Functions that ask, each for the place where it is largest.
    pub(super) samples: usize,
    /// Rounds.
    pub(super) rounds: usize,
    /// Places on the unit interval.
    pub(super) grid: usize,
}

/// The posterior of a function on the unit interval.
fn conditioned(model: &(Covariance, f64), points: &[f64], values: &[f64]) -> Result<ExactPosterior> {
    let kernel = model.0.kernel::<f64>()?;
    let gp = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(model.1 * model.1, 0.0), 1, 1);
    Ok(gp.condition(Observations::new(column(points), column(values), None)?)?)
}

/// Samples ask for points; beside, as many by chance.
pub(super) fn next_points(asked: &Next, context: &mut Context<'_>) -> Result<(Value, Vec<Item>)> {
    let model = (Covariance::parse(&asked.kernel, 1)?, asked.noise);
    let streams = Streams::new(context.seed).child("experiment/next", 0);
    let grid = spaced(0.0, 1.0, asked.grid);
    let x = column(&grid);
    let matrix = gram(&*model.0.kernel::<f64>()?, x.as_ref());
    let factor = Cholesky::of(matrix.as_ref(), JitterPolicy::default()).map_err(GpError::from)?;
    let truth: Vec<f64> = factor
        .multiply_factor(normals(asked.grid, 1, streams, "truth").as_ref())
        .col(0)
        .iter()
        .copied()
        .collect();
    let top = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut random = streams.stream("begin");
    let begun: Vec<usize> = (0..asked.points).map(|_| random.random_range(0..asked.grid)).collect();
    let (mut by_samples, mut by_chance) = (begun.clone(), begun);
    let best = |places: &[usize]| places.iter().map(|&i| truth[i]).fold(f64::NEG_INFINITY, f64::max);
    let mut found = vec![(best(&by_samples), best(&by_chance))];
    let (mut panels, mut first) = (Vec::new(), Value::Null);
    for round in 0..asked.rounds {
        context.step("rounds", round, asked.rounds)?;
        let points: Vec<f64> = by_samples.iter().map(|&i| grid[i]).collect();
        let values: Vec<f64> = by_samples.iter().map(|&i| truth[i]).collect();
        let posterior = conditioned(&model, &points, &values)?;
        let mut chance = streams.child("round", round as u64).stream("samples");
        let (drawn, _) = posterior.sample(x.as_ref(), 0, asked.samples, &mut chance)?;
        let places: Vec<usize> = (0..asked.samples)
            .map(|k| {
                let at = |i: &usize| drawn[(*i, k)];
                (0..asked.grid).max_by(|i, j| at(i).total_cmp(&at(j))).unwrap_or(0)
            })
            .collect();
        let own = posterior.predict(x.as_ref())?;
        let largest = own.mean.col(0).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if round == 0 {
            let hoped = mean(places.iter().enumerate().map(|(k, &i)| drawn[(i, k)]));
            first = json!({"hoped": hoped, "best_seen": found[0].0, "largest_mean": largest});
        }
        if round < 2 {
            panels.push(TitledPosterior::new(
                format!("round {}", round + 1),
                PosteriorPanel {
                    samples: (0..asked.samples).map(|k| drawn.col(k).iter().copied().collect()).collect(),
                    true_function: truth.clone(),
                    ..posterior_panel(&grid, &own, asked.noise * asked.noise, (points, values))
                },
            ));
        }
        by_chance.extend((0..asked.samples).map(|_| random.random_range(0..asked.grid)));
        by_samples.extend(places);
        found.push((best(&by_samples), best(&by_chance)));
    }
    let lines = vec![
        by_step("asked by samples", found.iter().map(|f| top - f.0)),
        by_step("by chance", found.iter().map(|f| top - f.1)),
    ];
    let (own, other) = found[found.len() - 1];
    let numbers = json!({"first": first, "short_of_top": {"samples": top - own, "chance": top - other}});
    let figures = vec![
        PosteriorPanels::new(
            "Samples that ask for the next points",
            "y",
            panels,
            "Each sample asks for the place where it is largest: where the mean is high, and where little is known.",
        )
        .into(),
        Curves::new("How much the best value found falls short", "round", "below the maximum", lines).into(),
    ];
    Ok((numbers, figures))
}
