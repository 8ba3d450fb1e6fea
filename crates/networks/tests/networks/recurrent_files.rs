//! Recurrent layers in architecture files.

use posterior_networks::architecture::{LayerOperation, Layers};
use posterior_networks::graph::RecurrentCell;
use posterior_networks::{Activation, Architecture};

fn file(layer: &str) -> String {
    format!(
        "kind = \"layers\"\ninput = [5, 3]\n\n[[layer]]\nname = \"rec\"\n{layer}\n\n[[layer]]\nname = \"fc\"\noperation = \"linear\"\noutputs = 2\n"
    )
}

fn layers(text: &str) -> Layers {
    match Architecture::from_toml(text).unwrap() {
        Architecture::Layers(layers) => layers,
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_are_read_and_written() {
    let read = |layer: &str| match &layers(&file(layer)).layers[0].operation {
        LayerOperation::Recurrent(recurrent) => recurrent.clone(),
        other => panic!("{other:?}"),
    };
    let lstm = read("operation = \"lstm\"\nhidden = 4");
    assert_eq!((lstm.cell, lstm.hidden, lstm.layers), (RecurrentCell::Lstm, 4, 1));
    assert!(lstm.bias && !lstm.bidirectional && !lstm.last);
    let gru = read(
        "operation = \"gru\"\nhidden = 4\nlayers = 2\nbidirectional = true\nbias = false\nreturns = \"last\"",
    );
    assert_eq!(gru.cell, RecurrentCell::Gru { reset_after: true });
    assert!(gru.last && gru.bidirectional && !gru.bias && gru.layers == 2);
    let before = read("operation = \"gru\"\nhidden = 4\nreset_after = false");
    assert_eq!(before.cell, RecurrentCell::Gru { reset_after: false });
    let rnn = read("operation = \"rnn\"\nhidden = 4\nactivation = \"relu\"");
    assert_eq!(rnn.cell, RecurrentCell::Rnn { activation: Activation::Relu });
}

#[test]
fn files_and_graphs_are_read_back() {
    for layer in [
        "operation = \"lstm\"\nhidden = 4\nbidirectional = true",
        "operation = \"gru\"\nhidden = 4\nlayers = 2\nreturns = \"last\"",
        "operation = \"gru\"\nhidden = 4\nreset_after = false",
        "operation = \"rnn\"\nhidden = 4\nactivation = \"relu\"\nbias = false",
    ] {
        let architecture = Architecture::from_toml(&file(layer)).unwrap();
        let again = Architecture::from_toml(&architecture.to_toml().unwrap()).unwrap();
        assert_eq!(again, architecture);
        let graph = architecture.graph().unwrap();
        let outputs = if layer.contains("last") { vec![2] } else { vec![5, 2] };
        assert_eq!(graph.output_shape(), outputs);
        // Step by step, as networks from elsewhere are written down.
        let steps = Architecture::from_graph(&graph).unwrap().to_toml().unwrap();
        assert_eq!(Architecture::from_toml(&steps).unwrap().graph().unwrap(), graph);
    }
}

#[test]
fn mistakes_are_named() {
    let error = |layer: &str| Architecture::from_toml(&file(layer)).unwrap_err().to_string();
    assert!(error("operation = \"lstm\"").contains("missing field `hidden`"));
    assert!(error("operation = \"lstm\"\nhidden = 4\nreset_after = true").contains("a setting of \"gru\""));
    assert!(error("operation = \"gru\"\nhidden = 4\nactivation = \"tanh\"").contains("a setting of \"rnn\""));
    assert!(
        error("operation = \"rnn\"\nhidden = 4\nactivation = \"gelu\"").contains("unknown variant `gelu`")
    );
    assert!(
        error("operation = \"rnn\"\nhidden = 4\nreturns = \"first\"").contains("unknown variant `first`")
    );
    let named = file("operation = \"lstm\"\nhidden = 4\nparameters = [\"w\"]");
    let error = Architecture::from_toml(&named).unwrap().graph().unwrap_err().to_string();
    assert!(error.contains("those of PyTorch"), "{error}");
}
