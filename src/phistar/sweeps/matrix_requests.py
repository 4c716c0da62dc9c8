# SPDX-License-Identifier: BSD-3-Clause
"""Requests about the matrix of an operator: what is wanted, and the programs that may answer it.

    Full()        the whole matrix            Row(i), Col(j)   some of its rows or columns of blocks
    Diag()        its diagonal blocks         Block(i, j)      single blocks
    Apply()       the operator times a vector

A program applies the operator to unit columns; ``support`` finds what of that is needed. Programs:

    columns  the expression as it stands, every column an application of its own: O(n) each
    walks    multiplied out and split, so that no word is an outward sum after which comes an inward
             one, or the other way round. φMφ* = φR + Rφ* - R and ψMφ* = ψP + Pφ* - P leave single
             sums, whose blocks are walks from a link to its ancestors. ψ*H*D⁻¹Hψ has the blocks
             ψ*(i,c) Υ(c) ψ(c,j), c the nearest common ancestor of i and j: a walk inward to c, one
             outward from c. Diagonal blocks are read off Υ or R without any walk.

Either may also run on the adjoint and be transposed. What is cheapest depends on robot and request,
so it is chosen by counting operations: ``sweeps.matrix_plans``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from phistar.algebra.identities import CORE, DEFINITIONS, Identity, with_adjoints
from phistar.algebra.ir import Adjoint, Expr, Inverse, Let, Sum, Symbol, add
from phistar.algebra.phases import IDENTITIES
from phistar.algebra.rewrite import Rewriter
from phistar.algebra.spaces import GROUND_SPACES, ONE, Space
from phistar.algebra.symbols import D, H, phi, psi
from phistar.algebra.traverse import nodes, substitute
from phistar.algebra.words import Word, WordSum, to_words, word_count, word_expr
from phistar.errors import LoweringError
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.lower import ARGUMENTS, common_ancestor_product, lower
from phistar.sweeps.schedule import Schedule, schedule
from phistar.sweeps.split_matrices import SplitMatrices
from phistar.sweeps.verify import verified
from phistar.thresholds import POLICY

BlockIndices = int | tuple[int, ...]


@dataclass(frozen=True)
class Apply:
    """The operator times a vector that is given from outside."""


@dataclass(frozen=True)
class Full:
    """Every block."""


@dataclass(frozen=True)
class Diag:
    """The blocks on the diagonal."""


@dataclass(frozen=True)
class Block:
    """The blocks of some rows and columns, by number of joint, link or frame."""

    row: BlockIndices
    column: BlockIndices


@dataclass(frozen=True)
class Row:
    """Rows of blocks."""

    row: BlockIndices


@dataclass(frozen=True)
class Col:
    """Columns of blocks."""

    column: BlockIndices


Request = Apply | Full | Diag | Block | Row | Col


@dataclass(frozen=True)
class MatrixTerm:
    """One stream of a program that adds to the matrix.

    Attributes:
        stream: Its rows at each link.
        kind: ``"plain"``; ``"half"``: symmetric, so that one triangle is enough; ``"mirror"``:
            stands for itself and its adjoint.
    """

    stream: int
    kind: str


@dataclass(frozen=True, eq=False)
class MatrixCandidate:
    """Expressions whose sum is an operator; a program is made of them applied to unit columns.

    Attributes:
        name, codomain, domain, transposed: As for ``MatrixForm``.
        terms: Expressions by kind, see ``MatrixTerm``.
    """

    name: str
    codomain: Space
    domain: Space
    terms: Mapping[str, Expr]
    transposed: bool = False

    def lowered(self) -> StreamProgram:
        """Its streams, an output for each kind of term."""
        argument = ARGUMENTS[self.domain]
        return lower({kind: _times(part, argument) for kind, part in self.terms.items()})

    def scheduled(self, program: StreamProgram) -> MatrixForm:
        """The form of its streams."""
        parts = tuple(MatrixTerm(program.outputs[kind], kind) for kind in self.terms)
        sweeps = verified(schedule(program))
        return MatrixForm(self.name, self.codomain, self.domain, sweeps, parts, self.transposed)


@dataclass(frozen=True, eq=False)
class MatrixForm:
    """A program that gives the matrix of an operator, or parts of it.

    Attributes:
        name: ``"apply"``, ``"columns"`` or ``"propagation"``.
        codomain, domain: Spaces of its rows and columns.
        schedule: Its passes.
        parts: Streams that add up to the matrix.
        transposed: Whether it is made for the adjoint.
    """

    name: str
    codomain: Space
    domain: Space
    schedule: Schedule
    parts: tuple[MatrixTerm, ...]
    transposed: bool = False

    @property
    def argument(self) -> str:
        """Name of the leaf that holds the unit columns."""
        return ARGUMENTS[self.domain].name


InnovationForms = tuple[Sequence[MatrixForm], Mapping[str, Sequence[MatrixForm]]]
"""Forms of a left matrix, and by name of right ones."""


@dataclass(frozen=True, eq=False)
class LoweredBundle:
    """What is wanted together.

    Attributes:
        vectors: A program whose outputs are joint vectors.
        matrices: For each matrix over the joints the forms that give it.
        products: Matrices that are minus the product of two others; of these the right ones are
            not outputs.
        split: Matrices that come from single walks along branches; the same ones as the others, if
            there are any: either way will do.
        factors: Forms of L⁻¹ and D⁻¹, if the left matrix of all products is L⁻*D⁻¹L⁻¹.
        innovations: Forms of L⁻*D⁻¹, and of what minus its product with gives matrices, by name.
    """

    vectors: Schedule
    matrices: Mapping[str, Sequence[MatrixForm]]
    products: Mapping[str, tuple[str, str]]
    split: SplitMatrices | None = None
    factors: tuple[Sequence[MatrixForm], Sequence[MatrixForm]] | None = None
    innovations: InnovationForms | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the matrices that are given."""
        hidden = {right for _, right in self.products.values()}
        walked = () if self.split is None else (self.split.inverse, *self.split.matrices)
        shown = (name for name in self.matrices if name not in hidden)
        return tuple(dict.fromkeys((*shown, *self.products, *walked)))


def transpose_request(request: Request) -> Request:
    """The request to the adjoint that gives the same, transposed."""
    if isinstance(request, Block):
        return Block(request.column, request.row)
    if isinstance(request, Row):
        return Col(request.row)
    return Row(request.column) if isinstance(request, Col) else request


def matrix_forms(expr: Expr, request: Request) -> tuple[MatrixForm, ...]:
    """The programs that can answer a request about an operator.

    Raises:
        LoweringError: The expression is a vector, its matrix has no diagonal, or a part of it has
            no sweep form.
    """
    return tuple(each.scheduled(each.lowered()) for each in matrix_candidates(expr, request))


def matrix_candidates(expr: Expr, request: Request) -> tuple[MatrixCandidate, ...]:
    """The expressions of those programs."""
    check_request(expr, request)
    if isinstance(request, Apply):
        return (MatrixCandidate("apply", expr.codomain, expr.domain, {"plain": expr}),)
    pairs = isinstance(request, (Full, Diag, Block))
    found = [] if isinstance(request, Row) else _candidates(expr, pairs)
    if not isinstance(request, Col) and not (found and expr.T is expr):
        found += [replace(each, transposed=True) for each in _candidates(expr.T, pairs)]
    return tuple(found)


def check_request(expr: Expr, request: Request) -> None:
    """Refuse what is no operator, takes what cannot be given, or has no such part.

    Raises:
        LoweringError: So it is.
    """
    if expr.domain is ONE:
        raise LoweringError(f"{expr} is a vector; only operators have blocks, rows and columns")
    if expr.domain not in ARGUMENTS:
        raise LoweringError(f"{expr} takes {expr.domain.reads}, which cannot be given to sweeps")
    if expr.codomain in GROUND_SPACES and not isinstance(request, Apply):
        raise LoweringError(
            f"{expr} gives {expr.codomain.reads}, which have no rows at links; apply it to vectors"
        )
    if isinstance(request, Diag) and expr.codomain not in (expr.domain, expr.domain.dual):
        raise LoweringError(
            f"{expr} maps {expr.domain.reads} to {expr.codomain.reads}: no diagonal blocks"
        )


def _candidates(expr: Expr, pairs: bool) -> list[MatrixCandidate]:
    spaces = (expr.codomain, expr.domain)
    whole = "half" if pairs and expr.T is expr else "plain"
    found = [MatrixCandidate("columns", *spaces, {whole: expr})]
    split = _split_words(expr)
    if split is not None:
        sums = _by_symmetry(split) if pairs else {"plain": split.expr()}
        found.append(MatrixCandidate("propagation", *spaces, sums))
    return found


def _times(operator: Expr, x: Expr) -> Expr:
    """An operator times a vector, term by term."""
    if not isinstance(operator, Sum):
        return operator @ x
    return add(((c, e @ x) for c, e in operator.terms), operator.codomain, ONE)


# -- walks: multiplied out, split, and sorted into words and their adjoints

_ROWS_THAT_UNDO_SPLITS = frozenset({"riccati", "hinge_inertia"})
"""Rows of the core that stay out: they would undo the splits."""
_COMMON_ANCESTOR = Identity(
    "common_ancestor_product",
    psi.T @ H.T @ D.inv @ H @ psi,
    common_ancestor_product,
    "the blocks of ψ*H*D⁻¹Hψ",
)
_SINGLE_SOURCE_SYMBOLS = frozenset({"E_phi", "K"})
"""Operators that move all of a link to its parent: a single source stays one."""


_SPLIT_NAMES = ("composite_split", "gyroscopic_split", "riccati_mixed")
_SPLIT_ROWS = [row for row in IDENTITIES if row.name in _SPLIT_NAMES]
_SIMPLIFYING_ROWS = [row for row in CORE if row.name not in _ROWS_THAT_UNDO_SPLITS]
_PHASES = (
    Rewriter(with_adjoints((*_SPLIT_ROWS, *DEFINITIONS, *_SIMPLIFYING_ROWS))),
    Rewriter((_COMMON_ANCESTOR,)),
)
"""Meetings last: before that, what stands beside them may still cancel."""


def _split_words(expr: Expr) -> WordSum | None:
    """The words of an expression after the splits; None if there are too many."""
    while lets := _operator_lets(expr):
        expr = substitute(expr, lets)
    if word_count(expr) > POLICY.max_words_split:
        return None
    words = to_words(expr)
    for phase in _PHASES:
        words = phase.normal_form(words)
    if not len(words):
        raise LoweringError("the operator is zero whatever the robot does")
    terms: dict[Word, Fraction] = {}
    for word, factor in words.terms.items():
        safe = _with_single_sources(word)
        terms[safe] = terms.get(safe, Fraction(0)) + factor
    return WordSum(words.codomain, words.domain, terms)


def _operator_lets(expr: Expr) -> dict[Expr, Expr]:
    return {e: e.value for e in nodes([expr]) if isinstance(e, Let) and e.domain is not ONE}


def _with_single_sources(word: Word) -> Word:
    """A word whose meetings all have single links as sources; the others written out again."""
    result: list[Expr] = []
    single = True
    for atom in reversed(word):
        if atom is common_ancestor_product and not single:
            result += reversed((psi.T, H.T, D.inv, H, psi))
            continue
        result.append(atom)
        single = single and atom is not common_ancestor_product and _keeps_single(atom)
    return tuple(reversed(result))


def _keeps_single(atom: Expr) -> bool:
    inner, adjoint = atom, False
    while isinstance(inner, (Adjoint, Inverse)):
        adjoint ^= isinstance(inner, Adjoint)
        inner = inner.of
    if not isinstance(inner, Symbol):
        return True
    return inner.sparsity.name == "DIAGONAL" or (
        inner.name in _SINGLE_SOURCE_SYMBOLS and not adjoint
    )


def _by_symmetry(words: WordSum) -> dict[str, Expr]:
    """Words sorted by whether they are symmetric, come with their adjoint, or stand alone."""
    sorted_words: dict[str, list[tuple[Fraction, Word]]] = {}
    left = dict(words.terms)
    while left:
        word, factor = left.popitem()
        adjoint, sign = _adjoint(word, words.domain)
        if adjoint == word and sign == 1:
            kind = "half"
        elif left.get(adjoint) == sign * factor:
            del left[adjoint]
            kind = "mirror"
            if _inward(adjoint) > _inward(word):
                word, factor = adjoint, sign * factor
        else:
            kind = "plain"
        sorted_words.setdefault(kind, []).append((factor, word))
    return {
        kind: add(
            ((c, word_expr(w, words.domain)) for c, w in chosen), words.codomain, words.domain
        )
        for kind, chosen in sorted_words.items()
    }


def _adjoint(word: Word, domain: Space) -> tuple[Word, Fraction]:
    ((adjoint, sign),) = to_words(word_expr(word, domain).T).terms.items()
    return adjoint, sign


def _inward(word: Word) -> int:
    return sum((atom in (phi, psi)) - (atom in (phi.T, psi.T)) for atom in word)
