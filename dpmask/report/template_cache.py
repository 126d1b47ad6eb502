"""Compiled templates on disk, beside the kernels: compiling them takes longer than drawing a small report."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from dpmask.kernels.kernel_cache import folders, writable_folder

_VERSION = 2  # goes up when the same text is compiled to something else


class TemplateCache(BytecodeCache):
    """A file for each template, found by its name and used if it was compiled from the same text."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read what is kept anywhere; the bucket stays empty where that is of another text or another Python."""
        for folder in folders():
            with suppress(OSError):
                bucket.bytecode_from_string(_file(folder, bucket).read_bytes())
                if bucket.code is not None:
                    return

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template, whole or not at all."""
        kernels = writable_folder()
        if kernels is not None:
            with suppress(OSError):
                file = _file(kernels, bucket)
                file.parent.mkdir(exist_ok=True)
                with tempfile.NamedTemporaryFile(dir=file.parent, prefix="new-", delete=False) as new:
                    new.write(bucket.bytecode_to_string())
                os.replace(new.name, file)


def _file(kernels: Path, bucket: Bucket) -> Path:
    return kernels.parent / "templates" / f"{bucket.key}-{_VERSION}"
