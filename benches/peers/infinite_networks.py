"""Kernel matrices of infinitely wide networks on the processor, in JAX (needs `jax`), by the formulas of this project: n x n (both triangles) of n points.
usage: infinite_networks.py [dense_n] [images_n] [--block PAIRS]; THREADS sets the threads (2). Fully connected: depth 5 and read-out, ReLU and error function, D = 20. Images: 28 x 28, (convolution
3 x 3, ReLU, mean over 2 x 2) twice, dense, ReLU, read-out, with offsets between positions up to 3 before the first pool and up to 1 before the second, blocks of
`--block` images on either side at a time.
float64 and float32. One JSON line with the best and the median seconds, and the largest error in the specification's values.
The same here: cargo bench -p posterior-kernels --bench infinite"""
import argparse, concurrent.futures, functools, json, os, statistics, time

threads = int(os.environ.get("THREADS", "2"))
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def relu(a, c, b):
    root = jnp.sqrt(jnp.maximum(a * b - c * c, 0))
    return (root + (np.pi - jnp.arctan2(root, c)) * c) / (2 * np.pi)


def erf(a, c, b):
    root = jnp.sqrt(jnp.maximum((1 + 2 * a) * (1 + 2 * b) - 4 * c * c, 1 + 2 * (a + b)))
    return 2 / np.pi * jnp.arctan2(2 * c, root)


def stack(a, c, b, activations, scales):
    """Fully connected layers: variances a (n), b (m), covariances c (n x m)."""
    for (w, s), phi in zip(scales, [*activations, None]):
        a, c, b = (w * w * k + s * s for k in (a, c, b))
        if phi:
            a, c, b = phi(a, a, a), phi(a[:, None], c, b[None, :]), phi(b, b, b)
    return c


@functools.partial(jax.jit, static_argnums=(2, 3))
def dense(x, z, activations, scales):
    d = x.shape[1]
    return stack((x * x).sum(1) / d, x @ z.T / d, (z * z).sum(1) / d, activations, scales)


def box(k):
    """Sums over 3 x 3 positions."""
    k = k[..., :-2, :] + k[..., 1:-1, :] + k[..., 2:, :]
    return k[..., :-2] + k[..., 1:-1] + k[..., 2:]


def at_offsets(z, reach):
    """z[..., p + offset] for all offsets up to `reach` in both directions, zeros outside: (2 reach + 1)^2 x ..."""
    h, w = z.shape[-2:]
    wide = jnp.pad(z, [(0, 0)] * (z.ndim - 2) + [(reach, reach)] * 2)
    steps = range(2 * reach + 1)
    return jnp.stack([wide[..., i : i + h, j : j + w] for i in steps for j in steps])


def pooled(k, reach, size):
    """Means over windows of 2 x 2 of both images: offsets up to `reach` and positions up to `size` behind, from K[offset, ..., p] with offsets up to 2 reach + 1."""
    inner = 4 * reach + 3
    k = k.reshape(inner, inner, *k.shape[1:])
    offsets, halves = range(-reach, reach + 1), range(2)
    at = lambda o, d, e: k[2 * (o + reach) + e - d + 1]
    rows = lambda o, d, e: at(o, d, e)[..., d : d + 2 * size - 1 : 2, :]
    k = jnp.stack([sum(rows(o, d, e) for d in halves for e in halves) for o in offsets], 1)
    columns = lambda o, d, e: at(o, d, e)[..., d : d + 2 * size - 1 : 2]
    k = jnp.stack([sum(columns(o, d, e) for d in halves for e in halves) for o in offsets], 1)
    return k.reshape((2 * reach + 1) ** 2, *k.shape[2:]) / 16


def layers(x, z, sides, scales):
    """Convolution, ReLU, pool, twice, mean over positions: offsets up to 3 before the first pool, up to 1 before the second. x and z are such that x * z are all pairs; `sides` are both
    images' variances before each activation."""
    (a1, b1), (a2, b2) = sides
    last = ((x.shape[-1] - 2) // 2 - 2) // 2
    (w, s), (v, t) = scales[:2]
    k = w * w / 9 * box(x * at_offsets(z, 3)) + s * s
    k = pooled(relu(a1, k, at_offsets(b1, 3)), 1, (x.shape[-1] - 2) // 2)
    k = v * v / 9 * box(k) + t * t
    return pooled(relu(a2, k, at_offsets(b2, 1)), 0, last)[0].mean((-2, -1))


def positions_own(x, scales):
    """Variances before both activations, and the mean behind the second pool, of images with themselves."""
    (w, s), (v, t) = scales[:2]
    a1 = w * w / 9 * box(x * x) + s * s
    k = w * w / 9 * box(x * at_offsets(x, 3)) + s * s
    k = pooled(relu(a1, k, at_offsets(a1, 3)), 1, (x.shape[-1] - 2) // 2)
    a2 = v * v / 9 * box(k[4]) + t * t
    return a1, a2, layers(x, x, ((a1, a1), (a2, a2)), scales)


@functools.partial(jax.jit, static_argnums=2)
def own(x, _, scales):
    return positions_own(x, scales)


@functools.partial(jax.jit, static_argnums=2)
def images(first, second, scales):
    """Kernel of two blocks of images with what belongs to each alone."""
    (x, a1, a2, a), (z, b1, b2, b) = first, second
    left, right = (lambda t: t[:, None]), (lambda t: t[None, :])
    sides = (left(a1), right(b1)), (left(a2), right(b2))
    return stack(a, layers(left(x), right(z), sides, scales), b, (relu,), scales[2:])


def image_matrix(x, scales, block):
    """Blocks of images, one for each thread at a time."""
    blocks = [(x[i : i + block], *own(x[i : i + block], None, scales)) for i in range(0, len(x), block)]
    out = np.empty((len(x), len(x)), x.dtype)

    def tile(place):
        i, j = place
        k = np.asarray(images(blocks[i], blocks[j], scales))
        out[i * block : i * block + k.shape[0], j * block : j * block + k.shape[1]] = k

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(tile, np.ndindex(len(blocks), len(blocks))))
    return out


def measured(work, repetitions):
    work()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        jax.block_until_ready(work())
        times.append(time.perf_counter() - start)
    return [round(min(times), 4), round(statistics.median(times), 4)]


def reference_error():
    """Of a fully connected network of the specification (section 20), and of a pair of images by all pairs of positions."""
    x = jnp.array([[1, 2, -1], [0.5, -0.3, 0.2], [0, 1, 1]], float)
    k = dense(x, x, (relu, erf), ((1.5, 0.3), (1.2, 0.1), (0.9, 0.2)))
    expected = [[0.5830124151, 0.1191323344, 0.2425485857], [0.1191323344, 0.2293349913, 0.1277512512]]
    error = float(abs(k[:2] - np.array(expected)).max())
    scales = ((1.1, 0.2), (1.3, 0.3), (0.9, 0.1), (1.0, 0.4))
    x = np.random.default_rng(0).normal(size=(2, 14, 14))
    own_positions = lambda k: np.einsum("pqpq->pq", k)
    all_of = [np.einsum("pq,rs->pqrs", x[i], x[j]) for i, j in ((0, 0), (0, 1), (1, 1))]
    for w, s in scales[:2]:
        n = all_of[0].shape[0]
        taps = [(d, e) for d in range(3) for e in range(3)]
        cut = lambda k, d, e: k[d : n - 2 + d, e : n - 2 + e, d : n - 2 + d, e : n - 2 + e]
        all_of = [w * w / 9 * sum(cut(k, d, e) for d, e in taps) + s * s for k in all_of]
        a, c, b = all_of
        va, vb = own_positions(a), own_positions(b)
        phi = lambda k, u, v: np.asarray(relu(u[:, :, None, None], k, v[None, None]))
        all_of = [phi(a, va, va), phi(c, va, vb), phi(b, vb, vb)]
        m = (n - 2) // 2
        halves = lambda k: k[: 2 * m, : 2 * m, : 2 * m, : 2 * m].reshape(m, 2, m, 2, m, 2, m, 2).mean((1, 3, 5, 7))
        all_of = [halves(k) for k in all_of]
    a, c, b = (own_positions(k).mean() for k in all_of)
    expected = stack(jnp.array([a]), jnp.array([[c]]), jnp.array([b]), (relu,), scales[2:])
    return max(error, float(abs(image_matrix(jnp.array(x), scales, 2)[0, 1] - expected[0, 0])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("dense_n", nargs="?", type=int, default=2000)
    parser.add_argument("images_n", nargs="?", type=int, default=500)
    parser.add_argument("--block", type=int, default=16)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    out = {"dense_n": args.dense_n, "images_n": args.images_n, "block": args.block, "threads": threads}
    out["reference_error"] = reference_error()
    for kind in ("float64", "float32"):
        x = jnp.array(rng.normal(size=(args.dense_n, 20)), kind)
        for phi in (relu, erf):
            work = lambda: dense(x, x, (phi,) * 5, ((1.4, 0.3),) * 6)
            out[f"dense_{phi.__name__}_{kind}_s"] = measured(work, 9)
        x = jnp.array(rng.normal(size=(args.images_n, 28, 28)), kind)
        out[f"images_{kind}_s"] = measured(lambda: image_matrix(x, ((1.4, 0.3),) * 4, args.block), 1)
    print(json.dumps(out))
