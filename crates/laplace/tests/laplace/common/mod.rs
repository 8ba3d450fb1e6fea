//! Small networks of every kind with data, and posteriors by brute force from their dense Jacobians.

use faer::Mat;
use posterior_laplace::{Checkpointer, Data, FitOptions, Laplace, LaplaceError, Run, SavedState, fit};
use posterior_likelihoods::{
    Bernoulli, Categorical, Gaussian, HeteroscedasticGaussian, Link, OutputLikelihood, Poisson,
};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Architecture, Array, Network, Outputs, Selection};
use rand_distr::{Distribution, StandardNormal};

/// Standard normals.
pub(crate) fn normals(count: usize, seed: u64) -> Vec<f64> {
    let mut rng = Streams::new(seed).stream("laplace/test");
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// A network from its description, with random weights (and statistics that are not trivial).
pub(crate) fn network(text: &str, seed: u64) -> Network<f64> {
    let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
    let mut network = Network::<f64>::initialised(graph, Streams::new(seed)).unwrap();
    let slots: Vec<String> = network.graph().parameters().iter().map(|p| p.name.clone()).collect();
    for (i, (name, values)) in slots.iter().zip(network.parameters_mut()).enumerate() {
        let noise = normals(values.len(), seed + 100 + i as u64);
        for (v, z) in values.values_mut().iter_mut().zip(noise) {
            if name.ends_with("running_var") {
                *v = 0.5 + z.abs();
            } else {
                *v += 0.2 * z;
            }
        }
    }
    network
}

pub(crate) const PERCEPTRON: &str =
    "kind = \"perceptron\"\ninputs = 3\nhidden = [5, 4]\noutputs = 3\nactivation = \"tanh\"";
pub(crate) const NORMALISED: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = [6, 5]\noutputs = 3\nactivation = \"relu\"\nlayer_norm = true";
pub(crate) const LENET: &str =
    "kind = \"lenet\"\ninput = [1, 8, 8]\nfilters = [3, 4, 4]\nclasses = 3\naffine = true";

pub(crate) const LSTM: &str = "kind = \"layers\"\ninput = [4, 2]\n[[layer]]\nname = \"r\"\noperation = \"lstm\"\nhidden = 2\nreturns = \"last\"\n\
                                [[layer]]\nname = \"o\"\noperation = \"linear\"\noutputs = 3";
pub(crate) const GRU: &str = "kind = \"layers\"\ninput = [3, 2]\n[[layer]]\nname = \"r\"\noperation = \"gru\"\nhidden = 2\nbidirectional = true\n\
                               [[layer]]\nname = \"f\"\noperation = \"flatten\"\n[[layer]]\nname = \"o\"\noperation = \"linear\"\noutputs = 3";

/// The networks that every structure is tested on.
pub(crate) fn networks() -> Vec<(&'static str, Network<f64>)> {
    vec![
        ("perceptron", network(PERCEPTRON, 1)),
        ("normalised", network(NORMALISED, 2)),
        ("lenet", network(LENET, 3)),
        ("lstm", network(LSTM, 4)),
        ("gru", network(GRU, 5)),
    ]
}

/// Inputs for a network.
pub(crate) fn inputs(network: &Network<f64>, examples: usize, seed: u64) -> Array<f64> {
    let mut shape = vec![examples];
    shape.extend_from_slice(network.graph().input_shape());
    Array::new(shape.clone(), normals(shape.iter().product(), seed))
}

/// Likelihoods for three outputs with matching targets (six outputs are never needed here).
pub(crate) fn likelihoods() -> Vec<OutputLikelihood> {
    vec![
        OutputLikelihood::Categorical(Categorical::new(3).unwrap()),
        OutputLikelihood::Gaussian(Gaussian::independent(vec![0.5, 1.0, 2.0]).unwrap()),
        OutputLikelihood::Bernoulli(Bernoulli::new(3, Link::Probit).unwrap()),
        OutputLikelihood::Poisson(Poisson::new(3).unwrap()),
    ]
}

/// Targets that a likelihood accepts.
pub(crate) fn targets(likelihood: &OutputLikelihood, examples: usize, seed: u64) -> Targets<f64> {
    let width = likelihood.target_width();
    let z = normals(examples * width, seed);
    match likelihood {
        OutputLikelihood::Categorical(c) => {
            Targets::Classes(z.iter().map(|z| ((z.abs() * 10.0) as u32) % c.classes() as u32).collect())
        }
        OutputLikelihood::Bernoulli(_) => Targets::Values(Array::new(
            vec![examples, width],
            z.iter().map(|z| f64::from(*z > 0.0)).collect(),
        )),
        OutputLikelihood::Poisson(_) => Targets::Values(Array::new(
            vec![examples, width],
            z.iter().map(|z| (2.0 * z.abs()).floor()).collect(),
        )),
        _ => Targets::Values(Array::new(vec![examples, width], z)),
    }
}

pub(crate) fn heteroscedastic() -> OutputLikelihood {
    OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(1).unwrap())
}

pub(crate) fn data(
    network: &Network<f64>,
    likelihood: &OutputLikelihood,
    examples: usize,
    seed: u64,
) -> Tabular<f64> {
    Tabular::new(inputs(network, examples, seed), targets(likelihood, examples, seed + 1))
}

/// The whole Jacobian `[examples * C, weights]`.
pub(crate) fn jacobian(network: &Network<f64>, selection: &Selection, x: &Array<f64>) -> Mat<f64> {
    let rows = network.jacobian(x, selection, &Outputs::All, u64::MAX).unwrap();
    let d = selection.len();
    Mat::from_fn(rows.rows(), d, |i, j| rows.values()[i * d + j])
}

/// Targets of one example as numbers.
pub(crate) fn target(examples: &dyn Examples<f64>, i: usize) -> Vec<f64> {
    match examples.batch(&[i], None).1 {
        Targets::Values(v) => v.into_values(),
        Targets::Classes(c) => c.into_iter().map(f64::from).collect(),
    }
}

/// `sum_n J_n^T B_n J_n` from the definition.
pub(crate) fn brute_curvature(
    network: &Network<f64>,
    selection: &Selection,
    likelihood: &OutputLikelihood,
    examples: &dyn Examples<f64>,
) -> Mat<f64> {
    let d = selection.len();
    let c = likelihood.outputs();
    let mut sum = Mat::<f64>::zeros(d, d);
    for i in 0..examples.len() {
        let (x, _) = examples.batch(&[i], None);
        let j = jacobian(network, selection, &x);
        let f = network.forward(&x).unwrap();
        let mut b = vec![0.0; c * c];
        likelihood.curvature(&target(examples, i), f.values(), &mut b);
        let b = Mat::from_fn(c, c, |i, k| b[i * c + k]);
        sum += j.transpose() * b * &j;
    }
    sum
}

/// A fit without an audience.
pub(crate) fn quiet(
    network: &Network<f64>,
    examples: &dyn Examples<f64>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
) -> Result<Laplace<f64>, LaplaceError> {
    fit(&Data::new(network, examples, likelihood), options, &mut Run::default())
}

/// Largest difference relative to the largest entry.
pub(crate) fn difference(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()));
    let largest = b.norm_max();
    // Weights that never move an output have a zero curvature and covariance.
    if largest == 0.0 { a.norm_max() } else { (a - b).norm_max() / largest }
}

/// The matrix that a structure stands for, column by column.
pub(crate) fn dense(structure: &posterior_linear::structure::Structure) -> Mat<f64> {
    let d = structure.dimension();
    let mut out = Mat::zeros(d, d);
    for j in 0..d {
        let mut unit = vec![0.0; d];
        unit[j] = 1.0;
        structure.apply(&unit).into_iter().enumerate().for_each(|(i, v)| out[(i, j)] = v);
    }
    out
}

/// The inverse by elimination.
pub(crate) fn inverse(m: &Mat<f64>) -> Mat<f64> {
    use faer::linalg::solvers::DenseSolveCore;
    m.partial_piv_lu().inverse()
}

/// Runs with what an earlier run left; also returns what this one has left.
pub(crate) fn keeping<R>(
    earlier: Option<SavedState>,
    run: impl FnOnce(Checkpointer<'_>) -> R,
) -> (R, Option<SavedState>) {
    let mut left = None;
    let mut write = |state: &SavedState| {
        left = Some(state.clone());
        Ok(())
    };
    let result = run(Checkpointer::new(earlier, Some(&mut write)));
    (result, left)
}
