//! **Tomography from files**: sinograms, geometries and networks in, pictures with their error bars and reports out.
//!
//! | file | what |
//! |---|---|
//! | `scan` | [`Scan`]: a geometry and its sinogram, checked; pictures to compare with |
//! | `project` | [`project`]: the sinogram of a picture or phantom |
//! | `picture` | [`reconstruct`]: a picture, and the network behind it in a file |
//! | `uncertain` | [`uncertainty`]: where not to trust it |
//! | `angles` | [`design`]: the angles at which to look next |
//! | `pages` | their reports |
//! | `error` | what can go wrong between files |
//!
//! What is computed is [`posterior_tomography`]; here are files, identities of checkpoints, and words for people.

mod angles;
mod error;
mod pages;
mod picture;
mod project;
mod scan;
#[cfg(test)]
mod tests;
mod uncertain;

pub use angles::{DesignOutcome, DesignPrior, DesignRequest, design};
pub use error::ScanError;
pub use picture::{ReconstructOutcome, ReconstructRequest, reconstruct};
pub use project::{PhantomName, ProjectOutcome, ProjectRequest, project};
pub use scan::{PlannedWork, Scan, ScanFiles};
pub use uncertain::{Score, UncertainOutcome, UncertainRequest, uncertainty};
