import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtinKinds } from '@wheelhouse/kinds';
import type { Service } from '@wheelhouse/kinds/types/core/v1';
import { dialectOf } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { hasEtcd, startTestEtcd, type TestEtcd } from '@wheelhouse/store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { referenceValues } from '../kinds/reference-values.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import {
  type ConfigChange,
  configMap,
  eventually,
  type ResponseOf,
  startTestServer,
} from '../support/harness.ts';
import { startKmsPlugin } from '../support/kms-plugin.ts';
import { withServer } from '../support/with-server.ts';
import { onEtcd } from './etcd-config.ts';

const core = '/api/v1/namespaces/default';

describe.skipIf(!hasEtcd)('values in etcd', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterAll(() => etcd.dispose());

  const encoded = (text: string) => Buffer.from(text).toString('base64');

  /** Writes a value like another server. */
  const put = (shared: ConfigChange, key: string, value: Buffer) =>
    etcd.request('kv/put', { key: keyOf(shared, key), value: value.toString('base64') });

  async function stored(shared: ConfigChange, key: string): Promise<Buffer> {
    const { kvs } = await etcd.request('kv/range', { key: keyOf(shared, key) });
    const [found] = (kvs ?? []) as { value: string }[];
    return Buffer.from(found?.value ?? '', 'base64');
  }

  function keyOf({ store }: ConfigChange, key: string): string {
    if (store?.type !== 'etcd') throw new Error('not on etcd');
    return encoded(`${store.prefix}/${key}`);
  }

  const shared = (more: ConfigChange = {}): ConfigChange => ({
    dialect: 'kubernetes',
    ...onEtcd(etcd),
    ...more,
  });

  /** The JSON of an object without the fields that the store assigns. */
  const shown = (text: string) => text.trim().replace(/"resourceVersion":"\d+",/, '');

  test('STORE-2: values stored by kube-apiserver are served and kept byte for byte', async () => {
    const config = shared();
    for (const { key, stored: hex } of referenceValues) {
      await put(config, key, Buffer.from(hex, 'hex'));
    }
    const server = await startTestServer(config);
    for (const { key, path, stored: hex, served } of referenceValues) {
      const read = await server.get(path);
      expect(JSON.parse(shown(read.text)), key).toEqual(JSON.parse(served));
      await server.patch(path, { metadata: { labels: { x: '1' } } }, 'merge');
      const undo = { metadata: { labels: { x: null }, managedFields: [{}] } };
      const undone = await server.patch(path, undo, 'merge');
      expect(undone.status, undone.text).toBe(200);
      expect((await stored(config, key)).toString('hex'), key).toBe(hex);
      expect((await server.remove(path)).status, key).toBe(200);
    }
    await server.stop();
  });

  test('STORE-2: watches see values written by another server in any encoding', async () => {
    const config = shared();
    const server = await withServer(config);
    const watch = await server.watch(`${core}/configmaps?watch=true`);
    const [first] = referenceValues;
    await put(config, 'configmaps/default/c', Buffer.from(first?.stored ?? '', 'hex'));
    const json = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d",';
    await put(config, 'configmaps/default/d', Buffer.from(`${json}"namespace":"default"}}\n`));
    await watch.until((events) => events.length >= 2);
    expect(watch.events[0]?.object.data).toEqual({ k: 'v' });
    expect(watch.events[1]?.object.metadata).toMatchObject({ name: 'd', creationTimestamp: null });
    await put(config, 'configmaps/default/c', Buffer.from('6b38730009', 'hex'));
    const broken = await server.get(`${core}/configmaps/c`);
    expect([broken.status, broken.body.message]).toEqual([
      500,
      expect.stringContaining('AdditionalErrorMsg: object not decodable revision='),
    ]);
    watch.close();
  });

  test('STORE-2: objects of every kind survive a round trip through etcd', async () => {
    const config = { ...onEtcd(etcd), controllers: [] };
    const writer = await withServer(config);
    const collections: string[] = [];
    for (const def of builtinKinds(dialectOf('svc'))) {
      const { example, resource, scope, verbs, isVirtual, isComputed } = def;
      const object = example?.();
      const isStored = verbs.includes('list') && !isVirtual && !isComputed;
      if (object === undefined || !isStored) continue;
      const base = object.apiVersion === 'v1' ? '/api/v1' : `/apis/${object.apiVersion}`;
      const place = scope === 'Namespaced' ? '/namespaces/default' : '';
      const made = await writer.post(`${base}${place}/${resource}`, object);
      // Kinds that are not served have no objects.
      if (made.status === 404) continue;
      expect(made.status, made.text).toBe(201);
      collections.push(`${base}/${resource}`);
    }
    expect(collections.length).toBeGreaterThan(45);
    const reader = await withServer(config);
    for (const path of collections) {
      const [written, read] = [await writer.get(path), await reader.get(path)];
      expect(read.body.items, path).toEqual(written.body.items);
    }
  });

  test('STORE-2: the largest accepted objects can be read again', async () => {
    const config = { ...onEtcd(etcd), controllers: [] };
    const writer = await startTestServer(config);
    const keys = (prefix: string, value: string) =>
      Object.fromEntries(Array.from({ length: 14_000 }, (_, at) => [`${prefix}${at}`, value]));
    const data = { data: keys('k', 'v'), binaryData: keys('b', 'YQ==') };
    const made = await writer.post(`${core}/configmaps`, { metadata: { name: 'large' }, ...data });
    expect(made.status, made.text.slice(0, 500)).toBe(201);
    await writer.stop();
    const reader = await withServer(config);
    const read = await reader.get(`${core}/configmaps/large`);
    expect([read.status, read.body.data, read.body.binaryData]).toEqual([
      200,
      data.data,
      data.binaryData,
    ]);
  });

  test('CODEC-4, STORE-2: values change their encoding when they are next written', async () => {
    const config = onEtcd(etcd);
    const boats = '/apis/example.com/v1/namespaces/default/boats';
    const boat = { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'b' } };
    const keys = ['example.com/boats/default/b', 'configmaps/default/c'];
    const starts = async () => {
      const values = await Promise.all(keys.map((key) => stored(config, key)));
      return values.map((value) => value.subarray(0, 3).toString('latin1'));
    };
    const old = await startTestServer({ ...config, storedBuiltins: 'json' });
    await establish(old, { group: 'example.com', plural: 'boats', kind: 'Boat' });
    await old.post(boats, boat);
    await old.post(`${core}/configmaps`, configMap('c'));
    await old.stop();
    expect(await starts()).toEqual(['{"a', '{"a']);
    const server = await startTestServer({ ...config, cborServed: true });
    for (const path of [`${boats}/b`, `${core}/configmaps/c`]) {
      const read = await eventually(async () => {
        const answer = await server.get(path);
        return answer.status === 200 ? answer : undefined;
      });
      expect((await server.put(path, read.body)).status).toBe(200);
    }
    expect(await starts()).toEqual(['\xd9\xd9\xf7', 'k8s']);
    await server.stop();
    const without = await withServer(config);
    const read = await eventually(async () => {
      const answer = await without.get(`${boats}/b`);
      return answer.status === 200 ? answer : undefined;
    });
    expect(read.body.metadata.name).toBe('b');
  });

  test('STORE-2: errors name keys as they are in etcd', async () => {
    const config = onEtcd(etcd);
    const prefix = config.store?.type === 'etcd' ? config.store.prefix : '';
    const maps = `${core}/configmaps`;
    await put(config, 'configmaps/default/broken', Buffer.from('{broken'));
    const server = await withServer(config);
    const key = `${prefix}/configmaps/default/broken`;
    expect((await server.get(`${maps}/broken`)).body.message).toContain(`Key: ${key},`);
    const labels = { metadata: { labels: { a: 'b' } } };
    const patched = await server.patch(`${maps}/broken`, labels, 'merge');
    expect(patched.body.message).toContain(`Key: ${key},`);
    expect((await server.get(maps)).body.details.causes[0].field).toBe(key);
    expect((await server.post(maps, configMap('a'))).status).toBe(201);
    const other = configMap('a', { metadata: { name: 'a', uid: 'other' } });
    const replaced = await server.put(`${maps}/a`, other);
    expect([replaced.status, replaced.body.message]).toEqual([
      409,
      expect.stringContaining(`Key: ${prefix}/configmaps/default/a,`),
    ]);
    const dry = await server.put(`${maps}/a?dryRun=All`, other);
    expect(dry.body.message).toContain('Key: /configmaps/default/a,');
  });

  test('STORE-2: a server announces its address as kube-apiserver does', async () => {
    const controllers = ['default-service-controller'];
    const config = shared({ controllers, advertiseAddress: '192.0.2.2' });
    await withServer(config);
    const key = 'masterleases/192.0.2.2';
    await eventually(async () => (await stored(config, key)).length > 0);
    const envelope = '6b3873000a0f0a0276311209456e64706f696e7473';
    const metadata = '0a100a0012001a0022002a00320038004200';
    const subset = '120f0a0d0a093139322e302e322e321a00';
    const expected = `${envelope}1223${metadata}${subset}1a002200`;
    expect((await stored(config, key)).toString('hex')).toBe(expected);
  });

  /** Seals and opens values like kube-apiserver, which binds each to its key in etcd. */
  function sealing() {
    const key = randomBytes(32);
    const start = Buffer.from('k8s:enc:aesgcm:v1:one:');
    const file = join(temporaryFolder(), 'encryption.json');
    const keys = [{ name: 'one', secret: key.toString('base64') }];
    const resources = [{ resources: ['*.*'], providers: [{ aesgcm: { keys } }] }];
    const type = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration' };
    writeFileSync(file, JSON.stringify({ ...type, resources }));
    const seal = (context: string, value: Buffer) => {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
      const sealed = Buffer.concat([cipher.update(value), cipher.final()]);
      return Buffer.concat([start, nonce, sealed, cipher.getAuthTag()]);
    };
    const open = (context: string, value: Buffer) => {
      expect(value.toString('latin1', 0, start.length)).toBe(start.toString());
      const sealed = value.subarray(start.length);
      const cipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12));
      cipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-16));
      return Buffer.concat([cipher.update(sealed.subarray(12, -16)), cipher.final()]);
    };
    return { encryption: { file, reload: 'off' } as const, seal, open };
  }

  test('STORE-3: kube-apiserver can read encrypted values below any prefix', async () => {
    const { encryption, seal, open } = sealing();
    const controllers = ['default-service-controller'];
    const config = shared({ encryption, controllers, advertiseAddress: '192.0.2.3' });
    const prefix = config.store?.type === 'etcd' ? config.store.prefix : '';
    const secret = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'default', uid: 'u' },
      type: 'Opaque',
    });
    const own = ['own', 'older'].map((name) => `secrets/default/${name}`);
    // Earlier releases bound a value to its key below /registry.
    const older = Buffer.from(JSON.stringify(secret('older')));
    await put(config, own[1] ?? '', seal(`/registry/${own[1]}`, older));
    const other = 'secrets/default/other';
    const value = Buffer.from(JSON.stringify(secret('other')));
    await put(config, other, seal(`${prefix}/${other}`, value));
    const server = await withServer(config);
    const read = await server.get(`${core}/secrets/other`);
    expect([read.status, read.body.metadata?.uid], read.text).toEqual([200, 'u']);
    const readOlder = await server.get(`${core}/secrets/older`);
    expect(readOlder.status, readOlder.text).toBe(200);
    expect((await server.put(`${core}/secrets/older`, readOlder.body)).status).toBe(200);
    expect((await server.post(`${core}/secrets`, secret('own'))).status).toBe(201);
    for (const key of own) {
      const opened = open(`${prefix}/${key}`, await stored(config, key));
      expect(opened.toString('latin1')).toContain('Opaque');
    }
    const lease = 'masterleases/192.0.2.3';
    await eventually(async () => (await stored(config, lease)).length > 0);
    expect((await stored(config, lease)).toString('latin1')).toContain('192.0.2.3');
  });

  test('STORE-3: KMS v1 does not take a value of an earlier release for AES-CBC', async () => {
    const folder = temporaryFolder();
    const plugin = await untilEnd(startKmsPlugin(join(folder, 'kms.sock')));
    const secret = randomBytes(32);
    plugin.state.plaintext = secret;
    const endpoint = `unix://${folder}/kms.sock`;
    const file = join(folder, 'encryption.json');
    const kms = { apiVersion: 'v1', name: 'vault', endpoint };
    const resources = [{ resources: ['secrets'], providers: [{ kms }] }];
    const type = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration' };
    writeFileSync(file, JSON.stringify({ ...type, resources }));
    const { gates: featureGates } = readFeatureGates(['KMSv1=true']);
    const config = shared({ encryption: { file, reload: 'off' }, featureGates });
    const metadata = { name: 's', namespace: 'default', uid: 'u' };
    const json = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque' });
    // The length of a ciphertext of AES-CBC, and about one nonce in 256 yields valid padding.
    const value = Buffer.from(json.padEnd(Math.ceil(json.length / 16) * 16 + 4));
    const seal = () => {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', secret, nonce);
      cipher.setAAD(Buffer.from('/registry/secrets/default/s'));
      const text = Buffer.concat([cipher.update(value), cipher.final()]);
      return Buffer.concat([nonce, text, cipher.getAuthTag()]);
    };
    const isPadded = (sealed: Buffer) => {
      const cipher = createDecipheriv('aes-256-cbc', secret, sealed.subarray(0, 16));
      cipher.update(sealed.subarray(16));
      try {
        cipher.final();
        return true;
      } catch {
        return false;
      }
    };
    let sealed = seal();
    while (!isPadded(sealed)) sealed = seal();
    const key = Buffer.from([0, 1, 7]);
    const start = Buffer.from('k8s:enc:kms:v1:vault:');
    await put(config, 'secrets/default/s', Buffer.concat([start, key, sealed]));
    const server = await withServer(config);
    const read = await server.get(`${core}/secrets/s`);
    expect([read.status, read.body.metadata?.uid], read.text).toEqual([200, 'u']);
  });

  describe('allocation bitmaps of Services', () => {
    const services = `${core}/services`;
    const ranges = { serviceRanges: { clusterIps: ['10.9.0.0/28'], nodePorts: '30000-30007' } };
    const serviceOf = (name: string, spec: object = {}) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { type: 'NodePort', ports: [{ port: 80 }], ...spec },
    });

    /** The envelope of a RangeAllocation with a text and a bitmap, as kube-apiserver writes it. */
    const bitmapOf = (range: string, bits: Buffer) => {
      const field = (tag: number, bytes: Buffer) =>
        Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
      const start = '6b387300' + '0a150a0276311' + '20f52616e6765416c6c6f636174696f6e';
      const metadata = Buffer.from('0a100a0012001a0022002a003200380042' + '00', 'hex');
      const raw = Buffer.concat([metadata, field(0x12, Buffer.from(range)), field(0x1a, bits)]);
      const end = Buffer.from('1a002200', 'hex');
      return Buffer.concat([Buffer.from(start, 'hex'), field(0x12, raw), end]);
    };

    async function start(more: ConfigChange = {}) {
      const config = shared({ ...ranges, ...more });
      // Another server is about to assign 10.9.0.14, and has assigned all ports except the first
      // and the last.
      const addresses = bitmapOf('10.9.0.0/28', Buffer.from('2000', 'hex'));
      await put(config, 'ranges/serviceips', addresses);
      const ports = bitmapOf('30000-30007', Buffer.from('7e', 'hex'));
      await put(config, 'ranges/servicenodeports', ports);
      const bits = async (key: string) => {
        const value = await stored(config, `ranges/${key}`);
        // The bitmap is the last field before the envelope's end.
        return value.subarray(value.lastIndexOf(0x1a, -5) + 2, -4).toString('hex');
      };
      return { server: await startTestServer(config), bits };
    }

    test('STORE-2: numbers are marked while a Service has them and freed afterwards', async () => {
      const { server, bits } = await start();
      const asked = { clusterIP: '10.9.0.9', ports: [{ port: 80, nodePort: 30000 }] };
      const made = await server.post(services, serviceOf('a', asked));
      expect(made.status, made.text).toBe(201);
      expect([await bits('serviceips'), await bits('servicenodeports')]).toEqual(['2100', '7f']);
      const plain = { spec: { type: 'ClusterIP', ports: [{ port: 80 }] } };
      await server.patch(`${services}/a`, plain, 'merge');
      expect(await bits('servicenodeports')).toBe('7e');
      const dry = await server.post(`${services}?dryRun=All`, serviceOf('b'));
      expect(dry.status).toBe(201);
      const invalid = await server.post(services, serviceOf('b', { sessionAffinity: 'x' }));
      expect(invalid.status).toBe(422);
      expect([await bits('serviceips'), await bits('servicenodeports')]).toEqual(['2100', '7e']);
      expect((await server.remove(`${services}/a`)).status).toBe(200);
      expect(await bits('serviceips')).toBe('2000');
      await server.stop();
    });

    test('STORE-3: bitmaps are not encrypted, as by kube-apiserver', async () => {
      const { encryption } = sealing();
      const { server, bits } = await start({ encryption });
      const made = await server.post<ResponseOf<Service>>(services, serviceOf('a'));
      expect(made.status, made.text).toBe(201);
      expect([30000, 30007]).toContain(made.body.spec.ports[0].nodePort);
      expect(['7f', 'fe']).toContain(await bits('servicenodeports'));
      await server.stop();
    });

    test('STORE-2: numbers that a kube-apiserver is allocating are not allocated', async () => {
      const { server, bits } = await start();
      const answers = await Promise.all(
        ['a', 'b'].map((name) => server.post<ResponseOf<Service>>(services, serviceOf(name))),
      );
      expect(answers.map(({ status }) => status)).toEqual([201, 201]);
      const given = answers.map(({ body }) => body.spec.ports[0].nodePort);
      expect(given.sort()).toEqual([30000, 30007]);
      expect(await bits('servicenodeports')).toBe('ff');
      const taken = await server.post(services, serviceOf('c', { clusterIP: '10.9.0.14' }));
      expect(taken.status).toBe(422);
      expect(taken.body.message).toContain('provided IP is already allocated');
      const full = await server.post(services, serviceOf('c'));
      expect(full.status).toBe(500);
      expect(full.body.message).toContain('range is full');
      await server.stop();
    });
  });
});
