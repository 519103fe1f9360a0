"""The server: the REST API, the pages and their guard, on one address."""

import os
import socket
from secrets import token_urlsafe

import uvicorn
from fastapi import FastAPI

from ..grid.messages import is_loopback
from ..grid.ownership import home
from ..model import InputError
from .api import make_api
from .guard import LARGEST, Guard, login_routes
from .services import Services


def serve(host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serve the page until Ctrl-C; other computers need the token."""
    host = host.strip("[]")
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    token, is_open = token_urlsafe(24), is_loopback(host)
    app = guarded(host, token, is_open=is_open)
    config = uvicorn.Config(
        app,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        ws_max_size=LARGEST,
        timeout_graceful_shutdown=1,
    )
    shown = f"[{host}]" if ":" in host else host
    print(f"Gridwright is at http://{shown}:{port}/ (Ctrl-C ends it; runs go on)", flush=True)
    print(f"token: {token}", flush=True)
    if is_open:
        print(
            f"Log in with it to run your own code or to use clusters: http://{shown}:{port}/login"
        )
    else:
        print("The connection is not encrypted: a tunnel (ssh -L) is safer.", flush=True)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()


def guarded(
    host: str = "127.0.0.1",
    token: str = "",
    *,
    is_open: bool = False,
    pages: bool = True,
    largest: int = LARGEST,
) -> Guard:
    """Make the whole application; without its pages it is the API alone."""
    services = Services()
    api = make_api(services)
    guard = Guard(api, host, token, largest, is_open=is_open)
    api.router.routes += login_routes(guard)
    if pages:
        _add_pages(api, services)
    return guard


def _add_pages(api: FastAPI, services: Services) -> None:
    os.environ.setdefault("NICEGUI_STORAGE_PATH", str(home() / "page"))  # not the working directory
    from nicegui import ui

    from .pages import make_pages

    make_pages(services)
    ui.run_with(
        api,
        title="Gridwright",
        favicon="⚙️",
        language="en-US",
        dark=None,
        show_welcome_message=False,
        reconnect_timeout=10.0,
        tailwind=False,  # frame.css has the rules
    )


def _listen(host: str, port: int) -> socket.socket:
    """Open the socket, or raise an error in one line."""
    listening = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # early requests wait until the server is ready
        return listening
    except (OSError, UnicodeError) as error:  # UnicodeError: not a host name
        if listening is not None:
            listening.close()
        why = getattr(error, "strerror", None) or "not the name of a computer"
        raise InputError(
            f"cannot listen on {host[:80]}, port {port}: {why}; --port 0 takes a free one"
        ) from None
