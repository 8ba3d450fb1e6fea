"""Deep kernels on tables: `posterior fit` beside PyTorch and GPyTorch, by accuracy, by the time of a step, and by the number of rows.

All peers share one network, h = tanh(W x + b), three times h = h + tanh(W h + b), W h + b with a width of 128:
  torch-network   its one output with a learned noise variance: no process, and hard to beat
  torch-dbk       deep basis kernel: 128 outputs are the features of a process, whose evidence is exact; all rows at every step
  torch-svdbk     the same by the stochastic bound on the weights of the features
  gpytorch-svdkl  deep kernel: two outputs go through an RBF kernel with 128 inducing points, by GPyTorch's stochastic bound
  gpytorch-dkl    the same without inducing points; gpytorch-gp is the RBF kernel on x itself (both in `scaling` alone)
Batches have 256 rows, Adam's step size is --rate, and weight decay is on the network alone. Ours are posterior-METHOD, with the flags of OURS.

tables   70, 10 and 20 in a hundred of a table's rows, drawn by --seeds, are learned from, chosen by and scored; inputs go from -1 to 1 and the target has
         mean 0 and deviation 1 over the first part, the units of all scores. Peers keep the weights with the best validation NLL, looked at after every
         epoch (torch-dbk: 100 steps), and end when 20 looks have brought nothing better. Ours is given the validation rows with the others.
steps    median seconds of one step (its gradient and Adam, without validation) and of the prediction of one row, mean and deviation. Ours is the difference of
         two fits with unlike --iterations, and of predictions of all rows and of one, so that reading and planning cancel; writing a row stays in it.
scaling  seconds and memory of a fixed number of steps on n rows of a curve with jumps; `page` draws what it wrote to --json (needs matplotlib).

Each fit is a process of its own, ended after --seconds or when it wants more than --memory; the seconds of peers leave out imports, ours are those of the
whole command. Memory is the peak of the process; peers are printed with what their libraries take before there are data. Threads are those that the
libraries take. Needs numpy, torch and gpytorch, and for ours the binary. Tables are `x1,...,xD,y` in NAME.csv.gz under --data or its data/uci.

    python3 benches/peers/deep_kernels.py tables pol protein --posterior target/release/posterior --seeds 0,1,2 [--methods torch-dbk,posterior-dbk]
    python3 benches/peers/deep_kernels.py steps protein --posterior target/release/posterior
    python3 benches/peers/deep_kernels.py scaling --posterior target/release/posterior --json scaling.json
    python3 benches/peers/deep_kernels.py page scaling.json scaling.svg
"""

import argparse
import itertools
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")  # before libraries that warn while they are imported
import gpytorch  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

# What is compared of ours, with its flags.
OURS = {
    "dbk": ["--method", "dbk"],
    "svdbk": ["--method", "svdbk", "--set", "objective=evidence"],
    "network": ["--method", "svdbk", "--set", "objective=point"],
    "dkl": ["--method", "dkl"],
    "svdkl": ["--method", "svdkl"],
    "auto": [],
}
# The same for `steps`, with what their iterations count: steps on all rows, or on a batch. The correction, with which steps on all rows do not begin after others on batches, costs a little of its own.
STEPPED = {
    "dbk": ("all", ["--method", "dbk", "--set", "objective=evidence", "--set", "correction=noise"]),
    "svdbk": ("batch", ["--method", "svdbk", "--set", "objective=evidence", "--set", "batch=256"]),
    "svdkl": ("batch", ["--method", "svdkl", "--set", "objective=evidence", "--set", "batch=256"]),
}
# The same for `scaling`, with the setting that says how many steps.
SCALED = {
    "exact": ("steps", ["--method", "exact", "--kernel", "rbf(ard)", "--set", "optimizer=adam", "--set", "restarts=1"]),
    "dbk": ("iterations", ["--method", "dbk", "--set", "objective=evidence", "--set", "correction=noise"]),
    "svdbk": ("iterations", ["--method", "svdbk", "--set", "objective=evidence"]),
}
TABLES = ["pol", "bike", "protein", "keggdirected", "kin8nm"]
BLOCKS = 3  # of the network
RANK = 128  # features, or inducing points
BATCH = 256
LOOK = 100  # steps of torch-dbk between two looks at the validation rows
PATIENCE = 20  # looks without a better one
LEAST_NOISE = 1e-6
SHARED = Path(__file__).resolve().parents[2].parent / "shared"


# Data and scores.


def table(name, folder):
    """Inputs and target of a table of the folder."""
    file = f"{name}.csv.gz"
    path = next((path for path in (folder / file, folder / "data" / "uci" / file) if path.exists()), None)
    if path is None:
        sys.exit(f"skipped: {file} is absent; point --data at its folder, or at the one that holds data/uci")
    values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return values[:, :-1], values[:, -1]


def split(x, y, seed, rows=None):
    """Inputs and target of three parts in the units of the first."""
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    train, validation, test = np.split(order, [len(order) * 7 // 10, len(order) * 7 // 10 + len(order) // 10])
    low, high = x[train].min(0), x[train].max(0)
    # What does not vary becomes -1 and keeps its unit.
    x = 2 * (x - low) / np.where(high > low, high - low, 1.0) - 1
    y = (y - y[train].mean()) / y[train].std()
    parts = {"train": train, "validation": validation, "test": test}
    return {name: (x[part], y[part]) for name, part in parts.items()}


def curve(n, seed):
    """Plateaus at 0.3, 0.9, -0.6 and 0 with a ripple, seen with noise of deviation 0.1 at n uniform points."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    first, second, third = (0.5 * (1 + np.tanh(100 * (x - jump))) for jump in (-0.6, 0.0, 0.4))
    f = 0.3 * (1 - first) + 0.9 * (first - second) - 0.6 * (second - third) + 0.01 * np.sin(50 * np.sin(10 * x))
    return x[:, None], f + 0.1 * rng.standard_normal(n)


def scores(mean, deviation, y):
    z = (y - mean) / deviation
    return {
        "mae": float(np.abs(y - mean).mean()),
        "rmse": float(np.sqrt(((y - mean) ** 2).mean())),
        "nll": float((0.5 * z**2 + np.log(deviation)).mean() + 0.5 * math.log(2 * math.pi)),
        "coverage": float((np.abs(z) <= 1.6448536).mean()),
    }


def tensors(*arrays):
    return [torch.tensor(array, dtype=torch.float32) for array in arrays]


# The peers: a loss of some rows, in units of a row, and predictions.


class Residual(nn.Module):
    def __init__(self, inputs, outputs, width=128):
        super().__init__()
        self.first, self.last = nn.Linear(inputs, width), nn.Linear(width, outputs)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(BLOCKS))

    def forward(self, x):
        h = self.first(x).tanh()
        for block in self.blocks:
            h = h + block(h).tanh()
        return self.last(h)


class Noise(nn.Module):
    """A variance that is learned and stays above a floor."""

    def __init__(self, first):
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(math.log(math.expm1(first - LEAST_NOISE))))

    def forward(self):
        return LEAST_NOISE + nn.functional.softplus(self.raw)


def surprise(y, mean, variance):
    """The mean negative log density of a Gaussian."""
    return 0.5 * (math.log(2 * math.pi) + variance.log() + (y - mean) ** 2 / variance).mean()


class Deep(nn.Module):
    """What all of them have."""

    def __init__(self, x, y, outputs):
        super().__init__()
        self.x, self.y = x, y
        self.network = Residual(x.shape[1], outputs)

    def rounds(self, settings):
        """How often the validation rows are looked at, at most."""
        return settings["epochs"]

    def batches(self):
        """The rows of the steps between two looks: here an epoch, without the rows that fill no batch."""
        order = torch.randperm(len(self.y))
        return order[: len(order) // BATCH * BATCH or None].split(BATCH)

    def ready(self):
        """Comes between steps and predictions."""
        self.eval()


class Plain(Deep):
    def __init__(self, x, y, settings):
        super().__init__(x, y, 1)
        self.noise = Noise(settings["noise"])

    def loss(self, rows):
        return surprise(self.y[rows], self.network(self.x[rows])[:, 0], self.noise())

    def predict(self, x):
        mean = self.network(x)[:, 0]
        return mean, self.noise().sqrt().expand_as(mean)


def posterior(phi, y, noise):
    """Cholesky factor of the features' Gram matrix with the noise on its diagonal, and the mean of the weights."""
    gram = phi.T @ phi
    gram.diagonal().add_(noise)
    factor = torch.linalg.cholesky(gram)
    return factor, torch.cholesky_solve((phi.T @ y)[:, None], factor)[:, 0]


class Evidence(torch.autograd.Function):
    """Log evidence of y under N(0, phi phi' + noise I) in time linear in the rows, with its closed gradient in the features and the noise."""

    @staticmethod
    def forward(context, phi, y, noise):
        n, rank = phi.shape
        factor, weights = posterior(phi, y, noise)
        alpha = (y - phi @ weights) / noise
        # No difference of large numbers: the least value of the ridge objective.
        quadratic = noise * alpha.square().sum() + weights.square().sum()
        context.save_for_backward(phi, noise, factor, weights, alpha)
        return -0.5 * (n * math.log(2 * math.pi) + (n - rank) * noise.log() + quadratic) - factor.diagonal().log().sum()

    @staticmethod
    def backward(context, outer):
        phi, noise, factor, weights, alpha = context.saved_tensors
        inverse = torch.cholesky_inverse(factor)
        by_phi = torch.addr(phi @ inverse, alpha, weights, beta=-1)
        by_noise = 0.5 * (alpha.square().sum() - (len(phi) - len(weights)) / noise - inverse.trace())
        return outer * by_phi, None, outer * by_noise


class Basis(Deep):
    def __init__(self, x, y, settings):
        super().__init__(x, y, RANK)
        self.noise, self.exact = Noise(settings["noise"]), y.double()
        self.at = None

    def rounds(self, settings):
        return max(1, settings["iterations"] // LOOK)

    def batches(self):
        return [slice(None)] * LOOK

    def loss(self, rows):
        return -Evidence.apply(self.network(self.x[rows]).double(), self.exact[rows], self.noise().double()) / len(self.y)

    def ready(self):
        super().ready()
        self.at = posterior(self.network(self.x).double(), self.exact, self.noise().double())

    def predict(self, x):
        phi, noise, (factor, weights) = self.network(x).double(), self.noise().double(), self.at
        spread = torch.linalg.solve_triangular(factor, phi.T, upper=False).square().sum(0)
        return phi @ weights, (noise * (1 + spread)).sqrt()


class StochasticBasis(Deep):
    """The weights are N(mean, L L'), first as in the prior; the logarithms of the diagonal of L are learned."""

    def __init__(self, x, y, settings):
        super().__init__(x, y, RANK)
        self.noise = Noise(settings["noise"])
        self.mean, self.lower = nn.Parameter(torch.zeros(RANK)), nn.Parameter(torch.zeros(RANK, RANK))

    def factor(self):
        return self.lower.tril(-1) + self.lower.diagonal().exp().diag()

    def loss(self, rows):
        phi, factor, noise = self.network(self.x[rows]), self.factor(), self.noise()
        spread = (phi @ factor).square().sum(1).mean() / (2 * noise)
        divergence = 0.5 * (self.mean.square().sum() + factor.square().sum() - RANK) - self.lower.diagonal().sum()
        return surprise(self.y[rows], phi @ self.mean, noise) + spread + divergence / len(self.y)

    def predict(self, x):
        phi = self.network(x)
        return phi @ self.mean, ((phi @ self.factor()).square().sum(1) + self.noise()).sqrt()


def rbf(columns):
    """An RBF kernel with a variance and, for each column, a lengthscale that begins at the root of their number."""
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=columns))
    kernel.base_kernel.lengthscale = math.sqrt(columns)
    return kernel


class Inducing(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        values = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, values, learn_inducing_locations=True))
        self.level, self.covariance = gpytorch.means.ConstantMean(), rbf(points.shape[1])

    def forward(self, at):
        return gpytorch.distributions.MultivariateNormal(self.level(at), self.covariance(at))


class StochasticKernel(Deep):
    def __init__(self, x, y, settings):
        super().__init__(x, y, 2)
        self.bounds = gpytorch.utils.grid.ScaleToBounds(-1.0, 1.0)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.likelihood.noise = settings["noise"]
        with torch.no_grad():
            points = self.features(x[torch.randperm(len(x))[:RANK]])
        self.process = Inducing(points)
        self.bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.process, num_data=len(y))

    def features(self, x):
        return self.bounds(self.network(x))

    def loss(self, rows):
        return -self.bound(self.process(self.features(self.x[rows])), self.y[rows])

    def predict(self, x):
        predicted = self.likelihood(self.process(self.features(x)))
        return predicted.mean, predicted.variance.sqrt()


class Exact(gpytorch.models.ExactGP):
    """The RBF kernel on x, or on two outputs of a network."""

    def __init__(self, x, y, likelihood, deep):
        super().__init__(x, y, likelihood)
        self.level, self.covariance = gpytorch.means.ConstantMean(), rbf(2 if deep else x.shape[1])
        self.features = nn.Sequential(Residual(x.shape[1], 2), gpytorch.utils.grid.ScaleToBounds(-1.0, 1.0)) if deep else nn.Identity()

    def forward(self, x):
        at = self.features(x)
        return gpytorch.distributions.MultivariateNormal(self.level(at), self.covariance(at))


PEERS = {"torch-network": Plain, "gpytorch-svdkl": StochasticKernel, "torch-dbk": Basis, "torch-svdbk": StochasticBasis}


# What a process of its own does for a peer.


def optimiser(model, settings):
    others = [values for name, values in model.named_parameters() if not name.startswith("network.")]
    groups = [{"params": model.network.parameters(), "weight_decay": settings["decay"]}, {"params": others}]
    return torch.optim.Adam(groups, lr=settings["rate"])


def step(model, adam, rows):
    adam.zero_grad()
    model.loss(rows).backward()
    adam.step()


def predicted(model, x):
    with torch.no_grad():
        return [values.double().numpy() for values in model.predict(x)]


def lasted(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ready(model):
    with torch.no_grad():
        model.ready()


def fit(name, settings, train, validation, test):
    """Trains with the validation rows as judge and puts back the best weights."""
    (x, y), (x_judge, _), (x_test, _) = (tensors(*part) for part in (train, validation, test))
    began = time.perf_counter()
    model = PEERS[name](x, y, settings)
    adam = optimiser(model, settings)
    best, kept, since, ended = math.inf, model.state_dict(), 0, "at its limit"
    for look in range(model.rounds(settings)):
        model.train()
        for rows in model.batches():
            step(model, adam, rows)
        ready(model)
        nll = scores(*predicted(model, x_judge), validation[1])["nll"]
        since += 1
        if nll < best:
            best, since = nll, 0
            kept = {key: values.clone() for key, values in model.state_dict().items()}
        if since == PATIENCE:
            ended = "by patience"
            break
        if time.perf_counter() - began > settings["seconds"]:
            ended = f"after {settings['seconds']:.0f} s"
            break
    model.load_state_dict(kept)
    ready(model)
    taken = time.perf_counter() - began
    mean, deviation = predicted(model, x_test)
    return {"seconds": taken, "note": f"ended {ended}, looks: {look + 1}", "mean": mean.tolist(), "deviation": deviation.tolist()}


def timed(name, settings, train, test):
    """Steps one by one and predictions of all test rows, the first few unseen."""
    (x, y), (x_test, _) = (tensors(*part) for part in (train, test))
    model = PEERS[name](x, y, settings)
    adam = optimiser(model, settings)
    model.train()
    endless = itertools.chain.from_iterable(model.batches() for _ in itertools.count())
    count = settings["all" if name == "torch-dbk" else "batch"]
    steps = [lasted(lambda: step(model, adam, rows)) for rows in itertools.islice(endless, count + 3)]
    ready(model)
    predictions = [lasted(lambda: predicted(model, x_test)) for _ in range(settings["repeats"] + 3)]
    return {"rows": len(y), "step": float(np.median(steps[3:])), "row": float(np.median(predictions[3:])) / len(x_test)}


def exact(name, settings, train):
    """Steps on the exact evidence by GPyTorch: Cholesky for few rows, then at most 512 conjugate gradients."""
    x, y = tensors(*train)
    began = time.perf_counter()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = settings["noise"]
    model = Exact(x, y, likelihood, deep=name == "gpytorch-dkl")
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    adam = torch.optim.Adam(model.parameters(), lr=settings["rate"])
    model.train()
    with gpytorch.settings.max_cg_iterations(512):
        for _ in range(settings["iterations"]):
            adam.zero_grad()
            (-evidence(model(x), y)).backward()
            adam.step()
    return {"seconds": time.perf_counter() - began}


def one(work, name, folder):
    """A peer's fit in this process, the result as JSON."""

    def peak():
        # Never below the peak of the process that started this one, which has loaded the same libraries.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    # What is imported by the first step of all.
    small = nn.Linear(1, 1)
    adam = torch.optim.Adam(small.parameters())
    small(torch.ones(1, 1)).sum().backward()
    adam.step()
    libraries = peak()
    settings, stored = json.loads((folder / "settings.json").read_text()), np.load(folder / "parts.npz")
    torch.manual_seed(settings["seed"])
    parts = {part: (stored[f"x_{part}"], stored[f"y_{part}"]) for part in ("train", "validation", "test") if f"x_{part}" in stored}
    found = {"fit": fit, "timed": timed, "exact": exact}[work](name, settings, **parts)
    print(json.dumps(found | {"memory": peak(), "libraries": libraries}))


# What starts those processes, and ours.


def run(words, seconds, memory, **options):
    """What a command printed, or an error: that it took too long or too much memory, or what it said last."""

    def bounded():
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 1e9),) * 2)

    try:
        out = subprocess.run(words, capture_output=True, text=True, timeout=seconds, preexec_fn=bounded, **options)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"ended after {seconds:.0f} s") from error
    if out.returncode != 0:
        lines = out.stderr.strip().splitlines()
        # Ours begins with what is wrong, Python ends with it.
        said = next((line for line in lines if line.startswith("error")), lines[-1] if lines else f"ended with {out.returncode}")
        killed = out.returncode == -signal.SIGKILL
        short = killed or any(word in out.stderr for word in ("MemoryError", "allocate memory", "memory allocation", "--memory", "bad_alloc"))
        raise RuntimeError(("out of memory: " if short else "") + ("killed by the system" if killed else said[:200]))
    return out.stdout


def peer(work, name, folder, arguments):
    # A fit ends by itself at the first look after its time is up, and is scored.
    seconds = 1.5 * arguments.seconds + 60 if work == "fit" else arguments.seconds
    return json.loads(run([sys.executable, __file__, "one", work, name, str(folder)], seconds, arguments.memory).splitlines()[-1])


def posterior_run(words, folder, arguments):
    """Our program in the folder, and what it reports."""
    words = [str(arguments.posterior.resolve()), *words, "--json", "--quiet"]
    return json.loads(run(words, arguments.seconds, arguments.memory, cwd=folder))


def our_fit(flags, folder, arguments):
    words = ["fit", "train.csv", "--target", "y", *flags, "--seed", str(arguments.seed), "--memory", f"{arguments.memory:g}"]
    return posterior_run([*words, "--output", "m.posterior", "--force"], folder, arguments)


def our_prediction(out, folder, arguments, *flags):
    return posterior_run(["predict", "m.posterior", "test.csv", "--output", out, "--force", *flags], folder, arguments)


def write(folder, arguments, ours, **parts):
    """What both sides read: for peers everything and the settings, for ours the parts in `ours` as CSV, each put together of some of them."""
    settings = {key: value for key, value in vars(arguments).items() if isinstance(value, int | float)}
    (folder / "settings.json").write_text(json.dumps(settings))
    np.savez(folder / "parts.npz", **{f"{side}_{name}": values for name, part in parts.items() for side, values in zip("xy", part)})
    for name, of in ours.items():
        rows = np.concatenate([np.column_stack(parts[part]) for part in of])
        header = ",".join([f"x{j + 1}" for j in range(rows.shape[1] - 1)] + ["y"])
        np.savetxt(folder / f"{name}.csv", rows, fmt="%.9g", delimiter=",", header=header, comments="")


def tried(work):
    """What a method gives, or why it gave nothing."""
    try:
        return work()
    except Exception as error:  # what fails is said, and the others go on
        return {"failed": str(error)}


def megabytes(found):
    libraries = f" ({found['libraries'] / 1e6:.0f} of libraries)" if "libraries" in found else ""
    return f"{found['memory'] / 1e6:7.0f} MB{libraries}"


def asked(known, arguments):
    """The methods that were asked for, without ours where there is no binary."""
    names = arguments.methods or known
    if unknown := set(names) - set(known):
        sys.exit(f"--methods: {', '.join(sorted(unknown))} is none of {', '.join(known)}")
    return [name for name in names if arguments.posterior or not name.startswith("posterior-")]


def keep(rows, row, arguments):
    """Results so far, in the file of --json."""
    rows.append(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def tables(arguments):
    runs = {name: lambda folder, name=name: peer("fit", name, folder, arguments) for name in PEERS}

    def ours(flags, folder):
        fitted = our_fit(flags, folder, arguments)
        our_prediction("p.csv", folder, arguments)
        found = np.genfromtxt(folder / "p.csv", delimiter=",", names=True)
        return {
            "seconds": fitted["seconds"],
            "memory": fitted["peak_memory_bytes"],
            "note": fitted["method"],
            "mean": found["y_mean"],
            "deviation": found["y_std"],
        }

    runs |= {f"posterior-{name}": lambda folder, flags=flags: ours(flags, folder) for name, flags in OURS.items()}
    rows = []
    for name in arguments.names or TABLES:
        x, y = table(name, arguments.data)
        for seed in arguments.seeds:
            arguments.seed = seed
            parts = split(x, y, seed, arguments.rows)
            sizes = ", ".join(f"{len(part[1])} {key}" for key, part in parts.items())
            print(f"{name}, seed {seed}: {sizes} rows, {x.shape[1]} columns", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                folder = Path(folder)
                write(folder, arguments, {"train": ("train", "validation"), "test": ("test",)}, **parts)
                for method in asked(runs, arguments):
                    found = tried(lambda: runs[method](folder))
                    if "failed" not in found:
                        found |= scores(np.array(found.pop("mean")), np.array(found.pop("deviation")), parts["test"][1])
                    keep(rows, {"table": name, "seed": seed, "method": method} | found, arguments)
                    print(f"  {method:16} {found.get('failed') or scored(found) + '  ' + megabytes(found) + '  ' + found['note']}", flush=True)
        if len(arguments.seeds) > 1:
            print(f"{name}: means over {len(arguments.seeds)} seeds")
            for method in asked(runs, arguments):
                done = [row for row in rows if row["table"] == name and row["method"] == method and "failed" not in row]
                if done:
                    means = {key: np.mean([row[key] for row in done]) for key in ("mae", "rmse", "nll", "coverage", "seconds")}
                    spread = np.std([row["nll"] for row in done])
                    print(f"  {method:16} {scored(means)}  NLL's deviation {spread:.4f}, {len(done)} fits", flush=True)


def scored(found):
    return (
        f"MAE {found['mae']:.4f}  RMSE {found['rmse']:.4f}  NLL {found['nll']:8.4f}  within 90 % {100 * found['coverage']:5.1f} %  "
        f"{found['seconds']:8.1f} s"
    )


def steps(arguments):
    runs = {name: lambda folder, name=name: peer("timed", name, folder, arguments) for name in PEERS if name != "torch-network"}

    def ours(of, flags, folder):
        few = getattr(arguments, of)
        differences, predictions = [], []
        for _ in range(arguments.repeats):
            short, long = (our_fit([*flags, "--set", f"iterations={k * few}"], folder, arguments) for k in (1, 2))
            differences.append((long["seconds"] - short["seconds"]) / few)
        for _ in range(arguments.repeats):
            every, single = (our_prediction("p.npy", folder, arguments, *limit) for limit in ([], ["--limit", "1"]))
            predictions.append((every["seconds"] - single["seconds"]) / (every["n"] - 1))
        done = [fitted.get("steps") for fitted in (short, long)]
        note = "" if done == [few, 2 * few] else f"the program says that it took {done[0]} and {done[1]} steps, not {few} and {2 * few}"
        return {
            "rows": long["n"],
            "step": float(np.median(differences)),
            "row": float(np.median(predictions)),
            "memory": long["peak_memory_bytes"],
            "note": note,
        }

    runs |= {f"posterior-{name}": lambda folder, of=of, flags=flags: ours(of, flags, folder) for name, (of, flags) in STEPPED.items()}
    rows = []
    arguments.seed = arguments.seeds[0]
    for name in arguments.names or ["protein"]:
        x, y = table(name, arguments.data)
        parts = split(x, y, arguments.seed, arguments.rows)
        del parts["validation"]
        print(f"{name}: {len(parts['train'][1])} rows to learn from, {len(parts['test'][1])} to predict, {x.shape[1]} columns", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            # Rows to predict again and again, so many that what a program takes to start does not matter.
            copies = -(-100_000 // len(parts["test"][1]))
            write(folder, arguments, {"train": ("train",), "test": ("test",) * copies}, **parts)
            for method in asked(runs, arguments):
                found = tried(lambda: runs[method](folder))
                keep(rows, {"table": name, "method": method} | found, arguments)
                if "failed" in found:
                    print(f"  {method:16} {found['failed']}", flush=True)
                    continue
                print(
                    f"  {method:16} {found['rows']:7} rows  {1e3 * found['step']:9.3f} ms a step  {1e6 * found['row']:8.3f} us to predict a row  "
                    f"{megabytes(found)}  {found.get('note', '')}",
                    flush=True,
                )


def scaling(arguments):
    runs = {name: lambda folder, name=name: peer("exact", name, folder, arguments) for name in ("gpytorch-gp", "gpytorch-dkl")}

    def ours(flag, flags, folder):
        fitted = our_fit([*flags, "--set", f"{flag}={arguments.iterations}"], folder, arguments)
        taken = fitted.get("steps")
        note = {} if taken == arguments.iterations else {"note": f"the program says that it took {taken} steps"}
        return {"seconds": fitted["seconds"], "memory": fitted["peak_memory_bytes"]} | note

    runs |= {f"posterior-{name}": lambda folder, flag=flag, flags=flags: ours(flag, flags, folder) for name, (flag, flags) in SCALED.items()}
    rows, over = [], {}
    arguments.seed = arguments.seeds[0]
    print(f"{'rows':>9}  {'method':16} {'seconds':>9}  {'memory':>10}   of {arguments.iterations} steps")
    for n in sorted(arguments.sizes):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            write(folder, arguments, {"train": ("train",)}, train=curve(n, arguments.seed))
            for method in asked(runs, arguments):
                found = {"failed": f"left out: with {over[method]} rows it gave nothing"} if method in over else tried(lambda: runs[method](folder))
                keep(rows, {"n": n, "method": method, "iterations": arguments.iterations} | found, arguments)
                if "failed" in found:
                    over.setdefault(method, n)
                    print(f"{n:9}  {method:16} {found['failed']}", flush=True)
                else:
                    print(f"{n:9}  {method:16} {found['seconds']:9.2f}  {megabytes(found)}  {found.get('note', '')}", flush=True)


def page(arguments):
    """Seconds and megabytes against rows, a line for each method; a cross stands where one gave nothing."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "posterior", "font.family": "sans-serif"})
    from matplotlib import pyplot

    rows = json.loads(arguments.results.read_text())
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    panels = zip(axes, ("seconds", "memory"), (f"seconds of {rows[0]['iterations']} steps", "megabytes of the process, libraries included"))
    for axis, key, title in panels:
        for k, method in enumerate(methods):
            own = [row for row in rows if row["method"] == method]
            done = [(row["n"], row[key] / (1e6 if key == "memory" else 1)) for row in own if "failed" not in row]
            failed = next((row["n"] for row in own if "failed" in row), None)
            (line,) = axis.loglog(*zip(*done), "o-" if method.startswith("posterior") else "s--", color=f"C{k}", label=method)
            if failed:
                # At the top, whatever the scale.
                axis.plot([failed], [0.97 - 0.04 * k], "x", color=line.get_color(), markersize=9, transform=axis.get_xaxis_transform())
        axis.set_xlabel("rows")
        axis.set_title(title)
        axis.grid(alpha=0.3, which="both", linewidth=0.4)
    axes[0].legend(title="x: ended, by time or memory", fontsize=8)
    figure.savefig(arguments.page, metadata={"Date": None})


def main():
    def listed(kind):
        return lambda text: [kind(word) for word in text.split(",")]

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--posterior", type=Path, help="our binary; without it only peers are run")
    common.add_argument("--methods", type=listed(str), help="those to run, by comma [all]")
    common.add_argument("--seeds", type=listed(int), default=[0], help="of the split and everything random, by comma; steps and scaling take the first [0]")
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    common.add_argument("--memory", type=float, default=round(0.7 * gigabytes, 1), help="gigabytes that a process may take [%(default)s]")
    common.add_argument("--rate", type=float, default=1e-3, help="Adam's step size in peers [%(default)s]")
    common.add_argument("--noise", type=float, default=0.3, help="first noise variance of peers [%(default)s]")
    common.add_argument("--decay", type=float, default=1e-5, help="weight decay of peers' networks [%(default)s]")
    common.add_argument("--json", type=Path, help="file to write all results to as well")
    of_tables = argparse.ArgumentParser(add_help=False)
    of_tables.add_argument("names", nargs="*", metavar="TABLE", help=f"such as {', '.join(TABLES)}")
    of_tables.add_argument("--data", type=Path, default=SHARED, help="folder of tables, or the one that holds data/uci [../shared]")
    of_tables.add_argument("--rows", type=int, help="take only so many rows of a table, by chance")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="work", required=True)
    made = kinds.add_parser("tables", parents=[common, of_tables])
    made.add_argument("--iterations", type=int, default=10_000, help="steps of torch-dbk at most [%(default)s]")
    made.add_argument("--epochs", type=int, default=2000, help="of the other peers at most [%(default)s]")
    made.add_argument("--seconds", type=float, default=3600, help="of a fit at most: peers are then scored as they are, ours is ended [%(default)s]")
    made = kinds.add_parser("steps", parents=[common, of_tables])
    made.add_argument("--all", type=int, default=20, help="steps on all rows that are timed [%(default)s]")
    made.add_argument("--batch", type=int, default=300, help="steps on a batch that are timed [%(default)s]")
    made.add_argument("--repeats", type=int, default=5, help="differences of our fits, and predictions [%(default)s]")
    made.add_argument("--seconds", type=float, default=600, help="of a process at most [%(default)s]")
    made = kinds.add_parser("scaling", parents=[common])
    made.add_argument("sizes", nargs="*", type=int, default=[10**k for k in range(2, 7)], help="numbers of rows [100 1000 10000 100000 1000000]")
    made.add_argument("--iterations", type=int, default=100, help="steps of all methods [%(default)s]")
    made.add_argument("--seconds", type=float, default=600, help="of a process at most [%(default)s]")
    made = kinds.add_parser("page")
    made.add_argument("results", type=Path, help="what `scaling --json` wrote")
    made.add_argument("page", type=Path, help="the picture: .svg, .pdf or .png")
    arguments = parser.parse_args()
    if arguments.work == "page":
        return page(arguments)
    libraries = f"PyTorch {torch.__version__} with {torch.get_num_threads()} threads, GPyTorch {gpytorch.__version__}"
    print(f"{os.cpu_count()} cores; {libraries}; at most {arguments.memory:g} GB and {arguments.seconds:g} s a process", flush=True)
    {"tables": tables, "steps": steps, "scaling": scaling}[arguments.work](arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main()
