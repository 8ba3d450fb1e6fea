"""Posterior mean at given hyperparameters by preconditioned conjugate gradients in GPyTorch: Matérn-3/2, single precision.

Seconds of the solve alone, its relative residual, and the error on the fold that was left out, in standard units."""
import time

import gpytorch
import torch
from network_common import peak_gigabytes, report, start
from process_common import one_fold, table_parser


def main():
    made = table_parser(__doc__.splitlines()[0])
    made.add_argument("--noise", type=float, default=0.1, help="standard deviation of the noise")
    made.add_argument("--lengthscale", type=float, default=0.5, help="lengthscale of every column")
    made.add_argument("--iterations", type=int, default=300, help="most iterations")
    made.add_argument("--tolerance", type=float, default=0.01, help="relative residual at which it stops")
    made.add_argument("--rank", type=int, default=100, help="rank of the pivoted-Cholesky preconditioner")
    arguments = made.parse_args()
    start(arguments)
    x, y, x_test, y_test = one_fold(arguments, torch.float32)
    covariance = gpytorch.kernels.MaternKernel(nu=1.5)
    covariance.lengthscale = arguments.lengthscale
    settings = gpytorch.settings
    with (
        torch.no_grad(),
        settings.max_cholesky_size(0),
        settings.cg_tolerance(arguments.tolerance),
        settings.max_cg_iterations(arguments.iterations),
        settings.max_preconditioner_size(arguments.rank),
    ):
        system = covariance(x).add_jitter(arguments.noise**2)
        targets = y.unsqueeze(1)
        begin = time.perf_counter()
        weights = system.solve(targets)
        taken = time.perf_counter() - begin
        residual = float(torch.linalg.norm(system @ weights - targets) / torch.linalg.norm(targets))
        mean = (covariance(x_test, x) @ weights).squeeze(1)
    report(
        arguments,
        table=arguments.table,
        fold=arguments.fold,
        n=len(y),
        iterations=arguments.iterations,
        solve_s=round(taken, 3),
        relative_residual=residual,
        rmse=float(((mean - y_test) ** 2).mean().sqrt()),
        peak_gb=peak_gigabytes(),
    )


if __name__ == "__main__":
    main()
