"""One gradient of sampled Laplace on ResNet-20 by torch.func: all posterior samples advanced by Jacobian-vector and vector-Jacobian products.

The objective is the one of low variance, `1/2 |Phi w|_B^2 + a/2 |w - t|^2` for each sample (thesis section 6; spec `linearised_laplace`, 5.6): of a batch, `n / batch` times `J' B J z`, plus `a (z - t)`,
`B = diag(p) - p p'`. Two ways: `vmap` pushes all samples at once (weights' tangents batched, which turns convolutions into grouped ones), `loop` one after another with the forward pass of the reverse sweep
kept. Weights are all that are trained, those of batch normalisation (in evaluation mode) included; numbers are float32. Without the weights' file the initialisation is random, which costs the same."""
import torch
from network_common import cifar, normalised, parser, peak_gigabytes, relative_error, report, seconds, start
from network_resnet20_model import ResNet20, kaiming, pretrained
from torch.func import functional_call, jvp, vjp, vmap

WAYS = ("loop", "vmap")


def curvature_product(probabilities, moved):
    """`(diag(p) - p p') v` for outputs (..., batch, classes)."""
    weighted = probabilities * moved
    return weighted - probabilities * weighted.sum(-1, keepdim=True)


def outputs_of(network, x):
    """f(parameters) -> (batch, classes) at these images."""
    return lambda parameters: functional_call(network, parameters, (x,))


def by_loop(f, parameters, samples, count):
    """{name: (samples, *shape)}: `J' B J z`, sample by sample."""
    outputs, pull = vjp(f, parameters)
    probabilities = outputs.softmax(-1).detach()
    parts = []
    for k in range(count):
        moved = jvp(f, (parameters,), ({name: z[k] for name, z in samples.items()},))[1]
        parts.append(pull(curvature_product(probabilities, moved))[0])
    return {name: torch.stack([part[name] for part in parts]) for name in samples}


def by_vmap(f, parameters, samples, _):
    """The same, all samples at once."""
    outputs, pull = vjp(f, parameters)
    probabilities = outputs.softmax(-1).detach()
    moved = vmap(lambda z: jvp(f, (parameters,), (z,))[1])(samples)
    return vmap(lambda v: pull(v)[0])(curvature_product(probabilities, moved))


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--samples", type=int, default=16, help="samples that are advanced together, K")
    read.add_argument("--batch", type=int, default=100, help="images of a step")
    read.add_argument("--steps", type=int, default=3, help="timed steps of each way")
    read.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="what to measure")
    read.add_argument("--random", action="store_true", help="random weights and images instead of the shared files")
    arguments = read.parse_args()
    start(arguments)
    torch.manual_seed(0)
    if arguments.random:
        network, x = kaiming(ResNet20()), torch.randn(arguments.batch, 3, 32, 32)
    else:
        network = pretrained(arguments.data / "networks" / "resnet20_cifar10.safetensors")
        x = normalised(cifar(arguments.data, "data_batch_1")[0][: arguments.batch])
    network.eval()
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    samples = {name: torch.randn(arguments.samples, *value.shape) for name, value in parameters.items()}
    targets = {name: torch.randn_like(value) for name, value in samples.items()}
    f, factor, precision = outputs_of(network, x), 50_000 / arguments.batch, 100.0

    def gradient(way):
        with torch.no_grad():
            found = way(f, parameters, samples, arguments.samples)
            return {n: factor * found[n] + precision * (samples[n] - targets[n]) for n in found}

    ways = {"loop": by_loop, "vmap": by_vmap}
    measured, found = {}, {}
    for name in arguments.ways:
        measured[f"{name}_s"] = seconds(lambda: found.update({name: gradient(ways[name])}), arguments.steps)
        measured[f"{name}_peak_gb"] = peak_gigabytes()
    if len(found) == 2:
        measured["difference"] = max(relative_error(found["loop"][n], found["vmap"][n]) for n in samples)
    measured["step_s"] = min((measured[f"{name}_s"] for name in arguments.ways), key=lambda s: s[1])
    weights = sum(p.numel() for p in parameters.values())
    report(arguments, samples=arguments.samples, batch=arguments.batch, weights=weights, steps=arguments.steps, **measured)


if __name__ == "__main__":
    main()
