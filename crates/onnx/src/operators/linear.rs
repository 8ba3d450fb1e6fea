//! Matrix products: with a constant they are linear layers.

use super::super::constant::{Constant, Data};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known, Parameter};
use super::super::layout::Tracked;
use super::super::node::Node;
use super::binary::{plus, together};
use posterior_networks::operation::{Linear, MatrixProduct, Operation};

/// `alpha op(A) op(B) + beta C`.
pub(super) fn gemm(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let alpha = node.float("alpha").unwrap_or(1.0);
    let beta = node.float("beta").unwrap_or(1.0);
    let transposed = |name: &str| node.int(name).unwrap_or(0) != 0;
    let mut x = importer.tracked(node, 0)?;
    if x.rank() != 2 {
        return Err(Fault::Problem(format!("it needs matrices, its first input has {} axes", x.rank())));
    }
    if transposed("transA") {
        x = importer.transpose(node, &x, &[1, 0])?;
    }
    if let Some(Known::Tracked(b)) = importer.get(node, 1).cloned() {
        let b = if transposed("transB") { importer.transpose(node, &b, &[1, 0])? } else { b };
        let product = products(importer, node, x, b)?;
        let product = super::elementwise::scaled(importer, node, product, alpha)?;
        return match importer.constant(node, 2)? {
            Some(c) => {
                let c = scale(importer, &c, beta)?;
                plus(importer, node, product, &c)
            }
            None => Ok(product),
        };
    }
    let weight = importer.required(node, 1)?;
    let weight = scale(importer, &weight, alpha)?;
    let weight = if transposed("transB") { weight } else { flip(importer, &weight)? };
    match importer.get(node, 2).cloned() {
        None => layer(importer, node, x, &weight, None),
        Some(Known::Constant(bias)) => {
            let bias = scale(importer, &bias, beta)?;
            if let Some(vector) = vector(&bias, weight.shape.first().copied().unwrap_or(0)) {
                return layer(importer, node, x, &weight, Some(&vector));
            }
            let product = layer(importer, node, x, &weight, None)?;
            plus(importer, node, product, &bias)
        }
        Some(Known::Tracked(c)) => {
            let product = layer(importer, node, x, &weight, None)?;
            let c = super::elementwise::scaled(importer, node, c, beta)?;
            let (product, c) = together(importer, node, product, c)?;
            let dims = product.dims.clone();
            let c = importer.broadcast(node, c, &dims)?;
            let value = importer.emit(node, Operation::Add, &[product.value, c.value])?;
            Ok(Tracked { value, ..product })
        }
    }
}

/// `A B` on the last two axes.
pub(super) fn mat_mul(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let get = |importer: &Importer<'_>, i: usize| {
        importer.get(node, i).cloned().ok_or_else(|| Fault::Problem(format!("input {i} is missing")))
    };
    match (get(importer, 0)?, get(importer, 1)?) {
        (Known::Tracked(x), Known::Constant(weight)) if weight.shape.len() == 2 => {
            let weight = flip(importer, &weight)?;
            let following = following_bias(importer, node, weight.shape[0]);
            let bias = following.as_ref().map(|(_, _, bias)| bias);
            let product = layer(importer, node, x, &weight, bias)?;
            if let Some((position, output, _)) = following {
                importer.settle_node(position, &output, Known::Tracked(product.clone()));
            }
            Ok(product)
        }
        (Known::Constant(weight), Known::Tracked(x)) if weight.shape.len() == 2 && x.rank() >= 2 => {
            // W X = (X^T W^T)^T.
            let mut order: Vec<usize> = (0..x.rank()).collect();
            order.swap(x.rank() - 2, x.rank() - 1);
            let turned = importer.transpose(node, &x, &order)?;
            let product = layer(importer, node, turned, &weight, None)?;
            importer.transpose(node, &product, &order)
        }
        (Known::Tracked(a), Known::Tracked(b)) => products(importer, node, a, b),
        (Known::Tracked(x), Known::Constant(c)) => {
            let c = repeated(importer, node, &c, &x)?;
            products(importer, node, x, c)
        }
        (Known::Constant(c), Known::Tracked(x)) => {
            let c = repeated(importer, node, &c, &x)?;
            products(importer, node, c, x)
        }
        (Known::Constant(_), Known::Constant(_)) => Err(Fault::Unsupported(" of two constants".into())),
    }
}

/// A constant stack of matrices as a value next to `x`.
fn repeated(importer: &mut Importer<'_>, node: &Node, c: &Constant, x: &Tracked) -> Result<Tracked, Fault> {
    let rank = x.rank().max(c.shape.len());
    let ones = std::iter::repeat_n(1, rank - c.shape.len());
    let c = c.reshaped(ones.chain(c.shape.iter().copied()).collect());
    let place = x.place.map(|p| super::super::layout::Place { axis: p.axis + rank - x.rank(), outer: 1 });
    if x.place.is_some_and(|p| p.outer != 1 || (importer.model.dynamic && x.dims[p.axis] != 1)) {
        return Err(Fault::Batch(
            "a constant stack of matrices meets a batch axis merged with another".into(),
        ));
    }
    importer.learned(node, &c, place)
}

/// An addition that is all that reads the product, of a bias of this length: its position, output and the bias.
fn following_bias(
    importer: &mut Importer<'_>,
    node: &Node,
    outputs: usize,
) -> Option<(usize, String, Constant)> {
    let product = node.outputs.first()?;
    let (position, addition) = importer.only_reader(product)?;
    let [a, b] = &addition.inputs[..] else { return None };
    if addition.operator != "Add" || !addition.domain.is_empty() || addition.fused.is_some() {
        return None;
    }
    let (other, output) =
        (if a == product { b.clone() } else { a.clone() }, addition.outputs.first()?.clone());
    match importer.peek(&other, node)? {
        Known::Constant(c) if c.origin.trainable && c.shape == [outputs] => Some((position, output, c)),
        _ => None,
    }
}

/// `x W^T + b` on the last axis.
pub(super) fn layer(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    weight: &Constant,
    bias: Option<&Constant>,
) -> Result<Tracked, Fault> {
    let &[outputs, inputs] = &weight.shape[..] else {
        return Err(Fault::Problem(format!("the weight has shape {:?}, not that of a matrix", weight.shape)));
    };
    let last = x.rank().checked_sub(1).ok_or("the input has no axis")?;
    let mut x = importer.release(node, x, last)?;
    if x.dims[last] != inputs {
        return Err(Fault::Problem(format!(
            "the input has {} columns, the weight needs {inputs}",
            x.dims[last]
        )));
    }
    importer.charge(weight.len())?;
    let mut parameters = vec![Parameter::new(weight, vec![outputs, inputs])?];
    if let Some(bias) = bias {
        parameters.push(Parameter::new(bias, vec![outputs])?);
    }
    let operation = Operation::Linear(Linear { outputs, bias: bias.is_some() });
    let value = importer.emit_with(node, operation, &[x.value], parameters)?;
    x.dims[last] = outputs;
    Ok(Tracked { value, whole: false, ..x })
}

/// Two stacks of matrices.
pub(super) fn products(
    importer: &mut Importer<'_>,
    node: &Node,
    a: Tracked,
    b: Tracked,
) -> Result<Tracked, Fault> {
    if a.rank() < 2 || b.rank() < 2 {
        return Err("both factors must be matrices or stacks of them".into());
    }
    let (a, b) = together(importer, node, a, b)?;
    let rank = a.rank();
    let mut pair = [a, b];
    for x in &mut pair {
        for axis in [rank - 1, rank - 2] {
            *x = importer.release(node, x.clone(), axis)?;
        }
    }
    let [a, b] = pair;
    let (a, b) = together(importer, node, a, b)?;
    if a.place.is_some_and(|p| p.axis + 2 >= rank) {
        let both = (a.dims.clone(), b.dims.clone());
        let (a, b) = (importer.view(node, &a, both.0, None)?, importer.view(node, &b, both.1, None)?);
        return stacks(importer, node, a, b);
    }
    stacks(importer, node, a, b)
}

fn stacks(importer: &mut Importer<'_>, node: &Node, a: Tracked, b: Tracked) -> Result<Tracked, Fault> {
    let split = a.rank() - 2;
    let leading = super::super::constant::broadcast_shape(&a.dims[..split], &b.dims[..split])?;
    let with = |x: &Tracked| [&leading[..], &x.dims[split..]].concat();
    let (left, right) = (with(&a), with(&b));
    let (a, b) = (importer.broadcast(node, a, &left)?, importer.broadcast(node, b, &right)?);
    let value =
        importer.emit(node, Operation::MatrixProduct(MatrixProduct::default()), &[a.value, b.value])?;
    let dims = [&leading[..], &[left[split], right[split + 1]]].concat();
    Ok(Tracked { value, dims, place: a.place, whole: false })
}

/// The bias as one number for each output, if it is the same for every example.
fn vector(bias: &Constant, outputs: usize) -> Option<Constant> {
    let leading = bias.shape.split_last().map_or(&[][..], |(_, leading)| leading);
    if bias.len() == outputs && leading.iter().all(|&l| l == 1) {
        return Some(bias.reshaped(vec![outputs]));
    }
    None
}

/// `factor * c`, with a note where that changes a weight.
fn scale(importer: &mut Importer<'_>, c: &Constant, factor: f64) -> Result<Constant, Fault> {
    if factor == 1.0 {
        return Ok(c.clone());
    }
    importer.charge(c.len())?;
    importer.notes.push(format!("`{}` was multiplied by {factor}", short(&c.origin.name)));
    let values = c.floats()?.into_iter().map(|v| v * factor).collect();
    Ok(Constant::new(c.shape.clone(), Data::Float(values), c.origin.clone()))
}

/// The transposed matrix.
fn flip(importer: &mut Importer<'_>, weight: &Constant) -> Result<Constant, Fault> {
    let &[rows, columns] = &weight.shape[..] else {
        return Err(Fault::Problem(format!("the weight has shape {:?}, not that of a matrix", weight.shape)));
    };
    importer.charge(weight.len())?;
    importer.note_transposed(&weight.origin.name);
    let positions: Vec<usize> = (0..columns).flat_map(|j| (0..rows).map(move |i| i * columns + j)).collect();
    Ok(weight.pick(vec![columns, rows], &positions, weight.origin.clone()))
}
