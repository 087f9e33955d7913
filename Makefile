# Everything runs in .venv, made here; nothing else on the machine is touched. PYTHON picks the interpreter.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
RUN = $(BIN)/graphrag-pipeline --root data
# Tests start many commands: Python keeps what it compiled, whatever the calling shell says.
export PYTHONDONTWRITEBYTECODE =
SECURITY_TOOLS = 'pip-audit>=2.9,<3' 'cyclonedx-bom>=7,<8'

.PHONY: demo test test-changed test-all test-ui test-cluster test-real-model real-model-is-named lint audit sbom types docs dev bench torture dist clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,documents,cjk,ui,docs]'
	touch $@

# Tools that look at an environment live in one of their own, so that they do not add to it.
$(VENV)/security/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)/security
	$(VENV)/security/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(SECURITY_TOOLS)
	touch $@

# What a user gets: the package with the extras that a deployment may want, without tools of development.
$(VENV)/deployed/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)/deployed
	$(VENV)/deployed/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[documents,cjk,postgres]'
	touch $@

demo: $(VENV)/installed  ## index the sample corpus, ask a local and a global question
	$(RUN) index
	$(RUN) query "What is Marley's chain made of?"
	$(RUN) query --method global "What are the main themes of the story?"

test: $(VENV)/installed-dev  ## every rule and law, through real parts, with few repetitions: about 15 minutes
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not ui and not thorough"  # a third works while two wait

test-changed: $(VENV)/installed-dev  ## the tests of what differs from main (or BASE=REV), and the laws
	$(BIN)/python -m graphrag_pipeline_tests.support.changed_tests $(or $(BASE),main)

test-all: $(VENV)/installed-dev  ## all tests with random examples and all repetitions, stories, stores, Dagster's UI
	THOROUGH=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test-ui: $(VENV)/installed-dev  ## a live Dagster UI in headless Chromium (Debian's chromium and chromium-driver)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m ui

$(VENV)/installed-cluster: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster]'
	touch $@

test-cluster: $(VENV)/installed-cluster  ## several hosts by Celery, with kills and cuts (Debian's redis-server, iproute2, libfaketime; root)
	$(BIN)/python -m pytest -m cluster graphrag_pipeline_tests/cluster

real-model-is-named:
	@test -n "$(REAL_MODEL_URL)" && test -n "$(REAL_MODEL)" || { echo "usage: make test-real-model REAL_MODEL_URL=http://127.0.0.1:8080/v1 REAL_MODEL=name"; exit 2; }

test-real-model: real-model-is-named $(VENV)/installed-dev  ## behaviour with a model of yours: REAL_MODEL_URL=http://127.0.0.1:8080/v1 REAL_MODEL=name
	REAL_MODEL_URL="$(REAL_MODEL_URL)" REAL_MODEL="$(REAL_MODEL)" $(BIN)/python -m pytest -s -rxs -m real_model graphrag_pipeline_tests/test_real_model.py

lint: $(VENV)/installed-dev audit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

audit: $(VENV)/installed-dev $(VENV)/security/installed  ## dependencies: known vulnerabilities, or pins and file hashes
	$(BIN)/python -m graphrag_pipeline_tests.support.supply_chain constraints.txt $(VENV)/security/bin/pip-audit

sbom: $(VENV)/deployed/installed $(VENV)/security/installed  ## docs/_build/sbom.json: every package of a deployment (CycloneDX)
	mkdir -p docs/_build
	$(VENV)/security/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml -o docs/_build/sbom.json $(VENV)/deployed
	@echo "wrote docs/_build/sbom.json"

types: $(VENV)/installed-dev
	$(BIN)/mypy

$(VENV)/build/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)/build
	$(VENV)/build/bin/python -m pip install --quiet --disable-pip-version-check 'build>=1.2,<2'
	touch $@

dist: $(VENV)/build/installed  ## dist/: wheel and sdist, and the wheel tried in an empty environment
	rm -rf dist
	$(VENV)/build/bin/python -m build --quiet --outdir dist .
	$(VENV)/build/bin/python -m graphrag_pipeline_tests.support.try_wheel dist/*.whl constraints.txt

docs: $(VENV)/installed-dev  ## docs/_build/html, strict and without a network
	$(BIN)/python -m sphinx -E -W --keep-going -n -q -b html docs docs/_build/html

dev: $(VENV)/installed  ## Dagster's UI and daemon on http://127.0.0.1:3000
	$(RUN) dev

bench: $(VENV)/installed-dev  ## the figures of the documentation
	$(BIN)/python -m graphrag_pipeline_tests.bench

torture: $(VENV)/installed-dev  ## random commands, kills, damage, faults of a store: SECONDS=120 SEED=1 of each kind
	THOROUGH=1 $(BIN)/python -m pytest -n 2 --dist worksteal -k killed graphrag_pipeline_tests/test_killed_index.py graphrag_pipeline_tests/test_model_engine.py
	$(BIN)/python -m graphrag_pipeline_tests.torture --seconds $(or $(SECONDS),120) --seed $(or $(SEED),1)

clean:
	rm -rf $(VENV) docs/_build data/tables data/heads data/snapshots data/cache data/dagster data/evaluations
