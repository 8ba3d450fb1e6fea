"""One training step of the 784-200-200-10 tanh perceptron on MNIST in PyTorch, or whole epochs of training.

Without --epochs: seconds of one step (index a random batch, zero_grad, forward, cross-entropy, backward, Adam step), with the
default and with the fused Adam, and both beside the forward and backward pass alone. With --epochs E: E epochs from
PyTorch's default initialisation; total seconds (evaluation left out), test accuracy and mean negative log likelihood."""
import math
import time

import torch
import torch.nn.functional as F
from network_common import cosine_factor, mnist, parser, perceptron, report, set_rate, start, summary


def step_times(x, y, arguments, fused):
    """[minimum, median] seconds of a training step."""
    torch.manual_seed(arguments.seed)
    network = perceptron()
    optimiser = torch.optim.Adam(network.parameters(), lr=arguments.lr, fused=fused)
    times = []
    for i in range(arguments.warm_up + arguments.steps):
        begin = time.perf_counter()
        index = torch.randint(len(x), (arguments.batch,))
        one_step(network, optimiser, x[index], y[index])
        if i >= arguments.warm_up:
            times.append(time.perf_counter() - begin)
    return summary(times)


def gradient_times(x, y, arguments):
    """[minimum, median] seconds of forward and backward on one fixed batch, without indexing and without an update."""
    torch.manual_seed(arguments.seed)
    network = perceptron()
    x, y = x[: arguments.batch].clone(), y[: arguments.batch].clone()
    times = []
    for i in range(arguments.warm_up + arguments.steps):
        network.zero_grad()
        begin = time.perf_counter()
        F.cross_entropy(network(x), y).backward()
        if i >= arguments.warm_up:
            times.append(time.perf_counter() - begin)
    return summary(times)


def one_step(network, optimiser, x, y):
    """zero_grad, forward, backward, step; the loss stays a tensor, as reading it is not part of a step."""
    optimiser.zero_grad()
    loss = F.cross_entropy(network(x), y)
    loss.backward()
    optimiser.step()
    return loss


def train(x, y, arguments):
    """The trained network, its seconds and the mean training loss over the last epoch."""
    torch.manual_seed(arguments.seed)
    network = perceptron()
    optimiser = torch.optim.Adam(network.parameters(), lr=arguments.lr, fused=arguments.fused)
    per_epoch = math.ceil(len(x) / arguments.batch)
    steps, step, begin = per_epoch * arguments.epochs, 0, time.perf_counter()
    for _ in range(arguments.epochs):
        total = torch.zeros(())
        order = torch.randperm(len(x))
        for index in order.split(arguments.batch):
            if arguments.schedule == "cosine":
                set_rate(optimiser, arguments.lr * cosine_factor(step, steps))
            total += one_step(network, optimiser, x[index], y[index]).detach() * len(index)
            step += 1
    return network, time.perf_counter() - begin, float(total) / len(x)


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--batch", type=int, default=128)
    read.add_argument("--lr", type=float, default=1e-3, help="Adam's learning rate")
    read.add_argument("--seed", type=int, default=0)
    read.add_argument("--steps", type=int, default=1000, help="timed steps")
    read.add_argument("--warm-up", type=int, default=100, help="steps before the timed ones")
    read.add_argument("--epochs", type=int, default=0, help="train this many epochs instead of timing steps")
    schedules, help_text = ("constant", "cosine"), "with --epochs: rate by step, cosine ends at zero"
    read.add_argument("--schedule", choices=schedules, default="constant", help=help_text)
    read.add_argument("--fused", action="store_true", help="with --epochs: use the fused Adam")
    arguments = read.parse_args()
    start(arguments)
    x, y = mnist(arguments.data, "train")
    settings = {"batch": arguments.batch, "lr": arguments.lr, "seed": arguments.seed}
    if arguments.epochs < 1:
        report(
            arguments,
            **settings,
            steps=arguments.steps,
            step_s=step_times(x, y, arguments, None),
            step_fused_s=step_times(x, y, arguments, True),
            gradient_s=gradient_times(x, y, arguments),
        )
        return
    network, total, loss = train(x, y, arguments)
    x_test, y_test = mnist(arguments.data, "t10k")
    with torch.no_grad():
        logits = network(x_test).double()
    report(
        arguments,
        **settings,
        epochs=arguments.epochs,
        schedule=arguments.schedule,
        fused=arguments.fused,
        train_s=round(total, 3),
        last_epoch_loss=round(loss, 5),
        accuracy=float((logits.argmax(1) == y_test).double().mean()),
        nll=round(float(F.cross_entropy(logits, y_test)), 5),
    )


if __name__ == "__main__":
    main()
