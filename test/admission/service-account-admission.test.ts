import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { freshNamespace, pod, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let ns: string;
const server = await withServer({ controllers: ['*'], admission: {} });

beforeAll(async () => {
  ns = await freshNamespace(server);
});

const core = (path: string) => `/api/v1/namespaces/${ns}/${path}`;

async function created(object: object, query = ''): Promise<ResponseOf<Pod>> {
  const answer = await server.post<ResponseOf<Pod>>(core('pods') + query, object);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

async function refusal(object: object): Promise<string> {
  const answer = await server.post(core('pods'), object);
  expect(answer.status).toBe(403);
  return answer.body.message;
}

const account = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name },
  ...more,
});

const mountPath = '/var/run/secrets/svc.io/serviceaccount';

describe('ADM-1: the account of a pod', () => {
  test('ADM-1: a pod gets the default account of its namespace with a mounted token', async () => {
    const { spec } = await created(
      pod('plain', { initContainers: [{ name: 'before', image: 'x' }] }),
    );
    expect(spec).toMatchObject({ serviceAccountName: 'default', serviceAccount: 'default' });
    const [volume] = spec.volumes;
    expect(spec.volumes).toHaveLength(1);
    expect(volume.name).toMatch(/^kube-api-access-[a-z0-9]{5}$/);
    expect(volume.projected).toEqual({
      defaultMode: 420,
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: 'svc-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [
              {
                path: 'namespace',
                fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' },
              },
            ],
          },
        },
      ],
    });
    const mounts = [{ name: volume.name, readOnly: true, mountPath }];
    expect(spec.containers[0].volumeMounts).toEqual(mounts);
    expect(spec.initContainers[0].volumeMounts).toEqual(mounts);
  });

  test('ADM-1: a named account must exist', async () => {
    expect(await refusal(pod('stray', { serviceAccountName: 'nobody' }))).toBe(
      `pods "stray" is forbidden: error looking up service account ${ns}/nobody: serviceaccount "nobody" not found`,
    );
    await mustCreate(server, core('serviceaccounts'), account('somebody'));
    const { spec } = await created(pod('named', { serviceAccountName: 'somebody' }));
    expect(spec.serviceAccountName).toBe('somebody');
  });

  test('ADM-1: a container with its own mount at the token path keeps it', async () => {
    const own = { name: 'own', mountPath };
    const { spec } = await created(
      pod('own-mount', {
        volumes: [{ name: 'own', emptyDir: {} }],
        containers: [{ name: 'main', image: 'x', volumeMounts: [own] }],
      }),
    );
    expect(spec.volumes.map(({ name }) => name)).toEqual(['own']);
    expect(spec.containers[0].volumeMounts).toEqual([own]);
  });

  test('ADM-1: an existing token volume is used', async () => {
    const volumes = [{ name: 'kube-api-access-mine', emptyDir: {} }];
    const { spec } = await created(pod('own-volume', { volumes }));
    expect(spec.volumes).toHaveLength(1);
    expect(spec.containers[0].volumeMounts[0].name).toBe('kube-api-access-mine');
  });

  test('ADM-1: pod and account can opt out of the token, and the pod takes precedence', async () => {
    await mustCreate(
      server,
      core('serviceaccounts'),
      account('quiet', { automountServiceAccountToken: false }),
    );
    const declined = await created(pod('declines', { automountServiceAccountToken: false }));
    expect(declined.spec.volumes).toBeUndefined();
    const quiet = await created(pod('quiet', { serviceAccountName: 'quiet' }));
    expect(quiet.spec.volumes).toBeUndefined();
    const insists = await created(
      pod('insists', { serviceAccountName: 'quiet', automountServiceAccountToken: true }),
    );
    expect(insists.spec.volumes).toHaveLength(1);
  });

  test('ADM-1: the account’s pull secrets apply unless the pod has its own', async () => {
    const imagePullSecrets = [{ name: 'registry' }];
    await mustCreate(server, core('serviceaccounts'), account('puller', { imagePullSecrets }));
    const spec = { serviceAccountName: 'puller' };
    expect((await created(pod('pulls', spec))).spec.imagePullSecrets).toEqual(imagePullSecrets);
    const own = [{ name: 'own' }];
    const kept = await created(pod('pulls-own', { ...spec, imagePullSecrets: own }));
    expect(kept.spec.imagePullSecrets).toEqual(own);
  });

  test('ADM-1: a dry run returns the same and stores nothing', async () => {
    const { spec } = await created(pod('dry'), '?dryRun=All');
    expect(spec.serviceAccountName).toBe('default');
    expect(spec.volumes).toHaveLength(1);
    expect((await server.get(core('pods/dry'))).status).toBe(404);
  });
});

describe('ADM-1: an account that restricts pods to its Secrets', () => {
  beforeAll(async () => {
    await mustCreate(server, core('serviceaccounts'), {
      ...account('strict', {
        secrets: [{ name: 'listed' }],
        imagePullSecrets: [{ name: 'registry' }],
      }),
      metadata: { name: 'strict', annotations: { 'svc.io/enforce-mountable-secrets': 'true' } },
    });
  });
  const not = (what = 'secret') =>
    `is not allowed because service account strict does not reference that ${what}`;
  const env = (name: string) => [{ name: 'A', valueFrom: { secretKeyRef: { name, key: 'k' } } }];
  const cases: [JsonObject, string][] = [
    [
      { volumes: [{ name: 'v', secret: { secretName: 'other' } }] },
      `volume with secret.secretName="other" ${not()}`,
    ],
    [
      { containers: [{ name: 'main', image: 'x', env: env('other') }] },
      `container main with envVar A referencing secret.secretName="other" ${not()}`,
    ],
    [
      { initContainers: [{ name: 'init', image: 'x', env: env('other') }] },
      `init container init with envVar A referencing secret.secretName="other" ${not()}`,
    ],
    [
      { containers: [{ name: 'main', image: 'x', envFrom: [{ secretRef: { name: 'other' } }] }] },
      `container main with envFrom referencing secret.secretName="other" ${not()}`,
    ],
    [
      { imagePullSecrets: [{ name: 'registry' }, { name: 'other' }] },
      `imagePullSecrets[1].name="other" ${not('imagePullSecret')}`,
    ],
  ];
  test.each(cases)('ADM-1: %j is refused', async (spec, why) => {
    expect(await refusal(pod('bad', { serviceAccountName: 'strict', ...spec }))).toBe(
      `pods "bad" is forbidden: ${why}`,
    );
  });

  test('ADM-1: setting the deprecated annotation returns a warning', async () => {
    const annotation = 'svc.io/enforce-mountable-secrets';
    const path = core('serviceaccounts');
    await mustCreate(server, path, account('warned'));
    const set = { metadata: { annotations: { [annotation]: 'true' } } };
    const first = await server.patch(`${path}/warned`, set, 'merge');
    expect(first.warnings).toEqual([
      `metadata.annotations[${annotation}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
    ]);
    const label = { metadata: { labels: { a: 'b' } } };
    expect((await server.patch(`${path}/warned`, label, 'merge')).warnings).toEqual([]);
  });

  test('ADM-1: listed Secrets are allowed', async () => {
    await created(
      pod('good', {
        serviceAccountName: 'strict',
        volumes: [{ name: 'v', secret: { secretName: 'listed' } }],
        containers: [{ name: 'main', image: 'x', env: env('listed') }],
      }),
    );
  });
});

describe('ADM-1: mirror pods', () => {
  const mirror = { annotations: { 'svc.io/config.mirror': 'x' } };
  const spec = { nodeName: 'n1' };
  test('ADM-1: mirror pods are unchanged', async () => {
    const made = await created(pod('mirror', spec, mirror));
    expect(made.spec.serviceAccountName).toBeUndefined();
    expect(made.spec.volumes).toBeUndefined();
  });
  const token = { serviceAccountToken: { path: 'token' } };
  test.each<[JsonObject, string]>([
    [{ serviceAccountName: 'default' }, 'a mirror pod may not reference service accounts'],
    [
      { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
      'a mirror pod may not reference secrets',
    ],
    [
      { volumes: [{ name: 'v', projected: { sources: [token] } }] },
      'a mirror pod may not use ServiceAccountToken volume projections',
    ],
  ])('ADM-1: %j is refused', async (more, why) => {
    expect(await refusal(pod('mirror-bad', { ...spec, ...more }, mirror))).toBe(
      `pods "mirror-bad" is forbidden: ${why}`,
    );
  });
});
