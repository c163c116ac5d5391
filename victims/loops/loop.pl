# As loop.lua.
use strict;
my %items;
sub item { my $number = shift; return ("a" x (100 + $number % 50)) . $number; }
sub add { my $number = shift; $items{$number % 64} = { name => item($number), values => [0 .. $number % 20] }; }
sub deep { my ($depth, $number) = @_; return $depth ? 1 + deep($depth - 1, $number) : add($number); }
no warnings;
for my $number (0 .. $ARGV[0] - 1) {
    deep($number % 40, $number);
    add($number);
}
