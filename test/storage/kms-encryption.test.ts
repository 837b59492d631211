import { join } from 'node:path';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { openEmbeddedStore } from '@wheelhouse/store';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { type ConfigChange, configMap, eventually, type TestServer } from '../support/harness.ts';
import { type KmsPlugin, startKmsPlugin } from '../support/kms-plugin.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { writeEncryption } from './encryption-file.ts';
import { onEtcd } from './etcd-config.ts';

let directory: string;
let plugin: KmsPlugin;

beforeEach(async () => {
  directory = temporaryFolder();
  plugin = await untilEnd(startKmsPlugin(join(directory, 'kms.sock')));
});

const core = '/api/v1/namespaces/default';
const secret = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { word: 'hidden-word' },
});
type Kms = Readonly<Record<string, string | number>>;
const kms = (change: Kms = {}) => ({
  kms: { apiVersion: 'v2', name: 'vault', endpoint: `unix://${directory}/kms.sock`, ...change },
});
const rule = (...providers: object[]) => [{ resources: ['secrets'], providers }];

const configFile = (resources: object, name = 'encryption.json'): string =>
  writeEncryption(directory, resources, name);

/** A server on the test's data, stopped at the end of the test at the latest. */
function serverOf(resources: object, change: ConfigChange = {}): Promise<TestServer> {
  return withServer({
    store: { type: 'embedded', directory: join(directory, 'store') },
    encryption: { file: configFile(resources), reload: 'off' },
    ...change,
  });
}

/** The stored value of a Secret, while no server is running. */
async function stored(name: string, change?: (value: Buffer) => Buffer): Promise<Buffer> {
  const store = await openEmbeddedStore({
    directory: join(directory, 'store'),
    clock: systemClock,
    logger: silentLogger,
  });
  const key = `/registry/secrets/default/${name}`;
  const record = await store.get(key);
  const value = record?.value ?? Buffer.alloc(0);
  if (change !== undefined) {
    await store.put({ key, value: change(value), expect: record?.modRevision ?? 0 });
  }
  await store.close();
  return value;
}

const word = Buffer.from('hidden-word').toString('base64');

describe('KMS v2', () => {
  test('STORE-3: values have keys from a seed that the plugin encrypts once', async () => {
    const server = await serverOf(rule(kms(), { identity: {} }));
    for (const name of ['a', 'b', 'c']) {
      expect((await server.post(`${core}/secrets`, secret(name))).status).toBe(201);
    }
    await server.post(`${core}/configmaps`, configMap('c'));
    expect((await server.get(`${core}/secrets/a`)).body.data.word).toBe(word);
    expect(plugin.count('Encrypt')).toBe(1);
    expect(plugin.count('Decrypt')).toBe(0);
    await server.stop();
    const sealed = await stored('a');
    expect(sealed.toString('latin1').startsWith('k8s:enc:kms:v2:vault:')).toBe(true);
    expect(sealed.includes('hidden-word')).toBe(false);
    expect(sealed.includes(word)).toBe(false);

    const again = await serverOf(rule(kms(), { identity: {} }));
    expect((await again.get(`${core}/secrets`)).body.items).toHaveLength(3);
    expect((await again.get(`${core}/secrets/b`)).body.data.word).toBe(word);
    expect(plugin.count('Decrypt')).toBe(1);
  });

  test('STORE-3: metrics count calls, keys, and transformations', async () => {
    const server = await serverOf(rule(kms()));
    await server.post(`${core}/secrets`, secret('a'));
    await server.stop();
    const again = await serverOf(rule(kms()));
    await again.get(`${core}/secrets/a`);
    await again.post(`${core}/secrets`, secret('b'));
    const { text } = await again.get('/metrics');
    const ofKey =
      'apiserver_id_hash="sha256:[0-9a-f]{64}",key_id_hash="sha256:a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e",provider_name="vault"';
    for (const line of [
      'apiserver_envelope_encryption_kms_operations_latency_seconds_count\\{grpc_status_code="OK",method_name="/v2.KeyManagementService/Decrypt",provider_name="vault"\\} 1',
      'apiserver_envelope_encryption_kms_operations_latency_seconds_count\\{grpc_status_code="OK",method_name="/v2.KeyManagementService/Encrypt",provider_name="vault"\\} 1',
      `apiserver_envelope_encryption_key_id_hash_total\\{${ofKey},transformation_type="from_storage"\\} 1`,
      `apiserver_envelope_encryption_key_id_hash_total\\{${ofKey},transformation_type="to_storage"\\} 1`,
      `apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds\\{${ofKey},transformation_type="to_storage"\\} \\d`,
      `apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds\\{${ofKey}\\} \\d`,
      'apiserver_envelope_encryption_dek_source_cache_size\\{provider_name="vault"\\} 2',
      'apiserver_storage_envelope_transformation_cache_misses_total 1',
      'apiserver_storage_data_key_generation_duration_seconds_count 1',
      'apiserver_storage_transformation_operations_total\\{resource="secrets",status="OK",transformation_type="from_storage",transformer_prefix="k8s:enc:kms:v2:vault:"\\} 1',
    ]) {
      expect(text).toMatch(new RegExp(`^${line}`, 'm'));
    }
  });

  test('STORE-3: later writes use a new key of the plugin', async () => {
    const clock = quickClock(1);
    const server = await serverOf(rule(kms()), { clock });
    const made = await server.post(`${core}/secrets`, secret('a'));
    const same = await server.put(`${core}/secrets/a`, made.body);
    expect(same.body.metadata.resourceVersion).toBe(made.body.metadata.resourceVersion);
    plugin.state.keyId = 'second';
    clock.skip(30_000);
    expect((await server.get('/healthz/kms-providers')).status).toBe(200);
    const written = await server.put(`${core}/secrets/a`, made.body);
    expect(written.body.metadata.resourceVersion).not.toBe(made.body.metadata.resourceVersion);
    expect(plugin.count('Encrypt')).toBe(2);
    await server.stop();
    expect((await stored('a')).includes('second')).toBe(true);
  });

  test('HEALTH-2: healthz and readyz check the plugins, and livez does not', async () => {
    const clock = quickClock(1);
    const server = await serverOf(rule(kms()), { clock });
    expect((await server.get('/readyz?verbose')).text).toContain('[+]kms-providers ok');
    plugin.state.healthz = 'sealed';
    clock.skip(30_000);
    expect((await server.get('/healthz')).status).toBe(500);
    expect((await server.get('/readyz')).text).toContain('[-]kms-providers failed');
    const { status, text } = await server.get('/readyz/kms-providers');
    expect(status).toBe(500);
    expect(text).toContain(
      'kms-provider-0: kmsv2 Provider vault is not healthy, error: got unexpected healthz status: sealed',
    );
    expect((await server.get('/livez')).status).toBe(200);
    expect((await server.get('/livez/kms-providers')).status).toBe(404);
    plugin.state.healthz = 'ok';
    clock.skip(5_000);
    expect((await server.get('/healthz')).status).toBe(200);
  });

  test('STORE-3: a server starts without its plugin and reads values once it is back', async () => {
    const first = await serverOf(rule(kms()));
    await first.post(`${core}/secrets`, secret('a'));
    await first.stop();
    await plugin.stop();
    const clock = quickClock(1);
    const server = await serverOf(rule(kms({ timeout: '50ms' })), { clock });
    expect((await server.get('/readyz')).status).toBe(500);
    const read = await server.get(`${core}/secrets/a`);
    expect(read.status).toBe(500);
    expect(read.body.message).toContain('KMS provider vault has no key');
    const refused = await server.post(`${core}/secrets`, secret('b'));
    expect(refused.status).toBe(500);
    expect(refused.body).toMatchObject({ reason: 'InternalError' });
    expect(refused.body.message).toContain('KMS provider vault has no key');
    expect((await server.post(`${core}/configmaps`, configMap('c'))).status).toBe(201);
    await plugin.start();
    clock.skip(5_000);
    await eventually(async () => {
      clock.skip(5_000);
      return (await server.get('/healthz/kms-providers')).status === 200;
    }, 'the plugin');
    await eventually(async () => {
      // On a busy machine, decryption may exceed the timeout; it is retried with a check.
      clock.skip(20_000);
      await server.get('/healthz/kms-providers');
      return (await server.get(`${core}/secrets/a`)).status === 200;
    }, 'the Secret');
    expect((await server.post(`${core}/secrets`, secret('b'))).status).toBe(201);
    await server.stop();
    await plugin.stop();
    plugin = await untilEnd(startKmsPlugin(join(directory, 'kms.sock')));
  });

  test('STORE-3: a failing plugin stops writes after three minutes but no reads', async () => {
    const clock = quickClock(1);
    const server = await serverOf(rule(kms()), { clock });
    await server.post(`${core}/secrets`, secret('a'));
    for (const method of ['Status', 'Encrypt', 'Decrypt']) plugin.state.failures.set(method, 14);
    clock.skip(60_000);
    expect((await server.get('/healthz/kms-providers')).text).toContain(
      'failed to perform status section of the healthz check for KMS Provider vault, error: rpc error: code = Unavailable desc = the vault is sealed',
    );
    expect((await server.post(`${core}/secrets`, secret('b'))).status).toBe(201);
    clock.skip(180_000);
    const refused = await server.post(`${core}/secrets`, secret('c'));
    expect(refused.status).toBe(500);
    expect(refused.body.message).toMatch(
      /^Internal error occurred: encryptedDEKSource with keyID hash "sha256:[0-9a-f]{64}" expired at \S+Z \(current time is \S+Z\)$/,
    );
    expect((await server.get(`${core}/secrets`)).body.items).toHaveLength(2);
    plugin.state.failures.clear();
    clock.skip(5_000);
    expect((await server.get('/healthz/kms-providers')).status).toBe(200);
    expect((await server.post(`${core}/secrets`, secret('c'))).status).toBe(201);
    expect(plugin.count('Encrypt')).toBe(1);
  });

  const faultyAnswers: readonly [string, Partial<KmsPlugin['state']>, string][] = [
    ['no key', { keyId: '' }, 'got invalid KMSv2 KeyID hash "": keyID is empty'],
    [
      'too long a name',
      { keyId: 'k'.repeat(1025) },
      'keyID is 1025 bytes, which exceeds the max size of 1024',
    ],
    ['two keys', { statusKeyId: 'other' }, 'failed to rotate DEK uid='],
    [
      'no ciphertext',
      { ciphertext: Buffer.alloc(0) },
      'failed to validate encrypted DEK source: encrypted DEK source is empty',
    ],
    [
      'a long ciphertext',
      { ciphertext: Buffer.alloc(1025) },
      'encrypted DEK source is 1025 bytes, which exceeds the max size of 1024',
    ],
    [
      'wrong annotations',
      { annotations: [{ key: 'key', value: Buffer.alloc(0) }] },
      'failed to validate annotations: annotations: Invalid value: "key": should be a domain with at least two segments separated by dots',
    ],
    [
      'large annotations',
      { annotations: [{ key: 'a.b', value: Buffer.alloc(32 * 1024) }] },
      'total size of annotations is 32771, which exceeds the max size of 32768',
    ],
    [
      'an error',
      { failures: new Map([['Encrypt', 7]]) },
      'failed to encrypt DEK, error: rpc error: code = PermissionDenied desc = the vault is sealed',
    ],
  ];

  test('STORE-3: a plugin that returns a faulty answer is unhealthy', async () => {
    const clock = quickClock(1);
    const initial = { ...plugin.state };
    let server: TestServer | undefined;
    for (const [what, change, message] of faultyAnswers) {
      Object.assign(plugin.state, initial, change);
      clock.skip(30_000);
      // The server has no key yet, because each answer so far was faulty.
      server ??= await serverOf(rule(kms()), { clock });
      const { status, text } = await server.get('/readyz/kms-providers');
      expect(status, what).toBe(500);
      expect(text, what).toContain(message);
      expect((await server.post(`${core}/secrets`, secret('a'))).status, what).toBe(500);
    }
  });

  test('HEALTH-2: a plugin with another version, or with two, is unhealthy', async () => {
    const clock = quickClock(1);
    plugin.state.version = 'v3';
    const server = await serverOf(rule(kms()), { clock });
    const check = async () => (await server.get('/readyz/kms-providers')).text;
    expect(await check()).toContain('expected KMSv2 API version v2, got v3');
    plugin.state.version = 'v2beta1';
    clock.skip(30_000);
    expect(await check()).toBe('ok');
    plugin.state.version = 'v2';
    clock.skip(30_000);
    expect(await check()).toContain(
      'KMSv2 API version should not change after the initial status response version v2beta1, got v2',
    );
  });

  test('STORE-3: modified values, and values that the plugin rejects, are unreadable', async () => {
    const server = await serverOf(rule(kms()));
    for (const name of ['a', 'b', 'c']) await server.post(`${core}/secrets`, secret(name));
    await server.stop();
    await stored('b', () => Buffer.from('k8s:enc:kms:v2:vault:\x08'));
    await stored('c', () => Buffer.from('k8s:enc:kms:v2:other:x'));
    plugin.state.plaintext = Buffer.alloc(31);
    const short = await serverOf(rule(kms()));
    const messageOf = async (name: string) =>
      (await short.get(`${core}/secrets/${name}`)).body.message;
    expect(await messageOf('a')).toContain(
      'failed to decrypt DEK, error: invalid seed length 31 used for key generation',
    );
    expect(await messageOf('b')).toContain('StorageError: corrupt object');
    expect(await messageOf('c')).toContain('no matching prefix found');
    await short.stop();
    plugin.state.plaintext = Buffer.alloc(32);
    const wrong = await serverOf(rule(kms()));
    const read = await wrong.get(`${core}/secrets/a`);
    expect(read.body.message).toContain('cipher: message authentication failed');
    await wrong.stop();
    plugin.state.failures.set('Decrypt', 9);
    const refusing = await serverOf(rule(kms()));
    const refused = await refusing.get(`${core}/secrets/a`);
    expect(refused.body.message).toContain(
      'failed to decrypt DEK, error: rpc error: code = FailedPrecondition desc = the vault is sealed',
    );
    expect((await refusing.post(`${core}/secrets`, secret('d'))).status).toBe(201);
  });

  test.skipIf(process.platform !== 'linux')('STORE-3: abstract sockets work', async () => {
    const abstractPlugin = await untilEnd(startKmsPlugin(`@wheelhouse-${process.pid}-kms`));
    const endpoint = `unix:///@wheelhouse-${process.pid}-kms`;
    const server = await serverOf(rule(kms({ endpoint })));
    expect((await server.post(`${core}/secrets`, secret('a'))).status).toBe(201);
    expect(abstractPlugin.count('Encrypt')).toBe(1);
  });
});

describe.skipIf(!hasEtcd)('etcd', () => {
  test('STORE-3: servers with different seeds read and watch each other’s values', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const shared = onEtcd(etcd);
    const first = await serverOf(rule(kms()), shared);
    const second = await serverOf(rule(kms()), shared);
    const watch = await second.watch(`${core}/secrets?watch=1`);
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
    for (const name of names) {
      const from = name.endsWith('5') ? second : first;
      expect((await from.post(`${core}/secrets`, secret(name))).status).toBe(201);
    }
    await watch.until((events) => events.length === names.length, 'all Secrets');
    expect(watch.events.map(({ object }) => object.metadata.name)).toEqual(names);
    expect(watch.events.map(({ object }) => object.data.word)).toEqual(names.map(() => word));
    expect((await second.get(`${core}/secrets`)).body.items).toHaveLength(names.length);
    expect(plugin.count('Decrypt')).toBeLessThanOrEqual(2);
    await watch.close();
  });
});

describe('KMS v1', () => {
  const { gates } = readFeatureGates(['KMSv1=true']);
  const v1 = { apiVersion: 'v1' };

  test('STORE-3: with its feature gate, the plugin encrypts a key for each write', async () => {
    const server = await serverOf(rule(kms(v1)), { featureGates: gates });
    for (const name of ['a', 'b']) await server.post(`${core}/secrets`, secret(name));
    expect(plugin.count('Version')).toBe(1);
    expect(plugin.count('Encrypt')).toBe(2);
    expect((await server.get('/healthz/kms-provider-0')).status).toBe(200);
    expect((await server.get('/healthz/kms-providers')).status).toBe(404);
    await server.stop();
    const sealed = await stored('a');
    expect(sealed.toString('latin1').startsWith('k8s:enc:kms:v1:vault:')).toBe(true);
    expect(sealed.includes('hidden-word')).toBe(false);
    const again = await serverOf(rule(kms(v1)), { featureGates: gates });
    expect((await again.get(`${core}/secrets/b`)).body.data.word).toBe(word);
    const { text } = await again.get('/metrics');
    expect(text).toContain('apiserver_envelope_encryption_dek_cache_fill_percent 0.002\n');
    expect(text).toContain(
      'apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds_count{transformation_type="from_storage"} 2',
    );
    plugin.state.failures.set('Encrypt', 14);
    const refused = await again.post(`${core}/secrets`, secret('c'));
    expect(refused.status).toBe(500);
    expect(refused.body.message).toContain('code = Unavailable desc = the vault is sealed');
  });

  test('STORE-3: the number of concurrent calls to a plugin is bounded', async () => {
    const names = Array.from({ length: 150 }, (_, index) => `s${index}`);
    const server = await serverOf(rule(kms(v1)), { featureGates: gates });
    for (const name of names) {
      expect((await server.post(`${core}/secrets`, secret(name))).status).toBe(201);
    }
    await server.stop();
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    plugin.state.pace = (method) => (method === 'Decrypt' ? released : Promise.resolve());
    const patient = { ...v1, timeout: '60s' };
    const starting = serverOf(rule(kms(patient)), { featureGates: gates });
    const listing = starting.then((again) => again.get(`${core}/secrets`));
    await eventually(async () => plugin.count('Decrypt') >= 64, 'as many calls as there may be');
    release();
    expect((await listing).body.items).toHaveLength(names.length);
    expect(plugin.count('Version')).toBe(2);
    // A health check may add one.
    expect(plugin.mostRunning).toBeLessThanOrEqual(65);
    await (await starting).stop();

    await plugin.stop();
    const alone = await serverOf(rule(kms({ ...v1, timeout: '500ms' })), { featureGates: gates });
    expect((await alone.get(`${core}/secrets`)).status).toBe(500);
  });

  test('STORE-3: the start fails without the feature gate or with a wrong version', async () => {
    await expect(serverOf(rule(kms(v1)))).rejects.toThrow(
      'error while building transformers: KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead. Set --feature-gates=KMSv1=true',
    );
    const { kms: unversioned } = kms();
    const { apiVersion: _, ...rest } = unversioned;
    await expect(serverOf(rule({ kms: rest }))).rejects.toThrow('KMSv1 is deprecated');
    expect(plugin.calls).toEqual([]);
  });
});

describe('the configuration', () => {
  test.each<[string, object[], string]>([
    [
      'no name',
      [kms({ name: '' })],
      'kms.name: Required value: name is a mandatory field for a provider',
    ],
    ['a colon', [kms({ name: 'a:b' })], "invalid KMS provider name a:b, must not contain ':'"],
    ['the same name', [kms(), kms()], 'duplicate KMS provider name vault, names must be unique'],
    ['no endpoint', [kms({ endpoint: '' })], 'endpoint is a mandatory field for a kms'],
    [
      'tcp',
      [kms({ endpoint: 'tcp://h:1' })],
      'unsupported scheme "tcp" for KMS provider, only unix is supported',
    ],
    ['no path', [kms({ endpoint: 'unix://' })], 'invalid endpoint for kms provider'],
    [
      'no time',
      [kms({ timeout: '0s' })],
      'kms.timeout: Invalid value: "0s": timeout should be a positive value',
    ],
    ['a wrong time', [kms({ timeout: 'soon' })], 'invalid duration'],
    ['an empty time', [kms({ timeout: '' })], 'time: invalid duration ""'],
    [
      'a cache',
      [kms({ cachesize: 5 })],
      'kms.cachesize: Invalid value: 5: cachesize is not supported in v2',
    ],
    [
      'no cache of v1',
      [kms({ apiVersion: 'v1', cachesize: 0 })],
      'cachesize should be a positive value, or negative to disable',
    ],
    [
      'v3',
      [kms({ apiVersion: 'v3' })],
      'kms.apiVersion: Invalid value: "v3": unsupported apiVersion',
    ],
    ['more', [kms({ key: 'x' })], 'unknown field "resources[0].providers[0].kms.key"'],
  ])('STORE-3: the start fails with %s', async (_, providers, message) => {
    await expect(serverOf(rule(...providers))).rejects.toThrow(message);
    expect(plugin.calls).toEqual([]);
  });

  test('STORE-3: a reloaded file adds only healthy plugins', async () => {
    const file = configFile(rule({ identity: {} }), 'followed.json');
    const clock = quickClock(20);
    const logged = new Set<string>();
    const log = (message: string) => logged.add(message);
    const logger = { ...silentLogger, info: log, error: log };
    const encryption = { file, reload: 'automatic' } as const;
    const server = await serverOf([], { clock, logger, encryption });
    expect((await server.get('/readyz?verbose')).text).toContain('[+]kms-providers ok');
    expect((await server.get('/readyz?verbose')).text).toContain(
      '[+]poststarthook/start-encryption-provider-config-automatic-reload ok',
    );
    const made = await server.post(`${core}/secrets`, secret('a'));
    const reloads = async (status: string) =>
      Number(
        new RegExp(`_automatic_reloads_total\\{[^}]*status="${status}"\\} (\\d+)`).exec(
          (await server.get('/metrics')).text,
        )?.[1] ?? 0,
      );
    plugin.state.healthz = 'sealed';
    // The clock shortens this timeout too: the plugin gets seconds, not a fraction of one.
    configFile(rule(kms({ timeout: '200s' }), { identity: {} }), 'followed.json');
    await eventually(async () => plugin.count('Status') > 0, 'the check');
    await eventually(async () => {
      clock.skip(5_000);
      return logged.has('cannot reload the encryption configuration');
    }, 'the refused file');
    expect(await reloads('failure')).toBeGreaterThan(0);
    expect((await server.get('/readyz')).status).toBe(200);
    expect((await server.put(`${core}/secrets/a`, made.body)).body.metadata.resourceVersion).toBe(
      made.body.metadata.resourceVersion,
    );
    plugin.state.healthz = 'ok';
    await eventually(async () => {
      clock.skip(60_000);
      return logged.has('the encryption keys have changed');
    }, 'the file that is tried again');
    expect(await reloads('success')).toBeGreaterThan(0);
    const written = await server.put(`${core}/secrets/a`, made.body);
    expect(written.body.metadata.resourceVersion).not.toBe(made.body.metadata.resourceVersion);
    expect((await server.get('/healthz/kms-providers')).status).toBe(200);
  });

  test('STORE-3: values that are read while the plugins change are readable', async () => {
    const resources = (timeout: string) => rule(kms({ timeout }));
    const first = await serverOf(resources('600s'));
    await first.post(`${core}/secrets`, secret('a'));
    await first.stop();
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let reads = 0;
    plugin.state.pace = async (method) => {
      if (method !== 'Decrypt') return;
      reads += 1;
      plugin.state.failures.clear();
      if (reads > 1) return;
      await released;
      plugin.state.failures.set('Decrypt', 14);
    };
    const file = configFile(resources('600s'), 'followed.json');
    const clock = quickClock(20);
    const server = await serverOf([], { clock, encryption: { file, reload: 'automatic' } });
    const reading = server.get(`${core}/secrets/a`);
    await eventually(async () => reads === 1, 'the read');
    const { body: map } = await server.post(`${core}/configmaps`, configMap('c'));
    const keys = [{ name: 'k', secret: Buffer.alloc(32).toString('base64') }];
    const more = { resources: ['configmaps'], providers: [{ aesgcm: { keys } }, { identity: {} }] };
    configFile([...resources('601s'), more], 'followed.json');
    await eventually(async () => {
      clock.skip(5_000);
      // An unchanged object is written if its encryption has changed.
      const { body } = await server.put(`${core}/configmaps/c`, map);
      return body.metadata.resourceVersion !== map.metadata.resourceVersion;
    }, 'the changed configuration');
    release();
    await reading;
    const { status, body } = await server.get(`${core}/secrets/a`);
    expect([status, body.data?.word]).toEqual([200, word]);
  });

  test('STORE-3: a stopping server closes plugins that it is checking', async () => {
    const file = configFile(rule({ identity: {} }), 'followed.json');
    const clock = quickClock(20);
    const server = await serverOf([], { clock, encryption: { file, reload: 'automatic' } });
    plugin.state.healthz = 'sealed';
    configFile(rule(kms({ timeout: '200s' })), 'followed.json');
    await eventually(async () => plugin.count('Status') > 0, 'the check');
    expect(plugin.connections).toBe(1);
    await server.stop();
    await eventually(async () => plugin.connections === 0, 'the end of the connection');
  });
});
