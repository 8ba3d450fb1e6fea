"""What a user gets without choosing: `posterior fit` with its defaults under a budget of time, on fifteen tables, beside gradient boosting and SVGP.

Seven tables of the shared folder and eight made here, of 8,000 to a million rows and 2 to 90 columns. A tenth of the rows, drawn at
random with a seed of its own, is scored and seen by neither. Scores are in standard deviations of the training targets. Boosting is
scikit-learn's HistGradientBoostingRegressor with early stopping: its usual settings, then random ones while there are seconds, of which a tenth of the training rows chooses;
another tenth makes its intervals conformal (one width for all rows) and tells the deviation of its density.
GPyTorch's SVGP, where it is installed, has the same seconds on as many threads: 512 inducing points, Matern-3/2 with a lengthscale for each
column, batches of 1,024 rows, Adam with steps of 0.01, single precision, on standardised columns; a last tenth of the seconds has smaller steps.
Each of the two has a process of its own, whose peak is told (the table, which both are handed, among it). `behind` is by how much the mean negative log density of the scored rows is worse than that of the best of the three, with the standard error of that difference, row by row.
Needs numpy, pandas and scikit-learn, and the program's binary.

    python3 benches/peers/tables_automatic.py --posterior target/release/posterior --budget 60 [NAME ...]
"""

import argparse
import json
import multiprocessing
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

SHARED = ["kin8nm", "power-plant", "naval-propulsion-plant", "pol", "bike", "protein", "keggdirected"]


def smooth_low(rng):
    """Two inputs, smooth, noise of a twentieth of the deviation."""
    x = rng.uniform(-2, 2, (20_000, 2))
    f = np.sin(2 * x[:, 0]) * np.cos(x[:, 1]) + 0.3 * x[:, 1]
    return x, f + 0.05 * f.std() * rng.standard_normal(len(f))


def rough_high(rng):
    """Five inputs, many waves, as much noise as a half of the deviation."""
    x = rng.uniform(0, 1, (30_000, 5))
    w = rng.standard_normal((40, 5)) * 4
    f = np.cos(x @ w.T + rng.uniform(0, 2 * np.pi, 40)) @ rng.standard_normal(40)
    return x, f + 0.5 * f.std() * rng.standard_normal(len(f))


def sparse(rng):
    """Thirty inputs, five of which matter."""
    x = rng.standard_normal((15_000, 30))
    f = np.tanh(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) - 0.5 * x[:, 4]
    return x, f + 0.2 * f.std() * rng.standard_normal(len(f))


def steps(rng):
    """Eight inputs, jumps, which smooth kernels are worst at."""
    x = rng.uniform(-1, 1, (10_000, 8))
    f = np.sign(x[:, 0]) + (x[:, 1] > 0.3) * (x[:, 2] < 0.2) + 0.5 * np.floor(2 * x[:, 3]) + 0.3 * x[:, 4]
    return x, f + 0.1 * f.std() * rng.standard_normal(len(f))


def tracks(rng):
    """Three inputs along 200 tracks (neighbours are much closer than tracks), columns on very unlike scales."""
    t = rng.uniform(0, 1, 50_000)
    starts, ends = rng.uniform(-1, 1, (200, 3)), rng.uniform(-1, 1, (200, 3))
    k = rng.integers(0, 200, len(t))
    x = starts[k] + t[:, None] * (ends[k] - starts[k]) + 0.002 * rng.standard_normal((len(t), 3))
    f = np.sin(3 * x[:, 0] + x[:, 1]) + x[:, 2] ** 2
    return x * [1.0, 1e3, 1e-2] + [0, 5e4, 0], f + 0.1 * f.std() * rng.standard_normal(len(f))


def wide(rng):
    """Ninety inputs in groups that go together, a dozen of which matter a little each."""
    groups = rng.standard_normal((40_000, 15))
    x = np.repeat(groups, 6, axis=1) + 0.5 * rng.standard_normal((40_000, 90))
    f = sum(np.sin(x[:, 6 * k] + 0.5 * x[:, 6 * k + 7]) for k in range(12)) + 0.3 * x[:, 3] * x[:, 50]
    return x, f + 0.3 * f.std() * rng.standard_normal(len(f))


def clocks(rng):
    """Three hundred thousand rows of seven columns, three of them whole numbers (hour, day, place) that the target repeats in."""
    n = 300_000
    hour, day, place = rng.integers(0, 24, n), rng.integers(0, 7, n), rng.integers(0, 12, n)
    z = rng.standard_normal((n, 4))
    of_place = rng.standard_normal(12)
    f = np.sin(2 * np.pi * hour / 24) * (1 + 0.5 * (day > 4)) + of_place[place] + np.tanh(z[:, 0]) - 0.3 * z[:, 1] ** 2
    return np.column_stack([hour, day, place, z]), f + 0.4 * f.std() * rng.standard_normal(n)


def million(rng):
    """A million rows of six columns: waves of several lengths."""
    x = rng.uniform(0, 1, (1_000_000, 6))
    w = rng.standard_normal((60, 6)) * rng.choice([1.5, 4.0, 8.0], (60, 1))
    f = sum(a * np.cos(x @ row + phase) for a, row, phase in zip(rng.standard_normal(60), w, rng.uniform(0, 2 * np.pi, 60)))
    return x, f + 0.2 * f.std() * rng.standard_normal(len(f))


MADE = {
    "smooth-low": smooth_low,
    "rough-high": rough_high,
    "sparse": sparse,
    "steps": steps,
    "tracks": tracks,
    "wide": wide,
    "clocks": clocks,
    "million": million,
}


def table(name, folder):
    if name in MADE:
        x, y = MADE[name](np.random.default_rng(20_261_122))
        frame = pd.DataFrame(x, columns=[f"x{i + 1}" for i in range(x.shape[1])])
        return frame.assign(y=y)
    return pd.read_csv(folder / "data" / "uci" / f"{name}.csv.gz")


def gaussian_scores(y, mean, deviation):
    z = (y - mean) / deviation
    surprises = np.asarray(0.5 * z**2 + np.log(deviation) + 0.5 * np.log(2 * np.pi))
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "nll": float(np.mean(surprises)),
        "coverage": float(np.mean(np.abs(z) < 1.96)),
        "surprises": surprises,
    }


def boosting(train, test, scale, seconds):
    began = time.time()
    rng = np.random.default_rng(1)
    kept, tenth = rng.permutation(len(train)), len(train) // 10
    parts = [train.iloc[rows] for rows in (kept[:tenth], kept[tenth : 2 * tenth], kept[2 * tenth :])]
    (xc, yc), (xi, yi), (xf, yf) = [(part.drop(columns="y").to_numpy(), part["y"].to_numpy()) for part in parts]
    best, tried, longest = (np.inf, None), 0, 0.0
    while tried == 0 or time.time() - began + longest < seconds:
        settings = {} if tried == 0 else {
            "learning_rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
            "max_leaf_nodes": int(rng.choice([15, 31, 63, 127, 255])),
            "min_samples_leaf": int(rng.choice([5, 20, 50])),
            "l2_regularization": float(rng.choice([0.0, 1.0, 10.0])),
        }
        one = time.time()
        model = HistGradientBoostingRegressor(max_iter=2000, early_stopping=True, random_state=tried, **settings)
        model.fit(xf, yf)
        error = np.mean((yc - model.predict(xc)) ** 2)
        best = min(best, (error, model), key=lambda own: own[0])
        tried, longest = tried + 1, max(longest, time.time() - one)
    residuals = np.sort(np.abs(yi - best[1].predict(xi)))
    half = residuals[min(int(np.ceil(0.95 * (len(residuals) + 1))), len(residuals)) - 1]
    deviation = np.sqrt(np.mean(residuals**2))
    y, mean = test["y"].to_numpy(), best[1].predict(test.drop(columns="y").to_numpy())
    scores = gaussian_scores(y / scale, mean / scale, deviation / scale)
    scores["coverage"] = float(np.mean(np.abs(y - mean) <= half))
    return scores | {"seconds": round(time.time() - began, 1), "tried": tried}


def apart(work, *arguments):
    """What a peer says in a process of its own, with its peak."""
    here, there = multiprocessing.Pipe()

    def run():
        said = work(*arguments)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        there.send(said and said | {"peak_memory_bytes": peak})

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    there.close()
    said = here.recv()
    child.join()
    return said


def compared(entries):
    """By how much each is behind the best, with the standard error of that, row by row; without the surprises."""
    surprises = {name: own.pop("surprises") for name, own in entries.items() if own and "surprises" in own}
    best = min(surprises, key=lambda name: surprises[name].mean())
    for name, own in surprises.items():
        difference = own - surprises[best]
        entries[name]["behind"] = [float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))]
    return entries


def svgp(train, test, scale, seconds, threads):
    """Inducing points for as many seconds; none where GPyTorch is not installed."""
    try:
        import gpytorch
        import torch
        from process_svgp import Bound
    except ImportError:
        return None
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    columns = train.columns.drop("y")
    centre, spread = train.mean(), train.std().replace(0, 1)

    def tensors(frame):
        own = ((frame - centre) / spread).astype("float32")
        return torch.tensor(own[columns].to_numpy()), torch.tensor(own["y"].to_numpy())

    (x, y), (xt, _) = tensors(train), tensors(test)
    model = Bound(x[torch.randperm(len(x))[:512]].clone())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    began, steps = time.time(), 0
    while (used := time.time() - began) < seconds:
        for group in optimiser.param_groups:
            group["lr"] = 0.01 if used < 0.9 * seconds else 0.001
        batch = torch.randint(len(y), (1024,))
        optimiser.zero_grad()
        loss = -bound(model(x[batch]), y[batch])
        loss.backward()
        optimiser.step()
        steps += 1
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        parts = [likelihood(model(part)) for part in xt.split(4096)]
    mean = torch.cat([part.mean for part in parts]).double().numpy() * spread["y"] + centre["y"]
    deviation = torch.cat([part.variance for part in parts]).double().sqrt().numpy() * spread["y"]
    scores = gaussian_scores(test["y"].to_numpy() / scale, mean / scale, deviation / scale)
    return scores | {"seconds": round(time.time() - began, 1), "epochs": round(steps * 1024 / len(y), 1)}


def ours(binary, flags, train, test, scale, work):
    train.to_csv(work / "train.csv", index=False)
    test.to_csv(work / "test.csv", index=False)
    began = time.time()
    fit = [binary, "--json", "fit", "train.csv", "--target", "y", *flags, "--output", "m.posterior", "--force"]
    fitted = subprocess.run(fit, cwd=work, capture_output=True, text=True)
    seconds = time.time() - began
    if fitted.returncode != 0:
        return {"error": fitted.stderr[-300:], "seconds": round(seconds, 1)}
    report = json.loads(fitted.stdout)
    subprocess.run([binary, "predict", "m.posterior", "test.csv", "--output", "p.csv", "--force"], cwd=work, check=True, capture_output=True)
    predicted = pd.read_csv(work / "p.csv")
    means, deviations = predicted["y_mean"].to_numpy(), predicted["y_std"].to_numpy()
    scores = gaussian_scores(test["y"].to_numpy() / scale, means / scale, deviations / scale)
    check = report.get("check") or {}
    return scores | {
        "seconds": round(seconds, 1),
        "method": report["method"],
        "converged": check.get("converged"),
        "warnings": check.get("warnings"),
        "held_back": check.get("scores"),
        "tried": check.get("tried"),
        "peak_memory_bytes": report["peak_memory_bytes"],
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", default=SHARED + list(MADE))
    arguments.add_argument("--posterior", default="target/release/posterior")
    arguments.add_argument("--budget", type=float, default=60)
    arguments.add_argument("--flags", default="", help="further flags of the fit")
    arguments.add_argument("--threads", type=int, default=2, help="of the peers")
    arguments.add_argument("--programs", default="posterior,boosting,svgp", help="which to run")
    arguments.add_argument("--seed", type=int, default=11, help="of the tenth that is scored")
    arguments.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[3] / "shared")
    a = arguments.parse_args()
    binary = str(Path(a.posterior).resolve())
    for name in a.names:
        try:
            rows = table(name, a.data)
        except FileNotFoundError as missing:
            print(json.dumps({"table": name, "skipped": str(missing)}))
            continue
        order = np.random.default_rng(a.seed).permutation(len(rows))
        test, train = rows.iloc[order[: len(order) // 10]], rows.iloc[order[len(order) // 10 :]]
        scale = train["y"].std()
        own = None
        if "posterior" in a.programs:
            with tempfile.TemporaryDirectory() as work:
                flags = ["--time-budget", f"{a.budget}s", *a.flags.split()]
                own = ours(binary, flags, train, test, scale, Path(work))
        shape = {"table": name, "rows": len(train), "columns": rows.shape[1] - 1}
        peers = {
            "boosting": lambda: apart(boosting, train, test, scale, a.budget),
            "svgp": lambda: apart(svgp, train, test, scale, a.budget, a.threads),
        }
        entries = {"posterior": own} | {peer: run() for peer, run in peers.items() if peer in a.programs}
        print(json.dumps(shape | compared(entries)), flush=True)


if __name__ == "__main__":
    main()
