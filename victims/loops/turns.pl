# As turns.lua.
use strict; no warnings; my (%k, @k);
sub leaf { my $n = shift; return "x" x (200 + $n % 7); }
sub a1 { my ($d, $n) = @_; if (!$d) { $k{$n % 50} = leaf($n); return 1 }
  if ($n & (1 << ($d % 10))) { return a1($d - 1, $n) }
  return b1($d - 1, $n) if $d % 3 == 0;
  for my $i (1) { return 0 + a1($d - 1, $n) } }
sub b1 { my ($d, $n) = @_; if (!$d) { $k{$n % 50} = leaf($n); return 1 }
  my $f = sub { return a1(@_) };
  return $n % 2 ? $f->($d - 1, $n) : eval { a1($d - 1, $n) } }
for my $n (0 .. $ARGV[0] - 1) {
  a1($n % 17, $n); b1($n % 13, $n);
  my $f = eval "sub { return 'y' x (300 + shift) }"; $k{e} = $f->($n % 9);
  $f = eval "\nsub {\n return 'y' x (300 + shift) }"; $k{e} = $f->($n % 9);
  @k = sort { leaf($a) cmp leaf($b) } (3, 1, 2, $n);
  @k = map { a1($_, $n) } 1 .. 4;
}
