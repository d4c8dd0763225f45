# make demo   sets up and runs the main job on the sample dataset
# make test   sets up and runs all tests
# make quick  the same without those marked slow: clusters, real wheels, the docs' commands, peers
# make check  lint and types
# make bench  random seeks with every decoder: make bench DATASET=/data/my_set
#
# Everything goes into .venv. PYTHON=python3.12 chooses another interpreter.

PYTHON ?= python3
DATASET ?= sample/aloha3cam
BIN := .venv/bin
# Of the tests: more than there are cores, as many of them wait for others.
PROCESSES ?= 3

PYTEST = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadscope --no-loadscope-reorder

.PHONY: demo test quick check bench clean

demo: .venv/ready-demo
	$(BIN)/reelseek demo

test: .venv/ready-test
	$(PYTEST)

quick: .venv/ready-test
	$(PYTEST) -m "not slow"

check: .venv/ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/ready-demo
	$(BIN)/reelseek bench seek $(DATASET) --out out/bench

clean:
	rm -rf .venv out .mypy_cache .pytest_cache .ruff_cache

.venv/ready-demo: pyproject.toml constraints.txt scripts/setup.sh
	PYTHON="$(PYTHON)" sh scripts/setup.sh demo

.venv/ready-test: .venv/ready-demo $(wildcard requirements/*.txt)
	PYTHON="$(PYTHON)" sh scripts/setup.sh test
