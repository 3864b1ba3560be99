"""``propreg.fit_graphs``: classes or numbers of whole graphs, the plain model beside P-reg."""
