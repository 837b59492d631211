import { saysAsKubectl } from '../clients/beside-kubectl.ts';

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

saysAsKubectl([
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
