"""Every test draws from the same fresh random numbers, alone or in company."""

import signal

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
