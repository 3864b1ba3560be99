"""The page: one self-contained HTML file for a run, and one for the whole study. No torch, no network."""

from propreg.report.run_html import run_page
from propreg.report.run_pictures import run_figures
from propreg.report.study_html import study_page

__all__ = ["run_figures", "run_page", "study_page"]
