// Bodies of JSON with odd spellings.
import { bytesOf, oddCharacters, rawByte } from './bytes.mjs';
import { createMarker } from './places.mjs';
import { kindOf, spellings } from './scalars.mjs';

const wholes = [
  '',
  ' ',
  '\n',
  'null',
  'true',
  '1',
  '"a"',
  '[]',
  '{}',
  '[{}]',
  '{',
  '}',
  '[',
  '{"a"',
  '{"a":',
  '\u0000',
  '\ufeff',
  '{"kind":null,"apiVersion":null}',
  '{"kind":1}',
  '{"apiVersion":[]}',
  '{"metadata":null}',
  '{"metadata":[]}',
  '{"Kind":"X"}',
  '{"apiVersion":"a/b/c"}',
  '{"apiVersion":"/"}',
  '{"apiVersion":"v1/"}',
  'nul',
  'nulll',
];
const endings = [
  '}',
  '{}',
  ' {}',
  'x',
  ',',
  ' null',
  '\u0000',
  '// x',
  '/* x */',
  '\n\n',
  '\t',
  '\f',
  '\u00a0',
  '\ufeff',
  '---',
  ']',
];
const beginnings = [
  '\ufeff',
  ' \n\t\r',
  '\f',
  '\v',
  '\u00a0',
  '// x\n',
  '/**/',
  '\u0000',
  rawByte(0xff),
  '---\n',
  '#\n',
];

/**
 * @param options.random draws (see ../random.mjs)
 * @param options.mutator see ../mutate.mjs
 * @returns `jsonBody(object, schema)`: bytes that are JSON, or nearly
 */
export function createJsonBodies({ random, mutator }) {
  const { mark } = createMarker({ random, mutator });

  function oddText({ schema, name, before }) {
    const kind = random.chance(0.75) ? kindOf(schema, name) : random.pick(Object.keys(spellings));
    const odd = random.pick(spellings[kind]);
    if (before === undefined || random.chance(0.8)) return odd;
    // Another value of the same member, which decodes to it again.
    return `${JSON.stringify(before)},${JSON.stringify(variant(name))}:${odd}`;
  }

  const variant = (name) => {
    const draw = random.below(6);
    if (draw === 0) return name.toUpperCase();
    if (draw === 1) return name.charAt(0).toUpperCase() + name.slice(1);
    if (draw === 2) return `${name}x`;
    if (draw === 3) return name.replace('k', '\u212a').replace('s', '\u017f');
    return name;
  };

  /** Renames a member of the text. */
  function rename(text) {
    const names = [...text.matchAll(/"([A-Za-z]+)":/g)];
    if (names.length === 0) return text;
    const { index, 0: whole, 1: name } = random.pick(names);
    const next = random.pick([
      variant(name),
      `${name} `,
      '',
      `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
    ]);
    const colon = random.pick([':', ' : ', '', '::', '=']);
    return `${text.slice(0, index)}"${next}"${colon}${text.slice(index + whole.length)}`;
  }

  /** Puts an odd character into one of the strings. */
  function intoString(text) {
    const places = [...text.matchAll(/"[^"\\]+"/g)];
    if (places.length === 0) return text;
    const { index, 0: whole } = random.pick(places);
    const at = index + 1 + random.below(whole.length - 1);
    return text.slice(0, at) + random.pick(oddCharacters) + text.slice(at);
  }

  const nested = (text) => {
    const depth = random.pick([10, 100, 10010]);
    const [open, close] = random.pick([
      ['[', ']'],
      ['{"a":', '}'],
    ]);
    const value = `${open.repeat(depth)}1${close.repeat(depth)}`;
    return `${text.slice(0, -1)},"nested":${value}}`;
  };

  const changes = [
    (text) => text,
    (text) => text,
    (text) => text,
    (text) => text,
    (text) => text,
    rename,
    rename,
    intoString,
    intoString,
    nested,
    (text) => text + random.pick(endings),
    (text) => random.pick(beginnings) + text,
    (text) => text.slice(0, random.below(text.length)),
    () => random.pick(wholes),
    (text) => text.replaceAll(',', ' ,\n ').replaceAll(':', '\t: '),
    (text) => text.replace(/[:,[\]{}"]/g, (character) => (random.chance(0.02) ? '' : character)),
    (text) => `${text.slice(0, -1)},${text.slice(1)}`,
    (text) => `${text.slice(0, -1)},"metadata":{"labels":{"again":"1"}}}`,
    (text) => `${text.slice(0, -1)},"Metadata":{"annotations":{"again":"1"}}}`,
  ];

  return {
    jsonText(object, schema) {
      const { copy, texts } = mark(object, schema, oddText);
      let text = JSON.stringify(copy);
      for (const [name, odd] of texts) text = text.replace(JSON.stringify(name), () => odd);
      return random.pick(changes)(text);
    },
    jsonBody(object, schema) {
      return bytesOf(this.jsonText(object, schema));
    },
  };
}
