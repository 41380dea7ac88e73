# Every target sets up what it needs in .venv: Python 3.11 or newer and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
WORKERS ?= auto

.PHONY: demo test parity bench lint clean
.DEFAULT_GOAL := demo

# The library alone: enough to use it.
$(VENV)/.library: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# The tools that check it.
$(VENV)/.tools: $(VENV)/.library
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# PyTorch, which results and speed are compared with.
$(VENV)/.torch: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	touch $@

demo: $(VENV)/.library
	$(BIN)/chainrule fit digits --out demo

lint: $(VENV)/.tools
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n $(WORKERS)

parity: $(VENV)/.torch
	$(BIN)/python -m pytest -n $(WORKERS) tests/parity tests/nn

bench: $(VENV)/.torch
	$(BIN)/python benchmarks/overhead.py

clean:
	rm -rf $(VENV) demo build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . \( -name __pycache__ -o -name .hypothesis \) -type d -prune -exec rm -rf {} +
