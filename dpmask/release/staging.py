"""Masked blocks, written to the private folder first. What is measured and judged is read back from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dpmask.engine.collection import Collection, itself
from dpmask.engine.dispatch import threads
from dpmask.engine.files import write_files
from dpmask.engine.tasks import Position, content_of
from dpmask.lake.reading import RememberedColumns, Rows
from dpmask.lake.writing import bare_schema, keep_categories, used_categories
from dpmask.release.folder import Folder, StagedFile
from dpmask.table.dropping import POSITION, with_positions
from dpmask.table.keyed_sample import StoredRows
from dpmask.table.steps import BlockObserver, DroppedRows
from dpmask.table.table import Reader, Table


class _NoObserver:
    """Summarises nothing."""

    columns: tuple[str, ...] = ()

    def __call__(self, rows: Rows) -> None:
        """No summary."""


def _nothing(left: None, right: None) -> None:
    """Merges nothing."""


class Observation(NamedTuple):
    """Summaries taken while a table is masked: of its blocks before and after, and how two of them are merged."""

    before: BlockObserver = _NoObserver()
    after: BlockObserver = _NoObserver()
    merge: Callable[[Any, Any], Any] = _nothing


def stage(
    original: Table, table: Table, columns: Sequence[str], folder: Folder, observed: Observation
) -> tuple[list[StagedFile], tuple[Any, Any]]:
    """Mask every block and write it; and the summaries of the original and of the masked table.

    One pass, and a small one before it over dictionary columns, if there are any.
    """
    positioned, names = (with_positions(table), [*columns, POSITION]) if table.origins else (table, columns)
    write = partial(_write, folder, _categories(table, columns), observed.after)
    if positioned.blocks is original.blocks:  # every record is masked by itself, and its original at hand
        blocks = positioned.select(names, observed.before)
    else:
        contents = (
            content_of(partial(_WithOriginal, one.content), two.content)
            for one, two in zip(original.blocks, positioned.blocks, strict=True)
        )
        read = partial(_with_original, observed.before, positioned.reader(names))
        blocks = Collection(positioned.blocks_with(contents), read)
    written = blocks.with_positions().transform(write)
    return write_files(written, partial(_merge_both, observed.merge), "mask", partial(_still_there, folder, table))


class _WithOriginal(NamedTuple):
    """A block's content, and that of the original block. Its repr shows nothing of either."""

    original: Any
    content: Any

    def __repr__(self) -> str:
        return "<WithOriginal>"


def _with_original(before: BlockObserver, read: Reader, both: _WithOriginal, position: Position) -> tuple[Any, Rows]:
    return before(both.original.read(before.columns)), read(both.content, position)


def _merge_both(merge: Callable[[Any, Any], Any], left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    return merge(left[0], right[0]), merge(left[1], right[1])


def _still_there(folder: Folder, table: Table, known: dict[int, StagedFile]) -> dict[int, StagedFile]:
    """Of the files that an earlier run staged, by block, those that are there as they were."""
    origins: Sequence[DroppedRows | None] = table.origins or [None] * len(table.blocks)
    asked = [table.blocks[number]._replace(content=(file, origins[number])) for number, file in known.items()]
    found = Collection(asked).with_positions().map(partial(_is_there, folder), "staged before")
    return {number: file for (number, file), there in zip(known.items(), found, strict=True) if there}


def _is_there(folder: Folder, staged: tuple[StagedFile, DroppedRows | None], position: Position) -> bool:
    file, origin = staged
    return folder.still_there(file, position, None if origin is None else origin.first + origin.kept)


def _categories(table: Table, columns: Sequence[str]) -> dict[str, frozenset[int]]:
    """The codes in use over the whole table: others must not be released."""
    coded = [name for name in columns if table.is_dictionary(name)]
    return table.select(coded).reduce(used_categories, _either, "categories") if coded else {}


def _either(left: dict[str, frozenset[int]], right: dict[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    return {name: left[name] | right[name] for name in left}


def _write(
    folder: Folder,
    categories: Mapping[str, frozenset[int]],
    after: BlockObserver,
    masked: tuple[Any, Rows],
    position: Position,
) -> tuple[StagedFile, tuple[Any, Any]]:
    """Write one block; and the summaries of it before and after masking."""
    before, rows = masked
    positions = None
    if POSITION in rows.schema.names:
        positions, rows = rows.column(POSITION).to_numpy(), rows.drop_columns([POSITION])
    summary = after(rows.select(after.columns))
    return folder.write(keep_categories(rows, categories), position, positions), (before, summary)


def staged_table(table: Table, columns: Sequence[str], folder: Folder) -> Table:
    """The staged blocks as a table with the blocks of the masked one, every record back at its position."""
    contents = [
        folder.content(position, block.rows) for position, block in zip(table.positions, table.blocks, strict=True)
    ]
    schema = bare_schema(table.masked_schema, columns)
    return Table(schema, table.blocks_with(contents), table.nullable, origins=table.origins)


def few_in_memory(table: Table) -> Table:
    """The table with its blocks in memory, where they are fewer than threads: every measure reads them again.

    Each thread has a block in memory in any case.
    """
    if len(table.blocks) >= threads():
        return table
    rows = table.select(table.schema.names).persist(itself, "measure: read")
    return replace(table, blocks=table.blocks_with(rows.as_contents(StoredRows)))


def few_remembered(lake: Table) -> Table:
    """The same for the original, column by column as measures read them: identifiers stay where they are."""
    if len(lake.blocks) >= threads():
        return lake
    return replace(lake, blocks=lake.blocks_with([RememberedColumns(block.content) for block in lake.blocks]))
