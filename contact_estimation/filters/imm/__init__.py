"""The contact IMM filter: friction-aware filters per contact mode, mixed as an interacting multiple model."""
