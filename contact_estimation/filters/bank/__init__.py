"""The contact bank: friction-aware filters, one per contact mode, mixed as an IMM."""
