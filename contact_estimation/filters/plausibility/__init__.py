"""Signal plausibility, in front of every observer: what a sample claims is compared with what physics allows."""
