"""The storyteller: a small target and draft model pair that ships inside the package."""

from pathlib import Path

FOLDER = Path(__file__).parent
TARGET_FOLDER = FOLDER / "target"
DRAFT_FOLDER = FOLDER / "draft"

EXAMPLES: list[str] = [
    "My sister",
    "Count the apples: one, two,",
    "I saw a moon beside a spoon,",
    "On Monday, Leo ate one apple. On Tuesday, Leo ate two pears. On Wednesday, Leo was at home."
    " He",
]
"""Prompts of clearly different lengths on which the rounds of a batch are ragged."""

MORE_EXAMPLES: list[str] = [
    "One day,",
    "Once upon a time",
    "In the garden",
    "The king",
    "One, two, three,",
    "Six little frogs sat under the table. One fell down,",
    "Q: What day comes after Monday?",
    "Q: Mia has a red kite. Tom has a drum. Who has the kite?",
    "Q: Anna owns a golden key. Ben owns a blue boat. Who owns the boat?",
    '"Where is my hat?" asked Tom.',
    '"Hello, Anna," said Ben. "How are you?"',
    "On Monday, Leo ate one apple. On Tuesday, Leo ate two pears. On Wednesday,",
]
"""Further prompts of mixed kinds and lengths, for measuring."""
