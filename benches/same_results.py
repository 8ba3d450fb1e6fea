#!/usr/bin/env python3
"""Whether two builds of the binary give the same results: every method, curvature, likelihood and way of tuning on small made-up data.

    python3 benches/same_results.py BEFORE AFTER [--threads N[,M]]

Networks are trained by each build (and compared), tables are the same. For each command the largest difference of predictions and of
the numbers that a fit reports is printed, relative to the largest magnitude in its column; `equal` means bit for bit. With `--threads 1,4`
the second build has other threads than the first: the same build twice then shows whether results depend on their number. Needs Python only.
"""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import tempfile

METHODS = {
    "exact": "--steps 20 --restarts 2",
    "exact --objective leave-one-out": "--steps 10 --restarts 1",
    "exact --optimizer adam": "--steps 20 --restarts 1",
    "sdd": "--iterations 200 --samples 16",
    "cg": "--iterations 50 --samples 16",
    "cg --preconditioner nystrom": "--iterations 50 --samples 16",
    "cg --hyperparameter-search stochastic": "--iterations 50 --samples 16 --steps 5",
    "cg --hyperparameter-search neighbourhoods": "--iterations 50 --samples 16 --neighbourhoods 2 --neighbourhood-size 60",
    "sgd": "--iterations 200 --samples 16",
    "inducing-sgd": "--iterations 200 --samples 16 --inducing 40",
    "sgpr": "--iterations 20 --inducing 40",
    "svgp": "--iterations 100 --inducing 40",
    "svgp --variational adam": "--iterations 100 --inducing 40",
}

LAPLACE = {
    "values": [
        "--curvature full", "--curvature full --mode trained", "--curvature function-space", "--curvature kronecker", "--curvature diagonal",
        "--curvature block", "--curvature low-rank --rank 10", "--curvature last-layer", "--curvature full --prior layerwise --tune mackay",
        "--curvature kronecker --mode linearised", "--noise per-output --curvature full", "",
    ],
    "classes": [
        "--curvature full", "--curvature kronecker --mode linearised", "--curvature function-space", "--curvature last-layer",
        "--curvature kronecker --fisher monte-carlo", "--curvature diagonal --tune validation --validation-data held.csv", "",
    ],
}


def wave(i, k):
    return ((i + 0.5) * math.sqrt(k + 1.7)) % 1.0


def write_table(path, rows, start=0):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "y", "colour"])
        for i in range(start, start + rows):
            x = [wave(i, k) for k in range(3)]
            noise = 0.2 * math.modf(math.sin(i * 12.9898) * 43758.547)[0]
            y = math.sin(6 * x[0]) + x[1] + noise
            colour = ["red", "green", "blue"][int((x[0] + x[1]) * 1.5 + 0.3 * noise) % 3]
            writer.writerow([f"{v:.6f}" for v in [*x, y]] + [colour])


def run(binary, folder, line):
    done = subprocess.run([binary, *line.split(), "--json"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()[:400]}
    return json.loads(done.stdout) if done.stdout.strip() else {}


VOLATILE = ("second", "time", "memory", "bytes", "version", "path", "out", "model", "rate", "work", "created", "checkpoint")


def numbers(value, name=""):
    """Every number of a report that does not depend on the clock or the machine."""
    if any(word in name for word in VOLATILE):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{name}.{key}" if not any(w in key for w in VOLATILE) else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, f"{name}[{index}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, float(value)


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    out = {}
    for k, name in enumerate(rows[0]):
        try:
            out[name] = [float(row[k]) for row in rows[1:]]
        except ValueError:
            out[name] = [row[k] for row in rows[1:]]
    return out


def difference(left, right):
    """The largest difference relative to the column's largest magnitude, and whether all are equal."""
    if left.keys() != right.keys():
        return math.inf, False, f"columns {sorted(set(left) ^ set(right))}"
    worst, where = 0.0, ""
    for name, values in left.items():
        if any(isinstance(v, str) for v in values):
            if values != right[name]:
                return math.inf, False, name
            continue
        scale = max((abs(v) for v in values if math.isfinite(v)), default=0.0) or 1.0
        for a, b in zip(values, right[name]):
            if a != b and not (math.isnan(a) and math.isnan(b)):
                gap = abs(a - b) / scale
                if not gap <= worst:
                    worst, where = gap, name
    return worst, worst == 0.0, where


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--threads", default="2", help="of both builds, or of the first and the second (1,4)")
    options = parser.parse_args()
    threads = (options.threads.split(",") * 2)[:2]
    binaries = [str(pathlib.Path(p).resolve()) for p in (options.before, options.after)]
    with tempfile.TemporaryDirectory() as root:
        folders = [pathlib.Path(root, name) for name in ("before", "after")]
        for folder in folders:
            folder.mkdir()
            write_table(folder / "train.csv", 160)
            write_table(folder / "new.csv", 60, start=1000)
            write_table(folder / "held.csv", 60, start=2000)
            for name, inputs, outputs in [("values", 3, 1), ("classes", 3, 3)]:
                (folder / f"{name}.toml").write_text(
                    f'kind = "perceptron"\ninputs = {inputs}\nhidden = [12, 12]\noutputs = {outputs}\nactivation = "tanh"\n'
                )
        commands = []
        common = "--seed 3"
        for name, target, loss in [("values", "y", "mse"), ("classes", "colour", "cross-entropy")]:
            commands.append((
                f"train {name}",
                f"train --architecture {name}.toml --data train.csv --features a,b,c --target {target} --loss {loss} --epochs 60 "
                f"--out {name}.safetensors {common}",
                None,
            ))
        for method, flags in METHODS.items():
            iterative = method.split()[0] not in ("exact", "sgpr", "svgp") and "search" not in method
            search = "--blocks 1 --block-size 60 --refining-rows 0" if iterative else ""
            commands.append((
                f"fit gp --method {method}",
                f"fit gp --data train.csv --features a,b,c --target y --method {method} {flags} {search} --out m.posterior --force {common}",
                "predict --model m.posterior --data new.csv --out p.csv --force",
            ))
        for network, fits in LAPLACE.items():
            likelihood = "gaussian" if network == "values" else "categorical"
            for flags in fits:
                commands.append((
                    f"fit laplace {network} {flags}",
                    f"fit laplace --network {network}.safetensors --data train.csv --likelihood {likelihood} {flags} --out m.posterior --force {common}",
                    "predict --model m.posterior --data new.csv --out p.csv --force",
                ))
        wrong = 0
        for name, line, then in commands:
            pairs = list(zip(binaries, folders, threads))
            reports = [run(binary, folder, f"{line} --threads {count}") for binary, folder, count in pairs]
            failed = [r.get("failed") for r in reports]
            if any(failed):
                wrong += failed[0] != failed[1]
                print(f"{name}: {'both fail: ' + failed[0] if failed[0] == failed[1] else f'before {failed[0]!r}, after {failed[1]!r}'}")
                continue
            found = [dict(numbers(r)) for r in reports]
            keys = found[0].keys() & found[1].keys()
            left, right = ({k: [f[k]] for k in keys} for f in found)
            parts = [("report", *difference(left, right))]
            if then:
                for binary, folder, count in pairs:
                    run(binary, folder, f"{then} --threads {count}")
                parts.append(("predictions", *difference(*(columns(folder / "p.csv") for folder in folders))))
            text = ", ".join(f"{what} {'equal' if same else f'differ by {gap:.1e} ({where})'}" for what, gap, same, where in parts)
            wrong += any(not (gap <= 1e-6) for _, gap, _, _ in parts)
            print(f"{name}: {text}")
        print(f"{len(commands)} commands, {wrong} differ by more than rounding")


if __name__ == "__main__":
    main()
