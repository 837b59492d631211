import { type ApiObject, type JsonObject, randomOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { NodeGraph, type VertexKind } from './node-graph.ts';

const mirrorAnnotation = 'svc.io/config.mirror';
const empty = () => new NodeGraph({ mirrorAnnotation });

function pod(name: string, spec: JsonObject, more: JsonObject = {}): ApiObject {
  const metadata = { name, namespace: 'ns' };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec, ...more } as ApiObject;
}

function volume(name: string, spec: JsonObject): ApiObject {
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec };
}

const claimed = { claimRef: { namespace: 'ns', name: 'data' } };

function leads(graph: NodeGraph, node: string, path: string): boolean {
  const [kind = '', namespace = '', name = ''] = path.split('/');
  return graph.leadsTo(node, { kind: kind as VertexKind, namespace, name });
}

describe('AUTHZ-9: references of a pod', () => {
  const env = (kind: string, name: string) => ({
    env: [{ name: 'A', valueFrom: { [`${kind}KeyRef`]: { name, key: 'k' } } }],
  });
  const cases: [string, JsonObject][] = [
    ['serviceaccount/ns/robot', { serviceAccountName: 'robot' }],
    ['secret/ns/s', { imagePullSecrets: [{ name: 's' }] }],
    ['secret/ns/s', { containers: [{ envFrom: [{ secretRef: { name: 's' } }] }] }],
    ['secret/ns/s', { initContainers: [env('secret', 's')] }],
    ['secret/ns/s', { ephemeralContainers: [env('secret', 's')] }],
    ['secret/ns/s', { volumes: [{ secret: { secretName: 's' } }] }],
    ['secret/ns/s', { volumes: [{ projected: { sources: [{ secret: { name: 's' } }] } }] }],
    ['secret/ns/s', { volumes: [{ azureFile: { secretName: 's' } }] }],
    ['secret/ns/s', { volumes: [{ csi: { nodePublishSecretRef: { name: 's' } } }] }],
    ...['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'].map(
      (driver): [string, JsonObject] => [
        'secret/ns/s',
        { volumes: [{ [driver]: { secretRef: { name: 's' } } }] },
      ],
    ),
    ['configmap/ns/c', { containers: [{ envFrom: [{ configMapRef: { name: 'c' } }] }] }],
    ['configmap/ns/c', { containers: [env('configMap', 'c')] }],
    ['configmap/ns/c', { volumes: [{ configMap: { name: 'c' } }] }],
    ['configmap/ns/c', { volumes: [{ projected: { sources: [{ configMap: { name: 'c' } }] } }] }],
    [
      'persistentvolumeclaim/ns/data',
      { volumes: [{ persistentVolumeClaim: { claimName: 'data' } }] },
    ],
    ['persistentvolumeclaim/ns/p-scratch', { volumes: [{ name: 'scratch', ephemeral: {} }] }],
    ['resourceclaim/ns/gpu', { resourceClaims: [{ name: 'g', resourceClaimName: 'gpu' }] }],
  ];
  test.each(cases)('%s by %j', (path, spec) => {
    const graph = empty();
    graph.setPod(pod('p', { nodeName: 'n1', ...spec }));
    expect(leads(graph, 'n1', path)).toBe(true);
    expect(leads(graph, 'n2', path)).toBe(false);
    expect(leads(graph, 'n1', path.replace('/ns/', '/other/'))).toBe(false);
    graph.removePod('ns', 'p');
    expect(leads(graph, 'n1', path)).toBe(false);
    expect(graph.size).toBe(0);
  });

  test('a claim made from a template, once the status names it', () => {
    const graph = empty();
    const spec = {
      nodeName: 'n1',
      resourceClaims: [{ name: 'g', resourceClaimTemplateName: 't' }],
    };
    graph.setPod(pod('p', spec));
    expect(leads(graph, 'n1', 'resourceclaim/ns/p-g-x1')).toBe(false);
    const statuses = [{ name: 'g', resourceClaimName: 'p-g-x1' }];
    graph.setPod(pod('p', spec, { status: { resourceClaimStatuses: statuses } }));
    expect(leads(graph, 'n1', 'resourceclaim/ns/p-g-x1')).toBe(true);
  });

  test('references count only once the pod is bound', () => {
    const graph = empty();
    const spec = { serviceAccountName: 'robot' };
    graph.setPod(pod('p', spec));
    expect(graph.size).toBe(0);
    graph.setPod(pod('p', { ...spec, nodeName: 'n1' }));
    expect(leads(graph, 'n1', 'pod/ns/p')).toBe(true);
    expect(leads(graph, 'n1', 'serviceaccount/ns/robot')).toBe(true);
  });

  test('a mirror pod refers only to itself', () => {
    const graph = empty();
    const mirror = pod('p', { nodeName: 'n1', imagePullSecrets: [{ name: 's' }] });
    mirror.metadata.annotations = { [mirrorAnnotation]: 'x' };
    graph.setPod(mirror);
    expect(leads(graph, 'n1', 'pod/ns/p')).toBe(true);
    expect(leads(graph, 'n1', 'secret/ns/s')).toBe(false);
  });
});

describe('AUTHZ-9: volumes', () => {
  const mounting = pod('p', {
    nodeName: 'n1',
    volumes: [{ persistentVolumeClaim: { claimName: 'data' } }],
  });
  const cases: [string, JsonObject, boolean][] = [
    ['secret/ns/s', { azureFile: { secretName: 's' } }, true],
    ['secret/far/s', { azureFile: { secretName: 's', secretNamespace: 'far' } }, true],
    ['secret/ns/s', { rbd: { secretRef: { name: 's' } } }, true],
    ['secret/far/s', { rbd: { secretRef: { name: 's', namespace: 'far' } } }, true],
    ['secret/ns/s', { rbd: { secretRef: { name: 's', namespace: 'far' } } }, false],
    ['secret/ns/s', { cinder: { secretRef: { name: 's' } } }, false],
    ['secret/far/s', { csi: { nodeStageSecretRef: { name: 's', namespace: 'far' } } }, true],
    ['secret/far/s', { csi: { nodeExpandSecretRef: { name: 's', namespace: 'far' } } }, true],
    [
      'secret/far/s',
      { csi: { controllerExpandSecretRef: { name: 's', namespace: 'far' } } },
      false,
    ],
    [
      'secret/far/s',
      { csi: { controllerPublishSecretRef: { name: 's', namespace: 'far' } } },
      false,
    ],
  ];
  test.each(cases)('%s by %j: %s', (path, spec, expected) => {
    const graph = empty();
    graph.setVolume(volume('v', { ...claimed, ...spec }));
    expect(leads(graph, 'n1', path)).toBe(false);
    graph.setPod(mounting);
    expect(leads(graph, 'n1', 'persistentvolume//v')).toBe(true);
    expect(leads(graph, 'n1', path)).toBe(expected);
    expect(leads(graph, 'n2', path)).toBe(false);
    graph.setVolume(volume('v', spec));
    expect(leads(graph, 'n1', 'persistentvolume//v')).toBe(false);
    expect(leads(graph, 'n1', path)).toBe(false);
    graph.removePod('ns', 'p');
    expect(graph.size).toBe(0);
  });

  test('an attachment and a slice belong to their node', () => {
    const graph = empty();
    graph.setNodeOf('volumeattachment', 'a', 'n1');
    graph.setNodeOf('resourceslice', 'a', 'n2');
    expect(leads(graph, 'n1', 'volumeattachment//a')).toBe(true);
    expect(leads(graph, 'n1', 'resourceslice//a')).toBe(false);
    graph.setNodeOf('volumeattachment', 'a', 'n2');
    expect(leads(graph, 'n1', 'volumeattachment//a')).toBe(false);
    expect(leads(graph, 'n2', 'volumeattachment//a')).toBe(true);
    graph.setNodeOf('volumeattachment', 'a', '');
    graph.setNodeOf('resourceslice', 'a', '');
    expect(graph.size).toBe(0);
  });
});

test('AUTHZ-9: after random changes of pods and volumes, the graph equals a rebuilt one', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { below: next } = randomOf(seed);
  const graph = empty();
  const pods = new Map<string, { node: string; secret: string; claim: string }>();
  const volumes = new Map<string, { claim: string; secret: string }>();
  const expected = (node: string, secret: string) =>
    [...pods.values()].some((podState) => podState.node === node && podState.secret === secret) ||
    [...volumes.values()].some(
      (volumeState) =>
        volumeState.secret === secret &&
        [...pods.values()].some(
          (podState) => podState.node === node && podState.claim === volumeState.claim,
        ),
    );
  for (let step = 0; step < 600; step += 1) {
    const name = `x${next(6)}`;
    const [node, secret, claim] = [`n${next(3)}`, `s${next(3)}`, `c${next(3)}`];
    const action = next(4);
    if (action === 0) {
      pods.set(name, { node, secret, claim });
      const mounts = [
        { secret: { secretName: secret } },
        { persistentVolumeClaim: { claimName: claim } },
      ];
      graph.setPod(pod(name, { nodeName: node, volumes: mounts }));
    } else if (action === 1) {
      pods.delete(name);
      graph.removePod('ns', name);
    } else if (action === 2) {
      volumes.set(name, { claim, secret });
      const claimRef = { namespace: 'ns', name: claim };
      graph.setVolume(volume(name, { claimRef, rbd: { secretRef: { name: secret } } }));
    } else {
      volumes.delete(name);
      graph.removeVolume(name);
    }
    for (let node = 0; node < 3; node += 1) {
      for (let secret = 0; secret < 3; secret += 1) {
        const found = leads(graph, `n${node}`, `secret/ns/s${secret}`);
        expect(found, `seed ${seed}, step ${step}`).toBe(expected(`n${node}`, `s${secret}`));
      }
    }
  }
});

test('TRUST-2: the references of a pod are found in steps', () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `s${index}`);
  const shapes: readonly JsonObject[] = [
    { volumes: names.map((secretName) => ({ name: secretName, secret: { secretName } })) },
    { volumes: [{ projected: { sources: names.map((name) => ({ secret: { name } })) } }] },
    { containers: [{ envFrom: names.map((name) => ({ secretRef: { name } })) }] },
    { imagePullSecrets: names.map((name) => ({ name })) },
  ];
  for (const spec of shapes) {
    const graph = empty();
    const work = graph.podSteps(pod('p', { nodeName: 'n1', ...spec }));
    let steps = 0;
    let step = work.next();
    for (; step.done !== true; step = work.next()) steps += 1;
    expect(steps).toBeGreaterThanOrEqual(10);
    graph.setPodVertices(step.value);
    expect(graph.size).toBe(1 + names.length);
    expect(leads(graph, 'n1', 'secret/ns/s4999')).toBe(true);
  }
});

test('AUTHZ-9: a decision among 10,000 pods takes microseconds', () => {
  const graph = empty();
  for (let index = 0; index < 10_000; index += 1) {
    const volumes = [{ secret: { secretName: 'shared' } }, { configMap: { name: `c${index}` } }];
    graph.setPod(pod(`p${index}`, { nodeName: `n${index % 1000}`, volumes }));
  }
  const decisions = 20_000;
  const start = performance.now();
  let found = 0;
  for (let index = 0; index < decisions; index += 1) {
    if (graph.leadsTo(`n${index % 1000}`, { kind: 'secret', namespace: 'ns', name: 'shared' })) {
      found += 1;
    }
  }
  const microseconds = ((performance.now() - start) * 1000) / decisions;
  expect(found).toBe(decisions);
  expect(microseconds).toBeLessThan(50);
});
