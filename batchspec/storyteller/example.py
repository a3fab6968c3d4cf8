"""The built-in example as a recording, so that a page can show it before any model is loaded.

`python -m batchspec.storyteller.example` records it again.
"""

from batchspec.config import DecodeConfig
from batchspec.storyteller import EXAMPLES, FOLDER
from batchspec.trace import Trace

LANES = ("pad", "eqspec", "exspec")
# Half the prompts a batch, so that EXSPEC's pool is seen; with these numbers it finds groups too.
DRAFT_TOKENS, NEW_TOKENS, BATCH_SIZE = 3, 32, 2
RECORDINGS = {lane: FOLDER / "example" / f"{lane}.json.gz" for lane in LANES}


def load_example() -> list[Trace]:
    """The recorded traces, one per lane."""
    return [Trace.load(path) for path in RECORDINGS.values()]


def record_example(lane: str) -> Trace:
    """Run one lane on the built-in prompts."""
    from batchspec.loading import load_pair
    from batchspec.recorder import record

    config = DecodeConfig(
        strategy=lane,
        draft_tokens=DRAFT_TOKENS,
        max_new_tokens=NEW_TOKENS,
        batch_size=BATCH_SIZE,
    )
    return record(load_pair("storyteller"), EXAMPLES, config)


def main() -> None:
    """Record every lane anew; the first run of each only warms up."""
    for lane, path in RECORDINGS.items():
        path.parent.mkdir(exist_ok=True)
        record_example(lane)
        record_example(lane).save(path)


if __name__ == "__main__":
    main()
