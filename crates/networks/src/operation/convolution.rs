//! Convolutions in one to three dimensions and their transposes.

use super::layer::{
    At, Factors, Initial, Layer, Mode, Output, ParameterSpecification, Prepared, Saved, Term,
};
use crate::array::convolution::{
    Geometry, Weights, correlate, correlate_transposed, unfold, weight_gradient,
};
use crate::array::{Array, Channels, Precision, Sets, batch_shape, channel_affine, channel_sums};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// A convolution of `[channels, (depth, height,) width]`, as deep learning defines it: no kernel is flipped.
///
/// Weight `[outputs, channels / groups, kernel...]`, or `[channels, outputs / groups, kernel...]` where transposed; bias `[outputs]`. The lists have one
/// entry for each spatial axis of the input; an empty list stands for all ones (strides, dilations) or all zeros (paddings).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Convolution {
    /// Channels of the output.
    pub outputs: usize,
    /// Size of the kernel.
    pub kernel: Vec<usize>,
    /// Step of the kernel over the input (of the output over the input, where transposed).
    #[serde(default)]
    pub stride: Vec<usize>,
    /// Zeros added on both sides.
    #[serde(default)]
    pub padding: Vec<usize>,
    /// Zeros added behind, where that differs from `padding`.
    #[serde(default)]
    pub padding_after: Vec<usize>,
    /// Distance of the kernel's taps.
    #[serde(default)]
    pub dilation: Vec<usize>,
    /// Groups of channels that do not mix.
    #[serde(default = "super::one")]
    pub groups: usize,
    /// Whether there is a bias.
    #[serde(default = "super::yes")]
    pub bias: bool,
    /// Whether this is the transpose of a convolution, which enlarges images.
    #[serde(default)]
    pub transposed: bool,
    /// Values added to the end of each axis of a transposed convolution's output, to choose among the sizes that a stride leaves open.
    #[serde(default)]
    pub output_padding: Vec<usize>,
}

/// A list for three axes, filled in front.
fn three(list: &[usize], axes: usize, default: usize, what: &str) -> Result<[usize; 3], String> {
    let mut out = [default; 3];
    if !list.is_empty() {
        if list.len() != axes {
            return Err(format!(
                "`{what}` has {} entries and the input {axes} spatial axes: give one for each",
                list.len()
            ));
        }
        out[3 - axes..].copy_from_slice(list);
    }
    Ok(out)
}

impl Convolution {
    /// A convolution with a square kernel on images.
    pub fn square(outputs: usize, kernel: usize, stride: usize, padding: usize, bias: bool) -> Self {
        Self {
            outputs,
            kernel: vec![kernel; 2],
            stride: vec![stride; 2],
            padding: vec![padding; 2],
            groups: 1,
            bias,
            ..Self::default()
        }
    }

    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let (&channels, spatial) = inputs[0].split_first().ok_or("a convolution needs channels")?;
        let axes = spatial.len();
        if !(1..=3).contains(&axes) {
            return Err(format!(
                "a convolution needs 1 to 3 spatial axes, the input has shape {:?}",
                inputs[0]
            ));
        }
        if self.kernel.is_empty() {
            return Err("`kernel` is empty".into());
        }
        let mut size = [1; 3];
        size[3 - axes..].copy_from_slice(spatial);
        let kernel = three(&self.kernel, axes, 1, "kernel")?;
        let stride = three(&self.stride, axes, 1, "stride")?;
        let dilation = three(&self.dilation, axes, 1, "dilation")?;
        let padding = three(&self.padding, axes, 0, "padding")?;
        let after = if self.padding_after.is_empty() {
            padding
        } else {
            three(&self.padding_after, axes, 0, "padding_after")?
        };
        let extra = three(&self.output_padding, axes, 0, "output_padding")?;
        let groups = self.groups;
        if [&size[..], &kernel, &stride, &dilation, &[groups, channels, self.outputs]].concat().contains(&0) {
            return Err("sizes, strides, dilations, groups and channels must be at least 1".into());
        }
        if !channels.is_multiple_of(groups) || !self.outputs.is_multiple_of(groups) {
            return Err(format!(
                "{groups} groups must divide {channels} input and {} output channels",
                self.outputs
            ));
        }
        if !self.transposed && extra != [0; 3] {
            return Err("`output_padding` belongs to transposed convolutions".into());
        }
        let mut target = [1; 3];
        for i in 0..3 {
            let span = (kernel[i] - 1)
                .checked_mul(dilation[i])
                .and_then(|reach| reach.checked_add(1))
                .ok_or("the kernel is too large")?;
            let both = padding[i].checked_add(after[i]).ok_or("the padding is too large")?;
            target[i] = if self.transposed {
                let steps = (size[i] - 1).checked_mul(stride[i]);
                let full = steps.and_then(|v| v.checked_add(span)?.checked_add(extra[i]));
                full.and_then(|v| v.checked_sub(both)).filter(|&v| v > 0)
            } else {
                size[i].checked_add(both).and_then(|v| v.checked_sub(span)).map(|v| v / stride[i] + 1)
            }
            .ok_or_else(|| {
                format!("the kernel {:?} does not fit into the padded input {:?}", self.kernel, inputs[0])
            })?;
        }
        // What the kernel slides over, padding included, is copied for each example.
        let larger = if self.transposed { target } else { size };
        let padded: Option<Vec<usize>> =
            (0..3).map(|i| larger[i].checked_add(padding[i])?.checked_add(after[i])).collect();
        let padded = padded.ok_or("the padding is too large")?;
        let wide = if self.transposed { self.outputs } else { channels };
        super::check_size(&[&[wide], &padded[..]].concat())?;
        let (source, result) = if self.transposed { (target, size) } else { (size, target) };
        let (channels_in, channels_out) =
            if self.transposed { (self.outputs, channels) } else { (channels, self.outputs) };
        // One position takes no step; a long one would only cost memory.
        let stride = std::array::from_fn(|i| if result[i] == 1 { 1 } else { stride[i] });
        let geometry = Geometry {
            channels_in,
            channels_out,
            groups,
            source,
            kernel,
            stride,
            dilation,
            padding,
            target: result,
        };
        let shape: Vec<usize> =
            [self.outputs].into_iter().chain(target[3 - axes..].iter().copied()).collect();
        super::check_size(&shape)?;
        super::check_size(&geometry.source)?;
        let fan = channels / groups * geometry.taps();
        // PyTorch counts the fan of a transposed convolution from the second axis of its weight.
        let fan = if self.transposed { self.outputs / groups * geometry.taps() } else { fan };
        let bound = 1.0 / (fan as f64).sqrt();
        let mut parameters = vec![ParameterSpecification {
            name: "weight",
            shape: [channels_out, channels_in / groups]
                .into_iter()
                .chain(self.kernel.iter().copied())
                .collect(),
            trainable: true,
            initial: Initial::Uniform(bound),
        }];
        if self.bias {
            parameters.push(ParameterSpecification {
                name: "bias",
                shape: vec![self.outputs],
                trainable: true,
                initial: Initial::Uniform(bound),
            });
        }
        let flops = super::count(&[2, geometry.positions(), geometry.weights()]);
        let layer = Arc::new(Correlation {
            geometry,
            transposed: self.transposed,
            input: inputs[0].to_vec(),
            shape: shape.clone(),
        });
        Ok(Prepared { shape, parameters, flops, layer })
    }
}

#[derive(Debug)]
struct Correlation {
    geometry: Geometry,
    transposed: bool,
    input: Vec<usize>,
    shape: Vec<usize>,
}

impl Correlation {
    fn channels(&self) -> Channels {
        Channels { channels: self.shape[0], inner: self.shape[1..].iter().product() }
    }

    fn run<T: Precision>(
        &self,
        x: &Array<T>,
        weights: &[T],
        sets: Sets,
        rows: usize,
        bias: Option<&[T]>,
        back: bool,
    ) -> Array<T> {
        let mut out = Array::any(batch_shape(rows, if back { &self.input } else { &self.shape }));
        let run = if back == self.transposed { correlate } else { correlate_transposed };
        run(&self.geometry, x.values(), Weights { values: weights, sets }, bias, out.values_mut());
        out
    }
}

impl<T: Precision> Layer<T> for Correlation {
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], rows: usize, _: Mode) -> Output<T> {
        let bias = parameters.get(1).map(|b| b.values());
        (self.run(inputs[0], parameters[0].values(), Sets::One, rows, bias, false), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        self.run(tangent, at.parameters[0].values(), Sets::One, tangent.rows(), None, false)
    }

    fn vjp_input(&self, at: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        self.run(cotangent, at.parameters[0].values(), Sets::One, cotangent.rows(), None, true)
    }

    fn jvp_parameter(
        &self,
        at: &At<'_, T>,
        slot: usize,
        tangent: &Array<T>,
        sets: Sets,
        rows: usize,
    ) -> Array<T> {
        if slot == 0 {
            return self.run(at.inputs[0], tangent.values(), sets, rows, None, false);
        }
        let zero = Array::zeros(batch_shape(rows, &self.shape));
        channel_affine(&zero, self.channels(), None, Some(tangent.values()), sets)
    }

    fn vjp_parameter(
        &self,
        at: &At<'_, T>,
        slot: usize,
        c: &Array<T>,
        sets: Sets,
        stride: usize,
        out: &mut [T],
    ) {
        if slot == 1 {
            return channel_sums(c, None, self.channels(), sets, stride, out);
        }
        if self.transposed {
            // The roles of image and cotangent change, and an image serves several cotangents: repeat it.
            let x = crate::array::repeat(at.inputs[0], c.rows() / at.inputs[0].rows().max(1));
            weight_gradient(&self.geometry, c.values(), x.values(), sets, stride, out);
        } else {
            weight_gradient(&self.geometry, at.inputs[0].values(), c.values(), sets, stride, out);
        }
    }

    fn overwrites_rows(&self, slot: usize) -> bool {
        slot == 0 && self.geometry.groups == 1
    }

    fn second_parameter(
        &self,
        _: &At<'_, T>,
        slot: usize,
        tangent: &Array<T>,
        _: usize,
        c: &Array<T>,
    ) -> Term<T> {
        (slot == 0).then(|| self.run(c, tangent.values(), Sets::Rows, c.rows(), None, true))
    }

    fn factors<'a>(&self, at: &'a At<'_, T>, slot: usize, cotangent: &'a Array<T>) -> Option<Factors<'a, T>> {
        if slot != 0 || self.geometry.groups != 1 {
            return None;
        }
        // KFC: patches are the inputs, positions are summed over; for the transpose the roles change.
        let (image, other) =
            if self.transposed { (cotangent, at.inputs[0]) } else { (at.inputs[0], cotangent) };
        let (positions, columns) =
            (self.geometry.positions(), self.geometry.channels_in * self.geometry.taps());
        let mut patches = Array::zeros(vec![image.rows(), positions, columns]);
        unfold(&self.geometry, image.values(), 0, patches.values_mut());
        let channels = self.geometry.channels_out;
        let by_position = crate::array::transpose_rows(other, channels, positions);
        let (inputs, sensitivities) =
            if self.transposed { (by_position, patches) } else { (patches, by_position) };
        let (inputs, sensitivities) = (Cow::Owned(inputs), Cow::Owned(sensitivities));
        Some(Factors::Outer { inputs, sensitivities, positions, transposed: self.transposed })
    }
}
