"""Reference values of layer operations from PyTorch in float64, as one .npz, for cross-checks of values and gradients.

Every case CASE holds its arguments under their names (`CASE/x`, `CASE/weight`, ...), the output `CASE/y`, a random cotangent
`CASE/cotangent` of y's shape, the vector-Jacobian products `CASE/x_gradient`, `CASE/weight_gradient`, ... for all
differentiable arguments, and its settings as integer or float arrays of one dimension (`CASE/stride`, `CASE/eps`, ...; truth
values are 0 and 1). Arrays are float64 and int64 in C order with PyTorch's layouts: (batch, channels, ...space), convolution
weights (out, in / groups, ...), transposed ones (in, out / groups, ...). Each case has its own random stream, made of the seed
and the case's name, so that new cases leave the others unchanged.

Before writing, each case's gradients are checked along a random direction against a central difference."""
import argparse
import json
import pathlib
import zlib

import numpy as np
import torch
import torch.nn.functional as F

DIFFERENCE = 1e-5


class Cases:
    """Collects arrays; add() evaluates one case."""

    def __init__(self, seed):
        self.seed, self.arrays, self.worst, self.count = seed, {}, 0.0, 0

    def add(self, name, function, shapes, settings=None, constants=None, scale=1.0):
        """Evaluate function(**arguments, **settings) with standard normal arguments of the given shapes.

        `settings` are stored and passed; `constants` are tensors passed and stored without a gradient; `scale` widens x."""
        draw = self.stream(name)
        arguments = {key: draw(shape) for key, shape in shapes.items()}
        if "x" in arguments:
            arguments["x"] *= scale
        settings, constants = settings or {}, constants or {}
        call = lambda values: function(**values, **constants, **settings)
        leaves = {key: value.clone().requires_grad_() for key, value in arguments.items()}
        y = call(leaves)
        cotangent = draw(y.shape)
        gradients = dict(zip(leaves, torch.autograd.grad(y, list(leaves.values()), cotangent)))
        self.check(name, call, arguments, gradients, cotangent, {key: draw(v.shape) for key, v in arguments.items()})
        stored = arguments | constants | {"y": y.detach(), "cotangent": cotangent}
        stored |= {f"{key}_gradient": gradient for key, gradient in gradients.items()}
        self.store(name, stored, settings)

    def keep(self, largest):
        """Only the cases with at most so many numbers."""
        sizes = {}
        for key, value in self.arrays.items():
            name = key.rsplit("/", 1)[0]
            sizes[name] = sizes.get(name, 0) + value.size
        self.arrays = {k: v for k, v in self.arrays.items() if sizes[k.rsplit("/", 1)[0]] <= largest}
        self.count = sum(size <= largest for size in sizes.values())

    def stream(self, name):
        """draw(shape): standard normal float64 tensors from the stream of this name."""
        random = torch.Generator().manual_seed(self.seed * 2**32 + zlib.crc32(name.encode()))
        return lambda shape: torch.randn(shape, generator=random, dtype=torch.float64)

    def check(self, name, call, arguments, gradients, cotangent, direction):
        """Compare sum of gradient times direction with the central difference of the cotangent's product with y."""
        with torch.no_grad():
            at = lambda step: (call({k: v + step * direction[k] for k, v in arguments.items()}) * cotangent).sum()
            difference = (at(DIFFERENCE) - at(-DIFFERENCE)) / (2 * DIFFERENCE)
        exact = sum((gradients[key] * direction[key]).sum() for key in gradients)
        size = sum((gradients[key] * direction[key]).norm() for key in gradients)
        error = float((difference - exact).abs() / size)
        if not error < 1e-6:
            raise SystemExit(f"{name}: gradient and central difference disagree by {error:.2e} of their size")
        self.worst = max(self.worst, error)

    def store(self, name, tensors, settings):
        """Keep tensors and settings under the case's name."""
        self.count += 1
        for key, value in tensors.items():
            self.arrays[f"{name}/{key}"] = np.ascontiguousarray(value.detach().numpy())
        for key, value in settings.items():
            value = np.atleast_1d(np.asarray(value))
            if value.dtype.kind in "fib":
                self.arrays[f"{name}/{key}"] = value.astype(np.float64 if value.dtype.kind == "f" else np.int64)


def convolutions(cases):
    """Convolutions in one, two and three dimensions and transposed ones."""
    plain = dict(stride=1, padding=0, dilation=1, groups=1)
    for name, x, weight, settings in (
        ("conv1d", (2, 4, 13), (6, 2, 3), dict(stride=2, padding=2, dilation=2, groups=2)),
        ("conv2d", (2, 3, 7, 8), (4, 3, 3, 3), plain),
        ("conv2d_pointwise", (2, 5, 4, 6), (3, 5, 1, 1), plain),
        ("conv2d_stride", (2, 3, 9, 8), (4, 3, 3, 2), plain | dict(stride=(2, 3))),
        ("conv2d_padding", (2, 3, 6, 5), (4, 3, 3, 5), plain | dict(padding=(1, 2))),
        ("conv2d_dilation", (2, 3, 9, 11), (4, 3, 3, 3), plain | dict(padding=2, dilation=(2, 3))),
        ("conv2d_groups", (2, 6, 7, 7), (9, 2, 3, 3), plain | dict(padding=1, groups=3)),
        ("conv2d_depthwise", (2, 4, 7, 6), (8, 1, 3, 3), plain | dict(stride=2, padding=1, groups=4)),
        ("conv2d_all", (3, 4, 11, 10), (6, 2, 3, 2), dict(stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=2)),
        ("conv3d", (2, 2, 5, 6, 4), (3, 2, 3, 3, 3), plain | dict(padding=1)),
        ("conv3d_stride", (2, 4, 7, 6, 5), (4, 4, 3, 2, 2), plain | dict(stride=(2, 1, 2), padding=(1, 0, 1))),
        ("conv3d_groups", (2, 4, 4, 6, 5), (4, 2, 3, 2, 2), plain | dict(dilation=(1, 2, 1), groups=2)),
    ):
        function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)]
        cases.add(name, first_as_x(function), dict(x=x, weight=weight, bias=weight[:1]), settings)
    transposed = plain | dict(output_padding=0)
    doubled = transposed | dict(stride=2, padding=1)
    for name, x, weight, settings in (
        ("conv_transpose1d", (2, 3, 6), (3, 4, 4), transposed | dict(stride=3, padding=1, output_padding=2)),
        ("conv_transpose2d", (2, 3, 4, 5), (3, 4, 3, 3), transposed),
        ("conv_transpose2d_stride", (2, 3, 4, 5), (3, 4, 3, 3), doubled),
        ("conv_transpose2d_output_padding", (2, 3, 4, 5), (3, 4, 3, 3), doubled | dict(output_padding=(1, 0))),
        ("conv_transpose2d_groups", (2, 4, 4, 3), (4, 3, 3, 2), doubled | dict(output_padding=1, groups=2)),
        ("conv_transpose2d_dilation", (2, 3, 4, 4), (3, 2, 3, 3), transposed | dict(stride=(2, 1), padding=1, dilation=(1, 2))),
        ("conv_transpose3d", (2, 2, 3, 4, 3), (2, 3, 2, 3, 2), doubled | dict(padding=(0, 1, 0), output_padding=(0, 1, 1))),
    ):
        function = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}[len(x)]
        cases.add(name, first_as_x(function), dict(x=x, weight=weight, bias=(weight[1] * settings["groups"],)), settings)


def first_as_x(function):
    """The function with its first argument called x."""
    return lambda x, **others: function(x, **others)


def normalisations(cases):
    """Batch, layer and group normalisation."""
    shape, eps = (5, 3, 4, 2), dict(eps=1e-5)
    affine = dict(weight=(3,), bias=(3,))
    evaluation = lambda x, mean, variance, weight, bias, eps: F.batch_norm(x, mean, variance, weight, bias, eps=eps)
    for name, x in (("batch_norm_evaluation", shape), ("batch_norm_evaluation_rows", (6, 3))):
        draw = cases.stream(f"{name} statistics")
        statistics = dict(mean=draw((3,)), variance=0.5 + draw((3,)).abs())
        cases.add(name, evaluation, dict(x=x) | affine, eps, statistics, scale=2.0)
    training = lambda x, weight, bias, eps: F.batch_norm(x, None, None, weight, bias, True, 0.0, eps)
    for name, x in (("batch_norm_training", shape), ("batch_norm_training_rows", (6, 3))):
        cases.add(name, training, dict(x=x) | affine, eps, scale=2.0)
        running_statistics(cases, name)
    layer = lambda x, weight, bias, eps: F.layer_norm(x, weight.shape, weight, bias, eps)
    cases.add("layer_norm", layer, dict(x=(4, 5, 6), weight=(6,), bias=(6,)), eps, scale=2.0)
    cases.add("layer_norm_two_axes", layer, dict(x=(4, 5, 6), weight=(5, 6), bias=(5, 6)), eps, scale=2.0)
    group = lambda x, weight, bias, groups, eps: F.group_norm(x, groups, weight, bias, eps)
    for groups in (1, 2, 6):
        shapes = dict(x=(3, 6, 4, 2), weight=(6,), bias=(6,))
        cases.add(f"group_norm_{groups}", group, shapes, eps | dict(groups=groups), scale=2.0)


def running_statistics(cases, name):
    """What a training pass leaves: running statistics from 0 and 1 with momentum 0.1; the variance there is the unbiased one."""
    mean, variance = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    F.batch_norm(torch.from_numpy(cases.arrays[f"{name}/x"]), mean, variance, training=True, momentum=0.1)
    cases.arrays |= {f"{name}/running_mean": mean.numpy(), f"{name}/running_variance": variance.numpy()}
    cases.arrays[f"{name}/momentum"] = np.array([0.1])


def activations(cases):
    """Elementwise functions on 3 times standard normal numbers, and softmax along an axis."""
    for name, function, settings in (
        ("relu", F.relu, {}),
        ("tanh", torch.tanh, {}),
        ("sigmoid", torch.sigmoid, {}),
        ("gelu_exact", lambda x: F.gelu(x), {}),
        ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), {}),
        ("silu", F.silu, {}),
        ("softplus", F.softplus, dict(beta=1.0, threshold=1e9)),
        ("softplus_beta", F.softplus, dict(beta=2.5, threshold=1e9)),
        ("elu", F.elu, dict(alpha=1.0)),
        ("elu_alpha", F.elu, dict(alpha=0.7)),
        ("leaky_relu", F.leaky_relu, dict(negative_slope=0.01)),
        ("leaky_relu_slope", F.leaky_relu, dict(negative_slope=0.2)),
    ):
        cases.add(name, first_as_x(function), dict(x=(6, 7)), settings, scale=3.0)
    for name, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        cases.add(name, lambda x, axis, _f=function: _f(x, axis), dict(x=(3, 4, 5)), dict(axis=2), scale=3.0)
        cases.add(f"{name}_axis", lambda x, axis, _f=function: _f(x, axis), dict(x=(3, 4, 5)), dict(axis=1), scale=3.0)


def pools(cases):
    """Maximum and average pooling of (2, 3, 8, 7) images; padding is minus infinity for the maximum, zero for the mean."""
    window = dict(kernel_size=(3, 2), stride=(2, 2), padding=(1, 1))
    maximum = lambda x, **settings: F.max_pool2d(x, **settings)
    average = lambda x, count_include_pad, **settings: F.avg_pool2d(x, count_include_pad=bool(count_include_pad), **settings)
    shape = dict(x=(2, 3, 8, 7))
    cases.add("max_pool2d", maximum, shape, dict(kernel_size=2, stride=2, padding=0))
    cases.add("max_pool2d_padding", maximum, shape, window)
    cases.add("max_pool2d_overlap", maximum, shape, dict(kernel_size=3, stride=1, padding=1))
    cases.add("max_pool2d_dilation", maximum, shape, dict(kernel_size=3, stride=2, padding=1, dilation=2))
    ceil = lambda x, ceil_mode, **settings: maximum(x, ceil_mode=bool(ceil_mode), **settings)
    cases.add("max_pool2d_ceil", ceil, shape, window | dict(ceil_mode=1))
    cases.add("avg_pool2d", average, shape, dict(kernel_size=2, stride=2, padding=0, count_include_pad=1))
    for name, include in (("included", 1), ("excluded", 0)):
        cases.add(f"avg_pool2d_padding_{name}", average, shape, window | dict(count_include_pad=include))
        ceil = lambda x, ceil_mode, **settings: average(x, ceil_mode=bool(ceil_mode), **settings)
        cases.add(f"avg_pool2d_ceil_{name}", ceil, shape, window | dict(count_include_pad=include, ceil_mode=1))


def upsamples(cases):
    """Resizing of images by nearest neighbours and bilinearly; `size` is the output's (height, width)."""
    nearest = lambda x, size: F.interpolate(x, size=size, mode="nearest")
    bilinear = lambda x, size, align_corners: F.interpolate(x, size=size, mode="bilinear", align_corners=bool(align_corners))
    for name, size in (("double", (8, 10)), ("uneven", (7, 13)), ("smaller", (3, 2))):
        cases.add(f"upsample_nearest_{name}", nearest, dict(x=(2, 3, 4, 5)), dict(size=size))
        for corners, align in (("centres", 0), ("corners", 1)):
            settings = dict(size=size, align_corners=align)
            cases.add(f"upsample_bilinear_{name}_{corners}", bilinear, dict(x=(2, 3, 4, 5)), settings)


def attention(cases):
    """softmax(query key^T / sqrt(width) + mask) value, heads (batch, heads, length, width); masks are additive."""

    def scaled(query, key, value, mask=None):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    shapes = dict(query=(2, 3, 5, 4), key=(2, 3, 7, 4), value=(2, 3, 7, 6))
    cases.add("attention", scaled, shapes)
    cases.add("attention_bias", scaled, shapes | dict(mask=(2, 3, 5, 7)))
    causal = torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1)
    square = dict(query=(2, 3, 5, 4), key=(2, 3, 5, 4), value=(2, 3, 5, 4))
    cases.add("attention_causal", scaled, square, constants=dict(mask=causal))


def main():
    read = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    read.add_argument("--seed", type=int, default=0)
    read.add_argument("--largest", type=int, help="leave out cases with more numbers than this (3000 for the file of the tests)")
    read.add_argument("--out", type=pathlib.Path, required=True, help="the .npz to write")
    arguments = read.parse_args()
    torch.set_num_threads(1)
    cases = Cases(arguments.seed)
    for family in (convolutions, normalisations, activations, pools, upsamples, attention):
        family(cases)
    if arguments.largest is not None:
        cases.keep(arguments.largest)
    with open(arguments.out, "wb") as out:
        np.savez_compressed(out, **cases.arrays)
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "seed": arguments.seed,
                "cases": cases.count,
                "arrays": len(cases.arrays),
                "bytes": arguments.out.stat().st_size,
                "worst_difference_error": cases.worst,
            }
        )
    )


if __name__ == "__main__":
    main()
