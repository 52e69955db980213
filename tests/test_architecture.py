"""What the tree promises: one-way imports, exported names, types, light imports."""

import ast
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
        "GapMonitor",
        "GroupLasso",
        "GroupLassoCV",
        "HuberRegressor",
        "Infeasible",
        "InseparableWarning",
        "Interpolation",
        "KernelClassifier",
        "KernelProblem",
        "Lasso",
        "LassoCV",
        "LinearClassifier",
        "LinearRegressor",
        "LinearSVC",
        "LinearSVR",
        "LogisticRegression",
        "LogisticRegressionCV",
        "LpClassifier",
        "LpPerceptron",
        "LpRegressor",
        "MarginInterval",
        "MaxMarginClassifier",
        "MinNormRegressor",
        "MulticlassProblem",
        "NotCertifiedWarning",
        "Path",
        "Problem",
        "QuantileRegressor",
        "Result",
        "Ridge",
        "RidgeCV",
        "RidgeClassifier",
        "Separability",
        "SparseLogisticRegression",
        "SparseLogisticRegressionCV",
        "SparsePerceptron",
        "StreamError",
        "StreamResult",
        "TotalVariationDenoiser",
        "batches",
        "certified_path",
        "certify",
        "denoise",
        "explain",
        "kernel",
        "losses",
        "margin_interval",
        "path",
        "penalties",
        "read",
        "separable",
        "sets",
        "solve",
        "stream",
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
def test_no_folder_outgrows_a_dozen_modules():
    folders = {p.parent for p in (ROOT / "src/fenchel").rglob("*.py")}
    counts = {f.relative_to(ROOT).as_posix(): len(set(f.glob("*.py")) - {f / "__init__.py"}) for f in folders}
    assert len(counts) > 10
    assert {f: n for f, n in counts.items() if n > 12} == {}


def lines_without_docstring(function):
    docstring = function.body[0] if ast.get_docstring(function) else None
    own = function.end_lineno - function.lineno + 1
    return own - (docstring.end_lineno - docstring.lineno + 1 if docstring else 0)


@in_checkout
def test_no_function_has_more_than_sixty_lines_beside_its_docstring():
    lengths = {}
    for path in (ROOT / "src/fenchel").rglob("*.py"):
        functions = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.FunctionDef)]
        lengths |= {f"{path.name}:{one.lineno} {one.name}": lines_without_docstring(one) for one in functions}
    assert len(lengths) > 1000
    assert {name: length for name, length in lengths.items() if length > 60} == {}


@in_checkout
def test_the_page_on_architecture_names_every_package_and_folder():
    page, source = (ROOT / "docs/architecture.md").read_text(), ROOT / "src/fenchel"
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    assert set(re.findall(r"^\| `fenchel\.(\w+)` ", page, re.MULTILINE)) == packages
    named = set(re.findall(r"`(\w+)/`", page))
    assert named <= {path.name for path in source.rglob("*") if path.is_dir()}
    for package in ("data", "problem", "steps", "certificate", "solver"):
        assert {path.parent.name for path in (source / package).glob("*/__init__.py")} <= named


@in_checkout
def test_the_diagram_has_every_layer():
    with (ROOT / "pyproject.toml").open("rb") as file:
        (contract,) = tomllib.load(file)["tool"]["importlinter"]["contracts"][:1]
    diagram = (ROOT / "docs/architecture.svg").read_text()
    for layer in contract["layers"]:
        assert f">{layer.removeprefix('fenchel.')}</text>" in diagram, layer
