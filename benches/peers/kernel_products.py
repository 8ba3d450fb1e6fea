"""Products with the Matern-3/2 kernel matrix of n points, never stored, float32, by KeOps on the processor; needs pykeops and a C++ compiler.
usage: kernel_products.py [n] [d]; THREADS sets the threads (2). One JSON line with the best and the median seconds for 1 and 65 vectors.
The same here: cargo bench -p posterior-kernels --bench matrix"""
import json, os, statistics, sys, time

threads = os.environ.get("THREADS", "2")
os.environ["OMP_NUM_THREADS"] = threads
import torch
from pykeops.torch import LazyTensor

torch.set_num_threads(int(threads))
n, d = int((sys.argv[1:2] or ["41000"])[0]), int((sys.argv[2:3] or ["9"])[0])
x = torch.randn(n, d)
rows, columns = LazyTensor(x[:, None, :]), LazyTensor(x[None, :, :])
scaled = (3 * ((rows - columns) ** 2).sum(-1)).sqrt()
matrix = (1 + scaled) * (-scaled).exp()
out = {"n": n, "d": d, "threads": torch.get_num_threads()}
for vectors in (1, 65):
    v = torch.randn(n, vectors)
    matrix @ v  # compiles
    times = []
    for _ in range(2):
        start = time.perf_counter()
        matrix @ v
        times.append(time.perf_counter() - start)
    out[f"product_{vectors}_s"] = [min(times), statistics.median(times)]
print(json.dumps(out))
