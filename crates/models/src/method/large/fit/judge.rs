//! Rows that are held back, and what they say of a solver on its way.

use crate::prepare::TableRows;
use crate::record::CONVERGED;
use crate::{CheckScores, CheckedOn, FitCheck, FitRequest, ModelError, Predictor, Recalibration, Want};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_metrics::Gaussians;

/// Rows that a fit does not see.
pub(crate) struct HeldBack {
    inputs: Mat<f64>,
    targets: Vec<f64>,
    /// Known noise variances.
    noise: Option<Vec<f64>>,
    /// Rows that were drawn as well and went back to their duplicates.
    training_duplicates: usize,
    /// Duplicates of its rows that the fit does not see either.
    duplicates: usize,
}

/// Standardised predictions of the held-back rows.
#[derive(Clone)]
pub(crate) struct HeldBackPredictions {
    pub(crate) mean: Vec<f64>,
    /// Of new observations.
    pub(crate) variance: Vec<f64>,
}

impl HeldBack {
    /// Draws `count` rows and leaves the others to learn from; nothing where that would leave none.
    pub(crate) fn draw<D: TableRows>(
        data: D,
        count: usize,
        seed: u64,
    ) -> Result<(D, Option<Self>), ModelError> {
        let n = data.rows();
        if count == 0 || count >= n {
            return Ok((data, None));
        }
        let (rest, held, split) = data.parted(count, &mut Streams::new(seed).stream("model/held-back"))?;
        let own = Self {
            inputs: held.inputs().to_owned(),
            targets: held.targets().col(0).iter().copied().collect(),
            noise: held.noise_variances().map(<[f64]>::to_vec),
            training_duplicates: split.training_duplicates,
            duplicates: split.duplicates,
        };
        Ok((rest, Some(own)))
    }

    /// Its first rows, which are as random as all.
    pub(crate) fn first(&self, count: usize) -> Self {
        let count = count.min(self.rows());
        Self {
            inputs: self.inputs.subrows(0, count).to_owned(),
            targets: self.targets[..count].to_vec(),
            noise: self.noise.as_ref().map(|noise| noise[..count].to_vec()),
            training_duplicates: self.training_duplicates,
            duplicates: self.duplicates,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.targets.len()
    }

    pub(crate) fn inputs(&self) -> &Mat<f64> {
        &self.inputs
    }

    pub(crate) fn predictions(&self, predictor: &dyn Predictor) -> Result<HeldBackPredictions, ModelError> {
        let found = predictor.latent(self.inputs.as_ref().into(), &Want::default())?;
        let noise = predictor.noise_variance().unwrap_or(0.0);
        let known = |i: usize| self.noise.as_ref().map_or(0.0, |v| v[i]);
        let variance = |i: usize| found.variance(i, 0) + noise + known(i);
        let variance = (0..found.points()).map(variance).collect();
        Ok(HeldBackPredictions { mean: found.mean, variance })
    }

    /// `(y - m) / s` of each row.
    pub(crate) fn residuals(&self, predictions: &HeldBackPredictions) -> Result<Vec<f64>, ModelError> {
        let own = Gaussians::new(&predictions.mean, &predictions.variance, &self.targets)?;
        Ok(own.standardised_residuals())
    }

    /// `-log p(y)` of each row, in nats.
    pub(crate) fn surprises(&self, predictions: &HeldBackPredictions) -> Vec<f64> {
        let of = |((m, v), y): ((&f64, &f64), &f64)| {
            0.5 * ((2.0 * std::f64::consts::PI * v).ln() + (y - m).powi(2) / v)
        };
        predictions.mean.iter().zip(&predictions.variance).zip(&self.targets).map(of).collect()
    }

    pub(crate) fn scores(&self, predictions: &HeldBackPredictions) -> Result<CheckScores, ModelError> {
        CheckScores::of(&predictions.mean, &predictions.variance, &self.targets)
    }

    /// How good such predictions are, that moved by so much at the end.
    pub(crate) fn check(
        &self,
        predictions: &HeldBackPredictions,
        drift: Option<f64>,
    ) -> Result<FitCheck, ModelError> {
        let check = FitCheck::new(CheckedOn::HeldBack, self.rows(), self.scores(predictions)?, drift);
        Ok(FitCheck { training_duplicates: self.training_duplicates, duplicates: self.duplicates, ..check })
    }

    /// The mean negative log density of these rows where `request` would have the intervals of such predictions recalibrated; none where they stay. Posteriors are compared by what users get: right means under
    /// widths that are wrong by one factor are worth more than poor means under right ones.
    pub(crate) fn recalibrated_nll(
        &self,
        request: &FitRequest,
        predictions: &HeldBackPredictions,
    ) -> Result<Option<f64>, ModelError> {
        let check = self.check(predictions, None)?;
        if !check.scores.nll.is_finite() || !check.before().may_ask_for(request.validation.calibrate) {
            return Ok(None);
        }
        let found =
            Recalibration::learn(check.asked(request), check.before(), &self.residuals(predictions)?)?;
        Ok(found.map(|(own, _)| own.nll_after))
    }
}

/// Steps between two looks grow by this factor, so that a look is at the last third of the steps so far.
const FACTOR: f64 = 1.5;

/// Predictions that move by less than this between looks, twice in a row, are taken as final.
const STEADY: f64 = 0.03;

/// A solver seen from the held-back rows.
pub(crate) struct EarlyStopping {
    next: usize,
    last: Option<(usize, HeldBackPredictions)>,
    /// Drift and change of deviations at each look.
    looks: Vec<ValidationChange>,
    /// Seconds and predicted means of each look.
    seen: Vec<(f64, Vec<f64>)>,
}

#[derive(Clone, Copy, Debug)]
struct ValidationChange {
    /// How far means moved since the last look, in predicted standard deviations (root mean square).
    drift: f64,
    /// How far standard deviations moved, relative to themselves.
    width: f64,
    nll: f64,
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Nothing yet.
    Open,
    /// Nothing moves any more.
    Steady,
    /// At this pace it will not be as good as what is there already.
    Hopeless,
}

impl EarlyStopping {
    /// The first look is after so many steps.
    pub(crate) fn new(first: usize) -> Self {
        Self { next: first.max(1), last: None, looks: Vec::new(), seen: Vec::new() }
    }

    pub(crate) fn is_due(&self, step: usize) -> bool {
        step >= self.next
    }

    /// Looks at predictions after `step` steps and so many seconds, of which `spent` (a share of steps or time, whichever is more) are used up. `to_beat` is the score of
    /// something simpler, `nll` that of `now`, both as users would get them; `settled` says whether no more of the
    /// system is left than is harmless.
    pub(crate) fn observe(
        &mut self,
        (step, seconds): (usize, f64),
        now: HeldBackPredictions,
        nll: f64,
        spent: f64,
        (to_beat, settled): (Option<f64>, bool),
    ) -> Outlook {
        self.next = ((step as f64 * FACTOR).ceil() as usize).max(step + 1);
        if let Some((_, before)) = &self.last {
            let look = ValidationChange { drift: drift(before, &now), width: width(before, &now), nll };
            self.looks.push(look);
        }
        self.seen.push((seconds, now.mean.clone()));
        self.last = Some((step, now));
        match self.looks[..] {
            [.., a, b] if settled && [a, b].iter().all(|l| l.drift < STEADY && l.width < STEADY) => {
                Outlook::Steady
            }
            [.., a, b]
                if spent > 0.4 && to_beat.is_some_and(|goal| is_hopeless(a.nll, b.nll, goal, spent)) =>
            {
                Outlook::Hopeless
            }
            _ => Outlook::Open,
        }
    }

    /// Seconds at the first look from which on means stayed within [`CONVERGED`] deviations of `end`.
    pub(crate) fn reached(&self, end: &HeldBackPredictions) -> Option<f64> {
        let near = |mean: &[f64]| {
            let squares =
                mean.iter().zip(&end.mean).zip(&end.variance).map(|((a, b), v)| (a - b).powi(2) / v);
            (squares.sum::<f64>() / mean.len().max(1) as f64).sqrt() <= CONVERGED
        };
        self.seen.iter().rev().take_while(|(_, mean)| near(mean)).last().map(|(seconds, _)| *seconds)
    }

    /// The drift over the last third of the steps, given predictions at the end: that since the last look, stretched to a whole factor where less than
    /// one lies between.
    pub(crate) fn final_drift(&self, step: usize, end: &HeldBackPredictions) -> Option<f64> {
        let (then, before) = self.last.as_ref()?;
        let passed = (step as f64 / *then as f64).ln() / FACTOR.ln();
        if passed > 0.25 {
            return Some(drift(before, end) / passed.min(1.0));
        }
        self.looks.last().map(|look| look.drift)
    }
}

/// Whether a score that went from `a` to `b` over the last look, and gains as much at each of the looks to come, stays above `goal`. The last look that
/// leaves time for something else decides by what is there.
fn is_hopeless(a: f64, b: f64, goal: f64, spent: f64) -> bool {
    const MARGIN: f64 = 0.02;
    let looks = -spent.ln() / FACTOR.ln();
    let promised = if looks < 1.0 { 0.0 } else { (a - b).max(0.0) * looks };
    b - promised > goal + MARGIN
}

fn drift(before: &HeldBackPredictions, now: &HeldBackPredictions) -> f64 {
    mean_square(before, now, |m, _, now, variance| (now - m).powi(2) / variance)
}

fn width(before: &HeldBackPredictions, now: &HeldBackPredictions) -> f64 {
    mean_square(before, now, |_, v, _, now| ((v / now).sqrt() - 1.0).powi(2))
}

/// The root of a mean over rows of a function of mean and variance before and now.
fn mean_square(
    before: &HeldBackPredictions,
    now: &HeldBackPredictions,
    of: impl Fn(f64, f64, f64, f64) -> f64,
) -> f64 {
    let sum: f64 = (0..now.mean.len())
        .map(|i| of(before.mean[i], before.variance[i], now.mean[i], now.variance[i]))
        .sum();
    (sum / now.mean.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Validation;
    use posterior_gp::Observations;

    fn at(mean: f64, variance: f64) -> HeldBackPredictions {
        HeldBackPredictions { mean: vec![mean; 10], variance: vec![variance; 10] }
    }

    #[test]
    fn rows_are_held_back_once_and_the_rest_is_learned_from() {
        let x = Mat::from_fn(50, 1, |i, _| i as f64);
        let data = Observations::new(x.clone(), x, Some(vec![0.1; 50])).unwrap();
        let (rest, held) = HeldBack::draw(data.clone(), 12, 3).unwrap();
        let held = held.unwrap();
        assert_eq!((rest.rows(), held.rows()), (38, 12));
        let mut all: Vec<f64> =
            rest.inputs().col(0).iter().copied().chain(held.targets.iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, (0..50).map(f64::from).collect::<Vec<_>>());
        assert!(HeldBack::draw(data.clone(), 0, 3).unwrap().1.is_none());
        assert!(HeldBack::draw(data, 50, 3).unwrap().1.is_none());
    }

    /// Normal targets, predicted well under widths that are a third of what they should be, and by nothing: the first are worth more once their widths are mended.
    #[test]
    fn predictions_are_worth_what_their_recalibrated_intervals_are() {
        let n = 201;
        let z: Vec<f64> =
            (0..n).map(|i| crate::calibration::quantile(None, (i as f64 + 0.5) / n as f64)).collect();
        let held = HeldBack {
            inputs: Mat::zeros(n, 1),
            targets: z.clone(),
            noise: None,
            training_duplicates: 0,
            duplicates: 0,
        };
        let mean = (0..n).map(|i| z[i] - 0.3 * z[i * 77 % n]).collect();
        let narrow = HeldBackPredictions { mean, variance: vec![0.01; n] };
        let nothing = HeldBackPredictions { mean: vec![0.0; n], variance: vec![1.0; n] };
        let request = FitRequest::default();
        let before = |own: &HeldBackPredictions| held.scores(own).unwrap().nll;
        assert!(before(&narrow) > before(&nothing) + 1.0);
        assert_eq!(held.recalibrated_nll(&request, &nothing).unwrap(), None);
        let after = held.recalibrated_nll(&request, &narrow).unwrap().unwrap();
        // Of normal residuals with a deviation of 0.3, under a factor that 201 rows make a little larger than 3.
        let right = 0.5 * (2.0 * std::f64::consts::PI * 0.09).ln() + 0.5;
        assert!((right - 0.01..right + 0.02).contains(&after), "{after} {right}");
        let asked = FitRequest {
            validation: Validation { calibrate: crate::options::CalibrateName::None, ..request.validation },
            ..request
        };
        assert_eq!(held.recalibrated_nll(&asked, &narrow).unwrap(), None);
    }

    #[test]
    fn looks_tell_steady_from_hopeless() {
        // Means that move by 0.2 standard deviations (variance 0.25) each time.
        let mut moving = EarlyStopping::new(100);
        assert!(!moving.is_due(99) && moving.is_due(100));
        for (k, step) in [100, 150, 225].into_iter().enumerate() {
            let own = at(0.1 * k as f64, 0.25);
            assert_eq!(moving.observe((step, step as f64), own, 1.0, 0.1, (None, true)), Outlook::Open);
        }
        // Looks at 0, 0.1 and 0.2: how many of the last ones lie within a tenth of a deviation of the end.
        let reached = [(0.24, 0.25), (0.11, 1.0), (0.05, 4.0), (0.3, 0.25)]
            .map(|(mean, variance)| moving.reached(&at(mean, variance)));
        assert_eq!(reached, [Some(225.0), Some(150.0), Some(100.0), None]);
        assert!(moving.is_due(338) && !moving.is_due(337));
        // At a step half-way to the next look what moved is stretched.
        let passed = (275f64 / 225.0).ln() / 1.5f64.ln();
        let found = moving.final_drift(275, &at(0.25, 0.25)).unwrap();
        assert!((found - 0.1 / passed).abs() < 1e-12, "{found}");
        // Directly behind a look, that look counts.
        assert!((moving.final_drift(226, &at(0.2, 0.25)).unwrap() - 0.2).abs() < 1e-12);
        let mut still = EarlyStopping::new(10);
        let outlooks: Vec<Outlook> = [10, 15, 23]
            .into_iter()
            .map(|s| still.observe((s, 0.0), at(1.0, 1.0), 0.5, 0.1, (None, true)))
            .collect();
        assert_eq!(outlooks, [Outlook::Open, Outlook::Open, Outlook::Steady]);
        // Deviations that still shrink are not steady.
        let mut shrinking = EarlyStopping::new(10);
        let shrunk: Vec<Outlook> = [10, 15, 23]
            .into_iter()
            .map(|s| shrinking.observe((s, 0.0), at(1.0, 10.0 / s as f64), 0.5, 0.1, (None, true)))
            .collect();
        assert_eq!(shrunk[2], Outlook::Open);
        // Half is spent, 1.7 looks are left, and each gains 0.05: from 1.0 it will not get to 0.5, but to 0.95.
        let run = |to_beat| {
            let mut stopping = EarlyStopping::new(100);
            let mut last = Outlook::Open;
            for (k, step) in [100, 150, 225].into_iter().enumerate() {
                last = stopping.observe(
                    (step, 0.0),
                    at(k as f64, 1.0),
                    1.1 - 0.05 * k as f64,
                    0.5,
                    (to_beat, true),
                );
            }
            last
        };
        // Where less than a look is left, only what is there counts.
        assert!(is_hopeless(1.5, 1.0, 0.9, 0.7) && !is_hopeless(1.5, 1.0, 0.9, 0.5));
        assert_eq!(
            (run(Some(0.5)), run(Some(0.95)), run(None)),
            (Outlook::Hopeless, Outlook::Open, Outlook::Open)
        );
    }
}
