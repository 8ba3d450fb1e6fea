//! What is said to people: notes, and the command lines that fix what they are about.
//!
//! The idea: a note is a code with values and with fixes, and one renderer makes its text. A fix is a constant of one list, so that a test can read
//! each with the grammar of its command.
//!
//! ```
//! use posterior_notes::{Note, Severity, fixes};
//! let note = Note::new("few-steps", Severity::Warning, "the search ended after {steps} steps: take more ({0})");
//! let note = note.value("steps", 100).fix(fixes::STEPS);
//! assert_eq!(note.text(), "the search ended after 100 steps: take more (--set steps)");
//! assert_eq!(format!("{} or {:-}", fixes::SGPR, fixes::SVGP), "--method sgpr or svgp");
//! ```
//!
//! | file | what |
//! |---|---|
//! | `note` | a note and its text |
//! | `fix` | a command with the flags that a text recommends |
//! | `fixes` | all that are recommended |
//! | `controls` | control characters in text of others, shown as escapes |

mod controls;
mod fix;
pub mod fixes;
mod note;

pub use controls::{is_control, shown, shown_in_line};
pub use fix::Fix;
pub use note::{Note, Severity};
