// The extension: starts the language server, and offers to download it.
import * as vscode from 'vscode';
import { type LanguageClient, State } from 'vscode-languageclient/node';
import { CaseResults } from './cases';
import { SELECTOR, createClient } from './client';
import { install } from './download';
import { type Program, locate } from './locate';
import { type Release, releaseOf } from './release';

/** The parts of package.json that the extension reads. */
interface Manifest {
  version: string;
  homepage: string;
  repository: { url: string };
}

/** Text that only objects with expressions have: the API groups of policies, definitions and probes. */
const RELEVANT = /admissionregistration\.k8s\.io|apiextensions\.k8s\.io|vap-status\.dev/;

let extension: Extension | undefined;

/** Starts the extension. */
export function activate(context: vscode.ExtensionContext): void {
  extension = new Extension(context);
  extension.open(vscode.workspace.textDocuments);
}

/** Stops the extension. */
export async function deactivate(): Promise<void> {
  await extension?.end();
  extension = undefined;
}

class Extension {
  private readonly output = vscode.window.createOutputChannel('VAP', { log: true });
  private readonly status = vscode.languages.createLanguageStatusItem('vap', SELECTOR);
  private readonly results = new CaseResults();
  private readonly subscriptions: { dispose(): unknown }[];
  private readonly manifest: Manifest;
  private readonly release: Release;
  private client: LanguageClient | undefined;
  private program: Program | undefined;
  /** The reasons why there is no program. `undefined` if there is one, or before the search. */
  private missing: string[] | undefined;
  private started = false;
  private offered = false;
  /** The last start or stop. The next one waits for it. */
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly context: vscode.ExtensionContext) {
    this.manifest = context.extension.packageJSON as Manifest;
    this.release = releaseOf(this.manifest.repository.url, this.manifest.version);
    this.status.name = 'VAP';
    this.setStatus('not started');
    const { commands, workspace } = vscode;
    this.subscriptions = [
      this.output,
      this.status,
      this.results,
      commands.registerCommand('vap.restart', () => this.restart()),
      commands.registerCommand('vap.showOutput', () => {
        this.output.show();
      }),
      commands.registerCommand('vap.showVersion', () => this.showVersion()),
      commands.registerCommand('vap.download', () => this.download()),
      workspace.onDidOpenTextDocument((document) => {
        this.open([document]);
      }),
      workspace.onDidChangeConfiguration((event) => {
        const settings = ['enable', 'path', 'live', 'context'];
        if (this.started && settings.some((name) => event.affectsConfiguration(`vap.${name}`))) {
          void this.restart();
        }
      }),
    ];
  }

  /** Stops the server, and removes the commands. */
  async end(): Promise<void> {
    await this.queue(() => this.stop());
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Starts the server if a document is YAML, or is JSON that contains an API group of policies. */
  open(documents: readonly vscode.TextDocument[]): void {
    const selected = documents.filter((document) => vscode.languages.match(SELECTOR, document) > 0);
    const isRelevant = (document: vscode.TextDocument): boolean => RELEVANT.test(document.getText());
    if (!this.started && selected.some((document) => document.languageId === 'yaml' || isRelevant(document))) {
      void this.restart();
    }
    void this.last.then(async () => {
      if (this.missing && selected.some(isRelevant)) {
        await this.offer();
      }
    });
  }

  /** Runs a task after the previous ones. */
  private queue(task: () => Promise<void>): Promise<void> {
    const next = this.last.then(task);
    this.last = next.catch(() => undefined);
    return next;
  }

  private async restart(): Promise<void> {
    this.started = true;
    await this.queue(async () => {
      await this.stop();
      await this.start();
    });
  }

  private async start(): Promise<void> {
    this.program = undefined;
    this.missing = undefined;
    const configuration = vscode.workspace.getConfiguration('vap');
    if (!configuration.get<boolean>('enable', true)) {
      this.setStatus('disabled in the settings');
      return;
    }
    this.setStatus('starting');
    const setting = this.pathSetting();
    const { program, rejected } = await locate({
      setting,
      downloads: this.context.globalStorageUri.fsPath,
      version: this.release.version,
    });
    for (const message of rejected) {
      this.output.warn(message);
    }
    if (!program) {
      this.missing = rejected;
      this.setStatus(rejected[0] ?? 'kubectl-vap is not installed', vscode.LanguageStatusSeverity.Warning);
      if (setting) {
        void this.showProblem(rejected.join('\n'));
      }
      return;
    }
    this.output.info(`starting ${program.path}, version ${program.version}`);
    const client = createClient(program.path, this.clusterFlags(), this.output, this.results);
    try {
      await client.start();
    } catch (error) {
      this.output.error(error as Error);
      this.setStatus('the server did not start', vscode.LanguageStatusSeverity.Error);
      void this.showProblem(`${program.path} lsp did not start: ${(error as Error).message}`);
      return;
    }
    this.client = client;
    this.program = program;
    this.setStatus(`kubectl-vap ${program.version}`);
    // The client restarts a server that ends, up to a number of times.
    client.onDidChangeState(({ newState }) => {
      if (this.client !== client) {
        return;
      }
      if (newState === State.Running) {
        this.setStatus(`kubectl-vap ${program.version}`);
      } else if (newState === State.Starting) {
        this.setStatus('starting');
      } else {
        this.setStatus('the server stopped', vscode.LanguageStatusSeverity.Error);
      }
    });
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.output.warn(`the server did not stop: ${(error as Error).message}`);
    }
  }

  /** Returns a value in the settings of the user. The values of a workspace have no effect. */
  private userSetting(name: string): unknown {
    return vscode.workspace.getConfiguration('vap').inspect(name)?.globalValue;
  }

  private textSetting(name: string): string {
    const value = this.userSetting(name);
    return typeof value === 'string' ? value.trim() : '';
  }

  private pathSetting(): string {
    return this.textSetting('path');
  }

  /** Returns the flags that select a cluster, if one is used. */
  private clusterFlags(): string[] {
    if (this.userSetting('live') !== true) {
      return [];
    }
    const context = this.textSetting('context');
    return context ? ['--live', `--context=${context}`] : ['--live'];
  }

  private setStatus(detail: string, severity = vscode.LanguageStatusSeverity.Information): void {
    this.status.text = 'VAP';
    this.status.detail = detail;
    this.status.severity = severity;
    this.status.busy = detail === 'starting';
    this.status.command =
      this.missing && !this.pathSetting()
        ? { title: 'Download', command: 'vap.download' }
        : { title: 'Show output', command: 'vap.showOutput' };
  }

  /** Shows a problem with the program in the settings, or with the start of the server. */
  private async showProblem(message: string): Promise<void> {
    const choice = await vscode.window.showErrorMessage(`VAP: ${message}`, 'Open Settings', 'Show Output');
    if (choice === 'Open Settings') {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'vap.path');
    } else if (choice === 'Show Output') {
      this.output.show();
    }
  }

  /** Offers the download, once in a session, if there is no program. */
  private async offer(): Promise<void> {
    if (!this.missing || this.offered || this.pathSetting() || this.context.globalState.get('neverOffer')) {
      return;
    }
    this.offered = true;
    const reasons = this.missing.map((message) => `${message}. `).join('');
    const choice = await vscode.window.showInformationMessage(
      `VAP: ${reasons || 'The program kubectl-vap is not installed. '}Download version ${this.release.version} from ${this.release.url}?`,
      'Download',
      'Installation Guide',
      'Never',
    );
    if (choice === 'Download') {
      await this.download();
    } else if (choice === 'Installation Guide') {
      await vscode.env.openExternal(vscode.Uri.parse(this.manifest.homepage));
    } else if (choice === 'Never') {
      await this.context.globalState.update('neverOffer', true);
    }
  }

  /** Downloads the program, and starts its server. */
  private async download(): Promise<void> {
    const { version } = this.release;
    const options = { location: vscode.ProgressLocation.Notification, cancellable: true, title: `kubectl-vap ${version}` };
    try {
      // A running server of this version would keep its file from being replaced on Windows.
      await this.queue(() => this.stop());
      await vscode.window.withProgress(options, async (progress, token) => {
        const controller = new AbortController();
        token.onCancellationRequested(() => {
          controller.abort();
        });
        let last = 0;
        const path = await install(this.release, this.context.globalStorageUri.fsPath, {
          platform: process.platform,
          architecture: process.arch,
          signal: controller.signal,
          progress: (share) => {
            const percent = Math.floor(share * 100);
            if (percent > last) {
              progress.report({ increment: percent - last, message: `${percent}%` });
              last = percent;
            }
          },
        });
        this.output.info(`downloaded ${path}`);
      });
      await this.context.globalState.update('neverOffer', undefined);
    } catch (error) {
      this.output.error(error as Error);
      void vscode.window.showErrorMessage(`VAP: kubectl-vap ${version} is not installed: ${(error as Error).message}`);
    }
    await this.restart();
  }

  private async showVersion(): Promise<void> {
    await this.last;
    const server = this.program
      ? `kubectl-vap ${this.program.version} (${this.program.path})`
      : `no server: ${this.status.detail ?? ''}`;
    await vscode.window.showInformationMessage(`VAP extension ${this.manifest.version}, ${server}`);
  }
}
