"""Learning from a stream: batches of samples that are read once, by the Primal Gradient Solver (Zhu et al. 2009)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fenchel.data.design import Design
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.problem.checks import require_flag, require_one_of
from fenchel.problem.losses import Loss, Squared
from fenchel.problem.penalties import L2, Penalty
from fenchel.solver.learner import Learner, StreamResult
from fenchel.solver.progress import Bar

#: (X, y) or (X, y, sample_weight).
Batch = tuple[MatrixLike | Design, VectorLike] | tuple[MatrixLike | Design, VectorLike, VectorLike]


class StreamError(ValueError):
    """A batch could not be read or learnt; `result` is the model before it, `batch` its number from 1 on."""

    def __init__(self, message: str, batch: int, result: StreamResult | None) -> None:
        super().__init__(f"batch {batch}: {message}")
        self.message, self.batch, self.result = message, batch, result

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamError, (self.message, self.batch, self.result)


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
        Files in pieces (`batches`), generators. y is -1 or +1 for classification losses. X as in `Design`, or a
        `Design`. Weights count relative to the mean of those so far.
    loss : Loss, default Squared()
    penalty : L2, LpSquared or SignedEntropy, optional
        By default L2(lam).
    lam : float or "auto", optional
        "auto": six lams learn side by side, from 0.03 times the mean squared length of the samples of the first batch
        down, those that are clearly worse stop to learn, and the one with the least error by progressive validation is
        taken. It replaces the lam of a penalty that is given; without a penalty it is the default.
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
                if callback is not None and learner.models:
                    answer = callback(_finished(learner, output, "running", seconds))
                    if isinstance(answer, bool | np.bool_) and bool(answer):
                        status = "callback"
                        break
                if max_seconds is not None and seconds > max_seconds:
                    status = "max_seconds"
                    break
        except KeyboardInterrupt:
            if not learner.models:
                raise
            status = "interrupted"
    if not learner.models:
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


def _finished(learner: Learner, output: str, status: str, seconds: float) -> StreamResult:
    result = learner.result(output)
    assert result is not None
    return replace(result, status=status, seconds=seconds)
