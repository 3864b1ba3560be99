"""Real graphs: the benchmark datasets, their splits, and your own."""
