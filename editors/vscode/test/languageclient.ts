// A replacement of the module `vscode-languageclient/node` for tests: records the clients, and starts no program.
interface Options {
  middleware: { executeCommand: (command: string, args: unknown[], next: () => Promise<unknown>) => Promise<unknown> };
}

export const MessageType = { Error: 1, Warning: 2, Info: 3 };
export const State = { Stopped: 1, Starting: 3, Running: 2 };
export const ShowMessageNotification = { type: 'window/showMessage' };

/** The clients that were started, in order. */
export const clients: LanguageClient[] = [];

export class LanguageClient {
  running = false;
  notify: (params: { type: number; message: string }) => void = () => undefined;
  changeState: (event: { newState: number }) => void = () => undefined;

  constructor(
    readonly id: string,
    readonly name: string,
    readonly server: { command: string; args: string[] },
    readonly options: Options,
  ) {}

  start(): Promise<void> {
    this.running = true;
    clients.push(this);
    return Promise.resolve();
  }

  dispose(): Promise<void> {
    this.running = false;
    return Promise.resolve();
  }

  onNotification(_type: unknown, listener: LanguageClient['notify']): void {
    this.notify = listener;
  }

  onDidChangeState(listener: LanguageClient['changeState']): void {
    this.changeState = listener;
  }
}
