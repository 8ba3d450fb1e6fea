//! A table that is read part by part: into memory, or into a file where it does not fit.

use super::choice::choose;
use super::fit::refused;
use super::plan::{ScalablePlan, disk_part_bytes};
use crate::options::MethodName;
use crate::prepare::{self, ComparedRows, at_the_fit, unscaled};
use crate::{FileRows, FitRequest, Method, Model, ModelError, Prepared, TrainingRows};
use faer::Mat;
use posterior_data::stream::{self, StreamOptions};
use posterior_data::{
    Feature, InputRanges, Missing, RowFile, Schema, Standardisation, TextOptions, row_bytes, row_fingerprint,
};
use posterior_gp::RowSource;
use posterior_notes::fixes::{MEMORY, STREAM_FALSE};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Rows of a table as a process sees them, wherever they are.
#[derive(Clone, Debug)]
pub enum PreparedTable {
    /// In memory.
    Memory(Prepared),
    /// In a file without a name, which goes with the last of those who read it.
    Disk(Prepared<FileRows>),
}

impl PreparedTable {
    /// From the given rows (ascending, counted through all files) of a table of CSV and Parquet files that are read part by part. Numbers that do not fit the memory of the request, or are to be on disk
    /// ([`DiskOptions`](crate::options::DiskOptions)), go into a file in `folder` where the method looks at some rows at a time ([`Method::disk`]); `say` hears of it, and how large it will be, before it is written.
    ///
    /// # Errors
    /// As [`Prepared::from_table`]; a fit that does not fit the memory limit, or the disk, is refused before the numbers are read.
    pub fn from_files(
        (files, text): (&[PathBuf], &TextOptions),
        rows: &[usize],
        request: &FitRequest,
        folder: &Path,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, ModelError> {
        if request.output.row_weights.is_some() {
            return Err(ModelError::Usage(format!(
                "--row-weights are for tables in memory: {STREAM_FALSE} reads this one whole"
            )));
        }
        if request.columns.groups.is_some() || request.columns.time.is_some() {
            return Err(ModelError::Usage(format!(
                "--groups and --time are for tables in memory: {STREAM_FALSE} reads this one whole"
            )));
        }
        let usual = StreamOptions { text: *text, ..StreamOptions::default() };
        let part_bytes = usual.part_bytes.min(disk_part_bytes(request.limits.memory));
        let options = StreamOptions { part_bytes, ..usual };
        let schema = stream::learn_schema(files, &request.roles(), rows, &options)?;
        let names = schema.feature_names();
        let chosen = choose(request, rows.len(), &names);
        let asked = (request, &chosen.method);
        let plan = chosen.method.settings().plan(asked, rows.len(), names.len());
        let limit = request.limits.memory;
        // How many rows are dropped is known only after reading.
        let fits = plan.peak_bytes <= limit || request.columns.missing == Missing::Drop;
        let Some(on_disk) = on_disk(request, &chosen.method, (rows.len(), names.len()), plan.peak_bytes)?
        else {
            if !fits {
                return Err(refused(request, plan, &chosen.method));
            }
            let extracted = stream::extract(files, &schema, rows, &options)?;
            let source = stream::source_of(files);
            let prepared = Prepared::from_extracted(schema, extracted, request, &source);
            return prepared.map(Self::Memory).map_err(|error| match error {
                ModelError::Data(error) => stream::locate(files, text, error).into(),
                other => other,
            });
        };
        if on_disk.peak_bytes > limit && request.columns.missing != Missing::Drop {
            return Err(refused(request, on_disk.as_exact(), &chosen.method));
        }
        let width = names.len() + 1 + usize::from(schema.noise.is_some());
        say(format!(
            "prepared rows go to disk: {:.1} MB in {}, gone when the fit ends",
            row_bytes(rows.len(), width) as f64 / 1e6,
            if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.display()
        ));
        Self::to_disk((files, text), schema, rows, request, folder)
    }

    fn to_disk(
        (files, text): (&[PathBuf], &TextOptions),
        schema: Schema,
        rows: &[usize],
        request: &FitRequest,
        folder: &Path,
    ) -> Result<Self, ModelError> {
        if request.learns_heteroscedastic_noise() {
            return Err(ModelError::Request(format!(
                "--noise heteroscedastic is for tables in memory: allow more ({MEMORY}), or leave it out"
            )));
        }
        let counts = request.prior.kernel.count_columns(&schema.feature_names());
        // Columns of 0 and 1 are more numbers than cells.
        let sources: BTreeSet<&str> = schema.features.iter().map(Feature::column).collect();
        let most = disk_part_bytes(request.limits.memory);
        let least = most.min(1 << 16);
        let part_bytes = (most * sources.len() / schema.features.len().max(1)).clamp(least, most);
        let options = StreamOptions { part_bytes, text: *text, ..StreamOptions::default() };
        let (file, notes) = stream::extract_to_file(files, (&schema, &counts), rows, &options, folder)?;
        let inputs = schema.features.len();
        let mut range = [f64::INFINITY, f64::NEG_INFINITY];
        file.each(|_, row| range = [range[0].min(row[inputs]), range[1].max(row[inputs])])?;
        request.require_targets(&stream::source_of(files), &schema.target, file.rows(), range)?;
        let unscaled = unscaled(&schema, request);
        let mut standardisation = Standardisation::learn_rows(&file, inputs)?.keeping(&unscaled);
        let names = schema.feature_names();
        let transform = prepare::choose(request, &compared_of(&file, &names, &standardisation, request)?)?;
        if let Some(by) = transform.chosen {
            let mapped = standardisation.transforming_rows(by, &file)?;
            // Where none was left out, rows of the file are those of the table.
            let row = |i: usize| (file.rows() == rows.len()).then(|| rows[i]);
            standardisation = mapped
                .map_err(|(i, y)| prepare::no_image(by, &schema, row(i), y, &at_the_fit()))?
                .bounded(transform.support);
        }
        let input_ranges = InputRanges::learn_rows(&schema, &file)?;
        let mut prints = Vec::with_capacity(file.rows());
        file.each(|_, row| prints.push(row_fingerprint(row[..=inputs].iter().copied())))?;
        let training = TrainingRows::new(prints);
        let data = FileRows::new(file, standardisation.clone());
        Ok(Self::Disk(Prepared {
            schema,
            standardisation,
            data,
            notes,
            originals: None,
            training,
            input_ranges,
            transform,
        }))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Memory(prepared) => prepared.data.rows(),
            Self::Disk(prepared) => prepared.data.rows(),
        }
    }

    /// Names of the inputs.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Memory(prepared) => prepared.schema.feature_names(),
            Self::Disk(prepared) => prepared.schema.feature_names(),
        }
    }

    /// What a fit will need, in words.
    pub fn plan(&self, request: &FitRequest) -> String {
        let Some(bytes) = self.on_disk() else {
            return Model::plan_fit(request, self.rows(), &self.names()).0;
        };
        let (rows, names) = (self.rows(), self.names());
        let chosen = choose(request, rows, &names);
        let Some(plan) = ScalablePlan::from_disk(request, &chosen.method, rows, names.len()) else {
            return not_from_disk(&chosen.method).to_string();
        };
        let seconds = super::run_time::in_words(request, &chosen.method, rows, &names);
        format!("{plan} ({}), rows from disk ({:.1} MB){seconds}", chosen.why, bytes as f64 / 1e6)
    }

    /// Bytes of the file that the rows are in, if they are in one.
    pub fn on_disk(&self) -> Option<u64> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(prepared) => Some(prepared.data.bytes()),
        }
    }
}

/// Rows of a file to compare maps of the target by.
fn compared_of<'a>(
    file: &RowFile,
    names: &'a [String],
    standard: &Standardisation,
    request: &FitRequest,
) -> Result<ComparedRows<'a>, ModelError> {
    let (inputs, width) = (names.len(), file.width());
    let rows = prepare::compared(file.rows(), request.seed);
    let numbers = file.gather(&rows)?;
    let x = Mat::from_fn(rows.len(), inputs, |i, j| numbers[i * width + j]);
    let mut least = f64::INFINITY;
    file.each(|_, row| least = least.min(row[inputs]))?;
    let y = (0..rows.len()).map(|i| numbers[i * width + inputs]).collect();
    Ok(ComparedRows { names, x: standard.features(x.as_ref()), y, least })
}

/// The plan of a fit from disk, where that is asked for or nothing else fits.
fn on_disk(
    request: &FitRequest,
    method: &Method,
    (rows, inputs): (usize, usize),
    in_memory: u64,
) -> Result<Option<ScalablePlan>, ModelError> {
    let Some(disk) = method.disk() else { return Ok(None) };
    let plan = || ScalablePlan::from_disk(request, method, rows, inputs);
    Ok(match disk.from_disk {
        Some(true) => Some(plan().ok_or_else(|| not_from_disk(method))?),
        Some(false) => None,
        None if in_memory > request.limits.memory => plan().filter(|plan| plan.peak_bytes < in_memory),
        None => None,
    })
}

/// Refuses rows from disk where they are in memory already.
pub(crate) fn in_memory(method: &Method) -> Result<(), ModelError> {
    match method.disk() {
        Some(disk) if disk.from_disk == Some(true) => Err(ModelError::Request(
            "--from-disk is for tables of numbers that are read part by part, and these rows are in memory: leave it out".into(),
        )),
        _ => Ok(()),
    }
}

/// Rows in a file are for methods that look at some of them at a time.
pub(crate) fn not_from_disk(method: &Method) -> ModelError {
    let why = match method.deep() {
        Some((_, kind, _)) if kind.dense => "--set dense factors a matrix of all rows".into(),
        _ => format!("{} was chosen for those that are left", method.name()),
    };
    let names = MethodName::ALL.iter().filter(|name| Method::from(**name).disk().is_some());
    let names: Vec<&str> = names.map(|name| name.as_str()).collect();
    ModelError::Request(format!(
        "rows on disk are for methods that look at some rows at a time ({}), and {why}: ask for one of these",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::groups::DiskOptions;
    use crate::options::{Limits, SvgpOptions};

    #[test]
    fn rows_go_to_disk_where_they_do_not_fit_or_are_told_to() {
        let rows = 10_000_000;
        let asked = |memory: u64, from_disk: Option<bool>| {
            let disk = DiskOptions { from_disk };
            let method = SvgpOptions { disk, ..SvgpOptions::default() }.into();
            let request = FitRequest {
                method,
                limits: Limits { memory, ..Limits::default() },
                ..FitRequest::default()
            };
            let plan = request.method.settings().plan((&request, &request.method), rows, 9);
            on_disk(&request, &request.method, (rows, 9), plan.peak_bytes)
                .unwrap()
                .map(|own| (own.peak_bytes, plan.peak_bytes))
        };
        // Ten million rows of nine inputs are four gigabytes in memory, and a quarter of that from disk.
        let (disk, memory) = asked(2_000_000_000, None).unwrap();
        assert!(memory > 3_900_000_000 && disk < 1_500_000_000, "{memory}, {disk}");
        assert!(asked(8_000_000_000, None).is_none() && asked(2_000_000_000, Some(false)).is_none());
        assert!(asked(8_000_000_000, Some(true)).is_some());
        // Other methods have their rows in memory.
        let request =
            FitRequest { limits: Limits { memory: 1_000_000, ..Limits::default() }, ..FitRequest::default() };
        let method = choose(
            &FitRequest { limits: Limits { memory: 64 << 30, ..request.limits }, ..request.clone() },
            100_000,
            &["a".into()],
        )
        .method;
        assert!(on_disk(&request, &method, (100_000, 1), u64::MAX).unwrap().is_none());
    }
}
