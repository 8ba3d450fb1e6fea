//! How parameters begin.

use crate::common::formula_input;
use posterior_linalg::random::Streams;
use posterior_networks::architecture::{LargeResnet, MnistResnet, Resnet, Size, Transformer, Variant};
use posterior_networks::operation::Initial;
use posterior_networks::{Architecture, Graph, Network};

fn initial(graph: &Graph, name: &str) -> Initial {
    graph.parameters().iter().find(|p| p.name == name).unwrap_or_else(|| panic!("no {name}")).initial
}

#[test]
fn fixup_starts_as_its_authors_say() {
    let graph =
        Architecture::Resnet(Resnet { variant: Variant::Fixup, ..Resnet::cifar10(20) }).graph().unwrap();
    let normal = |variance: f64| Initial::Normal(variance.sqrt());
    // Nine blocks; fan-out 9 * 32.
    let Initial::Normal(deviation) = initial(&graph, "layer2.0.conv1.weight") else { panic!("normal") };
    assert!((deviation - (2.0 / (9.0 * 32.0) / 9.0f64).sqrt()).abs() < 1e-15, "{deviation}");
    for zero in [
        "layer2.0.conv2.weight",
        "linear.weight",
        "linear.bias",
        "bias1",
        "layer1.0.bias1a",
        "layer3.2.bias2b",
        "bias2",
    ] {
        assert_eq!(initial(&graph, zero), Initial::Constant(0.0), "{zero}");
    }
    assert_eq!(initial(&graph, "layer1.0.scale"), Initial::Constant(1.0));
    assert_eq!(initial(&graph, "conv1.weight"), Initial::Uniform(1.0 / 27f64.sqrt()), "PyTorch's default");
    // So the network begins at zero, whatever its input.
    for variant in [Variant::Fixup, Variant::Plain] {
        let graph = Architecture::MnistResnet(MnistResnet::sized(Size::Small, variant)).graph().unwrap();
        let x = formula_input(graph.input_shape());
        let network = Network::<f64>::initialised(graph, Streams::new(5)).unwrap();
        let zero = network.forward(&x).unwrap().values().iter().all(|&v| v == 0.0);
        assert_eq!(zero, variant == Variant::Fixup);
    }
    let graph = Architecture::Resnet(Resnet::cifar10(20)).graph().unwrap();
    assert_eq!(initial(&graph, "layer2.0.conv1.weight"), normal(2.0 / (9.0 * 16.0)), "He, fan-in");
    let graph = Architecture::Resnet18(LargeResnet::default()).graph().unwrap();
    assert_eq!(initial(&graph, "layer2.0.conv1.weight"), normal(2.0 / (9.0 * 128.0)), "He, fan-out");
    assert_eq!(initial(&graph, "fc.weight"), Initial::Uniform(1.0 / 512f64.sqrt()));
}

#[test]
fn attention_starts_as_in_pytorch() {
    let graph = Architecture::Transformer(Transformer::sized(Size::Big, 4)).graph().unwrap();
    let name = |part: &str| format!("encoder.layers.1.self_attn.{part}");
    assert_eq!(initial(&graph, &name("in_proj_weight")), Initial::Uniform((6.0 / 200.0f64).sqrt()));
    assert_eq!(initial(&graph, &name("in_proj_bias")), Initial::Constant(0.0));
    assert_eq!(initial(&graph, &name("out_proj.bias")), Initial::Constant(0.0));
    assert_eq!(initial(&graph, &name("out_proj.weight")), Initial::Uniform(1.0 / 50f64.sqrt()));
}
