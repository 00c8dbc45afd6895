// Compares the playground with the plugin: the reports of `check -o json` on each file, and of `eval -o json` on the
// examples, must be equal. `VAP_CORPUS_DIR` names a directory with more policies.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { launch, open, repository, serve } from './browser.mjs';

const run = promisify(execFile);
const plugin = process.env.KUBECTL_VAP ?? join(repository, 'target/debug/kubectl-vap');
const corpus = process.env.VAP_CORPUS_DIR;

/** The number of files of the corpus that are compared; 0 for all. */
const SAMPLE = Number(process.env.VAP_PLAYGROUND_FILES ?? 0);

async function files() {
  const own = ['docs/examples', 'tests/cli_check', 'tests/first_drafts', 'tests/safe_advice', 'config/samples', 'playground/examples'];
  const all = [];
  for (const directory of own.map((it) => join(repository, it))) {
    const names = await readdir(directory, { recursive: true }).catch(() => []);
    all.push(...names.filter((it) => it.endsWith('.yaml')).sort().map((it) => join(directory, it)));
  }
  if (!corpus) return all;
  const directory = join(corpus, 'policies');
  const names = (await readdir(directory, { recursive: true })).filter((it) => /\.ya?ml$/.test(it)).sort();
  const step = SAMPLE > 0 ? Math.max(1, Math.ceil(names.length / SAMPLE)) : 1;
  return [...all, ...names.filter((_, n) => n % step === 0).map((it) => join(directory, it))];
}

/** Runs a command of the plugin. Exit statuses 1 and 2 are those of findings and incomplete input. */
async function report(args) {
  const options = { cwd: repository, maxBuffer: 1 << 28 };
  const { stdout } = await run(plugin, args, options).catch((error) => {
    if (![1, 2].includes(error.code) || error.stdout === '') throw error;
    return error;
  });
  return JSON.parse(stdout);
}

describe('equality with the plugin', () => {
  let server;
  let started;
  let page;
  before(async () => {
    server = await serve();
    started = await launch('chrome');
    ({ page } = await open(started.browser, server.address));
    await page.evaluate(() => window.playground.setDeadline(60_000));
  });
  after(async () => {
    await started?.close();
    await server?.stop();
  });
  const call = (name, input) => page.evaluate((...it) => window.playground.call(...it), name, input);

  it('check has the same report for each file', async () => {
    const all = await files();
    const differences = [];
    let policies = 0;
    let findings = 0;
    const compare = async (path) => {
      const name = path.startsWith(repository) ? relative(repository, path) : path;
      const text = await readFile(path, 'utf8');
      const expected = await report(['check', '--no-config', '-o', 'json', name]);
      // The playground does not validate probes, because they may refer to other files.
      if (expected.policies.length === 0 && text.includes('kind: PolicyProbe')) return;
      const actual = await call('check', { texts: [{ name, text }] }).catch((error) => ({ error: String(error) }));
      policies += expected.policies.length;
      findings += expected.findings.length;
      try {
        assert.deepEqual(actual, expected);
      } catch (error) {
        differences.push(`${name}: ${error.message.slice(0, 2_000)}`);
      }
    };
    // One comparison at a time: it already uses two processors, one for the plugin and one for the page.
    for (let n = 0; n < all.length; n += 1) await compare(all[n]);
    console.log(`compared ${all.length} files with ${policies} policies and ${findings} findings; differences: ${differences.length}`);
    assert.ok(!corpus || SAMPLE > 0 || policies >= 300, `${policies} policies`);
    assert.deepEqual(differences, []);
  });

  it('eval has the same report for each example', async () => {
    const examples = [
      ['docs/examples/replica-limit.yaml', 'docs/examples/web.yaml'],
      ['docs/examples/sidecar.yaml', 'docs/examples/web.yaml'],
      ['docs/examples/host-mounts.yaml', 'playground/examples/pod.yaml'],
      ['playground/examples/limits.yaml', 'playground/examples/pod.yaml'],
      ['playground/examples/registries.yaml', 'playground/examples/pod.yaml'],
      ['tests/first_drafts/configmap_params.yaml', 'docs/examples/web.yaml'],
    ];
    const directory = await mkdtemp(join(tmpdir(), 'playground-'));
    for (const [policies, object] of examples) {
      const texts = [{ name: policies, text: await readFile(join(repository, policies), 'utf8') }];
      const request = { object: await readFile(join(repository, object), 'utf8'), user: 'ann', groups: ['developers'] };
      const file = join(directory, 'object.yaml');
      await writeFile(file, request.object);
      const user = ['--request-user', 'ann', '--request-group', 'developers'];
      const expected = await report(['eval', policies, '--object', file, ...user, '-o', 'json']);
      assert.deepEqual(await call('decide', { texts, request }), expected, policies);
    }
    await rm(directory, { recursive: true });
  });
});
