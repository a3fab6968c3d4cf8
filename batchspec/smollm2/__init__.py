"""SmolLM2-135M-Instruct, a real language model for a laptop, and a small draft made for it."""

from pathlib import Path

NAME = "smollm2"
TARGET_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
DRAFT_FOLDER = Path(__file__).parent / "draft"
