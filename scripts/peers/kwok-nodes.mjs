// Runs kwok, which plays the kubelets of a few nodes, in place of `played-nodes.mjs`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { call, programPath, startProgram } from './servers.mjs';

const kwok = programPath({ variable: 'KWOK', name: 'kwok' });

/** Whether kwok is installed. */
export const haveKwok = kwok !== undefined;

/** One step of a Pod's life as kwok reads it. `fields` are conditions on the Pod. */
function stage(name, { fields, next }) {
  return {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: 'v1', kind: 'Pod' },
      selector: {
        matchExpressions: Object.entries(fields).map(([key, values]) =>
          typeof values === 'string' ? { key, operator: values } : { key, operator: 'In', values },
        ),
      },
      next,
    },
  };
}

/** The template of a status in which the containers have `state`. */
function statusTemplate({ phase, isReady, state }) {
  const conditions = ['Initialized', 'ContainersReady', 'Ready'].map((type) => {
    const status = isReady || type === 'Initialized' ? 'True' : 'False';
    return `- { type: ${type}, status: "${status}", lastTransitionTime: {{ Now | Quote }} }`;
  });
  return `phase: ${phase}
conditions:
${conditions.join('\n')}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: ${isReady}
  started: ${isReady}
  restartCount: 0
  state: ${state}
{{ end }}
{{ with .status }}
hostIP: {{ or .hostIP ( NodeIPWith $.spec.nodeName ) | Quote }}
podIP: {{ or .podIP ( PodIPWith $.spec.nodeName ( or $.spec.hostNetwork false ) ( or $.metadata.uid "" ) ( or $.metadata.name "" ) ( or $.metadata.namespace "" ) ) | Quote }}
startTime: {{ or .startTime Now | Quote }}
{{ end }}
`;
}

const alive = { '.metadata.deletionTimestamp': 'DoesNotExist' };
const ended = (exitCode) =>
  `{ terminated: { exitCode: ${exitCode}, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }} } }`;
const outcome = (value) => ({
  ...alive,
  '.status.phase': ['Running'],
  '.metadata.annotations["peers/outcome"]': [value],
});

/**
 * The life of a Pod: it runs, ends as its annotation `peers/outcome` says, and disappears when
 * deleted.
 */
const stages = [
  stage('pod-run', {
    fields: { ...alive, '.status.podIP': 'DoesNotExist' },
    next: {
      statusTemplate: statusTemplate({
        phase: 'Running',
        isReady: true,
        state: '{ running: { startedAt: {{ Now | Quote }} } }',
      }),
    },
  }),
  ...[
    ['succeed', 'Succeeded', 0],
    ['fail', 'Failed', 1],
  ].map(([value, phase, exitCode]) =>
    stage(`pod-${value}`, {
      fields: outcome(value),
      next: { statusTemplate: statusTemplate({ phase, isReady: false, state: ended(exitCode) }) },
    }),
  ),
  stage('pod-delete', {
    fields: { '.metadata.deletionTimestamp': 'Exists' },
    next: { finalizers: { empty: true }, delete: true },
  }),
];

/**
 * Registers nodes and runs kwok with a server's credentials.
 *
 * @param options.names names of the nodes
 * @returns `stop`, and `errors`: the answers to the registration other than 201
 */
export function runKwok(server, { names }) {
  const at = (name) => join(server.directory, name);
  writeFileSync(
    at('kwok.json'),
    stages.map((manifest) => JSON.stringify(manifest)).join('\n---\n'),
  );
  const errors = [];
  const resources = { cpu: '4', memory: '8Gi', pods: '40' };
  const registered = Promise.all(
    names.map(async (name) => {
      const metadata = { name, labels: { 'kubernetes.io/hostname': name } };
      const status = { capacity: resources, allocatable: resources };
      const body = { apiVersion: 'v1', kind: 'Node', metadata, status };
      const answer = await call(server, { method: 'POST', path: '/api/v1/nodes', body });
      if (answer.status !== 201) errors.push(`POST /api/v1/nodes: ${answer.status}`);
    }),
  );
  const args = [
    `--kubeconfig=${server.kubeconfig}`,
    `--config=${at('kwok.json')}`,
    '--manage-all-nodes=true',
    '--node-lease-duration-seconds=40',
    '--cidr=10.244.0.1/16',
  ];
  const program = startProgram({ command: kwok, args, log: at('kwok.log') });
  const stop = async () => {
    await registered;
    if (program.child.exitCode !== null) errors.push(`kwok ended: exit ${program.child.exitCode}`);
    await program.stop();
  };
  return { stop, errors };
}
