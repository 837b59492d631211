// Plays the kubelets of a few nodes: Pods that are bound to them run, become ready, succeed or
// fail, and disappear when they are deleted. No containers are started; `processes` may start local
// programs for a few of them.
import { call, pause } from './servers.mjs';

const everyMs = 300;
const heartbeatMs = 5_000;

const now = () => new Date().toISOString().replace(/\.\d+Z$/, 'Z');

function nodeStatus(cpu) {
  const stamp = now();
  const condition = { lastHeartbeatTime: stamp, lastTransitionTime: stamp };
  const resources = { cpu, memory: '8Gi', pods: '40', 'ephemeral-storage': '100Gi' };
  const kubelet = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' };
  return {
    capacity: resources,
    allocatable: resources,
    conditions: [{ ...kubelet, ...condition }],
    nodeInfo: { kubeletVersion: 'v1.32.0', operatingSystem: 'linux', architecture: 'amd64' },
  };
}

function containerStatus(container, { state, isReady }) {
  return {
    name: container.name,
    image: container.image,
    imageID: '',
    containerID: `played://${container.name}`,
    ready: isReady,
    started: isReady,
    restartCount: 0,
    state,
  };
}

/** The outcome that a Pod asks for with the annotation `peers/outcome`: run, succeed, or fail. */
const outcomeInPod = (pod) => pod.metadata.annotations?.['peers/outcome'] ?? 'run';

function podStatus(pod, { phase, address }) {
  const stamp = now();
  const isReady = phase === 'Running';
  const exitCode = phase === 'Failed' ? 1 : 0;
  const state = isReady
    ? { running: { startedAt: stamp } }
    : { terminated: { exitCode, startedAt: stamp, finishedAt: stamp, reason: phase } };
  const conditions = ['Initialized', 'PodReadyToStartContainers', 'ContainersReady', 'Ready'];
  const isTrue = (type) => isReady || type === 'Initialized';
  return {
    phase,
    hostIP: '127.0.0.1',
    podIP: address,
    podIPs: [{ ip: address }],
    startTime: pod.status?.startTime ?? stamp,
    conditions: conditions.map((type) => ({
      type,
      status: isTrue(type) ? 'True' : 'False',
      lastTransitionTime: stamp,
    })),
    containerStatuses: pod.spec.containers.map((container) =>
      containerStatus(container, { state, isReady }),
    ),
  };
}

const noProcesses = {
  start: async () => true,
  end: async () => {},
  tick: async () => {},
  stop: async () => {},
};

/**
 * Starts playing.
 *
 * @param options.names names of the nodes
 * @param options.processes the result of `playProcesses`; by default no Pod has a process
 * @param options.cpu the processors of each node
 * @param options.outcomeOf returns `run`, `succeed`, or `fail` for a Pod
 * @returns `stop`, which resolves when no more requests are sent, and `errors`: the answers other
 * than 2xx, 404, and 409
 */
export function playNodes(
  server,
  { names, processes = noProcesses, outcomeOf = outcomeInPod, cpu = '4' },
) {
  let isOver = false;
  const addresses = new Map();
  const errors = [];
  const send = async (request) => {
    const answer = await call(server, request);
    const isExpected = answer.status < 300 || answer.status === 404 || answer.status === 409;
    if (!isExpected) errors.push(`${request.method} ${request.path}: ${answer.status}`);
    return answer;
  };

  const register = async (name) => {
    const platform = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
    const metadata = { name, labels: { 'kubernetes.io/hostname': name, ...platform } };
    const node = { apiVersion: 'v1', kind: 'Node', metadata, status: nodeStatus(cpu) };
    await send({ method: 'POST', path: '/api/v1/nodes', body: node });
  };
  const beat = async (name) => {
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime };
    const body = { metadata: { name }, spec };
    const { status } = await send({ method: 'PATCH', path: `${leases}/${name}`, body });
    if (status === 404) await send({ method: 'POST', path: leases, body });
    const path = `/api/v1/nodes/${name}/status`;
    await send({ method: 'PATCH', path, body: { status: nodeStatus(cpu) } });
  };
  const addressOf = (uid) => {
    if (!addresses.has(uid)) addresses.set(uid, addresses.size + 1);
    const number = addresses.get(uid);
    return `10.244.${number >> 8}.${number & 255}`;
  };
  const follow = async (pod) => {
    const path = `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`;
    if (pod.metadata.deletionTimestamp !== undefined) {
      await processes.end(pod.metadata.uid);
      const preconditions = { uid: pod.metadata.uid };
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 };
      await send({ method: 'DELETE', path, body: { ...body, preconditions } });
      return;
    }
    const phase = pod.status?.phase ?? 'Pending';
    if (phase === 'Succeeded' || phase === 'Failed') return;
    const ended = { succeed: 'Succeeded', fail: 'Failed' }[outcomeOf(pod)];
    const next = phase === 'Pending' ? 'Running' : (ended ?? phase);
    if (next === phase) return;
    const address = pod.status?.podIP ?? addressOf(pod.metadata.uid);
    if (!(await processes.start(pod, { address }))) return;
    const status = podStatus(pod, { phase: next, address });
    await send({ method: 'PATCH', path: `${path}/status`, body: { status } });
  };

  const playing = (async () => {
    for (const name of names) await register(name);
    for (let last = 0; !isOver; ) {
      if (Date.now() - last > heartbeatMs) {
        for (const name of names) await beat(name);
        last = Date.now();
      }
      const { body } = await send({ method: 'GET', path: '/api/v1/pods' });
      for (const pod of body.items ?? []) {
        if (names.includes(pod.spec.nodeName)) await follow(pod);
      }
      await processes.tick();
      await pause(everyMs);
    }
  })().catch((error) => errors.push(String(error)));
  const stop = async () => {
    isOver = true;
    await playing;
    await processes.stop();
  };
  return { stop, errors };
}
