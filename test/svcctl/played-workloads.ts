import type { StatefulSet } from '@wheelhouse/kinds/types/apps/v1';
import { expect } from 'vitest';
import type { ResponseOf, TestServer } from '../support/harness.ts';

const labels = { app: 'web' };

/** A Pod template with a container of `image` and a sidecar. */
export const template = (image: string, annotations: object = {}) => ({
  metadata: { labels, annotations },
  spec: {
    containers: [
      {
        name: 'main',
        image,
        command: ['serve', '--all'],
        ports: [{ containerPort: 80 }],
        env: [
          { name: 'A', value: 'x' },
          { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
          { name: 'C', valueFrom: { configMapKeyRef: { name: 'm', key: 'k', optional: true } } },
        ],
        envFrom: [{ prefix: 'P_', configMapRef: { name: 'm' } }],
        resources: { limits: { cpu: '1' }, requests: { memory: '1Mi' } },
        readinessProbe: { httpGet: { path: '/ok', port: 80 } },
        volumeMounts: [{ name: 'data', mountPath: '/data', subPath: 'a', readOnly: true }],
      },
      { name: 'side', image: 'sidecar:1' },
    ],
    nodeSelector: { disk: 'fast' },
    tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
    volumes: [],
  },
});

/** Simulates the controllers of workloads, which the server does not include. */
export interface PlayedController {
  /** Creates a workload; `spec` overrides fields of the default one. */
  create(kind: WorkloadKind, name: string, spec?: object): Promise<Created>;
  /** Records a revision as the controller would, in a ReplicaSet or a ControllerRevision. */
  recordRevision(owner: Created, revision: number, image: string, cause?: string): Promise<void>;
  /** Writes the status of a workload for its current generation. */
  report(owner: Created, status: object): Promise<void>;
}

export type WorkloadKind = 'Deployment' | 'DaemonSet' | 'StatefulSet';

/** A workload that `create` has created. */
export interface Created {
  readonly kind: WorkloadKind;
  readonly name: string;
  readonly uid: string;
}

const plural = { Deployment: 'deployments', DaemonSet: 'daemonsets', StatefulSet: 'statefulsets' };

/** Simulates the workload controllers in a namespace. */
export function playController(
  server: TestServer,
  of: { readonly namespace: string; readonly labelDomain: string },
): PlayedController {
  const { namespace, labelDomain } = of;
  const apps = (resource: string) => `/apis/apps/v1/namespaces/${namespace}/${resource}`;
  /** A template without volume mounts, which need no volumes. */
  const mountless = (image: string, annotations: object = {}) => {
    const complete = template(image, annotations);
    const [first, ...more] = complete.spec.containers;
    const { volumeMounts: _, ...main } = { volumeMounts: [], ...first };
    return { ...complete, spec: { ...complete.spec, containers: [main, ...more] } };
  };
  async function post(resource: string, body: object): Promise<string> {
    const answer = await server.post(apps(resource), { apiVersion: 'apps/v1', ...body });
    expect(answer.status, answer.text).toBe(201);
    return String(answer.body.metadata.uid);
  }
  const metadataOf = (owner: Created, revision: number, cause: string | undefined) => ({
    name: `${owner.name}-${revision}`,
    labels: { ...labels, 'pod-template-hash': `h${revision}` },
    annotations: {
      [`deployment.${labelDomain}/revision`]: String(revision),
      ...(cause === undefined ? {} : { [`${labelDomain}/change-cause`]: cause }),
    },
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
        controller: true,
      },
    ],
  });
  return {
    async create(kind, name, spec = {}) {
      const annotations = { [`deployment.${labelDomain}/revision`]: '2' };
      const uid = await post(plural[kind], {
        kind,
        metadata: { name, annotations },
        spec: {
          selector: { matchLabels: labels },
          template: mountless('web:2'),
          ...(kind === 'DaemonSet' ? {} : { replicas: 3 }),
          ...(kind === 'StatefulSet' ? { serviceName: 's' } : {}),
          ...spec,
        },
      });
      return { kind, name, uid };
    },
    async recordRevision(owner, revision, image, cause) {
      const metadata = metadataOf(owner, revision, cause);
      if (owner.kind === 'Deployment') {
        const recorded = mountless(image);
        const hashed = { ...labels, 'pod-template-hash': `h${revision}` };
        await post('replicasets', {
          kind: 'ReplicaSet',
          metadata,
          spec: {
            selector: { matchLabels: hashed },
            template: { ...recorded, metadata: { labels: hashed } },
          },
        });
        return;
      }
      const path = `${apps(plural[owner.kind])}/${owner.name}`;
      const current = (await server.get<ResponseOf<StatefulSet>>(path)).body.spec.template;
      const [main, ...more] = current.spec.containers;
      const containers = [{ ...main, image }, ...more];
      const recorded = { ...current, spec: { ...current.spec, containers }, $patch: 'replace' };
      const data = { spec: { template: recorded } };
      await post('controllerrevisions', { kind: 'ControllerRevision', metadata, revision, data });
    },
    async report(owner, status) {
      const path = `${apps(plural[owner.kind])}/${owner.name}`;
      const observedGeneration = (await server.get(path)).body.metadata.generation;
      const body = { status: { observedGeneration, ...status } };
      const answer = await server.patch(`${path}/status`, body, 'merge');
      expect(answer.status, answer.text).toBe(200);
    },
  };
}
