// Expressions with tokens removed, repeated, swapped, or replaced.

const token =
  /\s+|[rRbB]*"""[\s\S]*?"""|[rRbB]*'''[\s\S]*?'''|[rRbB]*"(?:[^"\\]|\\.)*"|[rRbB]*'(?:[^'\\]|\\.)*'|[\w.]+|[=!<>]=|&&|\|\||./g;
const others = [
  ...['(', ')', '[', ']', '{', '}', ',', ':', '.', '?', '.?', '[?', '=', '==', '!', '!!', '-', '+'],
  ...['<', '&&', '&', '||', '|', 'in', 'null', 'true', 'self', 'x', 'as', 'if', 'for', 'package'],
  ...['1', '1u', '01', '0x', '1e', '1.', '.1', '"', "'", '"a', 'r"\\"', 'b"a"', '"\\q"', '"\\u12"'],
  ...['@', '#', '$', ';', '//', '// c', '\\', 'é', '\u2028', '9223372036854775808', '-0u'],
  ...['has', 'has(', 'all', '.all(x, x)', '.map(', 'size', 'Foo{a: 1}', '__x__', '*', '%', '~'],
];

/** An expression with one or two wrong tokens. */
export function mutated(text, { below, pick }) {
  const tokens = text.match(token) ?? [];
  const times = 1 + below(2);
  for (let i = 0; i < times; i++) {
    const at = below(tokens.length);
    const draw = below(5);
    if (draw === 0) tokens.splice(at, 1);
    else if (draw === 1) tokens.splice(at, 0, tokens[at]);
    else if (draw === 2) tokens.splice(at, 1, pick(others));
    else if (draw === 3) tokens.splice(at, 0, pick(others));
    else tokens.splice(at, 1, tokens[below(tokens.length)]);
  }
  return tokens.join('');
}
