//! The sum: a method, or its name.

use super::methods::{AutoOptions, SgprOptions, SvgpOptions};
use crate::ModelError;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Writes what depends on the list of methods: the sum of their options, their names, and the way from one to the other.
macro_rules! define {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal => $options:path),* $(,)?) => {
        /// A method without its options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
        pub enum MethodName {
            $($(#[doc = $doc])* #[serde(rename = $text)] #[cfg_attr(feature = "clap", value(name = $text))] $name,)*
        }

        impl MethodName {
            /// All methods.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name on the command line and in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Its flags.
            #[cfg(feature = "clap")]
            pub(super) fn augment(self, command: clap::Command) -> clap::Command {
                match self { $(Self::$name => <$options as clap::Args>::augment_args(command)),* }
            }

            /// What the flags say.
            #[cfg(feature = "clap")]
            pub(super) fn parse(self, matches: &mut clap::ArgMatches) -> Result<Method, clap::Error> {
                match self {
                    $(Self::$name => clap::FromArgMatches::from_arg_matches_mut(matches).map(|own| Method::$name(own).settled())),*
                }
            }

            fn deserialize(self, table: serde_json::Value) -> Result<Method, serde_json::Error> {
                match self { $(Self::$name => serde_json::from_value(table).map(|own| Method::$name(own).settled())),* }
            }
        }

        /// How the posterior is computed, with all that this method is told and nothing that it has no use for.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "method")]
        pub enum Method {
            $($(#[doc = $doc])* #[serde(rename = $text)] $name($options),)*
        }

        impl Method {
            /// Without its options.
            pub fn name(&self) -> MethodName {
                match self { $(Self::$name(_) => MethodName::$name),* }
            }
        }

        /// With the defaults of its options.
        impl From<MethodName> for Method {
            fn from(name: MethodName) -> Self {
                match name { $(MethodName::$name => Self::$name(<$options>::default())),* }
            }
        }
    };
}

methods! { define }

impl From<SgprOptions> for Method {
    fn from(options: SgprOptions) -> Self {
        Self::Sgpr(options)
    }
}

impl From<SvgpOptions> for Method {
    fn from(options: SvgpOptions) -> Self {
        Self::Svgp(options)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for Method {
    fn default() -> Self {
        Self::Auto(AutoOptions::default())
    }
}

/// From a table of options beside `method`; options that the method does not have are errors that name those which it has.
impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = serde_json::Map::deserialize(deserializer)?;
        let name = match table.remove("method") {
            Some(name) => serde_json::from_value(name).map_err(D::Error::custom)?,
            None => MethodName::Auto,
        };
        let known = serde_json::to_value(Self::from(name)).map_err(D::Error::custom)?;
        if let Some(key) = table.keys().find(|key| known.get(key).is_none()) {
            let keys: Vec<&String> = known.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
            return Err(D::Error::custom(format!("{name} has no option `{key}`; it has {keys:?}")));
        }
        name.deserialize(table.into()).map_err(D::Error::custom)
    }
}

impl Method {
    /// What this method must have for what is done with it.
    ///
    /// # Errors
    /// [`ModelError::NotIterative`] where it has none.
    pub(crate) fn requires<T>(&self, own: Option<T>) -> Result<T, ModelError> {
        own.ok_or(ModelError::NotIterative { method: self.name().as_str() })
    }
}
