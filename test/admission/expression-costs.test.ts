import { readFeatureGates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { configMap, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { policyKit } from './admission-policies.ts';
import { configMapRule, configure } from './admission-service.ts';

const emulatedMinor = 31;
const allowed = (verb: string) =>
  `authorizer.group("").resource("pods").labelSelector("a=b").check("${verb}").allowed()`;
/** More checks than one expression may contain if each has a cost of its own. */
const checks = ['get', 'list', 'watch', 'create'].map(allowed).join(' && ');
const tooDear = 'operation cancelled: actual cost limit exceeded';

const current = await withServer();

/** Starts a server of release 1.31 with these gates. */
function started(...pairs: string[]): Promise<TestServer> {
  const { gates } = readFeatureGates(pairs, { emulatedMinor });
  return withServer({ emulatedMinor, featureGates: gates });
}

/** Creates a ConfigMap that a policy validates. */
async function createUnderPolicy(...gates: string[]) {
  const running = await started(...gates);
  const kit = await policyKit(running);
  await kit.bound({ validations: [{ expression: checks }] });
  return running.post(kit.maps, configMap('a'));
}

/** Creates a ConfigMap whose webhook is excluded by its match condition. */
async function createUnderCondition(...gates: string[]) {
  const running = await started(...gates);
  await configure(running, 'validating', [
    {
      name: 'h.example.com',
      clientConfig: { url: 'https://127.0.0.1:1/' },
      rules: [configMapRule],
      matchConditions: [{ name: 'dear', expression: `!(${checks})` }],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    },
  ]);
  return running.post('/api/v1/namespaces/default/configmaps', configMap('a'));
}

test('VER-2: StrictCostEnforcementForVAP off: authorizer checks cost policies nothing', async () => {
  expect((await createUnderPolicy()).status).toBe(201);
});

test('VER-2: StrictCostEnforcementForVAP on: checks have a cost', async () => {
  const webhooksToo = 'StrictCostEnforcementForWebhooks=false';
  const refused = await createUnderPolicy('StrictCostEnforcementForVAP=true', webhooksToo);
  expect([refused.status, refused.body.message]).toEqual([422, expect.stringContaining(tooDear)]);
});

test('VER-2: StrictCostEnforcementForWebhooks off: checks in match conditions are free', async () => {
  expect((await createUnderCondition()).status).toBe(201);
});

test('VER-2: StrictCostEnforcementForWebhooks on: checks in match conditions have a cost', async () => {
  const refused = await createUnderCondition('StrictCostEnforcementForWebhooks=true');
  expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining(tooDear)]);
});

test('VER-2: without strict costs the work of an expression is still limited', async () => {
  const running = await started();
  const kit = await policyKit(running);
  const list = `[${Array.from({ length: 100 }, (_, index) => index).join(',')}]`;
  const expression = `${list}.all(a, ${list}.all(b, ${list}.all(c, a + b + c >= 0)))`;
  await kit.bound({ validations: [{ expression }] });
  const refused = await running.post(kit.maps, configMap('a'));
  expect(refused.body.message).toContain('actual cost limit exceeded');
});

test('ADM-3: a match costs as much as the text of its pattern, not as its repetitions', async () => {
  const kit = await policyKit(current);
  const expression =
    "object.data.hosts.split(',').all(h, h.matches('^[a-z0-9.-]{1,253}$') && h.startsWith('a'))";
  await kit.bound({ validations: [{ expression }] });
  const hosts = Array.from({ length: 400 }, () => 'a'.repeat(253)).join();
  const created = await current.post(kit.maps, configMap('a', { data: { hosts } }));
  expect([created.status, created.body.message]).toEqual([201, undefined]);
});

test('ADM-3: a search in a list of unknown type costs as much as any call', async () => {
  const kit = await policyKit(current);
  const list = 'object.metadata.finalizers';
  const expression = `${list}.all(f, ${list}.all(g, f in ${list}))`;
  await kit.bound({ validations: [{ expression }] });
  const finalizers = Array.from({ length: 150 }, (_, index) => `example.com/f${index}`);
  const metadata = { name: 'a', finalizers };
  const created = await current.post(kit.maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  expect([created.status, created.body.message]).toEqual([201, undefined]);
});

test('ADM-3: an expression pays once for what it evaluates before long variables', async () => {
  const kit = await policyKit(current);
  const list = `[${Array.from({ length: 100 }, (_, index) => index).join(',')}]`;
  const long = `${list}.all(a, ${list}.all(b, a + b >= 0))`;
  const names = Array.from({ length: 8 }, (_, index) => `v${index}`);
  const first = `${list}.all(a, ${list}.all(b, [1, 2, 3, 4].all(c, a + b + c >= 0)))`;
  await kit.bound({
    variables: names.map((name) => ({ name, expression: long })),
    validations: [
      { expression: [first, ...names.map((name) => `variables.${name}`)].join(' && ') },
    ],
  });
  const created = await current.post(kit.maps, configMap('a'));
  expect([created.status, created.body.message]).toEqual([201, undefined]);
});
