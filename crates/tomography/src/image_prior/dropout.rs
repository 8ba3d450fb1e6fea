//! Dropping channels at random, as the Monte Carlo baseline wants it.

use posterior_linalg::random::Streams;
use posterior_networks::{Array, Graph, Operation};
use rand::RngExt;

/// Channels of every convolution whose kernel is larger than one pixel are dropped with a probability, the others divided by what is left: what stands directly behind a convolution is the same as weights and biases of its
/// output channels times the mask, so that the network stays as it is and only its parameters are drawn.
///
/// Source: Gal and Ghahramani (2016) with channels in the place of units; spec `tomography`, section 8.
#[derive(Clone, Debug)]
pub struct ChannelDropout {
    /// Parameters by position, those of one convolution beside one another.
    convolutions: Vec<Vec<usize>>,
    rate: f64,
}

impl ChannelDropout {
    /// Of a network's convolutions, at a rate in [0, 1).
    pub fn new(graph: &Graph, rate: f64) -> Self {
        let wide = |operation: &Operation| matches!(operation, Operation::Convolution(c) if c.kernel.iter().any(|k| *k > 1));
        let of = |node: &posterior_networks::Node| node.parameters.clone();
        Self { convolutions: graph.nodes().iter().filter(|n| wide(&n.operation)).map(of).collect(), rate }
    }

    /// Multiplies the parameters by the mask with this number: as forward passes see them, or as their gradients go back.
    pub fn mask(&self, parameters: &mut [Array<f32>], seed: u64, number: u64) {
        let streams = Streams::new(seed).child("tomography/dropout", number);
        for convolution in &self.convolutions {
            let mut rng = streams.stream(&format!("convolution {}", convolution[0]));
            let channels = parameters[convolution[0]].rows();
            let kept: Vec<f32> = (0..channels)
                .map(|_| if rng.random_bool(self.rate) { 0.0 } else { (1.0 / (1.0 - self.rate)) as f32 })
                .collect();
            for &position in convolution {
                let each = parameters[position].len() / channels.max(1);
                let values = parameters[position].values_mut().chunks_exact_mut(each.max(1));
                values.zip(&kept).for_each(|(own, keep)| own.iter_mut().for_each(|v| *v *= keep));
            }
        }
    }
}
