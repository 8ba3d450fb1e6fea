//! A process before and after its variances are multiplied by a factor that rows held back choose: bands, scores, and the score along the factor.
//!
//! Serves figure 5.4 of Wu's *Generalised variational inference for Gaussian processes* (spec `generalised_variational_inference`, sections 9.3 and 16.5).

use super::generalised_curves::figures::{banded, picture, rows, truth};
use super::generalised_curves::prior::{LearnedPrior, LearningSettings};
use super::generalised_curves::problem::{Blocks, DataSettings, Problem};
use super::generalised_curves::training::{Band, Trained, TrainingSettings, scored};
use super::generalised_curves::{Configuration, check_curve, grid};
use crate::kinds::prelude::*;
use posterior_gp::generalised::{GeneralisedData, GeneralisedGp, TemperingMethod};
use posterior_optim::{Adaptive, Optimiser, UpdateRule};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: DataSettings,
    /// The number of the curve.
    curve: usize,
    blocks: Blocks,
    /// What is fitted.
    configuration: Configuration,
    learning: LearningSettings,
    training: TrainingSettings,
    /// Tempering by steps of AdaBelief on the factor's logarithm, beside the closed form: their size and number.
    gradient: GradientSettings,
    /// Points of the pictures.
    points: usize,
}

/// The table `[gradient]`.
#[derive(Clone, Debug, Deserialize)]
struct GradientSettings {
    /// Step size.
    rate: f64,
    /// Steps.
    steps: usize,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_curve(&self.data, &self.blocks, self.curve, self.points)?;
        self.configuration.check()?;
        self.learning.check()?;
        self.training.check()?;
        let GradientSettings { rate, steps } = self.gradient;
        if !positive(rate) || steps == 0 {
            return refused("[gradient]: `rate` is positive, `steps` at least 1");
        }
        Ok(())
    }
}

/// Half the width of a central 95 % interval in standard deviations.
const WIDTH: f64 = 1.96;

/// Numbers of a process.
fn numbers(model: &GeneralisedGp, band: &Band, problem: &Problem) -> Result<Value> {
    let [train, validation, test] =
        [&problem.train, &problem.validation, &problem.test].map(|rows| scored(model, rows));
    let test = test?;
    let widest = band.observed.iter().copied().fold(0.0, f64::max);
    Ok(json!({
        "train": train?.nll, "validation": validation?.nll, "test": test.nll, "rmse": test.rmse,
        "coverage_90": test.coverage_90, "half_width": WIDTH * mean(band.observed.iter().copied()),
        "widest": WIDTH * widest,
    }))
}

/// Mean negative log density of the rows held back along the factor: `½ log 2πα v + ½ r²/(α v)` needs no more than variances and residuals before.
fn along(model: &GeneralisedGp, problem: &Problem, alpha: f64) -> Result<Line> {
    use posterior_gp::Posterior;
    let (rows, found) = (&problem.validation, model.predict(problem.validation.inputs())?);
    let variances = found.observed_variance();
    let score = |factor: f64| {
        let of = |i: usize| {
            let (v, r) = (factor * variances[i], rows.targets()[(i, 0)] - found.mean[(i, 0)]);
            0.5 * ((2.0 * std::f64::consts::PI * v).ln() + r * r / v)
        };
        mean((0..rows.rows()).map(of))
    };
    let factors: Vec<f64> = (0..=80).map(|i| alpha * 10f64.powf((f64::from(i) - 40.0) / 20.0)).collect();
    let scores = factors.iter().map(|f| score(*f)).collect();
    Ok(Line { optimum: Some(alpha), ..Line::new("validation rows", factors, scores) })
}

/// Fits, tempers in both ways, and shows what changed.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let streams = Streams::new(context.seed);
    let (configuration, way) = (&settings.configuration, &settings.learning);
    let problem = settings.data.problem(settings.curve, settings.blocks.of(settings.data.split), streams)?;
    let asked = (configuration.prior, configuration.points(problem.train.rows()));
    let learned =
        LearnedPrior::learn(&problem, asked, way, streams, &mut || context.tell("the prior", 0, 2))?
            .ok_or(ExperimentError::Interrupted)?;
    let kernel = (configuration.prior, configuration.mode);
    let reference = learned.reference(&problem, kernel, way.noise_in, streams)?;
    let mut observer = || context.tell("the fit", 1, 2);
    let trained =
        Trained::new(&problem, reference, &settings.training, configuration, streams, &mut observer)?
            .ok_or(ExperimentError::Interrupted)?;
    let grid = grid(settings.points);
    let bands = [Band::of(&trained.before, &grid)?, Band::of(&trained.after, &grid)?];
    let rule = Adaptive::new(UpdateRule::AdaBelief.rule(), settings.gradient.rate);
    let steps =
        TemperingMethod::Gradient { optimiser: Optimiser::Adaptive(rule), steps: settings.gradient.steps };
    let held = GeneralisedData { observations: &problem.validation, given: None };
    let (_, by_gradient) = trained.before.clone().temper(&held, &steps)?;
    let moved = mean(bands[0].mean.iter().zip(&bands[1].mean).map(|(a, b)| (a - b).abs()));
    let alpha = trained.tempered.factors[0];
    let before = numbers(&trained.before, &bands[0], &problem)?;
    let after = numbers(&trained.after, &bands[1], &problem)?;
    let line = along(&trained.before, &problem, alpha)?;
    let points = trained.after.reference(0).rank();
    let table = NumberTable::by_name(
        "Before and after tempering",
        "process",
        "tempering",
        ["before", "after"],
        &[
            ("half_width", "half width of 95 %, mean"),
            ("widest", "widest"),
            ("train", "NLL of training rows"),
            ("validation", "of validation rows"),
            ("test", "of test rows"),
            ("coverage_90", "coverage of 90 %"),
        ],
        "Widths are those of new observations. The curve itself with its noise has a half width of 0.98 and a score of 0.726.",
    );
    let shown = |title: &str, band: &Band| {
        let mut lines = vec![banded("mean".into(), &grid, band), truth(&problem, &grid)];
        lines.extend(rows(&problem));
        picture(title, lines, "The mean with the central 95 % of new observations; one in 5 rows.")
    };
    let figures = vec![
        shown("Before tempering", &bands[0]),
        shown("After tempering", &bands[1]),
        Curves::new("The score along the factor", "factor", "NLL, nats", vec![line])
            .logarithmic(true, false)
            .into(),
    ];
    Ok(Measured {
        numbers: json!({
            "tempering": {"before": before, "after": after}, "alpha": alpha,
            "alpha_by_gradient": by_gradient.factors[0], "gained_by_gradient": by_gradient.before - by_gradient.after,
            "gained": trained.tempered.before - trained.tempered.after, "mean_moved": moved,
            "steps": trained.steps, "points": points,
        }),
        series: json!({"grid": grid, "before": bands[0], "after": bands[1]}),
        tables: vec![table],
        figures,
        facts: vec![SummaryRow::new("fit", configuration.values().join(", "))],
        notes: Vec::new(),
    })
}
