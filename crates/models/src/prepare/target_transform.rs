//! **Which map a target goes through** before it is learned: the one under which the rows are likeliest.
//!
//! A map g changes the density of a target y by its slope, `p(y) = p(g(y)) g'(y)`, so that evidences of different maps are compared in the units of y:
//!
//! ```text
//! log p(y | map) = log p(z | X, θ) + Σ_i log dz_i/dy_i        z: standardised g(y), θ: best for this map
//! ```
//!
//! of an exact process on at most [`ROWS`] rows, drawn by the seed, whatever method learns from all of them later. A logarithm is taken where it is likelier by more than two nats, a power, whose exponent is learned as well, by more than three.
//! By itself (`auto`) nothing is tried of targets that may be negative, or whose skewness is below [`SKEWED`]. Cost: some hundred evidences of 400 rows, a second or so.
//!
//! Source: Snelson, Rasmussen and Ghahramani, *Warped Gaussian processes*, 2004 (the Jacobian's term); Box and Cox, *An analysis of transformations*, 1964 (the choice by likelihood).

use crate::hyperparameter::FunctionUnits;
use crate::options::TargetTransformName;
use crate::text::number;
use crate::{FitRequest, ModelError, TargetMap};
use faer::{Mat, MatRef};
use posterior_data::{Schema, Standardisation, Support, TargetTransform};
use posterior_gp::Observations;
use posterior_gp::exact::{ExactGp, fit};
use posterior_linalg::random::Streams;
use posterior_notes::fixes::{MEDIAN, TRANSFORM_LOG, TRANSFORM_NONE, TRANSFORM_YEO_JOHNSON};
use posterior_optim::{Parameters, Signal};
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// Rows whose evidence is compared, at most.
const ROWS: usize = 400;

/// Fewer rows say nothing of a map.
const LEAST_ROWS: usize = 20;

/// Skewness from which `auto` looks for a map: that of a gamma distribution of shape 16.
const SKEWED: f64 = 0.5;

/// Steps of the first search, and of those that begin where another ended.
const STEPS: [usize; 2] = [30, 15];

/// How much likelier rows have to be under a logarithm, and under a power, nats.
const MARGINS: [f64; 2] = [2.0, 3.0];

/// A map that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedTransform {
    /// The map; none for the target as it is.
    pub transform: Option<TargetTransform>,
    /// Log evidence of the compared rows in the units of the target, the map's slopes included, nats.
    pub log_evidence: f64,
    /// Root mean square error of the compared rows' means in the units of the target, each predicted from the others, in standard deviations of the target.
    pub error: f64,
}

impl TriedTransform {
    /// Whether means are further off than the mean of all targets is: deviations of a logarithm raise them, without a bound where rows are far apart.
    fn has_wild_means(&self) -> bool {
        self.error > 1.0
    }
}

/// Which map a target goes through, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransformChoice {
    /// The map; none for the target as it is.
    pub chosen: Option<TargetTransform>,
    /// Rows whose evidence was compared; 0 where nothing was.
    pub rows: usize,
    /// What was compared.
    pub tried: Vec<TriedTransform>,
    /// The least target of the training rows; none of functions behind labels, and of rows in standard units.
    pub least: Option<f64>,
    /// Where the quantity ends.
    #[serde(default, skip_serializing_if = "Support::is_everywhere")]
    pub support: Support,
    /// The share of the compared rows that lie on the bounds of the quantity, where that is a mass which no continuous distribution has; 0 elsewhere.
    #[serde(default, skip_serializing_if = "is_none")]
    pub on_bounds: f64,
}

/// For serialisation, of a share.
fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl TransformChoice {
    fn given(chosen: Option<TargetTransform>) -> Self {
        Self { chosen, ..Self::default() }
    }

    /// What a user must know of means under the map, who reads them and not the intervals, for which it was chosen.
    pub(crate) fn warning(&self) -> Option<String> {
        let chosen = self.tried.iter().find(|own| own.transform == self.chosen)?;
        (self.chosen.is_some() && chosen.has_wild_means()).then(|| {
            format!(
                "means are of little use here: under the map of the target they are off by {} of its standard deviations on rows that are predicted from others, because the mean of what is open on a logarithm's or a power's scale has hardly a \
                 bound. Intervals are what the map was chosen for; as one number take the median (predict {MEDIAN}), or learn the target as it is ({TRANSFORM_NONE})",
                number(chosen.error)
            )
        })
    }

    /// What a user must know of a mass on a bound.
    pub(crate) fn mass_on_bounds(&self, target: &str) -> Option<String> {
        let bounds: Vec<String> =
            [self.support.floor, self.support.ceiling].into_iter().flatten().map(number).collect();
        (self.on_bounds > 0.0).then(|| {
            format!(
                "`{target}` is exactly {} in {:.1} % of the rows, which no continuous distribution is: intervals hold what they say over all rows, and less over the others. To tell how likely a row is to lie there, and how large it is elsewhere, fit two models: one of a column that says whether it does (two classes), one of the other rows",
                bounds.join(" or "),
                100.0 * self.on_bounds
            )
        })
    }

    /// In words, of a target of this name; nothing of one that is taken as it is without a look.
    pub(crate) fn sentence(&self, target: &str) -> Option<String> {
        let mut what = self.chosen.map_or_else(|| format!("{target} as it is"), |own| own.image_of(target));
        if self.support.floor.is_some() {
            what += ", from 0 on";
        }
        if let Some(ceiling) = self.support.ceiling {
            what += &format!(", up to {ceiling}");
        }
        if self.rows == 0 {
            let asked = if self.support.is_everywhere() { ", as asked" } else { "" };
            return self.chosen.map(|_| format!("{what}{asked}"));
        }
        let of_row = |tried: &TriedTransform| tried.log_evidence / self.rows as f64;
        let each: Vec<String> = self
            .tried
            .iter()
            .map(|tried| {
                let name = tried.transform.map_or_else(|| "as it is".to_string(), |own| own.to_string());
                format!("{name} {:.3}", of_row(tried))
            })
            .collect();
        Some(format!("{what}, by the evidence of {} rows (nats a row: {})", self.rows, each.join(", ")))
    }
}

/// Rows to compare maps by.
pub(crate) struct ComparedRows<'a> {
    /// Names of the inputs.
    pub(crate) names: &'a [String],
    /// Standardised inputs, m x D.
    pub(crate) x: Mat<f64>,
    /// Targets in their own units (m).
    pub(crate) y: Vec<f64>,
    /// The least target of all rows.
    pub(crate) least: f64,
}

/// Which of so many rows are compared, ascending.
pub(crate) fn compared(rows: usize, seed: u64) -> Vec<usize> {
    let mut rng = Streams::new(seed).stream("model/target-transform");
    let mut drawn = index::sample(&mut rng, rows, rows.min(ROWS)).into_vec();
    drawn.sort_unstable();
    drawn
}

/// Rows of a table in memory.
pub(crate) fn of_table<'a>(
    names: &'a [String],
    standard: &Standardisation,
    (x, y): (MatRef<'_, f64>, &[f64]),
    seed: u64,
) -> ComparedRows<'a> {
    let rows = compared(y.len(), seed);
    let some = Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)]);
    ComparedRows {
        names,
        x: standard.features(some.as_ref()),
        y: rows.iter().map(|&i| y[i]).collect(),
        least: y.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

/// The map that was asked for, or the best one, of rows whose least target it notes.
///
/// # Errors
/// As [`choose_map`].
pub(crate) fn choose(request: &FitRequest, rows: &ComparedRows<'_>) -> Result<TransformChoice, ModelError> {
    let mut choice = choose_map(request, rows)?;
    if request.output.target_transform == TargetTransformName::Auto && request.roles().noise.is_none() {
        let (support, holds) = Support::of_quantity(&rows.y, rows.least);
        if choice.chosen.is_none() && holds {
            // The identity, as a map that may have bounds.
            choice.chosen = Some(TargetTransform::YeoJohnson { exponent: 1.0, unit: 1.0 });
        }
        let on_bounds =
            rows.y.iter().filter(|y| support.floor == Some(**y) || support.ceiling == Some(**y)).count();
        if holds {
            choice.on_bounds = on_bounds as f64 / rows.y.len().max(1) as f64;
        }
        choice.support = match choice.chosen {
            Some(TargetTransform::Log) => {
                Support { floor: support.floor.map(|_| 0.5 * rows.least), ..support }
            }
            Some(_) => support,
            None => Support::default(),
        };
    }
    Ok(TransformChoice { least: Some(rows.least), ..choice })
}

/// The map that was asked for, or the best one.
///
/// # Errors
/// [`ModelError::Usage`] for what does not go with the rest of the request; a kernel that does not fit the table.
fn choose_map(request: &FitRequest, rows: &ComparedRows<'_>) -> Result<TransformChoice, ModelError> {
    use TargetTransformName::{Auto, Log, None as Plain, YeoJohnson};
    let asked = request.output.target_transform;
    let known_noise = request.roles().noise.is_some();
    if let (Some(given), Auto) = (request.start.transform(), asked) {
        if known_noise {
            return Err(ModelError::Usage(
                "the hyperparameters that are given are of a mapped target, which has no use for noise variances that are known in its own units (--noise): leave one of them out".into(),
            ));
        }
        return Ok(TransformChoice::given(Some(given)));
    }
    if let Some(name) = asked.asked().filter(|_| known_noise) {
        return Err(ModelError::Usage(format!(
            "--target-transform {name} has no use for noise variances that are known in units of the target (--noise): leave one of them out"
        )));
    }
    match asked {
        Plain => Ok(TransformChoice::default()),
        Log => Ok(TransformChoice::given(Some(TargetTransform::Log))),
        YeoJohnson if request.start.hyperparameters().is_some() => Err(ModelError::Usage(
            "--target-transform yeo-johnson learns its exponent with the hyperparameters, which are given here: leave out one of the two flags".into(),
        )),
        YeoJohnson if rows.y.len() < LEAST_ROWS => Err(ModelError::Usage(format!(
            "--target-transform yeo-johnson learns its exponent from {LEAST_ROWS} rows or more, and there are {}: take log or none",
            rows.y.len()
        ))),
        YeoJohnson => best(request, rows, &[1.0, 0.75, 0.5, 0.25, 0.0, 1.25, 1.5, 1.75, 2.0], true),
        Auto => {
            let looks = !known_noise
                && request.start.hyperparameters().is_none()
                && rows.y.len() >= LEAST_ROWS
                && rows.least >= 0.0
                && skewness(&rows.y) >= SKEWED;
            match looks {
                true => best(request, rows, &[0.75, 0.5, 0.25, 0.0], false),
                false => Ok(TransformChoice::default()),
            }
        }
    }
}

/// What can be done at a fit about a target without an image.
pub(crate) fn at_the_fit() -> String {
    format!("take {TRANSFORM_YEO_JOHNSON} (any numbers) or {TRANSFORM_NONE:-}, or leave the row out")
}

/// The same of a model that has learned such images.
pub(crate) fn of_a_model() -> String {
    format!("leave the row out, or fit anew with {TRANSFORM_YEO_JOHNSON} (any numbers) or {TRANSFORM_NONE:-}")
}

/// A target without an image: its row in the table from 0, where that is known, its value and what to do.
pub(crate) fn no_image(
    by: TargetTransform,
    schema: &Schema,
    row: Option<usize>,
    value: f64,
    remedy: &str,
) -> ModelError {
    let place = row.map_or_else(String::new, |row| format!("row {}, ", row + 1));
    ModelError::Request(format!(
        "{place}column `{}`: {value} has no {by}, which is of numbers above 0 and what this target is learned as: {remedy}",
        schema.target
    ))
}

/// The standard deviation of some targets, 1 of a constant.
fn deviation(y: &[f64]) -> f64 {
    let n = y.len() as f64;
    let mean = y.iter().map(|v| v / n).sum::<f64>();
    let out = y.iter().map(|v| (v - mean).powi(2) / n).sum::<f64>().sqrt();
    if out > 0.0 { out } else { 1.0 }
}

/// Third central moment in standard deviations; 0 of a constant.
pub(super) fn skewness(y: &[f64]) -> f64 {
    let n = y.len() as f64;
    let mean = y.iter().map(|v| v / n).sum::<f64>();
    let moment = |p: i32| y.iter().map(|v| (v - mean).powi(p) / n).sum::<f64>();
    let out = moment(3) / moment(2).powf(1.5);
    if out.is_finite() { out } else { 0.0 }
}

/// The best of the target as it is, its logarithm (where there is one) and powers of these exponents; of powers only, where these were asked for.
fn best(
    request: &FitRequest,
    rows: &ComparedRows<'_>,
    exponents: &[f64],
    powers_only: bool,
) -> Result<TransformChoice, ModelError> {
    let mut search = Search::new(request, rows)?;
    let unit = unit_of(&rows.y);
    let power = |exponent: f64| TargetTransform::YeoJohnson { exponent, unit };
    let plain = if powers_only { None } else { search.try_map(None) };
    let mut powers: Vec<(f64, f64)> = Vec::new();
    for &exponent in exponents {
        powers.extend(search.try_map(Some(power(exponent))).map(|found| (exponent, found)));
    }
    powers.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(between) = vertex(&powers) {
        powers.extend(search.try_map(Some(power(between))).map(|found| (between, found)));
    }
    let log =
        if rows.least > 0.0 && !powers_only { search.try_map(Some(TargetTransform::Log)) } else { None };
    let margin = |k: usize| if powers_only { 0.0 } else { MARGINS[k] };
    let powers = powers.into_iter().map(|(exponent, found)| (Some(power(exponent)), found - margin(1)));
    let all = plain.map(|found| (None, found)).into_iter();
    let all = all.chain(log.map(|found| (Some(TargetTransform::Log), found - margin(0)))).chain(powers);
    let chosen = all.max_by(|a, b| a.1.total_cmp(&b.1)).and_then(|best| best.0);
    if powers_only && chosen.is_none() {
        return Err(ModelError::Request(format!(
            "no power of the target could be learned: the kernel matrix of its rows could not be factored; take {TRANSFORM_LOG} or {TRANSFORM_NONE:-}"
        )));
    }
    Ok(TransformChoice { chosen, rows: rows.y.len(), tried: search.tried, ..TransformChoice::default() })
}

/// What powers measure the target in: the median of its magnitudes, 1 where that is 0.
fn unit_of(y: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = y.iter().map(|v| v.abs()).filter(|v| *v > 0.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(1.0)
}

/// Where the parabola through the best of some points, ascending, and its neighbours is highest; None at an end, and where that is a point already.
fn vertex(points: &[(f64, f64)]) -> Option<f64> {
    let best = (0..points.len()).max_by(|a, b| points[*a].1.total_cmp(&points[*b].1))?;
    let (a, b, c) = (points.get(best.checked_sub(1)?)?, points[best], points.get(best + 1)?);
    let slopes = [(b.1 - a.1) / (b.0 - a.0), (c.1 - b.1) / (c.0 - b.0)];
    let bend = (slopes[1] - slopes[0]) / (c.0 - a.0);
    let out = 0.5 * (a.0 + b.0) - 0.5 * slopes[0] / bend;
    (bend < 0.0 && out.is_finite() && (out - b.0).abs() > 0.01).then(|| out.clamp(a.0, c.0))
}

/// Searches that begin where the last one ended.
struct Search<'a> {
    request: &'a FitRequest,
    rows: &'a ComparedRows<'a>,
    model: ExactGp,
    begun: bool,
    tried: Vec<TriedTransform>,
}

impl<'a> Search<'a> {
    fn new(request: &'a FitRequest, rows: &'a ComparedRows<'a>) -> Result<Self, ModelError> {
        let kernel = request.prior.kernel.build(rows.names)?;
        let model = request.process(kernel, rows.names.len(), 1);
        Ok(Self { request, rows, model, begun: false, tried: Vec::new() })
    }

    /// The largest log evidence of the compared rows under a map, in the target's units; None where it could not be found.
    fn try_map(&mut self, by: Option<TargetTransform>) -> Option<f64> {
        let (request, rows) = (self.request, self.rows);
        let none = Mat::<f64>::zeros(rows.y.len(), 0);
        let mut standard = Standardisation::learn(none.as_ref(), &rows.y);
        if let Some(by) = by {
            standard = standard.transforming(by, &rows.y).ok()?;
        }
        let targets = Mat::from_fn(rows.y.len(), 1, |i, _| standard.target(rows.y[i]));
        let data = Observations::new(rows.x.clone(), targets, None).ok()?;
        let evidence = request.method.evidence().cloned().unwrap_or_default();
        let mut options = request.fit_options(&evidence);
        options.criterion = posterior_gp::exact::Criterion::Evidence;
        options.restarts = 1;
        options.steps.steps = options.steps.steps.min(STEPS[usize::from(self.begun)]);
        options.hyperpriors = request.hyperpriors_of(&self.model, (rows.names.len(), FunctionUnits::Target));
        let fitted = fit(self.model.clone(), data, &options, &mut |_, _| Signal::Continue).ok()?;
        let slopes: f64 = rows.y.iter().map(|y| standard.log_slope(*y)).sum();
        let log_evidence = fitted.log_evidence + slopes;
        self.model.set_values(&fitted.posterior.model().values());
        self.begun = true;
        let left_out = fitted.posterior.leave_one_out();
        let map = TargetMap::of(&standard);
        let squares = (0..rows.y.len()).map(|i| {
            let (mean, deviation) = (left_out.mean[(i, 0)], left_out.variance[i].sqrt());
            let mean = map.map_or_else(|| standard.target_back(mean), |map| map.moments(mean, deviation).0);
            (mean - rows.y[i]).powi(2)
        });
        let error = (squares.sum::<f64>() / rows.y.len() as f64).sqrt() / deviation(&rows.y);
        // A number in any file.
        let error = if error.is_finite() { error } else { f64::MAX };
        self.tried.push(TriedTransform { transform: by, log_evidence, error });
        Some(log_evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{OutputRequest, Start};
    use rand_distr::{Distribution, StandardNormal};

    /// A smooth function of one input with noise, and what becomes of it.
    fn rows(names: &[String], of: impl Fn(f64) -> f64) -> ComparedRows<'_> {
        let mut rng = Streams::new(1).stream("model/target-transform-test");
        let x = Mat::from_fn(120, 1, |i, _| f64::from(u32::try_from(i).unwrap()) / 40.0 - 1.5);
        let y: Vec<f64> = (0..120)
            .map(|i| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                of((2.0 * x[(i, 0)]).sin() + 0.3 * noise)
            })
            .collect();
        let least = y.iter().copied().fold(f64::INFINITY, f64::min);
        ComparedRows { names, x, y, least }
    }

    fn asked(target_transform: TargetTransformName) -> FitRequest {
        FitRequest {
            output: OutputRequest { target_transform, ..OutputRequest::default() },
            ..FitRequest::default()
        }
    }

    #[test]
    fn means_that_are_of_no_use_are_said() {
        let names = ["x1".to_string()];
        let tame = choose(&asked(TargetTransformName::Auto), &rows(&names, |z| (2.0 + z).exp())).unwrap();
        assert!(tame.warning().is_none() && tame.tried.iter().all(|own| own.error < 1.0), "{tame:?}");
        // Logarithms that grow with an input most of whose values are close together: what is open about the few others is raised by exp.
        let x = Mat::from_fn(200, 1, |i, _| (0.06 * f64::from(u32::try_from(i).unwrap()) - 6.0).exp());
        let mut rng = Streams::new(2).stream("model/target-transform-test");
        let y: Vec<f64> = (0..200)
            .map(|i| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                (1.5 * x[(i, 0)].ln() + 0.3 * noise).exp()
            })
            .collect();
        let least = y.iter().copied().fold(f64::INFINITY, f64::min);
        let names = ["x1".to_string()];
        let apart = ComparedRows { names: &names, x, y, least };
        let found = choose(&asked(TargetTransformName::Auto), &apart).unwrap();
        let error = |by| found.tried.iter().find(|own| own.transform == by).unwrap().error;
        assert!(error(None) < 1.0 && error(Some(TargetTransform::Log)) > 5.0, "{found:?}");
        // A power is likelier here, and its means are of use.
        assert!(found.warning().is_none(), "{found:?}");
        let log = TransformChoice { chosen: Some(TargetTransform::Log), ..found };
        assert!(log.warning().unwrap().contains("--quantiles 0.5"), "{log:?}");
    }

    #[test]
    fn the_map_that_made_the_targets_is_found() {
        let names = ["x1".to_string()];
        let auto = asked(TargetTransformName::Auto);
        let log = choose(&auto, &rows(&names, |z| (2.0 + z).exp())).unwrap();
        assert_eq!(log.chosen, Some(TargetTransform::Log), "{log:?}");
        assert!(log.sentence("price").unwrap().starts_with("log price, by the evidence of 120 rows"));
        // Symmetric, or negative: no look is taken.
        for found in [rows(&names, |z| 10.0 + z), rows(&names, |z| z.exp() - 3.0)] {
            assert_eq!(choose_map(&auto, &found).unwrap(), TransformChoice::default());
        }
        // Made by a power of exponent ½, in a unit that is about the median.
        let made = TargetTransform::YeoJohnson { exponent: 0.5, unit: 30.0 };
        let square = rows(&names, |z| made.invert(0.83 + 0.5 * z));
        let found = choose(&asked(TargetTransformName::YeoJohnson), &square).unwrap();
        let Some(TargetTransform::YeoJohnson { exponent, .. }) = found.chosen else { panic!("{found:?}") };
        assert!((0.2..0.8).contains(&exponent), "{exponent}");
        let evidence = |of: Option<TargetTransform>| {
            found.tried.iter().find(|t| t.transform == of).map(|t| t.log_evidence)
        };
        let best = found.tried.iter().map(|t| t.log_evidence).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(evidence(found.chosen), Some(best));
    }

    #[test]
    fn evidences_are_in_the_units_of_the_target() {
        // A power of exponent 1 is a change of units: the evidence is that of the target as it is.
        let names = ["x1".to_string()];
        let rows = rows(&names, |z| 40.0 * (1.0 + z).exp());
        let request = FitRequest::default();
        let mut search = Search::new(&request, &rows).unwrap();
        let plain = search.try_map(None).unwrap();
        let same = search.try_map(Some(TargetTransform::YeoJohnson { exponent: 1.0, unit: 7.0 })).unwrap();
        assert!((plain - same).abs() < 0.05, "{plain} {same}");
        // By hand: a normal density of standardised values with the determinant of the kernel matrix.
        let n = rows.y.len();
        let standard = Standardisation::learn(Mat::<f64>::zeros(n, 0).as_ref(), &rows.y);
        let model = &search.model;
        let z = Mat::from_fn(n, 1, |i, _| standard.target(rows.y[i]));
        let data = Observations::new(rows.x.clone(), z, None).unwrap();
        let own = posterior_gp::exact::log_evidence(model, &data, None).unwrap().value;
        assert!((own - n as f64 * standard.target_scale.ln() - same).abs() < 0.05);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let names = ["x1".to_string()];
        let rows = rows(&names, f64::exp);
        let mut request = asked(TargetTransformName::Log);
        request.columns.noise = Some("v".into());
        assert!(choose(&request, &rows).unwrap_err().to_string().contains("--noise"));
        request.output.target_transform = TargetTransformName::Auto;
        request.start = Start::Given { hyperparameters: Vec::new(), transform: Some(TargetTransform::Log) };
        assert!(choose(&request, &rows).unwrap_err().to_string().contains("--noise"));
        let request =
            FitRequest { start: Start::given(Vec::new()), ..asked(TargetTransformName::YeoJohnson) };
        assert!(choose(&request, &rows).unwrap_err().to_string().contains("exponent"));
        let few = ComparedRows { y: vec![1.0; 5], x: Mat::zeros(5, 1), ..rows };
        assert!(choose(&asked(TargetTransformName::YeoJohnson), &few).is_err());
        assert_eq!(skewness(&[2.0; 4]), 0.0);
        assert!((skewness(&[0.0, 0.0, 0.0, 1.0]) - 1.154_700_538).abs() < 1e-8);
    }

    #[test]
    fn the_highest_point_between_three() {
        let points = [(0.0, -1.0), (0.5, -0.25), (1.0, -0.5)];
        // f(x) = -1 + 2.5 x - 2 x²: highest at 0.625.
        assert!((vertex(&points).unwrap() - 0.625).abs() < 1e-12);
        assert!(vertex(&points[..2]).is_none() && vertex(&[]).is_none());
    }
}
