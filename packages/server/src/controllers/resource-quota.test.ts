import { builtinKinds } from '@wheelhouse/kinds';
import { type ApiObject, dialectOf, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { quotaEvaluator } from '../admission/quota/quota-usage.ts';
import { encodeStored, indexOf } from '../registry/object-codec.ts';
import { makeEntry } from '../watchcache/entry.ts';
import { countsOf } from './resource-quota.ts';

const dialect = dialectOf('kubernetes');
const kind = (resource: string) => {
  const def = builtinKinds(dialect).find((one) => one.group === '' && one.resource === resource);
  if (def === undefined) throw new Error(`no kind ${resource}`);
  return def;
};

const pod = (name: string, cpu: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: name },
  spec: { containers: [{ name: 'main', image: 'i', resources: { requests: { cpu } } }] },
});

const quota = (hard: Record<string, string>, scopes: readonly string[] = []): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'q', namespace: 'default' },
  spec: { hard, scopes: [...scopes] },
});

function entriesOf(resource: string, objects: readonly ApiObject[]) {
  const { storage } = kind(resource);
  return objects.map((object) =>
    makeEntry({
      key: `default/${object.metadata.name}`,
      stored: encodeStored(object),
      revision: 1,
      createRevision: 1,
      index: indexOf(storage, object),
    }),
  );
}

const evaluator = (resource: string) => quotaEvaluator({ group: '', resource }, dialect);
const nowMs = 0;

test('TRUST-2: many pods are counted in short steps, each for every quota', () => {
  const pods = Array.from({ length: 500 }, (_, at) => pod(`p${at}`, '10m'));
  const quotas = [quota({ 'requests.cpu': '9' }), quota({ pods: '9' }, ['BestEffort'])];
  const work = countsOf(quotas, {
    evaluator: evaluator('pods'),
    entries: entriesOf('pods', pods),
    reserved: new Map([
      ['p0', pod('p0', '20m')],
      ['later', pod('later', '1')],
    ]),
    nowMs,
  });
  let steps = 0;
  let last = work.next();
  for (; last.done !== true; last = work.next()) steps += 1;
  expect(steps).toBeGreaterThanOrEqual(pods.length);
  const [first, second] = last.value;
  expect(first?.totals.get('requests.cpu')?.nano).toBe(6_010_000_000n);
  expect([...(first?.names ?? [])]).toEqual(['requests.cpu']);
  expect(second?.totals.get('pods')).toBeUndefined();
});

test('TRUST-2: only the names of a quota are kept, however many classes claims have', () => {
  const claims = Array.from({ length: 100 }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: `c${at}`, namespace: 'default', uid: `c${at}` },
    spec: { storageClassName: `class${at}`, resources: { requests: { storage: '1Gi' } } },
  }));
  const [counted] = runInOnePiece(
    countsOf([quota({ persistentvolumeclaims: '200', 'requests.storage': '1Ti' })], {
      evaluator: evaluator('persistentvolumeclaims'),
      entries: entriesOf('persistentvolumeclaims', claims),
      reserved: new Map(),
      nowMs,
    }),
  );
  const totals = [...(counted?.totals ?? [])].map(([name, { text }]) => [name, text]);
  expect(totals).toEqual([
    ['persistentvolumeclaims', '100'],
    ['requests.storage', '100Gi'],
  ]);
});

test('objects that count alike are counted without their content', () => {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', uid: 'm' } };
  const entries = entriesOf('configmaps', [map]).map((entry) => ({
    ...entry,
    json: Buffer.from('damaged'),
  }));
  const counts = runInOnePiece(
    countsOf([quota({ 'count/configmaps': '3' }), quota({ configmaps: '3' }, ['Terminating'])], {
      evaluator: evaluator('configmaps'),
      entries,
      reserved: new Map([
        ['m', map],
        ['n', { ...map, metadata: { name: 'n', uid: 'n' } }],
      ]),
      nowMs,
    }),
  );
  expect(counts.map(({ totals }) => totals.get('count/configmaps')?.text)).toEqual([
    '2',
    undefined,
  ]);
});
