//! Processes whose mean is given, against dense formulas, finite differences, exact processes and their own optimum.

mod energies;
mod fits;
mod optima;
mod pieces;

use super::{Batch, ClosedForm, FixedMeanData, FixedMeanModel, Learned, ProjectedCurvature};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression, Separable};
use posterior_likelihoods::{
    Bernoulli, Categorical, Gaussian, HeteroscedasticGaussian, Likelihood, Link, Poisson,
};
use posterior_optim::Signal;

fn wave(k: usize) -> f64 {
    (k as f64 * 0.73).sin() * 1.4
}

fn matrix(rows: usize, columns: usize, seed: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| wave(3 * i + 5 * j + 11 * seed + i * j))
}

fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

/// A model, with targets of some rows and their given means (both row after row).
struct Case {
    name: &'static str,
    model: FixedMeanModel<Separable<f64>>,
    x: Mat<f64>,
    means: Vec<f64>,
    targets: Vec<f64>,
}

impl Case {
    fn batch(&self) -> Batch<'_, Mat<f64>> {
        Batch { points: &self.x, means: &self.means, targets: &self.targets, rows: 50 }
    }
}

fn case(
    name: &'static str,
    kernel: Separable<f64>,
    likelihood: Box<dyn Likelihood>,
    companion: bool,
    target: impl Fn(usize) -> f64,
) -> Case {
    let (rows, inducing, c) = (4, 5, likelihood.outputs());
    let width = likelihood.target_width();
    let labels = (0..inducing).map(|i| i % c).collect();
    let z = matrix(inducing, 2, 7);
    let mut model = FixedMeanModel::new(kernel, likelihood, z, labels, 1.7, companion).unwrap();
    let theta: Vec<f64> =
        model.unconstrained().iter().enumerate().map(|(i, t)| t + 0.2 * wave(i + 3)).collect();
    model.set_unconstrained(&theta).unwrap();
    Case {
        name,
        model,
        x: matrix(rows, 2, 1),
        means: (0..rows * c).map(|k| 0.7 * wave(k + 40)).collect(),
        targets: (0..rows * width).map(target).collect(),
    }
}

/// Every kind of likelihood, independent and correlated outputs, with the companion and without.
fn cases() -> Vec<Case> {
    let gaussian: Box<dyn Likelihood> = Box::new(Gaussian::new(0.3, 0.0));
    let pair: Box<dyn Likelihood> = Box::new(Gaussian::independent(vec![0.3, 0.5]).unwrap());
    let classes: Box<dyn Likelihood> = Box::new(Categorical::new(3).unwrap());
    let noisy: Box<dyn Likelihood> = Box::new(HeteroscedasticGaussian::new(1).unwrap());
    let events: Box<dyn Likelihood> = Box::new(Bernoulli::new(1, Link::Logit).unwrap());
    let counts: Box<dyn Likelihood> = Box::new(Poisson::new(1).unwrap());
    let alone = |text: &str, c: usize| Separable::independent(kernel(text), c);
    let together = |text: &str, c: usize| Separable::correlated(kernel(text), c);
    vec![
        case("gaussian", alone("rbf(ard)", 1), gaussian.clone(), false, wave),
        case("gaussian with companion", alone("matern52(ard)", 1), gaussian, true, wave),
        case("two outputs", together("rbf", 2), pair, true, wave),
        case("classes", alone("rbf * (linear + constant)", 3), classes.clone(), true, |k| (k % 3) as f64),
        case("correlated classes", together("rbf(ard)", 3), classes, false, |k| (k % 3) as f64),
        case("heteroscedastic", together("rbf", 2), noisy, true, wave),
        case("events", alone("rbf", 1), events, false, |k| (k % 2) as f64),
        case("counts", alone("rbf", 1), counts, false, |k| (k % 4) as f64),
    ]
}

/// A model of one output with Gaussian noise and nothing learned but L.
fn plain(z: Mat<f64>, noise: f64, text: &str, amplitude: f64) -> FixedMeanModel<Separable<f64>> {
    let labels = vec![0; z.nrows()];
    let kernel = Separable::independent(kernel(text), 1);
    let likelihood = Box::new(Gaussian::new(noise, 0.0));
    let mut model = FixedMeanModel::new(kernel, likelihood, z, labels, amplitude, false).unwrap();
    model.learned = Learned::NONE;
    model
}

/// Sets L to its optimum.
fn optimum(
    model: &mut FixedMeanModel<Separable<f64>>,
    data: FixedMeanData<'_, Mat<f64>>,
    block: usize,
) -> ClosedForm {
    let sums = ProjectedCurvature::new(model, data, block, None, &mut |_, _| Signal::Continue);
    sums.unwrap().unwrap().condition(model).unwrap()
}

/// The inverse by elimination.
fn inverse(m: &Mat<f64>) -> Mat<f64> {
    use faer::linalg::solvers::DenseSolveCore;
    m.partial_piv_lu().inverse()
}

fn log_determinant(m: &Mat<f64>) -> f64 {
    m.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().iter().map(|e| e.ln()).sum()
}
