"""SmolLM2-135M-Instruct, a real language model for a laptop, and a small draft made for it."""

from pathlib import Path

FOLDER = Path(__file__).parent
DRAFT_FOLDER = FOLDER / "draft"
TARGET_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
