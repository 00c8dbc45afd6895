// The client of the language server.
import * as vscode from 'vscode';
import {
  LanguageClient,
  MessageType,
  ShowMessageNotification,
  type ShowMessageParams,
} from 'vscode-languageclient/node';
import type { CaseResults } from './cases';

/** The documents that the server receives. */
export const SELECTOR = ['yaml', 'json'].flatMap((language) =>
  ['file', 'untitled', 'vscode-vfs'].map((scheme) => ({ language, scheme })),
);

/** The command of the server's code lenses. */
const SHOW_CASE = 'vap.showCase';

/** Creates a client, which starts the language server of the program at a path with these flags. */
export function createClient(
  path: string,
  flags: readonly string[],
  output: vscode.LogOutputChannel,
  results: CaseResults,
): LanguageClient {
  // The server also shows the result of a case as a message. Messages during the command are held until the result is
  // known.
  let pending = 0;
  let held: ShowMessageParams[] = [];
  const client = new LanguageClient(
    'vap',
    'VAP',
    { command: path, args: ['lsp', ...flags] },
    {
      documentSelector: SELECTOR,
      outputChannel: output,
      diagnosticCollectionName: 'vap',
      middleware: {
        executeCommand: async (command, args, next): Promise<unknown> => {
          if (command !== SHOW_CASE) {
            return next(command, args);
          }
          pending += 1;
          let result: unknown;
          try {
            result = await next(command, args);
          } finally {
            pending -= 1;
            const messages = held.filter(({ message }) => message !== result);
            held = [];
            messages.forEach(showMessage);
          }
          if (typeof result === 'string') {
            await results.show(typeof args[1] === 'string' ? args[1] : 'case', result);
          }
          return result;
        },
      },
    },
  );
  client.onNotification(ShowMessageNotification.type, (params) => {
    if (pending > 0 && params.type === MessageType.Info) {
      held.push(params);
    } else {
      showMessage(params);
    }
  });
  return client;
}

function showMessage({ type, message }: ShowMessageParams): void {
  if (type === MessageType.Error) {
    void vscode.window.showErrorMessage(message);
  } else if (type === MessageType.Warning) {
    void vscode.window.showWarningMessage(message);
  } else {
    void vscode.window.showInformationMessage(message);
  }
}
