"""One thread per process, as in the Makefile: BLAS threads of test processes side by side wait for each other."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before anything imports numpy
    os.environ.setdefault(name, "1")
