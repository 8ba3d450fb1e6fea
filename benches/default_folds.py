"""What a user gets who names a table and a target: `posterior fit` with nothing else, fold by fold.

    python3 benches/default_folds.py target/release/posterior ../shared/data/uci pol bike --folds 0,1,2,3,4

Tables are `NAME.csv.gz` with the target `y`, the folds of their rows `NAME.fold.csv.gz` beside them. Scores are those of the fold that was left out, in standard deviations of the training targets:
of all its rows, as papers score, and (`without_duplicates`) of those that do not stand among the training rows as well, as `posterior evaluate` scores. Means and standard errors over folds at the end.
`--flags` are further flags of every fit."""
import argparse
import csv
import gzip
import json
import math
import pathlib
import statistics
import subprocess
import tempfile


def column(path, name):
    with gzip.open(path, "rt", newline="") as source:
        return [float(row[name]) for row in csv.DictReader(source)]


def scored(predictions, y, rows, deviation):
    """Scores of some rows of a file of predictions, in standard deviations of the training targets."""
    with predictions.open(newline="") as source:
        normals = [(float(row["y_mean"]), float(row["y_std"])) for row in csv.DictReader(source)]
    errors = [(y[i] - normals[i][0], normals[i][1]) for i in rows]
    logs = [0.5 * (e / s) ** 2 + math.log(s) + 0.5 * math.log(2 * math.pi) for e, s in errors]
    return {
        "rmse": math.sqrt(statistics.fmean(e * e for e, _ in errors)) / deviation,
        "nll": statistics.fmean(logs) - math.log(deviation),
        "coverage": statistics.fmean(abs(e) <= 1.959964 * s for e, s in errors),
    }


def main():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("binary", type=pathlib.Path)
    made.add_argument("folder", type=pathlib.Path)
    made.add_argument("tables", nargs="+")
    made.add_argument("--folds", default="0,1,2,3,4")
    made.add_argument("--flags", default="")
    made.add_argument("--threads", type=int, default=2)
    arguments = made.parse_args()

    def run(*line):
        line = [str(part) for part in (arguments.binary, *line, "--threads", arguments.threads, "--json", "--quiet")]
        return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)

    for name in arguments.tables:
        data, folds = (arguments.folder / f"{name}{end}.csv.gz" for end in ("", ".fold"))
        y, fold_of = column(data, "y"), column(folds, "fold")
        scores = []
        for fold in map(int, arguments.folds.split(",")):
            deviation = statistics.pstdev(t for t, own in zip(y, fold_of) if own != fold)
            split = [data, "--folds", folds, "--fold", fold]
            with tempfile.TemporaryDirectory() as work:
                model = pathlib.Path(work) / "m.posterior"
                fitted = run("fit", *split, "--target", "y", "--output", model, *arguments.flags.split())
                own = run("evaluate", model, *split)
                predictions = pathlib.Path(work) / "predictions.csv"
                run("predict", model, data, "--output", predictions)
                found = scored(predictions, y, [i for i, of in enumerate(fold_of) if of == fold], deviation)
            without_duplicates = {
                "rmse": own["rmse"] / deviation,
                "nll": own["nll"] - math.log(deviation),
                "coverage": own["coverage_95"],
            }
            scores.append(found)
            about = {"table": name, "fold": fold, "method": fitted["method"], "choice": fitted["choice"]}
            cost = {"seconds": round(fitted["seconds"], 1), "peak_memory_bytes": fitted["peak_memory_bytes"]}
            tried = {"recalibration": fitted["recalibration"], "tried": fitted["check"]["tried"]}
            print(json.dumps(about | found | {"without_duplicates": without_duplicates} | cost | tried), flush=True)
        if len(scores) > 1:
            means = {key: statistics.mean(s[key] for s in scores) for key in scores[0]}
            errors = {key: statistics.stdev(s[key] for s in scores) / math.sqrt(len(scores)) for key in scores[0]}
            print(json.dumps({"table": name, "folds": len(scores), "means": means, "standard_errors": errors}), flush=True)


if __name__ == "__main__":
    main()
