"""The documentation site: `make site` builds it into build/site.

Everything a page needs is a file of the site, so that it works from a folder without a network:
formulas become MathML while building, and search needs no requests.
"""

import shutil
import sys
from contextlib import chdir
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))  # for pictures.py

project = "kpod"
author = "The kpod developers"
copyright = author  # noqa: A001
version = release = version_of("scikit-kpod")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
default_role = "py:obj"  # single backquotes in docstrings: a link where there is something to link to
suppress_warnings = [
    "config.cache",  # of the function that sets the look of pictures
    "myst.header",  # tables of the paper, whose headings are one level deeper
]

# Markdown: formulas between dollars, and every heading can be linked to.
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
# The doctests of the pages are pytest's; the site only shows them.

# Reference: one page a name, with the methods that are kpod's own.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Examples, run while building.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its page asks for scripts from a network
    "min_reported_time": 10,
    "within_subsection_order": "pictures.Order",
    "backreferences_dir": "api/uses",
    "doc_module": ("kpod",),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 440),
    "parallel": 2,
    "reset_modules": ("matplotlib", "pictures.look"),
}

# The looks.
html_theme = "pydata_sphinx_theme"
html_title = "kpod"
html_static_path = ["_static"]
html_css_files = ["kpod.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which a browser refuses in a folder
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_theme_options = {
    "show_prev_next": True,
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "show_toc_level": 2,
    "logo": {"text": "kpod"},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "auto_examples/index": [], "questions": [], "troubleshooting": []}
html_context = {"default_mode": "auto"}  # follow the system until the reader chooses
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def mathml(text, block):
    """A formula as MathML, which browsers draw by themselves."""
    from docutils.utils.math.latex2mathml import tex2mathml

    return tex2mathml(text, as_block=block)


def show_inline(self, node):
    from docutils import nodes

    self.body.append(mathml(node.astext(), False))
    raise nodes.SkipNode


def show_block(self, node):
    from docutils import nodes

    self.body.append(f'<div class="formula">{mathml(node.astext(), True)}</div>')
    raise nodes.SkipNode


def trim_blocks(app, doctree):
    """Doctests end in an empty line, which need not be shown."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.rawsource.rstrip()
        block.children = [nodes.Text(block.astext().rstrip())] if len(block.children) == 1 else block.children


SCIKIT_LEARNS = {"get_metadata_routing", "get_params", "set_output", "set_params"}


def skip_member(app, what, name, member, skip, options):
    """Leave out what every estimator has from scikit-learn, with links into its own documentation."""
    return True if name in SCIKIT_LEARNS or name.startswith("set_") else None


def write_live_report(app):
    """The report on the bundled wines, for readers to click through."""
    import kpod
    from kpod.datasets import load_incomplete_wine

    with TemporaryDirectory() as folder, chdir(folder):
        shutil.copy(load_incomplete_wine().filename, "wine.csv")
        analysis = kpod.analyze("wine.csv", random_state=0)
        analysis.report(title="Clusters of 178 wines").save(Path(app.srcdir) / "_static" / "wine-report.html")


def setup(app):
    app.connect("builder-inited", write_live_report)
    app.add_html_math_renderer("mathml", (show_inline, None), (show_block, None))
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", trim_blocks)
