"""One thin file per node."""
