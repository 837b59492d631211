import { type ApiObject, dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { builtinKinds } from './builtin-kinds.ts';
import { plainContext } from './kind.suite.ts';
import { errorSteps } from './rules/checks.ts';
import { created, plainPod } from './rules/rules.suite.ts';

/**
 * Rules for long texts, and for comparisons with an old object, in steps (TRUST-2).
 * `test/siege/rule-steps.test.ts` fills each collection of each kind.
 */

const kinds = builtinKinds(dialectOf('kubernetes'));

const repeated = <Item>(count: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: count }, (_, at) => make(at));

/** The errors of a new or changed object, and the number of steps. */
function findingsOf(object: ApiObject, { old }: { readonly old?: ApiObject } = {}) {
  const { strategy } = kinds.find(({ kind }) => kind === object.kind) ?? {};
  const work = errorSteps(
    old === undefined
      ? strategy?.validateCreate?.(plainContext, object)
      : strategy?.validateUpdate?.(plainContext, object, old),
  );
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done !== true) continue;
    return { errors: step.value.map(({ field, message }) => `${field}: ${message}`), steps };
  }
}

const objectOf = (type: string, members: JsonObject): ApiObject => {
  const at = type.lastIndexOf('/');
  const head = { apiVersion: type.slice(0, at), kind: type.slice(at + 1) };
  return created({ ...head, metadata: { name: 'a' }, ...members });
};

const podOf = (spec: JsonObject) =>
  created({ ...plainPod(), spec: { containers: [{ name: 'a', image: 'i' }], ...spec } });

const schedules = [`${'1,'.repeat(20_000)} * * * *`, 'a '.repeat(20_000)];

test.each<[string, string, JsonObject]>([
  ...schedules.map((schedule): [string, string, JsonObject] => [
    'schedule of a CronJob',
    'batch/v1/CronJob',
    { spec: { schedule, jobTemplate: { spec: { template: { spec: { containers: [] } } } } } },
  ]),
  [
    'registry of a volume',
    'v1/PersistentVolume',
    { spec: { quobyte: { registry: 'a,'.repeat(2_000), volume: 'v' } } },
  ],
])('TRUST-2: the parts of a long text are validated in steps: the %s (%#)', (_, type, members) => {
  const { errors, steps } = findingsOf(objectOf(type, members));
  expect(errors.length).toBeGreaterThan(0);
  expect(steps).toBeGreaterThan(15);
});

test('TRUST-2: annotations with source ranges and tolerations are validated in steps', () => {
  const annotated = (type: string, name: string, text: string, members: JsonObject): ApiObject => {
    const object = objectOf(type, members);
    return { ...object, metadata: { ...object.metadata, annotations: { [name]: text } } };
  };
  const ranges = annotated(
    'v1/Service',
    'service.beta.kubernetes.io/load-balancer-source-ranges',
    '-,'.repeat(2_000),
    { spec: { ports: [{ port: 1 }], type: 'LoadBalancer' } },
  );
  const ofRanges = findingsOf(ranges);
  expect(ofRanges.errors).toHaveLength(2_001);
  expect(ofRanges.steps).toBeGreaterThan(15);
  const tolerations = annotated(
    'v1/Node',
    'scheduler.alpha.kubernetes.io/taints',
    JSON.stringify(repeated(2_000, (at) => ({ key: `-${at}` }))),
    {},
  );
  const ofTaints = findingsOf(tolerations);
  expect(ofTaints.errors.length).toBeGreaterThanOrEqual(4_000);
  expect(ofTaints.steps).toBeGreaterThan(60);
});

test('TRUST-2: the renamed node labels of a PersistentVolume are compared in steps', () => {
  const volume = (key: string) =>
    objectOf('v1/PersistentVolume', {
      spec: {
        capacity: { storage: '1' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/a' },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: repeated(1_500, () => ({ key, operator: 'Exists' })) },
            ],
          },
        },
      },
    });
  const old = volume('beta.kubernetes.io/os');
  const renamed = findingsOf(volume('kubernetes.io/os'), { old });
  expect(renamed.errors).toEqual([]);
  expect(renamed.steps).toBeGreaterThan(30);
  const other = findingsOf(volume('kubernetes.io/arch'), { old });
  expect(other.errors).toEqual([
    expect.stringMatching(/^spec\.persistentvolumesource|nodeAffinity/),
  ]);
});

test('TRUST-2: the tolerations that an update of a Pod adds are validated in steps', () => {
  const tolerations = repeated(2_000, (at) => ({ key: `-${at}`, operator: 'Exists' }));
  const old = podOf({ tolerations: tolerations.slice(0, 1_000) });
  const { errors, steps } = findingsOf(podOf({ tolerations }), { old });
  // The whole Pod is validated first, and then the tolerations.
  expect(errors).toHaveLength(4_000);
  expect(steps).toBeGreaterThan(findingsOf(podOf({}), { old: podOf({}) }).steps + 40);
});
