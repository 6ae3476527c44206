"""Node ``combined``: a driver and an estimator in one process; samples reach the observer without a DDS hop."""

from __future__ import annotations
