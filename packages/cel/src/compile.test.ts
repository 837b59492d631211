import { describe, expect, test } from 'vitest';
import { compile } from './compile.ts';
import { standardFunctions } from './types/standard-functions.ts';
import { boolType, dynType, stringType, type Type } from './types/types.ts';
import { CelCostError, type Value } from './values.ts';

function run(source: string, variables: Readonly<Record<string, Value>> = {}): Value {
  const types = new Map<string, Type>(Object.keys(variables).map((name) => [name, dynType]));
  const expression = compile(source, { functions: standardFunctions(), variables: types });
  return expression.program().run(new Map(Object.entries(variables)), 1_000_000).value;
}

describe('true expressions', () => {
  test.each([
    '1 + 2 * 3 == 7 && -7 / 2 == -3 && -7 % 2 == -1',
    "'a' + \"b\" == 'ab' && r'\\n' != '\\n' && b'\\x41' == b'A' && '\\U0001F431'.size() == 1",
    '0x10 == 16 && 1e3 == 1000.0 && 18446744073709551615u > 0u',
    'dyn(1) == dyn(1u) && dyn(1) == dyn(1.0) && 1 < 1.5 && 2u > 1',
    '[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2] && [1, 2, 3][1] == 2',
    '[1, 2][dyn(1)] == 2 && [1, 2][dyn(1.0)] == 2 && [1, 2][dyn(1u)] == 2',
    "{'a': 1}.a == 1 && has({'a': 1}.a) && !has({'a': 1}.b) && 'a' in {'a': 1}",
    'true || 1 / 0 > 0',
    '!(1 / 0 > 0 && false)',
    '[1, 0].exists(x, 1 / x > 0) && [1, 2].all(x, x > 0) && [1, 2].exists_one(x, x > 1)',
    '[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]',
    "[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4} && {'a': 1}.all(k, v, k == 'a' && v == 1)",
    "{'a': 1}.?b.orValue(2) == 2 && [1][?3].hasValue() == false && [?optional.none()] == []",
    'optional.of(2).optMap(x, x + 1).value() == 3',
    "timestamp('2024-02-29T10:00:00+02:00').getHours() == 8",
    "timestamp('2024-01-01T01:00:00+00:60') == timestamp('2024-01-01T00:00:00Z')",
    "timestamp('2024-01-01T00:00:00Z') + duration('36h') == timestamp('2024-01-02T12:00:00Z')",
    "string(duration('1h2m3.5s')) == '3723.5s' && duration('90m').getHours() == 1",
    "string(timestamp('2024-02-29T01:00:00+02:00') - duration('1h')) == '2024-02-29T00:00:00+02:00'",
    "string(duration('1s') + timestamp('2024-02-29T01:00:00+02:00')) == '2024-02-29T01:00:01+02:00'",
    "string(duration('2562047h47m16.854775807s')) == '9223372036.854776s'",
    "string(duration('1ns')) == '0.000000001s'",
    "'%s'.format([{?'a': dyn({'b': 1})[?'b']}]) == '{\"a\":1}'",
    '--5 == 5 && ---5 == -5 && - -5 == 5',
    "'tacocat'.indexOf('c') == 2 && 'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
    "'%s has %d of %.2f'.format(['x', 3, 1.5]) == 'x has 3 of 1.50'",
    "'abc123'.find('[0-9]+') == '123' && 'a'.matches('^a$')",
    '[3, 1, 2].sort() == [1, 2, 3] && [1, 2].sum() == 3 && [[1], [2]].flatten() == [1, 2]',
    'sets.contains([1, 2], [2]) && !sets.intersects([1], [2]) && sets.equivalent([1, 1], [1])',
    "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('0.5').compareTo(quantity('500m')) == 0",
    "sign(quantity('-1')) == -1 && quantity('2').sign() == 1",
    "ip('::1').isLoopback() && ip('10.0.0.1').family() == 4",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isCIDR('10.0.0.0/33')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "cidr('::/16').containsCIDR('0:1::/32') && !cidr('::/16').containsCIDR('10.0.0.0/32')",
    "ip('ff12::1').isLinkLocalMulticast() && ip('2001:db8::').isGlobalUnicast()",
    "url('https://[::1]:80/a?b=c').getPort() == '80' && !isURL('../x')",
    "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.2', true).patch() == 0",
    "!format.dns1123Label().validate('a').hasValue() && format.named('uuid').hasValue()",
    "!has(dyn(1).a) && !has(dyn('b').a) && !has(dyn(null).a) && !has(dyn(b'b').a)",
    '!dyn(1).?a.hasValue() && !optional.of(dyn(null)).?a.hasValue()',
    'type(1) == int && type([]) == list && type(type(1)) == type',
    "timestamp('2024-01-01T00:00:00Z') in {timestamp('2024-01-01T00:00:00Z'): 1}",
    "{timestamp('2024-01-01T01:00:00+01:00'): 1, timestamp('2024-01-01T00:00:00Z'): 2}.size() == 2",
    "{1.5: 'a'}[1.5] == 'a' && {duration('1s'): 1}.size() == 1 && int in {int: 1}",
    "double('0x1p4') == 16.0 && double('1_0.5_0e0_1') == 105.0 && double('0x_1.8P-1') == 0.75",
    "timestamp('2024-02-29T01:00:00Z').getHours('-2:30') == 22",
    "timestamp('2024-02-29T01:00:00Z').getHours('100:00') == 5",
    "timestamp('2024-02-29T01:00:00Z').getHours('US/Central') == 19",
    "timestamp('2024-02-29T01:00:00Z').getHours('Local') >= 0",
    "dyn('a') != dyn(ip('10.0.0.1')) && dyn(ip('10.0.0.1')) != null",
    "'\\ud83d' == '\ufffd' && b'\\xff'.size() == 1",
    "bool('T') && !bool('F')",
    '[,].size() == 0 && {,}.size() == 0 && google.protobuf.Int64Value{,} == 0',
    "has(has({'a': 1}.a)) && optional.ofNonZeroValue(optional.none()).hasValue()",
    "!isQuantity(' 1') && !isQuantity('1 ')",
    "!dyn(1)[?0].hasValue() && !dyn({'a': 'b'}).?a[0].hasValue()",
    '[1, 2][?dyn(1u)] == optional.of(2) && [1][?dyn(0.0)].hasValue()',
    "[double('NaN'), 1.0].isSorted() && [2.0, double('NaN'), 1.0].min() == 1.0",
    "[dyn(1), dyn('a')].isSorted() && [dyn(1), dyn('a')].max() == dyn(1)",
    "!optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()",
    "timestamp('2024-01-01T1:02:03.004Z').getMilliseconds('US/Central') == 4",
    "!format.datetime().validate('2024-01-01t00:00:00+99:00').hasValue()",
  ])('%s', (source) => {
    expect(run(source)).toBe(true);
  });
});

describe('results as in cel-go', () => {
  test.each<[string, Value]>([
    ['string(1234567.5)', '1.2345675e+06'],
    ["quantity('12e6').add(quantity('1.1Mi')).asApproximateFloat()", 13_153_433.600000001],
    ["quantity('9223372036854775807').add(1).asApproximateFloat()", 9.223372036854776e18],
    ['string(100000.0)', '100000'],
    ['string(1e20)', '1e+20'],
    ["'%s'.format([1.0 / 0.0])", '+Inf'],
    ["'%s'.format([[1.5, 1e21, -1.0 / 0.0]])", '[1.500000, 1000000000000000000000.000000, "-Inf"]'],
    ["'%s'.format([[b'a', '\\u0001']])", '[b"a", "\\x01"]'],
    ["'%f'.format([-1234567.5])", '-1,234,567.500000'],
    ["'%s'.format([{1: 'a', 10: 'b'}])", '{1:"a", 10:"b"}'],
    ["'%.1f %.1f %.0f'.format([0.25, 0.35, 1000.5])", '0.2 0.3 1,000'],
    ["format.byte().validate('').hasValue()", true],
    ["format.dns1035LabelPrefix().validate('A-').hasValue()", false],
    ["format.uri().validate('a').value()[0]", 'parse "a": invalid URI for request'],
    ['optional.of(1).orValue(1 / 0)', 1n],
    ['optional.of(dyn(null)).orValue(1 / 0)', null],
    ['optional.of(1).or(optional.of(1 / 0)).value()', 1n],
    ['optional.none().or(optional.of(2)).value()', 2n],
    ['dyn(1).orValue(2)', 1n],
    ["'abc'.indexOf('', 9)", 9n],
    ["'abc'.indexOf('c', 3)", -1n],
    ["'abc'.lastIndexOf('', 9)", 9n],
    ["'abc'.lastIndexOf('')", 3n],
    ["'abc'.lastIndexOf('b', 2)", 1n],
    ["'abc'.lastIndexOf('b', 3)", -1n],
    ["['1', '1k', '1.', '0.5k', '1e3', '1Ti'].all(q, quantity(q).isInteger())", true],
    ["['1.0', '1000m', '10e-1', '1.5Ki', '1Pi', '10E'].exists(q, quantity(q).isInteger())", false],
    ["quantity('1Gi').add(quantity('1Mi')).asInteger()", 1_074_790_400n],
    ["quantity('5k').sub(6).asInteger()", 4994n],
    ["quantity('1.0').add(0).isInteger() || quantity('0').add(quantity('0.0')).isInteger()", true],
    ["quantity('1').add(quantity('1.0')).isInteger()", false],
    ["quantity('1e30').asApproximateFloat()", 1e30],
    ["quantity('0.3').asApproximateFloat()", 3 * 0.1],
    ["quantity('1.5Gi').asApproximateFloat()", 1.5 * 2 ** 30],
    ["url('https://a:1/b?c=d#e?f').getQuery()['c'][0]", 'd'],
    ["url('https://[fe80::1%25a]:1/').getHostname()", 'fe80::1%a'],
    ["url('*').getHost()", ''],
    ["isURL('http://%41')", false],
    // Keys of maps may be lists and maps, which are the same only as themselves.
    ['{[1]: 2}.size()', 1n],
    ["{dyn({'a': 1}): 1, dyn({'a': 1}): 2}.size()", 2n],
    ['[1] in {[1]: 2}', false],
    ['{[1]: 1} == {[1]: 1}', false],
    ['[[1]].all(q, q in {q: 1})', true],
    ['{[1]: 2}.transformMap(k, v, v).exists(k, v, k == [1] && v == 2)', true],
    ['[[1], [1]].transformMapEntry(i, v, {v: i}).size()', 2n],
    ['{optional.none(): 1, optional.none(): 2}.size()', 1n],
    ["quantity('1') in {quantity('1'): 1}", false],
    ["ip('::1') in {ip('::1'): 1}", true],
    // Numbers of other types are other keys, which an integer finds only as an integer.
    ['{dyn(1): 1, dyn(1.0): 2, dyn(1u): 3}.size()', 3n],
    ['{dyn(1): 1, dyn(1u): 2}[1.0]', 1n],
    ['1 in {dyn(1.0): 2}', false],
    ['[dyn(1.0), dyn(1)].transformMapEntry(i, v, {v: i}).size()', 2n],
    // Nothing equals a calculated quantity, except in lists and maps.
    ["quantity('1').add(1) == quantity('2')", true],
    ["quantity('2') != quantity('1').add(1)", true],
    ["quantity('2') in [quantity('1').add(1)]", false],
    ["quantity('1').add(1) in [quantity('2')]", true],
    ["[quantity('2')].indexOf(quantity('1').add(1))", -1n],
    ["sets.equivalent([quantity('2')], [quantity('1').add(1)])", false],
    ["[quantity('3')] == [quantity('1').add(1)]", true],
    ["[[quantity('3')]] == [[quantity('1').add(1)]]", true],
    ["{'a': optional.of(quantity('3'))} == {'a': optional.of(quantity('1').add(1))}", true],
    ["[dyn(quantity('1'))] == [dyn(1)]", true],
    ["quantity('1').isLessThan(quantity('1').add(1))", true],
  ])('%s', (source, result) => {
    expect(run(source)).toEqual(result);
  });
});

describe('failing expressions', () => {
  test.each([
    ['1 / 0', 'division by zero'],
    ["{semver('1.2.3'): 1}", 'internal error: runtime error: hash of unhashable type cel.Semver'],
    ['[dyn(1), dyn(1.0)].transformMapEntry(i, v, {v: i})', 'insert failed: key 1 already exists'],
    ['[1u, 1u].transformMapEntry(i, v, {v: i})', 'insert failed: key 1 already exists'],
    ['[1, 2].transformMapEntry(i, v, {dyn(null): i})', 'insert failed: key 0 already exists'],
    ["[1, 2].transformMapEntry(i, v, {ip('::1'): i})", 'insert failed: key ::1 already exists'],
    ["[1, 2].transformMapEntry(i, v, {duration('1h'): i})", 'failed: key 1h0m0s already exists'],
    [
      "[1, 2].transformMapEntry(i, v, {timestamp('2020-01-02T03:04:05.5Z'): i})",
      'insert failed: key 2020-01-02 03:04:05.5 +0000 UTC already exists',
    ],
    ["quantity('2') == quantity('1').add(1)", /^no such overload$/],
    ["cidr('fe80::1%/8')", 'ParseAddr("fe80::1%"): zone must be a non-empty string'],
    ["cidr('fe80::1%a/8')", 'IPv6 zones cannot be present in a prefix'],
    ["optional.of(quantity('2')) == optional.of(quantity('1').add(1))", /^no such overload$/],
    ["{'a': 1}[dyn(ip('::1'))]", 'invalid qualifier type: cel.IP'],
    ["{'a': 1}[dyn(quantity('1').add(1))]", 'invalid qualifier type: *cel.Quantity'],
    ["'%s'.format([{1.5: 1}])", 'no formatting function for map key of type double'],
    ["'%s'.format([{[1]: 1}])", 'no formatting function for map key of type list'],
    ['[int].exists(t, t == int)', 'reference to undefined type: t'],
    ["type(duration('1s')) == duration", 'reference to undefined type: duration'],
    ['{timestamp: 1}', 'reference to undefined type: timestamp'],
    ['9223372036854775807 + 1', 'integer overflow'],
    ['0u - 1u', 'unsigned integer overflow'],
    ['[1][1]', 'index out of bounds: 1'],
    ["{'a': 1}['b']", 'no such key: b'],
    ['dyn(null).a', 'no such key: a'],
    ['has(dyn([1]).a)', "unsupported index type 'string' in list"],
    ['dyn([1]).?a', "unsupported index type 'string' in list"],
    ['optional.of(dyn([1])).?a', "unsupported index type 'string' in list"],
    ["dyn('a') < dyn(1)", /^no such overload$/],
    ['dyn(null) < dyn(null)', /^no such overload: _<_$/],
    ['dyn({}) + dyn({})', /^no such overload: _\+_$/],
    ['!dyn([])', /^no such overload$/],
    ['dyn(5).matches("a")', /^no such overload$/],
    ['dyn(5).matches(["a"][0])', /^no such overload: matches$/],
    ['[1][dyn(1e300)]', 'unsupported index value 1e+300 in list'],
    ['[1][dyn(18446744073709551615u)]', 'unsupported index value 18446744073709551615 in list'],
    ['[1][dyn(1e18)]', /^index out of bounds: 1e\+18$/],
    ['[1][dyn([null][0])]', 'invalid qualifier type: types.Null'],
    ['{"a": 1}[?dyn([null][0])]', 'invalid qualifier type: types.Null'],
    ['[1][[dyn([])][0]]', 'invalid qualifier type: *types.baseList'],
    ['[[1][5]].exists(i, v, v == 1)', 'unsupported comprehension range type: *types.Err'],
    ['dyn(5).transformList(i, v, v)', 'unsupported comprehension range type: types.Int'],
    ['dyn(1).optMap(v, v)', 'no such overload: hasValue(int)'],
    ['dyn(5).charAt(0)', 'no such overload: charAt(int, int)'],
    ['dyn(5).contains("a")', /^no such overload$/],
    ["''.lastIndexOf('a')", 'index out of range: -1'],
    ["'a'.charAt(9223372036854775807)", 'index out of range: 9223372036854775807'],
    ["'a'.substring(9223372036854775807)", 'index out of range: 9223372036854775807'],
    ["[dyn('a'), dyn(1.5)].join('-')", 'join: invalid input: 1.5'],
    ["dyn([1, 2]).join('-')", /^no such overload: join\(list, string\)$/],
    ['[dyn([])].isSorted()', /^no such overload: isSorted\(list\)$/],
    ["[dyn('a')].sum()", /^no such overload: sum\(list\)$/],
    ['[dyn(1), dyn(null)].max()', /^no such overload$/],
    ["'%s'.format([dyn([optional.of(1)])])", 'no formatting function for optional_type'],
    ["timestamp(dyn('0000-12-31T23:59:59Z'))", 'timestamp overflow'],
    ["'%s'.format([b'\\xff'])", 'invalid UTF-8 in bytes, cannot convert to string'],
    ["cidr('1.2.3.0/24').containsIP('x')", /^no such overload$/],
    ["cidr('1.2.3.0/24').containsCIDR('x')", 'network address parse error'],
    ['dyn(5).size()', /^no such overload: size$/],
    ['dyn(5).all(x, true)', "got 'types.Int', expected iterable type"],
    ["url('a')", 'parse "a": invalid URI for request'],
    ["[1][dyn('a')]", "unsupported index type 'string' in list"],
    ['[1][dyn(true)]', "unsupported index type 'bool' in list"],
    ['[1][?dyn(true)]', "unsupported index type 'bool' in list"],
    ['[?dyn(1)]', 'optional list element from non-optional value 1'],
    ["{?'a': dyn(1.5)}", "optional entry 'a' from non-optional value 1.5"],
    ["quantity(' 1')", 'quantities must match the regular expression'],
    ['dyn(5)["a"]', 'no such key: a'],
    ['dyn("a")[0]', 'no such key: 0'],
    ["quantity('10Mm')", "unable to parse quantity's suffix"],
    ['optional.none().value()', 'optional.none() dereference'],
    ["bool('TrUe')", "type conversion error from 'string' to 'bool'"],
    ["double(dyn('1__0'))", "type conversion error from 'string' to 'double'"],
    ["double(dyn('0x1'))", "type conversion error from 'string' to 'double'"],
    ["double(dyn('+nan'))", "type conversion error from 'string' to 'double'"],
    ["timestamp('2024-01-01T00:00:00Z').getHours('utc')", 'unknown time zone utc'],
    [
      "timestamp('2024-01-01T00:00:00Z').getHours('America/NEW_YORK')",
      'unknown time zone America/NEW_YORK',
    ],
    ["timestamp('2024-01-01T00:00:00Z').getHours('us/central')", 'unknown time zone us/central'],
    ["timestamp('2024-01-01T00:00:00Z').getHours('../UTC')", 'time: invalid location name'],
    ["timestamp('2024-01-01T00:00:00Z').getMilliseconds('Bad/Zone')", 'unknown time zone Bad/Zone'],
    [
      "timestamp('2024-01-01T00:00:00Z').getHours('x:00')",
      'strconv.Atoi: parsing "x": invalid syntax',
    ],
    ["timestamp('2024-01-01T00:00:00Z').getHours('999999999999:0')", 'timestamp overflow'],
    ["dyn(ip('10.0.0.1')) == dyn('a')", /^no such overload$/],
    ["dyn(quantity('1')) == dyn(1)", /^no such overload$/],
    ["{dyn(b'a'): 2}", 'internal error: runtime error: hash of unhashable type types.Bytes'],
    ["'hello'.substring(100, 30)", 'invalid substring range. start: 100, end: 30'],
  ])('%s: %s', (source, message) => {
    expect(() => run(source)).toThrow(message);
  });

  test('an evaluation above its cost limit', () => {
    const source = 'lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))';
    expect(() => run(source)).toThrow(CelCostError);
    expect(() => run(`${source} || true`)).toThrow(CelCostError);
  });
});

describe('malformed addresses', () => {
  test.each([
    ['10.0.0.1.2', 'IPv4 address too long'],
    ['10.0.0', 'IPv4 address too short'],
    ['10..0.1', 'IPv4 field must have at least one digit (at ".0.1")'],
    ['10.0.0.', 'IPv4 field must have at least one digit (at ".")'],
    ['10.00.0.1', 'IPv4 field has octet with leading zero'],
    ['10.256.0.1', 'IPv4 field has value >255'],
    ['10.a.0.1', 'unexpected character (at "a.0.1")'],
    ['x', 'unable to parse IP'],
    ['%eth0', 'missing IPv6 address'],
    ['fe80::1%', 'zone must be a non-empty string'],
    ['1:2:3', 'address string too short'],
    ['12345::', 'each group must have 4 or less digits (at "12345::")'],
    ['1:g::', 'each colon-separated field must have at least one digit (at "g::")'],
    ['1:2g::', 'unexpected character, want colon (at "g::")'],
    ['1::2::3', 'multiple :: in address (at ":3")'],
    ['1:2:', 'colon must be followed by more characters (at ":")'],
    ['1:2:3:4:5:6:7:8:9', 'trailing garbage after address (at "9")'],
    ['1:2:3:4::5:6:7:8', 'the :: must expand to at least one field of zeros'],
    ['1:1.2.3.4', 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2'],
    ['::1:2:3:4:5:6:7:1.2.3.4', 'too many hex fields to fit an embedded IPv4 at the end of the'],
    ['::1.2.3', 'IPv4 address too short'],
    [':::', 'each colon-separated field must have at least one digit (at ":")'],
  ])('%s: %s', (text, problem) => {
    expect(() => run(`ip(${JSON.stringify(text)})`)).toThrow(
      `${JSON.stringify(text)}): ${problem}`,
    );
  });
});

describe('constants', () => {
  const costOf = (source: string) => {
    const variables = new Map<string, Type>([
      ['x', dynType],
      ['m', dynType],
      ['s', stringType],
    ]);
    const program = compile(source, { functions: standardFunctions(), variables }).program();
    const values = new Map<string, Value>([
      ['x', 'a'],
      ['m', run("{'a': {'b': 1}}")],
      ['s', 'a'],
    ]);
    return program.run(values, 1_000_000).cost;
  };

  test.each([
    ["x in ['a', 'b', 'c']", 1],
    ['1 in [dyn(1.0), dyn(2u)]', 0],
    ['x in [dyn(null), dyn(1.5)]', 1],
    ['x in []', 0],
    ['1 / 0 in []', 0],
    ['1 / 0 == 2 / x || true', 1 + 1 + 1 + 1],
    ['(s + string(1 / 0)).size() == x || true', 1 + 1 + 1 + 1 + 1 + 1 + 1],
    ['1 / 0 in [x, x, x] || true', 1 + 3 + 10 + 3],
    ['1 / 0 in dyn([x, x, x]) || true', 1 + 3 + 10 + 1 + 1],
    ["'abc'.substring(1 / 0, size(x)) == s || true", 1 + 1 + 1],
    ["string(1 / 0).matches('a+') || true", 1 + 1],
    ['[1 / 0, size(x)].size() == 1 || true', 1 + 10 + 1 + 1],
    ["x in [dyn('a'), dyn([1])]", 3],
    ['[x] == ["a"]', 12],
    ["['a', 'b'].size() == 2", 2],
    ['[x].size() == 1', 13],
    ["{'a': [1], 'b': [2]}.size() == 2", 2],
    ['{x: 1}.size() == 1', 33],
    ['int(string(1)) == 1', 1],
    ["x + x == 'aa'", 2 + 1 + 1],
    ["x.contains('b')", 1 + 1],
    ["x.split('') == [x, x]", 1 + 1 + 12 + 1],
    ["x.lowerAscii() == 'a'", 1 + 1 + 1],
    ['[x, x].isSorted()', 12],
    ["dyn('a') == type('a')", 1],
  ])('%s costs %i', (source, cost) => {
    expect(costOf(source)).toBe(cost);
  });

  const [ten, text] = ["'aaaaaaaaaa'", `'${'a'.repeat(91)}'`];
  test.each([
    ['x in dyn([s, s, s])', 1 + 10 + 3 + 1 + 1],
    [`dyn(${text}) + x == s`, 1 + 1 + 1 + 1],
    [`dyn(${text}) < dyn(${text})`, 1],
    [`size(string(dyn(bytes(s + ${text})))) == 92`, 1 + 10 + 10 + 1 + 1 + 1 + 1],
    [`${text} + x == s`, 1 + 10 + 1 + 1],
  ])('of several overloads, %s costs %i', (source, cost) => {
    expect(costOf(source)).toBe(cost);
  });

  test.each([
    [`x.matches('^[a-z]{1,253}$')`, 1 + 1 * 4],
    [`matches(x, '^[a-z]{1,253}$')`, 1 + 1],
    [`(x + ${text}).matches('a')`, 1 + 10 + 10],
    [`(x + ${text}).find('aaaaa') == 'a'`, 1 + 10 + 20 + 1],
    [`(x + ${text}).startsWith('a') && (x + ${text}).endsWith('a')`, 2 * (1 + 10 + 10)],
    [`(x + ${text}).contains(x)`, 1 + 10 + 1 + 10],
    [`(x + ${text}).contains(${text})`, 1 + 10 + 10 * 10],
    ["x.contains('')", 1],
    [`(x + ${text}).substring(90) == 'aa'`, 1 + 10 + 10 + 1],
    [`(x + ${text}).indexOf('a') == (x + ${text}).lastIndexOf('a')`, 2 * (1 + 10 + 9) + 1],
    ["x.indexOf('a') == 0", 1 + 0 + 1],
    [`(x + ${text}) > ${text} && (x + ${text}) >= ${text}`, 2 * 21],
    [`bytes(x + ${text}) >= bytes('a') && bytes(x) < bytes('b')`, 1 + 10 + 10 + 1 + 3],
    [`(x + ${text}).replace('a', ${ten}).size() == 920`, 1 + 10 + 19 + 2],
    [`[s, ${text}].join('-').size() == 93`, 1 + 10 + 19 + 2],
    ["'%s'.format([x]) == 'a'", 1 + 10 + 1 + 1],
    ['([x] + [x]).size() == 2', 2 * 11 + 1 + 2],
    ["[s, 'é', 'ééééé'].indexOf(s) == 0", 1 + 10 + (0 + 0 + 1) + 1 + 1],
    [`[[s, ${ten}], [${text}]].lastIndexOf([s]) == -1`, 1 + 10 + 10 + (1 + 9) + 11 + 1],
    ['[1, 2, size(x)].max() == 2 && [1, 2, size(x)].sum() == 4', 2 * (1 + 1 + 10 + 3 + 1)],
    ["[{'aaaaaaaaaa': 1}, {s: 1}].indexOf({}) == -1", 1 + 30 + 10 + (1 + 1 + 1) + 1],
    [`!format.dns1123Label().validate(x + ${text}).hasValue()`, 1 + 1 + 10 + 10 * 8 + 1 + 1],
    ['format.uri().validate(x).hasValue()', 1 + 1 + 276 + 1],
    [`isURL(x) || isIP(x + ${text}) || isCIDR(x + ${text})`, 2 + 2 * (1 + 10 + 10)],
    [`isQuantity(x + ${text})`, 1 + 10 + 10],
    ["url('http://bbbbbbbbb.c/' + x).getPort() == ''", 1 + 2 + 2 + 1],
    ["ip('10.0.0.1').family() == size(x)", 1 + 1 + 2 + 1],
    ["cidr(x == 'a' ? '10.0.0.0/8' : '').containsIP('10.0.0.1')", 2 + 1 + 1 + 1],
    ["cidr(x == 'a' ? '10.0.0.0/8' : '').containsCIDR('10.0.0.0/16')", 2 + 1 + 1 + 2 + 2],
    ["sets.equivalent([s, 'b'], ['c'])", 1 + 10 + 1 + 2 * 2],
    ["ip('::1') != ip('::2')", 1 + 1 + 2],
    ["ip('::1') == ip('::2') || ip('10.0.0.1') != ip('10.0.0.2')", 1 + 1 + 1 + 1 + 1 + 1],
    ["cidr('::/127') != cidr('::/126')", 1 + 1 + 2],
    [`(s + '${'😀'.repeat(9)}').size() == 10`, 1 + 1 + 1 + 1],
    ["[s, 'b'].map(v, timestamp('2024-01-01T00:00:00Z'))", 1 + 10 + 1 + 2 * 2],
    ["[s, 'b'].map(v, v == 'b', 1)", 1 + 10 + 1 + 2 * 2 + 2],
    ['[s, s].transformMap(i, v, i + 1)', 2 + 10 + 1 + 2 * (2 + 3)],
    ["[s, s].transformMapEntry(i, v, i > 0, {'a': 1})", 2 + 10 + 1 + 2 * 2 + 2],
    ["m[?'b']", 1],
    ["m[?'a'][?'b']", 3],
    ["m.?b['a']", 1],
    ['m.?b.a.b', 1],
    [`[s, '${'😀'.repeat(9)}'].join().split('').size() == 10`, 1 + 10 + 2 + 2 + 1 + 1],
  ])('by size, %s costs %i', (source, cost) => {
    expect(costOf(source)).toBe(cost);
  });

  test.each([
    ['m.a.b == 1', 1 + 2 + 1],
    ['m.a["b"] == 1', 1 + 2 + 1],
    ['m[x].b == 1', 1 + 2 + 1],
    ['m[string(x)].b == 1', 1 + 2 + 1 + 2],
    ['has(m.a.b)', 2],
    ['has(dyn(m).a)', 2 + 1],
    ['m.?a.?b.hasValue()', 1 + 2 + 1],
    ['m.?z.?b.hasValue()', 1 + 1],
    ['dyn(m).a.b == 1', 2 + 1 + 2 + 1],
    ['[1][0] == 1', 1 + 1 + 1],
    ['(true ? m.a.b : 2) == 1', 2 + 1],
    ['(true ? m.a : m).b == 1', 2 + 1],
    ['(true ? x : x) == x', 1 + 1],
    ['(true ? m.a.b + 1 : 2) == 2', 3 + 1 + 1],
  ])('the attributes of %s cost %i', (source, cost) => {
    expect(costOf(source)).toBe(cost);
  });

  test.each([
    ['[x].all(y, y == x)', 11 + 3 + 3 + 1],
    ['[x, x].all(y, y != x)', 12 + 3 + 3 + 2 + 1],
    ['[x].exists(y, y == x)', 11 + 4 + 3 + 1],
    ['[x, x].exists(y, y == x)', 12 + 4 + 3 + 3 + 1],
    ['[x].exists_one(y, y == x)', 11 + 3 + 2 + 2],
    ['[x].map(y, y).size() == 1', 11 + 12 + 1 + 1 + 2],
    ['[x].map(y, true, y).size() == 1', 11 + 12 + 1 + 1 + 2],
    ['[x].filter(y, y == x).size() == 1', 11 + 3 + 13 + 1 + 2],
    ['[x].filter(y, false).size() == 0', 11 + 1 + 2],
    ["{'a': 1}.all(k, k == 'a')", 3 + 2 + 1],
    ['[x].map(y, y) == [x]', 11 + 12 + 1 + 1 + 1 + 11],
    ['x in [x, x]', 13 + 2],
    ['optional.none().optMap(y, y)', 1 + 1 + 1],
    // The target is evaluated again where the variable is read first.
    ['optional.of(1).optMap(y, y + y)', 1 + 1 + (1 + 1) + 1 + 1 + 1 + 1],
    ['optional.of(1).optMap(y, 2)', 1 + 1 + 1],
    ['optional.of(1).optMap(y, [1, 2].map(z, y))', 1 + 1 + (1 + 1) + 12 + 12 + 1 + 1 + 1 + 1],
    ['optional.of(1).optFlatMap(y, optional.of(y))', 1 + 1 + (1 + 1) + 1 + 1],
    ['optional.none()[1 / 0]', 1 + 1],
    ["optional.none()[['a'][0]]", 1 + 1],
    ["dyn(optional.none())[?['a'].map(y, y)[0]]", 1 + 1 + 1],
    ["has(optional.of({'a': 1}).b)", 1],
  ])('the macro %s costs %i', (source, cost) => {
    expect(costOf(source)).toBe(cost);
  });

  test.each([
    ['int(dyn(null))', 'no such overload: int(null_type)'],
    ['bool(dyn(duration("1s")))', 'no such overload: bool(google.protobuf.Duration)'],
    ['double(dyn([]))', 'no such overload: double(list)'],
    ['string(dyn(string))', 'no such overload: string(type)'],
    ['{int: 1}[int]', 'invalid qualifier type: *types.Type'],
    ["{duration('1s'): 1}[duration('1s')]", 'invalid qualifier type: types.Duration'],
  ])('%s fails before it runs: %s', (source, message) => {
    const expression = compile(source, { functions: standardFunctions(), variables: new Map() });
    expect(() => expression.program()).toThrow(message);
  });

  test('a search in a constant list compares numbers of all types', () => {
    expect(run('x in [1, 2] && !(x in [3u]) && x in [1u]', { x: 1 })).toBe(true);
    expect(run('x in [1.0] && !(x in [1.5])', { x: 1n })).toBe(true);
    expect(run('x in [5.5] && !(x in [5])', { x: 5.5 })).toBe(true);
    expect(run("!(double('NaN') in [double('NaN')]) && !(x in ['a'])", { x: 'abc' })).toBe(true);
    expect(run("x in [null] && !(x in ['null'])", { x: null })).toBe(true);
  });
});

describe('invalid expressions', () => {
  test.each([
    ['x == 1', "1:1: undeclared reference to 'x' (in container '')"],
    ['[1].filter(x, x)', "overload for '_?_:_' applied to '(int, list(int), list(int))'"],
    ["[1].map(x, x, 'a')", "overload for '_?_:_' applied to '(int, list(string), list(string))'"],
    ['[1].exists_one(x, x)', "overload for '_?_:_' applied to '(int, int, int)'"],
    [
      "[1]['a'] == 1",
      "1:4: found no matching overload for '_[_]' applied to '(list(int), string)'",
    ],
    ['[1][0u] == 1', "1:4: found no matching overload for '_[_]' applied to '(list(int), uint)'"],
    ["1 == 'a'", "1:3: found no matching overload for '_==_' applied to '(int, string)'"],
    ['true && 1', "1:9: expected type 'bool' but found 'int'"],
    ["[1].all(x, 'a')", "1:12: expected type 'bool' but found 'string'"],
    ['[1, 2u]', "1:5: expected type 'int' but found 'uint'"],
    ["'a'.nope()", "1:9: undeclared reference to 'nope' (in container '')"],
    ['.nope(1)', "1:6: undeclared reference to '.nope' (in container '')"],
    [
      "dyn(1).optMap(w, w + 1 + 'a')",
      "1:24: found no matching overload for '_+_' applied to '(int, string)'",
    ],
    ['1.all(x, true)', "1:1: expression of type 'int' cannot be range of a comprehension"],
    ['[?1]', "1:3: expected type 'optional_type(int)' but found 'int'"],
    ['[?1.5[?0]]', "1:6: expected type 'optional_type(!error!)' but found '!error!'"],
    ['[] || false', "1:1: expected type 'bool' but found 'list(_var0)'"],
    ['([1].map(x, x) == [1]) && []', "1:27: expected type 'bool' but found 'list(_var3)'"],
    ['{?"a": []}', "1:8: expected type 'optional_type(list(_var0))' but found 'list(_var0)'"],
    ['optional.none().all(x, true)', "1:14: expression of type 'optional_type(_var0)' cannot be"],
    [
      'optional.of(1).optFlatMap(v, optional.none()).all(x, true)',
      "1:26: expression of type 'optional_type(_var6)' cannot be",
    ],
    [
      '1 + type([1]["a"])',
      /overload for '_\+_' applied to '\(int, type\(!error!\)\)'[^E]*ERROR: <input>:1:13: found/,
    ],
    ["timestamp('soon')", '1:11: invalid timestamp argument'],
    ["'a'.matches('(')", '1:13: invalid matches argument'],
    ['--9223372036854775808', '1:3: invalid int literal'],
    [
      'optional.of(1).optFlatMap(v, v > 1)',
      "1:26: found no matching overload for '_?_:_' applied to '(bool, bool, optional_type(dyn))'",
    ],
    ['1.optMap(v, v)', "1:9: found no matching overload for 'value' applied to 'int.()'"],
    [
      'optional.of(int(true)).optMap(v, v)',
      /1:16: found no matching overload for 'int'[^E]*ERROR: <input>:1:16: found no matching/,
    ],
    ['1 +', '1:4: Syntax error'],
    ['a.b.c(', '1:7: Syntax error'],
    ['[1].all(1, true)', '1:9: argument must be a simple name'],
    ['[1].map(a.b, true)', '1:10: argument is not an identifier'],
    ['optional.of(1).optMap(1, 1)', 'optMap() variable name must be a simple identifier'],
    ['[1].all(__result__, true)', '1:9: iteration variable overwrites accumulator variable'],
    ['has(1)', '1:5: invalid argument to has() macro'],
    ['has({}.?a)', '1:7: invalid argument to has() macro'],
    ['1e400', '1:1: invalid double literal'],
    ['1.0 + -1e999', '1:7: invalid double literal'],
    ['-9223372036854775809', '1:1: invalid int literal'],
    [`-${'9'.repeat(40)}`, '1:1: invalid int literal'],
    [`${'9'.repeat(40)}u`, '1:1: invalid uint literal'],
    ['0X1F', '1:2: Syntax error'],
    ['duration(5)', '1:10: invalid duration argument'],
    ["'%z'.format([])", 'index 0 out of range'],
    ["'%'.format([])", 'unexpected end of string'],
    [
      "[1, '%'.format([2])]",
      /1:15: expected type 'int' but found 'string'[^E]*ERROR: <input>:1:15: unexpected end/,
    ],
    [
      "'%.f'.format([1.0])",
      'parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": ',
    ],
    ["'%.5'.format([1.0])", 'parsing precision: could not find end of precision specifier'],
    [
      "'%d'.format(['%'.format([1])]) == ''",
      /1:24: unexpected end of string[^E]*ERROR: <input>:1:24: error during formatting/,
    ],
    ['nope.a.startsWith(1)', "overload for 'startsWith' applied to 'dyn.(int)'"],
    ['(1).a.startsWith(1)', "overload for 'startsWith' applied to 'dyn.(int)'"],
    [
      ' '.repeat(100_001),
      /^ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000$/,
    ],
    ["'\\z'", 'Syntax error'],
    ['self.while(', 'Syntax error'],
    ['self.true', "1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"],
    ['[,,]', 'Syntax error'],
    ['9223372036854775808', 'invalid int literal'],
    [
      `${'('.repeat(300)}1${')'.repeat(300)}`,
      /^ERROR: <input>:-1:0: expression recursion limit exceeded: 250$/,
    ],
    [Array.from({ length: 5000 }, () => '1').join('+'), 'expression recursion limit exceeded'],
  ])('$0: $1', (source, message) => {
    expect(() => compile(source, { functions: standardFunctions(), variables: new Map() })).toThrow(
      message,
    );
  });

  test('characters outside ASCII have wide dots and a wide caret', () => {
    const variables = new Map([['self', boolType]]);
    const compiled = () => compile("'é' + 1 == 'ü'", { functions: standardFunctions(), variables });
    expect(compiled).toThrow("\n | 'é' + 1 == 'ü'\n | .\uff0e..^");
    const long = `self && 'a'${' '.repeat(16_400)}`;
    const cut = () => compile(long, { functions: standardFunctions(), variables });
    expect(cut).toThrow(/found 'string'$/);
  });

  test('the position counts characters and is shown with a caret', () => {
    const variables = new Map([['self', boolType]]);
    expect(() =>
      compile("'😀' == ''\n  && selff", { functions: standardFunctions(), variables }),
    ).toThrow(
      "ERROR: <input>:2:6: undeclared reference to 'selff' (in container '')\n |   && selff\n | .....^",
    );
  });
});
