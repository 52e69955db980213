"""What the tree promises: one-way imports, exported names, types, light imports."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fenchel

ROOT = Path(fenchel.__file__).parents[2]
in_checkout = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the source tree")


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_public_names():
    assert sorted(fenchel.__all__) == [
        "Certificate",
        "CertifiedPath",
        "Design",
        "ElasticNet",
        "ElasticNetCV",
        "FusedLasso",
        "GroupLasso",
        "GroupLassoCV",
        "HuberRegressor",
        "Lasso",
        "LassoCV",
        "LinearClassifier",
        "LinearRegressor",
        "LinearSVC",
        "LinearSVR",
        "LogisticRegression",
        "LogisticRegressionCV",
        "MulticlassProblem",
        "NotCertifiedWarning",
        "Path",
        "Problem",
        "QuantileRegressor",
        "Result",
        "Ridge",
        "RidgeCV",
        "RidgeClassifier",
        "SparseLogisticRegression",
        "SparseLogisticRegressionCV",
        "TotalVariationDenoiser",
        "certified_path",
        "certify",
        "denoise",
        "losses",
        "path",
        "penalties",
        "read",
        "sets",
        "solve",
        "theory",
    ]
    assert set(fenchel.__all__) <= set(dir(fenchel))


def test_importing_fenchel_loads_nothing_that_it_does_not_need():
    heavy = ["matplotlib", "rich", "click", "pandas", "pyarrow", "cvxpy", "torch", "sklearn.linear_model"]
    # scikit-learn itself may load some of them
    code = "import sys, sklearn.utils; before = set(sys.modules); import fenchel; "
    code += f"print(sorted({{*{heavy}}} & ({{*sys.modules}} - before)))"
    result = run(sys.executable, "-c", code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


@in_checkout
def test_imports_go_one_way():
    result = run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache")
    assert result.returncode == 0, result.stdout


@in_checkout
def test_types_are_strict():
    result = run(sys.executable, "-m", "mypy")
    assert result.returncode == 0, result.stdout


@in_checkout
def test_no_file_outgrows_300_lines():
    files = [p for kind in ("*.py", "*.hpp", "*.cpp") for p in (ROOT / "src").rglob(kind)]
    long = {p.name: n for p in files if (n := len(p.read_text().splitlines())) > 300}
    assert len(files) > 40
    assert not long


@in_checkout
@pytest.mark.parametrize("package", sorted(p.parent.name for p in (ROOT / "src/fenchel").glob("*/__init__.py")))
def test_the_page_on_architecture_names_every_module(package):
    lines = (ROOT / "docs/architecture.md").read_text().splitlines()
    (row,) = [line for line in lines if line.startswith(f"| `fenchel.{package}` ")]
    folder = ROOT / "src/fenchel" / package
    modules = {f"`{path.name}`" for path in folder.glob("*.py") if path.name != "__init__.py"}
    folders = {f"`{path.parent.name}/`" for path in folder.glob("*/__init__.py")}
    assert set(re.findall(r"`\w+(?:\.py|/)`", row)) == modules | folders


@in_checkout
def test_the_diagram_has_every_layer():
    with (ROOT / "pyproject.toml").open("rb") as file:
        (contract,) = tomllib.load(file)["tool"]["importlinter"]["contracts"][:1]
    diagram = (ROOT / "docs/architecture.svg").read_text()
    for layer in contract["layers"]:
        assert f">{layer.removeprefix('fenchel.')}</text>" in diagram, layer
