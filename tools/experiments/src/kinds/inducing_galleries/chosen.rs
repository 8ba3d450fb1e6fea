//! Images that a method chose of a class, and what they say about the others.
//!
//! Sources: spec `generalised_variational_inference`, sections 4.1, 4.2, 16.2 and 16.3.

use super::Settings;
use super::classes::ClassImages;
use super::method::{MethodSettings, Prior};
use crate::kinds::prelude::*;
use posterior_gp::exact::ExactGp;
use posterior_gp::generalised::{
    ClassAlternation, ClassLearningOptions, LearnedClasses, Selector, learn_class_references, select_rows,
};
use posterior_gp::{GpError, MeanForm};
use posterior_kernels::inducing::{Whitening, random_rows};
use posterior_kernels::{Kernel, diagonal, gram};
use posterior_likelihoods::{Gaussian, RobustMax};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_optim::{Adaptive, Optimiser, UpdateRule};

/// The least noise variance that is learned; turns begin with 1.
const LEAST_NOISE: f64 = 1e-6;

/// The choice of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    /// Images of the class, in the order in which they were chosen. Fewer than were asked for where the kernel's matrix has no more rank to give.
    pub(crate) rows: Vec<usize>,
    /// What they are under the kernel that chose them, and as many by chance; nothing where chance chose.
    pub(crate) judged: Option<[Under; 2]>,
}

/// What some images of a class are under a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Under {
    /// The share of the trace of the class's kernel matrix that they explain, `tr(K_XZ K_ZZ⁻¹ K_ZX) / tr K`.
    pub(crate) explained: f64,
    /// The largest variance that they leave, over the largest at first: what greedy choice lowers.
    pub(crate) worst: f64,
    /// The largest correlation between two of them, in magnitude.
    pub(crate) correlation: f64,
}

/// What learning came to in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Learned {
    /// The risk.
    pub(crate) risk: f64,
    /// Steps.
    pub(crate) steps: usize,
    /// How many of the images of a class that it learned on are chosen at the end, on average over classes.
    pub(crate) kept: f64,
}

/// Rows by chance, of which there is one choice for each class whatever it is compared with.
pub(crate) fn by_chance(images: usize, points: usize, (class, streams): (usize, Streams)) -> Vec<usize> {
    random_rows(images, points, streams.child("experiment/gallery-random", class as u64))
}

impl Chosen {
    /// Rows that a kernel on x chose, beside as many by chance.
    fn judged(
        kernel: &dyn Kernel<f64>,
        x: MatRef<'_, f64>,
        rows: Vec<usize>,
        chance: &[usize],
    ) -> Result<Self> {
        let judged = Some([Under::of(kernel, x, &rows)?, Under::of(kernel, x, chance)?]);
        Ok(Self { rows, judged })
    }
}

impl Under {
    /// Some rows of x. Cost `n m` entries of the kernel and `n m²` flops.
    ///
    /// # Errors
    /// Rows whose matrix cannot be factored.
    pub(crate) fn of(kernel: &dyn Kernel<f64>, x: MatRef<'_, f64>, rows: &[usize]) -> Result<Self> {
        let z = Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)]);
        let z = z.as_ref();
        let whitening = Whitening::new(kernel, z, 0.0, JitterPolicy::default()).map_err(GpError::from)?;
        let (features, variances) = (whitening.features(kernel, z, x), diagonal(kernel, x));
        let known: Vec<f64> = (0..x.nrows()).map(|i| features.col(i).squared_norm_l2()).collect();
        let mut left = variances.iter().zip(&known).map(|(all, known)| all - known);
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let own = gram(kernel, z);
        let correlation = |i: usize, j: usize| (own[(i, j)] / (own[(i, i)] * own[(j, j)]).sqrt()).abs();
        let pairs = (0..rows.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        Ok(Self {
            explained: known.iter().sum::<f64>() / variances.iter().sum::<f64>(),
            worst: largest(&mut left) / largest(&mut variances.iter().copied()),
            correlation: largest(&mut pairs.map(|(i, j)| correlation(i, j))),
        })
    }
}

/// What a method that has nothing to learn chooses of every class. Each class is a part of its own.
///
/// # Errors
/// As [`MethodSettings::prior`]; interruption.
pub(crate) fn choose(
    settings: &Settings,
    method: &MethodSettings,
    images: &ClassImages,
    context: &mut Context<'_>,
) -> Result<Vec<Chosen>> {
    let (points, streams) = (settings.points, Streams::new(context.seed));
    let of_class = |class: usize| {
        context.step(&method.name, class, images.classes())?;
        let depends = (class, points, &settings.data, method.depends(&settings.networks));
        context.once("choice", &depends, |_| {
            let place = (class, streams);
            let chance = by_chance(settings.data.images, points, place);
            let Some(prior) = method.prior(&settings.networks, images, place)? else {
                return Ok(Chosen { rows: chance, judged: None });
            };
            let pixels = images.inputs(class);
            let (kernel, x) = prior.at(pixels.as_ref())?;
            let own = streams.child("experiment/gallery-choice", class as u64);
            let rows = select_rows(Selector::GreedyVariance, kernel, x.as_ref(), points, own)?;
            Chosen::judged(kernel, x.as_ref(), rows, &chance)
        })
    };
    (0..images.classes()).map(of_class).collect()
}

/// What a method chooses of every class when the processes of all classes have learned together, and what the turns came to. This is one part: an interruption begins it anew.
///
/// # Errors
/// As [`MethodSettings::prior`]; what goes wrong in learning; interruption.
pub(crate) fn learn(
    settings: &Settings,
    method: &MethodSettings,
    images: &ClassImages,
    context: &mut Context<'_>,
) -> Result<(Vec<Chosen>, Vec<Learned>)> {
    let (points, streams) = (settings.points, Streams::new(context.seed));
    let steps = method.epochs.unwrap_or_default();
    context.step(&method.name, 0, steps)?;
    let depends = (points, &settings.data, &settings.learning, method.depends(&settings.networks));
    context.once("learned choices", &depends, |context| {
        let prior = |class: usize| -> Result<Prior> {
            let found = method.prior(&settings.networks, images, (class, streams))?;
            found.ok_or_else(|| ExperimentError::Setting("`epochs` belong to a `kernel`".into()))
        };
        let begun = |class: usize| -> Result<ExactGp> {
            let noise = Gaussian::new(1.0, LEAST_NOISE);
            Ok(ExactGp::new(prior(class)?.whole(), MeanForm::Constant, noise, images.pixels(), 1))
        };
        let models = (0..images.classes()).map(begun).collect::<Result<_, _>>()?;
        let inputs: Vec<Mat<f64>> = (0..images.classes()).map(|class| images.inputs(class)).collect();
        let way = &settings.learning;
        let options = ClassLearningOptions {
            points,
            turns: way.turns,
            optimiser: Optimiser::Adaptive(Adaptive::new(UpdateRule::AdaBelief.rule(), way.rate)),
            steps,
            least_risk: way.least_risk,
            likelihood: RobustMax::new(images.classes(), way.error_rate)?,
            seed: streams.seed(),
        };
        let LearnedClasses { models, rows, turns, interrupted } =
            learn_class_references(models, &inputs, &options, &mut |progress, _| {
                let done = progress.part * steps + progress.step;
                context.tell(&method.name, done, progress.parts * steps)
            })?;
        if interrupted {
            return Err(ExperimentError::Interrupted);
        }
        let of_class = |(class, rows): (usize, Vec<usize>)| -> Result<Chosen> {
            let learned = prior(class)?.with_values(&models[class].kernel().values());
            let (kernel, x) = learned.at(inputs[class].as_ref())?;
            let chance = by_chance(settings.data.images, points, (class, streams));
            Chosen::judged(kernel, x.as_ref(), rows, &chance)
        };
        let of_turn = |turn: &ClassAlternation| {
            let pairs = turn.rows.iter().zip(&rows);
            let kept = pairs.map(|(then, now)| then.iter().filter(|row| now.contains(row)).count() as f64);
            Learned { risk: turn.risk, steps: turn.steps, kept: mean(kept) }
        };
        let turns = turns.iter().map(of_turn).collect();
        let chosen = rows.into_iter().enumerate().map(of_class).collect::<Result<_, _>>()?;
        Ok((chosen, turns))
    })
}
