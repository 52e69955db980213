"""The pictures of the page on exact fits: double descent, p-norms, error bars, the nearest model.

python examples/exact_fits.py [folder]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import fenchel as fl


def double_descent(ax):
    d, rng = 40, np.random.default_rng(0)
    test, truth = rng.normal(size=(500, d)), rng.normal(size=d) / np.sqrt(d)
    sizes = [5, 10, 15, 20, 25, 30, 34, 37, 40, 43, 46, 50, 60, 80, 120]
    models = {
        "least norm, least squares": fl.MinNormRegressor(fit_intercept=False, on_infeasible="least_violation"),
        "ridge, alpha = 4": fl.Ridge(alpha=4.0, fit_intercept=False),
    }
    for name, model in models.items():
        errors = []
        for n in sizes:
            each = []
            for seed in range(20):
                rng = np.random.default_rng(seed)
                X = rng.normal(size=(n, d))
                fit = model.fit(X, X @ truth + 0.3 * rng.normal(size=n))
                each.append(np.mean((fit.predict(test) - test @ truth) ** 2))
            errors.append(np.median(each))
        ax.semilogy(sizes, errors, "o-", markersize=3, label=name)
    ax.axvline(d, color="0.6", linestyle=":", label="n = d")
    ax.set(xlabel="samples n (d = 40)", ylabel="test error")
    ax.legend(frameon=False)


def p_norms(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 200))
    y = X[:, :3] @ [2.0, -1.0, 0.5]
    for p in (2.0, 1.5, 1.1):
        w = fl.MinNormRegressor(p=p, fit_intercept=False).fit(X, y).coef_
        ax.semilogy(np.arange(1, 201), np.sort(np.abs(w))[::-1], label=f"p = {p:g}")
    ax.set(xlabel="weights by size", ylabel="|w|", ylim=(1e-6, 3))
    ax.legend(frameon=False)


def intervals(ax):
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 1.0, 25)
    centres = np.linspace(-0.1, 1.1, 80)
    features = lambda t: np.exp(-((t[:, None] - centres) ** 2) / 0.004)  # noqa: E731
    truth = np.sin(6.0 * t) + 0.5 * t
    error = rng.uniform(0.1, 0.45, size=25)
    y = truth + error * rng.uniform(-1.0, 1.0, size=25)
    fine = np.linspace(0.0, 1.0, 400)
    X = features(t)
    exact = fl.solve(fl.Interpolation(X, fl.sets.Point(y)), tol=1e-6).w
    within = fl.solve(fl.Interpolation(X, fl.sets.Interval(y - error, y + error)), tol=1e-6).w
    ax.errorbar(t, y, error, fmt=".", color="0.55", capsize=2, label="measurements")
    ax.plot(fine, features(fine) @ exact, linewidth=1, label="exactly")
    ax.plot(fine, features(fine) @ within, linewidth=1.8, label="within the errors")
    ax.plot(fine, np.sin(6.0 * fine) + 0.5 * fine, "k:", linewidth=1, label="truth")
    ax.set(xlabel="t", ylim=(-2, 2.3))
    ax.legend(frameon=False, ncols=2)


def nearest(ax):
    data = load_breast_cancer()
    Z, sign = scale(data.data), 2.0 * data.target - 1.0
    used = fl.LinearSVC(C=0.01, fit_intercept=False).fit(Z, data.target).coef_[0]
    wrong = np.flatnonzero(sign * (Z @ used) <= 0.0)
    few = np.concatenate([wrong[:5], np.flatnonzero(sign * (Z @ used) > 0.5)[:300]])
    mended = fl.solve(fl.Interpolation(Z[few], fl.sets.HalfLine(0.1, sign[few]), centre=used), tol=1e-6).w
    place = np.arange(len(used))
    ax.bar(place - 0.2, used, 0.4, label="in use")
    ax.bar(place + 0.2, mended, 0.4, label="mended")
    ax.set(xlabel="feature", ylabel="weight")
    ax.legend(frameon=False)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    pictures = {"double-descent": double_descent, "p-norms": p_norms, "intervals": intervals, "nearest": nearest}
    for name, draw in pictures.items():
        figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(folder / f"{name}.svg")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
