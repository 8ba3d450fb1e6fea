//! Options by the names of their flags.

use posterior::FitRequest;
use serde_json::Value;

/// Sets those of the options that the request's method has.
pub(crate) fn set(request: &mut FitRequest, options: Value) {
    let mut table = serde_json::to_value(&request.method).unwrap();
    for (name, value) in options.as_object().unwrap() {
        if let Some(own) = table.get_mut(name) {
            *own = value.clone();
        }
    }
    request.method = serde_json::from_value(table).unwrap();
}
