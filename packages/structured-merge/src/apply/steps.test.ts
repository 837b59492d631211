import { type ApiObject, type JsonObject, runAtPace, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { applyPatch, applySteps } from './apply-patch.ts';
import { annotation, listMap, mapOf, object, text } from './apply-script.fixture.ts';
import { recordSteps, recordUpdate, type TrackedKind } from './field-manager.ts';

const metadataSchema = object({ name: text });
const items = listMap(['name'], object({ name: text, value: text }));
const schema = object({ apiVersion: text, kind: text, data: mapOf(text), items });
const kind: TrackedKind = {
  apiVersion: 'v1',
  kind: 'Thing',
  subresource: '',
  schemaFor: () => schema,
  metadataSchema,
  convert: (value) => value,
  lastApplied: { annotation, manager: 'tool' },
};
const nowMs = 1_700_000_000_000;

const thing = (value: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a' },
  data: { a: value, [value]: 'b' },
  items: [{ name: value, value }],
});

function stored(): ApiObject {
  const live = thing('x');
  recordUpdate(kind, { live: undefined, object: live, manager: 'first', nowMs });
  return live;
}

/** A pace that pauses after every step and counts the pauses. */
function slowPace() {
  const pace = {
    over: true,
    pauses: 0,
    pause() {
      pace.pauses += 1;
      return Promise.resolve();
    },
  };
  return pace;
}

test('TRUST-2: an update that pauses between its steps has the same result', async () => {
  const live = stored();
  const whole = thing('y');
  recordUpdate(kind, { live, object: whole, manager: 'second', nowMs });
  const pace = slowPace();
  const parts = [thing('y'), thing('y')];
  const update = { live, manager: 'second', nowMs, size: 'large' } as const;
  await Promise.all(
    parts.map((object) => runAtPace(recordSteps(kind, { ...update, object }), pace)),
  );
  expect(parts).toEqual([whole, whole]);
  expect(pace.pauses).toBeGreaterThanOrEqual(10);
});

test('TRUST-2: an apply that pauses between its steps has the same result and conflicts', async () => {
  const live = stored();
  const apply = { live, patch: thing('z'), manager: 'second', nowMs };
  const large = { ...apply, size: 'large' } as const;
  const pace = slowPace();
  const forced = await runAtPace(applySteps(kind, { ...large, force: true }), pace);
  expect(forced).toEqual(applyPatch(kind, { ...apply, force: true }));
  expect(pace.pauses).toBeGreaterThanOrEqual(7);
  const refused = runAtPace(applySteps(kind, { ...large, force: false }), slowPace());
  await expect(refused).rejects.toThrow(/conflict with "first"/);
});

test('TRUST-2: an apply that removes fields pauses between the passes', async () => {
  const live = stored();
  const base = { live: undefined, manager: 'second', nowMs, force: true };
  const applied = applyPatch(kind, { ...base, live, patch: thing('z') });
  const fewer = { ...thing('z'), items: [] };
  const pace = slowPace();
  const apply = { ...base, live: applied, patch: fewer };
  const object = await runAtPace(applySteps(kind, { ...apply, size: 'large' }), pace);
  expect(object).toEqual(applyPatch(kind, apply));
  expect(object['items']).toEqual([{ name: 'x', value: 'x' }]);
  expect(pace.pauses).toBeGreaterThanOrEqual(20);
});

test('TRUST-2: owners of many fields are read, compared, and written in many steps', () => {
  const count = 2_000;
  const wide = (value: string): ApiObject => ({
    ...thing(value),
    items: Array.from({ length: count }, (_, index) => ({ name: `i${index % 7}-${index}`, value })),
  });
  const countPauses = (steps: Generator<void, unknown>) => {
    let pauses = 0;
    while (steps.next().done !== true) pauses += 1;
    return pauses;
  };
  const live = wide('x');
  recordUpdate(kind, { live: undefined, object: live, manager: 'first', nowMs });
  const stored = structuredClone(live);
  const whole = wide('y');
  recordUpdate(kind, { live: stored, object: whole, manager: 'second', nowMs });
  const parts = wide('y');
  const update = { live: structuredClone(live), object: parts, manager: 'second', nowMs } as const;
  const pauses = countPauses(recordSteps(kind, { ...update, size: 'large' }));
  expect(JSON.stringify(parts)).toBe(JSON.stringify(whole));
  // Each item has at least three fields, and each step of a pass handles 250 of them.
  expect(pauses).toBeGreaterThan((3 * count * 3) / 250);
});

test('TRUST-2: conversions of many fields take many steps and have the same result', () => {
  const items = (value: string) =>
    Array.from({ length: 2_000 }, (_, index) => ({ name: `i${index}`, value }));
  const written = (first: string, size: { readonly size?: 'large' }) => {
    const served: TrackedKind = {
      ...kind,
      convert: (value, apiVersion) => ({ ...value, apiVersion }),
    };
    const live = { ...thing('x'), items: items('x'), apiVersion: first };
    const creation = { live: undefined, object: live, manager: 'first', nowMs };
    recordUpdate({ ...served, apiVersion: first }, creation);
    live.apiVersion = kind.apiVersion;
    const object = { ...thing('y'), items: items('y') };
    const work = recordSteps(served, { live, object, manager: 'second', nowMs, ...size });
    let pauses = 0;
    while (work.next().done !== true) pauses += 1;
    return { managedFields: object.metadata.managedFields, pauses };
  };
  const parts = written('v2', { size: 'large' });
  expect(parts.managedFields).toHaveLength(2);
  expect(parts.managedFields).toEqual(written('v2', {}).managedFields);
  const more = parts.pauses - written('v1', { size: 'large' }).pauses;
  // The other version takes a step for each 500 values of two objects that are validated, and more
  // steps for their comparison.
  expect(more).toBeGreaterThan((2 * (2 * 3 * 2_000)) / 500);
});

test('TRUST-2: an apply of many fields takes many steps and has the same result', () => {
  const items = (value: string) =>
    Array.from({ length: 2_000 }, (_, index) => ({ name: `i${index}`, value }));
  const live = stored();
  const apply = { live, manager: 'second', nowMs, force: true } as const;
  const whole = applyPatch(kind, { ...apply, patch: { ...thing('z'), items: items('z') } });
  const work = applySteps(kind, {
    ...apply,
    patch: { ...thing('z'), items: items('z') },
    size: 'large',
  });
  let pauses = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) pauses += 1;
  expect(step.value).toEqual(whole);
  expect(pauses).toBeGreaterThan((3 * 2_000 * 2) / 250);
});

test('TRUST-2: applies in steps and in one piece remove fields and reject invalid bodies', () => {
  const items = (count: number, more: (index: number) => JsonObject = () => ({})) =>
    Array.from({ length: count }, (_, index) => ({
      name: `i${index}`,
      value: 'x',
      ...more(index),
    }));
  const data = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`k${index}`, 'v']));
  const wide = { ...thing('z'), data, items: items(900) };
  const base = { manager: 'second', nowMs, force: true } as const;
  const live = applyPatch(kind, { ...base, live: stored(), patch: wide });
  const patches: JsonObject[] = [
    { ...thing('z'), data: { k7: 'v' }, items: items(300) },
    { ...wide, data: { ...data, k1: 'w' }, items: items(900).reverse() },
    { ...wide, items: items(900, (index) => ({ odd: index })) },
    { ...wide, items: items(900, (index) => (index === 800 ? { name: 'i1' } : {})) },
    { ...wide, items: items(900, (index) => (index === 800 ? { value: { a: 1 } } : {})) },
    { ...wide, data: [data] },
    { ...wide, items: items(900).map(({ value }) => ({ value })) },
    wide,
  ];
  const outcome = (run: () => unknown) => {
    try {
      return JSON.stringify(run());
    } catch (error) {
      return String(error);
    }
  };
  for (const patch of patches) {
    const apply = { ...base, live: structuredClone(live), patch };
    const large = { ...apply, size: 'large' } as const;
    expect(outcome(() => runInOnePiece(applySteps(kind, large)))).toBe(
      outcome(() => applyPatch(kind, apply)),
    );
  }
});
