"""Mistakes in the exercises of *Real weights*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake
from torch import nn

import course_utils
from course_utils.attention import MultiHeadAttention
from course_utils.layers import EncoderLayer, FeedForward, SwiGLU
from course_utils.lessons.real_weights import smollm
from course_utils.positions import Rotation


class _Block(smollm.Block):
    """The block as it should be, cut so that a mistake needs a line or two."""

    def forward(self, x, cache=None):
        x = x + self.attend(self.attention_norm(x), cache)
        return x + self.feed_forward(self.feed_forward_norm(x))

    def attend(self, y, cache):
        return self.attention(y, y, y, is_causal=True, cache=cache, encode=self.rotation(y, cache))

    def rotation(self, y, cache):
        start = 0 if cache is None else cache.length
        return Rotation(y.shape[1], self.head_dim, start=start, base=self.base)


# Parameters


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="attention_norm and feed_forward_norm: nothing",
    hint="takes the place of `...`",
)
class two_parts_to_go(_Block):
    """Has made attention and network, and no norms yet."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        del self.attention_norm, self.feed_forward_norm
        self.attention_norm = self.feed_forward_norm = ...


@mistake("my_block", caught_by="has the parameters of a block", hint="`super().__init__()`")
class without_super(nn.Module):
    """Makes the parts before nn.Module is ready."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        self.attention = MultiHeadAttention(embed_dim, num_heads)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="expected a module",
    hint="class MyBlock(nn.Module)",
)
class no_module:
    """Inherits from nothing."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        self.attention_norm = nn.RMSNorm(embed_dim)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="it uses EncoderLayer",
    hint="step by step",
)
class calls_the_library(EncoderLayer):
    """The course's own block under another name."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(
            embed_dim, num_heads, ffn_dim, dropout=0.0, activation="swiglu", norm="rms", rotary=True,
            rotary_base=base, num_kv_heads=num_kv_heads, bias=False,
        )  # fmt: skip

    def forward(self, x, cache=None):
        return super().forward(x, is_causal=True, cache=cache)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="missing: feed_forward_norm.weight",
    hint="How many norms",
)
class one_norm_for_both(_Block):
    """Has one norm, and uses it twice."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        del self.feed_forward_norm

    def forward(self, x, cache=None):
        x = x + self.attend(self.attention_norm(x), cache)
        return x + self.feed_forward(self.attention_norm(x))


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="too many: attention_norm.bias",
    hint="RMSNorm only multiplies",
)
class layer_norm(_Block):
    """Chapter 13's norm, with a bias."""

    def __init__(self, embed_dim, *sizes):
        super().__init__(embed_dim, *sizes)
        self.attention_norm = nn.LayerNorm(embed_dim)
        self.feed_forward_norm = nn.LayerNorm(embed_dim)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="too many: attention.key_proj.bias",
    hint="`bias=False`",
)
class biases(_Block):
    """Leaves out bias=False."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, *sizes):
        super().__init__(embed_dim, num_heads, num_kv_heads, *sizes)
        self.attention = MultiHeadAttention(embed_dim, num_heads, num_kv_heads=num_kv_heads)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="has shape (24, 24), expected (8, 24)",
    hint="`num_kv_heads`",
)
class a_head_of_keys_for_each_query(_Block):
    """Leaves out num_kv_heads."""

    def __init__(self, embed_dim, num_heads, *sizes):
        super().__init__(embed_dim, num_heads, *sizes)
        self.attention = MultiHeadAttention(embed_dim, num_heads, bias=False)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="missing: feed_forward.down.weight",
    hint="Take `SwiGLU`",
)
class plain_network(_Block):
    """Chapter 13's network."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, activation="gelu")


@mistake(
    "my_block", caught_by="has the parameters of a block", reason="too many", hint="Take `SwiGLU`"
)
class chapter_13(_Block):
    """All of it as it was there."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        nn.Module.__init__(self)
        self.attention = MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, activation="gelu")
        self.attention_norm, self.feed_forward_norm = (
            nn.LayerNorm(embed_dim),
            nn.LayerNorm(embed_dim),
        )


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="has shape (96, 24), expected (40, 24)",
    hint="`ffn_dim`",
)
class four_times_as_wide(_Block):
    """Makes the network as wide as chapter 13's."""

    def __init__(self, embed_dim, *sizes):
        super().__init__(embed_dim, *sizes)
        self.feed_forward = SwiGLU(embed_dim, 4 * embed_dim)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="takes 3 positional arguments",
    hint="`num_kv_heads=num_kv_heads`",
)
class by_place(_Block):
    """Gives num_kv_heads without its name."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        self.attention = MultiHeadAttention(embed_dim, num_heads, num_kv_heads, bias=False)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="keyword argument 'encode'",
    hint="belong to its call in `forward`",
)
class encode_when_made(_Block):
    """Hands the rotation to the constructor."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        rotation = Rotation(512, embed_dim // num_heads, base=base)
        self.attention = MultiHeadAttention(
            embed_dim, num_heads, num_kv_heads=num_kv_heads, bias=False, encode=rotation
        )


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="'x' is not defined",
    hint="Is the name spelled the way",
)
class x_when_made(_Block):
    """Makes the rotation before there is an x."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.rotation = Rotation(x.shape[1], self.head_dim, base=self.base)  # noqa: F821


@mistake(
    "my_block", caught_by="has the parameters of a block", hint="A question mark behind its name"
)
class heads_first(_Block):
    """Exchanges the attention's two sizes."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, *sizes):
        super().__init__(embed_dim, num_heads, num_kv_heads, *sizes)
        self.attention = MultiHeadAttention(num_heads, embed_dim, num_kv_heads=num_kv_heads)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="keyword argument 'bias'",
    hint="A question mark behind its name",
)
class norm_without_bias(_Block):
    """RMSNorm has no bias to leave out."""

    def __init__(self, embed_dim, *sizes):
        super().__init__(embed_dim, *sizes)
        self.attention_norm = nn.RMSNorm(embed_dim, eps=1e-5, bias=False)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="keyword argument 'activation'",
    hint="A question mark behind its name",
)
class gated_with_activation(_Block):
    """Keeps chapter 13's argument of the network."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        self.feed_forward = SwiGLU(embed_dim, ffn_dim, activation="silu")


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="keyword argument 'kv_heads'",
    hint="by name `num_kv_heads=",
)
class kv_heads(_Block):
    """Shortens num_kv_heads."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, *sizes):
        super().__init__(embed_dim, num_heads, num_kv_heads, *sizes)
        self.attention = MultiHeadAttention(embed_dim, num_heads, kv_heads=num_kv_heads)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="no attribute 'SwiGLU'",
    hint="Does the object before the dot",
)
class of_the_package(_Block):
    """Looks for SwiGLU under cu."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        self.feed_forward = course_utils.SwiGLU(embed_dim, ffn_dim)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="is unknown",
    hint="A question mark behind its name",
)
class swiglu_for_an_activation(_Block):
    """Takes SwiGLU for one."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, activation="swiglu")


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="has shape (40,), expected (24,)",
    hint="features of the stream",
)
class norm_of_the_network(_Block):
    """Makes the second norm as wide as the network."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
        super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
        self.feed_forward_norm = nn.RMSNorm(ffn_dim, eps=1e-5)


@mistake(
    "my_block",
    caught_by="has the parameters of a block",
    reason="too many: norm1.weight",
    hint="What are your four parts called",
)
class other_names(_Block):
    """Calls the norms as it likes."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.norm1, self.norm2 = self.attention_norm, self.feed_forward_norm
        del self.attention_norm, self.feed_forward_norm

    def forward(self, x, cache=None):
        x = x + self.attend(self.norm1(x), cache)
        return x + self.feed_forward(self.norm2(x))


# The shape


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="`forward` gives nothing yet",
    hint="end with `return`",
)
class only_the_parts(_Block):
    """Has all parts, and forward is still empty."""

    def forward(self, x, cache=None): ...


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class turns_whole_rows(_Block):
    """Makes the rotation as wide as x."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], y.shape[2], base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class length_of_the_batch(_Block):
    """Takes the batch for the length."""

    def rotation(self, y, cache):
        return Rotation(len(y), self.head_dim, base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class made_once(_Block):
    """Makes a long rotation in __init__."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.turn = Rotation(512, self.head_dim, base=self.base)

    def rotation(self, y, cache):
        return self.turn


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class heads_for_columns(_Block):
    """Takes the number of heads for the size of one."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.attention.num_heads, base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="a positive, even size",
    hint="Which arguments does a `Rotation` take",
)
class sizes_exchanged(_Block):
    """Gives the rotation the size of a head first."""

    def rotation(self, y, cache):
        return Rotation(self.head_dim, y.shape[1], base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="takes 3 positional arguments",
    hint="`start=` and `base=`",
)
class start_by_place(_Block):
    """Gives start and base without their names."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.head_dim, 0, self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="required positional argument: 'dim'",
    hint="then the size of a head",
)
class only_the_length(_Block):
    """Leaves out the size of a head."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="keyword argument 'head_dim'",
    hint="`start=` and `base=`",
)
class names_head_dim(_Block):
    """Takes the task's word for an argument's name."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], head_dim=self.head_dim, base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class length_of_a_row(_Block):
    """Takes the last axis for the length."""

    def rotation(self, y, cache):
        return Rotation(y.shape[-1], self.head_dim, base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class the_whole_shape(_Block):
    """Gives the rotation all of the shape."""

    def rotation(self, y, cache):
        return Rotation(y.shape, self.head_dim, base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="hand it to the attention as `encode=`",
)
class switched_on(_Block):
    """Takes encode for a switch."""

    def rotation(self, y, cache):
        return True


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="attn_mask",
    hint="by name `is_causal=`, `cache=` and `encode=`",
)
class rotation_for_a_mask(_Block):
    """Gives the rotation without its name, where the mask stands."""

    def attend(self, y, cache):
        return self.attention(y, y, y, self.rotation(y, cache), is_causal=True, cache=cache)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="required positional argument: 'dim'",
    hint="Make one",
)
class the_class_itself(_Block):
    """Hands over Rotation, and not a rotation."""

    def rotation(self, y, cache):
        return Rotation


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    hint="rotates the columns of each *head*",
)
class turned_beforehand(_Block):
    """Hands over what a rotation gives."""

    def rotation(self, y, cache):
        return super().rotation(y, cache)(y)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="not callable",
    hint="Hand on the rotation itself",
)
class turned_as_wide_as_x(_Block):
    """The same with a rotation that fits y."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], y.shape[2], base=self.base)(y)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="has no attribute 'length'",
    hint="when there is no cache? 0",
)
class always_a_cache(_Block):
    """Asks for the length of no cache."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.head_dim, start=cache.length, base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="has no len",
    hint="when there is no cache? 0",
)
class len_of_the_cache(_Block):
    """Calls len on it."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.head_dim, start=len(cache), base=self.base)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="'base' is not defined",
    hint="`self.base = …`",
)
class base_not_kept(_Block):
    """Uses an argument of __init__ in forward."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.head_dim, base=base)  # noqa: F821


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="has no attribute 'base'",
    hint="Where is `base` known",
)
class base_not_set(_Block):
    """Reads self.base, and never sets it."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        del self.base


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="keyword argument 'num_kv_heads'",
    hint="the attention's making",
)
class sizes_in_the_call(_Block):
    """Gives the call what belongs to the making."""

    def attend(self, y, cache):
        heads = self.attention.num_kv_heads
        return self.attention(y, y, y, is_causal=True, cache=cache, num_kv_heads=heads)


@mistake(
    "my_block",
    caught_by="gives an output of the shape of x",
    reason="keyword argument 'rotation'",
    hint="`encode=`",
)
class rotation_for_encode(_Block):
    """Calls the argument rotation."""

    def attend(self, y, cache):
        return self.attention(
            y, y, y, is_causal=True, cache=cache, rotation=self.rotation(y, cache)
        )


@mistake("my_block", caught_by="gives an output of the shape of x", hint="three times the same y")
class queries_only(_Block):
    """Calls the attention with one input."""

    def attend(self, y, cache):
        return self.attention(y, is_causal=True)


# Who looks, and what is passed on


@mistake("my_block", caught_by="keeps earlier outputs as they", hint="`is_causal`")
class looks_ahead(_Block):
    """Leaves out is_causal."""

    def attend(self, y, cache):
        return self.attention(y, y, y, cache=cache, encode=self.rotation(y, cache))


@mistake("my_block", caught_by="lets x pass unchanged if attention", hint="add to x itself")
class norm_after(_Block):
    """The first generation's order: the norm comes after the sum."""

    def forward(self, x, cache=None):
        x = self.attention_norm(x + self.attend(x, cache))
        return self.feed_forward_norm(x + self.feed_forward(x))


@mistake("my_block", caught_by="lets x pass unchanged if attention", hint="add to x itself")
class passes_on_the_norm(_Block):
    """Adds to what the norm gives, not to the stream."""

    def forward(self, x, cache=None):
        x = self.attention_norm(x)
        x = x + self.attend(x, cache)
        x = self.feed_forward_norm(x)
        return x + self.feed_forward(x)


@mistake("my_block", caught_by="lets x pass unchanged if attention", hint="Who adds x")
class without_residuals(_Block):
    """Adds nothing."""

    def forward(self, x, cache=None):
        return self.feed_forward(self.feed_forward_norm(self.attend(self.attention_norm(x), cache)))


@mistake("my_block", caught_by="lets x pass unchanged if attention", hint="How often do you add x")
class adds_x_twice(_Block):
    """Adds both sums together."""

    def forward(self, x, cache=None):
        after = x + self.attend(self.attention_norm(x), cache)
        return x + after + self.feed_forward(self.feed_forward_norm(after))


@mistake(
    "my_block", caught_by="lets each part read the stream through", hint="`self.attention_norm(x)`"
)
class reads_the_stream(_Block):
    """The attention reads x itself."""

    def forward(self, x, cache=None):
        x = x + self.attend(x, cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


@mistake(
    "my_block",
    caught_by="lets each part read the stream through",
    hint="`self.feed_forward_norm(x)`",
)
class network_without_norm(_Block):
    """The network reads x itself."""

    def forward(self, x, cache=None):
        x = x + self.attend(self.attention_norm(x), cache)
        return x + self.feed_forward(x)


@mistake("my_block", caught_by="lets each part read the stream through", hint="yours are exchanged")
class norms_exchanged(_Block):
    """Each part reads through the other's norm."""

    def forward(self, x, cache=None):
        x = x + self.attend(self.feed_forward_norm(x), cache)
        return x + self.feed_forward(self.attention_norm(x))


@mistake("my_block", caught_by="lets each part read the stream through", hint="one of its own")
class first_norm_twice(_Block):
    """Has both norms, and uses the first one twice."""

    def forward(self, x, cache=None):
        x = x + self.attend(self.attention_norm(x), cache)
        return x + self.feed_forward(self.attention_norm(x))


@mistake("my_block", caught_by="lets each part read the stream through", hint="on the new x")
class side_by_side(_Block):
    """The network reads x as it was before the attention."""

    def forward(self, x, cache=None):
        attended = self.attend(self.attention_norm(x), cache)
        return x + attended + self.feed_forward(self.feed_forward_norm(x))


@mistake("my_block", caught_by="lets each part read the stream through", hint="subtract the mean")
class subtracts_the_mean(_Block):
    """LayerNorm without its bias, which has RMSNorm's parameters."""

    def __init__(self, embed_dim, *sizes):
        super().__init__(embed_dim, *sizes)
        self.attention_norm = nn.LayerNorm(embed_dim, bias=False)
        self.feed_forward_norm = nn.LayerNorm(embed_dim, bias=False)


# Positions


@mistake(
    "my_block",
    caught_by="rotates queries and keys by their positions",
    hint="hand it to the attention as `encode=`",
)
class no_rotation(_Block):
    """Forgets encode."""

    def attend(self, y, cache):
        return self.attention(y, y, y, is_causal=True, cache=cache)


@mistake(
    "my_block", caught_by="rotates queries and keys by their positions", hint="Queries *and* keys"
)
class turns_queries_only(_Block):
    """Its encode leaves the keys as they are."""

    def attend(self, y, cache):
        rotation, count = self.rotation(y, cache), self.attention.num_heads
        return self.attention(
            y, y, y, is_causal=True, cache=cache, encode=lambda z: rotation(z) if z.shape[1] == count else z
        )  # fmt: skip


@mistake("my_block", caught_by="rotates queries and keys by their positions", hint="stand anywhere")
class one_position_for_all(_Block):
    """A rotation for a single token, which broadcasts."""

    def rotation(self, y, cache):
        return Rotation(1, self.head_dim, base=self.base)


@mistake("my_block", caught_by="rotates queries and keys as slowly", hint="still say *Paris*")
class base_forgotten(_Block):
    """Rotation's own base, 10,000: in SmolLM2 a silent mistake."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.head_dim, start=0 if cache is None else cache.length)


@mistake("my_block", caught_by="rotates queries and keys as slowly", hint="Is 100,000 written")
class base_written_down(_Block):
    """SmolLM2's base, whatever it is given."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.base = 100_000.0


# Small numbers


@mistake(
    "my_block",
    caught_by="adds ε = 10⁻⁵ under the root",
    reason="attention_norm, small numbers",
    hint="`eps=1e-5`",
)
class epsilon_forgotten(_Block):
    """nn.RMSNorm's own ε, about 10⁻⁷."""

    def __init__(self, embed_dim, *sizes):
        super().__init__(embed_dim, *sizes)
        self.attention_norm, self.feed_forward_norm = (
            nn.RMSNorm(embed_dim),
            nn.RMSNorm(embed_dim),
        )


@mistake(
    "my_block",
    caught_by="adds ε = 10⁻⁵ under the root",
    reason="feed_forward_norm, small numbers",
    hint="`eps=1e-5`",
)
class epsilon_in_one_norm(_Block):
    """Only the first norm has the file's ε."""

    def __init__(self, embed_dim, *sizes):
        super().__init__(embed_dim, *sizes)
        self.feed_forward_norm = nn.RMSNorm(embed_dim)


# The cache


@mistake(
    "my_block",
    caught_by="gives on a cache, piece by piece",
    hint="`def forward(self, x, cache=None):`",
)
class takes_no_cache(_Block):
    """Its forward has no such argument."""

    def forward(self, x):
        return super().forward(x)


@mistake(
    "my_block",
    caught_by="gives on a cache, piece by piece",
    reason="the cache holds 0 tokens after 6",
    hint="`cache=cache`",
)
class forgets_the_cache(_Block):
    """Takes a cache, and does not hand it on."""

    def attend(self, y, cache):
        return self.attention(y, y, y, is_causal=True, encode=self.rotation(y, cache))


@mistake(
    "my_block",
    caught_by="gives on a cache, piece by piece",
    reason="pieces of 3, 2 and 1",
    hint="begin at position 0",
)
class begins_again(_Block):
    """Each piece stands at the beginning."""

    def rotation(self, y, cache):
        return Rotation(y.shape[1], self.head_dim, base=self.base)


@mistake(
    "my_block", caught_by="gives on a cache, piece by piece", hint="Where does a new token stand?"
)
class turns_old_and_new(_Block):
    """Makes angles for the cache's tokens, too."""

    def rotation(self, y, cache):
        held = 0 if cache is None else cache.length
        return Rotation(held + y.shape[1], self.head_dim, base=self.base)


@mistake("my_block", caught_by="rotates queries and keys by their positions", hint="Its *heads*")
class turns_the_stream(_Block):
    """Turns y itself, as wide as it is."""

    def attend(self, y, cache):
        start = 0 if cache is None else cache.length
        y = Rotation(y.shape[1], y.shape[2], start=start, base=self.base)(y)
        return self.attention(y, y, y, is_causal=True, cache=cache)


@mistake("my_block", caught_by="gives on a cache, piece by piece", hint="`start=cache.length`")
class counts_too_early(_Block):
    """Believes that the cache holds the new tokens already."""

    def rotation(self, y, cache):
        start = 0 if cache is None else cache.length - y.shape[1]
        return Rotation(y.shape[1], self.head_dim, start=start, base=self.base)


@mistake(
    "my_block",
    caught_by="gives on a cache, piece by piece",
    reason="pieces of 3, 2 and 1",
    hint="right with a cache, too",
)
class looks_ahead_in_a_piece(_Block):
    """Is causal only without a cache: right for single tokens, and wrong for a prompt."""

    def attend(self, y, cache):
        alone = cache is None
        return self.attention(y, y, y, is_causal=alone, cache=cache, encode=self.rotation(y, cache))


# The rest


@mistake("my_block", caught_by="leaves x as it was", hint="write `x = x + …`")
class adds_in_place(_Block):
    """Writes into the caller's x."""

    def forward(self, x, cache=None):
        x += self.attend(self.attention_norm(x), cache)
        x += self.feed_forward(self.feed_forward_norm(x))
        return x


@mistake("my_block", caught_by="lets gradients through, by the parts", hint="the way back")
class cuts_the_way_back(_Block):
    """Detaches what the attention gives."""

    def forward(self, x, cache=None):
        x = x + self.attend(self.attention_norm(x), cache).detach()
        return x + self.feed_forward(self.feed_forward_norm(x))


@mistake(
    "my_block",
    caught_by="lets gradients through, by the parts",
    reason="no gradient reaches the stream",
    hint="the way back",
)
class never_trains(_Block):
    """Computes without gradients."""

    @torch.no_grad()
    def forward(self, x, cache=None):
        return super().forward(x, cache)


def _ends(raw, dtype=torch.float16):
    """Scale and least value, each (blocks, 1)."""
    return raw[:, :2].clone().view(dtype).float(), raw[:, 2:4].clone().view(dtype).float()


def _numbers(raw):
    return torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=1)


@mistake(
    "my_q4_1", caught_by="has the low halves as numbers 0 to 15", hint="Number 16, not number 1"
)
def halves_interleaved(raw):
    """Both halves of a byte side by side."""
    scale, least = _ends(raw)
    return scale * torch.stack([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=-1).flatten(1) + least


@mistake("my_q4_1", caught_by="has the low halves as numbers 0 to 15", hint="Which half of a byte")
def high_halves_first(raw):
    """Takes the high half for the first."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] >> 4, raw[:, 4:] & 15], dim=1) + least


@mistake("my_q4_1", caught_by="gives the least value", hint="Those of the scale d")
def ends_exchanged(raw):
    """Takes the least value for the scale."""
    scale, least = _ends(raw)
    return least * _numbers(raw) + scale


@mistake("my_q4_1", caught_by="gives the least value", hint="add it")
def subtracts(raw):
    """Takes the least value off."""
    scale, least = _ends(raw)
    return scale * _numbers(raw) - least


@mistake("my_q4_1", caught_by="gives the least value", hint="What is multiplied by d")
def multiplies_the_sum(raw):
    """Scales the least value, too."""
    scale, least = _ends(raw)
    return scale * (_numbers(raw) + least)


@mistake("my_q4_1", caught_by="gives the least value", hint="What does the number 0 stand for")
def least_forgotten(raw):
    """Only the scale."""
    return _ends(raw)[0] * _numbers(raw)


@mistake("my_q4_1", caught_by="gives the least value", hint="subtracts 8")
def q4_0(raw):
    """Moves the numbers down by 8, and has a least value all the same."""
    scale, least = _ends(raw)
    return scale * (_numbers(raw).float() - 8) + least


@mistake("my_q4_1", caught_by="gives the least value", hint="subtracts 8")
def q4_0_in_bytes(raw):
    """Moves them down by 8 in uint8, which has nothing below 0."""
    scale, least = _ends(raw)
    return scale * (_numbers(raw) - 8) + least


@mistake("my_q4_1", caught_by="gives the least value", hint="reads a whole number")
def whole_numbers(raw):
    """Reads two bytes as a whole number."""
    scale, least = _ends(raw, torch.int16)
    return scale * _numbers(raw) + least


@mistake("my_q4_1", caught_by="gives the least value", hint="one float of 16 bits")
def one_byte_each(raw):
    """Takes the first byte for the scale and the second for the least value."""
    return raw[:, :1].float() * _numbers(raw) + raw[:, 1:2].float()


@mistake("my_q4_1", caught_by="gives the least value", hint="one float of 16 bits")
def joined_in_bytes(raw):
    """Joins two bytes by hand, in uint8, where 256 is 0."""
    scale, least = (raw[:, at : at + 1] + 256 * raw[:, at + 1 : at + 2] for at in (0, 2))
    return scale.float() * _numbers(raw) + least.float()


@mistake("my_q4_1", caught_by="goes up by the scale from one number", hint="`byte >> 4`")
def not_shifted(raw):
    """Leaves the high halves where they are, 16 times too large."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] & 240], dim=1) + least


@mistake("my_q4_1", caught_by="goes up by the scale from one number", hint="`byte >> 4`")
def divided(raw):
    """Divides by 16, and keeps what is behind the point."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] / 16], dim=1) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="got shape (3, 40)",
    hint="begin with `raw[:, 4:]`",
)
def all_twenty_bytes(raw):
    """Takes scale and least value for numbers, too."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw & 15, raw >> 4], dim=1) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="got shape (3, 16)",
    hint="How many numbers does a byte hold",
)
def low_halves_only(raw):
    """A number for each byte."""
    scale, least = _ends(raw)
    return scale * (raw[:, 4:] & 15) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="got shape (96,)",
    hint="How many rows has raw",
)
def flat(raw):
    """All numbers in one row."""
    scale, least = _ends(raw)
    return (scale * _numbers(raw) + least).flatten()


@mistake("my_q4_1", caught_by="gives each block its own scale", hint="Each block has its own")
def first_block_for_all(raw):
    """Scale and least value of the first block."""
    scale, least = _ends(raw[:1])
    return scale * _numbers(raw) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="got shape (1, 32)",
    hint="How many rows has raw",
)
def only_the_first_block(raw):
    """Decodes one block."""
    scale, least = _ends(raw[:1])
    return scale * _numbers(raw[:1]) + least


@mistake("my_q4_1", caught_by="computes in float32", hint="Before they are multiplied")
def half_precision(raw):
    """Computes in float16."""
    return raw[:, :2].view(torch.float16) * _numbers(raw) + raw[:, 2:4].view(torch.float16)


@mistake("my_q4_1", caught_by="computes in float32", hint="Before they are multiplied")
def half_precision_made_whole(raw):
    """Makes float32 of what float16 has rounded."""
    return half_precision(raw).float()


# What raises an error with more than one block


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="converted to Scalar",
    hint="need exactly one number",
)
def as_the_cell_above(raw):
    """Copies .item() from there."""
    scale, least = (raw[:, i : i + 2].view(torch.float16).item() for i in (0, 2))
    return scale * _numbers(raw) + least


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="keep d and m as columns")
def python_float(raw):
    """The same by Python's float."""
    scale, least = (float(raw[:, i : i + 2].view(torch.float16)) for i in (0, 2))
    return scale * _numbers(raw) + least


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def two_bytes_made_float(raw):
    """Makes a float of each byte, and has two for d."""
    return raw[:, 0:2].float() * _numbers(raw) + raw[:, 2:4].float()


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def two_bytes_to_half(raw):
    """The same by .to."""
    return raw[:, 0:2].to(torch.float16) * _numbers(raw) + raw[:, 2:4].to(torch.float16)


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def first_two_bytes(raw):
    """Takes byte 0 for d and byte 1 for m, without a column."""
    return raw[:, 0] * _numbers(raw) + raw[:, 1]


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def below_each_other(raw):
    """Joins along the blocks."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4]) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="got shape (6, 16)",
    hint="below each other",
)
def half_and_half_below(raw):
    """Computes first, and joins along the blocks afterwards."""
    scale, least = _ends(raw)
    return torch.cat([scale * (raw[:, 4:] & 15) + least, scale * (raw[:, 4:] >> 4) + least])


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="as columns, (blocks, 1)")
def no_column(raw):
    """Views all as float16, and takes the first."""
    halves = raw.view(torch.float16).float()
    return halves[:, 0] * _numbers(raw) + halves[:, 1]


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="as columns, (blocks, 1)")
def squeezed(raw):
    """Squeezes the columns away."""
    scale, least = _ends(raw)
    return scale.squeeze() * _numbers(raw) + least.squeeze()


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="as columns, (blocks, 1)")
def no_column_and_below(raw):
    """Two mistakes at once."""
    halves = raw.view(torch.float16).float()
    return halves[:, 0] * torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4]) + halves[:, 1]


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def stacked(raw):
    """Stacks where it should join."""
    scale, least = _ends(raw)
    return scale * torch.stack([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=1) + least


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def stacked_in_pairs(raw):
    """Stacks along the last axis, and leaves it there."""
    scale, least = _ends(raw)
    return scale * torch.stack([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=-1) + least


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line?"
)
def rows_for_bytes(raw):
    """Slices the blocks, and means the bytes."""
    scale, least = (raw[i : i + 2].view(torch.float16) for i in (0, 2))
    return scale * torch.cat([raw[4:] & 15, raw[4:] >> 4]) + least


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="How many bytes does a float16"
)
def straight_to_float32(raw):
    """Views two bytes as 32 bits."""
    return raw[:, 0:2].view(torch.float32) * _numbers(raw) + raw[:, 2:4].view(torch.float32)


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="How many bytes does a float16"
)
def one_byte_as_float16(raw):
    """Views one byte as 16 bits."""
    return raw[:, 0:1].view(torch.float16) * _numbers(raw) + raw[:, 1:2]


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="How many bytes does a float16"
)
def next_byte(raw):
    """Looks for m one byte too early."""
    return raw[:, 0:2].view(torch.float16) * _numbers(raw) + raw[:, 1:3].view(torch.float16)


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="What can `&` and `>>` take")
def floats_first(raw):
    """Takes the halves of floats."""
    scale, least = _ends(raw)
    bytes_ = raw[:, 4:].float()
    return scale * torch.cat([bytes_ & 15, bytes_ >> 4], dim=1) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="values to unpack",
    hint="Which shapes meet in this line",
)
def unpacked(raw):
    """Unpacks along the blocks."""
    scale, least = raw[:, :4].view(torch.float16).float()
    return scale * _numbers(raw) + least


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="What does `torch.cat` take")
def cat_without_a_list(raw):
    """Gives cat two tensors."""
    scale, least = _ends(raw)
    return scale * torch.cat(raw[:, 4:] & 15, raw[:, 4:] >> 4, dim=1) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="'byte' is not defined",
    hint="Is the name spelled the way",
)
def a_byte_by_name(raw):
    """Copies the task's words."""
    scale, least = _ends(raw)
    return scale * torch.cat([byte & 15, byte >> 4], dim=1) + least  # noqa: F821


# What is right in shape


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="got shape (3, 36)",
    hint="begin with `raw[:, 4:]`",
)
def too_many_bytes(raw):
    """Takes m for numbers."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 2:] & 15, raw[:, 2:] >> 4], dim=1) + least


@mistake(
    "my_q4_1", caught_by="goes up by the scale from one number", hint="Where does the number 15 lie"
)
def minus_the_steps(raw):
    """Goes down from m."""
    scale, least = _ends(raw)
    return least - scale * _numbers(raw)


@mistake("my_q4_1", caught_by="gives the least value", hint="reads d and m from `raw`")
def the_cell_above(raw):
    """Takes d and m of the cell above."""
    return 0.03314 * _numbers(raw) - 0.26514


@mistake(
    "my_q4_1",
    caught_by="goes up by the scale from one number",
    hint="What in your function reads d from",
)
def only_d_above(raw):
    """Takes d of the cell above."""
    return 0.03314 * _numbers(raw) + _ends(raw)[1]


@mistake("my_q4_1", caught_by="gives the least value", hint="What does the number 0 stand for")
def numbers_alone(raw):
    """Forgets d and m."""
    return _numbers(raw)


@mistake("my_q4_1", caught_by="goes up by the scale from one number", hint="in bits 1111")
def four_for_four_bits(raw):
    """Takes 4 for the mask of four bits."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] & 4, raw[:, 4:] >> 4], dim=1) + least


@mistake("my_q4_1", caught_by="goes up by the scale from one number", hint="The remainder by 16")
def by_fifteen(raw):
    """Divides by 15."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] % 15, raw[:, 4:] // 15], dim=1) + least


@mistake(
    "my_q4_1",
    caught_by="gives 32 numbers for each block",
    reason="Dimension out of range",
    hint="What does `torch.cat` take",
)
def third_axis(raw):
    """Counts the axes from 1."""
    scale, least = _ends(raw)
    return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=2) + least


@mistake(
    "my_q4_1", caught_by="gives 32 numbers for each block", hint="Which shapes meet in this line"
)
def number_by_number(raw):
    """Fills 32 numbers, though there are several blocks."""
    (scale, least), n = _ends(raw), torch.zeros(32)
    for i in range(16):
        n[i], n[16 + i] = raw[:, 4 + i] & 15, raw[:, 4 + i] >> 4
    return scale * n + least


@mistake("my_q4_1", caught_by="gives 32 numbers for each block", hint="need exactly one number")
def tensor_of_tensors(raw):
    """Joins tensors by torch.tensor."""
    scale, least = _ends(raw)
    return torch.tensor([scale * (raw[:, 4:] & 15) + least, scale * (raw[:, 4:] >> 4) + least])


@mistake("my_q4_1", caught_by="gives the least value", hint="*multiplied*")
def sum_of_three(raw):
    """Adds where it should multiply."""
    scale, least = _ends(raw)
    return scale + _numbers(raw) + least


@mistake("my_q4_1", caught_by="gives the least value", hint="not bfloat16")
def brain_floats(raw):
    """Reads bfloat16."""
    scale, least = _ends(raw, torch.bfloat16)
    return scale * _numbers(raw) + least


@mistake("my_q4_1", caught_by="the bytes are not changed", hint="write into the bytes")
def shifts_in_place(raw):
    """Writes into the file's bytes."""
    scale, least = _ends(raw)
    low = raw[:, 4:] & 15
    raw[:, 4:] >>= 4
    return scale * torch.cat([low, raw[:, 4:]], dim=1) + least


ON_PAPER = {
    "count_by_hand": {
        "a": 1_327_104,  # as many heads of keys and values as of queries
        "b": 1_769_472,  # a network of two matrices
        "c": 3_538_944,  # forgets the norms
        "d": 162_826_560,  # counts the tied rows twice
    },
}


@mistake(
    "my_without_look",
    caught_by="gives a probability for each token",
    reason="sum to",
    hint="softmax",
)
def logits(model, ids, positions, layer):
    """Gives logits."""
    return _looks(model, ids, lambda z: z[0, -1], queries=6, keys=positions, layers=layer)


@mistake(
    "my_without_look",
    caught_by="gives a probability for each token",
    hint="Which row of the logits says",
)
def of_all_tokens(model, ids, positions, layer):
    """Gives a row for each token."""
    return _looks(model, ids, lambda z: z[0].softmax(-1), queries=6, keys=positions, layers=layer)


@mistake("my_without_look", caught_by="forbids the positions to the last token", hint="Whose row")
def of_the_first_token(model, ids, positions, layer):
    """Reads the first token's row."""
    return _looks(
        model, ids, lambda z: z[0, 0].softmax(-1), queries=6, keys=positions, layers=layer
    )


@mistake(
    "my_without_look",
    caught_by="forbids the positions to the last token",
    reason="no look at [2] in layer 1",
    hint="Who asks?",
)
def for_everybody(model, ids, positions, layer):
    """Forbids the positions to all tokens."""
    return _looks(model, ids, keys=positions, layers=layer)


@mistake(
    "my_without_look",
    caught_by="forbids the positions to the last token",
    reason="no look at [2] in layer 1",
    hint="In which layer?",
)
def in_every_layer(model, ids, positions, layer):
    """Forbids the positions in all layers."""
    return _looks(model, ids, queries=6, keys=positions)


@mistake(
    "my_without_look",
    caught_by="forbids the positions to the last token",
    reason="no look at [2] in layer 1",
    hint="What is forbidden?",
)
def at_nothing(model, ids, positions, layer):
    """Lets the last token look at nothing in this layer."""
    return _looks(model, ids, queries=6, layers=layer)


@mistake(
    "my_without_look",
    caught_by="forbids the positions to the last token",
    reason="no look at [2] in layer 1",
    hint="the last token is the query",
)
def exchanged(model, ids, positions, layer):
    """Lets the positions not look at the last token."""
    return _looks(model, ids, queries=positions, keys=6, layers=layer)


@mistake(
    "my_without_look",
    caught_by="forbids the positions to the last token",
    reason="no look at [3, 4] in layer 2",
    hint="How many positions",
)
def first_position(model, ids, positions, layer):
    """Forbids the first position only."""
    return _looks(model, ids, queries=6, keys=positions[0], layers=layer)


@mistake(
    "my_without_look",
    caught_by="gives a probability for each token",
    reason="numbers counted from 0",
    hint="At which position stands",
)
def counted_back(model, ids, positions, layer):
    """Counts the last token as −1."""
    return _looks(model, ids, queries=-1, keys=positions, layers=layer)


@mistake(
    "my_without_look",
    caught_by="forbids the positions to the last token",
    reason="no look at [2] in layer 1",
    hint="inside the block",
)
def outside(model, ids, positions, layer):
    """Runs the model after the block."""
    with course_utils.intervene(model) as acts:
        acts.forbid(queries=6, keys=positions, layers=layer)
    return model(ids)[0, -1].softmax(-1)


@mistake(
    "my_without_look",
    caught_by="leaves the model as it was",
    hint="How long is the look forbidden?",
)
def left_open(model, ids, positions, layer):
    """Opens the block by hand and never closes it."""
    acts = course_utils.intervene(model).__enter__()
    acts.forbid(queries=6, keys=positions, layers=layer)
    return model(ids)[0, -1].softmax(-1)


def _looks(model, ids, read=lambda z: z[0, -1].softmax(-1), **forbidden):
    with course_utils.intervene(model) as acts:
        acts.forbid(**forbidden)
        return read(model(ids))
