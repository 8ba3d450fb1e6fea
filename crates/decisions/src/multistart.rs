//! **Maxima of many functions at once**, by many starts each: candidates in the whole box and near good known points, all functions evaluated on
//! the same candidates by one product, the best candidate of every function refined by gradient steps.
//!
//! Source: spec `stochastic_gaussian_processes`, section 19.2. The score of a known point is `y - min y`, so that better points have more neighbours.

use crate::{DecisionError, Functions};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use posterior_optim::{Adaptive, Signal};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// Candidates evaluated at a time: a block of values is this many rows.
const BLOCK: usize = 4096;

/// How maxima are looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultistartOptions {
    /// Rounds; each gives every function one start.
    pub rounds: usize,
    /// Candidates of a round, shared by all functions.
    pub candidates: usize,
    /// Share of the candidates that is spread over the whole box.
    pub uniform_share: f64,
    /// Standard deviation of the neighbours of known points, in lengthscales.
    pub radius: f64,
    /// Gradient steps on every start.
    pub steps: usize,
    /// Their size (Adam), in units of the box.
    pub learning_rate: f64,
}

impl Default for MultistartOptions {
    /// The published settings but for the candidates, of which there are a tenth: 5,000 in each of 30 rounds.
    fn default() -> Self {
        Self { candidates: 5_000, ..Self::published() }
    }
}

impl MultistartOptions {
    /// 30 rounds of 50,000 candidates, a tenth of them uniform, the others within half a lengthscale; 100 steps of 0.001.
    pub fn published() -> Self {
        Self {
            rounds: 30,
            candidates: 50_000,
            uniform_share: 0.1,
            radius: 0.5,
            steps: 100,
            learning_rate: 1e-3,
        }
    }
}

/// What is known: points (n x D) in the unit cube, and a value of each, larger being better.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Points, n x D.
    pub points: MatRef<'a, f64>,
    /// Values (n).
    pub values: &'a [f64],
    /// Lengthscale of each coordinate (D).
    pub lengthscales: &'a [f64],
}

/// The best point found for every function.
#[derive(Clone, Debug, PartialEq)]
pub struct Maxima {
    /// s x D, in the unit cube.
    pub points: Mat<f64>,
    /// Value of each function at its point (s).
    pub values: Vec<f64>,
    /// Whether the observer stopped the search; the points are the best so far.
    pub interrupted: bool,
}

/// Maximises every function over the unit cube. Cost: `rounds · candidates` evaluations of all functions and `steps · rounds` of each on its own, with
/// gradients. The observer is told the rounds and steps done, and all of them.
///
/// # Errors
/// Those of the functions.
///
/// # Panics
/// When there are no functions or no candidates, or numbers of coordinates differ.
pub fn maximise(
    functions: &dyn Functions,
    known: Known<'_>,
    options: &MultistartOptions,
    streams: Streams,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Maxima, DecisionError> {
    let (s, d) = (functions.count(), functions.dimension());
    assert!(
        s > 0 && options.candidates > 0 && options.rounds > 0,
        "there are functions, rounds and candidates"
    );
    assert!(
        known.points.ncols() == d && known.lengthscales.len() == d,
        "one lengthscale for each coordinate"
    );
    let total = options.rounds + options.steps;
    let mut starts = Mat::zeros(options.rounds * s, d);
    let mut heights = vec![f64::NEG_INFINITY; options.rounds * s];
    let (mut rounds, mut interrupted) = (0, false);
    while rounds < options.rounds && !interrupted {
        let candidates = candidates(known, options, streams.child("decisions/candidates", rounds as u64));
        for first in (0..candidates.nrows()).step_by(BLOCK) {
            let block = candidates.subrows(first, BLOCK.min(candidates.nrows() - first));
            let values = functions.values(block)?;
            for j in 0..s {
                let place = rounds * s + j;
                for (i, &value) in values.col(j).iter().enumerate() {
                    if value > heights[place] {
                        heights[place] = value;
                        starts.row_mut(place).copy_from(block.row(i));
                    }
                }
            }
        }
        rounds += 1;
        interrupted = observer(rounds, total) == Signal::Stop;
    }
    let which: Vec<usize> = (0..rounds * s).map(|i| i % s).collect();
    let starts = starts.subrows(0, rounds * s).to_owned();
    heights.truncate(rounds * s);
    let mut best = Best { points: starts.clone(), heights };
    let steps = if interrupted { 0 } else { options.steps };
    let mut ended = |step: usize| observer(options.rounds + step, total) == Signal::Stop;
    interrupted |= climb(functions, starts, &which, options, steps, &mut best, &mut ended)?;
    Ok(best.of_each(s, d, interrupted))
}

/// The highest place seen on every path.
struct Best {
    points: Mat<f64>,
    heights: Vec<f64>,
}

impl Best {
    fn see(&mut self, x: MatRef<'_, f64>, values: &[f64]) {
        for (i, &value) in values.iter().enumerate() {
            if value > self.heights[i] {
                self.heights[i] = value;
                self.points.row_mut(i).copy_from(x.row(i));
            }
        }
    }

    fn of_each(self, s: usize, d: usize, interrupted: bool) -> Maxima {
        let mut maxima = Maxima { points: Mat::zeros(s, d), values: vec![f64::NEG_INFINITY; s], interrupted };
        for (i, &height) in self.heights.iter().enumerate() {
            if height > maxima.values[i % s] {
                maxima.values[i % s] = height;
                maxima.points.row_mut(i % s).copy_from(self.points.row(i));
            }
        }
        maxima
    }
}

/// Adam on all starts together, each on its own function; coordinates stay in the cube. Says whether it was stopped.
fn climb(
    functions: &dyn Functions,
    mut x: Mat<f64>,
    which: &[usize],
    options: &MultistartOptions,
    steps: usize,
    best: &mut Best,
    ended: &mut dyn FnMut(usize) -> bool,
) -> Result<bool, DecisionError> {
    let (count, d) = (x.nrows(), x.ncols());
    let mut adam = Adaptive::adam(options.learning_rate);
    let mut theta: Vec<f64> = (0..d).flat_map(|j| x.col(j).iter().copied().collect::<Vec<_>>()).collect();
    let mut slopes = vec![0.0; count * d];
    for step in 0..steps {
        let (values, gradients) = functions.values_and_gradients_of(x.as_ref(), which)?;
        best.see(x.as_ref(), &values);
        for j in 0..d {
            let column = &mut slopes[j * count..(j + 1) * count];
            column.iter_mut().zip(gradients.col(j).iter()).for_each(|(s, g)| *s = -g);
        }
        adam.step(&mut theta, &slopes, steps);
        for (k, value) in theta.iter_mut().enumerate() {
            *value = value.clamp(0.0, 1.0);
            x[(k % count, k / count)] = *value;
        }
        if ended(step + 1) {
            return Ok(true);
        }
    }
    if steps > 0 {
        let (values, _) = functions.values_and_gradients_of(x.as_ref(), which)?;
        best.see(x.as_ref(), &values);
    }
    Ok(false)
}

/// Points of one round (rows), in the unit cube.
fn candidates(known: Known<'_>, options: &MultistartOptions, streams: Streams) -> Mat<f64> {
    let d = known.points.ncols();
    let mut rng = streams.stream("decisions/points");
    let everywhere = if known.values.is_empty() {
        options.candidates
    } else {
        ((options.candidates as f64 * options.uniform_share.clamp(0.0, 1.0)).ceil() as usize)
            .min(options.candidates)
    };
    let lowest = known.values.iter().copied().fold(f64::INFINITY, f64::min);
    let mut sum = 0.0;
    let cumulative: Vec<f64> = known
        .values
        .iter()
        .map(|v| {
            sum += v - lowest + 1e-6;
            sum
        })
        .collect();
    let mut out = Mat::zeros(options.candidates, d);
    for i in 0..options.candidates {
        if i < everywhere {
            (0..d).for_each(|j| out[(i, j)] = rng.random::<f64>());
            continue;
        }
        let at = rng.random::<f64>() * sum;
        let near = cumulative.partition_point(|c| *c <= at).min(cumulative.len() - 1);
        for j in 0..d {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let value = known.points[(near, j)] + options.radius * known.lengthscales[j] * noise;
            out[(i, j)] = value.clamp(0.0, 1.0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-(x - c)² ` summed over coordinates, with a center of its own for every function, plus ripples.
    struct Hills(Mat<f64>);

    impl Hills {
        fn one(&self, x: &[f64], f: usize) -> (f64, Vec<f64>) {
            let (mut value, mut slope) = (0.0, vec![]);
            for (j, &v) in x.iter().enumerate() {
                let t = v - self.0[(f, j)];
                value -= t * t - 0.01 * (30.0 * t).cos();
                slope.push(-2.0 * t - 0.3 * (30.0 * t).sin());
            }
            (value, slope)
        }
    }

    impl Functions for Hills {
        fn count(&self) -> usize {
            self.0.nrows()
        }
        fn dimension(&self) -> usize {
            self.0.ncols()
        }
        fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, DecisionError> {
            Ok(Mat::from_fn(x.nrows(), self.count(), |i, f| {
                self.one(&x.row(i).iter().copied().collect::<Vec<_>>(), f).0
            }))
        }
        fn values_and_gradients_of(
            &self,
            x: MatRef<'_, f64>,
            which: &[usize],
        ) -> Result<(Vec<f64>, Mat<f64>), DecisionError> {
            let all: Vec<_> = (0..x.nrows())
                .map(|i| self.one(&x.row(i).iter().copied().collect::<Vec<_>>(), which[i]))
                .collect();
            let gradients = Mat::from_fn(x.nrows(), x.ncols(), |i, j| all[i].1[j]);
            Ok((all.into_iter().map(|a| a.0).collect(), gradients))
        }
    }

    #[test]
    fn every_function_finds_its_own_summit() {
        // Two summits inside, one beyond the edge of the cube: its maximum is on the edge.
        let hills = Hills(faer::mat![[0.3, 0.7], [0.9, 0.1], [1.005, 0.5]]);
        let points = faer::mat![[0.5, 0.5], [0.2, 0.6]];
        let known = Known { points: points.as_ref(), values: &[0.0, 1.0], lengthscales: &[0.3, 0.3] };
        let options = MultistartOptions { rounds: 4, candidates: 500, ..MultistartOptions::published() };
        let found = maximise(&hills, known, &options, Streams::new(1), &mut |_, _| Signal::Continue).unwrap();
        for f in 0..3 {
            for j in 0..2 {
                let expected = hills.0[(f, j)].min(1.0);
                assert!((found.points[(f, j)] - expected).abs() < 1e-3, "{f} {j}: {:?}", found.points);
            }
        }
        assert!((found.values[0] - 0.02).abs() < 1e-6 && !found.interrupted);
        // Climbing beats every candidate.
        let flat = MultistartOptions { steps: 0, ..options.clone() };
        let candidates =
            maximise(&hills, known, &flat, Streams::new(1), &mut |_, _| Signal::Continue).unwrap();
        assert!((0..3).all(|f| found.values[f] > candidates.values[f]));
        // The same seed, the same maxima; a stop keeps what there is.
        let again = maximise(&hills, known, &options, Streams::new(1), &mut |_, _| Signal::Continue).unwrap();
        assert_eq!(again, found);
        let stopped = maximise(&hills, known, &options, Streams::new(1), &mut |_, _| Signal::Stop).unwrap();
        assert!(stopped.interrupted && stopped.values.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn neighbours_surround_good_points_and_stay_inside() {
        let points = faer::mat![[0.0, 0.0], [0.8, 1.0]];
        let known = Known { points: points.as_ref(), values: &[-3.0, 5.0], lengthscales: &[0.02, 0.02] };
        let options = MultistartOptions { candidates: 2000, ..MultistartOptions::published() };
        let all = candidates(known, &options, Streams::new(2));
        let near = (200..2000).filter(|&i| (all[(i, 0)] - 0.8).abs() < 0.06 && all[(i, 1)] > 0.9).count();
        // The better point has all but a millionth of the weight; six standard deviations of 0.01 hold nearly everything.
        assert_eq!(near, 1800);
        assert!((0..2000).all(|i| (0..2).all(|j| (0.0..=1.0).contains(&all[(i, j)]))));
        // A tenth is spread over the box: the mean is 1/2 within four standard errors.
        let mean = (0..200).map(|i| all[(i, 0)]).sum::<f64>() / 200.0;
        assert!((mean - 0.5).abs() < 4.0 * (1.0f64 / 12.0 / 200.0).sqrt());
    }
}
