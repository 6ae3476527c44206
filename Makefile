# make demo    simulated arm, estimators and recorder on the real ROS 2 graph, then a report in out/demo
# make test    every test, two files at a time (WORKERS=4 for more)
# make torture what takes hours: code and signals broken on purpose, nodes killed, an hour of soak
# make lint    ruff (rules and format) and mypy in strict mode
# make audit   the pinned versions against the database of known vulnerabilities, which it needs the network for
# make docs    the documentation as a site in out/site
# make build   .venv with pinned dependencies and the built messages (done by the others when needed)
# make clean   remove everything that was made
.PHONY: demo test torture lint audit docs build clean
.DEFAULT_GOAL := build
PYTHON_VENV := .venv/bin/python
WORKERS ?= 2

# One thread per process: the loops are small and share the machine with the graph.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# Without its compiled files each of the hundred processes of the tests compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

# A sourced ROS must not reach into .venv, which has a ROS of its own.
unexport PYTHONPATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH RMW_IMPLEMENTATION
export AMENT_PREFIX_PATH := $(CURDIR)/.venv

build:
	@./scripts/bootstrap.sh

demo: build
	@$(PYTHON_VENV) scripts/demo.py

test: build
	@$(PYTHON_VENV) -m pytest -n $(WORKERS) --dist loadfile

torture: build
	@$(PYTHON_VENV) benchmark/mutations.py --save benchmark/mutations.md
	@$(PYTHON_VENV) benchmark/fault_matrix.py --save
	@$(PYTHON_VENV) benchmark/false_alarms.py --hours 10 --save
	@$(PYTHON_VENV) benchmark/hostile_files.py --save
	@$(PYTHON_VENV) benchmark/kills.py --priority 20 --save benchmark/kills.md
	@$(PYTHON_VENV) benchmark/soak.py --save

lint: build
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy --python-executable $(PYTHON_VENV)

audit:
	@./scripts/audit.sh

docs:
	@./scripts/build_docs.sh

clean:
	rm -rf .venv build install log out dist *.egg-info .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
