"""What ``propreg run`` does: load a graph, compare the plain model with a regularised one, say it, write it down."""
