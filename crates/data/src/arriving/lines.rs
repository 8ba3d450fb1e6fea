//! Lines, a batch at a time.

use crate::DataError;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a line that are kept; a longer one is a bad row.
const LONGEST_LINE: usize = 1 << 20;

/// Lines that wait to be asked for.
const WAITING: usize = 64;

/// A batch of so many bytes is full, however few lines these are.
const BATCH_BYTES: usize = 32 << 20;

/// How often a file that has ended is looked at again, and whoever waits asks whether to go on.
const PAUSE: Duration = Duration::from_millis(100);

/// What the end of a source means for a last line without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEnd {
    /// It ends the line.
    Complete,
    /// The line is unfinished, and left for the next call: what writes the file may have written half of it.
    Wait,
    /// More is waited for, and the line with it.
    Follow,
}

/// A line that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its bytes, without its end; only the first of a line that is too long.
    pub text: Vec<u8>,
    /// Whether bytes of it are missing.
    pub cut: bool,
    /// How many bytes of the source end with it, its end included.
    pub end: u64,
}

impl Line {
    /// SHA-256 of its bytes, by which a row is known again.
    pub fn digest(&self) -> String {
        posterior_store::numbers_digest(&String::from_utf8_lossy(&self.text), &[])
    }
}

/// Lines as they arrive. A thread of its own reads them, so that a batch need not be full to be handed on.
pub struct ArrivingLines {
    receiver: Receiver<Result<Line, DataError>>,
    reader: Option<JoinHandle<bool>>,
    ended: bool,
    unfinished: bool,
}

impl ArrivingLines {
    /// Of a file, from the byte `from` on.
    ///
    /// # Errors
    /// [`DataError::Read`]; [`DataError::Malformed`] for a file that is shorter than that: it is not the one that was read before.
    pub fn of_file(path: &Path, from: u64, end: SourceEnd) -> Result<Self, DataError> {
        let failed = |source| DataError::Read { path: path.into(), source };
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length < from {
            return Err(shrunk(path, length, from));
        }
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        Ok(Self::of(file, path.into(), from, end))
    }

    /// Of standard input, counted from what it gives first. Nothing comes after its end, which ends its last line.
    pub fn of_standard_input() -> Self {
        Self::of(std::io::stdin(), "standard input".into(), 0, SourceEnd::Complete)
    }

    /// Of any source, which is named in messages.
    pub fn of<R: Read + Send + 'static>(source: R, path: PathBuf, from: u64, end: SourceEnd) -> Self {
        let (sender, receiver) = sync_channel(WAITING);
        let reader = std::thread::spawn(move || read(source, &path, from, end, &sender));
        Self { receiver, reader: Some(reader), ended: false, unfinished: false }
    }

    /// Whether there are no more.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Whether they ended before a last line without its newline, which was left.
    pub fn unfinished(&self) -> bool {
        self.unfinished
    }

    /// The next lines: at most `most` (or 32 MB and a line), and those that have come `wait` after the first of them. Waits for the first as long as it takes, or until `stop` says so; none then, or at the end.
    ///
    /// # Errors
    /// [`DataError::Read`]; [`DataError::Malformed`] where a file that is followed has become shorter. Lines from before are handed on first.
    pub fn next_batch(
        &mut self,
        most: usize,
        wait: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Line>, DataError> {
        let mut out: Vec<Line> = Vec::new();
        let (mut until, mut bytes): (Option<Instant>, usize) = (None, 0);
        while out.len() < most && bytes < BATCH_BYTES && !self.ended && !stop() {
            let left =
                until.map_or(PAUSE, |until| until.saturating_duration_since(Instant::now()).min(PAUSE));
            match self.receiver.recv_timeout(left) {
                Ok(Ok(line)) => {
                    until.get_or_insert_with(|| Instant::now() + wait);
                    bytes += line.text.len();
                    out.push(line);
                }
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    self.unfinished = self.reader.take().is_some_and(|reader| reader.join().unwrap_or(false));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        break;
                    }
                }
            }
        }
        Ok(out)
    }
}

fn shrunk(path: &Path, length: u64, from: u64) -> DataError {
    let reason = format!(
        "it has {length} bytes, and {from} of it were read before: it is not the file that this stream began with"
    );
    DataError::Malformed { path: path.into(), format: "stream", reason }
}

/// Hands lines on until the source ends or nobody takes them. Whether a last line was left comes back.
fn read<R: Read>(
    source: R,
    path: &Path,
    from: u64,
    at_end: SourceEnd,
    sender: &SyncSender<Result<Line, DataError>>,
) -> bool {
    let mut reader = BufReader::with_capacity(1 << 18, source);
    let mut line = Line { text: Vec::new(), cut: false, end: from };
    loop {
        let (used, whole) = match reader.fill_buf() {
            Ok([]) if at_end == SourceEnd::Follow => {
                match std::fs::metadata(path).map(|m| m.len()) {
                    Ok(length) if length < line.end => {
                        let _ = sender.send(Err(shrunk(path, length, line.end)));
                        return false;
                    }
                    _ => std::thread::sleep(PAUSE),
                }
                // A file that has ended gives more once it has grown.
                continue;
            }
            Ok([]) => {
                let last = finished(&mut line);
                if at_end == SourceEnd::Wait {
                    return last.is_some();
                }
                if let Some(last) = last {
                    let _ = sender.send(Ok(last));
                }
                return false;
            }
            Ok(bytes) => {
                let end = bytes.iter().position(|b| *b == b'\n');
                let own = &bytes[..end.unwrap_or(bytes.len())];
                let room = LONGEST_LINE.saturating_sub(line.text.len());
                line.text.extend_from_slice(&own[..own.len().min(room)]);
                line.cut |= own.len() > room;
                (own.len() + usize::from(end.is_some()), end.is_some())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(source) => {
                let _ = sender.send(Err(DataError::Read { path: path.into(), source }));
                return false;
            }
        };
        reader.consume(used);
        line.end += used as u64;
        if whole
            && let Some(line) = finished(&mut line)
            && sender.send(Ok(line)).is_err()
        {
            return false;
        }
    }
}

/// The line without its end; None where it is blank.
fn finished(line: &mut Line) -> Option<Line> {
    let mut out = Line { text: std::mem::take(&mut line.text), ..line.clone() };
    line.cut = false;
    if out.text.last() == Some(&b'\r') {
        out.text.pop();
    }
    (!out.text.iter().all(u8::is_ascii_whitespace)).then_some(out)
}
