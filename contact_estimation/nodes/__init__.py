"""One thin file per node."""

import contact_estimation.identify.observers  # noqa: F401  (what stands above the filters adds its observers)
