// Cards of a Java program: its own method is named, and not the JDK's below it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HEAPR, run } from './heapr.mjs';
import { viewed } from './viewed.mjs';

const SHOP = `import java.nio.ByteBuffer;
import java.util.ArrayList;
public class Shop {
    static final ArrayList<ByteBuffer> images = new ArrayList<>();
    static void rememberImage(int size) {
        images.add(ByteBuffer.allocateDirect(size));
    }
    public static void main(String[] words) throws Exception {
        for (int at = 0; at < 400; at++) { rememberImage(50000); Thread.sleep(5); }
    }
}
`;
const hasJava = spawnSync('javac', ['-version']).status === 0;
const shown = hasJava && viewed(async (work) => {
  writeFileSync(join(work.folder, 'Shop.java'), SHOP);
  await run(work, 'javac', ['Shop.java']);
  await run(work, HEAPR, ['run', '--quiet', '-o', 'java.heapr', '--', 'java', '-cp', '.', 'Shop']);
  return ['java.heapr'];
});

test('the first card names the program\'s own method and its line', { skip: hasJava ? false : 'no javac' }, async () => {
  const { page } = shown;
  await shown.show('view=overview');
  await page.waitForSelector('.finding.is-first .sentence');
  assert.match(await page.textContent('.finding.is-first .sentence'), /^Memory grows: Shop\.rememberImage \(Shop\.java:6\)/);
  await shown.show('view=functions');
  await page.waitForSelector('.rows-block .row:has-text("Shop.rememberImage")');
  assert.deepEqual(shown.browser.errors, []);
});
