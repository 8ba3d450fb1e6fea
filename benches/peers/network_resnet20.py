"""ResNet-20 on CIFAR-10 test images in PyTorch: seconds forward, and forward plus backward for all gradients.

Backward is measured with batch normalisation in evaluation mode (stored statistics) and in training mode (statistics of the
batch). Quality: largest relative error of the evaluation logits against the stored float64 reference, in float32 as timed and
in float64."""
import copy

import numpy as np
import torch
import torch.nn.functional as F
from network_common import cifar, existing, normalised, parser, peak_gigabytes, relative_error, report, seconds, start
from network_resnet20_model import pretrained


def gradients(network, x, y):
    """One forward and backward pass of the mean cross-entropy."""
    network.zero_grad()
    F.cross_entropy(network(x), y).backward()


def measure(network, x, y, repetitions):
    """The three timings; the running statistics that training mode moves belong to a copy."""
    network.eval()
    with torch.no_grad():
        forward = seconds(lambda: network(x), repetitions, 2)
    evaluation = seconds(lambda: gradients(network, x, y), repetitions, 2)
    training = copy.deepcopy(network).train()
    return {
        "forward_s": forward,
        "gradient_evaluation_s": evaluation,
        "gradient_training_s": seconds(lambda: gradients(training, x, y), repetitions, 2),
    }


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--images", type=int, default=64)
    read.add_argument("--repetitions", type=int, default=15)
    arguments = read.parse_args()
    start(arguments)
    network = pretrained(existing(arguments.data / "networks" / "resnet20_cifar10.safetensors")).eval()
    with np.load(existing(arguments.data / "networks" / "resnet20_cifar10_reference.npz")) as stored:
        reference = torch.tensor(stored["logits"])
    images, labels = cifar(arguments.data, "test_batch")
    x, y = normalised(images[: arguments.images]), labels[: arguments.images]
    head = min(len(reference), len(x))
    with torch.no_grad():
        single = relative_error(network(x[:head]), reference[:head])
        exact = normalised(images[:head], torch.float64)
        double = relative_error(copy.deepcopy(network).double()(exact), reference[:head])
    contiguous = measure(network, x, y, arguments.repetitions)
    last = dict(memory_format=torch.channels_last)
    channels_last = measure(copy.deepcopy(network).to(**last), x.contiguous(**last), y, arguments.repetitions)
    report(
        arguments,
        images=len(x),
        repetitions=arguments.repetitions,
        **contiguous,
        **{f"channels_last_{name}": times for name, times in channels_last.items()},
        logits_error_float32=single,
        logits_error_float64=double,
        peak_gb=peak_gigabytes(),
    )


if __name__ == "__main__":
    main()
