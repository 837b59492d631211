import { jsonEqual } from '@wheelhouse/machinery';
import { beforeEach, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { hooksOf, startAdmissionService } from './admission-service.ts';

const service = await untilEnd(startAdmissionService());
const server = await withServer({ controllers: ['resourcequota-controller'] });
let namespace: string;
const { hooked, unhook } = hooksOf(() => ({ server, service, namespace }));
beforeEach(async () => {
  await unhook();
  service.forget();
  namespace = await freshNamespace(server);
});

const core = () => `/api/v1/namespaces/${namespace}`;

/** Creates quotas for ConfigMaps, whose changes of status a webhook reviews from then on. */
async function withQuotas(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const spec = { hard: { configmaps: '5' } };
    await mustCreate(server, `${core()}/resourcequotas`, { metadata: { name }, spec });
  }
  await eventually(async () => {
    const { items } = (await server.get(`${core()}/resourcequotas`)).body;
    return items.every(({ status }) => status?.used !== undefined);
  }, 'the quotas are in force');
  const rule = { operations: ['UPDATE'], apiGroups: [''], apiVersions: ['v1'] };
  await hooked('validating', {
    path: '/v',
    rules: [{ ...rule, resources: ['resourcequotas/status'] }],
  });
}

const used = async (name: string) =>
  (await server.get(`${core()}/resourcequotas/${name}`)).body.status.used;

test('ADM-1: a quota that is deleted while others are charged limits nothing', async () => {
  await withQuotas('a', 'b', 'c');
  service.reply('/v', async ({ body }) => {
    const { apiVersion, kind, request } = body;
    if (request.name === 'a') await server.remove(`${core()}/resourcequotas/b`);
    return { apiVersion, kind, response: { uid: request.uid, allowed: true } };
  });
  const answer = await server.post(`${core()}/configmaps`, configMap('one'));
  expect([answer.status, answer.body.message]).toEqual([201, undefined]);
  expect([await used('a'), await used('c')]).toEqual([{ configmaps: '1' }, { configmaps: '1' }]);
});

test('ADM-1: all charges of a refused create are reverted, and the first error is told', async () => {
  await withQuotas('a', 'b', 'c');
  service.answer('/v', ({ name, object }) => {
    const isCharge = jsonEqual(object.status.used, { configmaps: '1' });
    const allowed = isCharge ? name !== 'c' : name === 'b';
    return { allowed, status: { message: isCharge ? 'no charge' : 'no reversal' } };
  });
  const answer = await server.post(`${core()}/configmaps`, configMap('one'));
  expect(answer.body.message).toContain('no charge');
  expect([await used('a'), await used('b')]).toEqual([{ configmaps: '1' }, { configmaps: '0' }]);
});
