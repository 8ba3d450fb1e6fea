"""A million rows learned and a million predicted, beside one epoch of GPyTorch's SVGP on the same rows.

    python3 benches/peers/million_rows.py --posterior target/release/posterior [--rows 1000000] [--flags "--method sdd"]

Eight uniform columns, a function of forty waves of all of them, noise of a third of its deviation. Files are Parquet. Ours is `fit` with a budget of
time and nothing else that is chosen, then `predict` of as many new rows, each as a whole process. SVGP is as in `tables_automatic.py` (512 inducing points,
batches of 1,024, single precision), for one pass over the rows. Scores of the new rows, in deviations of the target. Needs numpy, pandas and pyarrow.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tables_automatic import gaussian_scores


def table(rows, rng):
    weights = np.random.default_rng(7)
    w, phase, height = weights.standard_normal((40, 8)), weights.uniform(0, 2 * np.pi, 40), weights.standard_normal(40)
    x = rng.uniform(0, 1, (rows, 8))
    f = sum(height[k] * np.cos(x @ (2.5 * w[k]) + phase[k]) for k in range(40))
    y = f / 4 + rng.standard_normal(rows) / 3
    return pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(8)]).assign(y=y)


def ours(binary, arguments, test, scale, work):
    def run(*line):
        began = time.time()
        line = [binary, *line, "--threads", str(arguments.threads), "--json", "--quiet"]
        answer = json.loads(subprocess.run(line, cwd=work, check=True, capture_output=True, text=True).stdout)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return answer, {"seconds": round(time.time() - began, 1), "peak_bytes_so_far": peak}

    fit = ["fit", "train.parquet", "--target", "y", "--time-budget", f"{arguments.budget}s", "--output", "m.posterior"]
    fitted, learning = run(*fit, *arguments.flags.split())
    _, predicting = run("predict", "m.posterior", "test.parquet", "--output", "p.parquet")
    answers = pd.read_parquet(work / "p.parquet")
    scores = gaussian_scores(test["y"] / scale, answers["y_mean"] / scale, answers["y_std"] / scale)
    return scores | {"method": fitted["method"], "fit": learning, "predict": predicting}


def epoch(train, test, scale, threads):
    import gpytorch
    import torch
    from process_svgp import Bound

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    columns = train.columns.drop("y")
    centre, spread = train.mean(), train.std()

    def tensors(frame):
        own = ((frame - centre) / spread).astype("float32")
        return torch.tensor(own[columns].to_numpy()), torch.tensor(own["y"].to_numpy())

    (x, y), (xt, _) = tensors(train), tensors(test)
    model = Bound(x[torch.randperm(len(x))[:512]].clone())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    began = time.time()
    for rows in torch.randperm(len(y)).split(1024):
        optimiser.zero_grad()
        loss = -bound(model(x[rows]), y[rows])
        loss.backward()
        optimiser.step()
    learned = time.time() - began
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        parts = [likelihood(model(part)) for part in xt.split(4096)]
    mean = torch.cat([part.mean for part in parts]).double().numpy() * spread["y"] + centre["y"]
    deviation = torch.cat([part.variance for part in parts]).double().sqrt().numpy() * spread["y"]
    scores = gaussian_scores(test["y"].to_numpy() / scale, mean / scale, deviation / scale)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return scores | {"epoch_seconds": round(learned, 1), "predict_seconds": round(time.time() - began - learned, 1), "peak_bytes": peak}


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--posterior", type=Path, default=Path("target/release/posterior"))
    made.add_argument("--rows", type=int, default=1_000_000)
    made.add_argument("--budget", type=float, default=120, help="seconds of our fit")
    made.add_argument("--flags", default="", help="further flags of the fit")
    made.add_argument("--threads", type=int, default=2)
    arguments = made.parse_args()
    rng = np.random.default_rng(20_261_129)
    train, test = table(arguments.rows, rng), table(arguments.rows, rng)
    scale = train["y"].std()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        train.to_parquet(work / "train.parquet", index=False)
        test.to_parquet(work / "test.parquet", index=False)
        found = ours(str(arguments.posterior.resolve()), arguments, test, scale, work)
        print(json.dumps({"program": "posterior", "rows": arguments.rows} | found), flush=True)
    print(json.dumps({"program": "gpytorch", "rows": arguments.rows} | epoch(train, test, scale, arguments.threads)), flush=True)


if __name__ == "__main__":
    main()
