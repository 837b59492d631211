// The table of metrics, from the registry of a server that has used each of its parts once.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { readOptions, startServer } from '@wheelhouse/server/testing';
import { parseAllDocuments } from 'yaml';
import { cell, code, table } from './markdown.mjs';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'metrics');
/** Flags of files that enable features with their own metrics. */
const files = ['encryption-provider-config', 'authentication-config', 'authorization-config'];

/** Every metric that a server registers, sorted by name. */
async function registeredMetrics() {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-metrics-'));
  try {
    return await metricsOfServer(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function metricsOfServer(directory) {
  const { options } = readOptions([
    '--dialect=kubernetes',
    `--data-dir=${directory}`,
    '--encryption-provider-config-automatic-reload',
    '--plain-http-port=0',
    '--feature-gates=MutatingAdmissionPolicy=true',
    '--runtime-config=admissionregistration.k8s.io/v1alpha1=true',
    ...files.map((flag) => `--${flag}=${join(folder, `${flag}.yaml`)}`),
  ]);
  const adminToken = 'reference';
  let registries = [];
  const server = await startServer({
    ...options.config,
    authentication: { ...options.config.authentication, adminToken },
    clock: systemClock,
    logger: silentLogger,
    embedding: { onMetrics: (all) => (registries = all) },
  });
  try {
    await server.ready;
    await useEveryPart(server.url, adminToken);
    const all = new Map();
    for (const registry of registries) {
      for (const metric of registry.definitions()) all.set(metric.definition.name, metric);
    }
    return [...all.keys()].sort().map((name) => all.get(name));
  } finally {
    await server.stop();
  }
}

/** Sends requests that load all parts that a server loads on demand. */
async function useEveryPart(url, adminToken) {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const send = (path, options = {}) => fetch(`${url}${path}`, { headers, ...options });
  const post = (path, object) => send(path, { method: 'POST', body: JSON.stringify(object) });
  const text = readFileSync(join(folder, 'objects.yaml'), 'utf8');
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS();
    const plural = object.kind.toLowerCase().replace(/y$/, 'ie');
    const response = await post(`/apis/${object.apiVersion}/${plural}s`, object);
    if (!response.ok) throw new Error(`${object.kind}: ${await response.text()}`);
  }
  const boats = '/apis/reference.example.com/v2/boats';
  while ((await send(boats)).status === 404) await new Promise((done) => setTimeout(done, 20));
  const metadata = { name: 'reference' };
  await post('/api/v1/namespaces/default/configmaps', { metadata });
  await post('/api/v1/namespaces/default/secrets', { metadata });
  // Fails, since the webhook cannot be reached; the metrics are registered before it is called.
  await post(boats, { apiVersion: 'reference.example.com/v2', kind: 'Boat', metadata });
}

/**
 * Resolves with the Markdown table of all metrics, sorted by name. Starts a server with a temporary
 * data directory.
 */
export async function metricTable() {
  const rows = (await registeredMetrics()).map(({ definition, type, isHidden }) => {
    const { name, labels, help, stability, deprecatedFrom } = definition;
    const age = deprecatedFrom === undefined ? [] : [`Deprecated since ${deprecatedFrom}.`];
    const hidden = isHidden ? ['Shown only with `--show-hidden-metrics-for-version`.'] : [];
    const meaning = cell([help, ...age, ...hidden].join(' '));
    const kind = `${type}, ${stability.toLowerCase()}`;
    return [code(name), kind, labels.map(code).join(', '), meaning];
  });
  return table(['Metric', 'Type', 'Labels', 'Meaning'], rows);
}
