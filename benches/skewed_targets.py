"""Skewed targets: what a map of the target and heteroscedastic noise do for intervals, on three real tables and two made-up ones.

    python3 benches/skewed_targets.py target/release/posterior ../shared/data/uci

Real ones are given back their own units (yacht resistance and hourly bicycle hires were published as logarithms less their mean, months without breast cancer less their mean); of the bicycles 1,500 rows are drawn. Each is fitted to 70 % of its rows
as it is, by the default (`--target-transform auto`), and with `--noise heteroscedastic` beside that; scores and coverage of 95 % intervals by quartile of the truth are those of the rest. Evidence is that of the rows that chose the map, in the
target's units, a row; NLL held out is in the same units."""
import argparse
import csv
import gzip
import json
import math
import pathlib
import random
import subprocess
import tempfile

WAYS = {
    "as it is": ["--target-transform", "none"],
    "default": [],
    "heteroscedastic noise": ["--noise", "heteroscedastic"],
}


def published(folder, name, back, rows=None):
    """A published table with its target in its own units."""
    with gzip.open(folder / f"{name}.csv.gz", "rt", newline="") as source:
        table = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(source)]
    if rows is not None:
        table = random.Random(1).sample(table, rows)
    return [{**row, "y": back(row["y"])} for row in table]


def made(kind, rows=800):
    """Prices that scatter by a share of themselves; and a wave whose noise grows along one input, which no map can mend."""
    draw = random.Random(7)
    out = []
    for _ in range(rows):
        a, b = draw.uniform(-2, 2), draw.uniform(-2, 2)
        function = math.sin(2 * a) + 0.5 * b
        if kind == "prices":
            y = math.exp(5 + 0.9 * function + 0.35 * draw.gauss(0, 1))
        else:
            # A gamma of mean 6 + 2 f, more skewed where the second input is large.
            mean, spread = 6 + 2 * function, 0.3 * math.exp(0.9 * b)
            shape = (mean / spread) ** 2
            y = draw.gammavariate(shape, mean / shape)
        out.append({"a": a, "b": b, "y": y})
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    tables = {
        "yacht": published(arguments.folder, "yacht", lambda y: math.exp(y + 1.0846)),
        "bike": published(arguments.folder, "bike", lambda y: math.exp(y + 4.5361), 1500),
        "breastcancer": published(arguments.folder, "breastcancer", lambda y: y + 46.938),
        "prices": made("prices"),
        "gammas": made("gammas"),
    }

    def run(*line):
        line = [str(part) for part in (arguments.binary, *line, "--threads", arguments.threads, "--json", "--quiet")]
        return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)

    print(f"{'':14}{'':18}{'map':34}{'evidence':>9}{'NLL':>9}{'RMSE':>9}{'95 %':>7}   by quartile of the truth   by quartile of the prediction")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, table in tables.items():
            random.Random(3).shuffle(table)
            cut = round(0.7 * len(table))
            for part, rows in (("train", table[:cut]), ("test", table[cut:])):
                with (folder / f"{part}.csv").open("w", newline="") as out:
                    writer = csv.DictWriter(out, rows[0].keys())
                    writer.writeheader()
                    writer.writerows(rows)
            for way, flags in WAYS.items():
                model, out = folder / "m.posterior", folder / "p.csv"
                fitted = run("fit", folder / "train.csv", "--target", "y", "--likelihood", "gaussian", "--output", model, "--force", *flags)
                scores = run("evaluate", model, folder / "test.csv")
                run("predict", model, folder / "test.csv", "--quantiles", "0.025,0.975", "--output", out, "--force")
                with out.open(newline="") as source:
                    predicted = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(source)]

                def coverage(by):
                    ordered = sorted(predicted, key=lambda row: row[by])
                    ends = [round(len(ordered) * k / 4) for k in range(5)]
                    parts = [ordered[a:b] for a, b in zip(ends, ends[1:])]
                    inside = [[row["y_q0.025"] < row["y"] < row["y_q0.975"] for row in part] for part in parts]
                    return " ".join(f"{sum(part) / len(part):.2f}" for part in inside)

                choice = fitted["target_transform"]
                chosen = choice["chosen"]
                label = "none" if chosen is None else chosen["kind"] + (f" {chosen['exponent']:.2f}" if "exponent" in chosen else "")
                tried = [t["log_evidence"] / choice["rows"] for t in choice["tried"] if t["transform"] == chosen]
                plain = [t["log_evidence"] / choice["rows"] for t in choice["tried"] if t["transform"] is None]
                evidence = f"{tried[0]:.3f}" if tried else "-"
                if tried and chosen is not None:
                    label += f" (as it is {plain[0]:.3f})"
                print(
                    f"{name:14}{way:18}{label:34}{evidence:>9}{scores['nll']:>9.3f}{scores['rmse']:>9.3f}{100 * scores['coverage_95']:>6.1f} "
                    f"   {coverage('y'):26} {coverage('y_mean')}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
