# `make conformance` and `make test` do all set-up themselves; a second run reinstalls and recompiles nothing.

TORCH ?= torch==2.13.0
PYTHON ?= python3
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# torch's thread pools and forked children do not go together
export OMP_NUM_THREADS := 1

# the environment is made again when pyproject.toml or the wanted torch changes
STAMP := $(VENV)/installed-$(subst /,_,$(subst =,-,$(subst >,-,$(subst <,-,$(TORCH)))))

# of `make matrix`; a CUDA build of torch takes 5 GB of disk while it is there
TORCH_VERSIONS ?= 2.13.0 2.14.1

# of `make cuda-build`: a version whose wheel is built for CUDA. To compile all Python of that environment beforehand
# would take as long as to unpack it, for the few processes that use it.
CUDA_TORCH ?= torch==2.14.1

.PHONY: conformance test lint docs native cuda-build cuda-built matrix clean

conformance: $(STAMP) native
	opcheck run reference_ops.specs --tier standard -j $(JOBS) \
	  --report build/conformance/report.json --report build/conformance/report.md $(ARGS)

test: $(STAMP) native
	pytest -n $(JOBS) --dist loadscope $(ARGS)

# the reference ops with each version of torch, in an environment that is removed afterwards, and what differs; a version
# with bad results does not keep the others from being run, and one without a report fails the merge
matrix: $(STAMP)
	rm -rf build/matrix
	mkdir -p build/matrix
	for version in $(TORCH_VERSIONS); do \
	  $(MAKE) conformance VENV=build/matrix/venv TORCH=torch==$$version \
	    ARGS="--report build/matrix/torch-$$version.json" > build/matrix/torch-$$version.log 2>&1; \
	  echo "torch $$version"; grep -E '^(results|verdict)|Error' build/matrix/torch-$$version.log; \
	  rm -rf build/matrix/venv; \
	done
	opcheck merge $$(ls build/matrix/torch-*.json | sort -V) $(foreach version,$(TORCH_VERSIONS),--expect torch-$(version)) \
	  -o build/matrix/matrix.json -o docs/matrix.md

lint: $(STAMP)
	ruff check .
	ruff format --check .
	mypy
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	check-jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	zizmor --offline --quiet --persona pedantic .github

# compiles what has changed in csrc; reports what is missing where it cannot
native: $(STAMP)
	python -m reference_ops.native

# compiles and loads all CUDA code, and checks what needs no GPU, in an environment of its own, which takes 5 GB of disk
# in build/cuda-venv and is kept
cuda-build:
	$(PYTHON) -m reference_ops.native.cuda_build --nvcc
	$(MAKE) cuda-built VENV=build/cuda-venv TORCH=$(CUDA_TORCH) PIP_OPTIONS=--no-compile

cuda-built: $(STAMP)
	python -m reference_ops.native.cuda_build

# what is generated from the checks: the README's table and docs/checks.md
docs: $(STAMP)
	python -m opcheck_suite.documents

clean:
	rm -rf build $(VENV)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP_OPTIONS) '$(TORCH)' --editable '.[dev]'
	rm -f $(VENV)/installed-*
	touch $@
