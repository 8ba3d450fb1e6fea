//! What does not fit is refused with a reason, without overflow, and before anything large is allocated.

use super::super::*;

fn refused(operation: &Operation, inputs: &[&[usize]], reason: &str) {
    match operation.prepare::<f64>(inputs) {
        Ok(prepared) => panic!("{operation:?} of {inputs:?} gave {:?}", prepared.shape),
        Err(e) => assert!(e.contains(reason), "{operation:?} of {inputs:?}: `{e}` does not say `{reason}`"),
    }
}

const HUGE: usize = usize::MAX;

#[test]
fn numbers_of_inputs() {
    refused(&Operation::Add, &[&[2]], "does not take 1 inputs");
    refused(&Operation::Softmax, &[], "does not take 0 inputs");
    refused(&Operation::Concatenate(0), &[], "does not take 0 inputs");
    refused(&Operation::Learned(Learned { shape: vec![2] }), &[&[2]], "does not take 1 inputs");
    refused(&Operation::Softmax, &[&[2], &[2]], "does not take 2 inputs");
}

#[test]
fn shapes_that_do_not_fit() {
    let linear = |outputs| Operation::Linear(Linear { outputs, bias: true });
    refused(&linear(3), &[&[]], "at least one axis");
    refused(&linear(0), &[&[3]], "at least one");
    refused(&Operation::Add, &[&[2], &[3]], "differ");
    refused(&Operation::Multiply, &[&[2], &[2, 1]], "differ");
    refused(&Operation::Softmax, &[&[]], "needs an axis");
    refused(&Operation::BatchNorm(BatchNorm::default()), &[&[]], "channels");
    refused(&Operation::Bias(Bias { shape: vec![2, 1, 4] }), &[&[2, 3, 4]], "broadcast");
    refused(&Operation::Gain(Gain { shape: vec![2, 3] }), &[&[3]], "broadcast");
    refused(&Operation::Concatenate(2), &[&[2, 3]], "no axis 2");
    refused(&Operation::Concatenate(0), &[&[2, 3], &[2, 4]], "differ");
    refused(&Operation::Concatenate(1), &[&[2, 3], &[2]], "differ");
    refused(&Operation::Reshape(vec![5]), &[&[2, 3]], "different numbers");
    refused(&Operation::Transpose(Transpose { axes: vec![0, 0] }), &[&[2, 3]], "not an order");
    refused(&Operation::Pad(Pad::zeros(vec![1], vec![1, 1])), &[&[2, 3]], "one entry for each");
    let reflected = Pad { mode: PadMode::Reflect, ..Pad::zeros(vec![3], vec![0]) };
    refused(&Operation::Pad(reflected), &[&[3]], "too short");
    let valued = Pad { mode: PadMode::Edge, value: 1.0, ..Pad::zeros(vec![1], vec![0]) };
    refused(&Operation::Pad(valued), &[&[3]], "constant");
    refused(&Operation::Divide, &[&[2], &[3]], "differ");
    refused(&Operation::Maximum, &[&[2], &[2, 1]], "differ");
    refused(&Operation::Choose, &[&[2], &[3], &[3]], "differ");
    refused(&Operation::Choose, &[&[2], &[2], &[3]], "differ");
    refused(&Operation::Largest(Extreme { axes: vec![2], keep: false }), &[&[2, 3]], "no largest value");
    refused(&Operation::Smallest(Extreme { axes: vec![], keep: false }), &[&[2, 3]], "no smallest value");
    refused(&Operation::Mean(Mean { axes: vec![2], keep: false }), &[&[2, 3]], "mean over");
    refused(&Operation::Mean(Mean { axes: vec![], keep: false }), &[&[2, 3]], "mean over");
    refused(&Operation::Broadcast(Broadcast { shape: vec![3] }), &[&[2, 3]], "broadcast");
    refused(&Operation::Broadcast(Broadcast { shape: vec![4, 3] }), &[&[2, 3]], "broadcast");
    let product = |left, right| {
        Operation::MatrixProduct(MatrixProduct { transpose_left: left, transpose_right: right })
    };
    refused(&product(false, false), &[&[3], &[3, 2]], "needs matrices");
    refused(&product(false, true), &[&[2, 3], &[3, 2]], "do not fit");
    refused(&product(false, false), &[&[2, 2, 3], &[3, 3, 2]], "do not fit");
    let norm = |over| Operation::Normalise(Normalise { over, epsilon: 1e-5 });
    let rms = Operation::RmsNormalise(RmsNormalise { over: Over::LastAxes(2), epsilon: 1e-5 });
    refused(&rms, &[&[3]], "last 2 axes");
    refused(&norm(Over::LastAxes(0)), &[&[3]], "last 0 axes");
    refused(&norm(Over::LastAxes(2)), &[&[3]], "last 2 axes");
    refused(&norm(Over::Groups(2)), &[&[3]], "divide");
    refused(&norm(Over::Groups(0)), &[&[3]], "divide");
    for (start, step, length) in
        [(6, 1, 1), (0, 1, 7), (0, 0, 2), (2, -1, 4), (0, 1, 0), (1, 1, HUGE), (0, isize::MIN, 3)]
    {
        refused(&Operation::Slice(Slice { axis: 0, start, step, length }), &[&[6]], "leaves axis");
    }
    refused(&Operation::Slice(Slice { axis: 1, start: 0, step: 1, length: 1 }), &[&[6]], "no axis 1");
}

#[test]
fn constants_that_are_no_numbers() {
    for bad in [f64::NAN, f64::INFINITY] {
        refused(&Operation::Scale(bad), &[&[2]], "finite");
        refused(&Operation::Activation(Activation::Elu { alpha: bad }), &[&[2]], "finite");
        refused(&Operation::Activation(Activation::LeakyRelu { slope: bad }), &[&[2]], "finite");
        refused(&Operation::Activation(Activation::Power { exponent: bad }), &[&[2]], "finite");
        refused(&Operation::Activation(Activation::HardSigmoid { alpha: 0.2, beta: bad }), &[&[2]], "finite");
        refused(&Operation::Pad(Pad { value: bad, ..Pad::zeros(vec![1], vec![1]) }), &[&[2]], "finite");
        let norm = Operation::Normalise(Normalise { over: Over::LastAxes(1), epsilon: bad });
        refused(&norm, &[&[2]], "epsilon");
        refused(&Operation::BatchNorm(BatchNorm { epsilon: bad }), &[&[2]], "epsilon");
        let scales = Some(vec![bad]);
        refused(
            &Operation::Resize(Resize { sizes: vec![2], interpolation: Interpolation::Linear, scales }),
            &[&[1, 4]],
            "scales",
        );
    }
    refused(&Operation::BatchNorm(BatchNorm { epsilon: -1e-3 }), &[&[2]], "epsilon");
    refused(&Operation::Activation(Activation::Celu { alpha: 0.0 }), &[&[2]], "must not be 0");
    refused(&Operation::Activation(Activation::Clip { low: 1.0, high: 0.0 }), &[&[2]], "above");
    refused(&Operation::Activation(Activation::Shrink { threshold: -1.0, bias: 0.0 }), &[&[2]], "negative");
}

fn convolution(kernel: &[usize]) -> Convolution {
    Convolution { outputs: 2, kernel: kernel.to_vec(), groups: 1, bias: true, ..Convolution::default() }
}

#[test]
fn convolutions() {
    let refuse =
        |c: Convolution, shape: &[usize], reason| refused(&Operation::Convolution(c), &[shape], reason);
    refuse(convolution(&[3]), &[2], "1 to 3 spatial axes");
    refuse(convolution(&[3]), &[1, 2, 3, 4, 5], "1 to 3 spatial axes");
    refuse(convolution(&[]), &[2, 4], "`kernel` is empty");
    refuse(convolution(&[3, 3]), &[2, 5], "`kernel` has 2 entries");
    refuse(convolution(&[0]), &[2, 5], "at least 1");
    refuse(convolution(&[6]), &[2, 5], "does not fit");
    refuse(Convolution { stride: vec![0], ..convolution(&[3]) }, &[2, 5], "at least 1");
    refuse(Convolution { groups: 0, ..convolution(&[3]) }, &[2, 5], "at least 1");
    refuse(Convolution { groups: 2, ..convolution(&[3]) }, &[3, 5], "divide");
    refuse(Convolution { output_padding: vec![1], ..convolution(&[3]) }, &[2, 5], "transposed");
    let up = || Convolution { transposed: true, ..convolution(&[3]) };
    refuse(Convolution { padding: vec![4], ..up() }, &[2, 5], "does not fit");
    for huge in [HUGE, HUGE / 2, 1 << 40] {
        refuse(Convolution { padding: vec![huge], stride: vec![huge / 2], ..convolution(&[3]) }, &[2, 5], "");
        refuse(Convolution { padding: vec![huge], ..convolution(&[3]) }, &[2, 5], "");
        refuse(
            Convolution { dilation: vec![huge], padding: vec![huge / 2 + 1], ..convolution(&[3]) },
            &[2, 5],
            "",
        );
        refuse(Convolution { stride: vec![huge], ..up() }, &[2, 5], "");
        refuse(Convolution { dilation: vec![huge], ..up() }, &[2, 5], "");
        refuse(Convolution { output_padding: vec![huge], ..up() }, &[2, 5], "");
        refuse(Convolution { stride: vec![huge], padding: vec![huge], ..up() }, &[2, 5], "");
    }
}

#[test]
fn pools() {
    let p = Pool::square;
    for make in [Operation::MaxPool, Operation::AveragePool] {
        let refuse = |pool: Pool, shape: &[usize], reason| refused(&make(pool), &[shape], reason);
        refuse(p(2, 2, 0), &[4, 4], "[channels, height, width]");
        refuse(Pool::new(vec![2; 4], vec![2; 4]), &[1, 4, 4, 4, 4], "one to three axes");
        refuse(Pool { padding: vec![1], ..p(2, 2, 0) }, &[1, 4, 4], "1 entries");
        refuse(p(0, 2, 0), &[1, 4, 4], "at least 1");
        refuse(p(2, 0, 0), &[1, 4, 4], "at least 1");
        refuse(p(2, 2, 2), &[1, 4, 4], "more than half");
        refuse(p(5, 1, 0), &[1, 4, 4], "does not fit");
        // Taps at -1 and 2 of an image of two pixels: a window without a value.
        refuse(Pool { dilation: vec![3, 3], ..p(2, 1, 1) }, &[1, 2, 2], "no value");
        for huge in [HUGE, HUGE / 2, 1 << 40] {
            refuse(p(huge, 1, huge / 2), &[1, 4, 4], "");
            refuse(Pool { dilation: vec![huge; 2], ..p(3, 1, 1) }, &[1, 4, 4], "");
        }
        // A window of a million values at each of a million places.
        if matches!(make(p(1, 1, 0)), Operation::AveragePool(_)) {
            refuse(p(1001, 1, 0), &[1, 2000, 2000], "entries");
        }
    }
}

#[test]
fn sizes_beyond_reason() {
    let resize = |sizes: &[usize]| {
        Operation::Resize(Resize {
            sizes: sizes.to_vec(),
            interpolation: Interpolation::Linear,
            scales: None,
        })
    };
    refused(&resize(&[0]), &[&[1, 4]], "length for each");
    refused(&resize(&[2, 2]), &[&[1, 4]], "length for each");
    refused(&resize(&[2]), &[&[]], "channels");
    refused(&resize(&[HUGE]), &[&[2, 4]], "more than");
    let aligned =
        Resize { sizes: vec![4], interpolation: Interpolation::LinearAligned, scales: Some(vec![0.5]) };
    refused(&Operation::Resize(aligned), &[&[1, 2]], "aligned");
    refused(&Operation::Learned(Learned { shape: vec![1 << 20, 1 << 20] }), &[], "more than");
    refused(&Operation::Learned(Learned { shape: vec![2, 0] }), &[], "length 0");
    refused(&Operation::Broadcast(Broadcast { shape: vec![HUGE, 2] }), &[&[1]], "more than");
    refused(&Operation::Broadcast(Broadcast { shape: vec![0] }), &[&[1]], "length 0");
    refused(&Operation::Linear(Linear { outputs: 1 << 20, bias: false }), &[&[1 << 10, 1]], "more than");
    refused(&Operation::Linear(Linear { outputs: HUGE, bias: false }), &[&[4]], "more than");
    refused(&Operation::Embedding(Embedding { entries: 3, width: HUGE }), &[&[2]], "more than");
    refused(&Operation::Embedding(Embedding { entries: 0, width: 1 }), &[&[2]], "needs entries");
    refused(&Operation::Pad(Pad::zeros(vec![HUGE], vec![HUGE])), &[&[2]], "too large");
    refused(&Operation::Pad(Pad::zeros(vec![1 << 40], vec![0])), &[&[2]], "more than");
    let product = Operation::MatrixProduct(MatrixProduct::default());
    refused(&product, &[&[1 << 20, 1], &[1, 1 << 20]], "more than");
}
