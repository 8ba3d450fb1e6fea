//! What tests of all crates share: data that may be absent, and a record of the tests that skip for it.
//!
//! A test that cannot do its work where it runs calls [`skip`] and returns. The test harness counts it as passed, so the reason is printed and, where
//! the environment variable [`RECORD`] names a file, also written there: `.ci/run` ends by saying how many tests skipped, and why.

pub mod printed;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The environment variable with the file that skips are written to.
pub const RECORD: &str = "POSTERIOR_SKIPS";

/// Says that the running test skips, and why.
pub fn skip(why: impl Display) {
    let record = std::env::var_os(RECORD).map(PathBuf::from);
    // The harness names threads after tests.
    skip_into(record.as_deref(), std::thread::current().name().unwrap_or("a test"), &why.to_string());
}

fn skip_into(record: Option<&Path>, test: &str, why: &str) {
    println!("skipped: {test}: {why}");
    let Some(path) = record else { return };
    // One write of one line: several processes may append at once.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{test}: {why}\n").as_bytes()));
    if let Err(error) = written {
        println!("cannot record it in {}: {error}", path.display());
    }
}

/// A file or folder of the folder `shared` beside the repository; where it is absent the test skips.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    skip(format!("../shared/{name} is not there"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_written_one_behind_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("skips");
        skip_into(Some(&path), "one", "no browser");
        skip_into(Some(&path), "two", "no data");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one: no browser\ntwo: no data\n");
        // Without a record, or with one that cannot be written, a test skips all the same.
        skip_into(None, "three", "no data");
        skip_into(Some(&path.join("below")), "four", "no data");
    }
}
