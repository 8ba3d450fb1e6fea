"""One Adam step of a fixed-mean process on a tanh perceptron by autograd: the published way, inducing inputs, factor, lengthscales, amplitude and noise learned.

The kernel is rbf(ard) on the inputs; the objective is that of alpha = 1 with the companion process, whose mean is its own (spec `fixed_mean_gp`, section 2). Everything is in float64, as published.
A step has the network's outputs of the batch, the objective, autograd and Adam. Data are random numbers of the shape asked for: a step's cost depends on nothing else."""
import torch
from fixed_mean_common import batches, expected_loss, random_table, reduced, tanh_perceptron
from network_common import parser, peak_gigabytes, report, seconds, start

JITTER = 1e-8


class FixedMean(torch.nn.Module):
    """What is learned beside the network."""

    def __init__(self, x, points):
        super().__init__()
        picks = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))
        pairs = x[picks[: 2 * (len(x) // 2)]][:2000].view(-1, 2, x.shape[1])
        lengthscale = ((pairs[:, 0] - pairs[:, 1]) ** 2).sum(1).median().div(2).sqrt()
        number = x.dtype
        self.inducing = torch.nn.Parameter(x[picks[:points]].clone())
        self.factor = torch.nn.Parameter(torch.eye(points, dtype=number))
        self.log_lengthscales = torch.nn.Parameter(lengthscale.log() * torch.ones(x.shape[1], dtype=number))
        self.log_amplitude = torch.nn.Parameter(torch.zeros((), dtype=number))
        self.log_noise = torch.nn.Parameter(torch.tensor(-5.0, dtype=number))
        self.companion = torch.nn.Parameter(torch.zeros(points, dtype=number))

    def kernel(self, left, right):
        scales = self.log_lengthscales.exp()
        a, b = left / scales, right / scales
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
        return self.log_amplitude.exp() * torch.exp(-0.5 * squares.clamp_min(0))

    def loss(self, x, y, outputs, rows):
        """The objective of a batch, its companion included."""
        inducing, cross = self.kernel(self.inducing, self.inducing), self.kernel(x, self.inducing)
        w, divergence = reduced(inducing, self.factor)
        variances = (self.log_amplitude.exp() - ((cross @ w.T) ** 2).sum(1)).clamp_min(1e-12)
        noise = self.log_noise.exp()
        own = expected_loss(y - outputs, variances, noise, rows) + divergence
        root = torch.linalg.cholesky(inducing + JITTER * torch.eye(len(inducing), dtype=x.dtype))
        weights = torch.cholesky_solve(self.companion[:, None], root)[:, 0]
        companion = expected_loss(y - cross @ weights, variances, noise, rows)
        return own + companion + 0.5 * self.companion @ weights + divergence


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--rows", type=int, default=100_000, help="rows of the table")
    read.add_argument("--inputs", type=int, default=9, help="columns")
    read.add_argument("--points", type=int, default=100, help="inducing inputs")
    read.add_argument("--batch", type=int, default=100, help="rows of a step")
    read.add_argument("--steps", type=int, default=200, help="timed steps")
    arguments = read.parse_args()
    start(arguments)
    torch.manual_seed(0)
    x, y = random_table(arguments.rows, arguments.inputs, torch.float64)
    network = tanh_perceptron(arguments.inputs).double()
    process = FixedMean(x, arguments.points)
    optimiser = torch.optim.Adam(process.parameters(), lr=1e-3)
    numbers, losses = batches(arguments.rows, arguments.batch), []

    def step():
        rows = next(numbers)
        with torch.no_grad():
            outputs = network(x[rows])[:, 0]
        optimiser.zero_grad()
        loss = process.loss(x[rows], y[rows], outputs, arguments.rows)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))

    timed = seconds(step, arguments.steps, warm_up=10)
    shape = {k: getattr(arguments, k) for k in ("rows", "inputs", "points", "batch", "steps")}
    report(arguments, **shape, step_s=timed, first_loss=losses[0], last_loss=losses[-1], peak_gb=peak_gigabytes())


if __name__ == "__main__":
    main()
