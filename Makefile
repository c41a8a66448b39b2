# `make demo` and `make test` work from a bare clone: they create .venv and install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-lowest check docs dist install browser clean

install: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	# torch first: a build that is there, such as the CPU one, stays; the pin is what was tested
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install -q --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

demo: install
	$(BIN)/coterie demo

# Chromium for the report's tests; where it cannot be had they skip and say so
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	 { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	   apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	 echo "no Chromium here: the browser tests will be skipped"

test: install browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests

check: install
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

# The oldest versions that pyproject.toml allows, in an environment of their own (LOWEST_VENV);
# LOWEST narrows the tests, WORKERS is how many run at a time
LOWEST_VENV ?= build/lowest
WORKERS ?= 2
test-lowest:
	test -x $(LOWEST_VENV)/bin/python || $(PYTHON) -m venv $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python .ci/lowest.py > $(LOWEST_VENV)/requirements.txt
	$(LOWEST_VENV)/bin/python -m pip install -q --disable-pip-version-check -r $(LOWEST_VENV)/requirements.txt pytest pytest-timeout pytest-xdist hypothesis "pandas<3" "polars>=1"
	$(LOWEST_VENV)/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
	OMP_NUM_THREADS=1 $(LOWEST_VENV)/bin/python -m pytest -n $(WORKERS) --ignore tests/docs -m "not browser and not data" $(LOWEST)

# sdist and wheel into dist/, then the wheel is tried outside the source tree; CLEAN=1 installs its
# dependencies anew for that
dist: install
	rm -rf dist
	$(BIN)/python -m build -q --outdir dist .
	.ci/wheel $(BIN)/python

# The site, into build/site, without the network: runs the tutorials; a warning, a dead link and a question
# of questions.py that search does not answer are errors
docs: install
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -n -b html docs build/site
	$(BIN)/python docs/site/links.py build/site
	$(BIN)/python docs/site/questions.py build/site

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
