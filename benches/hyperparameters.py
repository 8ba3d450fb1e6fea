"""Hyperparameters of all rows by several searches: the exact log evidence of each, in nats a row, beside seconds and products with the matrix.

    python3 benches/hyperparameters.py target/release/posterior pol.csv.gz --target y --rows 5000

Rows are drawn at random; every search sees the same. Evidence is that of an exact fit with the hyperparameters that a search found, so that all are judged alike; what a search
maximises has the weak prior on lengthscales beside it. `--searches gpytorch` (where it is installed) is Adam on GPyTorch's exact evidence of the same rows."""
import argparse
import csv
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

SEARCHES = {
    "exact": None,
    "blocks": ["--set", "hyperparameter-search=blocks"],
    "stochastic": ["--set", "hyperparameter-search=stochastic"],
    "stochastic, cg": ["--set", "hyperparameter-search=stochastic", "--set", "search-solver=cg", "--set", "search-passes=2"],
    "refined": ["--set", "hyperparameter-search=refined", "--set", "refining-rows=0", "--set", "steps=50"],
}


def drawn(path, rows, seed):
    """Header and some rows of a table."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as source:
        header, *body = list(csv.reader(source))
    random.Random(seed).shuffle(body)
    return [header, *body[:rows]]


def by_gpytorch(table, target, steps, threads):
    """Seconds of the search, and hyperparameters as our program reads them, after steps of Adam (0.1) on the evidence by Cholesky factors in double precision."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
    import gpytorch
    import numpy as np
    import torch
    from process_exact import Process

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    with table.open(newline="") as source:
        header, *body = list(csv.reader(source))
    numbers = np.array(body, dtype=float)
    centre, deviation = numbers.mean(axis=0), numbers.std(axis=0)
    deviation[deviation == 0] = 1
    numbers = torch.from_numpy((numbers - centre) / deviation)
    at = header.index(target)
    y, x = numbers[:, at].contiguous(), numbers[:, [i for i in range(len(header)) if i != at]].contiguous()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    process = Process(x, y, likelihood).double()
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
    optimiser = torch.optim.Adam(process.parameters(), lr=0.1)
    begun = time.perf_counter()
    with gpytorch.settings.max_cholesky_size(len(y) + 1), gpytorch.settings.fast_computations(False, False, False):
        for _ in range(steps):
            optimiser.zero_grad()
            loss = -evidence(process(x), y)
            loss.backward()
            optimiser.step()
    seconds = time.perf_counter() - begun
    found = {
        "matern32.variance": process.covariance.outputscale,
        "matern32.lengthscale": process.covariance.base_kernel.lengthscale,
        "mean.constant": process.level.constant,
        "noise_variance": likelihood.noise,
    }
    return seconds, {name: value.detach().flatten().tolist() for name, value in found.items()}


def main():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("binary", type=pathlib.Path)
    made.add_argument("table", type=pathlib.Path, help="a CSV file, .gz or not")
    made.add_argument("--target", required=True)
    made.add_argument("--rows", type=int, default=5000)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--searches", default=",".join(name for name in SEARCHES if "cg" not in name))
    made.add_argument("--adam-steps", type=int, default=60, help="of GPyTorch")
    arguments = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        table = folder / "table.csv"
        with table.open("w", newline="") as out:
            csv.writer(out).writerows(drawn(arguments.table, arguments.rows, arguments.seed))

        def fit(*flags):
            line = [arguments.binary, "fit", table, "--target", arguments.target, "--threads", arguments.threads]
            line += ["--json", "--quiet", "--force", *flags]
            return json.loads(subprocess.run([str(part) for part in line], check=True, capture_output=True, text=True).stdout)

        for name in arguments.searches.split(","):
            model = folder / "searched.posterior"
            begun = time.perf_counter()
            if name == "gpytorch":
                found, model = {}, folder / "gpytorch.json"
                seconds, values = by_gpytorch(table, arguments.target, arguments.adam_steps, arguments.threads)
                model.write_text(json.dumps(values))
            elif SEARCHES[name] is None:
                found = fit("--method", "exact", "--set", "restarts=1", "--output", model)
            else:
                common = ["--method", "cg", "--set", "iterations=1", "--set", "samples=16", "--held-back", 0, "--calibrate", "none", "--fresh"]
                found = fit(*common, *SEARCHES[name], "--output", model)
            if name != "gpytorch":
                seconds = time.perf_counter() - begun
            judged = fit("--method", "exact", "--hyperparameters", model, "--output", folder / "judged.posterior")
            search = (found.get("large_table") or {}).get("search") or {}
            report = {
                "table": arguments.table.name,
                "search": name,
                "evidence_of_a_row": round(judged["log_evidence"] / judged["n"], 4),
                "seconds": round(seconds, 1),
                "steps": found.get("steps", arguments.adam_steps),
                "products": search.get("passes"),
                "last_gain": search.get("last_gain"),
            }
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
