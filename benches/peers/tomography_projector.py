"""Projection, back-projection and filtered back-projection of a parallel beam beside scikit-image and ASTRA's projector for processors; needs numpy, scikit-image and, for ASTRA, astra-toolbox.

usage: tomography_projector.py --binary PROJECT_TIME [--size 256] [--angles 180] [--repetitions 9]
PROJECT_TIME is what `cargo build --release -p posterior-tomography --example project_time` makes; it is run here. One JSON line: seconds (fewest of the repetitions)
and how often ours goes into theirs. scikit-image computes in float64 and sees only the inner circle (256 detector elements for 365), ASTRA in float32 with the same detector as ours,
by interpolation as ours does (`linear`) and by lengths in pixels (`line`); both on one thread, ours on one and two."""
import argparse
import json
import math
import subprocess
import time

import numpy as np


def best(work, repetitions):
    """The fewest seconds of some runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def scikit_image(image, angles, repetitions):
    """Seconds of scikit-image, fewer repetitions of which do: it takes a hundred times as long."""
    from skimage.transform import iradon, radon

    degrees = np.arange(angles) * 180 / angles
    sinogram = radon(image, degrees, circle=True)
    few = min(repetitions, 3)
    return {
        "forward_s": best(lambda: radon(image, degrees, circle=True), few),
        "backward_s": best(lambda: iradon(sinogram, degrees, filter_name=None, circle=True), few),
        "fbp_s": best(lambda: iradon(sinogram, degrees, filter_name="ramp", circle=True), few),
    }


def astra_processor(image, angles, repetitions, kind):
    """Seconds of ASTRA's projector of some kind."""
    import astra

    size = len(image)
    radius = 0.5 * math.hypot(size, size)
    detectors = 2 * math.ceil(radius) + 1
    beam = astra.create_proj_geom("parallel", 2 * radius / detectors, detectors, np.arange(angles) * np.pi / angles)
    projector = astra.create_projector(kind, beam, astra.create_vol_geom(size, size))
    operator = astra.OpTomo(projector)
    flat = image.ravel().astype(np.float32)
    sinogram = operator.FP(flat)
    return {
        "forward_s": best(lambda: operator.FP(flat), repetitions),
        "backward_s": best(lambda: operator.BP(sinogram), repetitions),
        "fbp_s": best(lambda: operator.reconstruct("FBP", sinogram), repetitions),
    }


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--binary", required=True, help="the example project_time")
    made.add_argument("--size", type=int, default=256, help="pixels a side")
    made.add_argument("--angles", type=int, default=180)
    made.add_argument("--repetitions", type=int, default=9)
    arguments = made.parse_args()
    from skimage.data import shepp_logan_phantom
    from skimage.transform import resize

    size, angles, repetitions = arguments.size, arguments.angles, arguments.repetitions
    image = resize(shepp_logan_phantom(), (size, size), anti_aliasing=True)
    numbers = [str(n) for n in (size, angles, repetitions)]
    ours = json.loads(subprocess.run([arguments.binary, *numbers], check=True, capture_output=True, text=True).stdout)
    peers = {"scikit_image": scikit_image(image, angles, repetitions)}
    try:
        for kind in ("linear", "line"):
            peers[f"astra_{kind}"] = astra_processor(image, angles, repetitions, kind)
    except ImportError as error:
        peers["astra"] = f"not there: {error}"
    ratios = {}
    for run in ours["runs"]:
        for peer, seconds in peers.items():
            if isinstance(seconds, str):
                continue
            # Against the peer's own precision.
            own = {**run["f64" if peer == "scikit_image" else "f32"], "fbp_s": run["fbp_s"]}
            name = f"{peer}_over_ours_{run['threads']}_threads"
            ratios[name] = {key.removesuffix("_s"): round(seconds[key] / own[key], 2) for key in seconds}
    print(json.dumps({"size": size, "angles": angles, "ours": ours["runs"], "peers": peers, "ratios": ratios}))


if __name__ == "__main__":
    main()
