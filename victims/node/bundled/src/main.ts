// Keeps 500 sessions more for each file that it writes a snapshot into. dist/main.js is made by
//   npx esbuild src/main.ts --bundle --platform=node --minify --sourcemap --outfile=dist/main.js
import { writeHeapSnapshot } from 'node:v8';
import { SessionStore } from './store';

const store = new SessionStore();
const seenVisitors: string[] = [];

function visitAll(count: number): void {
  for (let at = 0; at < count; at++) {
    const key = `visitor ${store.size}`;
    store.open(key);
    seenVisitors.push(key);
  }
}

(globalThis as any).handler = () => store.size + seenVisitors.length;
for (const file of process.argv.slice(2)) {
  visitAll(500);
  writeHeapSnapshot(file);
}
