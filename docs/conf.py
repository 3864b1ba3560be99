"""How Sphinx builds the documentation: ``make docs``. Nothing is fetched: neither to build it nor to read it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from building.numbers import substitutions  # noqa: E402  (needs the path above)
from propreg import __version__  # noqa: E402

project, author, release = "propreg", "The propreg authors", __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "building.outputs",
    "building.pictures",
    "building.commands",
    "building.mathml",
    "building.keyboard",
    "building.signatures",
]
exclude_patterns = ["_build", "_made", "building", "figures"]
needs_sphinx = "8.0"

myst_enable_extensions = ["dollarmath", "substitution", "attrs_inline", "attrs_block", "colon_fence"]
myst_heading_anchors = 3
myst_substitutions = substitutions(HERE.parent / "results")

autodoc_typehints = "none"  # the descriptions say what a value is; types of several lines say less
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_custom_sections = ["Shape"]
add_module_names = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"propreg {release}"
html_static_path = ["_static"]
html_css_files = ["propreg.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00588a", "color-brand-content": "#00588a"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
