import { expect, test } from 'vitest';
import { parseGoUrl } from './go-url.ts';
import { strictAddressProblem } from './ip-address.ts';
import { parseGoTime } from './times.ts';
import {
  aggregateText,
  fieldErrorsText,
  goValue,
  type Problem,
  problemText,
  typeMetaStruct,
} from './wording.ts';

const table: readonly (readonly [Problem, string])[] = [
  [
    { code: 'misfit', what: 'string', type: 'int32', field: 'Deployment.spec.replicas' },
    'json: cannot unmarshal string into Go struct field Deployment.spec.replicas of type int32',
  ],
  [
    { code: 'misfit', what: 'number 1.5', type: 'int64' },
    'json: cannot unmarshal number 1.5 into Go value of type int64',
  ],
  [
    { code: 'misfit', what: 'array', type: typeMetaStruct },
    'json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
  ],
  [
    { code: 'misfit', format: 'cbor', what: 'UTF-8 text string', type: 'int32', field: 'Pod.spec' },
    'cbor: cannot unmarshal UTF-8 text string into Go struct field Pod.spec of type int32',
  ],
  [
    { code: 'number', parser: 'Atoi', text: 'x"', problem: 'syntax' },
    'strconv.Atoi: parsing "x\\"": invalid syntax',
  ],
  [
    { code: 'number', parser: 'ParseUint', text: '99999999999999999999', problem: 'range' },
    'strconv.ParseUint: parsing "99999999999999999999": value out of range',
  ],
  [
    { code: 'number', parser: 'ParseInt', text: '\u0001', problem: 'syntax' },
    'strconv.ParseInt: parsing "\\x01": invalid syntax',
  ],
  [{ code: 'base64', at: 3 }, 'illegal base64 data at input byte 3'],
  [{ code: 'duration', text: '5', problem: 'no unit' }, 'time: missing unit in duration "5"'],
  [
    { code: 'duration', text: '5q', problem: { unit: 'q' } },
    'time: unknown unit "q" in duration "5q"',
  ],
  [{ code: 'duration', text: '', problem: 'syntax' }, 'time: invalid duration ""'],
  [{ code: 'unknown field', path: 'spec.tpyo' }, 'unknown field "spec.tpyo"'],
  [{ code: 'duplicate field', path: 'data["a"]' }, 'duplicate field "data[\\"a\\"]"'],
  [
    { code: 'repeated keys', lines: ['line 2: key "a" already set in map'] },
    'yaml: unmarshal errors:\n  line 2: key "a" already set in map',
  ],
  [
    { code: 'strict', problems: ['unknown field "a"', 'duplicate field "b"'] },
    'strict decoding error: unknown field "a", duplicate field "b"',
  ],
  [
    { code: 'no type', why: 'unexpected end of JSON input' },
    "couldn't get version/kind; json parse error: unexpected end of JSON input",
  ],
  [
    { code: 'unfit body', kind: 'Pot', version: 'v1', expected: 'Pod', why: 'it is odd' },
    'Pot in version "v1" cannot be handled as a Pod: it is odd',
  ],
];

test.each(table)('%j', (problem, text) => {
  expect(problemText(problem)).toBe(text);
});

test.each<[string, (text: string) => string]>([
  [
    'number',
    (text) => problemText({ code: 'number', parser: 'ParseInt', text, problem: 'syntax' }),
  ],
  ['duration', (text) => problemText({ code: 'duration', text, problem: 'syntax' })],
  ['time', (text) => JSON.stringify(parseGoTime(text))],
  ['address', (text) => strictAddressProblem(text) ?? ''],
  ['URL', (text) => String(parseGoUrl(text))],
])('TRUST-3: only the start of a long %s is shown, and its rest is not escaped', (_, textOf) => {
  const shown = textOf('\u0001'.repeat(1_000_000));
  expect(shown).toMatch(/"(\\+x01)+\.\.\. \(\d+ more characters\)/);
  expect(shown.length).toBeLessThan(100_000);
});

test.each<[string[], string]>([
  [[], ''],
  [['a'], 'a'],
  [['a', 'b'], '[a, b]'],
  [['a', 'a'], 'a'],
  [['b', 'a', 'b'], '[b, a]'],
])('the errors %j are one text', (messages, text) => {
  expect(aggregateText(messages)).toBe(text);
});

test('field errors are joined with their fields', () => {
  const error = (field: string) => ({ type: 'FieldValueInvalid', field, message: 'no' }) as const;
  expect(fieldErrorsText([error('a')])).toBe('a: no');
  expect(fieldErrorsText([error('a'), error('b'), error('a')])).toBe('[a: no, b: no]');
});

test.each([
  [[1], 'array'],
  [true, 'bool'],
  [1, 'number'],
  [2n ** 63n, 'number'],
  ['', 'string'],
  [{}, 'object'],
])('Go calls %s %s', (value, name) => {
  expect(goValue(value)).toBe(name);
});
