# make demo   set everything up in .venv, cluster the bundled table, show the result and write a report
# make test   set everything up, run lint, types and the whole suite
# make sanitize  run the tests of the kernels on a build with address and undefined-behaviour checks
# make wheels  an sdist and a wheel for each CPython found, in dist/, installed where there is no compiler and tried there
# make oldest  run the tests of the core on the oldest dependencies that pyproject.toml allows
# make release-check  whatever a machine can see before a release, and what is left to a person (RELEASE=--rehearse: before it is due)
# make site  the documentation site in build/site, and a browser that goes through all of it
# make matrix  every question in every place, run: docs/matrix.md
# make paper  run the paper's experiments, quickly: tables, verdicts on its claims, pictures
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
export PATH := $(CURDIR)/$(BIN):$(PATH)
SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.inc' -o -name '*.csv' -o -name '*.html' -o -name 'meson.build') meson.build pyproject.toml README.md

.PHONY: demo test lint sanitize wheels check-wheel all-wheels conda oldest bench paper matrix docs site release-check clean

demo: $(VENV)/.installed
	$(BIN)/kpod demo

test: lint $(VENV)/.test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --pyargs tests README.md docs kpod

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/cython-lint src
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The kernels with address and undefined-behaviour checks, on the tests that go straight at them.
SANITIZED := build/sanitize
SANITIZE := -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false \
	-Csetup-args=-Dbuildtype=plain "-Csetup-args=-Dc_args=-O1 -DKPOD_SANITIZE -march=native"
# What the compiler checks with; its name alone where the compiler has none.
ASAN = $(shell $(CC) -print-file-name=libasan.so)
UBSAN = $(shell $(CC) -print-file-name=libubsan.so)
sanitize: $(VENV)/.test
ifeq ($(words $(filter /%,$(ASAN) $(UBSAN))),2)
	rm -rf $(SANITIZED)
	$(BIN)/python -m pip install --quiet --no-deps --target $(SANITIZED) $(SANITIZE) .
	LD_PRELOAD="$(ASAN) $(UBSAN)" ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONPATH=$(SANITIZED) \
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/kernels
else
	@echo "make sanitize: skipped, for $(CC) has no libasan and libubsan; gcc brings them"
endif

# The wheels are built from the sdist, so that nothing is missing from either: one for each CPython from 3.11 on that
# is on the path or among pyenv's. auditwheel sees that they run on other Linux systems than this one, and names them so.
PYTHONS ?= $(shell for python in $(PYTHON) python3.11 python3.12 python3.13 python3.14 $$HOME/.pyenv/versions/3.*/bin/python; do \
	$$python -c "import sys; sys.version_info >= (3, 11) and print('%d.%d' % sys.version_info[:2], sys.executable)" 2>/dev/null; \
	done | sort -u -k 1,1 | cut -d' ' -f2)
wheels: $(VENV)/.wheels
	rm -rf build/wheels dist
	$(BIN)/python -m build --sdist --outdir build/wheels .
	set -e; for python in $(PYTHONS); do \
	rm -rf $(TRIED); $$python -m venv $(TRIED); $(TRIED)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'; \
	$(TRIED)/bin/python -m pip wheel --quiet --no-deps --wheel-dir build/wheels build/wheels/*.tar.gz; done
	$(BIN)/auditwheel repair --wheel-dir dist build/wheels/*.whl
	cp build/wheels/*.tar.gz dist
	set -e; for python in $(PYTHONS); do $(MAKE) check-wheel PYTHON=$$python; done

# Installed in an empty environment, with no program in reach but its own: nothing can be compiled.
# For the tests, only pyspark comes without a wheel (it is Python and jars).
# WHEEL_TESTS=tests runs the whole suite on the wheel.
CORE_TESTS := tests/estimators/test_estimator.py tests/estimators/test_estimator_checks.py tests/engine/test_solvers.py
WHEEL_TESTS ?= $(CORE_TESTS)
TRIED := $(CURDIR)/build/tried
check-wheel:
	rm -rf $(TRIED)
	$(PYTHON) -m venv $(TRIED)
	PATH=$(TRIED)/bin pip install --quiet --upgrade 'pip>=25.1'
	PATH=$(TRIED)/bin pip install --quiet --only-binary :all: $(wildcard dist/*-$(shell $(PYTHON) -c "import sys; print('cp%d%d' % sys.version_info[:2])")-*.whl)
	cd $(TRIED) && PATH=$(TRIED)/bin python -c "import kpod; from kpod.datasets import load_incomplete_wine; \
	print('kpod', kpod.__version__, kpod.KPOD(3, random_state=0).fit(load_incomplete_wine().data).inertia_)"
	PATH=$(TRIED)/bin pip install --quiet --only-binary :all: --no-binary pyspark --find-links dist 'scikit-kpod[cli]' --group test
	PATH=$(TRIED)/bin:$$PATH python -m pytest -q -p no:cacheprovider $(WHEEL_TESTS)

# Every wheel that [tool.cibuildwheel] asks for and this system can make.
all-wheels: $(VENV)/.wheels
	$(BIN)/python -m cibuildwheel --output-dir dist

# Needs rattler-build.
conda:
	KPOD_VERSION=$$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build) rattler-build build --recipe conda --output-dir build/conda

# The lowest version of every dependency that is allowed, the command line's too, and nothing that pulls in newer ones.
# What reads frames is of that time as well (and pyparsing, which matplotlib names).
OLDEST := $(CURDIR)/build/oldest
OLDEST_TESTS := $(CORE_TESTS) tests/mixture tests/model_selection tests/missing tests/inputs
oldest:
	rm -rf $(OLDEST)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet $$($(PYTHON) -c "import tomllib; \
	project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
	print(*(d.replace('>=', '==') for d in project['dependencies'] + project['optional-dependencies']['cli']))")
	$(OLDEST)/bin/python -m pip install --quiet "pytest<9" pytest-timeout hypothesis "pandas<3" "polars<1.40" "pyparsing<3.3" .
	$(OLDEST)/bin/python -m pytest -q -p no:cacheprovider $(OLDEST_TESTS)

# First what takes seconds, so that nobody waits for an hour to hear of a missing date.
release-check: $(VENV)/.test
	$(BIN)/python -m tools.release $(RELEASE)
	$(MAKE) test
	$(MAKE) sanitize
	$(MAKE) oldest
	$(MAKE) wheels
	$(MAKE) site
	$(BIN)/python -m tools.release --built dist $(RELEASE)

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks all

paper: $(VENV)/.paper
	$(BIN)/python -m paper run --quick --workers 2
	$(BIN)/python -m paper tables --quick
	$(BIN)/python -m paper claims --quick
	mkdir -p build/paper
	$(BIN)/python -m paper plot --quick --output build/paper

matrix: $(VENV)/.test
	$(BIN)/python -m docs.matrix

docs: $(VENV)/.test
	$(BIN)/python -m docs.generate

# A copy is built, so that what the build makes is not taken for pages or tests. The browser is Chromium.
site: $(VENV)/.site
	mkdir -p build/source
	cp -R docs examples CHANGELOG.md CONTRIBUTING.md SECURITY.md build/source
	$(BIN)/python -m sphinx -q -W --keep-going build/source/docs build/site
	$(BIN)/python -m pytest -q tests/site.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[cli,excel,stats]'
	touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test --group lint
	touch $@

$(VENV)/.wheels: $(BIN)/python
	$(BIN)/python -m pip install --quiet --group wheels
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

$(VENV)/.paper: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group paper
	touch $@

$(VENV)/.site: $(VENV)/.test pyproject.toml
	$(BIN)/python -m pip install --quiet --group site
	touch $@

clean:
	rm -rf $(VENV) build dist
