// The files of a release of the plugin.

/** A release of the plugin. */
export interface Release {
  version: string;
  /** The URL of the directory with the files of the release. */
  url: string;
}

/** The names of Node's platforms and architectures in the names of archives. */
const SYSTEMS: Partial<Record<string, string>> = { linux: 'linux', darwin: 'darwin', win32: 'windows' };
const ARCHITECTURES: Partial<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Returns the release of a version in a repository on GitHub. */
export function releaseOf(repository: string, version: string): Release {
  return { version, url: `${repository.replace(/(\.git|\/)$/, '')}/releases/download/v${version}` };
}

/** Returns the name of the archive for a platform of Node. Returns undefined if the release has no such archive. */
export function archiveName(version: string, platform: string, architecture: string): string | undefined {
  const system = SYSTEMS[platform];
  // Windows on Arm runs programs for x64.
  const arch = platform === 'win32' ? 'amd64' : ARCHITECTURES[architecture];
  return system && arch && (platform !== 'win32' || architecture in ARCHITECTURES)
    ? `kubectl-vap_v${version}_${system}_${arch}.tar.gz`
    : undefined;
}

/** Returns the file name of the program on a platform of Node. */
export function programName(platform: string): string {
  return platform === 'win32' ? 'kubectl-vap.exe' : 'kubectl-vap';
}

/**
 * Returns the SHA-256 of a file in the output of `sha256sum`, in lower case. Returns undefined if there is no line for the
 * file.
 */
export function checksumOf(checksums: string, file: string): string | undefined {
  for (const line of checksums.split('\n')) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *](.+?)\r?$/i.exec(line) ?? [];
    if (hash && name === file) {
      return hash.toLowerCase();
    }
  }
  return undefined;
}
