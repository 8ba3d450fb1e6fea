//! `Attention` of operator set 23 on, as products and a softmax.

use super::super::constant::{Constant, Data, MASKED, Origin};
use super::super::dimension::Dimension;
use super::super::error::Fault;
use super::super::importer::{Importer, Known};
use super::super::layout::{Place, Tracked};
use super::super::node::Node;
use super::binary::{add_number, plus, times, tracked};
use super::elementwise::{activation, scaled};
use super::linear::products;
use super::reduce::largest;
use super::shape::reshape;
use posterior_networks::Activation;
use posterior_networks::operation::Operation;

/// What finite numbers of masks are cut to: above minus infinity, which [`MASKED`] stands for.
const LOWEST: f64 = -MASKED / 2.0;

/// `softmax(softcap(scale Q K^T) + mask) V`, heads apart. The result is zero for a query that the mask hides every key from.
pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    if node.input(6).is_some() {
        return Err(Fault::Unsupported(" with `nonpad_kv_seqlen`".into()));
    }
    if (4..node.inputs.len()).any(|i| node.input(i).is_some()) {
        return Err(Fault::Unsupported(" with keys and values of the past".into()));
    }
    if ["left_window_size", "right_window_size"].iter().any(|side| node.int(side).is_some_and(|s| s >= 0)) {
        return Err(Fault::Unsupported(" with a sliding window".into()));
    }
    let flat = importer.tracked(node, 0)?.rank() == 3;
    let q = heads(importer, node, 0, "q_num_heads")?;
    let k = heads(importer, node, 1, "kv_num_heads")?;
    let v = heads(importer, node, 2, "kv_num_heads")?;
    let &[_, count, queries, size] = &q.dims[..] else { return Err("it needs values of 3 or 4 axes".into()) };
    let (k, v) = (shared(importer, node, k, count)?, shared(importer, node, v, count)?);
    let keys = importer.transpose(node, &k, &[0, 1, 3, 2])?;
    let length = keys.dims[3];
    let scale = node.float("scale").unwrap_or(1.0 / (size as f64).sqrt());
    let product = products(importer, node, q, keys)?;
    let mut scores = scaled(importer, node, product, scale)?;
    let cap = node.float("softcap").unwrap_or(0.0);
    if cap > 0.0 {
        let ratio = scaled(importer, node, scores, 1.0 / cap)?;
        let bounded = activation(importer, node, ratio, Activation::Tanh)?;
        scores = scaled(importer, node, bounded, cap)?;
    }
    let causal = node.int("is_causal").unwrap_or(0) != 0;
    // 1 for queries that see a key, 0 for the others. A causal mask alone shows the first key to every query.
    let mut sees = None;
    match importer.get(node, 3).cloned() {
        None => {}
        Some(Known::Constant(mask)) => {
            let mask = added(importer, &mask, length)?;
            let some = seen(importer, node, &mask, causal.then_some(queries))?;
            scores = plus(importer, node, scores, &mask)?;
            sees = Some(Known::Constant(some));
        }
        Some(Known::Tracked(mask)) if mask.whole => {
            if importer.model.opset >= 24 && mask.dims.last().is_none_or(|&columns| columns < length) {
                return Err(Fault::Unsupported(" with a computed mask for fewer keys than there are".into()));
            }
            let mask = Tracked { whole: false, ..mask };
            let shown = match causal {
                true => {
                    let below = triangle(importer, node, "below", [queries, length], [1.0, 0.0])?;
                    times(importer, node, mask.clone(), &below)?
                }
                false => mask.clone(),
            };
            let last = shown.rank().checked_sub(1).ok_or("the mask has no axis")?;
            sees = Some(Known::Tracked(largest(importer, node, shown, &[last])?));
            let lifted = scaled(importer, node, mask, MASKED)?;
            let lifted = add_number(importer, node, lifted, -MASKED)?;
            scores = tracked(importer, node, "Add", scores, lifted)?;
        }
        Some(Known::Tracked(_)) => {
            return Err(Fault::Unsupported(
                " with a mask of floats that is computed from the data: use a mask of truth values".into(),
            ));
        }
    }
    if causal {
        let mask = triangle(importer, node, "mask", [queries, length], [0.0, -MASKED])?;
        scores = plus(importer, node, scores, &mask)?;
    }
    let value = importer.emit(node, Operation::Softmax, &[scores.value])?;
    let mut y = products(importer, node, Tracked { value, ..scores }, v)?;
    y = match sees {
        None => y,
        Some(Known::Constant(sees)) => times(importer, node, y, &sees)?,
        Some(Known::Tracked(sees)) => tracked(importer, node, "Mul", y, sees)?,
    };
    if !flat {
        return Ok(y);
    }
    let y = importer.transpose(node, &y, &[0, 2, 1, 3])?;
    let lengths = y.shape(importer.model.dynamic);
    let joined = lengths[2].multiply(lengths[3])?;
    reshape(importer, node, &y, &[lengths[0], lengths[1], joined])
}

/// A constant mask as numbers that are added to scores. From operator set 24 on, keys behind its last axis are hidden.
pub(super) fn added(importer: &mut Importer<'_>, mask: &Constant, length: usize) -> Result<Constant, Fault> {
    let columns = mask.shape.last().copied().ok_or("the mask has no axis")?;
    let more = if importer.model.opset < 24 { 0 } else { length.saturating_sub(columns) };
    let mut shape = mask.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last += more;
    }
    importer.charge(mask.len())?;
    if more > 0 {
        importer.keep(&shape)?;
    }
    let values: Vec<f64> = match &*mask.data {
        Data::Float(values) => {
            values.iter().map(|&v| if v == f64::NEG_INFINITY { -MASKED } else { v.max(LOWEST) }).collect()
        }
        Data::Whole(values) => values.iter().map(|v| if *v == 0.into() { -MASKED } else { 0.0 }).collect(),
    };
    let hidden = std::iter::repeat_n(-MASKED, more);
    let values =
        values.chunks(columns.max(1)).flat_map(|row| row.iter().copied().chain(hidden.clone())).collect();
    Ok(Constant::new(shape, Data::Float(values), Origin::constant(mask.origin.name.clone())))
}

/// For each row of an additive mask (each of so many queries, where a causal one is added) 1 if it shows a key, else 0: `[..., rows, 1]`.
pub(super) fn seen(
    importer: &mut Importer<'_>,
    node: &Node,
    mask: &Constant,
    causal: Option<usize>,
) -> Result<Constant, Fault> {
    let (values, rank) = (mask.floats()?, mask.shape.len());
    let columns = mask.shape.last().copied().unwrap_or(1);
    let rows = rank.checked_sub(2).map_or(1, |at| mask.shape[at]);
    let blocks = if values.is_empty() { 0 } else { values.len() / (rows * columns) };
    let each = causal.unwrap_or(rows);
    let shape = [&mask.shape[..rank.saturating_sub(2)], &[each, 1]].concat();
    importer.keep(&shape)?;
    importer.charge(blocks.saturating_mul(each).saturating_mul(columns))?;
    let sees = |at: usize| {
        let row = at / each * rows + (at % each).min(rows - 1);
        let reach = if causal.is_some() { (at % each + 1).min(columns) } else { columns };
        let shown = values[row * columns..][..reach].iter().any(|&v| v > -MASKED);
        f64::from(u8::from(shown))
    };
    let values = (0..blocks * each).map(sees).collect();
    Ok(Constant::new(shape, Data::Float(values), Origin::constant(format!("{}.sees", node.name))))
}

/// A matrix with the first number on and below the diagonal and the second above it.
fn triangle(
    importer: &mut Importer<'_>,
    node: &Node,
    name: &str,
    [rows, columns]: [usize; 2],
    [below, above]: [f64; 2],
) -> Result<Constant, Fault> {
    importer.keep(&[rows, columns])?;
    let entry = |at: usize| if at % columns <= at / columns { below } else { above };
    let values = (0..rows * columns).map(entry).collect();
    let origin = Origin::constant(format!("{}.{name}", node.name));
    Ok(Constant::new(vec![rows, columns], Data::Float(values), origin))
}

/// Input `i` as examples, heads, places, numbers. Keys and values may be the same for every example.
fn heads(importer: &mut Importer<'_>, node: &Node, i: usize, attribute: &str) -> Result<Tracked, Fault> {
    let x = match importer.get(node, i).cloned() {
        Some(Known::Constant(c)) if i > 0 => importer.learned(node, &c, Some(Place { axis: 0, outer: 1 }))?,
        _ => importer.tracked(node, i)?,
    };
    let lengths = x.shape(importer.model.dynamic);
    match lengths[..] {
        [_, _, _, _] => Ok(x),
        [batch, places, numbers] => {
            let count = node.int(attribute).filter(|&h| h > 0).ok_or("the number of heads is missing")?;
            let each = numbers.divide(Dimension::from(count))?;
            let apart = reshape(importer, node, &x, &[batch, places, count.into(), each])?;
            importer.transpose(node, &apart, &[0, 2, 1, 3])
        }
        _ => Err("it needs values of 3 or 4 axes".into()),
    }
}

/// Keys or values with a head for each of `count`, where several queries share one.
fn shared(importer: &mut Importer<'_>, node: &Node, x: Tracked, count: usize) -> Result<Tracked, Fault> {
    let own = x.dims[1];
    if own == count {
        return Ok(x);
    }
    if own == 0 || !count.is_multiple_of(own) {
        return Err(Fault::Problem(format!("{count} heads of queries cannot share {own} of keys")));
    }
    let lengths = x.shape(importer.model.dynamic);
    let [batch, heads, places, numbers] = lengths[..] else { return Err("it needs values of 4 axes".into()) };
    let apart = reshape(importer, node, &x, &[batch, heads, 1.into(), places, numbers])?;
    let mut dims = apart.dims.clone();
    dims[2] = count / own;
    let repeated = importer.broadcast(node, apart, &dims)?;
    reshape(importer, node, &repeated, &[batch, (count as i64).into(), places, numbers])
}
