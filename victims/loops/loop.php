<?php
// As loop.lua. Run with USE_ZEND_ALLOC=0.
function item(int $number): string { return str_repeat('a', 100 + $number % 50) . $number; }
class Shelf
{
    private $items = [];
    public function add(int $number): void
    {
        $this->items[$number % 64] = ['name' => item($number), 'values' => range(0, $number % 20)];
    }
}
$shelf = new Shelf();
function deep(int $depth, int $number): int
{
    global $shelf;
    if ($depth > 0) {
        return 1 + deep($depth - 1, $number);
    }
    $shelf->add($number);
    return 0;
}
for ($number = 0; $number < (int) $argv[1]; $number++) {
    deep($number % 40, $number);
    $shelf->add($number);
}
