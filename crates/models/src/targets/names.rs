//! Which columns a text names, and what each of them is asked for.

use super::{number_columns, same_column};
use crate::{FitRequest, ModelError};
use posterior_data::Table;
use std::collections::BTreeSet;

/// Whether a text may name several targets: what that is, [`named`] knows by the columns.
pub fn may_be_several(text: &str) -> bool {
    text.contains([',', '"'])
}

/// The columns that a text names: itself, where it is one; else names (or numbers, from 1) with commas between them, of which those with commas or quotes of their own stand in double quotes, as in CSV.
///
/// # Errors
/// [`ModelError::Data`] for a column that is not there; [`ModelError::Usage`] for one that is named twice, a quote that is not closed, and targets whose predictions would stand in one column.
pub fn named(text: &str, table: &Table) -> Result<Vec<String>, ModelError> {
    if let Ok(column) = table.column(text) {
        return Ok(vec![column.name.clone()]);
    }
    let usage = |problem: String| Err(ModelError::Usage(problem));
    let Some(pieces) = pieces(text) else {
        return usage(format!("--target {text}: a quote is not closed; names with commas stand as \"a, b\""));
    };
    let mut names: Vec<String> = Vec::new();
    let mut columns = BTreeSet::new();
    for piece in pieces {
        let name = table.column(&piece)?.name.clone();
        if names.contains(&name) {
            return usage(format!("--target names `{name}` twice"));
        }
        for column in number_columns(&name) {
            if columns.contains(&column) {
                return usage(same_column(&column));
            }
            columns.insert(column);
        }
        names.push(name);
    }
    Ok(names)
}

/// A line of CSV; None where a quote is not closed.
fn pieces(text: &str) -> Option<Vec<String>> {
    let (mut out, mut rest) = (Vec::new(), text);
    loop {
        let trimmed = rest.trim_start();
        let (piece, after) = match trimmed.strip_prefix('"') {
            Some(quoted) => quoted_piece(quoted)?,
            None => match trimmed.split_once(',') {
                Some((piece, _)) => (piece.trim_end().to_string(), &trimmed[piece.len()..]),
                None => (trimmed.trim_end().to_string(), ""),
            },
        };
        out.push(piece);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some(out),
        }
    }
}

/// What stands before the closing quote, and what from the next comma on; doubled quotes are quotes.
fn quoted_piece(text: &str) -> Option<(String, &str)> {
    let (mut piece, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"')?;
        piece.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => {
                piece.push('"');
                rest = next;
            }
            None => {
                let after = after.trim_start();
                return (after.is_empty() || after.starts_with(',')).then_some((piece, after));
            }
        }
    }
}

/// What is asked for of one of several targets: the request with it as the target and without the others, which tell nothing of it.
///
/// # Errors
/// [`ModelError::Usage`] where a target is a feature, too, and for noise that is known of one target.
pub fn request_of(request: &FitRequest, names: &[String], target: &str) -> Result<FitRequest, ModelError> {
    if let Some(both) =
        names.iter().find(|name| request.columns.features.iter().flatten().any(|f| f == *name))
    {
        return Err(ModelError::Usage(format!(
            "`{both}` is a target, and no target is a feature: leave it out of --features, or fit the targets apart"
        )));
    }
    if request.columns.noise.is_some() && !request.learns_heteroscedastic_noise() {
        return Err(ModelError::Usage(
            "--noise is a column of variances of one target, and these are several: fit those apart whose noise is known"
                .into(),
        ));
    }
    let mut own = request.clone();
    own.columns.target = target.into();
    let others = names.iter().filter(|name| *name != target && !request.columns.exclude.contains(name));
    own.columns.exclude.extend(others.cloned());
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_data::Column;

    fn table(names: &[&str]) -> Table {
        Table::new("t", names.iter().map(|name| Column::numeric(*name, vec![1.0, 2.0])).collect())
    }

    #[test]
    fn names_are_those_of_columns() {
        let own = table(&["x", "a", "b", "c, d", "say \"e\"", "a,b"]);
        let of = |text: &str| named(text, &own).unwrap();
        assert_eq!(of("a"), ["a"]);
        // A column of that name is one target, whatever its name looks like.
        assert_eq!(of("a,b"), ["a,b"]);
        assert_eq!(of("b,a"), ["b", "a"]);
        assert_eq!(of("b , 2"), ["b", "a"]);
        assert_eq!(of("\"c, d\",\"say \"\"e\"\"\" , b"), ["c, d", "say \"e\"", "b"]);
        assert_eq!(of("\"c, d\""), ["c, d"]);
        for (text, part) in [
            ("b,a,b", "`b` twice"),
            ("b,2,a", "`a` twice"),
            ("\"b,a", "not closed"),
            ("\"b\" a,b", "not closed"),
            ("b,z", "z"),
            ("b,", "column"),
        ] {
            let error = named(text, &own).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = named("a,a_latent", &table(&["x", "a", "a_latent"])).unwrap_err().to_string();
        assert!(error.contains("`a_latent_std`"), "{error}");
    }

    #[test]
    fn no_target_is_a_feature_of_another() {
        let names: Vec<String> = vec!["a".into(), "b".into()];
        let mut request = FitRequest::default();
        request.columns.exclude = vec!["z".into()];
        let own = request_of(&request, &names, "b").unwrap().columns;
        assert_eq!((own.target.as_str(), own.exclude), ("b", vec!["z".to_string(), "a".into()]));
        request.columns.features = Some(vec!["x".into(), "a".into()]);
        assert!(request_of(&request, &names, "b").unwrap_err().to_string().contains("`a` is a target"));
        request.columns.features = None;
        request.columns.noise = Some("v".into());
        assert!(request_of(&request, &names, "b").unwrap_err().to_string().contains("--noise"));
    }
}
