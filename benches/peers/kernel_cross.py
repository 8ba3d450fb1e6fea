"""Matern-3/2 kernel matrix, n x n, D = 8, float32, in PyTorch: distances by matrix product and by torch.cdist.
usage: kernel_cross.py [n] [d]; THREADS sets the threads (2). One JSON line with the best and the median seconds."""
import json, os, sys, time
import torch

torch.set_num_threads(int(os.environ.get("THREADS", "2")))
n, d = int((sys.argv[1:2] or ["8000"])[0]), int((sys.argv[2:3] or ["8"])[0])
x = torch.randn(n, d)
root3 = 3 ** 0.5


def by_product():
    s = (x * x).sum(1)
    q = (s[:, None] + s[None, :]).addmm_(x, x.T, alpha=-2).clamp_min_(0).sqrt_().mul_(root3)
    return torch.exp(-q).mul_(q.add_(1))


def by_cdist():
    q = torch.cdist(x, x).mul_(root3)
    return torch.exp(-q).mul_(q.add_(1))


with torch.no_grad():
    out = {"n": n, "d": d, "threads": torch.get_num_threads()}
    for f in (by_product, by_cdist):
        f()
        times = []
        for _ in range(9):
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
        out[f.__name__ + "_s"] = [round(min(times), 4), round(sorted(times)[4], 4)]
    print(json.dumps(out))
