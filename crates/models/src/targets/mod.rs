//! **Several targets of one table** in one model: a process for each, side by side in one file.
//!
//! Each is learned as if it were alone, from the same columns, none of which is a target: by a likelihood of its own, from the rows that have it. So a model of two targets is two models, to the last bit.
//! Numeric targets may share one kernel and one noise instead ([`shared`]).
//!
//! | file | what |
//! |---|---|
//! | `names` | which columns a text names, and the request that each target is learned by |
//! | [`shared`] | hyperparameters by the sum of the targets' evidences |
//! | `plan` | what all fits take together |

mod names;
mod plan;
pub mod shared;
#[cfg(test)]
mod tests;

pub(crate) use shared::SharedKernel;

pub use names::{may_be_several, named, request_of};
pub use plan::{TargetPlan, TargetsPlan};

use crate::{Model, PredictedKind};

/// What is wrong with two targets of which both would be predicted in a column.
pub(crate) fn same_column(column: &str) -> String {
    format!(
        "two targets would both be predicted in a column `{column}`: rename one of them in the table, or fit them apart"
    )
}

/// How a column of a target's predictions is called beside those of others: those of numbers have its name already.
pub(crate) fn column_name(model: &Model, column: &str) -> String {
    let target = model.target();
    match model.predicts() == PredictedKind::Values || column.starts_with(&format!("{target}_sample_")) {
        true => column.to_string(),
        false => format!("{target}_{column}"),
    }
}

/// Columns that predictions of a target always have.
pub(crate) fn usual_columns(model: &Model) -> Vec<String> {
    let target = model.target();
    if model.predicts() == PredictedKind::Values {
        return number_columns(&target).into();
    }
    let fixed = ["predicted", "max_probability", "entropy", "removable_entropy", "latent_std"];
    let classes = model.class_names().into_iter().map(|name| format!("p_{name}"));
    fixed.map(String::from).into_iter().chain(classes).map(|column| format!("{target}_{column}")).collect()
}

/// Columns of predictions of numbers.
fn number_columns(target: &str) -> [String; 3] {
    ["mean", "std", "latent_std"].map(|what| format!("{target}_{what}"))
}
