//! Arrays in, outputs out.

use super::NetworkFileError;
use super::open::Opened;
use posterior_data::{ArrayValues, NumericArray};
use posterior_networks::{Array, Precision};

/// Outputs of a network.
#[derive(Clone, Debug)]
pub struct Forwarded {
    /// `[examples, outputs...]` (or features), in the network's precision.
    pub outputs: NumericArray,
    /// What was done to inputs and outputs.
    pub notes: Vec<String>,
}

/// The outputs of an opened network on an array whose first axis counts examples, prepared as in training where the network's file says how.
///
/// # Errors
/// When shapes do not fit or numbers are not finite.
pub fn forward<T: Precision>(opened: &Opened<T>, data: &NumericArray) -> Result<Forwarded, NetworkFileError> {
    let (x, before) = opened.preparation.inputs::<T>(data, opened.network.graph().input_shape())?;
    let outputs = opened.network.forward(&x)?;
    let (outputs, after) = opened.preparation.outputs(outputs);
    Ok(Forwarded { outputs: numbers(&outputs)?, notes: before.into_iter().chain(after).collect() })
}

/// What the last layer of an opened network reads, `[examples, features]`: the network without that layer. With these as columns of a table, a linear model is the network's last layer over again.
///
/// # Errors
/// [`NetworkFileError::Request`] for a network whose output is not a fully connected layer of a vector; as [`forward`].
pub fn features<T: Precision>(
    opened: &Opened<T>,
    data: &NumericArray,
) -> Result<Forwarded, NetworkFileError> {
    let graph = opened.network.graph();
    let last = graph.last_layer().map_err(|e| {
        NetworkFileError::Request(format!(
            "{e}; features are what a fully connected last layer reads, take its outputs"
        ))
    })?;
    let (x, notes) = opened.preparation.inputs::<T>(data, graph.input_shape())?;
    let values = match last.input.node() {
        Some(node) => opened.network.forward_with(&x, node)?.1,
        None => x,
    };
    Ok(Forwarded { outputs: numbers(&values)?, notes: notes.into_iter().collect() })
}

/// In the network's precision.
fn numbers<T: Precision>(array: &Array<T>) -> Result<NumericArray, NetworkFileError> {
    let values = if size_of::<T>() == 4 {
        ArrayValues::F32(array.values().iter().map(|v| v.to_f64() as f32).collect())
    } else {
        ArrayValues::F64(array.values().iter().map(|v| v.to_f64()).collect())
    };
    Ok(NumericArray::new(array.shape().to_vec(), values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::preparation::Preparation;
    use posterior_linalg::random::Streams;
    use posterior_networks::{Architecture, Network};

    fn opened(text: &str) -> Opened<f64> {
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        let network = Network::initialised(graph, Streams::new(3)).unwrap();
        let (preparation, notes) = (Preparation::default(), Vec::new());
        Opened {
            network,
            inputs: Vec::new(),
            format: "memory",
            preparation,
            training: None,
            stripped: None,
            notes,
        }
    }

    #[test]
    fn the_last_layer_makes_the_outputs_of_its_features() {
        let opened =
            opened("kind = 'perceptron'\ninputs = 3\nhidden = [7, 5]\noutputs = 2\nactivation = 'tanh'");
        let x = (0..12).map(|i| (0.7 * f64::from(i)).sin()).collect();
        let x = NumericArray::new(vec![4, 3], ArrayValues::F64(x)).unwrap();
        let (read, made) = (features(&opened, &x).unwrap().outputs, forward(&opened, &x).unwrap().outputs);
        assert_eq!((read.shape(), made.shape()), (&[4, 5][..], &[4, 2][..]));
        let graph = opened.network.graph();
        let last = &graph.nodes()[graph.output().node().unwrap()];
        let [weight, bias] =
            [0, 1].map(|k| opened.network.parameters()[last.parameters[k]].values().to_vec());
        let (read, made) = (read.to_f64(), made.to_f64());
        for (i, own) in made.chunks_exact(2).enumerate() {
            for (c, own) in own.iter().enumerate() {
                let sum: f64 = (0..5).map(|j| weight[c * 5 + j] * read[i * 5 + j]).sum();
                assert!((own - sum - bias[c]).abs() < 1e-12, "{i} {c}");
            }
        }
    }

    #[test]
    fn a_network_that_ends_in_something_else_has_no_features() {
        let linear = "[[layer]]\nname = 'a'\noperation = 'linear'\noutputs = 4";
        let ends = opened(&format!(
            "kind = 'layers'\ninput = [3]\n{linear}\n[[layer]]\nname = 'b'\noperation = 'relu'"
        ));
        let x = NumericArray::new(vec![1, 3], ArrayValues::F64(vec![0.1; 3])).unwrap();
        assert!(features(&ends, &x).unwrap_err().to_string().contains("take its outputs"));
    }
}
