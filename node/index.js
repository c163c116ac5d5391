'use strict';
// Heap snapshots in tests of Node programs: for node:test, Jest, Vitest and whatever catches errors.

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const util = require('util');
const v8 = require('v8');

const execFile = util.promisify(childProcess.execFile);

/** Path of the program: what HEAPR says, this package's, or the first in PATH. */
function program() {
  if (process.env.HEAPR) return process.env.HEAPR;
  const own = path.join(__dirname, 'bin', 'heapr');
  return fs.existsSync(own) ? own : 'heapr';
}

/** Something keeps growing. */
class HeapGrowthError extends Error {
  constructor(message) {
    super(message);
    this.name = 'HeapGrowthError';
    Error.captureStackTrace(this, expectNoGrowth);
  }
}

/** Runs a command of heapr; its status and what it printed. */
async function ask(...words) {
  try {
    const { stdout } = await execFile(program(), words, { maxBuffer: 1 << 30 });
    return { status: 0, stdout };
  } catch (error) {
    // Status 1 is a finding; whatever else is heapr's own error.
    if (error.code === 1) return { status: 1, stdout: error.stdout };
    const said = (error.stderr || error.message).trim();
    throw new Error(error.code === 'ENOENT' ? `no program ${program()}: ${said}` : said);
  }
}

/**
 * Writes a snapshot of this thread's heap, after a garbage collection. The thread stands still meanwhile.
 * @param {string} [file] where; without it a new name in the working directory
 * @returns {string} the file's path
 */
function takeSnapshot(file) {
  if (file !== undefined && fs.existsSync(file)) throw new Error(`${file} exists: name another file`);
  return v8.writeHeapSnapshot(file);
}

/** What is only waiting for its turn is no growth. */
async function settle() {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Runs a function many times and fails if something keeps growing with it, with the names of what grows, where
 * it was made and what holds it.
 *
 * @param {() => unknown} run what is tested; may be asynchronous
 * @param {object} [options]
 * @param {number} [options.warmup] runs before the first snapshot, in which caches fill (10)
 * @param {number} [options.runs] runs between two snapshots (30)
 * @param {number} [options.snapshots] how many are taken, at least 2 (3)
 * @param {number} [options.allowedBytes] growth that is no failure (0)
 * @param {string} [options.keep] a folder where the snapshots stay if it fails
 * @returns {Promise<string>} what heapr said
 */
async function expectNoGrowth(run, options = {}) {
  const { warmup = 10, runs = 30, snapshots = 3, allowedBytes = 0, keep } = options;
  if (typeof run !== 'function') throw new TypeError('expectNoGrowth(run, options): run is no function');
  if (!(snapshots >= 2)) throw new RangeError(`${snapshots} snapshots cannot be compared: take at least 2`);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'heapr-'));
  try {
    const files = [];
    for (let index = 0; index < snapshots; index++) {
      for (let count = index === 0 ? warmup : runs; count > 0; count--) await run();
      await settle();
      files.push(takeSnapshot(path.join(folder, `${index + 1}.heapsnapshot`)));
    }
    const answer = await ask('snapshot', 'suspects', ...files, '--top', '3', '--fail-if-growth', String(allowedBytes));
    if (answer.status === 0) return answer.stdout;
    let kept = '';
    if (keep !== undefined) {
      fs.mkdirSync(keep, { recursive: true });
      const place = fs.mkdtempSync(path.join(keep, 'growth-'));
      for (const file of files) fs.copyFileSync(file, path.join(place, path.basename(file)));
      kept = `\nThe snapshots are in ${place}: heapr view ${path.join(place, '*.heapsnapshot')}`;
    }
    const times = `${snapshots - 1} times ${runs} runs`;
    const said = answer.stdout.split(folder + path.sep).join('');
    throw new HeapGrowthError(`the heap keeps growing over ${times}:\n${said}${kept}`);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

module.exports = { takeSnapshot, expectNoGrowth, program, HeapGrowthError };
