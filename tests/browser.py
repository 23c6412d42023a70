"""A browser without a window, driven over two pipes by the DevTools protocol, which Chromium has built in.

https://chromedevtools.github.io/devtools-protocol/ describes its methods and events. No driver is needed, and no
server: a command is JSON that ends with a null byte, on descriptor 3 of the browser, and answers come back on 4.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

#: Set where a browser must be there, as `.ci/run` does.
REQUIRED = "OPCHECK_REQUIRE_BROWSER"

#: Any of these will do, of the last ten years.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

#: Gives the two pipes the numbers that the browser expects, then becomes the browser.
_LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

#: Keys that are no characters -> the number that goes with them.
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "Home": 36, "End": 35}
_KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find() -> str:
    """The path of a browser, or an empty string."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


def required() -> str:
    """The path of a browser. Without one the test is skipped, or fails where `REQUIRED` is set."""
    if path := find():
        return path
    told = "no Chromium was found; on Debian, apt-get install chromium"
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and {told}")
    pytest.skip(told)


class Browser:
    """One browser with one page, and all that the page asked for, logged and threw since it was opened."""

    def __init__(self, path: str, profile: pathlib.Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",  # root, as in a container, cannot have it; pages here are our own
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(ours[0]), str(theirs[1]), path, *flags, "about:blank"],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._write, self._read = ours[1], theirs[0]
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer. Events that come meanwhile are kept."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _receive(self, *, seconds: float = 60.0) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the browser said nothing for {seconds:g} s")
            more = os.read(self._read, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, page: pathlib.Path, *, scheme: str = "light", width: int = 1280, height: int = 900) -> None:
        """Open a file, and wait until it is loaded and drawn. What earlier pages did is forgotten."""
        self.call("Page.navigate", url="about:blank")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.run("0")
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.run(
            "new Promise((done) => { const drawn = () => requestAnimationFrame(() => setTimeout(done));"
            " document.readyState === 'complete' ? drawn() : addEventListener('load', drawn); })"
        )

    def run(self, code: str) -> Any:
        """The value of an expression in the page; one of a promise is waited for. Raises RuntimeError if it throws."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", found))
        return found["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys one after the other, as a person would: ``Tab``, ``Shift+Tab``, ``Enter``, or a character."""
        for key in keys:
            shift, name = key.startswith("Shift+"), key.removeprefix("Shift+")
            about = {"key": name, "modifiers": 8 if shift else 0}
            if name in _KEYS:
                about |= {"windowsVirtualKeyCode": _KEYS[name], "code": "Space" if name == " " else name}
            text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            self.call("Input.dispatchKeyEvent", **down, **about)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def click(self, element: str) -> None:
        """Press the mouse in the middle of what an expression gives, after scrolling to it."""
        where = self.run(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for type in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=type, x=where[0], y=where[1], button="left", clickCount=1)

    def screenshot(self, path: pathlib.Path) -> None:
        """Write what the window shows, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def requests(self) -> list[str]:
        """The addresses that the page asked for, itself included."""
        self.run("0")
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the page threw, what was logged, and dialogs that it opened."""
        self.run("0")
        watched = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        )
        return [json.dumps(e["params"])[:500] for e in self.events if e.get("method") in watched]
