"""How the documentation site is made: `scripts/build-docs.py` lays the pages out and builds them."""

from __future__ import annotations

project = "Anabranch"
author = "the Anabranch maintainers"
root_doc = "docs/index"
extensions = ["myst_parser"]
# Links to headings are those that the repository's own pages use
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
exclude_patterns = ["LICENSE", "examples/**"]
# Quotes in these texts are of values
smartquotes = False
html_theme = "furo"
html_title = "Anabranch"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0e7490", "color-brand-content": "#0e7490"},
    "dark_css_variables": {"color-brand-primary": "#38bdd8", "color-brand-content": "#38bdd8"},
}
# Code of SQL with our own statements, and of terminals, is shown as it is
suppress_warnings = ["misc.highlighting_failure"]
