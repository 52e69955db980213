"""The rows of benchmarks.regression: what is timed, on which data, and the process that does it for one build.

Only the public interface is used, so that two builds can be asked for the same.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.linear_model
import sklearn.svm

import fenchel as fl
from benchmarks.datasets import BUILT_IN, Data, from_folder, large_text
from benchmarks.entrant import LOSSES, SPARSE
from benchmarks.objectives import OBJECTIVES, task_of
from benchmarks.peers import fenchel_peers
from fenchel.data import samples

RESULTS = Path(__file__).parent / "results"
TARGETS = (1e-3, 1e-6)


@dataclass(frozen=True)
class Job:
    """One row: a function of KINDS, the data that it is given and what else it takes."""

    name: str
    data: str
    kind: str
    args: tuple[Any, ...]


def _plain(name: str, sample: Any) -> Data:
    return Data(name, sample.X, np.asarray(sample.y, dtype=np.float64))


def _steps(count: int) -> np.ndarray:
    """Values in ten steps."""
    return np.random.default_rng(1).normal(size=10).repeat(-(-count // 10))[:count]


def _ordered() -> Data:
    """Weights whose neighbours are equal."""
    X = np.random.default_rng(0).normal(size=(2000, 200))
    return Data("ordered", X, X @ _steps(200) + np.random.default_rng(2).normal(size=2000))


def _signal() -> Data:
    return Data("signal", None, _steps(100_000) + 0.5 * np.random.default_rng(0).normal(size=100_000))


def _image() -> Data:
    from sklearn.datasets import load_sample_image

    pixels = load_sample_image("china.jpg").mean(axis=2) / 255.0
    return Data("image", None, pixels + 0.1 * np.random.default_rng(0).normal(size=pixels.shape))


#: Data without a folder, beside those of the race.
MADE: dict[str, Callable[[], Data]] = {
    "diabetes": lambda: _plain("diabetes", samples.load("diabetes")),
    "tall": lambda: _plain("tall", samples.make_regression(20_000, 200, noise=0.5, random_state=0)),
    "thousand": lambda: _plain("thousand", samples.make_regression(1000, 20_000, noise=0.5, random_state=0)),
    "large_text": large_text,
    "ordered": _ordered,
    "signal": _signal,
    "image": _image,
}


def _housing(folder: Path) -> Data:
    X, y = fl.read(folder / "housing" / "boston.csv.xz", format="csv", target="medv")
    X = np.asarray(X, dtype=np.float64)
    return Data("housing", (X - X.mean(axis=0)) / X.std(axis=0), y)


@lru_cache(maxsize=1)
def load(name: str, folder: str | None) -> Data:
    if made := (MADE | BUILT_IN).get(name):
        return made()
    if folder is None:
        raise ValueError(f"{name} needs --data-dir")
    return _housing(Path(folder)) if name == "housing" else from_folder(Path(folder), name, RESULTS)


def _race(data: Data, objective: str, level: float, tol: float) -> Callable[[], Any]:
    """fenchel's part in the race at one tolerance, from the arrays to the weights."""
    task = task_of(data, objective, OBJECTIVES[objective].lam(data, level), tol)
    fit = fenchel_peers(["auto"])[0].fit
    return lambda: fit(task)


def _fit(data: Data, estimator: str, options: dict[str, Any]) -> Callable[[], Any]:
    """An estimator's fit; {"alpha": ["max", 10]} is lam_max / 10 of the Lasso."""
    if isinstance(alpha := options.get("alpha"), list):
        problem = fl.Problem(data.X, data.y, fl.losses.Squared(), fl.penalties.L1(1.0), intercept=True)
        options = options | {"alpha": problem.lam_max() / alpha[1]}
    return lambda: getattr(fl, estimator)(**options).fit(data.X, data.y)


def _solve(data: Data, level: float, tol: float) -> Callable[[], Any]:
    """fl.solve of the Lasso with an intercept at lam_max / level, as the estimator states it."""

    def stated(lam: float) -> fl.Problem:
        return fl.Problem(data.X, data.y, fl.losses.Squared(), fl.penalties.L1(lam), intercept=True)

    lam = stated(1.0).lam_max() / level
    return lambda: fl.solve(stated(lam), tol=tol).w


def _certify(data: Data, loss: str, penalty: str, intercept: bool) -> Callable[[], Any]:
    """One certificate near the optimum of a stated problem."""
    stated_loss, stated_penalty = getattr(fl.losses, loss)(), getattr(fl.penalties, penalty)(1 / data.y.size)
    problem = fl.Problem(data.X, data.y, stated_loss, stated_penalty, intercept=intercept)
    at = fl.solve(problem, tol=1e-2, max_iter=60, warn=False)
    return lambda: fl.certify(problem, at.w, at.b)


def _certify_model(data: Data, estimator: str, options: dict[str, Any]) -> Callable[[], Any]:
    """The certificate of a model of scikit-learn to 1e-3."""
    kind = getattr(sklearn.linear_model, estimator, None) or getattr(sklearn.svm, estimator)
    model = kind(**options).fit(data.X, data.y)
    return lambda: fl.certify(model, data.X, data.y, tol=1e-3)


def _certified_path(data: Data, ratio: float, eps: float) -> Callable[[], Any]:
    problem = fl.Problem(data.X, data.y, fl.losses.Squared(), fl.penalties.L1(1.0))
    largest = problem.lam_max()
    return lambda: fl.certified_path(problem, largest / ratio, largest, eps=eps)


def _denoise(data: Data, weight: float, tol: float) -> Callable[[], Any]:
    return lambda: fl.denoise(data.y, weight, tol=tol)


KINDS: dict[str, Callable[..., Callable[[], Any]]] = {
    "race": _race,
    "fit": _fit,
    "solve": _solve,
    "certify": _certify,
    "certify_model": _certify_model,
    "certified_path": _certified_path,
    "denoise": _denoise,
}


def _raced(sets: tuple[str, ...], objectives: tuple[str, ...], levels: tuple[float, ...]) -> Iterator[Job]:
    for name in sets:
        for key in objectives:
            stated = OBJECTIVES[key]
            if not stated.grouped or name in ("a9a", "dna", "attributes"):
                for level in stated.levels(levels):
                    for tol in TARGETS:
                        row = f"race {name} {key} {stated.label(level)} {tol:.0e}"
                        yield Job(row, name, "race", (key, level, tol))


def _fits(kind: str, data: str, estimator: str, **options: Any) -> Job:
    told = "".join(f" {key}={value}" for key, value in options.items() if key not in ("random_state", "max_iter"))
    return Job(f"{kind} {data} {estimator}{told}".replace("'", ""), data, kind, (estimator, options))


def jobs(in_folder: bool) -> list[Job]:
    """All rows, the data of a folder among them or not; those of one set follow each other."""
    squared, zeros = ("breast_cancer", "text", "correlated"), ("wide", "text", "attributes")
    text, genes, table = "large_text", "wide", "correlated"
    if in_folder:
        squared, zeros = ("a9a", "w8a", "imdb", "mnist"), ("leukemia", "a9a", "dna", "imdb")
        text, genes, table = "imdb", "leukemia", "a9a"
    rows = [*_raced(squared, LOSSES, (10.0, 1.0, 0.1)), *_raced(zeros, SPARSE, (10.0, 50.0, 200.0))]
    few = {"alphas": 10, "eps": 0.01}
    rows += [_fits("fit", name, "LassoCV") for name in (genes, "tall", "diabetes")]
    rows += [_fits("fit", genes, "SparseLogisticRegressionCV"), _fits("fit", "thousand", "LassoCV", eps=0.1)]
    rows += [_fits("fit", text, name, **few) for name in ("LassoCV", "SparseLogisticRegressionCV")]
    rows += [_fits("fit", "diabetes", "RidgeCV"), _fits("fit", "breast_cancer", "LogisticRegressionCV")]
    for loss in ("Logistic", "SquaredHinge", "Squared"):
        for penalty in ("L2", "L1"):
            for intercept in (False, True):
                name = f"certify {text} {loss} {penalty}{' intercept' if intercept else ''}"
                rows.append(Job(name, text, "certify", (loss, penalty, intercept)))
    for loss in ("hinge", "squared_hinge"):
        rows += [_fits("certify_model", text, "LinearSVC", loss=loss, C=C, random_state=0) for C in (0.1, 1.0)]
        rows.append(_fits("certify_model", table, "LinearSVC", loss=loss, C=0.1, random_state=0, max_iter=10_000))
    rows += [_fits("certify_model", name, "LogisticRegression", max_iter=1000) for name in (text, table, genes)]
    rows += [_fits("certify_model", name, "Lasso", alpha=0.01) for name in (table, genes, "diabetes")]
    for name, ratio in (("housing", 1000.0), ("imdb", 10.0)) if in_folder else (("diabetes", 100.0),):
        rows += [Job(f"certified_path {name} {e:.0e}", name, "certified_path", (ratio, e)) for e in (1e-2, 1e-3)]
    rows.append(_fits("fit", "ordered", "FusedLasso", alpha=0.05, tol=1e-6))
    rows.append(Job("denoise signal", "signal", "denoise", (1.0, 1e-6)))
    rows.append(Job("denoise image", "image", "denoise", (0.1, 1e-4)))
    for name in (genes, table):
        rows += [_fits("fit", name, "Lasso", alpha=["max", level]) for level in (10, 50)]
        rows += [_fits("fit", name, kind) for kind in ("LinearSVC", "LogisticRegression", "Ridge")]
        rows += [Job(f"solve {name} Lasso alpha=[max, {level}]", name, "solve", (level, 1e-4)) for level in (10, 50)]
    order = {name: k for k, name in enumerate(dict.fromkeys(row.data for row in rows))}
    return sorted(rows, key=lambda row: order[row.data])


def serve(core: int) -> None:
    """Answer lines of JSON: first with the files imported, then to {job, folder, count} with seconds for one run."""
    os.sched_setaffinity(0, {core})
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not an answer
    from fenchel._core import kernels

    print(json.dumps([fl.__file__, kernels.__file__]), file=answers)
    ready: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        order = json.loads(line)
        job = Job(**order["job"])
        if job.name not in ready:
            ready.clear()
            ready[job.name] = KINDS[job.kind](load(job.data, order["folder"]), *job.args)
        run, count = ready[job.name], order["count"]
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(json.dumps([cpu / count, wall / count]), file=answers)
