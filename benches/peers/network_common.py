"""What the network baselines share: arguments, data in memory, the two architectures' helpers, timing.

Data lie under one folder (`--data`, by default `../shared` beside the repository) with the layout
`data/mnist/*-ubyte.gz` (IDX), `data/cifar10_jpeg/*.bin.gz` (CIFAR-10 binary) and `networks/*.safetensors`."""
import argparse
import gzip
import json
import pathlib
import resource
import struct
import sys
import time

import numpy as np
import torch
from torch import nn

SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared"
CIFAR_MEAN = (0.485, 0.456, 0.406)
CIFAR_DEVIATION = (0.229, 0.224, 0.225)


def parser(description):
    """The argument parser with the arguments that all scripts have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--threads", type=int, default=2, help="threads of PyTorch's CPU kernels")
    made.add_argument("--data", type=pathlib.Path, default=SHARED, help="folder that holds data/ and networks/")
    return made


def start(arguments):
    """Set the threads; called once, before any tensor work."""
    if arguments.threads < 1:
        sys.exit("--threads must be at least 1")
    torch.set_num_threads(arguments.threads)


def existing(path):
    """The path, or an end with a message where the data are absent."""
    if not path.exists():
        sys.exit(f"skipped: {path} is absent; point --data at the folder that holds data/ and networks/")
    return path


def idx(path):
    """An IDX file of unsigned bytes: two zero bytes, type 8, number of dimensions, big-endian sizes, the bytes."""
    raw = gzip.decompress(existing(path).read_bytes())
    if raw[:3] != b"\0\0\x08":
        sys.exit(f"{path}: not an IDX file of unsigned bytes")
    shape = struct.unpack(f">{raw[3]}I", raw[4 : 4 + 4 * raw[3]])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def mnist(data, split):
    """Images (n, 784) as float32 in [0, 1] and labels (n); split is "train" or "t10k"."""
    folder = data / "data" / "mnist"
    images = idx(folder / f"{split}-images-idx3-ubyte.gz").reshape(-1, 784)
    labels = idx(folder / f"{split}-labels-idx1-ubyte.gz")
    return torch.tensor(images.astype(np.float32) / 255), torch.tensor(labels.astype(np.int64))


def cifar(data, batch):
    """Images (n, 3, 32, 32) as bytes and labels (n); batch is "data_batch_1" or "test_batch"."""
    path = existing(data / "data" / "cifar10_jpeg" / f"{batch}.bin.gz")
    rows = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8).reshape(-1, 3073)
    return torch.tensor(rows[:, 1:].reshape(-1, 3, 32, 32)), torch.tensor(rows[:, 0].astype(np.int64))


def normalised(images, number=torch.float32):
    """Byte images to numbers, (pixel / 255 - mean) / deviation per colour plane; the constants are rounded to float32."""
    mean = torch.tensor(CIFAR_MEAN).view(3, 1, 1).to(number)
    deviation = torch.tensor(CIFAR_DEVIATION).view(3, 1, 1).to(number)
    return (images.to(number) / 255 - mean) / deviation


def perceptron():
    """The 784-200-200-10 tanh perceptron with PyTorch's default initialisation; 199,210 parameters."""
    return nn.Sequential(
        nn.Linear(784, 200), nn.Tanh(), nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 10)
    )


def cosine_factor(step, steps):
    """(1 + cos(pi step / steps)) / 2: 1 at the first step, towards 0 after the last."""
    return 0.5 * (1 + float(np.cos(np.pi * step / steps)))


def set_rate(optimiser, rate):
    """Give every group of parameters this learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def relative_error(value, reference):
    """The largest |value - reference| over the largest |reference|, in float64."""
    value, reference = value.detach().double(), reference.detach().double()
    return float((value - reference).abs().max() / reference.abs().max())


def seconds(work, repetitions, warm_up=1):
    """[minimum, median] wall-clock seconds of work() over the repetitions that follow the warm-up."""
    times = []
    for i in range(warm_up + repetitions):
        begin = time.perf_counter()
        result = work()
        if i >= warm_up:
            times.append(time.perf_counter() - begin)
        del result
    return summary(times)


def summary(times):
    """[minimum, median] of a list of seconds, to the microsecond."""
    return [round(min(times), 6), round(float(np.median(times)), 6)]


def peak_gigabytes():
    """The largest resident memory of this process so far, in units of 10^9 bytes (Linux reports KiB)."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


def report(arguments, **values):
    """Print one JSON line: the library and threads, then the values in the order given."""
    print(json.dumps({"torch": torch.__version__, "threads": arguments.threads, **values}))
