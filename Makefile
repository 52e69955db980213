# make demo | test | lint | docs | check | slow | bench: each sets up what it needs in .venv; a second run is fast.
PYTHON ?= python3
# processes that run tests side by side; make test JOBS=1 runs them in one
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
CORE := $(wildcard src/fenchel/_core/*/*.?pp) CMakeLists.txt pyproject.toml
EDITABLE := $(PIP) --no-build-isolation --editable

.PHONY: demo test lint docs check slow bench clean
.NOTPARALLEL:

.venv/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fenchel needs Python 3.11 or newer; set PYTHON=...")'
	@c++ --version > /dev/null 2>&1 || { echo "fenchel needs a C++20 compiler (c++ was not found)"; exit 1; }
	$(PYTHON) -m venv .venv
	@# what packages build with here: liblinear-official needs a setuptools that makes wheels
	$(PIP) --upgrade pip "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" ninja "setuptools>=70.1"
	touch $@

.venv/fenchel: .venv/pip $(CORE)
	$(EDITABLE) ".[plot]"
	touch $@

.venv/test: .venv/fenchel
	$(EDITABLE) ".[test]"
	touch $@

.venv/bench: .venv/fenchel
	$(EDITABLE) ".[bench]"
	@# folders of their own: one has an import package called liblinear, as liblinear-official; the other asks for an
	@# old NumPy, and runs with a new one and ipython
	-$(PIP) --no-deps --upgrade --target .venv/peers/liblinear-multicore liblinear-multicore
	-$(PIP) --no-deps --upgrade --target .venv/peers/adelie adelie
	touch $@

.venv/docs: .venv/fenchel
	$(EDITABLE) ".[docs]"
	touch $@

demo: .venv/fenchel
	$(PY) -m fenchel demo

test: .venv/test
	$(PY) -m pytest --numprocesses $(JOBS) --dist worksteal

lint: .venv/test
	$(PY) -m ruff check src tests benchmarks
	$(PY) -m ruff format --check src tests benchmarks
	$(PY) -m mypy
	.venv/bin/lint-imports

docs: .venv/docs
	$(PY) -m mkdocs build --strict

check: test lint docs

slow: .venv/test .venv/bench
	$(PY) -m pytest -m slow

bench: .venv/bench
	$(PY) -m benchmarks.certify
	$(PY) -m benchmarks.threads
	$(PY) -m benchmarks.race --lams 1
	$(PY) -m benchmarks.race --sparse --lams 50

clean:
	rm -rf .venv build site dist
