//! **The study `[roughness]`**: expected total variation of a block's pictures against its lengthscale, in closed form; how far the estimates by samples are from it; and what the prior made of it does to a search.

use super::draws::{self, DrawSettings};
use super::problem::Subject;
use super::stored::StoredModel;
use super::traces::{self, Trace, TraceSettings};
use super::trained::{Learner, Trained};
use crate::kinds::prelude::*;
use posterior_networks::Network;
use posterior_tomography::TomographyError;
use posterior_tomography::linearised::{
    BendEstimate, ConvolutionWeights, FilterHyperparameters, ImageTangent, Roughness, RoughnessTerms,
    SampledRoughness,
};
use posterior_tomography::total_variation::TotalVariation;

/// The table `[roughness]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct RoughnessSettings {
    /// The shortest and the longest lengthscale of the curves, in positions of a filter.
    from: f64,
    to: f64,
    /// Lengthscales of the curves, evenly in their logarithm.
    lengthscales: usize,
    /// Lengthscales at which samples estimate what the closed form knows; the first image only.
    sampled_at: Vec<f64>,
    /// Samples of each estimate.
    samples: usize,
    /// Half the distance of the differences, in the logarithm.
    step: f64,
    /// Searches with and without the prior over lengthscales; the first image only.
    #[serde(default)]
    traces: Option<TraceSettings>,
    /// Pictures that priors expect, those of the searches among them; the first image only.
    #[serde(default)]
    draws: Option<DrawSettings>,
}

impl RoughnessSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !(positive(self.from) && positive(self.to) && self.from < self.to && self.lengthscales >= 2) {
            return refused("[roughness]: `from` is positive and below `to`, `lengthscales` are at least 2");
        }
        if !self.sampled_at.iter().all(|l| positive(*l)) || self.samples == 0 || !positive(self.step) {
            return refused("[roughness]: `sampled_at` and `step` are positive, `samples` at least 1");
        }
        if self.draws.is_some() && self.traces.is_none() {
            return refused(
                "[roughness.draws] needs [roughness.traces], whose hyperparameters it draws with",
            );
        }
        self.draws.as_ref().map_or(Ok(()), DrawSettings::check)?;
        self.traces.as_ref().map_or(Ok(()), TraceSettings::check)
    }

    fn grid(&self) -> Vec<f64> {
        let last = (self.lengthscales - 1) as f64;
        let ratio = (self.to / self.from).ln();
        (0..self.lengthscales).map(|i| self.from * (ratio * i as f64 / last).exp()).collect()
    }
}

/// One block of one image along the lengthscales, for a prior variance of 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BlockCurve {
    block: String,
    /// Expected total variation.
    raw: Vec<f64>,
    /// The same over the root mean variance of the block's pictures.
    normalised: Vec<f64>,
}

/// Estimates of one block at one lengthscale.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Estimated {
    block: String,
    lengthscale: f64,
    /// In closed form: value, slope and bend in the log lengthscale.
    exact: [f64; 3],
    /// The same by samples, the bend as published.
    published: [f64; 3],
    /// The bend by differences of slopes.
    differences: f64,
    /// Slopes of the log density in the log lengthscale: closed form, published, differences.
    density: [f64; 3],
}

fn three(found: Roughness) -> [f64; 3] {
    [found.value, found.slope, found.bend]
}

fn at(blocks: usize, lengthscale: f64) -> FilterHyperparameters {
    FilterHyperparameters {
        log_variances: vec![0.0; blocks],
        log_lengthscales: vec![lengthscale.ln(); blocks],
    }
}

/// Curves of every image; estimates and searches on the first.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn run<'a>(
    settings: &RoughnessSettings,
    learner: &'a Learner<'a>,
    pictures: &[Trained],
    out: &mut Measured,
    context: &mut Context<'_>,
) -> Result<(Value, Value)> {
    let (mut curves, mut estimates, mut found) = (Vec::new(), Vec::new(), None);
    let mut drawn = Vec::new();
    for (i, (subject, trained)) in learner.problem.subjects.iter().zip(pictures).enumerate() {
        let name = &subject.name;
        let network = learner.network(trained)?;
        let mut model = LazyModel { learner, subject, network, place: None };
        let depends = (learner.depends(), name, settings.from, settings.to, settings.lengthscales);
        let own: Vec<BlockCurve> =
            context.once(&format!("{name}: expected total variation"), &depends, |context| {
                Ok(along(settings, model.get(context)?))
            })?;
        curves.push((name.clone(), own));
        if i > 0 {
            continue;
        }
        let depends = (learner.depends(), name, &settings.sampled_at, settings.samples, settings.step);
        estimates = context.once(&format!("{name}: estimates by samples"), &depends, |context| {
            estimate(settings, &mut model, context)
        })?;
        if let Some(own) = &settings.traces {
            let searches = traces::run(own, &mut model, context)?;
            if let Some(own) = &settings.draws {
                drawn = draws::run(own, &searches, &model, context)?;
            }
            found = Some(searches);
        }
    }
    out.figures.extend(figures(settings, &curves));
    out.tables.push(table(!estimates.is_empty()));
    let mut numbers = Map::new();
    numbers.insert("curves".into(), rises(&curves));
    numbers.insert("estimates".into(), bias(&estimates));
    if let Some(found) = &found {
        out.figures.extend(found.iter().flat_map(Trace::figures));
        out.tables.push(traces::table());
        numbers.insert("traces".into(), traces::numbers(found));
    }
    if !drawn.is_empty() {
        let (image, shape) = (&learner.problem.subjects[0].name, learner.problem.shape());
        out.figures.push(draws::figure(image, shape, &drawn));
        out.tables.push(draws::table(&drawn));
        numbers.insert("draws".into(), draws::numbers(&drawn));
    }
    let series = json!({"grid": settings.grid(), "curves": curves, "estimates": estimates, "traces": found});
    Ok((Value::Object(numbers), series))
}

/// The stored model of an image, made when the first part needs it.
pub(crate) struct LazyModel<'a> {
    pub(crate) learner: &'a Learner<'a>,
    pub(crate) subject: &'a Subject,
    network: Network<f32>,
    place: Option<(StoredModel, RoughnessTerms)>,
}

impl LazyModel<'_> {
    /// The network, trained.
    pub(crate) fn network(&self) -> &Network<f32> {
        &self.network
    }

    /// The model, and what expected total variation needs of it.
    ///
    /// # Errors
    /// What fails or is interrupted.
    pub(crate) fn get(&mut self, context: &mut Context<'_>) -> Result<&(StoredModel, RoughnessTerms)> {
        let Self { learner, subject, network, place } = self;
        let model = made(place, || {
            let own = StoredModel::new(network, learner, subject, context)?;
            let terms = RoughnessTerms::new(&own.weights, &learner.problem.shape(), own.jacobian.as_ref());
            Ok((own, terms))
        })?;
        Ok(model)
    }
}

fn along(settings: &RoughnessSettings, (model, terms): &(StoredModel, RoughnessTerms)) -> Vec<BlockCurve> {
    let blocks = model.weights.blocks();
    let mut out = Vec::new();
    for (k, block) in blocks.iter().enumerate().filter(|(_, b)| b.positions() > 1) {
        let (mut raw, mut normalised) = (Vec::new(), Vec::new());
        for lengthscale in settings.grid() {
            let own = at(blocks.len(), lengthscale);
            let value = terms.of_block(k, &own).map_or(f64::NAN, |found| found.value);
            // Without the other blocks: their variances are e^-700.
            let mut alone = own;
            (0..blocks.len()).filter(|j| *j != k).for_each(|j| alone.log_variances[j] = -700.0);
            let kernel = model.grams.kernel(&alone);
            let variance = mean((0..kernel.nrows()).map(|i| kernel[(i, i)]));
            raw.push(value);
            normalised.push(value / variance.max(f64::MIN_POSITIVE).sqrt());
        }
        out.push(BlockCurve { block: block.name.clone(), raw, normalised });
    }
    out
}

fn estimate(
    settings: &RoughnessSettings,
    model: &mut LazyModel<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Estimated>> {
    let (learner, subject, network) = (model.learner, model.subject, model.network.clone());
    let network = &network;
    let (_, terms) = model.get(context)?;
    let weights = ConvolutionWeights::of(network.graph())?;
    let tangent = ImageTangent::new(network, learner.input(subject)?, weights.selection())?;
    let total_variation = TotalVariation::sum(&learner.problem.shape())?;
    let seed = Streams::new(context.seed).child("experiment/tomography roughness", 0).seed();
    let by = |bend| SampledRoughness {
        tangent: &tangent,
        weights: &weights,
        total_variation: &total_variation,
        samples: settings.samples,
        bend,
        around: None,
    };
    let (published, fair) =
        (by(BendEstimate::Published), by(BendEstimate::Differences { step: settings.step }));
    let count = weights.blocks().len();
    let all = count * settings.sampled_at.len();
    let mut out = Vec::new();
    for (i, &lengthscale) in settings.sampled_at.iter().enumerate() {
        let place = at(count, lengthscale);
        for (k, block) in weights.blocks().iter().enumerate() {
            context.step("estimates by samples", i * count + k, all)?;
            let each = || -> Result<Option<[Roughness; 3]>, TomographyError> {
                let Some(exact) = terms.of_block(k, &place) else { return Ok(None) };
                let sampled = [published.of_block(k, &place, seed)?, fair.of_block(k, &place, seed)?];
                let [Some(published), Some(fair)] = sampled else { return Ok(None) };
                Ok(Some([exact, published, fair]))
            };
            let Some(own) = each()? else { continue };
            out.push(Estimated {
                block: block.name.clone(),
                lengthscale,
                exact: three(own[0]),
                published: three(own[1]),
                differences: own[2].bend,
                density: own.map(|found| found.log_density(lengthscale.ln()).1[1]),
            });
        }
    }
    Ok(out)
}

/// How far estimates are from the closed form; bends relative to the expected total variation.
fn bias(estimates: &[Estimated]) -> Value {
    if estimates.is_empty() {
        return Value::Null;
    }
    let relative = |of: &dyn Fn(&Estimated) -> f64| -> Value {
        let all: Vec<f64> = estimates
            .iter()
            .map(|e| (of(e) - e.exact[2]) / e.exact[0].abs().max(f64::MIN_POSITIVE))
            .collect();
        json!({
            "bias": mean(all.iter().copied()),
            "error": mean(all.iter().map(|v| v * v)).sqrt(),
            "below": mean(all.iter().map(|v| f64::from(u8::from(*v < 0.0)))),
        })
    };
    let density = |k: usize| mean(estimates.iter().map(|e| (e.density[k] - e.density[0]).abs()));
    let first = |k: usize| {
        mean(
            estimates
                .iter()
                .map(|e| (e.published[k] - e.exact[k]).abs() / e.exact[0].abs().max(f64::MIN_POSITIVE)),
        )
    };
    let (mut published, mut differences) = (relative(&|e| e.published[2]), relative(&|e| e.differences));
    published["density"] = json!(density(1));
    differences["density"] = json!(density(2));
    json!({"published": published, "differences": differences, "value_error": first(0), "slope_error": first(1)})
}

/// The share of steps of the grid along which a curve rises, over images and blocks.
fn rises(curves: &[(String, Vec<BlockCurve>)]) -> Value {
    let all = || curves.iter().flat_map(|c| &c.1);
    let share = |of: fn(&BlockCurve) -> &[f64]| {
        mean(all().flat_map(|c| of(c).windows(2).map(|w| f64::from(u8::from(w[1] > w[0])))))
    };
    json!({"raw_rises": share(|c| &c.raw), "normalised_rises": share(|c| &c.normalised)})
}

fn table(estimated: bool) -> NumberTable {
    let mut rows = vec![
        ("curves rise, share of steps", "roughness.curves.raw_rises"),
        ("the same with pictures of variance 1", "roughness.curves.normalised_rises"),
    ];
    if estimated {
        rows.extend([
            ("second derivative as published: mean error", "roughness.estimates.published.bias"),
            ("root mean square", "roughness.estimates.published.error"),
            ("share below the closed form", "roughness.estimates.published.below"),
            ("error of the log density's slope", "roughness.estimates.published.density"),
            ("by differences: mean error", "roughness.estimates.differences.bias"),
            ("root mean square", "roughness.estimates.differences.error"),
            ("share below the closed form", "roughness.estimates.differences.below"),
            ("error of the log density's slope", "roughness.estimates.differences.density"),
            ("mean error of the value by samples", "roughness.estimates.value_error"),
            ("of the slope", "roughness.estimates.slope_error"),
        ]);
    }
    let mut table = NumberTable::of_quantities("Expected total variation", ["quantity", "value"], &rows);
    table.caption =
        "Errors of values, slopes and second derivatives are relative to the expected total variation."
            .into();
    table
}

fn figures(
    settings: &RoughnessSettings,
    curves: &[(String, Vec<BlockCurve>)],
) -> Vec<posterior_report::Item> {
    let mut out = Vec::new();
    for (image, own) in curves {
        for (title, of) in [
            ("expected total variation", (|c| &c.raw) as fn(&BlockCurve) -> &Vec<f64>),
            ("expected total variation of pictures of variance 1", |c| &c.normalised),
        ] {
            let lines = own.iter().map(|c| Line::new(&c.block, settings.grid(), of(c).clone())).collect();
            let curves = Curves::new(format!("{image}: {title}"), "lengthscale", "kappa", lines);
            out.push(curves.logarithmic(true, true).into());
        }
    }
    out
}
