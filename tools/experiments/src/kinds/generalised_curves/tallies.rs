//! **Which values of each option do best** over the curves: how often they are the winner's, the median validation NLL of all fits that have them, and the mean over curves of their rank by that median.

use super::configuration::OPTIONS;
use super::sweep::Sweep;
use posterior_metrics::mid_ranks;
use serde::Serialize;
use std::collections::BTreeMap;

/// One value of an option.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Tally {
    /// Its name.
    #[serde(skip)]
    pub(super) value: String,
    /// Fits with a result.
    pub(super) fits: usize,
    /// Median validation NLL of them; NaN without any.
    pub(super) median: f64,
    /// Mean rank over curves by the median on each, from 1; ties share the mean of their ranks.
    pub(super) rank: f64,
    /// Curves whose winner has it.
    pub(super) wins: usize,
    /// Curves whose published winner has it.
    pub(super) published: usize,
}

/// The middle of some numbers; NaN of none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => f64::NAN,
        _ => 0.5 * (values[(n - 1) / 2] + values[n / 2]),
    }
}

/// Values of each option, in the order of the grid; those of published winners that are not in it are left out.
pub(super) fn tallies(sweep: &Sweep<'_>, way: usize) -> Vec<(&'static str, Vec<Tally>)> {
    OPTIONS.iter().enumerate().map(|(k, name)| (*name, of_option(sweep, way, k))).collect()
}

fn of_option(sweep: &Sweep<'_>, way: usize, option: usize) -> Vec<Tally> {
    let value = |i: usize| sweep.tasks[i].configuration.values()[option].clone();
    let mut names: Vec<String> = Vec::new();
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut of_curves: Vec<BTreeMap<String, Vec<f64>>> = Vec::new();
    let (mut wins, mut published): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for curve in 0..sweep.problems.len() {
        let own = sweep.of_curve(way, curve);
        let mut of_curve: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for &i in &own.all {
            let name = value(i);
            if !names.contains(&name) {
                names.push(name.clone());
            }
            if let Ok(scores) = &sweep.found[i] {
                all.entry(name.clone()).or_default().push(scores.validation);
                of_curve.entry(name).or_default().push(scores.validation);
            }
        }
        of_curves.push(of_curve);
        wins.extend(own.best.map(value));
        published.extend(sweep.known(curve).map(|known| known.winner.values()[option].clone()));
    }
    let mut rank_sums = vec![(0.0, 0usize); names.len()];
    for of_curve in &of_curves {
        let there: Vec<usize> = (0..names.len()).filter(|k| of_curve.contains_key(&names[*k])).collect();
        let medians: Vec<f64> = there.iter().map(|k| median(of_curve[&names[*k]].clone())).collect();
        for (k, rank) in there.iter().zip(mid_ranks(&medians)) {
            rank_sums[*k].0 += rank;
            rank_sums[*k].1 += 1;
        }
    }
    let count = |of: &[String], name: &String| of.iter().filter(|n| *n == name).count();
    let tally = |(k, name): (usize, &String)| {
        let values = all.get(name).cloned().unwrap_or_default();
        let (sum, curves) = rank_sums[k];
        Tally {
            value: name.clone(),
            fits: values.len(),
            median: median(values),
            rank: sum / curves as f64,
            wins: count(&wins, name),
            published: count(&published, name),
        }
    };
    names.iter().enumerate().map(tally).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ranks_are_those_of_hands() {
        assert!(median(Vec::new()).is_nan());
        assert_eq!(median(vec![3.0]), 3.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 8.0]), 3.0);
        assert_eq!(mid_ranks(&[0.5, 2.0, 0.5, 1.0]), [1.5, 4.0, 1.5, 3.0]);
    }
}
