<?php
// Allocates strings whose sizes stand for the allocating function and line, as the program itself
// finds them (`debug_backtrace`). Run with USE_ZEND_ALLOC=0, so that each is a block of the C
// library's. At the end FILE (the first argument) gets the meaning of each size, and the number of
// its blocks.
//
// With VICTIM_WAITS=1 it says so and waits for a line first, during which it is attached to.

$told = [];
$kept = [];

function size(int $number): int
{
    global $told;
    $bytes = 50000 + $number * 64;
    if (isset($told[$bytes])) {
        $told[$bytes]['blocks']++;
        return $bytes;
    }
    $frames = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $function = $frames[1]['function'] ?? '{main}';
    if (isset($frames[1]['class'])) {
        $function = $frames[1]['class'] . '::' . $function;
    }
    $told[$bytes] = ['bytes' => $bytes, 'function' => $function, 'file' => $frames[0]['file'],
        'line' => $frames[0]['line'], 'blocks' => 1];
    return $bytes;
}

function keep(string $text): void
{
    global $kept;
    $kept[count($kept) % 16] = $text;
}

function plain(): void
{
    $bytes = size(0); keep(str_repeat('x', $bytes - 32));
}

class Maker
{
    public function __construct() { $bytes = size(1); keep(str_repeat('x', $bytes - 32)); }
    public function work(): void
    {
        array_map(function ($value) { $bytes = size(2); keep(str_repeat('x', $bytes - 32)); return $value; }, [1, 2]);
        $bytes = size(3); keep(str_repeat('x', $bytes - 32));
    }
    public static function make(): self { $bytes = size(4); keep(str_repeat('x', $bytes - 32)); return new self(); }
    public function __call($name, $arguments) { $bytes = size(5); keep(str_repeat('x', $bytes - 32)); }
}

function deep(int $depth): void
{
    if ($depth > 0) {
        deep($depth - 1);
        return;
    }
    $bytes = size(6); keep(str_repeat('x', $bytes - 32));
}

function generator()
{
    $bytes = size(7); keep(str_repeat('x', $bytes - 32));
    yield 1;
    $bytes = size(8); keep(str_repeat('x', $bytes - 32));
}

function caught(): void
{
    try {
        throw new Exception();
    } catch (Exception) {
        $bytes = size(9); keep(str_repeat('x', $bytes - 32));
    }
}

$arrow = fn() => keep(str_repeat('x', size(10) - 32));

function work(int $rounds, callable $arrow): void
{
    $maker = new Maker();
    for ($round = 0; $round < $rounds; $round++) {
        plain();
        $maker->work();
        Maker::make();
        $maker->missing();
        deep($round % 40);
        foreach (generator() as $_) {
        }
        caught();
        $arrow();
    }
}

if (getenv('VICTIM_WAITS')) {
    echo "waits\n";
    fgets(STDIN);
}
work(150, $arrow);
for ($round = 0; $round < 10; $round++) {
    $bytes = size(11); keep(str_repeat('x', $bytes - 32));
}
$lines = array_map(fn($entry) => json_encode($entry, JSON_UNESCAPED_SLASHES) . "\n", $told);
file_put_contents($argv[1], implode('', $lines));
