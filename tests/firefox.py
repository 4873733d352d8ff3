"""The system's Firefox, by WebDriver BiDi, its own remote protocol: a page, an expression in it, its errors."""

import itertools
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from websocket import WebSocket, create_connection

PREFERENCES = {
    "remote.prefs.recommended": False,  # they would let a page from a file read other files
    "network.proxy.type": 1,  # no host but this one is reached
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "app.update.auto": False,
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class Firefox:
    """A browser with one page. `errors`: what pages wrote to the console as errors, and what they threw."""

    def __init__(self, socket: WebSocket):
        self.errors: list[str] = []
        self._socket, self._ids = socket, itertools.count(1)
        self._do("session.new", capabilities={})
        self._do("session.subscribe", events=["log.entryAdded"])
        self._page = self._do("browsingContext.getTree")["contexts"][0]["context"]

    def _do(self, method: str, **params) -> dict:
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(answer["params"]["text"])
            if answer.get("id") == number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]

    def open(self, address: str) -> None:
        """A page, once it is loaded."""
        self._do("browsingContext.navigate", context=self._page, url=address, wait="complete")

    def evaluate(self, expression: str):
        """The value of an expression, a promise's too, as JSON has it."""
        text = f"(async () => JSON.stringify(await ({expression})) ?? 'null')()"
        target = {"context": self._page}
        found = self._do("script.evaluate", expression=text, target=target, awaitPromise=True)
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])


@contextmanager
def running(path: str, profile: Path) -> Iterator[Firefox]:
    """The Firefox at `path` with a new profile in a folder."""
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    command = [path, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", profile]
    answers = profile / "WebDriverBiDiServer.json"
    answers.unlink(missing_ok=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:
        try:
            while not answers.is_file() or not (text := answers.read_text(encoding="utf-8")):
                if process.poll() is not None:
                    raise RuntimeError(f"{path} ended before it answered")
                time.sleep(0.1)
            place = json.loads(text)
            address = f"ws://{place['ws_host']}:{place['ws_port']}/session"
            socket = create_connection(address, timeout=300, suppress_origin=True)
            yield Firefox(socket)
            socket.close()
        finally:
            process.kill()
