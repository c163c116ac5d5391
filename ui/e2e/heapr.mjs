// The real heapr: its command line, and its server for as long as a test needs it.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
/** Path of the binary: `HEAPR`, or that of the debug build. */
export const HEAPR = process.env.HEAPR ?? join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug/heapr');

/**
 * Creates a directory with a home of its own, so that the user's caches are neither read nor
 * written.
 */
export function workFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'heapr-view-'));
  return { folder, env: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache'), HEAPR_RUNTIME_DIR: folder, XDG_RUNTIME_DIR: folder, DEBUGINFOD_URLS: '' }, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/**
 * Runs a program to its end; throws with its output if it fails or takes longer than some minutes.
 */
export function run(work, program, words, { shell = false } = {}) {
  return new Promise((resolve, reject) => {
    const options = { cwd: work.folder, env: work.env, timeout: 400_000, killSignal: 'SIGKILL', maxBuffer: 480 * 2 ** 20 };
    const done = (error, stdout, stderr) => (error ? reject(new Error(`${program} ${words.join(' ')}: ${error.message}\n${stderr}`)) : resolve(stdout));
    if (shell) execFile('sh', ['-c', program], options, done);
    else execFile(program, words, options, done);
  });
}

/** Runs a command line that the page showed, as a person would in a shell, and parses its JSON. */
export async function runShown(work, command, more = '--format json') {
  const line = command.replace(/^heapr /, `'${HEAPR}' `);
  if (line === command) throw new Error(`the page shows no heapr command: ${command}`);
  return JSON.parse(await run(work, `${line} ${more}`, [], { shell: true }));
}

/** Runs `heapr view` on files; `url` is the address with its token. */
export async function view(work, files) {
  const child = spawn(HEAPR, ['view', '--no-open', '--port', '0', ...files], { cwd: work.folder, env: work.env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`heapr view printed no address: ${text}`)), 30_000);
    const read = (part) => {
      text += part;
      const found = /http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/.exec(text);
      if (found) {
        clearTimeout(timer);
        resolve(found[0]);
      }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => reject(new Error(`heapr view ended with ${code}: ${text}`)));
  });
  return {
    url, child,
    stop: () => new Promise((resolve) => {
      child.on('exit', resolve);
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), 3000).unref();
    }),
  };
}
