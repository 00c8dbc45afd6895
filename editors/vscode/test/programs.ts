// Programs and archives of tests.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

/** A script that acts as a program of version 9.8.7 with a language server. */
export const CURRENT = script('9.8.7', 'exit 0');

/** Returns a script that prints a version, and runs a command for `lsp`. */
export function script(version: string, lsp: string): string {
  return `#!/bin/sh\nif [ "$1" = lsp ]; then\n${lsp}\nelse\necho "kubectl-vap ${version}"\nfi\n`;
}

/** Creates a directory that is removed after the test. */
export function temporary(context: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'vap-'));
  context.after(() => {
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  return directory;
}

/** Writes an executable file. Returns its path. */
export function write(path: string, text: string, mode = 0o755): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

/** Packs the files of a directory like a release. Returns the archive. */
export function pack(directory: string): Buffer {
  const archive = `${directory}.tar.gz`;
  execFileSync('python3', ['../../release/pack.py', 'tar', directory, archive]);
  return readFileSync(archive);
}
