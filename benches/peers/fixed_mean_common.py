"""What the scripts of fixed-mean processes and VaLLA share: the perceptron of the tables, random data of a given shape, the covariance by inducing points.

With `A = L L'` the covariance of the outputs is `k(x, x) - k(x, Z) S k(Z, x)`, `S = L (I + L' K_z L)^-1 L'`, and the divergence from the prior is
`1/2 log det(I + L' K_z L) - 1/2 tr(K_z S)` (spec `valla`, section 6.2). The objective is that of alpha = 1: the predictive density of each row, `n / batch` times, and the divergence."""
import math

import torch
from torch import nn

HIDDEN = (200, 200, 200)


def tanh_perceptron(inputs, outputs=1):
    """inputs-200-200-200-outputs with tanh and PyTorch's default initialisation."""
    widths, layers = (inputs, *HIDDEN), []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def random_table(rows, inputs, number, seed=0):
    """Standard normal inputs (rows, inputs) and targets (rows): a smooth function of the first input, with noise."""
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, inputs, generator=draws, dtype=number)
    return x, torch.sin(2 * x[:, 0]) + 0.3 * torch.randn(rows, generator=draws, dtype=number)


def reduced(inducing, factor):
    """The triangular `W` with `S = W' W`, and the divergence; `inducing` is K_z, `factor` is free (its lower triangle counts)."""
    lower = factor.tril()
    h = torch.eye(len(lower), dtype=lower.dtype) + lower.T @ inducing @ lower
    root = torch.linalg.cholesky(h)
    w = torch.linalg.solve_triangular(root, lower.T, upper=False)
    divergence = root.diagonal().log().sum() - 0.5 * (w @ inducing * w).sum()
    return w, divergence


def expected_loss(residuals, variances, noise, rows):
    """`n / batch` times the sum of `-log N(r; 0, v + s2)`."""
    total = variances + noise
    losses = 0.5 * (math.log(2 * math.pi) + total.log() + residuals**2 / total)
    return rows / len(residuals) * losses.sum()


def batches(rows, size, seed=1):
    """Numbers of the rows of one batch after another, drawn evenly."""
    draws = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randint(rows, (size,), generator=draws)
