// Tests of the extension with replacements of `vscode` and of the language client (see esbuild.mjs).
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExtensionContext } from 'vscode';
import { activate, deactivate } from '../src/extension';
import { archiveName } from '../src/release';
import { clients } from './languageclient';
import { CURRENT, pack, script, temporary, write } from './programs';
import { editor, reset, workspace } from './vscode';

const POLICY = 'apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n';
const VERSION = '9.8.7';
const TIMEOUT = 20_000;

/** A session of the extension in which no program is installed. */
class Session {
  requests: string[] = [];
  url = 'http://127.0.0.1:1';
  readonly state = new Map<string, unknown>();

  private constructor(readonly root: string) {}

  static create(context: TestContext): Session {
    reset();
    clients.length = 0;
    const root = temporary(context);
    const { PATH, HOME } = process.env;
    Object.assign(process.env, { PATH: join(root, 'bin'), HOME: join(root, 'home') });
    context.after(async () => {
      await deactivate();
      Object.assign(process.env, { PATH, HOME });
    });
    return new Session(root);
  }

  /** Starts a server with a release. */
  async serve(context: TestContext): Promise<void> {
    const archive = archiveName(VERSION, process.platform, process.arch) ?? '';
    // `pack` requires Python, but the tests replace PATH.
    const path = process.env['PATH'];
    process.env['PATH'] = '/usr/bin:/bin';
    write(join(this.root, 'content', 'kubectl-vap'), CURRENT);
    const packed = pack(join(this.root, 'content'));
    process.env['PATH'] = path;
    const files: Record<string, Buffer | string> = {
      [archive]: packed,
      'checksums.txt': `${createHash('sha256').update(packed).digest('hex')}  ${archive}\n`,
    };
    const server = createServer((request, response) => {
      const name = (request.url ?? '').split('/').at(-1) ?? '';
      this.requests.push(name);
      response.writeHead(files[name] ? 200 : 404).end(files[name]);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    context.after(() => {
      server.closeAllConnections();
      server.close();
    });
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Activates the extension with an open document, and waits like `settle`. */
  async activate(text: string, languageId = 'yaml', condition?: () => boolean): Promise<void> {
    workspace.textDocuments = [document(text, languageId)];
    activate({
      extension: { packageJSON: { version: VERSION, homepage: 'https://example.com', repository: { url: this.url } } },
      globalStorageUri: { fsPath: join(this.root, 'storage') },
      globalState: {
        get: (key: string) => this.state.get(key),
        update: (key: string, value: unknown) => Promise.resolve(this.state.set(key, value)),
      },
    } as unknown as ExtensionContext);
    await settle(condition);
  }
}

function document(text: string, languageId = 'yaml'): object {
  return { languageId, scheme: 'file', getText: () => text };
}

/** Waits for a condition. Without one, waits until the extension is idle. */
async function settle(condition?: () => boolean): Promise<void> {
  const end = Date.now() + TIMEOUT;
  for (let last = ''; ; ) {
    await sleep(condition ? 20 : 150);
    const current = JSON.stringify([editor.messages, editor.log, editor.status, clients.length]);
    if (condition ? condition() : current === last && !editor.status.busy) {
      return;
    }
    assert.ok(Date.now() < end, current);
    last = current;
  }
}

test('a program in PATH is started', async (context) => {
  const session = Session.create(context);
  const path = write(join(session.root, 'bin', 'kubectl-vap'), CURRENT);
  await session.activate('a: b', 'yaml', () => editor.status.detail !== 'starting' && clients.length > 0);
  assert.deepEqual(clients.map(({ server }) => server), [{ command: path, args: ['lsp'] }]);
  assert.equal(editor.status.detail, `kubectl-vap ${VERSION}`);
  assert.deepEqual(editor.messages, []);
  await editor.commands.get('vap.showVersion')?.();
  assert.deepEqual(editor.messages, [`VAP extension ${VERSION}, kubectl-vap ${VERSION} (${path})`]);
  clients[0]?.changeState({ newState: 1 });
  assert.equal(editor.status.detail, 'the server stopped');
  await editor.commands.get('vap.restart')?.();
  assert.deepEqual(clients.map(({ running }) => running), [false, true]);
});

test('the download is offered once, and only for policies', async (context) => {
  const session = Session.create(context);
  await session.serve(context);
  await session.activate('a: b');
  assert.deepEqual(editor.messages, []);
  assert.equal(editor.status.command?.command, 'vap.download');
  for (let i = 0; i < 2; i += 1) {
    editor.documentListeners.forEach((listener) => {
      listener(document(POLICY));
    });
    await settle();
  }
  assert.deepEqual(editor.messages, [
    `VAP: The program kubectl-vap is not installed. Download version ${VERSION} from ${session.url}/releases/download/v${VERSION}?`,
  ]);
  assert.deepEqual(session.requests, []);
  assert.deepEqual(clients, []);
});

test('the consent starts the download', async (context) => {
  const session = Session.create(context);
  await session.serve(context);
  editor.choice = 'Download';
  await session.activate(POLICY, 'yaml', () => editor.status.detail === `kubectl-vap ${VERSION}`);
  assert.deepEqual(session.requests, ['checksums.txt', archiveName(VERSION, process.platform, process.arch)]);
  const path = join(session.root, 'storage', `v${VERSION}`, 'kubectl-vap');
  assert.deepEqual(clients.map(({ server }) => server.command), [path]);
  assert.equal(editor.status.detail, `kubectl-vap ${VERSION}`);
});

test('a download that fails is reported', async (context) => {
  const session = Session.create(context);
  editor.choice = 'Download';
  await session.activate(POLICY, 'yaml', () => editor.messages.length > 1);
  await settle();
  assert.match(editor.messages[1] ?? '', /^VAP: kubectl-vap 9\.8\.7 is not installed: http:.*checksums\.txt: /);
  assert.equal(editor.messages.length, 2);
  assert.deepEqual(clients, []);
});

test('the other answers download nothing', async (context) => {
  const session = Session.create(context);
  await session.serve(context);
  editor.choice = 'Installation Guide';
  await session.activate(POLICY, 'yaml', () => editor.opened.length > 0);
  assert.deepEqual(editor.opened, ['https://example.com']);
  await deactivate();
  editor.choice = 'Never';
  await session.activate(POLICY, 'yaml', () => session.state.size > 0);
  await deactivate();
  await session.activate(POLICY);
  assert.equal(editor.messages.length, 2);
  assert.deepEqual(session.requests, []);
});

test('only the settings of the user select a cluster', async (context) => {
  const session = Session.create(context);
  write(join(session.root, 'bin', 'kubectl-vap'), CURRENT);
  editor.workspace['live'] = true;
  editor.user['context'] = 'test';
  await session.activate('a: b', 'yaml', () => editor.status.detail !== 'starting' && clients.length > 0);
  for (const user of [{ live: true }, { live: true, context: '' }]) {
    Object.assign(editor.user, user);
    await editor.commands.get('vap.restart')?.();
  }
  assert.deepEqual(
    clients.map(({ server }) => server.args),
    [['lsp'], ['lsp', '--live', '--context=test'], ['lsp', '--live']],
  );
});

test('only the settings of the user have a path', async (context) => {
  const session = Session.create(context);
  const trap = join(session.root, 'started');
  editor.workspace['path'] = write(join(session.root, 'workspace', 'kubectl-vap'), `#!/bin/sh\n/usr/bin/touch ${trap}\n`);
  const path = write(join(session.root, 'own'), CURRENT);
  editor.user['path'] = path;
  await session.activate('a: b', 'yaml', () => clients.length > 0);
  assert.deepEqual(clients.map(({ server }) => server.command), [path]);
  editor.user = {};
  editor.configurationListeners.forEach((listener) => {
    listener({ affectsConfiguration: () => true });
  });
  await settle(() => editor.status.detail === 'kubectl-vap is not installed');
  assert.equal(clients.length, 1);
});

test('a program that is too old is reported', async (context) => {
  const session = Session.create(context);
  const old = write(join(session.root, 'bin', 'kubectl-vap'), script('0.0.1', 'exit 2'));
  const message = `\`${old}\` has the version 0.0.1, which has no language server (the command \`lsp\`)`;
  await session.activate(POLICY, 'yaml', () => editor.messages.length > 0);
  assert.ok(editor.messages[0]?.startsWith(`VAP: ${message}. Download version`), editor.messages[0]);
  await deactivate();
  editor.messages = [];
  // The setting of the user is not replaced by a download.
  editor.user['path'] = old;
  editor.choice = 'Open Settings';
  await session.activate(POLICY, 'yaml', () => editor.executed.length > 0);
  assert.deepEqual(editor.messages, [`VAP: ${message}`]);
  assert.deepEqual(editor.executed, [['workbench.action.openSettings', 'vap.path']]);
});

test('documents in JSON start the server only for policies', async (context) => {
  const session = Session.create(context);
  write(join(session.root, 'bin', 'kubectl-vap'), CURRENT);
  await session.activate('{}', 'json');
  assert.equal(clients.length, 0);
  editor.documentListeners.forEach((listener) => {
    listener(document('{"apiVersion": "admissionregistration.k8s.io/v1"}', 'json'));
  });
  await settle(() => clients.length === 1);
});

test('the setting turns the server off', async (context) => {
  const session = Session.create(context);
  write(join(session.root, 'bin', 'kubectl-vap'), CURRENT);
  editor.user['enable'] = false;
  await session.activate(POLICY);
  assert.deepEqual([clients.length, editor.messages, editor.status.detail], [0, [], 'disabled in the settings']);
});

test('the result of a case opens as a document, without a message', async (context) => {
  const session = Session.create(context);
  write(join(session.root, 'bin', 'kubectl-vap'), CURRENT);
  await session.activate(POLICY, 'yaml', () => clients.length > 0);
  const [client] = clients;
  assert.ok(client);
  const run = (command: string): Promise<unknown> =>
    client.options.middleware.executeCommand(command, ['file:///a.yaml', 'probe/case'], () => {
      client.notify({ type: 3, message: 'values' });
      client.notify({ type: 3, message: 'other' });
      client.notify({ type: 1, message: 'error' });
      return Promise.resolve('values');
    });
  assert.equal(await run('vap.showCase'), 'values');
  assert.deepEqual(editor.shown, ['values']);
  assert.deepEqual(editor.messages, ['error', 'other']);
  // The messages of other commands are all shown, in their order.
  await run('vap.other');
  assert.deepEqual(editor.messages.slice(2), ['values', 'other', 'error']);
  assert.deepEqual(editor.shown, ['values']);
});
