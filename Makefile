# Everything works on a machine with Python 3.11 or later, pip and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Programs that may keep their bytecode start sooner, and the tests start many.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo lab check test chromium lint bench numba-versions dask-versions gpu-ptx docs clean

setup: .venv/ready

# The newest pip takes half the time of one that came with Python.
.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Gridwright needs Python 3.11 or later: make PYTHON=python3.11 …' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@$(PIP) --upgrade pip
	@touch $@

# Users need less than developers, who download 190 MB more for GPUs alone.
.venv/usable: .venv/made pyproject.toml
	$(PIP) --editable '.[all]'
	@touch $@

# To compile what is installed takes half a minute, and most of it is never imported.
.venv/ready: .venv/made pyproject.toml
	$(PIP) --no-compile --editable '.[all,dev]'
	@touch .venv/usable $@

demo: .venv/usable
	$(BIN)/gridwright demo

# The lab for a class of ninety minutes, in JupyterLab.
lab: .venv/usable
	$(PIP) --editable '.[notebook]'
	$(BIN)/jupyter lab notebooks/lab-instability.ipynb

# Ruff takes a second. Mypy runs beside the tests, and its findings come after theirs. In a new
# clone the tests are first collected once, so that not every process compiles them anew.
# $(1) test processes more than there are processors, because tests wait for other processes.
# Slow ones wait longer, and each process takes ten seconds to collect the tests.
define checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/mypy >.venv/mypy.txt 2>&1 & mypy=$$!; \
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only --quiet >/dev/null; \
	PYTEST_XDIST_AUTO_NUM_WORKERS=$$(( $$(nproc) + $(1) )) \
	  $(BIN)/python -m pytest --numprocesses auto --dist worksteal --durations 25 --durations-min 2 $(2); \
	tests=$$?; \
	wait $$mypy; types=$$?; cat .venv/mypy.txt; exit $$(( tests | types ))
endef

check: setup
	$(call checks,1,-m 'not slow')

test:
	@$(MAKE) --jobs 2 setup chromium
	$(call checks,3)

chromium:
	@sh tools/get_chromium.sh

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m bench

numba-versions: setup
	$(BIN)/python tools/numba_versions.py

# DASK_SOURCE=FOLDER: a clone of distributed, for its tests.
dask-versions: setup
	$(BIN)/python tools/dask_versions.py $(if $(DASK_SOURCE),--source $(DASK_SOURCE))

# Compile every push and pull policy for GPUs, without one.
gpu-ptx: setup
	$(BIN)/python tools/gpu_ptx.py

docs: setup
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv site gridwright-demo
