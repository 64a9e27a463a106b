# make demo   set everything up in .venv, cluster the bundled table, show the result and write a report
# make test   set everything up, run lint, types and the whole suite
# make sanitize  run the tests of the kernels on a build with address and undefined-behaviour checks
# make paper  run the paper's experiments, quickly: tables, verdicts on its claims, pictures
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.inc' -o -name '*.csv' -o -name '*.html' -o -name 'meson.build') meson.build pyproject.toml README.md

.PHONY: demo test lint sanitize bench paper docs clean

demo: $(VENV)/.installed
	$(BIN)/kpod demo

test: lint $(VENV)/.test
	$(BIN)/python -m pytest --pyargs tests README.md docs kpod

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
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_kernels.py tests/test_fuzz.py tests/test_hostile.py
else
	@echo "make sanitize: skipped, for $(CC) has no libasan and libubsan; gcc brings them"
endif

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks all

paper: $(VENV)/.paper
	$(BIN)/python -m paper run --quick --workers 2
	$(BIN)/python -m paper tables --quick
	$(BIN)/python -m paper claims --quick
	mkdir -p build/paper
	$(BIN)/python -m paper plot --quick --output build/paper

docs: $(VENV)/.test
	$(BIN)/python -m docs.generate

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[cli]'
	touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test --group lint
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

$(VENV)/.paper: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group paper
	touch $@

clean:
	rm -rf $(VENV) build
