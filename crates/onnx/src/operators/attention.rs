//! `Attention` of operator set 23 on, as products and a softmax.

use super::super::constant::{Constant, Data, MASKED, Origin};
use super::super::dimension::Dimension;
use super::super::error::Fault;
use super::super::importer::Importer;
use super::super::layout::Tracked;
use super::super::node::Node;
use super::binary::plus;
use super::elementwise::scaled;
use super::linear::products;
use super::shape::reshape;
use posterior_networks::operation::Operation;

/// `softmax(scale Q K^T + mask) V`, heads apart.
pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    if (4..node.inputs.len()).any(|i| node.input(i).is_some()) {
        return Err(Fault::Unsupported(" with keys and values of the past".into()));
    }
    if node.float("softcap").unwrap_or(0.0) != 0.0 {
        return Err(Fault::Unsupported(" with `softcap`".into()));
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
    if let Some(mask) = importer.constant(node, 3)? {
        importer.charge(mask.len())?;
        let values: Vec<f64> = match &*mask.data {
            Data::Float(values) => values.iter().map(|v| v.max(-MASKED)).collect(),
            Data::Whole(values) => {
                values.iter().map(|v| if *v == 0.into() { -MASKED } else { 0.0 }).collect()
            }
        };
        let origin = Origin::constant(mask.origin.name.clone());
        scores =
            plus(importer, node, scores, &Constant::new(mask.shape.clone(), Data::Float(values), origin))?;
    }
    if node.int("is_causal").unwrap_or(0) != 0 {
        importer.keep(&[queries, length])?;
        let entry = |i: usize| if i % length <= i / length { 0.0 } else { -MASKED };
        let values = (0..queries * length).map(entry).collect();
        let origin = Origin::constant(format!("{}.mask", node.name));
        scores =
            plus(importer, node, scores, &Constant::new(vec![queries, length], Data::Float(values), origin))?;
    }
    let value = importer.emit(node, Operation::Softmax, &[scores.value])?;
    let y = products(importer, node, Tracked { value, ..scores }, v)?;
    if !flat {
        return Ok(y);
    }
    let y = importer.transpose(node, &y, &[0, 2, 1, 3])?;
    let lengths = y.shape(importer.model.dynamic);
    let joined = lengths[2].multiply(lengths[3])?;
    reshape(importer, node, &y, &[lengths[0], lengths[1], joined])
}

/// Input `i` as examples, heads, places, numbers.
fn heads(importer: &mut Importer<'_>, node: &Node, i: usize, attribute: &str) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, i)?;
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
