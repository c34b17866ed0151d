"""Media in requests: what a model takes, what may be read, and what stands for the rest."""
