import {
  decodeMessage,
  decodeMessageSteps,
  encodeCbor,
  encodeCborSteps,
  encodeEnvelope,
  encodeEnvelopeSteps,
  encodeMessage,
  encodeMessageSteps,
} from '@wheelhouse/codec';
import { dialectOf, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { copyDecodedSteps, decodeTyped, decodeTypedSteps, FoundPaths } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { builtinKinds } from './builtin-kinds.ts';
import { made, plainPod } from './rules/judging.suite.ts';

const kinds = builtinKinds(dialectOf('kubernetes'));

function schemaOf(kind: string) {
  const version = kinds.find((def) => def.kind === kind)?.versions[0];
  if (version === undefined) throw new Error(`no kind ${kind}`);
  return version.schema;
}

const repeated = <Item>(count: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: count }, (_, at) => make(at));

const props = (depth: number): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(
    repeated(12, (at) => [`p${at}`, depth === 0 ? { type: 'string' } : props(depth - 1)]),
  ),
});

const objects: Readonly<Record<string, JsonObject>> = {
  ConfigMap: {
    metadata: { name: 'wide', labels: Object.fromEntries(repeated(400, (at) => [`l${at}`, ''])) },
    data: Object.fromEntries(repeated(6_000, (at) => [`k${(at * 7919) % 6_000}é`, 'v'])),
    binaryData: Object.fromEntries(repeated(900, (at) => [`b${at}`, 'YQ=='])),
    unknown: 1,
  },
  Pod: {
    metadata: { name: 'wide', annotations: { a: 'x'.repeat(10_000) } },
    spec: {
      containers: [
        {
          name: 'a',
          env: repeated(4_000, (at) => ({ name: `v${at}`, value: `${at}`, more: at })),
          resources: { limits: { cpu: '0.5' } },
        },
        ...repeated(700, (at) => ({ name: `c${at}`, ports: [{ containerPort: at }], Image: 'b' })),
      ],
      volumes: [],
      tolerations: null,
    },
    status: { conditions: repeated(300, () => null) },
  },
  CustomResourceDefinition: {
    metadata: { name: 'wide' },
    spec: {
      versions: [
        {
          name: 'v1',
          schema: {
            openAPIV3Schema: {
              ...props(3),
              items: { ...props(2) },
              additionalProperties: { type: 'array', items: props(2), what: true },
              anyOf: repeated(300, () => ({ minimum: 1.5, enum: [1, 'a'] })),
            },
          },
        },
      ],
    },
  },
};

/** What a generator returns, and in how many steps. */
function stepped<Result>(work: Generator<void, Result>): { result: Result; steps: number } {
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { result: step.value, steps };
  }
}

const outcomeOf = (work: () => JsonValue): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

test.each(Object.entries(objects))(
  'TRUST-2: a large %s is decoded in steps as at once',
  (kind, object) => {
    const schema = schemaOf(kind);
    const unknown = new FoundPaths();
    const decoded = decodeTyped(schema)(object, unknown);
    const unknownInSteps = new FoundPaths();
    const { result, steps } = stepped(
      decodeTypedSteps(schema, object, { unknown: unknownInSteps }),
    );
    expect(JSON.stringify(result)).toBe(JSON.stringify(decoded));
    expect(unknownInSteps).toEqual(unknown);
    expect(steps).toBeGreaterThan(10);
    expect(stepped(copyDecodedSteps(decoded)).result).toEqual(decoded);
  },
);

test.each(Object.entries(objects))(
  'TRUST-2: what is wrong with a large %s is the same in steps',
  (kind, object) => {
    const schema = schemaOf(kind);
    for (const source of ['text', 'map', 'patched'] as const) {
      const wrong = { ...object, metadata: { name: 7 } };
      const atOnce = outcomeOf(() => decodeTyped(schema)(wrong, undefined, source));
      expect(atOnce).toBeInstanceOf(Error);
      expect(outcomeOf(() => stepped(decodeTypedSteps(schema, wrong, { source })).result)).toEqual(
        atOnce,
      );
    }
  },
);

test.each(Object.entries(objects))(
  'TRUST-2: a large %s is encoded in steps as at once',
  (kind, object) => {
    const schema = schemaOf(kind);
    const decoded = { ...decodeTyped(schema)(object), apiVersion: 'v1', kind };
    const cbor = stepped(encodeCborSteps(decoded));
    expect(cbor.result.equals(encodeCbor(decoded))).toBe(true);
    expect(cbor.steps).toBeGreaterThan(10);
    const message = encodeMessage(schema, decoded);
    const encoded = stepped(encodeMessageSteps(schema, decoded));
    expect(encoded.result.equals(message)).toBe(true);
    expect(encoded.steps).toBeGreaterThan(10);
    const envelope = stepped(encodeEnvelopeSteps(schema, decoded)).result;
    expect(envelope.equals(encodeEnvelope(schema, decoded))).toBe(true);
    const read = stepped(decodeMessageSteps(schema, message));
    expect(JSON.stringify(read.result)).toBe(JSON.stringify(decodeMessage(schema, message)));
    expect(read.steps).toBeGreaterThan(10);
  },
);

test('TRUST-2: values of messages that are read in steps by turns are counted apart', () => {
  const schema = schemaOf('ConfigMap');
  const bytes = encodeMessage(schema, objects['ConfigMap'] as JsonObject);
  const valuesMax = 30_000;
  const one = decodeMessageSteps(schema, bytes, { valuesMax });
  const other = decodeMessageSteps(schema, bytes, { valuesMax });
  for (let isOver = false; !isOver; ) {
    isOver = one.next().done === true;
    isOver = other.next().done === true || isOver;
  }
  expect(() => stepped(decodeMessageSteps(schema, bytes, { valuesMax: 9_000 }))).toThrow(
    'too many values',
  );
});

test('TRUST-2: a change of a large Pod that may not be is judged in steps as at once', () => {
  const pod = (value: string) => {
    const env = repeated(4_000, (at) => ({ name: `v${at}`, value }));
    return made({ ...plainPod(), spec: { containers: [{ name: 'a', image: 'i', env }] } });
  };
  const { strategy } = kinds.find(({ kind }) => kind === 'Pod') ?? {};
  const user = { name: 'tester', uid: '', groups: [], extra: {} };
  const context = { user, nowMs: 0, dryRun: false, subresource: '' };
  const [old, object] = [pod('one'), pod('other')];
  const messages = (errors: readonly { message: string }[] | undefined) =>
    errors?.map(({ message }) => message);
  const atOnce = messages(strategy?.validateUpdate?.(context, object, old));
  expect(atOnce?.at(-1)).toMatch(/^Forbidden: pod updates may not change fields other than/);
  const work = strategy?.validateInSteps?.(context, object, old);
  if (work === undefined) throw new Error('Pods are not judged in steps');
  const { result, steps } = stepped(work);
  expect(messages(result)).toEqual(atOnce);
  expect(steps).toBeGreaterThan(20);
});

test('TRUST-2: a LimitRange of many resources is judged in steps as at once', () => {
  const { strategy } = kinds.find(({ kind }) => kind === 'LimitRange') ?? {};
  const min = Object.fromEntries(repeated(2_000, (at) => [`a-${at}`, '1']));
  const object = made({
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'wide' },
    spec: { limits: [{ type: 'Container', min, max: { cpu: '1' }, default: { cpu: '2' } }] },
  });
  const user = { name: 'tester', uid: '', groups: [], extra: {} };
  const context = { user, nowMs: 0, dryRun: false, subresource: '' };
  const messages = (errors: readonly { field: string; message: string }[] | undefined) =>
    errors?.map(({ field, message }) => `${field}: ${message}`);
  const atOnce = messages(strategy?.validateCreate?.(context, object));
  expect(atOnce?.length).toBeGreaterThan(2_000);
  const work = strategy?.validateInSteps?.(context, object, undefined);
  if (work === undefined) throw new Error('LimitRanges are not judged in steps');
  const { result, steps } = stepped(work);
  expect(messages(result)).toEqual(atOnce);
  expect(steps).toBeGreaterThan(60);
});
