import assert from 'node:assert/strict';
import test from 'node:test';
import { type Ask, askTogether, isBatched, setCalm } from './batch';
import { ApiError } from './api-error';

/** Makes a server whose answers echo the requests. */
function server() {
  const asked: { path: string; body: unknown; signal: AbortSignal | undefined }[] = [];
  const one = (path: string, body: unknown) => (JSON.stringify(body).includes('bad') ? { status: 400, answer: { error: 'bad size', field: 'filter.size' } } : { status: 200, answer: { path, body } });
  const ask: Ask = async (path, body, signal) => {
    asked.push({ path, body, signal });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const { requests } = body as { requests?: { path: string; body: unknown }[] };
    return requests ? { answers: requests.map((request) => one(request.path, request.body)) } : { path, body };
  };
  return { asked, ask };
}

test('only panels go together, and only when no file is being read', () => {
  setCalm(false);
  assert.equal(isBatched('/api/report'), false);
  setCalm(true);
  assert.equal(isBatched('/api/report'), true);
  for (const alone of ['/api/files', '/api/export', '/api/session/stop', '/api/snapshot/summary']) assert.equal(isBatched(alone), false, alone);
});

test('what is asked in the same turn is one request, and each gets its own answer or error', async () => {
  const { asked, ask } = server();
  const all = [askTogether(ask, '/api/report', { a: 1 }), askTogether(ask, '/api/timeline', { bad: 2 }), askTogether(ask, '/api/flame', { a: 3 })];
  const [report, timeline, flame] = await Promise.allSettled(all);
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.path, '/api/panels');
  assert.deepEqual(report, { status: 'fulfilled', value: { path: 'report', body: { a: 1 } } });
  assert.deepEqual(flame, { status: 'fulfilled', value: { path: 'flame', body: { a: 3 } } });
  assert.ok(timeline?.status === 'rejected' && timeline.reason instanceof ApiError);
  assert.deepEqual([timeline.reason.message, timeline.reason.status, timeline.reason.field], ['bad size', 400, 'filter.size']);
});

test('what is asked alone goes as it is', async () => {
  const { asked, ask } = server();
  assert.deepEqual(await askTogether(ask, '/api/report', { a: 1 }), { path: '/api/report', body: { a: 1 } });
  assert.deepEqual(asked.map(({ path }) => path), ['/api/report']);
});

test('a batch is given up when nobody waits for it, and not before', async () => {
  const { asked, ask } = server();
  const [first, second] = [new AbortController(), new AbortController()];
  const answers = [askTogether(ask, '/api/report', { a: 1 }, first.signal), askTogether(ask, '/api/flame', { a: 2 }, second.signal)].map((answer) => answer.catch((error: Error) => error.name));
  await new Promise((resolve) => setTimeout(resolve, 2));
  first.abort();
  assert.equal(await answers[0], 'AbortError');
  assert.equal(asked[0]?.signal?.aborted, false);
  second.abort();
  assert.equal(asked[0]?.signal?.aborted, true);
});

test('what was given up before it was sent is not asked', async () => {
  const { asked, ask } = server();
  const abort = new AbortController();
  const answers = [askTogether(ask, '/api/report', { a: 1 }, abort.signal).catch((error: Error) => error.name), askTogether(ask, '/api/flame', { a: 2 })];
  abort.abort();
  assert.equal(await answers[0], 'AbortError');
  await answers[1];
  assert.deepEqual(asked.map(({ path }) => path), ['/api/flame']);
});
