use super::*;
use posterior_linalg::random::Streams;
use rand::RngExt;

fn features() -> Vec<String> {
    ["x1", "x2", "x3", "wind speed"].map(String::from).to_vec()
}

fn build(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&features()).unwrap_or_else(|e| panic!("{e}"))
}

fn names(text: &str) -> Vec<String> {
    build(text).segments().into_iter().map(|s| s.name).collect()
}

fn error(text: &str) -> KernelTextError {
    match text.parse::<KernelExpression>() {
        Err(error) => error,
        Ok(expression) => expression.build::<f64>(&features()).map(|_| ()).unwrap_err(),
    }
}

#[test]
fn columns_of_counts_are_those_that_tanimoto_sees() {
    for (text, expected) in [
        ("se + linear(x1)", &[][..]),
        ("tanimoto", &[0, 1, 2, 3]),
        ("se(x2) * (tanimoto(x3) + linear) + tanimoto(`wind speed`, nowhere)", &[2, 3]),
    ] {
        let expression: KernelExpression = text.parse().unwrap();
        assert_eq!(expression.count_columns(&features()), expected, "{text}");
    }
}

#[test]
fn parameters_are_named_after_what_was_written() {
    assert_eq!(names("matern32(ard)"), ["matern32.variance", "matern32.lengthscale"]);
    assert_eq!(
        names("matern32(ard) * periodic(x3) + linear"),
        [
            "matern32*periodic.variance",
            "matern32.lengthscale",
            "periodic.lengthscale",
            "periodic.period",
            "linear.variance"
        ]
    );
    assert_eq!(names("rbf + rbf(x1)")[2], "se[2].variance");
    assert_eq!(names("linear(ard)"), ["linear.variance"]);
    assert_eq!(build("linear(ard)").values().len(), 4);
    assert_eq!(names("(se + constant) * linear"), ["se.variance", "se.lengthscale", "constant.variance"]);
    assert_eq!(build("rq(x1, alpha=3, lengthscale=0.5, variance=2)").values(), [2.0, 0.5, 3.0]);
    assert_eq!(build("se(`wind speed`, x1, ard)").values().len(), 3);
}

#[test]
fn text_round_trips() {
    for text in [
        "matern32(ard) * periodic(x3) + linear",
        "(se + constant) * linear(x1, x2)",
        "se * (se * se)",
        "polynomial(degree=3, offset=0.1) + white(variance=0.25)",
        "polynomial(degree=2.5)",
        "nngp",
        "nngp(depth=3, relu)",
        "nngp(depth=1, erf, readout=false, bias=0)",
        "nngp(depth=2, leaky-relu, slope=0.1, weight=1.5, bias=0.3)",
        "nngp(depth=64, sine, x1, `wind speed`, weight=1.5) * periodic(x3) + linear",
        "nngp(erf, bias=0.3, readout=false, variance=2) + nngp(x2)",
        // Columns that are called as activations and layers are.
        "nngp(erf, `relu`, dense) + se(relu)",
        "nngp-conv(shape=2x2, conv=2, relu)",
        "nngp-conv(shape=1x3, conv=1x2, erf, pool=1x2/1, x1, x2, `dense`, weight=1.5, bias=0.3, readout=false, variance=2)",
        "nngp-conv(shape=3x8x9, conv=3, leaky-relu, pool=2, conv-same=3x4/2x1, sine, pool=2x1/1, dense, relu, slope=0.1) * se + linear",
    ] {
        let expression: KernelExpression = text.parse().unwrap();
        assert_eq!(expression.to_string(), text);
        let json = serde_json::to_string(&expression).unwrap();
        assert_eq!(serde_json::from_str::<KernelExpression>(&json).unwrap(), expression);
    }
}

#[test]
fn amplitudes_stand_where_they_can_be_learned() {
    assert_eq!(build("se(variance=2) * linear(variance=3)").values()[0], 6.0);
    assert_eq!(build("se(variance=2) * (se(variance=3) * se)").values()[0], 6.0);
    assert_eq!(names("linear(ard) * periodic")[..2], ["linear.variance", "periodic.lengthscale"]);
    assert_eq!(build("linear(ard, variance=2) * periodic").values(), [2.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
    assert_eq!(names("(se + white) * (constant + linear)").len(), 5);
    let all: Vec<String> = names("se + se * se + linear + (se + se) * white");
    let distinct: std::collections::HashSet<&String> = all.iter().collect();
    assert_eq!(all.len(), distinct.len(), "{all:?}");
}

#[test]
fn networks_have_a_pair_of_scales_for_each_layer_and_a_variance_without_read_out() {
    assert_eq!(names("nngp(depth=3, relu)"), ["nngp.weight", "nngp.bias"]);
    assert_eq!(build("nngp(depth=2, relu, weight=1.5, bias=0.3)").values(), [1.5, 1.5, 1.5, 0.3, 0.3, 0.3]);
    assert_eq!(names("nngp(readout=false)"), ["nngp.variance", "nngp.weight", "nngp.bias"]);
    assert_eq!(build("nngp(erf, readout=false, variance=2)").values(), [2.0, 1.0, 1.0]);
    let unbiased = build("nngp(depth=2, bias=-0)");
    assert_eq!(unbiased.values(), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(unbiased.unconstrained_names(), ["nngp.weight[0]", "nngp.weight[1]", "nngp.weight[2]"]);
    assert_eq!(names("nngp * se")[..2], ["nngp.weight", "nngp.bias"]);
    assert_eq!(names("nngp(readout=false) * se")[0], "nngp*se.variance");
    assert_eq!(names("nngp + nngp(erf)")[2], "nngp[2].weight");
    let parse = |text: &str| text.parse::<KernelExpression>().unwrap();
    assert_eq!(parse("nngp( relu ,depth = 3)"), parse("nngp(depth=3, activation=relu)"));
    assert_eq!(parse("nngp(x1, columns=relu, erf)").to_string(), "nngp(erf, x1, `relu`)");
    assert_eq!(parse("nngp(readout=true)").to_string(), "nngp(readout=true)");
    let named = ["relu".to_string(), "x".to_string()];
    let of_column = parse("nngp(erf, `relu`)").build::<f64>(&named).unwrap();
    let x = faer::Mat::from_fn(2, 2, |i, j| (i + 3 * j) as f64);
    let expected = parse("nngp(erf, x)").build::<f64>(&["x".into(), "relu".into()]).unwrap();
    assert_eq!(crate::gram(&*of_column, x.as_ref()), crate::gram(&*expected, x.as_ref()));
}

#[test]
fn networks_on_images_are_read_layer_by_layer() {
    use crate::infinite::{Activation, ConvolutionalNetwork, ImageLayer, Padding};
    let parse = |text: &str| text.parse::<KernelExpression>().unwrap();
    assert_eq!(names("nngp-conv(shape=2x2, conv=2, relu)"), ["nngp-conv.weight", "nngp-conv.bias"]);
    assert_eq!(
        build("nngp-conv(shape=2x2, conv=2, relu, dense, erf, weight=1.5, bias=0.3)").values(),
        [1.5, 1.5, 1.5, 0.3, 0.3, 0.3]
    );
    assert_eq!(
        names("nngp-conv(shape=2x2, conv=2, relu, readout=false)"),
        ["nngp-conv.variance", "nngp-conv.weight", "nngp-conv.bias"]
    );
    assert_eq!(names("nngp-conv(shape=4x1, conv=1, erf, readout=false) * se")[0], "nngp-conv*se.variance");
    assert_eq!(names("nngp-conv(shape=4x1, conv=1, erf) * se")[0], "nngp-conv.weight");
    assert_eq!(
        names("nngp-conv(shape=4x1, conv=1, erf) + nngp-conv(shape=4x1, conv=1, erf)")[2],
        "nngp-conv[2].weight"
    );
    // One channel, windows that do not overlap, squares; where flattening stands does not matter, nor do settings among the layers.
    let short = "nngp-conv(shape=8x8, conv=3, relu, pool=2, dense, erf, weight=2)";
    for long in [
        "nngp-conv( erf= , )".replace(
            "erf= , ",
            "shape = 1x8x8, conv=3x3/1, relu, weight=2, pool=2x2/2x2, flatten, dense, erf",
        ),
        "nngp-conv(conv=3/1x1, relu, pool=2/2, shape=8 x 8, dense, flatten, erf, weight=2)".to_string(),
    ] {
        assert_eq!(parse(&long).to_string(), short);
    }
    let built =
        parse("nngp-conv(shape=1x2x3, conv=1x2, leaky-relu, slope=0.3, conv-same=2/1x2, sine, pool=1x1)")
            .build::<f64>(&(0..6).map(|i| format!("p{i}")).collect::<Vec<_>>())
            .unwrap();
    let convolution = |filter, stride, padding| ImageLayer::Convolution { filter, stride, padding };
    let layers = vec![
        convolution([1, 2], [1, 1], Padding::Valid),
        ImageLayer::Activation(Activation::LeakyRelu { slope: 0.3 }),
        convolution([2, 2], [1, 2], Padding::Same),
        ImageLayer::Activation(Activation::Sine),
        ImageLayer::AveragePool { window: [1, 1], stride: [1, 1] },
    ];
    let expected =
        ConvolutionalNetwork::new("nngp-conv", crate::Columns::all(6), [1, 2, 3], layers, true, 1.0, 1.0)
            .unwrap();
    let x = faer::Mat::from_fn(4, 6, |i, j| ((3 * i + 2 * j) as f64).sin());
    assert_eq!(crate::gram(&*built, x.as_ref()), crate::gram::<f64>(&expected, x.as_ref()));
}

#[test]
fn expressions_are_equal_when_they_mean_the_same() {
    let parse = |text: &str| text.parse::<KernelExpression>().unwrap();
    assert_eq!(parse("rbf( columns = x1,x2 )+rq"), parse("  se(x1, x2) + rational_quadratic"));
    assert_ne!(parse("se(x1)"), parse("se(x2)"));
    assert_ne!(parse("se + se * linear"), parse("(se + se) * linear"));
    assert_eq!(parse("se(lengthscale=1e300)").to_string(), "se(lengthscale=1e300)");
    assert_eq!(parse("se(lengthscale=0.500)").to_string(), "se(lengthscale=0.5)");
}

#[test]
fn errors_point_at_the_character() {
    let cases = [
        ("", 0, "the text ends here"),
        ("matern32 +", 10, "the text ends here"),
        ("matrn32", 0, "did you mean `matern32`?"),
        ("2 * se", 0, "a number is not a kernel"),
        ("se se", 3, "expected `+`, `*` or the end"),
        ("se(ard", 6, "expected `,` or `)`"),
        ("(se", 3, "expected `)`"),
        ("se(lengthscale=-1)", 15, "must be a positive number"),
        ("se(period=1)", 3, "has no setting `period`; it has: lengthscale, variance"),
        ("white(x1)", 6, "does not look at columns"),
        ("constant(ard)", 9, "nothing that could differ by column"),
        (
            "se(x1, x9)",
            7,
            "no feature column is called `x9`; did you mean `x1`? There are: x1, x2, x3, wind speed",
        ),
        ("se(`wind sped`)", 3, "did you mean `wind speed`?"),
        ("se(Ard)", 3, "did you mean `ard`?"),
        ("se(temperature)", 3, "called `temperature`. There are: x1"),
        ("se(columns=x9)", 11, "no feature column is called `x9`"),
        ("white(columns=x1)", 6, "no setting `columns`"),
        ("hodrick_prescott", 0, "no kernel is called `hodrick_prescott`. Known: se, rbf"),
        ("(se + linear) * se(x1, variance=2)", 23, "no `variance` to set"),
        ("linear(ard) * (se(variance=2) * se)", 18, "no `variance` to set"),
        ("se(x1, x1)", 7, "named twice"),
        ("polynomial(degree=0)", 18, "a positive number up to 16"),
        ("polynomial(degree=16.5)", 18, "fractions are for inputs whose inner products are all positive"),
        ("polynomial(degree=NaN)", 18, "a positive number up to 16"),
        ("nngp(depth=0, relu)", 11, "counts hidden layers and must be a whole number from 1 to 64"),
        ("nngp(depth=2.5)", 11, "whole number from 1 to 64"),
        ("nngp(depth=65)", 11, "whole number from 1 to 64"),
        ("nngp(depth=many)", 11, "without any, the kernel is `linear + constant`"),
        (
            "nngp(depth=2, rleu)",
            14,
            "`rleu` is neither an activation nor a feature column; did you mean `relu`? Activations: relu, leaky-relu, erf, sine. Columns: x1, x2",
        ),
        ("nngp(tanh)", 5, "its kernel has no closed form, that of `erf` is close to it"),
        ("nngp(x4)", 5, "did you mean `x1`?"),
        (
            "nngp(activation=gelu)",
            16,
            "no activation is called `gelu`; did you mean `relu`? Known: relu, leaky-relu, erf, sine",
        ),
        ("nngp(activation=x1)", 16, "Known: relu"),
        ("nngp(relu, erf)", 11, "`activation` is set twice"),
        ("nngp(columns=relu)", 13, "neither an activation nor a feature column"),
        ("nngp(relu, slope=0.1)", 11, "only `leaky-relu` has a `slope`"),
        ("nngp(relu, weight=0)", 18, "`weight` must be a positive number"),
        ("nngp(relu, bias=-1)", 16, "`bias` must be a positive number, or 0 for a network without biases"),
        ("nngp(relu, bias=inf)", 16, "`bias` must be a positive number, or 0"),
        ("nngp(relu, readout=no)", 19, "`readout` must be `true` or `false`"),
        ("nngp(relu, ard)", 11, "nothing that could differ by column"),
        (
            "nngp(relu, lengthscale=1)",
            11,
            "it has: depth, activation, slope, weight, bias, readout, variance",
        ),
        ("se + nngp(variance=2)", 10, "has no `variance` with its read-out layer"),
        ("nngp * se(variance=2)", 10, "no `variance` to set"),
        ("nngp-conv", 0, "needs the shape of its images: `shape=1x28x28` is channels, height and width"),
        ("se + nngp-conv(conv=2, relu)", 5, "needs the shape of its images"),
        ("nngp-conv(shape=2x2)", 10, "0 layers; a network has 1 to 64, such as `conv=3, relu`"),
        ("nngp-conv(shape=28, conv=2)", 16, "channels, height and width of images, such as `1x28x28`"),
        ("nngp-conv(shape=2x2x2x2, conv=2)", 16, "channels, height and width"),
        ("nngp-conv(shape=0x2, conv=2)", 16, "channels, height and width"),
        ("nngp-conv(shape=2x2, shape=2x2, conv=2)", 27, "`shape` is set twice"),
        (
            "nngp-conv(shape=3x1000000x1000000, conv=2)",
            16,
            "images of 3 x 1000000 x 1000000 (channels, height, width); each of them is from 1 to 1024",
        ),
        (
            "nngp-conv(shape=3x3, conv=2, relu)",
            10,
            "images of 1 x 3 x 3 (channels, height, width) are rows of 9 columns; the kernel looks at 4",
        ),
        ("nngp-conv(shape=1x3, conv=1, relu, x1, x2)", 10, "rows of 3 columns; the kernel looks at 2"),
        (
            "nngp-conv(shape=2x2, conv=2, relu, pool=2)",
            35,
            "2 x 2 does not fit into the 1 x 1 that the layers before leave",
        ),
        ("nngp-conv(shape=2x2, conv=3x1, relu)", 21, "3 x 1 does not fit into the 2 x 2"),
        ("nngp-conv(shape=2x2, conv=0, relu)", 26, "`conv` is a height and a width, such as `3` or `3x5`"),
        ("nngp-conv(shape=2x2, conv=two, relu)", 26, "`conv` is a height and a width"),
        ("nngp-conv(shape=2x2, pool=2/0, relu)", 26, "perhaps a stride, as in `3/2` or `3x5/2x1`"),
        ("nngp-conv(shape=2x2, pool=2/1/1, relu)", 26, "`pool` is a height and a width"),
        ("nngp-conv(shape=2x2, pool=1x1x1, relu)", 26, "`pool` is a height and a width"),
        ("nngp-conv(shape=2x2, relu, conv=2)", 21, "an activation stands behind a convolution or a `dense`"),
        ("nngp-conv(shape=2x2, conv=2, relu, erf)", 35, "with no other activation between"),
        (
            "nngp-conv(shape=2x2, conv=2, relu, dense)",
            35,
            "the read-out layer, which is there unless it is switched off",
        ),
        (
            "nngp-conv(shape=2x2, dense, relu, conv=1)",
            34,
            "behind a fully connected layer there are no positions left",
        ),
        (
            "nngp-conv(shape=2x2, flatten, conv=1)",
            35,
            "behind `flatten` there are no positions left for `conv`",
        ),
        (
            "nngp-conv(shape=2x2, conv=2, rleu)",
            29,
            "`rleu` is neither a layer nor a feature column; did you mean `relu`? Layers: conv=3, conv-same=3, pool=2, relu, leaky-relu, erf, sine, dense, flatten. Columns: x1",
        ),
        ("nngp-conv(shape=2x2, conv=2, tanh)", 29, "that of `erf` is close to it"),
        ("nngp-conv(shape=2x2, dense, relu, conv)", 34, "did you mean `conv`?"),
        ("nngp-conv(shape=2x2, conv=2, relu, slope=0.1)", 35, "only `leaky-relu` has a `slope`"),
        ("nngp-conv(shape=2x2, conv=2, relu, variance=2)", 35, "has no `variance` with its read-out layer"),
        (
            "nngp-conv(shape=2x2, conv=2, relu, depth=2)",
            35,
            "it has: shape, conv, conv-same, pool, slope, weight",
        ),
        ("nngp-conv(shape=2x2, conv=2, relu, ard)", 35, "nothing that could differ by column"),
        ("nngp-conv(shape=1x400x400, conv=1, relu, pool=200/1)", 10, "rows of 160000 columns"),
        ("se(`x", 3, "never closed"),
        ("se(lengthscale=1, lengthscale=2)", 18, "set twice"),
    ];
    for (text, position, message) in cases {
        let error = error(text);
        assert_eq!(error.position, position, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    assert_eq!(error("se + matrn32").to_string().lines().last(), Some("       ^"));
}

#[test]
fn hostile_text_is_refused() {
    assert!(error(&"(".repeat(5000)).message.contains("at most 4096"));
    assert!(error(&"(".repeat(1000)).message.contains("nested"));
    assert!(error("se(é\u{0}=1)").message.contains("expected"));
    let series = |count: usize| "se+".repeat(count).trim_end_matches('+').to_string();
    let long = series(800).parse::<KernelExpression>().unwrap();
    assert_eq!(long.to_string().parse::<KernelExpression>().unwrap(), long);
    // Read as it stands it is short enough; written with its spaces it could not be read again.
    assert!(error(&series(1300)).message.contains("with its spaces"));
    // Sizes that are read, but that no memory would hold.
    for (text, columns) in [
        ("nngp-conv(shape=1024x1024, pool=512/1)", 1024 * 1024),
        ("nngp-conv(shape=200x200, conv=1, relu, pool=10/1)", 200 * 200),
        ("nngp-conv(shape=4x1, conv-same=18446744073709551615, relu)", 4),
    ] {
        let names: Vec<String> = (0..columns).map(|i| format!("p{i}")).collect();
        let error = text.parse::<KernelExpression>().unwrap().build::<f64>(&names).unwrap_err();
        assert!(error.message.contains("pairs of positions in one layer"), "{error}");
        assert_eq!(error.position, 10);
    }
    let layers = ", relu, conv=1".repeat(40);
    assert!(error(&format!("nngp-conv(shape=2x2, conv=1{layers})")).message.contains("81 layers"));
    let many: Vec<String> = (0..1000).map(|i| format!("column {i}")).collect();
    let error = "se(other)".parse::<KernelExpression>().unwrap().build::<f64>(&many).unwrap_err();
    assert!(error.message.ends_with("and 970 more"), "{error}");
    assert!("se".parse::<KernelExpression>().unwrap().build::<f64>(&[]).is_err());
}

#[test]
fn mutated_text_never_panics() {
    let iterations: u64 =
        std::env::var("POSTERIOR_FUZZ_ITERATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(20_000);
    let seeds = [
        "matern32(ard) * periodic(x3) + linear",
        "(se + constant(variance=1e-3)) * rq(`wind speed`, alpha=2)",
        "nngp(depth=3, leaky-relu, x1, slope=0.5, readout=false) + nngp(activation=erf, columns=relu)",
        "nngp-conv(shape=2x2, conv=2, relu, pool=1/1x1) + nngp-conv(shape=4x1x1, conv-same=3, sine, dense, erf)",
    ];
    let pieces = ["(", ")", "+", "*", ",", "=", "`", "ard", "x1", "1e308", "-", "é", "\u{0}", " ", "se", "9"];
    let mut rng = Streams::new(1).stream("kernels/fuzz");
    for _ in 0..iterations {
        let mut text = seeds[rng.random_range(0..seeds.len())].to_string();
        for _ in 0..rng.random_range(1..6) {
            let cut = |rng: &mut _, text: &str| {
                let boundaries: Vec<usize> = (0..=text.len()).filter(|&i| text.is_char_boundary(i)).collect();
                boundaries[rand::RngExt::random_range::<usize, _>(rng, 0..boundaries.len())]
            };
            let at = cut(&mut rng, &text);
            match rng.random_range(0..3) {
                0 => text.insert_str(at, pieces[rng.random_range(0..pieces.len())]),
                1 => text.truncate(at),
                _ => {
                    text.drain(at..text[at..].chars().next().map_or(at, |c| at + c.len_utf8()));
                }
            }
        }
        if let Ok(expression) = text.parse::<KernelExpression>() {
            let again: KernelExpression =
                expression.to_string().parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(again.to_string(), expression.to_string());
            let _ = expression.build::<f64>(&features());
        }
    }
}

#[test]
fn auto_is_what_the_columns_say() {
    let auto: KernelExpression = "auto".parse().unwrap();
    let of = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let own = auto.of_table(&names);
        assert!(own.build::<f64>(&names).is_ok());
        assert_eq!(auto.looks_at(&names).unwrap(), own.looks_at(&names).unwrap());
        own.to_string()
    };
    assert_eq!(of(&["x", "z"]), "matern32(ard)");
    assert_eq!(of(&["c=a", "x", "c=b"]), "matern32(ard) * categorical(c) + categorical(c)");
    assert_eq!(of(&["c=a", "c=b"]), "categorical(c)");
    assert_eq!(
        of(&["c=a", "c=b", "wind dir=n", "wind dir=s"]),
        "categorical(c) * categorical(`wind dir`) + categorical(c) + categorical(`wind dir`)"
    );
    // A single column of 0 and 1, and one that no text can name, are numbers.
    assert_eq!(of(&["x=(missing)", "a`=1", "a`=2", "x"]), "matern32(ard)");
    // So many that no text holds them.
    let many: Vec<String> = (0..400).flat_map(|k| ["a", "b"].map(|c| format!("column {k}={c}"))).collect();
    assert_eq!(auto.of_table(&many).to_string(), "matern32(ard)");
    assert_eq!((auto.to_string(), auto.clone()), ("auto".into(), auto));
    let other: KernelExpression = "linear".parse().unwrap();
    assert_eq!(other.of_table(&many).to_string(), "linear");
}

#[test]
fn categories_belong_to_the_kernel_that_names_their_column() {
    let features: Vec<String> =
        ["x1", "c=a", "c=b", "wind dir=n", "wind dir=s", "x2"].map(String::from).to_vec();
    let looks_at = |text: &str| text.parse::<KernelExpression>().unwrap().looks_at(&features);
    let pair = |label: &str, columns: &[usize]| (label.to_string(), columns.to_vec());
    assert_eq!(
        looks_at("matern32(ard) * categorical(c) + se(`c=b`, x2) + constant").unwrap(),
        [pair("matern32", &[0, 3, 4, 5]), pair("categorical", &[1, 2]), pair("se", &[2, 5])]
    );
    let both: KernelExpression =
        "se(ard) * categorical(c, rank=2) * categorical(`wind dir`)".parse().unwrap();
    assert_eq!(both.category_columns(&features), [1, 2, 3, 4]);
    assert_eq!(both.looks_at(&features).unwrap()[0], pair("se", &[0, 5]));
    assert_eq!(both.to_string(), "se(ard) * categorical(c, rank=2) * categorical(`wind dir`)");
    let counts: KernelExpression = "tanimoto * categorical(c)".parse().unwrap();
    assert_eq!(counts.count_columns(&features), [0, 3, 4, 5]);
    let message = |text: &str| match text.parse::<KernelExpression>() {
        Err(error) => error.message,
        Ok(expression) => expression.build::<f64>(&features).map(|_| ()).unwrap_err().message,
    };
    for (text, part) in [
        ("categorical", "looks at one column"),
        ("categorical(c, x1)", "looks at one column"),
        ("categorical(x1)", "(--categories x1)"),
        ("categorical(colour)", "With categories: c, wind dir"),
        ("categorical(wind_dir)", "did you mean `wind dir`?"),
        ("categorical(c, rank=3)", "has 2 categories"),
        ("categorical(c, rank=0)", "a whole number from 1 to 64"),
        ("categorical(c, rank=1, lengthscale=2)", "leave one of them out"),
        ("categorical(c, ard)", "nothing that could differ by column"),
        ("categorical(c, period=2)", "it has: rank, lengthscale, variance"),
    ] {
        let found = message(text);
        assert!(found.contains(part) && found.len() < 300, "{text}: {found}");
    }
    let only: Vec<String> = ["c=a", "c=b"].map(String::from).to_vec();
    let error = "se * categorical(c)".parse::<KernelExpression>().unwrap().build::<f64>(&only).unwrap_err();
    assert!(error.message.contains("no column left") && error.position == 0);
    assert!("constant * categorical(c)".parse::<KernelExpression>().unwrap().build::<f64>(&only).is_ok());
}

#[test]
fn additive_kernels_mixtures_and_warps_are_read() {
    assert_eq!(names("additive(matern32, ard, order=2)"), ["additive.variance", "additive.lengthscale"]);
    assert_eq!(build("additive(rbf, order=2, variance=3, lengthscale=0.5)").values(), [1.5, 1.5, 0.5]);
    assert_eq!(build("additive(rq, ard, x1, x3, alpha=2)").values(), [1.0, 1.0, 1.0, 2.0]);
    assert_eq!(names("additive(se) * linear"), ["additive.variance", "additive.lengthscale"]);
    assert_eq!(
        names("spectral_mixture(x1, components=3)"),
        ["spectral_mixture.weight", "spectral_mixture.frequency", "spectral_mixture.bandwidth"]
    );
    assert_eq!(build("spectral_mixture(x1, components=3, variance=6)").values()[..3], [2.0; 3]);
    let starts = |seed: u32| build(&format!("spectral_mixture(components=3, seed={seed})")).values();
    assert!(starts(1) != starts(2) && starts(1) == starts(1));
    assert_eq!(
        names("warp(matern32(ard) * periodic(x3) + linear(x1))")[..4],
        ["warp.skew", "warp.tail", "matern32*periodic.variance", "matern32.lengthscale"]
    );
    assert_eq!(names("warp(se(x1)) * warp(se(x2, x3))")[0], "warp(se)*warp(se).variance");
    assert_eq!(build("warp(se(x1, variance=3)) * linear").values(), [3.0, 0.0, 1.0, 1.0]);
    for text in [
        "additive(matern32, ard, x1, x2, order=2, lengthscale=0.5)",
        "additive(se, `matern32`) + spectral_mixture(x1, components=8, seed=3)",
        "warp(matern32(ard))",
        "warp(se + linear(x1)) * warp(warp(rq(x2)))",
        "warp(se * (linear + constant))",
    ] {
        assert_eq!(text.parse::<KernelExpression>().unwrap().to_string(), text);
    }
    for (text, part) in [
        ("additive", "wants the kernel of one column"),
        ("additive(x1, order=2)", "possible: se, matern12"),
        ("additive(se, rq)", "two are named"),
        ("additive(se, alpha=2)", "only `additive(rq)`"),
        ("additive(se, x1, x2, order=3)", "`order` is 3, but the kernel looks at 2 columns"),
        ("additive(se, order=0)", "from 1 to 64"),
        ("spectral_mixture(components=65)", "from 1 to 64"),
        ("spectral_mixture(seed=-1)", "a whole number"),
        ("spectral_mixture(ard)", "nothing that could differ by column"),
        ("warp", "wants a kernel in parentheses"),
        ("warp(constant)", "nothing to warp"),
        ("warp(tanimoto)", "nothing to warp"),
        ("se(variance=2) * additive(se)", "its variances are those of the sum"),
    ] {
        let found = error(text).message;
        assert!(found.contains(part) && found.len() < 300, "{text}: {found}");
    }
    let features: Vec<String> = ["x1", "c=a", "c=b"].map(String::from).to_vec();
    let warped: KernelExpression = "warp(se(ard) * categorical(c))".parse().unwrap();
    assert_eq!(warped.looks_at(&features).unwrap()[2], ("warp".to_string(), vec![0]));
    let none = "warp(se(`c=a`)) * categorical(c)".parse::<KernelExpression>().unwrap();
    assert!(none.build::<f64>(&features).unwrap_err().message.contains("all columns in these parentheses"));
}

/// Counts stay counts behind a warp of what stands beside them, and sums of so many products as single precision cannot hold are refused.
#[test]
fn warps_leave_counts_and_orders_have_an_end() {
    let segments = build("warp(matern32(ard) + tanimoto(x1, x2))").segments();
    let skew = segments.iter().find(|s| s.name == "warp.skew").unwrap();
    assert_eq!(skew.len(), 2);
    let _ = error("warp(tanimoto(x1))");
    let many: Vec<String> = (0..784).map(|i| format!("c{i}")).collect();
    let of = |order: usize| {
        let text = format!("additive(se, order={order})");
        text.parse::<KernelExpression>().unwrap().build::<f32>(&many).map(|_| ()).map_err(|e| e.to_string())
    };
    assert!(of(5).is_ok());
    assert!(of(20).unwrap_err().contains("single precision"));
}
