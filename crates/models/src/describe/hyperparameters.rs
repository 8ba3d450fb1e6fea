//! Hyperparameters in words: what each belongs to, in units that people use.

use crate::{Process, ProcessRecord, Target};
use posterior_data::{Schema, Standardisation};
use posterior_kernels::{KernelExpression, kernel_name};
use posterior_report::{FeatureLengthscale, Hyperparameter};
use std::collections::HashMap;

/// One row for each number that was learned, in units that people use.
pub(crate) fn hyperparameters(model: &Process<'_>) -> Vec<Hyperparameter> {
    let (schema, standard) = (&model.inputs.schema, &model.inputs.standardisation);
    let ProcessRecord { hyperparameters, kernel, fit, .. } = &model.record;
    if let (Some(target), Some(fit)) = (model.output.target(), fit.likelihood()) {
        let scale = fit.gaussian_labels.as_ref().map_or(1.0, |s| s.scale);
        let unit = match target {
            Target::Classes { .. } => "of a latent function (log-odds)",
            Target::Counts { .. } => "of the logarithm of the rate",
            Target::Numbers { .. } => "of the standardised target",
            Target::Events { .. } => "of the logarithm of the intensity",
        };
        let own: Vec<_> = hyperparameters.iter().filter(|h| h.name != "noise_variance").cloned().collect();
        return learned((&own, kernel), schema, standard, (0.0, scale), unit);
    }
    let units = (standard.target_mean, standard.target_scale);
    // Numbers of the function are numbers of what the target is mapped to.
    let target = format!("of `{}`", standard.image_of(&schema.target));
    if is_dense(model.record) {
        // The kernel acts on what a network makes of the columns, and on none of them.
        let behind = Schema { features: Vec::new(), ..schema.clone() };
        let mut out = learned((hyperparameters, kernel), &behind, standard, units, &target);
        let of_outputs = out.iter_mut().filter(|own| own.name.contains("lengthscale"));
        of_outputs.for_each(|own| own.unit = "of the network's outputs".into());
        return out;
    }
    learned((hyperparameters, kernel), schema, standard, units, &target)
}

/// The features that a kernel of the expression looks at, by its label.
struct Looks(HashMap<String, Vec<String>>);

impl Looks {
    /// Of no kernel where the expression is not one of these features (behind a network, say).
    fn of(kernel: &KernelExpression, features: &[String]) -> Self {
        let named = |columns: Vec<usize>| columns.into_iter().map(|j| features[j].clone()).collect();
        let all = kernel.looks_at(features).unwrap_or_default();
        Self(all.into_iter().map(|(label, columns)| (label, named(columns))).collect())
    }

    fn features(&self, owner: &str) -> &[String] {
        self.0.get(owner).map_or(&[], Vec::as_slice)
    }

    /// What number i of `count` of a parameter belongs to, where there is one for each feature; of loadings of categories and components of mixtures also which of several.
    fn place(&self, (owner, kind): (&str, &str), i: usize, count: usize) -> Option<(String, Option<usize>)> {
        let features = self.features(owner);
        let each = !features.is_empty() && count.is_multiple_of(features.len());
        match (kernel_name(owner), kind) {
            (_, "loading") if each => {
                let rank = count / features.len();
                Some((features[i / rank].clone(), Some(i % rank + 1)))
            }
            ("spectral_mixture", "frequency" | "bandwidth") if each => {
                Some((features[i % features.len()].clone(), Some(i / features.len() + 1)))
            }
            ("linear", "variance") | (_, "lengthscale" | "specific" | "skew" | "tail")
                if count > 1 && count == features.len() =>
            {
                Some((features[i].clone(), None))
            }
            _ => None,
        }
    }
}

/// The same for functions whose values have this mean and scale, in these units.
fn learned(
    (hyperparameters, kernel): (&[crate::Hyperparameter], &KernelExpression),
    schema: &Schema,
    standard: &Standardisation,
    (target_mean, target_scale): (f64, f64),
    target: &str,
) -> Vec<Hyperparameter> {
    let features = schema.feature_names();
    let looks = Looks::of(kernel, &features);
    let place_of = |feature: Option<&str>| features.iter().position(|own| Some(own.as_str()) == feature);
    let scale_of = |feature: Option<&str>| place_of(feature).map_or(1.0, |j| standard.feature_scales[j]);
    let unit_of = |feature: Option<&str>| match place_of(feature) {
        Some(j) => format!("of {}", standard.image_of_feature(j, &features[j])),
        None => "standard deviations".to_string(),
    };
    let mut out = Vec::new();
    for parameter in hyperparameters {
        let (owner, kind) = parameter.name.rsplit_once('.').unwrap_or(("", &parameter.name));
        let count = parameter.values.len();
        for (i, &value) in parameter.values.iter().enumerate() {
            // Of the mean's slopes, say.
            let of_all = looks.features(owner).is_empty() && count > 1 && count == features.len();
            let place =
                if of_all { Some((features[i].clone(), None)) } else { looks.place((owner, kind), i, count) };
            let feature = place.as_ref().map(|(feature, _)| feature.as_str());
            let name = match &place {
                Some((feature, None)) => format!("{} [{feature}]", parameter.name),
                Some((feature, Some(column))) => format!("{} [{feature}, {column}]", parameter.name),
                None if count > 1 => format!("{} [{}]", parameter.name, i + 1),
                None => parameter.name.clone(),
            };
            let deviations = || "standard deviations".to_string();
            let (value, unit) = match (kernel_name(owner), kind) {
                ("mean", "constant") => (target_mean + target_scale * value, target.to_string()),
                ("mean", _) | (_, "period") => (value, deviations()),
                // A linear kernel's variances belong to slopes, all others to the function's own values.
                ("linear", "variance") if count > 1 => (value.sqrt(), deviations()),
                (_, "noise_variance" | "variance") | ("spectral_mixture", "weight") => {
                    (value.sqrt() * target_scale, target.to_string())
                }
                (_, "frequency") => (scale_of(feature) / value, unit_of(feature)),
                (_, "bandwidth") => (scale_of(feature) / (std::f64::consts::TAU * value), unit_of(feature)),
                ("categorical", "lengthscale") => ((-1.0 / value).exp(), String::new()),
                (kernel, "lengthscale") => match feature.or(match looks.features(owner) {
                    [only] => Some(only.as_str()),
                    [] if features.len() == 1 => Some(features[0].as_str()),
                    _ => None,
                }) {
                    Some(feature) if kernel != "periodic" => {
                        (value * scale_of(Some(feature)), unit_of(Some(feature)))
                    }
                    _ => (value, deviations()),
                },
                _ => (value, String::new()),
            };
            let meaning = meaning((kernel_name(owner), kind), count);
            let name = match kind {
                "noise_variance" => "noise (standard deviation)".into(),
                "variance" if kernel_name(owner) == "additive" => {
                    format!("{owner}: amplitude [order {}]", i + 1)
                }
                "weight" if kernel_name(owner) == "spectral_mixture" => {
                    name.replacen(".weight", ": amplitude", 1)
                }
                "frequency" => name.replacen(".frequency", ": period", 1),
                "bandwidth" => name.replacen(".bandwidth", ": lengthscale", 1),
                "variance" => name.replacen(".variance", ": amplitude", 1),
                "lengthscale" if owner.starts_with("categorical") => format!("{owner}: correlation"),
                _ => name,
            };
            out.push(Hyperparameter { name, value, unit, meaning: meaning.into() });
        }
    }
    out
}

/// What a number of a kernel means, of which there are so many.
fn meaning(of: (&str, &str), count: usize) -> &'static str {
    match of {
        (_, "noise_variance") => {
            "Standard deviation of the noise: how far observations scatter around the function."
        }
        ("mean", "constant") => "Level of the prior mean (at the features' means).",
        ("mean", _) => "Slope of the prior mean.",
        ("linear", "variance") if count > 1 => "How steep a linear trend in this feature may be.",
        (_, "variance") => "Amplitude: how far this part of the function wanders from its mean.",
        ("spectral_mixture", "weight") => "Amplitude of this component.",
        (_, "frequency") => "Distance after which this component repeats.",
        (_, "bandwidth") => "How far one must move for this component to fall out of step.",
        (_, "skew") => {
            "Above 0 the kernel sees the lower values of the column spread out and the upper ones close together; 0 where both are alike."
        }
        (_, "tail") => {
            "Below 1 the kernel sees values far from the column's mean close together, above 1 far apart."
        }
        ("categorical", "lengthscale") => {
            "Correlation of the functions of any two categories: 1 where they are one."
        }
        (_, "loading") => {
            "How much of a shared function is in this category's; the covariance of categories says what that means."
        }
        (_, "specific") => {
            "Variance that this category shares with no other, before variances are divided by their mean."
        }
        (_, "lengthscale") => "How far one must move for the function to change.",
        (_, "period") => "Distance after which the function repeats.",
        (_, "alpha") => "Small: a wide mixture of lengthscales; large: nearly one.",
        (_, "offset") => "Weight of the lower degrees of the polynomial.",
        (_, "weight") => {
            "Standard deviation of a layer's weights (times the root of its width), of a network of infinite width."
        }
        (_, "bias") => "Standard deviation of a layer's biases, of a network of infinite width.",
        _ => "",
    }
}

/// Whether the kernel acts on a network's outputs.
fn is_dense(record: &ProcessRecord) -> bool {
    let deep = record.fit.scalable().and_then(|large| large.deep.as_ref());
    deep.is_some_and(|deep| deep.dense)
}

/// The lengthscale of each feature in its first kernel that has one for each.
pub(crate) fn lengthscales(model: &Process<'_>) -> Vec<FeatureLengthscale> {
    if is_dense(model.record) {
        return Vec::new();
    }
    let ProcessRecord { hyperparameters, kernel, .. } = &model.record;
    let looks = Looks::of(kernel, &model.inputs.schema.feature_names());
    let of_each = |h: &crate::Hyperparameter| {
        let features = h.name.strip_suffix(".lengthscale").map(|owner| looks.features(owner))?;
        let pair = |(feature, lengthscale): (&String, &f64)| FeatureLengthscale {
            feature: feature.clone(),
            lengthscale: *lengthscale,
        };
        (features.len() > 1 && features.len() == h.values.len())
            .then(|| features.iter().zip(&h.values).map(pair).collect())
    };
    hyperparameters.iter().find_map(of_each).unwrap_or_default()
}
