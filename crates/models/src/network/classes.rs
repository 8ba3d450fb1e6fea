//! Labels of a table and the classes that they are.

use super::{NetworkFileError, refuse};
use posterior_data::{Table, Values, finite_targets};
use std::collections::BTreeSet;

/// Replaces the target column by class numbers; returns the classes in order: that of `names`, or without any numbers by value and text by alphabet.
pub(crate) fn number_classes(
    table: &mut Table,
    target: &str,
    names: &[String],
) -> Result<Vec<String>, NetworkFileError> {
    finite_targets(table, target, &(0..table.rows()).collect::<Vec<_>>(), false)?;
    let found = labels(table, target)?;
    let classes = if names.is_empty() { found } else { ordered(target, &found, names)? };
    if classes.len() < 2 || classes.len() > 10_000 {
        return refuse(format!(
            "column `{target}` has {} different values: classifiers need 2 to 10,000 classes",
            classes.len()
        ));
    }
    apply_classes(table, target, &classes)?;
    Ok(classes)
}

/// The labels of a column: numbers by value, text by alphabet.
fn labels(table: &Table, target: &str) -> Result<Vec<String>, NetworkFileError> {
    Ok(match &table.column(target)?.values {
        Values::Text(values) => {
            values.iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
        }
        Values::Numeric(values) => {
            let mut distinct: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            distinct.into_iter().map(|v| v.to_string()).collect()
        }
    })
}

/// Labels in the order of the names, all of which must be among them; a name that no row has is a class without rows.
fn ordered(target: &str, found: &[String], names: &[String]) -> Result<Vec<String>, NetworkFileError> {
    check_names(names)?;
    if let Some(missing) = found.iter().find(|label| !names.contains(label)) {
        return refuse(format!(
            "--class-names says {}, but the labels of column `{target}` are {}: `{missing}` is not among the names, which must be the labels in the order of the network's outputs",
            listed(names),
            listed(found)
        ));
    }
    Ok(names.to_vec())
}

/// Refuses a name that stands twice.
pub(crate) fn check_names(names: &[String]) -> Result<(), NetworkFileError> {
    match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        Some((_, name)) => refuse(format!("--class-names says `{name}` twice")),
        None => Ok(()),
    }
}

/// The names of classes whose order is known already: labels that are text must be the same in the same order, numbers may be given names.
pub(crate) fn named(known: &[String], names: &[String]) -> Result<Vec<String>, NetworkFileError> {
    check_names(names)?;
    let numbers = known.iter().all(|c| c.parse::<f64>().is_ok());
    let renamed = numbers && names.len() == known.len() && !names.iter().any(|n| known.contains(n));
    if names.is_empty() || names == known || renamed {
        return Ok(if names.is_empty() { known } else { names }.to_vec());
    }
    refuse(format!(
        "--class-names says {}, but the network's outputs are the classes {}, in this order: leave --class-names out",
        listed(names),
        listed(known)
    ))
}

/// Names for people.
fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut text = names.iter().take(MOST).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text += &format!(" and {} more", names.len() - MOST);
    }
    text
}

/// Replaces the target column by the numbers of known classes; missing cells stay missing.
pub(crate) fn apply_classes(
    table: &mut Table,
    target: &str,
    classes: &[String],
) -> Result<(), NetworkFileError> {
    let column = table.column(target)?;
    let name = column.name.clone();
    let texts: Vec<Option<String>> = match &column.values {
        Values::Text(values) => values.to_vec(),
        Values::Numeric(values) => values.iter().map(|v| (!v.is_nan()).then(|| v.to_string())).collect(),
    };
    let number = |(row, text): (usize, Option<String>)| {
        let Some(text) = text else { return Ok(f64::NAN) };
        match classes.iter().position(|c| *c == text) {
            Some(class) => Ok(class as f64),
            None => refuse(format!(
                "row {} has class `{text}` in column `{name}`, which training does not know",
                row + 1
            )),
        }
    };
    let numbers: Vec<f64> = texts.into_iter().enumerate().map(number).collect::<Result<_, _>>()?;
    for column in table.columns.iter_mut().filter(|c| c.name == name) {
        column.values = Values::Numeric(numbers.clone());
    }
    Ok(())
}
