"""Dependencies within one file or notebook: the top-level statements that some of its names need."""

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


def needed(path: Path, names: Sequence[str]) -> ast.Module:
    """A program of the top-level statements of a file that these names depend on, in their order.

    Raises:
        ValueError: the file does not bind one of these names.
    """
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    bound = {name for statement in statements for name in bound_names(statement)}
    if missing := [name for name in names if name not in bound]:
        raise ValueError(f"{path.name} does not define {missing[0]}")
    return ast.Module([statements[index] for index in dependencies(statements, names)], [])


def dependencies(statements: Sequence[ast.stmt], names: Iterable[str]) -> list[int]:
    """The indices of the statements that these names depend on, in order."""
    binding = _binding(statements)
    pending, chosen = list(names), set[int]()
    while pending:
        for index in set(binding.get(pending.pop(), ())) - chosen:
            chosen.add(index)
            pending += read_names(statements[index])
    return sorted(chosen)


def _binding(statements: Sequence[ast.stmt]) -> dict[str, list[int]]:
    """The indices of the statements that bind a name or change the object bound to it, by name."""
    binding: dict[str, list[int]] = {}
    imported = {name for statement in statements for name in _imported(statement)}
    for index, statement in enumerate(statements):
        for name in bound_names(statement):
            binding.setdefault(name, []).append(index)
    for index, statement in enumerate(statements):
        for name in _changed(statement) & binding.keys() - imported:
            binding[name].append(index)
    return binding


def read_names(statement: ast.stmt) -> set[str]:
    """The global names that a statement reads, inside the functions that it defines, too."""

    def read(table: symtable.SymbolTable) -> Iterator[str]:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from read(child)

    return set(read(_table(statement)))


def bound_names(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement binds in its module."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return _imported(statement)
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


def _imported(statement: ast.stmt) -> set[str]:
    """The names that the imports in a statement bind, at any depth."""
    imports = [
        node for node in ast.walk(statement) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    aliases = [alias for node in imports for alias in node.names]
    return {alias.asname or alias.name.partition(".")[0] for alias in aliases} - {"*"}


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(statement), "statement", "exec")
