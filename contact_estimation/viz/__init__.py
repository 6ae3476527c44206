"""Pictures, markers, reports: pure functions of estimates."""
