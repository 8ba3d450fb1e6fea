//! Architecture files: round trips, every error with its place, hostile and damaged texts.

use crate::common::{formula_input, formula_network};
use posterior_networks::architecture::*;
use posterior_networks::{Activation, Architecture, ArchitectureError};
use std::time::Instant;

/// One of each kind, with options away from their defaults.
const TEXTS: &[&str] = &[
    "kind = 'perceptron'\ninputs = [1, 5, 5]\nhidden = [4, 3]\noutputs = 2\nactivation = { leaky_relu = { slope = 0.2 } }\nlayer_norm = true",
    "kind = 'residual_perceptron'\ninputs = 3\nwidth = 8\nblocks = 3\noutputs = 2\nactivation = 'elu'\nscale_outputs = true",
    "kind = 'lenet'\nfilters = [3, 4, 5]\ninput = [2, 9, 11]\nclasses = 3\naffine = true",
    "kind = 'resnet'\ndepth = 14\nwidth = 4\nshortcut = 'B'\nnames = 'torchvision'\nvariant = 'pre_activation'",
    "kind = 'mnist_resnet'\nsize = 'medium'\nvariant = 'fixup'\nstem_stride = 1",
    "kind = 'resnet18'\nclasses = 7\nstem = 'cifar'",
    "kind = 'resnet34'\ninput = [3, 40, 33]",
    "kind = 'resnet50'\ninput = [3, 40, 33]",
    "kind = 'resnet101'\nclasses = 2\nstem = 'cifar'",
    "kind = 'unet'\ninput = [1, 9, 8]\nchannels = [4, 8]\nskips = [0]\nhead = [4]\nslope = 0.1",
    "kind = 'transformer'\ninput = [4, 3]\nwidths = [6, 5]\nlayers = 1\nheads = 3\nnorm_first = true\nactivation = 'gelu'",
    LAYERS,
];

/// Nearly every operation in the free form.
const LAYERS: &str = r#"
kind = "layers"
input = [3, 8, 8]
output = "head"

[[layer]]
name = "conv"
operation = "convolution"
outputs = 4
kernel = 3
padding = 1
bias = false

[[layer]]
name = "bn"
operation = "batch_norm"

[[layer]]
name = "act"
operation = "leaky_relu"
slope = 0.2

[[layer]]
name = "twice"
operation = "convolution"
inputs = "act"
parameters = ["shared"]
outputs = 4
kernel = [3, 3]
padding = 1
bias = false

[[layer]]
name = "again"
operation = "convolution"
parameters = ["shared"]
outputs = 4
kernel = [3, 3]
padding = 1
bias = false

[[layer]]
name = "sum"
operation = "add"
inputs = ["again", "act"]

[[layer]]
name = "pool"
operation = "max_pool"
kernel = 2

[[layer]]
name = "mean"
operation = "average_pool"
kernel = 2
stride = 1

[[layer]]
name = "gn"
operation = "group_norm"
groups = 2

[[layer]]
name = "up"
operation = "resize"
sizes = [4, 4]
interpolation = "linear"

[[layer]]
name = "both"
operation = "concatenate"
inputs = ["up", "pool"]

[[layer]]
name = "cut"
operation = "slice"
axis = 2
start = 1
length = 2

[[layer]]
name = "flat"
operation = "flatten"

[[layer]]
name = "ln"
operation = "layer_norm"

[[layer]]
name = "by"
operation = "normalise"
over = { last_axes = 1 }

[[layer]]
name = "half"
operation = "scale"
factor = 0.5

[[layer]]
name = "query"
operation = "learned"
shape = [64]

[[layer]]
name = "product"
operation = "multiply"
inputs = ["half", "query"]

[[layer]]
name = "tokens"
operation = "reshape"
shape = [4, 16]

[[layer]]
name = "scores"
operation = "matrix_product"
inputs = ["tokens", "tokens"]
transpose_right = true

[[layer]]
name = "shares"
operation = "softmax"

[[layer]]
name = "turned"
operation = "transpose"
axes = [1, 0]

[[layer]]
name = "average"
operation = "mean"
axes = [0]

[[layer]]
name = "head"
operation = "linear"
outputs = 3

[[layer]]
name = "unused"
operation = "tanh"
"#;

#[test]
fn texts_round_trip() {
    for text in TEXTS {
        let architecture = Architecture::from_toml(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let written = architecture.to_toml().unwrap();
        let again = Architecture::from_toml(&written).unwrap_or_else(|e| panic!("{written}: {e}"));
        assert_eq!(again, architecture, "{written}");
        assert_eq!(again.to_toml().unwrap(), written);
        assert_eq!(again.graph().unwrap(), architecture.graph().unwrap());
        let json = serde_json::to_string(&architecture).unwrap();
        assert_eq!(serde_json::from_str::<Architecture>(&json).unwrap(), architecture, "{json}");
    }
    let mut kinds: Vec<&str> = TEXTS.iter().map(|t| Architecture::from_toml(t).unwrap().kind()).collect();
    kinds.dedup();
    assert_eq!(kinds, Architecture::KINDS, "every kind is tried");
}

#[test]
fn values_built_in_code_round_trip() {
    let built = [
        Architecture::Perceptron(Perceptron::new(3, &[4], 2, Activation::Silu)),
        Architecture::Lenet(Lenet::sized(Size::Big)),
        Architecture::Resnet(Resnet::cifar10(20)),
        Architecture::MnistResnet(MnistResnet::sized(Size::Small, Variant::Biased)),
        Architecture::Resnet50(LargeResnet::default()),
        Architecture::Unet(Unet::volume(8, 9, 10)),
        Architecture::Transformer(Transformer::sized(Size::Medium, 12)),
    ];
    for architecture in built {
        let text = architecture.to_toml().unwrap();
        assert_eq!(Architecture::from_toml(&text).unwrap(), architecture, "{text}");
    }
}

/// The free form gives the same numbers as the kind that it spells out.
#[test]
fn layers_spell_out_a_perceptron() {
    let text = "kind='layers'\ninput=[1,2,3]\n\
        [[layer]]\nname='f'\noperation='flatten'\n\
        [[layer]]\nname='0'\noperation='linear'\noutputs=5\n\
        [[layer]]\nname='1'\noperation='layer_norm'\n\
        [[layer]]\nname='2'\noperation='gelu'\n\
        [[layer]]\nname='3'\noperation='linear'\noutputs=2";
    let kind = "kind='perceptron'\ninputs=[1,2,3]\nhidden=[5]\noutputs=2\nlayer_norm=true\nactivation='gelu'";
    let outputs = [text, kind].map(|text| {
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        let x = formula_input(graph.input_shape());
        formula_network(graph).unwrap().forward(&x).unwrap()
    });
    assert_eq!(outputs[0], outputs[1]);
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    let cases: &[(&str, usize, usize, &str)] = &[
        ("", 1, 1, "`kind` is missing; expected one of \"perceptron\""),
        ("kind = 3", 1, 8, "`kind` is not a text"),
        ("# my network\nkind = \"resnets\"", 2, 8, "there is no kind \"resnets\""),
        ("kind = \"perceptron\"\ninputs = 3\noutputs = ", 3, 11, ""),
        ("kind = \"perceptron\"\ninputs = 3", 1, 1, "missing field `outputs`"),
        ("kind = \"perceptron\"\ninputs = 3\noutputs = 2\nwidht = 3", 4, 1, "unknown field `widht`"),
        ("kind = \"perceptron\"\ninputs = -3\noutputs = 2", 2, 10, "a positive whole number"),
        ("kind = \"perceptron\"\ninputs = \"x\"\noutputs = 2", 2, 10, "a shape as"),
        ("kind = \"perceptron\"\ninputs = 3\noutputs = 2.5", 3, 11, "invalid type"),
        (
            "kind = \"perceptron\"\ninputs = 3\noutputs = 2\nactivation = \"tahn\"",
            4,
            14,
            "unknown variant `tahn`",
        ),
        (
            "kind = \"perceptron\"\ninputs = 3\noutputs = 2\nactivation = 4",
            4,
            14,
            "an activation: one of identity",
        ),
        ("kind = \"resnet\"\ndepth = 20\nvariant = \"deep\"", 3, 11, "unknown variant `deep`"),
        ("kind = \"lenet\"\nfilters = [1, 2]", 2, 11, "3"),
        ("kind = \"layers\"\ninput = [3]\n[[layer]]\noperation = \"relu\"", 3, 1, "no `name`"),
        (
            "kind = \"layers\"\ninput = [3]\n\n[[layer]]\nname = \"a\"",
            4,
            1,
            "layer `a`: `operation` is missing",
        ),
        (
            "kind = \"layers\"\ninput = [3]\n[[layer]]\nname = \"a\"\noperation = \"relu\"\n[[layer]]\nname = \"b\"\noperation = \"linaer\"",
            6,
            1,
            "layer `b`: operation \"linaer\": there is no operation",
        ),
        (
            "kind = \"layers\"\ninput = [3]\n[[layer]]\nname = \"a\"\noperation = \"relu\"\nslope = 3",
            3,
            1,
            "slope",
        ),
        (
            "kind = \"layers\"\ninput = [3]\n[[layer]]\nname = \"a\"\noperation = \"linear\"",
            3,
            1,
            "missing field `outputs`",
        ),
        (
            "kind = \"layers\"\ninput = [3]\n[[layer]]\nname = \"a\"\noperation = \"relu\"\ninputs = [3]",
            6,
            10,
            "3 is not the name",
        ),
    ];
    for &(text, line, column, part) in cases {
        match Architecture::from_toml(text) {
            Err(ArchitectureError::Text { line: l, column: c, problem, .. }) => {
                assert_eq!((l, c), (line, column), "{text}\n{problem}");
                assert!(problem.contains(part), "{text}\n{problem}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn files_are_named_in_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("net.toml");
    std::fs::write(&path, "kind = 'resnet'\ndepth = 'x'").unwrap();
    let error = Architecture::read(&path).unwrap_err().to_string();
    assert!(error.contains("net.toml: line 2, column 9"), "{error}");
    let missing = Architecture::read(&directory.path().join("none.toml")).unwrap_err();
    assert!(matches!(missing, ArchitectureError::Read { .. }), "{missing}");
    std::fs::write(&path, vec![b'#'; (1 << 24) + 1]).unwrap();
    assert!(matches!(Architecture::read(&path), Err(ArchitectureError::TooLong { .. })));
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(Architecture::read(&path), Err(ArchitectureError::Read { .. })));
    std::fs::write(&path, TEXTS[3]).unwrap();
    assert_eq!(Architecture::read(&path).unwrap(), Architecture::from_toml(TEXTS[3]).unwrap());
}

/// Settings that make no network: text, part of the error.
const IMPOSSIBLE: &[(&str, &str)] = &[
    (
        "kind='layers'\ninput=[134217728]\n[[layer]]\nname='a'\noperation='transpose'\naxes=[0]",
        "entries in all",
    ),
    (
        "kind='layers'\ninput=[1,9000,9000]\n[[layer]]\nname='a'\noperation='average_pool'\nkernel=4000\nstride=1",
        "entries",
    ),
    (
        "kind='layers'\ninput=[1,1,1,1]\n[[layer]]\nname='a'\noperation='resize'\nsizes=[400,400,400]\ninterpolation='linear'",
        "entries",
    ),
    ("kind='perceptron'\ninputs=[]\noutputs=2", "`inputs` is empty"),
    ("kind='perceptron'\ninputs=0\noutputs=2", "length 0"),
    ("kind='perceptron'\ninputs=3\noutputs=0", "layer `0` (linear)"),
    ("kind='perceptron'\ninputs=3\nhidden=[4,0]\noutputs=2", "layer `2` (linear)"),
    ("kind='perceptron'\ninputs=1000000000\noutputs=1000000000", "input"),
    ("kind='perceptron'\ninputs=100\nhidden=[1000000000]\noutputs=1", "layer `0` (linear)"),
    ("kind='perceptron'\ninputs=9223372036854775807\noutputs=1", "input"),
    ("kind='perceptron'\ninputs=[4611686018427387904,4]\noutputs=1", "input"),
    ("kind='residual_perceptron'\ninputs=3\nblocks=1000000000000\noutputs=1", "`blocks`"),
    ("kind='residual_perceptron'\ninputs=3\nwidth=0\noutputs=1", "layer `input` (linear)"),
    ("kind='lenet'", "either `size`"),
    ("kind='lenet'\nsize='small'\nfilters=[1,2,3]", "either `size`"),
    ("kind='lenet'\nfilters=[1,0,3]", "layer `conv2` (convolution)"),
    ("kind='lenet'\nfilters=[1,1000000000,3]", "layer `conv2` (convolution)"),
    ("kind='lenet'\nsize='small'\nclasses=0", "layer `linear`"),
    ("kind='resnet'\ndepth=21", "`depth` 21 is not 6n + 2"),
    ("kind='resnet'\ndepth=2", "`depth` 2"),
    ("kind='resnet'\ndepth=6000000000000002", "`depth`"),
    ("kind='resnet'\ndepth=20\nwidth=1000000000", "layer `conv1`"),
    ("kind='resnet'\ndepth=20\nwidth=9223372036854775807", "layer `conv1`"),
    ("kind='resnet'\ndepth=20\ninput=[3,0,32]", "length 0"),
    ("kind='mnist_resnet'\nsize='big'\nstem_stride=0", "`stem_stride`"),
    ("kind='resnet50'\nclasses=0", "`classes`"),
    ("kind='resnet50'\nclasses=1000000000", "layer `fc`"),
    ("kind='resnet18'\ninput=[3,1000000,1000000]", "input"),
    ("kind='unet'\ninput=[3,3]", "`input`"),
    ("kind='unet'\ninput=[1,8,8]\nchannels=[4]\nskips=[]", "`channels`"),
    ("kind='unet'\ninput=[1,8,8]\nskips=[4]", "`decoder` and `skips`"),
    ("kind='unet'\ninput=[1,8,8]\nchannels=[3,3]\nskips=[1]", "layer `in.norm`"),
    ("kind='unet'\ninput=[1,8,8]\nslope=nan", "leaky_relu"),
    ("kind='unet'\ninput=[1,8,8]\nskips=[1000000000,4]", "layer `skip0.conv`"),
    ("kind='transformer'\ninput=[4,3]", "either `size`"),
    ("kind='transformer'\ninput=[4,3]\nsize='small'\nheads=7", "7 heads must divide the width 30"),
    ("kind='transformer'\ninput=[4,3]\nsize='small'\nheads=0", "heads"),
    ("kind='transformer'\ninput=[4,3]\nwidths=[0,2]", "layer `embedding`"),
    ("kind='transformer'\ninput=[4,3]\nsize='small'\nlayers=1000000000", "`layers`"),
    ("kind='transformer'\ninput=[1000000,3]\nsize='small'", "attention of 1000001 tokens"),
    ("kind='layers'\ninput=[3]", "no [[layer]]"),
    ("kind='layers'\ninput=[3]\noutput='b'\n[[layer]]\nname='a'\noperation='relu'", "`output` names `b`"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='relu'\ninputs='b'", "layer `a` reads `b`"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='add'", "layer `a` (add)"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='input'\noperation='relu'", "called `input`"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname=''\noperation='relu'", "empty"),
    (
        "kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='relu'\n[[layer]]\nname='a'\noperation='relu'",
        "names must be unique",
    ),
    (
        "kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='relu'\nparameters=['w']",
        "1 names are given for 0",
    ),
    (
        "kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='layer_norm'\nparameters=['w']",
        "names its parameters",
    ),
    (
        "kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='layer_norm'\ninputs=['input','input']",
        "reads 2 values",
    ),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='layer_norm'\nepsilon=-1.0", "`epsilon`"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='layer_norm'\naxes=2", "last 2 axes"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='scale'\nfactor=inf", "not finite"),
    ("kind='layers'\ninput=[3]\n[[layer]]\nname='a'\noperation='concatenate'\naxis=4", "no axis 4"),
    (
        "kind='layers'\ninput=[4]\n[[layer]]\nname='a'\noperation='reshape'\nshape=[4611686018427387904,4]",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[4]\n[[layer]]\nname='a'\noperation='learned'\nshape=[1000000000,1000000000]",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[4]\n[[layer]]\nname='a'\noperation='embedding'\nentries=1000000000000\nwidth=1000000000",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[4]\n[[layer]]\nname='a'\noperation='broadcast'\nshape=[1000000000000,4]",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[4]\n[[layer]]\nname='a'\noperation='pad'\nbefore=[9223372036854775807]\nafter=[9223372036854775807]",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[1,4,4]\n[[layer]]\nname='a'\noperation='resize'\nsizes=[1000000000,1000000000]\ninterpolation='nearest'",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[1,4,4]\n[[layer]]\nname='a'\noperation='max_pool'\nkernel=1000000000\npadding=500000000",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[1,4,4]\n[[layer]]\nname='a'\noperation='convolution'\noutputs=1\nkernel=1\npadding=1000000000\nstride=1000000000",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[1,1,1]\n[[layer]]\nname='a'\noperation='convolution'\ntransposed=true\noutputs=1\nkernel=1000000000\npadding=499999999",
        "layer `a`",
    ),
    (
        "kind='layers'\ninput=[1,4,4]\n[[layer]]\nname='a'\noperation='convolution'\noutputs=1\nkernel=9223372036854775807\ndilation=3",
        "layer `a`",
    ),
];

#[test]
fn impossible_settings_are_refused_at_once() {
    for &(text, part) in IMPOSSIBLE {
        let start = Instant::now();
        let architecture = Architecture::from_toml(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let error = match architecture.graph() {
            Err(error) => error.to_string(),
            Ok(graph) => panic!("{text}: {:?} was built", graph.output_shape()),
        };
        assert!(error.contains(part), "{text}: {error}");
        assert!(start.elapsed().as_secs_f64() < 1.0, "{text}: {:?}", start.elapsed());
    }
}

/// Strange settings that are legal: a kernel that takes no step may have any stride.
#[test]
fn strides_without_a_step_cost_nothing() {
    for text in [
        "kind='mnist_resnet'\nsize='big'\nstem_stride=1000000000",
        "kind='layers'\ninput=[1,4,4]\n[[layer]]\nname='a'\noperation='convolution'\noutputs=1\nkernel=1\nstride=1000000000",
        "kind='layers'\ninput=[1,1,1]\n[[layer]]\nname='a'\noperation='convolution'\ntransposed=true\noutputs=1\nkernel=1\nstride=1000000000",
    ] {
        let start = Instant::now();
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        let x = formula_input(graph.input_shape());
        formula_network(graph).unwrap().forward(&x).unwrap();
        assert!(start.elapsed().as_secs_f64() < 1.0, "{text}: {:?}", start.elapsed());
    }
}

#[test]
fn long_lists_end() {
    let hidden = vec!["2"; 20_000].join(",");
    let text = format!("kind='perceptron'\ninputs=3\nhidden=[{hidden}]\noutputs=1");
    assert!(
        Architecture::from_toml(&text).unwrap().graph().unwrap_err().to_string().contains("more than 10000")
    );
    let layers = "[[layer]]\nname='a'\noperation='relu'\n".repeat(100_001);
    let text = format!("kind='layers'\ninput=[3]\n{layers}");
    assert!(
        Architecture::from_toml(&text).unwrap().graph().unwrap_err().to_string().contains("more than 100000")
    );
    let deep =
        format!("kind='perceptron'\ninputs={}3{}\noutputs=1", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Architecture::from_toml(&deep).is_err());
}

/// Damaged texts end in a network or an error, never in a panic; what can be built small enough also runs.
#[test]
fn damaged_texts_do_no_harm() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let words = [
        "0",
        "1",
        "-1",
        "9999999999",
        "[",
        "]",
        "'",
        "\n",
        "=",
        "nan",
        "1e300",
        "[[layer]]",
        "2",
        "7",
        "kind",
        "true",
        "'add'",
        "64",
    ];
    let (mut built, mut refused) = (0, 0);
    for text in TEXTS.iter().filter(|text| !text.contains("resnet101")) {
        for _ in 0..150 {
            let mut characters: Vec<char> = text.chars().collect();
            for _ in 0..1 + next(3) {
                let at = next(characters.len());
                match next(3) {
                    0 => drop(characters.remove(at)),
                    1 => drop(characters.splice(at..at, words[next(words.len())].chars())),
                    _ => drop(characters.splice(at..=at, words[next(words.len())].chars())),
                }
            }
            let text: String = characters.into_iter().collect();
            match Architecture::from_toml(&text).map(|a| a.graph()) {
                Ok(Ok(graph)) => {
                    built += 1;
                    if graph.flops() < 2_000_000 && graph.activations() < 200_000 {
                        let x = formula_input(graph.input_shape());
                        formula_network(graph).unwrap().forward(&x).unwrap_or_else(|e| panic!("{text}: {e}"));
                    }
                }
                Ok(Err(error)) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(built > 50 && refused > 500, "{built} built, {refused} refused: the damage is of both kinds");
}
