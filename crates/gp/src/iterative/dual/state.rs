//! The iterates of dual descent, rows together, velocity and average brought up to date only where a batch touches them.

use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::vectorised::{add_scaled, dispatch};

/// Rows that one thread works on at a time in the pass over all rows.
const CHUNK: usize = 2048;

/// Powers of the momentum that are kept in a table; of older rows, which only a momentum near 1 has, they are computed.
const KEPT: usize = 1 << 12;

/// Momentum ρ and averaging weight χ, with a table of powers.
#[derive(Clone, Debug)]
pub(super) struct Decay {
    momentum: f64,
    /// χ; 1 means that the last iterate is the average.
    weight: f64,
    /// Ages below which a velocity still matters.
    ages: usize,
    /// `ρ^(2 + age)` for the first of these ages, at most [`KEPT`].
    powers: Vec<f64>,
}

impl Decay {
    pub(super) fn new<T: Real>(momentum: f64, weight: f64) -> Self {
        // All that a velocity still adds to P after `age` steps is ρ^(2 + age) / (1 - ρ) of it.
        let negligible = T::EPSILON.to_f64() * (1.0 - momentum);
        let ages =
            if momentum == 0.0 { 0 } else { (negligible.ln() / momentum.ln()).ceil().max(1.0) as usize };
        let powers = (0..ages.min(KEPT)).map(|age| power(momentum, age)).collect();
        Self { momentum, weight, ages, powers }
    }

    /// For `age` steps without a touch: `(ρ^age, (1 - χ)^age, 1 - (1 - χ)^age, χ ρ/(1 - ρ) Σ_{j=1..age} (1 - χ)^(age - j) ρ^j)`.
    fn factors(&self, age: usize) -> (f64, f64, f64, f64) {
        let (rho, chi, steps) = (self.momentum, self.weight, age as f64);
        if age == 0 {
            return (1.0, 1.0, 0.0, 0.0);
        }
        let log_keep = (-chi).ln_1p();
        let (decayed, keep) = (rho.powf(steps), (steps * log_keep).exp());
        let gap = 1.0 - chi - rho;
        let sum = if gap.abs() < 1e-7 { steps * decayed } else { rho * (keep - decayed) / gap };
        (decayed, keep, -(steps * log_keep).exp_m1(), chi * rho / (1.0 - rho) * sum)
    }
}

/// `ρ^(2 + age)`
fn power(momentum: f64, age: usize) -> f64 {
    momentum.powf(2.0 + age as f64)
}

/// P, v and ᾱ after some steps. Row i of v and ᾱ is as it was after step `touched[i]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DualState<T> {
    columns: usize,
    lookahead: Vec<T>,
    velocity: Vec<T>,
    average: Vec<T>,
    touched: Vec<usize>,
    step: usize,
    /// Whether it began at zero, a start whose weight in the average is taken out.
    from_zero: bool,
}

impl<T: Real> DualState<T> {
    /// At rest at `start`, or at zero (n x s).
    pub(super) fn new(shape: (usize, usize), start: Option<MatRef<'_, T>>) -> Self {
        let (n, s) = shape;
        let place = start.map_or_else(|| vec![T::ZERO; n * s], to_rows);
        Self {
            columns: s,
            average: place.clone(),
            lookahead: place,
            velocity: vec![T::ZERO; n * s],
            touched: vec![0; n],
            step: 0,
            from_zero: start.is_none(),
        }
    }

    /// From its parts ([`DualState::parts`]).
    pub(super) fn from_parts(blocks: [Mat<T>; 3], touched: Vec<usize>, step: usize, from_zero: bool) -> Self {
        let columns = blocks[0].ncols();
        let [lookahead, velocity, average] = blocks.map(|block| to_rows(block.as_ref()));
        Self { columns, lookahead, velocity, average, touched, step, from_zero }
    }

    /// Look-ahead, velocities, averages (n x s each), and when rows were touched.
    pub(super) fn parts(&self) -> ([Mat<T>; 3], &[usize], bool) {
        let blocks = [&self.lookahead, &self.velocity, &self.average];
        (blocks.map(|rows| self.view(rows).to_owned()), &self.touched, self.from_zero)
    }

    fn view<'a>(&self, rows: &'a [T]) -> MatRef<'a, T> {
        MatRef::from_row_major_slice(rows, self.touched.len(), self.columns)
    }

    /// P, n x s: where the next gradient is wanted.
    pub(super) fn lookahead(&self) -> MatRef<'_, T> {
        self.view(&self.lookahead)
    }

    /// Steps taken.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    /// Takes a step along `-scale residuals` (r x s) of the rows `batch`, in which a row may occur twice.
    pub(super) fn step_along(&mut self, decay: &Decay, batch: &[usize], residuals: &Mat<T>, scale: f64) {
        self.step += 1;
        let (step, s) = (self.step, self.columns);
        let (rho, chi) = (T::from_f64(decay.momentum), T::from_f64(decay.weight));
        let keep_one = T::from_f64(1.0 - decay.weight);
        let limit = T::from_f64(decay.momentum * decay.momentum / (1.0 - decay.momentum));
        let scale = T::from_f64(scale);
        for (a, &i) in batch.iter().enumerate() {
            let row = i * s..(i + 1) * s;
            let (ahead, velocity, average) =
                (&mut self.lookahead[row.clone()], &mut self.velocity[row.clone()], &mut self.average[row]);
            if self.touched[i] == step {
                for c in 0..s {
                    let push = scale * residuals[(a, c)];
                    velocity[c] -= push;
                    ahead[c] -= (T::ONE + rho) * push;
                    average[c] -= chi * push;
                }
                continue;
            }
            let (decayed, keep, gain, lag) = decay.factors(step - 1 - self.touched[i]);
            let [decayed, keep, gain, lag] = [decayed, keep, gain, lag].map(T::from_f64);
            dispatch(
                #[inline(always)]
                || {
                    for c in 0..s {
                        let (old, place) = (velocity[c], ahead[c]);
                        let now = old * decayed;
                        let goal = now.mul_add(limit, place);
                        let before = keep * average[c] + gain * goal - lag * old;
                        let new = rho * now - scale * residuals[(a, c)];
                        let alpha = place - rho * now + new;
                        ahead[c] = alpha + rho * new;
                        velocity[c] = new;
                        average[c] = chi * alpha + keep_one * before;
                    }
                },
            );
            self.touched[i] = step;
        }
        self.drift(decay);
    }

    /// Moves P of all rows that were not touched in this step: `P += ρ² v`.
    fn drift(&mut self, decay: &Decay) {
        let (step, s) = (self.step, self.columns);
        let powers: Vec<T> = decay.powers.iter().map(|&p| T::from_f64(p)).collect();
        let work = |ahead: &mut [T], velocity: &[T], touched: &[usize]| {
            dispatch(
                #[inline(always)]
                || {
                    for (i, &at) in touched.iter().enumerate() {
                        // Rows of this step's batch are current; rows never touched have no velocity.
                        if at == step || at == 0 || step - 1 - at >= decay.ages {
                            continue;
                        }
                        let age = step - 1 - at;
                        let factor = powers.get(age).copied();
                        let factor = factor.unwrap_or_else(|| T::from_f64(power(decay.momentum, age)));
                        let row = i * s..(i + 1) * s;
                        add_scaled(factor, &velocity[row.clone()], &mut ahead[row]);
                    }
                },
            );
        };
        let length = CHUNK * s;
        if self.touched.len() * s < 1 << 16 {
            work(&mut self.lookahead, &self.velocity, &self.touched);
        } else {
            parallel::chunks(&mut self.lookahead, length, 1, |chunk, ahead| {
                let rows = chunk * CHUNK..chunk * CHUNK + ahead.len() / s;
                work(ahead, &self.velocity[rows.start * s..rows.end * s], &self.touched[rows]);
            });
        }
    }

    /// ᾱ of all rows, n x s; with the weight that a start at zero still has taken out.
    pub(super) fn average(&self, decay: &Decay) -> Mat<T> {
        let limit = decay.momentum * decay.momentum / (1.0 - decay.momentum);
        let mut out = Mat::zeros(self.touched.len(), self.columns);
        let bias = if self.from_zero && self.step > 0 {
            -(self.step as f64 * (-decay.weight).ln_1p()).exp_m1()
        } else {
            1.0
        };
        for (i, &at) in self.touched.iter().enumerate() {
            let (decayed, keep, gain, lag) = decay.factors(self.step - at);
            for c in 0..self.columns {
                let k = i * self.columns + c;
                let old = self.velocity[k].to_f64();
                let goal = self.lookahead[k].to_f64() + limit * old * decayed;
                let average = keep * self.average[k].to_f64() + gain * goal - lag * old;
                out[(i, c)] = T::from_f64(average / bias);
            }
        }
        out
    }
}

/// Entries row by row.
fn to_rows<T: Real>(matrix: MatRef<'_, T>) -> Vec<T> {
    let mut rows = Vec::with_capacity(matrix.nrows() * matrix.ncols());
    for i in 0..matrix.nrows() {
        rows.extend((0..matrix.ncols()).map(|j| matrix[(i, j)]));
    }
    rows
}
