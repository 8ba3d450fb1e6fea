"""Stochastic variational Gaussian process in GPyTorch: Matérn-3/2 ARD, inducing points that move, Adam on everything.

Seconds of one step (minimum and median) and of all epochs; scores of the fold that was left out, in standard units."""
import time

import gpytorch
import torch
from network_common import peak_gigabytes, report, start, summary
from process_common import matern32, one_fold, scores, table_parser


class Bound(gpytorch.models.ApproximateGP):
    """A Gaussian over the values at the inducing points."""

    def __init__(self, points):
        values = gpytorch.variational.CholeskyVariationalDistribution(points.shape[0])
        strategy = gpytorch.variational.VariationalStrategy(self, points, values, learn_inducing_locations=True)
        super().__init__(strategy)
        self.level = gpytorch.means.ConstantMean()
        self.covariance = matern32(points.shape[1])

    def forward(self, at):
        return gpytorch.distributions.MultivariateNormal(self.level(at), self.covariance(at))


def main():
    made = table_parser(__doc__.splitlines()[0])
    made.add_argument("--epochs", type=int, default=2, help="passes over the rows")
    made.add_argument("--inducing", type=int, default=512, help="inducing points, rows by chance at the start")
    made.add_argument("--batch", type=int, default=1024, help="rows of a step")
    made.add_argument("--lr", type=float, default=0.01, help="step size of Adam")
    arguments = made.parse_args()
    start(arguments)
    torch.manual_seed(arguments.seed)
    x, y, x_test, y_test = one_fold(arguments)
    model = Bound(x[torch.randperm(len(y))[: arguments.inducing]].clone()).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=arguments.lr)
    model.train()
    likelihood.train()
    times = []
    for _ in range(arguments.epochs):
        for rows in torch.randperm(len(y)).split(arguments.batch):
            begin = time.perf_counter()
            optimiser.zero_grad()
            loss = -bound(model(x[rows]), y[rows])
            loss.backward()
            optimiser.step()
            times.append(time.perf_counter() - begin)
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(x_test))
    report(
        arguments,
        table=arguments.table,
        fold=arguments.fold,
        n=len(y),
        inducing=arguments.inducing,
        batch=arguments.batch,
        epochs=arguments.epochs,
        step_s=summary(times),
        fit_s=round(sum(times), 3),
        last_bound=-float(loss) * len(y),
        peak_gb=peak_gigabytes(),
        **scores(predicted.mean, predicted.variance, y_test),
    )


if __name__ == "__main__":
    main()
