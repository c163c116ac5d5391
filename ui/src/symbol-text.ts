/** Symbols for reading: text between brackets is folded, as `heapr` does on a terminal. */

const ANONYMOUS = '(anonymous namespace)';
const OPERATORS = ['()', '[]', '<=>', '<<=', '>>=', '->*', '->', '<<', '>>', '<=', '>=', '<', '>'];

/** Returns the length of `operator<<` and the like at `at`, where brackets are part of the name. */
function operatorLength(symbol: string, at: number): number {
  if (!symbol.startsWith('operator', at) || /[\w$]/.test(symbol[at - 1] ?? '')) return 0;
  const sign = OPERATORS.find((candidate) => symbol.startsWith(candidate, at + 8));
  return sign === undefined ? 0 : 8 + sign.length;
}

/**
 * Returns the index behind the bracket that closes the one at `at`; the end if it is not closed.
 */
function closing(symbol: string, at: number, open: string, close: string): number {
  let depth = 0;
  for (let place = at; place < symbol.length; place += 1) {
    if (symbol[place] === open) depth += 1;
    else if (symbol[place] === close && !(close === '>' && symbol[place - 1] === '-')) {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  return symbol.length;
}

/**
 * Folds a symbol to `std::vector<…>::push_back(…)`. A symbol that begins with a bracket is a name
 * of its own: `(anonymous)`; Python's `f.<locals>.g` has no types.
 */
export function folded(symbol: string): string {
  // Location in code without a name: `redis-check-rdb (redis-server)+0x64ef7`.
  if (/\+0x[\da-f]+$/.test(symbol)) return symbol;
  let kept = '';
  let at = 0;
  if (symbol.startsWith('<')) {
    // Rust's `<Type as Trait>::method`: only the types distinguish it from others.
    at = closing(symbol, 0, '<', '>');
    kept = `<${folded(symbol.slice(1, at).replace(/>$/, ''))}>`;
  }
  while (at < symbol.length) {
    const operator = operatorLength(symbol, at);
    const rest = symbol[at] ?? '';
    if (operator > 0) {
      kept += symbol.slice(at, at + operator);
      at += operator;
    } else if (symbol.startsWith(ANONYMOUS, at)) {
      kept += ANONYMOUS;
      at += ANONYMOUS.length;
    } else if (rest === '<' && !kept.endsWith('.')) {
      kept += '<…>';
      at = closing(symbol, at, '<', '>');
    } else if (rest === '(' && symbol[at + 1] !== ')' && kept !== '') {
      kept += '(…)';
      at = closing(symbol, at, '(', ')');
    } else if (symbol.startsWith('[abi:', at)) {
      at = closing(symbol, at, '[', ']');
    } else {
      kept += rest;
      at += 1;
    }
  }
  return kept;
}

/**
 * Returns the start of a folded symbol's last part, which distinguishes it from its neighbours:
 * `::remember(…)`.
 */
export function lastPart(symbol: string): number {
  const at = symbol.lastIndexOf('::');
  return at > 0 ? at : 0;
}

/**
 * Returns the name and ever shorter forms of it, which all have the function's own name. They leave
 * out, in turn: types between brackets, scopes and module, arguments, and the evidence.
 */
export function shorterNames(name: string): string[] {
  const source = / \(by [^()]*\)$/;
  const short = folded(name.replace(source, '')).replace(/^(<[^ ]+) as [^>]*>+::/, '$1>::');
  const bare = short.replace(/(?:[\w$~.-]+(?:<…>)?::|<[^ ]*>::|\(anonymous namespace\)::)+(?=[\w$~{])/g, '').replace(/(^| )[\w.+-]+!/g, '$1');
  const own = bare.replace(/\(…\)|<…>/g, '');
  const ownOnly = own.replace(/^(?:block of|node of|elements of|variable of) (?=\S)/, '').replace(/ at \+0x[\da-f]+ of .*$/, '');
  return [name, short, bare, own, ownOnly].filter((text, at, all) => text !== '' && text !== all[at - 1]);
}
