//! The names of **adaptive rules**, as a command line and a configuration have them.

use crate::Rule;
use serde::{Deserialize, Serialize};

/// An adaptive rule with its published constants; [`Rule`] has the constants as well (spec `generalised_variational_inference`, sections 13 and 15.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum UpdateRule {
    /// Adam: steps over the root of the mean square of gradients
    #[default]
    Adam,
    /// AdaBelief: steps over the root of the mean square of what was unexpected in gradients
    #[serde(rename = "adabelief")]
    #[cfg_attr(feature = "clap", value(name = "adabelief"))]
    AdaBelief,
    /// RMSProp: as Adam, without momentum and bias correction
    #[serde(rename = "rmsprop")]
    #[cfg_attr(feature = "clap", value(name = "rmsprop"))]
    RmsProp,
}

impl UpdateRule {
    /// The rule of this name.
    pub fn rule(self) -> Rule {
        match self {
            Self::Adam => Rule::adam(),
            Self::AdaBelief => Rule::adabelief(),
            Self::RmsProp => Rule::rmsprop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_rules() {
        for (name, rule) in
            [("adam", Rule::adam()), ("adabelief", Rule::adabelief()), ("rmsprop", Rule::rmsprop())]
        {
            let read: UpdateRule = serde_json::from_str(&format!("\"{name}\"")).unwrap();
            assert_eq!((read.rule(), rule.problem()), (rule, None));
            assert_eq!(serde_json::to_string(&read).unwrap(), format!("\"{name}\""));
        }
        assert_eq!(UpdateRule::default().rule(), Rule::adam());
    }

    #[cfg(feature = "clap")]
    #[test]
    fn a_command_line_has_the_same_names() {
        use clap::ValueEnum;
        let names = UpdateRule::value_variants().iter().map(|rule| {
            let written = rule.to_possible_value().unwrap().get_name().to_string();
            assert_eq!(serde_json::to_string(rule).unwrap(), format!("\"{written}\""));
            written
        });
        assert_eq!(names.collect::<Vec<_>>(), ["adam", "adabelief", "rmsprop"]);
    }
}
