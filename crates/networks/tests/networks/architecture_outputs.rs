//! Outputs of every architecture against PyTorch modules of the same parameter names and the same weights by formula (PyTorch 2.15 and torchvision 0.29 in
//! double precision): number of parameters, first and last output, and the sum of outputs times `cos(position)`. Parameter names enter the weights, so a wrong name or order changes
//! every number.

use crate::common::{formula_input, formula_network};
use posterior_networks::Architecture;

/// Architecture, `sum(p.numel() for p in module.parameters())`, [first, last, weighted sum].
#[rustfmt::skip]
const CASES: &[(&str, usize, [f64; 3])] = &[
    ("kind=\"perceptron\"\ninputs=[2,3,4]\nhidden=[7,5]\noutputs=3\nactivation=\"gelu\"", 233,
        [-0.27695134150642453, 0.1254704343490622, -0.058787631167637515]),
    ("kind=\"perceptron\"\ninputs=6\nhidden=[7,5]\noutputs=3\nlayer_norm=true\nactivation={leaky_relu={slope=0.2}}", 131,
        [0.46398217749771536, -0.9139187787070528, 0.11835038590373392]),
    ("kind=\"perceptron\"\ninputs=6\nhidden=[7]\noutputs=3\nlayer_norm=true\nlayer_norm_affine=false\nbias=false\noutput_bias=false", 63,
        [0.4355017904618597, 0.05199922488409486, 0.05785119311797878]),
    ("kind=\"residual_perceptron\"\ninputs=5\nwidth=9\nblocks=2\noutputs=4\nscale_outputs=true", 274,
        [0.011374864465186554, 0.2613193324067066, 0.10738424140511052]),
    ("kind=\"lenet\"\nsize=\"medium\"", 29482,
        [0.11817823895640409, 0.5654252483871957, -0.19465718638041352]),
    ("kind=\"resnet\"\ndepth=20", 269722,
        [-292.0607503294073, 613.4771656960704, 120.8729038754824]),
    ("kind=\"resnet\"\ndepth=14\nshortcut=\"B\"", 175258,
        [-74.80383124203337, -63.96649843645429, 71.8741382163295]),
    ("kind=\"resnet\"\ndepth=14\nshortcut=\"B\"\nnames=\"torchvision\"\nvariant=\"biased\"\nwidth=8\nclasses=7\ninput=[3,15,18]", 44503,
        [-243.64413235073044, -59.26112354144003, -1018.0422221303459]),
    ("kind=\"resnet\"\ndepth=14\nvariant=\"pre_activation\"", 172506,
        [140.1478267051252, 213.8286680732656, -117.30453373772411]),
    ("kind=\"resnet\"\ndepth=14\nvariant=\"pre_activation\"\nshortcut=\"B\"", 175066,
        [604.8756175152017, 639.4204168680711, -536.8359778055316]),
    ("kind=\"resnet\"\ndepth=14\nvariant=\"fixup\"", 171610,
        [6.939315897676743, 7.246609628196246, -7.9050360044142565]),
    ("kind=\"resnet\"\ndepth=14\nvariant=\"fixup\"\nshortcut=\"B\"", 174170,
        [10.411761133941361, 7.018010964433521, -9.221340361007783]),
    ("kind=\"mnist_resnet\"\nsize=\"small\"", 14814,
        [-0.17390954370595146, 0.11513236427879481, -0.06962528474205022]),
    ("kind=\"mnist_resnet\"\nsize=\"medium\"\nvariant=\"biased\"", 26986,
        [-2.8095818603694926, 0.23570396306253116, 2.001438873011096]),
    ("kind=\"mnist_resnet\"\nsize=\"small\"\nvariant=\"pre_activation\"\nstem_stride=1", 14814,
        [-0.13064013580354183, 0.15890814758287225, 0.02807895295581797]),
    ("kind=\"mnist_resnet\"\nsize=\"big\"\nvariant=\"fixup\"", 45290,
        [0.020140695437199402, 0.25319256688512043, -0.09258354057320067]),
    ("kind=\"resnet18\"\nclasses=100\nstem=\"cifar\"", 11220132,
        [-3.38621683649322, -1.047195521558001, 45.99178752537739]),
    ("kind=\"resnet34\"\ninput=[3,64,64]", 21797672,
        [-5.03564585061569, -3.349487164344771, 69.63613965980772]),
    ("kind=\"resnet50\"\nclasses=10\ninput=[3,64,64]", 23528522,
        [-42.696448106696145, 53.07677726294759, -4.674308557162988]),
    ("kind=\"resnet101\"\ninput=[3,33,65]", 44549160,
        [-47.96133373759229, -0.39633388421066534, -83.37650518295297]),
    ("kind=\"unet\"\ninput=[1,28,28]\nnorm=false\nsigmoid=true", 76905,
        [0.515460821740124, 0.514450262817456, 0.344286043121079]),
    ("kind=\"unet\"\ninput=[1,27,21]", 77641,
        [0.01905669152068608, 0.33795491236696285, -6.209410144234097]),
    ("kind=\"unet\"\ninput=[2,13,10]\nchannels=[8,12,16,20]\ndecoder=[20,6,10]\nskips=[3,0,2]\nhead=[8,4]", 25409,
        [-0.5955407192694314, -1.0083600658429879, -0.8719549684085086]),
    ("kind=\"unet\"\ninput=[1,6,7,9]\nchannels=[8,8,8]\ndecoder=[16,8]\nskips=[0,2]\nhead=[8,4]", 26528,
        [-0.8704315921528633, -0.7669382522363861, -2.9758344045252083]),
    ("kind=\"transformer\"\ninput=[7,3]\nsize=\"small\"", 15520,
        [1.042584338923171, 2.0009348338868245, -1.2621560790011295]),
    ("kind=\"transformer\"\ninput=[5,3]\nwidths=[12,20]\nnorm_first=true\nactivation=\"gelu\"", 2558,
        [0.5125080991686225, -3.2276112918330426, 1.2372033754932406]),
];

#[test]
fn outputs_are_those_of_pytorch() {
    let mut worst = 0.0f64;
    for (text, count, expected) in CASES {
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        assert_eq!(graph.trainable() + constants(text), *count, "{text}");
        let x = formula_input(graph.input_shape());
        let network = formula_network(graph).unwrap();
        let y = network.forward(&x).unwrap();
        let y = y.values();
        let sum: f64 = y.iter().enumerate().map(|(i, v)| v * (i as f64).cos()).sum();
        let scale = y.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (found, expected) in [y[0], y[y.len() - 1], sum].iter().zip(expected) {
            let error = (found - expected).abs() / scale;
            worst = worst.max(error);
            assert!(error < 1e-12, "{text}: {found} instead of {expected}, error {error:e}");
        }
    }
    println!("largest relative error {worst:e}");
}

/// What PyTorch counts and the defaults of `lenet` keep constant: gains and shifts of batch norm.
fn constants(text: &str) -> usize {
    if text.contains("lenet") { 2 * (32 + 32 + 64) } else { 0 }
}
