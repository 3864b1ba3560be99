"""``propreg run``: load a graph, compare the plain model with a regularized one, print and write the result."""
