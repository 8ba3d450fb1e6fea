//! The archive around the program: which dictionary is meant, and the numbers of one tensor at a time.

use super::objects::{Objects, Storage, Value, View};
use super::pickle;
use crate::safetensors::SafetensorsError;
use safetensors::Dtype;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use zip::{CompressionMethod, ZipArchive};

/// Bytes of the program at most; those of networks of a hundred thousand tensors have fewer.
const LONGEST_PROGRAM: u64 = 16 << 20;

/// What `torch.compile` and `DataParallel` put before every name.
const PREFIXES: [&str; 2] = ["module.", "_orig_mod."];

/// An open file of `torch.save` with one dictionary of tensors.
#[derive(Debug)]
pub(crate) struct StateDict<R = BufReader<File>> {
    path: PathBuf,
    archive: ZipArchive<R>,
    /// What all members' names begin with.
    folder: String,
    storages: Vec<Storage>,
    views: BTreeMap<String, View>,
    notes: Vec<String>,
}

impl StateDict {
    /// Whether a file begins as those of `torch.save` do, of today or of before 2020.
    pub(crate) fn recognises(head: &[u8]) -> bool {
        head.starts_with(b"PK\x03\x04") || head.starts_with(b"\x80\x02\x8a\x0a")
    }

    /// Opens a file and finds the dictionary of its tensors: the outermost, or the only one inside.
    ///
    /// # Errors
    /// [`SafetensorsError::Read`]; [`SafetensorsError::StateDict`] for files that hold something else, with the way out.
    pub(crate) fn open(path: &Path) -> Result<Self, SafetensorsError> {
        let failed = |source| SafetensorsError::Read { path: path.into(), source };
        let refused = |problem: String| SafetensorsError::StateDict { path: path.into(), problem };
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(refused("it is not an ordinary file".into()));
        }
        Self::new(BufReader::new(file), path)
    }
}

impl<R: Read + Seek> StateDict<R> {
    /// As [`StateDict::open`] for bytes from anywhere; `path` is for messages only.
    ///
    /// # Errors
    /// As [`StateDict::open`].
    pub(crate) fn new(mut reader: R, path: &Path) -> Result<Self, SafetensorsError> {
        let failed = |source| SafetensorsError::Read { path: path.into(), source };
        let refused = |problem: String| SafetensorsError::StateDict { path: path.into(), problem };
        let mut head = [0; 4];
        reader.read_exact(&mut head).and_then(|()| reader.rewind()).map_err(failed)?;
        if !head.starts_with(b"PK") {
            return Err(refused(
                "it has the format of PyTorch before 1.6: save it again, torch.save(torch.load(OLD, weights_only=True), NEW)".into(),
            ));
        }
        let mut archive = ZipArchive::new(reader).map_err(|e| refused(format!("a damaged archive: {e}")))?;
        let folder = folder(&archive)
            .ok_or_else(|| refused("an archive without data.pkl, so nothing that torch.save wrote".into()))?;
        if archive.file_names_raw().any(|name| name == format!("{folder}constants.pkl").as_bytes()) {
            return Err(refused(
                "it holds a TorchScript program: export the module to ONNX, or save its tensors, torch.save(module.state_dict(), FILE)".into(),
            ));
        }
        let mut member = |name: &str| -> Result<Vec<u8>, String> {
            let mut entry =
                archive.by_name(&format!("{folder}{name}")).map_err(|e| format!("{name}: {e}"))?;
            if entry.size() > LONGEST_PROGRAM {
                return Err(format!("its {name} has {} bytes, more than {LONGEST_PROGRAM}", entry.size()));
            }
            if entry.compression() != CompressionMethod::Stored {
                return Err(format!("its {name} is compressed, which torch.save does not do"));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(|e| format!("{name}: {e}"))?;
            Ok(bytes)
        };
        let program = member("data.pkl").map_err(refused)?;
        // Files of before 2023 have none.
        if member("byteorder").is_ok_and(|order| order == b"big") {
            return Err(refused("its numbers are big-endian: save it again on another machine".into()));
        }
        let (objects, root) = pickle::read(&program).map_err(refused)?;
        let (views, mut notes) = tensors(&objects, root).map_err(refused)?;
        let views = without_prefix(views, &mut notes);
        Ok(Self { path: path.into(), archive, folder, storages: objects.storages, views, notes })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors' names, in alphabetical order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.views.keys().cloned().collect()
    }

    /// Type and shape of a tensor.
    pub(crate) fn info(&self, name: &str) -> Option<(Dtype, &[usize])> {
        let view = self.views.get(name)?;
        Some((self.storages.get(view.storage)?.dtype, &view.shape))
    }

    /// What was chosen and left out.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The bytes of one tensor, row-major; none where there is no such tensor. Takes the memory of the tensor, and of the part of its storage that it is a view of.
    ///
    /// # Errors
    /// [`SafetensorsError::Read`]; [`SafetensorsError::StateDict`] where its storage is absent, compressed or too short.
    pub(crate) fn bytes(&mut self, name: &str) -> Result<Vec<u8>, SafetensorsError> {
        let Self { path, archive, folder, storages, views, .. } = self;
        let Some(view) = views.get(name) else { return Ok(Vec::new()) };
        let refused = |problem: String| SafetensorsError::StateDict { path: path.clone(), problem };
        let Some(Storage { key, dtype, length }) = storages.get(view.storage) else { return Ok(Vec::new()) };
        let width = dtype.bitsize() / 8;
        let beyond = || refused(format!("`{name}` is larger than its storage"));
        let shown = view.len().ok_or_else(beyond)?;
        if shown == 0 {
            return Ok(Vec::new());
        }
        let end = view.end().filter(|end| end <= length).ok_or_else(beyond)?;
        let mut entry = archive
            .by_name(&format!("{folder}data/{key}"))
            .map_err(|e| refused(format!("the numbers of `{name}`: {e}")))?;
        if entry.compression() != CompressionMethod::Stored {
            return Err(refused(format!(
                "the numbers of `{name}` are compressed, which torch.save does not do"
            )));
        }
        let size = (end as u64).checked_mul(width as u64);
        if size.is_none_or(|size| size > entry.size()) {
            return Err(refused(format!("the numbers of `{name}` are cut off")));
        }
        let failed = |source| SafetensorsError::Read { path: path.clone(), source };
        let (first, count) = ((view.offset * width) as u64, ((end - view.offset) * width) as u64);
        std::io::copy(&mut entry.by_ref().take(first), &mut std::io::sink()).map_err(failed)?;
        // Not every size that an archive declares is there: memory is taken as bytes arrive.
        let mut numbers = Vec::new();
        entry.take(count).read_to_end(&mut numbers).map_err(failed)?;
        if numbers.len() as u64 != count {
            return Err(refused(format!("the numbers of `{name}` are cut off")));
        }
        if view.is_contiguous() {
            return Ok(numbers);
        }
        Ok(view.places().flat_map(|i| numbers[i * width..(i + 1) * width].iter().copied()).collect())
    }
}

/// The folder that holds `data.pkl`, which is the name of the file when it was saved.
fn folder<R: Read + Seek>(archive: &ZipArchive<R>) -> Option<String> {
    let name = archive.file_names_raw().find(|name| name.ends_with(b"/data.pkl"))?;
    Some(std::str::from_utf8(name).ok()?.strip_suffix("data.pkl")?.to_string())
}

/// The tensors of the dictionary that is meant, with what was chosen for it.
fn tensors(objects: &Objects, root: Value) -> Result<(BTreeMap<String, View>, Vec<String>), String> {
    const SAVE: &str = "save the tensors alone, torch.save(module.state_dict(), FILE)";
    let outermost = match root {
        Value::Dictionary(i) => i,
        Value::Foreign(i) => {
            let (module, name) = &objects.globals[i];
            return Err(format!(
                "it holds an object of the class {module}.{name}, which only Python can make: {SAVE}"
            ));
        }
        Value::Tensor(_) => return Err(format!("it holds one tensor without a name: {SAVE}")),
        _ => return Err(format!("it holds no dictionary of tensors: {SAVE}")),
    };
    let mut notes = Vec::new();
    let (mut found, mut others) = objects.tensors(outermost);
    if found.is_empty() {
        // A dictionary that stands under many names is looked at once.
        let mut seen = HashSet::new();
        let inside = objects.dictionaries[outermost].iter().filter_map(|&(key, value)| {
            let Value::Dictionary(i) = value else { return None };
            let key = objects.text(key)?;
            (seen.insert(i) && objects.has_tensors(i)).then_some((key, i))
        });
        let mut inside: Vec<_> = inside.collect();
        if inside.len() > 1 {
            let names: Vec<String> = inside.iter().take(5).map(|(key, _)| format!("`{key}`")).collect();
            return Err(format!(
                "it holds {} dictionaries of tensors ({}): save the one you want, torch.save(torch.load(FILE)[NAME], NEW)",
                inside.len(),
                names.join(", ")
            ));
        }
        let Some((key, own)) = inside.pop() else { return Err(format!("it holds no tensors: {SAVE}")) };
        notes.push(format!("the tensors are those of its dictionary `{key}`"));
        (found, others) = objects.tensors(own);
    }
    if others > 0 {
        notes.push(format!(
            "{others} entries beside the tensors, which are none of a known kind, were left out"
        ));
    }
    Ok((found.into_iter().map(|(name, view)| (name.to_string(), view.clone())).collect(), notes))
}

/// The same tensors without what is before all their names.
fn without_prefix(mut views: BTreeMap<String, View>, notes: &mut Vec<String>) -> BTreeMap<String, View> {
    while let Some(prefix) = PREFIXES.iter().find(|prefix| views.keys().all(|name| name.starts_with(*prefix)))
    {
        notes.push(format!("`{prefix}` before all names was left out"));
        views = views.into_iter().map(|(name, view)| (name[prefix.len()..].to_string(), view)).collect();
        if views.is_empty() {
            break;
        }
    }
    views
}
