"""Training vision transformers: images per second, against d2l 1.0.3 and vit-pytorch.

Everybody has 28 × 28 grey images, patches of 7 × 7, 128 features, a network of 256, 4 heads, 2 layers, dropout
0.1, batches of 128, the same images already scaled, and AdamW. A step of ours is what our Trainer does: forward, loss,
backward, gradients clipped at 1, step; the peers' users do the same in a plain loop, with PyTorch's fused
AdamW too. Our last layer computes the class token alone, which is the same function in fewer operations; the row
`vit-all-tokens` shows what remains if it computes all.
"""

import contextlib
import io
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import peers
from benchmarks.timing import Row, Settings, faster, race, rate
from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist, scaled
from course_utils.models.vision import ViT
from course_utils.train.losses import classification_loss
from course_utils.train.trainer import Trainer

BATCH = 128
DROPOUT = 0.1


class Task:
    """The images, and how a round of each side goes."""

    def __init__(self, settings: Settings):
        self.data: ImageSet = load_fashion_mnist().take(256 if settings.tiny else 2_560)
        self.images, self.labels = scaled(self.data.images), self.data.labels

    def ours(self, model: nn.Module) -> Callable[[], None]:
        """A pass of our Trainer."""
        loader = ImageLoader(self.data, batch_size=BATCH)
        trainer = Trainer(classification_loss(), epochs=1, lr=1e-3, device="cpu", quiet=True)
        return lambda: trainer.fit(model, loader)

    def plain(self, model: nn.Module) -> Callable[[], None]:
        """A pass of a loop as a user of PyTorch writes it."""
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        model.train()

        def run() -> None:
            for rows in torch.randperm(len(self.labels)).split(BATCH):
                loss = F.cross_entropy(model(self.images[rows]), self.labels[rows])
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()

        return run

    def row(self, name: str, what: str, ours, peer, settings: Settings, **options) -> Row:
        """Images per second of both."""
        with contextlib.redirect_stderr(io.StringIO()):
            mine, theirs = race(ours, peer, settings)
        amount = len(self.labels)
        return Row(
            name,
            what,
            "images/s",
            ours=rate(amount, mine),
            peer=rate(amount, theirs),
            ratio=faster(mine, theirs),
            **options,
        )


def size(model: nn.Module) -> str:
    """Number of parameters, in thousands."""
    return f"{sum(p.numel() for p in model.parameters()) / 1e3:.0f} k"


class AllTokens(ViT):
    """Our ViT with a last layer that computes every token."""

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.tokens(images)[:, 0])


class D2LViT(nn.Module):
    """The book's ViT (section 11.8) from the package's attention; its class there needs d2l's Trainer."""

    def __init__(self, d2l):
        super().__init__()
        self.conv = nn.Conv2d(1, 128, kernel_size=7, stride=7)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 128))
        self.pos_embedding = nn.Parameter(torch.randn(1, 17, 128))
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(self.block(d2l) for _ in range(2)))
        self.head = nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 10))

    @staticmethod
    def block(d2l) -> nn.Module:
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.ln1, self.ln2 = nn.LayerNorm(128), nn.LayerNorm(128)
                self.attention = d2l.MultiHeadAttention(128, 4, DROPOUT)
                self.mlp = nn.Sequential(
                    nn.Linear(128, 256), nn.GELU(), nn.Dropout(DROPOUT),
                    nn.Linear(256, 128), nn.Dropout(DROPOUT),
                )  # fmt: skip

            def forward(self, x: Tensor) -> Tensor:
                normed = self.ln1(x)
                x = x + self.attention(normed, normed, normed, None)
                return x + self.mlp(self.ln2(x))

        return Block()

    def forward(self, images: Tensor) -> Tensor:
        x = self.conv(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(len(x), -1, -1), x), 1)
        return self.head(self.blocks(self.dropout(x + self.pos_embedding))[:, 0])


def vit_d2l(settings: Settings) -> Row:
    """Our ViT against d2l's."""
    task, ours = Task(settings), ViT(dropout=DROPOUT)
    theirs = D2LViT(peers.load("d2l", "d2l.torch"))
    with torch.no_grad():
        theirs(task.images[:2])  # lazy layers get their sizes
    return task.row(
        "vit-d2l",
        "ViT against d2l",
        task.ours(ours),
        task.plain(theirs),
        settings,
        target=1.4,
        note=f"parameters: ours {size(ours)}, d2l {size(theirs)}",
    )


def vit_pytorch(settings: Settings) -> Row:
    """Our ViT against vit-pytorch's."""
    package = peers.load("vit-pytorch", "vit_pytorch")
    task, ours = Task(settings), ViT(dropout=DROPOUT)
    theirs = package.ViT(
        image_size=28,
        patch_size=7,
        num_classes=10,
        dim=128,
        depth=2,
        heads=4,
        dim_head=32,
        mlp_dim=256,
        channels=1,
        dropout=DROPOUT,
        emb_dropout=DROPOUT,
    )
    return task.row(
        "vit-pytorch",
        "ViT against vit-pytorch",
        task.ours(ours),
        task.plain(theirs),
        settings,
        target=1.1,
        note=f"parameters: ours {size(ours)}, vit-pytorch {size(theirs)}",
    )


def vit_all_tokens(settings: Settings) -> Row:
    """Our ViT with every token in the last layer against d2l's: equal operations."""
    task, ours = Task(settings), AllTokens(dropout=DROPOUT)
    theirs = D2LViT(peers.load("d2l", "d2l.torch"))
    with torch.no_grad():
        theirs(task.images[:2])
    return task.row(
        "vit-all-tokens",
        "ViT, all tokens computed, against d2l",
        task.ours(ours),
        task.plain(theirs),
        settings,
    )


ROWS: dict[str, Callable[[Settings], Row]] = {
    "vit-d2l": vit_d2l,
    "vit-pytorch": vit_pytorch,
    "vit-all-tokens": vit_all_tokens,
}
