//! Where the batch axis of a value is.
//!
//! A value of the graph has no batch axis; in ONNX it is an axis like any other, which may move (attention puts it second) and merge with
//! others (examples times heads). As long as examples are never mixed, what is computed for one example does not depend on where its axis is.

use super::dimension::Dimension;
use super::error::Fault;
use posterior_networks::graph::Value;

/// The batch axis: axis `axis` runs over `outer` blocks, each with all examples, each with `dims[axis] / outer` entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) axis: usize,
    pub(super) outer: usize,
}

/// A value of the graph with its ONNX shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tracked {
    pub(super) value: Value,
    /// Lengths of the ONNX axes for one example (the batch axis alone: 1).
    pub(super) dims: Vec<usize>,
    /// The batch axis. Where the batch is fixed to 1 it is any axis of length 1, or none: it then only says which axis the graph's value does
    /// not have.
    pub(super) place: Option<Place>,
    /// Whether it holds whole numbers (tokens).
    pub(super) whole: bool,
}

/// Shape of the graph's value: without the batch axis, unless that is merged with others.
pub(super) fn example_shape(dims: &[usize], place: Option<Place>) -> Vec<usize> {
    let dropped = |axis: usize| place.is_some_and(|p| p.axis == axis) && dims[axis] == 1;
    (0..dims.len()).filter(|&axis| !dropped(axis)).map(|axis| dims[axis]).collect()
}

impl Tracked {
    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The axis of the graph's value that ONNX axis `axis` is; None for the batch axis.
    pub(super) fn example_axis(&self, axis: usize) -> Option<usize> {
        match self.place {
            Some(place) if place.axis == axis => None,
            Some(place) if place.axis < axis && self.dims[place.axis] == 1 => Some(axis - 1),
            _ => Some(axis),
        }
    }

    /// The ONNX shape.
    pub(super) fn shape(&self, dynamic: bool) -> Vec<Dimension> {
        let batch = |axis: usize| dynamic && self.place.is_some_and(|p| p.axis == axis);
        let length = |(axis, &length): (usize, &usize)| {
            let length = length as i64;
            if batch(axis) { Dimension { fixed: 0, batch: length } } else { length.into() }
        };
        self.dims.iter().enumerate().map(length).collect()
    }
}

/// An axis counted from either end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let from_front = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    from_front
        .and_then(|a| usize::try_from(a).ok())
        .filter(|&a| a < rank)
        .ok_or_else(|| format!("there is no axis {axis} of {rank}"))
}

/// The lengths that a reshape asks for: 0 copies (unless `allow_zero`), -1 is what remains.
pub(super) fn resolve(
    source: &[Dimension],
    target: &[Dimension],
    allow_zero: bool,
) -> Result<Vec<Dimension>, String> {
    let mut out = Vec::with_capacity(target.len());
    let mut open = None;
    for (i, &length) in target.iter().enumerate() {
        match length.known() {
            Some(0) if !allow_zero => {
                out.push(*source.get(i).ok_or("a length of 0 copies an axis that is not there")?);
            }
            Some(-1) if open.is_none() => {
                open = Some(i);
                out.push(1.into());
            }
            Some(n) if n < 0 => return Err(format!("a length of {n} makes no sense")),
            _ => out.push(length),
        }
    }
    if let Some(i) = open {
        let (all, rest) = (product(source)?, product(&out)?);
        out[i] = all.divide(rest).map_err(|_| format!("cannot find the length -1 in {}", show(target)))?;
    }
    let (all, new) = (product(source)?, product(&out)?);
    if all != new {
        return Err(format!(
            "cannot reshape {} to {}: they hold different numbers of values",
            show(source),
            show(target)
        ));
    }
    Ok(out)
}

/// Number of values of a shape.
pub(super) fn product(shape: &[Dimension]) -> Result<Dimension, String> {
    shape.iter().try_fold(Dimension::from(1), |product, &length| product.multiply(length))
}

/// A shape for people.
pub(super) fn show(shape: &[Dimension]) -> String {
    let list: Vec<String> = shape.iter().take(16).map(ToString::to_string).collect();
    format!("[{}]", list.join(", "))
}

/// Lengths for one example and the new place of the batch axis after a reshape to `target` (resolved).
pub(super) fn replace(
    dims: &[usize],
    place: Option<Place>,
    target: &[Dimension],
    dynamic: bool,
) -> Result<(Vec<usize>, Option<Place>), Fault> {
    let lengths: Option<Vec<usize>> =
        target.iter().map(|d| usize::try_from(d.at_one()?).ok().filter(|&l| l > 0)).collect();
    let lengths = lengths.ok_or_else(|| Fault::Problem(format!("{} has an empty axis", show(target))))?;
    if !dynamic {
        return Ok((lengths.clone(), settle(&lengths, place.map_or(0, |p| p.axis))));
    }
    let mixes =
        || Fault::Batch(format!("the reshape to {} takes examples apart or mixes them", show(target)));
    let old = place.ok_or_else(mixes)?;
    let with: Vec<usize> = (0..target.len()).filter(|&i| target[i].batch != 0).collect();
    let &[axis] = &with[..] else { return Err(mixes()) };
    if target[axis].fixed != 0 {
        return Err(mixes());
    }
    let before = dims[..old.axis].iter().product::<usize>() * old.outer;
    let passed: usize = lengths[..axis].iter().product();
    let outer = before / passed.max(1);
    if outer * passed != before || outer == 0 || !lengths[axis].is_multiple_of(outer) {
        return Err(mixes());
    }
    Ok((lengths, Some(Place { axis, outer })))
}

/// Which axis of length 1 to drop where the batch is fixed to 1: the one preferred, or the first.
pub(super) fn settle(dims: &[usize], preferred: usize) -> Option<Place> {
    let single = |&axis: &usize| dims.get(axis) == Some(&1);
    let axis = Some(preferred).filter(single).or_else(|| (0..dims.len()).find(single))?;
    Some(Place { axis, outer: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds `replace` against reshaping a batch by brute force: the values of an example, in order, are the example's row.
    #[test]
    fn examples_stay_together() {
        let batch = |k: i64| Dimension { fixed: 0, batch: k };
        let fixed = Dimension::from;
        // [5, B, 12] -> [5, B*3, 4] -> refused as [5*3, B*4]
        let at = Some(Place { axis: 1, outer: 1 });
        let (dims, place) = replace(&[5, 1, 12], at, &[fixed(5), batch(3), fixed(4)], true).unwrap();
        assert_eq!((dims, place), (vec![5, 3, 4], Some(Place { axis: 1, outer: 1 })));
        // [5, B, 12] -> [5*B, 12]: the batch is inside.
        let (_, place) = replace(&[5, 1, 12], at, &[batch(5), fixed(12)], true).unwrap();
        assert_eq!(place, Some(Place { axis: 0, outer: 5 }));
        // And back.
        let (_, place) = replace(&[5, 12], place, &[fixed(5), batch(1), fixed(12)], true).unwrap();
        assert_eq!(place, at);
        assert!(matches!(replace(&[5, 1, 12], at, &[batch(1), fixed(60)], true), Err(Fault::Batch(_))));
        assert!(matches!(replace(&[5, 1, 12], at, &[fixed(60)], true), Err(Fault::Batch(_))));
    }

    #[test]
    fn lengths_are_resolved() {
        let d = |list: &[i64]| list.iter().map(|&v| Dimension::from(v)).collect::<Vec<_>>();
        let source = [Dimension { fixed: 0, batch: 1 }, 4.into(), 6.into()];
        assert_eq!(
            resolve(&source, &d(&[0, -1]), false).unwrap(),
            [Dimension { fixed: 0, batch: 1 }, 24.into()]
        );
        assert_eq!(
            resolve(&source, &d(&[-1, 24]), false).unwrap(),
            [Dimension { fixed: 0, batch: 1 }, 24.into()]
        );
        assert_eq!(resolve(&source, &d(&[-1, 12]), false).unwrap()[0], Dimension { fixed: 0, batch: 2 });
        assert!(resolve(&source, &d(&[-1, 7]), false).is_err());
        assert!(resolve(&source, &d(&[-1, -1]), false).is_err());
        assert!(resolve(&source, &d(&[0, 0, 0, 0]), false).is_err());
        assert!(resolve(&source, &d(&[4, 6]), false).is_err());
    }
}
