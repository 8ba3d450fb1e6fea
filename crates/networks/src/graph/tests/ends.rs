//! What stands in front of a network, and what is taken off its end.

use crate::graph::{GraphBuilder, InputScaling, Network};
use crate::{Activation, Architecture, Array};
use posterior_linalg::random::Streams;

fn network(text: &str) -> Network<f64> {
    let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
    Network::initialised(graph, Streams::new(3)).unwrap()
}

/// A perceptron of three inputs.
fn perceptron() -> Network<f64> {
    network("kind = 'perceptron'\ninputs = 3\nhidden = [7, 5]\noutputs = 2\nactivation = 'tanh'")
}

fn inputs(shape: Vec<usize>) -> Array<f64> {
    let count = shape.iter().product::<usize>();
    Array::new(shape, (0..count).map(|i| (0.7 * i as f64).sin()).collect())
}

/// Whether the network's architecture can be written down and read back.
fn is_written(network: &Network<f64>) -> bool {
    let text = Architecture::from_graph(network.graph()).unwrap().to_toml().unwrap();
    Architecture::from_toml(&text).unwrap().graph().unwrap() == *network.graph()
}

#[test]
fn inputs_are_scaled_and_put_in_order_by_constants() {
    let own = perceptron();
    let x = inputs(vec![4, 3]);
    for order in [vec![0, 1, 2], vec![2, 0, 1]] {
        let scaling = InputScaling { order, gains: vec![0.5, 2.0, -3.0], shifts: vec![0.1, -0.2, 0.0] };
        assert!(!scaling.is_identity());
        let behind = own.with_inputs(&scaling).unwrap();
        let seen = x.values().chunks_exact(3).flat_map(|row| {
            let one = |k: usize| scaling.gains[k] * row[scaling.order[k]] + scaling.shifts[k];
            [one(0), one(1), one(2)]
        });
        let expected = own.forward(&Array::new(vec![4, 3], seen.collect())).unwrap();
        let found = behind.forward(&x).unwrap();
        let errors = found.values().iter().zip(expected.values()).map(|(a, b)| (a - b).abs());
        assert!(errors.fold(0.0, f64::max) < 1e-14, "{:?}", scaling.order);
        assert_eq!(behind.graph().trainable(), own.graph().trainable());
        assert!(is_written(&behind));
        // Twice is as good as once: no name is taken twice.
        assert!(is_written(&behind.with_inputs(&scaling).unwrap()));
    }
    let same = InputScaling { order: vec![0, 1, 2], gains: vec![1.0; 3], shifts: vec![0.0; 3] };
    assert!(same.is_identity());
    let short = InputScaling { order: vec![0, 1], gains: vec![1.0; 2], shifts: vec![0.0; 2] };
    let endless = InputScaling { gains: vec![1.0, f64::INFINITY, 1.0], ..same };
    for wrong in [short, endless] {
        assert!(own.with_inputs(&wrong).unwrap_err().to_string().contains("shape [3]"));
    }
}

#[test]
fn inputs_of_another_shape_are_a_vector_in_front() {
    let mut b = GraphBuilder::new(&[2, 3]).unwrap();
    let x = b.linear("a", 4, b.input()).unwrap();
    let x = b.activation("b", Activation::Tanh, x).unwrap();
    let own = Network::<f64>::initialised(b.finish(x).unwrap(), Streams::new(1)).unwrap();
    let scaling = InputScaling { order: (0..6).rev().collect(), gains: vec![1.0; 6], shifts: vec![0.0; 6] };
    let behind = own.with_inputs(&scaling).unwrap();
    assert_eq!(behind.graph().input_shape(), [6]);
    let x = inputs(vec![1, 6]);
    let turned = Array::new(vec![1, 2, 3], x.values().iter().rev().copied().collect());
    assert_eq!(behind.forward(&x).unwrap().values(), own.forward(&turned).unwrap().values());
    assert!(is_written(&behind));
}

#[test]
fn the_last_layer_makes_the_outputs_of_what_is_left_without_it() {
    let own = perceptron();
    let x = inputs(vec![4, 3]);
    let outputs = own.forward(&x).unwrap();
    let last = own.graph().last_layer().unwrap();
    assert!(last.bias);
    let [weight, bias] = [2, 1].map(|k| own.parameters()[own.parameters().len() - k].values().to_vec());
    for one in [false, true] {
        let features = own.without_last_layer(one).unwrap();
        let width = 5 + usize::from(one);
        assert_eq!(features.graph().output_shape(), [width]);
        assert_eq!(features.graph().trainable() + weight.len() + bias.len(), own.graph().trainable());
        assert!(is_written(&features));
        let read = features.forward(&x).unwrap();
        for (row, own) in read.values().chunks_exact(width).zip(outputs.values().chunks_exact(2)) {
            assert!(!one || row[5] == 1.0);
            for (c, own) in own.iter().enumerate() {
                let sum: f64 = (0..5).map(|j| weight[c * 5 + j] * row[j]).sum();
                assert!((own - sum - bias[c]).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn what_ends_in_something_else_is_named() {
    let layers = |ends: &str| {
        let linear = "[[layer]]\nname = 'a'\noperation = 'linear'\noutputs = 4\nbias = false";
        network(&format!("kind = 'layers'\ninput = [3]\n{linear}\n{ends}"))
    };
    let relu = layers("[[layer]]\nname = 'b'\noperation = 'relu'").without_last_layer(true).unwrap_err();
    assert!(relu.to_string().contains("layer `b` (relu)"), "{relu}");
    let places =
        network("kind = 'layers'\ninput = [2, 3]\n[[layer]]\nname = 'a'\noperation = 'linear'\noutputs = 4");
    assert!(places.without_last_layer(true).unwrap_err().to_string().contains("many places"));
    assert!(!layers("").graph().last_layer().unwrap().bias);
    // A bias that is added apart is the layer's own.
    let apart = layers("[[layer]]\nname = 'b'\noperation = 'bias'\nshape = [4]");
    assert!(apart.graph().last_layer().unwrap().bias);
    // The network's own inputs are features, too.
    let straight = apart.without_last_layer(true).unwrap();
    let x = inputs(vec![2, 3]);
    let read = straight.forward(&x).unwrap();
    assert_eq!(read.values()[..4], [x.values()[0], x.values()[1], x.values()[2], 1.0]);
    assert!(is_written(&straight) && is_written(&apart.without_last_layer(false).unwrap()));
}
