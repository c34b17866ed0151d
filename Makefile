# Two commands matter: `make ask` and `make test`. Each sets up what it needs.
# PYTHON=python3.12 chooses an interpreter, VENV=folder another place, Q="..." your own question.

SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
NEWEST := python3 python3.14 python3.13 python3.12 python3.11
PYTHON ?= $(shell for p in $(NEWEST); do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
override Q := $(value Q)
export Q
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
SEEDS ?= 0:10000
ORDERS ?= 1500
SOAK ?= tests/faults/engine/test_soak.py tests/faults/engine/test_nats_soak.py
SUITE ?= not live and not slow and not faults

.PHONY: help ask setup test lint types suite live soak simulate test-all coverage format clean

help:
	@echo 'make ask              ask the model on this machine a question that needs two tools'
	@echo 'make ask Q="..."      ask your own'
	@echo 'make test             lint, types and the default tests'
	@echo 'make live             the tests that ask a real model (fetches 0.5 GB once)'
	@echo 'make simulate         SEEDS=0:10000 histories of a simulated system of actors'
	@echo 'make soak             ORDERS=1500 orders to workers that are killed and stopped, over SQLite and NATS'
	@echo 'make test-all         everything: default, slow, faults and live tests'
	@echo 'make format           let ruff format and tidy the code'

ask: $(VENV)/.users
	@$(BIN)/callboard ask $(if $(Q),"$$Q")

test: lint types suite

lint: $(VENV)/.developers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.developers
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

setup: $(VENV)/.developers

suite: $(VENV)/.developers
	$(BIN)/pytest -m "$(SUITE)"

live: SUITE := live
live: suite

simulate: $(VENV)/.developers
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

soak: $(VENV)/.developers
	CALLBOARD_ORDERS=$(ORDERS) $(BIN)/pytest -s -m faults $(SOAK)

test-all: lint types $(VENV)/.developers
	$(BIN)/pytest -m "live or not live"

coverage: $(VENV)/.developers
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

format: $(VENV)/.developers
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo 'Callboard needs Python 3.11 or later: install it,' \
		'or name one that is not on the PATH: make PYTHON=/path/to/python3'; exit 2; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'No virtual environment could be made; on Debian and Ubuntu: apt install python3-venv'; exit 2; }

# pip builds in a folder of its own, so a stamp tells when it has to run again.
$(VENV)/.users: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[all]'
	@touch $@

$(VENV)/.developers: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	@touch $(VENV)/.users $@
