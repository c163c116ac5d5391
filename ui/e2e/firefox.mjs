// Debian's Firefox through its own protocol, Marionette, because playwright drives only a Firefox
// of its own.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Returns an unused port. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/**
 * Connection with messages `LENGTH:JSON`: requests `[0, id, command, fields]`, answers `[1, id,
 * error, result]`.
 */
class Marionette {
  constructor(socket) {
    this.socket = socket;
    this.waiting = new Map();
    this.last = 0;
    let text = Buffer.alloc(0);
    socket.on('data', (part) => {
      text = Buffer.concat([text, part]);
      for (;;) {
        const colon = text.indexOf(':');
        if (colon < 0) return;
        const length = Number(text.subarray(0, colon));
        if (text.length < colon + 1 + length) return;
        const message = JSON.parse(text.subarray(colon + 1, colon + 1 + length).toString());
        text = text.subarray(colon + 1 + length);
        if (!Array.isArray(message)) continue;
        const [, id, error, result] = message;
        const { resolve, reject } = this.waiting.get(id) ?? {};
        this.waiting.delete(id);
        if (error) reject?.(new Error(`${error.error}: ${error.message}`));
        else resolve?.(result);
      }
    });
    socket.on('close', () => {
      for (const { reject } of this.waiting.values()) reject(new Error('Firefox has closed the connection'));
    });
  }

  send(command, fields = {}) {
    const id = (this.last += 1);
    const text = JSON.stringify([0, id, command, fields]);
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }
}

async function connected(port, child) {
  const end = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`Firefox ended with ${child.exitCode}`);
    const socket = await new Promise((resolve) => {
      const attempt = connect(port, '127.0.0.1');
      attempt.on('connect', () => resolve(attempt));
      attempt.on('error', () => resolve(null));
    });
    if (socket) return new Marionette(socket);
    if (Date.now() > end) throw new Error('Firefox did not listen within a minute');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Opens Firefox with a profile of its own, which is removed with it. */
export async function openFirefox({ width = 1280, height = 800, dark = false } = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'heapr-firefox-'));
  const port = await freePort();
  const settings = {
    'marionette.port': port, 'browser.shell.checkDefaultBrowser': false, 'datareporting.policy.dataSubmissionEnabled': false, 'toolkit.telemetry.enabled': false,
    'app.update.enabled': false, 'browser.startup.page': 0, 'network.captive-portal-service.enabled': false, 'network.connectivity-service.enabled': false,
    'layout.css.prefers-color-scheme.content-override': dark ? 0 : 1, 'extensions.update.enabled': false, 'browser.aboutwelcome.enabled': false,
  };
  writeFileSync(join(profile, 'user.js'), Object.entries(settings).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''));
  const child = spawn(process.env.FIREFOX ?? 'firefox-esr', ['--marionette', '--headless', '--no-remote', '--profile', profile, '--width', String(width), '--height', String(height)], {
    stdio: 'ignore', detached: true, env: { ...process.env, HOME: profile, MOZ_REMOTE_SETTINGS_DEVTOOLS: '0' },
  });
  await new Promise((resolve, reject) => {
    child.on('spawn', resolve);
    child.on('error', reject);
  });
  const close = async () => {
    const ended = child.exitCode === null ? new Promise((resolve) => child.on('exit', resolve)) : Promise.resolve();
    try {
      // Kills its content processes, too.
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The process has ended.
    }
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  try {
    const firefox = await connected(port, child);
    await firefox.send('WebDriver:NewSession', { pageLoadStrategy: 'normal' });
    await firefox.send('WebDriver:SetWindowRect', { width, height });
    const evaluate = async (script, ...args) => (await firefox.send('WebDriver:ExecuteScript', { script, args, sandbox: 'default', newSandbox: true })).value;
    return {
      close, evaluate,
      goto: (url) => firefox.send('WebDriver:Navigate', { url }),
      /** Waits until `expression` is true in the page. */
      async until(expression) {
        const end = Date.now() + 60_000;
        while (!(await evaluate(`return Boolean(${expression})`))) {
          if (Date.now() > end) throw new Error(`not so within 15 s: ${expression}`);
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
      async screenshot(path) {
        const { value } = await firefox.send('WebDriver:TakeScreenshot', { full: false, hash: false });
        writeFileSync(path, Buffer.from(value, 'base64'));
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
