//! Frames of Ruby, PHP, Perl and Lua in stacks: the programs say themselves what each of their
//! blocks stands for. `HEAPR_RUBIES`, `HEAPR_PHPS`, `HEAPR_PERLS` and `HEAPR_LUAS` name other
//! interpreters than the installed ones.

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
const LUA: Telling = Telling {
    variable: "HEAPR_LUAS",
    usual: "/usr/bin/lua5.1:/usr/bin/lua5.3:/usr/bin/lua5.4:/usr/bin/luajit",
    program: "lua/lines.lua",
    module: "lua",
    required: "lua!",
    environment: &[],
    verify_every: 10,
    sizes: 17,
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

#[test]
fn each_block_of_a_lua_program_has_its_function_and_line() {
    let luas = LUA.interpreters();
    for lua in &luas {
        LUA.check_from_start(lua, 50);
    }
    // (Where it is attached to does not depend on the version.)
    for lua in luas.iter().filter(|lua| lua.ends_with("lua5.4") || lua.ends_with("luajit")) {
        LUA.check_attached(lua);
    }
}
