"""The studio as a local server. Owns :class:`Studio`, and what keeps others out.

Whoever reaches it could spend privacy and read labels of the data. So it listens on the loopback address alone; every address holds a token of 256 bits; the ``Host`` header
must be the loopback address (no name that somebody else resolves to it), and a form must come from its own pages.
"""

from __future__ import annotations

import asyncio
import contextvars
import hmac
import logging
import os
import secrets
import shutil
import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from policygraph.errors import InputError, PolicyGraphError
from policygraph.markup import tag
from policygraph.studio import pages
from policygraph.studio.keeping import ended
from policygraph.studio.work import RESULTS, Ticked, Work, reserved, safe_name

if TYPE_CHECKING:
    from starlette.requests import Request as Asked
    from starlette.responses import Response

LARGEST = 512 * 2**20
"""Most bytes that are taken in one form."""
FILES = 32
SEARCH = "studio-search"
"""The name of the threads that compute; the command, which looks for them at its end, knows it, too."""
KINDS = {"css": "text/css", "js": "text/javascript", "html": "text/html; charset=utf-8"}
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
OWN = "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Result = TypeVar("Result")


class TooLargeError(Exception):
    """More was sent than is taken."""


class Studio:
    """The server, bound to a port of the loopback address and not yet running.

    Parameters
    ----------
    ledger
        What releases are charged to.
    port
        A port; 0 takes a free one.

    Raises
    ------
    InputError
        When Starlette and uvicorn are not installed, or the port is taken.
    """

    def __init__(self, ledger: Path, port: int = 0) -> None:
        try:
            import python_multipart  # noqa: F401
            import starlette  # noqa: F401
            import uvicorn
        except ImportError as cause:
            raise InputError(
                'the studio needs Starlette and uvicorn: pip install "policygraph[studio]".',
                code="studio.missing",
            ) from cause
        self.token = secrets.token_urlsafe(32)
        self.work = Work(ledger)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as cause:
            self._socket.close()
            self.work.close()
            raise InputError(
                f"port {port} cannot be used: {cause}. Choose another --port, or none.",
                code="studio.port",
                value=port,
            ) from cause
        self._socket.listen(64)  # from here on a browser waits until the server runs
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            self.app(),
            log_level=logging.CRITICAL,  # errors are pages; what is cut off at the end needs no traceback
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """The address of the first page, with the token."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def entrance(self) -> Path:
        """A page in a file that only its owner can read, which leads to the first page: everybody on a machine can read the arguments of a browser."""
        path = self.work.fresh() / "open.html"
        refresh = tag("meta", http_equiv="refresh", content=f"0;url={self.address}")
        body = tag("body", tag("p", tag("a", "Open the studio", href=self.address)))
        head = tag("head", tag("meta", charset="utf-8"), refresh, tag("title", "policygraph studio"))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write("<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n")
        return path

    def run(self) -> None:
        """Serve until stopped, and remove what was sent. In the main thread SIGTERM and SIGHUP stop it, too."""
        with ended():
            try:
                self._server.run(sockets=[self._socket])
            finally:
                self._socket.close()
                self.work.close()

    def stop(self) -> None:
        """Let :meth:`run` end."""
        self._server.should_exit = True

    def app(self) -> Any:
        """The application, with its guard in front."""
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route

        routes = [
            Route("/", self._start),
            Route("/studio.{kind}", self._asset),
            Route("/open", self._open, methods=["POST"]),
            Route("/columns", self._columns),
            Route("/read", self._read, methods=["POST"]),
            Route("/policy", self._policy),
            Route("/policy.zip", self._bundle),
            Route("/further", self._further),
            Route("/choose", self._choose, methods=["POST"]),
            Route("/ask", self._ask, methods=["POST"]),
            Route("/question/{name}", self._question),
            Route("/confirm", self._confirm, methods=["POST"]),
            Route("/done/{name}", self._done),
            Route("/result/{name}/{file}", self._result),
        ]

        async def failed(asked: Asked, fault: Exception) -> Response:
            return self.refused(fault)

        handlers: Any = dict.fromkeys((PolicyGraphError, TooLargeError, HTTPException, Exception), failed)
        return Guard(self, Starlette(routes=routes, exception_handlers=handlers))

    @property
    def base(self) -> str:
        """What every address begins with."""
        return f"/{self.token}"

    async def _start(self, asked: Asked) -> Response:
        return _html(pages.start(self.base))

    async def _asset(self, asked: Asked) -> Response:
        from starlette.responses import Response

        kind = asked.path_params["kind"]
        if kind not in ("css", "js"):
            return _html(pages.failed(self.base, "There is no such page."), 404)
        text = Path(__file__).with_name(f"studio.{kind}").read_text(encoding="utf-8")
        return Response(text, media_type=KINDS[kind])

    async def _open(self, asked: Asked) -> Response:
        from starlette.datastructures import UploadFile

        place = self.work.fresh()
        async with asked.form(max_files=FILES, max_fields=FILES) as form:
            data = form.get("data")
            if not isinstance(data, UploadFile) or not data.filename:
                raise InputError("no file was chosen: expected a data file.", code="studio.file")
            names: list[str] = []
            sent = [
                each for each in form.getlist("published") if isinstance(each, UploadFile) and each.filename
            ]
            for each in [data, *sent]:
                name = safe_name(each.filename or "")
                while name.lower() in [taken.lower() for taken in names] or reserved(name):
                    name = f"{len(names)}-{name}"
                names.append(name)
                with open(place / name, "xb") as file:
                    await apart(shutil.copyfileobj, each.file, file)
        await apart(self.work.open, place, names[0], names[1:])
        return self._to("columns")

    async def _columns(self, asked: Asked) -> Response:
        return _html(pages.columns(self.base, self.work))

    async def _read(self, asked: Asked) -> Response:
        async with asked.form(max_fields=5_000) as form:
            names = [str(each) for each in form.getlist("column")]
            self.work.check(str(form.get("place")), self.work.place.name)
        await apart(self.work.read, names)
        return self._to("policy")

    async def _policy(self, asked: Asked) -> Response:
        def made() -> str:
            return pages.policy(self.base, self.work, self.work.forecast())

        try:
            return _html(await apart(made))
        except PolicyGraphError as refusal:
            if self.work.choice is None:
                raise
            return _html(pages.policy(self.base, self.work, None, self._said(refusal)), 400)

    async def _further(self, asked: Asked) -> Response:
        return _html(pages.further(self.base, await apart(self.work.further)))

    async def _bundle(self, asked: Asked) -> Response:
        from starlette.responses import Response

        disposition = {"Content-Disposition": 'attachment; filename="policy.zip"'}
        made = await apart(self.work.bundle)
        return Response(made, media_type="application/zip", headers=disposition)

    async def _choose(self, asked: Asked) -> Response:
        async with asked.form(max_fields=10_000) as form:
            self.work.check(str(form.get("place")), self.work.place.name)
            choice = Ticked(
                tuple(str(each) for each in form.getlist("used")),
                tuple(str(each) for each in form.getlist("public")),
                form.get("release") == "whole",
                str(form.get("epsilon", "")),
            )
        try:
            await apart(self.work.choose, choice)
        except PolicyGraphError as refusal:
            if self.work.choice is None:
                raise
            return _html(pages.policy(self.base, self.work, None, self._said(refusal)), 400)
        return self._to("policy")

    async def _ask(self, asked: Asked) -> Response:
        async with asked.form(max_fields=FILES) as form:
            dataset, stamp = str(form.get("dataset", "")), str(form.get("stamp"))
        name = await apart(self.work.ask, dataset, stamp)
        return self._to(f"question/{name}")

    async def _question(self, asked: Asked) -> Response:
        return self._put(asked.path_params["name"])

    def _put(self, name: str, refusal: str = "") -> Response:
        """The page that puts a question, again after a refusal."""
        question = self.work.question(name)
        balance = self.work.balance(question.dataset)
        return _html(pages.confirm(self.base, name, question, balance, refusal), 400 if refusal else 200)

    async def _confirm(self, asked: Asked) -> Response:
        async with asked.form(max_fields=10_000) as form:
            name = str(form.get("question", ""))
            exact = [str(each) for each in form.getlist("exact")]
        try:
            await apart(self.work.release, name, exact)
        except InputError as refusal:
            if refusal.code != "studio.exact":
                raise
            return self._put(name, self._said(refusal))
        return self._to(f"done/{name}")

    async def _done(self, asked: Asked) -> Response:
        name = asked.path_params["name"]
        said = self.work.question(name).answer
        if said is None:
            return self._to(f"question/{name}")
        return _html(pages.done(self.base, name, said))

    async def _result(self, asked: Asked) -> Response:
        from starlette.responses import FileResponse

        name, file = asked.path_params["name"], asked.path_params["file"]
        if file not in RESULTS or self.work.question(name).answer is None:
            return _html(pages.failed(self.base, "There is no such file."), 404)
        kind = KINDS["html"] if file.endswith(".html") else "application/octet-stream"
        shown = file.endswith(".html") and "download" not in asked.query_params
        return FileResponse(
            self.work.results(name) / file,
            media_type=kind,
            filename=file,
            content_disposition_type="inline" if shown else "attachment",
        )

    def _to(self, where: str) -> Response:
        from starlette.responses import RedirectResponse

        return RedirectResponse(f"{self.base}/{where}", status_code=303)

    def _said(self, refusal: PolicyGraphError) -> str:
        """The sentence of the command, without the folder that what was sent lies in."""
        return f"{self.work.plain(str(refusal))} [{refusal.code}]"

    def refused(self, fault: Exception) -> Response:
        """The page for an error."""
        from starlette.exceptions import HTTPException

        if isinstance(fault, HTTPException):
            text = (
                "There is no such page."
                if fault.status_code in (404, 405)
                else f"What was sent cannot be read: {fault.detail}"
            )
            return _html(pages.failed(self.base, text), fault.status_code)
        if isinstance(fault, TooLargeError):
            text = (
                f"This is more than {LARGEST >> 20} MB, which a page does not take: nothing was kept. Use the command, which reads a file where it lies: "
                "policygraph init FILE, policygraph release POLICY --data FILE."
            )
            return _html(pages.failed(self.base, text), 413)
        if isinstance(fault, PolicyGraphError):
            return _html(pages.failed(self.base, self._said(fault)), 400)
        text = (
            f"an internal error, not a mistake in your input: {type(fault).__name__}. Nothing more was done."
        )
        return _html(pages.failed(self.base, text), 500)


async def apart(work: Callable[..., Result], *arguments: Any) -> Result:
    """Run what takes long in a thread of its own, which ends with the program: Ctrl-C does not wait for a search.

    Nothing half is left then: a charge is one transaction, and a release that it interrupts is completed by the same request at no cost.
    """
    loop = asyncio.get_running_loop()
    settled: asyncio.Future[Result] = loop.create_future()
    context = contextvars.copy_context()

    def settle(say: Callable[[Any], None], what: Any) -> None:
        if not settled.done():
            say(what)

    def tell(say: Callable[[Any], None], what: Any) -> None:
        try:
            loop.call_soon_threadsafe(settle, say, what)
        except RuntimeError:  # nobody waits any more
            return

    def run() -> None:
        try:
            found = context.run(work, *arguments)
        except Exception as fault:
            tell(settled.set_exception, fault)
        else:
            tell(settled.set_result, found)

    threading.Thread(target=run, name=SEARCH, daemon=True).start()
    return await settled


class Guard:
    """Lets through what comes from the pages of the studio, and turns errors into pages."""

    def __init__(self, studio: Studio, app: Any) -> None:
        self.studio, self.inner = studio, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at a request before anything else does."""
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            return
        why = self._why_not(scope)
        if why:
            await _with_headers(PlainTextResponse(why + "\n", status_code=403), scope, receive, send)
            return
        base = self.studio.base
        inner = {**scope, "path": scope["path"][len(base) :] or "/", "raw_path": b""}
        taken = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > LARGEST:
                while message.get("more_body"):  # a browser shows the answer only when all was sent
                    message = await receive()
                raise TooLargeError
            return message

        started = False

        async def shown(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(_dressed(message))

        try:
            await self.inner(inner, counted, shown)
        except Exception:
            # Answered with a page already; the text of the error may quote a record and goes nowhere.
            if not started:
                raise

    def _why_not(self, scope: Scope) -> str:
        """Why a request is not answered; empty if it is."""
        headers = [
            (key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in scope["headers"]
        ]
        hosts = {f"127.0.0.1:{self.studio.port}", f"localhost:{self.studio.port}"}
        host = [value for key, value in headers if key == "host"]
        if len(host) != 1 or host[0] not in hosts:
            return "This host is not the studio: open the address that the command printed."
        origins = [value for key, value in headers if key == "origin"]
        if any(origin != f"http://{host[0]}" for origin in origins):
            return "This comes from another page: open the address that the command printed."
        sites = [value for key, value in headers if key == "sec-fetch-site"]
        if scope["method"] not in ("GET", "HEAD") and any(
            site not in ("same-origin", "none") for site in sites
        ):
            return "This comes from another page: open the address that the command printed."
        first = str(scope["path"]).split("/")[1:2]
        given = first[0] if first else ""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.studio.token.encode()):
            return "The token is missing or wrong: open the address that the command printed."
        return ""


def _dressed(message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An answer with the headers that every answer has; a report brings its own rules, which are as strict."""
    if message["type"] != "http.response.start":
        return message
    old = list(message.get("headers", []))
    names = {key.lower() for key, _ in old}
    new = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]
    if b"content-disposition" not in names:
        new.append((b"content-security-policy", OWN.encode()))
    return {**message, "headers": [*old, *new]}


async def _with_headers(answer: Any, scope: Scope, receive: Receive, send: Send) -> None:
    async def shown(message: MutableMapping[str, Any]) -> None:
        await send(_dressed(message))

    await answer(scope, receive, shown)


def _html(text: str, status: int = 200) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(text, status_code=status)
