"""The paper's figures from recorded runs: first as plain data, then as pictures. No torch, no SciPy.

:func:`propreg.study.figures.build.figure_data` computes a figure, :func:`.drawing.save.save_figure`
writes a picture of it.
"""
