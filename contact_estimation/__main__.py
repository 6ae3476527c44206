"""``python -m contact_estimation`` is the command line."""

import sys

from contact_estimation.cli import main

sys.exit(main())
