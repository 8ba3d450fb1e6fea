//! What is minimised, and what a method for it must do.

/// Why an objective has no value at a point.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ObjectiveError(pub String);

/// A differentiable function of an unconstrained vector. Optimisers know nothing else.
pub trait Objective {
    /// Length of the vector.
    fn dimension(&self) -> usize;

    /// The value at `theta`, and its gradient written to `gradient`. The two are asked for together because they
    /// share nearly all of their work.
    ///
    /// # Errors
    /// An [`ObjectiveError`] where the value does not exist; a line search then shortens its step.
    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError>;

    /// Called before step `step`: a stochastic objective draws its mini-batch here, from its seed and the step's
    /// number, so that a resumed run sees the batches that an uninterrupted one would have seen.
    fn begin_step(&mut self, _step: usize) {}

    /// The name of each entry of the vector, for error messages: [`unconstrained_names`](crate::Parameters::unconstrained_names),
    /// say. Without names, entries are called by their number, from 0.
    fn parameter_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An objective that counts its evaluations and calls a value or a gradient that is not finite a failure.
pub(crate) struct Counted<'a> {
    pub(crate) objective: &'a mut dyn Objective,
    pub(crate) evaluations: usize,
}

impl Counted<'_> {
    /// Value and gradient at `theta`.
    pub(crate) fn at(&mut self, theta: &[f64]) -> Result<(f64, Vec<f64>), ObjectiveError> {
        self.evaluations += 1;
        let mut gradient = vec![0.0; theta.len()];
        let value = self.objective.value_and_gradient(theta, &mut gradient)?;
        if !value.is_finite() {
            return Err(ObjectiveError(format!("the objective is {value}")));
        }
        match gradient.iter().position(|g| !g.is_finite()) {
            Some(i) => {
                Err(ObjectiveError(format!("the gradient is {} for parameter {}", gradient[i], self.name(i))))
            }
            None => Ok((value, gradient)),
        }
    }

    /// What an error calls entry `i`.
    pub(crate) fn name(&self, i: usize) -> String {
        self.objective.parameter_names().get(i).map_or_else(|| i.to_string(), |name| format!("`{name}`"))
    }
}

/// A method: what it remembers between steps. All of it can be serialised, so that a run can be resumed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "method")]
pub enum Optimiser {
    /// Limited-memory quasi-Newton; for deterministic objectives.
    Lbfgs(crate::Lbfgs),
    /// Adaptive moments by any rule; for stochastic objectives.
    Adaptive(crate::Adaptive),
    /// Gradient descent with momentum.
    Sgd(crate::Sgd),
}

impl Optimiser {
    /// Whether what it remembers belongs to a vector of length `dimension`; true of a method that has not begun.
    pub(crate) fn fits(&self, dimension: usize) -> bool {
        match self {
            Self::Lbfgs(lbfgs) => lbfgs.fits(dimension),
            Self::Adaptive(adaptive) => adaptive.fits(dimension),
            Self::Sgd(sgd) => sgd.fits(dimension),
        }
    }
}
