//! The posterior over a grid, for a model with one numeric feature.

use super::maps::even;
use crate::{ModelData, ModelError, Process, Question, Target};
use posterior_data::{Column, Table};
use posterior_report::PosteriorPanel;

/// Points of the grid; joint draws cost the cube of it.
const GRID: usize = 300;

/// Draws that are shown, where the model keeps as many.
const SAMPLES: usize = 6;

/// The posterior over a grid that reaches a little beyond the training rows, or over the window of events; none for several features, one of categories, and other targets.
pub(crate) fn one_dimensional(model: &Process<'_>) -> Result<Option<PosteriorPanel>, ModelError> {
    match model.output().target() {
        None => numbers(model),
        Some(Target::Events { window, .. }) => intensity(model, window),
        Some(_) => Ok(None),
    }
}

/// Of numbers with Gaussian noise.
fn numbers(model: &Process<'_>) -> Result<Option<PosteriorPanel>, ModelError> {
    let (inputs, record) = (model.inputs(), model.record());
    let Some([column]) = inputs.numeric() else { return Ok(None) };
    let standard = &inputs.standardisation;
    let back = |z: f64| standard.feature_back(0, z);
    // Bands are drawn where predictions are Gaussian.
    let level = |z: f64| standard.target_mean + standard.target_scale * z;
    let (train_input, train_target): (Vec<f64>, Vec<f64>) = match model.predictor().training() {
        Some(data) => (
            data.inputs().col(0).iter().map(|z| back(*z)).collect(),
            data.targets().col(0).iter().map(|z| level(*z)).collect(),
        ),
        None => (Vec::new(), Vec::new()),
    };
    // Two standard deviations on either side where the model keeps no rows.
    let ends = |from: f64, pick: fn(f64, f64) -> f64| {
        train_input.iter().copied().reduce(pick).unwrap_or_else(|| back(from))
    };
    let (low, high) = (ends(-2.0, f64::min), ends(2.0, f64::max));
    let margin = 0.08 * (high - low).max(standard.feature_scales[0] * 1e-3);
    // Counts have no margin below zero.
    let counts = !record.kernel.count_columns(&inputs.schema.feature_names()).is_empty();
    let start = (low - margin).max(if counts { 0.0 } else { f64::NEG_INFINITY });
    let grid = even(start, high + margin, GRID);
    let table = Table::new("grid", vec![Column::numeric(column, grid.clone())]);
    let mut predictions = model.predict(&table, None)?;
    let rows: Vec<usize> = (0..GRID).collect();
    let count = model.predictor().stored_samples().map_or(SAMPLES, |kept| kept.min(SAMPLES));
    let mut samples = model.sample(&table, &rows, count, record.seed, u64::MAX)?;
    let target = predictions.mapped.take().map(|mapped| {
        let units = |values: Vec<f64>| values.into_iter().map(|s| standard.target_scale * s).collect();
        predictions.mean = mapped.mean.into_iter().map(level).collect();
        (predictions.deviation, predictions.latent_deviation) =
            (units(mapped.deviation), units(mapped.latent_deviation));
        samples.iter_mut().flatten().for_each(|y| *y = level(mapped.map.standard(*y)));
        standard.image_of(&inputs.schema.target)
    });
    Ok(Some(PosteriorPanel {
        target,
        input: column.to_string(),
        grid,
        mean: predictions.mean,
        latent_standard_deviation: predictions.latent_deviation,
        observed_standard_deviation: predictions.deviation,
        samples,
        train_input,
        train_target,
        ..PosteriorPanel::default()
    }))
}

/// The intensity of events along their window, for one column of it.
fn intensity(model: &Process<'_>, window: &[[f64; 2]]) -> Result<Option<PosteriorPanel>, ModelError> {
    let ([[low, high]], [column]) = (window, &model.inputs().schema.feature_names()[..]) else {
        return Ok(None);
    };
    let grid: Vec<f64> = even(*low, *high, GRID).into_iter().map(|place| place.clamp(*low, *high)).collect();
    let table = Table::new("grid", vec![Column::numeric(column.clone(), grid.clone())]);
    let data = ModelData::of_table(table)?;
    let found = model.predictive(&data, &Question::default())?;
    let asked =
        Question { samples: SAMPLES, memory: u64::MAX, seed: model.record().seed, ..Question::default() };
    let samples = model.draws_of(&data, &asked)?.to_f64();
    Ok(Some(PosteriorPanel {
        input: column.clone(),
        grid,
        mean: found.latent_mean,
        latent_standard_deviation: found.latent_deviation.clone(),
        observed_standard_deviation: found.latent_deviation,
        samples: samples.chunks(GRID).map(|draw| draw.iter().map(|f| f.exp()).collect()).collect(),
        ..PosteriorPanel::default()
    }))
}
