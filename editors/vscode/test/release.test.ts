import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { archiveName, checksumOf, releaseOf } from '../src/release';

/** Node's platform and architecture of each target of Rust. */
const TARGETS: [RegExp, string, string][] = [
  [/^x86_64-unknown-linux-/, 'linux', 'x64'],
  [/^aarch64-unknown-linux-/, 'linux', 'arm64'],
  [/^x86_64-apple-darwin$/, 'darwin', 'x64'],
  [/^aarch64-apple-darwin$/, 'darwin', 'arm64'],
  [/^x86_64-pc-windows-/, 'win32', 'x64'],
];

test('archives have the names in the metadata of binstall', () => {
  const manifest = readFileSync('../../Cargo.toml', 'utf8');
  const urls = [...manifest.matchAll(/^(\S+) = \{ pkg-url = "(.*)" \}$/gm)];
  assert.equal(urls.length, 7);
  const release = releaseOf('https://example.com/owner/project', '1.2.3');
  for (const [, target = '', url = ''] of urls) {
    const [, platform, architecture] = TARGETS.find(([pattern]) => pattern.test(target)) ?? [];
    assert.ok(platform && architecture, target);
    const expected = url.replaceAll('{ repo }', 'https://example.com/owner/project').replaceAll('{ version }', '1.2.3');
    assert.equal(`${release.url}/${String(archiveName('1.2.3', platform, architecture))}`, expected);
  }
});

test('archives exist only for the platforms of releases', () => {
  assert.equal(archiveName('1.0.0', 'win32', 'arm64'), 'kubectl-vap_v1.0.0_windows_amd64.tar.gz');
  for (const [platform, architecture] of [
    ['linux', 'arm'],
    ['linux', 'ia32'],
    ['win32', 'ia32'],
    ['freebsd', 'x64'],
  ] as const) {
    assert.equal(archiveName('1.0.0', platform, architecture), undefined, `${platform} ${architecture}`);
  }
});

test('the URL of a release ignores the suffix of a repository', () => {
  for (const repository of ['https://example.com/a/b', 'https://example.com/a/b.git', 'https://example.com/a/b/']) {
    assert.equal(releaseOf(repository, '1.0.0').url, 'https://example.com/a/b/releases/download/v1.0.0');
  }
});

test('checksums are read in the format of sha256sum', () => {
  const [a, b] = ['a'.repeat(64), 'B'.repeat(64)];
  const text = `${a}  x.tar.gz\r\n${b} *y.tar.gz\nnot a line\n${a}  x.tar.gz.sig\n${a.slice(1)}  short\n`;
  assert.equal(checksumOf(text, 'x.tar.gz'), a);
  assert.equal(checksumOf(text, 'y.tar.gz'), b.toLowerCase());
  for (const absent of ['tar.gz', 'z.tar.gz', 'short', '.*']) {
    assert.equal(checksumOf(text, absent), undefined, absent);
  }
});
