import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, freshNamespace } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

const start = '\u001b[';
const reset = `${start}0m`;

describe('CLIENT-1: svcctl on a terminal', async () => {
  let ticks = 0;
  let namespace: string;
  const maps = () => `/api/v1/namespaces/${namespace}/configmaps`;
  const server = await withServer();
  const home = untilEnd(svcctlFor(server));
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    await server.post(maps(), configMap('x'));
  });
  afterEach(() => {
    home.env = {};
    home.terminal = {};
    home.clock = undefined;
  });

  test('CLIENT-1: tables and errors are colored on a terminal only', async () => {
    home.terminal = { outIsTerminal: true, errIsTerminal: true };
    const table = await home.runIn(namespace, 'get cm');
    expect(table.out).toContain(`${start}1mNAME${reset}   ${start}1mDATA${reset}`);
    const namespaces = await home.run(`get ns ${namespace}`);
    expect(namespaces.out).toContain(`${start}32mActive${reset}`);
    const failed = await home.runIn(namespace, 'get cm nope');
    expect(failed.err).toContain(
      `${start}31mError from server (NotFound): configmaps "nope" not found${reset}`,
    );
    expect((await home.runIn(namespace, 'get cm -o yaml')).out).not.toContain(start);
    home.terminal = { outIsTerminal: false, errIsTerminal: false };
    expect((await home.runIn(namespace, 'get cm')).out).not.toContain(start);
    expect((await home.runIn(namespace, 'get cm nope')).err).not.toContain(start);
  });

  test('CLIENT-1: explain does not send control characters of a definition', async () => {
    const group = `${namespace}.example.com`;
    const spec = { type: 'string', description: `${start}2J text` };
    const definition = {
      apiVersion: 'apiextensions.svc.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `things.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural: 'things', kind: 'Thing' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
          },
        ],
      },
    };
    const path = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
    expect(await server.post(path, definition)).toMatchObject({ status: 201 });
    const explain = () => home.run(`explain things.spec --api-version=${group}/v1`);
    await expect.poll(async () => (await explain()).out).toContain('^[[2J text');
    expect((await explain()).out).not.toContain('\u001b');
  });

  test('CLIENT-1: NO_COLOR and a dumb terminal disable colors', async () => {
    home.terminal = { outIsTerminal: true, errIsTerminal: true };
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      home.env = env;
      expect((await home.runIn(namespace, 'get cm')).out).not.toContain(start);
      expect((await home.runIn(namespace, 'get cm nope')).err).not.toContain(start);
    }
  });

  test('CLIENT-1: colors keep columns aligned', async () => {
    // An age may change between the two commands.
    const withoutAges = (text: string) => text.replaceAll(/ \S+$/gm, ' ?');
    const plain = (await home.run('get ns')).out;
    home.terminal = { outIsTerminal: true };
    const painted = (await home.run('get ns')).out;
    const pieces = painted
      .split(start)
      .map((piece, at) => (at === 0 ? piece : piece.replace(/^\d+m/, '')));
    expect(withoutAges(pieces.join(''))).toBe(withoutAges(plain));
  });

  test('CLIENT-1: a large apply shows progress on a terminal only', async () => {
    const objects = Array.from({ length: 12 }, (_, at) => JSON.stringify(configMap(`m${at}`)));
    const manifest = objects.join('\n---\n');
    const silent = await home.runIn(namespace, 'apply -f -', manifest);
    expect({ code: silent.code, err: silent.err }).toEqual({ code: 0, err: '' });
    home.terminal = { errIsTerminal: true };
    const shown = await home.runIn(namespace, 'apply -f -', manifest);
    expect(shown.err).toContain('apply 1 of 12\r\u001b[K');
    expect(shown.err).toContain('apply 12 of 12\r\u001b[K');
    expect(shown.err.endsWith('\r\u001b[K')).toBe(true);
    expect(shown.out).toBe(silent.out);
  });

  test('CLIENT-1: a long wait shows what it waits for', async () => {
    home.terminal = { errIsTerminal: true };
    const clock = quickClock(100);
    home.clock = clock;
    const line = `wait cm/x --for=jsonpath={.data.done}=1 -n ${namespace}`;
    const waiting = home.start(line);
    await expect
      .poll(() => {
        clock.skip(1_000);
        return waiting.err();
      })
      .toContain('waiting for configmaps/x … ');
    await server.patch(`${maps()}/x`, { data: { done: '1' } }, 'merge');
    await expect.poll(() => waiting.out()).toBe('configmap/x condition met\n');
    expect(await waiting.stop()).toBe(0);
    expect(waiting.err().endsWith('\r\u001b[K')).toBe(true);
    const creation = home.start(`wait cm/none --for=create -n ${namespace}`);
    await expect
      .poll(() => {
        clock.skip(1_000);
        return creation.err();
      })
      .toContain('waiting for configmaps/none … ');
    expect(await creation.stop()).toBe(130);
  });

  test('CLIENT-1: get -w -o diff prints changes as diffs', async () => {
    const watch = home.start(`get cm -w -o diff -n ${namespace}`);
    await expect
      .poll(async () => {
        await server.patch(`${maps()}/x`, { data: { tick: String(++ticks) } }, 'merge');
        return watch.out();
      })
      .toContain('configmap/x modified at version ');
    await server.patch(`${maps()}/x`, { data: { tick: null, last: 'yes' } }, 'merge');
    await expect.poll(() => watch.out()).toContain('\n+  last: "yes"\n');
    expect(watch.out()).toMatch(/^@@ -\d+,\d+ \+\d+,\d+ @@$/m);
    expect(watch.out()).not.toMatch(/managedFields|resourceVersion/);
    await server.post(maps(), configMap('y'));
    await expect.poll(() => watch.out()).toContain('configmap/y added at version ');
    await server.remove(`${maps()}/y`);
    await expect.poll(() => watch.out()).toContain('configmap/y deleted at version ');
    await watch.stop();
    expect(await home.runIn(namespace, 'get cm -o diff')).toEqual({
      code: 1,
      out: '',
      err: 'error: -o diff requires --watch\n',
    });
  });

  test('CLIENT-1: diffs are colored on a terminal', async () => {
    home.terminal = { outIsTerminal: true };
    const watch = home.start(`get cm x -w -o diff -n ${namespace}`);
    await expect
      .poll(async () => {
        await server.patch(`${maps()}/x`, { data: { tick: String(++ticks) } }, 'merge');
        return watch.out();
      })
      .toContain(`${start}32m+  tick:`);
    await watch.stop();
  });
});
