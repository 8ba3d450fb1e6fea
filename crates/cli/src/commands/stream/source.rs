//! Where rows come from, and where that stands.

use crate::args::{FromArg, LastLineArg, StreamArgs};
use crate::interrupt::Interrupt;
use crate::output::Failure;
use posterior::data::arriving::{ArrivingLines, Line, RowFormat, RowKind, SourceEnd};
use posterior::models::StreamState;
use posterior::notes::fixes::{COLUMNS, FROM_NEXT, FROM_START};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines of an input. Until its first row has been seen it is not known to be the right one.
pub(super) struct Source {
    lines: ArrivingLines,
    path: PathBuf,
    /// What a state says, until the stream has it.
    pub(super) state: Option<StreamState>,
    /// Lines that were looked at and belong to the next batch.
    waiting: Vec<Line>,
    /// Rows to be passed over, which were read before.
    to_pass: u64,
    stage: Stage,
    /// Whether a first row that is the stream's own means that rows would count twice.
    refuse_repeated: bool,
}

/// What the next line may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A header, or the input's first row.
    First,
    /// The input's first row.
    FirstRow,
    /// A row.
    Rows,
}

/// What a file is called wherever it is named from.
fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

/// What lines are: as asked, or by the file's name.
pub(super) fn kind(arguments: &StreamArgs) -> RowKind {
    let name = arguments.data.as_ref().map(|p| p.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let ends = |with: &[&str]| with.iter().any(|end| name.ends_with(end));
    arguments.format.unwrap_or(match () {
        () if ends(&[".jsonl", ".ndjson", ".json"]) => RowKind::Jsonl,
        () if ends(&[".tsv"]) => RowKind::Tsv,
        () => RowKind::Csv,
    })
}

/// What the end of the file means.
fn end_of(arguments: &StreamArgs) -> SourceEnd {
    match (arguments.follow, arguments.last_line) {
        (true, _) => SourceEnd::Follow,
        (false, LastLineArg::Wait) => SourceEnd::Wait,
        (false, LastLineArg::Complete) => SourceEnd::Complete,
    }
}

impl Source {
    /// Opens the input where it stands.
    pub(super) fn open(arguments: &StreamArgs, state: Option<StreamState>) -> Result<Self, Failure> {
        if let Some(path) = &arguments.data {
            let name = path.to_string_lossy().to_ascii_lowercase();
            if [".gz", ".parquet", ".pq", ".npy", ".npz"].iter().any(|end| name.ends_with(end)) {
                return Err(Failure::usage(format!(
                    "{}: a stream is lines of text; unpack it (`gzip -dc FILE | posterior stream ...`)",
                    path.display()
                )));
            }
        }
        let path = arguments.data.as_deref().map_or_else(|| "standard input".into(), absolute);
        let same =
            state.as_ref().is_some_and(|s| arguments.data.is_some() && s.input.file.as_ref() == Some(&path));
        let left = state.as_ref().map_or(0, |s| s.input.offset);
        // A state that was killed before its first batch has read nothing, not even a header.
        let goes_on = same && arguments.from.is_none() && left > 0;
        let offset = if goes_on { left } else { 0 };
        if goes_on && let Some(state) = &state {
            is_same_file(&path, state)?;
            if arguments.text.or(state.input.format.text) != state.input.format.text {
                return Err(Failure::usage(format!(
                    "{} was begun with another --set text.delimiter, --set text.decimal or --set text.encoding and is gone on with as it was: leave them out, or read it from its beginning ({FROM_START})",
                    path.display()
                )));
            }
        }
        let known = state.as_ref().map(|s| &s.input.format);
        let read_as = RowFormat::of(
            arguments.format.or(known.map(|f| f.kind)).unwrap_or_else(|| kind(arguments)),
            arguments.text.or(known.map(|f| f.text).unwrap_or_default()),
        );
        read_as.check().map_err(Failure::usage)?;
        let lines = match &arguments.data {
            Some(file) => ArrivingLines::of_file(file, offset, end_of(arguments))?,
            None => ArrivingLines::of_standard_input(),
        };
        let rows = state.as_ref().map_or(0, |s| s.counts.rows);
        let to_pass = if arguments.from == Some(FromArg::Start) { rows } else { 0 };
        Ok(Self {
            lines,
            path,
            waiting: Vec::new(),
            to_pass,
            stage: if goes_on { Stage::Rows } else { Stage::First },
            refuse_repeated: arguments.from.is_none() && rows > 0,
            state,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How many last lines were left because they have no newline yet: one or none.
    pub(super) fn unfinished(&self) -> usize {
        self.lines.unfinished().into()
    }

    /// The file, where it is one.
    pub(super) fn file(&self, arguments: &StreamArgs) -> Option<PathBuf> {
        arguments.data.as_ref().map(|_| self.path.clone())
    }

    /// So many lines, or those that there are where the input ends or an interruption is asked for.
    pub(super) fn first(&mut self, count: usize, interrupt: &Interrupt) -> Result<Vec<Line>, Failure> {
        let stop = || interrupt.requested();
        Ok(self.lines.next_batch(count, Duration::from_secs(u32::MAX.into()), &stop)?)
    }

    /// A batch whose lines are read again.
    pub(super) fn put_back(&mut self, lines: Vec<Line>) {
        self.waiting = lines;
        self.stage = Stage::Rows;
    }

    /// The next batch of rows; None at the end.
    pub(super) fn next(
        &mut self,
        stream: &mut StreamState,
        arguments: &StreamArgs,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<Line>>, Failure> {
        let stop = || interrupt.requested();
        let wait = Duration::from_secs_f64(arguments.wait);
        loop {
            let mut lines = std::mem::take(&mut self.waiting);
            if lines.is_empty() {
                lines = self.lines.next_batch(arguments.batch, wait, &stop)?;
            } else if lines.len() > arguments.batch {
                self.waiting = lines.split_off(arguments.batch);
            }
            if lines.is_empty() {
                if self.lines.ended() || stop() {
                    return Ok(None);
                }
                continue;
            }
            if self.stage == Stage::First {
                self.stage = Stage::FirstRow;
                let format = &mut stream.input.format;
                format.kind = arguments.format.unwrap_or(format.kind);
                format.text = arguments.text.or(format.text);
                if let Some(columns) = &arguments.columns {
                    format.columns.clone_from(columns);
                }
                stream.input.file = self.file(arguments);
                stream.input.offset = 0;
                if stream.take_header(&lines[0], &self.path)? {
                    lines.remove(0);
                } else if stream.counts.rows == 0
                    && arguments.columns.is_none()
                    && stream.input.format.kind != RowKind::Jsonl
                {
                    return Err(Failure::new(format!(
                        "the first line of {} is no header: name its columns, in their order, with {COLUMNS}",
                        self.path.display()
                    )));
                }
            }
            if let (Stage::FirstRow, Some(first)) = (self.stage, lines.first()) {
                self.stage = Stage::Rows;
                self.check_first(stream, first)?;
            }
            let passed = self.to_pass.min(lines.len() as u64);
            self.to_pass -= passed;
            if let Some(last) = lines.drain(..passed as usize).next_back() {
                stream.input.offset = last.end;
            }
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    /// Refuses an input that begins as the stream did, unless it was said what that means.
    fn check_first(&self, stream: &mut StreamState, line: &Line) -> Result<(), Failure> {
        let found = line.digest();
        if self.refuse_repeated && stream.input.first_row == found {
            return Err(Failure::new(format!(
                "{} begins with the row that this stream began with, and its rows would count twice: {FROM_START} passes over those that were read, {FROM_NEXT} takes them as new",
                self.path.display()
            )));
        }
        if stream.counts.rows == 0 {
            stream.input.first_row.clone_from(&found);
        }
        stream.input.file_mark = found;
        Ok(())
    }
}

/// Refuses a file that another has replaced under the same name: its rows are not those that were read.
fn is_same_file(path: &Path, state: &StreamState) -> Result<(), Failure> {
    // Its first row may be all of it, and may have been taken as it stands.
    let mut lines = ArrivingLines::of_file(path, 0, SourceEnd::Complete)?;
    let first = lines.next_batch(2, Duration::from_secs(60), &|| false)?;
    let known = first.iter().any(|line| line.digest() == state.input.file_mark);
    if known || state.input.offset == 0 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} does not begin as it did when it was read before: it was replaced. {FROM_NEXT} reads it from its beginning",
        path.display()
    )))
}
