#!/usr/bin/env python3
"""Compare the results of two builds of the binary, bit for bit, on small synthetic data.

    python3 benches/same_results.py BEFORE AFTER [--threads N[,M]] [--only TEXT] [--other-layout] [--added]
    python3 benches/same_results.py --record FOLDER BINARY
    python3 benches/same_results.py --against FOLDER BINARY
    python3 benches/same_results.py --list

Each build runs the same commands in a folder of its own. For each command the exit status, the JSON on standard output, the text on
standard error, all files that the command writes, and what `inspect --json` says of models among them are compared. `equal` means bit for bit, with two exceptions: the values that VOLATILE
and TIMES list, and the order of keys in JSON that holds such values. `--threads 1,4` gives the second build another number of threads: the
same build twice then shows whether results depend on it. `--other-layout` leaves out the bytes of model files, for a change of their
layout. Commands are written here in their old form, in which every file has a flag; `grammar.toml` has the new form, into which they are
translated for each build that reads it. `--added` is for a change that adds keys to JSON: keys that only the second build has are left out. Exit status: 0 if all commands are equal, 1 if not. Needs Python only. Two builds
take about two minutes on two cores.
"""

import argparse
import ast
import csv
import io
import json
import math
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib

# Values that differ between two runs of one build, by full name: wall time, peak memory, absolute paths, the version, and the size of a
# model file, which holds seconds. `header` is what `inspect --json` shows of a model.
VOLATILE = set("""
seconds peak_memory_bytes targets[].seconds targets[].peak_memory_bytes targets[].tried[].seconds targets[].models[].seconds
models[].seconds tried[].seconds plan.seconds planned.seconds prior.turns[].seconds shared_kernel.seconds
check.reached_seconds check.tried[].seconds large_table.seconds[] large_table.deep.tried[].seconds large_table.gvi.tried[].seconds
learned_features.plain.seconds learned_features.learned.tried[].seconds
members[].model.header.seconds members[].model.header.summary.seconds[]
header.seconds header.summary.seconds[] header.auto.candidates[].seconds
header.summary.learned.fixed_mean.seconds header.summary.learned.gwi.seconds header.summary.learned.mean_field.seconds
header.summary.learned.sampled.report.turns[].seconds header.shared.seconds
header.fit.seconds header.fit.tried[].seconds header.fit.check.reached_seconds header.fit.check.tried[].seconds
header.fit.scalable.seconds[] header.fit.scalable.deep.tried[].seconds header.fit.scalable.gvi.tried[].seconds
header.fit.features.plain.seconds header.fit.features.learned.tried[].seconds
header.fit.variation.plain.seconds header.fit.variation.learned.tried[].seconds
header.fit.gaussian_labels.members[].fit.seconds header.fit.gaussian_labels.members[].fit.scalable.seconds[]
header.run.seconds header.run.peak_memory_bytes
input.file output.file header.stream.input.file header.stream.output.file crate_version bytes
""".split())
VOLATILE |= {f"targets[].{name}" for name in VOLATILE if not name.startswith(("targets", "header.run", "header.stream"))}


def in_files(names):
    """The same, and where model files have them: under the source of each model."""
    sources = ("table", "network", "ensemble.members[].source.network")
    shown = [name.removeprefix("header.") for name in names if name.startswith("header.")]
    return names | {f"header.models[].source.{source}.{name}" for source in sources for name in shown}


VOLATILE = in_files(VOLATILE)

# Planned memory, which depends on the number of threads: not compared where the two builds use different numbers.
PLANNED = in_files({"planned_memory_bytes", "header.summary.plan.batch_bytes", "header.auto.candidates[].plan.batch_bytes"})
# Wall time in reports: facts, and the rows of tables with a column of seconds. Standard output has the other numbers of these rows.
TIMES = r'<dt>(?:seconds|tried [^<]*)</dt><dd>[^<]*</dd>|<th scope="col">seconds</th>.*?</tbody>'

TRAIN = "train --data train.csv --features a,b,c --epochs 20 --batch 32 --learning-rate 0.01 --seed 3"
NETWORKS = {
    "values": "--architecture one.toml --target y --loss mse",
    "noise": "--architecture two.toml --target y --loss gaussian --optimizer adamw --weight-decay 0.01 --schedule cosine",
    "classes": "--architecture three.toml --target colour --loss cross-entropy --validation-fraction 0.2 --patience 10",
    "as-numbers": "--architecture three.toml --target colour --loss gaussianised --precision f64",
    "yes-no": "--architecture one.toml --target answer --loss one-hot --schedule step --drop-every 40",
    "prior": "--architecture one.toml --target y --loss gaussian --laplace --laplace-burn-in 5 --laplace-every 5 --laplace-steps 5",
    "prior-full": "--architecture one.toml --target y --loss gaussian --laplace --laplace-curvature full --laplace-rule mackay "
                  "--laplace-select evidence --laplace-first-order",
    "nets/1": "--architecture one.toml --target y --loss mse --clip 1",
    "nets/2": "--architecture one.toml --target y --loss mse --optimizer sgd --schedule one-cycle",
}

# Fits of Gaussian processes. Flags name every search and limit that could depend on the speed of the machine.
PROCESS = "fit gp --data train.csv --features a,b,c --seed 3"
SHORT = "--steps 10 --restarts 1"
BLOCKS = "--blocks 1 --block-size 60 --refining-rows 0"
SAMPLES = "--samples 16 --random-features 200"
BOUND = "--iterations 20 --inducing 20"
BATCHES = f"--inference variational --batch 64 {BOUND}"
DEEP = "--basis features.toml --iterations 40 --patience 10 --batch 64"
GVI = "--iterations 40 --inducing 20 --prior-rows 60"
PROCESSES = {
    "auto": "--target y",
    "exact": "--target y --method exact --steps 20",
    "leave-one-out": f"--target y --method exact --objective leave-one-out {SHORT}",
    "adam": f"--target y --method exact --optimizer adam --calibrate conformal {SHORT}",
    "given": "--target y --method exact --hyperparameters exact.posterior",
    "bounded": f"--target y --method exact --fix noise_variance=0.01 --bound matern32.variance=0.3..3 --row-weights hours {SHORT}",
    "sum": f"--target y --method exact --mean linear --kernel 'se(ard) * periodic(a) + linear' {SHORT}",
    "additive": f"--target y --method exact --kernel 'additive(matern32, ard, order=2)' {SHORT}",
    "nngp": f"--target y --method exact --kernel 'nngp(depth=2, relu)' {SHORT}",
    "folds": f"--target y --method exact --folds 3 {SHORT}",
    "known-noise": f"--target y --method exact --noise variance {SHORT}",
    "heteroscedastic": f"--target y --method exact --noise heteroscedastic {SHORT}",
    "transform": f"--target skewed --method exact {SHORT}",
    "transform-log": f"--target skewed --method exact --target-transform log {SHORT}",
    "two-targets": f"--target y,skewed --method exact {SHORT}",
    "shared-kernel": f"--target y,wild --method exact --share-kernel {SHORT}",
    "mixed-targets": f"--target y,colour --method exact {SHORT}",
    "sdd": f"--target y --method sdd --iterations 200 {BLOCKS} {SAMPLES}",
    "sgd": f"--target y --method sgd --iterations 200 {BLOCKS} {SAMPLES}",
    "inducing-sgd": f"--target y --method inducing-sgd --inducing 40 --iterations 200 {BLOCKS} {SAMPLES}",
    "cg": f"--target y --method cg --iterations 50 {BLOCKS} {SAMPLES}",
    "cg-nystrom": "--target y --method cg --preconditioner nystrom --precision f64 --feature-form phase "
                  f"--feature-frequencies orthogonal --iterations 50 {BLOCKS} {SAMPLES}",
    "cg-stochastic": f"--target y --method cg --hyperparameter-search stochastic --steps 5 --iterations 50 {SAMPLES}",
    "cg-refined": "--target y --method cg --hyperparameter-search refined --search-solver cg --probe-kind signs --steps 5 "
                  f"--iterations 50 {BLOCKS} {SAMPLES}",
    "cg-near": "--target y --method cg --hyperparameter-search neighbourhoods --neighbourhoods 2 --neighbourhood-size 60 "
               f"--iterations 50 {SAMPLES}",
    "sap": f"--target y --method sap --iterations 20 {BLOCKS} {SAMPLES}",
    "sap-sketch": f"--target y --method sap --rank 10 --block-rows 40 --acceleration none --iterations 20 {BLOCKS} {SAMPLES}",
    "sgpr": f"--target y --method sgpr {BOUND}",
    "sgpr-greedy": f"--target y --method sgpr --inducing-choice greedy --fixed-inducing --from-disk {BOUND}",
    "svgp": f"--target y --method svgp --batch 64 {BOUND}",
    "svgp-adam": f"--target y --method svgp --variational adam --inducing-choice cover --batch 64 {BOUND}",
    "student-t": f"--target wild --method exact --likelihood student-t {SHORT}",
    "student-t-svgp": f"--target wild --method svgp --likelihood student-t {BATCHES}",
    "poisson": f"--target count --method exact --likelihood poisson {SHORT}",
    "poisson-sdd": f"--target count --method sdd --likelihood poisson --iterations 200 --blocks 1 --block-size 60 {SAMPLES}",
    "poisson-svgp": f"--target count --method svgp --likelihood poisson {BATCHES}",
    "exposure": f"--target count --exposure hours --method exact --likelihood poisson --inference laplace {SHORT}",
    "negative-binomial": f"--target count --method exact --likelihood negative-binomial {SHORT}",
    "exposure-svgp": f"--target count --exposure hours --method svgp --likelihood negative-binomial {BATCHES}",
    "bernoulli": f"--target answer --method exact --likelihood bernoulli {SHORT}",
    "bernoulli-laplace": f"--target answer --method exact --likelihood bernoulli --inference laplace {SHORT}",
    "bernoulli-svgp": f"--target answer --method svgp --likelihood bernoulli {BATCHES}",
    "labels": f"--target colour --method exact {SHORT}",
    "labels-laplace": f"--target colour --method exact --inference laplace {SHORT}",
    "labels-learned": f"--target colour --method exact --pseudo-count learned {SHORT}",
    "labels-weights": f"--target colour --method exact --class-weights balanced --inference gaussianised --matching laplace {SHORT}",
    "labels-sgpr": f"--target colour --method sgpr --inference gaussianised --pseudo-count 0.1 --fixed-inducing {BOUND}",
    "labels-svgp": f"--target colour --method svgp {BATCHES}",
    "labels-sdd": "--target colour --method sdd --inference gaussianised --pseudo-count 0.1 --iterations 200 --blocks 1 "
                  f"--block-size 60 {SAMPLES}",
    "robust-max": f"--target colour --method svgp --likelihood robust-max {BATCHES}",
    "dbk": f"--target y --method dbk --objective evidence {DEEP}",
    "dbk-frozen": "--target y --method dbk --objective evidence --basis values.safetensors --basis-layer last-hidden --freeze-basis "
                  "--iterations 40",
    "svdbk": f"--target y --method svdbk --objective predictive --divergence-weight 0.1 {DEEP}",
    "dkl": f"--target y --method dkl --objective evidence --rank 16 {DEEP}",
    "dkl-dense": "--target y --method dkl --dense --objective evidence --basis features.toml --iterations 40",
    "dkl-points": "--target y --method dkl --basis none --correction noise --objective evidence --rank 16 --iterations 40",
    "svdkl": f"--target y --method svdkl --correction full --objective evidence --rank 16 {DEEP}",
    "svdbk-labels": f"--target colour --method svdbk {DEEP}",
    "svdkl-counts": f"--target count --method svdkl --likelihood poisson --rank 16 {DEEP}",
    "gvi": f"--target y --method gvi {GVI}",
    "gvi-elbo": f"--target y --method gvi --objective elbo {GVI}",
    "gvi-gwi": f"--target y --method gvi --objective gwi --mean-network one.toml --variational-kernel kernelised {GVI}",
    "gvi-labels": f"--target colour --method gvi --objective elbo {GVI}",
    "gvi-counts": f"--target count --method gvi --objective pgvi --mean-network one.toml --likelihood poisson {GVI}",
}

# Error bars of trained networks.
LAPLACE = "fit laplace --data train.csv --seed 3"
VALUES = "--network values.safetensors --likelihood gaussian"
LABELS = "--network classes.safetensors --likelihood categorical"
HELD = "--validation-data held.csv"
SEARCH = f"--steps 40 --batch 30 --validate-every 20 --inducing-points 12 {HELD}"
CURVATURES = {
    "best": f"{VALUES} --seconds 100000",
    "full": f"{VALUES} --curvature full",
    "mackay": f"{VALUES} --curvature full --prior layerwise --tune mackay --mode trained --noise fixed --initial-noise 0.04",
    "per-output": f"{VALUES} --curvature full --noise per-output --float64",
    "unseen": f"{VALUES} --curvature full --tune validation --mode trained --calibrate conformal {HELD}",
    "named": f"{VALUES} --curvature full --weights 0.* --mode linearised",
    "functions": f"{VALUES} --curvature function-space",
    "kronecker": f"{VALUES} --curvature kronecker",
    "simple": f"{VALUES} --curvature kronecker --mode linearised-simple --noise full",
    "diagonal": f"{VALUES} --curvature diagonal --prior diagonal --tune none --precision 2",
    "block": f"{VALUES} --curvature block --prior parameter",
    "low-rank": f"{VALUES} --curvature low-rank --rank 10",
    "last-layer": f"{VALUES} --curvature last-layer --prior g-prior",
    "subnetwork": f"{VALUES} --curvature subnetwork --subnetwork-size 30 --subnetwork-choice magnitude",
    "fixed-mean": f"{VALUES} --curvature fixed-mean {SEARCH}",
    "valla": f"{VALUES} --curvature valla {SEARCH}",
    "valla-closed": f"{VALUES} --curvature valla --inducing-points 12 --closed-form",
    "gwi": f"{VALUES} --curvature gwi {SEARCH}",
    "ella": f"{VALUES} --curvature ella --landmarks 40 --rank 10 {HELD}",
    "sampled": f"{VALUES} --curvature sampled --samples 8 --em-steps 2",
    "mean-field": f"{VALUES} --curvature mean-field --epochs 3 --batch 30",
    "temperature": f"{VALUES} --curvature temperature {HELD}",
    "counts": "--network plain.safetensors --architecture one.toml --features a,b,c --target count --likelihood poisson --curvature full",
    "noise-network": "--network noise.safetensors --likelihood heteroscedastic --curvature kronecker",
    "yes-no-network": "--network yes-no.safetensors --likelihood bernoulli --link probit --curvature full",
    "ensemble": "--network nets --likelihood gaussian",
    "mixture": "--network nets --likelihood gaussian --curvature last-layer",
    "c-best": f"{LABELS} --seconds 100000",
    "c-full": f"{LABELS} --curvature full --mode linearised",
    "c-kronecker": f"{LABELS} --curvature kronecker --fisher monte-carlo",
    "c-empirical": "--network as-numbers.safetensors --likelihood categorical --curvature kronecker --fisher empirical",
    "c-functions": f"{LABELS} --curvature function-space --points 30",
    "c-last-layer": f"{LABELS} --curvature last-layer",
    "c-last-diagonal": f"{LABELS} --curvature last-layer-diagonal",
    "c-unseen": f"{LABELS} --curvature diagonal --tune validation {HELD}",
    "c-folds": f"{LABELS} --curvature full --tune cross-validation --folds 3 --allow-seen-rows",
    "c-valla": f"{LABELS} --curvature valla --energy-draws 5 {SEARCH}",
    "c-gwi": f"{LABELS} --curvature gwi {SEARCH}",
    "c-ella": f"{LABELS} --curvature ella --landmarks 40 --rank 10 {HELD}",
    "c-sampled": f"{LABELS} --curvature sampled --samples 8 --em-steps 2 --solver descent --epochs 5 --batch 30",
    "c-mean-field": f"{LABELS} --curvature mean-field --epochs 3 --batch 30",
    "c-temperature": f"{LABELS} --curvature temperature {HELD}",
}

# What `predict` is asked of some of these models, beside the table of predictions.
PREDICT = {
    "exact": "--quantiles 0.05,0.5,0.95 --samples 4 --joint exact.npy", "given": "--latent --quantiles 0.1,0.9",
    "transform": "--quantiles 0.1,0.9", "student-t": "--quantiles 0.1,0.9", "poisson": "--quantiles 0.1,0.9",
    "sdd": "--samples 3", "cg": "--variances exact", "cg-nystrom": "--variances lanczos", "sgpr": "--joint sgpr.npy",
    "labels": "--sets 0.8,0.95 --top 2", "c-unseen": "--sets 0.9", "full": "--joint full.npy --samples 3 --samples-out draws.npy",
    "kronecker": "--predictive plug-in", "c-full": "--predictive bridge", "c-kronecker": "--predictive probit",
}

# All other commands. They run after those above and use their files.
FIT = "fit gp --seed 3 --data"
STREAM = "stream --batch 20 --last-line complete --seed 3 --lock-timeout 1000"
SCAN = "--sinogram sinogram.npy --geometry scan.toml"
DESIGN = "tomography design --geometry scanner.toml --measured 0,4,8,12,16,20 --sinogram sinogram.npy --count 3 --samples 50"
OTHERS = {
    "fit gp cox": f"{FIT} events.csv --window when=0:10 --method svdbk --rank 8 --iterations 40 --batch 64 --out cox.posterior",
    "predict cox": "predict --model cox.posterior --data hours.csv --quantiles 0.05,0.95 --out cox.csv",
    "fit gp nngp-conv": f"{FIT} pixels.csv --target y --kernel 'nngp-conv(shape=3x3, conv=2, relu, dense, relu)' {SHORT} --out conv.posterior",
    "fit gp categories": f"{FIT} train.csv --features a,b,colour --target y --kernel 'matern32(ard) * categorical(colour, rank=1)' {SHORT} "
                         "--out categories.posterior",
    "fit gp missing": f"{FIT} train.csv --features a,b,holes --target y --missing indicator {SHORT} --out missing.posterior",
    "fit gp calendar": f"{FIT} train.csv --features a,day --calendar day --target y {SHORT} --out calendar.posterior",
    "fit gp groups": f"{FIT} train.csv --features a,b --target y --test-fraction 0.2 --groups colour {SHORT} --out groups.posterior",
    "fit gp --continue": "fit gp --continue exact.posterior --data more.csv --out continued.posterior",
    "fit laplace --continue": "fit laplace --continue kronecker.posterior --data more.csv --out further.posterior",
    "predict --leave-one-out": "predict --model exact.posterior --data train.csv --leave-one-out --out left-out.csv",
    "compress": "compress --model sdd.posterior --inducing 40 --seed 3 --out small.posterior",
    "predict compressed": "predict --model small.posterior --data new.csv --out small.npy",
    "evaluate values": "evaluate --model exact.posterior --data held.csv --compare sgpr.posterior svgp.posterior --report values.html",
    "evaluate labels": "evaluate --model labels.posterior --data held.csv --compare labels-svgp.posterior c-full.posterior --ood new.csv",
    "evaluate counts": "evaluate --model poisson.posterior --data held.csv",
    "evaluate fold": "evaluate --model heteroscedastic.posterior --data held.csv --folds 3 --fold 1",
    "evaluate two targets": "evaluate --model two-targets.posterior --data held.csv",
    "evaluate network": "evaluate --model c-full.posterior --data held.csv --joint-kappa 1..3 --samples 20 --report network.html",
    "inspect table": "inspect train.csv",
    "inspect network": "inspect values.safetensors --support --report layers.html",
    "inspect exact": "inspect exact.posterior --report exact.html",
    "inspect labels": "inspect labels.posterior --report labels.html",
    "inspect cox": "inspect cox.posterior --report cox.html",
    "forward": "forward --network classes.safetensors --data inputs.npy --precision f64 --out outputs.npy",
    "forward features": "forward --network classes.safetensors --data inputs.npy --features --out features.csv",
    "fit laplace head": "fit laplace --head head.safetensors --data inputs.npy --labels classes.npy --likelihood categorical "
                        "--curvature last-layer-kronecker --seed 3 --out head.posterior",
    "predict head": "predict --model head.posterior --data inputs.npy --out head.csv",
    "stream values": f"{STREAM} --state s.stream --target y --features a,b,c --start-rows 80 --inducing-points 30 --data train.csv --out s.csv",
    "stream values again": f"{STREAM} --state s.stream --data more.csv --from next --out s.csv",
    "stream labels": f"{STREAM} --state l.stream --model labels-sgpr.posterior --data more.csv --out l.csv",
    "stream labels again": f"{STREAM} --state l.stream --data new.csv --out l.csv",
    "stream counts": f"{STREAM} --state c.stream --model poisson-svgp.posterior --data more.csv --out c.csv",
    "stream counts again": f"{STREAM} --state c.stream --data new.csv --out c.csv",
    "stream status": "stream --state s.stream --status",
    "optimize start": "optimize start --state o.json --space x:0..1,n:1..5:integer --initial 3 --search-candidates 200 --search-rounds 3 --seed 3",
    "optimize ask": "optimize ask --state o.json -n 3",
    "optimize tell": "optimize tell --state o.json --id 1 --value 0.7",
    "optimize tell failed": "optimize tell --state o.json --id 2 --failed broken",
    "optimize ask again": "optimize ask --state o.json -n 2",
    "optimize run": "optimize run --state o.json --evaluations 9 -- echo {n}{x}",
    "optimize status": "optimize status --state o.json",
    "label start": "label start --state p.json --pool train.csv --features a,b,c --labels known --criterion mutual-information --seed 3",
    "label ask": "label ask --state p.json -n 3",
    "label tell": "label tell --state p.json --row 80 --label blue",
    "label skip": "label tell --state p.json --row 82 --skip dark",
    "label ask again": "label ask --state p.json -n 2",
    "label status": "label status --state p.json",
    "label export": "label export --state p.json --out labelled.csv",
    "project": "tomography project --phantom rectangles --geometry scan.toml --seed 4 --out sinogram.npy --image-out truth.npy",
    "reconstruct filtered": f"tomography reconstruct {SCAN} --method filtered --filter hann --truth truth.npy --out filtered.npy",
    "reconstruct smooth": f"tomography reconstruct {SCAN} --truth truth.npy --out smooth.npy --report smooth.html",
    "reconstruct network": f"tomography reconstruct {SCAN} --method deep-image-prior --channels 4,4 --weight 1e-4 --iterations 60 "
                           "--network-out unet.safetensors --out picture.npy",
    "uncertainty": f"tomography uncertainty {SCAN} --network unet.safetensors --samples 10 --turns 2 --rank 20 --out deviation.npy "
                   "--samples-out pictures.npy",
    "uncertainty filters": f"tomography uncertainty {SCAN} --network unet.safetensors --prior filters --samples 4 --out filters.npy",
    "design": f"{DESIGN} --network unet.safetensors",
    "design information": f"{DESIGN} --prior isotropic --criterion information",
    "demo": "demo --out demo --seed 3",
    "completions": "completions bash",
    "no such column": f"{FIT} train.csv --target nothing --out never.posterior",
    "not a count": f"{FIT} train.csv --features a --target y --likelihood poisson --out never.posterior",
    "wrong usage": f"{FIT} train.csv --target y --method nothing --out never.posterior",
}
ABSENT = b"absent"  # in the place of a key that the other side has
ADDED = "(keys that only the second build has)"  # among the ignored keys: these are no difference
EXPECTED_STATUS = {"no such column": 1, "not a count": 1, "wrong usage": 2}
MODELS = (".posterior", ".stream")  # what their files are called
WRITES = {"--out", "--state", "--network-out"}  # flags with a file that later commands use
WITHOUT_THREADS = ("demo", "completions", "inspect", "optimize start", "optimize tell", "optimize status", "label start", "label tell")


def all_commands():
    """Names and lines of all commands in the order in which they run."""
    commands = {f"train {name.replace('/', ' ')}": f"{TRAIN} {flags} --out {name}.safetensors" for name, flags in NETWORKS.items()}
    for start, fits in [(PROCESS, PROCESSES), (LAPLACE, CURVATURES)]:
        for name, flags in fits.items():
            commands[f"{' '.join(start.split()[:2])} {name}"] = f"{start} {flags} --out {name}.posterior"
            commands[f"predict {name}"] = f"predict --model {name}.posterior --data new.csv {PREDICT.get(name, '')} --out {name}.csv"
    return {**commands, **OTHERS}


FORMS = tomllib.loads(pathlib.Path(__file__).with_name("grammar.toml").read_text())
GRAMMAR = {command["old"]: command for command in FORMS["command"]}


def has_new_form(binary):
    """Whether a build takes the files of a command without flags."""
    return b"--data <" not in subprocess.run([binary, "predict", "--help"], capture_output=True).stdout


def translated(line):
    """The words of a command line in the new form."""
    old = max((name for name in GRAMMAR if f"{line} ".startswith(f"{name} ")), key=len)
    command, words = GRAMMAR[old], shlex.split(line[len(old):])
    end = words.index("--") if "--" in words else len(words)
    arguments, rest, at = {name: [] for name in command["arguments"]}, [], 0
    while at < end:
        name = words[at].removeprefix("--")
        if words[at].startswith("--") and name in arguments:
            last = next((k for k in range(at + 1, end) if words[k].startswith("-")), end)
            arguments[name] += words[at + 1:last]
            at = last
            continue
        flag = words[at].startswith("--")
        setting = command.get("groups", {}).get(name) or (name if name in command.get("settings", ()) else None)
        if flag and setting:
            valued = at + 1 < end and not words[at + 1].startswith("--")
            rest += ["--set", f"{setting}={words[at + 1]}" if valued else setting]
            at += 1 + valued
            continue
        own = command.get("flags", {}).get(name) if flag else None
        rest.append(f"--{own}" if own else words[at])
        at += 1
    return [*command["new"].split(), *(word for files in arguments.values() for word in files), *rest, *words[end:]]


def chosen(commands, text):
    """The commands whose name contains the text, and those whose files they use."""
    needed, kept = set(), []
    for name, line in reversed(commands.items()):
        words = shlex.split(line)
        written = {value for flag, value in zip(words, words[1:]) if flag in WRITES}
        written |= {value.split("/")[0] for value in written}
        if text in name or written & needed:
            kept.append(name)
            needed.update(words)
    return {name: commands[name] for name in reversed(kept)}


def wave(i, k):
    return ((i + 0.5) * math.sqrt(k + 1.7)) % 1.0


def row(i):
    """One row of the tables: three features, targets of all kinds, and nine pixels."""
    a, b, c = (wave(i, k) for k in range(3))
    noise = 0.2 * math.modf(math.sin(i * 12.9898) * 43758.547)[0]
    y = math.sin(6 * a) + b + noise
    numbers = {"a": a, "b": b, "c": c, "y": y, "skewed": math.exp(y), "wild": y + (5 if i % 17 == 0 else 0), "variance": 0.01 + 0.05 * c,
               "when": 10 * a * b, **{f"pixel{k}": wave(i, 7 + k) for k in range(9)}}
    colour = ["red", "green", "blue"][int((a + b) * 1.5 + 0.3 * noise) % 3]
    return {
        **{name: f"{value:.6f}" for name, value in numbers.items()},
        "hours": 1 + i % 3, "count": int((1 + i % 3) * math.exp(0.8 * y) + wave(i, 5)), "colour": colour,
        "answer": "yes" if y > 0.7 else "no", "known": colour if i % 4 == 0 else "", "holes": "" if i % 9 == 0 else f"{c:.6f}",
        "day": f"2024-{1 + i % 12:02}-{1 + i % 28:02}",
    }


def write_table(path, numbers, names=None):
    rows = [row(i) for i in numbers]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names or list(rows[0]), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_npy(path, shape, values, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{'d' if kind == '<f8' else 'q'}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)


def write_safetensors(path, shapes):
    """Tensors of these shapes with numbers between -1 and 1."""
    header, count = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [8 * count, 8 * (count + size)]}
        count += size
    text = json.dumps(header).encode()
    values = [round(2 * wave(k, 3) - 1, 6) for k in range(count)]
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack(f"<{count}d", *values))


def write_inputs(folder):
    """Tables, arrays, networks and scans that commands read."""
    (folder / "nets").mkdir(parents=True)
    for name, start, rows in [("train", 0, 160), ("new", 1000, 40), ("held", 2000, 60), ("more", 3000, 40)]:
        write_table(folder / f"{name}.csv", range(start, start + rows))
    write_table(folder / "pixels.csv", range(80), [f"pixel{k}" for k in range(9)] + ["y"])
    write_table(folder / "events.csv", range(120), ["when"])
    write_table(folder / "hours.csv", range(2000, 2020), ["when"])
    write_npy(folder / "inputs.npy", (40, 3), [round(wave(i, k), 6) for i in range(40) for k in range(3)])
    write_npy(folder / "classes.npy", (40,), [int(3 * wave(i, 0)) for i in range(40)], "<i8")
    write_safetensors(folder / "head.safetensors", {"weight": [3, 3], "bias": [3]})
    write_safetensors(folder / "plain.safetensors", {"0.weight": [10, 3], "0.bias": [10], "2.weight": [10, 10], "2.bias": [10],
                                                     "4.weight": [1, 10], "4.bias": [1]})
    for name, outputs in [("one", 1), ("two", 2), ("three", 3), ("features", 4)]:
        text = f'kind = "perceptron"\ninputs = 3\nhidden = [10, 10]\noutputs = {outputs}\nactivation = "tanh"\n'
        (folder / f"{name}.toml").write_text(text)
    for name, angles in [("scan", 6), ("scanner", 24)]:
        (folder / f"{name}.toml").write_text(f'kind = "parallel"\nheight = 12\nwidth = 12\nangles = {{ count = {angles} }}\n')


def run_build(binary, folder, commands, threads):
    """Run the commands in FOLDER/work and keep what each gives in FOLDER/results/NAME; yield the name of each as it ends."""
    work, stamps = folder / "work", {}

    def written():
        """Files that are new or changed since the last call."""
        for path in sorted(path for path in work.rglob("*") if path.is_file()):
            stamp = (path.stat().st_mtime_ns, path.stat().st_ino)
            if stamps.get(path) != stamp:
                stamps[path] = stamp
                yield path

    write_inputs(work)
    list(written())
    new_form = has_new_form(binary)
    for name, line in commands.items():
        words = translated(line) if new_form else shlex.split(line)
        more = ["--json"] if line.startswith(WITHOUT_THREADS) else ["--json", "--threads", threads]
        end = words.index("--") if "--" in words else len(words)
        done = subprocess.run([binary, *words[:end], *more, *words[end:]], cwd=work, capture_output=True, stdin=subprocess.DEVNULL)
        results = folder / "results" / name
        results.mkdir(parents=True)
        for kind, data in [("status", b"%d" % done.returncode), ("stdout", done.stdout), ("stderr", done.stderr)]:
            (results / kind).write_bytes(data)
        for path in written():
            copy = results / "files" / path.relative_to(work)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            if path.suffix in MODELS:
                shown = subprocess.run([binary, "inspect", path.relative_to(work), "--json"], cwd=work, capture_output=True)
                copy = results / "shown" / path.relative_to(work)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.with_suffix(".json").write_bytes(shown.stdout or shown.stderr)
        yield name


def renamed(pairs):
    """An object whose keys have the names of now."""
    return {FORMS["keys"].get(name, name): value for name, value in pairs}


def json_or_text(text):
    try:
        return json.loads(text, object_pairs_hook=renamed)
    except ValueError:
        return text


def numbers(kind, data):
    """The numbers of an array of this element type, or bytes of another."""
    letter = {"F64": "d", "<f8": "d", "F32": "f", "<f4": "f", "I64": "q", "<i8": "q"}.get(kind)
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)) if letter else data


def parsed(name, data):
    """The values of JSON, of model files and of arrays, the cells of tables, the tags of reports, the lines of text, or bytes."""
    if name.endswith((*MODELS, ".safetensors")):
        end = 8 + struct.unpack("<Q", data[:8])[0]
        tensors = json.loads(data[8:end])
        metadata = {key: json_or_text(value) for key, value in tensors.pop("__metadata__", {}).items()}
        for tensor in tensors.values():
            first, last = tensor["data_offsets"]
            tensor["values"] = numbers(tensor["dtype"], data[end + first:end + last])
        return {**metadata.pop("posterior", {}), **metadata, "tensors": tensors}
    if name.endswith(".npy"):
        end = 10 + struct.unpack("<H", data[8:10])[0]
        header = ast.literal_eval(data[10:end].decode())
        return {**header, "values": numbers(header["descr"], data[end:])}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    if name.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(text))) or [[]]
        return {"columns": rows[0], "rows": [dict(zip(rows[0], cells)) for cells in rows[1:]]}
    if name.endswith(".html"):
        return {"parts": re.sub(TIMES, "", text, flags=re.DOTALL).split("<")}
    value = json_or_text(text)
    return {"lines": value.split("\n")} if isinstance(value, str) else value


def same(left, right):
    """Whether two values are equal to the last bit; one NaN equals another."""
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("<d", left) == struct.pack("<d", right) or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and left == right


def differences(left, right, ignored, place="", key=""):
    """Places of differing values with both values. `key` is the place without list indices."""
    if key in ignored or (left is ABSENT and ADDED in ignored):
        return
    if isinstance(left, dict) and isinstance(right, dict):
        for name in {**left, **right}:
            inner = [f"{outer}.{name}" if outer else name for outer in (place, key)]
            yield from differences(left.get(name, ABSENT), right.get(name, ABSENT), ignored, *inner)
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            yield f"{place} length", len(left), len(right)
        for index, pair in enumerate(zip(left, right)):
            yield from differences(*pair, ignored, f"{place}[{index}]", f"{key}[]")
    elif not same(left, right):
        yield place, left, right


def short(value):
    text = value.decode("latin-1") if value is ABSENT else f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def relative(left, right):
    """The relative difference of two numbers, or of cells that hold some, as text."""
    try:
        left, right = float(left), float(right)
    except (TypeError, ValueError):
        return ""
    largest = max(abs(left), abs(right))
    return f" (relative {abs(left - right) / largest:.1e})" if 0 < largest < math.inf else ""


def results_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compare(name, before, after, ignored, left_out=()):
    """What differs between two results of a command, as texts; none if all is equal. Files with these endings are left out."""
    sides = {"before": results_of(before / "results" / name), "after": results_of(after / "results" / name)}
    left, right = sides.values()
    found, expected = [], b"%d" % EXPECTED_STATUS.get(name, 0)
    for side, results in sides.items():
        if not results:
            return [f"{side}: no result"]
        if results["status"] != expected:
            message = short(results["stderr"].decode(errors="replace"))
            found.append(f"{side}: exit status {results['status'].decode()}, not {expected.decode()}: {message}")
    for path in sorted(path for path in left.keys() | right.keys() if not path.endswith(left_out)):
        if path not in left or path not in right:
            found.append(f"{path}: only {'before' if path in left else 'after'}")
        elif left[path] != right[path]:
            values = parsed(path, left[path]), parsed(path, right[path])
            places = list(differences(*values, ignored))
            if places:
                place, one, other = places[0]
                found.append(f"{path} {place}: {short(one)}, {short(other)}{relative(one, other)}; {len(places)} values differ")
            elif path.startswith("files/") and not path.endswith(".html") and not list(differences(*values, set())):
                found.append(f"{path}: its bytes differ, its values do not")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", nargs="*", metavar="BINARY", help="two builds, or one with --record or --against")
    parser.add_argument("--record", metavar="FOLDER", type=pathlib.Path, help="keep the results of a build in this new folder")
    parser.add_argument("--against", metavar="FOLDER", type=pathlib.Path, help="compare a build with results that --record kept")
    parser.add_argument("--threads", metavar="N[,M]", default="2", help="threads of both builds, or of each [default: 2]")
    parser.add_argument("--only", metavar="TEXT", default="", help="run commands whose name contains TEXT, and those that they need")
    parser.add_argument("--other-layout", action="store_true", help="leave out the bytes of model files")
    parser.add_argument("--added", action="store_true", help="leave out keys of JSON that only the second build has")
    parser.add_argument("--list", action="store_true", help="print the commands and run none")
    options = parser.parse_args()
    commands = chosen(all_commands(), options.only)
    if not commands:
        parser.error(f"no command has a name with {options.only!r}: --list prints them")
    if options.list:
        print("\n".join(f"{name}: {line}" for name, line in commands.items()))
        return 0
    if len(options.binaries) != (1 if options.record or options.against else 2):
        parser.error("name two builds, or one with --record or --against")
    binaries = [str(pathlib.Path(path).resolve()) for path in options.binaries]
    threads = (options.threads.split(",") * 2)[:2]
    if options.record:
        if (options.record / "work").exists():
            parser.error(f"{options.record} holds results already: name a new folder")
        for name in run_build(binaries[0], options.record.resolve(), commands, threads[0]):
            print(name, flush=True)
        return 0
    differ, ignored = 0, VOLATILE | (PLANNED if threads[0] != threads[1] else set()) | ({ADDED} if options.added else set())
    with tempfile.TemporaryDirectory() as root:
        before, after = options.against or pathlib.Path(root, "before"), pathlib.Path(root, "after")
        runs = [run_build(binaries[-1], after, commands, threads[1])]
        if not options.against:
            runs.insert(0, run_build(binaries[0], before, commands, threads[0]))
        for name, *_ in zip(commands, *runs):
            found = compare(name, before, after, ignored, MODELS if options.other_layout else ())
            differ += bool(found)
            print(f"{name}: {'; '.join(found) or 'equal'}", flush=True)
    print(f"{len(commands)} commands, {differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
