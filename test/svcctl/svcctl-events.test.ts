import { dialectNames } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: events, dialect %s', (dialectName) => {
  const on = svcctlOn(dialectName);
  const report = (name: string, type: string, message: string) =>
    on.server.post(`/api/v1/namespaces/${on.namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web', namespace: on.namespace },
      reason: 'Tested',
      type,
      message,
      firstTimestamp: '2020-01-01T00:00:00Z',
    });

  test('CLIENT-1: events --watch prints existing and later Events, but no deletions', async () => {
    await report('one', 'Warning', 'before');
    const watch = on.home.start(`events --watch --types=Warning --for=pod/web -n ${on.namespace}`);
    await expect.poll(() => watch.out()).toContain('before\n');
    await report('two', 'Normal', 'filtered out');
    await on.server.remove(`/api/v1/namespaces/${on.namespace}/events/one`);
    await report('three', 'Warning', 'after');
    await expect.poll(() => watch.out()).toContain('after\n');
    expect(watch.out()).toMatch(/^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.*before\n.*after\n$/);
    expect(await watch.stop()).toBe(1);
  });

  test('CLIENT-1: events of all namespaces are labeled and cannot control the terminal', async () => {
    await report('one', 'Normal', 'red \u001b[31m\rtext');
    const { out } = await on.home.run('events -A --no-headers');
    expect(out).toMatch(new RegExp(`^${on.namespace} .*Pod/web +red \\^\\[\\[31m\\\\rtext$`, 'm'));
  });

  test('CLIENT-1: events reports refusals and invalid arguments', async () => {
    const forbidden = await on.home.runIn(on.namespace, 'events --as=nobody');
    expect(forbidden).toMatchObject({ code: 1, out: '' });
    expect(forbidden.err).toContain('Error from server (Forbidden): events is forbidden');
    const unknown = await on.home.run('events --for=nope/x');
    expect(unknown.err).toBe('the server doesn\'t have a resource type "nope"\n');
    const watched = await on.home.runIn(on.namespace, 'events --watch --request-timeout=2s');
    expect(watched).toMatchObject({ code: 0, err: '' });
    expect((await on.home.run('events --for')).err).toBe(
      "Error: flag needs an argument: --for\nSee 'svcctl events --help' for usage.\n",
    );
  });
});

const event = (name: string, more: object) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web', namespace: '@ns' },
    reason: 'Pulled',
    message: `  says ${name}\n`,
    type: 'Normal',
    firstTimestamp: '2020-01-01T00:00:00Z',
    ...more,
  });

printsLikeKubectl('events', [
  ['events'],
  ['create -f -', event('second', { lastTimestamp: '2020-01-03T00:00:00Z', count: 4 })],
  ['create -f -', event('first', { lastTimestamp: '2020-01-02T00:00:00Z', type: 'Warning' })],
  [
    'create -f -',
    event('third', {
      eventTime: '2020-01-01T00:00:00.000000Z',
      series: { count: 7, lastObservedTime: '2020-01-04T00:00:00.000000Z' },
      reportingComponent: 'example.com/x',
      reportingInstance: 'x',
      action: 'Pulling',
      involvedObject: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', namespace: '@ns' },
    }),
  ],
  ['events'],
  ['events --no-headers'],
  ['events --types=Warning'],
  ['events --types=warning,Normal --for pod/web'],
  ['events --for=deployment/d'],
  ['events --for=deploy/none'],
  ['events --for=pod'],
  ['events --for=pod/a/b'],
  ['events --types=Odd'],
  ['events --for deploy/d -o jsonpath={.items[*].message}'],
  ['events -o wide'],
]);
