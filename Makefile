# Every target sets itself up from nothing on a machine with Python 3.11 or newer, make and g++.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
CPP_FILES := $(shell find cpp -name "*.cpp" -o -name "*.h")
CORE := pyproject.toml CMakeLists.txt $(CPP_FILES)
# One process more than cores, up to five: tests that wait for workers leave a core idle. In their
# own order, files of few long tests do not come last, when other processes have no more.
PROCESSES := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? n + 1 : 5)))
PYTEST := $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
STUBS := $(BIN)/python -m nanobind.stubgen -q -r -m situate._core
# Else pytest would rewrite the assertions of 600 files anew in every process.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test docs bench homes lint format stubs sanitize build clean FORCE
.DEFAULT_GOAL := build

build: $(VENV)/.core

# The packages that two of the installations below need, which may run at once.
$(VENV)/.base: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) numpy packaging typing_extensions
	@touch $@

$(VENV)/.tools: $(VENV)/.base
	$(INSTALL) scikit-build-core nanobind cmake ninja
	@touch $@

# Without isolation the build folder serves again, and only what changed is compiled.
$(VENV)/.core: $(VENV)/.tools $(CORE)
	$(INSTALL) --no-build-isolation --config-settings=cmake.define.SITUATE_WERROR=ON -e .
	@touch $@

# Python compiles the modules that are imported when they are; pip would compile all ten thousand.
$(VENV)/.torch: $(VENV)/.base
	$(INSTALL) --no-compile torch==2.13.0 matplotlib
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch | $(VENV)/.core
	$(INSTALL) --no-build-isolation --config-settings=cmake.define.SITUATE_WERROR=ON \
		-e '.[torch,onnx,baselines,exact,report,discover,docs,dev]'
	@touch $@

# PyTorch is installed while the core compiles.
demo:
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.torch $(VENV)/.core
	@mkdir -p demo
	$(BIN)/situate compare inception_v3 --cluster k80-4 --slices auto --time-limit 20 \
		--methods single,heft,data_parallel,fsdp,one_f_one_b,auto \
		--out demo/plan.json --picture demo/timeline.svg
	@echo "The plan is demo/plan.json; look at demo/timeline.svg"

test: $(VENV)/.core $(VENV)/.dev
	$(PYTEST) $(TESTS)

$(VENV)/.docs: pyproject.toml | $(VENV)/.core
	$(INSTALL) --no-build-isolation -e '.[docs]'
	@touch $@

# Static files in build/site/html, for any web server; the build fails at a broken link.
docs: $(VENV)/.core $(VENV)/.docs
	$(BIN)/python site/stage.py build/site/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -q --strict -f site/mkdocs.yml
	@echo "The site is build/site/html: $(BIN)/python -m http.server -b 127.0.0.1 -d build/site/html"

bench: $(VENV)/.core $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

# llama.cpp is compiled from its source on the package index, and runs on this machine's loopback.
homes: $(VENV)/.core $(VENV)/.dev
	$(INSTALL) gguf
	nice $(BIN)/python -m benchmarks.homes.llamacpp --build $(HOMES)

lint: $(VENV)/.core $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)
	mkdir -p build/stubs && $(STUBS) -O build/stubs
	diff -ru src/situate/_core build/stubs/_core

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only -q
	$(BIN)/ruff format -q
	$(BIN)/clang-format -i $(CPP_FILES)

stubs: $(VENV)/.core $(VENV)/.dev
	$(STUBS) -O src/situate

# The core under its tests, with AddressSanitizer and UndefinedBehaviorSanitizer, then with
# ThreadSanitizer. Python starts with -S, for else the editable install's hook would bring the core
# without sanitizers.
SANITIZE_TESTS ?= tests/evaluators tests/simulation tests/solvers
SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
LIBRARY = $(shell $(CXX) -print-file-name=lib$(1).so)
# Measuring on hardware starts processes of PyTorch, and workers may be Ray's, which no sanitizer was
# built into; both are killed in ways that sanitizers report.
# ThreadSanitizer of GCC 12 and older cannot place its shadow under much address randomisation.
FIXED_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)
SANITIZED = env PYTHONPATH=.sanitize/$(1):$(SITE) LD_PRELOAD="$(call LIBRARY,$(2)) $(call LIBRARY,stdc++)" \
	$(BIN)/python -S -m pytest -x -p no:cacheprovider $(SANITIZE_TESTS) \
	--ignore=tests/evaluators/hardware --ignore=tests/evaluators/workers

sanitize: .sanitize/address .sanitize/thread
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 $(call SANITIZED,address,asan)
	TSAN_OPTIONS=halt_on_error=1 $(FIXED_ADDRESSES) $(call SANITIZED,thread,tsan)

.sanitize/address: SANITIZERS = address,undefined
.sanitize/thread: SANITIZERS = thread
.sanitize/%: $(VENV)/.core $(VENV)/.dev FORCE
	rm -rf $@ && mkdir -p $@ && cp -r src/situate $@
	$(BIN)/cmake -S . -B build/sanitize-$* -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
		-DPython_EXECUTABLE=$(abspath $(BIN)/python) -DSITUATE_SANITIZE=$(SANITIZERS) \
		-DSITUATE_UNITY=OFF >/dev/null  # so that every file includes the headers it needs
	$(BIN)/cmake --build build/sanitize-$*
	$(BIN)/cmake --install build/sanitize-$* --prefix $@ >/dev/null
FORCE:

clean:
	rm -rf build .sanitize .hypothesis .mypy_cache .pytest_cache .ruff_cache demo
	find src tests benchmarks research -name __pycache__ -prune -exec rm -rf {} +
