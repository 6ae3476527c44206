"""One file per verb of the command line: ``configure(parser)`` declares its arguments, ``run(args)`` does the work.

A verb only reads arguments, calls the library and prints. ``--json`` prints one JSON object and nothing else
on stdout; progress goes to stderr.
"""
