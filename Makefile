# The few commands of this project. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help check test clean
help: ## what can be done here
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[test,demo]'
	@touch $@

check: $(STAMP) ## format, lint, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy bookkeeper journal_manager spark_wal tests
	$(BIN)/lint-imports

test: $(STAMP) ## everything that CI runs
	$(MAKE) check
	$(BIN)/pytest -q

clean: ## remove the environment and what builds left
	rm -rf $(VENV) build *.egg-info
