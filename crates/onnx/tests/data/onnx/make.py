"""Makes the small ONNX files beside this script and references.json, the inputs and outputs that the tests compare with.

    python3 make.py          # torch, onnx, onnxscript and onnxruntime are needed

Networks are exported by both exporters of torch, and their outputs are those of the same network in double precision in torch. Single
operators are written with onnx.helper, and their outputs are those of onnxruntime in single precision.
"""

import contextlib
import copy
import io
import json
import os
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import TensorProto as T
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
REFERENCES = {}
warnings.filterwarnings("ignore")


def shaken(model):
    """Normalisation and biases as after training, every weight a multiple of 1/64 so that decimals stay short."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in model.named_buffers():
            if name.endswith("running_mean"):
                value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
            if name.endswith("running_var"):
                value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
        for value in model.parameters():
            if value.dim() <= 1:
                value.add_(torch.randn(value.shape, generator=generator) * 0.2)
    return model.eval()


def shorten(graph):
    """Gives nodes and the values between them short names; inputs, outputs and weights keep theirs."""
    fixed = {v.name for v in [*graph.input, *graph.output, *graph.initializer]}
    names = {}
    for node in graph.node:
        node.ClearField("name")
        for list_ in (node.input, node.output):
            for i, value in enumerate(list_):
                if value and value not in fixed:
                    list_[i] = names.setdefault(value, f"v{len(names)}")


def keep(name, model, x, y):
    """Writes the file without what inference does not read, and remembers input and output."""
    del model.graph.value_info[:]
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in list(model.graph.input) + list(model.graph.output):
        del value.metadata_props[:]
    for tensor in model.graph.initializer:
        del tensor.metadata_props[:]
    model.ClearField("doc_string")
    shorten(model.graph)
    onnx.save(model, os.path.join(HERE, name + ".onnx"))
    flat = lambda a: [float("%.13g" % v) for v in np.asarray(a, dtype=np.float64).ravel()]
    REFERENCES[name] = {"input": flat(x), "output": flat(y)}


def network(name, model, x, exporter, opset, dynamic, unfolded=False):
    torch.manual_seed(0)
    path = os.path.join(HERE, "export.onnx")
    with torch.no_grad():
        y = copy.deepcopy(model).double()(x.double() if x.is_floating_point() else x)
    shown = x if dynamic else x[:1]
    options = {}
    if exporter == "script":
        if dynamic:
            options["dynamic_axes"] = {"x": {0: "n"}, "y": {0: "n"}}
        if unfolded:
            options.update(do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
    else:
        options.update(external_data=False, verbose=False)
        if dynamic:
            options["dynamic_shapes"] = ({0: torch.export.Dim("n")},)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model, (shown,), path, opset_version=opset, input_names=["x"], output_names=["y"],
                          dynamo=exporter == "dynamo", **options)
    keep(name, onnx.load(path), x, y)
    os.remove(path)


class OptionA(nn.Module):
    def __init__(self, more):
        super().__init__()
        self.more = more

    def forward(self, x):
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more // 2, self.more // 2))


class Residual(nn.Module):
    """A residual block with slicing and padding as its shortcut, between a convolution and pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(2)
        self.conv2 = nn.Conv2d(2, 4, 3, 2, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(4)
        self.shortcut = OptionA(2)
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)) + self.shortcut(x))
        x = F.avg_pool2d(x, x.size(3))
        return self.linear(x.view(x.size(0), -1))


class Fixup(nn.Module):
    """Scalar biases and a multiplier, and channels joined with zeros."""

    def __init__(self):
        super().__init__()
        for name, value in [("bias1a", 0.1), ("bias1b", 0.2), ("scale", 1.2), ("bias2", -0.1)]:
            setattr(self, name, nn.Parameter(torch.full((1,), value)))
        self.conv = nn.Conv2d(2, 4, 3, 2, 1, bias=False)
        self.down = nn.AvgPool2d(1, 2)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        y = F.relu(self.conv(x + self.bias1a) + self.bias1b) * self.scale + self.bias2
        x = self.down(x)
        x = F.relu(y + torch.cat((x, torch.zeros_like(x)), 1))
        return self.fc(F.adaptive_avg_pool2d(x, 1).view(x.size(0), -1))


class UNet(nn.Module):
    def __init__(self, up):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.2))
        self.down = nn.Conv2d(4, 2, 3, 2, 1)
        self.up = up
        self.last = nn.Sequential(nn.InstanceNorm2d(6, affine=True), nn.Conv2d(6, 1, 1), nn.Sigmoid())

    def forward(self, x):
        x = self.first(x)
        return self.last(torch.cat([self.up(self.down(x)), x], 1))


class Transformer(nn.Module):
    """Patches, a class token, one encoder layer, and the token's features."""

    def __init__(self, act):
        super().__init__()
        self.patch = nn.Conv2d(1, 4, 2, 2)
        self.cls = nn.Parameter(torch.randn(1, 1, 4) * 0.1)
        self.pos = nn.Parameter(torch.randn(1, 5, 4) * 0.1)
        layer = nn.TransformerEncoderLayer(4, 2, 6, 0.1, act, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.encoder(x))[:, 0])


class Tokens(nn.Module):
    """Token numbers, an encoder that has the batch as its second axis, and the mean over positions."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        layer = nn.TransformerEncoderLayer(4, 1, 4)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.encoder((self.embedding(x) * 2.0).transpose(0, 1))
        return self.head(x.mean(0))


class Odds(nn.Module):
    """Powers, splits, chosen columns, reductions, constants on both sides, parts of attention written by hand."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(6, 12)
        self.g = nn.Parameter(torch.tensor([0.5, -0.25, 1.5, 2.0]))
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.q(x).chunk(3, -1)
        heads = lambda t: t.view(batch, length, 2, 2).transpose(1, 2)
        y = ((heads(q) @ heads(k).transpose(-2, -1)) / 2**0.5).softmax(-1) @ heads(v)
        y = self.norm(y.transpose(1, 2).reshape(batch, length, 4) * self.g)
        y = 1 - y**2 + F.gelu(y, approximate="tanh") - F.softplus(F.silu(y)) / 3
        return torch.cat([y[:, -1], y[:, :, [0, 2]].mean(1), y.sum(1)[:, :1] - 0.5], -1)


def operator(name, nodes, shape, weights, opset=17, seed=0, whole=False):
    """A model of a few operators on a batch of two, with the batch axis dynamic."""
    generator = np.random.default_rng(seed)
    made = [numpy_helper.from_array(np.asarray(value), key) for key, value in weights.items()]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in nodes],
        "g", [helper.make_tensor_value_info("x", T.FLOAT, ["n", *shape])],
        [helper.make_tensor_value_info(nodes[-1][2], T.FLOAT, None)], made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    x = (generator.integers(-16, 17, (2, *shape)) / 8).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    keep(name, model, x, session.run(None, {"x": x})[0])


def rounded(*shape, seed=3):
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(np.float32)


def networks():
    normal = lambda *shape: torch.round(torch.randn(*shape, generator=torch.Generator().manual_seed(2)) * 64) / 64
    torch.manual_seed(0)
    lenet = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
                          nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3), nn.ELU(), nn.Linear(3, 2))
    network("lenet_unfolded", shaken(lenet), normal(2, 1, 6, 5), "script", 13, True, unfolded=True)
    network("residual", shaken(Residual()), normal(2, 1, 6, 6), "script", 11, True)
    network("fixup", shaken(Fixup()), normal(2, 2, 4, 4), "script", 16, True)
    align = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    network("unet_aligned", shaken(UNet(align)), normal(2, 1, 4, 6), "script", 14, True)
    half = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
    network("unet_half", shaken(UNet(half)), normal(2, 1, 4, 6), "dynamo", 21, False)
    network("transformer_script", shaken(Transformer("gelu")), normal(2, 1, 4, 4), "script", 17, True)
    tokens = torch.tensor([[0, 4, 2], [3, 3, 1]])
    network("tokens", shaken(Tokens()), tokens, "dynamo", 18, True)
    network("odds", shaken(Odds()), normal(2, 3, 6), "dynamo", 18, True)


def operators():
    i64 = lambda *values: np.array(values, dtype=np.int64)
    w = rounded(3, 2, 3, 2)
    operator("conv_same", [
        ("Conv", ["x", "w", "b"], "c", dict(auto_pad="SAME_UPPER", strides=[2, 1])),
        ("Conv", ["c", "v"], "y", dict(pads=[1, 0, 2, 1], group=3, dilations=[1, 2], kernel_shape=[2, 2])),
    ], (2, 5, 6), {"w": w, "b": rounded(3), "v": rounded(3, 1, 2, 2)})
    operator("conv_transpose", [
        ("ConvTranspose", ["x", "w"], "c", dict(strides=[2, 3], output_shape=[6, 7], kernel_shape=[3, 2])),
        ("ConvTranspose", ["c", "v"], "y", dict(pads=[1, 0, 0, 1], group=2, dilations=[2, 1])),
    ], (3, 3, 3), {"w": w, "v": rounded(2, 2, 2, 2)})
    operator("pools", [
        ("MaxPool", ["x"], "a", dict(kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER")),
        ("AveragePool", ["a"], "b", dict(kernel_shape=[2, 3], pads=[1, 0, 0, 1], count_include_pad=1)),
        ("AveragePool", ["b"], "c", dict(kernel_shape=[2, 2], pads=[0, 1, 1, 0], strides=[1, 2])),
        ("GlobalMaxPool", ["c"], "d", {}),
        ("GlobalAveragePool", ["c"], "e", {}),
        ("Sub", ["d", "e"], "f", {}),
        ("Squeeze", ["f", "axes"], "y", {}),
    ], (2, 7, 9), {"axes": i64(-1, -2)})
    operator("gemm", [
        ("Gemm", ["x", "w", "c"], "g", dict(alpha=0.5, beta=2.0)),
        ("Gemm", ["g", "v", "s"], "h", dict(transB=1, beta=-1.0)),
        ("Clip", ["h", "low", "high"], "i", {}),
        ("PRelu", ["i", "slope"], "j", {}),
        ("Selu", ["j"], "k", {}),
        ("Neg", ["k"], "l", {}),
        ("Sum", ["l", "i", "h"], "y", {}),
    ], (4,), {"w": rounded(4, 3), "c": rounded(1, 3), "v": rounded(5, 3), "s": rounded(1)[:1], "slope": rounded(5),
              "low": np.float32(-0.75), "high": np.float32(1.25)})
    operator("shapes", [
        ("DepthToSpace", ["x"], "a", dict(blocksize=2, mode="CRD")),
        ("DepthToSpace", ["a"], "b", dict(blocksize=2)),
        ("Slice", ["b", "start", "end", "axes", "step"], "c", {}),
        ("Pad", ["c", "pads"], "d", dict(mode="constant")),
        ("Transpose", ["d"], "e", dict(perm=[0, 3, 1, 2])),
        ("Softmax", ["e"], "f", dict(axis=1)),
        ("Mul", ["f", "stripes"], "g", {}),
        ("Gather", ["g", "pick"], "h", dict(axis=2)),
        ("ReduceSum", ["h", "one"], "i", dict(keepdims=0)),
        ("Flatten", ["i"], "y", dict(axis=1)),
    ], (16, 2, 3), {"start": i64(6, 0), "end": i64(-9223372036854775807, 1000), "axes": i64(-2, 3), "step": i64(-2, 3),
                    "pads": i64(0, 1, 0, -1, 0, 0, 2, 1), "stripes": rounded(4, 1, 6), "pick": i64(1, 1), "one": i64(2)})
    operator("resizes", [
        ("Resize", ["x", "", "up"], "a", dict(mode="nearest", coordinate_transformation_mode="half_pixel",
                                               nearest_mode="round_prefer_floor")),
        ("Shape", ["x"], "s", dict(end=2)),
        ("Concat", ["s", "size"], "t", dict(axis=0)),
        ("Resize", ["a", "", "", "t"], "b", dict(mode="linear", coordinate_transformation_mode="pytorch_half_pixel")),
        ("Resize", ["b", "", "odd"], "y", dict(mode="linear", coordinate_transformation_mode="half_pixel")),
    ], (1, 2, 3), {"up": np.array([1, 1, 2, 3], np.float32), "odd": np.array([1, 1, 1.5, 0.7], np.float32),
                   "size": i64(5, 7)})
    operator("norms", [
        ("GroupNormalization", ["x", "s", "b"], "a", dict(num_groups=2, epsilon=0.01)),
        ("InstanceNormalization", ["a", "s", "b"], "c", dict(epsilon=0.1)),
        ("LayerNormalization", ["c", "l"], "d", dict(axis=2)),
        ("Gelu", ["d"], "e", dict(approximate="tanh")),
        ("Split", ["e"], "first", dict(axis=1, num_outputs=2)),
        ("Elu", ["first"], "f", dict(alpha=0.5)),
        ("MatMul", ["k", "f"], "y", {}),
    ], (4, 3, 2), {"s": rounded(4), "b": rounded(4, seed=4), "l": rounded(3, 2), "k": rounded(2, 3)}, opset=21)
    operator("softmax_old", [
        ("Softmax", ["x"], "a", dict(axis=1)),
        ("Unsqueeze", ["a"], "b", dict(axes=[1])),
        ("Expand", ["b", "to"], "c", {}),
        ("Sub", ["one", "c"], "d", {}),
        ("ReduceMean", ["d"], "y", dict(axes=[1], keepdims=0)),
    ], (2, 3), {"to": i64(1, 2, 1, 1), "one": np.float32(1)}, opset=11)


if __name__ == "__main__":
    networks()
    operators()
    with open(os.path.join(HERE, "references.json"), "w") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in REFERENCES.items()) + "\n}\n")
