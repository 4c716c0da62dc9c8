# SPDX-License-Identifier: BSD-3-Clause
"""Things exist once, as long as somebody has them, and nothing runs when they go."""

import gc
import sys

from phistar.algebra.interned import MIN_PURGE_ENTRIES, Interned
from phistar.algebra.symbols import H, M, phi


class Thing:
    """Something that can be referred to weakly."""


def test_one_for_a_key() -> None:
    """The first one, as long as it lives."""
    table: Interned[Thing] = Interned()
    one, other = Thing(), Thing()
    assert table.add("a", one) is one
    assert table.add("a", other) is one
    assert table.get("a") is one
    assert table.get("b") is None
    del one
    assert table.get("a") is None
    assert table.add("a", other) is other


def test_what_is_gone_is_swept_out() -> None:
    """The table stays small, and keeps what lives."""
    table: Interned[Thing] = Interned()
    kept = [table.add(("kept", i), Thing()) for i in range(10)]
    for i in range(20 * MIN_PURGE_ENTRIES):
        table.add(i, Thing())
    assert len(table) <= MIN_PURGE_ENTRIES + 1
    assert [table.get(("kept", i)) for i in range(10)] == kept


def test_nothing_runs_when_an_expression_goes() -> None:
    """A Ctrl-C in such code would be lost."""
    seen: list[str] = []
    made = H @ phi @ M @ phi.T @ H.T @ H @ phi @ M
    gc.collect()
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name))
    try:
        del made
    finally:
        sys.setprofile(None)
    assert not {"remove", "_commit_removals"} & set(seen)
