// Installs the CustomResourceDefinitions of projects on both servers with unmodified kubectl,
// creates the sample objects that the projects ship, reads them back in every served version,
// changes them in every way, and deletes everything. Every answer is compared.
//
// CRD_PROJECTS names a folder with one folder per project (`NAME` or `NAME@VERSION`), each holding
// the project's manifests anywhere below it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { namespace, playProject } from './crd-steps.mjs';
import { storedResult, writeResult } from './results.mjs';
import { call, programPath, startReference, startWheelhouse } from './servers.mjs';

const folder = process.env.CRD_PROJECTS;
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const samplesPerKind = Number(process.env.PEERS_SAMPLES ?? '12');

function manifestsBelow(path) {
  const files = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return files.sort().flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    if (/^[^#]*\{\{-? *[.$a-z]/m.test(text) && !text.includes('CustomResourceDefinition'))
      return [];
    const documents = parseAllDocuments(text, { logLevel: 'silent' });
    if (!Array.isArray(documents)) return [];
    const isClean = documents.every((document) => document.errors.length === 0);
    return isClean ? documents.map((document) => document.toJS({ maxAliasCount: 100 })) : [];
  });
}

/** A sample in the namespace of the run, with the same name on both servers. */
function sampleFrom(object) {
  const { namespace: _, generateName, ...metadata } = object.metadata;
  return { ...object, metadata: { ...metadata, name: metadata.name ?? `${generateName}x` } };
}

/** Number of earlier samples of the same kind. */
function placeIn(samples, index) {
  const { apiVersion, kind } = samples[index];
  const isSame = (sample) => sample.apiVersion === apiVersion && sample.kind === kind;
  return samples.slice(0, index).filter(isSame).length;
}

function projectAt(name) {
  const objects = manifestsBelow(join(folder, name))
    .flatMap((object) => (object?.kind === 'List' ? (object.items ?? []) : [object]))
    .filter((object) => object?.kind && object.metadata);
  const isDefinition = (object) =>
    object.kind === 'CustomResourceDefinition' &&
    object.apiVersion === 'apiextensions.k8s.io/v1' &&
    Array.isArray(object.spec?.versions);
  const definitions = new Map(objects.filter(isDefinition).map((crd) => [crd.metadata.name, crd]));
  const versionsOf = (definition) =>
    definition.spec.versions.map((version) => [
      `${definition.spec.group}/${version.name} ${definition.spec.names.kind}`,
      definition,
    ]);
  const kinds = new Map([...definitions.values()].flatMap(versionsOf));
  const found = objects
    .filter((object) => kinds.has(`${object.apiVersion} ${object.kind}`))
    .filter(({ metadata }) => metadata.name || metadata.generateName)
    .map(sampleFrom);
  const named = new Map(found.map((sample) => [`${sample.kind} ${sample.metadata.name}`, sample]));
  const samples = [...named.values()];
  const kept = samples.filter((_, index) => placeIn(samples, index) < samplesPerKind);
  return { definitions: [...definitions.values()], kinds, samples: kept };
}

/** The paths at which two values differ, with both values. */
function* allDifferences(there, here, path = '') {
  if (isDeepStrictEqual(there, here)) return;
  const isObject = (value) => typeof value === 'object' && value !== null;
  if (!isObject(there) || !isObject(here)) {
    const text = (value) => JSON.stringify(value)?.slice(0, 400);
    yield `${path}: reference ${text(there)}, Wheelhouse ${text(here)}`;
    return;
  }
  const keys = new Set([...Object.keys(there), ...Object.keys(here)]);
  for (const key of keys) yield* allDifferences(there[key], here[key], `${path}/${key}`);
}

function counts({ installed, objects }) {
  const isEstablished = (answer) => answer.body?.status?.conditions !== undefined;
  const established = Object.values(installed).filter(isEstablished).length;
  const created = Object.values(objects).filter((seen) => seen[0]?.status === 201).length;
  const all = [Object.keys(installed).length, Object.keys(objects).length];
  return `${established} of ${all[0]} definitions established, ${created} of ${all[1]} samples accepted`;
}

const parts = ['installed', 'objects', 'commands', 'removals'];

function differences(there, here) {
  return parts.flatMap((part) =>
    Object.keys({ ...there[part], ...here[part] })
      .filter((key) => !isDeepStrictEqual(there[part][key], here[part][key]))
      .map((key) => ({ key, there: there[part][key], here: here[part][key] })),
  );
}

function answersIn(results) {
  return parts.reduce((sum, part) => sum + Object.keys(results[part]).length, 0);
}

/**
 * Runs one project on both servers concurrently, prints the differences, and writes the results.
 */
async function compareProject(name, { servers, project }) {
  const played = servers.map((server) => playProject({ ...server, kubectl }, project));
  const [there, here] = await Promise.all(played);
  if (here === undefined) {
    console.log(`${servers[0].name} ${name}: ${counts(there)}`);
    return;
  }
  const found = differences(there, here);
  for (const { key, ...sides } of found) {
    for (const difference of allDifferences(sides.there, sides.here)) {
      console.log(`difference: ${name} ${key} ${difference}`);
    }
  }
  console.log(`${name}: ${counts(here)}; ${found.length} of ${answersIn(here)} differ`);
  const [title, version = 'unknown'] = name.split('@');
  const result = `crd-projects-${title}`;
  writeResult(result, {
    program: 'CustomResourceDefinitions and samples of projects',
    version: `${title} ${version}`,
    script: 'crd-projects.mjs',
    what: `With kubectl ${process.env.KUBERNETES_VERSION ?? 'of the reference'}, definitions are applied and removed; samples are created strictly and with errors, read in every version and as tables, patched, updated, applied, and deleted; kubectl creates, applies, gets, patches, annotates, explains, and deletes them.`,
    reference: counts(there),
    wheelhouse: `${counts(here)}; ${found.length} of ${answersIn(here)} objects and commands are answered differently`,
    differences: storedResult(result)?.differences ?? [],
  });
}

async function play() {
  const only = process.env.PEERS_ONLY;
  const starts = { reference: startReference, wheelhouse: startWheelhouse };
  const servers = [];
  for (const [name, start] of Object.entries(starts)) {
    const server = only === undefined || only === name ? await start() : undefined;
    if (server !== undefined) servers.push(server);
  }
  try {
    const body = { metadata: { name: namespace } };
    for (const server of servers) {
      await call(server, { method: 'POST', path: '/api/v1/namespaces', body });
    }
    for (const name of readdirSync(folder).sort()) {
      const project = projectAt(name);
      if (project.definitions.length > 0) await compareProject(name, { servers, project });
    }
  } finally {
    for (const server of servers) await server.stop();
  }
}

if (folder === undefined || kubectl === undefined) {
  console.log('skipped: needs CRD_PROJECTS and KUBECTL (see README.md)');
} else {
  await play();
}
