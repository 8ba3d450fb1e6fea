//! Linear models seen as functions: what their priors look like, what a few points make of them, how far below the evidence bounds of other Gaussians lie and where these would put the prior, and how samples of a process ask for the next point.
//!
//! Serves figures 2.1 to 2.5, 2.8, 2.9 and 3.2 of the thesis.

use super::Checked;
use crate::context::Context;
use crate::covariance::normals;
use crate::error::{ExperimentError, refused};
use crate::gaussian::{Covariance, check_names};
use crate::measured::{Measured, NumberTable};
use crate::toy::mean;
use faer::Mat;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::{GpError, MeanForm, Observations, Posterior};
use posterior_kernels::features::{FeatureSettings, RandomFeatures};
use posterior_kernels::gram;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::random::Streams;
use posterior_linear::variational::{Family, Precisions, WeightBound};
use posterior_report::{Curves, Item, Line, PosteriorPanel, PosteriorPanels, TitledPosterior};
use rand::RngExt as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Settings of the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Inputs of the points that are seen.
    inputs: Vec<f64>,
    /// Their targets.
    targets: Vec<f64>,
    /// Precision of the noise.
    noise_precision: f64,
    /// Functions are shown from minus to plus this.
    reach: f64,
    /// Points that functions are shown at.
    grid: usize,
    /// Functions drawn of each prior and posterior.
    shown: usize,
    /// Draws that moments of priors are taken from.
    draws: usize,
    #[serde(rename = "case")]
    cases: Vec<Case>,
    bound: Bound,
    next: Next,
}

/// A linear model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The kernel whose random features these are; without one, a constant and the input.
    kernel: Option<String>,
    /// How many.
    #[serde(default)]
    features: usize,
    /// Precision of the prior of each weight.
    prior_precision: f64,
}

/// Bounds along the prior's precision.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    /// Of which case.
    case: String,
    /// The precision whose posterior is kept.
    kept: f64,
    /// Factors below and above that are shown.
    factor: f64,
    /// Points.
    grid: usize,
    /// Turns of expectation maximisation.
    turns: usize,
}

/// Points that samples ask for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Next {
    kernel: String,
    noise: f64,
    /// Points to begin with, by chance.
    points: usize,
    /// Functions that ask, each for the place where it is largest.
    samples: usize,
    /// Rounds.
    rounds: usize,
    /// Places on the unit interval.
    grid: usize,
}

impl Checked for Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        check_names("case", self.cases.iter().map(|case| case.name.as_str()))?;
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let numbers = [self.noise_precision, self.reach, self.bound.kept, self.next.noise];
        let cases =
            self.cases.iter().all(|c| positive(c.prior_precision) && (c.kernel.is_none() || c.features > 0));
        let factor = self.bound.factor > 1.0 && self.bound.factor.is_finite();
        if !(numbers.into_iter().all(positive) && cases && factor) {
            return refused("precisions, `reach`, `noise` and `features` must be positive, `factor` above 1");
        }
        if self.inputs.is_empty() || self.inputs.len() != self.targets.len() {
            return refused("`inputs` and `targets` are as many, at least one");
        }
        let counts =
            [self.shown, self.draws, self.bound.turns, self.next.points, self.next.samples, self.next.rounds];
        if counts.contains(&0) || self.shown > self.draws {
            return refused(
                "`shown`, `draws`, `turns`, `points`, `samples` and `rounds` are at least 1, `shown` no more than `draws`",
            );
        }
        if [self.grid, self.bound.grid, self.next.grid].into_iter().any(|g| !(2..=2000).contains(&g)) {
            return refused("grids have from 2 to 2000 points");
        }
        if !self.cases.iter().any(|case| case.name == self.bound.case) {
            return refused("[bound]: `case` is the name of one");
        }
        Ok(())
    }
}

/// So many points from `low` to `high`.
fn spaced(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
}

fn column(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), 1, |i, _| values[i])
}

impl Case {
    /// Features at some inputs (m x d), those of the same seed the same functions.
    fn at(&self, inputs: &[f64], streams: Streams) -> Result<Mat<f64>, ExperimentError> {
        let Some(kernel) = &self.kernel else {
            return Ok(Mat::from_fn(inputs.len(), 2, |i, j| if j == 0 { 1.0 } else { inputs[i] }));
        };
        let kernel = Covariance::parse(kernel, 1)?.kernel::<f64>()?;
        let settings = FeatureSettings { count: self.features, ..FeatureSettings::default() };
        let map = RandomFeatures::new(&*kernel, 1, settings, streams).map_err(GpError::from)?;
        Ok(map.evaluate(column(inputs).as_ref()))
    }
}

/// Draws of a Gaussian over weights (d x count).
fn weights(
    (mean, covariance): (&[f64], &Mat<f64>),
    count: usize,
    streams: Streams,
) -> Result<Mat<f64>, ExperimentError> {
    let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::default()).map_err(GpError::from)?;
    let moved = factor.multiply_factor(normals(mean.len(), count, streams, "experiment/weights").as_ref());
    Ok(Mat::from_fn(mean.len(), count, |j, k| mean[j] + moved[(j, k)]))
}

/// What a case says before and after the points.
struct Seen {
    prior: Curves,
    /// Prior covariance with the function at 0.
    covariance: Line,
    posterior: PosteriorPanel,
    numbers: Value,
}

fn of_case(settings: &Settings, case: &Case, streams: Streams) -> Result<Seen, ExperimentError> {
    let grid = spaced(-settings.reach, settings.reach, settings.grid);
    let streams = streams.child(&case.name, 0);
    let (phi, test) = (case.at(&settings.inputs, streams)?, case.at(&grid, streams)?);
    let zero = case.at(&[0.0], streams)?;
    let (d, a) = (phi.ncols(), case.prior_precision);
    let own = WeightBound::new(phi, settings.targets.clone())?;
    let at = Precisions { prior: a, noise: settings.noise_precision };
    let q = own.best(Family::Full, at)?;
    let isotropic = Mat::from_fn(d, d, |i, j| if i == j { a.recip() } else { 0.0 });
    let before = &test * weights((&vec![0.0; d], &isotropic), settings.draws, streams.child("prior", 0))?;
    let of_weights =
        weights((q.mean(), &q.covariance().to_owned()), settings.draws, streams.child("posterior", 0))?;
    let after = &test * of_weights;
    // Closed forms, and what draws say of the same moments, in standard errors.
    let mean_after: Vec<f64> = (&test * column(q.mean())).col(0).iter().copied().collect();
    let spread = &test * q.covariance();
    let variance = |i: usize, from: &Mat<f64>| (0..d).map(|j| from[(i, j)] * test[(i, j)]).sum::<f64>();
    let scaled = &test * &isotropic;
    let draws = settings.draws as f64;
    let farthest = |drawn: &Mat<f64>, mean: &dyn Fn(usize) -> f64, variance: &dyn Fn(usize) -> f64| {
        // Neighbours of a grid say nearly the same: every tenth.
        let each = (0..grid.len()).step_by(10).map(|i| {
            let square = drawn.row(i).iter().map(|f| (f - mean(i)).powi(2)).sum::<f64>() / draws;
            (square / variance(i).max(f64::MIN_POSITIVE) - 1.0).abs() / (2.0 / draws).sqrt()
        });
        each.fold(0.0, f64::max)
    };
    let off_prior = farthest(&before, &|_| 0.0, &|i| variance(i, &scaled));
    let off_posterior = farthest(&after, &|i| mean_after[i], &|i| variance(i, &spread));
    let deviations: Vec<f64> = (0..grid.len()).map(|i| variance(i, &spread).max(0.0).sqrt()).collect();
    let line = |drawn: &Mat<f64>, k: usize| -> Vec<f64> { drawn.col(k).iter().copied().collect() };
    let covariance: Vec<f64> = (&scaled * zero.transpose()).col(0).iter().copied().collect();
    let at_points = deviations_at(&grid, &deviations, &settings.inputs);
    let numbers = json!({
        "evidence": own.evidence(at)?,
        "mean_field_bound": own.value(&own.best(Family::Diagonal, at)?, at)?,
        "deviation_at_points": at_points,
        "deviation_at_ends": 0.5 * (deviations[0] + deviations[deviations.len() - 1]),
        "prior_deviation_at_ends": 0.5 * (variance(0, &scaled).sqrt() + variance(grid.len() - 1, &scaled).sqrt()),
        "draws_off": {"prior": off_prior, "posterior": off_posterior},
    });
    Ok(Seen {
        prior: Curves::new(
            format!("Functions of the prior: {}", case.name),
            "x",
            "f(x)",
            (0..settings.shown)
                .map(|k| Line::new(format!("{}", k + 1), grid.clone(), line(&before, k)))
                .collect(),
        ),
        covariance: Line::new(case.name.clone(), grid.clone(), covariance),
        posterior: PosteriorPanel {
            input: "x".into(),
            observed_standard_deviation: deviations
                .iter()
                .map(|s| (s * s + settings.noise_precision.recip()).sqrt())
                .collect(),
            latent_standard_deviation: deviations,
            mean: mean_after,
            samples: (0..settings.shown).map(|k| line(&after, k)).collect(),
            train_input: settings.inputs.clone(),
            train_target: settings.targets.clone(),
            grid,
            ..PosteriorPanel::default()
        },
        numbers,
    })
}

/// The mean deviation on the grid where it is nearest to the points.
fn deviations_at(grid: &[f64], deviations: &[f64], inputs: &[f64]) -> f64 {
    let nearest = |x: f64| {
        let apart = |i: &usize| (grid[*i] - x).abs();
        (0..grid.len()).min_by(|i, j| apart(i).total_cmp(&apart(j))).map_or(f64::NAN, |i| deviations[i])
    };
    mean(inputs.iter().map(|&x| nearest(x)))
}

/// Evidence and bounds along the prior's precision, and turns.
fn bounds(settings: &Settings, streams: Streams) -> Result<(Value, Vec<Item>), ExperimentError> {
    let asked = &settings.bound;
    let Some(case) = settings.cases.iter().find(|case| case.name == asked.case) else {
        return refused("[bound]: `case` is the name of one");
    };
    let own =
        WeightBound::new(case.at(&settings.inputs, streams.child(&case.name, 0))?, settings.targets.clone())?;
    let of = |prior: f64| Precisions { prior, noise: settings.noise_precision };
    let along: Vec<f64> =
        spaced(-1.0, 1.0, asked.grid).iter().map(|t| asked.kept * asked.factor.powf(*t)).collect();
    let kept = own.best(Family::Full, of(asked.kept))?;
    let evaluated = |f: &dyn Fn(f64) -> Result<f64, ExperimentError>| {
        along.iter().map(|&a| f(a)).collect::<Result<Vec<f64>, _>>()
    };
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
    let by_turn = |name: &str, turns: &[(Precisions, f64)]| {
        let index = (0..turns.len()).map(|i| i as f64).collect();
        Line::new(name, index, turns.iter().map(|turn| turn.1).collect())
    };
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

/// The posterior of a function on the unit interval.
fn conditioned(
    model: &(Covariance, f64),
    points: &[f64],
    values: &[f64],
) -> Result<ExactPosterior, ExperimentError> {
    let kernel = model.0.kernel::<f64>()?;
    let gp = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(model.1 * model.1, 0.0), 1, 1);
    Ok(gp.condition(Observations::new(column(points), column(values), None)?)?)
}

/// Samples ask for points; beside, as many by chance.
fn next_points(asked: &Next, context: &mut Context<'_>) -> Result<(Value, Vec<Item>), ExperimentError> {
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
                    ..crate::toy::posterior_panel(&grid, &own, asked.noise * asked.noise, (points, values))
                },
            ));
        }
        by_chance.extend((0..asked.samples).map(|_| random.random_range(0..asked.grid)));
        by_samples.extend(places);
        found.push((best(&by_samples), best(&by_chance)));
    }
    let rounds: Vec<f64> = (0..found.len()).map(|i| i as f64).collect();
    let lines = vec![
        Line::new("asked by samples", rounds.clone(), found.iter().map(|f| top - f.0).collect()),
        Line::new("by chance", rounds, found.iter().map(|f| top - f.1).collect()),
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

/// Shows all of it.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    let streams = Streams::new(context.seed).child("experiment/weight-space", 0);
    let (mut numbers, mut figures, mut panels, mut covariances) =
        (Map::new(), Vec::new(), Vec::new(), Vec::new());
    for (k, case) in settings.cases.iter().enumerate() {
        context.step("cases", k, settings.cases.len())?;
        let Seen { prior, covariance, posterior, numbers: own } = of_case(settings, case, streams)?;
        figures.push(prior.into());
        covariances.push(covariance);
        panels.push(TitledPosterior::new(case.name.clone(), posterior));
        numbers.insert(case.name.clone(), own);
    }
    figures.push(
        Curves::new("Covariances of priors with the function at 0", "x", "covariance", covariances)
            .captioned("Of a constant and the input, the value at 0 is the constant: its covariance is the same everywhere. Features of stationary kernels forget.")
            .into(),
    );
    figures.push(
        PosteriorPanels::new(
            "What a few points make of them",
            "y",
            panels,
            "Means and two standard deviations.",
        )
        .into(),
    );
    let (bound, more) = bounds(settings, streams)?;
    figures.extend(more);
    let (next, more) = next_points(&settings.next, context)?;
    figures.extend(more);
    let names = || settings.cases.iter().map(|case| case.name.as_str());
    Ok(Measured {
        numbers: json!({"cases": numbers, "bound": bound, "next": next}),
        series: Value::Null,
        tables: vec![NumberTable::by_name(
            "Linear models",
            "model",
            "cases",
            names(),
            &[
                ("evidence", "log evidence"),
                ("mean_field_bound", "bound by mean field"),
                ("deviation_at_points", "deviation at the points"),
                ("deviation_at_ends", "at the ends"),
                ("prior_deviation_at_ends", "before, at the ends"),
            ],
            "Standard deviations of functions, noise apart.",
        )],
        figures,
        facts: Vec::new(),
        notes: Vec::new(),
    })
}
