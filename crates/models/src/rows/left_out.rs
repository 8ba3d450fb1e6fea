//! Training rows, each predicted from all others: what an exact process knows in closed form.

use super::split::Prints;
use crate::ModelError;
use posterior_gp::GpError;
use posterior_gp::exact::ExactPosterior;
use posterior_notes::fixes::{FOLDS_10, TEST_FRACTION_FIFTH};
use std::collections::HashMap;

/// Why a model has no such predictions, and the way out.
pub(crate) fn no_leave_one_out() -> ModelError {
    ModelError::Usage(format!(
        "--leave-one-out is in closed form for exact Gaussian processes of numbers alone: for this model leave rows out of the fit (fit {FOLDS_10}, {TEST_FRACTION_FIFTH}) and score them"
    ))
}

/// Rows as all others predict them that are no duplicates of them, one of each.
pub(crate) struct LeftOut {
    pub(crate) mean: Vec<f64>,
    /// Of new observations.
    pub(crate) variance: Vec<f64>,
    pub(crate) truths: Vec<f64>,
    /// The group of each, where rows have groups: what chance does to one row of a group it does to all.
    pub(crate) groups: Option<Vec<usize>>,
    /// Duplicates that were left out with their rows.
    pub(crate) duplicates: usize,
}

/// Of the precision of a copy's noise: what the rest of the table says must not drown in it.
const RESOLVED: f64 = 1e-9;

/// Mean and variance of a row as those say that are no duplicates of it, from what all others say, where so many duplicates (itself among them) have the same noise. They are alike, so that the block of the precision matrix that is theirs is `I / s² + q 1 1ᵀ` with `q = 1/v - 1/s²`, v the variance of one from all others and s² that
/// of the noise, and its inverse follows. None where rounding has taken what the others say.
pub(crate) fn without_duplicates(
    (mean, variance): (f64, f64),
    truth: f64,
    (noise, duplicates): (f64, usize),
) -> Option<(f64, f64)> {
    let shared = 1.0 / variance - 1.0 / noise;
    let rest = 1.0 / noise + duplicates as f64 * shared;
    (rest > RESOLVED / noise)
        .then(|| (truth - (truth - mean) / variance / rest, (1.0 - shared / rest) * noise))
}

impl LeftOut {
    /// Every row is predicted from the others. A duplicate of a row ([`Prints`]) would tell its target, so duplicates are left out together: m duplicates have the posterior of one row of weight m, to rounding. Where noise is
    /// known row by row, a closed form does the same ([`without_duplicates`]). Rows are not judged where rounding has taken the information of the others, or where duplicates differ in their noise.
    ///
    /// Cost `n³/3` flops, and with duplicates twice that of the different rows, beside the posterior.
    pub(crate) fn of(posterior: &ExactPosterior) -> Result<Option<Self>, GpError> {
        let data = posterior.data();
        let n = data.rows();
        let prints = Prints::of(data)?;
        if !prints.copied {
            return Ok(Some(Self::each(posterior)));
        }
        let mut places = HashMap::new();
        let mut groups: Vec<(usize, usize, f64)> = Vec::new();
        for (i, print) in prints.rows.iter().enumerate() {
            let place = *places.entry(*print).or_insert(groups.len());
            if place == groups.len() {
                groups.push((i, 0, 0.0));
            }
            groups[place].1 += 1;
            groups[place].2 += data.weights().map_or(1.0, |weights| weights[i]);
        }
        let first: Vec<usize> = groups.iter().map(|group| group.0).collect();
        let duplicates = n - groups.len();
        let Some(known) = data.noise_variances() else {
            let weights = groups.iter().map(|group| group.2).collect();
            let different =
                posterior.model().clone().condition(data.select(&first)?.with_weights(weights)?)?;
            return Ok(Some(Self { duplicates, ..Self::each(&different) }));
        };
        // No weight makes one row of duplicates whose noise is known.
        let same = |(i, print): (usize, &u64)| known[i].to_bits() == known[first[places[print]]].to_bits();
        if data.weights().is_some() || !prints.rows.iter().enumerate().all(same) {
            return Ok(None);
        }
        let mut own = Self { duplicates, ..Self::rows_of(posterior, &first) };
        for (k, (i, count, _)) in groups.into_iter().enumerate().filter(|(_, group)| group.1 > 1) {
            let noise = posterior.model().noise().noise_variance() + known[i];
            let of_others = (own.mean[k], own.variance[k]);
            match without_duplicates(of_others, own.truths[k], (noise, count)) {
                Some(found) => (own.mean[k], own.variance[k]) = found,
                // Those that are left would be the rows that others say most about.
                None => return Ok(None),
            }
        }
        Ok(Some(own))
    }

    /// All rows of a posterior, each predicted from all others, its duplicates among them.
    pub(crate) fn each(posterior: &ExactPosterior) -> Self {
        Self::rows_of(posterior, &(0..posterior.data().rows()).collect::<Vec<_>>())
    }

    /// These rows of a posterior, each predicted from all others.
    pub(crate) fn rows_of(posterior: &ExactPosterior, rows: &[usize]) -> Self {
        let (found, data) = (posterior.leave_one_out(), posterior.data());
        Self {
            mean: rows.iter().map(|&i| found.mean[(i, 0)]).collect(),
            variance: rows.iter().map(|&i| found.variance[i]).collect(),
            truths: rows.iter().map(|&i| data.targets()[(i, 0)]).collect(),
            groups: None,
            duplicates: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_gp::exact::ExactGp;
    use posterior_gp::{MeanForm, Observations};
    use posterior_kernels::KernelExpression;
    use posterior_likelihoods::Gaussian;

    fn posterior(rows: &[usize], noise: Option<Vec<f64>>) -> ExactPosterior {
        let kernel = "matern52".parse::<KernelExpression>().unwrap().build(&["x".into()]).unwrap();
        let at = |i: usize| (i as f64 * 0.37).sin() * 2.0 + 0.1 * i as f64;
        let x = Mat::from_fn(rows.len(), 1, |i, _| at(rows[i]));
        let y = Mat::from_fn(rows.len(), 1, |i, _| {
            (1.3 * at(rows[i])).sin() + 0.2 * (rows[i] as f64 * 2.3).cos()
        });
        let model = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(0.04, 1e-6), 1, 1);
        model.condition(Observations::new(x, y, noise).unwrap()).unwrap()
    }

    /// Rows that are there once, twice and four times: each is predicted by a process that has none of its duplicates.
    #[test]
    fn duplicates_are_left_out_together() {
        let rows: Vec<usize> = (0..12).chain(3..9).chain([4, 4]).collect();
        let all = posterior(&rows, None);
        let own = LeftOut::of(&all).unwrap().unwrap();
        assert_eq!((own.truths.len(), own.duplicates), (12, 8));
        for i in 0..12 {
            let rest: Vec<usize> = rows.iter().copied().filter(|row| *row != i).collect();
            let without = posterior(&rest, None);
            let found =
                posterior_gp::Posterior::predict(&without, all.data().inputs().subrows(i, 1)).unwrap();
            assert!(
                (own.mean[i] - found.mean[(0, 0)]).abs() < 1e-9,
                "{i}: {} {}",
                own.mean[i],
                found.mean[(0, 0)]
            );
            let variance = found.latent_variance[0] + 0.04;
            assert!((own.variance[i] / variance - 1.0).abs() < 1e-8, "{i}: {} {variance}", own.variance[i]);
        }
        // Without duplicates nothing changes.
        let plain = posterior(&(0..12).collect::<Vec<_>>(), None);
        let (own, found) = (LeftOut::of(&plain).unwrap().unwrap(), plain.leave_one_out());
        assert_eq!((own.duplicates, own.variance), (0, found.variance));
        // Noise of its own, by a closed form; none where duplicates differ in it.
        let noise = |row: usize| 0.01 + 0.002 * row as f64;
        let noisy = posterior(&rows, Some(rows.iter().map(|row| noise(*row)).collect()));
        let own = LeftOut::of(&noisy).unwrap().unwrap();
        assert_eq!((own.truths.len(), own.duplicates), (12, 8));
        for i in 0..12 {
            let rest: Vec<usize> = rows.iter().copied().filter(|row| *row != i).collect();
            let without = posterior(&rest, Some(rest.iter().map(|row| noise(*row)).collect()));
            let found =
                posterior_gp::Posterior::predict(&without, noisy.data().inputs().subrows(i, 1)).unwrap();
            assert!((own.mean[i] - found.mean[(0, 0)]).abs() < 1e-8, "{i}");
            let variance = found.latent_variance[0] + 0.04 + noise(i);
            assert!((own.variance[i] / variance - 1.0).abs() < 1e-8, "{i}: {} {variance}", own.variance[i]);
        }
        let other = posterior(&rows, Some((0..rows.len()).map(noise).collect()));
        assert!(LeftOut::of(&other).unwrap().is_none());
        // Weights count as duplicates do, and by a closed form for functions of labels.
        let weighted = all.model().clone();
        let data = all.data().clone().with_weights(vec![1.0; rows.len()]).unwrap();
        let weighted = LeftOut::of(&weighted.condition(data).unwrap()).unwrap().unwrap();
        let own = LeftOut::of(&all).unwrap().unwrap();
        for i in 0..12 {
            assert!((weighted.mean[i] - own.mean[i]).abs() < 1e-9);
            let count = rows.iter().filter(|row| **row == i).count();
            let found = all.leave_one_out();
            let direct =
                without_duplicates((found.mean[(i, 0)], found.variance[i]), own.truths[i], (0.04, count));
            let (mean, variance) = direct.unwrap();
            assert!((mean - own.mean[i]).abs() < 1e-8 && (variance / own.variance[i] - 1.0).abs() < 1e-8);
        }
    }
}
