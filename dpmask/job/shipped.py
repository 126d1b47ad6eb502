"""The ready jobs and cluster files that come with dpmask, and copies of them to change."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dpmask.errors import AccessError, TargetError

_SHIPPED = ("jobs", "cluster_config")


class Copied(NamedTuple):
    """A file that was copied, or was there already and was left alone."""

    path: str
    written: bool


def shipped_root() -> Path:
    """Where the files are: in the package, if it was installed from a wheel, else beside it."""
    package = Path(__file__).parents[1]
    return package / "shipped" if (package / "shipped").is_dir() else package.parent


def copy_shipped(folder: str) -> Iterator[Copied]:
    """Copy all of them into a folder, file by file; nothing is overwritten."""
    root, target = shipped_root(), Path(folder)
    for source in sorted(path for name in _SHIPPED for path in (root / name).rglob("*")):
        if not source.is_file() or "__pycache__" in source.parts:
            continue
        path = target / source.relative_to(root)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = not path.exists() and not path.is_symlink()
            if fresh:
                shutil.copy(source, path)
        except PermissionError:
            raise AccessError(f"{path}: no permission to write it. Check the rights of this user.") from None
        except OSError as error:
            raise TargetError(f"{path}: cannot be written ({error.strerror}). Choose another folder.") from None
        yield Copied(str(path), fresh)
