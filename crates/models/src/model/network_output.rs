//! From latent values of networks to predictions of their target.

use crate::calibration::shrink;
use crate::latent::Beyond;
use crate::network::{class_numbers, predicted_shape};
use crate::record::DataRecord;
use crate::{Latent, ModelError, Predicted, PredictedKind, Predictive, Truth};
use posterior_laplace::learned::SampledPredictions;
use posterior_likelihoods::predictive::{average, log_average_exp, mixture_moments};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use rayon::prelude::*;

/// What a network's outputs mean.
#[derive(Clone, Debug)]
pub(crate) struct NetworkOutput {
    /// The likelihood, with learned noise.
    pub(crate) likelihood: OutputLikelihood,
    /// The likelihood of the network alone: under Gaussian noise with its best variances on the training data.
    pub(crate) plain: OutputLikelihood,
    /// How predictions average over outputs where nothing else is asked for.
    pub(crate) integration: Integration,
    /// Mean and scale that take a regression output to the target's units.
    pub(crate) units: (f64, f64),
    /// Shape of the network's outputs.
    pub(crate) shape: Vec<usize>,
    /// Names of the numbers that are predicted of an example.
    pub(crate) names: Vec<String>,
    /// The target's name.
    pub(crate) target: String,
    /// Names of the classes.
    pub(crate) classes: Vec<String>,
    /// Of each member of an ensemble, whose first these are; none of one network.
    pub(crate) members: Vec<NetworkOutput>,
}

impl NetworkOutput {
    /// Of one network with outputs of this shape.
    pub(crate) fn new(
        data: &DataRecord,
        (likelihood, plain): (OutputLikelihood, OutputLikelihood),
        integration: Integration,
        shape: Vec<usize>,
    ) -> Self {
        let target = data.target().unwrap_or("y").to_string();
        let further = data.inputs.schema().map_or(&[][..], |schema| &schema.further_targets[..]);
        let names = match (likelihood.target_width(), further) {
            (1, _) => vec![target.clone()],
            (width, []) => (1..=width).map(|k| format!("{target}_{k}")).collect(),
            _ => std::iter::once(target.clone()).chain(further.iter().cloned()).collect(),
        };
        let classes = match &likelihood {
            OutputLikelihood::Categorical(c) => data.numbered_classes(c.classes()),
            _ => Vec::new(),
        };
        let (units, members) = (data.target_scale(), Vec::new());
        Self { likelihood, plain, integration, units, shape, names, target, classes, members }
    }

    /// Latent values of an example.
    pub(crate) fn outputs(&self) -> usize {
        self.shape.iter().product()
    }

    /// The shape of what is predicted of an example.
    pub(crate) fn predicted_shape(&self) -> Vec<usize> {
        predicted_shape(&self.shape, self.likelihood.target_width())
    }

    /// What is predicted.
    pub(crate) fn kind(&self) -> PredictedKind {
        match self.likelihood {
            OutputLikelihood::Categorical(_) => PredictedKind::Classes,
            OutputLikelihood::Bernoulli(_) => PredictedKind::Events,
            _ => PredictedKind::Values,
        }
    }

    /// The logarithm by which a density in the network's units exceeds that in the target's.
    pub(crate) fn jacobian(&self) -> f64 {
        match is_gaussian(&self.likelihood) {
            true => self.likelihood.target_width() as f64 * self.units.1.ln(),
            false => 0.0,
        }
    }

    /// A truth as the likelihood takes it, in the network's units.
    pub(crate) fn in_units(&self, truth: &Truth, example: usize) -> Vec<f64> {
        let ((centre, scale), mut own) = (self.units, truth.of(example));
        if matches!(truth, Truth::Values { .. }) {
            own.iter_mut().for_each(|y| *y = (*y - centre) / scale);
        }
        own
    }

    /// Numbers as truths of the likelihood.
    ///
    /// # Errors
    /// Classes that the network does not have, and numbers that the likelihood does not know or that are too few or too many.
    pub(crate) fn truth(&self, values: Vec<f64>, width: usize) -> Result<Truth, ModelError> {
        let likelihood = &self.likelihood;
        if let OutputLikelihood::Categorical(c) = likelihood {
            let classes: Vec<usize> =
                class_numbers(&values, "truths")?.into_iter().map(|c| c as usize).collect();
            if let Some(row) = classes.iter().position(|k| *k >= c.classes()) {
                let problem = format!(
                    "row {}: class {} is beyond the {} classes of the network",
                    row + 1,
                    classes[row],
                    c.classes()
                );
                return Err(ModelError::Request(problem));
            }
            return Ok(Truth::Classes(classes));
        }
        if width != likelihood.target_width() {
            let problem = format!(
                "truths have {width} numbers for each example, the model predicts {}",
                likelihood.target_width()
            );
            return Err(ModelError::Request(problem));
        }
        for (row, y) in values.chunks_exact(width.max(1)).enumerate() {
            likelihood.check_target(y).map_err(|e| ModelError::Request(format!("row {}: {e}", row + 1)))?;
        }
        Ok(Truth::Values { values, width })
    }

    /// How predictions are made: of the networks alone, or with an integration, by default their own, and with deviations that are multiplied with these factors.
    ///
    /// # Errors
    /// When the integration does not suit the likelihood.
    pub(crate) fn rule<'a>(
        &'a self,
        (plain, integration): (bool, Option<Integration>),
        factors: &'a [f64],
    ) -> Result<OutputRule<'a>, ModelError> {
        let own = if plain { Integration::PlugIn } else { integration.unwrap_or(self.integration) };
        let likelihood = if plain { &self.plain } else { &self.likelihood };
        let members = self.members.iter().map(|member| member.rule((plain, integration), &[]));
        Ok(OutputRule {
            rule: PredictiveRule::new(likelihood.clone(), own)?,
            members: members.collect::<Result<_, _>>()?,
            output: self,
            factors,
        })
    }
}

/// Makes predictions of latent values.
pub(crate) struct OutputRule<'a> {
    output: &'a NetworkOutput,
    rule: PredictiveRule,
    factors: &'a [f64],
    members: Vec<OutputRule<'a>>,
}

impl OutputRule<'_> {
    /// Predictions of no examples yet, with log densities where they are to be scored.
    pub(crate) fn empty(&self, scored: bool) -> Predictive {
        let out = Predictive::under(&self.rule);
        // A mixture of Gaussians has no simple quantiles.
        let gaussian = self.members.is_empty() && out.gaussian;
        Predictive { log_density: scored.then(Vec::new), gaussian, ..out }
    }

    /// Adds predictions of examples with these truths, if there are any.
    ///
    /// # Errors
    /// When a truth cannot be.
    pub(crate) fn add(
        &self,
        latent: &Latent,
        truth: Option<&Truth>,
        out: &mut Predictive,
    ) -> Result<(), ModelError> {
        match &latent.beyond {
            Beyond::Mixture(members) => {
                let mut mixed = self.mixed(members, truth)?;
                // Where targets are moved to follows from the means.
                if let (false, Predicted::Moments { mean, .. }, Some(Truth::Values { values, width })) =
                    (self.factors.is_empty(), &mixed.predicted, truth)
                {
                    let (mut values, width) = (values.clone(), *width);
                    shrink(mean, &mut values, self.factors);
                    mixed.log_density =
                        self.mixed(members, Some(&Truth::Values { values, width }))?.log_density;
                }
                out.append(mixed);
                Ok(())
            }
            Beyond::Draws(draws) => {
                let targets = truth.map(|truth| {
                    (0..latent.points()).flat_map(|i| self.output.in_units(truth, i)).collect::<Vec<f64>>()
                });
                let Some(first) = draws.predictive(targets.as_deref())? else {
                    return self.add_gaussians(latent, truth, out);
                };
                let Some(mut moved) = targets.filter(|_| !self.factors.is_empty()) else {
                    self.add_draws(latent, first, out);
                    return Ok(());
                };
                for (prediction, y) in first.predictions.iter().zip(moved.chunks_mut(self.factors.len())) {
                    shrunk(prediction, y, self.factors);
                }
                let second = draws.predictive(Some(&moved))?;
                self.add_draws(latent, second.unwrap_or(first), out);
                Ok(())
            }
            Beyond::Nothing => self.add_gaussians(latent, truth, out),
        }
    }

    fn add_draws(&self, latent: &Latent, own: SampledPredictions, out: &mut Predictive) {
        let jacobian = self.output.jacobian();
        out.latent_mean.extend_from_slice(&latent.mean);
        for (i, prediction) in own.predictions.into_iter().enumerate() {
            out.latent_deviation.extend(latent.deviations_at(i));
            out.predicted.append(Predicted::of(prediction, self.output.units));
        }
        if let (Some(all), Some(densities)) = (&mut out.log_density, own.log_densities) {
            all.extend(densities.iter().map(|density| density - jacobian));
        }
    }

    fn add_gaussians(
        &self,
        latent: &Latent,
        truth: Option<&Truth>,
        out: &mut Predictive,
    ) -> Result<(), ModelError> {
        let (rule, jacobian) = (&self.rule, self.output.jacobian());
        let rows: Vec<_> = (0..latent.points())
            .into_par_iter()
            .map_init(PredictiveWorkspace::default, |workspace, i| -> Result<_, ModelError> {
                let mut prediction = rule.empty_prediction();
                let clipping = rule.predict_into(latent.gaussian_at(i), workspace, &mut prediction)?;
                let density = match truth {
                    None => None,
                    Some(truth) => {
                        let mut y = self.output.in_units(truth, i);
                        shrunk(&prediction, &mut y, self.factors);
                        Some(rule.log_predictive_density_with(&y, latent.gaussian_at(i), workspace)?)
                    }
                };
                Ok((prediction, clipping, density))
            })
            .collect::<Result<_, _>>()?;
        out.latent_mean.extend_from_slice(&latent.mean);
        out.clipped += latent.clipped;
        for (i, (prediction, clipping, density)) in rows.into_iter().enumerate() {
            out.clipped += usize::from(clipping.count > 0);
            out.latent_deviation.extend(latent.deviations_at(i));
            out.predicted.append(Predicted::of(prediction, self.output.units));
            if let (Some(all), Some(density)) = (&mut out.log_density, density) {
                // The density of a number in other units.
                all.push(density - jacobian);
            }
        }
        Ok(())
    }

    /// The mixture of what members predict, their latent values in the first member's units.
    fn mixed(&self, latents: &[Latent], truth: Option<&Truth>) -> Result<Predictive, ModelError> {
        let first = self.output.units;
        let member = |(rule, latent): (&OutputRule<'_>, &Latent)| -> Result<Predictive, ModelError> {
            let mut own = rule.empty(truth.is_some());
            rule.add(latent, truth, &mut own)?;
            let (centre, scale) = rule.output.units;
            if rule.output.units != first && own.outputs == own.width {
                let moved = |m: &mut f64| *m = (centre + scale * *m - first.0) / first.1;
                own.latent_mean.iter_mut().for_each(moved);
                own.latent_deviation.iter_mut().for_each(|s| *s *= scale / first.1);
            }
            Ok(own)
        };
        let members = self.members.iter().zip(latents).map(member).collect::<Result<Vec<_>, _>>()?;
        Ok(mixture(&members, self.empty(truth.is_some())))
    }
}

/// The mixture, with equal weights, of predictions of the same examples by members that predict the same, in the place of the empty ones that say what these are.
fn mixture(members: &[Predictive], empty: Predictive) -> Predictive {
    let probabilities = || members.iter().filter_map(Predictive::probabilities).collect::<Vec<_>>();
    let latent: Vec<(&[f64], Vec<f64>)> = members
        .iter()
        .map(|m| (&m.latent_mean[..], m.latent_deviation.iter().map(|s| s * s).collect()))
        .collect();
    let (means, variances): (Vec<&[f64]>, Vec<&[f64]>) = latent.iter().map(|(m, v)| (*m, &v[..])).unzip();
    let (latent_mean, latent_variances) = mixture_moments(&means, &variances);
    let predicted = match &empty.predicted {
        Predicted::Classes(_) => Predicted::Classes(average(&probabilities())),
        Predicted::Events(_) => Predicted::Events(average(&probabilities())),
        Predicted::Moments { .. } => {
            let (mut means, mut variances, mut latents) = (Vec::new(), Vec::new(), Vec::new());
            for member in members {
                if let Predicted::Moments { mean, variance, latent_variance } = &member.predicted {
                    means.push(&mean[..]);
                    variances.push(&variance[..]);
                    latents.push(&latent_variance[..]);
                }
            }
            let (mean, variance) = mixture_moments(&means, &variances);
            // Under additive noise the mean of the function is that of the observation; else the latent values tell it.
            let latent_variance = match members.iter().all(|member| member.gaussian) {
                true => mixture_moments(&means, &latents).1,
                false => latent_variances.clone(),
            };
            Predicted::Moments { mean, variance, latent_variance }
        }
    };
    let densities: Option<Vec<&[f64]>> = members.iter().map(|m| m.log_density.as_deref()).collect();
    Predictive {
        predicted,
        latent_mean,
        latent_deviation: latent_variances.into_iter().map(f64::sqrt).collect(),
        log_density: densities.map(|d| log_average_exp(&d)),
        clipped: members.iter().map(|m| m.clipped).sum(),
        ..empty
    }
}

/// Whether observations have additive noise.
fn is_gaussian(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

/// A target as near to the mean as deviations that are multiplied make it ([`shrink`]).
fn shrunk(prediction: &Prediction, target: &mut [f64], factors: &[f64]) {
    if let Prediction::Moments { mean, .. } = prediction {
        shrink(mean, target, factors);
    }
}

impl Predictive {
    /// Of no example yet.
    fn under(rule: &PredictiveRule) -> Self {
        let mut predicted = Predicted::of(rule.empty_prediction(), (0.0, 1.0));
        let width = predicted.numbers()[0].len();
        predicted.numbers().into_iter().for_each(Vec::clear);
        let likelihood = rule.likelihood();
        Self::empty(predicted, is_gaussian(likelihood), width, likelihood.outputs())
    }

    /// Of these examples, in the network's units.
    pub(crate) fn of_examples(rule: &PredictiveRule, predictions: Vec<Prediction>) -> Self {
        let mut out = Self::under(rule);
        let each = predictions.into_iter().map(|own| Predicted::of(own, (0.0, 1.0)));
        each.for_each(|own| out.predicted.append(own));
        out
    }

    /// Adds further examples of the same kind.
    fn append(&mut self, mut other: Self) {
        self.predicted.append(other.predicted);
        self.latent_mean.append(&mut other.latent_mean);
        self.latent_deviation.append(&mut other.latent_deviation);
        if let (Some(all), Some(densities)) = (&mut self.log_density, other.log_density) {
            all.extend(densities);
        }
        self.clipped += other.clipped;
    }
}

impl Predicted {
    /// Of one example, from standardised units to those with this centre and scale.
    fn of(prediction: Prediction, (centre, scale): (f64, f64)) -> Self {
        match prediction {
            Prediction::Classes(p) => Self::Classes(p),
            Prediction::Events(p) => Self::Events(p),
            Prediction::Moments { mean, variance, latent_variance } => Self::Moments {
                mean: mean.into_iter().map(|m| centre + scale * m).collect(),
                variance: variance.into_iter().map(|v| scale * scale * v).collect(),
                latent_variance: latent_variance.into_iter().map(|l| scale * scale * l.max(0.0)).collect(),
            },
        }
    }

    /// Adds further examples of the same kind.
    fn append(&mut self, mut other: Self) {
        self.numbers().into_iter().zip(other.numbers()).for_each(|(all, more)| all.append(more));
    }

    fn numbers(&mut self) -> Vec<&mut Vec<f64>> {
        match self {
            Self::Classes(p) | Self::Events(p) => vec![p],
            Self::Moments { mean, variance, latent_variance } => vec![mean, variance, latent_variance],
        }
    }
}
