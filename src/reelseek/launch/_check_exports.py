"""What can be wrong with LD_LIBRARY_PATH in a batch script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from reelseek.launch._problems import Problem
from reelseek.launch._shell_records import Assignment, Script
from reelseek.launch._starts import (
    LD,
    before,
    exports,
    last_unknown,
    program_of,
    reaches,
    starts,
)
from reelseek.launch._words import base

GUARDED = "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
SET_IN_PYTHON = re.compile(
    r"environ\s*(\[\s*|\.(setdefault|update|__setitem__)\(.{0,20}?)['\"]?LD_LIBRARY_PATH"
    r"['\"]?\s*(\]\s*=[^=]|[,:=])"
    r"|putenv\(\s*['\"]LD_LIBRARY_PATH"
)
SYSTEM = re.compile(r"/(usr|lib|lib64)(/|$)")
OF_AN_ENVIRONMENT = re.compile(
    r"CONDA_PREFIX|VIRTUAL_ENV|/envs?/|conda|venv|site-packages|\$\{?\w*(ENV|PREFIX)\w*\}?/lib",
    re.I,
)
VERSIONED = re.compile(r"(?P<prefix>[^\s:\"'=]*)/lib/python(?P<version>3\.\d+)/")

CHANGES_MODULES = frozenset({
    "load", "add", "purge", "swap", "switch", "restore", "reset", "unload", "rm", "del", "try-load",
})  # fmt: skip
ASKS_MODULES = frozenset({
    "list", "avail", "av", "spider", "show", "whatis", "keyword", "key", "help", "save",
    "savelist", "is-loaded", "is-avail", "describe", "use", "unuse",
})  # fmt: skip


def export_problems(script: Script) -> Iterator[Problem]:
    """All that is wrong with it."""
    for rule in RULES:
        yield from rule(script)


def _exported_late(script: Script) -> Iterator[Problem]:
    begun, made, last = list(starts(script)), exports(script), last_unknown(script)
    for one in made:
        is_used = any(one in before(made, start) for start in begun)
        bare = [s for s in begun if s.command.at < one.at and not before(made, s)]
        if one.place == () and not is_used and bare and one.at > last:
            first = bare[0].command
            yield Problem(
                "export-after-start", one.line,
                f"{LD} is exported after line {first.line} has started {base(bare[0].words[0])}, "
                "which read it when it started",
                f"move line {one.line} above line {first.line}: {script.line(one.line)}",
            )  # fmt: skip


def _set_inside_python(script: Script) -> Iterator[Problem]:
    for command in script.commands:
        at = program_of(command)
        if at is None:
            continue
        codes = [(command.text_given, command.text_line)]
        if "-c" in command.words[at:-1]:
            code = command.words[command.words.index("-c", at) + 1]
            codes.append((code, command.line))
        for code, first in codes:
            if found := SET_IN_PYTHON.search(code):
                yield Problem(
                    "set-inside-python", first + code.count("\n", 0, found.start()),
                    f"{LD} is set inside Python: the linker reads it when the process starts, and "
                    "never again",
                    f"export {LD}=... above line {command.line}, in the shell",
                )  # fmt: skip


def _not_exported(script: Script) -> Iterator[Problem]:
    mine = [made for made in script.assignments if made.name == LD and made.has_value]
    if mine and not exports(script) and any(starts(script)):
        yield Problem(
            "not-exported", mine[0].line,
            f"{LD} is set and not exported: programs don't get it, unless the shell that submits "
            "has it exported",
            f"export {script.line(mine[0].line)}",
        )  # fmt: skip


def _in_subshell(script: Script) -> Iterator[Problem]:
    begun, made = list(starts(script)), exports(script)
    for one in made:
        later = [s for s in begun if s.command.at > one.at]
        lost = [s for s in later if not reaches(one.place, s.command.place)]
        if one.place and lost and not any(one in before(made, start) for start in begun):
            yield Problem(
                "export-in-subshell", one.line,
                f"{LD} is exported in a {one.place[-1].split()[0]}, whose exports end with it; "
                f"line {lost[0].command.line} doesn't get it",
                f"export it outside, above line {lost[0].command.line}",
            )  # fmt: skip


def _python_version(script: Script) -> Iterator[Problem]:
    seen = set()
    for made in [*script.assignments, *(a for c in script.commands for a in c.assignments)]:
        found = VERSIONED.search(made.expanded)
        is_here = found is not None and f"python{found['version']}" in made.value
        if found is None or not is_here or (made.line, found[0]) in seen:
            continue
        seen.add((made.line, found[0]))
        yield from _wrong_version(script, made, found["prefix"], found["version"])
    for number, line in enumerate(script.lines, 1):
        found = re.match(r"\s*for\s+\w+\s+in\s+(.*)", line)
        versioned = VERSIONED.search(found[1]) if found else None
        if versioned and (number, versioned[0]) not in seen:
            prefix = _known(script, versioned["prefix"])
            made = Assignment("", "", "", number, (), is_exported=False, has_value=True, at=0)
            yield from _wrong_version(script, made, prefix, versioned["version"])


def _known(script: Script, text: str) -> str:
    """A text with the variables that the script gives one value."""
    for made in script.assignments:
        is_plain = re.fullmatch(r"\w+", made.name)  # an array's element isn't
        if is_plain and made.has_value and "$" not in made.expanded:
            value = made.expanded.replace("\\", r"\\")
            text = re.sub(rf"\$\{{?{made.name}\b\}}?", value, text)
    return text


def _wrong_version(
    script: Script, made: Assignment, prefix: str, version: str
) -> Iterator[Problem]:
    line = script.line(made.line)
    installed = _pythons(prefix)
    if installed and version not in installed:
        right = sorted(installed)[-1]
        yield Problem(
            "python-version-in-path", made.line,
            f"{prefix} has Python {right}, and the path names python{version}",
            line.replace(f"python{version}", f"python{right}"),
        )  # fmt: skip
    elif not installed:
        yield Problem(
            "python-version-written-in", made.line,
            f"python{version} is written into the path: another environment, or this one made "
            "anew, may have another",
            line.replace(f"python{version}", "python3.*"),
        )  # fmt: skip


def _pythons(prefix: str) -> set[str]:
    try:
        found = list(Path(prefix, "lib").iterdir()) if prefix.startswith("/") else []
    except OSError:
        found = []
    return {path.name[6:] for path in found if re.fullmatch(r"python3\.\d+", path.name)}


def _unset(script: Script) -> Iterator[Problem]:
    for name, line, at in script.bare_uses:
        made = [*script.defaults, *((m.name, m.at) for m in script.assignments)]
        is_set = any(one == LD and made_at <= at for one, made_at in made)
        if name != LD or is_set or not _is_strict(script, at):
            continue
        text = script.line(line)
        mended = re.sub(r":\$(LD_LIBRARY_PATH\b|\{LD_LIBRARY_PATH\})", lambda _m: GUARDED, text)
        if mended == text:
            mended = re.sub(r"\$(LD_LIBRARY_PATH\b|\{LD_LIBRARY_PATH\})", f"${{{LD}:-}}", text)
        what = f"${LD} ends the script where it is unset, as `set -u` is on"
        yield Problem("unset-variable", line, what, mended)


def _is_strict(script: Script, at: int) -> bool:
    strict = bool(re.match(r"#!.*\s-\w*u", script.lines[0]))
    for command in script.commands:
        if command.name == "set" and command.at <= at:
            said = " ".join(command.words[1:])
            if re.search(r"(^| )-\w*u\w*( |$)|-o nounset", said):
                strict = True
            elif re.search(r"(^| )\+\w*u|\+o nounset", said):
                strict = False
    return strict


def _folders(script: Script) -> Iterator[Problem]:
    for made in _values(script):
        for folder in segments(made.expanded):
            is_plain = folder.startswith("/") and not re.search(r"[$*?\[`~]", folder)
            if is_plain and not Path(folder).is_dir() and not _is_wrong_version(folder):
                yield Problem(
                    "folder-missing", made.line, f"{folder} is not on this machine",
                    f"ls -d {folder}  # on a node",
                )  # fmt: skip


def _is_wrong_version(folder: str) -> bool:
    """Whether the path's Python is what is wrong with it, which is said elsewhere."""
    found = VERSIONED.search(folder)
    installed = _pythons(found["prefix"]) if found else set()
    return bool(found and installed and found["version"] not in installed)


def _order(script: Script) -> Iterator[Problem]:
    is_first = True
    for made in _values(script):
        parts = segments(made.value)
        wide = segments(made.expanded)
        ours = [n for n, part in enumerate(parts) if OF_AN_ENVIRONMENT.search(part)]
        ours += [n for n, part in enumerate(wide) if OF_AN_ENVIRONMENT.search(part)]
        foreign = [
            n for n, p in enumerate(parts) if n not in ours and _is_foreign(p, is_old=is_first)
        ]
        is_first = False
        if ours and foreign and min(foreign) < max(ours) and len(parts) == len(wide):
            name = parts[min(foreign)]
            yield Problem(
                "order", made.line,
                f"{name} comes before {parts[max(ours)]}: its older libraries are found first",
                f'export {LD}="{_ordered(parts, set(ours))}"',
            )  # fmt: skip


def _is_foreign(part: str, *, is_old: bool) -> bool:
    if re.match(r"\$\{?LD_LIBRARY_PATH", part):
        return is_old
    return bool(SYSTEM.match(part))


def _ordered(parts: list[str], ours: set[int]) -> str:
    old = [part for part in parts if re.match(r"\$\{?LD_LIBRARY_PATH", part)]
    first = [part for number, part in enumerate(parts) if number in ours]
    rest = [p for n, p in enumerate(parts) if n not in ours and p not in old]
    return ":".join(first + rest) + (GUARDED if old else "")


def _values(script: Script) -> Iterator[Assignment]:
    own = [made for command in script.commands for made in command.assignments]
    for made in [*script.assignments, *own]:
        if made.name == LD and made.has_value:
            yield made


def segments(value: str) -> list[str]:
    """The folders of a search path; a ``:`` inside ``${...}`` or ``$(...)`` parts none."""
    parts, depth = [""], 0
    for character in value:
        depth += (character in "{(") - (character in "})")
        if character == ":" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


def _module(script: Script) -> Iterator[Problem]:
    made = exports(script)
    for start in starts(script):
        held = [one.at for one in before(made, start) if one.at < start.command.at]
        for command in script.commands:
            if held and max(held) < command.at < start.command.at and _loads_module(command.words):
                yield Problem(
                    "module-after-export", command.line,
                    f"`{' '.join(command.words)}` may put folders before those that line "
                    f"{_line_at(made, max(held))} exports",
                    f"move line {command.line} above line {_line_at(made, max(held))}: "
                    f"{script.line(command.line)}",
                )  # fmt: skip


def _loads_module(words: tuple[str, ...]) -> bool:
    said = next((word for word in words[1:] if not word.startswith("-")), "")
    if words[:1] == ("ml",):  # `ml -gcc` unloads
        return said not in ASKS_MODULES and any(not word.startswith("--") for word in words[1:])
    return words[:1] == ("module",) and said in CHANGES_MODULES


def _line_at(made: list[Assignment], at: int) -> int:
    return next(one.line for one in made if one.at == at)


RULES: tuple[Callable[[Script], Iterator[Problem]], ...] = (
    _exported_late, _set_inside_python, _not_exported, _in_subshell, _python_version, _unset,
    _folders, _order, _module,
)  # fmt: skip
