"""The tangent kernel of a small network while it learns 128 digits: largest margin and test error, for several seeds.

    python examples/tangent_kernels.py [--seeds 100 13579 1 2]

Needs torch: pip install fenchel[torch]. The features of a sample are the gradients of all outputs of the network with
respect to all its parameters. After each stage of training, the classifier of the largest margin in these features is
fitted, with a proven interval around that margin. Whether the features get better depends on the seed, which decides
nothing but where training begins and in which order it goes.
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import fenchel as fl

EPOCHS = (0, 3, 10, 30, 100)
TRAINED, TESTED = slice(0, 128), slice(128, 628)


def network(seed):
    """Two layers of convolutions, and a linear one."""
    torch.manual_seed(seed)
    first = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, nn.Linear(96, 10))


def train(model, X, y, epochs):
    """Stochastic gradient descent with momentum, in batches of 32."""
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    descent, loss = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), nn.CrossEntropyLoss()
    for _ in range(epochs):
        for batch in torch.randperm(len(X)).split(32):
            descent.zero_grad()
            loss(model(X[batch]), y[batch]).backward()
            descent.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 13579, 1, 2])
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)  # the network is small
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16.0 - 0.3, y[order]
    print("seed    epoch  margin at least  at most  test error")
    for seed in seeds:
        model, done = network(seed), 0
        for epoch in EPOCHS:
            train(model, X[TRAINED], y[TRAINED], epoch - done)
            done = epoch
            features = fl.kernel.tangent(model, X[TRAINED])
            best = fl.MaxMarginClassifier(fit_intercept=False, tol=1e-2).fit(features, y[TRAINED])
            error = 1.0 - best.score(fl.kernel.tangent(model, X[TESTED]), y[TESTED])
            interval = best.margin_interval_
            print(f"{seed:5d}  {epoch:6d}  {interval.lower:15.4f}  {interval.upper:7.4f}  {error:10.3f}", flush=True)


if __name__ == "__main__":
    main()
