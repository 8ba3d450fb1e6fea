//! Kernels of the caller's own in a text.

use super::Kind;
use super::parse::{KernelTextError, is_plain};
use crate::Kernel;
use crate::object::{self, KernelObject};
use posterior_linalg::Real;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A kernel by its name and settings.
#[derive(Clone, Debug)]
pub(super) struct Object {
    name: String,
    /// A JSON object.
    settings: Value,
    /// None where no reader was registered when the text was read.
    kernel: Option<Arc<dyn KernelObject>>,
    /// The byte at which it stands in the source.
    position: usize,
}

impl Object {
    /// Of a kernel that is there.
    pub(super) fn of(kernel: Arc<dyn KernelObject>) -> Result<Self, KernelTextError> {
        check_name(kernel.name())?;
        let name = kernel.name().to_string();
        let settings = match kernel.settings() {
            Value::Null => Value::Object(Map::new()),
            Value::Object(settings) => Value::Object(settings),
            _ => {
                let message = format!("the settings of `{name}` are neither a JSON object nor null");
                return Err(KernelTextError::new(&name, 0, message));
            }
        };
        Ok(Self { name, settings, kernel: Some(kernel), position: 0 })
    }

    /// Of a text; without a registered reader it is one that cannot be built.
    pub(super) fn parsed(name: &str, settings: Value, position: usize) -> Result<Self, String> {
        let kernel = object::read(name, &settings).transpose()?;
        Ok(Self { name: name.into(), settings, kernel, position })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn has_amplitude(&self) -> bool {
        matches!(self.kernel(), Ok(Some(kernel)) if kernel.has_amplitude())
    }

    /// The kernel; None without a reader.
    fn kernel(&self) -> Result<Option<Arc<dyn KernelObject>>, String> {
        match &self.kernel {
            Some(kernel) => Ok(Some(kernel.clone())),
            None => object::read(&self.name, &self.settings).transpose(),
        }
    }

    pub(super) fn build<T: Real>(&self) -> Result<Box<dyn Kernel<T>>, String> {
        match self.kernel()? {
            Some(kernel) => Ok(object::of_precision(&kernel)),
            None => Err(format!(
                "no reader is registered for kernel `{}`: call `kernels::register` first",
                self.name
            )),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.settings)
    }
}

/// Refuses what is no name of a kernel of the caller's own.
pub(crate) fn check_name(name: &str) -> Result<(), KernelTextError> {
    let problem = |message: String| Err(KernelTextError::new(name, 0, message));
    if name.is_empty() || !name.chars().all(is_plain) || !name.starts_with(char::is_alphabetic) {
        return problem(format!(
            "`{name}` is no name of a kernel: letters, digits and `_ . -`, a letter first"
        ));
    }
    if Kind::named(name).is_some() || name.eq_ignore_ascii_case("warp") {
        return problem(format!("a kernel is called `{name}` already"));
    }
    Ok(())
}
