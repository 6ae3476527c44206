"""The arm: description, symbolic dynamics, motor side, wrench transforms."""
