"""The state of a stream: linear models that learn from batches of samples, one for each class and lam.

Every sample is predicted before it is learnt: the mean of these losses, the progressive validation loss, estimates the
test loss without a test set. Where lam is not known, a family of them learns side by side, and the best of these by
progressive validation is the result: the choice of sigma that section VII of the paper leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fenchel.data.convert import as_vector, as_weights
from fenchel.data.design import Design
from fenchel.data.typing import Array, Indices, Mask, Matrix, MatrixLike, Vector, VectorLike
from fenchel.problem.checks import require_count, require_instance
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.steps.stochastic.choice import LamChoice, Recent
from fenchel.steps.stochastic.comparison import Comparison, products
from fenchel.steps.stochastic.models import SUMS, GradientModels, GradientRule, gradient_penalty
from fenchel.steps.stochastic.pgs import default_batch, intercept_limit, intercept_step


@dataclass(frozen=True)
class StreamTuning:
    """Which lams are tried, each a tenth of the last one, and when one of them stops to learn (`Comparison.worse`).

    `python -m benchmarks.stream --rows orders` checks `clear` and `mistakes`: in twenty orders each, errors are those
    without the rule but for one order of texts (hinge, 1.9 % more) and one of a regression (Huber, 0.9 % of the loss).
    Those that still learn lie side by side: one by one, three of them take 1.5 times as long on w8a (`--rows auto`).

    `python -m benchmarks.tuning all solver.learner`: the loss of later samples is 1.28 and 1.07 times as large with
    half and with double of `largest`; with 3 and 12 of the `family` it is the same, in 0.79 and 1.71 of the time.
    """

    family: int = 6  # how many,
    largest: float = 10.0**-1.5  # from this times the mean squared length of a sample
    clear: float = 2.5  # standard deviations by which a lam is worse than the best if it is dropped,
    mistakes: int = 32  # and the recent mistakes of the best before any smaller lam is


TUNING = StreamTuning()

#: Which of `SUMS` have the weights of the samples as factors.
IS_WEIGHTED = np.array([name != "slopes" for name in SUMS])[:, None, None]
#: Where the sums over every fourth sample are.
MISTAKES, LOSS, WEIGHT = (SUMS.index(f"average_{name}") for name in ("mistakes", "loss", "weight"))


@dataclass(frozen=True, eq=False)
class StreamResult:
    """What was learnt from a stream.

    Attributes
    ----------
    w, b : array and float
        The model: the mean of all iterates with weights t + 1, or the last one.
    lam : float
        The weight of the penalty, as given or as chosen.
    n_samples, n_batches, n_steps : int
    progressive_loss : float
        Weighted mean loss of every sample by the model before it was learnt.
    recent_loss, recent_error : float
        The same of the mean of the iterates, for every fourth sample of the last half of the stream or more; the
        fraction of wrong signs, NaN for a regression.
    regret_bound : float
        By Lemma 1 the mean objective of the models before each step exceeds that of the best single model for the same
        samples by at most this; infinite where the lemma does not hold: with an unpenalised intercept, and for a loss
        without a Lipschitz constant in more than one batch (p > 1), whose ball moves from batch to batch.
    choice : LamChoice
        Recent losses and errors for each lam that was tried, and which one was taken; `print(result.choice)` says why.
    status : {"end", "max_seconds", "interrupted", "callback", "error"}
    """

    w: Vector
    b: float
    lam: float
    n_samples: int
    n_batches: int
    n_steps: int
    progressive_loss: float
    recent_loss: float
    recent_error: float
    regret_bound: float
    choice: LamChoice
    status: str = "end"
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.n_samples} samples in {self.n_batches} batch{'es' * (self.n_batches != 1)}, "
            f"{self.seconds:.3g} s ({self.status}); "
            f"lam {self.lam:.3g}.",
            f"Loss of samples before they were learnt: {self.progressive_loss:.4g}; recently, by the average of the "
            f"models: {self.recent_loss:.4g}"
            + ("." if np.isnan(self.recent_error) else f", wrong for {100 * self.recent_error:.3g} %."),
        ]
        if len(self.family) > 1:
            lines.append(str(self.choice))
        return "\n".join(lines)

    @property
    def family(self) -> dict[float, float]:
        """The recent error for each lam that was tried; the recent loss for a regression."""
        return self.choice.errors or self.choice.losses

    @property
    def dropped(self) -> dict[float, int]:
        """After how many samples a lam stopped to learn (`LamChoice.dropped`)."""
        return self.choice.dropped


@dataclass(frozen=True)
class Window:
    """Sums over some samples: `SUMS` for each lam and class, and `products` of lams, None as long as these are zero."""

    sums: Matrix
    products: Matrix | None

    def plus(self, other: Window) -> Window:
        """Over the samples of both."""
        if self.products is None or other.products is None:
            return Window(self.sums + other.sums, other.products)
        return Window(self.sums + other.sums, self.products + other.products)

    def of(self, lams: Indices) -> Window:
        """For some of the lams."""
        if self.products is None or len(lams) == 1:
            return Window(self.sums[:, lams], None)
        places = np.append(lams, self.products.shape[1] - 1)
        return Window(self.sums[:, lams], self.products[:, places[:, None], places])


def joined(parts: list[Array], axis: int) -> Array:
    """The parts along an axis; no copy of a single one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)


class Learner:
    """Linear models that learn from batches of samples, one for each class and lam; the state of a stream.

    Parameters
    ----------
    loss : Loss
    penalty : L2, LpSquared or SignedEntropy
    automatic : bool
        Whether to try a family of lam; that of the penalty is not used.
    intercept : bool
        Whether to fit an unpenalised intercept.
    classes : array, optional
        The codes of classes, for one model against the rest each. None: one model, for the targets as they are.
    constant : float
        The entry of a constant column, whose weight is penalised like the others; 0 for none.
    """

    def __init__(
        self,
        loss: Loss,
        penalty: Penalty,
        automatic: bool = False,
        intercept: bool = False,
        classes: Vector | None = None,
        batch_size: int | str = "auto",
        constant: float = 0.0,
    ) -> None:
        require_instance(loss, Loss, "loss", "Logistic()")
        require_instance(penalty, Penalty, "penalty", "L2(1e-4)")
        found = gradient_penalty(penalty)
        if found is None:
            raise TypeError(f"a stream needs L2, LpSquared or SignedEntropy as penalty; got {penalty!r}")
        if intercept and constant:
            raise ValueError(f"intercept=True and constant={constant!r}: give one of them, the second is penalised")
        if batch_size != "auto":
            require_count(batch_size, "batch_size", 'samples, or "auto"')
        if isinstance(constant, bool | str) or not np.isfinite(constant):
            raise ValueError(f"constant must be a finite number, 0 for none; got {constant!r}")
        self.loss, self.penalty, self.automatic, self.intercept = loss, penalty, automatic, intercept
        self.classes, self.batch_size, self.constant = classes, batch_size, float(constant)
        self.form = found  # of the penalty
        self.models: list[GradientModels] = []  # of the lams that still learn, a column for each lam and class
        self.kept: Indices = np.zeros(0, dtype=np.int64)  # the positions of these lams in the family
        self.best = 0  # the chosen one of them
        # of other positions: after how many samples, and error and loss then
        self.dropped: dict[int, tuple[int, float, float]] = {}
        self.start: tuple[Matrix, Vector, int] | None = None
        self.n_samples = self.n_batches = 0
        self.weight = self.at_zero = self.sizes = 0.0  # sums: weights, losses at score 0 above their minimum, |targets|
        self.exponent: int | None = None  # of the power of two over which weights are taken
        self.unit = 0.0  # the mean weight of the first batch, in which weights are summed below
        self.ball_moved = False  # between two steps
        self.batch = 1
        self.sums: Matrix = np.zeros((len(SUMS), 1, 1))  # for each lam that still learns and each class
        self.windows: list[Window] = []  # since two numbers of samples, the later one at least half of all
        self.opened = 0  # the number at which the later one began

    def begin_at(self, w: Matrix, b: Vector, samples: int) -> None:
        """Begin at given models, a row of w for each class, as if so many samples had led there; before any batch."""
        self.start = w, b, samples

    def learn(self, X: MatrixLike | Design, y: VectorLike, sample_weight: VectorLike | None = None) -> None:
        """Predict a batch of samples, then learn it; nothing changes if that fails."""
        design = self._design(X).stored_by_rows()
        rows, before = _touched(design), dict(self.__dict__)
        saved = [(models, models.saved(rows)) for models in self.models]
        try:
            self._learn(design, y, sample_weight, rows)
        except BaseException:
            self.__dict__.update(before)
            for models, state in saved:
                models.restore(state)
            raise

    def _learn(self, design: Design, y: VectorLike, sample_weight: VectorLike | None, rows: Indices | None) -> None:
        n = design.shape[0]
        targets = as_vector(y, n, "y")
        if self.loss.is_classification and self.classes is None and np.any(np.abs(targets) != 1.0):
            wrong = targets[np.abs(targets) != 1.0][0]
            raise ValueError(f"y must be -1 or +1 for {self.loss!r}; got {wrong:g}")
        weights = self._weights(sample_weight, n)
        if self.models and design.n_features != self.models[0].width:
            raise ValueError(
                f"X has {design.n_features} features, but the stream has had {self.models[0].width} so far"
            )
        order = np.flatnonzero(weights > 0.0)
        if not self.models and len(order):
            self.models = [self._begin(design, weights)]
        self.n_batches += 1
        if not len(order):
            return
        self.unit = self.unit or float(weights.sum()) / len(order)
        self.weight += float(weights.sum())
        self.sizes += float(np.sum(weights * np.abs(targets)))  # not by BLAS, whose threads wait on a busy machine
        if self.intercept:
            step = intercept_step(self.loss, self.sizes / self.weight)
            for models in self.models:
                models.rule = replace(
                    models.rule, intercept_step=step, intercept_limit=intercept_limit(self.loss, step)
                )
        if not np.isfinite(self.loss.lipschitz) and self.form.p > 1.0:
            self._move_balls(targets, weights)
        done = 0
        with np.errstate(over="ignore", invalid="ignore"):  # of lams that diverge
            while done < len(order):
                part = order[done : done + self._room()]
                mean_weight = self.weight / (self.n_samples - done + len(order))
                self._account(self._learn_part(design, targets, weights, part, mean_weight), len(part))
                done += len(part)
        if not self._are_finite(rows).any():
            raise OverflowError("the weights diverge: scale the features, take a larger lam, or a Lipschitz loss")
        self.best = self._recent().best()

    def _design(self, X: MatrixLike | Design) -> Design:
        if not isinstance(X, Design):
            return Design(X, constant=self.constant)
        if X.constant != self.constant:
            raise ValueError(f"X has constant={X.constant:g}, but the stream has constant={self.constant:g}")
        return X

    def _weights(self, sample_weight: VectorLike | None, n: int) -> Vector:
        """Weights, which may all be zero in one batch of many; extreme ones over a power of two, the same for all."""
        if sample_weight is not None and np.shape(sample_weight) == (n,) and not np.any(sample_weight):
            return np.zeros(n)
        weights = as_weights(sample_weight, n)  # over a power of its own
        given = weights if sample_weight is None else as_vector(np.broadcast_to(sample_weight, n), n, "sample_weight")
        if self.exponent is None:
            self.exponent = int(np.frexp(given.max())[1] - np.frexp(weights.max())[1])
        with np.errstate(over="ignore"):
            found = np.ldexp(given, -self.exponent) if self.exponent else given
        if not float(found.max()) < 1e280:
            raise ValueError(
                f"sample_weight has {given.max():g}, which is out of range beside those of the batches before"
            )
        return np.asarray(found)

    def _learn_part(self, design: Design, y: Vector, weights: Vector, part: Indices, mean_weight: float) -> Window:
        """Every lam learns these samples."""
        several, classes = len(self.kept) > 1, self.sums.shape[2]
        sums, each = [], []
        for models in self.models:
            table = np.empty((-(-len(part) // 4), 2 * models.count)) if several else None
            found, _ = models.learn(self.loss, design, y, weights, part, mean_weight, self.batch, each=table)
            sums.append(found)
            if table is not None:
                each.append(table.reshape(len(table), 2, -1, classes))
        total = joined(sums, axis=1).reshape(len(SUMS), -1, classes)
        total *= np.where(IS_WEIGHTED, mean_weight / self.unit, 1.0)  # the mean changes from part to part
        if not several:
            return Window(total, None)
        kinds = slice(None, None, -1) if self.loss.is_classification else slice(1)  # mistakes and losses, or losses
        return Window(total, products(joined(each, axis=2)[:, kinds], weights[part[::4]] / self.unit))

    def _begin(self, design: Design, weights: Vector) -> GradientModels:
        p = self.form.p
        self.lams = self._family(design, weights) if self.automatic else np.array([self.form.lam])
        self.kept = np.arange(len(self.lams))
        count = 1 if self.classes is None else len(self.classes)
        every = np.repeat(self.lams, count)
        classes = None if self.classes is None else np.tile(self.classes, len(self.lams)).astype(np.float64)
        self.batch = default_batch(self.loss, p, design) if self.batch_size == "auto" else int(self.batch_size)
        self.sums = np.zeros((len(SUMS), len(self.lams), count))
        self.windows = [Window(self.sums, None), Window(self.sums, None)]
        rule, radius = GradientRule(p, constant=self.constant), np.full(len(every), self.form.ball)
        models = GradientModels(rule, every, design.n_features, radius, classes)
        if self.start is not None:
            w, b, samples = self.start
            models.start(self.penalty, w, b, max(-(-samples // self.batch), 1))
        return models

    def _family(self, design: Design, weights: Vector) -> Vector:
        """The lams to try, from the mean squared length of the samples; for an entropy, from their largest entries."""
        with np.errstate(over="ignore", under="ignore"):
            sizes = design.row_norms(2.0) ** 2 if self.form.p > 1.0 else design.row_norms(np.inf)
            size = float(np.sum(weights * sizes)) / float(weights.sum())
        if not (size == 0.0 or 1e-280 < size < 1e280):
            raise ValueError("the squares of the features are out of range; scale them")
        largest = TUNING.largest * (size if size > 0.0 else 1.0)
        return np.asarray(largest * 10.0 ** -np.arange(TUNING.family))

    def _move_balls(self, y: Vector, weights: Vector) -> None:
        """|w|_p <= B, which contains the optimum of the samples so far (`pgs.containing_ball`)."""
        labels = np.ones_like(y) if self.classes is not None else y
        above = self.loss.value(np.zeros_like(labels), labels) + self.loss.conjugate(np.zeros_like(labels), labels)
        self.at_zero += float(np.sum(weights * above))
        for models in self.models:
            radius = np.sqrt(self.at_zero / self.weight / models.lam)
            radius = np.clip(radius, np.finfo(float).tiny, self.form.ball)
            self.ball_moved = self.ball_moved or (models.t > 0 and bool(np.any(radius != models.radius)))
            models.radius = radius

    def _room(self) -> int:
        """Samples until the next window opens, in whole gradient steps."""
        left = max(2 * self.opened, 4 * TUNING.mistakes) - self.n_samples
        return max(-(-left // self.batch), 1) * self.batch

    def _account(self, found: Window, count: int) -> None:
        self.n_samples += count
        self.sums = self.sums + found.sums
        self.windows = [window.plus(found) for window in self.windows]
        if self.n_samples < max(2 * self.opened, 4 * TUNING.mistakes):
            return
        self.windows, self.opened = [self.windows[1], Window(np.zeros_like(self.sums), None)], self.n_samples
        if len(self.kept) > 1:
            self._drop()

    def _are_finite(self, rows: Indices | None = None) -> Mask:
        """Whether the weights are, for each lam that still learns; rows: where they may have changed."""
        found = np.concatenate([models.are_finite(rows) for models in self.models])
        return np.asarray(found.reshape(len(self.kept), -1).all(axis=1))

    def _drop(self) -> None:
        """The lams that were clearly worse than the best one in the window that ends now, or diverge, learn no more."""
        recent, window = self._recent(), self.windows[0]
        best = recent.best()
        assert window.products is not None
        errors, losses = recent.errors * recent.weight, recent.losses * recent.weight
        comparison = Comparison(errors, losses, window.products, recent.weight, self.sums.shape[2])
        worse = comparison.worse(best, TUNING.clear, TUNING.mistakes, inside=bool(self.kept[0] > 0))
        if not np.isfinite(losses).all():
            worse |= ~self._are_finite()
        worse[best] = False
        if not worse.any():
            return
        stay = np.flatnonzero(~worse)
        gone = {
            int(self.kept[k]): (self.n_samples, float(recent.errors[k]), float(recent.losses[k]))
            for k in np.flatnonzero(worse)
        }
        self.dropped = self.dropped | gone
        self.models = [self._models_of(stay)]
        self.kept = self.kept[stay]
        self.sums, self.windows = self.sums[:, stay], [window.of(stay) for window in self.windows]

    def _models_of(self, lams: Indices) -> GradientModels:
        """Of some lams, side by side, so that each read of a row serves all."""
        count = self.sums.shape[2]
        return self.models[0].of((lams[:, None] * count + np.arange(count)).ravel())

    # Results ------------------------------------------------------------------------------------------------------

    @property
    def n_steps(self) -> int:
        """Gradient steps so far."""
        return self.models[0].t if self.models else 0

    def _recent(self) -> Recent:
        """Of the lams that still learn, in the last half of the stream or more."""
        window = self.windows[0]
        means = window.sums[:, :, 0] if window.sums.shape[2] == 1 else window.sums.mean(axis=2)
        weight = max(float(means[WEIGHT, 0]), 1e-300)
        squares = 0.0 if window.products is None else float(window.products[-1, -1, -1])
        labels = self.loss.is_classification
        return Recent(means[MISTAKES if labels else LOSS] / weight, means[LOSS] / weight, weight, squares, labels)

    @property
    def choice(self) -> LamChoice:
        """Which lam is taken now, and why; errors and losses are means over the classes."""
        found, recent = np.empty((2, len(self.lams))), self._recent()
        found[:, self.kept] = recent.errors, recent.losses
        for position, (_, *values) in self.dropped.items():
            found[:, position] = values
        lams = self.lams.tolist()
        errors, losses = (dict(zip(lams, row.tolist(), strict=True)) for row in found)
        dropped = {float(self.lams[k]): count for k, (count, *_) in sorted(self.dropped.items())}
        if not self.loss.is_classification:
            return LamChoice(self.lam, losses, dropped=dropped)
        return LamChoice(self.lam, losses, errors, recent.deviation, dropped)

    @property
    def lam(self) -> float:
        """The chosen lam."""
        return float(self.lams[self.kept[self.best]])

    def model(self, output: str = "average") -> tuple[Matrix, Vector]:
        """Weights, a row for each class, and intercepts, of the chosen lam."""
        count, models = self.sums.shape[2], self.models[0]
        place = self.best * count
        found = models.average() if output == "average" else models.last()
        part = found[:, place : place + count]
        return np.ascontiguousarray(part[: models.width].T), part[-1] + self.constant * part[-2]

    @property
    def progressive_loss(self) -> float:
        """Weighted mean loss of every sample by the model before it was learnt; the mean over the classes."""
        weight = self.weight / self.unit if self.unit else 1.0
        return float(self.sums[SUMS.index("loss"), self.best].mean()) / weight

    @property
    def regret_bound(self) -> float:
        """(1/T) (1/2) sum_t |g_t|_q^2 / (t mu), R mu-strongly convex; infinite with a free intercept or a start.

        Lemma 1 is about one domain of R: infinite as well where the ball has moved between steps.
        """
        if self.intercept or self.start is not None or self.ball_moved:
            return np.inf
        slopes = float(self.sums[SUMS.index("slopes"), self.best].mean())
        return slopes / (2.0 * self.penalty.with_lam(self.lam).strong_convexity * max(self.n_steps, 1))

    def result(self, output: str = "average") -> StreamResult | None:
        """What was learnt so far, for one target; None before the first batch."""
        if not self.models:
            return None
        (w, b), recent = self.model(output), self._recent()
        return StreamResult(
            w=w[0],
            b=float(b[0]),
            lam=self.lam,
            n_samples=self.n_samples,
            n_batches=self.n_batches,
            n_steps=self.n_steps,
            progressive_loss=self.progressive_loss,
            recent_loss=float(recent.losses[self.best]),
            recent_error=float(recent.errors[self.best]) if self.loss.is_classification else np.nan,
            regret_bound=self.regret_bound,
            choice=self.choice,
        )


def _touched(design: Design) -> Indices | None:
    """The features of a batch with few entries, and the place of the constant; else None, for all.

    To find the different ones among k entries takes as long as to copy some 30 k numbers.
    """
    if not design.is_sparse or 32 * design.nnz >= design.n_features:
        return None
    return np.append(np.unique(design.matrix.indices), design.n_features).astype(np.int64)
