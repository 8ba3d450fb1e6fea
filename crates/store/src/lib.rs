//! **Files that must not be lost**: written whole or not at all, read suspiciously, and known by what they belong to.
//!
//! ```
//! use posterior_store::{Container, Tensors};
//!
//! let path = std::env::temp_dir().join(format!("store-{}.posterior", std::process::id()));
//! let mut tensors = Tensors::default();
//! tensors.insert_vector("weights", &[1.0f64, 2.0]);
//! Container { header: "what it is".to_string(), tensors }.write(&path)?;
//!
//! let Container { header, mut tensors } = Container::<String>::read(&path)?;
//! assert_eq!((header.as_str(), tensors.vector("weights", 2)?), ("what it is", vec![1.0, 2.0]));
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), posterior_store::StoreError>(())
//! ```
//!
//! | file | what |
//! |---|---|
//! | `atomic` | one way to write a file: whole or not at all, where links lead |
//! | `regular` | opening what must be an ordinary file, never through a link |
//! | `lock` | one process at a time |
//! | `tensor_file` | the format: named arrays with text beside them, one array at a time |
//! | `tensors` | the arrays in memory: vectors, matrices, triangles by name |
//! | `container` | arrays and one JSON header: model files |
//! | `checkpoint` | the state of work under way beside the identity of what it belongs to |
//! | `finite` | JSON and numbers that are not finite: refused in files |
//! | `any_number` | fields that may hold such numbers |
//! | `printed` | the same where they have names: what is printed |
//! | `digest` | SHA-256 of files and numbers |
//!
//! The format is that of safetensors, so that other programs can open every file.

pub mod any_number;
mod atomic;
mod checkpoint;
mod container;
mod digest;
mod error;
mod finite;
mod lock;
mod printed;
mod regular;
mod tensor_file;
mod tensors;

pub use atomic::{
    Links, Target, create_atomically, create_checked, directory, replace_atomically, resolved, temporary,
    unnamed,
};
pub use checkpoint::{Checkpoint, Identity, numbers_from_tensors, numbers_to_tensors};
pub use container::{Container, FORMAT_VERSION};
pub use digest::{RowsDigest, file_digest, numbers_digest};
pub use error::StoreError;
pub use finite::{from_text, to_shown_value, to_value, write_json};
pub use lock::{FileLock, LockHolder};
#[doc(hidden)]
pub use printed::{no_values, shown};
pub use regular::open_regular;
#[doc(hidden)]
pub use serde_json::{Map, Value};
pub use tensor_file::{TensorFile, tensors_to_bytes, write_tensors, write_tensors_checked};
pub use tensors::{Element, Numbers, Tensor, TensorValues, Tensors};
