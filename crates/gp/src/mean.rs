//! The prior mean `m(x)`: zero, constant, or linear in the inputs, with one set of coefficients for each target.

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatRef, Par};
use posterior_optim::{Parameters, Segment, Transform};
use serde::{Deserialize, Serialize};

/// The form of a prior mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MeanForm {
    /// `m(x) = 0`
    Zero,
    /// `m(x) = c`
    #[default]
    Constant,
    /// `m(x) = c + bᵀx`
    Linear,
}

/// A prior mean with its coefficients: parameters `mean.constant` (t) and `mean.slope` (D x t, column-major).
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    form: MeanForm,
    inputs: usize,
    targets: usize,
    /// Constants (t, unless zero) and then slopes (D t, if linear).
    values: Vec<f64>,
}

impl Mean {
    /// A mean for inputs of dimension `inputs` and `targets` outputs, all coefficients 0.
    pub fn new(form: MeanForm, inputs: usize, targets: usize) -> Self {
        let count = match form {
            MeanForm::Zero => 0,
            MeanForm::Constant => targets,
            MeanForm::Linear => targets * (1 + inputs),
        };
        Self { form, inputs, targets, values: vec![0.0; count] }
    }

    /// Its form.
    pub fn form(&self) -> MeanForm {
        self.form
    }

    /// Dimension of the inputs, D.
    pub fn input_dimension(&self) -> usize {
        self.inputs
    }

    /// Number of targets, t.
    pub fn target_count(&self) -> usize {
        self.targets
    }

    /// `m(X)`, n x t, for X of n x D.
    pub fn evaluate(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::zeros(x.nrows(), self.targets);
        if self.form == MeanForm::Zero {
            return out;
        }
        for (j, &constant) in self.values[..self.targets].iter().enumerate() {
            out.as_mut().col_mut(j).fill(constant);
        }
        if self.form == MeanForm::Linear {
            let slopes =
                MatRef::from_column_major_slice(&self.values[self.targets..], self.inputs, self.targets);
            matmul(out.as_mut().rb_mut(), Accum::Add, x, slopes, 1.0, Par::Seq);
        }
        out
    }

    /// The gradient with respect to the coefficients, given the adjoint (n x t) of `m(X)`.
    pub fn pullback(&self, x: MatRef<'_, f64>, adjoint: MatRef<'_, f64>) -> Vec<f64> {
        if self.form == MeanForm::Zero {
            return Vec::new();
        }
        let mut gradient: Vec<f64> = (0..self.targets).map(|j| adjoint.col(j).iter().sum()).collect();
        if self.form == MeanForm::Linear {
            let slopes = x.transpose() * adjoint;
            gradient
                .extend((0..self.targets).flat_map(|j| slopes.col(j).iter().copied().collect::<Vec<_>>()));
        }
        gradient
    }

    /// Adds to `slopes` (n x D) what an adjoint (n x t) of `m(X)` says about the inputs.
    pub(crate) fn add_input_slopes(&self, adjoint: MatRef<'_, f64>, slopes: &mut Mat<f64>) {
        if self.form == MeanForm::Linear {
            let own =
                MatRef::from_column_major_slice(&self.values[self.targets..], self.inputs, self.targets);
            matmul(slopes.as_mut(), Accum::Add, adjoint, own.transpose(), 1.0, Par::Seq);
        }
    }
}

impl Parameters for Mean {
    fn segments(&self) -> Vec<Segment> {
        let segment =
            |name: &str, shape| Segment { name: name.into(), shape, transform: Transform::Identity };
        let constant = segment("mean.constant", vec![self.targets]);
        let slope = segment("mean.slope", vec![self.inputs, self.targets]);
        match self.form {
            MeanForm::Zero => vec![],
            MeanForm::Constant => vec![constant],
            MeanForm::Linear => vec![constant, slope],
        }
    }

    fn values(&self) -> Vec<f64> {
        self.values.clone()
    }

    fn set_values(&mut self, values: &[f64]) {
        self.values.copy_from_slice(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_their_gradients() {
        let x = Mat::<f64>::from_fn(5, 2, |i, j| (i as f64 + 1.0) * (j as f64 - 0.3));
        let weights = Mat::<f64>::from_fn(5, 2, |i, j| ((i + 2 * j) as f64).sin());
        for form in [MeanForm::Zero, MeanForm::Constant, MeanForm::Linear] {
            let mut mean = Mean::new(form, 2, 2);
            let values: Vec<f64> = (0..mean.values().len()).map(|i| 0.5 + i as f64).collect();
            mean.set_values(&values);
            let out = mean.evaluate(x.as_ref());
            if form == MeanForm::Linear {
                // constant of target 1, then its slopes at positions 2 + 2.. of the values
                let expected = values[1] + values[4] * x[(3, 0)] + values[5] * x[(3, 1)];
                assert!((out[(3, 1)] - expected).abs() < 1e-14);
            }
            // The map is linear in its coefficients, so the pullback is exact for the pairing.
            let gradient = mean.pullback(x.as_ref(), weights.as_ref());
            let pairing: f64 = gradient.iter().zip(&values).map(|(g, v)| g * v).sum();
            let direct: f64 =
                (0..2).map(|j| (0..5).map(|i| weights[(i, j)] * out[(i, j)]).sum::<f64>()).sum();
            assert!((pairing - direct).abs() < 1e-12, "{form:?}");
        }
    }
}
