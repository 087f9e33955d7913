"""A Word file with the fewest parts."""

from __future__ import annotations

import io
import zipfile


def docx(body: str, **parts: str) -> bytes:
    """Return a file with this body, in WordprocessingML, and more parts by path."""
    schemas = "http://schemas.openxmlformats.org"
    package, office = f"{schemas}/package/2006", f"{schemas}/officeDocument/2006/relationships"
    vendor = "application/vnd.openxmlformats"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        f'<Default Extension="rels" ContentType="{vendor}-package.relationships+xml"/>'
        '<Override PartName="/word/document.xml" '
        f'ContentType="{vendor}-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r" Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{schemas}/wordprocessingml/2006/main">'
        f"<w:body>{body}</w:body></w:document>",
        **parts,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def paragraph(text: str) -> str:
    """Return a paragraph of a body."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
