//! Every graph can be written layer by layer and comes back as it was, with the same outputs.

use crate::common::{formula_input, formula_network};
use posterior_networks::architecture::ParameterEntry;
use posterior_networks::operation::{Bias, Gain, Initial, Learned, Linear};
use posterior_networks::{Activation, Architecture, Graph, GraphBuilder, Network, Operation, Value};

/// One of each kind.
const TEXTS: &[&str] = &[
    "kind = 'perceptron'\ninputs = [1, 5, 5]\nhidden = [4, 3]\noutputs = 2\nactivation = { leaky_relu = { slope = 0.2 } }\nlayer_norm = true",
    "kind = 'residual_perceptron'\ninputs = 3\nwidth = 8\nblocks = 3\noutputs = 2\nactivation = 'elu'\nscale_outputs = true",
    "kind = 'lenet'\nfilters = [3, 4, 5]\ninput = [2, 9, 11]\nclasses = 3\naffine = true",
    "kind = 'resnet'\ndepth = 14\nwidth = 4\nshortcut = 'B'\nnames = 'torchvision'\nvariant = 'pre_activation'",
    "kind = 'resnet'\ndepth = 8\nwidth = 4\nshortcut = 'A'",
    "kind = 'mnist_resnet'\nsize = 'medium'\nvariant = 'fixup'\nstem_stride = 1",
    "kind = 'resnet18'\nclasses = 7\nstem = 'cifar'",
    "kind = 'resnet34'\ninput = [3, 40, 33]",
    "kind = 'resnet50'\ninput = [3, 40, 33]",
    "kind = 'resnet101'\nclasses = 2\nstem = 'cifar'",
    "kind = 'unet'\ninput = [1, 9, 8]\nchannels = [4, 8]\nskips = [0]\nhead = [4]\nslope = 0.1",
    "kind = 'transformer'\ninput = [4, 3]\nwidths = [6, 5]\nlayers = 1\nheads = 3\nnorm_first = true\nactivation = 'gelu'",
];

/// The graph after it was written down and read.
fn again(graph: &Graph) -> Graph {
    let text = Architecture::from_graph(graph).unwrap().to_toml().unwrap();
    Architecture::from_toml(&text)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .graph()
        .unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn all_kinds_of_architectures_come_back() {
    for text in TEXTS {
        let architecture = Architecture::from_toml(text).unwrap();
        let graph = architecture.graph().unwrap();
        let back = again(&graph);
        assert_eq!(back, graph, "{text}");
        // Outputs too, for those that are quickly computed.
        if graph.trainable() < 300_000 {
            let network = formula_network(graph.clone()).unwrap();
            let x = formula_input(graph.input_shape());
            let rebuilt = Network::new(back, network.parameters().to_vec()).unwrap();
            assert_eq!(network.forward(&x).unwrap(), rebuilt.forward(&x).unwrap(), "{text}");
        }
    }
}

/// Shared parameters, constants, an input name that is taken, an output in the middle, parameters whose order is not that of their nodes.
fn odd() -> Graph {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let linear = || Operation::Linear(Linear { outputs: 4, bias: true });
    // Dropped by `finish`, so that `late` comes first although only the last node uses it.
    b.add_named("dropped", Operation::Bias(Bias { shape: vec![4] }), &[b.input()], &["late"]).unwrap();
    let a = b.add_named("input", linear(), &[b.input()], &["w", "b"]).unwrap();
    let a = b.activation("act", Activation::Elu { alpha: 0.3 }, a).unwrap();
    let c = b.add_named("again", linear(), &[a], &["w", "c"]).unwrap();
    let constant = b.add("constant", Operation::Learned(Learned { shape: vec![4] }), &[]).unwrap();
    let sum = b.add("sum", Operation::Add, &[c, constant]).unwrap();
    let sum = b.add("double", Operation::Scale(0.1 + 0.2), &[sum]).unwrap();
    let join = b.add("join", Operation::Concatenate(0), &[sum, b.input(), sum]).unwrap();
    let out = b.add("out", Operation::Linear(Linear { outputs: 4, bias: false }), &[join]).unwrap();
    let out = b.add_named("shift", Operation::Bias(Bias { shape: vec![4] }), &[out], &["late"]).unwrap();
    b.add("after", Operation::Gain(Gain { shape: vec![4] }), &[out]).unwrap();
    b.describe("constant.weight", false, Some(Initial::Normal(0.1))).unwrap();
    b.finish(out).unwrap()
}

/// Every activation, with its usual constants and others.
#[test]
fn activations_come_back() {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let mut x = b.input();
    let others = [
        Activation::Clip { low: -0.5, high: f64::MAX },
        Activation::Clip { low: -0.5, high: 0.1 + 0.2 },
        Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        Activation::Power { exponent: -1.5 },
        Activation::Shrink { threshold: 0.1, bias: 0.3 },
        Activation::ThresholdedRelu { threshold: -0.25 },
    ];
    for (i, kind) in Activation::USUAL.into_iter().chain(others).enumerate() {
        x = b.activation(&format!("a{i}"), kind, x).unwrap();
    }
    let graph = b.finish(x).unwrap();
    assert_eq!(again(&graph), graph);
}

#[test]
fn odd_graphs_come_back() {
    let graph = odd();
    assert_eq!(again(&graph), graph);
    let Architecture::Layers(layers) = Architecture::from_graph(&graph).unwrap() else { panic!("layers") };
    assert_eq!(layers.input_name.as_deref(), Some("network_input_0"));
    assert_eq!(layers.parameters[0].name, "late");
    // A network without layers returns its input.
    let identity = GraphBuilder::new(&[3]).unwrap().finish(Value::INPUT).unwrap();
    assert_eq!(again(&identity), identity);
}

#[test]
fn lists_of_parameters_are_checked() {
    let Architecture::Layers(good) = Architecture::from_graph(&odd()).unwrap() else { panic!("layers") };
    let problem = |change: &dyn Fn(&mut Vec<ParameterEntry>)| {
        let mut layers = good.clone();
        change(&mut layers.parameters);
        Architecture::Layers(layers).graph().unwrap_err().to_string()
    };
    assert!(problem(&|p| p[1].name = "other".into()).contains("`other` is no parameter"));
    assert!(problem(&|p| p[1] = p[0].clone()).contains("listed twice"));
    assert!(problem(&|p| drop(p.pop())).contains("list every parameter or none"));
    assert!(problem(&|p| p[0].shape = vec![2, 2]).contains("has shape [2, 2], its layer needs [4]"));
    assert!(problem(&|p| p[0].initial = Initial::Normal(f64::NAN)).contains("begins with NaN"));
    let norm = "kind = 'layers'\ninput = [2, 3, 3]\n[[layer]]\nname = 'n'\noperation = 'batch_norm'\n";
    let entry = |name: &str, trainable: bool| {
        format!(
            "[[parameter]]\nname = 'n.{name}'\nshape = [2]\ntrainable = {trainable}\ninitial = {{ constant = 0.5 }}\n"
        )
    };
    let all = |trainable| ["weight", "bias", "running_mean"].map(|n| entry(n, trainable)).concat();
    let text = format!("{norm}{}{}", all(false), entry("running_var", false));
    assert_eq!(Architecture::from_toml(&text).unwrap().graph().unwrap().trainable(), 0);
    let text = format!("{norm}{}{}", all(false), entry("running_var", true));
    assert!(
        Architecture::from_toml(&text)
            .unwrap()
            .graph()
            .unwrap_err()
            .to_string()
            .contains("is a statistic of `n`")
    );
}
