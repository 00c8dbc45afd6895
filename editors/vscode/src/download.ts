// Downloads the program of a release, and compares the archive with the checksum of the release.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract } from 'tar';
import { type Release, archiveName, checksumOf, programName } from './release';

/** Maximum size of an archive, in bytes. */
const MAX_ARCHIVE = 200 * 1024 * 1024;
/** Maximum size of the file of checksums, in bytes. */
const MAX_CHECKSUMS = 1024 * 1024;

/** The reason why the program is not installed. */
export class DownloadError extends Error {}

export interface Options {
  platform: string;
  architecture: string;
  signal?: AbortSignal;
  /** Receives the share of the archive that has been downloaded. Not called if the server sends no length. */
  progress?: (share: number) => void;
  /** Maximum time without data, in milliseconds. */
  idleTimeout?: number;
}

/** Returns the path of the program of a release in the directory of downloads. */
export function installedPath(directory: string, version: string, platform: string): string {
  return join(directory, `v${version}`, programName(platform));
}

/**
 * Downloads the program of a release to a directory, and removes the programs of other versions. Returns the path of the
 * program. The directory stays unchanged until the checksum has been verified.
 */
export async function install(release: Release, directory: string, options: Options): Promise<string> {
  const archive = archiveName(release.version, options.platform, options.architecture);
  if (!archive) {
    throw new DownloadError(`there are no releases for ${options.platform} on ${options.architecture}`);
  }
  await mkdir(directory, { recursive: true });
  const temporary = await mkdtemp(join(directory, 'download-'));
  try {
    const checksums: Buffer[] = [];
    await get(`${release.url}/checksums.txt`, MAX_CHECKSUMS, options, async (body) => {
      for await (const chunk of body) {
        checksums.push(chunk as Buffer);
      }
    });
    const expected = checksumOf(Buffer.concat(checksums).toString('utf8'), archive);
    if (!expected) {
      throw new DownloadError(`checksums.txt of ${release.url} has no checksum of ${archive}`);
    }
    const file = join(temporary, archive);
    const hash = createHash('sha256');
    await get(`${release.url}/${archive}`, MAX_ARCHIVE, options, async (body, length) => {
      let received = 0;
      const meter = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          hash.update(chunk);
          received += chunk.length;
          if (length) {
            options.progress?.(received / length);
          }
          done(null, chunk);
        },
      });
      await pipeline(body, meter, createWriteStream(file));
    });
    const actual = hash.digest('hex');
    if (actual !== expected) {
      throw new DownloadError(`the SHA-256 of ${archive} is ${actual}, but checksums.txt has ${expected}`);
    }
    const unpacked = join(temporary, 'unpacked');
    await unpack(file, unpacked, options.platform);
    return await replace(unpacked, directory, release.version, options.platform);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Passes the content of a URL to `read`. For an HTTPS URL, redirects to other protocols fail. */
async function get(
  url: string,
  limit: number,
  options: Options,
  read: (body: Readable, length: number) => Promise<void>,
): Promise<void> {
  const idleTimeout = options.idleTimeout ?? 30_000;
  const idle = new AbortController();
  const expire = (): void => {
    idle.abort(new DownloadError(`no data from ${url} for ${idleTimeout / 1000} s`));
  };
  let timer = setTimeout(expire, idleTimeout);
  const signal = options.signal ? AbortSignal.any([options.signal, idle.signal]) : idle.signal;
  try {
    const response = await fetch(url, { signal });
    if (isDowngrade(url, response.url)) {
      throw new DownloadError(`${url} redirects to ${response.url}, which is not HTTPS`);
    }
    if (!response.ok || !response.body) {
      throw new DownloadError(`${url}: HTTP status ${response.status}`);
    }
    const encoded = response.headers.has('content-encoding');
    const length = encoded ? 0 : Number(response.headers.get('content-length') ?? 0);
    let received = 0;
    const guard = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        clearTimeout(timer);
        timer = setTimeout(expire, idleTimeout);
        received += chunk.length;
        done(received > limit ? new DownloadError(`${url} has more than ${limit} bytes`) : null, chunk);
      },
    });
    const body = Readable.fromWeb(response.body);
    await Promise.all([pipeline(body, guard, { signal }), read(guard, length)]);
    if (length && received !== length) {
      throw new DownloadError(`${url} ended after ${received} of ${length} bytes`);
    }
  } catch (error) {
    if (options.signal?.aborted) {
      throw new DownloadError('the download was canceled');
    }
    throw idle.signal.aborted ? idle.signal.reason : asDownloadError(error, url);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns true if a redirect from HTTPS leads to another protocol. */
export function isDowngrade(url: string, target: string): boolean {
  return url.startsWith('https:') && !target.startsWith('https:');
}

function asDownloadError(error: unknown, url: string): DownloadError {
  if (error instanceof DownloadError) {
    return error;
  }
  const { message, cause } = error as Error;
  return new DownloadError(`${url}: ${cause instanceof Error ? cause.message : message}`);
}

/** Unpacks only the program from an archive. */
async function unpack(archive: string, directory: string, platform: string): Promise<void> {
  const name = programName(platform);
  await mkdir(directory);
  try {
    await extract({
      file: archive,
      cwd: directory,
      strict: true,
      filter: (path, entry) => path === name && 'type' in entry && entry.type === 'File',
    });
  } catch (error) {
    throw new DownloadError(`the archive cannot be unpacked: ${(error as Error).message}`);
  }
  if (!(await readdir(directory)).includes(name)) {
    throw new DownloadError(`the archive has no file ${name}`);
  }
  await chmod(join(directory, name), 0o755);
}

/** Moves the unpacked program to the directory of its version, and removes the other versions. */
async function replace(unpacked: string, directory: string, version: string, platform: string): Promise<string> {
  const target = join(directory, `v${version}`);
  await rm(target, { recursive: true, force: true });
  await rename(unpacked, target);
  for (const name of await readdir(directory)) {
    if (/^v\d/.test(name) && name !== `v${version}`) {
      // A program that runs in another window cannot be removed on Windows. The next download removes it.
      await rm(join(directory, name), { recursive: true, force: true }).catch(() => undefined);
    }
  }
  return installedPath(directory, version, platform);
}
