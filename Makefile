# Everything starts here: `make help`. The first run makes the environment; later ones start at once, offline.
.DEFAULT_GOAL := help
.PHONY: help environment jars jars-s3 demo mariadb wheel test test-all test-quick test-long lint docs site lock bench soak size together topology replay model tidb clean

PYTHON ?= python3
BIN := .venv/bin
# Says each half minute that a silent command still runs.
PATIENTLY := $(PYTHON) tools/patience.py
# pytest workers: each starts its own servers. More of them than cores, as tests wait a lot: for Airflow, for silence.
WORKERS ?= 4

export NUMBA_CACHE_DIR ?= $(CURDIR)/.tidegate/numba
export TIDEGATE_HOME ?= $(CURDIR)
# Some images set it; then each process that a test or the demo starts would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 14

demo: environment jars ## a MariaDB shop kept equal in Delta by Airflow and Spark, before your eyes (DEMO="--seconds 120")
	@$(BIN)/tidegate demo $(DEMO)

mariadb: environment ## a MariaDB to practise with, until Ctrl-C (PORT=3307): docs/tutorial.md
	@$(BIN)/python tools/practice_mariadb.py $(or $(PORT),3307)

test: environment jars ## the gate: each behaviour once, with real servers, Spark and Airflow; some 40 minutes on two cores (ARGS="-k words" PART=2/4)
	@TIDEGATE_PART=$(PART) $(BIN)/pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m "not nightly" $(ARGS)

test-all: environment jars ## every test, on each server and by each writer, and the long runs of tests/nightly.toml: an hour
	@TIDEGATE_PART=$(PART) $(BIN)/pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(ARGS)

test-quick: environment ## every test that starts no server, Spark or Airflow, with fewer random examples and cases: about a minute of CPU
	@TIDEGATE_QUICK=1 $(BIN)/pytest -n 0 -m "not server and not spark and not airflow and not nightly" $(ARGS)

test-long: environment jars ## the random tests with many more examples, an hour and more (TIDEGATE_SEED=random)
	@TIDEGATE_LONG=1 $(BIN)/pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --timeout 7200 -m long $(ARGS)

lint: .venv/.made ## ruff, mypy --strict, import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: environment ## write anew: the table of keys in docs/pipeline.md, docs/reference, the alert rules
	@$(BIN)/python tools/pipeline_keys.py --write docs/pipeline.md
	@$(BIN)/python tools/alert_rules.py
	@$(BIN)/python tools/reference.py --write

site: .venv/.made ## the pages of docs/ as a site, in .tidegate/site; a broken link fails
	@MERMAID="$$($(BIN)/python tools/mermaid_script.py)" NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lock: environment ## requirements.in -> requirements.txt: every pin with its hashes, no index address
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet \
		requirements.in --output-file requirements.txt

wheel: environment ## the package and the versions it was tested with: .tidegate/dist (pip install tidegate-*.whl -c constraints.txt)
	@$(BIN)/python -m hatchling build --target wheel --directory .tidegate/dist
	@sed -nE 's/^([A-Za-z0-9._-]+==.*[^\\ ]) *\\?$$/\1/p' requirements.txt > .tidegate/dist/constraints.txt

bench: environment jars ## the benchmarks, each beside its peers: .tidegate/bench/report.md (QUICK=1: under ten minutes; ONLY=readers MINUTES=60)
	@$(BIN)/python -m benchmarks --sizes $(if $(QUICK),quick,formal) $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

soak: environment jars ## random faults over a busy source, then: lost, doubled, wrong? (FAULTS=1000 SEED=7 FLAVOUR=mysql9 SOURCES=4 READERS=1; HOSTILE=1: composed DDL, sessions' variables, edits of the pipeline file, other writers; MODES=1: every mode of silver; both: several modes on each table, hostile rounds)
	@$(BIN)/python -m tests.soak --faults $(or $(FAULTS),100) $(if $(SEED),--seed $(SEED)) $(if $(FLAVOUR),--flavour $(FLAVOUR)) $(if $(SOURCES),--sources $(SOURCES)) $(if $(READERS),--readers) $(if $(HOSTILE),--hostile) $(if $(MODES),--modes)

size: environment jars ## a database that holds much is snapshotted by itself, under load and faults, and repaired (ROWS=10000000 BAG=1000000 SMALL=500 FLAVOUR=mysql9 SEED=7 FOLDER=/disk/size)
	@$(BIN)/python -m tests.size $(if $(ROWS),--rows $(ROWS)) $(if $(BAG),--bag $(BAG)) $(if $(SMALL),--small $(SMALL)) $(if $(SEED),--seed $(SEED)) $(if $(FLAVOUR),--flavour $(FLAVOUR)) $(if $(FOLDER),--folder $(FOLDER))

together: environment $(if $(filter s3,$(STORE)),jars-s3,jars) ## apply, maintain, rebuild, verify and people's OPTIMIZE and DELETE on one lake at once (MINUTES=30 STORE=s3 READERS=1)
	@$(BIN)/python -m tests.together --minutes $(or $(MINUTES),30) $(if $(STORE),--store $(STORE)) $(if $(SEED),--seed $(SEED)) $(if $(FLAVOUR),--flavour $(FLAVOUR)) $(if $(READERS),--readers)

topology: environment ## Airflow on Postgres and Celery, a Spark cluster, an S3 server: each killed, is silver equal? (ONLY=redis,scheduler)
	@$(BIN)/python -m tests.topology $(if $(ONLY),--only $(ONLY))

replay: environment jars ## MariaDB's own test files on a real server, then: is silver equal? (FILES=30 SEED=7 FLAVOUR=mysql9 ONLY=gcol READERS=1; HOSTILE=1: kills, other writers, edits of the pipeline file)
	@$(BIN)/python -m tests.replay --files $(or $(FILES),30) $(if $(SEED),--seed $(SEED)) $(if $(FLAVOUR),--flavour $(FLAVOUR)) $(if $(ONLY),--only '$(ONLY)') $(if $(READERS),--readers) $(if $(HOSTILE),--hostile)

model: environment ## every state of the protocols of capture's start, joining, release and two applies, and what each rule is good for
	@$(BIN)/python -m tests.model

tidb: ## a real TiDB for the tests that need one: 20 minutes, Go 1.21 and 4 GB of disk, once
	@tools/tidb/build .tidegate/tidb --slim

clean: ## remove .venv and .tidegate, and with them the demo's lake and every download
	rm -rf .venv .tidegate .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment: .tidegate/.warm

# tools/environment.py looks at contents, so a touched file costs nothing.
.venv/.made: requirements.txt pyproject.toml tools/environment.py
	@$(PYTHON) tools/environment.py
	@touch $@

# Compile the numba kernels once, rather than in the first task of each worker; anew when one, or a page of constants
# beside them, changes.
KERNELS := $(shell grep -rlE '^@(compiled|numba\.njit)' --include='*.py' include/tidegate)

.tidegate/.warm: .venv/.made $(KERNELS) $(wildcard include/tidegate/*/kernel/*.py)
	@mkdir -p .tidegate
	@echo "tidegate: compiling its own code, once: a minute or two"
	@$(PATIENTLY) $(BIN)/python -m tidegate.binlog.warm
	@echo "tidegate: compiling what isn't the decoder"
	@$(PATIENTLY) $(BIN)/python -c 'import sys; from importlib import import_module as load; [load(name[8:-3].replace("/", ".")) for name in sys.argv[1:]]; load("tidegate.compiled").load_all()' $(KERNELS)
	@touch $@

jars: .venv/.made
	@$(PATIENTLY) $(BIN)/python -m tidegate.local.jars

jars-s3: .venv/.made ## the jars with which Spark reads and writes a lake on S3 (690 MB)
	@$(PATIENTLY) $(BIN)/python -m tidegate.local.jars --s3
