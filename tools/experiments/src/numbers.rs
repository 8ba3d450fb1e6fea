//! Paths into numbers, and their averages over seeds.

use super::error::Result;
use posterior_metrics::Average;
pub(crate) use posterior_models::text::number as shown;
use serde_json::{Map, Value, json};

/// The value at a path of keys (and positions in lists) separated by points.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Object(map) => map.get(key),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The number at a path.
pub(crate) fn number_at(value: &Value, path: &str) -> Option<f64> {
    at(value, path)?.as_f64()
}

/// Means and standard errors over seeds, number by number; what is no number is taken from the first. Standard errors are null for a single seed.
pub(crate) fn averages(seeds: &[Value]) -> (Value, Value) {
    let Some(first) = seeds.first() else { return (Value::Null, Value::Null) };
    match first {
        Value::Object(map) => {
            let (mut means, mut errors) = (Map::new(), Map::new());
            for key in map.keys() {
                let own: Vec<Value> = seeds.iter().filter_map(|s| s.get(key)).cloned().collect();
                let (mean, error) = averages(&own);
                means.insert(key.clone(), mean);
                errors.insert(key.clone(), error);
            }
            (Value::Object(means), Value::Object(errors))
        }
        Value::Array(list) => {
            let pairs = (0..list.len()).map(|i| {
                let own: Vec<Value> = seeds.iter().filter_map(|s| s.get(i)).cloned().collect();
                averages(&own)
            });
            let (means, errors): (Vec<Value>, Vec<Value>) = pairs.unzip();
            (Value::Array(means), Value::Array(errors))
        }
        Value::Number(_) => {
            let values: Vec<f64> = seeds.iter().filter_map(Value::as_f64).collect();
            match Average::of(&values) {
                Ok(average) if values.len() > 1 => (average.mean.into(), average.standard_error.into()),
                _ => (first.clone(), Value::Null),
            }
        }
        other => (other.clone(), Value::Null),
    }
}

/// A number with its standard error where there is one.
pub(crate) fn cell(mean: &Value, error: &Value, path: &str) -> String {
    match (at(mean, path), number_at(error, path)) {
        (Some(Value::Number(n)), error) => {
            let value = shown(n.as_f64().unwrap_or(f64::NAN));
            error.map_or(value.clone(), |e| format!("{value} ± {}", shown(e)))
        }
        (Some(Value::String(text)), _) => text.clone(),
        (Some(Value::Bool(yes)), _) => if *yes { "yes" } else { "no" }.into(),
        _ => String::new(),
    }
}

/// Mean, standard error and text of some numbers under `key`.
pub(crate) fn put(map: &mut Map<String, Value>, key: &str, values: &[f64]) -> Result<()> {
    let Average { mean, standard_error } = Average::of(values)?;
    let error = standard_error.map_or(String::new(), |e| format!(" ± {}", shown(e)));
    map.insert(key.into(), json!(mean));
    map.insert(format!("{key}_error"), json!(standard_error));
    map.insert(format!("{key}_shown"), json!(format!("{}{error}", shown(mean))));
    Ok(())
}

/// A quantity of what was found: its key, its heading in tables, its value where there is one.
pub(crate) type Quantity<T> = (&'static str, &'static str, fn(&T) -> Option<f64>);

/// Mean, standard error and text of each quantity of all that was found, under its key behind `prefix`; without those that none has.
pub(crate) fn put_all<T>(
    map: &mut Map<String, Value>,
    prefix: &str,
    found: &[T],
    quantities: &[Quantity<T>],
) -> Result<()> {
    for (key, _, of) in quantities {
        let values: Vec<f64> = found.iter().filter_map(of).collect();
        if !values.is_empty() {
            put(map, &format!("{prefix}{key}"), &values)?;
        }
    }
    Ok(())
}

/// Columns of the texts that [`put_all`] writes, of quantities with a heading.
pub(crate) fn shown_columns<T>(prefix: &str, quantities: &[Quantity<T>]) -> Vec<(String, &'static str)> {
    let titled = quantities.iter().filter(|(_, head, _)| !head.is_empty());
    titled.map(|(key, head, _)| (format!("{prefix}{key}_shown"), *head)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn averages_go_number_by_number() {
        let seeds = [json!({"a": {"b": 1.0}, "c": ["x", 2]}), json!({"a": {"b": 3.0}, "c": ["x", 2]})];
        let (mean, error) = averages(&seeds);
        assert_eq!(number_at(&mean, "a.b"), Some(2.0));
        // Standard deviation √2 over √2 seeds.
        assert!((number_at(&error, "a.b").unwrap() - 1.0).abs() < 1e-15);
        assert_eq!((at(&mean, "c.0"), number_at(&mean, "c.1")), (Some(&json!("x")), Some(2.0)));
        assert_eq!(cell(&mean, &error, "a.b"), "2.000 ± 1.000");
        assert_eq!(cell(&mean, &error, "a.missing"), "");
        assert_eq!(number_at(&averages(&seeds[..1]).1, "a.b"), None);
    }
}
