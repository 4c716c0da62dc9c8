# SPDX-License-Identifier: BSD-3-Clause
"""Numbers by which loops tell what is done at a link for a column of a matrix.

They say the class of the link and how it stands to the link at which the column begins; where it is
that link, also which of its entries the column is.
"""

from __future__ import annotations

from phistar.scalar.program import LinkVariant
from phistar.scalar.robot.link_relations import AFTER, AT, BEFORE, RELATIONS

BEFORE_CODE, AFTER_CODE, AT_CODE = (RELATIONS.index(each) for each in (BEFORE, AFTER, AT))
CODES_PER_CLASS = AT_CODE + 6
"""Relations, of which that of the column's own link goes on with the entry of the column."""


def case_code(variant: LinkVariant) -> int:
    """The number of a class of links, a relation and an entry of the column."""
    kind, relation, entry = variant
    return kind * CODES_PER_CLASS + (
        AT_CODE + entry if relation == AT else RELATIONS.index(relation)
    )
