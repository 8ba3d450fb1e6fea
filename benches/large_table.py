#!/usr/bin/env python3
"""Writes a large Parquet table, part by part: nine inputs (or `--inputs`), a target that is a smooth function of four of them, and noise.

    python3 benches/large_table.py OUT.parquet --rows 10000000 [--files 1] [--inputs 9] [--seed 0]

With `--files N` the rows are shared out among OUT-1.parquet ... OUT-N.parquet. Inputs are in single precision, so that ten million rows take
some 400 MB, and twice as much in double (`--double`). Needs numpy and pyarrow. Then, for example:

    /usr/bin/time -v posterior fit OUT.parquet --target y --method svgp --iterations 300 --memory 4 -o large.posterior
"""

import argparse
import pathlib

import numpy
import pyarrow
import pyarrow.parquet

PART = 1 << 20


def rows_of(generator, count, inputs, kind):
    x = generator.random((count, inputs))
    y = numpy.sin(6 * x[:, 0]) + x[:, 1] * x[:, 2] + numpy.cos(4 * x[:, 3]) + 0.2 * generator.standard_normal(count)
    columns = {f"x{j + 1}": x[:, j].astype(kind) for j in range(inputs)}
    return pyarrow.table({**columns, "y": y.astype(kind)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=9, help="at least 4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--double", action="store_true")
    asked = parser.parse_args()
    generator = numpy.random.default_rng(asked.seed)
    kind = numpy.float64 if asked.double else numpy.float32
    for number in range(asked.files):
        name = asked.out if asked.files == 1 else asked.out.with_name(f"{asked.out.stem}-{number + 1}.parquet")
        left = asked.rows // asked.files + (asked.rows % asked.files if number == 0 else 0)
        writer = None
        while left > 0:
            table = rows_of(generator, min(left, PART), asked.inputs, kind)
            writer = writer or pyarrow.parquet.ParquetWriter(name, table.schema)
            writer.write_table(table)
            left -= table.num_rows
        if writer:
            writer.close()
        print(f"{name}: {name.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
