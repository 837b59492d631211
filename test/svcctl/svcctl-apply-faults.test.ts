import { systemClock } from '@wheelhouse/machinery';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { type SvcctlHome, svcctlFor } from './svcctl-run.ts';

describe('CLIENT-1: a refused client-side apply', () => {
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  const apply = (object: object, flags = '') =>
    home.runIn(namespace, `apply --client-side -f - ${flags}`.trim(), JSON.stringify(object));
  const path = (name: string) => `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const map = (data: object, metadata: object = {}, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', ...metadata },
    data,
    ...more,
  });
  beforeAll(async () => {
    server = await startTestServer();
    home = svcctlFor(server);
  });
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    home.clock = undefined;
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });

  /** Notes how long is to be waited, and waits for nothing. */
  function noteWaits(): number[] {
    const waits: number[] = [];
    home.clock = {
      ...systemClock,
      after: (delayMs, task) => {
        waits.push(delayMs);
        return systemClock.after(0, task);
      },
    };
    return waits;
  }

  test('CLIENT-1: a conflicting apply is retried five times, a second apart', async () => {
    await apply(map({ a: '1' }));
    const waits = noteWaits();
    const { code, out, err } = await apply(map({ a: '2' }, { resourceVersion: '1' }));
    expect({ code, out, waits }).toEqual({ code: 1, out: '', waits: [1000, 1000, 1000, 1000] });
    expect(err).toMatch(
      /^Error from server \(Conflict\): error when applying patch:\n\{"data":\{"a":"2"\},"metadata":/,
    );
    expect(err).toContain(
      `\nto:\nResource: "/v1, Resource=configmaps", GroupVersionKind: "/v1, Kind=ConfigMap"\n` +
        `Name: "x", Namespace: "${namespace}"\nfor: "STDIN": error when patching "STDIN": ` +
        'Operation cannot be fulfilled on configmaps "x"',
    );
    expect((await server.get(path('x'))).body.data).toEqual({ a: '1' });
  });

  test('CLIENT-1: --force deletes and recreates a conflicting object', async () => {
    await apply(map({ a: '1', b: '1' }));
    const { uid } = (await server.get(path('x'))).body.metadata;
    noteWaits();
    const fixed = map({ a: '2' }, {}, { immutable: true });
    expect(await apply(fixed)).toMatchObject({ code: 0, out: 'configmap/x configured\n' });
    const refused = await apply(map({ a: '3' }));
    expect(refused.err).toMatch(/^The ConfigMap "x" is invalid: /);
    const forced = await apply(map({ a: '3' }), '--force');
    expect(forced).toEqual({ code: 0, out: 'configmap/x configured\n', err: '' });
    const { body } = await server.get(path('x'));
    expect(body.data).toEqual({ a: '3' });
    expect(body.metadata.uid).not.toBe(uid);
  });

  test('CLIENT-1: --force restores the old object when the new one is refused', async () => {
    await apply(map({ a: '1' }, {}, { immutable: true }));
    const refused = await apply(map({ a: '3' }, { labels: { 'not a label': '1' } }), '--force');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('not a label');
    expect((await server.get(path('x'))).body.data).toEqual({ a: '1' });
  });

  test('CLIENT-1: --overwrite=false keeps what others have changed', async () => {
    await apply(map({ a: '1', b: '1' }));
    const change = ['patch', 'cm', 'x', '--type=merge', '-p', '{"data":{"a":"theirs"}}'];
    await home.runIn(namespace, change);
    const refused = await apply(map({ a: '2', b: '1' }), '--overwrite=false');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain(
      'conflicts with changes made from original to current:\ndata:\n  a: theirs\n',
    );
    expect((await server.get(path('x'))).body.data).toEqual({ a: 'theirs', b: '1' });
    const other = await apply(map({ a: '1', b: '2' }), '--overwrite=false');
    expect(other.err).toContain('conflicts with changes');
    expect((await apply(map({ a: '2', b: '2' }))).out).toBe('configmap/x configured\n');
    expect((await server.get(path('x'))).body.data).toEqual({ a: '2', b: '2' });
  });

  test('CLIENT-1: a record that is not a JSON object is reported', async () => {
    await apply(map({ a: '1' }));
    const { annotations } = (await server.get(path('x'))).body.metadata;
    const [name = ''] = Object.keys(annotations);
    await home.runIn(namespace, ['annotate', 'cm', 'x', '--overwrite', `${name}=[1`]);
    const { code, err } = await apply(map({ a: '2' }));
    expect(code).toBe(1);
    expect(err).toMatch(
      /^error: error when applying patch:\n\nto:\n[\s\S]*invalid JSON document\n$/,
    );
  });

  test("CLIENT-1: a Secret's values are in no message", async () => {
    const secret = (pw: string, more: object = {}) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      stringData: { pw },
      ...more,
    });
    await apply(secret('hunter2', { immutable: true }));
    noteWaits();
    const refused = await apply(
      secret('hunter3', { type: 'Other', metadata: { name: 's', resourceVersion: '1' } }),
    );
    const conflicting = await apply(secret('hunter4'), '--overwrite=false');
    for (const { code, out, err } of [refused, conflicting]) {
      expect(code).toBe(1);
      expect(out + err).not.toMatch(/hunter/);
      for (const value of ['hunter2', 'hunter3', 'hunter4']) {
        expect(out + err).not.toContain(Buffer.from(value).toString('base64'));
      }
    }
  });
});
