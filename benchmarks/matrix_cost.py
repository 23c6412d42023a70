"""What the matrix costs at 300 ops x 60 checks x 6 environments: merge, diff, and the page in a browser.

    python benchmarks/matrix_cost.py

Seconds are of the processor; those of the page are of the browser's main thread, until all is drawn. Tests hold the
limits.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile

import tabulate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from opcheck_suite.reports import json
from tests.browser import Browser, find
from tests.reports.merged import large

OPCHECK = [sys.executable, "-m", "opcheck_suite.cli"]


def main() -> None:
    """Measure and print the table."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = pathlib.Path(name)
        names = [f"{n}.json" for n in range(large.ENVIRONMENTS)]
        for n, file in enumerate(names):
            (folder / file).write_text(json.render(large.report(n)))
        rows = []
        for title, words in (
            ("merge", ["merge", *names, "-o", "matrix.json"]),
            ("merge, every output", ["merge", *names, "-o", "m.json", "-o", "m.md", "-o", "m.txt", "-o", "m.html"]),
            ("diff of two matrices", ["diff", "matrix.json", "matrix.json"]),
            ("diff of two reports", ["diff", *names[:2]]),
        ):
            _, seconds, memory = large.cost([*OPCHECK, *words])
            rows.append([title, f"{seconds:.2f}", f"{memory:.0f} MiB"])
        size = (folder / "m.html").stat().st_size / 1e6
        if path := find():
            opened, filtered = page(path, folder)
            rows.append(["open the page", f"{opened:.2f}", f"{size:.2f} MB"])
            rows.append(["filter the page", f"{filtered:.2f}", ""])
        else:
            rows.append(["open the page", "no Chromium here", f"{size:.2f} MB"])
    print(tabulate.tabulate(rows, headers=["", "seconds", "size"], tablefmt="github"))


def page(path: str, folder: pathlib.Path) -> tuple[float, float]:
    """Seconds until the page is drawn, and until it is drawn again with filters set."""
    browser = Browser(path, folder / "profile")
    try:
        browser.call("Performance.enable", timeDomain="threadTicks")
        start = spent(browser)
        browser.open(folder / "m.html")
        opened = spent(browser)
        browser.run("by('bad').checked = true; by('family').value = 'values'; filter()")
        browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return opened - start, spent(browser) - opened
    finally:
        browser.close()


def spent(browser: Browser) -> float:
    """Seconds that the page's main thread has worked."""
    metrics = {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


if __name__ == "__main__":
    main()
