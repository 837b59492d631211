import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { type Line, saysAsKubectl } from '../clients/beside-kubectl.ts';
import type { TestServer } from '../support/harness.ts';

/** Lines of `debug` that no kubelet is needed for, beside kubectl. */

const folder = mkdtempSync(join(tmpdir(), 'svcctl-debug-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A file for both clients. */
function fileOf(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}
const custom = fileOf('custom.json', {
  ...{ name: '', command: [], lifecycle: null },
  env: [{ name: 'B', value: '2' }],
  securityContext: { runAsUser: 7, capabilities: { add: ['SYS_TIME'] } },
});
const spec = { containers: [{ name: 'p', image: 'i' }] };
const podFile = fileOf('pod.json', {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
  spec,
});
const nodeFields =
  '{.spec.nodeName} {.spec.containers} {.spec.volumes} {.spec.tolerations} {.spec.restartPolicy} ' +
  '{.spec.hostPID} {.spec.hostIPC} {.spec.hostNetwork}';
/** The name of a Pod on a node ends with random letters, so all but one are deleted before. */
const nodePod = (flags: string): readonly Line[] => [
  ['delete pods -l none!=x --field-selector=spec.nodeName=@ns-node --grace-period=0 --force'],
  [`debug node/@ns-node -q --image=i ${flags}`],
  [
    `get pods --field-selector=spec.nodeName=@ns-node -o jsonpath=${nodeFields.replaceAll(/\{\.([^}]*)\}/g, '{.items[0].$1}').replaceAll(' ', '')}`,
  ],
];

const lines: readonly Line[] = [
  ['debug'],
  ['debug p'],
  ['debug p --image=UPPER!'],
  ['debug p --image=i --profile=none'],
  ['debug p --image=i --image-pull-policy=Sometimes'],
  ['debug p --image=i -t'],
  ['debug p --image=i --replace'],
  ['debug p --image=i --same-node'],
  ['debug p --set-image=a=b'],
  ['debug p --copy-to=q'],
  ['debug p --copy-to=q -- sh'],
  ['debug p --copy-to=q --image=i --target=p'],
  ['debug p --attach --copy-to=q --set-image=*=i'],
  ['debug none --image=i'],
  ['debug deployment/none --image=i'],
  ['debug p --image=i --custom=none.json'],
  ['debug configmap/m --image=i --profile=general'],
  ['debug p --image=i -c one --profile=general --env=A=1 -- sh -c true'],
  ['debug p --image=i -c two --profile=restricted --target=p --arguments-only -- a'],
  ['debug p --image=i -c three --profile=netadmin -q'],
  ['debug p --image=i -c four'],
  ['get pod p -o jsonpath={.spec.ephemeralContainers}'],
  ['debug p --image=i -c copy --copy-to=q1 --profile=general --same-node'],
  ['debug p --copy-to=q2 --set-image=*=other --keep-labels --profile=baseline'],
  ['debug p --copy-to=q3 -c p --profile=restricted -- sleep 1'],
  ['debug p --image=i -c copy --copy-to=q4 --share-processes=false'],
  ['get pods q1 q2 q3 q4 -o jsonpath={.items[*].spec.containers}'],
  ['get pods q1 q2 q3 q4 -o jsonpath={.items[*].spec.shareProcessNamespace}'],
  ['get pods q1 q2 q3 q4 -o jsonpath={.items[*].metadata.labels}'],
  ['debug p --image=i -c copy --copy-to=q5 --replace --profile=general'],
  ['get pod p'],
  ['debug q1 --image=i -c p -q --profile=general'],
  ['debug q1 --image=i -c a -q --profile=general'],
  ['debug q1 --image=i -c a -q --profile=general'],
  ['debug q1 --image=i -c b -q --profile=baseline --env=A=1 --image-pull-policy=Always'],
  ['debug q1 --image=i -c c -q --profile=sysadmin -i --attach=false'],
  ['debug q1 --image=i -c d -q --profile=general --env="A=1,B=2"'],
  [`debug q1 --image=i -c f -q --profile=general --env=B=1 --custom=${custom}`],
  [`debug q1 --image=i -c g -q --profile=restricted --custom=${custom}`],
  ['get pod q1 -o jsonpath={.spec.ephemeralContainers}'],
  [`debug q1 --image=i -q --custom=${fileOf('fixed.json', { image: 'other' })}`],
  [
    `debug q1 --image=i -q --profile=general --custom=${fileOf('empty.json', {})} --copy-to=q6 -c x`,
  ],
  [`debug q1 -q --profile=sysadmin --copy-to=q7 -c init --custom=${custom} -- sh`],
  ['debug q1 --image=i -q --profile=general --copy-to=q1 -c x'],
  ['debug q1 -q --profile=general --copy-to=q8 --set-image=copy=UPPER!'],
  ['debug q1 -q --profile=general --copy-to=q8 --set-image=none=other'],
  ['debug q1 -q --profile=general --copy-to=q9 --set-image=copy=x,p=y'],
  ['debug q1 -q --profile=general --copy-to=q10 --image=z -c copy --arguments-only -- a b'],
  ['debug q1 -q --profile=netadmin --copy-to=q11 --image=z -c n --keep-annotations'],
  ['debug q1 -q --profile=sysadmin --copy-to=q12 --image=z -c n --keep-init-containers=false'],
  [
    'debug q0 -q --profile=general --copy-to=q13 --image=z -c n --keep-liveness ' +
      '--keep-readiness --keep-startup --keep-labels --same-node --share-processes',
  ],
  [
    'get pods q6 q8 q9 q10 q11 q12 q13 -o jsonpath={range.items[*]}{.metadata.labels}' +
      '{.metadata.annotations}{.spec.containers}{.spec.initContainers}{.spec.nodeName}{end}',
  ],
  [`debug -f ${podFile} -q --image=i -c file --profile=general`],
  [`debug -f ${podFile} -q --image=i -c file --profile=general --copy-to=q14`],
  ['get pod q14 -o jsonpath={.metadata.namespace}{.spec.containers}'],
  [`debug p -f ${podFile} -q --image=i`],
  [`debug -f ${join(folder, 'none.json')} -q --image=i`],
  ['debug q0 q1 -q --image=i -c both --profile=general'],
  ['debug pod/q0 none -q --image=i -c more --profile=general'],
  ['debug service/s -q --image=i'],
  ['debug node/none -q --image=i'],
  ['debug node/@ns-node -q --image=i --copy-to=x'],
  ...nodePod('--profile=legacy'),
  ...nodePod('--profile=general -c shell --env=A=1 -- sh -c true'),
  ...nodePod('--profile=baseline --arguments-only -- a'),
  ...nodePod('--profile=restricted -i --attach=false -t'),
  ...nodePod('--profile=netadmin --image-pull-policy=Never'),
  ...nodePod(`--profile=sysadmin --custom=${custom}`),
];

const probe = { httpGet: { path: '/', port: 80 } };

saysAsKubectl(lines, async (server: TestServer, namespace: string) => {
  const inside = `/api/v1/namespaces/${namespace}`;
  const pod = {
    metadata: { name: 'p', labels: { a: 'b' }, annotations: { c: 'd' } },
    spec: {
      containers: [
        { name: 'p', image: 'i', args: ['x'], livenessProbe: probe, readinessProbe: probe },
      ],
    },
  };
  const node = { metadata: { name: `${namespace}-node` } };
  expect((await server.post('/api/v1/nodes', node)).status).toBe(201);
  expect((await server.post(`${inside}/pods`, pod)).status).toBe(201);
  const rich = {
    metadata: { name: 'q0', labels: { a: 'b' }, annotations: { c: 'd' } },
    spec: {
      nodeName: node.metadata.name,
      initContainers: [{ name: 'init', image: 'i' }],
      containers: [
        {
          ...{ name: 'p', image: 'i', args: ['x'] },
          ...{ livenessProbe: probe, readinessProbe: probe, startupProbe: probe },
          securityContext: { runAsUser: 3, capabilities: { add: ['SYS_ADMIN'] } },
        },
      ],
    },
  };
  expect((await server.post(`${inside}/pods`, rich)).status).toBe(201);
  const service = { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } };
  expect((await server.post(`${inside}/services`, service)).status).toBe(201);
  expect((await server.post(`${inside}/configmaps`, { metadata: { name: 'm' } })).status).toBe(201);
});
