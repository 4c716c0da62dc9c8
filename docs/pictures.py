# SPDX-License-Identifier: BSD-3-Clause
"""Pictures that pages draw: their blocks of Python are run when the pages are built.

A page that draws refers to ``_generated/pictures/NAME.png``, and a block of it saves ``NAME.png``
into the current folder.
"""

import contextlib
import re
from pathlib import Path

import page_script

HERE = Path(__file__).parent
PICTURE = re.compile(r"\]\(_generated/pictures/(\w+\.png)\)")


def names(text: str) -> list[str]:
    """Files of the pictures that a page shows, in order."""
    return PICTURE.findall(text)


def draw(folder: Path) -> None:
    """Run the pages that show pictures, in a folder where these are left.

    Raises:
        FileNotFoundError: A page shows a picture that none of its blocks draws.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(HERE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if not (wanted := names(text)):
            continue
        with contextlib.chdir(folder), contextlib.redirect_stdout(None):
            page_script.run_all(page)
        for name in wanted:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{page.name} shows {name}, which none of its blocks draws")
