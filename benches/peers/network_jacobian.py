"""Per-example Jacobians, or the empirical tangent kernel, of the trained MNIST perceptron with torch.func.

Without --kernel: Jacobians (images, 10, 199,210) by vmap(jacrev(functional_call)), held at once; 4 GB for 500 images.
With --kernel: the blocks K[i, j] = J_i J_j^T (10 x 10) of the tangent kernel as in PyTorch's neural-tangent-kernel tutorial,
by contraction of Jacobians and by vector-Jacobian-Jacobian-vector products (ntk-vps), in chunks that bound the memory.

Quality is against K[i, j] = sum over layers of (a_i.a_j + 1) D_i D_j^T written out by hand in float64, a the layer's input and
D (10 x width) the derivative of the outputs by the layer's result; the same formula in float32 is timed as by_hand_s."""
import time

import torch
from network_common import existing, mnist, parser, peak_gigabytes, perceptron, relative_error, report, seconds, start, summary
from safetensors.torch import load_file
from torch.func import functional_call, jacrev, jvp, vjp, vmap

CLASSES = 10
METHODS = ("contraction", "ntk-vps")


def outputs_of(network):
    """f(parameters, image) -> (10), for one image of 784 pixels."""
    return lambda parameters, image: functional_call(network, parameters, (image.unsqueeze(0),)).squeeze(0)


def jacobians(f, parameters, x, chunk):
    """{name: (n, 10, *shape)}; chunk images are differentiated at a time (None: all)."""
    return vmap(jacrev(f), (None, 0), chunk_size=chunk)(parameters, x)


def contraction(f, parameters, x, chunk):
    """(n, n, 10, 10) from Jacobians of at most two chunks of images at a time, contracted parameter by parameter."""
    kernel = x.new_empty(len(x), len(x), CLASSES, CLASSES)
    for row in range(0, len(x), chunk):
        left = jacobians(f, parameters, x[row : row + chunk], None)
        for column in range(0, len(x), chunk):
            right = left if column == row else jacobians(f, parameters, x[column : column + chunk], None)
            kernel[row : row + chunk, column : column + chunk] = sum(
                torch.einsum("iap,jbp->ijab", left[name].flatten(2), right[name].flatten(2)) for name in left
            )
            del right
        del left
    return kernel


def ntk_vps(f, parameters, x, chunk):
    """(n, n, 10, 10) without holding Jacobians: row a of block (i, j) is J_j J_i^T e_a, a pullback and a pushforward.

    vmap copies the first layer's tangent for every pair, hence tiles of chunk x chunk pairs (6.3 MB a pair)."""

    def block(x1, x2):
        _, pullback = vjp(lambda p: f(p, x1), parameters)
        basis = torch.eye(CLASSES, dtype=x.dtype)
        return vmap(lambda e: jvp(lambda p: f(p, x2), (parameters,), pullback(e))[1])(basis)

    tile = vmap(vmap(block, (None, 0)), (0, None))
    parts = x.split(chunk)
    return torch.cat([torch.cat([tile(left, right) for right in parts], 1) for left in parts])


def by_hand(network, x):
    """(n, n, 10, 10) from layer inputs and output derivatives of a tanh perceptron."""
    with torch.no_grad():
        inputs, layers = [x], [network[0], network[2], network[4]]
        for layer in layers[:-1]:
            inputs.append(torch.tanh(layer(inputs[-1])))
        slope = torch.eye(CLASSES, dtype=x.dtype).expand(len(x), -1, -1)
        kernel = x.new_zeros(len(x), CLASSES, len(x), CLASSES)
        for depth in (2, 1, 0):
            rows = slope.reshape(len(x) * CLASSES, -1)
            term = (rows @ rows.T).view_as(kernel)
            kernel += term.mul_((inputs[depth] @ inputs[depth].T).add_(1)[:, None, :, None])
            slope = slope @ layers[depth].weight * (1 - inputs[depth] ** 2)[:, None, :]
        return kernel.transpose(1, 2)


def one_by_one(network, image):
    """(10, parameters) of one image in float64: one reverse pass of autograd for each output."""
    outputs = network(image.unsqueeze(0))[0]
    rows = [torch.autograd.grad(o, network.parameters(), retain_graph=True) for o in outputs]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


def measure_jacobians(f, parameters, double, x, arguments):
    """Seconds of all Jacobians and the error of the first and the last against float64 autograd."""
    names = list(parameters)
    found = jacobians(f, parameters, x, arguments.chunk_size)
    errors = []
    for i in {0, len(x) - 1}:
        flat = torch.cat([found[name][i].flatten(1) for name in names], 1)
        errors.append(relative_error(flat, one_by_one(double, x[i].double())))
    del found
    return {
        "chunk_size": arguments.chunk_size,
        "jacobians_s": seconds(lambda: jacobians(f, parameters, x, arguments.chunk_size), arguments.repetitions),
        "jacobians_error": max(errors),
    }


def measure_kernel(f, parameters, network, double, x, arguments):
    """Seconds and error of the kernel by every chosen method and by hand."""
    exact = by_hand(double, x.double())
    plans = {
        "contraction": (contraction, arguments.contraction_chunk, len(x)),
        "ntk-vps": (ntk_vps, arguments.vps_chunk, min(len(x), arguments.vps_images)),
    }
    measured = {}
    for method in arguments.methods:
        work, chunk, count = plans[method]
        work(f, parameters, x[: min(count, 8)], chunk)
        times = []
        for _ in range(arguments.repetitions):
            begin = time.perf_counter()
            found = work(f, parameters, x[:count], chunk)
            times.append(time.perf_counter() - begin)
        name = method.replace("-", "_")
        measured |= {
            f"{name}_images": count,
            f"{name}_chunk": chunk,
            f"{name}_s": summary(times),
            f"{name}_error": relative_error(found, exact[:count, :count]),
            f"{name}_peak_gb": peak_gigabytes(),
        }
        del found
    measured["by_hand_s"] = seconds(lambda: by_hand(network, x), max(3, arguments.repetitions))
    measured["by_hand_error"] = relative_error(by_hand(network, x), exact)
    return measured


def main():
    read = parser(__doc__.splitlines()[0])
    read.add_argument("--images", type=int, default=500, help="the first images of the MNIST test set")
    read.add_argument("--repetitions", type=int, default=None, help="timed repetitions (default 5, with --kernel 1)")
    read.add_argument("--chunk-size", type=int, default=None, help="Jacobians: images per chunk of vmap (default: all)")
    read.add_argument("--kernel", action="store_true", help="measure the tangent kernel instead")
    read.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="kernel: what to measure")
    read.add_argument("--contraction-chunk", type=int, default=500, help="kernel: images whose Jacobians are held, twice")
    read.add_argument("--vps-chunk", type=int, default=8, help="kernel: ntk-vps works on tiles of this many images squared")
    read.add_argument("--vps-images", type=int, default=100, help="kernel: images for ntk-vps at most, 3 to 4 ms a pair")
    arguments = read.parse_args()
    start(arguments)
    arguments.repetitions = arguments.repetitions or (1 if arguments.kernel else 5)
    weights = load_file(str(existing(arguments.data / "networks" / "mlp_mnist.safetensors")))
    network, double = perceptron(), perceptron().double()
    network.load_state_dict(weights)
    double.load_state_dict(weights)
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    x = mnist(arguments.data, "t10k")[0][: arguments.images].clone()
    f = outputs_of(network)
    if arguments.kernel:
        measured = measure_kernel(f, parameters, network, double, x, arguments)
    else:
        measured = measure_jacobians(f, parameters, double, x, arguments)
    report(arguments, images=len(x), repetitions=arguments.repetitions, **measured, peak_gb=peak_gigabytes())


if __name__ == "__main__":
    main()
