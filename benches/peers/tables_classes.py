"""Classes on tables: `posterior fit` by each inference beside what users would take instead.

Tables that come with scikit-learn (iris, wine, breast cancer, digits), some made here and, where --images names the folder of MNIST's IDX files,
handwritten digits by their pixels, and by the last features of the perceptron that --network names (safetensors, tanh). A third of the rows, at most
5,000, drawn at random by class, is scored and seen by none. Peers: scikit-learn's GaussianProcessClassifier (up to --largest rows), GPyTorch's
Dirichlet classification (exact, up to as many) and stochastic variational process with a softmax, gradient boosting with calibrated probabilities.
Every fit is a process or a function call of its own, timed with its predictions and ended after --seconds; features are standardised for all. Below
each table: how many times as long the variational processes took as the program's own choice, and whatever is worse than scikit-learn's process by more
than a standard error of the difference. Needs numpy, scikit-learn, torch, gpytorch, and the binary.

    python3 benches/peers/tables_classes.py --posterior target/release/posterior [--images FOLDER --network FILE] [NAME ...]
"""

import argparse
import csv
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")


def smooth(rows, columns, classes, lengthscale, amplitude, seed):
    """Classes drawn from the softmax of smooth functions: nobody can do better than their probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    w = rng.standard_normal((classes, 64, columns)) / lengthscale
    b = rng.uniform(0, 2 * np.pi, (classes, 64))
    f = np.stack([amplitude * np.sqrt(2 / 64) * np.cos(x @ w[k].T + b[k]).sum(1) for k in range(classes)], 1)
    p = np.exp(f - f.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    y = (p.cumsum(1) > rng.random((rows, 1))).argmax(1)
    return x, y


def packaged(name):
    from sklearn import datasets

    loaded = {"iris": datasets.load_iris, "wine": datasets.load_wine, "cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}
    found = loaded[name]()
    return found.data, found.target


def idx(folder, name):
    """One of the IDX files of a folder, packed or not."""
    path = next(p for p in (Path(folder) / f"{name}.gz", Path(folder) / name) if p.exists())
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        raw = file.read()
    shape = np.frombuffer(raw, ">u4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def digits(folder, network=None):
    """The 10,000 digits that the network has not been trained on: pixels from 0 to 1 without those that never vary, or what the layer before its last makes of them."""
    x = idx(folder, "t10k-images-idx3-ubyte").reshape(10_000, -1) / 255.0
    y = idx(folder, "t10k-labels-idx1-ubyte").astype(int)
    if network is None:
        return x[:, x.std(0) > 0], y
    raw = Path(network).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, start = json.loads(raw[8 : 8 + length]), 8 + length
    header.pop("__metadata__", None)

    def tensor(name):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(raw[start + begin : start + end], "<f4").reshape(header[name]["shape"]).astype(float)

    layers = sorted(name.removesuffix(".weight") for name in header if name.endswith(".weight"))
    for layer in layers[:-1]:
        x = np.tanh(x @ tensor(f"{layer}.weight").T + tensor(f"{layer}.bias"))
    return x, y


TABLES = {
    "iris": lambda: packaged("iris"),
    "wine": lambda: packaged("wine"),
    "cancer": lambda: packaged("cancer"),
    "digits": lambda: packaged("digits"),
    "smooth-2": lambda: smooth(1500, 3, 2, 1.5, 3.0, 1),
    "smooth-5": lambda: smooth(1500, 4, 5, 2.0, 3.0, 2),
    "smooth-large": lambda: smooth(20_000, 5, 3, 2.0, 3.0, 3),
    "smooth-huge": lambda: smooth(150_000, 5, 4, 2.0, 3.0, 4),
}


def tables(arguments):
    """Those above, and the digits where their files are named."""
    out = dict(TABLES)
    if arguments.images:
        out["digits-pixels"] = lambda: digits(arguments.images)
        if arguments.network:
            out["digits-features"] = lambda: digits(arguments.images, arguments.network)
    return out


def scores(p, y):
    p = np.clip(p, 1e-300, None)
    p = p / p.sum(1, keepdims=True)
    nll = -np.log(p[np.arange(len(y)), y])
    confidence, hit = p.max(1), p.argmax(1) == y
    bins = np.minimum((confidence * 15).astype(int), 14)
    ece = sum(abs(hit[bins == b].mean() - confidence[bins == b].mean()) * (bins == b).mean() for b in range(15) if (bins == b).any())
    return {"error": float(1 - hit.mean()), "nll": float(nll.mean()), "ece": float(ece), "each": nll}


def ended(words, seconds, **options):
    """What a command printed, or an error: what it said last, or that it took too long."""
    try:
        out = subprocess.run(words, capture_output=True, text=True, timeout=seconds, **options)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"ended after {seconds:.0f} s") from error
    if out.returncode != 0:
        raise RuntimeError(out.stderr.strip().splitlines()[-1])
    return out.stdout


def ours(binary, inference, folder, seconds, extra):
    def run(*words):
        return json.loads(ended([binary, *words, "--json", "--quiet"], seconds, cwd=folder))

    started = time.time()
    fit = run("fit", "train.csv", "--target", "class", "--likelihood", "categorical", "--inference", inference, "--output", "m.posterior", "--force", *extra)
    found = run("predict", "m.posterior", "test.csv", "--threads", "2")
    seconds = time.time() - started
    names = sorted((c for c in found["predictions"] if c.startswith("p_")), key=lambda c: float(c[2:]))
    return np.array([found["predictions"][c] for c in names]).T, seconds, fit["peak_memory_bytes"]


def gpc(x, y, there):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(1.0) * RBF(np.ones(x.shape[1]))
    return GaussianProcessClassifier(kernel, random_state=0).fit(x, y).predict_proba(there)


def boosting(x, y, there):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier

    folds = int(min(5, np.bincount(y).min()))
    return CalibratedClassifierCV(HistGradientBoostingClassifier(random_state=0), cv=folds).fit(x, y).predict_proba(there)


def dirichlet(x, y, there, steps=100):
    import gpytorch
    import torch

    torch.manual_seed(0)
    x, there, labels = torch.tensor(x).float(), torch.tensor(there).float(), torch.tensor(y)
    classes = int(labels.max()) + 1
    likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(labels, learn_additional_noise=True)

    class Process(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(x, likelihood.transformed_targets, likelihood)
            shape = torch.Size((classes,))
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.MaternKernel(nu=1.5, batch_shape=shape, ard_num_dims=x.shape[1]), batch_shape=shape
            )

        def forward(self, inputs):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    model = Process()
    model.train(), likelihood.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = -objective(model(x), likelihood.transformed_targets).sum()
        loss.backward()
        optimiser.step()
    model.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        samples = model(there).sample(torch.Size((256,))).exp()
        return (samples / samples.sum(-2, keepdim=True)).mean(0).T.double().numpy()


def svgp(x, y, there, epochs=None):
    import gpytorch
    import torch

    torch.manual_seed(0)
    x, there, labels = torch.tensor(x).float(), torch.tensor(there).float(), torch.tensor(y)
    classes, points = int(labels.max()) + 1, min(512, len(x))
    inducing = x[torch.randperm(len(x))[:points]].clone()

    class Process(gpytorch.models.ApproximateGP):
        def __init__(self):
            shape = torch.Size([classes])
            own = gpytorch.variational.CholeskyVariationalDistribution(points, batch_shape=shape)
            strategy = gpytorch.variational.IndependentMultitaskVariationalStrategy(
                gpytorch.variational.VariationalStrategy(self, inducing, own, learn_inducing_locations=True), num_tasks=classes
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=x.shape[1]))

        def forward(self, inputs):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    model = Process()
    likelihood = gpytorch.likelihoods.SoftmaxLikelihood(num_features=classes, num_classes=classes, mixing_weights=False)
    model.train(), likelihood.train()
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.02)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    # As many steps as the program's stochastic bound takes.
    for _ in range(epochs or 3000):
        batch = torch.randint(len(x), (min(1024, len(x)),))
        optimiser.zero_grad()
        loss = -objective(model(x[batch]), labels[batch])
        loss.backward()
        optimiser.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        return likelihood(model(there)).probs.mean(0).double().numpy()


PEERS = {"scikit-learn GPC": gpc, "GPyTorch Dirichlet": dirichlet, "GPyTorch SVGP": svgp, "boosting, calibrated": boosting}


def peer(name, folder, seconds, x, y, there):
    """In a process of its own, whose peak memory is known; what it takes to import its library is not counted."""
    np.savez(Path(folder) / "peer.npz", x=x, y=y, there=there)
    found = json.loads(ended([sys.executable, __file__, "--one", name, str(folder)], seconds).splitlines()[-1])
    return np.load(Path(folder) / "p.npy"), found["seconds"], found["memory"]


def one(name, folder):
    data = np.load(Path(folder) / "peer.npz")
    try:
        import gpytorch  # noqa: F401
        import torch

        torch.set_num_threads(2)
    except ImportError:
        pass
    import sklearn.ensemble
    import sklearn.gaussian_process  # noqa: F401

    started = time.time()
    p = PEERS[name](data["x"], data["y"], data["there"])
    seconds = time.time() - started
    np.save(Path(folder) / "p.npy", p)
    print(json.dumps({"seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


# What is compared: the program's own choice first, which the others are held against.
CHOSEN = "gaussianised"
OURS = {
    CHOSEN: ("gaussianised", []),
    "gaussianised, learned": ("gaussianised", ["--pseudo-count", "learned"]),
    "gaussianised, moment-original": ("gaussianised", ["--matching", "moment-original"]),
    "gaussianised, moment": ("gaussianised", ["--matching", "moment"]),
    "gaussianised, laplace": ("gaussianised", ["--matching", "laplace"]),
    "gaussianised, variational": ("gaussianised", ["--matching", "variational"]),
    "auto": ("auto", []),
    "laplace": ("laplace", []),
    "variational": ("variational", []),
}
# Cubic in the rows, with a large factor.
CUBIC = ("auto", "gaussianised, learned", "laplace", "scikit-learn GPC", "GPyTorch Dirichlet")


def judged(found):
    """What a reader wants to know of a table, one line each; `found` has seconds and each scored row's NLL by method."""
    if CHOSEN not in found:
        return
    seconds, each = found[CHOSEN]
    for name in ("variational", "GPyTorch SVGP"):
        if name in found:
            times, difference = found[name][0] / seconds, (each - found[name][1]).mean()
            yield f"{name}: {times:.1f} times as long as {CHOSEN}, whose NLL is {difference:+.4f} from it"
    if "scikit-learn GPC" in found:
        for name in OURS:
            if name in found:
                difference = found[name][1] - found["scikit-learn GPC"][1]
                error = difference.std() / np.sqrt(len(difference))
                if difference.mean() > error:
                    yield f"{name}: worse than scikit-learn GPC by {difference.mean():.4f} +- {error:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posterior", type=Path, required=True)
    parser.add_argument("--images", type=Path, help="folder of MNIST's IDX files")
    parser.add_argument("--network", type=Path, help="weights of a perceptron of them, safetensors")
    parser.add_argument("--largest", type=int, default=1000, help="rows that cubic methods are given at most")
    parser.add_argument("--seconds", type=float, default=600, help="of one fit at most")
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    binary, known = str(arguments.posterior.resolve()), tables(arguments)
    for name in arguments.names or known:
        x, y = known[name]()
        rng = np.random.default_rng(arguments.seed)
        order = rng.permutation(len(y))
        order = np.concatenate([order[y[order] == k] for k in np.unique(y)])
        # Every third row of each class.
        test = rng.permutation(order[::3])[:5000]
        train = np.setdiff1d(order, order[::3])
        mean, scale = x[train].mean(0), x[train].std(0)
        # What does not vary keeps its unit.
        x = (x - mean) / np.where(scale > 0, scale, 1.0)
        print(f"{name}: {len(train)} rows to learn from, {len(test)} scored, {x.shape[1]} columns, {len(np.unique(y))} classes", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for part, rows in [("train", train), ("test", test)]:
                with open(Path(folder) / f"{part}.csv", "w", newline="") as out:
                    writer = csv.writer(out)
                    writer.writerow([f"x{j}" for j in range(x.shape[1])] + ["class"])
                    writer.writerows([*map(repr, map(float, x[i])), int(y[i])] for i in rows)
            runs = {key: lambda of=of: ours(binary, of[0], folder, arguments.seconds, of[1]) for key, of in OURS.items()}
            runs |= {key: lambda key=key: peer(key, folder, arguments.seconds, x[train], y[train], x[test]) for key in PEERS}
            done = {}
            for method, run in runs.items():
                if method in arguments.without or (method in CUBIC and len(train) > arguments.largest):
                    continue
                try:
                    p, seconds, memory = run()
                except Exception as error:  # what fails is said, and the others go on
                    print(f"  {method:30} {error}", flush=True)
                    continue
                found = scores(p, y[test])
                each = found.pop("each")
                done[method] = (seconds, each)
                first = done.get(CHOSEN, done[method])[1]
                difference, error = (each - first).mean(), (each - first).std() / np.sqrt(len(each))
                print(
                    f"  {method:30} error {100 * found['error']:6.2f} %  NLL {found['nll']:.4f} ({difference:+.4f} +- {error:.4f})  "
                    f"ECE {found['ece']:.4f}  {seconds:8.2f} s  {memory / 1e6:7.0f} MB",
                    flush=True,
                )
            for line in judged(done):
                print(f"  -> {line}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main()
