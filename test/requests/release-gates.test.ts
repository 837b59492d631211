import { randomUUID } from 'node:crypto';
import { replaceHost } from '@wheelhouse/machinery/testing';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { type ConfigChange, configMap, itemNames, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const gatesOf = (text: string, emulatedMinor?: number) => ({
  featureGates: readFeatureGates([text], { emulatedMinor }).gates,
  ...(emulatedMinor === undefined ? {} : { emulatedMinor }),
});

describe('ConsistentListFromCache', () => {
  /** Number of lists of ConfigMaps that were read from the store. */
  const listsOf = async (server: TestServer): Promise<number> => {
    const { text } = await server.get('/metrics');
    const line = /etcd_request_duration_seconds_count\{operation="list",type="configmaps"\} (\d+)/;
    return Number(line.exec(text)?.[1] ?? 0);
  };

  test.each<[string, ConfigChange, number]>([
    ['on, lists are read from memory', {}, 0],
    ['off, they are read from the store', gatesOf('ConsistentListFromCache=false'), 2],
    ['off in 1.31, they are too', gatesOf('ConsistentListFromCache=false', 31), 2],
  ])('VER-5: %s', async (_, change, expected) => {
    const server = await withServer(change);
    for (const name of ['a', 'b', 'c']) await server.post(maps, configMap(name));
    await server.get(maps);
    const before = await listsOf(server);
    await server.remove(`${maps}/b`);
    const whole = await server.get(maps);
    expect(itemNames(whole)).toEqual(['a', 'c']);
    const page = await server.get(`${maps}?limit=1`);
    expect(itemNames(page)).toEqual(['a']);
    const next = `${maps}?limit=1&continue=${page.body.metadata.continue}`;
    expect(itemNames(await server.get(next))).toEqual(['c']);
    await server.post(maps, configMap('d'));
    const chosen = await server.get(`${maps}?fieldSelector=metadata.name=d`);
    expect(itemNames(chosen)).toEqual(['d']);
    expect(chosen.body.metadata.resourceVersion).toMatch(/^\d+$/);
    await server.get(`${maps}?resourceVersion=0`);
    expect((await listsOf(server)) - before).toBe(expected);
  });
});

describe('RetryGenerateName', () => {
  const body = { ...configMap(''), metadata: { generateName: 'g-' } };

  test.each<[string, ConfigChange, number]>([
    ['by default other names are tried', {}, 201],
    ['without the gate of 1.31 the first one decides', gatesOf('RetryGenerateName=false', 31), 409],
  ])('META-1: %s', async (_, change, expected) => {
    // The draws of the first three names of each request. Background work draws numbers too.
    let fixedDraws = 0;
    const random = () => {
      const isOfName = new Error().stack?.includes('generateName') === true;
      if (!isOfName || fixedDraws === 0) return Math.random();
      fixedDraws -= 1;
      return 0;
    };
    const defer = (task: () => void) => void setImmediate(task);
    const restore = replaceHost({ random, randomUuid: () => randomUUID(), defer });
    atEnd(restore);
    const server = await withServer(change);
    const statuses: number[] = [];
    for (let count = 0; count < 2; count += 1) {
      fixedDraws = 15;
      const answer = await server.post(maps, body);
      statuses.push(answer.status);
      if (answer.status !== 409) continue;
      expect(answer.body.message).toContain('was not able to generate a unique name');
    }
    expect(statuses).toEqual([201, expected]);
    for (let count = 0; count < 2; count += 1) {
      fixedDraws = 15;
      const { status, body: made } = await server.post('/api/v1/namespaces', {
        metadata: { generateName: 'g-' },
      });
      // The label follows the name that was free.
      if (status === 201) expect(Object.values(made.metadata.labels)).toEqual([made.metadata.name]);
    }
  });
});
