#!/usr/bin/env python3
"""CPU seconds and peak memory of whole commands, two builds of the binary beside each other.

    python3 benches/whole_process.py BEFORE AFTER [--repeat 7] [--only 'NAME;NAME'] [--folder DIR]

Every command runs `--repeat` times with each build, in turns, so that both see the same machine. The table shows for each command the median
of user plus system seconds, the ratio AFTER / BEFORE of the medians, and the medians of the peak memory; below it stands the geometric mean of
the ratios. Inputs are made up here from a fixed seed; each build fits the models that later commands read. Threads are `--threads` (2).
Needs Python only. With one binary (`whole_process.py BINARY`) only its own figures are printed.
"""

import argparse
import array
import math
import os
import pathlib
import random
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile


def row(generator, inputs):
    """Inputs of one row, a number, a class and a count that depend on them."""
    x = [generator.random() for _ in range(inputs)]
    f = math.sin(6 * x[0]) + x[1] * x[2]
    y = f + 0.2 * generator.gauss(0, 1)
    colour = ("red", "green", "blue")[min(2, max(0, int(1.5 + y)))]
    return x, y, colour, poisson(generator, math.exp(0.7 * f))


def poisson(generator, rate):
    limit, count, product = math.exp(-rate), 0, generator.random()
    while product > limit:
        count, product = count + 1, product * generator.random()
    return count


def write_table(path, rows, seed, inputs=4):
    generator = random.Random(seed)
    with open(path, "w") as file:
        names = [f"x{k + 1}" for k in range(inputs)]
        file.write(",".join([*names, "y", "colour", "count"]) + "\n")
        for _ in range(rows):
            x, y, colour, count = row(generator, inputs)
            file.write(",".join([f"{v:.6f}" for v in [*x, y]] + [colour, str(count)]) + "\n")


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes())


def write_vgg11(path, width=224, classes=1000):
    """VGG-11 as ONNX with random weights (531 MB): the layers of its publication, messages of the format written by hand."""
    generator = random.Random(0)
    block = array.array("f", (generator.gauss(0, 1) for _ in range(1 << 16)))

    def varint(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    def number(field, value):
        return varint(field << 3) + varint(value)

    def field(number_, content):
        content = content.encode() if isinstance(content, str) else content
        return varint(number_ << 3 | 2) + varint(len(content)) + content

    def tensor(name, shape, scale):
        count = math.prod(shape)
        piece = array.array("f", (v * scale for v in block)).tobytes()
        raw = (piece * (4 * count // len(piece) + 1))[: 4 * count]
        return field(5, b"".join(number(1, d) for d in shape) + number(2, 1) + field(8, name) + field(9, raw))

    def integers(name, values):
        return field(5, field(1, name) + b"".join(number(8, v) for v in values) + number(20, 7))

    def node(kind, inputs, output, attributes=b""):
        parts = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind) + attributes
        return field(1, parts)

    def value(name, shape):
        dimensions = b"".join(field(1, number(1, d)) for d in shape)
        return field(1, name) + field(2, field(1, number(1, 1) + field(2, dimensions)))

    nodes, weights = [], []
    at, channels, counter = "x", 3, 0
    for step in [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"]:
        counter += 1
        if step == "M":
            nodes.append(node("MaxPool", [at], f"h{counter}", integers("kernel_shape", [2, 2]) + integers("strides", [2, 2])))
        else:
            scale = math.sqrt(2 / (9 * channels))
            weights += [tensor(f"w{counter}", [step, channels, 3, 3], scale), tensor(f"b{counter}", [step], 0.01)]
            shape = integers("kernel_shape", [3, 3]) + integers("pads", [1, 1, 1, 1])
            nodes.append(node("Conv", [at, f"w{counter}", f"b{counter}"], f"c{counter}", shape))
            nodes.append(node("Relu", [f"c{counter}"], f"h{counter}"))
            channels = step
        at = f"h{counter}"
    nodes.append(node("Flatten", [at], "flat"))
    at, inputs = "flat", 512 * (width // 32) ** 2
    for layer, outputs in enumerate([4096, 4096, classes]):
        weights += [tensor(f"fw{layer}", [outputs, inputs], math.sqrt(2 / inputs)), tensor(f"fb{layer}", [outputs], 0.01)]
        transposed = field(5, field(1, "transB") + number(3, 1) + number(20, 2))
        nodes.append(node("Gemm", [at, f"fw{layer}", f"fb{layer}"], f"g{layer}", transposed))
        at, inputs = f"g{layer}", outputs
        if layer < 2:
            nodes.append(node("Relu", [at], f"r{layer}"))
            at = f"r{layer}"
    graph = b"".join(nodes) + field(2, "vgg11") + b"".join(weights)
    graph += field(11, value("x", [1, 3, width, width])) + field(12, value(at, [1, classes]))
    with open(path, "wb") as file:
        file.write(number(1, 8) + field(7, graph) + field(8, number(2, 17)))
    write_npy(path.with_suffix(".npy"), [1, 3, width, width], array.array("f", (generator.random() for _ in range(3 * width**2))))


def inputs(folder):
    write_table(folder / "few.csv", 500, seed=5)
    write_table(folder / "small.csv", 2_000, seed=1)
    write_table(folder / "middle.csv", 20_000, seed=2)
    write_table(folder / "million.csv", 1_000_000, seed=3)
    write_vgg11(folder / "vgg11.onnx")
    (folder / "net.toml").write_text('kind = "perceptron"\ninputs = 4\nhidden = [64, 64]\noutputs = 1\nactivation = "tanh"\n')
    (folder / "scan.toml").write_text('kind = "parallel"\nheight = 64\nwidth = 64\nangles = { count = 40 }\n')


FEATURES = "--features x1,x2,x3,x4"
LAPLACE = "fit {data}/middle.csv --network net.safetensors --likelihood gaussian"
# Name: the command that is measured, and the names of those that each build runs once before it.
COMMANDS = {
    "read 10^6 rows": ("inspect {data}/million.csv", []),
    "default fit, n = 2,000": (f"fit {{data}}/small.csv {FEATURES} --target y -o default.m --force", []),
    "exact, n = 2,000": (
        f"fit {{data}}/small.csv {FEATURES} --target y --method exact --set restarts=1 --set steps=20 -o exact.m --force",
        [],
    ),
    "svgp": (
        f"fit {{data}}/middle.csv {FEATURES} --target y --method svgp --set inducing=200 --set iterations=200 -o svgp.m --force",
        [],
    ),
    "sdd": (
        f"fit {{data}}/middle.csv {FEATURES} --target y --method sdd --set iterations=300 --set samples=16 --set blocks=1 --set block-size=500 "
        "--set refining-rows=0 -o sdd.m --force",
        [],
    ),
    "classes": (f"fit {{data}}/few.csv {FEATURES} --target colour -o classes.m --force", []),
    "counts": (f"fit {{data}}/few.csv {FEATURES} --target count --likelihood poisson -o counts.m --force", []),
    "stream of 20,000 rows": (f"stream s.stream {{data}}/middle.csv {FEATURES} --target y -o s.csv", []),
    "train": (
        f"train {{data}}/net.toml {{data}}/middle.csv {FEATURES} --target y --loss mse --epochs 10 "
        "-o net.safetensors --force",
        [],
    ),
    "Laplace, Kronecker": (f"{LAPLACE} --method kronecker -o kronecker.m --force", ["train"]),
    "Laplace, last layer": (f"{LAPLACE} --method last-layer -o last.m --force", ["train"]),
    "predict 10^6 rows": ("predict svgp.m {data}/million.csv -o p.csv --force", ["svgp"]),
    "import of VGG-11": ("forward {data}/vgg11.onnx {data}/vgg11.npy -o v.npy --force", []),
    "tomography": (
        "tomography reconstruct {data}/scan.toml sinogram.npy -o picture.npy --force",
        ["project"],
    ),
    "effects and maps": ("inspect exact.m --report effects.html --force", ["exact, n = 2,000"]),
    "project": ("tomography project {data}/scan.toml --phantom walnut -o sinogram.npy --force", []),
}


def run(binary, line, folder, data, threads):
    """User plus system seconds and peak bytes of one command."""
    words = [word.replace("{data}", str(data)) for word in shlex.split(line)]
    if words[0] != "inspect":
        words += ["--threads", str(threads)]
    for left in [*folder.glob("*.stream*"), folder / "s.csv"]:
        left.unlink(missing_ok=True)
    errors = tempfile.TemporaryFile("w+")
    process = subprocess.Popen([binary, *words, "--json"], cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        errors.seek(0)
        sys.exit(f"{binary} {' '.join(words)}: exit status {process.returncode}\n{errors.read()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="BINARY", help="before and after, or one")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", help="names of commands, with semicolons between them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, help="where inputs are made, and found the next time")
    options = parser.parse_args()
    wanted = options.only.split(";") if options.only else [name for name in COMMANDS if name != "project"]
    unknown = [name for name in wanted if name not in COMMANDS]
    if unknown or len(options.binaries) > 2:
        sys.exit(f"no command {unknown}; known: {'; '.join(COMMANDS)}" if unknown else "at most two binaries")
    with tempfile.TemporaryDirectory() as root:
        data = (options.folder or pathlib.Path(root, "data")).resolve()
        if not (data / "complete").exists():
            data.mkdir(parents=True, exist_ok=True)
            # In a process of its own: a command's peak memory begins with that of the process that starts it.
            child = os.fork()
            if child == 0:
                inputs(data)
                (data / "complete").touch()
                os._exit(0)
            if os.waitpid(child, 0)[1] != 0:
                sys.exit("the inputs could not be made")
        builds = [(str(pathlib.Path(b).resolve()), pathlib.Path(root, f"build{i}")) for i, b in enumerate(options.binaries)]
        for _, folder in builds:
            folder.mkdir()
        done, ratios = set(), []
        print("| command | CPU seconds | ratio | peak MB |\n|---|---|---|---|", flush=True)
        for name in wanted:
            line, before = COMMANDS[name]
            for needed in [n for n in before if n not in done]:
                for binary, folder in builds:
                    run(binary, COMMANDS[needed][0], folder, data, options.threads)
                done.add(needed)
            runs = [[] for _ in builds]
            for turn in range(options.repeat):
                order = list(zip(builds, runs))
                for (binary, folder), found in order if turn % 2 == 0 else reversed(order):
                    found.append(run(binary, line, folder, data, options.threads))
            done.add(name)
            seconds = [statistics.median(s for s, _ in found) for found in runs]
            peaks = [statistics.median(p for _, p in found) for found in runs]
            ratio = seconds[-1] / seconds[0]
            ratios.append(ratio)
            texts = [", ".join(f"{v:.2f}" for v in seconds), f"{ratio:.3f}" if len(builds) == 2 else "",
                     ", ".join(f"{v / 1e6:.0f}" for v in peaks)]
            print(f"| {name} | {' | '.join(texts)} |", flush=True)
        if len(builds) == 2:
            mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
            print(f"\n{len(ratios)} commands: geometric mean of the ratios {mean:.3f}, largest {max(ratios):.3f}")


if __name__ == "__main__":
    main()
