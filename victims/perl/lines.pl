# Allocates strings whose sizes stand for the allocating subroutine and line, as the program itself
# finds them (`caller`). At the end FILE (the first argument) gets the meaning of each size, and the
# number of its blocks.
#
# With VICTIM_WAITS=1 it says so and waits for a line first, during which it is attached to.
use strict;
use warnings;

my %told;
my @kept;

sub size {
    my ($number) = @_;
    my $bytes = 40_000 + $number * 64;
    if ($told{$bytes}) { $told{$bytes}{blocks}++; return $bytes; }
    my (undef, $file, $line) = caller(0);
    my $function = (caller(1))[3] // '(main)';
    $told{$bytes} = { bytes => $bytes, function => $function, file => $file, line => $line, blocks => 1 };
    return $bytes;
}

# The buffer of the string has exactly this many bytes.
sub plain {
    my $bytes = size(0); my $text = ''; vec($text, $bytes - 10, 8) = 1;
    undef $text;
}

package Maker {
    sub new { my ($class) = @_; my $bytes = main::size(1); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text; return bless {}, $class; }
    sub work {
        my ($self) = @_;
        my @all = map { my $bytes = main::size(2); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text; 1 } 1 .. 2;
        for my $value (1) {
            my $bytes = main::size(3); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text;
        }
    }
    sub AUTOLOAD { my $bytes = main::size(4); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text; }
    sub DESTROY { }
}

sub deep {
    my ($depth) = @_;
    return deep($depth - 1) + 1 if $depth > 0;
    my $bytes = size(5); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text;
    return 0;
}

sub caught {
    eval {
        my $bytes = size(6); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text;
        die "caught\n";
    };
    my $bytes = size(7); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text;
}

my $anonymous = sub { my $bytes = size(8); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text; };
sub by_size { my $bytes = size(9); my $text = ''; vec($text, $bytes - 10, 8) = 1; undef $text; return $a <=> $b; }

sub work {
    my ($rounds) = @_;
    my $maker = Maker->new;
    for my $round (1 .. $rounds) {
        plain();
        $maker->work;
        $maker->missing;
        deep($round % 40);
        caught();
        $anonymous->();
        my @sorted = sort by_size 2, 1;
    }
}

if ($ENV{VICTIM_WAITS}) {
    $| = 1;
    print "waits\n";
    my $line = <STDIN>;
}
work(100);
open my $out, '>', $ARGV[0] or die;
for my $entry (values %told) {
    printf {$out} qq({"bytes":%d,"function":"%s","file":"%s","line":%d,"blocks":%d}\n),
        @{$entry}{qw(bytes function file line blocks)};
}
close $out;
