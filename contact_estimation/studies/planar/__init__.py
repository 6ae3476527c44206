"""The examples of paper 5 simulated and identified: table 1, rimless wheel, arm and disk."""
