# Everything sets up what it needs: Python 3.11 or newer, pip and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# What pip compiles on one core, on all of them; some packages hold files that are no Python.
COMPILE := $(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null 2>&1 || true
# A folder of official ALFWorld games for `make train`, the generated ones if empty.
DATA ?=
RECIPE ?= $(if $(DATA),alfworld-tiny-official,alfworld-tiny)
ARGS ?=
# The official ALFWorld engine lives in an environment of its own.
OFFICIAL := .venv-alfworld
# So does AppWorld, which also unpacks its apps into it.
APPWORLD := .venv-appworld
# And the sotopia package, which tests compare with.
SOTOPIA := .venv-sotopia
# What benchmarks compare with, too.
PEERS := .venv-peers
# And OpenEnv and verifiers, which adapters are for.
ADAPTERS := .venv-adapters
# And TRL, which benchmarks of training compare with.
TRL := .venv-trl
# Arguments of the benchmark of WebShop, such as `--products 100000` for a quick look.
WEBSHOP ?=

# Marks of tests that share what there is one of: a machine's engine, browser, containers.
REAL_PARTS := data or official or docker or browser or vllm

.PHONY: help train test test-real check format bench clean

help:
	@echo "make train      train the demo: a tiny Qwen, GiGPO, generated ALFWorld tasks, on CPU or GPU"
	@echo "                DATA=/path/to/games takes the official games, RECIPE=name another recipe"
	@echo "make test       the tests: offline, on CPU"
	@echo "make test-real  the tests that need real parts: engines, real games, browser, vLLM, containers"
	@echo "make check      format, lint and types"
	@echo "make bench      the benchmarks behind the figures in README.md"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# Stamps: one per set of packages, made again when what they depend on changes.
$(VENV)/train.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[harness]'
	@$(COMPILE)
	@touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[harness,dev]'
	@$(COMPILE)
	@touch $(VENV)/train.stamp $@

$(OFFICIAL)/stamp: requirements-alfworld.txt
	$(PYTHON) -m venv $(OFFICIAL)
	$(OFFICIAL)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-alfworld.txt
	@touch $@

$(APPWORLD)/stamp: requirements-appworld.txt
	$(PYTHON) -m venv $(APPWORLD)
	$(APPWORLD)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-appworld.txt
	APPWORLD_CACHE=$(CURDIR)/$(APPWORLD)/cache $(APPWORLD)/bin/python -m appworld.cli install >/dev/null
	@touch $@

$(SOTOPIA)/stamp: requirements-sotopia.txt
	$(PYTHON) -m venv $(SOTOPIA)
	$(SOTOPIA)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-sotopia.txt
	@touch $@

$(PEERS)/stamp: requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-peers.txt
	@touch $@

$(ADAPTERS)/stamp: requirements-adapters.txt
	$(PYTHON) -m venv $(ADAPTERS)
	$(ADAPTERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-adapters.txt
	@touch $@

$(TRL)/stamp: requirements-trl.txt
	$(PYTHON) -m venv $(TRL)
	$(TRL)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-trl.txt
	@touch $@

train: $(VENV)/train.stamp
	$(BIN)/python -m harness train $(RECIPE) \
	  --set run.name='"$(RECIPE)-$(shell date +%Y%m%d-%H%M%S)"' \
	  $(if $(DATA),--set env.kwargs.source=official --set 'env.kwargs.data_path="$(DATA)"') $(ARGS)

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ARGS)

test-real: $(VENV)/test.stamp $(OFFICIAL)/stamp $(APPWORLD)/stamp $(SOTOPIA)/stamp $(ADAPTERS)/stamp
	AGENTGYMS_ALFWORLD_PYTHON=$(CURDIR)/$(OFFICIAL)/bin/python \
	  AGENTGYMS_APPWORLD_PYTHON=$(CURDIR)/$(APPWORLD)/bin/python \
	  $(BIN)/python -m pytest -q \
	  -m '($(REAL_PARTS)) and not sotopia and (slow or not slow) and (appworld or not appworld)' $(ARGS)
	AGENTGYMS_APPWORLD_PYTHON=$(CURDIR)/$(APPWORLD)/bin/python \
	  AGENTGYMS_SOTOPIA_PYTHON=$(CURDIR)/$(SOTOPIA)/bin/python \
	  AGENTGYMS_ADAPTERS_PYTHON=$(CURDIR)/$(ADAPTERS)/bin/python \
	  $(BIN)/python -m pytest -q -n 2 --dist loadfile \
	  -m '(sotopia or adapters or appworld and not ($(REAL_PARTS))) and (slow or not slow)' $(ARGS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist load --maxschedchunk 1 \
	  -m 'slow and not ($(REAL_PARTS) or appworld or sotopia or adapters)' $(ARGS)

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/test.stamp $(OFFICIAL)/stamp $(APPWORLD)/stamp $(PEERS)/stamp $(TRL)/stamp
	AGENTGYMS_ALFWORLD_PYTHON=$(CURDIR)/$(OFFICIAL)/bin/python $(BIN)/python benchmarks/alfworld.py $(ARGS)
	AGENTGYMS_PEER_PYTHON=$(CURDIR)/$(PEERS)/bin/python $(BIN)/python benchmarks/sokoban.py
	$(BIN)/python benchmarks/webshop.py $(WEBSHOP)
	AGENTGYMS_APPWORLD_PYTHON=$(CURDIR)/$(APPWORLD)/bin/python $(BIN)/python benchmarks/appworld.py
	$(BIN)/python benchmarks/server.py
	$(BIN)/python benchmarks/credit.py
	AGENTGYMS_TRL_PYTHON=$(CURDIR)/$(TRL)/bin/python $(BIN)/python benchmarks/training.py

clean:
	rm -rf $(VENV) $(OFFICIAL) $(APPWORLD) $(SOTOPIA) $(ADAPTERS) $(PEERS) $(TRL) .mypy_cache .pytest_cache .ruff_cache .hypothesis
