//! Sums of products over named axes, as products of stacks of matrices.

use super::super::constant::{Constant, strided_positions, strides};
use super::super::definitions::AttributeProto;
use super::super::dimension::Dimension;
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known};
use super::super::layout::{Tracked, product};
use super::super::node::Node;
use super::{linear, reduce, shape};
use std::collections::HashMap;

/// An operand and the letter of each of its axes.
#[derive(Clone)]
struct Operand {
    known: Known,
    letters: Vec<char>,
}

/// Letters of all operands, and of the result.
type Equation = (Vec<Vec<char>>, Vec<char>);

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let mut known = Vec::with_capacity(node.inputs.len());
    for i in 0..node.inputs.len() {
        known.push(importer.get(node, i).cloned().ok_or("an input is missing")?);
    }
    let text = node.text("equation").ok_or("`equation` is missing")?;
    let ranks: Vec<usize> = known.iter().map(|k| lengths(importer, k).len()).collect();
    let (letters, result) = parse(&text, &ranks)
        .ok_or_else(|| Fault::Unsupported(format!(" with the equation `{}`", short(&text))))?;
    let mut operands = known.into_iter().zip(letters).map(|(known, letters)| Operand { known, letters });
    let mut left = operands.next().ok_or("there are no inputs")?;
    let rest: Vec<Operand> = operands.collect();
    for i in 0..rest.len() {
        // What is needed later: by the operands that follow, or in the result.
        let later = |c: &char| result.contains(c) || rest[i + 1..].iter().any(|o| o.letters.contains(c));
        left = pair(importer, node, left, rest[i].clone(), &later)?;
    }
    let Operand { known: Known::Tracked(x), letters } =
        sum_out(importer, node, left, &|c| result.contains(c))?
    else {
        return Err(Fault::Unsupported(" of constants".into()));
    };
    let order: Option<Vec<usize>> = result.iter().map(|c| letters.iter().position(|l| l == c)).collect();
    let order =
        order.filter(|order| order.len() == letters.len()).ok_or("`equation` makes an axis of nothing")?;
    importer.transpose(node, &x, &order)
}

/// The letters of an equation; axes of an ellipsis become digits, counted from the last. None where a letter stands twice in an operand, or
/// the numbers of axes do not fit.
fn parse(text: &str, ranks: &[usize]) -> Option<Equation> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (operands, result) = match text.split_once("->") {
        Some((operands, result)) => (operands, Some(result)),
        None => (text.as_str(), None),
    };
    let operands: Vec<&str> = operands.split(',').collect();
    if operands.len() != ranks.len() {
        return None;
    }
    let expand = |operand: &str, hidden: usize| -> Option<Vec<char>> {
        let digits: String = (0..hidden).rev().filter_map(|i| char::from_digit(i as u32, 10)).collect();
        let expanded = operand.replacen("...", &digits, 1);
        let letters: Vec<char> = expanded.chars().collect();
        let fits = letters.iter().all(|c| c.is_ascii_alphanumeric());
        let once = letters.iter().enumerate().all(|(i, c)| !letters[..i].contains(c));
        (fits && once).then_some(letters)
    };
    let mut most = 0;
    let mut all = Vec::with_capacity(ranks.len());
    for (operand, &rank) in operands.iter().zip(ranks) {
        let hidden = match operand.contains("...") {
            true => rank.checked_sub(operand.len() - 3).filter(|&h| h < 10)?,
            false => 0,
        };
        most = most.max(hidden);
        all.push(expand(operand, hidden).filter(|l| l.len() == rank)?);
    }
    let result = match result {
        Some(result) => expand(result, most)?,
        None => {
            let mut once: Vec<char> = all.iter().flatten().copied().collect();
            once.sort_unstable();
            let single =
                |c: &char| c.is_ascii_digit() || all.iter().flatten().filter(|o| *o == c).count() == 1;
            once.retain(single);
            once.dedup();
            let (mut digits, letters): (Vec<char>, Vec<char>) =
                once.into_iter().partition(char::is_ascii_digit);
            digits.reverse();
            [digits, letters].concat()
        }
    };
    Some((all, result))
}

/// The lengths of a value.
fn lengths(importer: &Importer<'_>, known: &Known) -> Vec<Dimension> {
    match known {
        Known::Tracked(x) => x.shape(importer.model.dynamic),
        Known::Constant(c) => c.shape.iter().map(|&l| Dimension::from(l as i64)).collect(),
    }
}

/// Sums over the axes whose letters are not kept.
fn sum_out(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Operand,
    keep: &dyn Fn(&char) -> bool,
) -> Result<Operand, Fault> {
    let axes: Vec<i64> = (0..x.letters.len()).filter(|&i| !keep(&x.letters[i])).map(|i| i as i64).collect();
    if axes.is_empty() {
        return Ok(x);
    }
    let Known::Tracked(_) = x.known else {
        return Err(Fault::Unsupported(" with a sum over a constant alone".into()));
    };
    let attribute = |name: &str, ints: Vec<i64>, i: Option<i64>| AttributeProto {
        name: Some(name.into()),
        ints,
        i,
        ..Default::default()
    };
    let sum = Node {
        operator: "ReduceSum".into(),
        inputs: vec![part(importer, node, 2, x.known)],
        attributes: vec![attribute("axes", axes, None), attribute("keepdims", vec![], Some(0))],
        ..node.clone()
    };
    let known = Known::Tracked(reduce::translate(importer, &sum)?);
    Ok(Operand { known, letters: x.letters.iter().copied().filter(keep).collect() })
}

/// A value under a name that no file has.
fn part(importer: &mut Importer<'_>, node: &Node, i: usize, known: Known) -> String {
    let name = format!("\0{}.{i}", node.name);
    importer.set(&name, known);
    name
}

/// The product of two operands, summed over what they share and is not kept.
fn pair(
    importer: &mut Importer<'_>,
    node: &Node,
    a: Operand,
    b: Operand,
    keep: &dyn Fn(&char) -> bool,
) -> Result<Operand, Fault> {
    let (a, b) = match (&a.known, &b.known) {
        (Known::Constant(_), Known::Tracked(_)) => (b, a),
        _ => (a, b),
    };
    let a = sum_out(importer, node, a.clone(), &|c| keep(c) || b.letters.contains(c))?;
    let b = sum_out(importer, node, b, &|c| keep(c) || a.letters.contains(c))?;
    let mut length: HashMap<char, Dimension> = HashMap::new();
    for operand in [&a, &b] {
        for (&letter, found) in operand.letters.iter().zip(lengths(importer, &operand.known)) {
            if *length.entry(letter).or_insert(found) != found {
                return Err(Fault::Problem(format!("the axis `{letter}` has two lengths")));
            }
        }
    }
    let shared = |c: &char| a.letters.contains(c) && b.letters.contains(c);
    let pick = |letters: &[char], which: &dyn Fn(&char) -> bool| -> Vec<char> {
        letters.iter().copied().filter(which).collect()
    };
    let summed = pick(&a.letters, &|c| shared(c) && !keep(c));
    let mut leading = pick(&a.letters, &|c| shared(c) && keep(c));
    let mut left = pick(&a.letters, &|c| !shared(c));
    let right = pick(&b.letters, &|c| !shared(c));
    let alone = |letters: &[char]| -> Vec<Vec<char>> { letters.iter().map(|&c| vec![c]).collect() };
    let (groups_a, groups_b) = if leading.is_empty() && !left.is_empty() {
        ([alone(&left), vec![summed.clone()]].concat(), vec![summed, right.clone()])
    } else {
        // The batch stays an axis of its own, along which the other operand is the same.
        if let Known::Tracked(x) = &a.known
            && let Some(batch) = x.place.and_then(|p| a.letters.get(p.axis)).filter(|c| left.contains(c))
        {
            leading.insert(0, *batch);
            left.retain(|c| c != batch);
        }
        let stack = alone(&leading);
        (
            [stack.clone(), vec![left.clone(), summed.clone()]].concat(),
            [stack, vec![summed, right.clone()]].concat(),
        )
    };
    let (first, second) = (arrange(importer, node, &a, &groups_a)?, arrange(importer, node, &b, &groups_b)?);
    let inputs = vec![part(importer, node, 0, first), part(importer, node, 1, second)];
    let product =
        Node { operator: "MatMul".into(), inputs, outputs: vec![format!("\0{}", node.name)], ..node.clone() };
    let value = linear::mat_mul(importer, &product)?;
    let letters = [leading, left, right].concat();
    let target: Vec<Dimension> = letters.iter().map(|c| length[c]).collect();
    Ok(Operand { known: Known::Tracked(shape::reshape(importer, node, &value, &target)?), letters })
}

/// The operand with the axes of each group as one, in this order; a group without any of its letters has length 1.
fn arrange(
    importer: &mut Importer<'_>,
    node: &Node,
    x: &Operand,
    groups: &[Vec<char>],
) -> Result<Known, Fault> {
    let at = |c: &char| x.letters.iter().position(|l| l == c);
    let order: Vec<usize> = groups.iter().flatten().filter_map(at).collect();
    let all = lengths(importer, &x.known);
    let mut target = Vec::with_capacity(groups.len());
    for group in groups {
        let inside: Vec<Dimension> = group.iter().filter_map(at).map(|axis| all[axis]).collect();
        target.push(product(&inside)?);
    }
    match &x.known {
        Known::Tracked(value) => {
            let turned = importer.transpose(node, value, &order)?;
            Ok(Known::Tracked(shape::reshape(importer, node, &turned, &target)?))
        }
        Known::Constant(c) => {
            importer.keep(&c.shape)?;
            let steps = strides(&c.shape);
            let shape: Vec<usize> = order.iter().map(|&axis| c.shape[axis]).collect();
            let along: Vec<usize> = order.iter().map(|&axis| steps[axis]).collect();
            let lengths: Option<Vec<usize>> =
                target.iter().map(|d| usize::try_from(d.known()?).ok()).collect();
            let turned: Constant = c.pick(
                lengths.ok_or("a constant has a length that depends on the batch")?,
                &strided_positions(&shape, &along, 0),
                c.origin.clone(),
            );
            Ok(Known::Constant(turned))
        }
    }
}
