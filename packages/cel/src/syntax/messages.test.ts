import { describe, expect, test } from 'vitest';
import { compile } from '../compile.ts';
import { standardFunctions } from '../types/standard-functions.ts';
import { dynType } from '../types/types.ts';
import type { Value } from '../values.ts';

const environment = { functions: standardFunctions(), variables: new Map([['x', dynType]]) };

function run(source: string, x: Value = null): Value {
  return compile(source, environment)
    .program()
    .run(new Map([['x', x]]), 1_000_000).value;
}

const named = (text: string) => text.replaceAll('@', 'google.protobuf.');

describe('messages become the values that they represent', () => {
  test.each([
    '@Int64Value{value: 7} == 7 && @Int64Value{} == 0 && @Int64Value{} != null',
    "@StringValue{value: 'a'} + 'b' == 'ab' && @StringValue{} == ''",
    '@BoolValue{value: true} ? true : false',
    '@UInt32Value{value: 3u} + 1u == 4u && @UInt64Value{} == 0u && @Int32Value{} == 0',
    "@BytesValue{value: b'a'} == b'a' && @BytesValue{}.size() == 0",
    '@DoubleValue{value: 1.333} == 1.333 && @FloatValue{value: 1.333} != 1.333',
    '@Value{} == null && @Value{null_value: @NullValue.NULL_VALUE} == null',
    "@Value{number_value: 2.0} == 2.0 && @Value{string_value: 'a'} == 'a'",
    "@Value{struct_value: {'a': [1, 2]}} == {'a': [1.0, 2.0]}",
    '@ListValue{values: [9007199254740993]} == ["9007199254740993"] && @ListValue{} == []',
    "@ListValue{values: [duration('90s')]} == ['90s'] && @ListValue{values: [b'ab']} == ['YWI=']",
    "@Struct{fields: {'a': null}} == {'a': null} && @Struct{} == {}",
    "@Timestamp{seconds: 1, nanos: 500000000} == timestamp('1970-01-01T00:00:01.5Z')",
    "@Duration{seconds: -1} == duration('-1s') && .@Duration{} == duration('0s')",
    '@Empty{} == @Empty{} && type(@Empty{}) == @Empty',
    'type(@Int64Value{}) == int && type(@Timestamp{}) == @Timestamp',
    '@Int64Value{?value: optional.none()} == 0 && @Int64Value{?value: optional.of(1)} == 1',
  ])('%s', (source) => {
    expect(run(named(source))).toBe(true);
  });
});

describe('invalid expressions', () => {
  test.each([
    ["@Int64Value{value: 'a'}", "1:33: expected type of field 'value' is 'int' but provided"],
    ['@Int64Value{values: 1}', "1:34: undefined field 'values'"],
    ['@Int64Value{value: 1}.value', "type 'wrapper(int)' does not support field selection"],
    ["@Int64Value{} == ''", "no matching overload for '_==_' applied to '(wrapper(int), string)'"],
    ['@ListValue{}.values', "type 'list(dyn)' does not support field selection"],
    ['@Empty{}.value', "undefined field 'value'"],
    ['@FieldMask{}', "undeclared reference to 'google.protobuf.FieldMask'"],
    ['Nothing{a: Nothing{}}', "1:8: undeclared reference to 'Nothing' (in container '')"],
    ['int{}', "'int' is not a message type"],
  ])('%s: %s', (source, message) => {
    expect(() => run(named(source))).toThrow(message);
  });

  test('the content of an unknown message is not checked', () => {
    expect(() => run('Nothing{a: unknown}')).not.toThrow("'unknown'");
  });
});

describe('failing expressions', () => {
  const at = (field: string) => `field type conversion error for google.protobuf.${field}`;
  test.each([
    ['@Int32Value{value: 2147483648}', `${at('Int32Value.value')} value type: integer overflow`],
    ['@UInt32Value{value: 4294967296u}', 'unsigned integer overflow'],
    ["@Int64Value{value: dyn('a')}", "unsupported native conversion from string to 'int64'"],
    ['@BoolValue{value: dyn(1)}', "unsupported type conversion from 'int' to bool"],
    ['@Struct{fields: dyn({1: 2})}', at('Struct.fields')],
    ['@Value{number_value: 1.5}.number_value', 'no such key: number_value'],
    ['@Struct{}.fields', 'no such key: fields'],
    ['@Any{}', 'unsupported conversion to ref.Val: (*dynamicpb.Message)'],
    [
      "@Any{type_url: 'a/b', value: b'\\001\"'}",
      '(*dynamicpb.Message)type_url:"a/b"  value:"\\x01\\""',
    ],
    ['type(x) == @Struct', 'reference to undefined type: google.protobuf.Struct'],
  ])('%s: %s', (source, message) => {
    expect(() => run(named(source))).toThrow(message);
  });

  test('copying a large value is charged', () => {
    const item = `[${'0,'.repeat(1000)}]`;
    const source = named(`[${`${item},`.repeat(20)}].all(i, @ListValue{values: i}.size() == 1000)`);
    const program = compile(source, environment).program();
    expect(program.run(new Map(), 1_000_000).cost).toBeGreaterThan(20 * 100);
    expect(() => program.run(new Map(), 1000)).toThrow('actual cost limit exceeded');
  });
});
