"""From the content of a page to one HTML file: the templates, their filters, and the page as an object."""

from __future__ import annotations

import html
import os
import re
from abc import ABC, abstractmethod
from importlib.resources import files
from typing import Any

from kpod import __version__
from kpod._common.errors import printable
from kpod._common.sentences.formatting import number, percent, some
from kpod._files.atomic import check_writable, written_whole

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, halves of characters, and what turns the direction of writing around."""


class Page(ABC):
    """A page in one self-contained HTML file; a notebook shows it."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The whole page."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        check_writable(path)
        page = self.html.encode()
        with written_whole(path) as file:
            file.write(page)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own, so that neither styles the other."""
        page = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{page}" style="width:100%;height:48rem;border:0" title="kpod report"></iframe>'
        )


def rendered(template: str, content: dict[str, Any]) -> str:
    """A template of this folder with its content, its style and its script."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["count"] = lambda value: f"{value:,.0f}" if value == int(value) else number(value)
    environment.filters["percent"] = percent
    environment.filters["some"] = some
    environment.filters["options"] = unbroken_options
    environment.filters["breakable"] = breakable
    page = environment.get_template(template).render(
        content,
        version=__version__,
        script=Markup(resource("report.js")),
        style=Markup(resource("report.css")),
    )
    return HIDDEN.sub(lambda found: printable(found[0]), page)


def unbroken_options(text: str) -> Any:
    """Text as HTML, with options of the command line kept on one line."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(--[a-z][a-z-]*)", r'<span class="option">\1</span>', str(escape(text))))


def breakable(name: str) -> Any:
    """A name as HTML, which a narrow column breaks between its words and not within them."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([_./])(?=.)", r"\1<wbr>", str(escape(name))))


def resource(name: str) -> str:
    """A file of this folder: the template, its style or its script."""
    return (files("kpod") / "_report" / name).read_text("utf-8")
