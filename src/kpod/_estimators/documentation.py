"""Where an estimator is described: scikit-learn's diagrams in notebooks link to it."""

from __future__ import annotations

SITE = ""  # where the pages of docs/ are, once they have an address: "https://.../"


class DocumentedMixin:
    """An estimator with a page of its own in the reference."""

    _doc_link_module = "kpod"

    @property
    def _doc_link_template(self) -> str:
        return f"{SITE}api/generated/{{estimator_module}}.{{estimator_name}}.html" if SITE else ""
