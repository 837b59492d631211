import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { readOptions, type ServerConfig, startServer } from '@wheelhouse/server/testing';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';

/** `examples/monitoring` must name metrics that a running server has. */

const examples = fileURLToPath(new URL('../../examples/monitoring/', import.meta.url));
const read = (name: string): string => readFileSync(join(examples, name), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}
interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number };
  readonly targets: readonly { readonly expr: string }[];
}

type OnMetrics = NonNullable<NonNullable<ServerConfig['embedding']>['onMetrics']>;

const rules: readonly Rule[] = parse(read('alerts.yaml')).groups.flatMap(
  (group: { rules: readonly Rule[] }) => group.rules,
);
const panels: readonly Panel[] = JSON.parse(read('dashboard.json')).panels;

/** The metrics of an expression, with the labels that it selects or groups by. */
function metricsOf(expression: string): Map<string, Set<string>> {
  const metrics = new Map<string, Set<string>>();
  for (const [, name = '', selected = ''] of expression.matchAll(/\b([a-z][a-z_]+)\{([^}]*)\}/g)) {
    const labels = [...selected.matchAll(/(\w+)(?:=|!=|=~|!~)"/g)].map(([, label = '']) => label);
    const grouped = [...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
      list.split(',').map((label) => label.trim()),
    );
    metrics.set(name, new Set([...labels, ...grouped]));
  }
  return metrics;
}

/** Prometheus adds these itself. */
const ofPrometheus = new Set(['job', 'instance']);

const directory = temporaryFolder();
const adminToken = 'monitoring';
let text: string;
let registered: readonly string[];

/** Sends a request and returns the text of its answer. */
async function send(path: string, body?: unknown, token = adminToken): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const content = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return (await fetch(`${server.url}${path}`, { headers, ...content })).text();
}

const flags = [`--data-dir=${directory}`, '--authorization-mode=RBAC', '--plain-http-port=0'];
const outcome = readOptions(flags);
if (outcome.kind !== 'options') throw new Error('no options');
const { config } = outcome.options;
let registries: Parameters<OnMetrics>[0] = [];
const onMetrics: OnMetrics = (all) => {
  registries = all;
};
const server = await untilEnd(
  startServer({
    ...config,
    authentication: { ...config.authentication, adminToken },
    clock: systemClock,
    logger: silentLogger,
    embedding: { onMetrics },
  }),
);
beforeAll(async () => {
  await server.ready;
  // Anonymous requests wait in a queue like those of most users; the administrator's do not.
  await fetch(`${server.url}/version`);
  // A failing request, a watch, and an unreachable webhook give the other metrics a value.
  await send('/api/v1/namespaces', undefined, 'wrong');
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] };
  const webhook = {
    name: 'none.example.com',
    clientConfig: { url: 'https://127.0.0.1:1' },
    rules: [{ ...rule, operations: ['CREATE'] }],
    failurePolicy: 'Ignore',
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  };
  const metadata = { name: 'none' };
  const configurations = '/apis/admissionregistration.svc.io/v1/validatingwebhookconfigurations';
  await send(configurations, { metadata, webhooks: [webhook] });
  await send('/api/v1/namespaces/default/configmaps', { metadata });
  await send('/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1');
  text = await send('/metrics');
  registered = registries.flatMap((registry) =>
    [...registry.definitions()].map(({ definition }) => definition.name),
  );
});

/** Counters without a line before the first failure. */
const beforeFirstFailure = new Set([
  'apiserver_flowcontrol_rejected_requests_total',
  'apiserver_audit_error_total',
  'apiserver_contained_faults_total',
  'wheelhouse_memory_budget_shed_total',
]);

function problemsOf(expression: string): string[] {
  return [...metricsOf(expression)].flatMap(([name, labels]) => {
    if (name === 'up') return [];
    const base = name.replace(/_bucket$/, '');
    if (!registered.includes(base)) return [`no ${name}`];
    if (beforeFirstFailure.has(name)) return [];
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
    if (lines.length === 0) return new RegExp(`^${name} `, 'm').test(text) ? [] : [`no ${name}`];
    const missing = [...labels].filter(
      (label) => !ofPrometheus.has(label) && !lines.some((line) => line.includes(`${label}="`)),
    );
    return missing.map((label) => `${name} has no label ${label}`);
  });
}

test('OPS-1: a running server has every metric of the alerts', () => {
  expect(rules.length).toBeGreaterThan(8);
  for (const { alert, expr, labels, annotations } of rules) {
    expect(metricsOf(expr).size, alert).toBeGreaterThan(0);
    expect(problemsOf(expr), alert).toEqual([]);
    expect(labels.severity, alert).toMatch(/^(critical|warning)$/);
    expect(annotations.summary && annotations.description, alert).toBeTruthy();
  }
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

test('OPS-1: a running server has every metric of the dashboard', () => {
  expect(panels.length).toBeGreaterThan(10);
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      expect(metricsOf(expr).size, title).toBeGreaterThan(0);
      expect(problemsOf(expr), title).toEqual([]);
    }
  }
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)).size).toBe(panels.length);
});

test('the scrape configuration parses and reads the rules', () => {
  const document = parse(read('prometheus.yaml'));
  expect(document.rule_files).toEqual(['alerts.yaml']);
  expect(document.scrape_configs[0].job_name).toBe('wheelhouse');
  for (const { expr } of rules) expect(expr).toContain('job="wheelhouse"');
});

test('promtool accepts the rules and the scrape configuration', ({ skip }) => {
  const promtool = (...words: readonly string[]) =>
    spawnSync('promtool', words, { cwd: examples, encoding: 'utf8' });
  if (promtool('--version').status !== 0) return skip('no promtool');
  const checked = promtool('check', 'rules', 'alerts.yaml');
  expect(checked.stdout).toContain(`SUCCESS: ${rules.length} rules found`);
  const configuration = promtool('check', 'config', '--syntax-only', 'prometheus.yaml');
  expect({ status: configuration.status, errors: configuration.stderr }).toEqual({
    status: 0,
    errors: '',
  });
});
