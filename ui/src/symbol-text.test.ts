import assert from 'node:assert/strict';
import test from 'node:test';
import { folded, lastPart, shorterNames } from './symbol-text';

test('brackets are folded, and operators are none', () => {
  for (const [symbol, wanted] of [
    ['std::vector<int, std::allocator<int> >::push_back(int&&)', 'std::vector<…>::push_back(…)'],
    ['main', 'main'],
    ['(anonymous)', '(anonymous)'],
    ['(anonymous namespace)::f(int)', '(anonymous namespace)::f(…)'],
    ['f.<locals>.<lambda>', 'f.<locals>.<lambda>'],
    ['f() const', 'f() const'],
    ['app::operator<(app::A const&, app::A const&)', 'app::operator<(…)'],
    ['app::(anonymous namespace)::f(int)', 'app::(anonymous namespace)::f(…)'],
    ['std::string app::f[abi:cxx11](int)', 'std::string app::f(…)'],
    ['<alloc::vec::Vec<T> as core::Extend<T>>::extend', '<alloc::vec::Vec<…> as core::Extend<…>>::extend'],
  ] as const) assert.equal(folded(symbol), wanted);
});

test('the last part is the name without its scope', () => {
  assert.equal('shop::SessionCache::remember(…)'.slice(lastPart('shop::SessionCache::remember(…)')), '::remember(…)');
  assert.equal(lastPart('main'), 0);
});

test('a place without a name keeps the name of the link that its file was started by', () => {
  assert.equal(folded('redis-check-rdb (redis-server)+0x64ef7'), 'redis-check-rdb (redis-server)+0x64ef7');
});

test('shorter forms of a name keep the function', () => {
  const shortest = (name: string) => shorterNames(name).at(-1);
  assert.deepEqual(shorterNames('block of libshop.so!shop::Cache<int, long>::remember(shop::Key const&) (by its holder)'), [
    'block of libshop.so!shop::Cache<int, long>::remember(shop::Key const&) (by its holder)',
    'block of libshop.so!shop::Cache<…>::remember(…)',
    'block of remember(…)',
    'block of remember',
    'remember',
  ]);
  assert.equal(shortest('elements of vector<app::Order> (by its allocation)'), 'vector');
  assert.equal(shortest('server!g_sessions+0x18'), 'g_sessions+0x18');
  assert.equal(shortest('<alloc::vec::Vec<T> as core::Extend<T>>::extend'), 'extend');
  assert.equal(shortest('(anonymous namespace)::f(int)'), 'f');
  assert.equal(shortest('block of main at +0x28 of app::Server'), 'main');
  assert.equal(shortest('thread 12 "worker", frame 3 handle()+0x41'), 'thread 12 "worker", frame 3 handle()+0x41');
  assert.deepEqual(shorterNames('Object'), ['Object']);
  assert.deepEqual(shorterNames('system / Context'), ['system / Context']);
});
