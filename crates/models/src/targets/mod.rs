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
//! | `asked` | such a model as a [`Model`]: predictions side by side |
//! | `file` | model to file and back |

mod asked;
mod file;
mod names;
mod plan;
pub mod shared;
#[cfg(test)]
mod tests;

pub use file::TargetsHeader;
pub use names::{may_be_several, named, request_of};
pub use plan::{TargetPlan, TargetsPlan};

use crate::{Model, ModelError, PredictedKind, ProcessModel};
use shared::SharedKernel;
use std::collections::BTreeSet;

/// Models of several targets of one table.
pub struct TargetsModel {
    models: Vec<ProcessModel>,
    shared: Option<SharedKernel>,
}

impl TargetsModel {
    /// Of processes in the order of their targets, with what some of them share.
    ///
    /// # Errors
    /// [`ModelError::Request`] for fewer than two, and for targets whose predictions would stand in columns of the same name.
    pub fn of(models: Vec<ProcessModel>, shared: Option<SharedKernel>) -> Result<Self, ModelError> {
        let problem = |problem: String| Err(ModelError::Request(problem));
        if models.len() < 2 {
            return problem(format!("a model of several targets has at least two, not {}", models.len()));
        }
        let mut columns = BTreeSet::new();
        for model in &models {
            for column in usual_columns(model) {
                if columns.contains(&column) {
                    return problem(same_column(&column));
                }
                columns.insert(column);
            }
        }
        let names: Vec<String> = models.iter().map(Model::target).collect();
        let shares = shared.as_ref().map_or(&[][..], |shared| &shared.targets);
        if let Some(other) = shares.iter().find(|name| !names.contains(name)) {
            return problem(format!("`{other}` shares a kernel, and is no target of the model"));
        }
        Ok(Self { models, shared })
    }

    /// The models, in the order of the targets.
    pub fn models(&self) -> &[ProcessModel] {
        &self.models
    }

    /// What numeric targets share, where they do.
    pub fn shared(&self) -> Option<&SharedKernel> {
        self.shared.as_ref()
    }

    /// Names of the targets.
    pub fn names(&self) -> Vec<String> {
        self.models.iter().map(Model::target).collect()
    }

    /// The model of a target; None where it is no target.
    pub fn of_target(&self, target: &str) -> Option<&ProcessModel> {
        self.models.iter().find(|model| model.target() == target)
    }
}

/// What is wrong with two targets of which both would be predicted in a column.
fn same_column(column: &str) -> String {
    format!(
        "two targets would both be predicted in a column `{column}`: rename one of them in the table, or fit them apart"
    )
}

/// How a column of a target's predictions is called beside those of others: those of numbers have its name already.
fn column_name(model: &dyn Model, column: &str) -> String {
    let target = model.target();
    match model.predicts() == PredictedKind::Values || column.starts_with(&format!("{target}_sample_")) {
        true => column.to_string(),
        false => format!("{target}_{column}"),
    }
}

/// Columns that predictions of a target always have.
fn usual_columns(model: &dyn Model) -> Vec<String> {
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
