"""Thirteen files of one made-up table of flats, each as people have them, none prepared: `posterior fit`, `evaluate` and `predict` beside a pipeline of scikit-learn that was written by hand for
each file (a Gaussian process with a Matérn kernel, and gradient boosting), in one run.

    python3 benches/peers/tables_as_found.py target/release/posterior

Needs pandas, scikit-learn, openpyxl and pyarrow. Scores are of rows that no one was fitted to, in standard deviations of the training targets."""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def flats(rows, seed):
    """Size, rooms, storey, district, lift, day of the sale; the price depends on all of them."""
    random = np.random.default_rng(seed)
    size = random.gamma(6.0, 12.0, rows) + 15
    rooms = np.clip(np.round(size / 25 + random.normal(0, 0.6, rows)), 1, 8)
    storey = random.integers(0, 7, rows)
    names = np.array(["Altstadt", "Süd", "Nord", "Hafen", "Wald", "See"])
    district = random.integers(0, len(names), rows)
    lift = random.random(rows) < 0.2 + 0.1 * storey
    day = random.integers(0, 1461, rows)
    worth = np.array([1.5, 1.1, 0.8, 1.0, 0.9, 1.3])[district]
    price = 3.0 * worth * size ** 0.9 + 12 * np.sqrt(rooms) + 9 * lift * storey + 0.03 * day
    price = price + 25 * np.sin(2 * np.pi * day / 365.25) + random.normal(0, 18, rows)
    return pd.DataFrame({
        "size": size.round(1), "rooms": rooms, "storey": storey, "district": names[district], "lift": lift,
        "sold": (pd.Timestamp("2019-01-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d"), "price": price.round(2),
    })


def gaps(table, columns, share, seed):
    random = np.random.default_rng(seed)
    table = table.copy()
    for column in columns:
        number = pd.api.types.is_numeric_dtype(table[column]) and not pd.api.types.is_bool_dtype(table[column])
        table[column] = table[column].astype(float if number else object)
        table.loc[random.random(len(table)) < share, column] = None
    return table


def many_categories(table, seed):
    random = np.random.default_rng(seed)
    street = random.integers(0, 60, len(table))
    return table.assign(street=[f"street {s}" for s in street], price=table.price + 4 * (street % 13))


def kinds():
    """Name, how a table is changed, how it is written, flags of the fit (beside `--calendar sold`, as seasons are what a person would add) and of the questions."""
    def csv(**how):
        return lambda table, path: table.to_csv(path, **({"index": False} | how))

    def plain(table):
        return table

    def ids(table):
        return table.assign(flat=[f"flat {i:05}" for i in range(len(table))])

    def nullable(table):
        table = gaps(table, ["rooms", "lift"], 0.1, 3)
        return table.astype({"rooms": "Int64", "lift": "boolean"}).assign(
            district=table.district.astype("category"), sold=pd.to_datetime(table.sold))

    other = {"unseen": "other"}
    return [
        ("index.csv", plain, csv(index=True), {}, {}),
        ("dates.csv", lambda t: t.assign(sold=pd.to_datetime(t.sold).dt.strftime("%d.%m.%Y")), csv(), {}, {}),
        ("ids.csv", ids, csv(), {}, {}),
        ("booleans.csv", lambda t: t.assign(new=t.sold > "2022"), csv(), {}, {}),
        ("gaps.csv", lambda t: gaps(t, ["size", "district", "lift"], 0.1, 1), csv(), {"missing": "indicator"}, {}),
        ("targets.csv", lambda t: gaps(t, ["price"], 0.2, 2), csv(), {}, {}),
        ("categories.csv", lambda t: many_categories(t, 5), csv(), {}, other),
        ("semicolon.csv", plain, csv(sep=";", decimal=","), {}, {}),
        ("utf16.csv", plain, csv(encoding="utf-16"), {}, {}),
        ("latin1.csv", plain, csv(encoding="latin-1"), {}, {}),
        ("sheet.xlsx", plain, lambda t, path: t.assign(sold=pd.to_datetime(t.sold)).to_excel(path, index=False), {}, {}),
        ("lines.jsonl", plain, lambda t, path: t.to_json(path, orient="records", lines=True, force_ascii=False), {}, {}),
        ("nullable.parquet", nullable, lambda t, path: t.to_parquet(path, index=False), {"missing": "indicator"}, {}),
    ]


def numbers(table):
    """What a person writes before scikit-learn takes such a table."""
    table = table.copy()
    days = pd.to_datetime(table.sold, format="%d.%m.%Y" if table.sold.astype(str).str.contains(r"\.").any() else None)
    table["sold"] = (days - pd.Timestamp("1970-01-01")).dt.days
    table["season_sine"], table["season_cosine"] = (f(2 * np.pi * days.dt.dayofyear / 365.25) for f in (np.sin, np.cos))
    for column in ("lift", "new"):
        if column in table:
            table[column] = table[column].map({True: 1.0, False: 0.0})
    words = [c for c in ("district", "street") if c in table]
    table[words] = table[words].astype(object).where(table[words].notna(), "missing")
    return table.drop(columns=[c for c in ("flat",) if c in table]).astype({"rooms": float}), words


def by_scikit(train, test, threads):
    train, test = train[train.price.notna()], test[test.price.notna()]
    (own, words), (others, _) = numbers(train), numbers(test)
    quantities = [c for c in own if c not in (*words, "price")]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    gap = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = make_column_transformer((gap, quantities), (encoder, words))
    x, z = columns.fit_transform(own), columns.transform(others)
    mean, deviation = own.price.mean(), own.price.std(ddof=0)
    y, truth = (own.price - mean) / deviation, (others.price - mean) / deviation
    begun = time.perf_counter()
    kernel = ConstantKernel(1.0) * Matern(np.ones(x.shape[1]), (1e-2, 1e3), nu=1.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=0, random_state=0).fit(x, y)
    guess, spread = process.predict(z, return_std=True)
    seconds = time.perf_counter() - begun
    nll = 0.5 * np.log(2 * np.pi * spread**2) + 0.5 * ((truth - guess) / spread) ** 2
    inside = np.abs(truth - guess) <= 1.959964 * spread
    boosted = HistGradientBoostingRegressor(random_state=0).fit(x, y).predict(z)
    rmse = lambda guess: float(np.sqrt(np.mean((truth - guess) ** 2)))
    return {
        "process": {"rmse": rmse(guess), "nll": float(nll.mean()), "coverage": float(inside.mean()), "seconds": seconds},
        "boosting": {"rmse": rmse(boosted)},
    }


def main():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("binary", type=pathlib.Path)
    made.add_argument("--rows", type=int, default=800)
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--said", action="store_true", help="print what the program said of each file")
    arguments = made.parse_args()
    warnings.filterwarnings("ignore")

    def flags(given):
        return [part for name, value in given.items() for part in (f"--{name}", value)]

    for name, change, write, fitting, asking in kinds():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            train, test = change(flats(arguments.rows, 0)), change(flats(400, 1))
            if "street" in test:
                test.loc[:3, "street"] = "street that no one had seen"
            files = [folder / f"{part}-{name}" for part in ("train", "test")]
            for table, path in zip((train, test), files):
                write(table, path)
            model, predicted, report = (folder / end for end in ("m.posterior", "p.csv", "r.html"))
            threads = ["--threads", str(arguments.threads)]
            lines = {
                "fit": ["fit", files[0], "--target", "price", "--calendar", "sold", "--output", model, *flags(fitting), *threads],
                "evaluate": ["evaluate", model, files[1], "--report", report, *flags(asking), *threads, "--json"],
                "predict": ["predict", model, files[1], "--output", predicted, *flags(asking), *threads],
            }
            begun, printed = time.perf_counter(), {}
            for command, line in lines.items():
                run = subprocess.run([str(arguments.binary), *map(str, line)], capture_output=True, text=True)
                if run.returncode:
                    raise SystemExit(f"{name}: {command} failed: {run.stderr}")
                printed[command] = run
            seconds = time.perf_counter() - begun
            own = json.loads(printed["evaluate"].stdout)
            deviation = train.price.std(ddof=0)
            scores = {"rmse": own["rmse"] / deviation, "nll": own["nll"] - math.log(deviation), "coverage": own["coverage_95"], "seconds": seconds}
            assert len(pd.read_csv(predicted)) == len(test)
            print(json.dumps({"file": name, "flags": flags(fitting) + flags(asking), "posterior": scores} | by_scikit(train, test, arguments.threads)), flush=True)
            if arguments.said:
                said = [l for l in printed["fit"].stderr.splitlines() + printed["fit"].stdout.splitlines() if "note" in l]
                said += [f"evaluate: {note}" for note in own["notes"]]
                print("\n".join(f"    {line}" for line in said), flush=True)


if __name__ == "__main__":
    main()
