# SPDX-License-Identifier: BSD-3-Clause
# Each target works as the only command on a fresh clone: it makes .venv and installs what it needs.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
JOBS ?= auto
PYTEST_ARGS ?=
BENCH_ARGS ?=
REV ?=
ROBOT ?= panda
VIEW_ARGS ?=
FUZZ_SECONDS ?= 120
SOAK_CYCLES ?= 20000

# A sourced ROS workspace puts its own packages and pytest plugins on this path, before ours.
unexport PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help demo view examples test test-jax test-torch test-casadi test-gym test-scale test-viewer lint bench bench-quick bench-against bench-loading bench-size bench-drift bench-cliffs docs tutorials fuzz soak parallel robots identify identify-scale joint-physics clean distclean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

demo: $(VENV)/.demo  ## show what phistar does, on bundled robots
	@$(BIN)/phistar demo

view: $(VENV)/.viewer  ## a robot in a browser, ROBOT=quadruped another; VIEW_ARGS=--ground and other options
	@$(BIN)/phistar view $(ROBOT) $(VIEW_ARGS)

examples: $(VENV)/.examples  ## control a cart-pole, a UR5 and a Panda, diagonal rates of an arm, a quadruped on slopes, identify a UR5; writes plots
	@$(BIN)/python examples/cart_pole.py
	@$(BIN)/python examples/cart_pole_friction.py
	@$(BIN)/python examples/panda_reach.py
	@$(BIN)/python examples/panda_payload.py
	@$(BIN)/python examples/pose_control.py
	@$(BIN)/python examples/two_link_eta.py
	@$(BIN)/python examples/quadruped_slope.py
	@$(BIN)/python examples/identify_ur5.py

test: $(VENV)/.test  ## run all tests (those of the viewer: make test-viewer)
	@$(BIN)/python -m pytest -q -n $(JOBS) --maxprocesses=4 --dist worksteal --ignore=tests/with_viewer $(PYTEST_ARGS)

test-viewer: $(VENV)/.viewer-tests docs/_build/html/index.html  ## the viewer and the pages in a browser, completion in three shells: viser, playwright, Debian's chromium, zsh, fish
	@$(BIN)/python -m pytest -q tests/with_viewer tests/cli/test_completion.py $(PYTEST_ARGS)

# Programs are compiled as XLA does it without optimising, which takes half the time.
test-jax: $(VENV)/.test $(VENV)/.jax  ## run the tests of the backend jax, which make test leaves out: JAX is large
	@JAX_PLATFORMS=cpu JAX_DISABLE_MOST_OPTIMIZATIONS=1 PHISTAR_TEST_BACKENDS=jax $(BIN)/python -m pytest -q -n $(JOBS) \
	    --maxprocesses=4 --dist worksteal tests/with_jax tests/backends/test_contract.py \
	    "tests/test_docs.py::test_page_runs_as_pasted[jax]" \
	    "tests/test_docs.py::test_page_runs_as_pasted[interop_jax]" $(PYTEST_ARGS)

test-torch: $(VENV)/.test $(VENV)/.torch  ## run the tests of phistar.interop.torch, which make test leaves out: PyTorch is large
	@PHISTAR_TEST_TORCH=1 $(BIN)/python -m pytest -q -n $(JOBS) --maxprocesses=4 --dist worksteal tests/with_torch \
	    "tests/test_docs.py::test_page_runs_as_pasted[torch]" $(PYTEST_ARGS)

test-scale: $(VENV)/.test $(VENV)/.dask $(VENV)/.parquet  ## run the tests of phistar.scale, which make test leaves out: Dask and Zarr
	@PHISTAR_TEST_SCALE=1 $(BIN)/python -m pytest -q tests/with_dask "tests/test_docs.py::test_page_runs_as_pasted[scaling]" $(PYTEST_ARGS)

test-casadi: $(VENV)/.test $(VENV)/.casadi  ## run the tests of phistar.interop.casadi, which make test leaves out; C is compiled
	@PHISTAR_TEST_CASADI=1 $(BIN)/python -m pytest -q -n $(JOBS) --maxprocesses=4 --dist worksteal tests/with_casadi \
	    "tests/test_docs.py::test_page_runs_as_pasted[casadi]" $(PYTEST_ARGS)

test-gym: $(VENV)/.test $(VENV)/.gym $(VENV)/.torch  ## run the tests of phistar.envs, which make test leaves out: Gymnasium, and PyTorch, which learns
	@PHISTAR_TEST_GYM=1 $(BIN)/python -m pytest -q -n $(JOBS) --maxprocesses=4 --dist worksteal tests/with_gym \
	    "tests/test_docs.py::test_page_runs_as_pasted[gymnasium]" $(PYTEST_ARGS)

lint: $(VENV)/.lint  ## ruff, mypy and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.bench $(VENV)/.jax $(VENV)/.torch  ## dynamics next to Pinocchio and MuJoCo; writes the table of the README
	@$(BIN)/python -m benchmarks --readme

bench-quick: $(VENV)/.test  ## the same in a minute, README left alone
	@$(BIN)/python -m benchmarks --quick

bench-against: $(VENV)/.test  ## speed next to revision REV, interleaved; fails where it is below 0.97
	@test -n "$(REV)" || { echo 'name a revision: make bench-against REV=main~5 [BENCH_ARGS=--quick]' >&2; exit 2; }
	@$(BIN)/python -m benchmarks.against "$(REV)" $(BENCH_ARGS)

bench-loading: $(VENV)/.test  ## time the loaders, next to Pinocchio's
	@$(BIN)/python -m benchmarks.loading

bench-size: $(VENV)/.test  ## load and first result of chains up to 100 000 links; fails above the bounds
	@$(BIN)/python -m benchmarks.size --limit

bench-drift: $(VENV)/.test  ## energy, momentum and closed loops kept, next to Pinocchio and MuJoCo
	@$(BIN)/python -m benchmarks.drift

bench-cliffs: $(VENV)/.test  ## methods that must not be far slower than dynamics, each to its bound; --limit fails
	@$(BIN)/python -m benchmarks.cliffs $(BENCH_ARGS)

docs: $(VENV)/.docs  ## build the documentation into docs/_build/html; a warning or a request outside is an error
	@rm -rf docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/offline.py docs/_build/html
	@echo "open docs/_build/html/index.html"

docs/_build/html/index.html:
	@$(MAKE) docs

tutorials: $(VENV)/.docs  ## run the tutorials as scripts; figures in plots
	@$(BIN)/python docs/page_script.py docs/start_here.md docs/small_compiler.md $(sort $(wildcard docs/tutorials/*.md))

fuzz: $(VENV)/.test  ## random robot files and programs, FUZZ_SECONDS (120) for each kind
	@PHISTAR_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -q -x tests/fuzz \
	    tests/backends/llvm/test_fuzz.py tests/backends/llvm/test_robustness.py \
	    --hypothesis-profile=fuzz $(PYTEST_ARGS)

soak: $(VENV)/.test  ## SOAK_CYCLES (20000) small kernels, then 155 robots, made, run and dropped; memory must not grow
	@$(BIN)/python -m tools.soak --cycles $(SOAK_CYCLES)

parallel: $(VENV)/.test  ## forward dynamics in rounds on every robot of ../shared/robots, beside the recursion
	@$(BIN)/python -m tools.parallel_table

robots: $(VENV)/.test  ## compare every robot of ../shared/robots with its golden values; prints a table
	@PHISTAR_TIER=$${PHISTAR_TIER:-rolled} $(BIN)/python -m tools.robots_table

identify-scale: $(VENV)/.dask  ## identify a log of 10^8 rows by Dask from Zarr (11 GB on disk); ROWS=1e7 for fewer
	@$(BIN)/python -m tools.identify_scale $(if $(ROWS),--rows $(ROWS))

identify: $(VENV)/.test  ## identify simulated logs of a Panda and a UR5; fails where a figure is beyond its bound
	@$(BIN)/python -m tools.identification

joint-physics: $(VENV)/.test  ## springs and damping of every robot of ../shared/robots, one second beside MuJoCo
	@$(BIN)/python -m tools.joint_physics

clean:  ## remove what was built, keep .venv
	rm -rf build dist plots docs/_build docs/_generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks tools docs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove .venv too
	rm -rf $(VENV)

# pip comes last in a new environment, so it tells a whole one from a torso.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	    "phistar needs Python 3.11 or newer, and %s is %d.%d. Name another one: " \
	    "make PYTHON=python3.12 ..." % ((sys.executable,) + tuple(sys.version_info[:2])))'
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# A stamp is the record that the package and one set of extras are installed. Editable: sources are
# not prerequisites.
# These come from the system: they are installed where that is allowed, else the tests say what is missing.
SYSTEM_PACKAGES := chromium zsh fish
$(VENV)/.viewer-tests: $(VENV)/.test $(VENV)/.browser
	@for name in $(SYSTEM_PACKAGES); do command -v $$name > /dev/null || missing="$$missing $$name"; done; \
	test -z "$$missing" || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && \
	    echo "installing$$missing" && apt-get update -qq && apt-get install -y -qq $$missing > /dev/null; } || \
	    echo "missing:$$missing; apt-get install$$missing"
	@touch $@

$(VENV)/.bench $(VENV)/.demo $(VENV)/.viewer $(VENV)/.examples $(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.browser $(VENV)/.jax $(VENV)/.torch $(VENV)/.casadi $(VENV)/.gym $(VENV)/.dask $(VENV)/.parquet: $(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing phistar[$*]"
	@$(PIP) -e ".[$*]"
	@touch $@
