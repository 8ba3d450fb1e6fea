//! Which parts of an axis `Slice` and `Split` take, of constants and of computed values.

use crate::dimension::Dimension;
use crate::error::Fault;
use crate::importer::Importer;
use crate::layout::axis;
use crate::node::Node;

/// What a `Slice` takes of one axis; the ends may depend on the number of examples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceOf {
    pub(crate) axis: usize,
    start: Dimension,
    end: Dimension,
    step: i64,
}

impl SliceOf {
    /// Whether it takes all of an axis of `length`.
    pub(crate) fn is_whole(&self, length: Dimension) -> bool {
        let reaches = self.end.compare(length).is_ok_and(|sign| sign >= 0)
            || (length.batch != 0 && self.end.known().is_some_and(|end| end >= i64::from(i32::MAX)));
        self.start == 0.into() && self.step == 1 && reaches
    }

    /// Whether it takes an axis of this length from its beginning to its end.
    pub(crate) fn reaches(&self, length: usize) -> bool {
        let to_end = self.end.known().is_some_and(|end| usize::try_from(end).is_ok_and(|end| end >= length));
        self.start == 0.into() && self.step == 1 && to_end
    }

    /// First index, step and count on an axis of `length`.
    pub(crate) fn range(&self, length: usize) -> Result<(usize, i64, usize), String> {
        let (Some(start), Some(end)) = (self.start.known(), self.end.known()) else {
            return Err("a slice ends at a position that depends on the number of examples".into());
        };
        let (n, step) = (length as i128, i128::from(self.step));
        let from_front = |at: i64| if at < 0 { i128::from(at) + n } else { i128::from(at) };
        let (start, end) = (from_front(start), from_front(end));
        let (start, end) = match step {
            1.. => (start.clamp(0, n), end.clamp(0, n)),
            _ => (start.clamp(-1, n - 1), end.clamp(-1, n - 1)),
        };
        let distance = if step > 0 { end - start } else { start - end };
        let count = if distance <= 0 { 0 } else { (distance - 1) / step.abs() + 1 };
        Ok((start.max(0) as usize, self.step, count as usize))
    }

    pub(super) fn indices(&self, length: usize) -> Result<Vec<usize>, String> {
        let (start, step, count) = self.range(length)?;
        Ok((0..count).map(|i| (start as i64 + i as i64 * step) as usize).collect())
    }
}

/// The slices that a `Slice` takes of a value with these lengths, axis by axis.
pub(crate) fn slices(
    importer: &Importer<'_>,
    node: &Node,
    lengths: &[Dimension],
) -> Result<Vec<SliceOf>, Fault> {
    // Attributes before operator set 10.
    let bounds = |attribute: &str, i: usize| match node.ints(attribute) {
        Some(list) => Ok(list.iter().map(|&v| Dimension::from(v)).collect()),
        None => Ok::<_, Fault>(importer.required(node, i)?.dimensions()?.to_vec()),
    };
    let (starts, ends) = (bounds("starts", 1)?, bounds("ends", 2)?);
    let axes = importer.list(node, "axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = importer.constant(node, 4)?.map_or_else(|| Ok(vec![1; starts.len()]), |s| s.whole())?;
    if starts.len() != ends.len() || starts.len() != axes.len() || starts.len() != steps.len() {
        return Err("`starts`, `ends`, `axes` and `steps` have different lengths".into());
    }
    if starts.len() > lengths.len() || steps.contains(&0) {
        return Err("there are more slices than axes, or a step of 0".into());
    }
    (0..starts.len())
        .map(|i| {
            let axis = axis(axes[i], lengths.len())?;
            Ok(SliceOf { axis, start: starts[i], end: ends[i], step: steps[i] })
        })
        .collect()
}

/// Lengths of the parts of a `Split` of an axis of `length`.
pub(crate) fn parts(importer: &Importer<'_>, node: &Node, length: usize) -> Result<Vec<usize>, Fault> {
    if let Some(parts) = importer.list(node, "split", 1)? {
        let parts: Option<Vec<usize>> = parts.iter().map(|&p| usize::try_from(p).ok()).collect();
        let total = |p: &Vec<usize>| p.iter().try_fold(0usize, |sum, &l| sum.checked_add(l));
        return parts.filter(|p| total(p) == Some(length)).ok_or_else(|| {
            Fault::Problem(format!("the parts do not add up to the axis of length {length}"))
        });
    }
    let count = node.outputs.len().max(1);
    let each = length.div_ceil(count);
    Ok((0..count).map(|i| each.min(length.saturating_sub(i * each))).collect())
}
