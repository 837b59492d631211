import { readFeatureGates } from '@wheelhouse/server/testing';
import { beforeEach, expect, test } from 'vitest';
import {
  conversionBy,
  establishMulti,
  startConversionService,
} from '../custom-kinds/conversion-service.ts';
import { untilEnd } from '../support/cleanup.ts';
import { withServer } from '../support/with-server.ts';
import { type PolicyKit, policyKit } from './admission-policies.ts';
import { hooksOf, registration, startAdmissionService } from './admission-service.ts';

/** What a policy does with each object. */
const effects = {
  Validating: { validations: [{ expression: 'object.spec.contentv2.key != "bad"' }] },
  Mutating: {
    mutations: [
      {
        patchType: 'ApplyConfiguration',
        applyConfiguration: { expression: 'Object{spec: Object.spec{numv2: {"num2": 5}}}' },
      },
    ],
  },
};
type Sort = keyof typeof effects;

let kits: Readonly<Record<Sort, PolicyKit>> | undefined;
const service = await untilEnd(startConversionService());
const server = await withServer({
  runtimeConfig: new Map([[`${registration}/v1alpha1`, true]]),
  featureGates: readFeatureGates(['MutatingAdmissionPolicy=true']).gates,
});
const multi = await establishMulti(server, conversionBy(service));
const hookService = await untilEnd(startAdmissionService());
const { hooked, unhook } = hooksOf(() => ({
  server,
  service: hookService,
  namespace: kits?.Validating.namespace ?? '',
}));
beforeEach(async () => {
  await unhook();
  service.reset();
  await kits?.Validating.clear();
  await kits?.Mutating.clear();
  kits = { Validating: await policyKit(server), Mutating: await policyKit(server, 'Mutating') };
});

/** Binds a policy for the version that needs conversion; returns what creates an object. */
async function bound(sort: Sort, failurePolicy: string) {
  const kit = kits?.[sort];
  if (kit === undefined) throw new Error('no policies');
  const rule = { operations: ['CREATE'], apiGroups: [multi.group], apiVersions: ['v1beta2'] };
  const made = await kit.bound(
    { ...effects[sort], failurePolicy },
    {},
    { resourceRules: [{ ...rule, resources: ['multis'] }] },
  );
  const create = (name: string) =>
    server.post(multi.at('v1beta1', kit.namespace), multi.object('v1beta1', name));
  return { ...made, create };
}

const fail = () => {
  service.convert = () => {
    throw new Error('out of order');
  };
};
const why = () => `conversion webhook for ${multi.group}/v1beta1, Kind=Multi failed: out of order`;

test.each<Sort>(['Validating', 'Mutating'])(
  'ADM-3: a %s policy that ignores failures is skipped if conversion fails',
  async (sort) => {
    const { create } = await bound(sort, 'Ignore');
    fail();
    expect((await create('a')).status).toBe(201);
  },
);

test('ADM-3: with failurePolicy Fail, a failed conversion denies the request', async () => {
  const { policy, binding, create } = await bound('Validating', 'Fail');
  expect((await create('a')).status).toBe(201);
  fail();
  const answer = await create('b');
  expect([answer.status, answer.body.reason]).toEqual([422, 'Invalid']);
  expect(answer.body.message).toContain(
    `ValidatingAdmissionPolicy '${policy}' with binding '${binding}' denied request: ` +
      `failed to configure binding: failed to convert object version: ${why()}`,
  );
});

test('ADM-3: a mutating policy denies the request for itself, without its binding', async () => {
  const { policy, create } = await bound('Mutating', 'Fail');
  fail();
  const answer = await create('b');
  expect([answer.status, answer.body.reason]).toEqual([403, 'Forbidden']);
  expect(answer.body.message).toBe(
    `policy "${policy}" denied request: failed to configure policy: ${why()}`,
  );
});

test('ADM-2: validating webhooks of one version share its conversion', async () => {
  const rule = { operations: ['CREATE'], apiGroups: [multi.group], apiVersions: ['v1beta2'] };
  const rules = [{ ...rule, resources: ['multis'] }];
  const names = ['a', 'b', 'c'].map((name) => `${name}.example.com`);
  await hooked('validating', ...names.map((name) => ({ name, path: `/${name}`, rules })));
  const path = multi.at('v1beta1', kits?.Validating.namespace);
  expect((await server.post(path, multi.object('v1beta1', 'one'))).status).toBe(201);
  expect(service.asked()).toEqual(['one v1beta1>v1beta2']);
  for (const name of names) {
    expect(hookService.at(`/${name}`).map(({ request }) => request)).toMatchObject([
      {
        kind: { version: 'v1beta2' },
        requestKind: { version: 'v1beta1' },
        object: { metadata: { name: 'one' }, spec: { contentv2: { key: 'value' } } },
        oldObject: null,
      },
    ]);
  }
});
