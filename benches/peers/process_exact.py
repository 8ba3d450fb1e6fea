"""Exact Gaussian process by Cholesky factors in GPyTorch: Matérn-3/2 ARD, learned constant mean and noise, Adam on the evidence.

Seconds of the whole search, of one step, and of predicting the fold that was left out; its scores in standard units."""
import time

import gpytorch
import torch
from network_common import peak_gigabytes, report, start, summary
from process_common import matern32, one_fold, scores, table_parser


class Process(gpytorch.models.ExactGP):
    """The process with its training rows."""

    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.level = gpytorch.means.ConstantMean()
        self.covariance = matern32(x.shape[1])

    def forward(self, at):
        return gpytorch.distributions.MultivariateNormal(self.level(at), self.covariance(at))


def main():
    made = table_parser(__doc__.splitlines()[0])
    made.add_argument("--steps", type=int, default=200, help="steps of Adam")
    made.add_argument("--lr", type=float, default=0.1, help="its step size")
    arguments = made.parse_args()
    start(arguments)
    torch.manual_seed(arguments.seed)
    x, y, x_test, y_test = one_fold(arguments)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    process = Process(x, y, likelihood).double()
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
    optimiser = torch.optim.Adam(process.parameters(), lr=arguments.lr)
    # Cholesky at every size, no stochastic estimates: the same mathematics as ours.
    with gpytorch.settings.max_cholesky_size(len(y) + 1), gpytorch.settings.fast_computations(False, False, False):
        process.train()
        times = []
        for _ in range(arguments.steps):
            begin = time.perf_counter()
            optimiser.zero_grad()
            loss = -evidence(process(x), y)
            loss.backward()
            optimiser.step()
            times.append(time.perf_counter() - begin)
        process.eval()
        begin = time.perf_counter()
        with torch.no_grad():
            predicted = likelihood(process(x_test))
            mean, variance = predicted.mean, predicted.variance
        predicting = time.perf_counter() - begin
    report(
        arguments,
        table=arguments.table,
        fold=arguments.fold,
        n=len(y),
        steps=arguments.steps,
        fit_s=round(sum(times), 3),
        step_s=summary(times),
        predict_s=round(predicting, 3),
        log_evidence=-float(loss) * len(y),
        peak_gb=peak_gigabytes(),
        **scores(mean, variance, y_test),
    )


if __name__ == "__main__":
    main()
