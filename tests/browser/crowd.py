"""Twenty people at once: `PYTHONPATH=tests python -m browser.crowd`.

Every session runs traces of its own prompts through the page's endpoint for two minutes and checks
that what comes back is its own; prints how long a run takes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gradio_client import Client

from browser.served import served_page

SESSIONS, SECONDS = 20, 120
NAMES = ("Tom", "Ann", "Ben", "Sue", "Max", "Eve", "Lea", "Jim", "Amy", "Sam")


def main() -> None:
    """Print the runs, the errors and the times."""
    with tempfile.TemporaryDirectory() as folder, served_page(Path(folder)) as address:
        Client(address, verbose=False).predict(["Warm"], "eqspec", api_name="/run_trace")
        deadline = time.monotonic() + SECONDS
        with ThreadPoolExecutor(SESSIONS) as people:
            visits = list(
                people.map(lambda number: _visit(address, number, deadline), range(SESSIONS))
            )
    times = sorted(second for seconds, _ in visits for second in seconds)
    errors = [error for _, errors in visits for error in errors]
    p95 = times[int(0.95 * len(times))]
    print(f"{len(times)} runs of {SESSIONS} sessions in {SECONDS} s, {len(errors)} errors")
    print(
        f"a run: median {statistics.median(times):.1f} s, p95 {p95:.1f} s, worst {times[-1]:.1f} s"
    )
    for error in errors[:10]:
        print(error)


def _visit(address: str, number: int, deadline: float) -> tuple[list[float], list[str]]:
    """One session's runs: seconds of each, and what went wrong."""
    client = Client(address, verbose=False)
    times, errors = [], []
    while time.monotonic() < deadline:
        prompts = [f"{NAMES[number % 10]} has {number + 2} hats and {len(times)} cats."] * 2
        started = time.monotonic()
        try:
            trace = client.predict(
                prompts, "eqspec", max_new_tokens=16, batch_size=2, api_name="/run_trace"
            )
        except Exception as error:
            errors.append(f"session {number}: {type(error).__name__}: {error}")
            continue
        times.append(time.monotonic() - started)
        words = trace["vocabulary"]
        for prompt, ids in zip(prompts, trace["prompts"], strict=True):
            if "".join(words[str(token)] for token in ids[1:]).strip() != prompt:
                errors.append(f"session {number}: a trace of other prompts")
        if trace["generated"] != trace["reference"]:
            errors.append(f"session {number}: not equal to the reference")
    return times, errors


if __name__ == "__main__":
    main()
