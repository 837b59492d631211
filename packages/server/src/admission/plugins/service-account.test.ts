import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { admissionCall, admissionTools, dialect, refusalOf } from '../testing.ts';
import { serviceAccount } from './service-account.ts';

const pod = (spec: JsonObject = {}, annotations: Record<string, string> = {}): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', annotations },
  spec: { containers: [{ name: 'a' }], ...spec },
});
const account = (name: string, more: JsonObject = {}, annotations = {}): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace: 'default', annotations },
  ...more,
});
const tokenPath = `/var/run/secrets/${dialect.labelDomain}/serviceaccount`;

const admit = async (object: ApiObject, ...accounts: ApiObject[]) => {
  const plugin = serviceAccount(admissionTools({ serviceaccounts: accounts }));
  const why = await refusalOf(plugin.mutate, admissionCall({ resource: 'pods', object }));
  return why ?? object;
};

describe('ADM-1: the account of a new Pod', () => {
  test('must not be removed by another plugin', async () => {
    const { validate } = serviceAccount(admissionTools());
    const call = admissionCall({ resource: 'pods', object: pod() });
    expect(await refusalOf(validate, call)).toBe(
      'no service account specified for pod default/web',
    );
  });

  test('is the default account, whose token is mounted in every container without one', async () => {
    const own = { name: 'mine', mountPath: tokenPath };
    const containers = [{ name: 'a' }, { name: 'b', volumeMounts: [own] }];
    const admitted = await admit(pod({ containers }), account('default'));
    expect(admitted).toMatchObject({
      spec: {
        serviceAccountName: 'default',
        serviceAccount: 'default',
        containers: [
          { volumeMounts: [{ mountPath: tokenPath, readOnly: true }] },
          { volumeMounts: [own] },
        ],
        volumes: [{ name: expect.stringMatching(/^kube-api-access-[a-z0-9]{5}$/) }],
      },
    });
  });

  test('reuses an existing token volume', async () => {
    const volumes = [{ name: 'kube-api-access-mine', emptyDir: {} }];
    const admitted = await admit(pod({ volumes }), account('default'));
    expect(admitted).toMatchObject({
      spec: { volumes, containers: [{ volumeMounts: [{ name: 'kube-api-access-mine' }] }] },
    });
  });

  test.each<[string, JsonObject, JsonObject, boolean]>([
    ['nobody declines', {}, {}, true],
    ['the account declines', {}, { automountServiceAccountToken: false }, false],
    ['the Pod declines', { automountServiceAccountToken: false }, {}, false],
    [
      'the Pod insists',
      { automountServiceAccountToken: true },
      { automountServiceAccountToken: false },
      true,
    ],
  ])('has its token mounted where %s', async (_, spec, more, expected) => {
    const admitted = await admit(pod(spec), account('default', more));
    expect(JSON.stringify(admitted).includes(tokenPath)).toBe(expected);
  });

  test('adds its pull secrets to a Pod that names none', async () => {
    const giver = account('default', { imagePullSecrets: [{ name: 'registry' }] });
    expect(await admit(pod(), giver)).toMatchObject({
      spec: { imagePullSecrets: [{ name: 'registry' }] },
    });
    const own = { imagePullSecrets: [{ name: 'mine' }] };
    expect(await admit(pod(own), giver)).toMatchObject({ spec: own });
  });

  test('must exist', async () => {
    expect(await admit(pod({ serviceAccountName: 'ci' }), account('default'))).toBe(
      'error looking up service account default/ci: serviceaccount "ci" not found',
    );
  });

  test('is awaited when it is the default one of a new namespace', async () => {
    const clock = new FakeClock();
    const accounts: ApiObject[] = [];
    const tools = admissionTools({ serviceaccounts: accounts }, { clock });
    const object = pod();
    const admitted = serviceAccount(tools).mutate?.(admissionCall({ resource: 'pods', object }));
    await new Promise((resolve) => setImmediate(resolve));
    accounts.push(account('default'));
    clock.advance(150);
    await admitted;
    expect(object).toMatchObject({ spec: { serviceAccountName: 'default' } });
  });
});

describe('ADM-1: an account that restricts its Pods to its Secrets', () => {
  const strict = account(
    'default',
    { secrets: [{ name: 'known' }], imagePullSecrets: [{ name: 'pull' }] },
    { [dialect.label('enforce-mountable-secrets')]: 'true' },
  );
  const env = (name: string) => ({
    name: 'a',
    env: [{ name: 'E', valueFrom: { secretKeyRef: { name } } }],
  });

  test.each<[string, JsonObject, RegExp | undefined]>([
    ['a volume of its own Secret', { volumes: [{ secret: { secretName: 'known' } }] }, undefined],
    [
      'a volume of another',
      { volumes: [{ secret: { secretName: 'other' } }] },
      /^volume with secret.secretName="other" is not allowed because service account default/,
    ],
    ['a variable of its own', { containers: [env('known')] }, undefined],
    [
      'a variable of another',
      { containers: [env('other')] },
      /^container a with envVar E referencing secret.secretName="other"/,
    ],
    [
      'a variable of another in an init container',
      { initContainers: [env('other')] },
      /^init container a with envVar E/,
    ],
    [
      'all variables of another',
      { containers: [{ name: 'a', envFrom: [{ secretRef: { name: 'other' } }] }] },
      /^container a with envFrom referencing/,
    ],
    ['its own pull secret', { imagePullSecrets: [{ name: 'pull' }] }, undefined],
    [
      'another pull secret',
      { imagePullSecrets: [{ name: 'pull' }, { name: 'known' }] },
      /^imagePullSecrets\[1\].name="known" is not allowed/,
    ],
  ])('handles %s', async (_, spec, expected) => {
    const admitted = await admit(pod(spec), strict);
    if (expected === undefined) expect(admitted).toBeTypeOf('object');
    else expect(admitted).toMatch(expected);
  });
});

test('ADM-1: a body for ephemeral containers may omit the rest of its Pod', async () => {
  const plugin = serviceAccount(admissionTools({ serviceaccounts: [account('default')] }));
  const at = { resource: 'pods', subresource: 'ephemeralcontainers', operation: 'UPDATE' } as const;
  expect(await refusalOf(plugin.mutate, admissionCall({ ...at, object: pod() }))).toBeUndefined();
  expect(await refusalOf(plugin.validate, admissionCall({ ...at, object: pod() }))).toBe(
    'no service account specified for pod default/web',
  );
  const whole = pod({ serviceAccountName: 'default' });
  expect(await refusalOf(plugin.validate, admissionCall({ ...at, object: whole }))).toBeUndefined();
});

describe('ADM-1: a mirror Pod', () => {
  const mirror = { [dialect.label('config.mirror')]: 'hash' };

  test('is unchanged', async () => {
    expect(await admit(pod({}, mirror))).toEqual(pod({}, mirror));
  });

  test.each<[JsonObject, RegExp]>([
    [{ serviceAccountName: 'a' }, /may not reference service accounts$/],
    [{ volumes: [{ secret: { secretName: 's' } }] }, /may not reference secrets$/],
    [
      { volumes: [{ projected: { sources: [{ serviceAccountToken: {} }] } }] },
      /may not use ServiceAccountToken volume projections$/,
    ],
  ])('with %j is refused', async (spec, expected) => {
    expect(await admit(pod(spec, mirror))).toMatch(expected);
  });
});
