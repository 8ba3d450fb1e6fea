"""Linearised Laplace for the 784-200-200-10 perceptron on MNIST in laplace-torch: fit, prior precision by the evidence, probit predictions.

Seconds of each part, evidence, precision, and the scores of the first test images beside the plain network's. Predictions of all weights form
Jacobians of 10 x 199,210 numbers for each image, hence small batches."""
import time

import torch
from laplace import Laplace
from network_common import existing, mnist, parser, peak_gigabytes, perceptron, report, start
from safetensors.torch import load_file
from torch.utils.data import DataLoader, TensorDataset

STRUCTURES = {
    "kronecker": ("all", "kron"),
    "diagonal": ("all", "diag"),
    "last-layer": ("last_layer", "full"),
    "last-layer-kronecker": ("last_layer", "kron"),
}


def timed(work):
    """What the work returns, and its seconds."""
    begin = time.perf_counter()
    made = work()
    return made, round(time.perf_counter() - begin, 3)


def calibration_error(confidence, right, bins=15):
    """Expected calibration error: bins of equal width, the difference between share right and confidence, weighted by how many fall in."""
    bin_of = (confidence * bins).ceil().clamp(1, bins).long() - 1
    weight = torch.zeros(bins, dtype=torch.double)
    gap = torch.zeros(bins, dtype=torch.double)
    weight.index_add_(0, bin_of, torch.ones_like(confidence, dtype=torch.double))
    gap.index_add_(0, bin_of, right.double() - confidence.double())
    return float(gap.abs().sum() / weight.sum())


def quality(probabilities, labels):
    """Accuracy, mean negative log probability of the truth, calibration error."""
    confidence, predicted = probabilities.max(dim=1)
    right = predicted == labels
    truth = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    return {
        "accuracy": float(right.double().mean()),
        "nll": float(-truth.double().log().mean()),
        "ece": calibration_error(confidence, right),
    }


def main():
    made = parser(__doc__.splitlines()[0])
    made.add_argument("structure", choices=STRUCTURES, help="which weights, and how their curvature is approximated")
    made.add_argument("--train", type=int, default=60000, help="training images")
    made.add_argument("--test", type=int, default=500, help="test images")
    made.add_argument("--batch", type=int, default=500, help="images of a batch of the fit")
    arguments = made.parse_args()
    start(arguments)
    network = perceptron()
    network.load_state_dict(load_file(str(existing(arguments.data / "networks" / "mlp_mnist.safetensors"))))
    network.eval()
    images, labels = (part[: arguments.train] for part in mnist(arguments.data, "train"))
    unseen, truth = (part[: arguments.test] for part in mnist(arguments.data, "t10k"))
    weights, structure = STRUCTURES[arguments.structure]
    posterior = Laplace(network, "classification", subset_of_weights=weights, hessian_structure=structure)
    batches = DataLoader(TensorDataset(images, labels), batch_size=arguments.batch)
    _, fitting = timed(lambda: posterior.fit(batches))
    _, tuning = timed(lambda: posterior.optimize_prior_precision(pred_type="glm", method="marglik"))

    def predict():
        pieces = [posterior(piece, pred_type="glm", link_approx="probit").detach() for piece in unseen.split(50)]
        return torch.cat(pieces)

    probabilities, predicting = timed(predict)
    with torch.no_grad():
        plain = network(unseen).softmax(dim=1)
    report(
        arguments,
        structure=arguments.structure,
        train=len(labels),
        test=len(truth),
        fit_s=fitting,
        tune_s=tuning,
        predict_s=predicting,
        log_evidence=float(posterior.log_marginal_likelihood()),
        precision=float(posterior.prior_precision.mean()),
        peak_gb=peak_gigabytes(),
        **quality(probabilities, truth),
        plain=quality(plain, truth),
    )


if __name__ == "__main__":
    main()
