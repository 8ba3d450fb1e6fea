//! Expectation maximisation on a problem in one dimension, before and after: functions of the prior, samples on their way through two directions of the weights, error bars.
//!
//! Before, the precision is the one given; after, it is where turns with samples lead. Serves figure 6.5 of the thesis.

use super::conjugate::{Conjugate, Update};
use crate::kinds::prelude::*;
use crate::tangent::{Tangent, TrainedToy, product};
use crate::toy::{ToySettings, deviation};
use crate::training::TrainingSettings;
use posterior_laplace::sampled::{self, ConjugateOptions, ModeSolver, Solver};
use posterior_laplace::{Data, ModeOptions, Problem, Run, SampledOptions, Stage};
use posterior_likelihoods::{Gaussian, Integration, OutputLikelihood};
use posterior_linear::features::{DenseFeatures, Numbered};
use posterior_linear::sampled::{
    Averaging, DescentOptions, Noise, Objective, SampleObjective, SampledModel, descend,
};
use posterior_linear::structure::Conditioned;
use posterior_linear::{LinearError, Prior};
use posterior_optim::{Reason, Signal};
use posterior_report::{Plane, PlaneKind, PlanePanel, PosteriorPanels, TitledPosterior};
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    /// The precision before.
    precision: f64,
    /// Samples of each turn and of predictions.
    samples: usize,
    /// Turns.
    turns: usize,
    /// Functions and samples that are drawn.
    shown: usize,
    /// Steps of the samples that are drawn on their way.
    steps: usize,
    /// Examples of a step.
    batch: usize,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        let counts = [self.samples, self.turns, self.shown, self.steps, self.batch];
        if counts.contains(&0) || !positive(self.precision) {
            return refused(
                "`samples`, `turns`, `shown`, `steps` and `batch` are at least 1, `precision` is positive",
            );
        }
        if self.shown > self.samples {
            return refused("`shown` are no more than `samples`");
        }
        Ok(())
    }
}

/// The precision by turns with samples.
fn learned(
    settings: &Settings,
    trained: &TrainedToy,
    likelihood: &OutputLikelihood,
    context: &mut Context<'_>,
) -> Result<Vec<f64>> {
    let options = SampledOptions {
        samples_em: settings.samples,
        samples: 1,
        em_steps: settings.turns,
        // Under a prior as wide as the first one the problem is badly conditioned: what is left over in the mode would make the next precision too large.
        solver: Solver::ConjugateGradients(ConjugateOptions { tolerance: 1e-3, steps: 5000 }),
        mode: ModeSolver::Newton(ModeOptions { inner_steps: 5000, ..ModeOptions::default() }),
        g_prior: true,
        learn_noise: Some(false),
        initial_precision: settings.precision,
        tolerance: 0.0,
        ..SampledOptions::default()
    };
    let examples = trained.toy.examples();
    let data = Data::new(&trained.network, &examples, likelihood);
    let problem = Problem { data, selection: &trained.selection, seed: context.seed, memory: 2 << 30 };
    let tell = |stage: Stage, done, total| context.tell(stage.describe(), done, total);
    let found = sampled::fit(&problem, &options, Integration::PlugIn, &mut Run::new(tell))?;
    let turns = found.report.turns.iter().map(|t| t.precisions[0]);
    Ok(turns.chain(found.precisions.first().copied()).collect())
}

/// The tangent in the coordinates of the g-prior: features scaled to a unit diagonal of the curvature; those of weights that move no output become zero.
fn scaled(tangent: Tangent) -> Tangent {
    let scales: Vec<f64> = tangent
        .features
        .col_iter()
        .map(|column| column.squared_norm_l2() / tangent.noise_variance)
        .map(|m| if m > 0.0 { m.powf(-0.5) } else { 0.0 })
        .collect();
    let times = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * scales[j]);
    Tangent { features: times(&tangent.features), grid: times(&tangent.grid), ..tangent }
}

/// The tangent model, and the two directions of the weights that the data determine best.
struct Model<'a> {
    tangent: &'a Tangent,
    features: DenseFeatures,
    source: Numbered,
    likelihood: &'a OutputLikelihood,
    directions: [Vec<f64>; 2],
    /// Eigenvalues of the curvature along them.
    eigenvalues: [f64; 2],
}

impl<'a> Model<'a> {
    fn new(tangent: &'a Tangent, likelihood: &'a OutputLikelihood) -> Result<Self> {
        let kernel = &tangent.features * tangent.features.transpose();
        let n = kernel.nrows();
        if n < 2 {
            return refused("two directions need at least two rows");
        }
        let decomposed = posterior_linalg::dense::eigen(kernel.as_ref())
            .map_err(|_| ExperimentError::Setting("the tangent kernel has no eigenvectors".into()))?;
        let direction = |from_last: usize| {
            let k = n - 1 - from_last;
            let value = decomposed.values[k];
            let own: Vec<f64> = decomposed.vectors.col(k).iter().copied().collect();
            let raw = product(tangent.features.transpose(), &own);
            (raw.iter().map(|v| v / value.sqrt()).collect::<Vec<f64>>(), value / tangent.noise_variance)
        };
        let ((a, first), (b, second)) = (direction(0), direction(1));
        Ok(Self {
            tangent,
            features: DenseFeatures::new(tangent.features.clone(), 1)?,
            source: Numbered::new(n, tangent.targets.clone())?,
            likelihood,
            directions: [a, b],
            eigenvalues: [first, second],
        })
    }

    fn coordinates(&self, weights: MatRef<'_, f64>, sample: usize) -> (f64, f64) {
        let along = |d: &[f64]| d.iter().zip(weights.col(sample).iter()).map(|(d, w)| d * w).sum();
        (along(&self.directions[0]), along(&self.directions[1]))
    }
}

/// Samples of a precision.
struct Drawn {
    /// By descent, d x K.
    samples: Mat<f64>,
    /// Of the same noise, exactly, d x K.
    exact: Mat<f64>,
    /// Draws of the prior where they began, d x K.
    prior: Mat<f64>,
    /// Where the shown ones were, in the two directions.
    way: Vec<(f64, f64)>,
}

impl Model<'_> {
    /// By descent on the low-variance objective from draws of the prior, and by the factored posterior.
    fn draw(
        &self,
        settings: &Settings,
        (precision, posterior): (f64, &Conditioned),
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Drawn> {
        let (d, seed) = (self.tangent.dimension(), context.seed);
        let model = SampledModel::new(&self.features, &self.source, self.likelihood);
        let noise = Noise::draw(&model, 0..settings.samples, seed, &mut |_, _| Signal::Continue)?;
        let precisions = vec![precision; d];
        let prior = noise.prior_draws(&precisions)?;
        let right = noise.right_hand_sides(&precisions, 1.0)?;
        let mut exact = Mat::zeros(d, settings.samples);
        for j in 0..settings.samples {
            let own: Vec<f64> = right.col(j).iter().copied().collect();
            exact.col_mut(j).copy_from(faer::ColRef::from_slice(&posterior.solve(&own)));
        }
        let mut objective = SampleObjective::new(&model, &noise, &precisions, 1.0, Objective::LowVariance)?;
        let per_epoch = (self.tangent.targets.len() / settings.batch).max(1);
        let options = DescentOptions {
            epochs: settings.steps.div_ceil(per_epoch),
            batch: settings.batch.min(self.tangent.targets.len()),
            seed,
            ..DescentOptions::default()
        };
        let begun: Vec<(f64, f64)> =
            (0..settings.shown).map(|j| self.coordinates(prior.as_ref(), j)).collect();
        let (mut way, mut restarts) = (begun.clone(), 0);
        let (samples, reason) = descend(
            "the samples",
            &mut objective,
            prior.clone(),
            None,
            Averaging::Geometric,
            &options,
            &mut |progress, state| {
                if state.restarts > restarts {
                    (way, restarts) = (begun.clone(), state.restarts);
                }
                // Steps in geometric progression: most of the way is gone at once.
                if progress.step.is_power_of_two() {
                    way.extend((0..settings.shown).map(|j| self.coordinates(state.average.as_ref(), j)));
                    return context.tell(stage, progress.step, progress.steps_planned);
                }
                Signal::Continue
            },
        )?;
        if reason == Reason::Interrupted {
            return Err(ExperimentError::Interrupted);
        }
        Ok(Drawn { samples, exact, prior, way })
    }

    /// The log posterior density of zero-mean samples in the plane, and their way to it.
    fn plane(&self, title: &str, precision: f64, drawn: &Drawn, shown: usize) -> Item {
        const POINTS: usize = 61;
        let ends: Vec<(f64, f64)> = (0..shown).map(|j| self.coordinates(drawn.samples.as_ref(), j)).collect();
        let points: Vec<(f64, f64)> = drawn.way.iter().chain(&ends).copied().collect();
        let reach = |of: &dyn Fn(&(f64, f64)) -> f64, eigenvalue: f64| {
            let most = points.iter().map(|p| of(p).abs()).fold(0.0, f64::max);
            let reach = 1.1 * most.max(3.0 / (eigenvalue + precision).sqrt());
            (0..POINTS).map(|i| reach * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0)).collect::<Vec<f64>>()
        };
        let [first, second] = self.eigenvalues;
        let (grid_x, grid_y) = (reach(&|p| p.0, first), reach(&|p| p.1, second));
        let density = |x: f64, y: f64| -0.5 * ((first + precision) * x * x + (second + precision) * y * y);
        let values = grid_y.iter().flat_map(|y| grid_x.iter().map(move |x| density(*x, *y).max(-50.0)));
        let values = values.collect();
        Item::Plane(Plane {
            title: format!("Samples on their way: {title}"),
            x: "best determined direction of the weights".into(),
            y: "the next".into(),
            panels: vec![PlanePanel::new("log density", PlaneKind::Amount, values)],
            points_class: points.iter().enumerate().map(|(i, _)| usize::from(i >= drawn.way.len())).collect(),
            points_x: points.iter().map(|p| p.0).collect(),
            points_y: points.iter().map(|p| p.1).collect(),
            grid_x,
            grid_y,
            caption: "Dots: averages after 0, 1, 2, 4, 8, ... steps; diamonds: in the end. Colours end 50 nats below the highest value.".into(),
        })
    }
}

/// Trains the network, learns the precision, and looks at both.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let (toy, tangent) = (&trained.toy, scaled(trained.tangent(&trained.network)?));
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![tangent.noise_variance])?);
    let trace = learned(settings, &trained, &likelihood, context)?;
    let after = trace.last().copied().unwrap_or(f64::NAN);
    let optimum = Conjugate::new(&tangent)?.learn(Update::MacKay, settings.precision, 1000).precision();
    let (curvature, d) = (tangent.curvature()?, tangent.dimension());
    let targets = deviation(&tangent.targets);
    let model = Model::new(&tangent, &likelihood)?;
    let (mut states, mut panels, mut figures, mut series) = (Map::new(), Vec::new(), Vec::new(), Map::new());
    for (name, precision) in [("before", settings.precision), ("after", after)] {
        let posterior = curvature.condition(&Prior::scalar(d, precision)?, 1.0).map_err(LinearError::from)?;
        let drawn = model.draw(settings, (precision, &posterior), &format!("samples {name}"), context)?;
        let spread = |samples: &Mat<f64>| -> Vec<f64> { root_mean_squares(&(&tangent.grid * samples)) };
        let (descended, spread) = (spread(&drawn.samples), spread(&drawn.exact));
        let exact: Vec<f64> =
            crate::tangent::variances(&posterior, tangent.grid.as_ref()).iter().map(|v| v.sqrt()).collect();
        let from_exact = |own: &[f64]| mean(own.iter().zip(&exact).map(|(a, b)| (a / b - 1.0).abs()));
        // Of the prior's functions at the training inputs, about which the targets scatter.
        let prior = mean(tangent.features.row_iter().map(|row| (row.squared_norm_l2() / precision).sqrt()));
        // Of each of them over these inputs, its own mean aside.
        let n = tangent.features.nrows() as f64;
        let varied: f64 = tangent
            .features
            .col_iter()
            .map(|column| {
                let centre = column.iter().sum::<f64>() / n;
                column.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (n * precision)
            })
            .sum();
        let varied = varied.sqrt();
        states.insert(
            name.into(),
            json!({
                "precision": precision, "prior_deviation": prior, "prior_over_targets": prior / targets,
                "variation": varied, "variation_over_targets": varied / targets,
                "mean_deviation": mean(spread.iter().copied()), "gap_deviation": toy.mean_in_gaps(&spread),
                "exact_gap_deviation": toy.mean_in_gaps(&exact), "from_exact": from_exact(&spread),
                "descent_from_exact": from_exact(&descended),
            }),
        );
        let shown = &tangent.grid * drawn.prior.subcols(0, settings.shown);
        let line = |j: usize| {
            Line::new(format!("function {}", j + 1), toy.grid.clone(), shown.col(j).iter().copied().collect())
        };
        let title = format!("{name} (a = {precision:.3e})");
        let lines = (0..settings.shown).map(line).collect();
        figures.push(Curves::new(format!("Functions of the prior, {title}"), "x", "f", lines).into());
        figures.push(model.plane(&title, precision, &drawn, settings.shown));
        panels.push(TitledPosterior::new(
            title,
            toy.panel(&tangent.network_mean, &spread, tangent.noise_variance),
        ));
        series.insert(name.into(), json!({"deviation": spread, "exact_deviation": exact, "way": drawn.way}));
    }
    figures.push(
        PosteriorPanels::new(
            "Error bars before and after",
            "y",
            panels,
            format!("The network's mean and two standard deviations of {} samples.", settings.samples),
        )
        .into(),
    );
    series.insert("grid".into(), json!(toy.grid));
    series.insert("precisions".into(), json!(trace));
    Ok(Measured {
        numbers: json!({
            "states": states, "targets_deviation": targets,
            "optimum": optimum, "learned_over_optimum": after / optimum,
        }),
        series: Value::Object(series),
        tables: vec![NumberTable::by_name(
            "Before and after expectation maximisation",
            "precision",
            "states",
            ["before", "after"],
            &[
                ("precision", "prior precision"),
                ("prior_deviation", "σ of prior functions"),
                ("prior_over_targets", "over that of the targets"),
                ("variation_over_targets", "variation along x over that of the targets"),
                ("gap_deviation", "σ in gaps"),
                ("exact_gap_deviation", "exact σ in gaps"),
                ("from_exact", "relative difference of σ by samples"),
                ("descent_from_exact", "by descent so far"),
            ],
            "The g-prior: features are scaled to a unit diagonal of the curvature. Standard deviations of functions by exactly solved samples, and by descent on the same noise; `exact` by the factored curvature.",
        )],
        figures,
        facts: trained.facts,
        notes: Vec::new(),
    })
}
