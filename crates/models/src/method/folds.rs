//! Rows that are predicted by what was learned without them: hyperparameters that have seen a row fit it better than rows to come.

use crate::rows::{LeftOut, Prints, folds, mean_and_error};
use crate::{FitStage, ModelError};
use posterior_data::{Feature, Reading, Schema, Split};
use posterior_gp::exact::{ExactGp, ExactPosterior, FitOptions, fit};
use posterior_gp::{Observations, Parting, Posterior};
use posterior_notes::fixes::TIME;
use posterior_optim::{Observer, Parameters, Reason};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// What comes of folds.
pub(crate) struct FoundRows {
    /// Rows that were predicted; none where the search was interrupted.
    pub(crate) rows: Option<LeftOut>,
    /// Hyperparameters of the last fold.
    pub(crate) values: Vec<f64>,
}

/// The process of some rows before anything is learned of it.
pub(crate) type Begun<'a> = dyn Fn(&Observations) -> Result<ExactGp, ModelError> + 'a;

/// The rows under the noise that some of them teach, and where a search on these begins; none where noise is no function.
pub(crate) type Taught<'a> = dyn Fn(&[usize], &mut Observer<'_, FitStage>) -> Result<Option<(Observations, Vec<f64>)>, ModelError>
    + 'a;

/// Predicts every row of a fold by a process whose hyperparameters were learned from the other folds; rows of large tables are those of one split. `begin` is the process of some rows before anything is learned of it; noise that depends on the inputs is `taught` by each fold's own rows.
///
/// Where rows may be parted by chance, a row is predicted from all others, of its own fold too: the posterior that new rows meet is of as many rows. Those with groups or times, and tables with duplicate rows, are predicted from other folds alone.
///
/// None where rows are too few, or the search on some of them failed, or one of several was interrupted. Cost: each fold is a search on the rest, and `n³/3` flops.
pub(crate) fn left_out(
    data: &Observations,
    (begin, taught): (&Begun<'_>, &Taught<'_>),
    options: &FitOptions,
    observer: &mut Observer<'_, FitStage>,
) -> Result<Option<FoundRows>, ModelError> {
    let prints = Prints::of(data)?;
    let splits = folds(data.parting(), &prints, options.seed);
    let by_chance = data.parting().is_none() && !prints.copied;
    let (started, all) = (Instant::now(), options.steps.time);
    let (mut out, mut values): (Vec<(usize, [f64; 3])>, _) = (Vec::new(), Vec::new());
    for (fold, split) in splits.iter().enumerate() {
        let left = |all: Duration| all.saturating_sub(started.elapsed()) / (splits.len() - fold) as u32;
        let mut options = options.clone();
        options.steps.time = all.map(left);
        let Ok(taught) = taught(&split.train, observer) else { return Ok(None) };
        let (data, start) = match &taught {
            Some((data, start)) => (data, Some(start)),
            None => (data, None),
        };
        let train = data.select(&split.train)?;
        let mut model = begin(&train)?;
        if let Some(start) = start {
            options.restarts = 1;
            model.set_values(start);
        }
        let stage = FitStage::Fold { number: fold + 1, of: splits.len() };
        let Ok(found) = fit(model, train, &options, &mut |progress, _| observer(progress, &stage)) else {
            return Ok(None);
        };
        values = found.posterior.model().values();
        if found.reason == Reason::Interrupted {
            return Ok((splits.len() == 1).then_some(FoundRows { rows: None, values }));
        }
        let LeftOut { mean, variance, truths, .. } = match by_chance {
            true => {
                let model = found.posterior.model().clone();
                drop(found);
                LeftOut::rows_of(&model.condition(data.clone())?, &split.test)
            }
            false => predicted(&found.posterior, data, split)?,
        };
        let rows = split.test.iter().zip(mean).zip(variance).zip(truths);
        out.extend(rows.map(|(((row, mean), variance), truth)| (*row, [mean, variance, truth])));
    }
    out.sort_by_key(|(row, _)| *row);
    // One of each is judged: a duplicate says nothing more.
    let (all, mut seen) = (out.len(), HashSet::new());
    if prints.copied {
        out.retain(|(row, _)| seen.insert(prints.rows[*row]));
    }
    let duplicates = all - out.len();
    let column = |k: usize| out.iter().map(|(_, own)| own[k]).collect();
    let groups = match data.parting() {
        Some(Parting::Groups(groups)) => Some(out.iter().map(|(row, _)| groups[*row]).collect()),
        _ => None,
    };
    let rows = || LeftOut { mean: column(0), variance: column(1), truths: column(2), groups, duplicates };
    Ok((!out.is_empty()).then(|| FoundRows { rows: Some(rows()), values }))
}

/// By how much more errors have to be, of rows that are newer than all others, than where rows of all times are known: as a factor of the root mean square, and in standard errors.
const WORSE: f64 = 1.5;
const SURE: f64 = 2.0;
/// Fewest rows of which the newest are looked at, and their share.
const FEWEST: usize = 50;
const NEWEST: f64 = 0.2;

/// The newest rows by a column of times, each as the older ones predict it under hyperparameters that have seen all.
pub(crate) struct Newest<'a> {
    /// The column.
    name: &'a str,
    split: Split,
    mean: Vec<f64>,
}

impl<'a> Newest<'a> {
    /// None for few rows, without a column of times, where all are of one time, and where rows are parted as the user said. Cost `n³/6` flops, memory `5n²` bytes.
    pub(crate) fn of(
        data: &Observations,
        schema: &'a Schema,
        model: &ExactGp,
    ) -> Result<Option<Self>, ModelError> {
        let time =
            |feature: &Feature| matches!(feature, Feature::Number { reading: Reading::Time { .. }, .. });
        let column = schema.features.iter().position(time).filter(|_| data.parting().is_none());
        let Some(column) = column else { return Ok(None) };
        let name = schema.features[column].column();
        let times: Vec<f64> = data.inputs().col(column).iter().copied().collect();
        if data.rows() < FEWEST {
            return Ok(None);
        }
        let Ok(split) = Split::newest(&times, NEWEST) else { return Ok(None) };
        let old = model.clone().condition(data.select(&split.train)?)?;
        let mean = predicted(&old, data, &split)?.mean;
        Ok(Some(Self { name, split, mean }))
    }

    /// What a user must know where they are predicted worse than from rows of all times.
    pub(crate) fn in_words(&self, posterior: &ExactPosterior) -> Option<String> {
        let own = LeftOut::rows_of(posterior, &self.split.test);
        let square = |mean: &[f64]| -> Vec<f64> {
            mean.iter().zip(&own.truths).map(|(mean, truth)| (truth - mean).powi(2)).collect()
        };
        let (ahead, between) = (square(&self.mean), square(&own.mean));
        let root = |all: &[f64]| (all.iter().sum::<f64>() / all.len().max(1) as f64).sqrt();
        let differences: Vec<f64> = ahead.iter().zip(&between).map(|(a, b)| a - b).collect();
        let [mean, error] = mean_and_error(&differences);
        (root(&ahead) > WORSE * root(&between) && mean > SURE * error).then(|| {
            format!(
                "newer rows are predicted worse: the newest {} by `{}` have an RMSE of {:.2} (of the standardised target) when only older rows are used, and of {:.2} when all other rows are. If new rows will be newer, use {TIME} {}",
                self.split.test.len(),
                self.name,
                root(&ahead),
                root(&between),
                self.name
            )
        })
    }
}

/// The rows of a fold as new ones of the others.
fn predicted(posterior: &dyn Posterior, data: &Observations, split: &Split) -> Result<LeftOut, ModelError> {
    let test = data.select(&split.test)?;
    let found = posterior.predict(test.inputs())?;
    let mut variance = found.observed_variance();
    if let Some(known) = test.noise_variances() {
        variance.iter_mut().zip(known).for_each(|(variance, known)| *variance += known);
    }
    Ok(LeftOut {
        mean: found.mean.col(0).iter().copied().collect(),
        variance,
        truths: test.targets().col(0).iter().copied().collect(),
        groups: None,
        duplicates: 0,
    })
}
