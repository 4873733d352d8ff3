"""What a function depends on: the statements of the course that it needs, and a digest of them.

A stored run is stale when the code or the data that it depends on has changed. Which code that is, is read from
the sources without running them: the function, what it uses by name, what that uses, and so on, through
the package and the chapters. Comments, docstrings and whatever else stands in those files do not count,
and neither does a file's name: what moves to another file stays what it is. Of an imported module those
names count that are asked of it, `fit_mask` where `arguments.fit_mask` stands. Where a module is used in
another way (given to a function, asked by `getattr`), all of its file counts.
"""

import ast
import copy
import hashlib
import symtable
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path

from course_utils.files import ROOT

PACKAGE = "course_utils"
ENGINES = tuple(
    f"{PACKAGE}.{room}."
    for room in ("figures", "kit.digest", "kit.drawings", "kit.live", "kit.progress", "kit.runs")
)
"""How a result is stored, how it looks, and whether a reader's own part is taken (`choose`), is no part of it."""

Node = tuple[Path, int]
"""A file, and the place of a statement in it."""


def needed(path: Path, names: Sequence[str]) -> ast.Module:
    """The top-level statements of a file that these names depend on, in their order, as a program.

    Raises:
        ValueError: the file does not bind one of these names.
    """
    file = _File(path.name, _parsed(path))
    file.must_bind(names)
    chosen = file.dependencies(names)
    return ast.Module([file.statements[index] for index in chosen], type_ignores=[])


def dependencies(statements: list[ast.stmt], names: Sequence[str]) -> list[int]:
    """The places of those statements, one after the other in a file or in a notebook, that these names depend on."""
    return _File("", statements).dependencies(names)


def _parsed(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def digest_of(statements: Iterable[tuple[str, str]]) -> str:
    """Sixteen hexadecimal digits for (file, statement) pairs, in any order; the files' names do not count."""
    text = "\n".join(sorted({statement for _, statement in statements}))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Sources:
    """The course's sources in a folder, each file read once.

    Args:
        root: the folder that holds `course_utils/`, `notebooks/` and `data/`.
    """

    def __init__(self, root: Path = ROOT):
        self.root = root
        self._file = cache(lambda path: _File(path.name, _parsed(path)))
        self._needs = cache(self._needed_by)
        self.sha256 = cache(self._sha256)

    def statements(self, path: Path, names: Sequence[str]) -> set[tuple[str, str]]:
        """(file's name, statement) for all that the names need, as `nodes` finds it."""
        return {(file.stem, self.text(file, index)) for file, index in self.nodes(path, names)}

    def nodes(self, path: Path, names: Sequence[str]) -> set[Node]:
        """All that the names of a file need, there and in the package.

        Raises:
            ValueError: the file does not bind one of these names.
        """
        self._file(path).must_bind(names)
        pending = [node for name in names for node in self._definitions(path, name)]
        nodes: set[Node] = set()
        while pending:
            if (node := pending.pop()) not in nodes:
                nodes.add(node)
                pending += self._needs(*node)
        return nodes

    def text(self, path: Path, index: int) -> str:
        """A statement without its docstrings and comments."""
        return self._file(path).text(index)

    def lines(self, path: Path, index: int) -> range:
        """The numbers of a statement's lines, from its first decorator on."""
        statement = self._file(path).statements[index]
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))
        return range(first, statement.end_lineno + 1)

    def _sha256(self, name: str) -> str:
        """Of a file of the folder data/."""
        return hashlib.sha256((self.root / "data" / name).read_bytes()).hexdigest()

    def _needed_by(self, path: Path, index: int) -> set[Node]:
        """The statements that define the names that one statement uses."""
        file = self._file(path)
        used = file.reads(index) | {name for name, _ in _imports(file.statements[index])}
        return {
            node
            for name, *attributes in _chains(file.statements[index])
            if name in used
            for node in self._definitions(path, name, *attributes)
        }

    def _definitions(self, path: Path, name: str, *attributes: str) -> Iterator[Node]:
        """The statements that define `name.attribute.…` of a file."""
        file = self._file(path)
        for index in file.binding.get(name, ()):
            if not isinstance(file.statements[index], ast.Import | ast.ImportFrom):
                yield path, index
        origins = file.imported.get(name, ())
        if name not in file.binding and not origins:
            origins = [module + name for module in file.imported.get("*", ())]
        for dotted in origins:
            yield from self._in_package([*self._absolute(path, dotted), *attributes])

    def _absolute(self, path: Path, dotted: str) -> list[str]:
        """A dotted name in parts; `..text.tokenize`, in a file of the package, from the top."""
        steps = len(dotted) - len(dotted.lstrip("."))
        folders = path.parent.relative_to(self.root).parts if steps else ()
        return [*folders[: len(folders) - steps + 1], *dotted.lstrip(".").split(".")]

    def _in_package(self, parts: list[str]) -> Iterator[Node]:
        """The statements that define `course_utils.arguments.fit_mask`; the whole file if no name says more."""
        if parts[0] != PACKAGE:
            return
        heads = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
        module = next(head for head in heads if self.module(head))
        path, rest = self.module(module), parts[module.count(".") + 1 :]
        file = self._file(path)
        if f"{module}.".startswith(ENGINES):
            return
        if rest and (rest[0] in file.binding or rest[0] in file.imported):
            yield from self._definitions(path, *rest)
        elif rest and module == PACKAGE and rest[0] in self._rooms:
            yield from self._in_package([PACKAGE, *self._rooms[rest[0]].split("."), *rest])
        else:
            yield from ((path, index) for index in range(len(file.statements)))

    def module(self, name: str) -> Path | None:
        """The file of a module, where it is one of ours."""
        path = self.root.joinpath(*name.split("."))
        return next(
            (p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None
        )

    @cached_property
    def _rooms(self) -> dict[str, str]:
        """Each name of `cu` → the module that has it, as the package's own table says."""
        for statement in self._file(self.root / PACKAGE / "__init__.py").statements:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "_ROOMS":
                rooms = ast.literal_eval(statement.value)
                return {name: room for room, names in rooms.items() for name in names.split()}
        return {}


class _File:
    """The top-level statements of a file, by their places, and their names."""

    def __init__(self, name: str, statements: list[ast.stmt]):
        self.name, self.statements = name, statements
        self.reads, self.text = cache(self._reads), cache(self._text)

    def must_bind(self, names: Iterable[str]) -> None:
        if missing := [name for name in names if name not in self.binding]:
            raise ValueError(f"{self.name} does not define {missing[0]}")

    def dependencies(self, names: Iterable[str]) -> list[int]:
        """The places of the statements that these names depend on, in this file alone."""
        pending, chosen = list(names), set[int]()
        while pending:
            for index in set(self.binding.get(pending.pop(), ())) - chosen:
                chosen.add(index)
                pending += self.reads(index)
        return sorted(chosen)

    @cached_property
    def binding(self) -> dict[str, list[int]]:
        """For each name the statements that bind it, or change what it is bound to."""
        binding: dict[str, list[int]] = {}
        for index, statement in enumerate(self.statements):
            for name in _bound(statement):
                binding.setdefault(name, []).append(index)
        for index, statement in enumerate(self.statements):
            for name in _changed(statement) & binding.keys() - self.imported.keys():
                binding[name].append(index)
        return binding

    @cached_property
    def imported(self) -> dict[str, set[str]]:
        """Each name that an import binds, here or in a function → what it stands for, dotted."""
        imported: dict[str, set[str]] = {}
        for statement in self.statements:
            for name, dotted in _imports(statement):
                imported.setdefault(name, set()).add(dotted)
        return imported

    def _reads(self, index: int) -> set[str]:
        """The names of its module that a statement reads, or the functions that it defines."""

        def read(table: symtable.SymbolTable) -> Iterator[str]:
            top = table.get_type() == "module"
            for symbol in table.get_symbols():
                if symbol.is_referenced() and (top or symbol.is_global()):
                    yield symbol.get_name()
            for child in table.get_children():
                yield from read(child)

        return set(read(_table(self.statements[index])))

    def _text(self, index: int) -> str:
        """One statement without its docstrings."""
        statement = copy.deepcopy(self.statements[index])
        for node in ast.walk(statement):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [line for line in body if not _is_docstring(line)] or [ast.Pass()]
        return ast.unparse(_Spelled().visit(statement))


class _Spelled(ast.NodeTransformer):
    """Spells f-strings out as calls, since each Python writes their quotes in its own way."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Call:
        return self._call("f", node.values)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.Call:
        conversion = ast.Constant(chr(node.conversion) if node.conversion > 0 else None)
        return self._call("format", [node.value, conversion, node.format_spec or ast.Constant("")])

    def _call(self, name: str, values: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Name(name), [self.visit(value) for value in values], [])


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement binds in its module."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {name for name, _ in _imports(statement)} - {"*"}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    symbols = _table(statement).get_symbols()
    bound = {
        symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()
    }
    # From Python 3.12 on the variables of a comprehension are among them.
    targets = [node.target for node in ast.walk(statement) if isinstance(node, ast.comprehension)]
    of_loops = [name for target in targets for name in _stored_names(target)]
    assigned = {name.id for name in _stored_names(statement) if name not in of_loops}
    return bound - ({name.id for name in of_loops} - assigned)


def _stored_names(node: ast.AST) -> list[ast.Name]:
    names = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
    return [name for name in names if isinstance(name.ctx, ast.Store)]


def _changed(statement: ast.stmt) -> set[str]:
    """The names whose objects a top-level statement changes: `names[0] = …`, `names.append(…)`."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return set()
    changed = set()
    for node in ast.walk(statement):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
                changed.add(name)
            case ast.Subscript(ast.Name(name), ctx=ast.Store()) | ast.Attribute(
                ast.Name(name), ctx=ast.Store()
            ):
                changed.add(name)
    return changed


def _imports(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(name, what it stands for) of each import in a statement, at any depth."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (f"{node.module}." if node.module else "")
            for alias in node.names:
                yield alias.asname or alias.name, module + alias.name.replace("*", "")


def _chains(statement: ast.stmt) -> set[tuple[str, ...]]:
    """Each name of a statement with the attributes asked of it: ("arguments", "fit_mask")."""
    chains, inner = set(), set()
    for node in ast.walk(statement):  # the outer attribute comes before what it is asked of
        attributes: list[str] = []
        while isinstance(node, ast.Attribute) and node not in inner:
            inner.add(node)
            attributes.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node not in inner:
            inner.add(node)
            chains.add((node.id, *attributes))
    return chains


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(statement), "statement", "exec")


SOURCES = Sources()
"""Those of this course."""
