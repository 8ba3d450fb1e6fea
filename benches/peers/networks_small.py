"""What a user gets without choosing: `posterior fit --network` with its defaults on small networks that `posterior train` has trained.

Each network learns a random smooth function (a sum of waves) of a table made here: 60 to 1,000 rows, 1 to 8 inputs, numbers
with noise or classes; 3,000 further rows score it and the plain network. A seed is a set of five networks of either kind.
Needs numpy and the program's binary; there is no peer in it, the comparison is with the plain network.

    python3 benches/peers/networks_small.py --posterior target/release/posterior --seeds 0,1 [--kind regression]
    python3 benches/peers/networks_small.py --seeds 3 --flags="" --flags="--method kronecker"

A JSON line for each network, then one for each set of flags: coverage of the 95 % intervals, and the NLL beside the plain
network's.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SIZES = [(60, 1), (150, 2), (300, 3), (500, 5), (1000, 8)]
TEST = 3_000
# How networks are trained: hidden layers, activation, epochs, weight decay, further flags. Too short (the defaults of steps and
# batches), about right, and until they know their noise by heart.
BRISK = ["--batch", "32", "--learning-rate", "0.005"]
TRAININGS = [
    ("[32, 32]", "tanh", 150, 0.0, []),
    ("[32, 32]", "tanh", 150, 0.0, BRISK),
    ("[50, 50]", "relu", 300, 0.0, BRISK),
    ("[20, 20]", "tanh", 600, 1e-3, BRISK),
    ("[64]", "relu", 100, 0.0, BRISK),
]


def waves(rng, x, count=12):
    """A smooth function whose variation comes from several directions."""
    w = rng.standard_normal((count, x.shape[1])) * 1.5 / np.sqrt(x.shape[1])
    return np.cos(x @ w.T + rng.uniform(0, 2 * np.pi, count)) @ rng.standard_normal(count) / np.sqrt(count / 2)


def table(seed, rows, inputs, classes):
    rng = np.random.default_rng([seed, rows, inputs, classes])
    x = rng.standard_normal((rows + TEST, inputs)) * 1.5
    if classes:
        logits = np.stack([2 * waves(rng, x) for _ in range(classes)], 1)
        y = np.argmax(logits + rng.gumbel(size=logits.shape), 1)
    else:
        noise = rng.choice([0.05, 0.2, 0.5])
        y = waves(rng, x) + noise * rng.standard_normal(len(x))
    return x, y


def write(path, x, y):
    header = ",".join([f"x{i + 1}" for i in range(x.shape[1])] + ["y"])
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=header, comments="", fmt="%.17g")


def run(binary, work, *words):
    done = subprocess.run([binary, "--json", *words], cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def one(binary, seed, size, classes, training, flags):
    rows, inputs = size
    hidden, activation, epochs, decay, steps = training
    x, y = table(seed, rows, inputs, classes)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write(work / "train.csv", x[:rows], y[:rows])
        write(work / "test.csv", x[rows:], y[rows:])
        outputs = classes or 1
        text = f'kind = "perceptron"\ninputs = {inputs}\nhidden = {hidden}\noutputs = {outputs}\nactivation = "{activation}"\n'
        (work / "net.toml").write_text(text)
        table_flags = ["train.csv", "--target", "y"]
        loss, likelihood = ("cross-entropy", "categorical") if classes else ("mse", "gaussian")
        fixed = ["net.toml", "--loss", loss, "--epochs", str(epochs), *steps]
        run(binary, work, "train", *fixed, "--weight-decay", str(decay), "--seed", str(seed), *table_flags, "--output", "net.safetensors")
        results = {}
        for name, own in flags.items():
            fitted = run(binary, work, "fit", "--network", "net.safetensors", *table_flags, "--likelihood", likelihood, *own, "--output", "m.posterior", "--force")
            scores = run(binary, work, "evaluate", "m.posterior", "test.csv")
            results[name] = summary(fitted, scores)
    shape = {"seed": seed, "rows": rows, "inputs": inputs, "classes": classes, "training": training}
    return shape | results


def summary(fitted, scores):
    own, plain = scores["models"][0]["scores"], scores["plain"]
    # Numbers have their scores one level below.
    nll = lambda of: of["nll_of_the_likelihood"] if "scores" in of else of["nll"]
    coverage = lambda of: of["scores"]["coverage_95"] if "scores" in of else None
    return {
        "nll": nll(own),
        "plain_nll": nll(plain),
        "worse_by": nll(own) - nll(plain),
        "coverage": coverage(own),
        "plain_coverage": coverage(plain),
        "curvature": fitted["curvature"],
        "seconds": fitted["header"]["seconds"],
    }


def over_all(name, rows):
    """What all networks of a kind say about one set of flags."""
    found = [row[name] for row in rows]
    worse = [f["worse_by"] for f in found]
    summary = {"flags": name, "networks": len(rows), "nll": float(np.mean([f["nll"] for f in found]))}
    summary |= {"plain_nll": float(np.mean([f["plain_nll"] for f in found]))}
    summary |= {"worse_by_at_most": max(worse), "worse_by_more_than_0.02": sum(w > 0.02 for w in worse)}
    summary |= {"seconds_at_most": max(f["seconds"] for f in found)}
    if rows[0]["classes"] == 0:
        for key in ["coverage", "plain_coverage"]:
            c = [f[key] for f in found]
            summary[key] = {"least": min(c), "median": float(np.median(c)), "largest": max(c)}
            summary[key] |= {"below_0.90": sum(v < 0.9 for v in c), "above_0.99": sum(v > 0.99 for v in c)}
    return summary


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--posterior", default="target/release/posterior")
    arguments.add_argument("--seeds", default="0")
    arguments.add_argument("--kind", choices=["regression", "classes", "both"], default="both")
    arguments.add_argument("--training", type=int, default=None, help="one of the ways of training (default: by turns)")
    arguments.add_argument("--flags", action="append", default=[], help="further flags of the fit; may be repeated, each a fit of its own")
    a = arguments.parse_args()
    binary = str(Path(a.posterior).resolve())
    flags = {text or "default": text.split() for text in a.flags or [""]}
    all_rows = {"regression": [], "classes": []}
    for seed in map(int, a.seeds.split(",")):
        for k, size in enumerate(SIZES):
            training = TRAININGS[(seed + k) % len(TRAININGS) if a.training is None else a.training]
            kinds = {"regression": [0], "classes": [2 + k % 3], "both": [0, 2 + k % 3]}[a.kind]
            for classes in kinds:
                row = one(binary, seed, size, classes, training, flags)
                all_rows["classes" if classes else "regression"].append(row)
                print(json.dumps(row), flush=True)
    for kind, rows in all_rows.items():
        for name in flags if rows else []:
            print(json.dumps({"kind": kind} | over_all(name, rows)), flush=True)


if __name__ == "__main__":
    main()
