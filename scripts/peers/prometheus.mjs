// Runs Prometheus with its discovery of Kubernetes objects and a scrape of the server on both
// servers, and compares the targets it discovers and which queries of dashboards have a result.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { haveControllers, startControllers } from './controllers.mjs';
import { playNodes } from './played-nodes.mjs';
import {
  call,
  eventually,
  freePort,
  onBoth,
  pause,
  programPath,
  startProgram,
} from './servers.mjs';
import { compareSession, plain } from './sessions.mjs';

const prometheus = programPath({ variable: 'PROMETHEUS', name: 'prometheus' });
const roles = ['node', 'pod', 'service', 'endpoints', 'endpointslice', 'ingress'];

const rate = (metric, by) => `count(rate(${metric}[1m])) by (${by})`;
const queries = [
  rate('apiserver_request_total{verb=~"LIST|DELETE",code="200"}', 'verb, code'),
  rate('apiserver_request_sli_duration_seconds_bucket{verb="LIST",scope="cluster"}', 'scope'),
  rate('apiserver_request_slo_duration_seconds_count', 'scope'),
  rate('apiserver_request_duration_seconds_count{verb!="WATCH"}', 'verb'),
  rate('apiserver_response_sizes_count{scope="cluster"}', 'scope'),
  rate('apiserver_watch_events_total', 'kind'),
  rate(
    'apiserver_admission_controller_admission_duration_seconds_count{name=~"NamespaceLifecycle|.*Webhook"}',
    'name, type',
  ),
  rate('apiserver_flowcontrol_dispatched_requests_total', 'priority_level'),
  rate('authentication_attempts', 'result'),
  rate('authorization_attempts_total', 'result'),
  rate('workqueue_adds_total', 'absent'),
  rate('workqueue_queue_duration_seconds_count', 'absent'),
  'count(count(workqueue_depth)) > 0',
  'count(apiserver_current_inflight_requests) by (request_kind)',
  'count(apiserver_longrunning_requests) by (resource, verb)',
  'count(apiserver_storage_objects) by (resource)',
  'count(apiserver_flowcontrol_nominal_limit_seats) by (priority_level)',
  'count(aggregator_unavailable_apiservice) by (name)',
  'count(kubernetes_build_info) by (major)',
  'count(process_resident_memory_bytes) + count(process_cpu_seconds_total)',
  'count(process_open_fds) + count(process_start_time_seconds)',
  rate('etcd_request_duration_seconds_count', 'absent'),
  'count(apiserver_tls_handshake_errors_total)',
  'count(apiserver_audit_event_total)',
  'count(go_goroutines)',
];

const configuration = (server) => {
  const access = {
    authorization: { credentials: server.token },
    tls_config: { ca_file: join(server.directory, 'ca.crt') },
  };
  const discovery = (role) => ({
    job_name: role,
    scrape_interval: '1h',
    kubernetes_sd_configs: [{ role, api_server: server.url, ...access }],
  });
  const own = {
    job_name: 'apiserver',
    scheme: 'https',
    scrape_interval: '2s',
    static_configs: [{ targets: [new URL(server.url).host] }],
    ...access,
  };
  return { global: {}, scrape_configs: [own, ...roles.map(discovery)] };
};

const fetchJson = async (url) => (await fetch(url)).json();

const meta = (name, spec) => ({
  metadata: { name, labels: { app: name }, annotations: { 'prometheus.io/scrape': 'true' } },
  ...spec,
});
const objects = {
  '/api/v1/namespaces/default/services': meta('web', {
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
  }),
  '/api/v1/namespaces/default/pods': meta('web', {
    spec: {
      containers: [{ name: 'web', image: 'web', ports: [{ name: 'http', containerPort: 80 }] }],
    },
  }),
  '/apis/networking.k8s.io/v1/namespaces/default/ingresses': meta('web', {
    spec: {
      rules: [
        {
          host: 'web.test',
          http: {
            paths: [
              {
                path: '/',
                pathType: 'Prefix',
                backend: { service: { name: 'web', port: { name: 'http' } } },
              },
            ],
          },
        },
      ],
    },
  }),
};

/** The targets as text: sorted labels, without addresses and generated names. */
async function targetsOf(base, server) {
  const { data } = await fetchJson(`${base}/api/v1/targets`);
  const targets = data.activeTargets.filter(({ scrapePool }) => scrapePool !== 'apiserver');
  const lines = targets.map(({ scrapePool, discoveredLabels: labels }) => {
    const sorted = Object.entries(labels).filter(([name]) => !/scrape_|address|url/.test(name));
    return `${scrapePool} ${sorted
      .map(([name, value]) => `${name}=${value}`)
      .sort()
      .join(' ')}`;
  });
  return plain(
    lines
      .sort()
      .join('\n')
      .replace(/\b10\.\d+\.\d+\.\d+\b/g, 'POD-IP')
      .replace(/node_name=peer-\d/g, 'node_name=NODE')
      .replace(/=web-\w+/g, '=web-HASH'),
    server,
  );
}

async function playSession(server, base) {
  const outputs = {};
  const settled = async (wanted) =>
    eventually(async () => (await targetsOf(base, server)).includes(wanted), { withinMs: 90_000 });
  await settled('peer-1');
  for (const [path, body] of Object.entries(objects)) {
    await call(server, { method: 'POST', path, body });
  }
  await settled('__meta_kubernetes_pod_ready=true');
  await settled('__meta_kubernetes_ingress_name=web');
  await pause(15_000);
  outputs['discovered targets'] = await targetsOf(base, server);
  for (const [path, { metadata }] of Object.entries(objects)) {
    await call(server, { method: 'DELETE', path: `${path}/${metadata.name}` });
  }
  await pause(20_000);
  outputs['targets after deletion'] = await targetsOf(base, server);
  for (const query of queries) {
    const answer = await fetchJson(`${base}/api/v1/query?query=${encodeURIComponent(query)}`);
    const rows = (answer.data?.result ?? []).map(({ metric }) => JSON.stringify(metric)).sort();
    outputs[`query ${query}`] = rows.join('\n');
  }
  return outputs;
}

async function play(server) {
  const folder = join(server.directory, 'prometheus');
  mkdirSync(folder);
  const config = join(folder, 'prometheus.yml');
  writeFileSync(config, JSON.stringify(configuration(server)));
  const listen = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${listen}`,
  ];
  const controllers = startControllers(server);
  const nodes = playNodes(server, { names: ['peer-0', 'peer-1'] });
  const running = startProgram({ command: prometheus, args, log: join(folder, 'log') });
  const base = `http://${listen}`;
  try {
    const isReady = () =>
      fetch(`${base}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(isReady, { withinMs: 60_000 });
    return await playSession(server, base);
  } finally {
    await running.stop();
    await nodes.stop();
    await controllers.stop();
  }
}

if (prometheus === undefined || !haveControllers) {
  console.log('skipped: needs PROMETHEUS and the controllers (see README.md)');
} else {
  const { stdout, stderr } = spawnSync(prometheus, ['--version'], { encoding: 'utf8' });
  compareSession({
    name: 'prometheus',
    program: 'Prometheus',
    version: /version (\S+)/.exec(stdout + stderr)?.[1] ?? 'unknown',
    script: 'prometheus.mjs',
    what: 'With controllers and played kubelets, discovery in every role and queries of dashboards: a session',
    step: 'steps',
    sides: await onBoth(play),
  });
}
