"""One file per verb of the command line: ``configure(parser)`` declares its arguments, ``run(args)`` does the work.

A verb is wiring: it reads arguments, calls the library and prints. ``--json`` prints one JSON object and nothing else
on stdout; progress goes to stderr.
"""

import contact_estimation.identify.observers  # noqa: F401  (what stands above the filters adds its observers)
