//! The weight of total variation.

use crate::TomographyError;
use crate::error::same_count;
use crate::total_variation::{Penalised, PrimalDualOptions, TotalVariation, reconstruct};
use faer::{MatMut, MatRef};
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Weights that are tried, beside the mean squared error of measurements of a picture of brightness 1.
const TRIED: [f64; 8] = [1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2];

/// Share of the measurements that judge.
const SHARE: f64 = 0.1;

/// How far a trial is pursued: a ranking needs no more.
const TRIAL: (f64, usize) = (1e-2, 300);

/// One weight that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightTrial {
    /// The weight.
    pub weight: f64,
    /// Mean squared error on the measurements that were held back.
    pub error: f64,
    /// How far the search was from its minimum, relative to the loss.
    pub gap: f64,
}

/// What was chosen, and among what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldBack {
    /// The weight with the lowest error.
    pub weight: f64,
    /// Measurements that judged.
    pub measurements: usize,
    /// All that were tried.
    pub trials: Vec<WeightTrial>,
    /// Whether the best was the smallest or the largest that was tried: then a better one may lie beyond.
    pub at_edge: bool,
}

/// Where the trials stand: plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trials {
    /// Those that are made.
    pub made: Vec<WeightTrial>,
    /// The picture of the last one, from which the next begins; empty before the first.
    pub picture: Vec<f64>,
}

impl Trials {
    /// How many there will be.
    pub const ALL: usize = TRIED.len();
    /// Steps of all of them together, at most.
    pub(super) const STEPS: u64 = (TRIED.len() * TRIAL.1) as u64;
}

/// Some rows of an operator; the others count nothing.
struct SelectedRows<'a> {
    whole: &'a dyn LinearOperator<f64>,
    rows: Vec<usize>,
}

impl LinearOperator<f64> for SelectedRows<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.rows.len(), self.whole.shape().1)
    }

    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        let all = self.whole.multiply(input);
        for j in 0..input.ncols() {
            self.rows.iter().enumerate().for_each(|(i, row)| output[(i, j)] = all[(*row, j)]);
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply_transpose(self.shape(), input, &output);
        let mut all = faer::Mat::zeros(self.whole.shape().0, input.ncols());
        for j in 0..input.ncols() {
            self.rows.iter().enumerate().for_each(|(i, row)| all[(*row, j)] = input[(i, j)]);
        }
        self.whole.apply_transpose(all.as_ref(), output);
    }
}

/// The weight of total variation under which the picture of most measurements best predicts a tenth of them, drawn at random; from the trials of an earlier run on, where there are some. For pictures of brightness 1.
///
/// Cost: eight searches of at most 300 projections and back-projections.
///
/// # Errors
/// [`TomographyError::Interrupted`]; those of the searches.
pub fn choose_weight(
    projector: &dyn LinearOperator<f64>,
    sinogram: &[f64],
    shape: &[usize],
    first: &[f64],
    seed: u64,
    saved: Option<Trials>,
    watch: &mut dyn FnMut(&Trials) -> Signal,
) -> Result<HeldBack, TomographyError> {
    let mut rng = Streams::new(seed).stream("tomography/held back");
    let (mut rows, mut judges) = (Vec::new(), Vec::new());
    for i in 0..sinogram.len() {
        if rng.random_bool(SHARE) { judges.push(i) } else { rows.push(i) }
    }
    if judges.is_empty() || rows.is_empty() {
        let expected = "given: there are too few measurements to hold some of them back";
        return Err(TomographyError::Option {
            name: "the weight of total variation",
            value: f64::NAN,
            expected,
        });
    }
    let own: Vec<f64> = rows.iter().map(|i| sinogram[*i]).collect();
    let kept = SelectedRows { whole: projector, rows };
    let options = PrimalDualOptions { tolerance: TRIAL.0, steps: TRIAL.1, ..PrimalDualOptions::default() };
    let variation = TotalVariation::sum(shape)?;
    let Trials { mut made, mut picture } = saved.unwrap_or_default();
    if made.is_empty() {
        picture = first.to_vec();
    }
    same_count("pixels of the trials that were kept", first.len(), picture.len())?;
    // From rough to smooth, each from the last one's picture.
    for weight in TRIED.into_iter().skip(made.len()) {
        let problem = Penalised::new(&kept, &own, &variation, weight)?;
        let found = reconstruct(&problem, &picture, None, &options, &mut |_, _| Signal::Continue)?;
        let gap = found.gap / found.value.max(f64::MIN_POSITIVE);
        let all = projector.multiply(MatRef::from_column_major_slice(&found.image, found.image.len(), 1));
        let error = judges.iter().map(|i| (all[(*i, 0)] - sinogram[*i]).powi(2)).sum::<f64>();
        made.push(WeightTrial { weight, error: error / judges.len() as f64, gap });
        let trials = Trials { made, picture: found.image };
        if watch(&trials) == Signal::Stop {
            return Err(TomographyError::Interrupted);
        }
        Trials { made, picture } = trials;
    }
    let trials = made;
    let best =
        (0..trials.len()).fold(0, |best, i| if trials[i].error < trials[best].error { i } else { best });
    let at_edge = best == 0 || best + 1 == trials.len();
    Ok(HeldBack { weight: trials[best].weight, measurements: judges.len(), trials, at_edge })
}
