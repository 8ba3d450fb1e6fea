"""ResNet-20 from scratch on the 8,000 shared CIFAR-10 training images in PyTorch, validated on the 5,000 test images.

SGD with Nesterov momentum, weight decay on all parameters, cosine schedule by step to zero; horizontal flips with probability
1/2 and random 32 x 32 crops of the images padded by 4 black pixels on each side. Writes the CSV
`epoch,train_loss,validation_loss,validation_accuracy,seconds`: the mean loss over the epoch's augmented batches (as seen
during training), the evaluation-mode mean loss and accuracy, and the training seconds so far without validation."""
import math
import pathlib
import time

import torch
import torch.nn.functional as F
from network_common import cifar, cosine_factor, normalised, parser, report, set_rate, start
from network_resnet20_model import ResNet20, kaiming


def augmented(images):
    """Byte images (n, 3, 32, 32), each flipped or not and cropped at its own random place."""
    n = len(images)
    padded = F.pad(images, (4, 4, 4, 4))
    steps = torch.arange(32)
    rows = steps + torch.randint(9, (n, 1))
    columns = torch.where(torch.rand(n, 1) < 0.5, steps, 31 - steps) + torch.randint(9, (n, 1))
    at = torch.arange(n)[:, None, None]
    return padded.permute(0, 2, 3, 1)[at, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


def validate(network, x, y):
    """Mean loss and accuracy in evaluation mode; leaves the network in it."""
    network.eval()
    with torch.no_grad():
        logits = torch.cat([network(part) for part in x.split(500)])
    return float(F.cross_entropy(logits.double(), y)), float((logits.argmax(1) == y).double().mean())


def epoch_of_training(network, optimiser, images, labels, step, steps, arguments):
    """One pass in random order; the mean loss. step counts the steps made before this epoch."""
    network.train()
    total = torch.zeros(())
    for index in torch.randperm(len(images)).split(arguments.batch):
        set_rate(optimiser, arguments.lr * cosine_factor(step, steps))
        optimiser.zero_grad()
        loss = F.cross_entropy(network(normalised(augmented(images[index]))), labels[index])
        loss.backward()
        optimiser.step()
        total += loss.detach() * len(index)
        step += 1
    return float(total) / len(images)


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--epochs", type=int, default=60)
    read.add_argument("--batch", type=int, default=128)
    read.add_argument("--lr", type=float, default=0.1, help="the first learning rate")
    read.add_argument("--momentum", type=float, default=0.9)
    read.add_argument("--weight-decay", type=float, default=5e-4)
    read.add_argument("--init", choices=("kaiming", "default"), default="kaiming", help="Kaiming normal or PyTorch's default")
    read.add_argument("--seed", type=int, default=0)
    read.add_argument("--images", type=int, default=8000, help="the first training images, at most 8,000")
    read.add_argument("--out", type=pathlib.Path, required=True, help="the CSV to write")
    arguments = read.parse_args()
    start(arguments)
    images, labels = (part[: arguments.images] for part in cifar(arguments.data, "data_batch_1"))
    test, y_test = cifar(arguments.data, "test_batch")
    x_test = normalised(test)
    torch.manual_seed(arguments.seed)
    network = kaiming(ResNet20()) if arguments.init == "kaiming" else ResNet20()
    optimiser = torch.optim.SGD(
        network.parameters(), arguments.lr, arguments.momentum, weight_decay=arguments.weight_decay, nesterov=True
    )
    per_epoch = math.ceil(len(images) / arguments.batch)
    spent, times, rows = 0.0, [], []
    with open(arguments.out, "w") as out:
        print("epoch,train_loss,validation_loss,validation_accuracy,seconds", file=out)
        for epoch in range(arguments.epochs):
            begin = time.perf_counter()
            done, steps = epoch * per_epoch, arguments.epochs * per_epoch
            loss = epoch_of_training(network, optimiser, images, labels, done, steps, arguments)
            times.append(time.perf_counter() - begin)
            spent += times[-1]
            rows.append((loss, *validate(network, x_test, y_test)))
            print(f"{epoch + 1},{loss:.6f},{rows[-1][1]:.6f},{rows[-1][2]:.4f},{spent:.3f}", file=out, flush=True)
    last = rows[-1] if rows else (None, None, None)
    report(
        arguments,
        **{name: getattr(arguments, name) for name in ("epochs", "batch", "lr", "momentum", "weight_decay", "init", "seed")},
        images=len(images),
        train_s=round(spent, 2),
        epoch_s=[round(min(times), 3), round(sorted(times)[len(times) // 2], 3)] if times else None,
        train_loss=last[0],
        validation_loss=last[1],
        validation_accuracy=last[2],
    )


if __name__ == "__main__":
    main()
