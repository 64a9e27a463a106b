"""Results that read as text, in a notebook as where they are printed."""

from __future__ import annotations

import html


class ReadsAsText:
    """A result whose notebook view is what `print` shows."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
