//! Evidence and bounds along the prior's precision, and turns that climb them.

use super::variational::{Family, Precisions, WeightBound};
use super::{Settings, spaced};
use crate::kinds::prelude::*;

/// Bounds along the prior's precision.
#[derive(Deserialize)]
pub(super) struct Bound {
    /// Of which case.
    pub(super) case: String,
    /// The precision whose posterior is kept.
    pub(super) kept: f64,
    /// Factors below and above that are shown.
    pub(super) factor: f64,
    /// Points.
    pub(super) grid: usize,
    /// Turns of expectation maximisation.
    pub(super) turns: usize,
}

/// Evidence and bounds along the prior's precision, and turns.
pub(super) fn bounds(settings: &Settings, streams: Streams) -> Result<(Value, Vec<Item>)> {
    let asked = &settings.bound;
    let case = settings.case("bound", &asked.case)?;
    let own =
        WeightBound::new(case.at(&settings.inputs, streams.child(&case.name, 0))?, settings.targets.clone())?;
    let of = |prior: f64| Precisions { prior, noise: settings.noise_precision };
    let along: Vec<f64> =
        spaced(-1.0, 1.0, asked.grid).iter().map(|t| asked.kept * asked.factor.powf(*t)).collect();
    let kept = own.best(Family::Full, of(asked.kept))?;
    let evaluated =
        |f: &dyn Fn(f64) -> Result<f64>| along.iter().map(|&a| f(a)).collect::<Result<Vec<f64>, _>>();
    let evidence = evaluated(&|a| Ok(own.evidence(of(a))?))?;
    let fixed = evaluated(&|a| Ok(own.value(&kept, of(a))?))?;
    let mean_field = evaluated(&|a| Ok(own.value(&own.best(Family::Diagonal, of(a))?, of(a))?))?;
    let highest = |values: &[f64]| {
        (0..values.len()).max_by(|&i, &j| values[i].total_cmp(&values[j])).map_or(f64::NAN, |i| along[i])
    };
    let least_gap = evidence.iter().zip(&fixed).map(|(e, b)| e - b).fold(f64::INFINITY, f64::min);
    let turns = |family| own.turns(family, of(asked.kept), asked.turns);
    let (full, diagonal) = (turns(Family::Full)?, turns(Family::Diagonal)?);
    let largest_fall =
        |turns: &[(Precisions, f64)]| turns.windows(2).map(|pair| pair[0].1 - pair[1].1).fold(0.0, f64::max);
    let line = |name: &str, values: &[f64]| Line {
        optimum: Some(highest(values)),
        ..Line::new(name, along.clone(), values.to_vec())
    };
    let by_turn = |name: &str, turns: &[(Precisions, f64)]| by_step(name, turns.iter().map(|turn| turn.1));
    let numbers = json!({
        "highest": {
            "evidence": highest(&evidence),
            "kept": highest(&fixed),
            "mean field": highest(&mean_field),
        },
        "kept_below_evidence_at_least": least_gap,
        "falls": largest_fall(&full).max(largest_fall(&diagonal)),
        "end": {"full": full.last(), "mean field": diagonal.last()},
        "full_above_mean_field": full.last().zip(diagonal.last()).map(|(f, d)| f.1 - d.1),
    });
    let figures = vec![
        Curves::new(
            "The evidence and bounds on it",
            "precision of the prior",
            "nats",
            vec![
                line("evidence", &evidence),
                line("posterior kept", &fixed),
                line("mean field, the best at each", &mean_field),
            ],
        )
        .logarithmic(true, false)
        .captioned("A bound touches the evidence where its Gaussian is the posterior. Its highest point (diamond) is not where that of the evidence is.")
        .into(),
        Curves::new(
            "Turns",
            "turn",
            "nats",
            vec![by_turn("any Gaussian: the evidence", &full), by_turn("mean field", &diagonal)],
        )
        .captioned("Best Gaussian, then best precisions of weights and noise: neither line ever falls.")
        .into(),
    ];
    Ok((numbers, figures))
}
