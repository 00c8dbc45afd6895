// A session with the packaged extension in code-server, which is VS Code in a browser.
//
// KUBECTL_VAP, VSIX, CODE_SERVER and CHROMIUM are the paths of the plugin, the package, code-server and Chromium.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Page, chromium } from 'playwright-core';
import { archiveName } from '../src/release';
import { pack, temporary, write } from './programs';

const TIMEOUT = 40_000;
const SAMPLES = '../../config/samples';

const POLICY = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - expression: object.spec.replcas <= 50
`;

function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

/** Serves a release with the plugin until the end of the test. Returns the URL, and the requested files. */
async function serveRelease(context: TestContext, version: string): Promise<{ url: string; requested: string[] }> {
  const archive = archiveName(version, process.platform, process.arch) ?? '';
  const content = join(temporary(context), 'content');
  mkdirSync(content);
  copyFileSync(variable('KUBECTL_VAP'), join(content, 'kubectl-vap'));
  const packed = pack(content);
  const files: Record<string, Buffer | string> = {
    [archive]: packed,
    'checksums.txt': `${createHash('sha256').update(packed).digest('hex')}  ${archive}\n`,
  };
  const requested: string[] = [];
  const server: Server = createServer((request, response) => {
    const name = (request.url ?? '').split('/').at(-1) ?? '';
    requested.push(name);
    response.writeHead(files[name] ? 200 : 404).end(files[name]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requested };
}

/** Starts code-server with the extension. Returns the URL of the workspace. */
async function startEditor(context: TestContext, workspace: string, repository: string): Promise<string> {
  const editors: ChildProcess[] = [];
  // Hooks run in the order of their registration, and the directory must not change while it is removed.
  context.after(async () => {
    for (const editor of editors) {
      if (editor.pid !== undefined && editor.exitCode === null) {
        process.kill(-editor.pid);
        await once(editor, 'exit');
      }
    }
  });
  const root = temporary(context);
  const [data, extensions] = [join(root, 'data'), join(root, 'extensions')];
  const config = write(join(root, 'config.yaml'), 'auth: none\n');
  const common = ['--config', config, '--user-data-dir', data, '--extensions-dir', extensions];
  // Only the downloaded program exists.
  const env = { ...process.env, PATH: '/usr/bin:/bin', HOME: join(root, 'home') };
  execFileSync(variable('CODE_SERVER'), [...common, '--install-extension', variable('VSIX')], { env, stdio: 'inherit' });
  const [directory = ''] = readdirSync(extensions).filter((name) => name.includes('kubectl-vap'));
  const manifest = join(extensions, directory, 'package.json');
  const content = JSON.parse(readFileSync(manifest, 'utf8')) as { repository: { url: string } };
  content.repository.url = repository;
  writeFileSync(manifest, JSON.stringify(content));
  write(
    join(data, 'User', 'settings.json'),
    JSON.stringify({
      'files.autoSave': 'off',
      'security.workspace.trust.startupPrompt': 'never',
      'workbench.startupEditor': 'none',
      'editor.minimap.enabled': false,
      'workbench.editor.enablePreview': false,
    }),
  );
  const options = ['--bind-addr', '127.0.0.1:0', '--auth', 'none', '--disable-telemetry', '--disable-update-check'];
  const editor = spawn(variable('CODE_SERVER'), [...common, ...options], { env, detached: true });
  editors.push(editor);
  let log = '';
  editor.stdout.on('data', (text: Buffer) => (log += text.toString()));
  editor.stderr.on('data', (text: Buffer) => (log += text.toString()));
  const end = Date.now() + TIMEOUT;
  for (;;) {
    const [url] = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(log) ?? [];
    if (url) {
      return `${url}/?folder=${workspace}`;
    }
    assert.ok(Date.now() < end && editor.exitCode === null, log);
    await sleep(200);
  }
}

async function open(page: Page, name: string): Promise<void> {
  const file = page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`);
  await file.first().dblclick();
  await page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
}

async function command(page: Page, name: string): Promise<void> {
  await page.keyboard.press('F1');
  const input = page.locator('.quick-input-widget input[type=text]');
  await input.waitFor();
  await input.fill(`>${name}`);
  await page.locator('.quick-input-list .monaco-list-row', { hasText: name }).first().click();
}

test('the extension downloads the server, and shows its results', { timeout: 600_000 }, async (context) => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const workspace = temporary(context);
  const trap = join(temporary(context), 'started');
  const program = write(join(workspace, 'program'), `#!/bin/sh\ntouch ${trap}\n`);
  writeFileSync(join(workspace, 'policy.yaml'), POLICY);
  for (const name of ['sound.yaml', 'sound_probe.yaml']) {
    copyFileSync(join(SAMPLES, name), join(workspace, name));
  }
  write(join(workspace, '.vscode', 'settings.json'), JSON.stringify({ 'vap.path': program }));
  const release = await serveRelease(context, version);
  const url = await startEditor(context, workspace, release.url);
  const browser = await chromium.launch({ executablePath: variable('CHROMIUM'), args: ['--no-sandbox'] });
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(TIMEOUT);
  await page.goto(url);
  await page.locator('.monaco-workbench').waitFor();
  const squiggles = page.locator('.view-overlays .squiggly-warning');
  const toast = page.locator('.notification-toast');
  try {
    // Restricted Mode: nothing is downloaded or started before the consent.
    await page.locator('[id="status.workspaceTrust"]').waitFor();
    await open(page, 'policy.yaml');
    const consent = toast.locator('.monaco-button', { hasText: 'Download' });
    await consent.waitFor();
    assert.deepEqual(release.requested, []);
    await consent.click();
    await squiggles.first().waitFor();
    assert.deepEqual(release.requested, ['checksums.txt', archiveName(version, process.platform, process.arch)]);
    assert.ok(!existsSync(trap), 'the program of the workspace was started');

    // Colors: the tokens of an expression differ from those of a string.
    const line = page.locator('.view-line', { hasText: 'replcas' });
    const field = line.locator('span span', { hasText: /^replcas$/ });
    await field.waitFor();
    await field.hover();
    await page.locator('.monaco-hover', { hasText: 'replcas' }).first().waitFor();

    // A fix.
    await field.click();
    await page.keyboard.press('Control+.');
    const actions = page.locator('.action-widget .monaco-list-row', { hasText: 'replicas' });
    await actions.first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.view-line', { hasText: 'object.spec.replicas' }).waitFor();

    // Completion in a string, while typing.
    await page.locator('.view-line', { hasText: 'object.spec.replicas' }).click();
    await page.keyboard.press('End');
    await page.keyboard.type(' && object.metadata.generateN', { delay: 50 });
    await page.locator('.suggest-widget .monaco-list-row', { hasText: 'generateName' }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.view-line', { hasText: 'object.metadata.generateName' }).waitFor();

    // The lens of a case opens its values, without a notification.
    await open(page, 'sound_probe.yaml');
    await page.locator('.codelens-decoration a', { hasText: 'passed: Deny' }).first().click();
    await page.locator('.tab.active, .tab', { hasText: '51 replicas are denied.txt' }).first().waitFor();
    await page.locator('.view-line', { hasText: /!has\(object\.spec\.replicas\)/ }).first().waitFor();
    assert.equal(await toast.filter({ hasText: '51 replicas' }).count(), 0);

    await command(page, 'VAP: Show the Version of the Language Server');
    const shown = toast.filter({ hasText: `kubectl-vap ${version}` });
    await shown.first().waitFor();

    // The extension starts the server again after it ended.
    const servers = execFileSync('pgrep', ['-f', `${join('globalStorage', 'vap-status')}.*/kubectl-vap lsp`], { encoding: 'utf8' });
    const [first = ''] = servers.trim().split('\n');
    process.kill(Number(first), 'SIGKILL');
    await open(page, 'policy.yaml');
    await command(page, 'File: Revert File');
    await squiggles.first().waitFor();

    await command(page, 'VAP: Restart the Language Server');
    await squiggles.first().waitFor({ state: 'detached' });
    await squiggles.first().waitFor();
  } catch (error) {
    await page.screenshot({ path: 'out/failure.png' });
    throw error;
  }
});
