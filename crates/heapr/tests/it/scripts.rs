//! Frames of Ruby, PHP and Perl in stacks: the programs say themselves what each of their blocks
//! stands for. `HEAPR_RUBIES`, `HEAPR_PHPS` and `HEAPR_PERLS` name other interpreters than the
//! installed ones.

use crate::telling_programs::Telling;

const RUBY: Telling = Telling {
    variable: "HEAPR_RUBIES",
    usual: "/usr/bin/ruby",
    program: "ruby/lines.rb",
    module: "rb",
    required: "rb!",
    environment: &[],
    verify_every: 10,
    sizes: 14,
    is_library: |_| false,
};
const PHP: Telling = Telling {
    variable: "HEAPR_PHPS",
    usual: "/usr/bin/php",
    program: "php/lines.php",
    module: "php",
    required: "php!",
    environment: &[("USE_ZEND_ALLOC", "0")],
    verify_every: 10,
    sizes: 12,
    is_library: |_| false,
};
const PERL: Telling = Telling {
    variable: "HEAPR_PERLS",
    usual: "/usr/bin/perl",
    program: "perl/lines.pl",
    module: "pl",
    required: "pl!",
    environment: &[],
    verify_every: 10,
    sizes: 10,
    is_library: |_| false,
};

#[test]
fn each_block_of_a_ruby_program_has_its_method_and_line() {
    for ruby in RUBY.interpreters() {
        RUBY.check_from_start(&ruby, 50);
        RUBY.check_attached(&ruby);
    }
}

#[test]
fn each_block_of_a_php_program_has_its_function_and_line() {
    for php in PHP.interpreters() {
        PHP.check_from_start(&php, 50);
        PHP.check_attached(&php);
    }
}

#[test]
fn each_block_of_a_perl_program_has_its_subroutine_and_line() {
    for perl in PERL.interpreters() {
        PERL.check_from_start(&perl, 50);
        PERL.check_attached(&perl);
    }
}
