//! Directions against dense solves, iterates against the printed recursion, passes against the specification's table.

use super::acceleration::{Acceleration, Adaptation, Momentum};
use super::block::Block;
use super::iterates::Iterates;
use super::run::SketchAndProjectOptions;
use crate::iterative::tests::{dense, exact_solution, kernel_matrix, normal, shifted, watch};
use crate::iterative::{Budget, DualDescentOptions, Iterate, Method, Problem, Start, solve};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::eigenvalues;
use posterior_linalg::operator::Dense;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::System;
use posterior_optim::{Progress, Signal};
use rand::RngExt;

fn options(
    block: usize,
    rank: impl Into<Option<usize>>,
    acceleration: Acceleration,
) -> SketchAndProjectOptions {
    SketchAndProjectOptions {
        block: Some(block),
        rank: rank.into(),
        acceleration,
        ..SketchAndProjectOptions::default()
    }
}

fn method(block: usize, rank: impl Into<Option<usize>>, acceleration: Acceleration) -> Method {
    Method::SketchAndProject(options(block, rank, acceleration))
}

#[test]
fn one_step_on_everything_is_the_direct_solution() {
    let n = 60;
    let matrix = kernel_matrix(n, 0.5, true);
    let noise: Vec<f64> = (0..n).map(|i| 0.1 + 0.01 * (i % 5) as f64).collect();
    let k = dense(&matrix);
    let system = System::new(&k, noise.clone()).unwrap();
    let targets = normal(n, 3, "targets");
    let problem = Problem::new(&system, targets.as_ref(), None).unwrap();
    let exact = exact_solution(&matrix, &noise, &targets);
    let budget = Budget::steps(1);
    for rank in [Some(n), None] {
        let own = method(n, rank, Acceleration::None);
        let found = solve(&own, &problem, Start::Zero, &budget, &mut watch).unwrap();
        let error = (&found.weights - &exact).norm_max() / exact.norm_max();
        assert!(error < 1e-9, "{rank:?} {error}");
    }
}

/// Factored blocks solve their equations, in either precision: in single, as well as its values of the kernel allow, and where rounding makes these indefinite they are solved nearly.
#[test]
fn factored_blocks_solve_their_equations() {
    let (n, b, noise) = (120, 50, 1e-3);
    let rows: Vec<usize> = (0..b).map(|i| 2 * i + 1).collect();
    let gradient = normal(b, 2, "gradient");
    let matrix = kernel_matrix(n, 1.0, true);
    let block = Mat::from_fn(b, b, |i, j| matrix[(rows[i], rows[j])] + if i == j { noise } else { 0.0 });
    let k = dense(&matrix);
    let system = System::new(&k, vec![noise; n]).unwrap();
    let own = directions_of(&system, &rows, None, gradient.as_ref());
    let rest = (&block * &own - &gradient).norm_max();
    assert!(rest < 1e-10, "{rest}");
    let narrow = Dense::new(Mat::<f32>::from_fn(n, n, |i, j| matrix[(i, j)] as f32));
    let single = Mat::<f32>::from_fn(b, 2, |i, j| gradient[(i, j)] as f32);
    let misfit = |noise: f32| {
        let system = System::new(&narrow, vec![noise; n]).unwrap();
        let found = directions_of(&system, &rows, None, single.as_ref());
        let found = Mat::from_fn(b, 2, |i, j| f64::from(found[(i, j)]));
        let exact = Mat::from_fn(b, b, |i, j| {
            f64::from(narrow.matrix()[(rows[i], rows[j])]) + if i == j { f64::from(noise) } else { 0.0 }
        });
        // Relative to what rounding the directions to single precision costs.
        let scale = exact.norm_max() * found.norm_max() * b as f64 * f64::from(f32::EPSILON);
        (&exact * &found - &gradient).norm_max() / scale
    };
    assert!(misfit(1e-3) < 1.0, "{}", misfit(1e-3));
    // Equal rows without noise to speak of.
    let equal = Dense::new(Mat::<f32>::full(n, n, 1.0));
    let system = System::new(&equal, vec![f32::MIN_POSITIVE; n]).unwrap();
    assert!(directions_of(&system, &rows, None, single.as_ref()).is_all_finite());
}

/// What is done with a block itself is a quarter of its gradient's work where tables are large enough, and counted in any case.
#[test]
fn blocks_leave_most_of_the_work_to_gradients() {
    for rank in [None, Some(100)] {
        let own = SketchAndProjectOptions { rank, ..SketchAndProjectOptions::default() };
        for (n, s) in [(20_000, 65), (50_000, 17), (1_000_000, 65), (100_000_000, 2)] {
            let (block, share) = (own.block_of(n, s), own.block_share(n, s));
            assert!((200..=4096).contains(&block) && share <= 0.26, "{rank:?} {n} {s}: {block} {share}");
            assert!(
                share > 0.24 || block == 4096 || own.block_of(2 * n, s) > block,
                "{rank:?} {n} {s}: {share}"
            );
        }
        assert_eq!(own.block_of(50, 3), 50);
        assert_eq!(SketchAndProjectOptions { block: Some(7), ..own }.block_of(1000, 1), 7);
    }
}

/// What a block makes of a gradient.
fn directions_of<T: Real>(
    system: &System<'_, T>,
    rows: &[usize],
    rank: impl Into<Option<usize>>,
    gradient: MatRef<'_, T>,
) -> Mat<T> {
    let mut out = Mat::zeros(gradient.nrows(), gradient.ncols());
    Block::of(system, rows, rank.into(), 0).unwrap().direction(gradient, out.as_mut());
    out
}

/// The direction is `step P^-1 G` of a P whose spectrum over the block's matrix is what a Nyström approximation leaves: in (0, 2), and f32 agrees with f64.
#[test]
fn directions_solve_their_block_nearly() {
    let (n, b, rank) = (120, 50, 20);
    let matrix = kernel_matrix(n, 1.0, true);
    let noise = vec![1e-3; n];
    let rows: Vec<usize> = (0..b).map(|i| 2 * i + 1).collect();
    let k = dense(&matrix);
    let system = System::new(&k, noise.clone()).unwrap();
    let inverse = directions_of(&system, &rows, rank, Mat::<f64>::identity(b, b).as_ref());
    // Symmetric, as step times an inverse of a symmetric P is.
    assert!((&inverse - inverse.transpose()).norm_max() < 1e-9 * inverse.norm_max());
    let block = Mat::from_fn(b, b, |i, j| matrix[(rows[i], rows[j])] + if i == j { noise[0] } else { 0.0 });
    let root = Cholesky::of(block.as_ref(), JitterPolicy::NONE).unwrap();
    let root = root.multiply_factor(Mat::<f64>::identity(b, b).as_ref());
    let similar = root.transpose() * &inverse * &root;
    let spectrum = eigenvalues(similar.as_ref()).unwrap();
    let (least, most) = spectrum.iter().fold((f64::INFINITY, 0.0f64), |(l, m), &e| (l.min(e), m.max(e)));
    assert!(least > 0.0 && (0.95..1.3).contains(&most), "{least} {most}");
    // Better than no preconditioner by the condition that is left.
    let plain = eigenvalues(block.as_ref()).unwrap();
    let condition =
        plain.iter().fold(0.0f64, |m, &e| m.max(e)) / plain.iter().fold(f64::INFINITY, |l, &e| l.min(e));
    assert!(most / least < 0.1 * condition, "{} {condition}", most / least);

    let narrow = Mat::<f32>::from_fn(n, n, |i, j| matrix[(i, j)] as f32);
    let k = Dense::new(narrow);
    let system = System::new(&k, vec![1e-3f32; n]).unwrap();
    let gradient = normal(b, 2, "gradient");
    let single = Mat::<f32>::from_fn(b, 2, |i, j| gradient[(i, j)] as f32);
    let single = directions_of(&system, &rows, rank, single.as_ref());
    let double = &inverse * &gradient;
    let difference = Mat::from_fn(b, 2, |i, j| f64::from(single[(i, j)]) - double[(i, j)]);
    assert!(
        difference.norm_max() < 1e-3 * double.norm_max(),
        "{}",
        difference.norm_max() / double.norm_max()
    );
}

/// Y, V and the W that is not stored, against the three recursions as they are printed.
#[test]
fn two_blocks_of_numbers_say_what_three_would() {
    let (n, s, b) = (30, 2, 5);
    let start = normal(n, s, "start");
    let mut own = Iterates::at(start.clone());
    let (mut w, mut v, mut y) = (start.clone(), start.clone(), start);
    let mut multiplied_out = 0;
    for step in 0..120 {
        let rows: Vec<usize> = (0..b).map(|i| (7 * i + 3 * step) % n).collect();
        let directions = normal(b, s, &format!("directions {step}"));
        // μ changes on the way.
        let mu = [1e-3, 3e-3, 0.15][usize::min(step / 20, 2)];
        let (momentum, before) = (Momentum::new(mu, n as f64 / b as f64), own.scale);
        own.step(&rows, directions.as_ref(), Some(momentum));
        multiplied_out += usize::from(own.scale > before);
        let Momentum { alpha, beta, gamma } = momentum;
        (w, v) = (y.clone(), Mat::from_fn(n, s, |i, j| beta * v[(i, j)] + (1.0 - beta) * y[(i, j)]));
        for (a, &i) in rows.iter().enumerate() {
            for j in 0..s {
                w[(i, j)] -= directions[(a, j)];
                v[(i, j)] -= gamma * directions[(a, j)];
            }
        }
        y = Mat::from_fn(n, s, |i, j| alpha * v[(i, j)] + (1.0 - alpha) * w[(i, j)]);
    }
    let scale = v.norm_max();
    let memory = Mat::from_fn(n, s, |i, j| own.ahead[(i, j)] + own.scale * own.velocity[(i, j)]);
    assert!((&own.ahead - &y).norm_max() < 1e-12 * scale && (&memory - &v).norm_max() < 1e-12 * scale);
    // A scale that becomes too small is multiplied out on the way.
    assert!(multiplied_out > 0 && own.scale >= 1e-6);
    for j in 0..s {
        own.weights(j).zip(w.col(j).iter()).for_each(|(own, w)| assert!((own - w).abs() < 1e-12 * scale));
    }
    own.rest(1);
    assert_eq!(own.velocity.col(1).norm_max(), 0.0);
    assert!((own.ahead.col(1) - w.col(1)).norm_max() < 1e-12 * scale);
}

#[test]
fn momentum_stays_in_its_bounds() {
    for (mu, nu) in [(1e-9, 1e6), (1e-3, 5.0), (1.0, 1.0), (1.0, 100.0), (0.5, 0.2)] {
        let Momentum { alpha, beta, gamma } = Momentum::new(mu, nu);
        assert!(alpha > 0.0 && alpha <= 0.5 && (0.0..1.0).contains(&beta) && gamma >= 1.0, "{mu} {nu}");
    }
    // Small rises ask for less acceleration, large ones for a new beginning, passes that fall by less than was promised for more.
    let nu = 25.0;
    let start = |mu: f64| {
        let mut own = Adaptation::from(mu);
        assert!(!own.judge(1.0, nu));
        own
    };
    let mut own = start(1e-3);
    assert!(!own.judge(1.1, nu) && own.mu == 1.5e-3 && own.falling == 0);
    assert!(own.judge(2.0, nu) && own.mu == 3e-3);
    let mut bounded = start(1.0 / nu);
    assert!(bounded.judge(9.0, nu) && bounded.mu == 1.0 / nu);
    // At 0.01 passes promise exp(-0.5). A fall by that keeps μ, by a fifth of it takes it to a fifth, by next to nothing to a quarter of what it was.
    for (fall, left) in [(0.5f64, 1.0), (0.3, 1.0), (0.15, 0.3), (1e-6, 0.25)] {
        let mut own = start(0.01);
        (1..=4).for_each(|k| assert!(!own.judge((-fall * f64::from(k)).exp(), nu)));
        assert!((own.mu / 0.01 - left).abs() < 1e-9, "{fall}: {}", own.mu);
    }
    let first = |sketched| Acceleration::Adaptive.first(25.0, sketched).unwrap();
    assert_eq!([first(None), first(Some(1e-9)), first(Some(0.2))], [Some(0.04), Some(1e-3), Some(0.2)]);
    assert!(Acceleration::Fixed(-1.0).first(25.0, None).is_err());
}

/// n points of the plane, three functions of the prior under noise, blocks of a fifth.
struct Table {
    matrix: Dense<f64>,
    noise: f64,
    targets: Mat<f64>,
}

const BLOCK: usize = 60;

impl Table {
    fn new(noise: f64) -> Self {
        let n = 5 * BLOCK;
        let matrix = kernel_matrix(n, 1.0, true);
        let factor = Cholesky::of(shifted(&matrix, &vec![noise; n]).as_ref(), JitterPolicy::NONE).unwrap();
        let targets = factor.multiply_factor(normal(n, 3, "white").as_ref());
        Self { matrix: dense(&matrix), noise, targets }
    }

    /// The largest relative residual after some passes.
    fn residual(&self, method: &Method, passes: usize) -> f64 {
        let n = self.targets.nrows();
        let system = System::uniform(&self.matrix, self.noise).unwrap();
        let problem = Problem::new(&system, self.targets.as_ref(), None).unwrap();
        let steps = passes * n / method.rows_of_a_step(n, 3);
        let found = solve(method, &problem, Start::Zero, &Budget::steps(steps), &mut watch).unwrap();
        problem.relative_residuals(found.weights.as_ref()).into_iter().fold(0.0, f64::max)
    }
}

/// By passes over the rows: ten times ahead of dual descent where noise is small, not behind where it is not, and acceleration that adapts is better after some than none after twice as many, up to a factor of two.
#[test]
fn ill_conditioned_systems_are_solved_in_few_passes() {
    for (noise, passes, times) in [(1e-6, 60, 10), (1e-3, 60, 10), (1e-2, 40, 1)] {
        let table = Table::new(noise);
        let adaptive = table.residual(&method(BLOCK, 30, Acceleration::Adaptive), passes);
        let plain = table.residual(&method(BLOCK, 30, Acceleration::None), 2 * passes);
        assert!(adaptive < 2.0 * plain, "{noise}: {adaptive} {plain}");
        let dual = Method::DualDescent(DualDescentOptions { batch: 30, ..DualDescentOptions::default() });
        let dual = table.residual(&dual, times * passes);
        assert!(adaptive < dual, "{noise}: {adaptive} {dual}");
        let factored = table.residual(&method(BLOCK, None, Acceleration::Adaptive), passes);
        assert!(factored < adaptive, "{noise}: {factored} {adaptive}");
    }
    let easy = Table::new(1e-2).residual(&method(BLOCK, 30, Acceleration::Fixed(1e-3)), 400);
    assert!(easy < 1e-10, "{easy}");
}

/// The specification's table: 500 rows of three columns, Matérn-3/2, blocks of 100. Its inputs and targets are not told: normal ones, and a smooth function under noise.
struct Published {
    matrix: Mat<f64>,
    targets: Vec<f64>,
}

impl Published {
    const ROWS: usize = 500;
    const BLOCK: usize = 100;

    fn new() -> Self {
        let x = normal(Self::ROWS, 3, "inputs of the table");
        let distance =
            |i: usize, j: usize| (0..3).map(|d| (x[(i, d)] - x[(j, d)]).powi(2)).sum::<f64>().sqrt();
        let matern32 = |r: f64| (1.0 + 3f64.sqrt() * r) * (-3f64.sqrt() * r).exp();
        let smooth = |i: usize| x[(i, 0)].sin() + 0.5 * (x[(i, 1)] + 0.5 * x[(i, 2)]).cos();
        Self {
            matrix: Mat::from_fn(Self::ROWS, Self::ROWS, |i, j| matern32(distance(i, j))),
            targets: (0..Self::ROWS).map(smooth).collect(),
        }
    }

    /// The relative residual after some passes, under noise of a variance.
    fn left(&self, noise: f64, method: &Method, passes: usize) -> f64 {
        let k = Dense::new(self.matrix.clone());
        let system = System::uniform(&k, noise).unwrap();
        let drawn = normal(Self::ROWS, 1, "noise of the table");
        let targets = Mat::from_fn(Self::ROWS, 1, |i, _| self.targets[i] + noise.sqrt() * drawn[(i, 0)]);
        let problem = Problem::new(&system, targets.as_ref(), None).unwrap();
        let steps = passes * Self::ROWS / method.rows_of_a_step(Self::ROWS, 1);
        let found = solve(method, &problem, Start::Zero, &Budget::steps(steps), &mut watch).unwrap();
        problem.relative_residuals(found.weights.as_ref())[0]
    }
}

/// Sketched by rank 50, 200 passes: to a factor of ten what the specification has as medians of ten draws, in all of its cells.
#[test]
fn residuals_are_those_of_the_specification() {
    let table = Published::new();
    let fixed = Acceleration::Fixed;
    for (noise, acceleration, published) in [
        (1e-6, fixed(1e-6), 1.1e-2),
        (1e-6, fixed(1e-3), 4.0e-5),
        (1e-6, fixed(1e-2), 1.1e-4),
        (1e-6, Acceleration::None, 2.9e-4),
        (1e-4, fixed(1e-4), 2.1e-4),
        (1e-4, fixed(1e-3), 2.0e-4),
        (1e-4, fixed(1e-2), 7.6e-4),
        (1e-4, Acceleration::None, 1.9e-3),
        (1e-3, fixed(1e-3), 1.1e-4),
        (1e-3, fixed(1e-2), 1.4e-3),
        (1e-3, Acceleration::None, 4.9e-3),
        (1e-2, fixed(1e-3), 4.1e-8),
        (1e-2, fixed(1e-2), 1.1e-5),
        (1e-2, Acceleration::None, 1.9e-3),
    ] {
        let left = table.left(noise, &method(Published::BLOCK, 50, acceleration), 200);
        let ratio = left / published;
        assert!((0.1..10.0).contains(&ratio), "{noise:e} {acceleration:?}: {left:e}, not {published:e}");
    }
    // Double precision has more to give.
    let end = table.left(1e-2, &method(Published::BLOCK, 50, fixed(1e-3)), 400);
    assert!(end < 1e-10, "{end:e}");
}

/// Passes of factored blocks to a relative residual of 1e-3, of functions of the prior: dual descent has not reached it after ten times as many. (Of a smooth function under a noise of 1e-6, whose rough directions are empty, it has after ten times as many and not much earlier.)
#[test]
fn dual_descent_takes_ten_times_as_many_passes_where_noise_is_small() {
    for noise in [1e-6, 1e-3] {
        let table = Table::new(noise);
        let own = method(BLOCK, None, Acceleration::Adaptive);
        let passes = (1..=120).find(|&passes| table.residual(&own, passes) < 1e-3);
        let passes = passes.expect("120 passes are enough");
        let dual = Method::DualDescent(DualDescentOptions { batch: 30, ..DualDescentOptions::default() });
        let left = table.residual(&dual, 10 * passes);
        assert!(left > 1e-3, "{noise:e}: {left:e} after {} passes, by blocks {passes}", 10 * passes);
    }
}

/// Where blocks are factored and few, what they leave is not the noise's: at the published μ they take more passes than without acceleration, and as it adapts about as many, or fewer.
#[test]
fn factored_blocks_want_less_acceleration_than_was_published() {
    let table = Table::new(1e-4);
    let passes = |acceleration| {
        let own = method(BLOCK, None, acceleration);
        (1..200).find(|&passes| table.residual(&own, passes) < 1e-3).unwrap_or(200)
    };
    let (published, none, adaptive) =
        (passes(Acceleration::Fixed(1e-3)), passes(Acceleration::None), passes(Acceleration::Adaptive));
    assert!(published > 2 * none && adaptive < none + none / 4, "{published} {none} {adaptive}");
}

/// The specification has μ grow where a pass stalls. On an ill-conditioned system most passes do, though the solve goes on as it should: μ would soon be 1, and with that μ more is left.
#[test]
fn passes_that_seem_to_stall_want_no_larger_mu() {
    let table = Table::new(1e-4);
    let n = table.targets.nrows();
    let system = System::uniform(&table.matrix, table.noise).unwrap();
    let problem = Problem::new(&system, table.targets.as_ref(), None).unwrap();
    let (passes, own) = (100, method(BLOCK, 30, Acceleration::Fixed(1e-3)));
    let mut residuals = vec![f64::INFINITY];
    let mut look = |progress: &Progress, _: &dyn Iterate<f64>| {
        if progress.step.is_multiple_of(n / BLOCK) {
            residuals.extend(progress.residual);
        }
        Signal::Continue
    };
    solve(&own, &problem, Start::Zero, &Budget::steps(passes * n / BLOCK), &mut look).unwrap();
    let stalled = residuals.windows(2).filter(|pair| pair[1] > 0.9 * pair[0]).count();
    // Trebled seven times, 1e-3 is beyond 1.
    assert!(stalled > 3 * 7, "{stalled} of {}", residuals.len());
    let left = |acceleration| table.residual(&method(BLOCK, 30, acceleration), passes);
    let (small, largest, adaptive) =
        (left(Acceleration::Fixed(1e-3)), left(Acceleration::Fixed(1.0)), left(Acceleration::Adaptive));
    assert!(2.0 * small < largest && 2.0 * adaptive < largest, "{small} {adaptive} {largest}");
}

/// Columns that are solved leave, and the others are what they would be alone.
#[test]
fn right_hand_sides_are_solved_as_if_alone() {
    let table = Table::new(1e-2);
    let n = table.targets.nrows();
    let system = System::uniform(&table.matrix, table.noise).unwrap();
    // One is solved at once, one soon.
    let targets = Mat::from_fn(n, 3, |i, j| [0.0, 1.0, 1.0][j] * table.targets[(i, j)]);
    let budget = Budget { tolerance: 1e-6, ..Budget::steps(2000) };
    // A fixed μ, since residuals of one right-hand side adapt that of all.
    let own = method(BLOCK, 30, Acceleration::Fixed(1e-2));
    let together = Problem::new(&system, targets.as_ref(), None).unwrap();
    let found = solve(&own, &together, Start::Zero, &budget, &mut watch).unwrap();
    let left = together.relative_residuals(found.weights.as_ref());
    assert!(left.iter().all(|&residual| residual < 2e-6), "{left:?}");
    for j in 0..3 {
        let alone = Problem::new(&system, targets.subcols(j, 1), None).unwrap();
        let steps = Budget::steps(found.progress.step);
        let alone = solve(&own, &alone, Start::Zero, &steps, &mut watch).unwrap();
        let apart = (found.weights.col(j) - alone.weights.col(0)).norm_max();
        assert!(apart <= 1e-3 * alone.weights.norm_max(), "{j}: {apart}");
    }
}

/// Whatever block, rank, noise and beginning of μ are drawn: without acceleration no step makes the objective larger, and with it new beginnings keep what is left from growing.
#[test]
fn drawn_settings_never_climb_and_never_diverge() {
    let n = 40;
    let k = dense(&kernel_matrix(n, 1.0, true));
    let targets = normal(n, 1, "targets");
    let mut rng = Streams::new(5).stream("sketch/settings");
    for _ in 0..30 {
        let block = rng.random_range(1..=n);
        let rank = rng.random_bool(0.7).then(|| rng.random_range(1..=block));
        let noise = 10f64.powf(rng.random_range(-7.0..0.5));
        let system = System::uniform(&k, noise).unwrap();
        let problem = Problem::new(&system, targets.as_ref(), None).unwrap();
        let steps = (30 * n).div_ceil(block);
        let objective = |w: &Mat<f64>| {
            let product = system.multiply(w.as_ref());
            (0..n).map(|i| w[(i, 0)] * (0.5 * product[(i, 0)] - targets[(i, 0)])).sum::<f64>()
        };
        let mut values = vec![0.0];
        let mut look = |_: &Progress, iterate: &dyn Iterate<f64>| {
            values.push(objective(&iterate.weights()));
            Signal::Continue
        };
        let drawn = format!("block {block}, rank {rank:?}, noise {noise:e}");
        let plain = method(block, rank, Acceleration::None);
        solve(&plain, &problem, Start::Zero, &Budget::steps(steps), &mut look).unwrap();
        let scale = values.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        assert!(values.windows(2).all(|pair| pair[1] <= pair[0] + 1e-10 * scale), "{drawn}");
        let accelerated = method(block, rank, Acceleration::Adaptive);
        let found = solve(&accelerated, &problem, Start::Zero, &Budget::steps(steps), &mut watch).unwrap();
        let reached = objective(&found.weights);
        assert!(reached.is_finite() && reached <= 1e-10 * scale, "{drawn}: {reached}");
    }
}

/// Without acceleration no step makes the objective larger, whatever block, rank and noise.
#[test]
fn plain_steps_never_climb() {
    let n = 40;
    let matrix = kernel_matrix(n, 1.0, true);
    let k = dense(&matrix);
    let targets = normal(n, 1, "targets");
    for (block, rank, noise) in [
        (1, Some(1), 1e-6),
        (3, Some(2), 1e-4),
        (10, Some(1), 1e-6),
        (10, Some(10), 1e-2),
        (40, Some(5), 1e-4),
        (17, Some(40), 1.0),
        (7, None, 1e-6),
        (13, None, 1e-2),
    ] {
        let system = System::uniform(&k, noise).unwrap();
        let problem = Problem::new(&system, targets.as_ref(), None).unwrap();
        let objective = |w: &Mat<f64>| {
            let product = system.multiply(w.as_ref());
            (0..n).map(|i| w[(i, 0)] * (0.5 * product[(i, 0)] - targets[(i, 0)])).sum::<f64>()
        };
        let mut values = vec![0.0];
        let own = method(block, rank, Acceleration::None);
        let mut look = |_: &Progress, iterate: &dyn Iterate<f64>| {
            values.push(objective(&iterate.weights()));
            Signal::Continue
        };
        solve(&own, &problem, Start::Zero, &Budget::steps(60), &mut look).unwrap();
        let scale = values.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        for pair in values.windows(2) {
            assert!(pair[1] <= pair[0] + 1e-10 * scale, "{block} {rank:?} {noise}: {pair:?}");
        }
    }
}
