"""Signal plausibility in front of every observer: compares a sample's signals with each other and with the dynamics."""
