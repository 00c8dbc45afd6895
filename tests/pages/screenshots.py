"""Takes screenshots of the book's pages in Chromium, and fails if a page or table is wider than the window.

usage: screenshots.py CHROMIUM BOOK FOLDER

Code blocks may be wider, because they scroll. Controls the browser through a pipe (Chrome DevTools Protocol).
"""

import base64
import functools
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

WIDTHS = [1280, 500]
HEIGHT = 900
# The browser must not contact any host.
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--hide-scrollbars", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# Returns a description of each element that is cut off or that widens the page.
MEASURE = """
(() => {
  const width = document.documentElement.clientWidth, wide = [];
  if (document.documentElement.scrollWidth > width) wide.push(`page: ${document.documentElement.scrollWidth} px`);
  const describe = e => `${e.tagName.toLowerCase()} ${e.textContent.trim().slice(0, 40)}`;
  for (const e of document.querySelectorAll('main .table-wrapper, main p, main li, main h1, main h2, main h3, main img')) {
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== 'inline')
      wide.push(`${describe(e)}: ${e.scrollWidth} px in ${e.clientWidth} px`);
    else if (e.getBoundingClientRect().right > width + 1) wide.push(`${describe(e)}: ends at ${e.getBoundingClientRect().right} px`);
    if (e.tagName === 'IMG' && !e.naturalWidth) wide.push(`image ${e.src} is missing`);
  }
  return wide;
})()
"""


class Browser:
    """A browser, and the session of its page."""

    def __init__(self, program, profile):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def connect():
            # The protocol uses the descriptors 3 and 4. Duplicates do not overlap them.
            source, target = os.dup(to_browser), os.dup(from_browser)
            os.dup2(source, 3)
            os.dup2(target, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last_id, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def receive(self):
        """Returns the next message of the browser."""
        while b"\0" not in self.buffer:
            data = os.read(self.read_end, 1 << 16)
            assert data, "the browser ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, wait_for=None, **parameters):
        """Calls a method and returns its result. Also waits for the event `wait_for`."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        result = None
        while result is None or wait_for:
            message = self.receive()
            if message.get("id") == self.last_id:
                assert "error" not in message, message
                result = message["result"]
            elif message.get("method") == wait_for:
                wait_for = None
        return result

    def close(self):
        """Ends the browser."""
        self.process.terminate()
        self.process.wait()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the book without a log."""

    def log_message(self, *_):
        """Writes nothing."""


def main(program, book, folder):
    """Measures all pages in all widths."""
    handler = functools.partial(Handler, directory=book)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = sorted(
        os.path.relpath(os.path.join(directory, name), book)
        for directory, _, names in os.walk(book)
        for name in names
        if name.endswith(".html") and name not in ("print.html", "404.html", "toc.html")
    )
    os.makedirs(folder, exist_ok=True)
    n_failures = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            for width in WIDTHS:
                browser.call(
                    "Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False
                )
                for page in pages:
                    url = f"http://127.0.0.1:{server.server_port}/{page}"
                    browser.call("Page.navigate", url=url, wait_for="Page.loadEventFired")
                    result = browser.call("Runtime.evaluate", expression=MEASURE, returnByValue=True)["result"]
                    assert result.get("type") == "object", result
                    for problem in result["value"]:
                        n_failures += 1
                        print(f"error: {page} in {width} px: {problem}")
                    image = browser.call("Page.captureScreenshot", format="png")["data"]
                    name = page.removesuffix(".html").replace("/", "-")
                    with open(os.path.join(folder, f"{name}-{width}.png"), "wb") as file:
                        file.write(base64.b64decode(image))
        finally:
            browser.close()
            server.shutdown()
    print(f"{len(pages)} pages in {len(WIDTHS)} widths: {n_failures} errors; screenshots are in {folder}")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
