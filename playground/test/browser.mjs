// Starts browsers and a server of the built page for the tests.
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';
import puppeteer from 'puppeteer-core';

export const repository = fileURLToPath(new URL('../../', import.meta.url));
const site = join(repository, 'target/book');

const TYPES = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm',
};

/** Serves the site. Returns the address of the playground, the requested paths, and a function that stops the server. */
export async function serve() {
  const paths = [];
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    paths.push(path);
    try {
      const file = path.endsWith('/') ? `${path}index.html` : path;
      const content = await readFile(join(site, file));
      response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const stop = () => new Promise((done) => { server.close(done); server.closeAllConnections(); });
  return { address: `http://127.0.0.1:${server.address().port}/playground/`, paths, stop };
}

const CHROMIUM = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'];
const FIREFOX = [process.env.FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox'];

/** The installed browsers. A missing browser is an error, because a skipped test would look like a passed one. */
export const BROWSERS = { chrome: CHROMIUM, firefox: FIREFOX };

/** Starts a browser with an empty profile. */
export async function launch(browser) {
  const executablePath = BROWSERS[browser].find((path) => path && existsSync(path));
  if (!executablePath) throw new Error(`${browser} is not installed: set ${browser === 'chrome' ? 'CHROMIUM' : 'FIREFOX'}`);
  const userDataDir = await mkdtemp(join(tmpdir(), 'playground-'));
  const args = browser === 'chrome'
    ? ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync']
    : [];
  const started = await puppeteer.launch({ browser, executablePath, headless: true, args, userDataDir, protocolTimeout: 120_000 });
  const close = async () => {
    await started.close();
    await rm(userDataDir, { recursive: true, force: true });
  };
  return { browser: started, close };
}

/** Opens the page, and waits until the engine has shown the first results. */
export async function open(browser, address, { width = 1280, height = 900, dark = false } = {}) {
  const page = await browser.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()); });
  await page.setViewport({ width, height });
  if (dark) await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await page.goto(address);
  await page.waitForFunction(() => document.documentElement.dataset.ready, { timeout: 60_000 });
  return { page, problems };
}

/** Sets the texts and fields, and returns the displayed results. */
export async function show(page, values) {
  await page.evaluate(async (it) => {
    window.playground.setState(it);
    await window.playground.update();
  }, values);
  return results(page);
}

/** Returns the displayed results. */
export const results = (page) => page.evaluate(() => ({
  status: document.getElementById('status').textContent,
  count: document.getElementById('findings-count').textContent,
  decision: document.getElementById('decision').textContent,
  rules: [...document.querySelectorAll('#findings .head a')].map((it) => it.textContent),
  findings: document.getElementById('findings').textContent,
  results: document.getElementById('results').textContent,
}));
