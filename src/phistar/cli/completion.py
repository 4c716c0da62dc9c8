# SPDX-License-Identifier: BSD-3-Clause
"""``phistar completion SHELL``: a script that completes commands, options and names.

The script knows all words; no Python runs when somebody presses Tab.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from phistar.cli.command_words import CommandWords, WordPlace, command_words

EXAMPLE = "phistar completion bash > ~/.local/share/bash-completion/completions/phistar"
HOMES = {
    "bash": "~/.local/share/bash-completion/completions/phistar",
    "zsh": "a folder of $fpath, as _phistar",
    "fish": "~/.config/fish/completions/phistar.fish",
}
"""Where shells look for the script."""
_GENERAL = ("--help", "--version")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    text = "; ".join(f"{shell}: {home}" for shell, home in HOMES.items())
    text = f"the shell, bash, zsh or fish. It looks for the script in {text}"
    parser.add_argument("shell", metavar="SHELL", choices=tuple(HOMES), help=text)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print(script(options.shell))
    return 0


def script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    return _SCRIPTS[shell](tuple(command_words()))


_BASH_PATHS = {"files": "-f", "folders": "-d", "": ""}


def _bash(commands: Sequence[CommandWords]) -> str:
    def choice(place: WordPlace) -> str:
        return f"words={_quoted(' '.join(place.words))} paths={_BASH_PATHS[place.paths]}"

    first = " ".join((*(command.name for command in commands), *_GENERAL))
    return f"""# Completion of phistar for bash, made by: phistar completion bash
_phistar() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=${{COMP_WORDS[1]}} words= paths= flags= found
    if ((COMP_CWORD == 1)); then
        words={_quoted(first)}
    else
        case "$command $before" in
{_indented(_value_rows(commands, choice), 8)}
        *)
            case "$command" in
{_indented(_name_rows(commands, choice, '"{}"'), 12)}
            esac
            if [[ $word == -* || -z $words$paths ]]; then
                words=$flags paths=
            fi
            ;;
        esac
    fi
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(compgen -W "$words" -- "$word"; [[ $paths ]] && compgen "$paths" -- "$word")
}}
complete -o filenames -F _phistar phistar"""


_ZSH_PATHS = {"files": "_files", "folders": "'_files -/'", "": ""}


def _zsh(commands: Sequence[CommandWords]) -> str:
    def choice(place: WordPlace) -> str:
        return f"names=({' '.join(place.words)}) paths={_ZSH_PATHS[place.paths]}"

    first = "\n".join(f"        {_quoted(f'{c.name}:{c.summary}')}" for c in commands)
    return f"""#compdef phistar
# Completion of phistar for zsh, made by: phistar completion zsh
_phistar() {{
    local -a names flags commands
    local paths=
    if ((CURRENT == 2)); then
        commands=(
{first}
        )
        _describe command commands
        compadd -- {" ".join(_GENERAL)}
        return
    fi
    case "$words[2] $words[CURRENT-1]" in
{_indented(_value_rows(commands, choice), 4)}
    *)
        case "$words[2]" in
{_indented(_name_rows(commands, choice, "({})"), 8)}
        esac
        if [[ $PREFIX == -* || -z "$names$paths" ]]; then
            names=($flags) paths=
        fi
        ;;
    esac
    compadd -a -- names
    if [[ -n $paths ]]; then
        ${{=paths}}
    fi
}}
_phistar "$@\""""


def _value_rows(
    commands: Iterable[CommandWords], choice: Callable[[WordPlace], str]
) -> Iterator[str]:
    """Cases of what follows an option."""
    for command in commands:
        for flag, place in command.values.items():
            yield f'"{command.name} {flag}") {choice(place)} ;;'


def _name_rows(
    commands: Iterable[CommandWords], choice: Callable[[WordPlace], str], flags: str
) -> Iterator[str]:
    """Cases of what stands elsewhere."""
    for command in commands:
        known = flags.format(" ".join(command.flags))
        yield f"{command.name}) {choice(command.names)} flags={known} ;;"


def _fish(commands: Sequence[CommandWords]) -> str:
    return "\n".join(
        (
            "# Completion of phistar for fish, made by: phistar completion fish",
            "complete -c phistar -f",
            *chain.from_iterable(map(_fish_command, commands)),
        )
    )


def _fish_command(command: CommandWords) -> Iterator[str]:
    """Lines about a command: itself, its options, the names it takes."""
    name, what = command.name, _quoted(command.summary)
    yield f"complete -c phistar -n __fish_use_subcommand -a {name} -d {what}"
    here = f"complete -c phistar -n '__fish_seen_subcommand_from {name}'"
    for flag, text in command.flags.items():
        letters = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
        value = f" -x{_fish_place(command.values[flag])}" if flag in command.values else ""
        yield f"{here} {letters}{value} -d {_quoted(text)}"
    if place := _fish_place(command.names):
        yield here + place


def _fish_place(place: WordPlace) -> str:
    """Words, files or folders as options of ``complete``."""
    words = " ".join((*place.words, *_FISH_PATHS[place.paths]))
    return f' -a "{words}"' if words else ""


_FISH_PATHS: Mapping[str, Sequence[str]] = {
    "files": ("(__fish_complete_path)",),
    "folders": ("(__fish_complete_directories)",),
    "": (),
}


def _quoted(text: str) -> str:
    """A word in single quotes that bash, zsh and fish read alike."""
    return "'" + text.replace("\\", "").replace("'", "’") + "'"


def _indented(lines: Iterable[str], columns: int) -> str:
    return "\n".join(" " * columns + line for line in lines)


_SCRIPTS: Mapping[str, Callable[[Sequence[CommandWords]], str]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
