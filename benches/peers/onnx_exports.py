"""ONNX exports of many architectures, by both exporters of PyTorch, by skl2onnx and by hand, read by `posterior forward`.

    python onnx_exports.py --write FOLDER                       # exports, inputs and ONNX Runtime's outputs: once, some minutes
    python onnx_exports.py --check FOLDER --posterior BINARY    # a table, a JSON line for each export, a summary

Weights are random; statistics of batch norms are those of random inputs, so that signals keep their size. An export agrees where the
largest difference to ONNX Runtime (in single precision) is at most 1e-5 of the largest output, or at most twice what ONNX Runtime
itself is away from PyTorch in double precision (deep networks with random weights). Needs torch, torchvision, onnx, onnxscript,
onnxruntime, scikit-learn, skl2onnx.
"""

import argparse
import contextlib
import io
import json
import math
import os
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

TOLERANCE = 1e-5
ROWS = 3  # examples where the batch axis is dynamic

EXPORTS = []  # (name, function that writes into a folder)


# --- writing -------------------------------------------------------------------------------------------------------------------------


def settle(model, x):
    """Random statistics, no parameter that is 0 everywhere, evaluation mode."""
    import torch

    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() <= 1:
                parameter += 0.05 * torch.randn_like(parameter)
            elif not parameter.any():
                parameter += 0.05 * torch.randn_like(parameter)
        norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
        if norms:
            for norm in norms:
                norm.momentum = None
            model.train()
            model(torch.randn(8, *x.shape[1:]))
    return model.eval()


def torch_export(name, build, shape, opset=None, dynamo=True, dynamic=True, tokens=None, pick=None, several=False):
    """Registers an export; `pick` is the output to take where there are several, by its position; `several`: for three examples, fixed."""

    def write(folder):
        import torch

        torch.manual_seed(0)
        rows = ROWS if dynamic or several else 1
        model = build()
        if tokens:
            x = torch.randint(0, tokens, (rows, *shape))
            model = model.eval()
        else:
            x = torch.randn(rows, *shape)
            model = settle(model, x)
        path = folder / "net.onnx"
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            example = x
            if dynamo:
                shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
                more = {"opset_version": opset} if opset else {}
                torch.onnx.export(model, (example,), path, dynamo=True, dynamic_shapes=shapes, verbose=False, **more)
            else:
                axes = {"input": {0: "batch"}} if dynamic else None
                torch.onnx.export(
                    model, (example,), path, dynamo=False, dynamic_axes=axes, input_names=["input"], opset_version=opset or 17
                )
            exact = model.double()(x if tokens else x.double())
        finish(folder, x.numpy(), pick, "dynamo" if dynamo else "torchscript")
        exact = exact if isinstance(exact, torch.Tensor) else list(exact.values() if isinstance(exact, dict) else exact)[pick or 0]
        np.save(folder / "exact.npy", exact.numpy())

    EXPORTS.append((name, write))


def finish(folder, x, pick, exporter):
    """Runs the model in ONNX Runtime, writes inputs and outputs."""
    import onnx
    import onnxruntime

    path = folder / "net.onnx"
    graph = onnx.load(path, load_external_data=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    name = outputs[pick if pick is not None else 0]
    y = session.run([name], {session.get_inputs()[0].name: x})[0]
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    opset = [o.version for o in graph.opset_import if o.domain in ("", "ai.onnx")]
    meta = {
        "exporter": exporter,
        "opset": opset[0] if opset else None,
        "output": name if len(outputs) > 1 else None,
        "operators": sorted({n.op_type for n in graph.graph.node}),
        "external": (folder / "net.onnx.data").exists(),
    }
    (folder / "meta.json").write_text(json.dumps(meta))


# --- architectures -------------------------------------------------------------------------------------------------------------------


def both(name, build, shape, script=17, dynamo=None, **more):
    """By both exporters: torchscript with a dynamic batch, dynamo with a fixed one (what a plain call writes)."""
    torch_export(f"{name}_script{script}", build, shape, script, dynamo=False, dynamic=True, **more)
    torch_export(f"{name}_dynamo{dynamo or ''}", build, shape, dynamo, dynamo=True, dynamic=False, **more)


def register_vision():
    import torchvision.models as tv
    from torch import nn

    def model(function, **arguments):
        return lambda: getattr(tv, function)(weights=None, num_classes=10, **arguments)

    def pooled(function, channels):
        """With one pixel before the classifier: torchscript writes no pooling that makes images larger."""

        def build():
            net = getattr(tv, function)(weights=None, num_classes=10)
            net.avgpool = nn.AdaptiveAvgPool2d(1)
            first = next(m for m in net.classifier if isinstance(m, nn.Linear))
            net.classifier[list(net.classifier).index(first)] = nn.Linear(channels, first.out_features)
            return net

        return build

    from functools import partial

    from torchvision.models import convnext, efficientnet, mobilenetv3, regnet

    def short_mobilenet():
        block = partial(mobilenetv3.InvertedResidualConfig, width_mult=1.0)
        blocks = [block(16, 3, 16, 16, True, "RE", 2, 1), block(16, 3, 48, 24, False, "HS", 2, 1), block(24, 5, 64, 24, True, "HS", 1, 1)]
        return tv.MobileNetV3(blocks, 64, num_classes=10)

    def short_efficientnet():
        fused, plain = efficientnet.FusedMBConvConfig, efficientnet.MBConvConfig
        blocks = [fused(1, 3, 1, 16, 16, 1), fused(4, 3, 2, 16, 24, 1), plain(4, 3, 2, 24, 32, 2)]
        return tv.EfficientNet(blocks, 0.1, num_classes=10, last_channel=64)

    def short_regnet():
        blocks = regnet.BlockParams.from_init_params(depth=4, w_0=24, w_a=24.0, w_m=2.5, group_width=8, se_ratio=0.25)
        return tv.RegNet(blocks, num_classes=10)

    def short_convnext():
        block = convnext.CNBlockConfig
        return tv.ConvNeXt([block(24, 48, 1), block(48, 96, 1), block(96, None, 1)], num_classes=10)

    image = (3, 64, 64)
    scripts = {
        "resnet18": 12, "resnext50_32x4d": 13, "densenet121": 14, "mobilenet_v2": 10,
        "mobilenet_v3_small": 16, "efficientnet_b0": 15, "squeezenet1_1": 9, "shufflenet_v2_x0_5": 13, "mnasnet0_5": 12,
        "regnet_y_400mf": 17, "convnext_tiny": 18,
    }
    for function, opset in scripts.items():
        torch_export(f"{function}_script{opset}", model(function), image, opset, dynamo=False)
    torch_export("alexnet_script11", pooled("alexnet", 256), (3, 96, 96), 11, dynamo=False)
    torch_export("vgg11_script9", pooled("vgg11", 512), image, 9, dynamo=False)
    torch_export("vgg11_bn_script10", pooled("vgg11_bn", 512), image, 10, dynamo=False)
    # The newer exporter takes a minute for a deep network: fewer blocks of each kind.
    short = {
        "resnet_basic": (None, lambda: tv.ResNet(tv.resnet.BasicBlock, [1, 1, 1, 1], 10)),
        "resnet_bottleneck": (18, lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], 10)),
        "resnext": (19, lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], 10, groups=8, width_per_group=8)),
        "wide_resnet": (20, lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], 10, width_per_group=96)),
        "densenet": (21, lambda: tv.DenseNet(8, (2, 2), 16, num_classes=10)),
        "mobilenet_v2": (22, lambda: tv.MobileNetV2(10, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2]])),
        "mobilenet_v3": (23, short_mobilenet),
        "efficientnet_v2": (24, short_efficientnet),
        "shufflenet": (25, lambda: tv.ShuffleNetV2([2, 2, 2], [24, 48, 96, 192, 256], 10)),
        "squeezenet": (18, model("squeezenet1_1")),
        "regnet": (None, short_regnet),
        "convnext": (None, short_convnext),
    }
    for i, (name, (opset, build)) in enumerate(short.items()):
        torch_export(f"{name}_dynamo{opset or ''}", build, image, opset, dynamic=i % 3 == 2)
    torch_export("googlenet_script11", model("googlenet", aux_logits=False, init_weights=False), image, 11, dynamo=False)
    torch_export("inception_v3_script12", model("inception_v3", aux_logits=False, init_weights=False), (3, 96, 96), 12, dynamo=False)
    vit = lambda: tv.VisionTransformer(32, 8, 3, 4, 48, 96, num_classes=10)
    torch_export("vit_script17", vit, (3, 32, 32), 17, dynamo=False)
    torch_export("vit_dynamo", vit, (3, 32, 32))
    torch_export("vit_three_dynamo", vit, (3, 32, 32), dynamic=False, several=True)
    swin = lambda block, merge: tv.SwinTransformer(
        [4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10, block=block, downsample_layer=merge
    )
    blocks = tv.swin_transformer
    swin_1 = lambda: swin(blocks.SwinTransformerBlock, blocks.PatchMerging)
    swin_2 = lambda: swin(blocks.SwinTransformerBlockV2, blocks.PatchMergingV2)
    torch_export("swin_script17", swin_1, image, 17, dynamo=False, dynamic=False)
    torch_export("swin_dynamo", swin_1, image, dynamic=False)
    torch_export("swin_v2_script14", swin_2, image, 14, dynamo=False, dynamic=False)
    torch_export("swin_v2_dynamo", swin_2, image, dynamic=False)
    maxvit = lambda: tv.maxvit.MaxVit((64, 64), 16, 2, [16, 32], [1, 1], 16, 0.0, num_classes=10)
    torch_export("maxvit_script16", maxvit, image, 16, dynamo=False, dynamic=False)
    torch_export("maxvit_dynamo", maxvit, image, dynamic=False)

    class Out(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(x)["out"]

    seg = tv.segmentation
    common = {"weights": None, "weights_backbone": None, "num_classes": 5}
    torch_export("fcn_resnet50_script11", lambda: Out(seg.fcn_resnet50(**common)), image, 11, dynamo=False)
    torch_export("deeplabv3_mobilenet_script16", lambda: Out(seg.deeplabv3_mobilenet_v3_large(**common)), image, 16, dynamo=False)
    torch_export("lraspp_script13", lambda: Out(seg.lraspp_mobilenet_v3_large(**common)), image, 13, dynamo=False)
    torch_export("lraspp_fixed_script14", lambda: Out(seg.lraspp_mobilenet_v3_large(**common)), image, 14, dynamo=False, dynamic=False)
    # Two outputs, as the model has them: the logits are chosen by name.
    torch_export("fcn_two_outputs_script12", lambda: seg.fcn_resnet50(aux_loss=True, **common), image, 12, dynamo=False, pick=0)


def register_small():
    import torch
    import torch.nn.functional as F
    from torch import nn

    def mlp(activation):
        return lambda: nn.Sequential(nn.Linear(5, 16), activation(), nn.Linear(16, 16), activation(), nn.Linear(16, 2))

    activations = [
        "ReLU", "Tanh", "Sigmoid", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Softplus", "LeakyReLU", "PReLU", "Hardtanh",
        "Hardsigmoid", "Hardswish", "ReLU6", "Softsign", "LogSigmoid", "Tanhshrink", "Hardshrink", "Softshrink",
    ]
    opsets = [9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
    for i, activation in enumerate(activations):
        opset = opsets[i % len(opsets)]
        if activation == "Hardswish":
            opset = 14
        torch_export(f"mlp_{activation}_script{opset}", mlp(getattr(nn, activation)), (5,), opset, dynamo=False)
        torch_export(f"mlp_{activation}_dynamo{18 + i % 8}", mlp(getattr(nn, activation)), (5,), 18 + i % 8, dynamic=i % 2 == 0)
    torch_export("mlp_glu_script13", lambda: nn.Sequential(nn.Linear(5, 16), nn.GLU(), nn.Linear(8, 2)), (5,), 13, dynamo=False)
    norm = lambda: nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 2), nn.LogSoftmax(1))
    both("mlp_batch_norm_log_softmax", norm, (5,), 9)
    softmax = lambda: nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 3), nn.Softmax(-1))
    both("mlp_layer_norm_softmax", softmax, (5,), 12, 23)

    class Recurrent(nn.Module):
        def __init__(self, kind, last, **more):
            super().__init__()
            self.rnn = getattr(nn, kind)(4, 6, batch_first=True, **more)
            self.head = nn.Linear(6 * (2 if more.get("bidirectional") else 1), 2)
            self.last = last

        def forward(self, x):
            h = self.rnn(x)[0]
            return self.head(h[:, -1] if self.last else h)

    both("lstm_last", lambda: Recurrent("LSTM", True), (7, 4), 14)
    both("lstm_two_layers_both_ways", lambda: Recurrent("LSTM", False, num_layers=2, bidirectional=True), (7, 4), 11)
    both("gru", lambda: Recurrent("GRU", True), (7, 4), 13)
    both("rnn_tanh", lambda: Recurrent("RNN", False), (7, 4), 12)

    cnn1 = lambda: nn.Sequential(
        nn.Conv1d(2, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, groups=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 3),
    )
    both("cnn_1d", cnn1, (2, 32), 10)
    cnn3 = lambda: nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(4, 4, 3), nn.ReLU(),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 3),
    )
    both("cnn_3d", cnn3, (1, 8, 8, 8), 11)

    class UNet(nn.Module):
        def __init__(self, learned):
            super().__init__()
            block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.SiLU())
            self.down, self.middle, self.out = block(1, 4), block(4, 8), block(12, 4)
            self.up = nn.ConvTranspose2d(8, 8, 2, stride=2) if learned else nn.Upsample(scale_factor=2, mode="bilinear")
            self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(4, 1, 1)

        def forward(self, x):
            a = self.down(x)
            b = self.up(self.middle(self.pool(a)))
            return self.last(self.out(torch.cat([a, b], 1)))

    both("unet", lambda: UNet(True), (1, 16, 16), 11, 21)
    both("unet_bilinear", lambda: UNet(False), (1, 16, 16), 13, 18)
    nearest = lambda: nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3))
    torch_export("upsample_script9", nearest, (1, 8, 8), 9, dynamo=False)

    class View(nn.Module):
        def forward(self, x):
            return x.view(-1, 1, 8, 8)

    auto = lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 64), View(), nn.Sigmoid()
    )
    both("autoencoder", auto, (1, 8, 8), 9, 22)

    def encoder():
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, activation="gelu")
        return nn.Sequential(nn.Linear(4, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 2))

    both("transformer_encoder", encoder, (6, 4), 17)

    class Rms(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    class Block(nn.Module):
        def __init__(self, width, heads, rotary=None):
            super().__init__()
            self.heads, self.rotary = heads, rotary is not None
            norm = lambda: (rotary or nn.LayerNorm)(width)
            self.n1, self.n2 = norm(), norm()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def turn(self, q):
            length, half = q.shape[-2], q.shape[-1] // 2
            angle = torch.arange(length).float()[:, None] * 10000 ** (-torch.arange(half).float() / half)
            c, s = angle.cos(), angle.sin()
            a, b = q[..., :half], q[..., half:]
            return torch.cat([a * c - b * s, a * s + b * c], -1)

        def forward(self, x):
            n, t, w = x.shape
            q, k, v = self.qkv(self.n1(x)).view(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
            if self.rotary:
                q, k = self.turn(q), self.turn(k)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                mask = torch.tril(torch.ones(t, t)).bool()
                a = (q @ k.transpose(-2, -1)) / math.sqrt(w // self.heads)
                y = a.masked_fill(~mask, float("-inf")).softmax(-1) @ v
            x = x + self.out(y.transpose(1, 2).reshape(n, t, w))
            return x + self.down(F.silu(self.up(self.n2(x))) if self.rotary else F.gelu(self.up(self.n2(x)), approximate="tanh"))

    class Language(nn.Module):
        def __init__(self, rotary):
            super().__init__()
            self.tokens = nn.Embedding(11, 16)
            self.places = nn.Embedding(8, 16) if rotary is None else None
            self.blocks = nn.ModuleList(Block(16, 2, rotary) for _ in range(2))
            self.norm = (rotary or nn.LayerNorm)(16)
            self.head = nn.Linear(16, 11, bias=False)

        def forward(self, ids):
            x = self.tokens(ids)
            if self.places is not None:
                x = x + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    both("gpt", lambda: Language(None), (8,), 17, tokens=11)
    both("rotary_rms", lambda: Language(Rms), (8,), 18, tokens=11)
    torch_export("rotary_rms_dynamo23", lambda: Language(nn.RMSNorm), (8,), 23, dynamic=False, tokens=11)

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 16, 4, stride=4)
            self.n1, self.n2, self.n3 = nn.LayerNorm(16), nn.LayerNorm(16), nn.LayerNorm(16)
            self.tokens = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.channels = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.head = nn.Linear(16, 5)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = x + self.tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
            x = x + self.channels(self.n2(x))
            return self.head(self.n3(x).mean(1))

    both("mixer", Mixer, (3, 16, 16), 12)

    class Squeeze(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.a, self.b = nn.Conv2d(3, 8, 3), nn.Linear(8, 4), nn.Linear(4, 8)

        def forward(self, x):
            x = self.conv(x).relu()
            s = torch.sigmoid(self.b(self.a(x.mean((2, 3))).relu()))
            return (x * s[:, :, None, None]).amax((2, 3))

    both("squeeze_excite", Squeeze, (3, 8, 8), 11)

    class Tcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 8, 3, dilation=1))
            self.second, self.head = nn.Conv1d(8, 8, 3, dilation=2), nn.Linear(8, 2)

        def forward(self, x):
            x = self.first(F.pad(x, (2, 0))).relu()
            x = x + self.second(F.pad(x, (4, 0))).relu()
            return self.head(x[:, :, -1])

    both("tcn", Tcn, (2, 16), 16)

    class DeepSets(nn.Module):
        def __init__(self):
            super().__init__()
            self.each = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 16))
            self.all = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))

        def forward(self, x):
            h = self.each(x)
            return self.all(torch.cat([h.sum(1), h.max(1).values], -1))

    both("deep_sets", DeepSets, (5, 3), 13)

    class Ode(nn.Module):
        def __init__(self):
            super().__init__()
            self.field, self.head = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), nn.Linear(3, 1)

        def forward(self, x):
            for i in range(6):
                t = torch.full_like(x[:, :1], i / 6)
                x = x + self.field(torch.cat([x, t], 1)) / 6
            return self.head(x)

    both("ode_euler", Ode, (3,), 15)

    class Siren(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)

        def forward(self, x):
            return self.c(torch.sin(self.b(torch.sin(3 * self.a(x)))))

    both("siren", Siren, (2,), 9)

    class Radial(nn.Module):
        def __init__(self):
            super().__init__()
            self.centres = nn.Parameter(torch.randn(12, 3))
            self.scale, self.head = nn.Parameter(torch.zeros(12)), nn.Linear(12, 2)

        def forward(self, x):
            d = ((x[:, None] - self.centres) ** 2).sum(-1)
            return self.head(torch.exp(-d * self.scale.exp()))

    both("radial_basis", Radial, (3,), 13)

    class Cosine(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.weight = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 8)), nn.Parameter(torch.randn(3, 8))

        def forward(self, x):
            return 10 * F.normalize(self.body(x), dim=-1) @ F.normalize(self.weight, dim=-1).T

    both("normalised_embedding", Cosine, (5,), 14)

    class Mean(nn.Module):
        """Mean and a positive deviation as two outputs."""

        def __init__(self):
            super().__init__()
            self.body, self.mean, self.spread = nn.Linear(5, 16), nn.Linear(16, 1), nn.Linear(16, 1)

        def forward(self, x):
            h = self.body(x).tanh()
            return self.mean(h), F.softplus(self.spread(h))

    both("mean_and_spread", Mean, (5,), 17, pick=1)
    channels_last = lambda: ChannelsLast()

    class ChannelsLast(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2), nn.Linear(8 * 9, 4)

        def forward(self, x):
            x = self.a(x.permute(0, 3, 1, 2)).relu().permute(0, 2, 3, 1)
            x = self.b(x.permute(0, 3, 1, 2)).relu().permute(0, 2, 3, 1)
            return self.head(x.flatten(1))

    both("channels_last", channels_last, (8, 8, 3), 13)

    class Shuffle(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.shuffle = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)

        def forward(self, x):
            return self.shuffle(self.b(self.a(F.pad(x, (1, 1, 1, 1), mode="reflect")).relu()))

    both("pixel_shuffle_reflect", Shuffle, (1, 6, 6), 13)

    class Linformer(nn.Module):
        """Attention with an einsum and learned queries."""

        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Parameter(torch.randn(3, 8)), nn.Linear(4, 8), nn.Linear(4, 8)
            self.head = nn.Linear(24, 2)

        def forward(self, x):
            a = torch.einsum("qd,ntd->nqt", self.q, self.k(x)).softmax(-1)
            return self.head(torch.einsum("nqt,ntd->nqd", a, self.v(x)).flatten(1))

    both("learned_queries", Linformer, (6, 4), 12)
    for name, build, shape, tokens in [
        ("mlp", mlp(nn.GELU), (5,), None), ("cnn_1d", cnn1, (2, 32), None), ("unet_bilinear", lambda: UNet(False), (1, 16, 16), None),
        ("transformer_encoder", encoder, (6, 4), None), ("gpt", lambda: Language(None), (8,), 11), ("mixer", Mixer, (3, 16, 16), None),
    ]:
        torch_export(f"{name}_three_script14", build, shape, 14, dynamo=False, dynamic=False, tokens=tokens, several=True)
        torch_export(f"{name}_three_dynamo", build, shape, dynamic=False, tokens=tokens, several=True)


def register_hand():
    """As scikit-learn and Keras write them."""

    def sklearn(name, build, classes, opset, output=None):
        def write(folder):
            from skl2onnx import to_onnx

            generator = np.random.default_rng(0)
            x = generator.normal(size=(200, 5)).astype(np.float32)
            t = x[:, 0] - x[:, 1] ** 2
            target = np.digitize(t, [-1, 0]) if classes == 3 else (t > -0.5).astype(int) if classes else t
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = build().fit(x, target)
            options = {"zipmap": False} if classes else None
            proto = to_onnx(model, x[:1], options=options, target_opset=opset)
            (folder / "net.onnx").write_bytes(proto.SerializeToString())
            finish(folder, x[:ROWS], 1 if classes else 0, "skl2onnx")

        EXPORTS.append((name, write))

    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    quiet = {"max_iter": 30, "random_state": 0}
    sklearn("sklearn_mlp_regressor", lambda: make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(10, 10), **quiet)), 0, 15)
    sklearn("sklearn_mlp_regressor_tanh", lambda: make_pipeline(MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(10,), activation="tanh", **quiet)), 0, 12)
    sklearn("sklearn_mlp_classifier", lambda: make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(10,), **quiet)), 3, 18)
    sklearn("sklearn_mlp_binary", lambda: make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(10,), **quiet)), 2, 17)
    sklearn("sklearn_linear", lambda: make_pipeline(StandardScaler(), LinearRegression()), 0, 13)
    sklearn("sklearn_logistic", lambda: make_pipeline(StandardScaler(), LogisticRegression()), 3, 14)

    def keras(folder):
        from onnx import TensorProto, checker, helper, numpy_helper, save

        generator = np.random.default_rng(0)
        tensor = lambda name, *shape: numpy_helper.from_array(generator.normal(size=shape).astype(np.float32) / 3, name)
        nodes = [
            helper.make_node("Transpose", ["x"], ["x1"], perm=[0, 3, 1, 2]),
            helper.make_node("Conv", ["x1", "k1"], ["c1"], auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3]),
            helper.make_node("Transpose", ["c1"], ["c2"], perm=[0, 2, 3, 1]),
            helper.make_node("Add", ["c2", "b1"], ["c3"]),
            helper.make_node("Mul", ["c3", "gamma"], ["c4"]),
            helper.make_node("Add", ["c4", "beta"], ["c5"]),
            helper.make_node("Relu", ["c5"], ["r1"]),
            helper.make_node("Transpose", ["r1"], ["p1"], perm=[0, 3, 1, 2]),
            helper.make_node("MaxPool", ["p1"], ["p2"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID"),
            helper.make_node("Transpose", ["p2"], ["p3"], perm=[0, 2, 3, 1]),
            helper.make_node("Reshape", ["p3", "flat"], ["f"]),
            helper.make_node("MatMul", ["f", "w"], ["m"]),
            helper.make_node("Add", ["m", "b2"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["y"], axis=-1),
        ]
        tensors = [
            tensor("k1", 6, 3, 3, 3), tensor("b1", 6), tensor("gamma", 1, 1, 1, 6), tensor("beta", 1, 1, 1, 6),
            numpy_helper.from_array(np.array([-1, 24], dtype=np.int64), "flat"), tensor("w", 24, 4), tensor("b2", 4),
        ]
        graph = helper.make_graph(
            nodes, "keras",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["unk__1", 8, 8, 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["unk__1", 4])], tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], producer_name="tf2onnx", ir_version=8)
        checker.check_model(model)
        save(model, folder / "net.onnx")
        finish(folder, generator.normal(size=(ROWS, 8, 8, 3)).astype(np.float32), None, "as tf2onnx")

    EXPORTS.append(("keras_channels_last", keras))


# --- the two phases ------------------------------------------------------------------------------------------------------------------


def write(folder, only, again):
    register_small()
    register_hand()
    register_vision()
    failed = []
    for name, function in EXPORTS:
        place = folder / name
        if (only and not any(o in name for o in only)) or ((place / "meta.json").exists() and not again):
            continue
        place.mkdir(parents=True, exist_ok=True)
        started = time.time()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                function(place)
            print(f"{name}: {time.time() - started:.1f} s", flush=True)
        except Exception as error:
            failed.append(name)
            last = traceback.format_exc().strip().splitlines()[-1]
            print(f"{name}: not exported: {type(error).__name__}: {last[:300]}", flush=True)
    print(json.dumps({"registered": len(EXPORTS), "not_exported": failed}))


def check(folder, posterior, only):
    rows = []
    for place in sorted(p.parent for p in folder.glob("*/meta.json")):
        if only and not any(o in place.name for o in only):
            continue
        meta = json.loads((place / "meta.json").read_text())
        out = place / "ours.npy"
        out.unlink(missing_ok=True)
        command = [posterior, "forward", place / "net.onnx", place / "x.npy", "--output", out]
        command += ["--precision", "f64", "--threads", "1"]
        if meta["output"]:
            command += ["--output", meta["output"]]
        started = time.time()
        run = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        stripped = run.returncode != 0 and "LogSoftmax" in run.stderr and "last layer" in run.stderr
        if stripped:
            # Its logits are read; the logarithm is taken here.
            run = subprocess.run([str(c) for c in [*command, "--strip-softmax"]], capture_output=True, text=True)
        row = {"name": place.name, **{k: meta[k] for k in ("exporter", "opset", "external")}, "seconds": round(time.time() - started, 3)}
        if run.returncode == 0:
            ours, theirs = np.load(out), np.load(place / "y.npy").astype(np.float64)
            if stripped:
                ours = ours - np.log(np.exp(ours).sum(-1, keepdims=True))
            same = ours.size == theirs.size
            apart = lambda a, b: float(np.abs(a.reshape(b.shape) - b).max() / np.abs(b).max())
            error = apart(ours, theirs) if same else math.inf
            row |= {"read": True, "error": error}
            if (place / "exact.npy").exists() and same:
                exact = np.load(place / "exact.npy").astype(np.float64)
                row |= {"error_to_double": apart(ours, exact), "runtime_to_double": apart(theirs, exact)}
            row["agrees"] = bool(error <= max(TOLERANCE, 2 * row.get("runtime_to_double", 0)))
        else:
            lines = [line for line in run.stderr.strip().splitlines() if line.strip()]
            message = " ".join(lines).replace(str(place) + os.sep, "")
            row |= {"read": False, "agrees": False, "refused": message[:400]}
        rows.append(row)
        print(json.dumps(row), flush=True)
    print()
    width = max((len(r["name"]) for r in rows), default=4)
    for r in rows:
        said = f"{r['error']:.1e} {'' if r['agrees'] else 'DIFFERS'}" if r["read"] else "refused: " + r["refused"][:120]
        print(f"{r['name']:{width}} {r['exporter']:11} {r['opset']!s:>3}  {said}")
    read, agree = sum(r["read"] for r in rows), sum(r["agrees"] for r in rows)
    summary = {
        "exports": len(rows),
        "architectures": len({r["name"].rsplit("_script", 1)[0].rsplit("_dynamo", 1)[0].removesuffix("_three") for r in rows}),
        "read": read,
        "agree": agree,
        "refused": len(rows) - read,
        "seconds": round(sum(r["seconds"] for r in rows), 1),
    }
    print(json.dumps(summary))
    return 0 if agree == len(rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--check", type=Path, metavar="FOLDER")
    parser.add_argument("--posterior", default="posterior", metavar="BINARY")
    parser.add_argument("--only", help="exports whose names hold one of these, separated by commas")
    parser.add_argument("--again", action="store_true", help="write exports again that are there")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else None
    if arguments.write:
        import torch

        torch.set_num_threads(1)
        torch.backends.mha.set_fastpath_enabled(False)
        write(arguments.write, only, arguments.again)
    if arguments.check:
        sys.exit(check(arguments.check, arguments.posterior, only))


if __name__ == "__main__":
    main()
