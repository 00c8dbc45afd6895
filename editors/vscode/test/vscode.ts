// A replacement of the module `vscode` for tests: records what the extension shows, and answers as a test requires.
type Listener = (...values: never[]) => unknown;

/** The state that tests read and change. */
export const editor = {
  /** Values of settings, by their scope. */
  user: {} as Record<string, unknown>,
  workspace: {} as Record<string, unknown>,
  messages: [] as string[],
  log: [] as string[],
  /** The button that is selected in each message, if it has that button. */
  choice: undefined as string | undefined,
  executed: [] as unknown[][],
  opened: [] as string[],
  shown: [] as string[],
  commands: new Map<string, (...values: unknown[]) => unknown>(),
  status: { detail: '', severity: 0, busy: false, command: undefined as { command: string } | undefined },
  documentListeners: [] as ((document: unknown) => void)[],
  configurationListeners: [] as ((event: { affectsConfiguration: () => boolean }) => void)[],
};

export function reset(): void {
  Object.assign(editor, {
    user: {},
    workspace: {},
    messages: [],
    log: [],
    choice: undefined,
    executed: [],
    opened: [],
    shown: [],
    documentListeners: [],
    configurationListeners: [],
  });
  editor.commands.clear();
}

const disposable = { dispose: (): void => undefined };

function show(message: string, ...buttons: string[]): Promise<string | undefined> {
  editor.messages.push(message);
  return Promise.resolve(buttons.find((button) => button === editor.choice));
}

function record(text: unknown): void {
  editor.log.push(String(text));
}

export const LanguageStatusSeverity = { Information: 0, Warning: 1, Error: 2 };
export const ProgressLocation = { Notification: 15 };
export const ViewColumn = { Beside: -2 };

export class EventEmitter {
  event = (): typeof disposable => disposable;
  fire(): void {
    // There are no listeners.
  }
  dispose(): void {
    // There are no resources.
  }
}

export const Disposable = { from: (): typeof disposable => disposable };

export const Uri = {
  parse: (text: string) => ({ toString: () => text }),
  from: ({ scheme, path }: { scheme: string; path: string }) => ({ toString: () => `${scheme}:${path}` }),
};

export const window = {
  createOutputChannel: () => ({ ...disposable, info: record, warn: record, error: record, show: () => undefined }),
  showInformationMessage: show,
  showWarningMessage: show,
  showErrorMessage: show,
  withProgress: (_options: unknown, task: (...values: unknown[]) => unknown) =>
    task({ report: () => undefined }, { onCancellationRequested: () => disposable }),
  showTextDocument: (document: { text: string }) => {
    editor.shown.push(document.text);
    return Promise.resolve();
  },
};

export const languages = {
  createLanguageStatusItem: () => Object.assign(editor.status, disposable),
  match: (selector: { language: string; scheme: string }[], document: { languageId: string; scheme: string }) =>
    selector.some(({ language, scheme }) => language === document.languageId && scheme === document.scheme) ? 10 : 0,
};

export const commands = {
  registerCommand: (name: string, run: (...values: unknown[]) => unknown) => {
    editor.commands.set(name, run);
    return disposable;
  },
  executeCommand: (...values: unknown[]) => {
    editor.executed.push(values);
    return Promise.resolve();
  },
};

export const env = {
  openExternal: (uri: object) => {
    // eslint-disable-next-line @typescript-eslint/no-base-to-string -- a URI of this module has a text
    editor.opened.push(uri.toString());
    return Promise.resolve(true);
  },
};

let provider: { provideTextDocumentContent: (uri: object) => string } | undefined;

export const workspace = {
  textDocuments: [] as unknown[],
  getConfiguration: () => ({
    get: (name: string, fallback: unknown) => editor.workspace[name] ?? editor.user[name] ?? fallback,
    inspect: (name: string) => ({ globalValue: editor.user[name], workspaceValue: editor.workspace[name] }),
  }),
  registerTextDocumentContentProvider: (_scheme: string, value: typeof provider) => {
    provider = value;
    return disposable;
  },
  openTextDocument: (uri: object) => Promise.resolve({ text: provider?.provideTextDocumentContent(uri) }),
  onDidOpenTextDocument: (listener: Listener) => {
    editor.documentListeners.push(listener as (document: unknown) => void);
    return disposable;
  },
  onDidCloseTextDocument: () => disposable,
  onDidChangeConfiguration: (listener: Listener) => {
    editor.configurationListeners.push(listener as (event: { affectsConfiguration: () => boolean }) => void);
    return disposable;
  },
};
