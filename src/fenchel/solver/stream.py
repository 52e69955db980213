"""Learning from a stream: batches of samples that are read once, by the Primal Gradient Solver (Zhu et al. 2009).

Every sample is predicted before it is learnt: the mean of these losses, the progressive validation loss, estimates the
test loss without a test set. Where lam is not known, a family of them learns side by side, and the best of these by
progressive validation is the result: the choice of sigma that section VII of the paper leaves open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel.data.design import Design
from fenchel.data.target import as_vector, as_weights
from fenchel.data.typing import Matrix, MatrixLike, Vector, VectorLike
from fenchel.problem.checks import require_count, require_flag, require_instance, require_one_of
from fenchel.problem.losses import Loss, Squared
from fenchel.problem.penalties import L2, Penalty
from fenchel.solver.progress import Bar
from fenchel.steps.stochastic.models import SUMS, GradientModels, GradientRule, gradient_penalty
from fenchel.steps.stochastic.pgs import default_batch, intercept_step

#: (X, y) or (X, y, sample_weight).
Batch = tuple[MatrixLike, VectorLike] | tuple[MatrixLike, VectorLike, VectorLike]


@dataclass(frozen=True)
class StreamTuning:
    """`python -m benchmarks.stream`, on imdb, a9a and w8a."""

    family: int = 6  # how many lams are tried,
    largest: float = 10.0**-1.5  # from this times the mean squared length of a sample
    ratio: float = 10.0  # down, by this factor
    apart: float = 0.5  # errors that differ by less than so many standard deviations count as the same
    window: int = 256  # samples until the first window of progressive validation is half full


TUNING = StreamTuning()


class StreamError(ValueError):
    """A batch could not be read or learnt; `result` is the model before it, `batch` its number from 1 on."""

    def __init__(self, message: str, batch: int, result: StreamResult | None) -> None:
        super().__init__(f"batch {batch}: {message}")
        self.message, self.batch, self.result = message, batch, result

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamError, (self.message, self.batch, self.result)


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
    family : dict
        The recent error (loss for a regression) for each lam that was tried.
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
    family: dict[float, float]
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
            tried = ", ".join(f"{lam:.2g}: {value:.4g}" for lam, value in self.family.items())
            what = "loss" if np.isnan(self.recent_error) else "error"
            lines.append(f"lam {self.lam:.3g} was chosen by the recent {what} of those tried ({tried}).")
        return "\n".join(lines)


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
        self.models: GradientModels | None = None
        self.start: tuple[Matrix, Vector, int] | None = None
        self.n_samples = self.n_batches = 0
        self.weight = self.at_zero = self.sizes = 0.0  # sums: weights, losses at score 0 above their minimum, |targets|
        self.used = 0.0  # the sum of the weights as they entered the gradients
        self.ball_moved = False  # between two steps
        self.batch = 1
        self.sums: Matrix = np.zeros((len(SUMS), 1))
        self.windows: list[Matrix] = []  # sums since two numbers of samples, the later one at least half of all
        self.opened = 0  # the number at which the later one began

    def begin_at(self, w: Matrix, b: Vector, samples: int) -> None:
        """Begin at given models, a row of w for each class, as if so many samples had led there; before any batch."""
        self.start = w, b, samples

    def learn(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> None:
        """Predict a batch of samples, then learn it; nothing changes if that fails."""
        before = dict(self.__dict__)
        before["models"] = self.models and self.models.copy()
        try:
            self._learn(X, y, sample_weight)
        except BaseException:
            self.__dict__.update(before)
            raise

    def _learn(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> None:
        design = Design(X, constant=self.constant).stored_by_rows()
        n = design.shape[0]
        targets = as_vector(y, n, "y")
        if self.loss.is_classification and self.classes is None and np.any(np.abs(targets) != 1.0):
            wrong = targets[np.abs(targets) != 1.0][0]
            raise ValueError(f"y must be -1 or +1 for {self.loss!r}; got {wrong:g}")
        weights = _weights(sample_weight, n)
        if self.models is not None and design.n_features != self.models.width:
            raise ValueError(f"X has {design.n_features} features, but the stream has had {self.models.width} so far")
        order = np.flatnonzero(weights > 0.0)
        models = self._begin(design, weights) if self.models is None and len(order) else self.models
        self.models, self.n_batches = models, self.n_batches + 1
        if models is None or not len(order):
            return
        self.weight += float(weights.sum())
        self.sizes += float(np.sum(weights * np.abs(targets)))  # not by BLAS, whose threads wait on a busy machine
        if self.intercept:
            models.rule = replace(models.rule, intercept_step=intercept_step(self.loss, self.sizes / self.weight))
        if not np.isfinite(self.loss.lipschitz) and self.form.p > 1.0:
            self._move_ball(models, targets, weights)
        done = 0
        while done < len(order):
            part = order[done : done + self._room()]
            mean_weight = self.weight / (self.n_samples - done + len(order))
            sums, _ = models.learn(self.loss, design, targets, weights, part, mean_weight, self.batch)
            self._account(sums, len(part))
            self.used += float(weights[part].sum()) / mean_weight
            done += len(part)
        if not models.are_finite().reshape(len(self.lams), -1).all(axis=1).any():
            raise OverflowError("the weights diverge: scale the features, take a larger lam, or a Lipschitz loss")

    def _begin(self, design: Design, weights: Vector) -> GradientModels:
        p = self.form.p
        self.lams = self._family(design, weights) if self.automatic else np.array([self.form.lam])
        every = np.repeat(self.lams, 1 if self.classes is None else len(self.classes))
        classes = None if self.classes is None else np.tile(self.classes, len(self.lams)).astype(np.float64)
        self.batch = default_batch(self.loss, p, design) if self.batch_size == "auto" else int(self.batch_size)
        self.sums = np.zeros((len(SUMS), len(every)))
        self.windows = [self.sums.copy(), self.sums.copy()]
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
        return np.asarray(largest * TUNING.ratio ** -np.arange(TUNING.family, dtype=np.float64))

    def _move_ball(self, models: GradientModels, y: Vector, weights: Vector) -> None:
        """|w|_p <= B, which contains the optimum of the samples so far (`pgs.containing_ball`)."""
        labels = np.ones_like(y) if self.classes is not None else y
        above = self.loss.value(np.zeros_like(labels), labels) + self.loss.conjugate(np.zeros_like(labels), labels)
        self.at_zero += float(np.sum(weights * above))
        radius = np.sqrt(self.at_zero / self.weight / models.lam)
        radius = np.clip(radius, np.finfo(float).tiny, self.form.ball)
        self.ball_moved = self.ball_moved or (models.t > 0 and bool(np.any(radius != models.radius)))
        models.radius = radius

    def _room(self) -> int:
        """Samples until the next window opens, in whole gradient steps."""
        left = max(2 * self.opened, TUNING.window) - self.n_samples
        return max(-(-left // self.batch), 1) * self.batch

    def _account(self, sums: Matrix, count: int) -> None:
        self.n_samples += count
        self.sums = self.sums + sums
        self.windows = [window + sums for window in self.windows]
        if self.n_samples >= max(2 * self.opened, TUNING.window):
            self.windows, self.opened = [self.windows[1], np.zeros_like(sums)], self.n_samples

    # Results ------------------------------------------------------------------------------------------------------

    def _by_lam(self, values: Vector) -> Matrix:
        """A row for each lam, a column for each class."""
        return values.reshape(len(self.lams), -1)

    @property
    def _window(self) -> Matrix:
        """The sums of the last half of the stream or more."""
        return self.windows[0] if self.windows[0][SUMS.index("average_weight")].any() else self.sums

    def _recent(self, name: str) -> Matrix:
        window = self._window
        weight = np.maximum(window[SUMS.index("average_weight")], 1e-300)
        return self._by_lam(window[SUMS.index(name)] / weight)

    @property
    def scores(self) -> Vector:
        """The recent error of each lam, the mean over the classes; for a regression the recent loss."""
        name = "average_mistakes" if self.loss.is_classification else "average_loss"
        return np.asarray(self._recent(name).mean(axis=1))

    @property
    def best(self) -> int:
        """The position of the chosen lam: the least recent loss of those whose errors can hardly be told apart."""
        if len(self.lams) == 1:
            return 0
        losses, scores = self._recent("average_loss").mean(axis=1), self.scores
        losses = np.where(np.isfinite(losses), losses, np.inf)
        if not self.loss.is_classification:
            return int(np.argmin(losses))
        least, count = float(scores.min()), float(self._window[SUMS.index("average_weight")].max())
        deviation = np.sqrt(least * (1.0 - least) / max(count, 1.0))
        return int(np.argmin(np.where(scores <= least + TUNING.apart * deviation, losses, np.inf)))

    @property
    def lam(self) -> float:
        """The chosen lam."""
        return float(self.lams[self.best])

    def model(self, output: str = "average") -> tuple[Matrix, Vector]:
        """Weights, a row for each class, and intercepts, of the chosen lam."""
        models = self.models
        assert models is not None
        found = models.average() if output == "average" else models.last()
        k = found.shape[1] // len(self.lams)
        part = found[:, self.best * k : (self.best + 1) * k]
        return np.ascontiguousarray(part[: models.width].T), part[-1] + self.constant * part[-2]

    @property
    def progressive_loss(self) -> float:
        """Mean loss of every sample by the model before it was learnt; the mean over the classes."""
        return float(self._by_lam(self.sums[SUMS.index("loss")])[self.best].mean()) / max(self.used, 1e-300)

    @property
    def regret_bound(self) -> float:
        """(1/T) (1/2) sum_t |g_t|_q^2 / (t mu), R mu-strongly convex; infinite with a free intercept or a start.

        Lemma 1 is about one domain of R: infinite as well where the ball has moved between steps.
        """
        models = self.models
        assert models is not None
        if self.intercept or self.start is not None or self.ball_moved:
            return np.inf
        slopes = float(self._by_lam(self.sums[SUMS.index("slopes")])[self.best].mean())
        return slopes / (2.0 * self.penalty.with_lam(self.lam).strong_convexity * max(models.t, 1))

    def result(self, output: str = "average") -> StreamResult | None:
        """What was learnt so far, for one target; None before the first batch."""
        models = self.models
        if models is None:
            return None
        w, b = self.model(output)
        return StreamResult(
            w=w[0],
            b=float(b[0]),
            lam=self.lam,
            n_samples=self.n_samples,
            n_batches=self.n_batches,
            n_steps=models.t,
            progressive_loss=self.progressive_loss,
            recent_loss=float(self._recent("average_loss")[self.best].mean()),
            recent_error=float(self.scores[self.best]) if self.loss.is_classification else np.nan,
            regret_bound=self.regret_bound,
            family=dict(zip(self.lams.tolist(), self.scores.tolist(), strict=True)),
        )


def stream(
    batches: Iterable[Batch],
    loss: Loss | None = None,
    penalty: Penalty | None = None,
    *,
    lam: float | str | None = None,
    intercept: bool = False,
    constant: float = 0.0,
    batch_size: int | str = "auto",
    output: str = "average",
    max_seconds: float | None = None,
    callback: Callable[[StreamResult], object] | None = None,
    progress: bool = False,
) -> StreamResult:
    """Learn a linear model from batches of samples, each read once, in bounded memory.

    Minimises the mean loss plus lam/2 |w|_p^2 by the Primal Gradient Solver. The samples should come in random order.

    Parameters
    ----------
    batches : iterable of (X, y) or (X, y, sample_weight)
        Files, readers in pieces, generators. y is -1 or +1 for classification losses. X as in `Design`. Weights count
        relative to the mean of those so far.
    loss : Loss, default Squared()
    penalty : L2, LpSquared or SignedEntropy, optional
        By default L2(lam).
    lam : float or "auto", optional
        "auto": six lams learn side by side, from 0.03 times the mean squared length of the samples of the first batch
        down, and the one with the least error by progressive validation is taken. It replaces the lam of a penalty
        that is given; without a penalty it is the default.
    intercept : bool, default False
        Whether to fit an unpenalised intercept.
    constant : float, default 0
        If not zero, every sample has this as one more feature, as in `Design`: the result's b is penalised with the
        weights, the paper's bias inside the norm.
    batch_size : int or "auto", default "auto"
        Samples per gradient step, at most those of a batch; "auto" as in the solver "pgs".
    output : {"average", "last"}, default "average"
        The model: the mean of all iterates with weights t + 1, or the last one.
    max_seconds : float, optional
        Stop after the batch in which this time is over.
    callback : callable, optional
        Called with a `StreamResult` after each batch; True ends the stream.
    progress : bool, default False
        Show samples, rate and loss.

    Returns
    -------
    StreamResult
        Certify it on any data: `fl.certify(fl.Problem(X, y, loss, L2(result.lam)), result.w, result.b)`. With a
        constant, X is `fl.Design(X, constant=c)`, and its weight b / c is the last one.

    Raises
    ------
    StreamError
        For a batch that is not valid, cannot be read, or makes the weights diverge; its `result` is the model before
        that batch.
    """
    require_one_of(output, ("average", "last"), "output")
    require_flag(intercept, "intercept")
    require_flag(progress, "progress")
    if max_seconds is not None and not float(max_seconds) >= 0.0:
        raise ValueError(f"max_seconds must not be negative; got {max_seconds!r}")
    penalty, automatic = _penalty(penalty, lam)
    learner = Learner(
        Squared() if loss is None else loss, penalty, automatic, intercept, batch_size=batch_size, constant=constant
    )
    begun, status = time.perf_counter(), "end"
    with Bar("stream", progress) as bar:
        try:
            for batch in _read(batches, learner, output):
                _learn(learner, batch, output)
                seconds = time.perf_counter() - begun
                if progress:
                    bar.show(0.0, f"{learner.n_samples} samples, {learner.n_samples / seconds:.3g} per second")
                if callback is not None and learner.models is not None:
                    answer = callback(_finished(learner, output, "running", seconds))
                    if isinstance(answer, bool | np.bool_) and bool(answer):
                        status = "callback"
                        break
                if max_seconds is not None and seconds > max_seconds:
                    status = "max_seconds"
                    break
        except KeyboardInterrupt:
            if learner.models is None:
                raise
            status = "interrupted"
    if learner.models is None:
        raise ValueError("the stream is empty: there is no sample to learn from")
    return _finished(learner, output, status, time.perf_counter() - begun)


def _penalty(penalty: Penalty | None, lam: float | str | None) -> tuple[Penalty, bool]:
    """The penalty, and whether its lam is to be chosen."""
    if isinstance(lam, str):
        require_one_of(lam, ("auto",), "lam")
        return L2(1.0) if penalty is None else penalty, True
    if penalty is None:
        return (L2(1.0), True) if lam is None else (L2(lam), False)
    if lam is not None:
        raise ValueError(f'lam={lam!r} and the penalty {penalty!r}: give one of them, or lam="auto"')
    return penalty, False


def _read(batches: Iterable[Batch], learner: Learner, output: str) -> Iterator[Any]:
    """The batches; an error of their source tells which one it was, and keeps the model."""
    source = iter(batches)
    while True:
        try:
            batch = next(source)
        except StopIteration:
            return
        except Exception as error:
            raise _failure(f"reading it failed: {error!r}", learner, output) from error
        yield batch


def _learn(learner: Learner, batch: Any, output: str) -> None:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        kind = type(batch).__name__
        message = f"expected a tuple (X, y) or (X, y, sample_weight), got {kind}; one batch is fl.stream([(X, y)])"
        raise _failure(message, learner, output)
    try:
        learner.learn(*batch)
    except (ValueError, TypeError, OverflowError) as error:
        raise _failure(str(error), learner, output) from error


def _failure(message: str, learner: Learner, output: str) -> StreamError:
    result = learner.result(output)
    return StreamError(message, learner.n_batches + 1, result and replace(result, status="error"))


def _weights(sample_weight: VectorLike | None, n: int) -> Vector:
    """Weights, which may all be zero in one batch of many."""
    if sample_weight is not None and np.shape(sample_weight) == (n,) and not np.any(sample_weight):
        return np.zeros(n)
    return as_weights(sample_weight, n)


def _finished(learner: Learner, output: str, status: str, seconds: float) -> StreamResult:
    result = learner.result(output)
    assert result is not None
    return replace(result, status=status, seconds=seconds)
