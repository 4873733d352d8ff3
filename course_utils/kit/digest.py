"""What a function depends on: the statements of the course that it needs, and a digest of them.

A stored run is stale when the code or the data behind it has changed. Which code that is, is read from
the sources without running them: the function, what it uses by name, what that uses, and so on, through
the package and the chapters. Comments, docstrings and whatever else stands in those files do not count.
"""

import ast
import functools
import hashlib
import symtable
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_utils.runtime import ROOT, data_path

PACKAGE = "course_utils"
ENGINES = {f"{PACKAGE}.kit.{name}" for name in ("digest", "drawings", "live", "runs")}
ENGINES |= {f"{PACKAGE}.figures"}  # how a result looks is not part of it


def digest(path: Path, names: Iterable[str], data: Iterable[str] = ()) -> str:
    """Sixteen hexadecimal digits for `names` of the file `path`, and these files of the folder data/.

    Raises:
        ValueError: the file binds none of these names.
    """
    digested = hashlib.sha256()
    for place, statement in sorted(_reachable(path, names)):
        digested.update(f"{place}\n{statement}\n".encode())
    for name in sorted(data):
        digested.update(name.encode() + hashlib.sha256(data_path(name).read_bytes()).digest())
    return digested.hexdigest()[:16]


def needed(path: Path, names: Iterable[str]) -> ast.Module:
    """The top-level statements of a file that these names depend on, in their order, as a program.

    Raises:
        ValueError: the file does not bind one of these names.
    """
    statements = _statements(path)
    return ast.Module([statements[index] for index in _slice(path, names)], type_ignores=[])


def _reachable(path: Path, names: Iterable[str]) -> set[tuple[str, str]]:
    """(file, statement) for all that the names need, in their own file and in the package."""
    found: set[tuple[str, str]] = set()
    asked: list[tuple[Path, str]] = [(path, name) for name in names]
    seen: set[tuple[Path, str]] = set()
    while asked:
        file, name = asked.pop()
        if (file, name) in seen:
            continue
        seen.add((file, name))
        indices = _slice(file, [name])
        used = {name}.union(*(_reads(file)[index] for index in indices))
        for index in indices:
            statement = _statements(file)[index]
            if isinstance(statement, ast.Import | ast.ImportFrom):
                asked += _imported(statement, used)
            else:
                found.add((file.stem, _dump(file, index)))
                asked += _attributes(file, statement)
    return found


@functools.cache
def _statements(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


@functools.cache
def _bindings(path: Path) -> dict[str, list[int]]:
    """For each name the statements that bind it, or change what it is bound to."""
    binding: dict[str, list[int]] = {}
    statements = _statements(path)
    for index, statement in enumerate(statements):
        for name in _bound(statement):
            binding.setdefault(name, []).append(index)
    for index, statement in enumerate(statements):
        for name in _changed(statement) & binding.keys():
            if not isinstance(statements[binding[name][0]], ast.Import | ast.ImportFrom):
                binding[name].append(index)
    return binding


@functools.cache
def _reads(path: Path) -> list[set[str]]:
    """For each statement the names of its module that it reads, or the functions that it defines."""

    def read(table: symtable.SymbolTable) -> Iterator[str]:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from read(child)

    return [set(read(_table(statement))) for statement in _statements(path)]


def _slice(path: Path, names: Iterable[str]) -> list[int]:
    """Indices of the statements that bind the names, and of what those statements need."""
    binding, reads = _bindings(path), _reads(path)
    if missing := [name for name in names if name not in binding]:
        raise ValueError(f"{path.name} does not define {missing[0]}")
    chosen: set[int] = set()
    asked = list(names)
    while asked:
        for index in set(binding.get(asked.pop(), ())) - chosen:
            chosen.add(index)
            asked += reads[index]
    return sorted(chosen)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement binds in its module."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return {symbol.get_name() for symbol in _table(statement).get_symbols() if symbol.is_assigned()}


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


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(statement), "statement", "exec")


def _imported(statement: ast.stmt, used: set[str]) -> Iterator[tuple[Path, str]]:
    """(file, name) of what an import brings from the package, if it is used."""
    if isinstance(statement, ast.ImportFrom) and (file := _file(statement.module or "")):
        for alias in statement.names:
            if (alias.asname or alias.name) in used and alias.name in _bindings(file):
                yield file, alias.name


def _attributes(path: Path, statement: ast.stmt) -> Iterator[tuple[Path, str]]:
    """(file, name) of each `cu.name` in a statement of a file that says `import course_utils as cu`."""
    flat = {
        alias.asname or alias.name
        for known in _statements(path)
        if isinstance(known, ast.Import)
        for alias in known.names
        if alias.name == PACKAGE
    }
    for node in ast.walk(statement) if flat else ():
        match node:
            case ast.Attribute(ast.Name(name), attribute):
                if name in flat and (file := _file(f"{PACKAGE}.{_facade().get(attribute, ' ')}")):
                    yield file, attribute


@functools.cache
def _facade() -> dict[str, str]:
    """Each name of `cu` → the module that has it, as the package's own table says."""
    source = (ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8")
    (rooms,) = (
        ast.literal_eval(statement.value)
        for statement in ast.parse(source).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "_ROOMS"
    )
    return {name: room for room, names in rooms.items() for name in names.split()}


@functools.cache
def _file(module: str) -> Path | None:
    """The file of a module of the package; None for other modules, and for what makes runs or pictures."""
    if not f"{module}.".startswith(f"{PACKAGE}.") or module in ENGINES:
        return None
    path = ROOT.joinpath(*module.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@functools.cache
def _dump(path: Path, index: int) -> str:
    """One statement as text, without its docstrings."""
    statement = ast.parse(ast.unparse(_statements(path)[index])).body[0]
    for node in ast.walk(statement):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [
                part
                for part in body
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
            node.body = kept or [ast.Pass()]
    return ast.dump(statement)
