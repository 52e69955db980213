"""A weight is a repeated row, whichever kernels of OpenBLAS add the numbers up: each has an order of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Kernels, by what a processor needs for them; Prescott's report themselves as Katmai's.
KERNELS = {"Prescott": "pni", "Nehalem": "sse4_2", "Haswell": "avx2", "SkylakeX": "avx512bw"}
CPU = Path("/proc/cpuinfo")
CODE = """
import scipy.linalg
from sklearn.utils import estimator_checks as checks
from threadpoolctl import threadpool_info
from fenchel import FusedLasso, LassoCV, LinearSVC

models = [
    FusedLasso(),
    FusedLasso(alpha=0.01, tol=1e-6, fit_intercept=False),
    LassoCV(alphas=4, cv=3, eps=0.1, tol=1e-11),
    LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-12),
]
for model in models:
    checks.check_sample_weight_equivalence_on_dense_data(type(model).__name__, model)
    checks.check_sample_weight_equivalence_on_sparse_data(type(model).__name__, model)
print(*{lib["architecture"] for lib in threadpool_info() if lib["internal_api"] == "openblas"})
"""


@pytest.mark.parametrize("core", KERNELS)
def test_weights_are_repeated_rows_on_every_kind_of_processor(core):
    if not CPU.exists() or KERNELS[core] not in CPU.read_text().split():
        pytest.skip(f"this processor cannot run OpenBLAS as {core}")
    environment = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    used = set(done.stdout.split())
    if not used:
        pytest.skip("NumPy does not use OpenBLAS")
    assert used <= {core} | ({"Katmai"} if core == "Prescott" else set())
