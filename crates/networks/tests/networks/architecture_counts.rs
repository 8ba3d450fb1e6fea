//! Numbers of trainable values against published ones, and the names of parameters.

use posterior_networks::architecture::{
    LargeResnet, Lenet, MnistResnet, Perceptron, Resnet, ShortcutOption, Size, Stem, Transformer, Unet,
    Variant,
};
use posterior_networks::{Activation, Architecture, Graph, Selection, describe};

fn graph(architecture: Architecture) -> Graph {
    architecture.graph().unwrap()
}

const SIZES: [Size; 3] = [Size::Small, Size::Medium, Size::Big];

#[test]
fn lenet() {
    let count = |size, convolution_bias, affine, output_bias| {
        graph(Architecture::Lenet(Lenet { convolution_bias, affine, output_bias, ..Lenet::sized(size) }))
            .trainable()
    };
    let table = [[14_544, 14_634, 14_714], [29_088, 29_226, 29_354], [45_714, 45_874, 46_024]];
    for (size, [weights, one, two]) in SIZES.into_iter().zip(table) {
        assert_eq!(count(size, false, false, false), weights);
        assert_eq!(count(size, true, false, true), one);
        assert_eq!(graph(Architecture::Lenet(Lenet::sized(size))).trainable(), one, "the defaults");
        assert_eq!(count(size, false, true, true), two);
    }
}

#[test]
fn mnist_resnet() {
    let count =
        |size, variant| graph(Architecture::MnistResnet(MnistResnet::sized(size, variant))).trainable();
    for (size, plain, biased) in
        [(Size::Small, 14_814, 14_898), (Size::Medium, 26_874, 26_986), (Size::Big, 45_576, 45_726)]
    {
        assert_eq!(count(size, Variant::Plain), plain);
        assert_eq!(count(size, Variant::Biased), biased);
        assert_eq!(count(size, Variant::PreActivation), plain);
        // Norms of five convolutions replaced by 14 scalars.
        let filters = biased - plain;
        assert_eq!(count(size, Variant::Fixup), plain - 2 * filters + 1 + 2 * 5 + 2 + 1);
    }
}

#[test]
fn resnets_for_small_images() {
    let table =
        [(20, 269_722, 272_474), (32, 464_154, 466_906), (44, 658_586, 661_338), (56, 853_018, 855_770)];
    for (depth, a, b) in table {
        assert_eq!(graph(Architecture::Resnet(Resnet::cifar10(depth))).trainable(), a);
        let resnet = Resnet { shortcut: ShortcutOption::B, ..Resnet::cifar10(depth) };
        assert_eq!(graph(Architecture::Resnet(resnet)).trainable(), b);
    }
}

#[test]
fn resnets_of_torchvision() {
    let imagenet = LargeResnet::default;
    assert_eq!(graph(Architecture::Resnet18(imagenet())).trainable(), 11_689_512);
    assert_eq!(graph(Architecture::Resnet34(imagenet())).trainable(), 21_797_672);
    let resnet50 = graph(Architecture::Resnet50(imagenet()));
    assert_eq!(resnet50.trainable(), 25_557_032);
    // 4.09 billion multiplications with as many additions, as usually reported for its convolutions and linear layer.
    let products: u64 = describe(&resnet50)
        .rows
        .iter()
        .filter(|row| matches!(row.operation, "convolution" | "linear"))
        .map(|row| row.flops)
        .sum();
    assert_eq!(products, 2 * 4_089_184_256);
    assert_eq!(graph(Architecture::Resnet101(imagenet())).trainable(), 44_549_160);
    assert_eq!(
        graph(Architecture::Resnet50(LargeResnet { classes: 10, ..imagenet() })).trainable(),
        23_528_522
    );
    let small = LargeResnet { classes: 100, stem: Stem::Cifar, ..imagenet() };
    assert_eq!(graph(Architecture::Resnet18(small)).trainable(), 11_220_132);
}

#[test]
fn transformers() {
    for (size, count) in SIZES.into_iter().zip([15_520, 27_090, 45_900]) {
        assert_eq!(graph(Architecture::Transformer(Transformer::sized(size, 9))).trainable(), count);
    }
}

#[test]
fn unets() {
    let kmnist = graph(Architecture::Unet(Unet::small(false)));
    assert_eq!(kmnist.trainable(), 76_905);
    let weights = Selection::matching(&kmnist, &["*.conv.weight", "*.conv?.weight"]).unwrap();
    assert_eq!(weights.len(), 76_608, "weights of convolutions only");
    assert_eq!(graph(Architecture::Unet(Unet::small(true))).trainable(), 77_641);
    // Odd sizes: every join has to cut.
    let deep = graph(Architecture::Unet(Unet::deep(35, 37)));
    assert_eq!((deep.trainable(), deep.output_shape()), (2_973_880, &[1, 35, 37][..]));
    let weights = Selection::matching(&deep, &["*.conv.weight", "*.conv?.weight"]).unwrap();
    assert_eq!(weights.len(), 2_964_480);
    let volume = graph(Architecture::Unet(Unet::volume(6, 7, 8)));
    assert_eq!((volume.trainable(), volume.output_shape()), (1_065_003, &[1, 6, 7, 8][..]));
}

#[test]
fn blocks_of_a_unet_are_selected_by_pattern() {
    let graph = graph(Architecture::Unet(Unet::small(true)));
    let length = |pattern: &str| Selection::matching(&graph, &[pattern]).unwrap().len();
    assert_eq!(length("in.conv.weight"), 9 * 32);
    assert_eq!(length("down1.conv?.weight"), 2 * 9 * 32 * 32);
    assert_eq!(length("up0.conv?.weight"), 9 * 36 * 32 + 9 * 32 * 32);
    assert_eq!(length("skip1.conv.weight"), 4 * 32);
    assert_eq!(length("out.conv.weight"), 32);
    let blocks = ["in.*", "down?.*", "skip?.*", "up?.*", "out.*"];
    assert_eq!(blocks.map(length).iter().sum::<usize>(), graph.trainable());
}

#[test]
fn toy_perceptrons() {
    let toy = |bias, output_bias| Perceptron {
        layer_norm: true,
        layer_norm_affine: false,
        bias,
        output_bias,
        ..Perceptron::new(1, &[50, 50], 1, Activation::Relu)
    };
    let count = |perceptron| graph(Architecture::Perceptron(perceptron)).trainable();
    assert_eq!(
        [count(toy(false, false)), count(toy(true, false)), count(toy(true, true))],
        [2600, 2700, 2701]
    );
}

#[test]
fn tables_add_up() {
    let graph = graph(Architecture::Resnet(Resnet::cifar10(20)));
    let table = describe(&graph);
    assert_eq!(table.parameters, 269_722);
    // Mean and variance of 7 norms at each of three widths.
    assert_eq!(table.constants, 2 * (7 * 16 + 6 * 32 + 6 * 64));
    assert_eq!((table.flops, table.activations), (graph.flops(), graph.activations()));
    let text = table.to_string();
    let line = text.lines().find(|line| line.starts_with("layer2.0.conv1")).unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["layer2.0.conv1", "convolution", "32", "x", "16", "x", "16", "4608", "0", "2359296"]
    );
    assert!(text.lines().last().unwrap().starts_with("total"));
    let shared = Architecture::from_toml(
        "kind='layers'\ninput=[4]\n[[layer]]\nname='a'\noperation='linear'\noutputs=4\n\
         [[layer]]\nname='b'\noperation='linear'\noutputs=4\nparameters=['a.weight','a.bias']",
    );
    let table = describe(&shared.unwrap().graph().unwrap());
    assert_eq!(
        table.rows.iter().map(|row| row.parameters).collect::<Vec<_>>(),
        [20, 0],
        "a shared parameter counts once"
    );
}
