import { type ApiObject, randomOf } from '@wheelhouse/machinery';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { onEtcd } from '../storage/etcd-config.ts';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, type TestServer, type TestWatch } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  type Converted,
  conversionBy,
  establishMulti,
  type MultiKind,
  startConversionService,
  swap,
} from './conversion-service.ts';
import { redefine } from './custom-kinds.ts';

const versions = ['v1alpha1', 'v1beta1', 'v1beta2'];

const service = await untilEnd(startConversionService());
beforeEach(() => {
  service.convert = swap;
});

/** The objects that a watch has reported as present, by name; checks that its revisions rise. */
function stateOf({ events }: TestWatch): Map<string, ApiObject> {
  const state = new Map<string, ApiObject>();
  let last = 0;
  for (const { type, object } of events) {
    const revision = Number(object.metadata.resourceVersion);
    expect(revision).toBeGreaterThanOrEqual(last);
    last = revision;
    if (type === 'DELETED') state.delete(object.metadata.name);
    else state.set(object.metadata.name, object);
  }
  return state;
}

async function write(server: TestServer, multi: MultiKind, pick: (bound: number) => number) {
  const version = versions[pick(versions.length)] as string;
  const name = `n${pick(6)}`;
  const path = `${multi.at(version)}/${name}`;
  const field = version === 'v1beta2' ? 'contentv2' : 'content';
  const spec = { [field]: { key: `k${pick(1000)}` } };
  switch (pick(5)) {
    case 0:
      return server.post(multi.at(version), multi.object(version, name));
    case 1:
      return server.remove(path);
    case 2: {
      const body = { apiVersion: `${multi.group}/${version}`, kind: 'Multi', spec };
      const applied = { ...body, metadata: { name } };
      const query = `?fieldManager=m${pick(3)}&force=true`;
      return server.patch(path + query, applied, 'apply');
    }
    default:
      return server.patch(path, { spec }, 'merge');
  }
}

describe('histories', () => {
  test('CRD-4: watches of all versions agree with lists, for writes in any version', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`seed ${seed}`);
    const { below: pick } = randomOf(seed);
    const server = await withServer();
    const multi = await establishMulti(server, conversionBy(service));
    const watches = await Promise.all(
      versions.map((version) => server.watch(`${multi.at(version)}?watch=1`)),
    );
    const writer = async () => {
      for (let count = 0; count < 15; count += 1) {
        const answer = await write(server, multi, pick);
        expect([200, 201, 404, 409], answer.text).toContain(answer.status);
      }
    };
    await Promise.all([writer(), writer(), writer(), writer()]);
    for (const [index, version] of versions.entries()) {
      const watch = watches[index] as TestWatch;
      const list = await server.get(multi.at(version));
      const wanted = new Map(list.body.items.map((item: ApiObject) => [item.metadata.name, item]));
      await eventually(async () => {
        const state = stateOf(watch);
        const revisions = (all: ReadonlyMap<unknown, ApiObject>) =>
          [...all]
            .map(([name, object]) => `${name}@${object.metadata.resourceVersion}`)
            .sort()
            .join();
        return revisions(state) === revisions(wanted);
      }, 'the watch to report all objects');
      expect(Object.fromEntries(stateOf(watch))).toEqual(Object.fromEntries(wanted));
      watch.close();
    }
  }, 30_000);

  test.skipIf(!hasEtcd)(
    'CRD-4, STORE-2: servers on one store convert each other’s objects',
    async () => {
      const etcd = await untilEnd(startTestEtcd());
      const shared = onEtcd(etcd);
      const first = await withServer(shared);
      const second = await withServer(shared);
      const multi = await establishMulti(first, conversionBy(service));
      await eventually(
        async () => (await second.get(multi.at('v1beta2'))).status === 200,
        'the other server to serve the kind',
      );
      const watch = await second.watch<Converted>(`${multi.at('v1beta2')}?watch=1`);
      await first.post(multi.at('v1beta1'), multi.object('v1beta1', 'a'));
      await first.post(multi.at('v1beta2'), multi.object('v1beta2', 'b'));
      const patch = { spec: { contentv2: { key: 'patched' } } };
      expect((await second.patch(`${multi.at('v1beta2')}/a`, patch, 'merge')).status).toBe(200);
      expect((await first.get<Converted>(`${multi.at('v1beta1')}/a`)).body.spec.content.key).toBe(
        'patched',
      );
      await watch.until((events) => events.length === 3);
      expect(watch.events.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual([
        'ADDED a',
        'ADDED b',
        'MODIFIED a',
      ]);
      expect(watch.events[2]?.object.spec.contentv2.key).toBe('patched');
      watch.close();
      await redefine(first, multi.name, (spec) => {
        for (const version of spec.versions) version.storage = version.name === 'v1beta2';
      });
      await eventually(async () => {
        const before = (await second.get(`${multi.at('v1beta2')}/a`)).body.metadata.resourceVersion;
        const { body } = await second.patch(`${multi.at('v1beta2')}/a`, {}, 'merge');
        return body.metadata.resourceVersion !== before;
      }, 'an object to be brought to the version that is stored now');
      const list = await first.get<{ items: Converted[] }>(multi.at('v1alpha1'));
      expect(list.body.items.map(({ spec }) => spec.content.key)).toEqual(['patched', 'value']);
    },
    30_000,
  );
});
