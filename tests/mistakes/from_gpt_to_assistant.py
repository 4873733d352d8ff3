"""Mistakes in the exercises of *From GPT to an assistant*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake
from torch.nn import functional as F


def _right(ids, asked):
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = -100
    return ids[:, :-1], targets.masked_fill(ids[:, 1:] == 0, -100)


@mistake("fixed_targets", caught_by="gives inputs and targets", hint="How many tokens of a text")
def whole_text_as_inputs(ids, asked):
    """Reads the last token as well, which has no target."""
    return ids, _right(ids, asked)[1]


@mistake(
    "fixed_targets", caught_by="gives inputs and targets", hint="How does `buggy_targets` give"
)
def without_second_axis(ids, asked):
    """Compares the columns with the texts."""
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) < asked] = -100
    return ids[:, :-1], targets.masked_fill(ids[:, 1:] == 0, -100)


@mistake("fixed_targets", caught_by="reads all tokens but", hint="What does the model have to read")
def question_hidden_from_reader(ids, asked):
    """Hides the question from the model, too."""
    inputs, targets = _right(ids, asked)
    return inputs.masked_fill(targets == -100, 0), targets


@mistake("fixed_targets", caught_by="keeps the first word", hint="Which input comes right")
def one_place_late(ids, asked):
    """Leaves the comparison as it was."""
    inputs, targets = _right(ids, asked)
    targets[torch.arange(targets.shape[1]) == asked[:, None]] = -100
    return inputs, targets


@mistake("fixed_targets", caught_by="keeps the first word", hint="Each target is its own input")
def not_shifted(ids, asked):
    """Takes each token as its own target."""
    inputs, targets = ids[:, :-1], ids[:, :-1].clone()
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = -100
    return inputs, targets.masked_fill(inputs == 0, -100)


@mistake("fixed_targets", caught_by="keeps the first word", hint="Which way round")
def question_kept(ids, asked):
    """Ignores the answer in place of the question."""
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) >= asked[:, None]] = -100
    return ids[:, :-1], targets


@mistake("fixed_targets", caught_by="keeps the first word", hint="one number for all")
def longest_question_for_all(ids, asked):
    """Takes all questions to be as long as the longest."""
    targets = ids[:, 1:].clone()
    targets[:, : asked.max()] = -100
    return ids[:, :-1], targets.masked_fill(ids[:, 1:] == 0, -100)


@mistake(
    "fixed_targets", caught_by="ignores every word of the question", hint="The target at position 0"
)
def one_place_early(ids, asked):
    """Keeps the last word of the question."""
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) < asked[:, None] - 1] = -100
    return ids[:, :-1], targets.masked_fill(ids[:, 1:] == 0, -100)


@mistake("fixed_targets", caught_by="keeps the <eos>", hint="Who tells the model to stop")
def end_is_padding(ids, asked):
    """Takes the end for padding."""
    inputs, targets = _right(ids, asked)
    return inputs, targets.masked_fill(targets == 3, -100)


@mistake("fixed_targets", caught_by="ignores the padding", hint="What comes after the `<eos>`")
def padding_counts(ids, asked):
    """Forgets the padding."""
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = -100
    return ids[:, :-1], targets


@mistake("fixed_targets", caught_by="ignores the padding", hint="among the *inputs*")
def padding_of_inputs(ids, asked):
    """Ignores the targets of inputs that are padding."""
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = -100
    return ids[:, :-1], targets.masked_fill(ids[:, :-1] == 0, -100)


@mistake("fixed_targets", caught_by="leaves the texts", hint="A slice is a view")
def without_clone(ids, asked):
    """Writes into a view, and so into the inputs."""
    inputs, targets = ids[:, :-1], ids[:, 1:]
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = -100
    targets[targets == 0] = -100
    return inputs, targets


@mistake("fixed_targets", caught_by="leaves the texts", hint="A slice is a view")
def writes_into_texts(ids, asked):
    """Writes into a view of the texts."""
    inputs, targets = ids[:, :-1].clone(), ids[:, 1:]
    targets[targets == 0] = -100
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = -100
    return inputs, targets


def _margin(preferred, rejected, ref_preferred, ref_rejected, beta):
    return beta * ((preferred - ref_preferred) - (rejected - ref_rejected))


@mistake("my_dpo_loss", caught_by="is one number", hint="A loss is one number")
def loss_of_each_pair(*given):
    """Gives the loss of each pair."""
    return -F.logsigmoid(_margin(*given))


@mistake("my_dpo_loss", caught_by="is one number", hint="A loss is one number")
def summed(*given):
    """Sums over the pairs."""
    return -F.logsigmoid(_margin(*given)).sum()


@mistake("my_dpo_loss", caught_by="is one number", hint="Do you take the mean of the margins")
def mean_of_margins(*given):
    """Takes the mean before the sigmoid."""
    return -F.logsigmoid(_margin(*given).mean())


@mistake("my_dpo_loss", caught_by="is ln 2", hint="At the start the model is the reference")
def without_reference(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Compares the two answers under the model alone."""
    return -F.logsigmoid(beta * (preferred - rejected)).mean()


@mistake("my_dpo_loss", caught_by="is ln 2", hint="At the start the model is the reference")
def reference_subtracted_twice(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Forgets that minus minus is plus."""
    return -F.logsigmoid(beta * (preferred - ref_preferred - rejected - ref_rejected)).mean()


@mistake("my_dpo_loss", caught_by="is ln 2", hint="*minus* ln σ")
def without_minus(*given):
    """Forgets the minus sign of the loss."""
    return F.logsigmoid(_margin(*given)).mean()


@mistake("my_dpo_loss", caught_by="is ln 2", hint="The margin is 0 here")
def without_logarithm(*given):
    """Takes the probability in place of its logarithm."""
    return -_margin(*given).sigmoid().mean()


@mistake("my_dpo_loss", caught_by="is ln 2", hint="β stands outside")
def beta_before_loss(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Multiplies the loss by beta."""
    unscaled = _margin(preferred, rejected, ref_preferred, ref_rejected, 1)
    return -beta * F.logsigmoid(unscaled).mean()


@mistake("my_dpo_loss", caught_by="falls when the preferred", hint="have changed places")
def signs_exchanged(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Prefers the rejected answer."""
    return -F.logsigmoid(_margin(rejected, preferred, ref_rejected, ref_preferred, beta)).mean()


@mistake("my_dpo_loss", caught_by="falls when the preferred", hint="the third of the four lines")
def rejected_ratio_upside_down(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Adds both log-ratios."""
    return -F.logsigmoid(beta * (preferred - ref_preferred + rejected - ref_rejected)).mean()


@mistake("my_dpo_loss", caught_by="counts every log-ratio beta", hint="the ratios themselves")
def ratios_of_probabilities(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Forgets the logarithm of the ratios."""
    first, second = preferred.exp() / ref_preferred.exp(), rejected.exp() / ref_rejected.exp()
    return -F.logsigmoid(beta * (first - second)).mean()


@mistake("my_dpo_loss", caught_by="takes each log-ratio as", hint="logarithms already")
def logarithm_of_logarithms(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Divides log-probabilities and takes the logarithm again."""
    first, second = (preferred / ref_preferred).log(), (rejected / ref_rejected).log()
    return -F.logsigmoid(beta * (first - second)).mean()


@mistake("my_dpo_loss", caught_by="counts every log-ratio beta", hint="Where does β stand")
def beta_for_one_answer(preferred, rejected, ref_preferred, ref_rejected, beta):
    """Multiplies one log-ratio only."""
    margin = beta * (preferred - ref_preferred) - 0.1 * (rejected - ref_rejected)
    return -F.logsigmoid(margin).mean()


@mistake("my_dpo_loss", caught_by="stays finite", hint="What is ln σ")
def log_of_sigmoid(*given):
    """Takes the logarithm of a rounded sigmoid."""
    return -_margin(*given).sigmoid().log().mean()


@mistake("my_dpo_loss", caught_by="gradients reach", hint="Is a number taken out")
def number_taken_out(*given):
    """Makes a new tensor of the loss."""
    return torch.tensor((-F.logsigmoid(_margin(*given)).mean()).item())


@mistake("my_dpo_loss", caught_by="gradients reach", hint="`torch.no_grad()`")
def without_gradients(*given):
    """Computes all without gradients."""
    with torch.no_grad():
        return -F.logsigmoid(_margin(*given)).mean()
