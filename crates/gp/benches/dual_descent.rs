//! Stochastic dual descent in f32: fifty steps on 41,157 rows of 9 columns (the size of the protein set), for a mean alone and for a mean with 64 samples;
//! the kernel matrix is not stored. `drift` of the notes in `iterative::dual` is part of a step; subtract `apply_rows` of the kernels' bench to see it.

use criterion::{Criterion, criterion_group, criterion_main};
use faer::Mat;
use posterior_gp::iterative::{
    Budget, DualDescentOptions, Method, Problem, SolveObserver, Start, StepSize, solve,
};
use posterior_kernels::KernelExpression;
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::System;
use posterior_optim::Signal;
use rand::RngExt;

const ROWS: usize = 41_157;
const COLUMNS: usize = 9;
const STEPS: usize = 50;

fn dual_descent(criterion: &mut Criterion) {
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f32>::from_fn(ROWS, COLUMNS, |_, _| rng.random::<f32>() * 3.0);
    let names: Vec<String> = (0..COLUMNS).map(|d| format!("x{d}")).collect();
    let expression: KernelExpression = "matern32(ard)".parse().expect("a kernel");
    let kernel = expression.build::<f32>(&names).expect("columns");
    let matrix = KernelMatrix::new(&*kernel, x.as_ref());
    let system = System::uniform(&matrix, 0.1).expect("a system");
    let mut group = criterion.benchmark_group("dual descent, 50 steps of 512 rows, n = 41,157");
    group.sample_size(10);
    for right_hand_sides in [1, 65] {
        let targets = Mat::<f32>::from_fn(ROWS, right_hand_sides, |_, _| rng.random::<f32>() - 0.5);
        let problem = Problem::new(&system, targets.as_ref(), None).expect("a problem");
        let options =
            DualDescentOptions { step_size: StepSize::TimesRows(10.0), ..DualDescentOptions::default() };
        let method = Method::DualDescent(options);
        group.bench_function(format!("{right_hand_sides} right-hand sides"), |bencher| {
            bencher.iter(|| {
                let observer: &mut SolveObserver<'_, f32> = &mut |_, _| Signal::Continue;
                solve(&method, &problem, Start::Zero, &Budget::steps(STEPS), observer).expect("stable steps")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, dual_descent);
criterion_main!(benches);
