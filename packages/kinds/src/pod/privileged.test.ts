import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { createErrors, kindOf, updateErrors } from '../kind.suite.ts';
import { withoutPrivileged } from './privileged.ts';

const container = (name: string, securityContext: JsonObject = {}) => ({
  name,
  image: 'x:1',
  imagePullPolicy: 'Always',
  securityContext,
});
const podSpec = (...containers: JsonObject[]): JsonObject => ({
  restartPolicy: 'Always',
  containers,
});
const selected = { selector: { matchLabels: { a: 'b' } } };
const template = (spec: JsonObject) => ({ metadata: { labels: { a: 'b' } }, spec });

type Wrap = (spec: JsonObject) => JsonObject;
const oneRun = (spec: JsonObject) => template({ ...spec, restartPolicy: 'Never' });
const kinds: readonly (readonly [kind: string, path: string, wrap: Wrap])[] = [
  ['Pod', 'spec', (spec) => ({ spec })],
  ['PodTemplate', 'template.spec', (spec) => ({ template: template(spec) })],
  [
    'ReplicationController',
    'spec.template.spec',
    (spec) => ({ spec: { selector: { a: 'b' }, template: template(spec) } }),
  ],
  ...['Deployment', 'ReplicaSet', 'DaemonSet'].map((kind): readonly [string, string, Wrap] => [
    kind,
    'spec.template.spec',
    (spec) => ({ spec: { ...selected, serviceName: 's', template: template(spec) } }),
  ]),
  [
    'Job',
    'spec.template.spec',
    (spec) => ({ spec: { ...selected, manualSelector: true, template: oneRun(spec) } }),
  ],
  [
    'CronJob',
    'spec.jobTemplate.spec.template.spec',
    (spec) => ({
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: oneRun(spec) } } },
    }),
  ],
];

test('the template of a StatefulSet is not checked', () => {
  const [def] = withoutPrivileged([kindOf('StatefulSet')]);
  if (def === undefined) throw new Error('no kind');
  const privileged = template(podSpec(container('a', { privileged: true })));
  const object = { spec: { ...selected, serviceName: 's', template: privileged } };
  expect(createErrors(def, object)).toEqual([]);
});

test.each(kinds)('privileged containers of %s are rejected', (kind, path, wrap) => {
  const [def] = withoutPrivileged([kindOf(kind)]);
  if (def === undefined) throw new Error('no kind');
  const plain = wrap(podSpec(container('a')));
  const privileged = wrap(podSpec(container('a'), container('b', { privileged: true })));
  expect(createErrors(def, plain)).toEqual([]);
  const refusal = `${path}.containers[1].securityContext.privileged: Forbidden: disallowed by cluster policy`;
  expect(createErrors(def, privileged)).toEqual([refusal]);
  expect(updateErrors(def, { from: privileged, to: privileged })).toEqual([refusal]);
  const status = { subresource: 'status' };
  expect(updateErrors(def, { from: privileged, to: privileged }, status)).toEqual([]);
});

test('HostProcess containers are rejected', () => {
  const [def] = withoutPrivileged([kindOf('Pod')]);
  const windowsOptions = { hostProcess: true };
  const spec = { ...podSpec(container('a', { windowsOptions })), hostNetwork: true };
  expect(def === undefined ? [] : createErrors(def, { spec })).toEqual([
    'spec: Forbidden: hostProcess containers are disallowed by cluster policy',
  ]);
});

test('other kinds are unchanged', () => {
  const defs = [kindOf('ConfigMap'), kindOf('Service')];
  expect(withoutPrivileged(defs)).toEqual(defs);
});
