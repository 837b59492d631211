import { expect, test } from 'vitest';
import {
  configMapRule,
  configure,
  startAdmissionService,
  webhook,
} from '../admission/admission-service.ts';
import { definitions, establish } from '../custom-kinds/custom-kinds.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const service = await untilEnd(startAdmissionService());
const server = await withServer();
const hold = { finalizers: ['example.com/hold'] };

/** Waits until a controller's queue has completed some more tasks. */
async function untilRounds(queue: string, more: number): Promise<void> {
  const line = new RegExp(
    `^workqueue_work_duration_seconds_count\\{name="${queue}"\\} (\\d+)$`,
    'm',
  );
  const completed = async () => Number(line.exec((await server.get('/metrics')).text)?.[1] ?? 0);
  const target = (await completed()) + more;
  await eventually(async () => (await completed()) >= target, `${more} rounds of ${queue}`);
}

test('DEL-4: objects that finalizers hold in a deleted namespace are deleted once', async () => {
  const namespace = await freshNamespace(server);
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  await server.post(maps, configMap('held', { metadata: { name: 'held', ...hold } }));
  const rules = [{ ...configMapRule, operations: ['DELETE'] }];
  await configure(server, 'validating', [webhook(service, { path: '/maps', namespace, rules })]);
  await server.remove(`/api/v1/namespaces/${namespace}`);
  await eventually(async () => service.at('/maps').length > 0, 'the deletion');
  await untilRounds('namespace', 3);
  expect(service.at('/maps')).toHaveLength(1);
});

test('CRD-1: objects that finalizers hold are deleted once with their definition', async () => {
  const group = 'once.example.com';
  await establish(server, { group, plural: 'pins', kind: 'Pin', scope: 'Cluster' });
  const pin = { apiVersion: `${group}/v1`, kind: 'Pin', metadata: { name: 'held', ...hold } };
  expect((await server.post(`/apis/${group}/v1/pins`, pin)).status).toBe(201);
  const rules = [
    { operations: ['DELETE'], apiGroups: [group], apiVersions: ['v1'], resources: ['pins'] },
  ];
  await configure(server, 'validating', [webhook(service, { path: '/pins', rules })]);
  await server.remove(`${definitions}/pins.${group}`);
  await eventually(async () => service.at('/pins').length > 0, 'the deletion');
  await untilRounds('crd_finalizer', 3);
  expect(service.at('/pins')).toHaveLength(1);
});
