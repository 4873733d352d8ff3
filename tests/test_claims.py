"""Guards and equality: gentle with a reader, strict under the tests, and never silent about a difference."""

import pytest
import torch
import torch.nn.functional as F
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

import course_utils as cu


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.delenv("COURSE_STRICT", raising=False)


@pytest.fixture
def strict(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")


# Guards -----------------------------------------------------------------------------------------


def test_a_guard_whose_conditions_hold_says_nothing(monkeypatch, capsys):
    for value in "01":
        monkeypatch.setenv("COURSE_STRICT", value)
        with cu.guard("Two is more than one.") as claim:
            assert 2 > 1
        assert claim.held is True
    assert capsys.readouterr() == ("", "")


def test_a_reader_is_told_the_condition_in_one_line_and_goes_on(reader, capsys):
    error = torch.tensor([0.1, 0.4])
    with cu.guard("A narrow window\n  follows the noise.") as claim:
        assert 1 + 1 == 2
        assert (
            error[0]  # narrow
            > 2 * error[1]
        ), f"narrow {error}"
        raise RuntimeError("never reached")
    assert claim.held is False
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "“A narrow window follows the noise.”" in said
    assert "We checked that `error[0] # narrow > 2 * error[1]`, but it is false." in said
    assert "If you changed something above, that is probably why." in said
    assert "never reached" not in said


def test_under_strictness_the_claim_and_the_condition_are_raised(strict, capsys):
    with (
        pytest.raises(
            AssertionError, match=r"^One is two\. We checked that `two == 1`, but it is false\.$"
        ) as error,
        cu.guard("One is two."),
    ):
        two = 2
        assert two == 1
    assert isinstance(error.value.__cause__, AssertionError)
    with pytest.raises(AssertionError, match="ZeroDivisionError"), cu.guard("It divides."):
        assert 1 / 0
    assert capsys.readouterr().out == ""


def test_a_claim_about_other_numbers_is_silent_and_never_counts_as_held(monkeypatch, capsys):
    for holds in (True, False):
        monkeypatch.setenv("COURSE_STRICT", "0")
        with cu.guard("One step halves it.", given=False) as claim:
            assert holds
        assert claim.held is None
        monkeypatch.setenv("COURSE_STRICT", "1")
        with (
            pytest.raises(
                AssertionError, match="One step halves it. Its numbers are not those on the page"
            ),
            cu.guard("One step halves it.", given=False),
        ):
            assert holds
    with pytest.raises(KeyboardInterrupt), cu.guard("It takes long.", given=False):
        raise KeyboardInterrupt
    assert capsys.readouterr() == ("", "")


def test_in_a_notebook_the_line_of_the_cell_is_shown(reader, capsys, request):
    request.addfinalizer(InteractiveShell.clear_instance)
    shell = InteractiveShell.instance()
    cell = (
        "import course_utils as cu\n"
        "scores = [1, 2]\n"
        "with cu.guard('Sorted.') as sorted_claim:\n"
        "    for left, right in zip(scores, scores[1:]):\n"
        "        assert left > right, 'not sorted'\n"
        "after = 'reached'"
    )
    assert shell.run_cell(cell).success
    assert shell.user_ns["after"] == "reached"
    assert "`left > right`, but it is false" in capsys.readouterr().out


# Equality ---------------------------------------------------------------------------------------


def attention(queries, keys, values, attn_mask=None):
    scores = queries @ keys.mT / queries.shape[-1] ** 0.5
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    return scores.softmax(-1) @ values


def inputs():
    return torch.randn(2, 4, 6), torch.randn(2, 5, 6), torch.randn(2, 5, 3)


class Remembers(nn.Linear):
    """As learners write it: what was computed is kept, so that the module cannot be copied."""

    def forward(self, x):
        self.last = super().forward(x)
        return self.last


def test_a_module_is_compared_in_its_parameters_too_and_keeps_its_weights(strict, capsys):
    mine, theirs = Remembers(3, 2), nn.Linear(3, 2)
    theirs.load_state_dict(mine.state_dict())
    x = torch.randn(4, 3)
    mine(x)
    before = mine.weight.clone()
    for _ in range(2):
        cu.equal(mine, theirs, x)
    assert capsys.readouterr().out == "equal to PyTorch: outputs and 3 gradients, to 1e-6\n" * 2
    assert torch.equal(mine.weight, before) and isinstance(mine.weight, nn.Parameter)
    assert x.grad is None and mine.weight.grad is None


class Renamed(nn.Module):
    """A linear layer whose weights have other names, one of which is "output"."""

    def __init__(self, layer):
        super().__init__()
        self.output = layer

    def forward(self, x):
        return self.output(x)


def test_weights_that_only_one_module_has_are_not_compared(strict, capsys):
    layer = nn.Linear(3, 2)
    cu.equal(Renamed(layer), layer, torch.randn(4, 3))
    assert capsys.readouterr().out == "equal to PyTorch: outputs and 1 gradient, to 1e-6\n"


WEIGHT = torch.randn(3, 3)
MASK = torch.tensor([True, True, False, True, False])


def by_hand(x):
    return 2 * x


@pytest.mark.parametrize(
    ("mine", "reference", "inputs", "options", "line"),
    [
        (attention, F.scaled_dot_product_attention, inputs(), {}, "PyTorch: outputs and 3 gradients, to 1e-6"),
        (attention, F.scaled_dot_product_attention, inputs(), {"attn_mask": MASK},
         "PyTorch: outputs and 3 gradients, to 1e-6"),
        (lambda x: x.argmax(-1), lambda x: torch.argmax(x, -1), [torch.randn(4, 5)], {},
         "the reference: outputs, to 1e-6"),
        (lambda ids: ids + 1, lambda ids: torch.add(ids, 1), [torch.tensor([1, 2])], {},
         "the reference: outputs, to 1e-6"),
        # summed in another order, a long sum differs by far more than 1e-6 in float32
        (lambda x: x.flip(0).cumsum(0)[-1], lambda x: torch.sum(x), [torch.randn(100_000) * 100], {},
         "the reference: outputs and 1 gradient, to 1e-6"),
        # what insists on single precision is compared in it
        (lambda x: x @ WEIGHT, lambda x: torch.matmul(x, WEIGHT), [torch.randn(2, 3)], {},
         "the reference: outputs and 1 gradient, to 1e-5"),
        (lambda x: x + x, by_hand, [torch.ones(2)], {}, "by_hand: outputs and 1 gradient, to 1e-6"),
        (cu.masked_softmax, cu.masked_softmax, [torch.randn(2, 5), MASK], {},
         "course_utils: outputs and 1 gradient, to 1e-6"),
    ],
)  # fmt: skip
def test_what_is_equal_says_to_what_and_in_what(
    strict, capsys, mine, reference, inputs, options, line
):
    cu.equal(mine, reference, *inputs, **options)
    assert capsys.readouterr().out == f"equal to {line}\n"


def cut(queries, keys, values):
    return attention(queries, keys.detach(), values)


def doubled(queries, keys, values):
    return attention(queries, keys, 2 * values - values.detach())


ONES = [torch.ones(2, 3)]


@pytest.mark.parametrize(
    ("mine", "reference", "inputs", "difference"),
    [
        (cut, F.scaled_dot_product_attention, inputs(), "the gradient of keys is missing\n"),
        (doubled, F.scaled_dot_product_attention, inputs(),
         "the gradient of values is off. Mismatched elements: 30 / 30 (100.0%). Greatest absolute difference: "),
        (lambda x: x + torch.tensor([[0.0, 0, 0], [0, 0.25, 0]]), torch.clone, [torch.zeros(2, 3)],
         "the output is off. Mismatched elements: 1 / 6 (16.7%). Greatest absolute difference: 0.25 at index (1, 1) "
         "(up to 1e-06 allowed)\n"),
        (lambda x: 2 * x.sum(), torch.sum, ONES, "the output is off. Expected 6.0 but got 12.0. Absolute "),
        (lambda x: None, torch.clone, ONES, "yours stops with ValueError: it gives nothing back"),
        (lambda x: [], torch.clone, ONES, "yours stops with ValueError: it gives nothing back"),
        (lambda x: x.T, torch.clone, ONES, "the output has shape (3, 2), expected (2, 3)"),
        (lambda x: (x, x), torch.clone, ONES, "yours gives 2 outputs, expected 1"),
        (lambda x: "x", torch.clone, ONES, "yours stops with TypeError: "),
        (lambda x: x.add_(1), torch.clone, ONES, "yours stops with RuntimeError: a leaf Variable"),
        (lambda x: x * float("nan"), torch.clone, ONES, "the output is off. Mismatched elements: 6 / 6 (100.0%). "
         "Greatest absolute difference: nan at index (0, 0)"),
        (nn.Linear(3, 2), nn.Linear(3, 2), ONES, "the output is off. Mismatched"),
    ],
)  # fmt: skip
def test_a_difference_is_named_with_its_size_and_place_and_stops_nobody(
    reader, capsys, mine, reference, inputs, difference
):
    cu.equal(mine, reference, *inputs)
    assert capsys.readouterr().out.startswith(f"differs from PyTorch: {difference}")


def test_random_numbers_go_on_as_before_and_dropout_is_the_same_for_both(strict, capsys):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    cu.equal(lambda x: F.dropout(x, 0.5), lambda x: F.dropout(x, 0.5), torch.ones(20))
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_default_dtype() == torch.float32
