"""Predictions of a fixed-mean process beside those of the plain network: perceptrons of tables, and ResNet-20 on images.

Perceptrons have rbf(ard) on the inputs and one output; ResNet-20 has `rbf x last-layer`, `k(x, z) (phi(x)' phi(z) + 1)` between outputs of the same class, with phi the 64 features before its last layer, and a
covariance of all ten outputs. A prediction is the network's output and this covariance, `k(x, x) - k(x, Z) S k(Z, x)`: what belongs to the inducing points is made once. Weights of the covariance are random
(its cost is the same), those of ResNet-20 come from the shared file, or are random with `--random`. Numbers are float32."""
import torch
from fixed_mean_common import random_table, reduced, tanh_perceptron
from network_common import cifar, normalised, parser, peak_gigabytes, report, seconds, start
from network_resnet20_model import ResNet20, kaiming, pretrained

CLASSES = 10


def squared_exponential(x, scaled, own, scales):
    """`exp(-1/2 |x / l - z / l|^2)` from inducing points that are scaled already, and their squared norms."""
    a = x / scales
    squares = torch.addmm((a * a).sum(1)[:, None] + own[None, :], a, scaled.T, alpha=-2)
    return squares.clamp_min_(0).mul_(-0.5).exp_()


def of_table(network, z):
    """predict(x) -> outputs (n), variances (n)."""
    scales = torch.full((z.shape[1],), float(z.shape[1]) ** 0.5)
    scaled = z / scales
    own = (scaled * scaled).sum(1)
    w, _ = reduced(squared_exponential(z, scaled, own, scales), torch.randn(len(z), len(z)).tril())

    def predict(x):
        cross = squared_exponential(x, scaled, own, scales)
        return network(x)[:, 0], 1 - ((cross @ w.T) ** 2).sum(1)

    return predict


def with_features(network, x):
    """Outputs (n, 10) and the features before the last layer (n, 64)."""
    features = []
    hook = network.linear.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
    outputs = network(x)
    hook.remove()
    return outputs, features[0]


def of_images(network, z):
    """predict(x) -> outputs (n, 10), covariances (n, 10, 10); inducing point m looks at class m mod 10."""
    flat, phi = z.flatten(1), with_features(network, z)[1]
    scales = torch.tensor(float(flat.shape[1]) ** 0.5)
    scaled = flat / scales
    own = (scaled * scaled).sum(1)
    labels = torch.nn.functional.one_hot(torch.arange(len(z)) % CLASSES, CLASSES).float()
    between = squared_exponential(flat, scaled, own, scales) * (phi @ phi.T + 1) * (labels @ labels.T)
    w, _ = reduced(between, 0.1 * torch.randn(len(z), len(z)).tril())

    def predict(x):
        outputs, here = with_features(network, x)
        cross = squared_exponential(x.flatten(1), scaled, own, scales) * (here @ phi.T + 1)
        rows = (cross[:, None, :] * labels.T[None]) @ w.T
        prior = ((here * here).sum(1) + 1)[:, None, None] * torch.eye(CLASSES)
        return outputs, prior - rows @ rows.transpose(1, 2)

    return predict


def timed(network, predict, x, batch, repetitions):
    """Seconds of all examples by the network alone and with its covariance."""
    parts = x.split(batch)
    plain = seconds(lambda: [network(part) for part in parts], repetitions)
    whole = seconds(lambda: [predict(part) for part in parts], repetitions)
    return {"plain_s": plain, "predict_s": whole, "ratio": round(whole[1] / plain[1], 3)}


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--network", choices=("perceptron", "resnet20"), default="perceptron", help="which network")
    read.add_argument("--examples", type=int, default=None, help="rows (default 100000) or images (default 500)")
    read.add_argument("--inputs", type=int, default=9, help="columns of the table")
    read.add_argument("--points", type=int, default=100, help="inducing inputs")
    read.add_argument("--batch", type=int, default=None, help="examples at a time (default 1000, images 100)")
    read.add_argument("--repetitions", type=int, default=5, help="timed repetitions")
    read.add_argument("--random", action="store_true", help="random weights and images instead of the shared files")
    arguments = read.parse_args()
    start(arguments)
    torch.manual_seed(0)
    images = arguments.network == "resnet20"
    count = arguments.examples or (500 if images else 100_000)
    batch = arguments.batch or (100 if images else 1000)
    if not images:
        x = random_table(count + arguments.points, arguments.inputs, torch.float32)[0]
        network, of = tanh_perceptron(arguments.inputs), of_table
    elif arguments.random:
        x, network, of = torch.randn(count + arguments.points, 3, 32, 32), kaiming(ResNet20()), of_images
    else:
        x = normalised(cifar(arguments.data, "test_batch")[0][: count + arguments.points])
        network, of = pretrained(arguments.data / "networks" / "resnet20_cifar10.safetensors"), of_images
    network.eval()
    with torch.no_grad():
        z, x = x[: arguments.points].clone(), x[arguments.points :]
        measured = timed(network, of(network, z), x, batch, arguments.repetitions)
    shape = {"network": arguments.network, "examples": len(x), "points": arguments.points, "batch": batch}
    report(arguments, **shape, inputs=x[0].numel(), repetitions=arguments.repetitions, **measured, peak_gb=peak_gigabytes())


if __name__ == "__main__":
    main()
