"""``propreg.fit``: from a graph to a tuned model, with the plain one trained beside it."""
