# SPDX-License-Identifier: BSD-3-Clause
"""References: a paper and a place in it, as a short citation or as BibTeX."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A publication.

    Attributes:
        key: Short name used in the code and in BibTeX.
        authors: Separated by " and ".
        title, venue: As printed.
        year: Of publication.
        detail: Further BibTeX fields, e.g. ``{"volume": "8"}``.
    """

    key: str
    authors: str
    title: str
    venue: str
    year: int
    detail: tuple[tuple[str, str], ...] = ()
    kind: str = "article"

    @property
    def short(self) -> str:
        """Family names and year, e.g. ``Jain & Rodriguez 1995``."""
        names = [author.split()[-1] for author in self.authors.split(" and ")]
        return f"{' & '.join(names)} {self.year}"

    def bibtex(self) -> str:
        """The BibTeX entry."""
        venue = "journal" if self.kind == "article" else "booktitle"
        fields = [("author", self.authors), ("title", f"{{{self.title}}}"), (venue, self.venue)]
        fields += [("year", str(self.year)), *self.detail]
        rows = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields)
        return f"@{self.kind}{{{self.key},\n{rows}\n}}"

    def eq(self, number: str) -> Ref:
        """An equation, e.g. ``eq("(42)")`` or ``eq("(49)-(51)")``."""
        return Ref(self, number if number.startswith("(") else f"({number})")

    def at(self, place: str) -> Ref:
        """Any other location: a section, lemma, identity, table or algorithm."""
        return Ref(self, place)


@dataclass(frozen=True)
class Ref:
    """A place in a paper."""

    paper: Paper
    place: str

    def __str__(self) -> str:
        return f"{self.paper.short}, {self.place}"


RK92 = Paper(
    "RodriguezKreutz1992",
    "G. Rodriguez and K. Kreutz-Delgado",
    "Spatial Operator Factorization and Inversion of the Manipulator Mass Matrix",
    "IEEE Transactions on Robotics and Automation",
    1992,
    (("volume", "8"), ("number", "1"), ("pages", "65--76")),
)
JR93 = Paper(
    "JainRodriguez1993",
    "A. Jain and G. Rodriguez",
    "Linearization of Manipulator Dynamics Using Spatial Operators",
    "IEEE Transactions on Systems, Man, and Cybernetics",
    1993,
    (("volume", "23"), ("number", "1"), ("pages", "239--248")),
)
JR95 = Paper(
    "JainRodriguez1995",
    "A. Jain and G. Rodriguez",
    "Diagonalized Lagrangian Robot Dynamics",
    "IEEE Transactions on Robotics and Automation",
    1995,
    (("volume", "11"), ("number", "4"), ("pages", "571--584")),
)
FO00 = Paper(
    "FeatherstoneOrin2000",
    "R. Featherstone and D. Orin",
    "Robot Dynamics: Equations and Algorithms",
    "IEEE International Conference on Robotics and Automation",
    2000,
    (("volume", "1"), ("pages", "826--834")),
    "inproceedings",
)

PAPERS = {paper.key: paper for paper in (RK92, JR93, JR95, FO00)}
"""The papers that phistar implements, by key."""
