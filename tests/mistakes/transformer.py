"""Mistakes in the exercises of *The Transformer*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake

from course_utils.layers import DecoderLayer
from course_utils.lessons.transformer import blocks
from course_utils.masks import causal_mask


def _three(block, x, memory, attn_mask, memory_mask, *, order=(0, 1, 2), around=(0, 1, 2)):
    """The sublayers in some order, each with one of the residuals."""
    residuals = block.around_self, block.around_cross, block.around_feed_forward
    sublayers = (
        lambda y: block.self_attention(y, y, y, attn_mask),
        lambda y: block.cross_attention(y, memory, memory, memory_mask),
        block.feed_forward,
    )
    for which in order:
        x = residuals[around[which]](x, sublayers[which])
    return x


@mistake(
    "my_sublayers", caught_by="keeps earlier outputs as they", hint="Which sublayer lets target"
)
def sees_the_future(block, x, memory, attn_mask=None, memory_mask=None):
    """Forgets the causal mask."""
    return _three(block, x, memory, None, memory_mask)


@mistake("my_sublayers", caught_by="reads the source", hint="Which sublayer looks")
def reads_the_padding(block, x, memory, attn_mask=None, memory_mask=None):
    """Forgets the memory's mask."""
    return _three(block, x, memory, attn_mask, None)


@mistake(
    "my_sublayers",
    caught_by="runs with masks and without",
    reason="it calls DecoderLayer.forward",
    hint="step by step",
)
def calls_the_block(block, x, memory, attn_mask=None, memory_mask=None):
    """Leaves the work to the block, which in the chapter calls this function."""
    return block(x, memory, attn_mask, memory_mask)


@mistake(
    "my_sublayers",
    caught_by="runs with masks and without",
    hint="Which mask has the memory's length",
)
def exchanges_the_masks(block, x, memory, attn_mask=None, memory_mask=None):
    """Hands each attention the other's mask."""
    return _three(block, x, memory, memory_mask, attn_mask)


@mistake(
    "my_sublayers",
    caught_by="runs with masks and without",
    hint="Which mask has the memory's length",
)
def masks_the_memory_causally(block, x, memory, attn_mask=None, memory_mask=None):
    """Hands the causal mask to both attentions."""
    return _three(block, x, memory, attn_mask, attn_mask)


@mistake(
    "my_sublayers",
    caught_by="runs with masks and without",
    reason="not callable",
    hint="then a *function*, not what it gives",
)
def calls_the_network_too_early(block, x, memory, attn_mask=None, memory_mask=None):
    """Hands the network's output to its residual."""
    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    x = block.around_cross(x, lambda y: block.cross_attention(y, memory, memory, memory_mask))
    return block.around_feed_forward(x, block.feed_forward(x))


@mistake(
    "my_sublayers",
    caught_by="agrees with PyTorch's order",
    reason="in another order",
    hint="In which order",
)
def asks_the_memory_first(block, x, memory, attn_mask=None, memory_mask=None):
    """Runs the cross-attention before the self-attention."""
    return _three(block, x, memory, attn_mask, memory_mask, order=(1, 0, 2), around=(0, 1, 2))


@mistake(
    "my_sublayers",
    caught_by="lets a target token hear the earlier",
    hint="What does each residual get",
)
def forgets_the_first_sublayer(block, x, memory, attn_mask=None, memory_mask=None):
    """Hands x itself to the second residual, so that the self-attention is lost."""
    block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    y = block.around_cross(x, lambda y: block.cross_attention(y, memory, memory, memory_mask))
    return block.around_feed_forward(y, block.feed_forward)


@mistake("my_sublayers", caught_by="agrees with PyTorch's order", hint="Each has its own norm")
def one_residual_for_all(block, x, memory, attn_mask=None, memory_mask=None):
    """Calls every sublayer through the first one's residual."""
    return _three(block, x, memory, attn_mask, memory_mask, around=(0, 0, 0))


@mistake("my_sublayers", caught_by="agrees with PyTorch's order", hint="What happens to the memory")
def norms_the_memory(block, x, memory, attn_mask=None, memory_mask=None):
    """Normalizes the memory once more."""
    return _three(block, x, block.around_cross.norm(memory), attn_mask, memory_mask)


@mistake(
    "my_sublayers",
    caught_by="gives an output of the shape of x",
    hint="Whose rows does the decoder pass",
)
def gives_rows_of_the_memory(block, x, memory, attn_mask=None, memory_mask=None):
    """Lets the memory ask and the target answer."""
    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    memory = block.around_cross(memory, lambda y: block.cross_attention(y, x, x))
    return block.around_feed_forward(memory, block.feed_forward)


@mistake("my_sublayers", caught_by="reads the source", hint="Which sublayer looks")
def reads_no_source(block, x, memory, attn_mask=None, memory_mask=None):
    """Lets the target look at itself twice."""
    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    x = block.around_cross(x, lambda y: block.cross_attention(y, y, y, attn_mask))
    return block.around_feed_forward(x, block.feed_forward)


@mistake("my_sublayers", caught_by="lets x pass unchanged", hint="Who adds x to what a sublayer")
def without_residuals(block, x, memory, attn_mask=None, memory_mask=None):
    """Calls the sublayers themselves."""
    x = block.self_attention(x, x, x, attn_mask)
    x = block.cross_attention(x, memory, memory, memory_mask)
    return block.feed_forward(x)


@mistake(
    "my_sublayers",
    caught_by="runs with masks and without",
    reason="it calls DecoderLayer.forward",
    hint="step by step",
)
def calls_the_class(block, x, memory, attn_mask=None, memory_mask=None):
    """The course's block by another way."""
    return DecoderLayer.forward(block, x, memory, attn_mask, memory_mask)


@mistake(
    "my_sublayers",
    caught_by="runs with masks and without",
    reason="it calls three_sublayers",
    hint="step by step",
)
def calls_the_lesson(block, x, memory, attn_mask=None, memory_mask=None):
    """The lesson's own three lines."""
    return blocks.three_sublayers(block, x, memory, attn_mask, memory_mask)


@mistake(
    "my_sublayers",
    caught_by="sees later target tokens and padding",
    hint="Does your function make a mask",
)
def makes_its_own_mask(block, x, memory, attn_mask=None, memory_mask=None):
    """Is always causal, whatever it was handed."""
    return _three(block, x, memory, causal_mask(x.shape[1]), memory_mask)


@mistake(
    "my_sublayers", caught_by="runs with masks and without", hint="Which line does the error name?"
)
def hands_over_results(block, x, memory, attn_mask=None, memory_mask=None):
    """Calls the sublayers before the residuals can."""
    x = block.around_self(x, block.self_attention(x, x, x, attn_mask))
    x = block.around_cross(x, block.cross_attention(x, memory, memory, memory_mask))
    return block.around_feed_forward(x, block.feed_forward(x))


@mistake("my_sublayers", caught_by="runs with masks and without", hint="both from the memory")
def values_of_the_target(block, x, memory, attn_mask=None, memory_mask=None):
    """Looks at the memory and takes its own vectors along."""
    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    x = block.around_cross(x, lambda y: block.cross_attention(y, memory, y, memory_mask))
    return block.around_feed_forward(x, block.feed_forward)


@mistake("my_sublayers", caught_by="agrees with PyTorch's order", hint="leaves the norm out")
def sums_without_norms(block, x, memory, attn_mask=None, memory_mask=None):
    """Adds each sublayer by hand."""
    x = x + block.self_attention(x, x, x, attn_mask)
    x = x + block.cross_attention(x, memory, memory, memory_mask)
    return x + block.feed_forward(x)


@mistake("my_sublayers", caught_by="agrees with PyTorch's order", hint="What does each sublayer")
def one_attention_for_both(block, x, memory, attn_mask=None, memory_mask=None):
    """Looks at the memory with the weights of the self-attention."""
    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    x = block.around_cross(x, lambda y: block.self_attention(y, memory, memory, memory_mask))
    return block.around_feed_forward(x, block.feed_forward)


def _decoder(block, x, memory, memory_mask, causal, *, normed_stream=False):
    for around, sublayer in (
        (block.around_self, lambda y: block.self_attention(y, y, y, causal)),
        (block.around_cross, lambda y: block.cross_attention(y, memory, memory, memory_mask)),
        (block.around_feed_forward, block.feed_forward),
    ):
        y = around.norm(x)
        x = (y if normed_stream else x) + sublayer(y)
    return x


@mistake("fixed_block", caught_by="reads the source", hint="What did you change")
def no_memory_mask(block, x, memory, memory_mask):
    """Reads the source's padding."""
    return _decoder(block, x, memory, None, causal_mask(x.shape[1]))


@mistake(
    "fixed_block",
    caught_by="gives an output of the shape of x",
    hint="What does `DecoderLayer.forward`",
)
def calls_the_whole_block(block, x, memory, memory_mask):
    """Repairs nothing: it calls the right block."""
    return block(x, memory, causal_mask(x.shape[1]), memory_mask)


@mistake(
    "fixed_block", caught_by="hides later tokens in eval mode", hint="Which line asks for the mode?"
)
def not_fixed(block, x, memory, memory_mask):
    """Both bugs as they stand in the chapter."""
    causal = causal_mask(x.shape[1]) if block.training else None
    return _decoder(block, x, memory, memory_mask, causal, normed_stream=True)


@mistake(
    "fixed_block", caught_by="hides later tokens in eval mode", hint="Which line asks for the mode?"
)
def only_the_norm_fixed(block, x, memory, memory_mask):
    """The mask still depends on the mode."""
    causal = causal_mask(x.shape[1]) if block.training else None
    return _decoder(block, x, memory, memory_mask, causal)


@mistake(
    "fixed_block",
    caught_by="hides later tokens in training mode",
    hint="What happened to the causal",
)
def off_by_one(block, x, memory, memory_mask):
    """Lets each token see the next one."""
    n = x.shape[1]
    return _decoder(block, x, memory, memory_mask, torch.ones(n, n).tril(1).bool())


@mistake(
    "fixed_block",
    caught_by="gives an output of the shape of x",
    hint="Which lines of `buggy_block`",
)
def queries_from_the_source(block, x, memory, memory_mask):
    """Exchanges the two sides of the cross-attention: one output per source token."""
    y = block.around_self.norm(x)
    x = x + block.self_attention(y, y, y, causal_mask(x.shape[1]))
    memory = memory + block.cross_attention(block.around_cross.norm(memory), x, x)
    return memory + block.feed_forward(block.around_feed_forward.norm(memory))


@mistake("fixed_block", caught_by="agrees with DecoderLayer", hint="Through which norm")
def one_norm_for_all(block, x, memory, memory_mask):
    """Uses the first norm three times."""
    norm, causal = block.around_self.norm, causal_mask(x.shape[1])
    y = norm(x)
    x = x + block.self_attention(y, y, y, causal)
    x = x + block.cross_attention(norm(x), memory, memory, memory_mask)
    return x + block.feed_forward(norm(x))


@mistake(
    "fixed_block", caught_by="hides later tokens in eval mode", hint="Which line asks for the mode?"
)
def switches_the_mode(block, x, memory, memory_mask):
    """Is always in training mode, so that the mask is always there."""
    block.train()
    return only_the_norm_fixed(block, x, memory, memory_mask)


@mistake("fixed_block", caught_by="leaves x and the memory as they were", hint="write into x")
def adds_in_place(block, x, memory, memory_mask):
    """Is right, but writes the sums into the caller's x."""
    x += block.self_attention(*3 * [block.around_self.norm(x)], causal_mask(x.shape[1]))
    x += block.cross_attention(block.around_cross.norm(x), memory, memory, memory_mask)
    x += block.feed_forward(block.around_feed_forward.norm(x))
    return x


@mistake("fixed_block", caught_by="lets x pass unchanged", hint="What is done to x besides")
def third_norm_forgotten(block, x, memory, memory_mask):
    """The norm of the network is still applied to what is passed on."""
    y = block.around_self.norm(x)
    x = x + block.self_attention(y, y, y, causal_mask(x.shape[1]))
    x = x + block.cross_attention(block.around_cross.norm(x), memory, memory, memory_mask)
    x = block.around_feed_forward.norm(x)
    return x + block.feed_forward(x)


ON_PAPER = {
    "counted": {
        "a": 616,  # forgets the cross-attention
        "b": 288,  # believes that more heads have more matrices
        "c": 4830,  # forgets the norms that close the stacks
    },
}
