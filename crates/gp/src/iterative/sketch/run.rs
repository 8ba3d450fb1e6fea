//! Settings, blocks, columns that leave, checkpoints.

use super::acceleration::{Acceleration, Adaptation, Momentum};
use super::block::Block;
use super::iterates::Iterates;
use crate::GpError;
use crate::iterative::problem::Problem;
use crate::iterative::solver::{Budget, Solution, SolveObserver, Start};
use crate::iterative::state::{SolverState, StateHeader};
use crate::iterative::stochastic::{StochasticMethod, Terms, descend, row_batches};
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::SolveError;
use posterior_optim::{Batches, Sampling};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Settings of sketch-and-project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SketchAndProjectOptions {
    /// Rows of a block, b; None: [`Self::block_of`].
    pub block: Option<usize>,
    /// Columns of the sketch of a block, r; None: no sketch, blocks are factored.
    pub rank: Option<usize>,
    /// How steps are accelerated.
    pub acceleration: Acceleration,
    /// Seed of blocks and sketches.
    pub seed: u64,
    /// Times that a diverging run may begin anew with half the step.
    pub restarts: usize,
}

impl Default for SketchAndProjectOptions {
    fn default() -> Self {
        Self { block: None, rank: None, acceleration: Acceleration::default(), seed: 0, restarts: 20 }
    }
}

/// Flops that a value of a kernel is counted with.
const VALUE: usize = 45;

/// Fewest and most rows of a block that nobody chose; these are 128 MiB of a matrix in f64.
const FEWEST_ROWS: usize = 200;
const MOST_ROWS: usize = 4096;

impl SketchAndProjectOptions {
    /// Rows of a block of a system with n rows and s right-hand sides: as many as leave what is done with the block itself a quarter of the gradient's work, at least 200 or twice the rank, at most 4,096 (which bounds its memory) and n. The number of threads has no part in it, so that a machine with more of them comes to the same numbers.
    pub fn block_of(&self, rows: usize, columns: usize) -> usize {
        let most = gradient(rows, columns) / 4.0;
        let (widest, least) = match self.rank {
            None => {
                // b³/3 + VALUE b² <= b most
                let half = 1.5 * VALUE as f64;
                ((half * half + 3.0 * most).sqrt() - half, FEWEST_ROWS)
            }
            Some(rank) => {
                let (each, fixed) = sketch(rank);
                ((most - fixed) / each, rank.saturating_mul(2))
            }
        };
        let size = self.block.unwrap_or_else(|| (widest.max(0.0) as usize).max(least).min(MOST_ROWS));
        size.clamp(1, rows.max(1))
    }

    /// What a step does with its block itself, as a share of its gradient.
    pub fn block_share(&self, rows: usize, columns: usize) -> f64 {
        let b = self.block_of(rows, columns) as f64;
        let own = match self.rank {
            None => b * (b / 3.0 + VALUE as f64),
            Some(rank) => {
                let (each, fixed) = sketch(rank);
                b * each + fixed
            }
        };
        own / gradient(rows, columns)
    }

    /// Bytes of a block of so many rows while it is made, values having so many bytes.
    pub fn block_bytes(&self, block: usize, number: usize) -> u64 {
        let (b, number) = (block as u64, number as u64);
        let each = match self.rank {
            // Its values, and its factor.
            None => b.saturating_mul(number + 8),
            // Its matrix, its copies, and its sketch in double precision four times.
            Some(rank) => {
                b.saturating_mul(3 * number).saturating_add((rank.min(block) as u64).saturating_mul(32))
            }
        };
        b.saturating_mul(each)
    }
}

/// Flops of a row of a block's gradient.
fn gradient(rows: usize, columns: usize) -> f64 {
    rows.max(1) as f64 * (VALUE as f64 + 2.0 * columns as f64)
}

/// Flops of a sketch and its power iterations, for each row and in all.
fn sketch(rank: usize) -> (f64, f64) {
    let r = rank as f64;
    (2.0 * r + 20.0 + VALUE as f64, 22.0 * r * r)
}

const METHOD: &str = "sketch-and-project";
const BLOCKS: [&str; 2] = ["ahead", "velocity"];

pub(in crate::iterative) fn solve_by_sketch_and_project<T: Real>(
    options: &SketchAndProjectOptions,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let (rows, columns) = problem.shape();
    let counts = [("the block", options.block), ("the rank of the sketch", options.rank)];
    for (what, count) in counts.map(|(what, count)| (what, count.unwrap_or(1))) {
        if count == 0 {
            return Err(SolveError::Setting { what, value: 0.0, needed: "at least 1" }.into());
        }
    }
    let size = options.block_of(rows, columns);
    let noise_share = || {
        let diagonal = problem.system.matrix().diagonal();
        let mean = diagonal.iter().map(|v| v.to_f64()).sum::<f64>() / rows as f64;
        problem.system.mean_noise() / mean.max(f64::MIN_POSITIVE)
    };
    let mu = options.acceleration.first(rows as f64 / size as f64, options.rank.map(|_| noise_share()))?;
    let (mut origin, mut saved) = (None, None);
    let (iterates, pass) = match start {
        Start::Zero => (Iterates::at(Mat::zeros(rows, columns)), Pass::first(columns, mu)),
        Start::Weights(weights) => (Iterates::at(origin.insert(weights).clone()), Pass::first(columns, mu)),
        Start::Resume(from) => {
            let (header, iterates, pass) = restore(from, (rows, columns))?;
            saved = Some(header);
            (iterates, pass)
        }
    };
    let norms = problem.target_norms();
    let mut method = SketchMethod {
        problem,
        norms: norms.clone(),
        tolerance: budget.tolerance,
        batches: row_batches(rows, size, Sampling::Permutation, options.seed),
        step: saved.as_ref().map_or(0, |header| header.step),
        options,
        mu,
        iterates,
        pass,
        origin,
        rows: Vec::new(),
        gradient: Mat::zeros(size, columns),
        seen: Mat::zeros(size, columns),
    };
    let terms = Terms { rows, norms, restarts: options.restarts, saved };
    // The steps of blocks are known; what may be halved is a factor of them.
    descend(&mut method, terms, || Ok(1.0), budget, observer)
}

/// What is known of the pass under way, and of which columns there is still something to do.
#[derive(Clone, Debug, PartialEq)]
struct Pass {
    /// Squares of residuals so far, for each right-hand side.
    squares: Vec<f64>,
    /// The largest relative residual of the pass before; infinite before there is one.
    residual: f64,
    /// None without acceleration.
    adaptation: Option<Adaptation>,
    /// Right-hand sides in the order of the iterates' columns.
    order: Vec<usize>,
    /// How many of them are unsolved: the first.
    active: usize,
}

impl Pass {
    fn first(columns: usize, mu: Option<f64>) -> Self {
        Self {
            squares: vec![0.0; columns],
            residual: f64::INFINITY,
            adaptation: mu.map(Adaptation::from),
            order: (0..columns).collect(),
            active: columns,
        }
    }
}

/// Steps of blocks.
struct SketchMethod<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    options: &'a SketchAndProjectOptions,
    norms: Vec<f64>,
    tolerance: f64,
    batches: Batches,
    step: usize,
    /// μ to begin with.
    mu: Option<f64>,
    iterates: Iterates<T>,
    pass: Pass,
    /// Where it begins, if not at zero.
    origin: Option<Mat<T>>,
    rows: Vec<usize>,
    /// Of the unsolved columns, in their order (b x s).
    gradient: Mat<T>,
    /// The same by right-hand sides; zeros of those that are solved.
    seen: Mat<T>,
}

impl<T: Real> SketchMethod<'_, T> {
    /// After the last block of a pass: which columns are solved, and what the residuals say of μ.
    fn judge_pass(&mut self) {
        let seen = self.batches.per_epoch() * self.batches.size();
        let share = self.problem.shape().0 as f64 / seen as f64;
        let relative = |j: usize| {
            let norm = if self.norms[j] > 0.0 { self.norms[j] } else { 1.0 };
            (share * self.pass.squares[j]).sqrt() / norm
        };
        let (mut now, mut largest) = (0.0f64, 0.0f64);
        let mut column = 0;
        while column < self.pass.active {
            let residual = relative(self.pass.order[column]);
            largest = largest.max(residual);
            // What is no number is not solved.
            if residual > self.tolerance || residual.is_nan() {
                now = now.max(residual);
                column += 1;
                continue;
            }
            let last = self.pass.active - 1;
            self.iterates.rest(column);
            self.iterates.swap(column, last);
            self.pass.order.swap(column, last);
            self.pass.active = last;
        }
        if self.options.acceleration == Acceleration::Adaptive
            && let Some(adaptation) = &mut self.pass.adaptation
            && adaptation.judge(now, self.problem.shape().0 as f64 / self.batches.size() as f64)
        {
            (0..self.pass.active).for_each(|column| self.iterates.rest(column));
            self.iterates.mixed = 0.0;
        }
        self.pass.residual = largest;
        self.pass.squares.fill(0.0);
    }
}

impl<T: Real> StochasticMethod<T> for SketchMethod<'_, T> {
    fn name(&self) -> &'static str {
        METHOD
    }

    fn steps(&self) -> usize {
        self.step
    }

    fn gradient(&mut self) -> Result<&Mat<T>, GpError> {
        self.rows = self.batches.batch(self.step);
        let (system, active) = (self.problem.system, self.pass.active);
        let ahead = self.iterates.ahead.subcols(0, active);
        system.matrix().apply_rows(&self.rows, ahead, self.gradient.as_mut().subcols_mut(0, active));
        let order = &self.pass.order;
        self.problem.add_rest(&self.rows, ahead, |column| order[column], &mut self.gradient);
        self.seen.fill(T::ZERO);
        for (j, &right) in order[..active].iter().enumerate() {
            let own = self.gradient.col_as_slice(j);
            self.seen.col_as_slice_mut(right).copy_from_slice(own);
            self.pass.squares[right] += own.iter().map(|g| g.to_f64().powi(2)).sum::<f64>();
        }
        Ok(&self.seen)
    }

    fn descend(&mut self, factor: f64) -> Result<(), GpError> {
        let streams = Streams::new(self.options.seed).child("gp/sketch", self.step as u64);
        let seed = streams.stream("seed").random();
        let block = Block::of(self.problem.system, &self.rows, self.options.rank, seed)?;
        let gradient = self.gradient.subcols(0, self.pass.active);
        let mut directions = Mat::zeros(gradient.nrows(), gradient.ncols());
        block.direction(gradient, directions.as_mut());
        directions *= faer::Scale(T::from_f64(factor));
        let blocks = self.problem.shape().0 as f64 / self.rows.len() as f64;
        let momentum = self.pass.adaptation.map(|own| Momentum::new(own.mu, blocks));
        self.iterates.step(&self.rows, directions.as_ref(), momentum);
        self.step += 1;
        if self.step.is_multiple_of(self.batches.per_epoch()) {
            self.judge_pass();
        }
        Ok(())
    }

    fn residual(&self) -> Option<f64> {
        Some(self.pass.residual).filter(|residual| residual.is_finite())
    }

    fn solved(&self) -> bool {
        self.pass.active == 0
    }

    fn reset(&mut self) {
        let (rows, columns) = self.problem.shape();
        self.iterates = Iterates::at(self.origin.clone().unwrap_or_else(|| Mat::zeros(rows, columns)));
        self.pass = Pass::first(columns, self.mu);
        self.step = 0;
    }

    fn weights(&self) -> Mat<T> {
        let (rows, columns) = self.problem.shape();
        let mut out = Mat::zeros(rows, columns);
        for (column, &right) in self.pass.order.iter().enumerate() {
            let own = out.col_as_slice_mut(right).iter_mut();
            own.zip(self.iterates.weights(column)).for_each(|(o, w)| *o = w);
        }
        out
    }

    fn save(&self) -> (Vec<(String, Mat<T>)>, Vec<u64>) {
        let Iterates { ahead, velocity, scale, mixed } = &self.iterates;
        let Pass { squares, residual, adaptation, order, active } = &self.pass;
        let blocks = BLOCKS.into_iter().zip([ahead, velocity]).map(|(name, m)| (name.into(), m.clone()));
        let Adaptation { mu, falling, recent } = adaptation.unwrap_or_else(|| Adaptation::from(f64::NAN));
        // Bits, because some formats have no infinity.
        let bits = [*mixed, *scale, *residual, mu].into_iter().chain(recent).chain(squares.iter().copied());
        let counts = [*active, falling].into_iter().chain(order.iter().copied()).map(|count| count as u64);
        (blocks.collect(), counts.chain(bits.map(f64::to_bits)).collect())
    }
}

fn restore<T: Real>(
    saved: SolverState<T>,
    shape: (usize, usize),
) -> Result<(StateHeader, Iterates<T>, Pass), GpError> {
    let (header, [ahead, velocity]) = saved.open(METHOD, BLOCKS, shape)?;
    let s = shape.1;
    let wrong = |problem: &str| GpError::State { problem: problem.into() };
    const RECENT: usize = Adaptation::REMEMBERED;
    if header.integers.len() != 2 * s + 6 + RECENT {
        return Err(wrong("its numbers are not those of as many right-hand sides"));
    }
    let (counts, bits) = header.integers.split_at(s + 2);
    let counts: Vec<usize> = counts.iter().map(|&count| count as usize).collect();
    let (active, falling, order) = (counts[0], counts[1], counts[2..].to_vec());
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if active > s || !sorted.into_iter().eq(0..s) {
        return Err(wrong("its order of right-hand sides is none"));
    }
    let numbers: Vec<f64> = bits.iter().map(|&b| f64::from_bits(b)).collect();
    let [mixed, scale, residual, mu] = std::array::from_fn(|k| numbers[k]);
    let recent: [f64; RECENT] = std::array::from_fn(|k| numbers[4 + k]);
    let moving = (0.0..1.0).contains(&mixed) && scale > 0.0 && scale.is_finite();
    if !moving || residual.is_nan() || recent.iter().any(|r| r.is_nan()) {
        return Err(wrong("its acceleration is none"));
    }
    let adaptation = (!mu.is_nan()).then_some(Adaptation { mu, falling, recent });
    let pass = Pass { squares: numbers[4 + RECENT..].to_vec(), residual, adaptation, order, active };
    Ok((header, Iterates { ahead, velocity, scale, mixed }, pass))
}
