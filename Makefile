# make demo    simulated arm, estimators and recorder on the real ROS 2 graph, then a report in out/demo
# make test    every test
# make build   .venv with pinned dependencies and the built messages (done by the others when needed)
# make clean   remove everything that was made
.PHONY: demo test build clean
.DEFAULT_GOAL := build
PYTHON_VENV := .venv/bin/python

# One thread per process: the loops are small and share the machine with the graph.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# A sourced ROS must not reach into .venv, which has a ROS of its own.
unexport PYTHONPATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH RMW_IMPLEMENTATION
export AMENT_PREFIX_PATH := $(CURDIR)/.venv

build:
	@./scripts/bootstrap.sh

demo: build
	@$(PYTHON_VENV) scripts/demo.py

test: build
	@$(PYTHON_VENV) -m pytest

clean:
	rm -rf .venv build install log out dist *.egg-info .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
