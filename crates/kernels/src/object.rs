//! **Kernels of the caller's own**: objects beside the kernels that have a text, and readers that make them again from model files.

use crate::{Kernel, KernelTextError};
use posterior_linalg::{PerPrecision, Real};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};

/// A kernel of the caller's own, in both precisions: solvers of large tables compute in f32, all other methods in f64.
///
/// A type that implements [`Kernel<T>`] for every [`Real`] has both. A kernel that is a formula of two points implements [`PointKernel`](crate::PointKernel) instead.
/// [`KernelExpression::object`](crate::KernelExpression::object) makes it the kernel of a fit.
///
/// Its parameters are learned like those of other kernels. Those called `NAME.lengthscale` have the weak prior of lengthscales. Draws of functions need
/// [`Kernel::features`]; so do the solvers of large tables (`cg`, `sgd`, `sdd`, `sap`, `inducing-sgd`).
pub trait KernelObject: Kernel<f64> + Kernel<f32> {
    /// What reports and model files call it: letters, digits and `_ . -`. Its reader is [registered](register) under this name.
    fn name(&self) -> &str;

    /// What its reader needs to make it again, besides values of parameters: a JSON object; null (the default) stands for an empty one.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// Whether it has an amplitude among its parameters. Otherwise (the default) a learned variance stands before it, as before the kernels that have a text.
    fn has_amplitude(&self) -> bool {
        false
    }
}

/// Makes a kernel from its [`KernelObject::settings`]. Values of its parameters follow from the file.
type Reader = dyn Fn(&Value) -> Result<Arc<dyn KernelObject>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// All readers, by name.
static READERS: RwLock<BTreeMap<String, Arc<Reader>>> = RwLock::new(BTreeMap::new());

/// Registers, for the whole program, what makes kernels of this name from their [`KernelObject::settings`]. Then models with such a kernel can be saved and loaded, and the name is a kernel's text:
/// `cauchy`, or with settings `cauchy{"degree":2}`. A reader that was registered before under this name is replaced.
///
/// # Errors
/// [`KernelTextError`] for a name that a kernel has already, or that is none.
pub fn register(
    name: &str,
    reader: impl Fn(&Value) -> Result<Arc<dyn KernelObject>, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
) -> Result<(), KernelTextError> {
    crate::text::check_name(name)?;
    READERS.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), Arc::new(reader));
    Ok(())
}

/// Whether a reader is [registered](register) under this name.
pub fn is_registered(name: &str) -> bool {
    READERS.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
}

/// The kernel of this name with these settings; None without a reader.
///
/// # Errors
/// What the reader finds wrong.
pub(crate) fn read(name: &str, settings: &Value) -> Option<Result<Arc<dyn KernelObject>, String>> {
    let reader = READERS.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()?;
    let made = reader(settings).map_err(|problem| format!("the reader of kernel `{name}`: {problem}"));
    Some(made.and_then(|object| match object.name() == name {
        true => Ok(object),
        false => Err(format!("the reader of kernel `{name}` makes a `{}`", object.name())),
    }))
}

/// The kernel of an object in precision `T`.
pub(crate) fn of_precision<T: Real>(object: &Arc<dyn KernelObject>) -> Box<dyn Kernel<T>> {
    T::choose::<Objects, Kernels>(object.clone(), single, double)
}

/// One object for both precisions.
struct Objects;

impl PerPrecision for Objects {
    type Of<T: Real> = Arc<dyn KernelObject>;
}

/// A kernel for each.
struct Kernels;

impl PerPrecision for Kernels {
    type Of<T: Real> = Box<dyn Kernel<T>>;
}

fn single(object: Arc<dyn KernelObject>) -> Box<dyn Kernel<f32>> {
    Kernel::<f32>::clone_box(&*object)
}

fn double(object: Arc<dyn KernelObject>) -> Box<dyn Kernel<f64>> {
    Kernel::<f64>::clone_box(&*object)
}
