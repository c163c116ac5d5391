// Installs Chrome DevTools' heap snapshot worker from npm and bundles it for Node.
//
//   node install.js DIRECTORY
//
// Afterwards DIRECTORY/worker.mjs exports HeapSnapshot, HeapSnapshotLoader and HeapSnapshotModel. Nothing of the
// package is part of this repository; tests only compare numbers with it.
'use strict';
const { execFileSync } = require('node:child_process');
const { existsSync, mkdirSync, renameSync, writeFileSync } = require('node:fs');
const { join, resolve } = require('node:path');

const PACKAGES = ['chrome-devtools-frontend@1.0.1705227', 'esbuild@0.25'];

const directory = resolve(process.argv[2]);
const bundle = join(directory, 'worker.mjs');
if (existsSync(bundle)) process.exit(0);

mkdirSync(directory, { recursive: true });
writeFileSync(join(directory, 'package.json'), '{ "private": true }\n');
execFileSync('npm', ['install', '--no-audit', '--no-fund', ...PACKAGES], { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });

const frontEnd = join(directory, 'node_modules/chrome-devtools-frontend/front_end');
// The build of DevTools generates this list of languages.
const locales = join(frontEnd, 'core/i18n/locales.js');
if (!existsSync(locales)) {
  writeFileSync(locales, [
    "export const LOCALES = ['en-US'];",
    'export const BUNDLED_LOCALES = LOCALES;',
    "export const DEFAULT_LOCALE = 'en-US';",
    "export const REMOTE_FETCH_PATTERN = '';",
    "export const LOCAL_FETCH_PATTERN = '';",
  ].join('\n'));
}
const worker = join(frontEnd, 'entrypoints/heap_snapshot_worker');
const entry = join(directory, 'entry.js');
writeFileSync(entry, [
  `export * as HeapSnapshot from ${JSON.stringify(join(worker, 'HeapSnapshot.ts'))};`,
  `export * as HeapSnapshotLoader from ${JSON.stringify(join(worker, 'HeapSnapshotLoader.ts'))};`,
  `export * as HeapSnapshotModel from ${JSON.stringify(join(frontEnd, 'models/heap_snapshot/HeapSnapshotModel.ts'))};`,
].join('\n'));
const partial = `${bundle}.partial`;
execFileSync(join(directory, 'node_modules/.bin/esbuild'), [
  entry, '--bundle', '--format=esm', '--platform=node', '--log-level=error', `--outfile=${partial}`,
], { stdio: 'inherit' });
renameSync(partial, bundle);
