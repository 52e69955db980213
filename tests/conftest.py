"""Every test draws from the same fresh random numbers, alone or in company."""

import os
import signal
import time

# workers of pytest-xdist share the cores: one BLAS thread each, set before NumPy is loaded
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

# a job in the background may have been started with Ctrl-C ignored; the tests press it
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("fenchel", deadline=None, derandomize=True)  # machines are noisy; runs should repeat
settings.load_profile("fenchel")


@pytest.fixture(autouse=True)
def fresh_random_numbers(request):
    """Modules that draw from a generator named `rng` find it new in every test."""
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(0)


class Clock:
    """A clock that only moves when it is read: by `tick` seconds each time."""

    def __init__(self, tick):
        self.tick, self.now = tick, 1000.0

    def __call__(self):
        self.now += self.tick
        return self.now

    @property
    def elapsed(self):
        return self.now - 1000.0


@pytest.fixture
def clock(monkeypatch):
    """Replaces the clocks that limits on seconds are checked by, so that no test depends on the machine's speed."""
    clock = Clock(0.01)
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(time, "monotonic", clock)
    return clock
