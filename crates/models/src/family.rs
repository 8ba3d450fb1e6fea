//! The families of models.

/// The families of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Gaussian processes on tables.
    Process,
    /// Networks with error bars.
    Network,
}

impl Family {
    /// One of them, in words.
    pub fn one(self) -> &'static str {
        match self {
            Self::Process => "a Gaussian process",
            Self::Network => "a network",
        }
    }
}
