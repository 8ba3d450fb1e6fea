//! The largest or smallest value over some axes.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved};
use super::sparse::{flat, positions};
use crate::array::{Array, Precision, extremes_of_groups, put, take};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// The largest or the smallest value over some axes; of equal values the first one counts, and NaN is not lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extreme {
    /// The axes, counted from 0 without the batch axis.
    pub axes: Vec<usize>,
    /// Whether they stay as axes of length 1.
    #[serde(default)]
    pub keep: bool,
}

impl Extreme {
    pub(crate) fn prepare<T: Precision>(
        &self,
        largest: bool,
        inputs: &[&[usize]],
    ) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        if self.axes.is_empty() || self.axes.iter().any(|&a| a >= shape.len()) {
            let which = if largest { "largest" } else { "smallest" };
            return Err(format!("there is no {which} value over axes {:?} of {shape:?}", self.axes));
        }
        super::check_size(shape)?;
        let over = |axis: &usize| self.axes.contains(axis);
        let kept: Vec<usize> = shape.iter().enumerate().map(|(a, &s)| if over(&a) { 1 } else { s }).collect();
        let output = match self.keep {
            true => kept.clone(),
            false => (0..shape.len()).filter(|a| !over(a)).map(|a| shape[a]).collect(),
        };
        let each = shape.iter().product::<usize>() / kept.iter().product::<usize>().max(1);
        if each == 0 {
            return Err(format!("an axis of {shape:?} has length 0"));
        }
        let layer = Arc::new(OverAxes {
            largest,
            each,
            input: shape.to_vec(),
            kept,
            output: output.clone(),
            members: OnceLock::new(),
        });
        Ok(Prepared { shape: output, parameters: vec![], flops: super::count(shape), layer })
    }
}

#[derive(Debug)]
struct OverAxes {
    largest: bool,
    /// Values that one output is the extreme of.
    each: usize,
    input: Vec<usize>,
    /// The input's shape with length 1 along the axes.
    kept: Vec<usize>,
    output: Vec<usize>,
    /// The positions that belong to each output, worked out when numbers first pass through.
    members: OnceLock<Vec<u32>>,
}

impl OverAxes {
    fn members(&self) -> &[u32] {
        self.members.get_or_init(|| {
            let groups: usize = self.kept.iter().product();
            let (mut members, mut filled) = (vec![0; groups * self.each], vec![0; groups]);
            positions(&self.input, |from, at| {
                let to = at.iter().zip(&self.kept).map(|(&i, &s)| if s == 1 { 0 } else { i });
                let group = flat(&self.kept, to) as usize;
                members[group * self.each + filled[group]] = from as u32;
                filled[group] += 1;
            });
            members
        })
    }
}

fn found<'a, T>(at: &At<'a, T>) -> &'a [u32] {
    match at.saved {
        Saved::Positions(positions) => positions,
        _ => unreachable!("the forward pass saves the positions of the extremes"),
    }
}

impl<T: Precision> Layer<T> for OverAxes {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let positions = extremes_of_groups(inputs[0], self.members(), self.each, self.largest);
        (take(inputs[0], &positions, &self.output), Saved::Positions(positions))
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        take(tangent, found(at), &self.output)
    }

    fn vjp_input(&self, at: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        put(cotangent, found(at), &self.input)
    }
}
