//! Means and standard errors of scores over folds.

use serde_json::{Map, Value};

/// Of each number that all have: its mean, and the standard error of that (none of a single one).
pub(super) fn of<'a>(
    all: impl Iterator<Item = &'a Map<String, Value>> + Clone,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut means, mut errors) = (Map::new(), Map::new());
    let Some(first) = all.clone().next() else { return (means, errors) };
    for name in first.keys().filter(|name| *name != "n") {
        let values: Option<Vec<f64>> =
            all.clone().map(|scores| scores.get(name).and_then(Value::as_f64)).collect();
        let Some(values) = values else { continue };
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        means.insert(name.clone(), mean.into());
        if values.len() > 1 {
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            errors.insert(name.clone(), (squares / (n - 1.0) / n).sqrt().into());
        }
    }
    (means, errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior::data::json;

    #[test]
    fn means_are_over_folds() {
        let folds = [json!({"n": 3, "nll": 1.0, "auc": null}), json!({"n": 4, "nll": 3.0, "auc": 0.5})];
        let folds: Vec<_> = folds.iter().filter_map(Value::as_object).collect();
        let (means, errors) = of(folds.iter().copied());
        // Deviations of 1 on either side: a variance of 2 by n - 1, halved for the mean.
        assert_eq!((json!(means), json!(errors)), (json!({"nll": 2.0}), json!({"nll": 1.0})));
        let (means, errors) = of(folds[..1].iter().copied());
        assert_eq!((json!(means), json!(errors)), (json!({"nll": 1.0}), json!({})));
    }
}
