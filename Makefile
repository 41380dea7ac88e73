# Every target sets up what it needs in .venv or .venv-peers: Python 3.11 or newer and make suffice.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
PEERS := .venv-peers
WORKERS ?= auto
# Who has no tests left takes some of another's.
PYTEST = -m pytest -n $(WORKERS) --dist worksteal
NATIVE := $(wildcard native/*.cpp native/*.hpp native/*.inc)

# Hundreds of processes that the tests start import the package: compiled once, not by each.
export PYTHONDONTWRITEBYTECODE :=

# A copy of the sources, without what another target built in place.
define copy_tree
rm -rf $(1)
mkdir $(1)
tar --exclude=./.git --exclude='./.venv*' --exclude='./.*_cache' --exclude=./.hypothesis --exclude=./.fallback --exclude=./.sanitize --exclude=./build --exclude=./demo --exclude='*.so' --exclude='*.egg-info' --exclude=__pycache__ -cf - . | tar -xf - -C $(1)
endef

.PHONY: demo test fallback sanitize xla faults browser parity bench bench-kernels mnist doctor house stub gpu-bench gpu-programs lint style types suite format clean
.DEFAULT_GOAL := demo

# The library alone: enough to use it.
$(VENV)/.library: pyproject.toml setup.py $(wildcard native/*)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# The tools that check it.
$(VENV)/.tools: $(VENV)/.library
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["dev"])')
	touch $@

# PyTorch, which results and speed are compared with.
$(VENV)/.torch: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' expecttest captum
	touch $@

# The libraries that speed is compared with, in an environment of their own.
$(PEERS)/.ready: pyproject.toml setup.py $(wildcard native/*)
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[serve]' '$(TORCH)' jax scikit-learn packaging
	touch $@

demo: $(VENV)/.library
	$(BIN)/chainrule fit digits --out demo

lint: style types

style: $(VENV)/.tools
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)

types: $(VENV)/.tools
	$(BIN)/mypy

# All sources in the style of ruff's settings and of .clang-format.
format: $(VENV)/.tools
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(NATIVE)

# The types are looked at while the tests run: mypy has use for one processor alone.
test: style
	$(MAKE) --no-print-directory --jobs=2 types suite

# With the comparisons with PyTorch where it is installed.
suite: $(VENV)/.tools
	$(BIN)/python $(PYTEST)

# What is the same with any kernels. It reads the sources alone:
OF_SOURCES := test_contributing test_coverage_doc test_errata_doc test_house test_names test_rooms \
	test_stub test_typed inspect/test_instruments inspect/test_pages
# or kills, interrupts and starves the process between two writes, serves files, places boxes:
OF_THE_REST := faults/test_fit faults/test_signals faults/test_full_disk data/test_downloads inspect/test_layout
# or looks whether the words of a chart cover each other; its numbers are tested beside it.
OF_PICTURES := test_contract.py::test_its_picture test_cockpit.py::test_every_instrument_has_a_sentence_and_pictures \
	test_watch.py::test_pictures test_through_time.py::test_pictures
SAME := $(patsubst %,--ignore=tests/%.py,$(OF_SOURCES) $(OF_THE_REST)) $(OF_PICTURES:%=--deselect=tests/inspect/%)

# An installation whose compiler fails, in a tree without the kernels that another target built:
# the NumPy kernels serve, and all tests pass with them: make fallback WHOLE=1 runs all.
fallback:
	$(call copy_tree,.fallback)
	$(MAKE) -C .fallback VENV=../.venv-numpy CC=false CXX=false ../.venv-numpy/.tools
	.venv-numpy/bin/chainrule info | grep "kernels   numpy"
	cd .fallback && ../.venv-numpy/bin/python $(PYTEST) $(if $(WHOLE),,$(SAME))

# The kernels with checks of every address and of undefined behavior (GCC's), in a tree of their own.
# Python is not built with them, so they are loaded before it. What it never gives back (interned
# strings, types) would be reported as leaks, and a size that no machine has is to be refused, not to
# end the process.
SANITIZED = ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=8192 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" PYTHONPATH=site ../$(BIN)/python
sanitize: $(VENV)/.tools
	$(call copy_tree,.sanitize)
	CHAINRULE_SANITIZE=1 CC=gcc CXX=g++ $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .sanitize/site ./.sanitize
	cd .sanitize && $(SANITIZED) -c 'import sys; from chainrule import backend; sys.exit(backend.why_not_native or None)'
	cd .sanitize && $(SANITIZED) $(PYTEST) tests/native tests/compiler

# The kernels for devices on JAX's arrays, against their NumPy twins, and processes that compute
# together, and four devices that JAX makes of the CPU; JAX in an environment of its own.
.venv-xla/.ready: pyproject.toml
	test -x .venv-xla/bin/python || $(PYTHON) -m venv .venv-xla
	.venv-xla/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[xla]' pytest pytest-xdist hypothesis matplotlib ml_dtypes scikit-learn
	touch $@

# What needs no JAX, and runs in make test:
OF_ALL := test_alone test_launch test_messages
# or says of another dtype, number of samples or way what a neighbor says. make xla WHOLE=1 runs all.
AGAIN := (round_their_operands and dtype1) or (those_of_the_cpu and 90-) \
	or (those_of_the_cpu and parts and eager) or (computed_whole and two and by)
ONCE = $(if $(WHOLE),,$(OF_ALL:%=--ignore=tests/distributed/%.py) -k "not ($(AGAIN))")

xla: .venv-xla/.ready
	.venv-xla/bin/python $(PYTEST) tests/backend/test_xla_kernels.py tests/amp tests/devices tests/distributed $(ONCE)
	XLA_FLAGS=--xla_force_host_platform_device_count=4 .venv-xla/bin/python $(PYTEST) tests/meshes $(ONCE)

# Damaged files, kills, random calls of kernels, an hour of mixed load: some hours, and writes
# docs/reliability.md. ONLY="folders of models" CASES=1000 tries one kind again.
CASES ?= 100000
KILLS ?= 500
CALLS ?= 1000000
MINUTES ?= 60
faults: $(VENV)/.tools
	PYTHONPATH=tools:tests $(BIN)/python -m reliability --cases $(CASES) --kills $(KILLS) --calls $(CALLS) --minutes $(MINUTES) $(if $(ONLY),--only "$(ONLY)")

# The pages that the library writes, in Chromium without a window (Debian's package chromium, or
# CHAINRULE_BROWSER=/path/to/chrome): console, requests, width of a phone, dark and light, keys.
# PICTURES=folder writes pictures of them.
browser: $(VENV)/.tools
	PYTHONPATH=tools $(BIN)/python -m browser $(if $(PICTURES),--pictures $(PICTURES))

# The comparisons with PyTorch, and the files elsewhere that have some.
parity: $(VENV)/.torch
	$(BIN)/python $(PYTEST) tests/parity $$(grep -rl --include='test_*.py' --exclude-dir=parity 'importorskip("torch")' tests)

bench: $(PEERS)/.ready
	$(PEERS)/bin/python benchmarks/overhead.py
	$(PEERS)/bin/python benchmarks/training.py
	$(PEERS)/bin/python benchmarks/networks.py
	$(PEERS)/bin/python benchmarks/growth.py
	$(PEERS)/bin/python benchmarks/recomputed.py
	$(PEERS)/bin/python benchmarks/watch.py
	$(PEERS)/bin/python benchmarks/serve.py
	$(PEERS)/bin/python benchmarks/compiled.py
	$(PEERS)/bin/python benchmarks/precision.py --write

# The table of networks as it is without a compiler, and without AVX-512: an hour.
bench-kernels: $(PEERS)/.ready
	$(PEERS)/bin/python benchmarks/networks.py --kernels numpy
	$(PEERS)/bin/python benchmarks/networks.py --isa avx2

# Training on a GPU beside hand-written JAX and PyTorch, on a machine that has all three and where
# nothing is installed: the package runs from its sources.
gpu-bench:
	$(PYTHON) benchmarks/gpu.py

# What XLA makes of the same steps for a GPU, by its compiler, where there is none.
.venv-gpu/.ready: pyproject.toml
	test -x .venv-gpu/bin/python || $(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[xla]' 'jax[cuda13]' ml_dtypes
	touch $@

gpu-programs: .venv-gpu/.ready
	.venv-gpu/bin/python benchmarks/gpu_programs.py

# All rows of the table of MNIST errors, from the files in $$CHAINRULE_DATA: hours.
mnist: $(VENV)/.tools
	CHAINRULE_MNIST=1 $(BIN)/python -m pytest -v tests/test_mnist.py

# The planted mistakes and the healthy runs of docs/doctor.md.
doctor: $(VENV)/.library
	$(BIN)/python tools/doctor_table.py

# How the sources are arranged, typed and documented, against the targets.
house: $(VENV)/.tools
	$(BIN)/python tools/house.py

# What follows from the sources: the lists of public names and of instruments, and the methods of
# Tensor as editors and type checkers see them.
stub: $(VENV)/.tools
	$(BIN)/python tools/names.py
	$(BIN)/python tools/stub.py
	$(BIN)/python tools/pictures.py --list

clean:
	rm -rf $(VENV) .fallback .sanitize .venv-numpy .venv-xla .venv-gpu $(PEERS) demo build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . \( -name __pycache__ -o -name .hypothesis \) -type d -prune -exec rm -rf {} +
