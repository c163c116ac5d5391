import assert from 'node:assert/strict';
import test from 'node:test';
import { folded, lastPart } from './symbol-text';

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
