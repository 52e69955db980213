"""The tangent kernel of a network: inner products of the gradients of its outputs with respect to its parameters.

At any point of training, the derivatives J(x) of all k outputs with respect to all P parameters, one output after the
other, are k P features of a sample x (Jacot, Gabriel and Hongler 2018; Ji, Srebro and Telgarsky 2021, section 6):

    k(x, x') = <J(x), J(x')>,    divided by |J(x)| |J(x')| if they are normalised.

It is a sum over the outputs. So a block of values takes a few outputs at a time if the gradients of all of them do not
fit into the memory that is allowed, and then as many samples as fit. torch is imported where it is used.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from fenchel.data.design import Design
from fenchel.data.limits import parts
from fenchel.data.typing import Array, Matrix, MatrixLike, Vector
from fenchel.kernel.base import Accuracy, Kernel
from fenchel.kernel.samples import Samples

#: Memory for the gradients of a block, as a multiple of their size: 3 is what torch took, the result included, for a
#: network of convolutions; the rest is for allocators, which keep what is freed.
COPIES = 8
EVERY = slice(None)


def tangent(
    model: Any,
    X: MatrixLike,
    *,
    normalize: bool = True,
    shape: tuple[int, ...] | None = None,
    block_size: int | None = None,
    memory: float = 512.0,
    dtype: str = "float64",
) -> Array:
    """The tangent features of a network: for each sample the derivatives of all outputs with respect to all parameters.

    Linear models of these features are what the network can become by small changes of its parameters; their largest
    margin is that of the tangent kernel. Of many samples, or of a large network, use `TangentKernel`, which computes
    inner products and keeps no features.

    Parameters
    ----------
    model : torch.nn.Module
        Takes a batch and returns a row of outputs for each sample. It is not changed: a copy in evaluation mode is
        used, without dropout and with fixed statistics of batches. Parameters that need no gradient are constants.
    X : array, sparse matrix, data frame, Design or tensor of n samples
        Of any number of axes, n first.
    normalize : bool, default True
        Whether to divide features by their 2-norm; zeros stay.
    shape : tuple of int, optional
        Of one sample, such as (1, 28, 28), for an X of two axes: its rows are reshaped.
    block_size : int, optional
        The most samples whose gradients are computed at a time; by default what `memory` allows.
    memory : float, default 512.0
        MB for gradients, the features that are returned included.
    dtype : {"float64", "float32"}, default "float64"
        In which gradients are computed and returned. In float32 they depend in the seventh digit on the blocks in which
        they are computed; what is fitted and proven is about the features that are returned.

    Returns
    -------
    array of shape (n, k P)
        The P derivatives of the first output, then those of the next one; parameters in the order of
        `model.parameters()`.

    Examples
    --------
    >>> import fenchel as fl                                        # doctest: +SKIP
    >>> features = fl.kernel.tangent(model, X)                      # doctest: +SKIP
    >>> fl.MaxMarginClassifier().fit(features, y).margin_interval_  # doctest: +SKIP
    """
    X, own = _flattened(X)
    if dtype not in KERNELS:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, KERNELS))}; got {dtype!r}")
    return KERNELS[dtype](model, normalize, own if shape is None else shape, block_size, memory).features(X)


@dataclass(frozen=True, eq=False, repr=False)
class TangentKernel(Kernel):
    """The inner product of the tangent features of two samples (`tangent`), without keeping features of all samples.

    For `Gram`, `KernelProblem` and `KernelClassifier`. The network is copied: training it later has no effect.

    Gradients are in float64, and there is no choice. The rounding errors of torch are not known, so that proofs take
    the computed values for the kernel. These depend on the blocks in which they are computed: in float64 in the last
    digits; in float32 it would be the seventh, and rows that are computed twice would be of two different kernels.

    Parameters
    ----------
    model, normalize, shape
        As for `tangent`.
    block_size : int, optional
        The most samples whose gradients are computed at a time; by default what `memory` allows.
    memory : float, default 512.0
        MB for gradients. With less, gradients are computed several times.
    """

    model: Any
    normalize: bool = True
    shape: tuple[int, ...] | None = None
    block_size: int | None = None
    memory: float = 512.0
    is_given = True
    dtype = "float64"

    def __post_init__(self) -> None:
        torch = require_torch()
        if not isinstance(self.model, torch.nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(self.model).__name__}")
        if not isinstance(self.normalize, bool | np.bool_):
            raise TypeError(f"normalize must be True or False, got {self.normalize!r}")
        if self.block_size is not None and not (_is_number(self.block_size, Integral) and self.block_size >= 1):
            raise ValueError(f"block_size must be a whole number of samples, at least 1; got {self.block_size!r}")
        if not (_is_number(self.memory, Real) and 0.0 < self.memory < np.inf):
            raise ValueError(f"memory must be a positive number of MB, got {self.memory!r}")
        object.__setattr__(self, "model", deepcopy(self.model).to(getattr(torch, self.dtype)).eval())
        if self.n_parameters == 0:
            raise ValueError("the network has no parameter that needs a gradient")

    @cached_property
    def n_parameters(self) -> int:
        """P, the number of parameters that need a gradient."""
        return int(sum(p.numel() for p in self.model.parameters() if p.requires_grad))

    def features(self, X: MatrixLike | Design) -> Array:
        """The features of all samples, n x k P."""
        A = Samples.of(X)
        k, P, n = self._n_outputs(A), self.n_parameters, len(A)
        left = self._numbers(self.dtype) - n * k * P
        if left < 0:
            raise ValueError(
                f"the features are an array of {n} x {k * P}, {_megabytes(n * k * P, self.dtype)}, and memory is "
                f"{self.memory:g} MB: allow more, or use inner products only, Gram(X, TangentKernel(model))"
            )
        out = np.empty((n, k * P), dtype=self.dtype)
        for outputs in parts(k, self._outputs_at_once(left, 1, k)):
            columns = slice(outputs.start * P, outputs.stop * P)
            step = self._samples_at_once(left, outputs)
            self._fill(out[:, columns], A, outputs, step)
        if self.normalize:
            for rows in A.chunks():
                squares = np.einsum("ij,ij->i", out[rows], out[rows], dtype=np.float64)
                out[rows] *= _inverse(squares)[:, None].astype(self.dtype)
        return out

    # The kernel ---------------------------------------------------------------------------------------------------

    def block(self, A: Samples, B: Samples) -> Matrix:
        """Half of the memory holds gradients of A; with the other half those of B are computed, in blocks."""
        is_same = A is B or (len(A) == len(B) and A.width == B.width and np.array_equal(A.dense(EVERY), B.dense(EVERY)))
        k, P = self._n_outputs(A), self.n_parameters
        half = self._numbers("float64") // 2
        K, squares, others = np.zeros((len(A), len(B))), np.zeros(len(A)), np.zeros(len(B))
        for outputs in parts(k, self._outputs_at_once(half, min(len(A), half // P), k)):
            size = (outputs.stop - outputs.start) * P
            step = self._samples_at_once(half, outputs)
            held, scratch = (np.empty((min(len(S), most), size)) for S, most in ((A, half // size), (B, step)))
            for rows in parts(len(A), len(held)):
                own = self._fill(held[: rows.stop - rows.start], A.take(rows), outputs, step)
                squares[rows] += np.einsum("ij,ij->i", own, own)
                if is_same:
                    K[rows, rows] += own @ own.T
                for columns in parts(len(B), step, rows.stop if is_same else 0):
                    part = self._fill(scratch[: columns.stop - columns.start], B.take(columns), outputs, step)
                    K[rows, columns] += own @ part.T
                    if is_same:
                        K[columns, rows] = K[rows, columns].T
                    elif rows.start == 0:
                        others[columns] += np.einsum("ij,ij->i", part, part)
        if self.normalize:
            K *= np.outer(_inverse(squares), _inverse(squares if is_same else others))
        return K

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        return Accuracy.uniform(len(A), len(B))

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        k, half = self._n_outputs(A), self._numbers("float64") // 2
        squares = np.zeros(len(A))
        for outputs in parts(k, self._outputs_at_once(half, 1, k)):
            size, step = (outputs.stop - outputs.start) * self.n_parameters, self._samples_at_once(half, outputs)
            scratch = np.empty((min(len(A), step), size))
            for rows in parts(len(A), step):
                part = self._fill(scratch[: rows.stop - rows.start], A.take(rows), outputs, step)
                squares[rows] += np.einsum("ij,ij->i", part, part)
        return (squares * _inverse(squares) ** 2 if self.normalize else squares), np.zeros(len(A))

    def rows_at_once(self, columns: int) -> int:
        """As many as have gradients of one output in half of the memory, if their values fit as well."""
        fitting = self._numbers("float64")
        return max(1, min(fitting // (2 * self.n_parameters), fitting // max(1, columns)))

    # Gradients ----------------------------------------------------------------------------------------------------

    def _n_outputs(self, A: Samples) -> int:
        """k, by the outputs for the first sample."""
        torch = require_torch()
        try:
            with torch.no_grad():
                found = self.model(self._batch(A.take(slice(0, 1))))
        except RuntimeError as error:
            of = f"{A.width} features" if self.shape is None else f"shape {tuple(self.shape)}"
            raise ValueError(f"the network fails for a sample of {of} in {self.dtype}: {error}") from error
        if not isinstance(found, torch.Tensor) or found.ndim == 0 or len(found) != 1 or found.numel() == 0:
            of = f"shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else type(found).__name__
            raise ValueError(f"the network must return a row of outputs for each sample; for one it returned {of}")
        return int(found.numel())

    def _batch(self, A: Samples) -> Any:
        """A tensor with the shape of samples."""
        torch = require_torch()
        dense = A.dense(EVERY)
        if self.shape is not None:
            if int(np.prod(self.shape)) != A.width:
                raise ValueError(f"samples of {A.width} features cannot have the shape {tuple(self.shape)}")
            dense = dense.reshape(len(A), *self.shape)
        return torch.tensor(dense, dtype=getattr(torch, self.dtype), device=next(self.model.parameters()).device)

    def _fill(self, out: Array, A: Samples, outputs: slice, step: int) -> Array:
        """The gradients of some outputs, one row for each sample, in blocks of samples."""
        for rows in parts(len(A), step):
            self._differentiate(A.take(rows), outputs, out[rows])
            bad = np.flatnonzero(~np.isfinite(out[rows]).all(axis=1))
            if bad.size:
                raise ValueError(f"the gradient of the network is not finite for row {A.take(rows).index[bad[0]]} of X")
        return out

    def _differentiate(self, A: Samples, outputs: slice, out: Array) -> None:
        torch = require_torch()
        constants = dict(self.model.named_buffers())
        variables: dict[str, Any] = {}
        for name, parameter in self.model.named_parameters():
            (variables if parameter.requires_grad else constants)[name] = parameter.detach()

        def some(parameters: Any, sample: Any) -> Any:
            batch = torch.func.functional_call(self.model, (parameters, constants), (sample.unsqueeze(0),))
            return batch.reshape(-1)[outputs]

        found = torch.func.vmap(torch.func.jacrev(some), in_dims=(None, 0))(variables, self._batch(A))
        across = out.reshape(len(A), outputs.stop - outputs.start, -1)  # a view: rows of `out` are contiguous
        start = 0
        for part in found.values():
            flat = part.reshape(*across.shape[:2], -1)
            across[:, :, start : start + flat.shape[2]] = flat.detach().cpu().numpy()
            start += flat.shape[2]

    # Memory -------------------------------------------------------------------------------------------------------

    def _numbers(self, dtype: str) -> int:
        """How many numbers fit into the memory."""
        return int(self.memory * 2**20 / np.dtype(dtype).itemsize)

    def _outputs_at_once(self, numbers: int, samples: int, k: int) -> int:
        """In memory for so many numbers; raise if it is too little for one output of one sample."""
        P = self.n_parameters
        if numbers < COPIES * P:
            raise ValueError(
                f"memory={self.memory:g} MB is too little for the gradient of one output, with {P} parameters: allow "
                f"{_megabytes((COPIES + 1) * P * 2, 'float64')} more"
            )
        return max(1, min(k, numbers // (COPIES * P), numbers // (max(1, samples) * P)))

    def _samples_at_once(self, numbers: int, outputs: slice) -> int:
        fitting: int = max(1, numbers // (COPIES * (outputs.stop - outputs.start) * self.n_parameters))
        return fitting if self.block_size is None else min(fitting, int(self.block_size))

    def __repr__(self) -> str:
        name = type(self.model).__name__
        return f"TangentKernel({name} with {self.n_parameters} parameters, normalize={self.normalize})"


class _SinglePrecision(TangentKernel):
    """For features only."""

    dtype = "float32"


KERNELS = {kind.dtype: kind for kind in (TangentKernel, _SinglePrecision)}


def require_torch() -> Any:
    """torch, or an error that names the extra."""
    try:
        import torch
        import torch.func
    except ImportError as error:
        raise ImportError("the tangent kernel of a network needs torch: pip install fenchel[torch]") from error
    return torch


def _flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """X with two axes, and the shape of a sample if there were more."""
    if isinstance(X, Design) or sparse.issparse(X) or np.ndim(X) <= 2:
        return X, None
    array = np.asarray(X)
    return array.reshape(len(array), -1), array.shape[1:]


def _inverse(squares: Vector) -> Vector:
    """1 / sqrt, and 0 of 0."""
    if not np.all(np.isfinite(squares)):
        raise ValueError("the gradient of the network is too large: its length overflows; rescale the outputs")
    return np.asarray(np.where(squares > 0.0, 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0)), 0.0))


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _megabytes(numbers: int, dtype: str) -> str:
    return f"{numbers * np.dtype(dtype).itemsize / 2**20:.3g} MB"
