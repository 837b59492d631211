import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonObject, silentLogger, systemClock } from '@wheelhouse/machinery';
import { readFeatureGates, readOptions } from '@wheelhouse/server/testing';
import { openEmbeddedStore } from '@wheelhouse/store';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { auditFolder, named } from '../audit/audit-run.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import {
  adminToken,
  type ConfigChange,
  configMap,
  eventually,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { writeEncryption } from './encryption-file.ts';
import { onEtcd } from './etcd-config.ts';

let directory: string;

beforeEach(() => {
  directory = temporaryFolder();
});

const core = '/api/v1/namespaces/default';
const secretKey = '/registry/secrets/default/s';
const keyOf = (name: string, bytes = 32) => ({
  name,
  secret: randomBytes(bytes).toString('base64'),
});
const secret = (name: string, word = 'hidden-word') => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { word },
});

const configFile = (resources: JsonObject[], name = 'encryption.json'): string =>
  writeEncryption(directory, resources, name);

/** A server on the test's data, stopped at the end of the test at the latest. */
function serverOf(
  resources: JsonObject[] | undefined,
  change: ConfigChange = {},
): Promise<TestServer> {
  const file = resources === undefined ? undefined : configFile(resources);
  return withServer({
    store: { type: 'embedded', directory: join(directory, 'store') },
    ...(file === undefined ? {} : { encryption: { file, reload: 'off' as const } }),
    ...change,
  });
}

/** The stored value of a key, while no server is running. */
async function stored(key: string): Promise<Buffer> {
  const store = await openEmbeddedStore({
    directory: join(directory, 'store'),
    clock: systemClock,
    logger: silentLogger,
  });
  const record = await store.get(key);
  await store.close();
  return record?.value ?? Buffer.alloc(0);
}

describe('values in the store', () => {
  test.each([
    ['aescbc', 32],
    ['aesgcm', 16],
    ['secretbox', 32],
  ] as const)('STORE-3: %s encrypts only the configured resources', async (type, bytes) => {
    const provider = { [type]: { keys: [keyOf('key1', bytes)] } };
    const rules = [{ resources: ['secrets'], providers: [provider, { identity: {} }] }];
    const server = await serverOf(rules);
    const made = await server.post(`${core}/secrets`, secret('s'));
    expect(made.status).toBe(201);
    await server.post(`${core}/configmaps`, configMap('c'));
    await server.stop();
    const sealed = await stored(secretKey);
    expect(sealed.toString('latin1').startsWith(`k8s:enc:${type}:v1:key1:`)).toBe(true);
    expect(sealed.includes('hidden-word')).toBe(false);
    expect(sealed.includes(Buffer.from('hidden-word').toString('base64'))).toBe(false);
    expect((await stored('/registry/configmaps/default/c')).toString()).toContain('"ConfigMap"');

    const again = await serverOf(rules);
    const read = await again.get(`${core}/secrets/s`);
    expect(read.body.data).toEqual(made.body.data);
    expect((await again.get(`${core}/secrets`)).body.items).toHaveLength(1);
  });

  test('STORE-3: the name of a resource may end with the dot before its empty group', async () => {
    const providers = [{ secretbox: { keys: [keyOf('dotted')] } }];
    const server = await serverOf([{ resources: ['secrets.', '*.apps'], providers }]);
    expect((await server.post(`${core}/secrets`, secret('s'))).status).toBe(201);
    await server.stop();
    expect((await stored(secretKey)).toString('latin1')).toContain('k8s:enc:secretbox:v1:dotted:');
  });

  test('STORE-3: a file may be an EncryptionConfig of v1, the older name of its kind', async () => {
    const file = join(directory, 'older.json');
    const providers = [{ aesgcm: { keys: [keyOf('EncryptionConfig')] } }];
    const resources = [{ resources: ['secrets'], providers }];
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'EncryptionConfig', resources }));
    const server = await serverOf(undefined, { encryption: { file, reload: 'off' } });
    expect((await server.post(`${core}/secrets`, secret('s'))).status).toBe(201);
    await server.stop();
    const sealed = await stored(secretKey);
    expect(sealed.toString('latin1')).toContain('k8s:enc:aesgcm:v1:EncryptionConfig:');
    const again = await serverOf(resources);
    expect((await again.get(`${core}/secrets/s`)).status).toBe(200);
  });

  test('STORE-3: a comment may mention the older name, and a secret may have unused bits', async () => {
    const file = join(directory, 'commented.yaml');
    // The last character before the padding holds two unused bits.
    const secret = `${Buffer.alloc(32, 7).toString('base64').slice(0, -2)}d=`;
    const resources = [{ resources: ['secrets'], providers: [{ aescbc: { keys: [] } }] }];
    const rules = JSON.stringify(resources).replace('[]', JSON.stringify([{ name: 'a', secret }]));
    writeFileSync(
      file,
      `# Formerly kind: EncryptionConfig\napiVersion: apiserver.config.svc.io/v1\nkind: EncryptionConfiguration\nresources: ${rules}\n`,
    );
    const server = await serverOf(undefined, { encryption: { file, reload: 'off' } });
    expect((await server.post(`${core}/secrets`, { metadata: { name: 's' } })).status).toBe(201);
  });

  test('STORE-3: after a rotation, old values are readable and writes use the new key', async () => {
    const [old, next] = [keyOf('old'), keyOf('new')];
    const first = await serverOf([
      { resources: ['secrets'], providers: [{ aesgcm: { keys: [old] } }] },
    ]);
    await first.post(`${core}/secrets`, secret('s'));
    await first.stop();
    const second = await serverOf([
      {
        resources: ['secrets'],
        providers: [{ aescbc: { keys: [next] } }, { aesgcm: { keys: [old] } }, { identity: {} }],
      },
    ]);
    const read = await second.get(`${core}/secrets/s`);
    expect(read.status).toBe(200);
    const dry = await second.put(`${core}/secrets/s?dryRun=All`, read.body);
    expect(dry.body.metadata.resourceVersion).toBe(read.body.metadata.resourceVersion);
    const written = await second.put(`${core}/secrets/s`, read.body);
    expect(written.status).toBe(200);
    expect(written.body.data).toEqual(read.body.data);
    expect(written.body.metadata.resourceVersion).not.toBe(read.body.metadata.resourceVersion);
    const same = await second.put(`${core}/secrets/s`, written.body);
    expect(same.body.metadata.resourceVersion).toBe(written.body.metadata.resourceVersion);
    await second.stop();
    const sealed = await stored(secretKey);
    expect(sealed.toString('latin1').startsWith('k8s:enc:aescbc:v1:new:')).toBe(true);

    const third = await serverOf([
      { resources: ['*.*'], providers: [{ aescbc: { keys: [next] } }, { identity: {} }] },
    ]);
    expect((await third.get(`${core}/secrets/s`)).status).toBe(200);
    await third.post(`${core}/configmaps`, configMap('all'));
    await third.stop();
    const map = await stored('/registry/configmaps/default/all');
    expect(map.toString('latin1').startsWith('k8s:enc:aescbc:v1:new:')).toBe(true);
  });

  test('STORE-3: metrics count transformations', async () => {
    const server = await serverOf([
      { resources: ['secrets'], providers: [{ aesgcm: { keys: [keyOf('k')] } }] },
    ]);
    await server.post(`${core}/secrets`, secret('s'));
    const { text } = await server.get('/metrics');
    expect(text).toContain(
      'apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:aesgcm:v1:"} 1',
    );
    expect(text).toMatch(
      /apiserver_storage_transformation_duration_seconds_count\{transformation_type="to_storage",transformer_prefix="k8s:enc:aesgcm:v1:"\} 1/,
    );
  });
});

/** Starts a server with one Secret that was encrypted with a key that it does not have. */
async function withLostKey(change: ConfigChange = {}): Promise<TestServer> {
  const first = await serverOf([
    { resources: ['secrets'], providers: [{ aesgcm: { keys: [keyOf('lost')] } }] },
  ]);
  await first.post(`${core}/secrets`, secret('s'));
  await first.stop();
  return serverOf(
    [{ resources: ['secrets'], providers: [{ aesgcm: { keys: [keyOf('key1')] } }] }],
    change,
  );
}

const problem =
  'data from the storage is not transformable revision=0: no matching key was found for the provided AES transformer';
const corrupt = `StorageError: corrupt object, Code: 7, Key: ${secretKey}, ResourceVersion: 0, AdditionalErrorMsg: ${problem}`;

describe('unreadable values', () => {
  test('STORE-3: requests for unreadable values report corruption, and others succeed', async () => {
    const server = await withLostKey();
    const read = await server.get(`${core}/secrets/s`);
    expect(read.status).toBe(500);
    expect(read.body).toMatchObject({
      reason: 'InternalError',
      message: `Internal error occurred: ${corrupt}`,
    });
    const list = await server.get('/api/v1/secrets');
    expect(list.status).toBe(500);
    expect(list.body).toMatchObject({
      reason: 'StorageReadError',
      message: 'failed to read one or more secrets from the storage',
      details: {
        kind: 'secrets',
        name: 'list',
        causes: [{ reason: 'UnexpectedServerResponse', message: corrupt, field: secretKey }],
      },
    });
    expect((await server.get(`${core}/secrets`)).status).toBe(500);
    expect((await server.get('/api/v1/namespaces/other/secrets')).status).toBe(200);
    expect((await server.put(`${core}/secrets/s`, secret('s'))).status).toBe(500);
    expect((await server.patch(`${core}/secrets/s`, { data: {} }, 'merge')).status).toBe(500);
    expect((await server.remove(`${core}/secrets/s`)).status).toBe(500);
    expect((await server.post(`${core}/secrets`, secret('s'))).status).toBe(409);
    expect((await server.post(`${core}/secrets`, secret('t'))).status).toBe(201);
    expect((await server.get(`${core}/secrets/t`)).status).toBe(200);
    expect((await server.get(`${core}/configmaps`)).status).toBe(200);
    const watch = await server.watch('/api/v1/secrets?watch=1');
    await watch.until((events) => events.length > 0, 'the error');
    expect(watch.events[0]).toMatchObject({
      type: 'ERROR',
      object: { reason: 'StorageReadError', code: 500 },
    });
  });

  test('STORE-3: encrypted values are unreadable without a configuration', async () => {
    const first = await serverOf([
      { resources: ['secrets'], providers: [{ secretbox: { keys: [keyOf('k')] } }] },
    ]);
    await first.post(`${core}/secrets`, secret('s'));
    await first.stop();
    const server = await serverOf(undefined);
    const read = await server.get(`${core}/secrets/s`);
    expect(read.status).toBe(500);
    expect(read.body.message).toContain(
      `StorageError: corrupt object, Code: 7, Key: ${secretKey}, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=`,
    );
  });

  test('STORE-3: a reloaded file can add a missing key', async () => {
    const [lost, own] = [keyOf('lost'), keyOf('own')];
    const rule = (...keys: JsonObject[]) => [
      { resources: ['secrets'], providers: [{ aesgcm: { keys } }] },
    ];
    const first = await serverOf(rule(lost));
    await first.post(`${core}/secrets`, secret('s'));
    await first.stop();
    const file = configFile(rule(own), 'followed.json');
    const hiddenMetrics = 'shown';
    const encryption = { file, reload: 'automatic' } as const;
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (message: string) => errors.push(message) };
    const clock = quickClock(20);
    const server = await serverOf(undefined, { encryption, hiddenMetrics, logger, clock });
    expect((await server.get(`${core}/secrets/s`)).status).toBe(500);
    writeFileSync(file, '{');
    const failed =
      /_automatic_reloads_total\{apiserver_id_hash="sha256:[0-9a-f]{64}",status="failure"\} 1\n/;
    const message = 'cannot reload the encryption configuration';
    await eventually(async () => errors.includes(message), 'the failed reload');
    const { text } = await server.get('/metrics');
    expect(text).toMatch(failed);
    expect(text).toMatch(
      /_automatic_reload_failures_total\{apiserver_id_hash="sha256:[0-9a-f]{64}"\} 1\n/,
    );
    expect((await server.post(`${core}/secrets`, secret('t'))).status).toBe(201);
    configFile(rule(own, lost), 'followed.json');
    await eventually(
      async () => (await server.get(`${core}/secrets/s`)).status === 200,
      'the object that can be read again',
    );
    expect((await server.get(`${core}/secrets`)).body.items).toHaveLength(2);
  });
});

describe.skipIf(!hasEtcd)('etcd', () => {
  test('STORE-3: a server without the newest key reports unreadable values', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const [old, next] = [keyOf('old'), keyOf('new')];
    const rule = (...keys: JsonObject[]) => [
      { resources: ['secrets'], providers: [{ secretbox: { keys } }] },
    ];
    const file = configFile(rule(old), 'slow.json');
    const shared = onEtcd(etcd);
    const slow = await serverOf(undefined, {
      ...shared,
      encryption: { file, reload: 'automatic' },
    });
    const quick = await serverOf(rule(next, old), shared);
    const made = await slow.post(`${core}/secrets`, secret('s'));
    const read = await quick.get(`${core}/secrets/s`);
    expect(read.body).toEqual(made.body);
    const watch = await slow.watch(`${core}/secrets?watch=1`);
    await watch.until((events) => events.length === 1, 'the Secret');
    expect((await quick.put(`${core}/secrets/s`, read.body)).status).toBe(200);
    const lost = await eventually(async () => {
      const answer = await slow.get(`${core}/secrets/s`);
      return answer.status === 500 ? answer : undefined;
    }, 'the error');
    expect(lost.body.message).toContain('no matching key was found for the provided Secretbox');
    expect(watch.events.map(({ type }) => type)).toEqual(['ADDED']);
    configFile(rule(old, next), 'slow.json');
    await eventually(
      async () => (await slow.get(`${core}/secrets/s`)).status === 200,
      'the Secret that can be read again',
    );
    await watch.ended;
  });
});

describe('deleting unreadable objects', () => {
  const option = 'ignoreStoreReadErrorWithClusterBreakingPotential';
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', [option]: true };
  const { gates } = readFeatureGates(['AllowUnsafeMalformedObjectDeletion=true']);

  test('DEL-6: with its feature gate, the option removes an unreadable object', async () => {
    const audit = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
    const server = await withLostKey({ featureGates: gates, audit: audit.settings });
    expect((await server.remove(`${core}/secrets/s`)).status).toBe(500);
    const { id, headers } = named();
    const removed = await server.remove(`${core}/secrets/s`, body, { headers });
    expect(removed.status).toBe(200);
    expect(removed.body).toMatchObject({
      kind: 'Status',
      status: 'Success',
      details: { name: 's', kind: 'secrets' },
    });
    expect((await server.get(`${core}/secrets/s`)).status).toBe(404);
    expect((await server.get(`${core}/secrets`)).body.items).toEqual([]);
    expect((await server.post(`${core}/secrets`, secret('s'))).status).toBe(201);
    const event = await audit.lastOf(id);
    expect(event.annotations).toHaveProperty(['apiserver.svc.io/unsafe-delete-ignore-read-error']);
  });

  test('DEL-6: the option removes neither a readable nor a missing object', async () => {
    const server = await withLostKey({ featureGates: gates });
    await server.post(`${core}/secrets`, secret('t'));
    const refused = await server.remove(`${core}/secrets/t`, body);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain(
      `${option}: Invalid value: true: is exclusively used to delete corrupt object(s), try again by removing this option`,
    );
    expect((await server.get(`${core}/secrets/t`)).status).toBe(200);
    expect((await server.remove(`${core}/secrets/none`, body)).status).toBe(404);
    const many = await server.remove(`${core}/secrets`, body);
    expect(many.status).toBe(422);
    expect(many.body.message).toContain(
      `${option}: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option`,
    );
    const beside = await server.remove(`${core}/secrets/s`, { ...body, gracePeriodSeconds: 0 });
    expect(beside.status).toBe(422);
    expect((await server.get(`${core}/secrets/s`)).status).toBe(500);
  });

  test('DEL-6: the option requires its own verb in addition to delete', async () => {
    const server = await withLostKey({ featureGates: gates });
    const rbac = '/apis/rbac.authorization.svc.io/v1';
    const grant = async (verbs: string[]) => {
      const role = {
        apiVersion: 'rbac.authorization.svc.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'remover' },
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs }],
      };
      await server.patch(`${rbac}/clusterroles/remover?fieldManager=t&force=true`, role, 'apply');
    };
    await grant(['delete']);
    await server.post(`${rbac}/clusterrolebindings`, {
      apiVersion: 'rbac.authorization.svc.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'remover' },
      roleRef: { apiGroup: 'rbac.authorization.svc.io', kind: 'ClusterRole', name: 'remover' },
      subjects: [{ apiGroup: 'rbac.authorization.svc.io', kind: 'User', name: 'ann' }],
    });
    const headers = { 'impersonate-user': 'ann', authorization: `Bearer ${adminToken}` };
    const remove = () => server.remove(`${core}/secrets/s`, body, { headers });
    await eventually(async () => (await remove()).body.message?.includes('unsafe-delete'));
    const refused = await remove();
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain(
      'not permitted to do "unsafe-delete-ignore-read-errors"',
    );
    await grant(['delete', 'unsafe-delete-ignore-read-errors']);
    await eventually(async () => (await remove()).status === 200, 'the removal');
  });
});

describe('the configuration', () => {
  const failing = (resources: JsonObject[] | string): Promise<string> => {
    const file =
      typeof resources === 'string' ? join(directory, 'text.yaml') : configFile(resources);
    if (typeof resources === 'string') writeFileSync(file, resources);
    return startTestServer({ encryption: { file, reload: 'off' } }).then(
      async (server) => {
        await server.stop();
        return 'it started';
      },
      (error: Error) => error.message.replace(file, 'FILE'),
    );
  };
  const identity = [{ identity: {} }];
  const keys = (...list: JsonObject[]) => [{ aescbc: { keys: list } }];

  test('STORE-3: an invalid configuration stops the start with one line without secrets', async () => {
    const short = randomBytes(10).toString('base64');
    const cases: readonly (readonly [JsonObject[] | string, string])[] = [
      [[], 'resources: Required value: at least one resources is required'],
      [[{ resources: [], providers: identity }], 'resources[0].resources: Required value'],
      [[{ resources: ['a'], providers: [] }], 'resources[0].providers: Required value'],
      [[{ resources: ['*'], providers: identity }], "use '*.' to encrypt all the resources"],
      [[{ resources: ['Pods'], providers: identity }], 'should not contain capital letters'],
      [
        [{ resources: ['pods.*'], providers: identity }],
        'encrypting the same resource across groups',
      ],
      [[{ resources: ['events.events.svc.io'], providers: identity }], "Use 'events' instead"],
      [[{ resources: ['pods', 'pods'], providers: identity }], 'specified multiple times'],
      [[{ resources: ['pods', 'pods.'], providers: identity }], 'specified multiple times'],
      [[{ resources: ['pods', '*.'], providers: identity }], 'using overlapping resources'],
      [[{ resources: ['a'], providers: [{}] }], 'does not contain any of the expected providers'],
      [
        [{ resources: ['a'], providers: [{ identity: {}, aescbc: { keys: [] } }] }],
        'more than one provider specified in a single element',
      ],
      [[{ resources: ['a'], providers: keys() }], 'aescbc.keys: Required value: at least one keys'],
      [
        [{ resources: ['a'], providers: keys({ name: 'k', secret: short }) }],
        'secret: Invalid value: "REDACTED": secret is not of the expected length, got 10, expected one of [16 24 32]',
      ],
      [
        [{ resources: ['a'], providers: keys({ name: '', secret: '!' }) }],
        'name is a mandatory field for a key',
      ],
      [[{ resources: ['a'], providers: [{ kms: { name: 'k' } }] }], 'kms.endpoint: Invalid value'],
      [
        [
          { resources: ['*.apps'], providers: identity },
          { resources: ['deployments.apps'], providers: identity },
        ],
        'resource "deployments.apps" is masked by earlier rule "*.apps"',
      ],
      ['kind: Other', "Object 'apiVersion' is missing"],
    ];
    for (const [resources, message] of cases) {
      const shown = await failing(resources);
      expect(shown).toContain('error while parsing file: FILE: ');
      expect(shown).toContain(message);
      expect(shown).not.toContain(short);
      expect(shown).not.toContain('\n');
    }
  });

  test('STORE-3: flags name the configuration file and enable its reloads', () => {
    const reads = (...args: string[]) => {
      const outcome = readOptions(args);
      return outcome.kind === 'options' ? outcome.options.config.encryption : undefined;
    };
    const file = '--encryption-provider-config=e.yaml';
    const reload = '--encryption-provider-config-automatic-reload';
    expect(reads(file)).toEqual({ file: 'e.yaml', reload: 'off' });
    expect(reads(file, reload)).toEqual({ file: 'e.yaml', reload: 'automatic' });
    expect(reads()).toBeUndefined();
    expect(() => reads(reload)).toThrow(
      '--encryption-provider-config-automatic-reload must be set with --encryption-provider-config',
    );
  });
});
