"""One Adam step of VaLLA on a tanh perceptron by Jacobians of torch.func: inducing inputs, factor, prior variance and noise learned.

The prior kernel is `s0^2 J(x) J(z)'` with the network's Jacobians (spec `valla`, section 6); the rows of the batch are constants, those of the inducing inputs are differentiated through, which is the
straightforward way: inputs that are learned need second derivatives of the network. Everything is in float64, as published. The memory is that of the Jacobians, batch + points rows of all weights, and of
their graph. Data are random numbers; `--rows` changes nothing but the table that batches are drawn from."""
import torch
from fixed_mean_common import batches, expected_loss, random_table, reduced, tanh_perceptron
from network_common import parser, peak_gigabytes, report, seconds, start
from torch.func import functional_call, jacrev, vmap


def jacobian_rows(network):
    """rows(x) -> (len(x), weights) of a network of one output."""
    parameters = {name: value.detach() for name, value in network.named_parameters()}

    def output(parameters, row):
        return functional_call(network, parameters, (row.unsqueeze(0),))[0, 0]

    derivative = vmap(jacrev(output), (None, 0))
    return lambda x: torch.cat([part.flatten(1) for part in derivative(parameters, x).values()], 1)


class Valla(torch.nn.Module):
    """What is learned beside the network."""

    def __init__(self, x, points):
        super().__init__()
        picks = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))[:points]
        self.inducing = torch.nn.Parameter(x[picks].clone())
        self.factor = torch.nn.Parameter(torch.eye(points, dtype=x.dtype))
        self.log_deviation = torch.nn.Parameter(torch.zeros((), dtype=x.dtype))
        self.log_noise = torch.nn.Parameter(torch.tensor(-5.0, dtype=x.dtype))

    def loss(self, rows_of, x, y, outputs, rows):
        """The objective of a batch."""
        variance = (2 * self.log_deviation).exp()
        with torch.no_grad():
            here = rows_of(x)
            squares = (here * here).sum(1)
        there = rows_of(self.inducing)
        w, divergence = reduced(variance * there @ there.T, self.factor)
        cross = variance * here @ there.T
        variances = (variance * squares - ((cross @ w.T) ** 2).sum(1)).clamp_min(1e-12)
        return expected_loss(y - outputs, variances, self.log_noise.exp(), rows) + divergence


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--rows", type=int, default=100_000, help="rows of the table, n")
    read.add_argument("--inputs", type=int, default=9, help="columns")
    read.add_argument("--points", type=int, default=100, help="inducing inputs")
    read.add_argument("--batch", type=int, default=100, help="rows of a step")
    read.add_argument("--steps", type=int, default=10, help="timed steps")
    arguments = read.parse_args()
    start(arguments)
    torch.manual_seed(0)
    x, y = random_table(arguments.rows, arguments.inputs, torch.float64)
    network = tanh_perceptron(arguments.inputs).double()
    before, rows_of, process = peak_gigabytes(), jacobian_rows(network), Valla(x, arguments.points)
    optimiser = torch.optim.Adam(process.parameters(), lr=1e-3)
    numbers, losses = batches(arguments.rows, arguments.batch), []

    def step():
        rows = next(numbers)
        with torch.no_grad():
            outputs = network(x[rows])[:, 0]
        optimiser.zero_grad()
        loss = process.loss(rows_of, x[rows], y[rows], outputs, arguments.rows)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))

    timed = seconds(step, arguments.steps, warm_up=2)
    weights = sum(p.numel() for p in network.parameters())
    shape = {k: getattr(arguments, k) for k in ("rows", "inputs", "points", "batch", "steps")}
    memory = {"before_gb": before, "peak_gb": peak_gigabytes()}
    report(arguments, **shape, weights=weights, step_s=timed, first_loss=losses[0], last_loss=losses[-1], **memory)


if __name__ == "__main__":
    main()
