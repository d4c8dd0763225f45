"""A bash script as a list of commands and assignments, read by tree-sitter and never run."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reelseek.errors import DependencyError
from reelseek.launch._shell_records import Assignment, Command, Place, Script
from reelseek.launch._words import base

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

GUARDS = re.compile(r"\$\{(\w+):?[-+]|-v\s+[\"']?(\w+)")
"""What asks whether a variable is set, and doesn't fail where it isn't."""
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
UNBRACED = re.compile(r"(?<![\\$])\$([A-Za-z_]\w*)")
"""The grammar (0.25) parts ``$A:$B`` before the second ``$``, and ``${A}:${B}`` nowhere."""
MAX_VALUE = 4096
"""Characters of a variable's value that are followed."""
MAX_DEPTH = 60
"""Of constructs inside each other; deeper ones are not looked into."""
SHELLS = ("bash", "sh", "dash")


def read_script(text: str) -> Script:
    """Read a script's commands in order.

    Raises:
        DependencyError: tree-sitter or its bash grammar isn't installed.
    """
    lines = text.split("\n")
    script = Script(lines)
    for number, line in enumerate(lines, 1):
        if line.startswith("#SBATCH"):
            script.sbatch.append((number, line.removeprefix("#SBATCH").strip()))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    _Reader(script, _parser()).read(text, 0, ())
    _follow_calls(script)
    return script


def _parser() -> Parser:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError as exc:
        raise DependencyError(
            "reading a script needs tree-sitter and its bash grammar",
            remedy="Run `pip install 'reelseek[slurm]'`",
            detail=str(exc),
        ) from exc
    return Parser(Language(tree_sitter_bash.language()))


class _Reader:
    """Walks a syntax tree and notes what it finds in the script."""

    def __init__(self, script: Script, parser: Parser) -> None:
        self.script, self.parser = script, parser
        self.values: dict[str, str] = {}
        self.arrays: dict[str, tuple[str, ...]] = {}
        self.count = 0
        self.function = ""
        self.depth = 0
        self.branches = 0

    def read(self, text: str, offset: int, place: Place) -> None:
        """Read a text whose first line is the script's line ``offset + 1``."""
        self.offset = offset
        data = UNBRACED.sub(r"${\1}", text).encode("utf-8", "surrogateescape")
        self.visit(self.parser.parse(data).root_node, place)

    def visit(self, node: Node, place: Place) -> None:
        self.depth += 1
        if self.depth <= MAX_DEPTH:
            getattr(self, f"on_{node.type}", self.on_other)(node, place)
        self.depth -= 1

    def on_other(self, node: Node, place: Place) -> None:
        if node.is_missing:
            self.script.not_understood.append(self.line(node))
        for child in node.children:
            self.visit(child, place)

    def on_ERROR(self, node: Node, place: Place) -> None:  # noqa: N802  # tree-sitter's name
        self.script.not_understood.append(self.line(node))
        self.on_other(node, place)

    def on_subshell(self, node: Node, place: Place) -> None:
        self.on_other(node, (*place, f"subshell {self.line(node)}.{node.start_byte}"))

    def on_command_substitution(self, node: Node, place: Place) -> None:
        self.on_other(node, (*place, f"substitution {self.line(node)}.{node.start_byte}"))

    on_process_substitution = on_command_substitution

    def on_pipeline(self, node: Node, place: Place) -> None:
        for child in node.children:
            self.visit(child, (*place, f"pipeline {self.line(child)}.{child.start_byte}"))

    def on_if_statement(self, node: Node, place: Place) -> None:
        self.branches += 1
        self.on_guarded(node, place)
        self.branches -= 1

    on_case_statement = on_if_statement

    def on_guarded(self, node: Node, place: Place) -> None:
        """``if``, ``elif``, ``while``, ``case``, ``&&``: what stands first may ask for the rest."""
        uses = len(self.script.bare_uses)
        self.on_other(node, place)
        first = node.children[0 if node.type == "list" else 1]
        self.forget_uses(uses, {a or b for a, b in GUARDS.findall(_text(first))})

    on_elif_clause = on_while_statement = on_list = on_guarded

    def forget_uses(self, first: int, names: Collection[str]) -> None:
        """Leave out the uses from number ``first`` on that don't fail."""
        new = [use for use in self.script.bare_uses[first:] if use[0] not in names]
        self.script.bare_uses[first:] = new

    def on_function_definition(self, node: Node, place: Place) -> None:
        before, self.function = self.function, _text(node.child_by_field_name("name"))
        self.on_other(node, place)
        self.function = before

    def on_simple_expansion(self, node: Node, place: Place) -> None:
        self.script.bare_uses.append((_text(node).strip("${}"), self.line(node), self.count))

    def on_expansion(self, node: Node, place: Place) -> None:
        if re.fullmatch(r"\$\{\w+\}", _text(node)):
            self.on_simple_expansion(node, place)
            return
        uses = len(self.script.bare_uses)
        self.on_other(node, place)
        if guarded := re.match(r"\$\{(\w+):?([+=])", _text(node)):
            self.forget_uses(uses, [guarded[1]])
            if guarded[2] == "=":
                self.script.defaults.append((guarded[1], self.count))

    def on_text(self, node: Node, place: Place) -> None:
        self.script.text_lines.update(range(self.line(node), self.last_line(node) + 1))
        self.on_other(node, place)

    on_heredoc_body = on_text

    def on_string(self, node: Node, place: Place) -> None:
        self.script.text_lines.update(range(self.line(node) + 1, self.last_line(node) + 1))
        self.on_other(node, place)

    on_raw_string = on_string

    def on_variable_assignment(self, node: Node, place: Place) -> None:
        self.on_other(node, place)
        self.script.assignments.append(self.assignment(node, place, is_exported=False))

    def on_declaration_command(self, node: Node, place: Place) -> None:
        is_exported = _is_export(_text(node).split())
        for child in node.named_children:
            quoted = re.fullmatch(r"(\w+)=(.*)", _unquoted(child), re.DOTALL)
            if child.type == "variable_assignment":
                self.on_other(child, place)
                made = self.assignment(child, place, is_exported=is_exported)
                self.script.assignments.append(made)
            elif child.type == "variable_name" and is_exported:
                self.note(_text(child), None, node, place, is_exported=True)
            elif quoted:  # export "name=value"
                self.on_other(child, place)
                self.note(quoted[1], quoted[2], node, place, is_exported=is_exported)

    def note(
        self, name: str, value: str | None, node: Node, place: Place, *, is_exported: bool
    ) -> None:
        """Note an assignment whose value the tree doesn't have."""
        self.count += 1
        expanded = self.expand(value or "")
        made = Assignment(
            name, value or "", expanded, self.line(node), place,
            is_exported=is_exported, has_value=value is not None, at=self.count,
        )  # fmt: skip
        self.script.assignments.append(made)

    def on_redirected_statement(self, node: Node, place: Place) -> None:
        body = _first_inside(node, "heredoc_body")
        for child in node.children:
            if child.type == "command" and body is not None:
                self.on_command(child, place, _text(body), self.line(body))
            else:
                self.visit(child, place)

    def on_command(self, node: Node, place: Place, given: str = "", given_line: int = 0) -> None:
        own = self.own_assignments(node, place)
        words: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                continue
            self.visit(child, place)
            if child.type == "herestring_redirect" and child.named_children:
                given, given_line = _unquoted(child.named_children[0]), self.line(child)
            elif child.is_named:
                words += self.words(child)
        self.count += 1
        command = Command(
            tuple(words), self.line(node), place, own, given, given_line, self.function,
            self.branches > 0, self.count, self.last_line(node),
        )  # fmt: skip
        self.script.commands.append(command)
        self.read_inner(command, node)

    def own_assignments(self, node: Node, place: Place) -> tuple[Assignment, ...]:
        """Those before a command, which hold for it alone."""
        nodes = [child for child in node.children if child.type == "variable_assignment"]
        values = dict(self.values) if nodes else self.values
        own = []
        for child in nodes:
            self.on_other(child, place)
            own.append(self.assignment(child, place, is_exported=True))
        self.values = values
        return tuple(own)

    def read_inner(self, command: Command, node: Node) -> None:
        """Read what a shell is given to run, as a text or on stdin."""
        at = _shell_at(command.words)
        if at is None:
            return
        place = (*command.place, f"shell {command.line}.{node.start_byte}")
        rest = command.words[at + 1 :]
        before = self.offset, self.values, self.arrays
        self.values = dict(self.values)
        if rest[:1] and rest[0].startswith("-") and rest[0].endswith("c") and rest[1:]:
            self.arrays = {**self.arrays, "@": rest[3:]}
            self.read(rest[1].replace("\\$", "$").replace('\\"', '"'), command.line - 1, place)
        elif command.text_given and not [word for word in rest if not word.startswith("-")]:
            self.read(command.text_given, command.text_line - 1, place)
        self.offset, self.values, self.arrays = before

    def assignment(self, node: Node, place: Place, *, is_exported: bool) -> Assignment:
        self.count += 1
        name = _text(node.child_by_field_name("name"))
        value = node.child_by_field_name("value")
        text = "" if value is None else _unquoted(value)
        expanded = self.expand(text)
        if value is not None and value.type == "array":
            words = [word for child in value.named_children for word in self.words(child)]
            self.arrays[name] = tuple(words)
        elif "$(" in expanded or "`" in expanded:
            self.values.pop(name, None)
        else:
            self.values[name] = expanded
        return Assignment(
            name, text, expanded, self.line(node), place,
            is_exported=is_exported, has_value=True, at=self.count,
        )  # fmt: skip

    def words(self, node: Node) -> Sequence[str]:
        text = _unquoted(node)
        found = re.fullmatch(r"\$\{(\w+)\[@\]\}|\$(@)", text)
        if found and (found[1] or found[2]) in self.arrays:
            return self.arrays[found[1] or found[2]]
        if node.type in ("expansion", "simple_expansion"):  # without quotes, it may be many words
            return self.expand(text).replace("\\\n", " ").split()
        return [text if node.type == "raw_string" else self.expand(text)]

    def expand(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            return self.values.get(found[1] or found[2], found[0])

        return VARIABLE.sub(value, text)[:MAX_VALUE]

    def line(self, node: Node) -> int:
        return int(node.start_point[0]) + 1 + self.offset

    def last_line(self, node: Node) -> int:
        return int(node.end_point[0]) + 1 + self.offset


def _text(node: Node | None) -> str:
    if node is None or node.text is None:
        return ""
    return str(node.text.decode("utf-8", "surrogateescape"))


def _unquoted(node: Node) -> str:
    """A word without its quotes."""
    text = _text(node)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        return text[1:-1].replace('\\"', '"')
    if node.type == "concatenation":
        return "".join(_unquoted(child) for child in node.children)
    return text if any(node.children) else text.replace("\\", "")


def _first_inside(node: Node, kind: str) -> Node | None:
    """The first node of a kind that isn't a command's own."""
    waiting = list(reversed(node.children))
    while waiting:
        child = waiting.pop()
        if child.type == kind:
            return child
        if child.type != "command":
            waiting += reversed(child.children)
    return None


def _is_export(words: Sequence[str]) -> bool:
    flags = [word for word in words[1:] if re.fullmatch(r"-\w+", word)]
    if words[0] == "export":
        return not any("n" in flag for flag in flags)
    return any("x" in flag for flag in flags)


def _shell_at(words: Sequence[str]) -> int | None:
    """Where a shell's name stands, behind ``srun`` and the like."""
    for at, word in enumerate(words):
        if base(word) in SHELLS:
            return at
    return None


def _follow_calls(script: Script) -> None:
    """Let a function's commands stand where it is first called."""
    called: dict[str, int] = {}
    for command in script.commands:
        if not command.function:
            called.setdefault(command.name, command.at)
    for number, command in enumerate(script.commands):
        if command.function in called:
            script.commands[number] = replace(command, at=called[command.function])
