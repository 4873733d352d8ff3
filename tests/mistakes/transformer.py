"""Mistakes that the checks of *The Transformer* must catch."""

import torch
from mistakes.table import wrong

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


class my_sublayers:
    sees_the_future = wrong("Forgets the causal mask.",
        lambda block, x, memory, attn_mask=None, memory_mask=None: _three(block, x, memory, None, memory_mask))
    reads_the_padding = wrong("Forgets the memory's mask.",
        lambda block, x, memory, attn_mask=None, memory_mask=None: _three(block, x, memory, attn_mask, None))
    calls_the_block = wrong("Leaves the work to the block, which in the chapter calls this function.",
        lambda block, x, memory, attn_mask=None, memory_mask=None: block(x, memory, attn_mask, memory_mask))

    def exchanges_the_masks(block, x, memory, attn_mask=None, memory_mask=None):
        """Hands each attention the other's mask."""
        return _three(block, x, memory, memory_mask, attn_mask)

    def asks_the_memory_first(block, x, memory, attn_mask=None, memory_mask=None):
        """Runs the cross-attention before the self-attention."""
        return _three(block, x, memory, attn_mask, memory_mask, order=(1, 0, 2), around=(0, 1, 2))

    def forgets_the_first_sublayer(block, x, memory, attn_mask=None, memory_mask=None):
        """Hands x itself to the second residual, so that the self-attention is lost."""
        block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
        y = block.around_cross(x, lambda y: block.cross_attention(y, memory, memory, memory_mask))
        return block.around_feed_forward(y, block.feed_forward)

    def one_residual_for_all(block, x, memory, attn_mask=None, memory_mask=None):
        """Calls every sublayer through the first one's residual."""
        return _three(block, x, memory, attn_mask, memory_mask, around=(0, 0, 0))

    def norms_the_memory(block, x, memory, attn_mask=None, memory_mask=None):
        """Normalizes the memory once more."""
        return _three(block, x, block.around_cross.norm(memory), attn_mask, memory_mask)

    def gives_rows_of_the_memory(block, x, memory, attn_mask=None, memory_mask=None):
        """Lets the memory ask and the target answer."""
        x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
        memory = block.around_cross(memory, lambda y: block.cross_attention(y, x, x))
        return block.around_feed_forward(memory, block.feed_forward)

    def reads_no_source(block, x, memory, attn_mask=None, memory_mask=None):
        """Lets the target look at itself twice."""
        x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
        x = block.around_cross(x, lambda y: block.cross_attention(y, y, y, attn_mask))
        return block.around_feed_forward(x, block.feed_forward)

    def without_residuals(block, x, memory, attn_mask=None, memory_mask=None):
        """Calls the sublayers themselves."""
        x = block.self_attention(x, x, x, attn_mask)
        x = block.cross_attention(x, memory, memory, memory_mask)
        return block.feed_forward(x)

    def calls_the_class(block, x, memory, attn_mask=None, memory_mask=None):
        """The course's block by another way."""
        return DecoderLayer.forward(block, x, memory, attn_mask, memory_mask)

    def calls_the_lesson(block, x, memory, attn_mask=None, memory_mask=None):
        """The lesson's own three lines."""
        return blocks.three_sublayers(block, x, memory, attn_mask, memory_mask)

    def makes_its_own_mask(block, x, memory, attn_mask=None, memory_mask=None):
        """Is always causal, whatever it was handed."""
        return _three(block, x, memory, causal_mask(x.shape[1]), memory_mask)

    def hands_over_results(block, x, memory, attn_mask=None, memory_mask=None):
        """Calls the sublayers before the residuals can."""
        x = block.around_self(x, block.self_attention(x, x, x, attn_mask))
        x = block.around_cross(x, block.cross_attention(x, memory, memory, memory_mask))
        return block.around_feed_forward(x, block.feed_forward(x))

    def values_of_the_target(block, x, memory, attn_mask=None, memory_mask=None):
        """Looks at the memory and takes its own vectors along."""
        x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
        x = block.around_cross(x, lambda y: block.cross_attention(y, memory, y, memory_mask))
        return block.around_feed_forward(x, block.feed_forward)

    def sums_without_norms(block, x, memory, attn_mask=None, memory_mask=None):
        """Adds each sublayer by hand."""
        x = x + block.self_attention(x, x, x, attn_mask)
        x = x + block.cross_attention(x, memory, memory, memory_mask)
        return x + block.feed_forward(x)

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


class fixed_block:
    no_memory_mask = wrong("Reads the source's padding.",
        lambda block, x, memory, memory_mask: _decoder(block, x, memory, None, causal_mask(x.shape[1])))
    calls_the_whole_block = wrong("Repairs nothing: it calls the right block.",
        lambda block, x, memory, memory_mask: block(x, memory, causal_mask(x.shape[1]), memory_mask))

    def not_fixed(block, x, memory, memory_mask):
        """Both bugs as they stand in the chapter."""
        causal = causal_mask(x.shape[1]) if block.training else None
        return _decoder(block, x, memory, memory_mask, causal, normed_stream=True)

    def only_the_norm_fixed(block, x, memory, memory_mask):
        """The mask still depends on the mode."""
        causal = causal_mask(x.shape[1]) if block.training else None
        return _decoder(block, x, memory, memory_mask, causal)

    def off_by_one(block, x, memory, memory_mask):
        """Lets each token see the next one."""
        n = x.shape[1]
        return _decoder(block, x, memory, memory_mask, torch.ones(n, n).tril(1).bool())

    def queries_from_the_source(block, x, memory, memory_mask):
        """Exchanges the two sides of the cross-attention: one output per source token."""
        y = block.around_self.norm(x)
        x = x + block.self_attention(y, y, y, causal_mask(x.shape[1]))
        memory = memory + block.cross_attention(block.around_cross.norm(memory), x, x)
        return memory + block.feed_forward(block.around_feed_forward.norm(memory))

    def one_norm_for_all(block, x, memory, memory_mask):
        """Uses the first norm three times."""
        norm, causal = block.around_self.norm, causal_mask(x.shape[1])
        y = norm(x)
        x = x + block.self_attention(y, y, y, causal)
        x = x + block.cross_attention(norm(x), memory, memory, memory_mask)
        return x + block.feed_forward(norm(x))

    def switches_the_mode(block, x, memory, memory_mask):
        """Is always in training mode, so that the mask is always there."""
        block.train()
        return fixed_block.only_the_norm_fixed(block, x, memory, memory_mask)

    def adds_in_place(block, x, memory, memory_mask):
        """Is right, but writes the sums into the caller's x."""
        x += block.self_attention(*3 * [block.around_self.norm(x)], causal_mask(x.shape[1]))
        x += block.cross_attention(block.around_cross.norm(x), memory, memory, memory_mask)
        x += block.feed_forward(block.around_feed_forward.norm(x))
        return x

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

ANSWERS = {
    "exchanges_the_masks": ("runs with masks", "Which mask has the memory's length"),
    "asks_the_memory_first": ("in another order", "In which order"),
    "forgets_the_first_sublayer": ("hear the earlier ones", "What does each residual get"),
    "one_residual_for_all": ("agrees with PyTorch", "Each has its own norm"),
    "norms_the_memory": ("agrees with PyTorch", "What happens to the memory"),
    "adds_in_place": ("leaves x and the memory", "write into x"),
    "values_of_the_target": ("runs with masks", "both from the memory"),
    "sums_without_norms": ("agrees with PyTorch", "leaves the norm out"),
    "calls_the_block": ("it calls DecoderLayer.forward", "step by step"),
    "calls_the_class": ("it calls DecoderLayer.forward", "step by step"),
    "calls_the_lesson": ("it calls three_sublayers", "step by step"),
}
