"""Install everything the tests need into `.venv`, then run them: `python tests/run.py`.

Needs Python alone. A browser is looked for on the machine, else taken from Debian's packages or
from Playwright. Further arguments go to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Install, check and test; the exit code of the first step that fails."""
    folder = ROOT / ".venv"
    if not folder.exists():
        venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    _run(
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "-r",
        "requirements.txt",
        "-r",
        "tests/requirements.txt",
    )
    if not any(map(shutil.which, BROWSERS)):
        _install_browser(python)
    # Server, browser and tests share the cores: more threads would only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _run(python, "-m", "ruff", "check", ".")
    _run(python, "-m", "ruff", "format", "--check", ".")
    # It takes a minute of one core, which the first tests would otherwise wait for.
    types = subprocess.Popen([python, "-m", "mypy"], cwd=ROOT)
    # In order, because by default files of few tests, the slow ones of the browser, come last.
    both = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    tests = subprocess.call([python, "-m", "pytest", *both, *sys.argv[1:]], cwd=ROOT)
    return types.wait() or tests


def _install_browser(python: str) -> None:
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        _run("apt-get", "update", "-qq")
        _run(
            "apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-inter"
        )
    else:
        _run(python, "-m", "playwright", "install", "chromium")


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    sys.exit(main())
