import assert from 'node:assert/strict';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { installedPath } from '../src/download';
import { type Search, candidates, locate } from '../src/locate';
import { CURRENT, script, temporary, write } from './programs';

const OLD = script('0.0.1', "echo \"error: unrecognized subcommand 'lsp'\" >&2; exit 2");

/** Returns a search in empty directories. */
function search(root: string, setting = ''): Search & { home: string; variables: Record<string, string> } {
  return {
    setting,
    downloads: join(root, 'downloads'),
    version: '9.8.7',
    home: join(root, 'home'),
    variables: { PATH: [join(root, 'a'), join(root, 'b')].join(delimiter) },
  };
}

test('the places are searched in order', async (context) => {
  const root = temporary(context);
  const options = search(root);
  const places = [
    join(root, 'a', 'kubectl-vap'),
    join(root, 'b', 'kubectl-vap'),
    join(root, 'home', '.krew', 'bin', 'kubectl-vap'),
    installedPath(options.downloads, '9.8.7', 'linux'),
  ];
  assert.deepEqual(candidates(options), places);
  assert.deepEqual(await locate(options), { program: undefined, rejected: [] });
  for (const path of places.toReversed()) {
    write(path, CURRENT);
    assert.deepEqual(await locate(options), { program: { path, version: '9.8.7' }, rejected: [] });
  }
});

test('the setting replaces the other places', async (context) => {
  const root = temporary(context);
  write(join(root, 'a', 'kubectl-vap'), CURRENT);
  const path = write(join(root, 'home', 'own'), CURRENT);
  assert.equal((await locate(search(root, path))).program?.path, path);
  assert.equal((await locate(search(root, '~/own'))).program?.path, path);
  assert.deepEqual(await locate(search(root, join(root, 'none'))), {
    program: undefined,
    rejected: [`\`${join(root, 'none')}\` cannot be started: there is no such file`],
  });
  assert.deepEqual((await locate(search(root, 'kubectl-vap'))).rejected, ['`kubectl-vap` is not an absolute path']);
});

test('relative directories of PATH are skipped', () => {
  const options = search('/root');
  options.variables = { Path: ['', '.', 'bin', '/usr/bin', '/usr/bin'].join(delimiter), KREW_ROOT: '/krew' };
  assert.deepEqual(candidates(options).slice(0, -1), ['/usr/bin/kubectl-vap', '/krew/bin/kubectl-vap']);
});

test('a program without a language server is rejected', async (context) => {
  const root = temporary(context);
  const old = write(join(root, 'a', 'kubectl-vap'), OLD);
  const options = search(root);
  const message = `\`${old}\` has the version 0.0.1, which has no language server (the command \`lsp\`)`;
  assert.deepEqual(await locate(options), { program: undefined, rejected: [message] });
  assert.deepEqual((await locate(search(root, old))).rejected, [message]);
  // A later place has a newer version.
  const path = write(installedPath(options.downloads, '9.8.7', 'linux'), CURRENT);
  assert.deepEqual(await locate(options), { program: { path, version: '9.8.7' }, rejected: [message] });
});

test('other programs and files are rejected', async (context) => {
  const root = temporary(context);
  const cases: [string, RegExp][] = [
    ['#!/bin/sh\necho other 1.0.0\n', /is another program/],
    ['#!/bin/sh\nexit 3\n', /cannot be started: exit status 3/],
    ['#!/bin/sh\necho broken >&2\nexit 3\n', /cannot be started: broken/],
    ['#!/bin/none\n', /cannot be started/],
  ];
  for (const [text, message] of cases) {
    write(join(root, 'a', 'kubectl-vap'), text);
    const result = await locate(search(root));
    assert.equal(result.program, undefined);
    assert.match(result.rejected.join('\n'), message);
  }
  // A file that is not executable, and a directory, are not the program.
  write(join(root, 'a', 'kubectl-vap'), CURRENT, 0o644);
  write(join(root, 'b', 'kubectl-vap', 'file'), '');
  assert.deepEqual(await locate(search(root)), { program: undefined, rejected: [] });
});
