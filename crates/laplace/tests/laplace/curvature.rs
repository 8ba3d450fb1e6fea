//! Curvatures in every form against dense Jacobians.

use crate::common::*;
use faer::Mat;
use posterior_laplace::{
    Accumulator, Approximation, Data, FisherEstimate, FitOptions, Form, LaplaceError, Run, Tune, Weights,
};
use posterior_networks::Selection;
use posterior_networks::train::Examples;
use posterior_optim::Signal;

fn options(approximation: Approximation) -> FitOptions {
    FitOptions {
        approximation,
        tune: Tune::None,
        mode: posterior_laplace::Mode::Trained,
        prior: posterior_laplace::PriorKind::Scalar,
        ..FitOptions::default()
    }
}

#[test]
fn full_diagonal_and_block_curvatures_are_those_of_the_jacobian() {
    for (name, network) in networks() {
        for likelihood in likelihoods() {
            let examples = data(&network, &likelihood, 9, 7);
            let selection = Selection::all(network.graph());
            let exact = brute_curvature(&network, &selection, &likelihood, &examples);
            let full = quiet(&network, &examples, &likelihood, &options(Approximation::Full)).unwrap();
            let error = difference(&dense(full.structure().unwrap()), &exact);
            assert!(error < 1e-10, "{name} {} full {error}", likelihood.name());

            let diagonal =
                quiet(&network, &examples, &likelihood, &options(Approximation::Diagonal)).unwrap();
            let own =
                Mat::from_fn(exact.nrows(), exact.nrows(), |i, j| if i == j { exact[(i, i)] } else { 0.0 });
            let error = difference(&dense(diagonal.structure().unwrap()), &own);
            assert!(error < 1e-10, "{name} {} diagonal {error}", likelihood.name());

            let block = quiet(&network, &examples, &likelihood, &options(Approximation::Block)).unwrap();
            let blocks = block.structure().unwrap().blocks();
            let of = |i: usize| blocks.iter().position(|b| b.range.contains(&i)).unwrap();
            let own =
                Mat::from_fn(
                    exact.nrows(),
                    exact.nrows(),
                    |i, j| if of(i) == of(j) { exact[(i, j)] } else { 0.0 },
                );
            assert!(blocks.len() > 1 && blocks.len() <= network.graph().nodes().len());
            let error = difference(&dense(block.structure().unwrap()), &own);
            assert!(error < 1e-10, "{name} {} block {error}", likelihood.name());
        }
    }
}

/// Gradients in a bias are the sensitivities of its layer, and the weight's gradient is their outer product with the inputs: both factors follow from the Jacobian alone.
#[test]
fn kronecker_factors_are_second_moments_of_inputs_and_sensitivities() {
    let network = network(PERCEPTRON, 4);
    for likelihood in likelihoods() {
        let (n, c) = (11, likelihood.outputs());
        let examples = data(&network, &likelihood, n, 8);
        let fitted = quiet(
            &network,
            &examples,
            &likelihood,
            &options(Approximation::Kronecker(FisherEstimate::Exact)),
        )
        .unwrap();
        let found = dense(fitted.structure().unwrap());
        let selection = fitted.selection().clone();
        let mut expected = Mat::<f64>::zeros(selection.len(), selection.len());
        for pair in selection.parts().chunks(2) {
            let (weight, bias) = (&pair[0], &pair[1]);
            let (outputs, inputs) = (weight.shape[0], weight.shape[1]);
            let (mut g, mut q) = (Mat::<f64>::zeros(outputs, outputs), Mat::<f64>::zeros(inputs, inputs));
            for i in 0..n {
                let (x, _) = examples.batch(&[i], None);
                let j = jacobian(&network, &selection, &x);
                let delta = j.subcols(bias.offset, outputs);
                let f = network.forward(&x).unwrap();
                let mut b = vec![0.0; c * c];
                likelihood.curvature(&target(&examples, i), f.values(), &mut b);
                let b = Mat::from_fn(c, c, |i, k| b[i * c + k]);
                g += delta.transpose() * b * delta;
                // W_o = delta_o a^T, so a = W_o^T delta_o / |delta_o|^2.
                let row = delta.row(0);
                let a = Mat::from_fn(inputs, 1, |k, _| {
                    (0..outputs).map(|o| j[(0, weight.offset + o * inputs + k)] * row[o]).sum::<f64>()
                        / row.squared_norm_l2()
                });
                q += &a * a.transpose() * faer::Scale(1.0 / n as f64);
            }
            for (i, k) in (0..outputs * inputs).flat_map(|i| (0..outputs * inputs).map(move |k| (i, k))) {
                expected[(weight.offset + i, weight.offset + k)] =
                    g[(i / inputs, k / inputs)] * q[(i % inputs, k % inputs)];
            }
            (0..outputs).for_each(|i| {
                (0..outputs).for_each(|k| expected[(bias.offset + i, bias.offset + k)] = g[(i, k)])
            });
        }
        let error = difference(&found, &expected);
        assert!(error < 1e-10, "{} {error}", likelihood.name());
    }
}

/// With one example a fully connected layer's block is a Kronecker product exactly; so is that of a convolution whose kernel covers the image.
#[test]
fn one_example_makes_the_kronecker_form_exact() {
    let whole = "kind = \"layers\"\ninput = [2, 3, 3]\n[[layer]]\nname = \"c\"\noperation = \"convolution\"\noutputs = 4\nkernel = [3, 3]\n\
                 [[layer]]\nname = \"t\"\noperation = \"tanh\"\n[[layer]]\nname = \"f\"\noperation = \"flatten\"\n\
                 [[layer]]\nname = \"o\"\noperation = \"linear\"\noutputs = 3";
    let networks = [network(PERCEPTRON, 5), network(whole, 6)];
    for network in networks {
        let likelihood = &likelihoods()[0];
        let examples = data(&network, likelihood, 1, 9);
        let exact = brute_curvature(&network, &Selection::all(network.graph()), likelihood, &examples);
        let fitted =
            quiet(&network, &examples, likelihood, &options(Approximation::Kronecker(FisherEstimate::Exact)))
                .unwrap();
        for block in fitted.structure().unwrap().blocks() {
            let range = block.range.clone();
            let own = exact.submatrix(range.start, range.start, range.len(), range.len()).to_owned();
            let found = dense(fitted.structure().unwrap());
            let found = found.submatrix(range.start, range.start, range.len(), range.len()).to_owned();
            assert!(difference(&found, &own) < 1e-10, "{}", block.name);
        }
    }
}

/// The sampled Fisher matrix has the exact one as its mean; the empirical one is the sum of squared gradients.
#[test]
fn estimated_fisher_matrices() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[0];
    let examples = data(&network, likelihood, 6, 8);
    let head = |estimate| {
        let o = FitOptions { weights: Weights::LastLayer, ..options(Approximation::Kronecker(estimate)) };
        dense(quiet(&network, &examples, likelihood, &o).unwrap().structure().unwrap())
    };
    let exact = head(FisherEstimate::Exact);
    let samples = 20_000;
    let sampled = head(FisherEstimate::MonteCarlo { samples, seed: 1 });
    // Entries are sums of six products of gradients below 1, times inputs below 1.
    let bound = 5.0 * 6.0 / (samples as f64 * 6.0).sqrt();
    assert!((&sampled - &exact).norm_max() < bound, "{} {bound}", (&sampled - &exact).norm_max());
    let empirical = head(FisherEstimate::Empirical);
    let selection = Selection::last_layer(network.graph()).unwrap();
    let bias = selection.parts()[1].offset;
    let mut expected = Mat::<f64>::zeros(3, 3);
    for i in 0..6 {
        let (x, _) = examples.batch(&[i], None);
        let mut g = vec![0.0; 3];
        likelihood.gradient(&target(&examples, i), network.forward(&x).unwrap().values(), &mut g);
        (0..9).for_each(|k| expected[(k / 3, k % 3)] += g[k / 3] * g[k % 3]);
    }
    assert!(difference(&empirical.submatrix(bias, bias, 3, 3).to_owned(), &expected) < 1e-12);
}

#[test]
fn the_output_layer_needs_no_backward_pass() {
    let network = network(PERCEPTRON, 4);
    let selection = Selection::last_layer(network.graph()).unwrap();
    for likelihood in likelihoods() {
        let examples = data(&network, &likelihood, 10, 8);
        let exact = brute_curvature(&network, &selection, &likelihood, &examples);
        let at = |approximation| {
            let o = FitOptions { weights: Weights::LastLayer, ..options(approximation) };
            dense(quiet(&network, &examples, &likelihood, &o).unwrap().structure().unwrap())
        };
        assert!(difference(&at(Approximation::Full), &exact) < 1e-10, "{}", likelihood.name());
        let diagonal = at(Approximation::Diagonal);
        (0..selection.len())
            .for_each(|i| assert!((diagonal[(i, i)] - exact[(i, i)]).abs() < 1e-10 * exact.norm_max()));
        // The Kronecker form without the shortcut: all weights, same blocks.
        let all = dense(
            quiet(
                &network,
                &examples,
                &likelihood,
                &options(Approximation::Kronecker(FisherEstimate::Exact)),
            )
            .unwrap()
            .structure()
            .unwrap(),
        );
        let start = all.nrows() - selection.len();
        let own = all.submatrix(start, start, selection.len(), selection.len()).to_owned();
        assert!(difference(&at(Approximation::Kronecker(FisherEstimate::Exact)), &own) < 1e-10);
    }
}

#[test]
fn heteroscedastic_heads_have_their_fisher_matrix() {
    let two = PERCEPTRON.replace("outputs = 3", "outputs = 2");
    let network = network(&two, 4);
    let likelihood = heteroscedastic();
    let examples = data(&network, &likelihood, 8, 8);
    let exact = brute_curvature(&network, &Selection::all(network.graph()), &likelihood, &examples);
    let full = quiet(&network, &examples, &likelihood, &options(Approximation::Full)).unwrap();
    assert!(difference(&dense(full.structure().unwrap()), &exact) < 1e-10);
}

#[test]
fn sums_can_be_interrupted_continued_and_do_not_depend_on_how_examples_arrive() {
    let network = network(LENET, 3);
    let likelihood = &likelihoods()[0];
    // More examples than one batch holds would take long here: what matters is where a sum stops and goes on.
    let examples = data(&network, likelihood, 40, 7);
    let selection = Selection::all(network.graph());
    for form in [Form::Kronecker, Form::Diagonal, Form::Full] {
        let whole = {
            let mut sums = Accumulator::new(&network, &selection, form, FisherEstimate::Exact).unwrap();
            sums.extend(&Data::new(&network, &examples, likelihood), 0, &mut Run::default()).unwrap();
            sums
        };
        let mut parts = Accumulator::new(&network, &selection, form, FisherEstimate::Exact).unwrap();
        for (start, end) in [(0, 13), (13, 14), (14, 40)] {
            let indices: Vec<usize> = (start..end).collect();
            let (x, y) = examples.batch(&indices, None);
            let piece = posterior_networks::train::Tabular::new(x, y);
            parts.extend(&Data::new(&network, &piece, likelihood), 0, &mut Run::default()).unwrap();
            // As if saved and read again.
            let mut again = Accumulator::new(&network, &selection, form, FisherEstimate::Exact).unwrap();
            again.restore(parts.blocks().to_vec(), *parts.fit()).unwrap();
            parts = again;
        }
        assert_eq!(parts.fit().examples, 40);
        let error = difference(&dense(&parts.finish().unwrap()), &dense(&whole.finish().unwrap()));
        assert!(error < 1e-12, "{form:?} {error}");
        assert!((parts.fit().log_likelihood - whole.fit().log_likelihood).abs() < 1e-10);
    }
    let other = Accumulator::new(
        &network,
        &Selection::last_layer(network.graph()).unwrap(),
        Form::Kronecker,
        FisherEstimate::Exact,
    )
    .unwrap();
    let mut sums = Accumulator::new(&network, &selection, Form::Kronecker, FisherEstimate::Exact).unwrap();
    assert!(sums.restore(other.blocks().to_vec(), *other.fit()).is_err());
}

#[test]
fn low_rank_plus_diagonal_keeps_leading_eigenpairs_and_the_diagonal() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = data(&network, likelihood, 4, 8);
    let exact = brute_curvature(&network, &Selection::all(network.graph()), likelihood, &examples);
    // Four examples with three outputs have rank 12: twelve directions and no diagonal are all of it.
    let all =
        quiet(&network, &examples, likelihood, &options(Approximation::LowRank { rank: 12, iterations: 3 }))
            .unwrap();
    assert!(difference(&dense(all.structure().unwrap()), &exact) < 1e-9);
    let few =
        quiet(&network, &examples, likelihood, &options(Approximation::LowRank { rank: 3, iterations: 6 }))
            .unwrap();
    let found = dense(few.structure().unwrap());
    (0..exact.nrows()).for_each(|i| assert!((found[(i, i)] - exact[(i, i)]).abs() < 1e-6 * exact.norm_max()));
    let values = exact.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    let top: f64 = values.iter().rev().take(3).sum();
    let posterior_linear::structure::BlockMatrix::LowRank(block) =
        &few.structure().unwrap().blocks()[0].matrix
    else {
        panic!()
    };
    assert!((block.factor().squared_norm_l2() / top - 1.0).abs() < 1e-6);
}

#[test]
fn what_cannot_be_done_is_said() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[0];
    let examples = data(&network, likelihood, 4, 8);
    let text =
        |o: FitOptions| quiet(&network, &examples, likelihood, &o).map(|_| ()).unwrap_err().to_string();
    let sub = |size| FitOptions {
        weights: Weights::Subnetwork { size, choice: Default::default() },
        ..options(Approximation::Kronecker(FisherEstimate::Exact))
    };
    assert!(text(sub(0)).contains("between 1 and that"));
    assert!(text(sub(10_000)).contains("between 1 and that"));
    assert!(text(sub(5)).contains("sub-network has no Kronecker"));
    assert!(text(FitOptions { memory: 1000, ..options(Approximation::Full) }).contains("above the limit"));
    assert!(text(FitOptions { initial_precision: 0.0, ..options(Approximation::Full) }).contains("positive"));
    assert!(
        text(FitOptions { tune: Tune::Validation, ..options(Approximation::Full) })
            .contains("validation examples")
    );
    assert!(
        text(FitOptions {
            weights: Weights::Matching(vec!["nothing*".into()]),
            ..options(Approximation::Full)
        })
        .contains("nothing")
    );
    let bad = posterior_networks::train::Tabular::new(
        inputs(&network, 3, 1),
        posterior_networks::train::Targets::Classes(vec![0, 1, 7]),
    );
    let error = quiet(&network, &bad, likelihood, &options(Approximation::Full)).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("example 2:"), "{error}");
    let none = posterior_networks::train::Tabular::new(
        posterior_networks::Array::zeros(vec![0, 3]),
        posterior_networks::train::Targets::Classes(vec![]),
    );
    assert!(quiet(&network, &none, likelihood, &options(Approximation::Full)).is_err());
    let many = data(&network, likelihood, 40_000, 8);
    let o = options(Approximation::Diagonal);
    let many_data = Data::new(&network, &many, likelihood);
    let (result, left) = keeping(None, |checkpointer| {
        let mut run = Run::new(|_, _, _| Signal::Stop).keeping(checkpointer);
        posterior_laplace::fit(&many_data, &o, &mut run)
    });
    assert!(matches!(result, Err(LaplaceError::Interrupted)));
    let left = left.unwrap();
    let seen: usize = left.progress.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(seen > 0 && seen < 40_000);
    let (resumed, _) = keeping(Some(left), |checkpointer| {
        posterior_laplace::fit(&many_data, &o, &mut Run::default().keeping(checkpointer))
    });
    let resumed = resumed.unwrap();
    let straight = quiet(&network, &many, likelihood, &options(Approximation::Diagonal)).unwrap();
    assert_eq!(resumed.structure().unwrap().diagonal(), straight.structure().unwrap().diagonal());
}
