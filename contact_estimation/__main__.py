"""``python -m contact_estimation`` is the command line."""

import os
import signal
import sys

# Ctrl-C while modules load ends the command without a traceback; the command line then takes it over.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from contact_estimation.cli import main

code = main()
signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C while the interpreter ends
sys.exit(code)
