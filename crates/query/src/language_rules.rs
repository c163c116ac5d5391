//! Rules for functions of languages: which belong to the language's standard library, which to an
//! installed package, and which only load code. All other functions are user code.

use crate::glob::Glob;

/// Rules of one language. Names are beginnings of qualified names; files are patterns of paths in
/// lower case.
#[derive(Debug)]
struct Rules {
    /// Short name of the language, which its frames have in place of a module's path.
    language: &'static str,
    standard_names: &'static [&'static str],
    standard_files: &'static [&'static str],
    package_names: &'static [&'static str],
    package_files: &'static [&'static str],
    /// Files and whole names of functions that load further code for `import`, `require` or `use`.
    loader_files: &'static [&'static str],
    loader_names: &'static [&'static str],
}

const NO_RULES: Rules = Rules {
    language: "",
    standard_names: &[],
    standard_files: &[],
    package_names: &[],
    package_files: &[],
    loader_files: &[],
    loader_names: &[],
};

/// Table of the rules, one row a language. Packages come before the standard library: their folders
/// often lie below its folder.
const RULES: &[Rules] = &[
    Rules {
        language: "py",
        standard_files: &[
            "*/lib/python3/*",
            "*/lib/python3.*/*",
            "*/lib/python2.*/*",
            "<frozen *",
            "<string>",
        ],
        package_files: &["*/site-packages/*", "*/dist-packages/*"],
        loader_files: &["<frozen importlib*", "*/importlib/__init__.py"],
        ..NO_RULES
    },
    Rules {
        language: "js",
        standard_files: &["node:*", "internal/*", "evalmachine.*", "ext:*"],
        package_files: &["*/node_modules/*"],
        loader_files: &["node:internal/modules/*", "internal/modules/*"],
        ..NO_RULES
    },
    Rules {
        language: "java",
        standard_names: &[
            "java.",
            "javax.",
            "jdk.",
            "sun.",
            "com.sun.",
            "com.oracle.",
            "kotlin.",
            "kotlinx.",
            "scala.",
            "clojure.",
            "groovy.lang.",
            "org.codehaus.groovy.",
        ],
        package_names: &[
            "jakarta.",
            "org.apache.",
            "org.springframework.",
            "org.eclipse.",
            "org.hibernate.",
            "org.jboss.",
            "org.slf4j.",
            "org.junit.",
            "io.netty.",
            "io.grpc.",
            "io.micrometer.",
            "reactor.",
            "com.google.common.",
            "com.google.protobuf.",
            "com.fasterxml.jackson.",
            "ch.qos.logback.",
            "com.zaxxer.hikari.",
            "okhttp3.",
            "okio.",
            "akka.",
            "net.bytebuddy.",
        ],
        loader_names: &["java.lang.ClassLoader.loadClass", "java.lang.Class.forName0"],
        ..NO_RULES
    },
    Rules {
        language: "rb",
        standard_files: &["*/lib/ruby/*", "*/lib/*/ruby/*", "<internal:*", "*/share/ruby/*"],
        package_files: &["*/gems/*", "*/vendor_ruby/*", "*/site_ruby/*", "*/bundler/*"],
        loader_files: &["*/kernel_require.rb", "*/bootsnap/*/require.rb", "*/zeitwerk/*"],
        loader_names: &[
            "Kernel#require",
            "Kernel#require_relative",
            "Kernel#load",
            "require",
            "require_relative",
        ],
        ..NO_RULES
    },
    Rules {
        language: "php",
        standard_files: &["phar://*"],
        package_files: &["*/vendor/*", "/usr/share/php/*", "*/pear/*"],
        ..NO_RULES
    },
    Rules {
        language: "pl",
        standard_files: &[
            "/usr/share/perl/*",
            "/usr/lib/*/perl/*",
            "/usr/lib/*/perl-base/*",
            "/usr/lib/perl5/core_perl/*",
            "*/lib/perl5/5.*/*",
            "*/lib/5.*/*",
        ],
        package_files: &[
            "/usr/share/perl5/*",
            "/usr/lib/*/perl5/*",
            "/usr/local/share/perl/*",
            "/usr/local/lib/*/perl/*",
            "*/site_perl/*",
            "*/vendor_perl/*",
            "*/perl5/lib/perl5/*",
            "*/local/lib/perl5/*",
        ],
        loader_names: &["BEGIN", "main::BEGIN", "(require)"],
        ..NO_RULES
    },
    Rules {
        language: "lua",
        standard_files: &["[c]", "=[c]"],
        package_files: &["*/share/lua/*", "*/lib/lua/*", "*/lua_modules/*", "*/lualib/*"],
        loader_names: &["require"],
        ..NO_RULES
    },
    Rules {
        language: "go",
        standard_files: &[
            "/usr/local/go/src/*",
            "/usr/lib/go*/src/*",
            "*/sdk/go1*/src/*",
            "*/toolchain@*/src/*",
        ],
        package_files: &["*/go/pkg/mod/*", "*/vendor/*"],
        ..NO_RULES
    },
];

/// Owner of a language's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerByRules {
    Standard,
    Package,
    User,
}

/// Rules of all languages, with their patterns ready to match.
#[derive(Debug, Clone)]
pub(crate) struct LanguageRules {
    rows: Vec<(&'static Rules, [Vec<Glob>; 3])>,
}

impl LanguageRules {
    pub(crate) fn built_in() -> Self {
        let globs = |texts: &[&str]| texts.iter().map(|text| Glob::new(text)).collect();
        let row = |rules: &'static Rules| {
            let files = [rules.standard_files, rules.package_files, rules.loader_files];
            (rules, files.map(globs))
        };
        Self { rows: RULES.iter().map(row).collect() }
    }

    fn row(&self, language: &str) -> Option<&(&'static Rules, [Vec<Glob>; 3])> {
        self.rows.iter().find(|(rules, _)| rules.language == language)
    }

    /// Owner of a function of the language `module`.
    pub(crate) fn owner(&self, module: &str, symbol: Option<&str>, file: Option<&str>) -> OwnerByRules {
        let Some((rules, [standard, package, _])) = self.row(module) else { return OwnerByRules::User };
        let is_named =
            |names: &[&str]| symbol.is_some_and(|symbol| names.iter().any(|name| symbol.starts_with(name)));
        let file = file.map(str::to_ascii_lowercase);
        let is_in = |globs: &[Glob]| {
            file.as_ref().is_some_and(|file| globs.iter().any(|glob| glob.matches_lower(file)))
        };
        if is_named(rules.package_names) || is_in(package) {
            OwnerByRules::Package
        } else if is_named(rules.standard_names) || is_in(standard) {
            OwnerByRules::Standard
        } else {
            OwnerByRules::User
        }
    }

    /// Whether a function loads further code for its caller.
    pub(crate) fn is_loader(&self, module: &str, symbol: Option<&str>, file: Option<&str>) -> bool {
        let Some((rules, [_, _, loaders])) = self.row(module) else { return false };
        let is_named = symbol.is_some_and(|symbol| {
            rules.loader_names.contains(&symbol) || rules.language == "pl" && symbol.ends_with("::BEGIN")
        });
        is_named
            || file.is_some_and(|file| {
                let file = file.to_ascii_lowercase();
                loaders.iter().any(|glob| glob.matches_lower(&file))
            })
    }
}

impl Default for LanguageRules {
    fn default() -> Self {
        Self::built_in()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_functions_are_told_from_packages_and_the_standard_library() {
        use OwnerByRules::{Package, Standard, User};
        let rules = LanguageRules::built_in();
        for (language, symbol, file, expected) in [
            ("java", "java.util.zip.Deflater.init", "Deflater.java", Standard),
            ("java", "javafxshop.Cart.add", "Cart.java", User),
            ("java", "io.netty.buffer.PoolArena.allocate", "PoolArena.java", Package),
            ("java", "Main.compressMessage", "prog.java", User),
            ("kotlin", "f", "", User),
            (
                "py",
                "Pool.__init__",
                "/opt/pyenv/versions/3.6.15/lib/python3.6/multiprocessing/pool.py",
                Standard,
            ),
            ("py", "to_json", "/w/venv/lib/python3.9/site-packages/pandas/io/json.py", Package),
            ("py", "parse", "/w/lib/pythonic/parse.py", User),
            ("js", "emit", "node:events", Standard),
            ("js", "next", "/w/node_modules/express/lib/router.js", Package),
            ("js", "decodeImage", "/w/prog.js", User),
            ("rb", "open", "/usr/lib/ruby/3.1.0/net/http.rb", Standard),
            ("rb", "render", "/var/lib/gems/3.1.0/gems/rails-7/lib/render.rb", Package),
            ("rb", "count_letters", "prog.rb", User),
            (
                "pl",
                "Template::Parser::new",
                "/usr/lib/x86_64-linux-gnu/perl5/5.36/Template/Parser.pm",
                Package,
            ),
            ("pl", "File::Find::find", "/usr/share/perl/5.36/File/Find.pm", Standard),
            ("pl", "File::Find::find", "/opt/perl/lib/perl5/5.36/File/Find.pm", Standard),
            ("pl", "Moo::new", "/home/me/perl5/lib/perl5/Moo.pm", Package),
            ("pl", "Moo::new", "/w/local/lib/perl5/Moo.pm", Package),
            ("py", "parse", "/w/lib/python3_tools/parse.py", User),
            ("pl", "render_page", "prog.pl", User),
            ("php", "parse_page", "/w/prog.php", User),
            ("php", "GuzzleHttp\\send", "/w/vendor/guzzlehttp/guzzle/src/f.php", Package),
            ("lua", "f", "/usr/share/lua/5.4/socket.lua", Package),
            ("go", "net/http.(*Server).Serve", "/usr/local/go/src/net/http/server.go", Standard),
            ("go", "main.serve", "/w/go/src/shop/main.go", User),
        ] {
            assert_eq!(rules.owner(language, Some(symbol), Some(file)), expected, "{symbol}");
        }
    }

    #[test]
    fn loaders_are_those_of_imports_alone() {
        let rules = LanguageRules::built_in();
        let is_loader = |language, symbol, file| rules.is_loader(language, Some(symbol), Some(file));
        assert!(is_loader("py", "_find_and_load", "<frozen importlib._bootstrap>"));
        assert!(is_loader("js", "Module._load", "node:internal/modules/cjs/loader"));
        assert!(is_loader("pl", "Template::Parser::BEGIN", "Parser.pm") && is_loader("pl", "BEGIN", "p.pl"));
        assert!(!is_loader("py", "<module>", "/w/app.py") && !is_loader("js", "require", "/w/app.js"));
        assert!(!is_loader("rb", "require_login", "/w/app.rb"));
    }
}
