// Finds the program, and checks that it has a language server.
import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { installedPath } from './download';
import { programName } from './release';

export interface Search {
  /** The path in the settings, or an empty string. */
  setting: string;
  /** The directory of downloaded programs. */
  downloads: string;
  /** The version that the extension downloads. */
  version: string;
  variables?: Partial<Record<string, string>>;
  home?: string;
}

/** A program with a language server. */
export interface Program {
  path: string;
  version: string;
}

/** The result of a search. `rejected` has a message for each program that cannot be used. */
export interface SearchResult {
  program: Program | undefined;
  rejected: string[];
}

/** Maximum run time of a program that is checked, in milliseconds. */
const TIMEOUT = 10_000;

/** Returns the first usable program. If a path is set, no other path is tried. */
export async function locate(search: Search): Promise<SearchResult> {
  const rejected: string[] = [];
  for (const path of candidates(search)) {
    if (!search.setting && !(await isExecutable(path))) {
      continue;
    }
    const checked = await check(path);
    if (typeof checked !== 'string') {
      return { program: checked, rejected };
    }
    rejected.push(checked);
  }
  return { program: undefined, rejected };
}

/** Returns the paths at which the program may be, in the order of preference. */
export function candidates(search: Search): string[] {
  const home = search.home ?? homedir();
  if (search.setting) {
    return [search.setting.replace(/^~(?=[/\\])/, home)];
  }
  const variables = search.variables ?? process.env;
  const name = programName(process.platform);
  const key = Object.keys(variables).find((variable) => variable.toUpperCase() === 'PATH') ?? 'PATH';
  // A relative directory, or an empty one, could be in the workspace.
  const directories = (variables[key] ?? '').split(delimiter).filter((directory) => isAbsolute(directory));
  directories.push(join(variables['KREW_ROOT'] ?? join(home, '.krew'), 'bin'));
  const paths = directories.map((directory) => join(directory, name));
  paths.push(installedPath(search.downloads, search.version, process.platform));
  return [...new Set(paths)];
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Returns the program at a path, or a message if it cannot be used. */
export async function check(path: string): Promise<Program | string> {
  if (!isAbsolute(path)) {
    return `\`${path}\` is not an absolute path`;
  }
  const shown = await run(path, ['--version']);
  if (shown.failure !== undefined) {
    return `\`${path}\` cannot be started: ${shown.failure}`;
  }
  const [, version] = /^kubectl-vap (\d+\.\d+\.\d+\S*)$/m.exec(shown.output) ?? [];
  if (!version) {
    return `\`${path}\` is another program: \`--version\` does not print the version of kubectl-vap`;
  }
  if ((await run(path, ['lsp', '--help'])).failure !== undefined) {
    return `\`${path}\` has the version ${version}, which has no language server (the command \`lsp\`)`;
  }
  return { path, version };
}

/** The result of a program. `failure` is undefined if its exit status is 0. */
interface Run {
  output: string;
  failure?: string;
}

function run(path: string, args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(path, args, { timeout: TIMEOUT, windowsHide: true }, (error, output, errors) => {
      if (!error) {
        resolve({ output });
      } else if (error.killed) {
        resolve({ output, failure: `it did not end within ${TIMEOUT / 1000} s` });
      } else if (typeof error.code === 'number') {
        const [line] = errors.split('\n').filter((text) => text.trim() !== '');
        resolve({ output, failure: line ?? `exit status ${error.code}` });
      } else {
        resolve({ output, failure: error.code === 'ENOENT' ? 'there is no such file' : error.message });
      }
    });
  });
}
