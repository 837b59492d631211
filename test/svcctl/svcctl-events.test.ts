import { dialectNames } from '@wheelhouse/machinery';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { type SvcctlHome, svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: events, dialect %s', (dialectName) => {
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  const report = (name: string, type: string, message: string) =>
    server.post(`/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web', namespace },
      reason: 'Noted',
      type,
      message,
      firstTimestamp: '2020-01-01T00:00:00Z',
    });
  beforeAll(async () => {
    server = await startTestServer({ dialect: dialectName });
    home = svcctlFor(server);
  });
  beforeEach(async () => {
    namespace = await freshNamespace(server);
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });

  test('CLIENT-1: events --watch prints existing and later Events, but no deletions', async () => {
    await report('one', 'Warning', 'before');
    const watch = home.start(`events --watch --types=Warning --for=pod/web -n ${namespace}`);
    await expect.poll(() => watch.out()).toContain('before\n');
    await report('two', 'Normal', 'not meant');
    await server.remove(`/api/v1/namespaces/${namespace}/events/one`);
    await report('three', 'Warning', 'after');
    await expect.poll(() => watch.out()).toContain('after\n');
    expect(watch.out()).toMatch(/^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.*before\n.*after\n$/);
    expect(await watch.stop()).toBe(130);
  });

  test('CLIENT-1: events of all namespaces are labeled and cannot control the terminal', async () => {
    await report('one', 'Normal', 'red \u001b[31m\rtext');
    const { out } = await home.run('events -A --no-headers');
    expect(out).toMatch(new RegExp(`^${namespace} .*Pod/web +red \\^\\[\\[31m\\\\rtext$`, 'm'));
  });

  test('CLIENT-1: events reports what it cannot show', async () => {
    const forbidden = await home.runIn(namespace, 'events --as=nobody');
    expect(forbidden).toMatchObject({ code: 1, out: '' });
    expect(forbidden.err).toContain('Error from server (Forbidden): events is forbidden');
    const unknown = await home.run('events --for=nope/x');
    expect(unknown.err).toBe('error: the server doesn\'t have a resource type "nope"\n');
    expect((await home.run('events --for')).err).toBe('error: flag needs an argument: --for\n');
  });
});
