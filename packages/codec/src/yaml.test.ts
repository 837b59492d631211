import { type JsonObject, type JsonValue, randomOf, runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { Lexer, LineCounter, parseDocument } from 'yaml';
import { decodeYaml, encodeYaml, YamlError, yamlListPieces, yamlPieces } from './yaml.ts';
import { treeParsing, treeSteps } from './yaml-tree.ts';
import { compareNaturally } from './yaml-write.ts';

const decoded = async (text: string) => decodeYaml(Buffer.from(text));
const readValue = async (text: string) => (await decoded(text)).value;

describe('decoding YAML', () => {
  test.each([
    ['x: &a z\n*a: 1', { x: 'z', z: 1 }],
    ['a: yes', { a: true }],
    ['a: On', { a: true }],
    ['a: n', { a: false }],
    ['a: yEs', { a: 'yEs' }],
    ['a: ~', { a: null }],
    ['a:', { a: null }],
    ['a: "yes"', { a: 'yes' }],
    ["a: '1'", { a: '1' }],
    ['a: 2001-01-01', { a: '2001-01-01' }],
    ['a: 2001-01-01T01:02:03Z', { a: '2001-01-01T01:02:03Z' }],
    ['a: 017', { a: 15 }],
    ['a: 0o17', { a: 15 }],
    ['a: 0x1F', { a: 31 }],
    ['a: -0b11', { a: -3 }],
    ['a: 1_000', { a: 1000 }],
    ['a: 1:30', { a: '1:30' }],
    ['a: 1.5e3', { a: 1500 }],
    ['a: .5', { a: 0.5 }],
    ['a: 12e4567', { a: '12e4567' }],
    ['a: -1e400', { a: '-1e400' }],
    ['a: "\\ud83d\\ude00"', { a: '😀' }],
    ['a: 1.2.3', { a: '1.2.3' }],
    ['a: 089', { a: 89 }],
    ['a: 9223372036854775807', { a: 9223372036854775807n }],
    ['a: 18446744073709551615', { a: 18446744073709551615n }],
    ['a: 18446744073709551616', { a: 2 ** 64 }],
    ['a: -9223372036854775809', { a: -(2 ** 63) }],
    ['a: +9223372036854775808', { a: 2 ** 63 }],
    ['a: 0xfffffffffffffffff', { a: '0xfffffffffffffffff' }],
    ['18446744073709551616: a', { '1.8446744e+19': 'a' }],
    ['-0.0: a', { '-0': 'a' }],
    ['a: !!foo 1', { a: '1' }],
    ['a: !!timestamp 2001-01-01', { a: '2001-01-01' }],
    ['a: !!str 5', { a: '5' }],
    ['a: !!int "5"', { a: 5 }],
    ['a: !!float 5', { a: 5 }],
    ['a: !!binary aGk=', { a: 'hi' }],
    ['a: !!binary |\n  aG\n  l=\n!!binary aGk=: 1', { a: 'hi', hi: 1 }],
    ['on: 1\n1: 2\n1.5: 3', { true: 1, '1': 2, '1.5': 3 }],
    ['a: |\n  x\n  y\n', { a: 'x\ny\n' }],
    ['a: >-\n  x\n  y\n', { a: 'x y' }],
    ['x: &x {a: 1, b: 2}\nz:\n  <<: *x\n  a: 3', { x: { a: 1, b: 2 }, z: { b: 2, a: 3 } }],
    ['z:\n  <<: [{a: 1}, {a: 2, b: 3}]', { z: { a: 1, b: 3 } }],
    ['x: &a [1]\nz: *a', { x: [1], z: [1] }],
    ['{"a": [1, "b"]}', { a: [1, 'b'] }],
    ['---\na: 1\n---\n', { a: 1 }],
    ['', null],
    ['# nothing\n', null],
    ['5', 5],
  ])('%j', async (text, value) => {
    expect(await readValue(text)).toEqual(value);
  });

  test.each([
    ['[a, b:, {c:}]', ['a', 'b:', { 'c:': null }]],
    ['{a: b, c:,d: e}', { a: 'b', 'c:': null, d: 'e' }],
    ['[?a: b, ?c]', [{ a: 'b' }, { c: null }]],
    ['{"a": b, ? c\n : d}', { a: 'b', c: 'd' }],
    ['a: b\n  \t\nc: d\n', { a: 'b', c: 'd' }],
    ['a: |2\n  \ttext\n', { a: '\ttext\n' }],
    ['a: |\n  text\n  \tmore\n', { a: 'text\n\tmore\n' }],
    ['%YAML 1.01 # c\n---\na: b\n', { a: 'b' }],
    ['a: |\n  x', { a: 'x' }],
    ['a: >+\n  x\n\n  y', { a: 'x\ny' }],
    ['a: |\n  x\n   ', { a: 'x\n ' }],
    [`a: |\n${'  x\n'.repeat(20_000)}  y`, { a: `${'x\n'.repeat(20_000)}y` }],
    ['a: {b: c\n}\nd: [\n]\n', { a: { b: 'c' }, d: [] }],
    // Lines in flow collections have any indentation.
    ['data: {a: x,\nb: z}', { data: { a: 'x', b: 'z' } }],
    ['a: [1,\n2]\nb: 3\n', { a: [1, 2], b: 3 }],
    ['s:\n  t: {a: b,\n  c: d}\n  e: f\n', { s: { t: { a: 'b', c: 'd' }, e: 'f' } }],
    ['a: {"b": {\n "c": 1\n}}\nd: e\n', { a: { b: { c: 1 } }, d: 'e' }],
    ['- {a: [b,\nc\n]} # x\n- d\n', [{ a: ['b', 'c'] }, 'd']],
    ['s:\n  - a: [b\nc, d\n e,\n  f\n  g\n]\n', { s: [{ a: ['b c', 'd e', 'f g'] }] }],
    ['s:\n  a: ["b\nc", \'d\n  e\',\n"f"]\n  g: h\n', { s: { a: ['b c', 'd e', 'f'], g: 'h' } }],
    ['s:\n  a: {b:\nc,\n? d\n: e}\nf: g\n', { s: { a: { b: 'c', d: 'e' } }, f: 'g' }],
    ['s:\n  a: [b,\n# c\nd,\n\n  e # f\n]\n', { s: { a: ['b', 'd', 'e'] } }],
    ['[-, a, -]', ['-', 'a', '-']],
    ['\ufeff- a\n- b\n', ['a', 'b']],
    ['%TAG !e! x\n--- !e!y a', 'a'],
    // Tags and anchors with characters that end them elsewhere.
    ['x: !!str,a b', { x: 'b' }],
    ['x: !!int,a 1\nz: !!i%6Et 1', { x: '1', z: 1 }],
    ['%TAG !a! tag:yaml.org,2002:\n--- \nx: !a!int 1\nz: !a!int,x 1\n', { x: 1, z: '1' }],
    ['- !!!str x\n- !,a &b y\n- *b\n- !a[b {c: 1}\n', ['x', 'y', 'y', { c: 1 }]],
    ['x: [!a,b 1, 2]', { x: ['1', 2] }],
    ['&a:b', ':b'],
    ['? &a:b\n: c', { ':b': 'c' }],
    ['x: &a k\n*a: b\nz: {*a: c}', { x: 'k', k: 'b', z: { k: 'c' } }],
    ['<<: [&a {x: 1}, {<<: *a, z: 2}]', { x: 1, z: 2 }],
    ['|2\n  text', 'text'],
    ['--- !!str >\n text', 'text'],
  ])('$0 is read as in kube-apiserver', async (text, value) => {
    expect((await decoded(text)).value).toEqual(value);
  });

  test('treats __proto__ as a member', async () => {
    const value = await readValue('__proto__: {a: 1}');
    expect(Object.keys(value as object)).toEqual(['__proto__']);
    expect(({} as { a?: number }).a).toBeUndefined();
  });

  test.each([
    ['.inf', '.inf'],
    ['-.Inf', '-.inf'],
    ['.NaN', '.nan'],
    ['1.50', '1.5'],
    ['0.1', '0.1'],
    ['1e-7', '1e-07'],
    ['1e3', '1000'],
    ['1e6', '1e+06'],
    ['1000000', '1000000'],
    ['33554433.5', '3.3554432e+07'],
    ['1e39', '.inf'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['-9223372036854775809', '-9.223372e+18'],
    ['18446744073709551616', '1.8446744e+19'],
  ])('the key %s is %j, as in kube-apiserver', async (key, text) => {
    const { value } = await decoded(`${key}: 1`);
    expect(value).toEqual({ [text]: 1 });
  });

  test('reports duplicate keys, the last of which wins', async () => {
    expect(await decoded('a: 1\nb:\n  c: 1\n  c: 2\na: 3\n')).toEqual({
      value: { a: 3, b: { c: 2 } },
      duplicates: [],
      repeated: ['line 4: key "c" already set in map', 'line 5: key "a" already set in map'],
    });
    // A number is another key than its text, although both become the same member.
    expect(
      (await decoded('a: 0\n1: 1\n"1": 2\n0x1: 3\n"1": 4\nyes: 5\ntrue: 6\n')).repeated,
    ).toEqual([
      'line 4: key 1 already set in map',
      'line 5: key "1" already set in map',
      'line 7: key true already set in map',
    ]);
    expect(await decoded('1: a\n1.0: b\n')).toEqual({ value: { 1: 'b' }, duplicates: [] });
    // A value begins with its anchor and its tag.
    expect((await decoded('a: 0\na: &x\n  b: !!map\n    c: 1\n  b:\n    - 1\n')).repeated).toEqual([
      'line 6: key "b" already set in map',
      'line 2: key "a" already set in map',
    ]);
  });

  test.each([
    ['b:\n  a: @x\n', 'yaml: line 2: found character that cannot start any token'],
    ['name: x\n\tlabels: c\n', 'yaml: line 2: found a tab character that violates indentation'],
    ['name: "x"\n\tlabels: c\n', 'yaml: line 2: found character that cannot start any token'],
    ['a: b\n  c: d\n', 'yaml: line 2: mapping values are not allowed in this context'],
    ['- name:x\n  image: z\n', 'yaml: line 2: mapping values are not allowed in this context'],
    ['a: b\nc\n\n# x\n\nd: e\n', "yaml: line 4: could not find expected ':'"],
    ['a: b\nkind Map\nc: d\n', "yaml: line 3: could not find expected ':'"],
    ['a: b\n<<<<<<< HEAD\nc: d\n', "yaml: line 3: could not find expected ':'"],
    ['<html>\n<body>x: y</body>\n', 'yaml: line 2: mapping values are not allowed in this context'],
    ['a: b\n{{- if x }}\nc: d\n', "yaml: line 3: could not find expected ':'"],
    [
      'a:\n  b: {{ x }}\n',
      'yaml: invalid map key: map[interface {}]interface {}{"x":interface {}(nil)}',
    ],
    ['a: {{- x }}\n', 'yaml: did not find expected node content'],
    ['b:\n  a: *.b\n', 'yaml: line 2: did not find expected alphabetic or numeric character'],
    ['a: * * *', 'yaml: did not find expected alphabetic or numeric character'],
    ['a:\n  b: c\n d: e\n', 'yaml: line 2: did not find expected key'],
    ['a: b\n- c\n', 'yaml: line 1: did not find expected key'],
    ['x:\n  - a\n - b\n', 'yaml: line 2: did not find expected key'],
    ['x:\n  - a\n  b: c\n', "yaml: line 2: did not find expected '-' indicator"],
    ['x:\n  - a: x\n    b: y\n   z: x\n', "yaml: line 3: did not find expected '-' indicator"],
    ['x:\n- a: x\n  b: y\n z: x\n', 'yaml: line 3: did not find expected key'],
    ['x: {a: 1,\n', 'yaml: line 1: did not find expected node content'],
    ['b:\n a: {b, c: ]}\n', 'yaml: line 1: did not find expected node content'],
    ['a: [1, 2\nb: 3\n', "yaml: line 1: did not find expected ',' or ']'"],
    ['a: b: c', 'yaml: mapping values are not allowed in this context'],
    ['a:\n\tb: 1', 'yaml: line 2: found character that cannot start any token'],
    ['a: @b', 'yaml: found character that cannot start any token'],
    ['a: "\\q"', 'yaml: found unknown escape character'],
    ['a: "\\ud800"', 'yaml: found invalid Unicode character escape code'],
    ['a: "b\n', 'yaml: line 2: found unexpected end of stream'],
    ['a: *b', "yaml: unknown anchor 'b' referenced"],
    ['a: &b [*b]', "yaml: anchor 'b' value contains itself"],
    ['a: 1\n---\nb: 2', 'yaml: line 2: expected a single document in the stream'],
    ['a: .nan', 'json: unsupported value: NaN'],
    ['b: .inf\na: .nan', 'json: unsupported value: NaN'],
    ['a: .nan\nb: {<<: 1}', 'yaml: map merge requires map or sequence of maps as the value'],
    ['~: 1\nb: {<<: 1}', 'yaml: map merge requires map or sequence of maps as the value'],
    ['a: .nan\n~: 1', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: 1'],
    ['~: 1\n[a]: b', 'yaml: invalid map key: []interface {}{"a"}'],
    ['a: -.inf', 'json: unsupported value: -Inf'],
    ['<<: 1', 'yaml: map merge requires map or sequence of maps as the value'],
    ...['aGk', 'a Gk=', '"aGk=\\t"', '>\n  aG\n  k='].map((text) => [
      `a: !!binary ${text}`,
      'yaml: !!binary value contains invalid base64 data',
    ]),
    ['a: !!int x', 'yaml: cannot decode !!str `x` as a !!int'],
    ['a: !!int 1e3', 'yaml: cannot decode !!float `1e3` as a !!int'],
    ['a: !!timestamp x', 'yaml: cannot decode !!str `x` as a !!timestamp'],
    [
      'a: !!float 18446744073709551615',
      'yaml: cannot decode !!int `18446744073709551615` as a !!float',
    ],
    ['a: &', 'yaml: did not find expected alphabetic or numeric character'],
    ['\na: ,', 'yaml: line 1: did not find expected node content'],
    ['\na: ]', 'yaml: line 1: did not find expected node content'],
    ['\na: ? b', 'yaml: line 2: mapping keys are not allowed in this context'],
    ['? [a]\n: 1', 'yaml: invalid map key: []interface {}{"a"}'],
    [
      '18446744073709551615: b',
      'unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "b"',
    ],
    ['? \n: 1', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: 1'],
    ['a: 1\nfoo', "yaml: line 3: could not find expected ':'"],
    ['a: "b', 'yaml: found unexpected end of stream'],
    ['{', 'yaml: line 1: did not find expected node content'],
    ['a: 1\nfoo\n', "yaml: line 3: could not find expected ':'"],
    ['a: - b', 'yaml: block sequence entries are not allowed in this context'],
    ['a: |x\n b', 'yaml: did not find expected comment or line break'],
    ['a: &b &c 1', 'yaml: did not find expected key'],
    ['a: {b: c: d}', "yaml: did not find expected ',' or '}'"],
    ['a: [{b: 1}, c: d: e]', "yaml: did not find expected ',' or ']'"],
    ['a: {b: 1', "yaml: line 1: did not find expected ',' or '}'"],
    ['a: {b: 1 "c": 2}', "yaml: did not find expected ',' or '}'"],
    ['a: ["b" "c"]', "yaml: did not find expected ',' or ']'"],
    ['a: !e!b c', 'yaml: found undefined tag handle'],
    ['a: {,}', 'yaml: did not find expected node content'],
    ['a: [b]]', 'yaml: did not find expected key'],
    ['a: 1\n}', 'yaml: line 1: did not find expected key'],
    ['%YAML 1.2\n---\na: 1', 'yaml: found incompatible YAML document'],
    ['# c\n%YAML 1.2\n---\n', 'yaml: line 1: found incompatible YAML document'],
    ['%YAML 123.1\n---\n', 'yaml: found extremely long version number'],
    ['- a\n%x\n', 'yaml: line 2: found unknown directive name'],
    // Frequent mistakes, in the lines where kube-apiserver notices them.
    ['{\n  "a": {\n    "b": 1\n  } x: y\n}\n', "yaml: line 3: did not find expected ',' or '}'"],
    ['{"a": { x: y\n  "b": 1}}\n', "yaml: line 1: did not find expected ',' or '}'"],
    ['{\n  "a": 1,: x\n}\n', 'yaml: line 1: did not find expected node content'],
    ['{\n  "a": "b"|\n}\n', 'yaml: line 2: found character that cannot start any token'],
    ['}{', 'yaml: did not find expected node content'],
    ['a:\n- b: c\n\n  - d\n', 'yaml: line 3: did not find expected key'],
    ['a: b\ntext\nc: d\ne: f\n', "yaml: line 3: could not find expected ':'"],
    ['a:\n- b: 1\n{{- end }}\n  c: 2\n', "yaml: line 4: could not find expected ':'"],
    [
      'a: |\n  b\n\tc: d\n',
      'yaml: line 3: found a tab character where an indentation space is expected',
    ],
    ['a: *b\nc: @', "yaml: unknown anchor 'b' referenced"],
    ['a: b: c\nd: *x', 'yaml: mapping values are not allowed in this context'],
    ['a: !<x b', "yaml: did not find the expected '>'"],
    ['a: !%zz b', 'yaml: did not find URI escaped octet'],
    ['a: "\\xz"', 'yaml: did not find expected hexdecimal number'],
    ['a: "\\\'"', 'yaml: found unknown escape character'],
    ['a: "\\ud800\\ud800"', 'yaml: found invalid Unicode character escape code'],
    ['a: "\\ude00\\ud83d"', 'yaml: found invalid Unicode character escape code'],
    ['a: "\\U00110000"', 'yaml: found invalid Unicode character escape code'],
    ['s: {a: b\nc: d}', "yaml: line 1: did not find expected ',' or '}'"],
    ['s: [a,\n--- b]', 'yaml: line 1: did not find expected node content'],
    ['a: "b\n---\nc"', 'yaml: line 2: found unexpected document indicator'],
    ["a: 'b' c", 'yaml: did not find expected key'],
    ['%YAML x\n---\na: 1', 'yaml: did not find expected version number'],
    ['# c\n%YAML 1.1\n%YAML 1.1\n---', 'yaml: line 2: found duplicate %YAML directive'],
    ['%TAG !e! x\n%TAG !e! y\n---', 'yaml: line 1: found duplicate %TAG directive'],
    ['%FOO bar\n---\na: 1', 'yaml: found unknown directive name'],
    ['%YAML 1.1', 'yaml: line 1: did not find expected <document start>'],
    ['%YAML 1.1\na: 1', 'yaml: line 1: did not find expected <document start>'],
    ['...\na: 1', 'yaml: did not find expected node content'],
    ['['.repeat(20_000), 'yaml: exceeded max depth'],
    // Keys that are not in one line with their colon, or too long, or absent.
    ['a: b\nc\n : d\n', "yaml: line 3: could not find expected ':'"],
    ['x:\n  c\n   : d\n', 'yaml: line 2: did not find expected key'],
    ['{a\n: b}', "yaml: line 1: did not find expected ',' or '}'"],
    ['[a\n : b]', "yaml: line 1: did not find expected ',' or ']'"],
    ['{a b\n  c: d}', "yaml: line 1: did not find expected ',' or '}'"],
    [`[${'k'.repeat(1025)}: v]`, "yaml: did not find expected ',' or ']'"],
    [`{${'k'.repeat(1025)}: v}`, "yaml: did not find expected ',' or '}'"],
    ['a: b\n: c\n', 'yaml: line 1: did not find expected key'],
    ['- a\n: b\n', "yaml: line 1: did not find expected '-' indicator"],
    ['{: a}', 'yaml: did not find expected node content'],
    ['[:8080]', 'yaml: did not find expected node content'],
    ['[a?b]', "yaml: did not find expected ',' or ']'"],
    // Tabs where only spaces are expected.
    ['a: b\n\t\nc: d\n', 'yaml: line 2: found a tab character that violates indentation'],
    ["a: 'b'\n\t\nc: d\n", 'yaml: line 2: found character that cannot start any token'],
    ['a: b # c\n\t\n', 'yaml: line 2: found character that cannot start any token'],
    ['a: [b]\n\t', 'yaml: line 2: found character that cannot start any token'],
    ['- \ta\n', 'yaml: found character that cannot start any token'],
    [
      'a: |\n  \ttext\n',
      'yaml: line 2: found a tab character where an indentation space is expected',
    ],
    [
      `a: |\n\n  \t${'text\n  '.repeat(20_000)}`,
      'yaml: line 3: found a tab character where an indentation space is expected',
    ],
    // Directives.
    ['%,a\n---\n', 'yaml: could not find expected directive name'],
    ['%a: b\n', 'yaml: found unexpected non-alphabetical character'],
    ['%YAML 1\n---\n', "yaml: did not find expected digit or '.' character"],
    ['%YAML 1.1x\n---\n', 'yaml: did not find expected comment or line break'],
    // Texts that are no keys.
    ["a: b\n'c: d\n", 'yaml: line 3: found unexpected end of stream'],
    ['- a\nb\n', "yaml: line 3: could not find expected ':'"],
    ['a: b\n|c\n', 'yaml: line 2: did not find expected comment or line break'],
    ['a: b\n>-\n', 'yaml: line 1: did not find expected key'],
    ['a: b\nc\n  d\n  e\nf: g\n', "yaml: line 5: could not find expected ':'"],
    ['a: b\nc d\n ', "yaml: line 3: could not find expected ':'"],
    ['--- \na:b\nc: d\n', 'yaml: line 3: mapping values are not allowed in this context'],
    ['~: \n', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>'],
    ['~: 1\nnull: 2', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: 2'],
    ['a: {~: 1, null: 2}', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: 2'],
    ['~: 1\na: {~: 2}', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: 1'],
    ['&a: b', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "b"'],
    ['x: [&a: b]', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "b"'],
    ['a: !!null 2001-01-01', 'yaml: cannot decode !!str `2001-01-01` as a !!null'],
  ])('rejects $0', async (text, message) => {
    await expect(decoded(text)).rejects.toEqual(new YamlError(message));
  });

  test.each([
    'a: 1\n---\nb: 2',
    'a: 1\n---\n[',
    '---\na: 1\n...\n%',
    'a: 1',
    '{"a": 1}\n}',
    '{"a": 1} text\n',
    ' a: 1\nb: 2\n',
  ])('reads only the first document of %j if so requested', async (text) => {
    const limits = { valuesMax: 100, documents: 'first' } as const;
    const { value } = await decodeYaml(Buffer.from(text), limits);
    expect(value).toEqual({ a: 1 });
  });

  test('an indented text belongs to a block scalar that is a document', async () => {
    const limits = { valuesMax: 100, documents: 'first' } as const;
    expect((await decodeYaml(Buffer.from('--- |\ntext\n'), limits)).value).toBe('');
    expect((await decodeYaml(Buffer.from('|\n# c\n a\n'), limits)).value).toBe('');
    expect(await readValue('--- >-\n# c\n')).toBe('');
    expect(await readValue('--- |\n text\n')).toBe('text\n');
  });

  const many = Array.from({ length: 3_000 }, (_, index) => index);
  const flat = many.map((index) => `k${index}: v # c`).join('\n');
  const nested = many
    .slice(2_000)
    .map((index) => `- a: &x${index} {b: [${index}, c], <<: *x2000}\n  d:\n  - e\n`);
  const pairs = many.slice(1_500).map((index) => `"k${index}": [{"a": "b"}, [1], {}]`);
  test.each([
    ['members', flat],
    ['lists in lists', nested.join('').replace(', <<: *x2000', '')],
    ['flow collections', `{"list": [{${pairs.join(',\n')}}, 2, ], "x": 1}`],
    [
      'tags with a directive',
      `%TAG !t! tag:yaml.org,2002:\n---\na:\n${'- !t!str 5\n'.repeat(3_000)}`,
    ],
    ['keys', `${flat}\n? x\n: [${many.join(', ')}]\nk1: w\n`],
  ])('TRUST-2: composes many %s in pieces', async (_, text) => {
    const lines = new LineCounter();
    const document = parseDocument(text, { ...treeParsing, lineCounter: lines });
    const { value, repeated } = runInOnePiece(treeSteps(document, lines, { valuesMax: 100_000 }));
    let turns = 0;
    const isWanted = () => {
      turns += 1;
      return true;
    };
    const read = await decodeYaml(Buffer.from(text), { valuesMax: 100_000, isWanted });
    const expanded = text.includes('*') ? { expandedBytes: expect.any(Number) } : {};
    const found = repeated.length === 0 ? expanded : { ...expanded, repeated };
    expect(read).toEqual({ value, duplicates: [], ...found });
    let lexemes = 0;
    for (const _lexeme of new Lexer().lex(text)) lexemes += 1;
    const valuesOf = (of: JsonValue | undefined): number =>
      typeof of === 'object' && of !== null
        ? Object.values(of).reduce<number>((sum, part) => sum + valuesOf(part), 1)
        : 1;
    expect(turns).toBeGreaterThan(lexemes / 2000 + (2 * valuesOf(value)) / 1000 + 6);
  });

  test.each([
    ['a value', `${flat}\nx: @`, 3_001, 'found character that cannot start any token'],
    ['an open list', `[${many.join(',\n')}`, 3_000, "did not find expected ',' or ']'"],
    [
      'an empty item',
      `a: [${many.join(',\n ')}, , 1]`,
      2_999,
      'did not find expected node content',
    ],
    ['a second document', `${flat}\n---\na: ]`, 3_001, 'expected a single document in the stream'],
  ])('reports %s behind the first piece', async (_, text, line, problem) => {
    await expect(decoded(text)).rejects.toEqual(new YamlError(`yaml: line ${line}: ${problem}`));
  });

  test('limits the growth by aliases', async () => {
    const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]'];
    for (let level = 1; level < 9; level += 1) {
      const items = new Array(10).fill(`*a${level - 1}`).join(',');
      lines.push(`a${level}: &a${level} [${items}]`);
    }
    await expect(decoded(lines.join('\n'))).rejects.toThrow(
      'yaml: document contains excessive aliasing',
    );
  });
});

describe('encoding YAML', () => {
  test('writes blocks like kube-apiserver', () => {
    const value = {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'x', labels: {}, ownerReferences: [] },
      list: [{ b: 1, a: [1, [2, 3]] }, 'x', null],
      data: { a10: 'x', a2: 'y\nz\n', t: ' lead\nx', two: 'x\n\n', none: 'a\nb' },
    };
    expect(encodeYaml(value)).toBe(
      [
        'apiVersion: v1',
        'data:',
        '  a2: |',
        '    y',
        '    z',
        '  a10: x',
        '  none: |-',
        '    a',
        '    b',
        '  t: |2-',
        '     lead',
        '    x',
        '  two: |+',
        '    x',
        '',
        'kind: ConfigMap',
        'list:',
        '- a:',
        '  - 1',
        '  - - 2',
        '    - 3',
        '  b: 1',
        '- x',
        '- null',
        'metadata:',
        '  labels: {}',
        '  name: x',
        '  ownerReferences: []',
        '',
      ].join('\n'),
    );
  });

  test.each([
    ['', '""'],
    ['yes', '"yes"'],
    ['null', '"null"'],
    ['~', '"~"'],
    ['1', '"1"'],
    ['1e3', '"1e3"'],
    ['0x1f', '"0x1f"'],
    ['1:30', '"1:30"'],
    ['2001-01-01', '"2001-01-01"'],
    ['2001-01-01T01:02:03Z', '"2001-01-01T01:02:03Z"'],
    ['2001-1-1t1:2:3,4-05:00', '"2001-1-1t1:2:3,4-05:00"'],
    ['2001-02-28 1:02:03', '"2001-02-28 1:02:03"'],
    ['1234-56-78', '1234-56-78'],
    ['a 😀', '"a \\U0001F600"'],
    ['2001-02-29', '2001-02-29'],
    ['2001-01-01T01:02:03', '2001-01-01T01:02:03'],
    ['2001-01-01 01:02:03Z', '2001-01-01 01:02:03Z'],
    ['<<', '"<<"'],
    ['plain text', 'plain text'],
    ['a:b', 'a:b'],
    ['a: b', "'a: b'"],
    ['a #b', "'a #b'"],
    ['- a', "'- a'"],
    ['-a', '-a'],
    [' a', "' a'"],
    ["it's", "it's"],
    ["'x", "'''x'"],
    ['{x}', "'{x}'"],
    ['a\tb', '"a\\tb"'],
    ['\u0000', '"\\0"'],
    ['ü', 'ü'],
    ['---x', "'---x'"],
  ])('quotes %j', async (text, written) => {
    expect(encodeYaml(text)).toBe(`${written}\n`);
    expect(await readValue(encodeYaml({ a: [text] }))).toEqual({ a: [text] });
  });

  test('decodes what it has encoded', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { fraction: random } = randomOf(seed);
    for (let round = 0; round < 300; round += 1) {
      const value = { v: anyValue(random, 0) as JsonValue };
      const text = encodeYaml(value);
      expect(await readValue(text), `seed ${seed}: ${text}`).toEqual(value);
    }
  });

  test('TRUST-2: writes long texts, many names, and deep values in small pieces', async () => {
    const unit = ['a b: ', '\u0001', "'", 'line\n', '\ud83d\ude00', '\n\n', '1'];
    const texts = unit.map((text) => text.repeat(40_000 / text.length));
    const names = Array.from({ length: 5000 }, (_, n) => [`name-${(n * 7919) % 5000}`, n]);
    const value: JsonObject = {
      texts,
      names: Object.fromEntries(names),
      [`a key ${'k\t'.repeat(20_000)}`]: 'value',
      deep: { a: [texts.map((text) => ({ text: `${text}.` }))] },
    };
    const pieces = [...yamlPieces(value)];
    expect(pieces.length).toBeGreaterThan(80);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(160_000);
    expect(await readValue(pieces.join(''))).toEqual(value);
    const written = pieces.join('').match(/name-\d+/g) ?? [];
    expect(written).toEqual(names.map(([name]) => name).sort(byNumber));
  });

  test('TRUST-3: writes a list item by item like the whole', () => {
    const head = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '7' } };
    for (const items of [[], [{ b: 1, a: { c: [1] } }, {}, [], 'x', { z: 'y\nz' }]]) {
      for (const member of ['items', 'rows']) {
        const pieces = [...yamlListPieces({ head, member, items })];
        expect(pieces.join('')).toBe(encodeYaml({ ...head, [member]: items }));
      }
    }
  });

  test('sorts numbers in names by value', () => {
    const names = ['b', 'a10', 'a2', 'a02', '1', 'B', '_x', 'a'];
    expect(names.sort(compareNaturally)).toEqual(['_x', '1', 'B', 'a', 'a2', 'a02', 'a10', 'b']);
  });
});

const byNumber = (left: unknown, right: unknown) =>
  Number(String(left).slice(5)) - Number(String(right).slice(5));

const pieces = [
  'a',
  '1',
  ' ',
  '\n',
  ':',
  '#',
  '-',
  "'",
  '"',
  '\\',
  '{',
  ']',
  ',',
  'ü',
  '\t',
  'y',
  '.',
];

function anyValue(random: () => number, depth: number): unknown {
  const pick = Math.floor(random() * (depth > 3 ? 5 : 8));
  const count = Math.floor(random() * 5);
  const text = () =>
    Array.from(
      { length: Math.floor(random() * 8) },
      () => pieces[Math.floor(random() * pieces.length)],
    ).join('');
  if (pick === 0) return null;
  if (pick === 1) return random() < 0.5;
  if (pick === 2) return Math.floor(random() * 1e6) / (random() < 0.5 ? 1 : 1000);
  if (pick < 5) return text();
  if (pick === 5) return Array.from({ length: count }, () => anyValue(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length: count }, () => [text(), anyValue(random, depth + 1)]),
  );
}
