<?php
// reads packets, all of which are damaged
function read_packet(string $data): bool {
    return (bool) @msgpack_unserialize($data);
}
$data = hex2bin('89716235369266a1b030656238313037383332393464363764');
for ($n = 0; $n < (int) $argv[1]; $n++) {
    read_packet($data);
    if ($n % 20 == 0) usleep(1000);
}
