//! Hyperparameters by name, and the default priors of lengthscales and amplitudes.

use posterior_gp::Hyperprior;
use posterior_kernels::{is_distance, is_stationary_variance};
use posterior_likelihoods::StudentT;
use posterior_optim::{Constraint, Parameters, Segment, Transform};
use serde::{Deserialize, Serialize};

/// One named hyperparameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameter {
    /// Its name, such as `matern32.lengthscale`.
    pub name: String,
    /// Its natural values, in standard units.
    pub values: Vec<f64>,
}

impl Hyperparameter {
    /// All natural values of a model, or of a part of one, under their names.
    pub fn of(parameters: &dyn Parameters) -> Vec<Self> {
        let values = parameters.values();
        let mut rest = values.as_slice();
        let take = |segment: Segment| {
            let (own, others) = rest.split_at(segment.len());
            rest = others;
            Self { name: segment.name, values: own.to_vec() }
        };
        parameters.segments().into_iter().map(take).collect()
    }

    /// The same but for inducing inputs, which are a tensor of their own.
    pub(crate) fn without_inducing(parameters: &dyn Parameters) -> Vec<Self> {
        Self::of(parameters).into_iter().filter(|own| !own.name.contains("inducing")).collect()
    }

    /// The first value that a parameter cannot have, with what it should be; noise variances are only asked to be positive, floors are told apart.
    pub(crate) fn out_of_range(&self, segment: &Segment) -> Option<(f64, &'static str)> {
        let (admits, expected): (fn(Transform, usize, f64) -> bool, _) = match segment.transform {
            Transform::Identity | Transform::Fixed => (Transform::admits, "finite"),
            Transform::Bounded { .. } | Transform::LogBounded { .. } => {
                (Transform::admits, "within the bounds of its parameter")
            }
            Transform::LogAbove { .. } => (|_, _, v| v.is_finite() && v > 0.0, "positive and finite"),
            _ => (Transform::admits, "positive and finite"),
        };
        let mut values = self.values.iter().copied().enumerate();
        values.find(|(i, v)| !admits(segment.transform, *i, *v)).map(|(_, value)| (value, expected))
    }

    /// Gives parameters the values of those of the same name and length; the names of parameters of which there are none.
    pub(crate) fn give(given: &[Self], parameters: &mut dyn Parameters) -> Vec<String> {
        let (mut values, mut start, mut missing) = (parameters.values(), 0, Vec::new());
        for segment in parameters.segments() {
            let length = segment.len();
            match given.iter().find(|h| h.name == segment.name && h.values.len() == length) {
                Some(found) => values[start..start + length].copy_from_slice(&found.values),
                None => missing.push(segment.name),
            }
            start += length;
        }
        parameters.set_values(&values);
        missing
    }
}

/// All of some parameters, held at the values that they have.
pub(crate) fn held(segments: Vec<Segment>) -> Vec<Constraint> {
    segments.into_iter().map(|own| Constraint::Fixed { parameter: own.name, value: None }).collect()
}

/// Bounds of a Student-t scale, in robust deviations of the target. With less, such noise follows some rows exactly and calls all others outliers; the most is no limit.
const SCALES: [f64; 2] = [0.01, 1e4];

/// A floor of the scale of Student-t noise, unless something is asked of that.
pub(crate) fn floor_of_scale(model: &dyn Parameters, asked: &[Constraint]) -> Option<Constraint> {
    let (name, [lower, upper]) = (StudentT::SCALE, SCALES);
    let is_asked = |own: &Constraint| {
        let own = own.parameter();
        own == name || name.strip_suffix(own).is_some_and(|before| before.ends_with('.'))
    };
    let has = model.segments().iter().any(|own| own.name == name);
    (has && !asked.iter().any(is_asked)).then(|| Constraint::Between { parameter: name.into(), lower, upper })
}

/// What the values of a function are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionUnits {
    /// Standard deviations of the target, which say how large an amplitude is.
    Target,
    /// Those of a link: logarithms of rates or of odds, of noise variances.
    Link,
}

/// Adds a weak prior for the variance of Gaussian noise where it has none, in units of the target.
pub(crate) fn add_weak_noise(hyperpriors: &mut Vec<Hyperprior>, model: &dyn Parameters) {
    const NAME: &str = "noise_variance";
    let has = model.segments().iter().any(|segment| segment.name == NAME);
    if has && !hyperpriors.iter().any(|own| own.parameter == NAME) {
        hyperpriors.push(Hyperprior::weak_noise(NAME));
    }
}

/// Adds a weak prior for every lengthscale that has none, in units of the target for every amplitude of a stationary function, and for degrees of freedom.
pub(crate) fn add_weak_priors(
    hyperpriors: &mut Vec<Hyperprior>,
    model: &dyn Parameters,
    (features, units): (usize, FunctionUnits),
) {
    for segment in model.segments() {
        let name = &segment.name;
        let weak = if is_distance(name) {
            // Of a lengthscale for each column, the columns that it looks at.
            let inputs = if segment.len() > 1 { segment.len() } else { features };
            Hyperprior::weak_lengthscale(name, inputs)
        } else if units == FunctionUnits::Target && is_stationary_variance(name) {
            Hyperprior::weak_amplitude(name)
        } else if name == StudentT::DEGREES_OF_FREEDOM {
            Hyperprior::weak_degrees_of_freedom(name)
        } else {
            continue;
        };
        if !hyperpriors.iter().any(|h| h.parameter == *name) {
            hyperpriors.push(weak);
        }
    }
}
