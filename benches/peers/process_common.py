"""What the Gaussian-process baselines share: one fold of a table in standard units, scores, and the model classes of GPyTorch.

Tables lie under `--data` (by default `../shared` beside the repository) as `data/uci/NAME.csv.gz`, the target in the last column;
`data/uci/NAME.fold.csv.gz` beside them says the fold of each row, 0 to 9. Without it folds are drawn with seed 0."""
import gzip
import io
import math
import sys

import gpytorch
import numpy as np
import torch
from network_common import existing, parser


def table_parser(description, fold=5):
    """Arguments of all scripts on tables. Folds 5 to 9 were never looked at while defaults were chosen."""
    made = parser(description)
    made.add_argument("table", help="name of the table, such as airfoil")
    made.add_argument("--fold", type=int, default=fold, help="the fold that is left out and scored")
    made.add_argument("--rows", type=int, default=None, help="only the first rows of the training part")
    made.add_argument("--seed", type=int, default=0, help="seed of everything random")
    return made


def columns(path):
    """The numbers of a gzipped CSV file with one line of names, as a matrix."""
    text = gzip.decompress(existing(path).read_bytes()).decode()
    return np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1, ndmin=2)


def one_fold(arguments, number=torch.float64):
    """x, y, x_test, y_test; mean 0 and deviation 1 over the training rows, columns that do not vary only shifted."""
    folder = arguments.data / "data" / "uci"
    values = columns(folder / f"{arguments.table}.csv.gz")
    written = folder / f"{arguments.table}.fold.csv.gz"
    drawn = np.random.default_rng(0).permutation(len(values)) % 10
    folds = columns(written)[:, 0] if written.exists() else drawn
    if not (folds == arguments.fold).any():
        sys.exit(f"--fold {arguments.fold}: no row of {arguments.table} is in that fold")
    training, test = values[folds != arguments.fold], values[folds == arguments.fold]
    centre, deviation = training.mean(axis=0), training.std(axis=0)
    deviation[deviation == 0] = 1
    training, test = (training - centre) / deviation, (test - centre) / deviation
    training = training[: arguments.rows]
    parts = (training[:, :-1], training[:, -1], test[:, :-1], test[:, -1])
    return tuple(torch.from_numpy(np.ascontiguousarray(part)).to(number) for part in parts)


def matern32(dimension):
    """A Matérn-3/2 kernel with a lengthscale for each column and a variance."""
    return gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=dimension))


def scores(mean, variance, truth):
    """RMSE, mean negative log density and the share of the truth within 95 % intervals, in standard units."""
    squares = (mean - truth) ** 2
    inside = squares.sqrt() <= 1.959964 * variance.sqrt()
    return {
        "rmse": float(squares.mean().sqrt()),
        "nll": float((0.5 * (2 * math.pi * variance).log() + 0.5 * squares / variance).mean()),
        "coverage_95": float(inside.double().mean()),
    }
