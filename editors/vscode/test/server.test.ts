// A session with the language server that exchanges the same messages as VS Code. KUBECTL_VAP is the path of the
// program.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  type ClientCapabilities,
  type InitializeResult,
  type ProtocolConnection,
  type PublishDiagnosticsParams,
  type ShowMessageParams,
  CodeActionRequest,
  CodeLensRequest,
  CompletionRequest,
  DidChangeTextDocumentNotification,
  DidChangeWatchedFilesNotification,
  DidCloseTextDocumentNotification,
  DidOpenTextDocumentNotification,
  DocumentSymbolRequest,
  ExecuteCommandRequest,
  ExitNotification,
  FileChangeType,
  HoverRequest,
  InitializeRequest,
  InitializedNotification,
  PublishDiagnosticsNotification,
  RegistrationRequest,
  RenameRequest,
  SemanticTokensRequest,
  ShowMessageNotification,
  ShutdownRequest,
  SignatureHelpRequest,
  StreamMessageReader,
  StreamMessageWriter,
  createProtocolConnection,
} from 'vscode-languageserver-protocol/node';
import { check } from '../src/locate';
import { temporary } from './programs';

const PROGRAM = process.env['KUBECTL_VAP'] ?? '';
const SAMPLES = '../../config/samples';
const TIMEOUT = 20_000;

/** The recorded parameters of the request `initialize` of VS Code, without the workspace. */
const INITIALIZE = JSON.parse(readFileSync('test/initialize.json', 'utf8')) as {
  capabilities: ClientCapabilities;
  clientInfo: { name: string; version: string };
};

const POLICY = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  variables:
  - {name: max, expression: '50'}
  validations:
  - expression: object.spec.replcas <= variables.max
`;

/** A server with a workspace, and the messages that it sent. */
class Session {
  readonly diagnostics: PublishDiagnosticsParams[] = [];
  readonly messages: ShowMessageParams[] = [];
  readonly registered: string[] = [];
  readonly exited: Promise<number | null>;
  result: InitializeResult = { capabilities: {} };
  private waiting: (() => void)[] = [];

  private constructor(
    readonly connection: ProtocolConnection,
    readonly directory: string,
    exited: Promise<number | null>,
  ) {
    this.exited = exited;
    connection.onNotification(PublishDiagnosticsNotification.type, (params) => {
      this.diagnostics.push(params);
      this.notify();
    });
    connection.onNotification(ShowMessageNotification.type, (params) => {
      this.messages.push(params);
      this.notify();
    });
    connection.onRequest(RegistrationRequest.type, (params) => {
      this.registered.push(...params.registrations.map(({ method }) => method));
      this.notify();
    });
  }

  static async start(context: TestContext, files: Record<string, string> = {}): Promise<Session> {
    const directory = temporary(context);
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(directory, name), text);
    }
    const server = spawn(PROGRAM, ['lsp'], { stdio: ['pipe', 'pipe', 'inherit'] });
    context.after(() => server.kill());
    const exited = new Promise<number | null>((resolve) => server.on('exit', resolve));
    const connection = createProtocolConnection(
      new StreamMessageReader(server.stdout),
      new StreamMessageWriter(server.stdin),
    );
    const session = new Session(connection, directory, exited);
    connection.listen();
    const uri = pathToFileURL(directory).href;
    session.result = await connection.sendRequest(InitializeRequest.type, {
      ...INITIALIZE,
      processId: process.pid,
      locale: 'en',
      rootPath: directory,
      rootUri: uri,
      trace: 'off',
      workspaceFolders: [{ uri, name: 'workspace' }],
    });
    await connection.sendNotification(InitializedNotification.type, {});
    return session;
  }

  private notify(): void {
    const waiting = this.waiting;
    this.waiting = [];
    waiting.forEach((resolve) => {
      resolve();
    });
  }

  /** Waits until a value exists among the received messages. */
  async wait<T>(value: () => T | undefined, name: string): Promise<T> {
    const end = Date.now() + TIMEOUT;
    for (;;) {
      const current = value();
      if (current !== undefined) {
        return current;
      }
      assert.ok(Date.now() < end, `no ${name}: ${JSON.stringify(this.diagnostics.at(-1))}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, end - Date.now() + 1);
        this.waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  uri(name: string): string {
    return pathToFileURL(join(this.directory, name)).href;
  }

  /** Opens a document. Returns its URI. */
  async open(uri: string, text: string, languageId = 'yaml'): Promise<string> {
    const textDocument = { uri, languageId, version: 1, text };
    await this.connection.sendNotification(DidOpenTextDocumentNotification.type, { textDocument });
    return uri;
  }

  /** Waits for the diagnostics of a version of a document. */
  async findings(uri: string, version: number): Promise<PublishDiagnosticsParams['diagnostics']> {
    const published = await this.wait(
      () => this.diagnostics.find((params) => params.uri === uri && params.version === version),
      `diagnostics of version ${version}`,
    );
    return published.diagnostics;
  }

  async end(): Promise<void> {
    await this.connection.sendRequest(ShutdownRequest.type);
    await this.connection.sendNotification(ExitNotification.type);
    assert.equal(await this.exited, 0);
    this.connection.dispose();
  }
}

/** Returns the position after a text, which occurs once. */
function after(text: string, part: string): { line: number; character: number } {
  const lines = text.slice(0, text.indexOf(part) + part.length).split('\n');
  assert.ok(text.includes(part), part);
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 };
}

suite('server', { timeout: 120_000 }, () => {
  test('the extension accepts the program', async () => {
    assert.ok(PROGRAM, 'KUBECTL_VAP is the path of the program');
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    assert.deepEqual(await check(PROGRAM), { path: PROGRAM, version });
  });

  test('a policy is checked and completed while it changes', async (context) => {
    const session = await Session.start(context);
    const { connection } = session;
    assert.equal(session.result.capabilities.positionEncoding, 'utf-16');
    await session.wait(() => session.registered.find((method) => method === 'workspace/didChangeWatchedFiles'), 'watch');
    const uri = await session.open(session.uri('policy.yaml'), POLICY);
    const textDocument = { uri };
    const [unknown] = (await session.findings(uri, 1)).filter(({ code }) => code === 'undefined-field');
    assert.ok(unknown, JSON.stringify(session.diagnostics));
    assert.match(unknown.codeDescription?.href ?? '', /^https:.*rules/);

    // A code action with an edit, for the range of the diagnostic.
    const actions = await connection.sendRequest(CodeActionRequest.type, {
      textDocument,
      range: unknown.range,
      context: { diagnostics: [unknown], triggerKind: 1 },
    });
    const titles = (actions ?? []).map((action) => action.title);
    const fix = (actions ?? []).find((action) => 'edit' in action && JSON.stringify(action.edit).includes('replicas'));
    assert.ok(fix, titles.join(', '));

    // Typing, in the incremental form.
    const start = after(POLICY, 'object.spec.re');
    await connection.sendNotification(DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version: 2 },
      contentChanges: [{ range: { start, end: after(POLICY, 'replcas') }, rangeLength: 5, text: '' }],
    });
    const completions = await connection.sendRequest(CompletionRequest.type, {
      textDocument,
      position: start,
      context: { triggerKind: 1 },
    });
    const items = Array.isArray(completions) ? completions : (completions?.items ?? []);
    assert.ok(items.some(({ label }) => label === 'replicas'), items.map(({ label }) => label).join(', '));
    await connection.sendNotification(DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version: 3 },
      contentChanges: [{ range: { start, end: start }, rangeLength: 0, text: 'plicas' }],
    });
    const findings = await session.findings(uri, 3);
    assert.ok(!findings.some(({ code }) => code === 'undefined-field'), JSON.stringify(findings));

    const position = after(POLICY, '<= variables.m');
    const hover = await connection.sendRequest(HoverRequest.type, { textDocument, position: after(POLICY, 'object.spec.') });
    assert.match(JSON.stringify(hover?.contents), /replicas/);
    const symbols = await connection.sendRequest(DocumentSymbolRequest.type, { textDocument });
    assert.ok(JSON.stringify(symbols).includes('limit.example.com'));
    const tokens = await connection.sendRequest(SemanticTokensRequest.type, { textDocument });
    assert.ok((tokens?.data.length ?? 0) > 0);
    // `replicas` has one character more than `replcas`.
    const moved = { ...position, character: position.character + 1 };
    const edit = await connection.sendRequest(RenameRequest.type, { textDocument, position: moved, newName: 'limit' });
    assert.equal(edit?.changes?.[uri]?.length ?? edit?.documentChanges?.length, 2, JSON.stringify(edit));

    await connection.sendNotification(DidCloseTextDocumentNotification.type, { textDocument });
    await session.end();
  });

  test('the lens of a case shows its result', async (context) => {
    const session = await Session.start(context);
    copyFileSync(join(SAMPLES, 'sound.yaml'), join(session.directory, 'sound.yaml'));
    await session.connection.sendNotification(DidChangeWatchedFilesNotification.type, {
      changes: [{ uri: session.uri('sound.yaml'), type: FileChangeType.Created }],
    });
    const text = readFileSync(join(SAMPLES, 'sound_probe.yaml'), 'utf8');
    const uri = await session.open(session.uri('sound_probe.yaml'), text);
    const lenses = (await session.connection.sendRequest(CodeLensRequest.type, { textDocument: { uri } })) ?? [];
    assert.equal(lenses.length, 4);
    const [, lens] = lenses;
    assert.match(lens?.command?.title ?? '', /^passed: /);
    // The client registers the commands of the server, and sends the arguments of the lens.
    const command = lens?.command?.command ?? '';
    assert.deepEqual(session.result.capabilities.executeCommandProvider?.commands, [command]);
    assert.equal(command, 'vap.showCase');
    const args = lens?.command?.arguments as unknown[];
    assert.deepEqual(args, [uri, 'sample-sound/51 replicas are denied']);
    const result: unknown = await session.connection.sendRequest(ExecuteCommandRequest.type, { command, arguments: args });
    assert.ok(typeof result === 'string' && result.includes('51 replicas are denied'), String(result));
    // The extension does not show the message, because it equals the result.
    assert.deepEqual(session.messages, [{ type: 3, message: result }]);
    await session.end();
  });

  test('a document without a file is checked', async (context) => {
    const session = await Session.start(context);
    for (const uri of ['untitled:Untitled-1', 'vscode-vfs://github/owner/project/policy.yaml']) {
      await session.open(uri, POLICY);
      const findings = await session.findings(uri, 1);
      assert.ok(findings.some(({ code }) => code === 'undefined-field'), uri);
    }
    await session.end();
  });

  test('a policy in JSON is checked', async (context) => {
    const session = await Session.start(context);
    const policy = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'json' },
      spec: {
        matchConstraints: {
          resourceRules: [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['*'], resources: ['deployments'] }],
        },
        validations: [{ expression: 'object.spec.replcas < 5' }],
      },
    };
    const uri = await session.open(session.uri('policy.json'), JSON.stringify(policy, undefined, 2), 'json');
    assert.ok((await session.findings(uri, 1)).some(({ code }) => code === 'undefined-field'));
    await session.end();
  });

  test('an invalid configuration is shown as a message', async (context) => {
    const session = await Session.start(context, { '.vap.yaml': 'unknownKey: 1\n' });
    const message = await session.wait(() => session.messages[0], 'message');
    assert.equal(message.type, 1);
    assert.match(message.message, /unknownKey/);
    await session.end();
  });

  test('parameters of a function are shown', async (context) => {
    const session = await Session.start(context);
    const text = POLICY.replace('object.spec.replcas <= variables.max', 'object.metadata.name.matches(');
    const uri = await session.open(session.uri('policy.yaml'), text);
    const help = await session.connection.sendRequest(SignatureHelpRequest.type, {
      textDocument: { uri },
      position: after(text, 'matches('),
      context: { triggerKind: 2, triggerCharacter: '(', isRetrigger: false },
    });
    assert.match(help?.signatures[0]?.label ?? '', /matches/);
    await session.end();
  });
});
