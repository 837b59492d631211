// Bodies of protobuf, changed at random: a message is taken apart into its fields, whose bytes,
// order, and number change.
import { encodeMessage } from '@wheelhouse/codec';
import { schemaOfKind } from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import { bytesOf, oddCharacters } from './bytes.mjs';
import { spellings } from './scalars.mjs';

const varint = 0;
const fixed64 = 1;
const delimited = 2;
const groupStart = 3;
const groupEnd = 4;
const fixed32 = 5;

/** Encodes an integer modulo 2^64; `padding` adds bytes without a value. */
function varintBytes(value, padding = 0) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  } while (rest > 0n);
  for (let i = 0; i < padding; i++) bytes.push(0x80);
  bytes[bytes.length - 1] &= 0x7f;
  return Buffer.from(bytes);
}

const keyBytes = (number, wireType) => varintBytes((BigInt(number) << 3n) | BigInt(wireType));

/** The fields of a message, as far as bytes look like one; undefined if they do not. */
function fieldsOf(bytes) {
  const fields = [];
  let at = 0;
  const readVarint = () => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) return undefined;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return undefined;
  };
  while (at < bytes.length) {
    const key = readVarint();
    if (key === undefined) return undefined;
    const [number, wireType] = [Number(key >> 3n), Number(key & 7n)];
    if (number === 0 || number > 200) return undefined;
    if (wireType === varint) {
      const value = readVarint();
      if (value === undefined) return undefined;
      fields.push({ number, wireType, value: varintBytes(value) });
    } else if (wireType === delimited) {
      const length = readVarint();
      if (length === undefined || BigInt(at) + length > BigInt(bytes.length)) return undefined;
      const value = bytes.subarray(at, at + Number(length));
      at += Number(length);
      const inner = value.length > 0 ? fieldsOf(value) : undefined;
      fields.push({ number, wireType, value, inner });
    } else if (wireType === fixed64) {
      if (at + 8 > bytes.length) return undefined;
      fields.push({ number, wireType, value: bytes.subarray(at, at + 8) });
      at += 8;
    } else return undefined;
  }
  return fields;
}

function write(fields) {
  return Buffer.concat(
    fields.map((field) => {
      if (field.raw !== undefined) return field.raw;
      const { number, wireType, inner, lie = 0 } = field;
      const value = inner === undefined ? field.value : write(inner);
      const head = keyBytes(number, wireType);
      if (wireType !== delimited) return Buffer.concat([head, value]);
      return Buffer.concat([head, varintBytes(value.length + lie, field.padding), value]);
    }),
  );
}

/** All messages in a message, itself included. */
function messagesOf(fields, found = []) {
  found.push(fields);
  for (const { inner } of fields) if (inner !== undefined) messagesOf(inner, found);
  return found;
}

const integers = [
  0n,
  1n,
  2n,
  3n,
  127n,
  128n,
  65536n,
  2147483647n,
  2147483648n,
  4294967295n,
  4294967296n,
  4294967297n,
  9223372036854775807n,
  9223372036854775808n,
  -1n,
  -2n,
  -2147483648n,
  -2147483649n,
  253402300799n,
  253402300800n,
  -62135596800n,
  -62135596801n,
  1000000000n,
  999999999n,
];

/**
 * @param random draws (see ../random.mjs)
 * @returns `protobufBody(object)`: the bytes of an object in its envelope, changed at random
 */
export function createProtobufBodies(random) {
  const oddText = () => {
    const kind = random.pick(['times', 'quantities', 'durations', 'strings', 'anything']);
    const text = random.pick(spellings[kind]);
    return bytesOf(text.replace(/^"(.*)"$/, '$1'));
  };
  const odd = () => bytesOf(`a${random.pick(oddCharacters)}b`);
  const randomVarint = () => varintBytes(random.pick(integers), random.pick([0, 0, 0, 1, 2]));

  function unknownField() {
    const number = random.pick([100, 127, 1000, 536870911, 536870912, 0, 2147483647]);
    const wireType = random.below(8);
    if (wireType === varint) return { raw: Buffer.concat([keyBytes(number, 0), randomVarint()]) };
    if (wireType === fixed64)
      return { raw: Buffer.concat([keyBytes(number, 1), Buffer.alloc(8, 1)]) };
    if (wireType === fixed32)
      return { raw: Buffer.concat([keyBytes(number, 5), Buffer.alloc(4, 1)]) };
    if (wireType === delimited) return { number, wireType, value: oddText() };
    if (wireType === groupStart) return { raw: group(number) };
    return { raw: Buffer.concat([keyBytes(number, wireType), Buffer.from([1])]) };
  }

  function group(number) {
    const inside = random.pick([
      Buffer.alloc(0),
      write([{ number: 1, wireType: varint, value: varintBytes(1) }]),
      Buffer.concat([keyBytes(2, groupStart), keyBytes(2, groupEnd)]),
      Buffer.from([0x00, 0x01]),
    ]);
    const end = random.pick([keyBytes(number, groupEnd), keyBytes(7, groupEnd), Buffer.alloc(0)]);
    return Buffer.concat([keyBytes(number, groupStart), inside, end]);
  }

  /** Splits a message into two occurrences of its field. */
  function split(message, at) {
    const field = message[at];
    if (field.inner === undefined) return;
    const first = field.inner.filter(() => random.chance(0.5));
    const second = field.inner.filter((part) => !first.includes(part) || random.chance(0.2));
    message.splice(at, 1, { ...field, inner: first }, { ...field, inner: second });
  }

  const changes = [
    (message, at) => message.splice(random.below(message.length + 1), 0, message[at]),
    (message, at) =>
      message.splice(at, 0, { ...message[at], inner: undefined, value: otherValue(message[at]) }),
    (message, at) =>
      message.push({ ...message[at], inner: undefined, value: otherValue(message[at]) }),
    (message) => message.reverse(),
    (message) => message.sort(() => random.below(3) - 1),
    (message) => message.splice(random.below(message.length + 1), 0, unknownField()),
    (message) => message.splice(random.below(message.length + 1), 0, unknownField()),
    (message, at) => Object.assign(message[at], { wireType: random.below(8) }),
    (message, at) => Object.assign(message[at], { number: 1 + random.below(24) }),
    (message, at) => message.splice(at, 1),
    (message, at) => message.splice(at, 1),
    (message, at) => split(message, at),
    (message, at) => split(message, at),
    (message, at) =>
      Object.assign(message[at], { inner: undefined, value: otherValue(message[at]) }),
    (message, at) =>
      Object.assign(message[at], { inner: undefined, value: otherValue(message[at]) }),
    (message, at) => Object.assign(message[at], { inner: undefined, value: Buffer.alloc(0) }),
    (message, at) => Object.assign(message[at], { inner: undefined, value: odd() }),
    (message, at) => Object.assign(message[at], { padding: random.pick([1, 2, 4, 8, 9, 10]) }),
    (message, at) =>
      Object.assign(message[at], { lie: random.pick([-1, 1, 1000, -(2 ** 31), 2 ** 40]) }),
    (message) =>
      message.push({ number: 1 + random.below(30), wireType: varint, value: randomVarint() }),
    (message) =>
      message.push({ number: 1 + random.below(30), wireType: delimited, value: Buffer.alloc(0) }),
    (message) =>
      message.push({
        number: 1 + random.below(30),
        wireType: delimited,
        value: Buffer.from([10, 1, 97]),
      }),
    (message, at) => packed(message, at),
    (message) => message.splice(0),
  ];

  function packed(message, at) {
    const field = message[at];
    if (field.wireType !== varint) return;
    const value = Buffer.concat([field.value, random.pick([Buffer.alloc(0), randomVarint()])]);
    message[at] = { ...field, wireType: delimited, value };
  }

  function otherValue({ wireType, value = Buffer.alloc(1) }) {
    if (wireType === varint) return randomVarint();
    if (wireType !== delimited) return Buffer.alloc(value.length, random.below(256));
    return random.chance(0.7) ? oddText() : odd();
  }

  function change(fields) {
    const messages = messagesOf(fields).filter(({ length }) => length > 0);
    if (messages.length === 0) return;
    const message = random.pick(messages);
    random.pick(changes)(message, random.below(message.length));
  }

  function envelope(type, raw) {
    const text = (number, value) => ({ number, wireType: delimited, value: Buffer.from(value) });
    const inner = [text(1, type.apiVersion), text(2, type.kind)];
    const fields = [
      { number: 1, wireType: delimited, inner },
      { number: 2, wireType: delimited, value: raw },
      text(3, ''),
      text(4, ''),
    ];
    if (random.chance(0.85)) return fields;
    const other = [
      () =>
        (inner[1] = text(2, random.pick(['', 'Pod', 'configmap', 'Nothing', 'Status', 'List']))),
      () =>
        (inner[0] = text(
          1,
          random.pick(['', 'v2', 'apps/v1', 'a/b/c', '/', 'v1/', '/v1', 'none/v1']),
        )),
      () => inner.splice(random.below(2), 1),
      () => fields.splice(0, 1),
      () => fields.splice(1, 1),
      () => (fields[2] = text(3, random.pick(['gzip', 'x', '"']))),
      () =>
        (fields[3] = text(
          4,
          random.pick(['application/json', 'x', 'application/vnd.kubernetes.protobuf']),
        )),
      () => fields.push({ number: 2, wireType: delimited, value: Buffer.alloc(0) }),
      () => change(fields),
      () => change(fields),
    ];
    random.pick(other)();
    return fields;
  }

  return {
    /** @param object an object whose kind has a message, with its apiVersion and kind */
    protobufBody(object) {
      const { apiVersion, kind } = object;
      const schema = schemaOfKind(dialectOf('kubernetes'), { apiVersion, kind });
      if (schema === undefined) return undefined;
      const message = encodeMessage(schema, object);
      const fields = fieldsOf(message) ?? [];
      const count = random.pick([0, 1, 1, 1, 1, 2, 3]);
      for (let i = 0; i < count; i++) change(fields);
      const whole = Buffer.concat([
        Buffer.from('k8s\0'),
        write(envelope({ apiVersion, kind }, write(fields))),
      ]);
      if (random.chance(0.95)) return whole;
      return random.pick([
        () => whole.subarray(0, random.below(whole.length)),
        () => whole.subarray(4),
        () => Buffer.concat([whole, Buffer.from([random.below(256)])]),
        () => Buffer.concat([Buffer.from('K8s\0'), whole.subarray(4)]),
        () => Buffer.from('k8s\0'),
        () => Buffer.from(JSON.stringify(object)),
      ])();
    },
  };
}
