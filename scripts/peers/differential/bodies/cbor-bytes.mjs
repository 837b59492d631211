// Bodies of CBOR, with odd items.
import { createMarker } from './places.mjs';
import { kindOf, spellings } from './scalars.mjs';

const head = (type, argument, info) => {
  const value = BigInt(argument);
  const lead = type << 5;
  if (info === undefined ? value < 24n : info < 24) return Buffer.from([lead | Number(value)]);
  const width = info ?? (value < 256n ? 24 : value < 65536n ? 25 : value < 2n ** 32n ? 26 : 27);
  const bytes = Buffer.alloc(9);
  bytes[0] = lead | width;
  const size = 2 ** (width - 24);
  let rest = value;
  for (let at = size; at > 0; at--) {
    bytes[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes.subarray(0, size + 1);
};
const float = (value) => {
  const bytes = Buffer.alloc(9, 0xfb);
  bytes.writeDoubleBE(value, 1);
  return bytes;
};
const textItem = (text) => Buffer.concat([head(3, Buffer.byteLength(text)), Buffer.from(text)]);
const byteItem = (text) => Buffer.concat([head(2, Buffer.byteLength(text)), Buffer.from(text)]);
const tagged = (tag, item) => Buffer.concat([head(6, tag), item]);
const hex = (text) => Buffer.from(text, 'hex');

const odd = {
  integers: [
    head(0, 0),
    head(0, 1),
    head(0, 1, 24),
    head(0, 1, 27),
    head(0, 2n ** 31n),
    head(0, 2n ** 63n - 1n),
    head(0, 2n ** 63n),
    head(0, 2n ** 64n - 1n),
    head(1, 0),
    head(1, 2n ** 31n),
    head(1, 2n ** 63n - 1n),
    head(1, 2n ** 63n),
    head(1, 2n ** 64n - 1n),
    hex('f93c00'),
    hex('fa3f800000'),
    float(1),
    float(1.5),
    float(-0),
    float(1e300),
    float(Number.NaN),
    float(Number.POSITIVE_INFINITY),
    hex('f97e00'),
    hex('f97c00'),
    hex('f90001'),
    float(2 ** 53),
    float(2 ** 63),
    hex('c24101'),
    hex('c34101'),
    hex('c4820101'),
    hex('c5820101'),
  ],
  simple: [
    hex('f4'),
    hex('f5'),
    hex('f6'),
    hex('f7'),
    hex('e0'),
    hex('f3'),
    hex('f814'),
    hex('f820'),
    hex('f8ff'),
    hex('fc'),
    hex('fd'),
    hex('fe'),
    hex('ff'),
    hex('1c'),
    hex('1f'),
    hex('3f'),
    hex('df'),
  ],
  strings: [
    textItem('a'),
    byteItem('a'),
    textItem(''),
    byteItem(''),
    hex('7f6161ff'),
    hex('5f4161ff'),
    hex('7fff'),
    hex('7f4161ff'),
    hex('7f7f6161ffff'),
    hex('61ff'),
    hex('41ff'),
    hex('62c328'),
    hex('63eda080'),
    hex('7f61c361a9ff'),
    textItem('\u0000'),
    hex('7b7fffffffffffffff'),
    hex('7bffffffffffffffff'),
    tagged(21, byteItem('a')),
    tagged(22, byteItem('a')),
    tagged(23, byteItem('ab')),
    tagged(24, byteItem('a')),
    tagged(32, textItem('a')),
    tagged(55799, textItem('a')),
    tagged(0, textItem('2024-01-02T03:04:05Z')),
    tagged(1, head(0, 1700000000)),
    tagged(1, float(1700000000.5)),
    tagged(0, head(0, 1)),
    tagged(1, textItem('a')),
    tagged(999, textItem('a')),
    tagged(22, textItem('a')),
    byteItem('YQ=='),
    textItem('YQ=='),
    tagged(21, tagged(22, byteItem('a'))),
    tagged(1, head(0, 2n ** 63n)),
    tagged(1, head(1, 62135596800)),
    tagged(0, textItem('2024-01-02')),
    head(6, 1),
  ],
  containers: [
    hex('80'),
    hex('a0'),
    hex('9fff'),
    hex('bfff'),
    hex('9f01ff'),
    hex('bf616101ff'),
    hex('a2616101616102'),
    hex('a2616101416102'),
    hex('a10101'),
    hex('a1f601'),
    hex('a1f501'),
    hex('a1800'),
    hex('a18001'),
    hex('a1a001'),
    hex('a12001'),
    hex('a1f93c0001'),
    hex('bf6161ff'),
    hex('8101'),
    hex('9a00000401'),
    hex('9b8000000000000000'),
    hex('b9040101'),
    hex('81f6'),
    hex('a16161f6'),
    hex('a160f6'),
    hex('8181818180'),
    tagged(55799, hex('a0')),
    hex('a161ff01'),
    hex('a141ff01'),
    hex('a1d9d9f7616101'),
    hex('a1c1616101'),
    hex('a24161014161f6'),
  ],
};

/**
 * @param options.random draws (see ../random.mjs)
 * @param options.mutator see ../mutate.mjs
 * @returns `cborBody(object, schema)`: the bytes of an object, changed at random
 */
export function createCborBodies({ random, mutator }) {
  const { mark } = createMarker({ random, mutator });

  function oddItem({ schema, name, before }) {
    const kind = kindOf(schema, name);
    const group =
      kind === 'numbers' ? 'integers' : ['anything'].includes(kind) ? 'containers' : 'strings';
    if (random.chance(0.3) && kind !== 'numbers' && kind !== 'anything') {
      const text = random.pick(spellings[kind]).replace(/^"(.*)"$/, '$1');
      return random.pick([textItem, byteItem])(text);
    }
    if (random.chance(0.1) && before !== undefined) return item(before, new Map());
    return random.pick(odd[random.chance(0.6) ? group : random.pick(Object.keys(odd))]);
  }

  const string = (text) => (random.chance(0.5) ? textItem(text) : byteItem(text));

  function item(value, marks) {
    if (typeof value === 'string') return marks.get(value) ?? string(value);
    if (typeof value === 'number') {
      if (!Number.isInteger(value)) return float(value);
      return value < 0 ? head(1, -1 - value) : head(0, value);
    }
    if (value === null) return hex('f6');
    if (typeof value === 'boolean') return hex(value ? 'f5' : 'f4');
    const isList = Array.isArray(value);
    const members = isList ? value : Object.entries(value);
    const parts = members.map((member) =>
      isList ? item(member, marks) : Buffer.concat([key(member[0]), item(member[1], marks)]),
    );
    if (!isList && random.chance(0.01)) parts.push(oddMember(parts));
    if (random.chance(0.1)) return Buffer.concat([hex(isList ? '9f' : 'bf'), ...parts, hex('ff')]);
    return Buffer.concat([head(isList ? 4 : 5, parts.length), ...parts]);
  }

  const key = (name) => (random.chance(0.005) ? string(name.toUpperCase()) : string(name));

  /** A member whose key is no text, unknown, or a duplicate. */
  const oddMember = (parts) =>
    random.pick([
      hex('0101'),
      hex('f601'),
      hex('8001'),
      hex('616101'),
      hex('6001'),
      hex('61ff01'),
      hex('f93c0001'),
      hex('2001'),
      hex('3bffffffffffffffff01'),
      hex('1bffffffffffffffff01'),
      hex('c1616101'),
      hex('d9d9f7616101'),
      hex('f501'),
      random.pick([...parts, hex('616101')]),
      random.pick([...parts, hex('616101')]),
    ]);

  const wholes = [
    hex(''),
    hex('f6'),
    hex('80'),
    hex('a0'),
    hex('d9d9f7'),
    hex('d9d9f7f6'),
    hex('01'),
    hex('6161'),
    hex('ff'),
    hex('bf'),
    hex('d9d9f7a0'),
    hex('a1646b696e6401'),
    hex('a1646b696e64f6'),
    hex('a1644b696e646158'),
    Buffer.from('{}'),
    hex('81a0'),
  ];

  return {
    cborBody(object, schema) {
      const { copy, texts } = mark(object, schema, oddItem);
      const body = item(copy, texts);
      const prefix = random.pick([
        hex(''),
        hex('d9d9f7'),
        hex('d9d9f7'),
        hex('d9d9f7d9d9f7'),
        hex('d82a'),
      ]);
      const whole = Buffer.concat([random.chance(0.95) ? hex('d9d9f7') : prefix, body]);
      const draw = random.below(30);
      if (draw === 0)
        return Buffer.concat([whole, random.pick([hex('00'), hex('f6'), hex('a0'), hex('ff')])]);
      if (draw === 1) return whole.subarray(0, random.below(whole.length));
      if (draw === 2) return random.pick(wholes);
      return whole;
    },
  };
}
