//! Batch normalisation over channels.

use super::layer::{At, Initial, Layer, Mode, Output, ParameterSpecification, Prepared, Saved, Term};
use crate::array::{
    Array, Channels, Precision, Sets, add, batch_shape, channel_affine, channel_sums, repeat,
};
use posterior_linalg::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `y = (x - mean) / sqrt(variance + epsilon) * weight + bias` for each channel (the first axis of an example).
///
/// In evaluation mode mean and variance are the stored `running_mean` and `running_var`, constants of every derivative; in training mode they are
/// those of the batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchNorm {
    /// Added to the variance.
    #[serde(default = "BatchNorm::usual_epsilon")]
    pub epsilon: f64,
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self { epsilon: Self::usual_epsilon() }
    }
}

impl BatchNorm {
    fn usual_epsilon() -> f64 {
        1e-5
    }

    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        super::check_epsilon(self.epsilon)?;
        let &channels = inputs[0].first().ok_or("batch norm needs channels")?;
        let shape = inputs[0].to_vec();
        let parameter = |name, trainable, value| ParameterSpecification {
            name,
            shape: vec![channels],
            trainable,
            initial: Initial::Constant(value),
        };
        let parameters = vec![
            parameter("weight", true, 1.0),
            parameter("bias", true, 0.0),
            parameter("running_mean", false, 0.0),
            parameter("running_var", false, 1.0),
        ];
        let channels = Channels { channels, inner: shape[1..].iter().product() };
        let flops = 2 * super::count(&shape);
        Ok(Prepared {
            shape,
            parameters,
            flops,
            layer: Arc::new(Normalised { channels, epsilon: self.epsilon }),
        })
    }
}

#[derive(Debug)]
struct Normalised {
    channels: Channels,
    epsilon: f64,
}

impl Normalised {
    /// `1 / sqrt(variance + epsilon)`.
    fn inverse<T: Precision>(&self, variance: &[T]) -> Vec<T> {
        variance.iter().map(|&v| T::ONE / Real::sqrt(v + T::from_f64(self.epsilon))).collect()
    }

    /// Scale of each channel in evaluation mode, `weight / sqrt(variance + epsilon)`.
    fn gain<T: Precision>(&self, parameters: &[&Array<T>]) -> Vec<T> {
        let mut gain = self.inverse(parameters[3].values());
        gain.iter_mut().zip(parameters[0].values()).for_each(|(g, &w)| *g *= w);
        gain
    }

    /// `(x - mean) r` by stored statistics.
    fn standardised<T: Precision>(&self, x: &Array<T>, parameters: &[&Array<T>]) -> Array<T> {
        let r = self.inverse(parameters[3].values());
        let shift: Vec<T> = parameters[2].values().iter().zip(&r).map(|(&m, &r)| -m * r).collect();
        channel_affine(x, self.channels, Some(&r), Some(&shift), Sets::One)
    }

    fn normalised<T: Precision>(&self, at: &At<'_, T>) -> Array<T> {
        match at.saved {
            Saved::Batch { values, .. } => values.clone(),
            _ => self.standardised(at.inputs[0], at.parameters),
        }
    }

    fn train<T: Precision>(&self, x: &Array<T>, parameters: &[&Array<T>]) -> Output<T> {
        let channels = self.channels.channels;
        let count = x.len() / channels.max(1);
        let each = T::ONE / T::from_f64(count as f64);
        let means = |values: &Array<T>, other: Option<&Array<T>>| {
            let mut sums = vec![T::ZERO; channels];
            channel_sums(values, other, self.channels, Sets::One, channels, &mut sums);
            sums.iter_mut().for_each(|s| *s *= each);
            sums
        };
        let mean = means(x, None);
        let shift: Vec<T> = mean.iter().map(|&m| -m).collect();
        let centred = channel_affine(x, self.channels, None, Some(&shift), Sets::One);
        let variance = means(&centred, Some(&centred));
        let scales = self.inverse(&variance);
        let values = channel_affine(&centred, self.channels, Some(&scales), None, Sets::One);
        let out = channel_affine(
            &values,
            self.channels,
            Some(parameters[0].values()),
            Some(parameters[1].values()),
            Sets::One,
        );
        (out, Saved::Batch { values, mean, variance, scales, count })
    }

    /// `r (t - mean(t) - z mean(z t))` over the batch, the symmetric Jacobian of normalisation by batch statistics; one row an example.
    fn through_statistics<T: Precision>(
        &self,
        t: Array<T>,
        z: &Array<T>,
        scales: &[T],
        count: usize,
    ) -> Array<T> {
        let channels = self.channels.channels;
        let factor = |sums: Vec<T>| -> Vec<T> {
            sums.iter().zip(scales).map(|(&s, &r)| -s * r / T::from_f64(count as f64)).collect()
        };
        let sums = |other: Option<&Array<T>>| {
            let mut out = vec![T::ZERO; channels];
            channel_sums(&t, other, self.channels, Sets::One, channels, &mut out);
            factor(out)
        };
        let (constant, along) = (sums(None), sums(Some(z)));
        let along = channel_affine(z, self.channels, Some(&along), Some(&constant), Sets::One);
        add(channel_affine(&t, self.channels, Some(scales), None, Sets::One), &along)
    }
}

impl<T: Precision> Layer<T> for Normalised {
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], _: usize, mode: Mode) -> Output<T> {
        if mode == Mode::Training {
            return self.train(inputs[0], parameters);
        }
        let gain = self.gain(parameters);
        let shift: Vec<T> = gain
            .iter()
            .zip(parameters[2].values())
            .zip(parameters[1].values())
            .map(|((&g, &mean), &bias)| bias - mean * g)
            .collect();
        (channel_affine(inputs[0], self.channels, Some(&gain), Some(&shift), Sets::One), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        match at.saved {
            Saved::Batch { values, scales, count, .. } => {
                let through = self.through_statistics(tangent.clone(), values, scales, *count);
                channel_affine(&through, self.channels, Some(at.parameters[0].values()), None, Sets::One)
            }
            _ => channel_affine(tangent, self.channels, Some(&self.gain(at.parameters)), None, Sets::One),
        }
    }

    fn vjp_input(&self, at: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        match at.saved {
            Saved::Batch { values, scales, count, .. } => {
                let weighted = channel_affine(
                    cotangent,
                    self.channels,
                    Some(at.parameters[0].values()),
                    None,
                    Sets::One,
                );
                self.through_statistics(weighted, values, scales, *count)
            }
            _ => channel_affine(cotangent, self.channels, Some(&self.gain(at.parameters)), None, Sets::One),
        }
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
            let z = repeat(&self.normalised(at), rows / at.inputs[0].rows().max(1));
            return channel_affine(&z, self.channels, Some(tangent.values()), None, sets);
        }
        let zero = Array::zeros(batch_shape(rows, &at.output.shape()[1..]));
        channel_affine(&zero, self.channels, None, Some(tangent.values()), sets)
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
        match slot {
            0 => channel_sums(c, Some(&self.normalised(at)), self.channels, sets, stride, out),
            _ => channel_sums(c, None, self.channels, sets, stride, out),
        }
    }

    fn second_parameter(
        &self,
        at: &At<'_, T>,
        slot: usize,
        tangent: &Array<T>,
        _: usize,
        c: &Array<T>,
    ) -> Term<T> {
        (slot == 0).then(|| {
            let by_row = channel_affine(c, self.channels, Some(tangent.values()), None, Sets::Rows);
            channel_affine(
                &by_row,
                self.channels,
                Some(&self.inverse(at.parameters[3].values())),
                None,
                Sets::One,
            )
        })
    }
}
