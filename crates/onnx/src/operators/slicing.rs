//! Parts of values, and values put together.

use super::super::constant::{Constant, broadcast_shape, count};
use super::super::error::Fault;
use super::super::folding::{parts, slices};
use super::super::importer::{Importer, Known, Parameter};
use super::super::layout::{Place, Tracked, axis, example_shape};
use super::super::node::Node;
use posterior_networks::operation::{Embedding, Operation, Slice};

/// Separate slices that one gather may become.
const MOST_PIECES: usize = 4096;

pub(super) fn slice(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let mut x = importer.tracked(node, 0)?;
    let lengths = x.shape(importer.model.dynamic);
    for slice in slices(importer, node, &lengths)? {
        let all = |batch: usize| batch.checked_mul(x.dims[slice.axis]).is_some_and(|all| slice.reaches(all));
        let of_batch = lengths[slice.axis].batch != 0 && importer.model.fixed.is_some_and(all);
        if of_batch || slice.is_whole(lengths[slice.axis]) {
            continue;
        }
        if lengths[slice.axis].batch != 0 {
            return Err(Fault::Batch("it takes some examples and leaves others".into()));
        }
        let (start, step, length) = slice.range(x.dims[slice.axis])?;
        x = part(importer, node, x, slice.axis, start, step, length)?;
    }
    Ok(x)
}

/// `length` entries of an axis from `start` on.
pub(super) fn part(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axis: usize,
    start: usize,
    step: i64,
    length: usize,
) -> Result<Tracked, Fault> {
    if length == 0 {
        return Err("nothing is left of an axis".into());
    }
    if start == 0 && (step == 1 || length == 1) && length == x.dims[axis] {
        return Ok(x);
    }
    let x = importer.release(node, x, axis)?;
    let along = x.example_axis(axis).ok_or("the axis holds the batch")?;
    let step = if length == 1 { 1 } else { isize::try_from(step).map_err(|_| "the step is too large")? };
    let operation = Operation::Slice(Slice { axis: along, start, step, length });
    let value = importer.emit(node, operation, &[x.value])?;
    let mut dims = x.dims.clone();
    dims[axis] = length;
    Ok(Tracked { value, dims, ..x })
}

pub(super) fn split(importer: &mut Importer<'_>, node: &Node) -> Result<Vec<Known>, Fault> {
    let x = importer.tracked(node, 0)?;
    let along = axis(node.int("axis").unwrap_or(0), x.rank())?;
    let x = importer.release(node, x, along)?;
    let parts = parts(importer, node, x.dims[along])?;
    let mut start = 0;
    let mut out = Vec::with_capacity(node.outputs.len());
    for (_, length) in node.outputs.iter().zip(parts) {
        out.push(Known::Tracked(part(importer, node, x.clone(), along, start, 1, length)?));
        start += length;
    }
    Ok(out)
}

pub(super) fn gather(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let nd = node.operator == "GatherND";
    let along = if nd { 0 } else { node.int("axis").unwrap_or(0) };
    match (importer.get(node, 0).cloned(), importer.get(node, 1).cloned()) {
        (Some(Known::Tracked(x)), Some(Known::Constant(mut indices))) => {
            if nd {
                let rank = indices.shape.len();
                if node.int("batch_dims").unwrap_or(0) != 0 || indices.shape.last() != Some(&1) {
                    return Err(Fault::Unsupported(" along several axes".into()));
                }
                indices = indices.reshaped(indices.shape[..rank - 1].to_vec());
            }
            let along = axis(along, x.rank())?;
            pick(importer, node, x, along, &indices)
        }
        (Some(Known::Constant(table)), Some(Known::Tracked(ids))) if !nd => {
            if axis(along, table.shape.len())? != 0 {
                return Err(Fault::Unsupported(" from a table along an axis other than the first".into()));
            }
            look_up(importer, node, &table, &ids)
        }
        (Some(Known::Tracked(_)), Some(Known::Tracked(_))) => {
            Err(Fault::Unsupported(" of computed values at computed indices".into()))
        }
        _ => Err("an input is missing or constant".into()),
    }
}

/// Entries of an axis at constant indices.
fn pick(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    along: usize,
    indices: &Constant,
) -> Result<Tracked, Fault> {
    let x = importer.release(node, x, along)?;
    let length = x.dims[along];
    let at = indices.whole()?.into_iter().map(|i| axis(i, length)).collect::<Result<Vec<_>, _>>()?;
    if at.is_empty() {
        return Err("nothing is gathered".into());
    }
    let step = if at.len() > 1 { at[1] as i64 - at[0] as i64 } else { 1 };
    let even = step != 0 && at.windows(2).all(|pair| pair[1] as i64 - pair[0] as i64 == step);
    let picked = if even {
        part(importer, node, x, along, at[0], step, at.len())?
    } else {
        if at.len() > MOST_PIECES {
            return Err(Fault::Unsupported(format!(
                " at more than {MOST_PIECES} indices in no regular order"
            )));
        }
        let mut pieces = Vec::with_capacity(at.len());
        for &i in &at {
            pieces.push(part(importer, node, x.clone(), along, i, 1, 1)?);
        }
        join(importer, node, pieces, along)?
    };
    if indices.shape.len() == 1 {
        return Ok(picked);
    }
    let dims = [&picked.dims[..along], &indices.shape, &picked.dims[along + 1..]].concat();
    let moved =
        |p: Place| if p.axis > along { Place { axis: p.axis + indices.shape.len() - 1, ..p } } else { p };
    let place = picked.place.map(moved);
    importer.view(node, &picked, dims, place)
}

/// Rows of a constant table at computed indices.
fn look_up(
    importer: &mut Importer<'_>,
    node: &Node,
    table: &Constant,
    ids: &Tracked,
) -> Result<Tracked, Fault> {
    if !ids.whole {
        return Err(Fault::Unsupported(" at indices that are computed".into()));
    }
    let (entries, rest) = (table.shape[0], &table.shape[1..]);
    let width = count(rest).ok_or("the table is too large")?;
    importer.charge(table.len())?;
    let parameter = Parameter::new(table, vec![entries, width])?;
    let operation = Operation::Embedding(Embedding { entries, width });
    let value = importer.emit_with(node, operation, &[ids.value], vec![parameter])?;
    let rows = Tracked { value, dims: [&ids.dims[..], &[width]].concat(), place: ids.place, whole: false };
    importer.view(node, &rows, [&ids.dims[..], rest].concat(), ids.place)
}

/// Values side by side, all with the batch at the same place.
fn join(
    importer: &mut Importer<'_>,
    node: &Node,
    pieces: Vec<Tracked>,
    axis: usize,
) -> Result<Tracked, Fault> {
    let first = pieces.first().ok_or("there is nothing to join")?.clone();
    let along =
        first.example_axis(axis).ok_or_else(|| Fault::Batch("it joins along the batch axis".into()))?;
    let values: Vec<_> = pieces.iter().map(|p| p.value).collect();
    let value = importer.emit(node, Operation::Concatenate(along), &values)?;
    let mut dims = first.dims.clone();
    dims[axis] = pieces.iter().map(|p| p.dims[axis]).sum();
    Ok(Tracked { value, dims, ..first })
}

pub(super) fn concat(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for i in 0..node.inputs.len() {
        inputs.push(importer.get(node, i).cloned().ok_or("an input is missing")?);
    }
    let computed = inputs.iter().find_map(|k| match k {
        Known::Tracked(t) => Some(t.clone()),
        Known::Constant(_) => None,
    });
    let first = computed.ok_or("there is nothing to join")?;
    let along = axis(node.int("axis").ok_or("`axis` is missing")?, first.rank())?;
    let place = importer.release(node, first, along)?.place;
    let mut pieces = Vec::with_capacity(inputs.len());
    for input in inputs {
        let piece = match input {
            Known::Constant(c) => importer.learned(node, &c, place)?,
            Known::Tracked(t) if t.place == place => t,
            Known::Tracked(t) if importer.model.dynamic => {
                return Err(Fault::Batch(format!(
                    "the batch is at different axes of its inputs ({:?} and {:?})",
                    place.map(|p| p.axis),
                    t.place.map(|p| p.axis)
                )));
            }
            Known::Tracked(t) => {
                let dims = t.dims.clone();
                importer.view(node, &t, dims, place)?
            }
        };
        let fits = (0..piece.rank().max(place.map_or(0, |p| p.axis + 1)))
            .all(|a| a == along || place.is_none_or(|p| p.axis != a) || piece.dims.get(a).is_some());
        if !fits || piece.place != place {
            return Err("the parts have different shapes".into());
        }
        pieces.push(piece);
    }
    let rank = pieces[0].rank();
    if pieces.iter().any(|p| p.rank() != rank) {
        return Err("the parts have different numbers of axes".into());
    }
    join(importer, node, pieces, along)
}

pub(super) fn expand(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let target = importer.required(node, 1)?;
    let target = target.dimensions()?;
    let x = importer.pad_rank(node, x, target.len())?;
    let more = x.rank() - target.len();
    let mut dims = x.dims.clone();
    for (i, length) in target.iter().enumerate() {
        let at = i + more;
        let here = importer.model.dynamic && x.place.is_some_and(|p| p.axis == at);
        match (length.known(), here) {
            (Some(1), _) => {}
            (Some(n), true)
                if importer.model.fixed.is_some_and(|b| {
                    b.checked_mul(dims[at]).is_some_and(|all| i64::try_from(all) == Ok(n))
                }) => {}
            (Some(n), false) if n > 0 => {
                let one = broadcast_shape(
                    &[dims[at]],
                    &[usize::try_from(n).map_err(|_| "a length is too large")?],
                )?;
                dims[at] = one[0];
            }
            (None, true) if length.fixed == 0 && length.batch == dims[at] as i64 => {}
            _ => return Err(Fault::Batch(format!("it repeats examples (to a length of {length})"))),
        }
    }
    let grown = x.place.filter(|p| dims[p.axis] != x.dims[p.axis]);
    let x = match grown {
        Some(place) => {
            let x = importer.release(node, x, place.axis)?;
            let safe = x.place.filter(|p| dims[p.axis] == 1);
            let own = x.dims.clone();
            importer.view(node, &x, own, safe)?
        }
        None => x,
    };
    if count(&example_shape(&dims, x.place))
        .is_none_or(|n| n > posterior_networks::operation::LARGEST_EXAMPLE)
    {
        return Err(Fault::Limit(format!("a value of shape {dims:?} is too large")));
    }
    importer.broadcast(node, x, &dims)
}
