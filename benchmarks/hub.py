"""A class on one JupyterHub: what a student waits for, and what a server must have.

    python -m benchmarks.hub HANDOUT --env ENV [--students 12]

HANDOUT is a folder that `make handout` wrote. ENV is an environment that holds the handout's package and jupyterhub
(`pip install --editable HANDOUT jupyterhub`), and beside it `node_modules` with configurable-http-proxy. The hub uses
its local spawner; each student has a home of his own with the notebooks, and one installation is everybody's. All
students do the same at once: start a server, run a chapter to its first picture, answer an exercise and have it
checked, save; then every server is stopped and started again, and the answer must be there, and no other's.
"""

import argparse
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psutil
import websocket

CHAPTER, EXERCISE = "02_kernel_regression.ipynb", "exercise"
ANSWER = "answer_of = {name!r}\nprint(answer_of)"
CONFIG = """
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_port = {port}
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r} + "/{{username}}"
c.Spawner.cmd = [{env!r} + "/bin/jupyterhub-singleuser", "--allow-root"]
c.Spawner.environment = {{"OMP_NUM_THREADS": "1"}}
c.Spawner.start_timeout = c.Spawner.http_timeout = 600
c.JupyterHub.concurrent_spawn_limit = 0
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.api_url = {api!r}
c.JupyterHub.services = [{{"name": "class", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{"name": "class", "services": ["class"], "scopes": ["admin:users", "admin:servers", "access:servers", "tokens"]}}
]
"""


class Seen(NamedTuple):
    """What one student saw: seconds to a server and to the first picture, MB of memory, whether all was kept.

    `restarted`: how often the kernel had to be started again, for two kernels of one machine may choose the same port.
    """

    server: float
    picture: float
    memory: float
    kept: bool
    restarted: int


class Hub:
    """A hub that runs, and its programming interface."""

    def __init__(self, url: str, token: str):
        self.url, self.token = url, token

    def ask(self, path: str, method: str = "GET", content: object = None) -> object:
        """The answer to a request, as JSON; None where it is empty."""
        data = None if content is None else json.dumps(content).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=900) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def waits(self, path: str, done, seconds: float = 900):
        """Ask until the answer is as wanted."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                answer = self.ask(path)
                if done(answer):
                    return answer
            except OSError:
                pass
            time.sleep(0.5)
        raise TimeoutError(path)

    def start(self, name: str) -> None:
        """Start a student's server, and wait until it answers."""
        self.ask(f"/hub/api/users/{name}/server", "POST", {})
        self.waits(f"/hub/api/users/{name}", lambda user: user["servers"].get("", {}).get("ready"))
        self.waits(f"/user/{name}/api/status", bool)

    def stop(self, name: str) -> None:
        """Stop it, and wait until it is gone."""
        self.ask(f"/hub/api/users/{name}/server", "DELETE")
        self.waits(f"/hub/api/users/{name}", lambda user: not user["servers"])


def run_cell(kernel: websocket.WebSocket, code: str) -> list[dict]:
    """Run a cell, and wait for all that it shows."""
    about = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "execute_request",
        "username": "",
        "session": "s",
    }
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    message = {"header": about, "parent_header": {}, "metadata": {}, "content": content}
    kernel.send(json.dumps(message | {"channel": "shell", "buffers": []}))
    shown = []
    while True:
        got = json.loads(kernel.recv())
        if got["parent_header"].get("msg_id") != about["msg_id"]:
            continue
        if got["msg_type"] == "error":
            raise RuntimeError("\n".join(got["content"]["traceback"]))
        if got["msg_type"] in ("display_data", "execute_result"):
            shown.append(got["content"]["data"])
        if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
            return shown


def connect(hub: Hub, name: str, session: dict) -> websocket.WebSocket | None:
    """Start a kernel for a notebook, and connect to it; None if it does not answer in half a minute."""
    made = hub.ask(f"/user/{name}/api/sessions", "POST", session)
    address = hub.url.replace("http", "ws", 1)
    address += f"/user/{name}/api/kernels/{made['kernel']['id']}/channels"
    try:
        header = [f"Authorization: token {hub.token}"]
        return websocket.create_connection(address, header=header, timeout=30)
    except (OSError, websocket.WebSocketException):
        hub.ask(f"/user/{name}/api/sessions/{made['id']}", "DELETE")
        return None


def attends(hub: Hub, name: str) -> Seen:
    """What one student does and sees."""
    began = time.monotonic()
    hub.start(name)
    server = time.monotonic() - began
    path = f"/user/{name}/api/contents/notebooks/{CHAPTER}"
    notebook = hub.ask(path)["content"]
    session = {
        "path": f"notebooks/{CHAPTER}",
        "type": "notebook",
        "name": "",
        "kernel": {"name": "python3"},
    }
    channel, restarted = connect(hub, name, session), 0
    while channel is None:
        restarted += 1
        channel = connect(hub, name, session)
    channel.settimeout(900)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        shown = run_cell(channel, cell["source"])
        if any("image/png" in data or "<svg" in data.get("text/html", "") for data in shown):
            break
    picture = time.monotonic() - began
    exercise = next(c for c in code if EXERCISE in c["metadata"].get("tags", []))
    exercise["source"] = ANSWER.format(name=name)
    run_cell(channel, exercise["source"])
    hub.ask(path, "PUT", {"type": "notebook", "format": "json", "content": notebook})
    memory = used(name)
    channel.close()
    hub.stop(name)
    hub.start(name)
    again = hub.ask(path)["content"]["cells"]
    kept = any(cell["source"] == ANSWER.format(name=name) for cell in again)
    hub.stop(name)
    return Seen(server, picture, memory, kept, restarted)


def used(name: str) -> float:
    """MB that the processes of a student take, each page that several share counted in parts."""
    total = 0
    for process in psutil.process_iter():
        try:
            if process.environ().get("JUPYTERHUB_USER") == name:
                total += process.memory_full_info().pss
        except (psutil.Error, OSError):
            continue
    return total / 1e6


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def main() -> None:
    """Run the class, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("handout", type=Path)
    parser.add_argument("--env", type=Path, required=True)
    parser.add_argument("--students", type=int, default=12)
    options = parser.parse_args()
    names = [f"student{i:02}" for i in range(1, options.students + 1)]
    with tempfile.TemporaryDirectory() as folder:
        homes = Path(folder, "homes")
        for name in names:
            shutil.copytree(options.handout / "notebooks", homes / name / "notebooks")
        url, token = f"http://127.0.0.1:{free_port()}", secrets.token_hex(16)
        proxy = options.env.parent / "node_modules" / ".bin" / "configurable-http-proxy"
        api = f"http://127.0.0.1:{free_port()}"
        about = {
            "url": url,
            "port": free_port(),
            "homes": str(homes),
            "env": str(options.env.resolve()),
        }
        config = CONFIG.format(**about, proxy=str(proxy.resolve()), api=api, token=token)
        Path(folder, "jupyterhub_config.py").write_text(config, encoding="utf-8")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COURSE"))}
        clean["PATH"] = f"{options.env.resolve()}/bin:{clean['PATH']}"
        with (
            Path(folder, "hub.log").open("w") as log,
            subprocess.Popen(
                [options.env.resolve() / "bin" / "jupyterhub"],
                cwd=folder,
                env=clean,
                stdout=log,
                stderr=log,
            ) as process,
        ):
            try:
                hub = Hub(url, token)
                hub.waits("/hub/api/", bool, 120)
                hub.ask("/hub/api/users", "POST", {"usernames": names})
                with ThreadPoolExecutor(len(names)) as together:
                    seen = list(together.map(lambda name: attends(hub, name), names))
            finally:
                process.terminate()
                process.wait(60)
                shutil.copy(Path(folder, "hub.log"), tempfile.gettempdir())
    for what in ("server", "picture", "memory"):
        values = sorted(getattr(one, what) for one in seen)
        print(f"{what}: median {statistics.median(values):.1f}, most {values[-1]:.1f}")
    print(f"kernels started again: {sum(one.restarted for one in seen)}")
    print(f"answers kept: {sum(one.kept for one in seen)} of {len(seen)}")


if __name__ == "__main__":
    main()
