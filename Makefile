# Every target makes its own virtual environment (.venv) the first time it is run and installs
# the versions of constraints.txt into it. Needed beforehand: Python >= 3.11, git and make.

PYTHON ?= python3
PYTEST_ARGS ?=
TRAIN_ARGS ?=
BENCH_ARGS ?=
ORACLE_ARGS ?=
PEERS_ARGS ?=
SB3_SOURCE ?=
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOWEST := .venv-lowest

# Two workers with one thread each use two cores; more threads would fight over them.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help install train win test test-long test-lowest peers check format weight bench oracle docs dist-test clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | \
		awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

# The stamp is written last, so an interrupted installation is done again.
$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into $(VENV): a minute or a few"
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python >= 3.11 is needed, $(PYTHON) is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[all]'
	@touch $(STAMP)

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	@$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet -c constraints-lowest.txt -e '.[all]'
	@touch $@

install: $(STAMP) ## make .venv and install everything

train: $(STAMP) ## train a host, then print how it compares (runs/quickstart)
	$(BIN)/python -m sb3_ext quickstart $(TRAIN_ARGS)

win: $(STAMP) ## train a host that wins against every agent, in three minutes of one core (runs/win)
	$(BIN)/python -m sb3_ext win $(TRAIN_ARGS)

test: $(STAMP) ## run the quick tests, in less than ten minutes on two free cores
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

test-long: $(STAMP) ## run the tests that take minutes: a million moves against the reference
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) -m long $(PYTEST_ARGS)

test-lowest: $(LOWEST)/.installed ## run the quick tests on the oldest versions allowed
	$(TEST_ENV) $(LOWEST)/bin/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

peers: $(STAMP) ## run the tests of stable-baselines3 on our classes (SB3_SOURCE=folder of its source)
	$(TEST_ENV) SB3_SOURCE="$(SB3_SOURCE)" $(BIN)/python -m benchmarks.peers $(PEERS_ARGS)

check: $(STAMP) ## check format, lint, types and wording
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_words.py

format: $(STAMP) ## rewrite the files in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

weight: $(STAMP) ## count tokens of code per folder, beside those of well-known libraries
	$(BIN)/python -m benchmarks.weight

bench: $(VENV)/.peers ## measure moves per second beside those of peers (BENCH_ARGS=--quick for a first look)
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

docs: $(VENV)/.docs ## build the site and run its tutorials, warnings are errors: build/site
	$(TEST_ENV) $(BIN)/sphinx-build -q -W --keep-going -j auto docs build/site

oracle: $(STAMP) build/oracle/.installed ## compare results with those of Singular and Macaulay2, in an environment of its own
	PATH="$(CURDIR)/build/oracle/normaliz/sage_wheels/bin:$$PATH" $(BIN)/python -m benchmarks.oracle \
		--singular "$$(ls build/oracle/lib/python3*/site-packages/sage_wheels/bin/Singular)" \
		--macaulay2 "$$(ls build/oracle/lib/python3*/site-packages/sage_wheels/bin/M2)" $(ORACLE_ARGS)

# The programs and their libraries alone: 300 MB to download, 730 MB on disk. The newer Macaulay2 needs
# a processor with AVX-512, the older one comes without normaliz.
build/oracle/.installed:
	$(PYTHON) -m venv --clear build/oracle
	build/oracle/bin/python -m pip install --quiet --no-deps passagemath-singular==10.8.13 passagemath-macaulay2==10.6.48
	build/oracle/bin/python -m pip install --quiet --no-deps --target build/oracle/normaliz passagemath-macaulay2==10.8.13
	@touch $@

# Peers that cannot be installed are left out of the benchmark, which says so.
$(VENV)/.peers: $(STAMP)
	-$(BIN)/python -m pip install --quiet -c constraints.txt jax sbx-rl && touch $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[all,docs]'
	@touch $@

dist-test: $(STAMP) ## build the wheel, install it into an empty environment and use it there
	rm -rf build/dist && $(BIN)/python -m pip wheel --quiet --no-deps -w build/dist .
	$(PYTHON) -m venv --clear build/dist/venv
	build/dist/venv/bin/python -m pip install --quiet -c constraints.txt "$$(ls $(CURDIR)/build/dist/*.whl)[fast]"
	cd build/dist && venv/bin/resgym solve 'x^2+y^3+z^5' && venv/bin/resgym rho zeillinger random --games 100 && \
		venv/bin/resgym scoreboard | grep -q taught && \
		venv/bin/python -c "import gymnasium, resgym; gymnasium.make_vec('resgym/HironakaHost-v0', num_envs=2)"

clean: ## delete generated files and virtual environments, except runs/
	rm -rf $(VENV) $(LOWEST) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
