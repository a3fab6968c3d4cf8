"""Traces as compressed text that the browser player reads, whole or piece by piece."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from batchspec.faults import FAULTS
from batchspec.invariants import ERROR_BOUNDS, INVARIANTS
from batchspec.trace import PHASES, ROLES, SLOT_STATES, Frame, Trace
from visuals.heatmap import VIEWS
from visuals.sentence import cause, sentence, story


def pack(traces: Sequence[Trace], live: bool = False, **more: Any) -> str:
    """The lanes of a page, gzipped JSON in base64.

    Args:
        traces: one per lane, of the same prompts.
        live: whether the run was made just now, on the person's request.
        more: what else the page is to know, such as the link that makes the same run again.
    """
    first = traces[0]
    return _packed(
        {
            **more,
            "live": "live" if live else "recorded",
            "machine": f"{first.device} · {first.dtype}",
            "pair": first.pair,
            "phases": PHASES,
            "stories": {phase: story(phase, first.settings["draft_tokens"]) for phase in PHASES},
            "fields": ["version", *(field.name for field in fields(Trace))],
            "frame_fields": [field.name for field in fields(Frame)],
            "roles": ROLES,
            "slot_states": SLOT_STATES,
            "invariants": INVARIANTS,
            "lanes": [{**_constant(trace), **_lane(trace, 0)} for trace in traces],
        }
    )


def pack_piece(traces: Sequence[Trace], since: Sequence[int], more: Mapping[str, Any]) -> str:
    """What the lanes have gained, to be added to what `pack` gave.

    Args:
        traces: as they are now.
        since: how many frames of each lane the page has.
        more: what else the page is to know, such as whether the run goes on.
    """
    lanes = [_lane(trace, count) for trace, count in zip(traces, since, strict=True)]
    return _packed({**more, "lanes": lanes})


def _packed(content: Mapping[str, Any]) -> str:
    packed = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(packed, compresslevel=3, mtime=0)).decode()


def _constant(trace: Trace) -> dict[str, Any]:
    """What of a lane stays as it is while the run goes on."""
    fault = FAULTS.get(trace.settings.get("fault", ""))
    return {
        "name": trace.label,
        "fault": fault and {"title": fault.title, "words": fault.words},
        "error_bound": {
            "target": ERROR_BOUNDS[trace.dtype],
            "draft": ERROR_BOUNDS[trace.draft_dtype],
        },
        "figures": {name: json.loads(view(trace).to_json()) for name, view in VIEWS.items()},
    }


def _lane(trace: Trace, since: int) -> dict[str, Any]:
    numbers = range(since, len(trace.frames))
    return {
        **replace(trace, frames=trace.frames[since:]).content(),
        "sentences": [sentence(trace, number) for number in numbers],
        "causes": [cause(trace, number) for number in numbers],
    }
