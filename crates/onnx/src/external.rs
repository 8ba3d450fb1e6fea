//! **External data**: numbers of tensors in files beside the model, as PyTorch writes them for `net.onnx` to `net.onnx.data`.
//!
//! A model may come from anywhere, so it may only name files of its own folder: plain names, of regular files, whose links do not lead
//! elsewhere. What a tensor declares is held against its file before memory is taken, and only its own bytes are read.

use super::definitions::TensorProto;
use super::error::short;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// The files beside a model.
#[derive(Debug, Default)]
pub(super) struct DataFiles {
    /// Where they are; None for a model that came as bytes.
    folder: Option<PathBuf>,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What every name stands for, and its length.
    files: HashMap<String, (PathBuf, u64)>,
    /// The files themselves, and the sum of their lengths.
    seen: HashSet<PathBuf>,
    total: u64,
    /// The file that was read last: one is open at a time, since some exporters write one for each tensor.
    current: Option<(String, File)>,
}

/// Where the numbers of a tensor are.
struct Region {
    location: String,
    offset: u64,
    length: Option<u64>,
}

/// Whether the numbers of a tensor are in another file.
pub(super) fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(1) || !tensor.external_data.is_empty()
}

impl DataFiles {
    /// Those beside the model at `path`.
    pub(super) fn beside(path: &Path) -> Self {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self { folder: Some(folder.to_path_buf()), state: RefCell::default() }
    }

    /// Bytes of all files that are known so far, each counted once.
    pub(super) fn total(&self) -> u64 {
        self.state.borrow().total
    }

    /// The file that a tensor's numbers are in becomes known.
    ///
    /// # Errors
    /// When it is not there, or may not be opened.
    pub(super) fn locate(&self, tensor: &TensorProto) -> Result<(), String> {
        self.find(&Region::of(tensor)?).map(|_| ())
    }

    /// The `bytes` bytes of a tensor, in pieces of whole numbers of `width` bytes.
    ///
    /// # Errors
    /// When they are not there; checked before `start` (which may take memory) and `each` are called.
    pub(super) fn read(
        &self,
        tensor: &TensorProto,
        bytes: u64,
        width: usize,
        start: impl FnOnce() -> Result<(), String>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        let region = Region::of(tensor)?;
        let shown = short(&region.location);
        if let Some(length) = region.length.filter(|&l| l != bytes) {
            return Err(format!("its shape needs {bytes} bytes, `length` says {length}"));
        }
        let (path, size) = self.find(&region)?;
        if region.offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(format!(
                "it needs {bytes} bytes from {} on, `{shown}` has {size}: the file is cut off, or of another model",
                region.offset
            ));
        }
        start()?;
        let failed = |e: std::io::Error| format!("cannot read `{shown}`: {e}");
        let mut state = self.state.borrow_mut();
        if state.current.as_ref().is_none_or(|(name, _)| *name != region.location) {
            let file = File::open(&path).map_err(failed)?;
            if !file.metadata().map_err(failed)?.is_file() {
                return Err(format!("`{shown}` is not a regular file"));
            }
            state.current = Some((region.location.clone(), file));
        }
        let Some((_, file)) = &mut state.current else { return Err(format!("`{shown}` is not open")) };
        file.seek(SeekFrom::Start(region.offset)).map_err(failed)?;
        let mut piece = vec![0; PIECE.next_multiple_of(width).min(usize::try_from(bytes).unwrap_or(PIECE))];
        let mut left = bytes;
        while left > 0 {
            let now = piece.len().min(usize::try_from(left).unwrap_or(PIECE));
            file.read_exact(&mut piece[..now]).map_err(failed)?;
            each(&piece[..now]);
            left -= now as u64;
        }
        Ok(())
    }

    /// The file of a region and its length.
    fn find(&self, region: &Region) -> Result<(PathBuf, u64), String> {
        let Some(folder) = &self.folder else {
            return Err(
                "only the bytes of the model were given: read it by its path, or export it with external_data=False".into()
            );
        };
        if let Some(found) = self.state.borrow().files.get(&region.location) {
            return Ok(found.clone());
        }
        let shown = short(&region.location);
        let place = short(&folder.display().to_string());
        let file = folder.join(&region.location);
        let missing = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no file `{shown}` in the folder `{place}`: it must lie beside the model")
            }
            _ => format!("cannot open `{shown}` in the folder `{place}`: {e}"),
        };
        // Links are followed first: what they lead to must be in the folder as well.
        let (real, home) = (file.canonicalize().map_err(missing)?, folder.canonicalize().map_err(missing)?);
        if real.parent() != Some(home.as_path()) {
            return Err(format!(
                "`{shown}` is a link that leads out of the folder `{place}`: copy the file there"
            ));
        }
        // Looked at before it is opened, since opening a pipe or a device may wait or do something.
        let found = std::fs::symlink_metadata(&real).map_err(missing)?;
        if !found.is_file() {
            return Err(format!("`{shown}` in the folder `{place}` is not a regular file"));
        }
        let known = (real, found.len());
        let mut state = self.state.borrow_mut();
        if state.seen.insert(known.0.clone()) {
            state.total = state.total.saturating_add(known.1);
        }
        state.files.insert(region.location.clone(), known.clone());
        Ok(known)
    }

    /// The files that were found, for tests.
    #[cfg(test)]
    pub(super) fn found(&self) -> Vec<PathBuf> {
        self.state.borrow().files.values().map(|(path, _)| path.clone()).collect()
    }
}

impl Region {
    fn of(tensor: &TensorProto) -> Result<Self, String> {
        let text = |key: &str| {
            let mut entries = tensor.external_data.iter().filter(|e| e.key.as_deref() == Some(key));
            let value = entries.next().and_then(|e| e.value.as_deref());
            if entries.next().is_some() { Err(format!("`{key}` is given twice")) } else { Ok(value) }
        };
        let number = |key: &str| {
            text(key)?.map(|v| v.parse::<u64>().map_err(|_| format!("`{key}` is no number"))).transpose()
        };
        let location = text("location")?.ok_or("it does not say in which")?;
        let mut parts = Path::new(location).components();
        let plain = matches!(parts.next(), Some(Component::Normal(part)) if part == location);
        if !plain || parts.next().is_some() || location.contains(['/', '\\', '\0']) {
            let shown = short(location);
            return Err(format!("`{shown}` is not a plain file name: it must lie beside the model"));
        }
        Ok(Self {
            location: location.to_string(),
            offset: number("offset")?.unwrap_or(0),
            length: number("length")?,
        })
    }
}
