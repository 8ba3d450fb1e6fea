//! Members must read the same inputs and predict the same thing. Their own scales may differ: networks that were trained on other rows standardise by those.

use crate::ModelError;
use crate::model::Networks;
use crate::network::Preparation;
use crate::record::InputKind;
use posterior_likelihoods::OutputLikelihood;

/// What must be equal, in words; each with what a member has of it.
fn facts(model: &Networks<'_>) -> [(&'static str, String); 6] {
    let header = model.header();
    let inputs = match &header.data.inputs {
        InputKind::Features { columns, .. } => format!("features {}", columns.join(", ")),
        InputKind::Prepared { preparation: Preparation::None } => "numbers as they are".into(),
        InputKind::Prepared { preparation: Preparation::Pixels { .. } } => "images of bytes".into(),
        InputKind::Prepared { preparation: Preparation::Columns { schema, .. } } => {
            format!("columns {}", schema.feature_names().join(", "))
        }
    };
    let classes = match model.likelihood() {
        OutputLikelihood::Categorical(_) => model.output.classes.clone(),
        _ => header.data.class_names.clone(),
    };
    [
        ("inputs", inputs),
        ("shape of an input", format!("{:?}", model.inputs.shape)),
        ("outputs", format!("{:?}", model.output.shape)),
        ("target", header.data.target().unwrap_or_default().to_string()),
        ("likelihood", model.likelihood().name().to_string()),
        ("classes", classes.join(", ")),
    ]
}

/// Refuses the first member that differs from the first of all.
pub(crate) fn check(members: &[Networks<'_>], names: &[String]) -> Result<(), ModelError> {
    let first = facts(&members[0]);
    for (member, name) in members.iter().zip(names).skip(1) {
        for ((what, own), (_, expected)) in facts(member).iter().zip(&first) {
            if own != expected {
                return Err(ModelError::Request(format!(
                    "the networks of an ensemble must read and predict the same: `{name}` and `{}` differ in their {what} ({} and {}); leave one out",
                    names[0],
                    short(own),
                    short(expected)
                )));
            }
        }
    }
    Ok(())
}

/// The beginning of a long list.
fn short(text: &str) -> String {
    let mut out: String = text.chars().take(200).collect();
    if out.len() < text.len() {
        out.push_str(" ...");
    }
    out
}
