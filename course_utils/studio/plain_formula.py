r"""Formulas for a line of text, in the search and on the map: `\frac{q\cdot k}{\sqrt{d}}` is q·k/√d."""

import re
import unicodedata
from collections.abc import Iterator


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


SIGNS = _pairs("""
    cdot · times × pm ± mp ∓ circ ∘ ast ∗ star ⋆ div ÷ infty ∞ partial ∂ nabla ∇ ell ℓ top ᵀ intercal ᵀ prime ′ degree °
    emptyset ∅ varnothing ∅ forall ∀ exists ∃ neg ¬ lnot ¬ vert | lvert | rvert | Vert ‖ lVert ‖ rVert ‖ | ‖
    lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ langle ⟨ rangle ⟩ lbrace { rbrace } dots … ldots … cdots … vdots … ddots … over /
""")
SPACED = _pairs("""
    le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ approx ≈ equiv ≡ sim ~ propto ∝ mid |
    in ∈ notin ∉ subset ⊂ subseteq ⊆ cup ∪ cap ∩ setminus ∖ land ∧ wedge ∧ lor ∨ vee ∨ odot ⊙ otimes ⊗ oplus ⊕
    sum Σ prod Π int ∫ to → rightarrow → longrightarrow → leftarrow ← gets ← mapsto ↦ leftrightarrow ↔
    Rightarrow ⇒ Longrightarrow ⇒ implies ⇒ iff ⇔ Leftrightarrow ⇔ bmod mod colon :
""")
for letter in "αβγδεζηθικλμνξοπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ":
    case, *_, name = unicodedata.name(letter).removeprefix("GREEK ").lower().split()
    name = name.replace("lamda", "lambda")
    SIGNS[name if case == "small" else name.capitalize()] = letter
SIGNS |= {f"var{name}": SIGNS[name] for name in ("epsilon", "theta", "phi", "rho", "sigma", "pi")}
names = "arccos arcsin arctan arg cos cosh cot det dim exp gcd inf ker lim ln log max min Pr sin sinh sup tan tanh"
SPACED |= {name: name for name in names.split()}
"""Command → sign. A command that is in none of these tables (a font, an accent, a size) is not shown."""

FRACTIONS = {"frac", "dfrac", "tfrac", "cfrac"}
CLOSE = re.compile(
    "partial|nabla|pm|mp|neg|lnot|forall|exists|cdot|times|l(vert|Vert|ceil|floor|angle)"
)
"""Commands after which no space is shown."""
HIDDEN = re.compile("label|tag|[hv]space|(text)?color|[hv]?phantom|begin|end")
"""Commands whose first argument is not for a reader."""
SPACES = {",", ";", ":", ">", " ", "\n", "quad", "qquad", "\\", "enspace", "thinspace", "newline"}
TOKENS = re.compile(r"\\([A-Za-z]+|.)\s*|([{}^_&~])|\s+|([^\\{}^_&~\s])", re.DOTALL)
MATRIX = re.compile(r"\\begin\{.*\\end\{[^}]*\}", re.DOTALL)
INLINE = re.compile(r"\$(?=\S)([^$]+?)(?<=\S)\$(?!\d)|\\\((.+?)\\\)", re.DOTALL)
DISPLAY = re.compile(r"\$\$.+?\$\$|\\\[.*?\\\]|\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.DOTALL)


def plain_text(text: str) -> str:
    """A text in one line, its formulas plain: one of a line of its own, or with a matrix, is "…"."""
    text = DISPLAY.sub(" … ", text)
    text = INLINE.sub(lambda found: plain_formula(found[1] or found[2]), text)
    return re.sub(r"…(?: …)+", "…", " ".join(text.split()))


def plain_formula(tex: str) -> str:
    r"""A formula for a line of text: `\sqrt{d}` is √d, `\bar\alpha` is α, and a matrix is "…"."""
    tokens = TOKENS.finditer(re.sub(r"\\not *=", r"\\ne ", MATRIX.sub("…", tex)))
    text = "".join("" if token[2] == "}" else _shown(token, tokens) for token in tokens)
    text = re.sub(r" *([·×/^_]) *|(√) +", r"\1\2", text).replace("^ᵀ", "ᵀ").replace("^∘", "°")
    text = re.sub(r" +([,.;:)\]])", r"\1", re.sub(r"([(\[]) +", r"\1", text))
    return " ".join(text.split())


def _parts(tokens: Iterator[re.Match]) -> Iterator[str]:
    """The signs of a formula up to the end of a group."""
    for token in tokens:
        if token[2] == "}":
            return
        yield _shown(token, tokens)


def _shown(token: re.Match, tokens: Iterator[re.Match]) -> str:
    command, mark, sign = token.groups()
    if command:
        return _command(command, tokens, after=token[0][-1:].isspace())
    if mark == "{":
        return "".join(_parts(tokens))
    return mark + _held(_argument(tokens)) if mark in ("^", "_") else sign or " "


def _command(command: str, tokens: Iterator[re.Match], *, after: bool) -> str:
    if command in FRACTIONS:
        return f"{_held(_argument(tokens))}/{_held(_argument(tokens))}"
    if command == "binom":
        return f"({_argument(tokens)} over {_argument(tokens)})"
    if command == "sqrt":
        return f"√{_held(_argument(tokens))}"
    if HIDDEN.fullmatch(command):
        _argument(tokens)
        return ""
    if command in SPACED or command in SPACES:
        return f" {SPACED.get(command, '')} "
    other = command if command in "{}%#$&_" else ""
    return SIGNS.get(command, other) + " " * (after and not CLOSE.fullmatch(command))


def _argument(tokens: Iterator[re.Match]) -> str:
    """The next group, or the next sign, without the spaces around it."""
    for token in tokens:
        command, mark, sign = token.groups()
        if not (command or mark or sign):
            continue
        if mark == "}":
            return ""
        shown = _shown(token, tokens).strip()
        if shown or mark == "{":
            return shown
    return ""


def _held(text: str) -> str:
    """A part of a fraction below a root or in an exponent, in parentheses if it is more than a product."""
    return f"({text})" if re.search(r"(?<=.)[-+−±=/]|^[-−].*/| ", text) else text
