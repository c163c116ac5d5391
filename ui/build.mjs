// Builds the page into dist/: three files without outside references. The same sources and lock file give the same bytes,
// so that the checked-in dist/ can be compared (`node build.mjs --check`).
import { build } from 'esbuild';
import { mkdtempSync, readFileSync, readdirSync, rmSync, copyFileSync, mkdirSync } from 'node:fs';
import { brotliCompressSync } from 'node:zlib';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, 'dist');
/** What the page may weigh on the wire. */
const LIMIT_BYTES = 110_000;

async function buildInto(folder) {
  mkdirSync(folder, { recursive: true });
  await build({
    absWorkingDir: here,
    entryPoints: { app: 'src/main.tsx' },
    outdir: folder,
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['chrome109', 'firefox115'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'warning',
  });
  for (const name of ['index.html', 'icon.svg']) copyFileSync(join(here, 'src', name), join(folder, name));
}

function compressedBytes(folder) {
  return readdirSync(folder)
    .map((name) => brotliCompressSync(readFileSync(join(folder, name))).length)
    .reduce((sum, length) => sum + length, 0);
}

if (process.argv.includes('--check')) {
  const folder = mkdtempSync(join(tmpdir(), 'heapr-ui-'));
  try {
    await buildInto(folder);
    const stale = readdirSync(folder).filter((name) => {
      try {
        return !readFileSync(join(folder, name)).equals(readFileSync(join(dist, name)));
      } catch {
        return true;
      }
    });
    if (stale.length > 0) {
      console.error(`ui/dist is not what ui/src builds: ${stale.join(', ')}; run npm install && npm run build in ui/ and commit`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
} else {
  rmSync(dist, { recursive: true, force: true });
  await buildInto(dist);
}
if (process.exitCode !== 1) {
  const bytes = compressedBytes(dist);
  console.log(`ui/dist: ${bytes} bytes compressed`);
  if (bytes > LIMIT_BYTES) {
    console.error(`ui/dist: ${bytes} bytes compressed are more than the ${LIMIT_BYTES} that the page may weigh`);
    process.exitCode = 1;
  }
}
