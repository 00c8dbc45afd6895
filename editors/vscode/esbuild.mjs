// Bundles the extension in dist/ or, with `--test`, the tests in out/.
import { build } from 'esbuild';
import { cpSync, readdirSync, rmSync } from 'node:fs';
import process from 'node:process';

const common = { bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };

if (process.argv.includes('--test')) {
  rmSync('out', { recursive: true, force: true });
  const tests = readdirSync('test').filter((name) => name.endsWith('.test.ts'));
  await build({
    ...common,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: 'out',
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    packages: 'external',
    sourcemap: 'inline',
  });
} else {
  rmSync('dist', { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    format: 'cjs',
    external: ['vscode'],
    minify: true,
    legalComments: 'linked',
  });
  // The schema of the configuration, for the YAML extension.
  cpSync('../../docs/vap.schema.json', 'dist/vap.schema.json');
}
