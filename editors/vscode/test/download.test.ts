import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Options, DownloadError, install, installedPath, isDowngrade } from '../src/download';
import { check } from '../src/locate';
import { type Release, archiveName } from '../src/release';
import { CURRENT, pack, temporary, write } from './programs';

const VERSION = '9.8.7';
const PLATFORM = { platform: 'linux', architecture: 'x64' };
const ARCHIVE = archiveName(VERSION, 'linux', 'x64') ?? '';

type Answer = Buffer | string | ((request: IncomingMessage, response: ServerResponse) => void);

/** Serves a release until the end of the test. The given files replace files of a valid release. */
async function serve(context: TestContext, files: Record<string, Answer> = {}): Promise<Release> {
  const all: Record<string, Answer> = { ...valid(context), ...files };
  const server = createServer((request, response) => {
    const answer = all[(request.url ?? '').slice(1)];
    if (answer === undefined) {
      response.writeHead(404).end('not found');
    } else if (typeof answer === 'function') {
      answer(request, response);
    } else {
      response.writeHead(200, { 'content-length': Buffer.byteLength(answer) }).end(answer);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { version: VERSION, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Returns the files of a valid release. */
function valid(context: TestContext): Record<string, Buffer | string> {
  const content = join(temporary(context), 'content');
  write(join(content, 'kubectl-vap'), CURRENT);
  write(join(content, 'kubectl_complete-vap'), '#!/bin/sh\n');
  write(join(content, 'LICENSE'), 'license', 0o644);
  const archive = pack(content);
  return { [ARCHIVE]: archive, 'checksums.txt': checksums(archive) };
}

function checksums(archive: Buffer): string {
  const hash = createHash('sha256').update(archive).digest('hex');
  return `${'0'.repeat(64)}  install.yaml\n${hash}  ${ARCHIVE}\n`;
}

/** Checks that an installation fails with a message, and leaves the directory as it was. */
async function fails(context: TestContext, release: Release, message: RegExp, options: Partial<Options> = {}): Promise<void> {
  const directory = temporary(context);
  const old = write(installedPath(directory, '1.0.0', 'linux'), CURRENT);
  await assert.rejects(install(release, directory, { ...PLATFORM, ...options }), (error: Error) => {
    assert.match(error.message, message);
    assert.ok(error instanceof DownloadError);
    return true;
  });
  assert.deepEqual(readdirSync(directory), ['v1.0.0']);
  assert.ok(existsSync(old));
}

test('a release is installed, and replaces an older one', async (context) => {
  const release = await serve(context);
  const directory = join(temporary(context), 'not', 'yet');
  const old = write(installedPath(directory, '1.0.0', 'linux'), CURRENT);
  const shares: number[] = [];
  const path = await install(release, directory, { ...PLATFORM, progress: (share) => shares.push(share) });
  assert.equal(path, installedPath(directory, VERSION, 'linux'));
  assert.equal(readFileSync(path, 'utf8'), CURRENT);
  assert.equal(statSync(path).mode & 0o777, 0o755);
  assert.deepEqual(readdirSync(join(directory, `v${VERSION}`)), ['kubectl-vap']);
  assert.deepEqual(readdirSync(directory), [`v${VERSION}`]);
  assert.ok(!existsSync(old));
  assert.equal(shares.at(-1), 1);
  assert.deepEqual(await check(path), { path, version: VERSION });
  // A second installation of the same version replaces the program.
  write(path, 'damaged');
  await install(release, directory, PLATFORM);
  assert.equal(readFileSync(path, 'utf8'), CURRENT);
});

test('redirects are followed', async (context) => {
  const target = await serve(context);
  const redirect = (request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(302, { location: `${target.url}${request.url ?? ''}` }).end();
  };
  const release = await serve(context, { [ARCHIVE]: redirect, 'checksums.txt': redirect });
  const path = await install(release, temporary(context), PLATFORM);
  assert.equal(readFileSync(path, 'utf8'), CURRENT);
});

test('endless redirects fail', async (context) => {
  const release = await serve(context, {
    [ARCHIVE]: (_request, response) => response.writeHead(302, { location: `/${ARCHIVE}` }).end(),
  });
  await fails(context, release, /redirect count exceeded/);
});

test('redirects from HTTPS lead only to HTTPS', () => {
  assert.ok(isDowngrade('https://example.com/a', 'http://example.com/a'));
  assert.ok(!isDowngrade('https://example.com/a', 'https://example.org/a'));
  assert.ok(!isDowngrade('http://127.0.0.1/a', 'http://127.0.0.1/b'));
});

test('a wrong checksum fails', async (context) => {
  const release = await serve(context, { 'checksums.txt': `${'a'.repeat(64)}  ${ARCHIVE}\n` });
  await fails(context, release, /the SHA-256 of .* is [0-9a-f]{64}, but checksums\.txt has a{64}/);
});

test('a missing checksum fails', async (context) => {
  const release = await serve(context, { 'checksums.txt': `${'a'.repeat(64)}  other.tar.gz\n` });
  await fails(context, release, /checksums\.txt of http.* has no checksum of kubectl-vap_v9/);
});

test('HTTP errors fail', async (context) => {
  const status = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(503).end('unavailable');
  };
  await fails(context, await serve(context, { 'checksums.txt': status }), /checksums\.txt: HTTP status 503/);
  await fails(context, await serve(context, { [ARCHIVE]: status }), /tar\.gz: HTTP status 503/);
  const missing = await serve(context);
  await fails(context, { ...missing, url: `${missing.url}/no` }, /HTTP status 404/);
});

test('an unreachable server fails', async (context) => {
  await fails(context, { version: VERSION, url: 'http://127.0.0.1:1' }, /(ECONNREFUSED|bad port)/);
});

test('a truncated archive fails', async (context) => {
  const files = valid(context);
  const archive = files[ARCHIVE] as Buffer;
  const half = archive.subarray(0, archive.length / 2);
  const cut = await serve(context, {
    ...files,
    [ARCHIVE]: (_request, response) => {
      response.writeHead(200, { 'content-length': archive.length });
      response.write(half, () => response.destroy());
    },
  });
  await fails(context, cut, /tar\.gz: (other side closed|terminated)/);
  // Without a length, only the checksum shows that the end is missing.
  const chunked = await serve(context, {
    ...files,
    [ARCHIVE]: (_request, response) => response.writeHead(200).end(half),
  });
  await fails(context, chunked, /the SHA-256 of/);
  // The checksum matches, but the archive is damaged.
  const damaged = await serve(context, { [ARCHIVE]: half, 'checksums.txt': checksums(half) });
  await fails(context, damaged, /the archive (cannot be unpacked|has no file)/);
});

test('an archive without the program fails', async (context) => {
  const content = join(temporary(context), 'content');
  write(join(content, 'LICENSE'), 'license');
  mkdirSync(join(content, 'kubectl-vap'));
  write(join(content, 'kubectl-vap', 'kubectl-vap'), CURRENT);
  const archive = pack(content);
  const release = await serve(context, { [ARCHIVE]: archive, 'checksums.txt': checksums(archive) });
  await fails(context, release, /the archive has no file kubectl-vap/);
  const text = gzipSync('no archive');
  const other = await serve(context, { [ARCHIVE]: text, 'checksums.txt': checksums(text) });
  await fails(context, other, /the archive (cannot be unpacked|has no file)/);
});

test('a file of checksums has a maximum size', async (context) => {
  const release = await serve(context, { 'checksums.txt': 'a'.repeat(2 * 1024 * 1024) });
  await fails(context, release, /checksums\.txt has more than 1048576 bytes/);
});

test('a server without data fails after a time', async (context) => {
  const release = await serve(context, {
    [ARCHIVE]: (_request, response) => {
      response.writeHead(200, { 'content-length': 1000 });
      response.write('a');
    },
  });
  await fails(context, release, /no data from .*tar\.gz for 0\.2 s/, { idleTimeout: 200 });
});

test('a download can be canceled', async (context) => {
  const controller = new AbortController();
  const release = await serve(context, {
    [ARCHIVE]: (_request, response) => {
      response.writeHead(200, { 'content-length': 1000 });
      response.write('a', () => {
        controller.abort();
      });
    },
  });
  await fails(context, release, /the download was canceled/, { signal: controller.signal });
});

test('an unsupported platform fails without a request', async (context) => {
  const release = { version: VERSION, url: 'http://127.0.0.1:1' };
  await fails(context, release, /there are no releases for freebsd on x64/, { platform: 'freebsd' });
});
