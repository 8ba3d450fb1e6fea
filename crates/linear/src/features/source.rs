//! Where batches come from.

use crate::LinearError;
use std::ops::Range;

/// A data set that hands out its examples in pieces small enough for memory.
pub trait BatchSource<I>: Sync {
    /// Number of examples.
    fn examples(&self) -> usize;

    /// Inputs of the examples in a range, and their targets one after another.
    ///
    /// # Errors
    /// Those of reading the data; [`LinearError::Target`] for a target that the likelihood cannot have produced.
    fn batch(&self, range: Range<usize>) -> Result<(I, Vec<f64>), LinearError>;

    /// The examples with these numbers (ascending) in pieces of at most `at_once`, in order. By runs of neighbours, unless a source can gather what lies apart.
    ///
    /// # Errors
    /// As [`Self::batch`], and those of `visit`.
    fn picked(
        &self,
        examples: &[usize],
        at_once: usize,
        visit: &mut VisitPiece<'_, I>,
    ) -> Result<(), LinearError> {
        for run in examples.chunk_by(|a, b| a + 1 == *b) {
            for piece in run.chunks(at_once.max(1)) {
                let (inputs, targets) = self.batch(piece[0]..piece[0] + piece.len())?;
                visit(piece, inputs, &targets)?;
            }
        }
        Ok(())
    }
}

/// Sees the numbers of some examples, their inputs and their targets.
pub type VisitPiece<'a, I> = dyn FnMut(&[usize], I, &[f64]) -> Result<(), LinearError> + 'a;

/// Examples by number, for [`DenseFeatures`](super::DenseFeatures), with their targets (the same number for each; none where a method needs
/// inputs only).
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    examples: usize,
    targets: Vec<f64>,
}

impl Numbered {
    /// The examples `0..examples` and all their targets.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when the targets are no multiple of the examples.
    pub fn new(examples: usize, targets: Vec<f64>) -> Result<Self, LinearError> {
        let width = targets.len() / examples.max(1);
        crate::check::same(
            "numbers in the targets, a multiple of the examples",
            width * examples,
            targets.len(),
        )?;
        Ok(Self { examples, targets })
    }
}

impl BatchSource<Range<usize>> for Numbered {
    fn examples(&self) -> usize {
        self.examples
    }

    fn batch(&self, range: Range<usize>) -> Result<(Range<usize>, Vec<f64>), LinearError> {
        if range.end > self.examples {
            let (expected, found) = (self.examples, range.end);
            return Err(LinearError::Shape { what: "examples", expected, found });
        }
        let width = self.targets.len() / self.examples.max(1);
        let targets = self.targets[range.start * width..range.end * width].to_vec();
        Ok((range, targets))
    }
}

/// The numbers `0..examples` in pieces of at most `chunk`.
pub(crate) fn chunks(examples: usize, chunk: usize) -> impl Iterator<Item = Range<usize>> {
    let chunk = chunk.max(1);
    (0..examples.div_ceil(chunk)).map(move |k| k * chunk..examples.min((k + 1) * chunk))
}
