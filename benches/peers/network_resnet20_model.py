"""ResNet-20 for 32 x 32 images (He et al. 2016, section 4.2) with parameter-free "option A" shortcuts.

Three stages of three blocks with 16, 32 and 64 channels; where a stage halves the image, the shortcut takes every second
pixel and pads the channels with zeros, half before and half after. 269,722 parameters; parameter names as in
`resnet20_cifar10.safetensors` (conv1, bn1, layer1.0.conv1, ..., linear)."""
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn


class Block(nn.Module):
    """y = relu(shortcut(x) + bn2(conv2(relu(bn1(conv1(x))))))."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.pad = stride, (channels - channels_in) // 2

    def forward(self, x):
        shortcut = x
        if self.stride != 1 or self.pad:
            shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(shortcut + self.bn2(self.conv2(y)))


class ResNet20(nn.Module):
    """Images (n, 3, 32, 32) to logits (n, 10)."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = stage(16, 16, 1)
        self.layer2 = stage(16, 32, 2)
        self.layer3 = stage(32, 64, 2)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def stage(channels_in, channels, stride):
    """Three blocks; the first changes channels and size."""
    return nn.Sequential(
        Block(channels_in, channels, stride), Block(channels, channels, 1), Block(channels, channels, 1)
    )


def pretrained(path):
    """The network with the weights of a safetensors file, which must hold every tensor but the batch counters."""
    network = ResNet20()
    missing, unexpected = network.load_state_dict(load_file(str(path)), strict=False)
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or unexpected:
        raise ValueError(f"{path}: missing tensors {missing}, unexpected tensors {unexpected}")
    return network


def kaiming(network):
    """Kaiming normal weights (fan in) for convolutions and the linear layer; biases keep their defaults."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(module.weight)
    return network
