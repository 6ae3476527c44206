"""One self-contained HTML page: headings, paragraphs, tables, and figures embedded as pictures; nothing is fetched."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contact_estimation.atomic_write import atomic_write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CSS = """
body{font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;max-width:1000px;margin:2rem auto;padding:0 1rem}
p{overflow-wrap:anywhere}
h1{font-size:1.6rem;margin-bottom:.2rem}
h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}
table{display:block;overflow-x:auto;border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .5rem;text-align:right}
th{border-bottom:2px solid #444}td{border-bottom:1px solid #e4e4e4}th:first-child,td:first-child{text-align:left}
img{max-width:100%;display:block;margin:.6rem 0}figcaption{color:#555;font-size:.9rem}figure{margin:1rem 0}
code,pre{background:#f5f5f5;border-radius:4px;padding:.1rem .3rem}pre{padding:.6rem;overflow:auto}p.note{color:#555}
"""


class Page:
    """Collect the parts of a report and write them as one file.

    Args:
        title: of the page.
        subtitle: printed in grey below it.

    Example:
        >>> page = Page("Title"); page.table(["observer", "RMSE [N]"], [["ekf", 1.234]]); page.write("report.html")
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self._title = title
        self._parts = [f"<h1>{html.escape(title)}</h1>"]
        if subtitle:
            self.paragraph(subtitle, note=True)

    def heading(self, text: str) -> None:
        """Add a section heading."""
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str, note: bool = False) -> None:
        """Add a paragraph of plain text; ``note`` prints it in grey."""
        self._parts.append(f"<p{' class=note' if note else ''}>{html.escape(text)}</p>")

    def link(self, text: str, target: str) -> None:
        """Add a paragraph that leads to ``target``, a file beside the page or an address."""
        self._parts.append(f'<p><a href="{html.escape(target)}">{html.escape(text)}</a></p>')

    def code(self, text: str) -> None:
        """Add a command or listing."""
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]], digits: int = 3) -> None:
        """Add a table; floats are printed with ``digits`` significant digits."""
        head = "".join(f"<th>{html.escape(str(h))}</th>" for h in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell(c, digits))}</td>" for c in row) + "</tr>" for row in rows
        )
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def figure(self, fig: Figure, caption: str = "") -> None:
        """Embed a matplotlib figure and close it."""
        self.image(png_of(fig), caption)

    def image(self, png: bytes, caption: str = "") -> None:
        """Embed PNG bytes."""
        data = base64.b64encode(png).decode()
        self._parts.append(
            f'<figure><img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )

    def write(self, path: Path | str) -> Path:
        """Write the page to ``path``, making its folder; returns the path.

        Args:
            path: of the page.

        Raises:
            OSError: it cannot be written; an earlier page of this name is as before.
        """
        path = Path(path)
        atomic_write_text(
            path,
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(self._title)}</title>"
            f"<meta name=viewport content='width=device-width'><style>{_CSS}</style>\n"
            + "\n".join(self._parts)
            + "\n</html>\n",
        )
        return path


def png_of(fig: Figure) -> bytes:
    """Turn a matplotlib figure into PNG bytes and close it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    plt.close(fig)
    return buffer.getvalue()


def cell(value: object, digits: int = 3) -> str:
    """Print a table cell: floats with ``digits`` significant digits, without exponent; missing values as a dash."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"  # noqa: RUF001 (a dash is meant)
    if isinstance(value, float):
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    return str(value)
