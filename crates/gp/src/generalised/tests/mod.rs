//! Fixture G of the specification's section 20, and what is checked against it.

mod classes;
mod gradients;
mod kernels;
mod learning;
mod tempering;
mod training;

use super::{Mode, ReferenceProcess, VariationalMean};
use crate::exact::ExactGp;
use crate::{MeanForm, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::Gaussian;
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};

pub(super) const X: [f64; 6] = [-2.0, -1.2, -0.5, 0.1, 0.9, 1.7];
pub(super) const Y: [f64; 6] = [0.3, -0.4, -1.1, 0.2, 0.5, -0.9];

/// The squared exponential of an amplitude and a lengthscale.
pub(super) fn se(amplitude: f64, lengthscale: f64) -> Box<dyn Kernel<f64>> {
    kernel(&format!("se(variance={}, lengthscale={lengthscale})", amplitude * amplitude))
}

pub(super) fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["x".into()]).unwrap()
}

pub(super) fn column(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), 1, |i, _| values[i])
}

pub(super) fn all() -> Observations {
    Observations::new(column(&X), column(&Y), None).unwrap()
}

/// The fixture's process with noise variance 0.1.
pub(super) fn process(kernel: Box<dyn Kernel<f64>>) -> ExactGp {
    ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(0.1, 0.0), 1, 1)
}

/// Conditioned on the inducing points x[0, 2, 4].
pub(super) fn reference(mode: Mode) -> ReferenceProcess {
    let posterior = process(se(1.2, 0.8)).condition(all().select(&[0, 2, 4]).unwrap()).unwrap();
    ReferenceProcess::new(posterior, mode, false, 0.0).unwrap()
}

pub(super) fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 5e-11 * expected.abs().max(1.0), "{found} is not {expected}");
}

pub(super) fn no_mean() -> VariationalMean {
    VariationalMean::Prior
}

/// `a tanh(b x + c) + d` for each of so many outputs.
#[derive(Clone, Debug)]
pub(super) struct Bends(pub(super) Vec<[f64; 4]>);

struct BendsAt<'a> {
    of: &'a Bends,
    x: Vec<f64>,
    out: Mat<f64>,
}

impl Embedding for Bends {
    fn inputs(&self) -> usize {
        1
    }
    fn width(&self) -> usize {
        self.0.len()
    }
    fn unconstrained(&self) -> Vec<f64> {
        self.0.concat()
    }
    fn set_unconstrained(&mut self, numbers: &[f64]) {
        self.0.iter_mut().zip(numbers.chunks(4)).for_each(|(own, new)| own.copy_from_slice(new));
    }
    fn rows_at_once(&self) -> usize {
        100
    }
    fn bytes_of_row(&self) -> usize {
        64
    }
    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        let value = |i: usize, k: usize| {
            let [a, b, c, d] = self.0[k];
            a * (b * x[(i, 0)] + c).tanh() + d
        };
        Ok(Mat::from_fn(x.nrows(), self.0.len(), value))
    }
    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError> {
        let out = self.embedded(x)?;
        Ok(Box::new(BendsAt { of: self, x: x.col(0).iter().copied().collect(), out }))
    }
    fn clone_box(&self) -> Box<dyn Embedding> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl EmbeddedAt for BendsAt<'_> {
    fn embedded(&self) -> MatRef<'_, f64> {
        self.out.as_ref()
    }
    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError> {
        for (k, [a, b, c, _]) in self.of.0.iter().enumerate() {
            for (i, x) in self.x.iter().enumerate() {
                let t = (b * x + c).tanh();
                let (slope, inner) = (slopes[(i, k)], a * (1.0 - t * t));
                let own = [t, inner * x, inner, 1.0];
                gradient[4 * k..].iter_mut().zip(own).for_each(|(g, o)| *g += slope * o);
            }
        }
        Ok(())
    }
    fn pull_back_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        let slope = |x: f64, [a, b, c, _]: [f64; 4]| a * b * (1.0 - (b * x + c).tanh().powi(2));
        let all = |i: usize| {
            self.of.0.iter().enumerate().map(|(k, own)| slopes[(i, k)] * slope(self.x[i], *own)).sum()
        };
        Ok(Mat::from_fn(self.x.len(), 1, |i, _| all(i)))
    }
}
