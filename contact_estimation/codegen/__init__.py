"""casadi.Function to compiled C with preallocated buffers; needs nothing else of the package."""
