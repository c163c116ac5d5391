<?php
// What soak_client.py asks, for php-fpm.
$number = (int) $_SERVER["QUERY_STRING"];
$parts = [];
for ($k = 0; $k < 50; $k++) {
    $parts[] = str_repeat("x", 1000 + ($number + $k) % 3000);
}
echo array_sum(array_map("strlen", $parts));
