// Bundles the page into a directory: `node build.mjs OUT`. `dist` has the output of wasm-bindgen.
import { copyFile, mkdir } from 'node:fs/promises';
import { build } from 'esbuild';

const out = process.argv[2] ?? 'out';
const shared = { bundle: true, minify: true, outdir: out, logLevel: 'warning', target: ['chrome109', 'firefox115', 'safari16.4'] };
await mkdir(out, { recursive: true });
await build({ ...shared, entryPoints: ['src/main.js', 'src/main.css'], format: 'esm', loader: { '.yaml': 'text' } });
await build({ ...shared, entryPoints: ['src/worker.js'], format: 'iife', logOverride: { 'empty-import-meta': 'silent' } });
await copyFile('index.html', `${out}/index.html`);
await copyFile('dist/playground_bg.wasm', `${out}/playground.wasm`);
