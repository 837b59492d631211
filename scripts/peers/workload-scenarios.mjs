// Scenarios for kube-controller-manager and kube-scheduler. Each scenario creates objects, waits
// until the controllers have reconciled them, and returns a description of their state that does
// not depend on names, times, or timing.
import { call, eventually } from './servers.mjs';

const withinMs = 120_000;

const groups = {
  deployments: '/apis/apps/v1',
  replicasets: '/apis/apps/v1',
  statefulsets: '/apis/apps/v1',
  daemonsets: '/apis/apps/v1',
  jobs: '/apis/batch/v1',
  cronjobs: '/apis/batch/v1',
  horizontalpodautoscalers: '/apis/autoscaling/v2',
  poddisruptionbudgets: '/apis/policy/v1',
  endpointslices: '/apis/discovery.k8s.io/v1',
};

/** The client of one scenario, bound to its namespace. */
function scenarioClient(server, namespace) {
  const pathOf = (resource, rest = '') =>
    `${groups[resource] ?? '/api/v1'}/namespaces/${namespace}/${resource}${rest}`;
  const send = async (request) => {
    const answer = await call(server, request);
    if (answer.status >= 300) {
      const { message } = answer.body;
      throw new Error(`${request.method} ${request.path}: ${answer.status} ${message}`);
    }
    return answer.body;
  };
  return {
    server,
    namespace,
    answer: (request) => call(server, request),
    pathOf,
    create: (resource, body) => send({ method: 'POST', path: pathOf(resource), body }),
    createAt: (path, body) => send({ method: 'POST', path, body }),
    get: (resource, name) => send({ method: 'GET', path: pathOf(resource, `/${name}`) }),
    patch: (resource, name, body) =>
      send({ method: 'PATCH', path: pathOf(resource, `/${name}`), body }),
    remove: (resource, name, body) =>
      send({ method: 'DELETE', path: pathOf(resource, `/${name}`), body }),
    list: async (resource, query = '') =>
      (await send({ method: 'GET', path: pathOf(resource, query) })).items,
  };
}

const container = { name: 'main', image: 'example.test/app:1' };

function template({ labels, outcome, spec = {} }) {
  const annotations = outcome === undefined ? {} : { 'peers/outcome': outcome };
  return { metadata: { labels, annotations }, spec: { containers: [container], ...spec } };
}

function deployment(name, { replicas = 3, spec = {} } = {}) {
  const labels = { app: name };
  const pods = template({ labels });
  return {
    metadata: { name },
    spec: { replicas, selector: { matchLabels: labels }, template: pods, ...spec },
  };
}

/** Waits until `describe` returns a truthy value; the error contains the last value. */
async function settled(what, describe) {
  let seen;
  const look = async () => {
    try {
      seen = await describe();
      return seen?.isDone === true;
    } catch (error) {
      seen = String(error);
      return false;
    }
  };
  if (!(await eventually(look, { withinMs, everyMs: 300 }))) {
    throw new Error(`${what} did not happen: ${JSON.stringify(seen)}`);
  }
  const { isDone: _, ...state } = seen;
  return state;
}

async function gone(client, resource, query = '') {
  return settled(`the end of ${resource}`, async () => {
    const items = await client.list(resource, query);
    return { isDone: items.length === 0, left: items.length };
  });
}

const conditionsOf = (object) =>
  Object.fromEntries(
    (object.status.conditions ?? []).map(({ type, status, reason }) => [type, [status, reason]]),
  );

async function rolledOut(client, name, { replicas, image }) {
  return settled(`the rollout of ${name}`, async () => {
    const { metadata, status } = await client.get('deployments', name);
    const pods = await client.list('pods', `?labelSelector=app%3D${name}`);
    const isNew = pods.every((pod) => pod.spec.containers[0].image === image);
    const counts = [status.replicas, status.updatedReplicas, status.availableReplicas];
    const isDone =
      status.observedGeneration === metadata.generation &&
      pods.length === replicas &&
      isNew &&
      counts.every((count) => (count ?? 0) === replicas);
    return {
      isDone,
      counts,
      conditions: conditionsOf({ status }),
      revision: metadata.annotations?.['deployment.kubernetes.io/revision'],
    };
  });
}

async function deployments(client) {
  const image = container.image;
  await client.create('deployments', deployment('web'));
  const created = await rolledOut(client, 'web', { replicas: 3, image });
  await client.patch('deployments', 'web', { spec: { replicas: 5 } });
  const scaled = await rolledOut(client, 'web', { replicas: 5, image });
  const next = { containers: [{ ...container, image: 'example.test/app:2' }] };
  await client.patch('deployments', 'web', { spec: { template: { spec: next } } });
  const updated = await rolledOut(client, 'web', { replicas: 5, image: 'example.test/app:2' });
  const owners = (await client.list('pods')).map((pod) => pod.metadata.ownerReferences[0].kind);
  await client.remove('deployments', 'web');
  await gone(client, 'pods');
  await gone(client, 'replicasets');
  return { created, scaled, updated, owners };
}

async function statefulSets(client) {
  for (const index of [0, 1, 2]) {
    const hostPath = { path: `/peers/${index}` };
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath };
    const volume = { metadata: { name: `${client.namespace}-${index}` } };
    const body = { ...volume, spec: { ...spec, storageClassName: client.namespace } };
    await client.createAt('/api/v1/persistentvolumes', body);
  }
  const labels = { app: 'db' };
  const requests = { storage: '1Gi' };
  const claim = { accessModes: ['ReadWriteOnce'], storageClassName: client.namespace };
  const spec = { ...claim, resources: { requests } };
  const body = {
    metadata: { name: 'db' },
    spec: {
      serviceName: 'db',
      replicas: 3,
      selector: { matchLabels: labels },
      template: template({ labels }),
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec }],
    },
  };
  await client.create('statefulsets', body);
  const state = await settled('three ready members', async () => {
    const { status } = await client.get('statefulsets', 'db');
    const claims = await client.list('persistentvolumeclaims');
    const pods = (await client.list('pods')).map((pod) => pod.metadata.name).sort();
    const phases = claims.map((volumeClaim) => volumeClaim.status.phase);
    const isBound = claims.length === 3 && phases.every((phase) => phase === 'Bound');
    return { isDone: status.availableReplicas === 3 && isBound, pods, phases };
  });
  await client.patch('statefulsets', 'db', { spec: { replicas: 1 } });
  const scaled = await settled('one member', async () => {
    const pods = (await client.list('pods')).map((pod) => pod.metadata.name);
    return { isDone: pods.length === 1, pods };
  });
  await client.remove('statefulsets', 'db');
  await gone(client, 'pods');
  return { state, scaled };
}

async function daemonSets(client) {
  const labels = { app: 'agent' };
  const spec = { selector: { matchLabels: labels }, template: template({ labels }) };
  await client.create('daemonsets', { metadata: { name: 'agent' }, spec });
  return settled('an agent on every node', async () => {
    const { status } = await client.get('daemonsets', 'agent');
    const { desiredNumberScheduled: desired, numberReady, numberAvailable } = status;
    return { isDone: desired > 0 && numberAvailable === desired, desired, numberReady };
  });
}

const job = (name, { outcome, spec = {} }) => {
  const pods = template({ labels: { app: name }, outcome, spec: { restartPolicy: 'Never' } });
  return { metadata: { name }, spec: { template: pods, ...spec } };
};

async function jobEnd(client, name) {
  return settled(`the end of the job ${name}`, async () => {
    const { status } = await client.get('jobs', name);
    const conditions = conditionsOf({ status });
    const isDone = conditions.Complete !== undefined || conditions.Failed !== undefined;
    const { succeeded, failed, completedIndexes, ready } = status;
    return { isDone, conditions, succeeded, failed, completedIndexes, ready };
  });
}

async function jobs(client) {
  const indexed = { completions: 4, parallelism: 2, completionMode: 'Indexed' };
  await client.create('jobs', job('plain', { outcome: 'succeed', spec: { completions: 3 } }));
  await client.create('jobs', job('indexed', { outcome: 'succeed', spec: indexed }));
  await client.create('jobs', job('failing', { outcome: 'fail', spec: { backoffLimit: 0 } }));
  const ttl = { ttlSecondsAfterFinished: 1 };
  await client.create('jobs', job('short', { outcome: 'succeed', spec: ttl }));
  const ends = {};
  for (const name of ['plain', 'indexed', 'failing']) ends[name] = await jobEnd(client, name);
  await settled('the removal of the finished job', async () => {
    const names = (await client.list('jobs')).map(({ metadata }) => metadata.name);
    return { isDone: !names.includes('short'), names };
  });
  return ends;
}

async function cronJobs(client) {
  const jobTemplate = { spec: job('tick', { outcome: 'succeed' }).spec };
  await client.create('cronjobs', {
    metadata: { name: 'tick' },
    spec: { schedule: '* * * * *', jobTemplate },
  });
  return settled('a job of the schedule', async () => {
    const { status } = await client.get('cronjobs', 'tick');
    const owners = (await client.list('jobs')).map(
      ({ metadata }) => metadata.ownerReferences[0].kind,
    );
    return { isDone: status.lastSuccessfulTime !== undefined, owner: owners[0] };
  });
}

async function autoscalers(client) {
  await client.create('deployments', deployment('web', { replicas: 1 }));
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
  const target = { type: 'Utilization', averageUtilization: 50 };
  const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  const spec = { scaleTargetRef, minReplicas: 2, maxReplicas: 4, metrics };
  await client.create('horizontalpodautoscalers', { metadata: { name: 'web' }, spec });
  return settled('the lower bound', async () => {
    const { status } = await client.get('horizontalpodautoscalers', 'web');
    const { spec: scaled } = await client.get('deployments', 'web');
    const conditions = conditionsOf({ status });
    const isDone = scaled.replicas === 2 && conditions.ScalingActive !== undefined;
    return { isDone, conditions, desired: status.desiredReplicas };
  });
}

async function disruptionBudgets(client) {
  await client.create('deployments', deployment('web'));
  const spec = { minAvailable: 2, selector: { matchLabels: { app: 'web' } } };
  await client.create('poddisruptionbudgets', { metadata: { name: 'web' }, spec });
  const state = await settled('one allowed disruption', async () => {
    const { status } = await client.get('poddisruptionbudgets', 'web');
    const { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods } = status;
    const counts = { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods };
    return { isDone: disruptionsAllowed === 1, ...counts, conditions: conditionsOf({ status }) };
  });
  const pods = await client.list('pods');
  const codes = [];
  for (const { metadata } of pods.slice(0, 2)) {
    const path = client.pathOf('pods', `/${metadata.name}/eviction`);
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: metadata.name } };
    const answer = await client.answer({ method: 'POST', path, body });
    codes.push([answer.status, answer.body.details?.causes?.[0]?.reason]);
  }
  return { state, codes };
}

async function quotas(client) {
  const hard = { pods: '2', 'requests.cpu': '1', services: '1', 'count/configmaps': '3' };
  await client.create('resourcequotas', { metadata: { name: 'limits' }, spec: { hard } });
  const used = () =>
    settled('the quota', async () => {
      const { status } = await client.get('resourcequotas', 'limits');
      return { isDone: status.used !== undefined && status.hard !== undefined, ...status };
    });
  await used();
  const requests = { cpu: '500m' };
  const spec = { containers: [{ ...container, resources: { requests } }] };
  const codes = [];
  for (const name of ['a', 'b', 'c']) {
    const path = client.pathOf('pods');
    const answer = await client.answer({
      method: 'POST',
      path,
      body: { metadata: { name }, spec },
    });
    codes.push([answer.status, answer.body.message?.split(': ').at(-1)]);
  }
  const filled = await used();
  await client.remove('pods', 'a', { gracePeriodSeconds: 0 });
  const freed = await settled('the release', async () => {
    const { status } = await client.get('resourcequotas', 'limits');
    return { isDone: status.used.pods === '1', used: status.used };
  });
  return { codes, filled, freed };
}

async function services(client) {
  const ports = [{ port: 80, targetPort: 8080 }];
  const selector = { app: 'web' };
  await client.create('services', { metadata: { name: 'web' }, spec: { selector, ports } });
  await client.create('deployments', deployment('web', { replicas: 2 }));
  const found = await settled('two addresses', async () => {
    const slices = await client.list('endpointslices');
    const endpoints = await client.get('endpoints', 'web');
    const ready = slices
      .flatMap((slice) => slice.endpoints ?? [])
      .filter(({ conditions }) => conditions.ready);
    const addresses = (endpoints.subsets ?? []).flatMap((subset) => subset.addresses ?? []);
    const isDone = ready.length === 2 && addresses.length === 2;
    return {
      isDone,
      ports: slices[0]?.ports,
      managedBy: slices[0]?.metadata.labels['endpointslice.kubernetes.io/managed-by'],
    };
  });
  await client.remove('services', 'web');
  await gone(client, 'endpointslices');
  return found;
}

async function accounts(client) {
  return settled('the default account and the root certificate', async () => {
    const names = async (resource) =>
      (await client.list(resource)).map(({ metadata }) => metadata.name);
    const [serviceAccounts, maps] = [await names('serviceaccounts'), await names('configmaps')];
    const isDone = serviceAccounts.includes('default') && maps.includes('kube-root-ca.crt');
    return { isDone, serviceAccounts, maps };
  });
}

async function collection(client) {
  await client.create('deployments', deployment('foreground', { replicas: 2 }));
  await client.create('deployments', deployment('orphaned', { replicas: 2 }));
  const image = container.image;
  for (const name of ['foreground', 'orphaned'])
    await rolledOut(client, name, { replicas: 2, image });
  await client.remove('deployments', 'foreground', { propagationPolicy: 'Foreground' });
  await client.remove('deployments', 'orphaned', { propagationPolicy: 'Orphan' });
  await gone(client, 'deployments');
  const sets = await client.list('replicasets');
  const pods = await client.list('pods');
  const owned = sets.filter((set) => set.metadata.ownerReferences !== undefined).length;
  return { replicaSets: sets.length, owned, pods: pods.length };
}

async function claimProtection(client) {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const claim = {
    metadata: { name: 'data' },
    spec: { ...spec, storageClassName: client.namespace },
  };
  await client.create('persistentvolumeclaims', claim);
  const hostPath = { path: '/peers' };
  const volume = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath };
  const body = {
    metadata: { name: client.namespace },
    spec: { ...volume, storageClassName: client.namespace },
  };
  await client.createAt('/api/v1/persistentvolumes', body);
  const mounted = { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] };
  await client.create('pods', {
    metadata: { name: 'user' },
    spec: { containers: [container], ...mounted },
  });
  await settled('the running user', async () => {
    const { status } = await client.get('pods', 'user');
    return {
      isDone: status.phase === 'Running',
      phase: status.phase,
      conditions: status.conditions,
    };
  });
  await client.remove('persistentvolumeclaims', 'data');
  const { metadata } = await client.get('persistentvolumeclaims', 'data');
  await client.remove('pods', 'user', { gracePeriodSeconds: 1 });
  await gone(client, 'persistentvolumeclaims');
  const phase = await settled('the released volume', async () => {
    const path = `/api/v1/persistentvolumes/${client.namespace}`;
    const { status } = (await client.answer({ path })).body;
    return { isDone: status.phase === 'Released', phase: status.phase };
  });
  return { finalizers: metadata.finalizers, phase };
}

async function preemption(client) {
  const create = (name, value) =>
    client.createAt('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name }, value });
  await create(`${client.namespace}-low`, 1);
  await create(`${client.namespace}-high`, 1000);
  const requests = { cpu: '3' };
  const containers = [{ ...container, resources: { requests } }];
  const pods = template({
    labels: { app: 'low' },
    spec: { containers, priorityClassName: `${client.namespace}-low` },
  });
  const selector = { matchLabels: { app: 'low' } };
  const metadata = { name: 'low' };
  await client.create('deployments', { metadata, spec: { replicas: 2, selector, template: pods } });
  await rolledOut(client, 'low', { replicas: 2, image: container.image });
  const spec = { containers, priorityClassName: `${client.namespace}-high` };
  await client.create('pods', { metadata: { name: 'high' }, spec });
  return settled('the preemption', async () => {
    const { status } = await client.get('pods', 'high');
    const low = await client.list('pods', '?labelSelector=app%3Dlow');
    const running = low.filter((pod) => pod.status.phase === 'Running').length;
    const pending = low.filter((pod) => pod.status.phase === 'Pending').length;
    return {
      isDone: status.phase === 'Running' && running === 1 && pending === 1,
      running,
      pending,
    };
  });
}

async function taints(client) {
  const labels = { app: 'agent' };
  const tolerations = [{ key: 'peers', operator: 'Exists' }];
  const tolerant = template({ labels, spec: { tolerations } });
  await client.create('deployments', {
    metadata: { name: 'agent' },
    spec: { replicas: 2, selector: { matchLabels: labels }, template: tolerant },
  });
  await client.create('deployments', deployment('web', { replicas: 4 }));
  for (const name of ['agent', 'web']) {
    await rolledOut(client, name, { replicas: name === 'web' ? 4 : 2, image: container.image });
  }
  const taint = { key: 'peers', effect: 'NoExecute' };
  const node = '/api/v1/nodes/peer-0';
  await client.answer({ method: 'PATCH', path: node, body: { spec: { taints: [taint] } } });
  try {
    return await settled('the eviction from the tainted node', async () => {
      const on = (await client.list('pods')).filter((pod) => pod.spec.nodeName === 'peer-0');
      const apps = [...new Set(on.map((pod) => pod.metadata.labels.app))];
      const { status } = await client.get('deployments', 'web');
      return { isDone: !apps.includes('web') && status.availableReplicas === 4 };
    });
  } finally {
    await client.answer({ method: 'PATCH', path: node, body: { spec: { taints: null } } });
  }
}

async function aggregation(client) {
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  const label = `peers/${client.namespace}`;
  const selectors = [{ matchLabels: { [label]: 'true' } }];
  const sum = {
    metadata: { name: `${client.namespace}-sum` },
    aggregationRule: { clusterRoleSelectors: selectors },
  };
  await client.createAt(roles, sum);
  const rules = [{ apiGroups: ['example.test'], resources: ['widgets'], verbs: ['get'] }];
  await client.createAt(roles, {
    metadata: { name: `${client.namespace}-part`, labels: { [label]: 'true' } },
    rules,
  });
  return settled('the sum of the rules', async () => {
    const { body } = await client.answer({ path: `${roles}/${client.namespace}-sum` });
    return { isDone: body.rules?.length === 1, rules: body.rules };
  });
}

async function namespaceEnd(client) {
  await client.create('deployments', deployment('web', { replicas: 2 }));
  await rolledOut(client, 'web', { replicas: 2, image: container.image });
  const path = `/api/v1/namespaces/${client.namespace}`;
  const { body } = await client.answer({ method: 'DELETE', path });
  await settled('the end of the namespace', async () => {
    const { status, body: left } = await client.answer({ path });
    return { isDone: status === 404, conditions: left.status?.conditions };
  });
  return { phase: body.status.phase };
}

const scenarios = {
  deployments,
  'stateful-sets': statefulSets,
  'daemon-sets': daemonSets,
  jobs,
  'cron-jobs': cronJobs,
  autoscalers,
  'disruption-budgets': disruptionBudgets,
  quotas,
  services,
  accounts,
  collection,
  'claim-protection': claimProtection,
  taints,
  preemption,
  aggregation,
  'namespace-end': namespaceEnd,
};

/**
 * Runs all scenarios, each in its own namespace.
 *
 * @returns by scenario, its state, or `{ failed }` with the reason
 */
export async function playScenarios(server) {
  const states = {};
  for (const [name, scenario] of Object.entries(scenarios)) {
    const namespace = `peers-${name}`;
    const client = scenarioClient(server, namespace);
    await client.createAt('/api/v1/namespaces', { metadata: { name: namespace } });
    await settled('the default account', async () => {
      const { status } = await client.answer({
        path: client.pathOf('serviceaccounts', '/default'),
      });
      return { isDone: status === 200 };
    }).catch(() => undefined);
    const began = Date.now();
    states[name] = await scenario(client).catch((error) => ({ failed: error.message }));
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    const failed = states[name].failed;
    console.log(`  ${name}: ${failed === undefined ? 'done' : `FAILED ${failed}`} (${seconds} s)`);
    await client.answer({ method: 'DELETE', path: `/api/v1/namespaces/${namespace}` });
  }
  return states;
}
