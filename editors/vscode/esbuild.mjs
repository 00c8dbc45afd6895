// Bundles the extension in dist/ or, with `--test`, the tests in out/.
import { build } from 'esbuild';
import { cpSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';

const common = { bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };

if (process.argv.includes('--test')) {
  rmSync('out', { recursive: true, force: true });
  const tests = readdirSync('test').filter((name) => name.endsWith('.test.ts') || name === 'editor.ts');
  await build({
    ...common,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: 'out',
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    packages: 'external',
    // Only test/extension.test.ts imports these modules.
    alias: { vscode: './test/vscode.ts', 'vscode-languageclient/node': './test/languageclient.ts' },
    sourcemap: 'inline',
  });
} else {
  rmSync('dist', { recursive: true, force: true });
  const { metafile } = await build({
    ...common,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    format: 'cjs',
    external: ['vscode'],
    minify: true,
    legalComments: 'none',
    metafile: true,
  });
  writeFileSync('dist/ThirdPartyNotices.txt', notices(Object.keys(metafile.inputs)));
  // The schema of the configuration, for the YAML extension.
  cpSync('../../docs/vap.schema.json', 'dist/vap.schema.json');
}

/** Returns the licenses of the packages that contain the files. */
function notices(files) {
  const packages = files.map((file) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  const texts = [...new Set(packages)].filter(Boolean).map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(`${directory}/package.json`, 'utf8'));
    const file = readdirSync(directory).find((candidate) => /^licen[cs]e/i.test(candidate));
    if (!file) {
      throw new Error(`${directory} has no license`);
    }
    return `${name} ${version} (${license})\n\n${readFileSync(`${directory}/${file}`, 'utf8').trim()}\n`;
  });
  return `The extension contains these packages:\n\n${texts.sort().join(`\n${'-'.repeat(80)}\n\n`)}`;
}
