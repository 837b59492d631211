import { decodeYaml, YamlError } from '@wheelhouse/codec';
import type { JsonValue } from '@wheelhouse/machinery/browser';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { changesBetween, changesText, mergeChanges, pathText, threeWay } from './changes.ts';
import { printJson } from './json.ts';
import { contextAt } from './write/assist.ts';
import {
  fieldAt,
  highlight,
  linesOfFields,
  printYaml,
  readYaml,
  withResourceVersion,
} from './yaml.ts';

const text = `apiVersion: v1
metadata:
  labels:
    app.example.com/name: web
spec:
  containers:
  - name: one
    image: a
  - name: two
    ports: [{containerPort: 1}]
data: {"a b": x}
`;

describe('positions of fields', () => {
  test.each([
    ['metadata.labels.app.example.com/name', 4],
    ['metadata.labels[app.example.com/name]', 4],
    ['metadata.labels["app.example.com/name"]', 4],
    ['spec.containers[1].ports[0].containerPort', 10],
    ['.spec.containers[name="two"].ports', 10],
    ['spec.containers[0].image', 8],
    ['spec.containers[7].image', 6],
    ['spec.containers[0].nothing', 7],
    ['data[a b]', 11],
    ['nothing', 1],
    ['', 1],
  ])('CLIENT-4: %s is on line %i', (path, line) => {
    expect(linesOfFields(text)(path)).toBe(line);
  });

  test('CLIENT-4: the field at an offset is found', () => {
    const at = (wanted: string) => fieldAt(text, text.indexOf(wanted));
    expect(at('image')).toEqual(['spec', 'containers', 'image']);
    expect(at('one')).toEqual(['spec', 'containers', 'name']);
    expect(at('containerPort')).toEqual(['spec', 'containers', 'ports', 'containerPort']);
    expect(at('apiVersion')).toEqual(['apiVersion']);
    expect(fieldAt('', 0)).toEqual([]);
    expect(fieldAt('{[', 1)).toEqual([]);
  });

  test('CLIENT-4: any text is parsed or refused without throwing', () => {
    const written = fc.string({
      maxLength: 60,
      unit: fc.constantFrom(...'a1:-[]{}&*!|>"\'\n \t#,?<'),
    });
    fc.assert(
      fc.property(written, written, (typed, path) => {
        const read = readYaml(typed);
        expect(read.fault === undefined || read.fault.line >= 1).toBe(true);
        linesOfFields(typed)(path);
        fieldAt(typed, 3);
        withResourceVersion(typed, '1');
      }),
    );
    expect(readYaml('['.repeat(5000)).fault).toBeDefined();
    expect(readYaml('a: b # c\n\t\n').fault).toEqual({
      message: 'found character that cannot start any token',
      line: 2,
    });
  });
});

const { json } = fc.letrec<{ json: JsonValue }>((of) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    fc.integer(),
    fc.string({ unit: 'grapheme' }),
    fc.array(of('json'), { maxLength: 4 }),
    fc.dictionary(fc.string({ maxLength: 6 }), of('json'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

/** The value or the error of a text on the server. */
async function readByServer(text: string) {
  try {
    const { value, repeated } = await decodeYaml(Buffer.from(text));
    return repeated === undefined ? { value } : { fault: repeated[0] };
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return { fault: error.message };
  }
}

describe('one reader', () => {
  test.each([
    ['spec: {\na: 1,\n b: [\n1,\n2\n]}\n', { spec: { a: 1, b: [1, 2] } }],
    ['a: "x\ny"\n', { a: 'x y' }],
    ['a: [b,\n- 1]\n', 'did not find expected node content'],
    ['\ufeffa: 1\r\nb: |\r\n  x\r\n', { a: 1, b: 'x\n' }],
    ['a: \u0007\n', 'control characters are not allowed'],
    ['a: 1\n---\nb: 2\n', 'expected a single document in the stream'],
    ['a: {b: 1} c\n', 'did not find expected key'],
    ['a: 1\na: 2\n', 'key "a" already set in map'],
  ])('CLIENT-4: %j is read like on the server', async (text, expected) => {
    const read = readYaml(text);
    if (typeof expected === 'object') expect(read).toEqual({ value: expected });
    else expect(read.fault?.message).toBe(expected);
    await expect(readByServer(text)).resolves.toEqual(
      read.fault === undefined ? read : { fault: expect.stringContaining(read.fault.message) },
    );
  });

  test('CLIENT-4: any text is accepted or refused like on the server', async () => {
    const unit = fc.constantFrom(...'a1:-[]{}&*!|>"\'\n \t#,?<%');
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 40, unit }), async (typed) => {
        const { fault, ...read } = readYaml(typed);
        expect(await readByServer(typed)).toEqual(
          fault === undefined ? read : { fault: expect.stringContaining(fault.message) },
        );
      }),
    );
  });

  test('CLIENT-4: lines of fields are found behind flow lines further left', () => {
    const flow = 'spec: {\na: [\n1,\n2], b: 1\n}\nstatus:\n  c: 1\n';
    expect(linesOfFields(flow)('spec.b')).toBe(4);
    expect(linesOfFields(flow)('status.c')).toBe(7);
    expect(fieldAt(flow, flow.indexOf('  c:') + 2)).toEqual(['status', 'c']);
  });
});

describe('values', () => {
  test('CLIENT-4: printed text parses to the same value', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(readYaml(printYaml(value))).toEqual({ value });
        expect(JSON.parse(printJson(value))).toEqual(value);
      }),
    );
  });

  test('CLIENT-4: a resourceVersion is set in texts of any style', () => {
    const metadata = { name: 'x', resourceVersion: '27' };
    const set = (text: string) => readYaml(withResourceVersion(text, '27'));
    const flow = set(
      '# why\nkind: A\nmetadata: {name: x, resourceVersion: "1"}\ncount: 0x1f\nno:\n',
    );
    expect(flow).toEqual({ value: { kind: 'A', metadata, count: 31, false: null } });
    expect(set('metadata: &m {name: x}\nother: *m\n')).toEqual({
      value: { metadata, other: { name: 'x' } },
    });
    expect(set('metadata:\n')).toEqual({ value: { metadata: { resourceVersion: '27' } } });
    expect(withResourceVersion('- 1', '27')).toBe('- 1');
  });

  test('CLIENT-4: each change is listed once, and mine apply to theirs', () => {
    const base = {
      a: 1,
      list: [
        { name: 'x', v: 1 },
        { name: 'y', v: 1 },
      ],
      gone: true,
    };
    const mine = {
      a: 2,
      list: [
        { name: 'x', v: 2 },
        { name: 'y', v: 1 },
      ],
      gone: true,
    };
    const theirs = {
      a: 1,
      list: [
        { name: 'y', v: 3 },
        { name: 'x', v: 1 },
        { name: 'z', v: 1 },
      ],
    };
    const changed = changesBetween(base, mine).map(({ path }) => pathText(path));
    expect(changed).toEqual(['a', 'list[name="x"].v']);
    expect(mergeChanges({ base, mine, theirs })).toEqual({
      a: 2,
      list: [
        { name: 'y', v: 3 },
        { name: 'x', v: 2 },
        { name: 'z', v: 1 },
      ],
    });
    const other = { ...theirs, a: 5 };
    expect(mergeChanges({ base, mine, theirs: other })).toBeUndefined();
    // The same change by both is not a conflict.
    expect(threeWay({ base, mine, theirs: { ...theirs, a: 2 } }).map(({ by }) => by)).not.toContain(
      'both',
    );
  });

  test('CLIENT-4: the order of named items is a change, which merging keeps', () => {
    const list = (...names: string[]) => ({ list: names.map((name) => ({ name })) });
    const base = list('a', 'b');
    const texts = (after: JsonValue) => changesText(changesBetween(base, after));
    expect(texts(list('b', 'a'))).toBe('-list (order): ["a","b"]\n+list (order): ["b","a"]\n');
    expect(texts(list('a', 'b', 'c'))).toBe('+list[name="c"]: {"name":"c"}\n');
    const merged = (mine: JsonValue, theirs: JsonValue) => mergeChanges({ base, mine, theirs });
    expect(merged(list('b', 'a'), list('a', 'b', 'c'))).toEqual(list('b', 'a', 'c'));
    expect(merged(list('first', 'a', 'b'), list('a', 'b', 'c'))).toEqual(
      list('first', 'a', 'b', 'c'),
    );
    expect(merged(list('b'), list('a', 'b', 'c'))).toEqual(list('b', 'c'));
    // Both have moved items.
    expect(merged(list('b', 'a'), list('c', 'a', 'b'))).toBeUndefined();
    // An item without a name makes mine a list by index, which theirs must not be merged into.
    expect(
      merged({ list: [{ name: 'a' }, { name: 'b' }, 1] }, list('a', 'b', 'c')),
    ).toBeUndefined();
  });

  test('CLIENT-4: thousands of changes of both sides are compared at once', () => {
    const value = (text: string) =>
      Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`name-${index}`, text]));
    const startMs = performance.now();
    const ways = threeWay({ base: value('1'), mine: value('2'), theirs: value('3') });
    expect(ways).toHaveLength(8_000);
    expect(new Set(ways.map(({ by }) => by))).toEqual(new Set(['both']));
    expect(performance.now() - startMs).toBeLessThan(2_000);
  });

  test('CLIENT-4: changes as text keep all digits', () => {
    const after = { big: { exact: 9223372036854775807n } };
    expect(changesText(changesBetween({}, after))).toBe('+big: {"exact":9223372036854775807}\n');
  });

  test('CLIENT-4: long lines delay neither highlighting nor completion', () => {
    const startMs = performance.now();
    for (const line of ['-'.repeat(190_000), `- a:b${' '.repeat(190_000)}c`]) {
      const pieces = highlight(`data:\n  text: |\n    ${line}\n`);
      expect(pieces.map((piece) => piece.text).join('')).toContain(line);
    }
    const spaces = `data:\n  a${' '.repeat(190_000)}b\n  c: `;
    expect(contextAt(spaces, spaces.length)).toMatchObject({ path: ['data'], name: 'c' });
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });

  test('CLIENT-4: merging loses no change of either side', () => {
    fc.assert(
      fc.property(json, json, (left, right) => {
        expect(mergeChanges({ base: left, mine: right, theirs: left })).toEqual(right);
        expect(mergeChanges({ base: left, mine: left, theirs: right })).toEqual(right);
        expect(changesBetween(left, left)).toEqual([]);
      }),
    );
  });
});
