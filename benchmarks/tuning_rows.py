"""Rows of benchmarks.tuning beside those of benchmarks.regression: what reaches the other constants.

Each makes its data and returns what is timed, which takes a few seconds at most.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.datasets import load_digits

import fenchel as fl
from benchmarks.interpolation import separable, text_like
from benchmarks.kernel import curved
from fenchel.papers.interpolation import EXPERIMENTS

Run = Callable[[], Any]
CACHE = Path()  # nothing is kept: these rows are generated


def _numbers(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


def _fit(model: Any, X: Any, y: np.ndarray) -> Run:
    return lambda: model.fit(X, y)


def _solve(problem: Any, **options: Any) -> Run:
    return lambda: fl.solve(problem, **options)


def _digits(classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(n_class=classes, return_X_y=True)
    return X / 16.0, y


def _text() -> Run:
    return _fit(fl.MinNormRegressor(fit_intercept=False), text_like(1000, 3000, 75, 1), _numbers(1000, 1)[1])


def _margin(n: int, intercept: bool, tol: float) -> Run:
    X, y = separable(n, None, CACHE)
    return _solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y), intercept=intercept), tol=tol)


def _tall_margin(n: int, d: int) -> Run:
    """Classes with room between them, in few columns: few samples are active."""
    X, _ = _numbers(n, d)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    return _solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y)), tol=1e-6)


def _sets(n: int, d: int, p: float, kind: str, intercept: bool) -> Run:
    """Sets that scores of some weights satisfy."""
    X, noise = _numbers(n, d)
    scores = X @ np.random.default_rng(1).normal(size=d) / np.sqrt(d)
    labels = np.where(scores >= 0.0, 1.0, -1.0)
    sets = {
        "intervals": fl.sets.Interval(scores - 0.1 - 0.1 * noise**2, scores + 0.1),
        "half-lines": fl.sets.HalfLine(1.0, labels),
        "equations": fl.sets.Point(scores),
    }
    return _solve(fl.Interpolation(X, sets[kind], fl.penalties.LpSquared(1.0, p), intercept=intercept))


def _balls(n: int, d: int, p: float, intercept: bool = False) -> Run:
    X, _ = _numbers(n, d)
    centre = X @ np.random.default_rng(1).normal(size=(d, 3)) / np.sqrt(d)
    return _solve(
        fl.Interpolation(X, fl.sets.Ball(centre, 0.3), fl.penalties.LpSquared(1.0, p), intercept=intercept), warn=False
    )


def _repeated(n: int, d: int) -> Run:
    """Equations for small integers, half of which follow from the others."""
    X = np.round(2.0 * _numbers(n // 2, d)[0])
    X = np.vstack([X, X[::-1] + X])
    return _solve(fl.Interpolation(X, fl.sets.Point(X @ np.arange(d))))


def _infeasible(kind: str) -> Run:
    X, y = _numbers(80, 30)
    labels = np.where(y > 0.0, 1.0, -1.0)
    if kind == "equations":
        X[1], y[1] = 2.0 * X[0], y[0]
    if kind == "integers":
        X = np.round(X[:20, :10])
        X[0] = X[1] + X[2]
        y = np.round(y[:20])
        y[0] = y[1] + y[2] + 1.0
        labels = y
    sets = fl.sets.HalfLine(1.0, labels) if kind == "half-lines" else fl.sets.Point(y)
    problem = fl.Interpolation(X, sets)

    def run() -> Any:
        with suppress(fl.Infeasible):
            return fl.solve(problem)

    return run


def _perceptron(accelerate: bool, intercept: bool, tol: float) -> Run:
    """A small set of Figure 2 of the interpolation paper."""
    small = replace(EXPERIMENTS[2].recipe, n=300, d=600).draw(0)
    model = fl.SparsePerceptron(fit_intercept=intercept, accelerate=accelerate, tol=tol)
    return _fit(model, small.X, small.y)


def _largest_margin(classes: int, p: float, intercept: bool) -> Run:
    return _fit(fl.MaxMarginClassifier(p=p, fit_intercept=intercept), *_digits(classes))


def _interval(p: float, classes: int) -> Run:
    X, y = _digits(classes)
    model = sklearn.linear_model.LogisticRegression(C=1e3, max_iter=2000).fit(X, y)
    return lambda: fl.margin_interval(model, X, y, p=p)


def _separable(n: int, d: int) -> Run:
    X, y = _numbers(n, d)
    return lambda: fl.separable(X, np.sign(y))


def _kernel(tol: float, loss: Any = None, **options: Any) -> Run:
    X, y = curved(2000, 4)
    loss, penalty = loss or fl.losses.Hinge(), fl.penalties.L2(1.0 / len(y))
    intercept = options.get("solver") != "pgs"
    return lambda: fl.solve(fl.KernelProblem(X, y, loss, penalty, intercept=intercept), tol=tol, warn=False, **options)


def _precomputed(dtype: type) -> Run:
    """A matrix of values rounded to a type, which is verified to be semidefinite."""
    X, y = curved(1000, 4)
    K = np.exp(-0.25 * np.square(X[:, None] - X).sum(axis=2)).astype(dtype)
    penalty = fl.penalties.L2(1.0 / len(y))
    stated = partial(fl.KernelProblem, K, y, fl.losses.Hinge(), penalty, kernel="precomputed")
    return lambda: fl.solve(stated(), tol=1e-3, warn=False).certificate


def _kernel_margin(n: int, tol: float, noise: float = 0.0, intercept: bool = True) -> Run:
    """Points beside a curved boundary; with noise no function of the kernel separates them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    X, y = X[np.abs(f) > 0.1], np.sign((f + noise * rng.normal(size=n))[np.abs(f) > 0.1])
    kernel = {"kernel": "poly", "degree": 2} if noise else {"kernel": "rbf", "gamma": 0.5}
    return _fit(fl.MaxMarginClassifier(**kernel, tol=tol, fit_intercept=intercept), X, y)


def _momentum(form: str, classes: tuple[int, int]) -> Run:
    X, labels = _digits(10)
    some = np.isin(labels, classes)
    problem = fl.Interpolation(X[some], fl.sets.HalfLine(1.0, np.where(labels[some] == classes[0], 1.0, -1.0)))
    return _solve(problem, solver="margin", form=form, tol=3e-2, max_iter=100_000)


def _predict() -> Run:
    X, y = curved(2000, 20)
    model = fl.KernelClassifier(tol=1e-2).fit(X, y)
    return lambda: model.decision_function(X)


def _multiclass(loss: Any, lam: float, tol: float, intercept: bool) -> Run:
    X, y = _digits(10)
    return _solve(fl.MulticlassProblem(X, y, loss, fl.penalties.L2(lam), intercept=intercept), tol=tol)


def _tall_multiclass(n: int, d: int, solver: str = "newton") -> Run:
    X, noise = _numbers(n, d)
    y = (X[:, :4] + 0.5 * noise[:, None] * np.arange(4)).argmax(axis=1)
    return _solve(fl.MulticlassProblem(X, y, fl.losses.Multinomial(), fl.penalties.L2(1e-5)), solver=solver, tol=1e-6)


def _huber(certify: bool) -> Run:
    X, y = fl.data.samples.load("diabetes").X, fl.data.samples.load("diabetes").y
    X, y = np.asarray(X), np.asarray(y, dtype=np.float64)
    if not certify:
        return _fit(fl.HuberRegressor(), X, y)
    model = sklearn.linear_model.HuberRegressor(max_iter=2000).fit(X, y)
    return lambda: fl.certify(model, X, y, tol=1e-6)


def _regression(n: int, d: int, penalty: Callable[[float], Any], level: float, intercept: bool = False) -> fl.Problem:
    X, noise = _numbers(n, d)
    w = np.zeros(d)
    w[: max(2, d // 20)] = 1.0
    stated = partial(fl.Problem, X, X @ w + noise, fl.losses.Squared(), intercept=intercept)
    return stated(penalty(stated(penalty(1.0)).lam_max() / level))


def _lasso(solver: str, n: int, d: int, level: float = 10.0, tol: float = 1e-5, **options: Any) -> Run:
    return _solve(_regression(n, d, fl.penalties.L1, level), solver=solver, tol=tol, **options)


def _groups(solver: str, n: int, d: int, size: int) -> Run:
    penalty = partial(fl.penalties.GroupL2, groups=np.arange(d) // size)
    return _solve(_regression(n, d, penalty, 5.0), solver=solver, tol=1e-5)


def _path(solver: str) -> Run:
    problem = _regression(300, 1000, fl.penalties.L1, 10.0)
    return lambda: fl.path(problem, n_lams=10, eps=0.1, tol=1e-4, solver=solver)


def _fused(n: int, d: int, tol: float, classify: bool = False) -> Run:
    X, noise = _numbers(n, d)
    y = X @ np.repeat([0.0, 1.0, -1.0, 2.0], -(-d // 4))[:d] + noise
    loss: Any = fl.losses.Logistic() if classify else fl.losses.Squared()
    return _solve(fl.Problem(X, np.sign(y) if classify else y, loss, fl.penalties.FusedL1(0.1)), tol=tol)


def _jumps(n: int, d: int) -> Run:
    X, noise = _numbers(n, d)
    y = X @ np.repeat([0.0, 1.0, -1.0, 2.0], -(-d // 4))[:d] + noise
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.FusedL1(0.1))
    result = fl.solve(problem, tol=1e-6)
    return lambda: fl.certify(problem, result.w, result.b).zeros()


def _trend(count: int, order: int, weight: float) -> Run:
    steps = np.abs(np.linspace(-1.0, 1.0, count) % 0.5 - 0.25)
    y = 4.0 * steps + 0.1 * np.random.default_rng(0).normal(size=count)
    return lambda: fl.denoise(y, weight, order=order, tol=1e-6)


def _labels(n: int, d: int, loss: Any, penalty: Any, **options: Any) -> Run:
    X, y = _numbers(n, d)
    y = X[:, 0] + 0.5 * y
    y = np.where(y > 0.5, 1.0, -1.0) if loss.is_classification else y + 3.0
    return _solve(fl.Problem(X, y, loss, penalty, intercept=True), warn=False, **options)


def _chosen(n: int, d: int, loss: Any, penalty: Any, density: float = 1.0, intercept: bool = False) -> Run:
    """What "auto" takes for many samples."""
    X, noise = _numbers(n, d)
    X = X if density == 1.0 else sp.csr_array(X * (np.random.default_rng(1).random((n, d)) < density))
    y = np.where(X[:, [0]].sum(axis=1) + 0.5 * noise > 0.0, 1.0, -1.0)
    return _solve(fl.Problem(X, y, loss, penalty, intercept=intercept), tol=1e-3)


class Uncompiled(fl.losses.Logistic):
    """As users define losses."""

    def kernel(self) -> None:
        return None


def _pgs(loss: Any, p: float) -> Run:
    X, y = _numbers(3000, 200)
    y = np.where(X[:, 0] + y > 0.0, 1.0, -1.0) if loss.is_classification else X[:, 0] + y
    return _solve(fl.Problem(X, y, loss, fl.penalties.LpSquared(0.01, p)), solver="pgs", max_iter=5, warn=False)


def _certify(n: int, d: int, loss: Any, penalty: Any, solved: float, intercept: bool = True) -> Run:
    X, y = _numbers(n, d)
    y = X[:, 0] + 0.5 * y
    y = np.where(y > 0.0, 1.0, -1.0) if loss.is_classification else y
    problem = fl.Problem(X, y, loss, penalty, intercept=intercept)
    at = fl.solve(problem, tol=solved, warn=False)
    return lambda: fl.certify(problem, at.w, at.b)


def _screened(n: int, d: int, loss: Any, penalty: Any) -> Run:
    """How long the intervals of the multipliers are, with that of the intercept which a certificate implies."""
    X, y = _numbers(n, d)
    y = np.where(X[:, 0] + 0.5 * y > 0.0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss, penalty, intercept=True)
    at = fl.solve(problem, tol=1e-6, warn=False)

    def run() -> float:
        low, high = fl.certify(problem, at.w, at.b).multipliers()
        return float(np.sum(high - low))

    return run


def _stream(n: int, d: int, batch: int, loss: Any, used: int, **options: Any) -> Run:
    """The error, for samples that come later, of a model from a stream of batches."""
    X, noise = _numbers(n, d)
    X = np.where(np.abs(X) > 1.0, X, 0.0)[:, ::-1] * np.geomspace(0.1, 1.0, d)
    y = X[:, :used].sum(axis=1) + noise
    y = np.sign(y) if loss.is_classification else y
    batches = [(X[k : k + batch], y[k : k + batch]) for k in range(0, n // 2, batch)]

    def run() -> float:
        found = fl.stream(batches, loss, **options)
        scores = X[n // 2 :] @ found.w + found.b
        return float(np.mean(loss.value(scores, y[n // 2 :])))

    return run


L1, L2, Hinge, Logistic = fl.penalties.L1, fl.penalties.L2, fl.losses.Hinge(), fl.losses.Logistic()

ROWS: dict[str, Callable[[], Run]] = {
    "minnorm dense": lambda: _fit(fl.MinNormRegressor(), *_numbers(300, 3000)),
    "minnorm text": _text,
    "hard margin": lambda: _margin(1000, False, 1e-3),
    "hard margin intercept": lambda: _margin(1000, True, 1e-3),
    "hard margin tall": lambda: _tall_margin(1500, 50),
    **{
        f"sets {kind} {n} x {d} p={p:g}{' intercept' if b else ''}": partial(_sets, n, d, p, kind, b)
        for kind in ("intervals", "half-lines", "equations")
        for n, d in ((100, 400), (400, 100))
        for p, b in ((2.0, False), (2.0, True), (1.5, False), (1.2, True))
        if kind != "equations" or n < d
    },
    **{f"sets balls 60 x 300 p={p:g}": partial(_balls, 60, 300, p) for p in (2.0, 1.5)},
    "sets balls 60 x 300 p=2 intercept": lambda: _balls(60, 300, 2.0, intercept=True),
    "sets equations repeated": lambda: _repeated(60, 200),
    "sets equations repeated 30 x 100": lambda: _repeated(30, 100),
    "sets balls 300 x 60 p=1.5": lambda: _balls(300, 60, 1.5),
    **{f"sets balls 120 x 80 p={p:g}": partial(_balls, 120, 80, p) for p in (2.0, 1.5, 1.2)},
    **{f"infeasible {kind}": partial(_infeasible, kind) for kind in ("half-lines", "equations", "integers")},
    **{
        f"max margin digits {k} p={p:g}{' intercept' if b else ''}": partial(_largest_margin, k, p, b)
        for k, p, b in (
            *((2, p, True) for p in (1.0, 1.5, 2.0, np.inf)),
            *((4, p, True) for p in (1.0, 2.0, np.inf)),
            (4, 2.0, False),
        )
    },
    "perceptron": lambda: _perceptron(True, False, 1e-2),
    "perceptron intercept": lambda: _perceptron(True, True, 1e-2),
    "perceptron plain": lambda: _perceptron(False, False, 1e-1),
    **{
        f"margin interval digits {k} p={p:g}": partial(_interval, p, k)
        for k, p in ((2, 2.0), (2, 1.5), (2, 1.0), (4, 2.0), (4, 1.0), (3, 1.5))
    },
    "separable 300 x 100": lambda: _separable(300, 100),
    "separable 180 x 100": lambda: _separable(180, 100),
    "kernel auto": lambda: _kernel(1e-3),
    "kernel working set": lambda: _kernel(1e-3, working_set=256),
    "kernel logistic": lambda: _kernel(1e-3, fl.losses.Logistic()),
    "kernel pgs": lambda: _kernel(1e-1, solver="pgs", max_iter=3),
    "kernel predict": _predict,
    **{f"kernel margin {n} {tol:g}": partial(_kernel_margin, n, tol) for n, tol in ((1500, 1e-3), (5000, 1e-6))},
    "kernel margin 1500 no intercept": lambda: _kernel_margin(1500, 1e-3, intercept=False),
    "kernel margin none": lambda: _kernel_margin(80, 1e-3, 0.3),
    **{
        f"momentum margin {form} {one}/{other}": partial(_momentum, form, (one, other))
        for form in ("primal", "dual")
        for one, other in ((0, 1), (1, 8))
    },
    **{f"kernel precomputed {dtype.__name__}": partial(_precomputed, dtype) for dtype in (np.float64, np.float32)},
    **{
        f"multiclass {name} lam={lam:g}{' intercept' if b else ''}": partial(_multiclass, loss, lam, 1e-4, b)
        for name, loss in (("softmax", fl.losses.Multinomial()), ("hinge", fl.losses.CrammerSinger()))
        for lam, b in ((1e-2, False), (1e-3, True), (1e-4, False))
    },
    "multiclass softmax 12000 x 20": lambda: _tall_multiclass(12_000, 20),
    "huber fit": lambda: _huber(False),
    "huber certify": lambda: _huber(True),
    "lasso fista 500 x 200": lambda: _lasso("fista", 500, 200),
    "lasso fista 200 x 500": lambda: _lasso("fista", 200, 500, 50.0),
    "lasso approx 500 x 200": lambda: _lasso("approx", 500, 200),
    "lasso approx 200 x 500": lambda: _lasso("approx", 200, 500, 50.0),
    "groups approx": lambda: _groups("approx", 300, 600, 10),
    "groups of 100 approx": lambda: _groups("approx", 300, 600, 100),
    "groups auto": lambda: _groups("auto", 300, 600, 10),
    "svm fista": lambda: _labels(500, 50, fl.losses.SquaredHinge(), L2(1e-3), solver="fista", tol=1e-5),
    "path approx": lambda: _path("approx"),
    "path fista": lambda: _path("fista"),
    "path auto": lambda: _path("auto"),
    "fused 500 x 100": lambda: _fused(500, 100, 1e-6),
    "fused 100 x 300": lambda: _fused(100, 300, 1e-6),
    "fused 50 x 100": lambda: _fused(50, 100, 1e-6),
    "fused logistic": lambda: _fused(500, 100, 1e-4, classify=True),
    "support vectors": lambda: _screened(2000, 50, fl.losses.SquaredHinge(), L2(1e-2)),
    "support vectors hinge": lambda: _screened(500, 20, Hinge, L2(1e-1)),
    **{
        f"stream {name} {n} x {d}": partial(_stream, n, d, batch, loss, used)
        for name, loss in (("logistic", Logistic), ("hinge", Hinge), ("squared", fl.losses.Squared()))
        for n, d, batch, used in ((400, 50, 20, 5), (4000, 500, 500, 500), (20_000, 20, 1000, 1))
    },
    "fused jumps": lambda: _jumps(500, 100),
    **{f"trend {order}": partial(_trend, 2000, order, weight) for order, weight in ((2, 10.0), (3, 100.0))},
    "hinge intercept": lambda: _labels(1000, 50, Hinge, L2(1e-2), tol=1e-4),
    "hinge intercept 7000": lambda: _labels(7000, 30, Hinge, L2(1e-3), tol=1e-4),
    "logistic 20000": lambda: _labels(20_000, 50, Logistic, L2(1e-4), tol=1e-6),
    "sdca two threads": lambda: _labels(20_000, 100, Hinge, L2(1e-4), solver="sdca", n_threads=2, tol=1e-3),
    "absolute 20000": lambda: _labels(20_000, 50, fl.losses.Absolute(), L2(1e-3), tol=1e-4),
    "quantile 2000": lambda: _labels(2000, 50, fl.losses.Pinball(0.9), L2(1e-3), tol=1e-4),
    "logistic wide": lambda: _labels(300, 3000, Logistic, L2(1e-4), tol=1e-6),
    "logistic lasso": lambda: _labels(500, 200, Logistic, L1(0.01), tol=1e-6),
    "logistic lasso wide": lambda: _labels(200, 2000, Logistic, L1(0.01), tol=1e-6),
    "huber lasso": lambda: _labels(500, 200, fl.losses.Huber(), L1(0.01), tol=1e-6),
    "auto logistic 6000 x 500": lambda: _chosen(6000, 500, Logistic, L2(1e-3)),
    "auto squared hinge 6000 x 500": lambda: _chosen(6000, 500, fl.losses.SquaredHinge(), L2(1e-3)),
    "auto sparse 20000 x 100": lambda: _chosen(20_000, 100, Logistic, L2(1e-5), 0.1),
    "auto sparse 3000 x 1200": lambda: _chosen(3000, 1200, Logistic, L2(1e-5), 0.02, True),
    "auto elastic net": lambda: _chosen(3000, 1200, Logistic, fl.penalties.ElasticNet(0.01, 0.5), 0.02),
    "auto softmax 6000 x 50": lambda: _tall_multiclass(6000, 50, "auto"),
    **{f"pgs hinge p={p:g}": partial(_pgs, Hinge, p) for p in (2.0, 1.8)},
    **{f"pgs uncompiled p={p:g}": partial(_pgs, Uncompiled(), p) for p in (2.0, 1.8)},
    "certify fused 100": lambda: _certify(2000, 100, fl.losses.Squared(), fl.penalties.FusedL1(0.1), 1e-1),
    "certify fused 300": lambda: _certify(300, 300, Hinge, fl.penalties.FusedL1(0.1), 1e-1),
    "certify groups": lambda: _certify(300, 300, Hinge, fl.penalties.GroupL2(0.02, np.arange(300) // 5), 1e-1),
    **{
        f"certify {name} {p} {solved:g}": partial(_certify, 2000, 100, loss, penalty, solved)
        for name, loss in (("hinge", Hinge), ("logistic", Logistic), ("squared", fl.losses.Squared()))
        for p, penalty in (("l1", L1(1e-2)), ("l2", L2(1e-2)))
        for solved in (1e-1, 1e-3)
    },
}
