"""How Sphinx shows the pages as a site: ``make docs``. Neither building nor reading it needs a network."""

import sys
from pathlib import Path

from propreg import __version__

sys.path.insert(0, str(Path(__file__).parent))  # of the packages "building" and "figures"

project, author, release = "propreg", "The propreg authors", __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "building.site",
]
exclude_patterns = ["_build", "building", "figures"]
needs_sphinx = "8.0"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the descriptions explain a value better than a type of several lines
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
html_js_files = ["explore.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00588a", "color-brand-content": "#00588a"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
