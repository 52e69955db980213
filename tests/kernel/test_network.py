"""Tangent kernels of networks: the gradients that they are made of, in blocks, and what uses them."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import fenchel as fl
from fenchel.kernel import Gram, Samples, TangentKernel, tangent
from fenchel.kernel.network import COPIES


def torch_or_skip():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # as BLAS in tests
    return torch


def data(n=13, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def network(outputs=3, d=5, width=7, seed=0):
    """Two layers with tanh, in double precision."""
    torch = torch_or_skip()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = torch.nn.Linear(d, width), torch.nn.Tanh(), torch.nn.Linear(width, outputs)
    return torch.nn.Sequential(*layers).double()


def explicit(model, X):
    """The Jacobian of every sample by one backward pass for each of its outputs, n x k x P."""
    torch, parameters = torch_or_skip(), list(model.parameters())
    out = []
    for x in torch.tensor(X):
        found = model(x[None])[0]
        grads = [torch.autograd.grad(z, parameters, retain_graph=True) for z in found]
        out.append([np.concatenate([part.numpy().ravel() for part in each]) for each in grads])
    return np.array(out)


def unit(F):
    return F / np.linalg.norm(F, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tangent_features_of_a_linear_model_are_its_inputs(dtype):
    torch = torch_or_skip()
    X = data().astype(dtype).astype(float)
    model = torch.nn.Linear(5, 1, bias=False)
    for given in (X, sp.csr_array(X), pd.DataFrame(X), fl.Design(X), torch.tensor(X), X.tolist()):
        found = tangent(model, given, normalize=False, dtype=dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, X)
    with_bias = tangent(torch.nn.Linear(5, 1), X, normalize=False)
    np.testing.assert_array_equal(with_bias, np.column_stack([X, np.ones(len(X))]))


def test_features_are_finite_differences_of_the_outputs():
    torch = torch_or_skip()
    model, X, h = network(), data(), 1e-5
    found = tangent(model, X, normalize=False)
    at = torch.nn.utils.parameters_to_vector(model.parameters()).detach()

    def outputs(vector):
        torch.nn.utils.vector_to_parameters(vector, model.parameters())
        with torch.no_grad():
            return model(torch.tensor(X)).numpy()

    slopes = [(outputs(at + h * e) - outputs(at - h * e)) / (2 * h) for e in torch.eye(len(at), dtype=torch.float64)]
    expected = np.stack(slopes, axis=2)
    np.testing.assert_allclose(found, expected.reshape(len(X), -1), atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_outputs_stand_side_by_side(outputs):
    model, X = network(outputs), data()
    jacobians = explicit(model, X)
    k, P = jacobians.shape[1:]
    assert (k, P) == (outputs, 7 * 6 + outputs * 8)
    found = tangent(model, X, normalize=False)
    assert found.shape == (13, k * P)
    np.testing.assert_allclose(found.reshape(13, k, P), jacobians, atol=1e-14)
    np.testing.assert_allclose(tangent(model, X), unit(jacobians.reshape(13, -1)), atol=1e-14)


def test_parameters_without_a_gradient_are_constants():
    model, X = network(), data()
    whole = explicit(model, X)
    model[0].weight.requires_grad_(False)
    found = tangent(model, X, normalize=False).reshape(13, 3, -1)
    np.testing.assert_allclose(found, whole[:, :, 35:], atol=1e-14)
    assert TangentKernel(model).n_parameters == whole.shape[2] - 35


def test_features_have_length_one_and_zero_stays_zero():
    torch = torch_or_skip()
    X = data()
    X[4] = 0.0
    model = torch.nn.Linear(5, 2, bias=False)
    for dtype, atol in [("float64", 1e-15), ("float32", 1e-6)]:
        lengths = np.linalg.norm(tangent(model, X, dtype=dtype).astype(float), axis=1)
        np.testing.assert_allclose(lengths, np.where(np.arange(13) == 4, 0.0, 1.0), atol=atol)
    gram = Gram(X, TangentKernel(model))
    np.testing.assert_allclose(gram.diagonal, np.where(np.arange(13) == 4, 0.0, 1.0), atol=1e-15)
    assert not gram.whole[4].any()


#: In MB, for 66 parameters: for the gradients of one output of one sample, of a few, of all.
MEMORIES = [0.009, 0.02, 0.3]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("block", [1, 3, 100, None])
def test_blocks_of_any_size_give_the_same(block, normalize):
    model, X, new = network(), data(), data(4, seed=1)
    F, G = (tangent(model, rows, normalize=normalize) for rows in (X, new))
    np.testing.assert_allclose(tangent(model, X, normalize=normalize, block_size=block), F, atol=1e-14)
    for memory in MEMORIES:
        kernel = TangentKernel(model, normalize, block_size=block, memory=memory)
        A, B = Samples.of(X), Samples.of(new)
        K = kernel.block(A, A)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, F @ F.T, atol=1e-12)
        np.testing.assert_allclose(kernel.block(B, A), G @ F.T, atol=1e-12)
        np.testing.assert_allclose(kernel.block(A, B), F @ G.T, atol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(A)[0], np.diag(F @ F.T), atol=1e-12)


def test_memory_bounds_what_is_computed_at_a_time(monkeypatch):
    model, X = network(), data(200)
    P, sizes, differentiate = TangentKernel(model).n_parameters, [], TangentKernel._differentiate

    def spied(self, A, outputs, out):
        sizes.append((len(A), outputs.stop - outputs.start))
        differentiate(self, A, outputs, out)

    monkeypatch.setattr(TangentKernel, "_differentiate", spied)
    for memory in [*MEMORIES, 0.1, 1.0]:
        sizes.clear()
        kernel = TangentKernel(model, memory=memory)
        kernel.block(Samples.of(X), Samples.of(X))
        assert max(n * m for n, m in sizes) * P * COPIES * 8 <= memory * 2**20 / 2
    assert len(sizes) <= 10  # with room for them, every gradient is computed about once
    sizes.clear()
    result = 200 * 3 * P * 8 / 2**20
    tangent(model, X, memory=result + 0.02)
    assert max(n * m for n, m in sizes) * P * COPIES * 8 <= 0.02 * 2**20
    assert sum(n * m for n, m in sizes) == 600
    sizes.clear()
    tangent(model, X, block_size=7)
    assert max(n for n, _ in sizes) == 7


def test_memory_that_is_too_little_is_an_error():
    model, X = network(), data()
    with pytest.raises(ValueError, match=r"13 x 198, 0\.0196 MB, and memory is 0\.01 MB.*Gram\(X, TangentKernel"):
        tangent(model, X, memory=0.01)
    with pytest.raises(ValueError, match=r"memory=0\.001 MB is too little for the gradient of one output, with 66"):
        Gram(X, TangentKernel(model, memory=0.001))
    with pytest.raises(ValueError, match="is too little for the gradient"):
        tangent(model, X, memory=0.02)
    found = tangent(model, X, memory=0.02 + 0.00906)  # as much more as the message says: not all outputs at a time
    np.testing.assert_allclose(found, tangent(model, X), atol=1e-14)


def test_a_gram_matrix_is_computed_in_few_blocks(monkeypatch):
    """Not by 2^18 values at a time, which would compute the gradients of all columns for each."""
    model, X = network(1, width=2), data(1000)
    calls, block = [], TangentKernel.block
    monkeypatch.setattr(TangentKernel, "block", lambda self, A, B: calls.append((len(A), len(B))) or block(self, A, B))
    gram = Gram(X, TangentKernel(model))
    F = tangent(model, X)
    np.testing.assert_allclose(gram.whole, F @ F.T, atol=1e-13)
    assert calls == [(1000, 1000)]
    assert TangentKernel(model, memory=1.0).rows_at_once(2**17) == 1


def test_features_in_float32_are_near_those_in_float64():
    model, X = network(), data()
    F, rough = tangent(model, X), tangent(model, X, dtype="float32")
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, F, atol=1e-6)


def test_the_kernel_is_in_float64_only():
    model = network()
    with pytest.raises(TypeError, match="dtype"):
        TangentKernel(model, dtype="float32")
    assert next(TangentKernel(model.float()).model.parameters()).dtype == torch_or_skip().float64


def test_the_network_is_copied_and_evaluated_without_dropout():
    torch = torch_or_skip()
    X = data()
    model = torch.nn.Sequential(
        torch.nn.Linear(5, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(6, 2)
    )
    model[1].running_mean += 0.3
    kernel, before = TangentKernel(model), tangent(model, X)
    np.testing.assert_array_equal(tangent(model, X), before)
    assert model.training
    assert model[0].weight.dtype == torch.float32
    assert model[0].weight.grad is None
    np.testing.assert_allclose(before, unit(explicit(model.double().eval(), X).reshape(13, -1)), atol=1e-7)
    with torch.no_grad():
        model[0].weight += 1.0
    assert not np.allclose(tangent(model, X), before, atol=0.01)
    np.testing.assert_allclose(Gram(X, kernel).whole, before @ before.T, atol=1e-12)


def test_samples_may_have_any_shape():
    torch = torch_or_skip()
    images = np.random.default_rng(0).normal(size=(9, 1, 4, 5))
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 3))
    expected = unit(explicit(model.double(), images).reshape(9, -1))
    rows = images.reshape(9, 20)
    np.testing.assert_allclose(tangent(model, images), expected, atol=1e-14)
    np.testing.assert_allclose(tangent(model, rows, shape=(1, 4, 5)), expected, atol=1e-14)
    np.testing.assert_allclose(
        Gram(rows, TangentKernel(model, shape=(1, 4, 5))).whole, expected @ expected.T, atol=1e-13
    )
    with pytest.raises(ValueError, match=r"samples of 20 features cannot have the shape \(1, 4, 4\)"):
        tangent(model, rows, shape=(1, 4, 4))


def test_a_classifier_with_the_kernel_of_a_network_is_the_one_of_its_features():
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(60, 5)), rng.normal(size=(30, 5))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * X[:, 2])
    kernel = TangentKernel(network(2))
    model = clone(fl.KernelClassifier(loss="logistic", lam=1e-3, kernel=kernel, tol=1e-8)).fit(X, y)
    assert model.certificate_.ok
    linear = fl.LinearClassifier(loss="logistic", lam=1e-3, tol=1e-8).fit(kernel.features(X), y)
    np.testing.assert_allclose(model.decision_function(new), linear.decision_function(kernel.features(new)), atol=1e-3)
    restored = pickle.loads(pickle.dumps(Gram(X, kernel)))
    np.testing.assert_allclose(restored.whole, Gram(X, kernel).whole, atol=1e-14)


def test_what_is_not_a_network_is_an_error():
    torch = torch_or_skip()
    X = data()
    for make, kind, words in [
        (lambda: TangentKernel("net"), TypeError, "model must be a torch.nn.Module, got str"),
        (lambda: tangent(network(), X, dtype="float16"), ValueError, "dtype must be one of 'float64', 'float32'"),
        (lambda: TangentKernel(network(), normalize=None), TypeError, "normalize must be True or False"),
        (
            lambda: tangent(network(), X, block_size=0),
            ValueError,
            "block_size must be a whole number of samples, at least 1; got 0",
        ),
        (
            lambda: tangent(network(), X, block_size=2.5),
            ValueError,
            "block_size must be a whole number of samples, at least 1; got 2.5",
        ),
        (lambda: tangent(network(), X, memory=-1.0), ValueError, "memory must be a positive number of MB, got -1.0"),
        (lambda: TangentKernel(torch.nn.ReLU()), ValueError, "no parameter that needs a gradient"),
        (lambda: tangent(network(d=4), X), ValueError, "the network fails for a sample of 5 features in float64"),
        (lambda: tangent(torch.nn.Linear(5, 3).requires_grad_(False), X), ValueError, "needs a gradient"),
        (lambda: tangent(network(), [[np.nan] * 5]), ValueError, "X has nan at row 0"),
    ]:
        with pytest.raises(kind, match=words):
            make()


def test_outputs_that_are_no_rows_are_an_error():
    torch = torch_or_skip()

    class Returns(torch.nn.Module):
        def __init__(self, what):
            super().__init__()
            self.w, self.what = torch.nn.Parameter(torch.ones(5)), what

        def forward(self, x):
            return self.what(x @ self.w)

    X = data()
    for what, words in [(torch.sum, r"shape \(\)"), (lambda z: (z, z), "tuple"), (lambda z: z[:0], r"shape \(0,\)")]:
        with pytest.raises(ValueError, match=f"a row of outputs for each sample; for one it returned {words}"):
            tangent(Returns(what), X)
    np.testing.assert_array_equal(tangent(Returns(lambda z: z), X, normalize=False), X)  # no axis: one output
    with pytest.raises(ValueError, match="its length overflows; rescale the outputs"):
        tangent(Returns(lambda z: z * 1e200), X)
    with pytest.raises(ValueError, match="the gradient of the network is not finite for row 0 of X"):
        tangent(Returns(lambda z: z / 0.0), X)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for make in (lambda: tangent(None, data()), lambda: TangentKernel(None)):
        with pytest.raises(ImportError, match=r"needs torch: pip install fenchel\[torch\]"):
            make()
