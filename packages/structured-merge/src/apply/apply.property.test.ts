import { isObject, type JsonObject, type JsonValue, runInOnePiece } from '@wheelhouse/machinery';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  conflictsOf,
  fieldsOf,
  listMap,
  mapOf,
  number,
  object,
  scriptOf,
  setOf,
  text,
  write,
} from './apply-script.fixture.ts';
import {
  difference,
  differenceSteps,
  type FieldSet,
  hasPath,
  intersection,
  intersectionSteps,
  pathsOf,
  recursiveDifference,
  setsEqual,
  union,
  unionSteps,
} from './field-set.ts';
import { decodeFields, encodeFields } from './managed-fields.ts';
import { toFieldSet } from './value-fields.ts';
import { resourceType } from './value-type.ts';

const schema = object({
  data: mapOf(text),
  tags: setOf(text),
  items: listMap(['name'], object({ name: text, value: number, inner: setOf(text) })),
});

const names = fc.constantFrom('a', 'b', 'c', 'd', '<', 'é', '\u{1f600}');
const fieldsArbitrary: fc.Arbitrary<JsonObject> = fc.record(
  {
    data: fc.dictionary(names, names, { minKeys: 1, maxKeys: 3 }),
    tags: fc.uniqueArray(names, { minLength: 1, maxLength: 4 }),
    items: fc.uniqueArray(
      fc.record(
        {
          name: names,
          value: fc.nat(3),
          inner: fc.uniqueArray(names, { minLength: 1, maxLength: 2 }),
        },
        { requiredKeys: ['name'] },
      ),
      { selector: (item) => item.name, minLength: 1, maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonObject>;

const type = resourceType(schema, {});
const setOfFields = (fields: JsonObject): FieldSet => toFieldSet(type, fields);

function ownedBy(script: ReturnType<typeof scriptOf>, manager: string): FieldSet {
  const entries = script.live?.metadata.managedFields ?? [];
  const own = entries.find((entry) => entry.manager === manager);
  return own === undefined ? new Map() : decodeFields(own.fieldsV1);
}

const runs = { numRuns: 150 };

test('an applier owns exactly what it applied, and applying again changes nothing', () => {
  fc.assert(
    fc.property(fieldsArbitrary, fieldsArbitrary, (left, right) => {
      const script = scriptOf(schema);
      write(script, { op: 'apply', by: 'x', fields: right });
      write(script, { op: 'force', by: 'y', fields: left });
      expect(setsEqual(ownedBy(script, 'y'), setOfFields(left))).toBe(true);
      const before = structuredClone(script.live);
      expect(write(script, { op: 'apply', by: 'y', fields: left })).toEqual(before);
    }),
    runs,
  );
});

test('a forced apply takes exactly the conflicting paths from others', () => {
  fc.assert(
    fc.property(fieldsArbitrary, fieldsArbitrary, (left, right) => {
      const script = scriptOf(schema);
      write(script, { op: 'apply', by: 'x', fields: left });
      const before = ownedBy(script, 'x');
      const conflicts = conflictsOf(() => write(script, { op: 'apply', by: 'y', fields: right }));
      if (conflicts.length > 0) write(script, { op: 'force', by: 'y', fields: right });
      const lost = [...pathsOf(difference(before, ownedBy(script, 'x')))];
      expect(lost).toHaveLength(conflicts.length);
    }),
    runs,
  );
});

test('no manager owns a path that the object lacks', () => {
  const step = fc.record({
    op: fc.constantFrom('force' as const, 'update' as const),
    by: fc.constantFrom('x', 'y', 'z'),
    fields: fieldsArbitrary,
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
      const script = scriptOf(schema);
      for (const step of steps) {
        write(script, step);
        const present = namedPaths(setOfFields(fieldsOf(script)));
        for (const entry of script.live?.metadata.managedFields ?? []) {
          for (const path of pathsOf(decodeFields(entry.fieldsV1))) {
            expect(present.has(path.join(' '))).toBe(true);
          }
        }
      }
    }),
    runs,
  );
});

/** The paths of a set, including their prefixes. */
function namedPaths(set: FieldSet): Set<string> {
  const paths = new Set<string>();
  for (const path of pathsOf(set)) {
    for (let length = 1; length <= path.length; length += 1) {
      paths.add(path.slice(0, length).join(' '));
    }
  }
  return paths;
}

test('appliers of different fields commute', () => {
  fc.assert(
    fc.property(fieldsArbitrary, fieldsArbitrary, (leftFields, rightFields) => {
      const left = { data: leftFields['data'] ?? { k: 'v' } } as JsonObject;
      const right = { items: rightFields['items'] ?? [{ name: 'n' }] } as JsonObject;
      const leftFirst = scriptOf(schema);
      write(leftFirst, { op: 'apply', by: 'x', fields: left });
      write(leftFirst, { op: 'apply', by: 'y', fields: right });
      const rightFirst = scriptOf(schema);
      write(rightFirst, { op: 'apply', by: 'y', fields: right });
      write(rightFirst, { op: 'apply', by: 'x', fields: left });
      expect(fieldsOf(leftFirst)).toEqual(fieldsOf(rightFirst));
      for (const by of ['x', 'y']) {
        expect(setsEqual(ownedBy(leftFirst, by), ownedBy(rightFirst, by))).toBe(true);
      }
    }),
    runs,
  );
});

test('a set is equal to its decoded encoding, and set operations obey the laws of set algebra', () => {
  fc.assert(
    fc.property(fieldsArbitrary, fieldsArbitrary, (left, right) => {
      const a = setOfFields(left);
      const b = setOfFields(right);
      const text = JSON.stringify(encodeFields(a));
      expect(setsEqual(decodeFields(JSON.parse(text) as JsonValue), a)).toBe(true);
      const both = union(a, b);
      for (const path of pathsOf(both)) expect(hasPath(a, path) || hasPath(b, path)).toBe(true);
      expect(setsEqual(union(difference(a, b), b), both)).toBe(true);
      expect(difference(a, both).size).toBe(0);
      for (const path of pathsOf(recursiveDifference(a, b))) expect(hasPath(b, path)).toBe(false);
      expect(isObject(encodeFields(both))).toBe(true);
    }),
    runs,
  );
});

test('TRUST-2: set operations have the same results in steps and in one piece', () => {
  fc.assert(
    fc.property(fieldsArbitrary, fieldsArbitrary, (leftFields, rightFields) => {
      const [left, right] = [setOfFields(leftFields), setOfFields(rightFields)];
      const shared = union(left, right);
      for (const [a, b] of [
        [left, right],
        [shared, right],
        [left, shared],
      ] as const) {
        expect(setsEqual(runInOnePiece(unionSteps(a, b)), union(a, b))).toBe(true);
        expect(setsEqual(runInOnePiece(intersectionSteps(a, b)), intersection(a, b))).toBe(true);
        expect(setsEqual(runInOnePiece(differenceSteps(a, b)), difference(a, b))).toBe(true);
      }
      expect(runInOnePiece(differenceSteps(left, difference(right, left)))).toBe(left);
    }),
    runs,
  );
});

test('TRUST-2: operations on large sets pause every thousand nodes', () => {
  const largeSet = (from: number) =>
    setOfFields({
      data: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i + from}`, 'v'])),
    });
  const pausesOf = (work: Iterator<void, FieldSet>) => {
    let pauses = 0;
    for (let step = work.next(); step.done !== true; step = work.next()) pauses += 1;
    return pauses;
  };
  const [left, right] = [largeSet(0), largeSet(5000)];
  // Each operation iterates over one set; a set that it changes is copied first.
  expect(pausesOf(intersectionSteps(left, right))).toBe(10);
  expect(pausesOf(unionSteps(left, right))).toBe(25);
  expect(pausesOf(differenceSteps(left, right))).toBe(25);
});
