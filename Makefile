# Everything a contributor does. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
STAMP := $(VENV)/.installed

# Spark listens on loopback only, unless whoever calls says otherwise.
export SPARK_LOCAL_IP ?= 127.0.0.1

# Where nothing may be kept compiled, each of the hundreds of processes that tests start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

# Before a command that starts Spark: finds (or installs) Java and hands its home to Spark.
WITH_JAVA = JAVA_HOME="$$(scripts/ensure-java.sh)" && export JAVA_HOME &&

# Before tests: finds (or installs) the servers that they start on loopback. Without them they fail.
WITH_S3 = scripts/ensure-s3.sh >/dev/null &&
WITH_KAFKA = scripts/ensure-kafka.sh >/dev/null &&

# Before benchmarks: finds (or installs) Spark's own Kafka source, which is measured beside ours.
WITH_SPARK_KAFKA = scripts/ensure-spark-kafka.sh >/dev/null &&

# Before tests: finds (or installs) the PostgreSQL that they start on loopback. Without it they fail.
WITH_POSTGRES = scripts/ensure-postgres.sh >/dev/null &&

# Before tests: finds (or installs) the browsers that they drive. Without them those tests fail.
WITH_BROWSERS = scripts/ensure-browsers.sh >/dev/null &&

# More arguments: make test PYTEST_ARGS='-k manifest -x', make demo DEMO_ARGS=--json
# Tests run in two processes more than there are cores, for some wait for the processes they start; those that
# share a Spark session stay together. They write and flush many small files: in memory, where that has room.
PYTEST = $(WITH_JAVA) $(WITH_S3) $(WITH_KAFKA) $(WITH_POSTGRES) $(WITH_BROWSERS) TMPDIR=$(ROOM) $(VENV)/bin/python -m pytest --durations=15 -n $(JOBS) --dist loadscope
JOBS ?= $(shell expr $$(nproc) + 3)
SHM_KB := $(shell df -k --output=avail /dev/shm 2>/dev/null | tail -1)
ROOM ?= $(shell [ "0$(SHM_KB)" -gt 4000000 ] && [ -w /dev/shm ] && echo /dev/shm || echo $${TMPDIR:-/tmp})

.PHONY: help setup java warm demo test test-all check bench figures docs clean

help: ## List what can be made
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))

setup: $(STAMP) java warm ## Make .venv, install everything, make sure of Java 17 or newer

# The stamp is touched last, so an install that was cut short is done again.
$(STAMP): pyproject.toml constraints.txt
	@scripts/make-venv.sh $(VENV)
	@touch $@

java:
	@home="$$(scripts/ensure-java.sh)" && echo "Java: $$home"

# Only makes later starts quicker: nothing fails without it.
warm: $(STAMP)
	@$(WITH_JAVA) $(VENV)/bin/anabranch warm --if-missing || true

demo: $(STAMP) ## Run the demonstration: trouble comes, with adaptation and without
	@$(WITH_JAVA) $(VENV)/bin/anabranch demo $(DEMO_ARGS)

test: $(STAMP) ## Run the tests (all but those marked soak)
	@$(PYTEST) $(PYTEST_ARGS)

test-all: $(STAMP) ## Run all tests, the long ones too
	@$(PYTEST) -m "" --hypothesis-profile=random $(PYTEST_ARGS)

check: $(STAMP) ## Lint, check the format, check the types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy src

bench: $(STAMP) ## Run all benchmarks, Spark beside us on the same files
	@$(WITH_JAVA) $(WITH_KAFKA) $(WITH_SPARK_KAFKA) $(VENV)/bin/anabranch bench all $(BENCH_ARGS)

figures: $(STAMP) ## Draw the figures from the results of the benchmarks
	@$(VENV)/bin/python benchmarks/figures.py

docs: $(STAMP) ## Check the documents, and build the site into build/site
	@$(WITH_JAVA) $(VENV)/bin/python -m pytest -q tests/unit/test_docs.py $(PYTEST_ARGS)
	@$(VENV)/bin/python scripts/build-docs.py

clean: ## Remove all that can be made again, .venv too
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts derby.log metastore_db spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
