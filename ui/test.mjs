// The unit tests (src/**/*.test.ts): bundled by esbuild, run by node's own runner; no test framework is needed.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'heapr-ui-test-'));
try {
  const entryPoints = readdirSync(join(here, 'src'), { recursive: true }).filter((name) => name.endsWith('.test.ts')).map((name) => join('src', name));
  await build({ absWorkingDir: here, entryPoints, outdir: folder, outExtension: { '.js': '.mjs' }, bundle: true, platform: 'node', format: 'esm', jsx: 'automatic', jsxImportSource: 'preact', sourcemap: 'inline', logLevel: 'warning' });
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.mjs')).map((name) => join(folder, name));
  if (files.length === 0 || files.length !== entryPoints.length) throw new Error(`${files.length} of ${entryPoints.length} test files were built`);
  process.exitCode = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files], { stdio: 'inherit' }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
