<?php
// As turns.lua. Run with USE_ZEND_ALLOC=0.
function leaf($n) { return str_repeat('x', 200 + $n % 7); }
function a($d, $n) { global $keep; if ($d == 0) { $keep[$n % 50] = leaf($n); return 1; }
  if ($n & (1 << ($d % 10))) { return a($d - 1, $n); }
  if ($d % 3 == 0) return b($d - 1, $n);
  return a($d - 1, $n) + 0; }
function b($d, $n) { global $keep; if ($d == 0) { $keep[$n % 50] = leaf($n); return 1; }
  $f = function ($d, $n) { return a($d, $n); };
  return $n % 2 ? $f($d - 1, $n) : a($d - 1, $n); }
function gen($n) { for ($i = 0; $i < 3; $i++) { global $keep; $keep[] = leaf($n + $i); yield $i; a(2, $n); } }
function drive1($g) { foreach ($g as $v) { a(3, $v); } }
function drive2($g, $n) { if ($n) drive2($g, $n - 1); else foreach ($g as $v) { a(4, $v); } }
for ($n = 0; $n < (int)$argv[1]; $n++) {
  a($n % 17, $n); b($n % 13, $n);
  if ($n % 3) drive1(gen($n)); else drive2(gen($n), $n % 5);
  $f = eval("return function(\$x) { return str_repeat('y', 300 + \$x); };"); $keep['e'] = $f($n % 9);
  $f = eval("return function(\$x) {\n return str_repeat('y', 300 + \$x); };"); $keep['e'] = $f($n % 9);
  usort($keep, function ($p, $q) { return strcmp(str_repeat($p, 2), $q); });
  $keep = array_slice($keep, 0, 60);
}
