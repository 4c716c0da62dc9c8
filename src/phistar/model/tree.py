# SPDX-License-Identifier: BSD-3-Clause
"""The tree of links: checks and traversal, without recursion, for any depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from phistar.errors import Problem, StructureWarning, close_matches
from phistar.model.components import Joint, Link, Mimic

GROUND_NAME = "(ground)"
"""Parent name of a joint whose parent is the ground."""


def _error(code: str, where: str, what: str, cure: str) -> Problem:
    return Problem("error", code, where, what, cure)


class NameHints:
    """Suggests names for the first few unknown ones: the search is slow."""

    def __init__(self, names: Iterable[str], count: int = 5) -> None:
        self.names = names
        self.left = count

    def hint(self, name: str, otherwise: str) -> str:
        """A question that names the closest match, or ``otherwise``."""
        self.left -= 1
        close = close_matches(name, self.names, 1) if self.left >= 0 else ()
        return f"Did you mean '{close[0]}'?" if close else otherwise


def structure_problems(
    links: Sequence[Link], joints: Sequence[Joint], *, single_root: bool = False
) -> list[Problem]:
    """Every reason why links and joints do not form a forest (or, with ``single_root``, a tree)."""
    problems = list(_name_problems("link", links)) + list(_name_problems("joint", joints))
    if not links:
        problems.append(_error("no-link", "", "there is no link.", "A robot needs at least one."))
    problems += _end_problems(links, joints)
    if problems:
        return problems
    problems += _parent_problems(joints)
    if not problems:
        problems += _root_problems(links, joints, single_root)
    return problems


def _name_problems(what: str, components: Sequence[Link] | Sequence[Joint]) -> Iterable[Problem]:
    counts = Counter([each.name for each in components])
    if len(counts) == len(components) and "" not in counts and GROUND_NAME not in counts:
        return
    names: set[str] = set()
    for each in components:
        if not each.name or each.name == GROUND_NAME:
            yield _error("bad-name", each.where, f"a {what} is named {each.name!r}.", "Name it.")
        elif each.name in names and counts[each.name] > 1:
            text = f'duplicate {what} name "{each.name}" ({counts[each.name]} times).'
            counts[each.name] = 1
            yield _error(f"duplicate-{what}", each.where, text, "Names must be unique.")
        names.add(each.name)


def _end_problems(links: Sequence[Link], joints: Sequence[Joint]) -> Iterable[Problem]:
    names = {link.name for link in links}
    hints = NameHints(names)
    for joint in joints:
        if joint.parent not in names and joint.parent != GROUND_NAME:
            yield _unknown_link(joint, "parent", joint.parent, hints)
        if joint.child not in names:
            yield _unknown_link(joint, "child", joint.child, hints)


def _unknown_link(joint: Joint, side: str, name: str, hints: NameHints) -> Problem:
    what = f'joint "{joint.name}" refers to unknown {side} link "{name}".'
    return _error(
        "unknown-link", joint.where, what, hints.hint(name, "Add the link or correct the name.")
    )


def _parent_problems(joints: Sequence[Joint]) -> Iterable[Problem]:
    parents: dict[str, list[Joint]] = {}
    for joint in joints:
        parents.setdefault(joint.child, []).append(joint)
        if joint.child == joint.parent:
            what = f'joint "{joint.name}" connects link "{joint.child}" to itself.'
            yield _error("self-joint", joint.where, what, "Parent and child must differ.")
    for child, parent_joints in parents.items():
        if len(parent_joints) > 1:
            names = _quoted_names(j.name for j in parent_joints)
            what = f'link "{child}" has {len(parent_joints)} parent joints: {names}.'
            cure = "A link has one parent joint; declare the other as a loop."
            yield _error("two-parents", parent_joints[1].where, what, cure)


def _quoted_names(names: Iterable[str], shown: int = 5) -> str:
    """Names in quotes, the first few of them."""
    quoted = [f'"{name}"' for name in names]
    more = f" and {len(quoted) - shown} more" if len(quoted) > shown else ""
    return ", ".join(quoted[:shown]) + more


def _root_problems(
    links: Sequence[Link], joints: Sequence[Joint], single_root: bool
) -> Iterable[Problem]:
    parent_of = {joint.child: joint for joint in joints}
    roots = [link for link in links if link.name not in parent_of]
    if single_root and len(roots) > 1:
        what = f"{len(roots)} root links found: {_quoted_names(root.name for root in roots)}."
        cure = "Exactly one link may be without a parent joint; connect the others with joints."
        yield _error("two-roots", roots[1].where, what, cure)
    for cycle in _cycles(links, parent_of):
        what = f"no root link: links {_cycle_text(cycle, ' - ')} form a cycle of joints."
        cure = "Cut the cycle: declare one of its joints as a loop."
        yield _error("cycle", parent_of[cycle[0]].where, what, cure)


def _cycle_text(cycle: list[str], arrow: str) -> str:
    """The names of a cycle and the first one again; a long one is abbreviated."""
    names = cycle if len(cycle) <= 12 else [*cycle[:6], "...", *cycle[-5:]]
    return arrow.join([*names, cycle[0]])


def _cycles(links: Sequence[Link], parent_of: Mapping[str, Joint]) -> Iterable[list[str]]:
    """Every cycle of links, from parent to child. Each link is climbed from once."""
    visited: set[str] = set()
    for link in links:
        path: list[str] = []
        name = link.name
        while name not in visited:
            visited.add(name)
            path.append(name)
            joint = parent_of.get(name)
            if joint is None:
                break
            name = joint.parent
        else:
            if name in path:
                yield path[path.index(name) :][::-1]


def depth_first(links: Sequence[Link], joints: Sequence[Joint]) -> list[tuple[str, Joint | None]]:
    """Links with the joint that carries each, parents first, depth first, siblings in file order.

    Roots (links without a parent joint, and links whose parent is the ground) come in the order of
    ``links``. Links on a cycle are not reached.
    """
    children: dict[str, list[Joint]] = {}
    parent_joint: dict[str, Joint] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
        parent_joint[joint.child] = joint
    order: list[tuple[str, Joint | None]] = []
    for root in links:
        carrier = parent_joint.get(root.name)
        if carrier is not None and carrier.parent != GROUND_NAME:
            continue
        stack: list[tuple[str, Joint | None]] = [(root.name, carrier)]
        while stack:
            entry = stack.pop()
            order.append(entry)
            child_joints = children.get(entry[0])
            if child_joints is not None:
                stack.extend([(joint.child, joint) for joint in reversed(child_joints)])
    return order


def mimic_problems(joints: Sequence[Joint]) -> list[Problem]:
    """Every mimic that follows an unknown joint, a joint of another size, or itself in a cycle."""
    followers = [joint for joint in joints if joint.mimic is not None]
    if not followers:
        return []
    by_name = {joint.name: joint for joint in joints}
    hints = NameHints(by_name)
    problems: list[Problem] = []
    for joint in followers:
        assert joint.mimic is not None
        leader = by_name.get(joint.mimic.joint)
        if leader is None:
            what = f'joint "{joint.name}" mimics unknown joint "{joint.mimic.joint}".'
            cure = hints.hint(joint.mimic.joint, "Correct the name.")
            problems.append(_error("unknown-mimic", joint.where, what, cure))
        elif joint.joint_kind.nv != 1 or leader.joint_kind.nv != 1:
            what = (
                f'joint "{joint.name}" ({joint.kind}) mimics "{leader.name}" ({leader.kind}); '
                "both must have one degree of freedom."
            )
            problems.append(_error("mimic-size", joint.where, what, "Remove the mimic."))
    return problems or _mimic_cycles(by_name)


def _mimic_cycles(by_name: dict[str, Joint]) -> list[Problem]:
    problems: list[Problem] = []
    visited: set[str] = set()
    for start in by_name.values():
        path: dict[str, None] = {}
        joint = start
        while joint.mimic is not None and joint.name not in visited and joint.name not in path:
            path[joint.name] = None
            joint = by_name[joint.mimic.joint]
        if joint.name in path:
            names = list(path)
            cycle = names[names.index(joint.name) :]
            what = f"mimic cycle {_cycle_text(cycle, ' -> ')}: no joint is independent."
            cure = "Remove <mimic> from one of them."
            problems.append(_error("mimic-cycle", joint.where, what, cure))
        visited.update(path)
    return problems


def resolve_mimics(joints: Sequence[Joint]) -> dict[str, Mimic]:
    """For each mimic joint the independent joint that it follows, with the composed law."""
    followers = [joint for joint in joints if joint.mimic is not None]
    by_name = {joint.name: joint for joint in joints} if followers else {}
    resolved: dict[str, Mimic] = {}
    for start in followers:
        path: list[Joint] = []
        joint = start
        while joint.mimic is not None and joint.name not in resolved:
            path.append(joint)
            joint = by_name[joint.mimic.joint]
        for follower in reversed(path):
            law = follower.mimic
            assert law is not None
            base = resolved.get(law.joint, Mimic(law.joint))
            factor, offset = law.multiplier * base.multiplier, law.multiplier * base.offset
            resolved[follower.name] = Mimic(base.joint, factor, offset + law.offset)
    return resolved


def zero_multiplier_problems(joints: Sequence[Joint]) -> list[Problem]:
    """Mimic joints that do not move at all."""
    return [
        Problem(
            "warning",
            "mimic-zero",
            joint.where,
            f'joint "{joint.name}" mimics "{joint.mimic.joint}" with multiplier 0: it never moves.',
            "Make it a fixed joint if that is meant.",
            StructureWarning,
        )
        for joint in joints
        if joint.mimic is not None and joint.mimic.multiplier == 0.0
    ]
