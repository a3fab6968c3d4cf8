"""A model's files from the Hub: one short question first, then what is needed, with progress."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import httpx

from batchspec.progress import Observer, told_bar

PATIENCE = 5.0
"""Seconds the Hub may take for a first answer; its own client would ask for half a minute."""

DESCRIPTION = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
"""Configs and tokenizers: what is small, and tells whether the weights are worth fetching."""

CONVERTER = "SFconvertbot"
"""The Hub's own account that offers safetensors to models without, as a pull request."""


class HubModel:
    """A model on the Hub.

    Attributes:
        id: its name there.
        revision: the branch, tag or commit that is taken; None for its main.
        folder: where its description is, and its weights once they are fetched.
    """

    def __init__(self, id: str, revision: str | None, observe: Observer) -> None:
        """Ask the Hub for it, fall back on what was fetched before, and fetch its description.

        Raises:
            OSError: one for which `hub_reason` has words.
        """
        self.id = id
        self.revision = revision
        self._observe = observe
        observe(f"looking up {id}", None)
        try:
            self.revision = _revision_with_weights(id, revision)
            self._reached = True
        except (httpx.TransportError, OfflineModeIsEnabled):
            self._reached = False
        self.folder = self.fetch(DESCRIPTION)

    def fetch(self, patterns: Iterable[str]) -> Path:
        """Fetch the files that match; the folder they are in.

        Raises:
            OSError: one for which `hub_reason` has words.
        """
        return Path(
            snapshot_download(
                self.id,
                revision=self.revision,
                allow_patterns=list(patterns),
                ignore_patterns=["*/*"],
                local_files_only=not self._reached,
                tqdm_class=told_bar(f"downloading {self.id}", self._observe, unit="B"),
            )
        )


def _revision_with_weights(id: str, revision: str | None) -> str | None:
    """The revision asked for, or one that offers main in safetensors where main has none."""
    hub = HfApi()
    files = hub.model_info(id, revision=revision, timeout=PATIENCE).siblings or []
    if revision is not None or any(file.rfilename.endswith(".safetensors") for file in files):
        return revision
    offers = hub.get_repo_discussions(
        id, author=CONVERTER, discussion_type="pull_request", discussion_status="open"
    )
    return next((offer.git_reference for offer in offers), None)


def hub_reason(error: BaseException) -> str | None:
    """Why the Hub does not give a model, and what to do; None for errors of other kinds."""
    if isinstance(error, GatedRepoError):
        return (
            "its authors ask for your consent first (it is gated), so agree on the model's page "
            "on the Hub, then log in with `hf auth login`"
        )
    if isinstance(error, RepositoryNotFoundError):
        return (
            "the Hub has no such model, or it is private, so check the spelling, or log in with "
            "`hf auth login`"
        )
    if isinstance(error, RevisionNotFoundError):
        return "the Hub has no such revision of it, so give a branch, a tag or a commit"
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled | httpx.TransportError):
        return (
            "the Hub cannot be reached, and its files are not all here from before, so connect to "
            "the network or give a local folder"
        )
    if isinstance(error, HfHubHTTPError):
        return f"the Hub answers with an error ({error.response.status_code}), so try again later"
    return None
