//! Stochastic evidence gradients against exact ones; neighbourhoods.

use super::*;
use crate::exact::{ExactGp, FitOptions, fit, log_evidence, log_evidence_and_gradient};
use crate::{MeanForm, Observations};
use posterior_kernels::{Kernel, KernelExpression, gram};
use posterior_likelihoods::Gaussian;
use posterior_linalg::solve::System;
use posterior_optim::{Parameters, Reason, Signal};

fn kernel() -> Box<dyn Kernel<f64>> {
    "matern32(ard)".parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

#[test]
fn stochastic_evidence_gradients_are_unbiased() {
    let (n, count) = (30, 4000);
    let (x, y) = (normal(n, 2, "x"), normal(n, 2, "y"));
    let noise = 0.2;
    let kernel = kernel();
    let model = ExactGp::new(kernel.clone_box(), MeanForm::Zero, Gaussian::new(noise, 0.0), 2, 2);
    let data = Observations::new(x.clone(), y.clone(), None).unwrap();
    let exact = log_evidence_and_gradient(&model, &data, None).unwrap().gradient;
    let k = gram(&*kernel, x.as_ref());
    let stored = dense(&k);
    let system = System::uniform(&stored, noise).unwrap();
    let function = root(&k) * normal(n, count, "prior");
    let errors = normal(n, count, "noise") * faer::Scale(noise.sqrt());
    let pathwise = Probes::Pathwise { function: function.as_ref(), noise: errors.as_ref() };
    fn of(
        kernel: &dyn Kernel<f64>,
        x: &Mat<f64>,
        system: &System<'_, f64>,
        y: &Mat<f64>,
        probes: Probes<'_, f64>,
    ) -> Result<EvidenceGradient<f64>, crate::GpError> {
        let (start, budget) = (Start::Zero, Budget::steps(1));
        evidence_gradient(kernel, x.as_ref(), system, y.as_ref(), probes, &Method::Direct, start, &budget)
    }
    for probes in [Probes::Hutchinson { count, seed: 1 }, pathwise] {
        let found = of(&*kernel, &x, &system, &y, probes).unwrap();
        let parts = [found.kernel.clone(), vec![found.noise]].concat();
        assert_eq!(parts.len(), exact.len());
        // The spread of single probes, from blocks of the same estimate: 40 estimates with 100 probes each.
        let mut blocks = vec![Vec::new(); parts.len()];
        for block in 0..40 {
            let piece = |m: &Mat<f64>| m.get(.., block * 100..(block + 1) * 100).to_owned();
            let (f, e) = (piece(&function), piece(&errors));
            let probes = match probes {
                Probes::Hutchinson { .. } => Probes::Hutchinson { count: 100, seed: 10 + block as u64 },
                Probes::Pathwise { .. } => Probes::Pathwise { function: f.as_ref(), noise: e.as_ref() },
            };
            let one = of(&*kernel, &x, &system, &y, probes).unwrap();
            let values = one.kernel.iter().copied().chain([one.noise]);
            blocks.iter_mut().zip(values).for_each(|(b, v)| b.push(v));
        }
        for (p, (found, exact)) in parts.iter().zip(&exact).enumerate() {
            // The standard error of a mean of 40 blocks is that of one estimate with all probes.
            let error = posterior_linalg::solve::Estimate::of(&blocks[p]).standard_error;
            assert!((found - exact).abs() < 4.5 * error, "parameter {p}: {found} {exact} {error}");
        }
    }
    assert!(of(&*kernel, &x, &system, &y, Probes::Hutchinson { count: 0, seed: 0 }).is_err());
}

#[test]
fn solutions_start_the_next_step() {
    let n = 60;
    let (x, y) = (normal(n, 2, "x"), normal(n, 1, "y"));
    let mut kernel = kernel();
    let method = Method::ConjugateGradients(ConjugateGradientOptions {
        preconditioner: posterior_linalg::solve::PreconditionerChoice::None,
        absolute_tolerance: 0.0,
    });
    let budget = Budget { tolerance: 1e-4, ..Budget::steps(500) };
    let probes = Probes::Hutchinson { count: 5, seed: 2 };
    let step = |kernel: &dyn Kernel<f64>, start| {
        let stored = Dense::new(gram(kernel, x.as_ref()));
        let system = System::uniform(&stored, 0.1).unwrap();
        evidence_gradient(kernel, x.as_ref(), &system, y.as_ref(), probes, &method, start, &budget).unwrap()
    };
    let first = step(&*kernel, Start::Zero);
    let moved: Vec<f64> = kernel.values().iter().map(|v| v * 1.002).collect();
    kernel.set_values(&moved);
    let cold = step(&*kernel, Start::Zero);
    let warm = step(&*kernel, Start::Weights(first.solution.weights));
    assert!(warm.solution.progress.step < cold.solution.progress.step);
    let difference: f64 = warm.kernel.iter().zip(&cold.kernel).map(|(a, b)| (a - b).abs()).sum();
    assert!(difference < 1e-2 * cold.kernel.iter().map(|v| v.abs()).sum::<f64>());
}

#[test]
fn neighbourhoods_hold_the_nearest_rows_and_their_fits_are_averaged() {
    let x = Mat::from_fn(6, 1, |i, _| [0.0, 10.0, 1.0, 3.0, -0.5, 2.0][i]);
    assert_eq!(nearest_rows(x.as_ref(), 0, 3), [0, 4, 2]);
    assert_eq!(nearest_rows(x.as_ref(), 1, 10), [1, 3, 5, 2, 0, 4]);
    let n = 80;
    let x = normal(n, 2, "x");
    let y = Mat::from_fn(n, 1, |i, _| (2.0 * x[(i, 0)]).sin() + 0.1 * normal(n, 1, "e")[(i, 0)]);
    let data = Observations::new(x, y, None).unwrap();
    let model = ExactGp::new(kernel(), MeanForm::Zero, Gaussian::new(0.1, 1e-6), 2, 1);
    let options = FitOptions { restarts: 1, ..FitOptions::default() };
    let three = Neighbourhoods { count: 3, size: 40, seed: 1 };
    let (averaged, fits) =
        fit_on_neighbourhoods(&model, &data, three, &options, Vec::new(), &mut |_, _| Signal::Continue)
            .unwrap();
    assert_eq!(fits.len(), 3);
    let names: Vec<String> = averaged.segments().iter().flat_map(|s| vec![s.name.clone(); s.len()]).collect();
    for (p, value) in averaged.values().iter().enumerate() {
        // Standard deviations are averaged, not variances: 0.1 and 0.5 make 0.3.
        let scale = |v: f64| if names[p].ends_with("variance") { v.sqrt() } else { v };
        let mean: f64 = fits.iter().map(|f| scale(f.values[p])).sum::<f64>() / 3.0;
        assert!((scale(*value) - mean).abs() < 1e-12 * mean.abs().max(1.0), "{}", names[p]);
    }
    assert!(fits.iter().all(|f| f.rows == 40));
    let all = Neighbourhoods { size: 100, ..three };
    assert_eq!(
        fit_on_neighbourhoods(&model, &data, all, &options, Vec::new(), &mut |_, _| Signal::Continue)
            .unwrap()
            .1
            .len(),
        1
    );
    assert!(
        fit_on_neighbourhoods(
            &model,
            &data,
            Neighbourhoods { count: 0, ..three },
            &options,
            Vec::new(),
            &mut |_, _| Signal::Continue
        )
        .is_err()
    );
}

/// A function of two columns of which the second tells twelve lines apart and means nothing near any row: on its own line it only jitters.
fn rows_on_lines(n: usize) -> Observations {
    let draws = normal(n, 3, "x");
    let line = |i: usize| (i % 12) as f64 - 5.5;
    let x = Mat::from_fn(n, 2, |i, d| if d == 0 { draws[(i, 0)] } else { line(i) + 0.05 * draws[(i, 1)] });
    let y = Mat::from_fn(n, 1, |i, _| (2.0 * x[(i, 0)]).sin() + (2.2 * line(i)).cos() + 0.05 * draws[(i, 2)]);
    Observations::new(x, y, None).unwrap()
}

#[test]
fn one_objective_over_blocks_finds_what_averages_over_neighbourhoods_miss() {
    let n = 720;
    let data = rows_on_lines(n);
    let squared: Box<dyn Kernel<f64>> = "se(ard, lengthscale=8)"
        .parse::<KernelExpression>()
        .unwrap()
        .build(&["a".into(), "b".into()])
        .unwrap();
    let model = ExactGp::new(squared, MeanForm::Zero, Gaussian::new(0.1, 1e-6), 2, 1);
    let options = FitOptions { restarts: 1, ..FitOptions::default() };
    // Neighbours of a row lie on its own line, where nothing says how far lines are apart: the lengthscale stays where it began.
    let near = Neighbourhoods { count: 4, size: 40, seed: 1 };
    let (averaged, _) =
        fit_on_neighbourhoods(&model, &data, near, &options, Vec::new(), &mut |_, _| Signal::Continue)
            .unwrap();
    let blocks = Blocks { uniform: 3, neighbourhoods: 2, size: 60, seed: 1 };
    let rows = blocks.rows(&data).unwrap();
    let mut seen = 0;
    let (joint, found) = fit_on_blocks(model.clone(), &data, &rows, &options, &mut |_, _| {
        seen += 1;
        Signal::Continue
    })
    .unwrap();
    assert_eq!(found.sizes, [60; 5]);
    assert!(seen > 3 && found.reason != Reason::Interrupted);
    let evidence = |model: &ExactGp| log_evidence(model, &data, None).unwrap().value / n as f64;
    let whole = fit(model.clone(), data.clone(), &options, &mut |_, _| Signal::Continue).unwrap();
    let (exact, joint, averaged) = (whole.log_evidence / n as f64, evidence(&joint), evidence(&averaged));
    assert!(exact - joint < 0.05, "evidence a row: {exact} of all rows, {joint} of blocks");
    assert!(averaged < joint - 0.2, "averages {averaged}, blocks {joint}: this problem tells them apart");
    // With one block of all rows it is the exact fit.
    let all = Blocks { size: n, ..blocks }.rows(&data).unwrap();
    assert_eq!(all.len(), 1);
    let (same, _) = fit_on_blocks(model, &data, &all, &options, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(same.values(), whole.posterior.model().values());
    assert!(Blocks { uniform: 0, neighbourhoods: 0, ..blocks }.rows(&data).is_err());
    assert!(Blocks { size: 0, ..blocks }.rows(&data).is_err());
    // Uniform blocks have no row twice, and the same seed draws the same.
    assert_eq!(rows, blocks.rows(&data).unwrap());
    for block in &rows {
        let mut sorted = block.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 60);
    }
}
