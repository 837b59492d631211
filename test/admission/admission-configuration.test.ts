import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonObject, systemClock } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { auditFolder, named } from '../audit/audit-run.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import {
  type ConfigChange,
  configMap,
  eventually,
  freshNamespace,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { startWebhookService, type WebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';

/** Writes an AdmissionConfiguration and files beside it; returns its path. */
function configFile(
  plugins: string | readonly object[],
  files: Record<string, string> = {},
): string {
  const directory = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const path = join(directory, 'admission.json');
  const whole = { apiVersion: 'apiserver.config.svc.io/v1', kind: 'AdmissionConfiguration' };
  const text = typeof plugins === 'string' ? plugins : JSON.stringify({ ...whole, plugins });
  writeFileSync(path, text);
  return path;
}

function serverOf(
  admission: NonNullable<ConfigChange['admission']>,
  change: ConfigChange = {},
): Promise<TestServer> {
  const disabled = ['ServiceAccount', 'StorageObjectInUseProtection'];
  return withServer({ ...change, admission: { disabled, ...admission } });
}

const failing = (admission: NonNullable<ConfigChange['admission']>): Promise<string> =>
  startTestServer({ admission }).then(
    async (server) => {
      await server.stop();
      return 'it started';
    },
    (error: Error) => error.message,
  );

function pod(name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  const containers = [{ name: 'main', image: 'x:1' }];
  const meta = { name, ...metadata };
  return { apiVersion: 'v1', kind: 'Pod', metadata: meta, spec: { containers, ...spec } };
}

describe('EventRateLimit', () => {
  const configuration = (limits: JsonObject[]) => ({
    name: 'EventRateLimit',
    configuration: {
      apiVersion: 'eventratelimit.admission.svc.io/v1alpha1',
      kind: 'Configuration',
      limits,
    },
  });
  const event = (name: string, object = 'pod-a', component = 'tester') => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name },
    involvedObject: { kind: 'Pod', name: object, namespace: 'default', apiVersion: 'v1' },
    source: { component },
  });
  const enabled = ['EventRateLimit'];
  const events = '/api/v1/namespaces/default/events';
  const limit = (type: string, burst: number) => ({ type, qps: 1, burst, cacheSize: 50 });
  /**
   * A clock that advances only when a test moves it, in whole milliseconds, so that a second is
   * exactly a second.
   */
  const stopped = () => {
    let nowMs = Math.floor(systemClock.monotonic());
    const clock = { ...systemClock, monotonic: () => nowMs };
    return { clock, wait: (ms: number) => (nowMs += ms) };
  };

  test('ADM-1: Events beyond the server limit get 429 until time has passed', async () => {
    const { clock, wait } = stopped();
    const file = configFile([configuration([limit('Server', 2)])]);
    const server = await serverOf({ enabled, configFile: file }, { clock });
    expect((await server.post(`${events}?dryRun=All`, event('dry'))).status).toBe(201);
    for (const name of ['a', 'b'])
      expect((await server.post(events, event(name))).status).toBe(201);
    const refused = await server.post(events, event('c'));
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      reason: 'TooManyRequests',
      code: 429,
      message: 'Too many requests: limit reached on type Server for key ',
    });
    const known = await server.get(`${events}/a`);
    expect((await server.put(`${events}/a`, { ...known.body, message: 'm' })).status).toBe(429);
    expect((await server.remove(`${events}/a`)).status).toBe(200);
    wait(1000);
    expect((await server.post(events, event('c'))).status).toBe(201);
    expect((await server.post(events, event('d'))).status).toBe(429);
  });

  test('ADM-1: namespace, user, and source-and-object limits count separately', async () => {
    const { clock } = stopped();
    const limits = [limit('Namespace', 2), limit('SourceAndObject', 1), limit('User', 3)];
    const server = await serverOf(
      { enabled, configFile: configFile([configuration(limits)]) },
      { clock },
    );
    const namespace = await freshNamespace(server);
    const otherEvents = `/api/v1/namespaces/${namespace}/events`;
    const post = (path: string, body: JsonObject, headers = {}) =>
      server.post(path, body, { headers });
    expect((await post(events, event('a'))).status).toBe(201);
    const same = await post(events, event('b'));
    expect(same.status).toBe(429);
    expect(same.body.message).toBe(
      'Too many requests: limit reached on type SourceAndObject for key testerPoddefaultpod-av1',
    );
    const full = await post(events, event('c', 'pod-b'));
    expect(full.body.message).toBe(
      'Too many requests: limit reached on type Namespace for key default',
    );
    const theirs = {
      ...event('d', 'pod-c'),
      involvedObject: { kind: 'Pod', name: 'd', namespace },
    };
    const busy = await post(otherEvents, theirs);
    expect(busy.body.message).toBe(
      'Too many requests: limit reached on type User for key system:admin',
    );
    const as = { 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' };
    expect((await post(otherEvents, event('e', 'pod-d', 'elsewhere'), as)).status).not.toBe(429);
  });

  test('ADM-1: a configuration without limits is refused', async () => {
    const prefix = `couldn't init admission plugin "EventRateLimit": `;
    expect(await failing({ enabled })).toBe(
      `${prefix}limits: Invalid value: []: must not be empty`,
    );
    const wrong = [{ type: 'Cluster', qps: 0, burst: -1 }, limit('User', 1)];
    expect(await failing({ enabled, configFile: configFile([configuration(wrong)]) })).toBe(
      `${prefix}[limits[0].type: Unsupported value: "Cluster": supported values: "Server", "Namespace", "User", "SourceAndObject", limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: must be positive]`,
    );
  });
});

describe('ImagePolicyWebhook', () => {
  const enabled = ['ImagePolicyWebhook'];
  const pods = '/api/v1/namespaces/default/pods';
  let service: WebhookService;
  const start = async (policy: JsonObject, change: ConfigChange = {}) => {
    const started = await untilEnd(startWebhookService());
    service = started;
    const kubeConfigFile = service.kubeconfig({ path: '/images' });
    const configuration = { imagePolicy: { kubeConfigFile, retryBackoff: 1, ...policy } };
    const file = configFile([{ name: 'ImagePolicyWebhook', configuration }]);
    return serverOf({ enabled, configFile: file }, change);
  };
  const verdict = (status: JsonObject) => ({
    apiVersion: 'imagepolicy.svc.io/v1alpha1',
    kind: 'ImageReview',
    status,
  });

  test('ADM-1: pods run only images that the webhook allows, and verdicts are cached', async () => {
    const server = await start({ denyTTL: -1 });
    service.answer = () => verdict({ allowed: true });
    const ticket = { 'mycluster.image-policy.svc.io/ticket': '7', other: 'x' };
    const initContainers = [{ name: 'i', image: 'init:1' }];
    const made = await server.post(pods, pod('a', { initContainers }, { annotations: ticket }));
    expect(made.status).toBe(201);
    expect(service.received).toHaveLength(1);
    expect(service.received[0]?.path).toMatch(/^\/images/);
    expect(service.received[0]?.body).toEqual({
      kind: 'ImageReview',
      apiVersion: 'imagepolicy.svc.io/v1alpha1',
      metadata: { creationTimestamp: null },
      spec: {
        containers: [{ image: 'x:1' }, { image: 'init:1' }],
        annotations: { 'mycluster.image-policy.svc.io/ticket': '7' },
        namespace: 'default',
      },
      status: { allowed: false },
    });
    await server.post(pods, pod('b', { initContainers }, { annotations: ticket }));
    expect(service.received).toHaveLength(1);

    service.answer = () => verdict({ allowed: false, reason: 'unknown registry' });
    for (const name of ['c', 'd']) {
      const refused = await server.post(pods, pod(name));
      expect(refused.status).toBe(403);
      expect(refused.body.message).toBe(
        `pods "${name}" is forbidden: image policy webhook backend denied one or more images: unknown registry`,
      );
    }
    expect(service.received).toHaveLength(3);
    service.answer = () => verdict({ allowed: false });
    const silent = await server.post(pods, pod('e'));
    expect(silent.body.message).toContain('one or more images rejected by webhook backend');
  });

  test('ADM-1: ephemeral containers run only images that the webhook allows', async () => {
    const server = await start({ denyTTL: -1 });
    service.answer = () => verdict({ allowed: true });
    await server.post(pods, pod('a'));
    service.answer = () => verdict({ allowed: false, reason: 'no debugging' });
    const ephemeralContainers = [{ name: 'd', image: 'debug:1' }];
    const path = `${pods}/a/ephemeralcontainers`;
    const refused = await server.patch(path, { spec: { ephemeralContainers } }, 'merge');
    expect(refused.status, refused.text).toBe(403);
    expect(refused.body.message).toBe(
      'pods "a" is forbidden: image policy webhook backend denied one or more images: no debugging',
    );
    expect(service.received.at(-1)?.body).toMatchObject({
      spec: { containers: [{ image: 'debug:1' }], namespace: 'default' },
    });
  });

  test('ADM-1: defaultAllow decides what a failing webhook means', async () => {
    const strict = await start({});
    const refused = await strict.post(pods, pod('a'));
    expect(refused.status).toBe(403);
    expect(service.received).toHaveLength(5);

    const audit = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
    const open = await start({ defaultAllow: true }, { audit: audit.settings });
    const { id, headers } = named();
    const made = await open.post(pods, pod('a'), { headers });
    expect(made.status).toBe(201);
    const event = await audit.lastOf(id);
    expect(event.annotations['imagepolicywebhook.image-policy.svc.io/failed-open']).toBe('true');
    service.answer = () => verdict({ allowed: true, auditAnnotations: { scanned: 'today' } });
    const noted = named();
    await open.post(pods, pod('b'), { headers: noted.headers });
    const second = await audit.lastOf(noted.id);
    expect(second.annotations['imagepolicywebhook.image-policy.svc.io/scanned']).toBe('today');

    const { status: _, ...empty } = verdict({});
    service.answer = () => empty;
    const withInit = (name: string) =>
      pod(name, { initContainers: [{ name: 'i', image: `${name}:1` }] });
    const unstated = await open.post(pods, withInit('c'));
    expect(unstated.body.message).toContain('one or more images rejected by webhook backend');
    const failures = [
      { ...verdict({ allowed: true }), kind: 'PodReview' },
      verdict({ allowed: false, reason: 7 }),
    ];
    for (const [index, failure] of failures.entries()) {
      service.answer = () => failure;
      const failedOpen = named();
      await open.post(pods, withInit(`d${index}`), { headers: failedOpen.headers });
      const third = await audit.lastOf(failedOpen.id);
      expect(third.annotations['imagepolicywebhook.image-policy.svc.io/failed-open']).toBe('true');
    }
  });

  test('ADM-1: a configuration is required, with valid durations', async () => {
    const prefix = `couldn't init admission plugin "ImagePolicyWebhook": `;
    expect(await failing({ enabled })).toBe(`${prefix}no config specified`);
    const configuration = { imagePolicy: { kubeConfigFile: '/k', allowTTL: 7200 } };
    const file = configFile([{ name: 'ImagePolicyWebhook', configuration }]);
    expect(await failing({ enabled, configFile: file })).toBe(
      `${prefix}valid value is between 1s and 30m0s, got 2h0m0s`,
    );
    const older = configFile(JSON.stringify({ imagePolicy: { kubeConfigFile: '/nowhere' } }));
    expect(await failing({ enabled, configFile: older })).toMatch(
      /^webhook kubeconfig \/nowhere: /,
    );
  });
});

describe('PodSecurity', () => {
  const configuration = (more: JsonObject) => ({
    apiVersion: 'pod-security.admission.config.svc.io/v1',
    kind: 'PodSecurityConfiguration',
    ...more,
  });
  const privileged = {
    containers: [{ name: 'c', image: 'i', securityContext: { privileged: true } }],
  };

  test('ADM-1: defaults apply to unlabeled namespaces, and exemptions apply everywhere', async () => {
    const path = 'pod-security.yaml';
    const body = configuration({
      defaults: { enforce: 'baseline', 'enforce-version': 'v1.30', audit: 'restricted' },
      exemptions: { usernames: ['ann'], namespaces: ['free'], runtimeClasses: ['safe'] },
    });
    const file = configFile([{ name: 'PodSecurity', path }], { [path]: JSON.stringify(body) });
    const audit = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
    const disabled = ['ServiceAccount', 'StorageObjectInUseProtection', 'RuntimeClass'];
    const server = await serverOf({ configFile: file, disabled }, { audit: audit.settings });
    const noted = async (method: string, at: string, sent: JsonObject, headers = {}) => {
      const { id, headers: name } = named();
      const answer = await server.request(method, at, {
        body: sent,
        headers: { ...name, ...headers },
      });
      const all = (await audit.lastOf(id)).annotations;
      const own = Object.entries(all).filter(([key]) => key.startsWith('pod-security.'));
      return { answer, annotations: Object.fromEntries(own) };
    };
    const pods = '/api/v1/namespaces/default/pods';
    const refused = await noted('POST', pods, pod('a', privileged));
    expect(refused.answer.status).toBe(403);
    expect(refused.answer.body.message).toContain(
      'violates PodSecurity "baseline:v1.30": privileged',
    );
    expect(refused.annotations['pod-security.svc.io/enforce-policy']).toBe('baseline:v1.30');
    expect(refused.annotations['pod-security.svc.io/audit-violations']).toMatch(
      /^would violate PodSecurity "restricted:latest": privileged/,
    );
    const fair = await noted('POST', pods, pod('b'));
    expect(fair.answer.status).toBe(201);
    expect(fair.answer.warnings).toEqual([]);
    expect(fair.annotations['pod-security.svc.io/audit-violations']).toContain('restricted:latest');

    const ann = { 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' };
    const byUser = await noted('POST', pods, pod('c', privileged), ann);
    expect(byUser.answer.status).toBe(201);
    expect(byUser.annotations).toEqual({ 'pod-security.svc.io/exempt': 'user' });

    await server.post('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'free' },
    });
    const free = await noted('POST', '/api/v1/namespaces/free/pods', pod('d', privileged));
    expect(free.answer.status).toBe(201);
    expect(free.annotations).toEqual({ 'pod-security.svc.io/exempt': 'namespace' });

    const safe = { ...privileged, runtimeClassName: 'safe' };
    const byClass = await noted('POST', pods, pod('e', safe));
    expect(byClass.answer.status).toBe(201);
    expect(byClass.annotations).toEqual({ 'pod-security.svc.io/exempt': 'runtimeClass' });

    const namespace = await freshNamespace(server);
    const labels = {
      'pod-security.svc.io/enforce': 'privileged',
      'pod-security.svc.io/audit': 'privileged',
    };
    await server.patch(`/api/v1/namespaces/${namespace}`, { metadata: { labels } }, 'merge');
    const open = await noted('POST', `/api/v1/namespaces/${namespace}/pods`, pod('f', privileged));
    expect(open.answer.status).toBe(201);
    expect(open.annotations).toEqual({ 'pod-security.svc.io/enforce-policy': 'privileged:latest' });
  });

  test('ADM-1: an invalid configuration stops the start with one line', async () => {
    const wrong = configuration({
      defaults: { enforce: 'strict', 'warn-version': '1.2' },
      exemptions: { namespaces: ['A'], usernames: ['', 'x', 'x'] },
    });
    const message = await failing({
      configFile: configFile([{ name: 'PodSecurity', configuration: wrong }]),
    });
    expect(message).toContain(`couldn't init admission plugin "PodSecurity": [`);
    for (const part of [
      'defaults.enforce: Invalid value: "strict": must be one of privileged, baseline, restricted',
      'defaults.warn-version: Invalid value: "1.2": must be "latest" or "v1.x"',
      'exemptions.namespaces[0]: Invalid value: "A": a lowercase RFC 1123 label',
      'exemptions.usernames[0]: Invalid value: "": username must not be empty',
      'exemptions.usernames[2]: Duplicate value: "x"',
    ]) {
      expect(message).toContain(part);
    }
  });
});

describe('ResourceQuota', () => {
  const configuration = (limitedResources: JsonObject[]) => ({
    name: 'ResourceQuota',
    configuration: {
      apiVersion: 'apiserver.config.svc.io/v1',
      kind: 'ResourceQuotaConfiguration',
      limitedResources,
    },
  });
  const claim = (name: string, storageClassName: string) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: '1Gi' } },
    },
  });

  test('ADM-1: limited scopes apply to Pods whatever resource they are configured for', async () => {
    const operator = 'Exists';
    const matchScopes = [{ scopeName: 'CrossNamespacePodAffinity', operator }];
    const file = configFile([configuration([{ resource: 'services', matchScopes }])]);
    const server = await serverOf({ configFile: file });
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/pods`;
    const term = { topologyKey: 'zone', namespaces: ['other'] };
    const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    const pod = (name: string, more: object) =>
      server.post(path, {
        metadata: { name },
        spec: { containers: [{ name: 'main', image: 'i' }], ...more },
      });
    expect((await pod('plain', {})).status).toBe(201);
    const refused = await pod('crossing', { affinity: { podAffinity } });
    expect(refused.body.message).toContain(
      'insufficient quota to match these scopes: [{CrossNamespacePodAffinity Exists []}]',
    );
  });

  test('ADM-1: a limited resource is admitted only when a quota covers it', async () => {
    const file = configFile([
      configuration([
        {
          resource: 'persistentvolumeclaims',
          matchContains: ['gold.storageclass.storage.svc.io/requests.storage'],
        },
      ]),
    ]);
    const server = await serverOf(
      { configFile: file },
      { controllers: ['resourcequota-controller'] },
    );
    const core = `/api/v1/namespaces/${await freshNamespace(server)}`;
    const claims = `${core}/persistentvolumeclaims`;
    expect((await server.post(claims, claim('plain', 'silver'))).status).toBe(201);
    const refused = await server.post(claims, claim('dear', 'gold'));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      'persistentvolumeclaims "dear" is forbidden: insufficient quota to consume: gold.storageclass.storage.svc.io/requests.storage',
    );
    const hard = { 'gold.storageclass.storage.svc.io/requests.storage': '5Gi' };
    await server.post(`${core}/resourcequotas`, {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard },
    });
    const status = {
      status: { hard, used: { 'gold.storageclass.storage.svc.io/requests.storage': '0' } },
    };
    await server.patch(`${core}/resourcequotas/q/status`, status, 'merge');
    expect((await server.post(claims, claim('dear', 'gold'))).status).toBe(201);
  });

  test('ADM-1: a limited resource that an object does not use needs no quota', async () => {
    const limited = { resource: 'services', matchContains: ['services.loadbalancers'] };
    const server = await serverOf({ configFile: configFile([configuration([limited])]) });
    const services = `/api/v1/namespaces/${await freshNamespace(server)}/services`;
    const service = (name: string, type: string) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { type, ports: [{ port: 80 }] },
    });
    expect((await server.post(services, service('a', 'ClusterIP'))).status).toBe(201);
    const refused = await server.post(services, service('b', 'LoadBalancer'));
    expect(refused.body.message).toBe(
      'services "b" is forbidden: insufficient quota to consume: services.loadbalancers',
    );
  });

  test('ADM-1: pods of limited priority classes need a quota with that scope', async () => {
    const matchScopes = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }];
    const file = configFile([configuration([{ resource: 'pods', matchScopes }])]);
    const server = await serverOf({ configFile: file });
    const core = `/api/v1/namespaces/${await freshNamespace(server)}`;
    await server.post('/apis/scheduling.svc.io/v1/priorityclasses', {
      apiVersion: 'scheduling.svc.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 10,
    });
    expect((await server.post(`${core}/pods`, pod('a'))).status).toBe(201);
    const refused = await server.post(`${core}/pods`, pod('b', { priorityClassName: 'high' }));
    expect(refused.status).toBe(500);
    expect(refused.body.message).toBe(
      'insufficient quota to match these scopes: [{PriorityClass In [high]}]',
    );
  });
});

describe('pods', () => {
  test('ADM-1: PodNodeSelector applies the cluster default selector and its whitelist', async () => {
    const text = JSON.stringify({
      podNodeSelectorPluginConfig: {
        clusterDefaultNodeSelector: 'zone=a',
        narrow: 'zone=a,disk=ssd',
      },
    });
    const file = configFile(text);
    const server = await serverOf({ enabled: ['PodNodeSelector'], configFile: file });
    const metadata = { name: 'narrow' };
    await server.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
    const made = await server.post('/api/v1/namespaces/default/pods', pod('a'));
    expect(made.body.spec.nodeSelector).toEqual({ zone: 'a' });
    const pods = '/api/v1/namespaces/narrow/pods';
    const fine = await server.post(pods, pod('b', { nodeSelector: { disk: 'ssd' } }));
    expect(fine.body.spec.nodeSelector).toEqual({ disk: 'ssd', zone: 'a' });
    const refused = await server.post(pods, pod('c', { nodeSelector: { rack: '1' } }));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      'pods "c" is forbidden: pod node label selector labels conflict with its namespace whitelist',
    );
  });

  test('ADM-1: PodTolerationRestriction falls back to the cluster’s tolerations', async () => {
    const toleration = { key: 'team', operator: 'Equal', value: 'a' };
    const file = configFile([
      {
        name: 'PodTolerationRestriction',
        configuration: {
          apiVersion: 'podtolerationrestriction.admission.svc.io/v1alpha1',
          kind: 'Configuration',
          default: [toleration],
          whitelist: [toleration],
        },
      },
    ]);
    const server = await serverOf({
      enabled: ['PodTolerationRestriction'],
      disabled: ['ServiceAccount', 'DefaultTolerationSeconds'],
      configFile: file,
    });
    const pods = '/api/v1/namespaces/default/pods';
    const made = await server.post(pods, pod('a'));
    expect(made.body.spec.tolerations).toEqual([toleration]);
    const unlisted = { tolerations: [{ key: 'other', operator: 'Exists' }] };
    const refused = await server.post(pods, pod('b', unlisted));
    expect(refused.body.message).toContain('conflict with its cluster whitelist');
    const own = { 'scheduler.alpha.svc.io/tolerationsWhitelist': '' };
    const metadata = { annotations: own };
    await server.patch('/api/v1/namespaces/default', { metadata }, 'merge');
    expect((await server.post(pods, pod('c', unlisted))).status).toBe(201);
  });
});

describe('webhooks', () => {
  test('ADM-1: each webhook plugin uses the credentials for the host it calls', async () => {
    const service = await untilEnd(startWebhookService());
    const host = new URL(service.url).host;
    const users = (token: string) =>
      service.file(
        `users-${token}`,
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          users: [
            { name: host, user: { token } },
            { name: '*', user: { token: 'anybody' } },
          ],
        }),
      );
    const plugin = (name: string, kubeConfigFile: string) => ({
      name,
      configuration: {
        apiVersion: 'apiserver.config.svc.io/v1',
        kind: 'WebhookAdmissionConfiguration',
        kubeConfigFile,
      },
    });
    const file = configFile([
      plugin('MutatingAdmissionWebhook', users('mutating')),
      plugin('ValidatingAdmissionWebhook', users('validating')),
    ]);
    const server = await serverOf({ configFile: file });
    service.answer = ({ body }) => ({
      apiVersion: 'admission.svc.io/v1',
      kind: 'AdmissionReview',
      response: { uid: body.request.uid, allowed: true },
    });
    for (const kind of ['Mutating', 'Validating']) {
      const group = '/apis/admissionregistration.svc.io/v1';
      const made = await server.post(`${group}/${kind.toLowerCase()}webhookconfigurations`, {
        apiVersion: 'admissionregistration.svc.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name: 'hooks' },
        webhooks: [
          {
            name: 'hook.example.com',
            admissionReviewVersions: ['v1'],
            sideEffects: 'None',
            clientConfig: {
              url: `${service.url}/${kind}`,
              caBundle: Buffer.from(service.caPem).toString('base64'),
            },
            rules: [
              {
                apiGroups: [''],
                apiVersions: ['v1'],
                operations: ['CREATE'],
                resources: ['configmaps'],
              },
            ],
          },
        ],
      });
      expect(made.status).toBe(201);
    }
    let count = 0;
    await eventually(async () => {
      count += 1;
      await server.post('/api/v1/namespaces/default/configmaps', configMap(`m${count}`));
      return service.received.length >= 2;
    }, 'calls of both webhooks');
    const authorizations = new Map(
      service.received.map(({ path, headers }) => [path.split('?')[0], headers.authorization]),
    );
    expect(authorizations.get('/Mutating')).toBe('Bearer mutating');
    expect(authorizations.get('/Validating')).toBe('Bearer validating');
  });
});

describe('the file', () => {
  test('ADM-1: the file may use the alpha group of its first version', async () => {
    const limits = [{ type: 'Server', qps: 1, burst: 1, cacheSize: 50 }];
    const configuration = {
      apiVersion: 'eventratelimit.admission.svc.io/v1alpha1',
      kind: 'Configuration',
      limits,
    };
    const whole = (apiVersion: string) =>
      configFile(
        JSON.stringify({
          apiVersion,
          kind: 'AdmissionConfiguration',
          plugins: [{ name: 'EventRateLimit', configuration }],
        }),
      );
    const configFileOf = { configFile: whole('apiserver.svc.io/v1alpha1') };
    const server = await serverOf({ enabled: ['EventRateLimit'], ...configFileOf });
    const event = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name },
      involvedObject: { kind: 'Pod', name: 'a', namespace: 'default', apiVersion: 'v1' },
    });
    const events = '/api/v1/namespaces/default/events';
    expect((await server.post(events, event('a'))).status).toBe(201);
    expect((await server.post(events, event('b'))).status).toBe(429);
    expect(await failing({ configFile: whole('apiserver.config.svc.io/v1alpha1') })).toMatch(
      /no kind "AdmissionConfiguration" is registered for version "apiserver.config.svc.io\/v1alpha1"/,
    );
  });

  test('ADM-1: an unusable file stops the start', async () => {
    expect(await failing({ configFile: '/nowhere/a.yaml' })).toMatch(
      /^unable to read admission control configuration from "\/nowhere\/a.yaml" \[ENOENT/,
    );
    const kind = configFile(JSON.stringify({ apiVersion: 'v1', kind: 'Pod' }));
    expect(await failing({ configFile: kind })).toMatch(
      /^failed to read plugin config: no kind "Pod" is registered for version "v1"/,
    );
    const unknown = configFile([{ name: 'PodSecurity', where: 'x' }]);
    expect(await failing({ configFile: unknown })).toContain('unknown field "plugins[0].where"');
    const absent = configFile([{ name: 'PodSecurity', path: 'none.yaml' }]);
    expect(await failing({ configFile: absent })).toContain('none.yaml');
    const unused = configFile([{ name: 'EventRateLimit', path: 'none.yaml' }]);
    const server = await serverOf({ configFile: unused });
    expect((await server.get('/readyz')).status).toBe(200);
    for (const kubeConfigFile of ['relative', '', undefined]) {
      const webhooks = configFile([
        {
          name: 'ValidatingAdmissionWebhook',
          configuration: {
            apiVersion: 'apiserver.config.svc.io/v1',
            kind: 'WebhookAdmissionConfiguration',
            kubeConfigFile,
          },
        },
      ]);
      expect(await failing({ configFile: webhooks })).toBe(
        `couldn't init admission plugin "ValidatingAdmissionWebhook": kubeConfigFile: Invalid value: "${kubeConfigFile ?? ''}": must be an absolute file path`,
      );
    }
  });

  test('ADM-1: --admission-control-config-file names the file', () => {
    const outcome = readOptions(['--admission-control-config-file=a.yaml']);
    if (outcome.kind !== 'options') throw new Error('no options');
    expect(outcome.options.config.admission?.configFile).toBe('a.yaml');
  });
});
