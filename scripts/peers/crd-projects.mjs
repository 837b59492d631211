// Installs the CustomResourceDefinitions of projects on both servers, creates the sample objects
// that the projects ship, reads them back in every served version, and deletes everything.
//
// CRD_PROJECTS names a folder with one folder per project (`NAME` or `NAME@VERSION`), each holding
// the project's manifests anywhere below it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { storedResult, writeResult } from './results.mjs';
import { call, eventually, onBoth } from './servers.mjs';

const folder = process.env.CRD_PROJECTS;
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const namespace = 'peers-projects';
const samplesPerProject = 400;

function manifestsBelow(path) {
  const files = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return files.sort().flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    if (text.includes('{{')) return [];
    const documents = parseAllDocuments(text, { logLevel: 'silent' });
    if (!Array.isArray(documents)) return [];
    const isClean = documents.every((document) => document.errors.length === 0);
    return isClean ? documents.map((document) => document.toJS({ maxAliasCount: 100 })) : [];
  });
}

function projectAt(name) {
  const objects = manifestsBelow(join(folder, name)).filter((one) => one?.kind && one.metadata);
  const isDefinition = (one) => one.kind === 'CustomResourceDefinition';
  const definitions = new Map(objects.filter(isDefinition).map((one) => [one.metadata.name, one]));
  const versionsOf = (definition) =>
    (definition.spec.versions ?? []).map((version) => [
      `${definition.spec.group}/${version.name} ${definition.spec.names.kind}`,
      definition,
    ]);
  const kinds = new Map([...definitions.values()].flatMap(versionsOf));
  const samples = objects.filter((one) => kinds.has(`${one.apiVersion} ${one.kind}`));
  return { definitions: [...definitions.values()], kinds, samples };
}

/** What each server calls itself when it writes the status of a definition. */
const controllers = ['kube-apiserver', 'customresourcedefinition-controller'];

const changing = ['uid', 'resourceVersion', 'creationTimestamp', 'time', 'lastTransitionTime'];

/** What does not depend on the server or the time of a run. */
function plain(value) {
  const part = (key, member) => {
    if (changing.includes(key)) return undefined;
    if (key === 'manager' && controllers.includes(member)) return 'the controller';
    if (key !== 'managedFields' && key !== 'conditions') return member;
    if (!Array.isArray(member)) return member;
    // Entries of the same second come in the order of their managers, conditions in any.
    return [...member].sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  };
  return JSON.parse(JSON.stringify(value, part));
}

/** The first place where two values differ, as a path with both values. */
function firstDifference(there, here, path = '') {
  const isObject = (value) => typeof value === 'object' && value !== null;
  if (!isObject(there) || !isObject(here)) {
    const text = (value) => JSON.stringify(value)?.slice(0, 300);
    return `${path}: reference ${text(there)}, Wheelhouse ${text(here)}`;
  }
  const keys = [...new Set([...Object.keys(there), ...Object.keys(here)])];
  const key = keys.find((one) => !isDeepStrictEqual(there[one], here[one]));
  return firstDifference(there[key], here[key], `${path}/${key}`);
}

function outcome({ status, body }) {
  if (status < 300) return plain({ status, body });
  const { reason, message, details } = body;
  return plain({ status, reason, message, causes: details?.causes });
}

async function install(server, definition) {
  const created = await call(server, { method: 'POST', path: crds, body: definition });
  if (created.status >= 300) return outcome(created);
  const path = `${crds}/${definition.metadata.name}`;
  const established = await eventually(
    async () => {
      const { body } = await call(server, { path });
      const conditions = body.status?.conditions ?? [];
      const isTrue = ({ type, status }) => type === 'Established' && status === 'True';
      const isJudged = ({ type }) => type === 'KubernetesAPIApprovalPolicyConformant';
      const isProtected = /\.(k8s|kubernetes)\.io$/.test(definition.spec.group);
      const isDone = conditions.some(isTrue) && (!isProtected || conditions.some(isJudged));
      return isDone ? body : undefined;
    },
    { withinMs: 20_000, everyMs: 50 },
  );
  return established === undefined ? 'never established' : plain(established);
}

/** Creates one sample, reads it in every served version, and deletes it. */
async function roundTrip(server, sample, definition) {
  const { group, names, scope, versions } = definition.spec;
  const at = (version) =>
    `/apis/${group}/${version}${scope === 'Namespaced' ? `/namespaces/${namespace}` : ''}/${names.plural}`;
  const version = sample.apiVersion.split('/').at(-1);
  const body = { ...sample, metadata: { ...sample.metadata, namespace: undefined } };
  const path = at(version);
  const created = await eventually(
    async () => {
      const query = '?fieldValidation=Strict&fieldManager=peers';
      const answer = await call(server, { method: 'POST', path: `${path}${query}`, body });
      return answer.status === 404 ? undefined : answer;
    },
    { withinMs: 5_000, everyMs: 50 },
  );
  if (created === undefined || created.status >= 300) return [created && outcome(created)];
  const seen = [outcome(created)];
  const { name } = created.body.metadata;
  for (const one of versions.filter((each) => each.served)) {
    seen.push(outcome(await call(server, { path: `${at(one.name)}/${name}` })));
  }
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const shown = await call(server, { path: `${path}/${name}`, headers: { accept: table } });
  const columns = shown.body.columnDefinitions?.map((column) =>
    column.name === 'Name' || column.name === 'Age'
      ? { ...column, description: undefined }
      : column,
  );
  seen.push(plain(columns ?? null), shown.body.rows?.[0]?.cells.length);
  const removed = await call(server, { method: 'DELETE', path: `${path}/${name}` });
  seen.push(removed.status);
  const patch = { metadata: { finalizers: null } };
  await call(server, { method: 'PATCH', path: `${path}/${name}`, body: patch });
  return seen;
}

async function playProject(server, name) {
  const { definitions, kinds, samples } = projectAt(name);
  const installed = {};
  for (const definition of definitions) {
    installed[definition.metadata.name] = await install(server, definition);
  }
  const objects = {};
  for (const [index, sample] of samples.slice(0, samplesPerProject).entries()) {
    const definition = kinds.get(`${sample.apiVersion} ${sample.kind}`);
    const key = `${index} ${sample.kind} ${sample.metadata.name}`;
    objects[key] = await roundTrip(server, sample, definition);
  }
  const removals = {};
  for (const definition of definitions) {
    const path = `${crds}/${definition.metadata.name}`;
    await call(server, { method: 'DELETE', path });
    const isGone = async () => (await call(server, { path })).status === 404;
    const gone = await eventually(isGone, { withinMs: 20_000, everyMs: 50 });
    removals[definition.metadata.name] = gone === true ? 'gone' : 'never gone';
  }
  return { installed, objects, removals };
}

async function play(server) {
  const body = { metadata: { name: namespace } };
  await call(server, { method: 'POST', path: '/api/v1/namespaces', body });
  const results = {};
  for (const name of readdirSync(folder).sort()) {
    const result = await playProject(server, name);
    if (Object.keys(result.installed).length > 0) results[name] = result;
  }
  return results;
}

function counts(result) {
  const isEstablished = (one) => one?.status?.conditions !== undefined;
  const established = Object.values(result.installed).filter(isEstablished).length;
  const created = Object.values(result.objects).filter((seen) => seen[0]?.status === 201).length;
  const all = [Object.keys(result.installed).length, Object.keys(result.objects).length];
  return `${established} of ${all[0]} definitions established, ${created} of ${all[1]} samples accepted`;
}

function differences(there, here) {
  return ['installed', 'objects', 'removals'].flatMap((part) =>
    Object.keys(here[part])
      .filter((key) => !isDeepStrictEqual(there[part][key], here[part][key]))
      .map((key) => ({ key, there: there[part][key], here: here[part][key] })),
  );
}

if (folder === undefined) {
  console.log('skipped: needs CRD_PROJECTS (see README.md)');
} else {
  const { reference, wheelhouse } = await onBoth(play);
  if (reference !== undefined && wheelhouse !== undefined) {
    const names = Object.keys(wheelhouse);
    const found = names.flatMap((name) => differences(reference[name], wheelhouse[name]));
    for (const { key, there, here } of found) {
      console.log(`difference: ${key} ${firstDifference(there, here)}`);
    }
    const summary = (results) =>
      names.map((name) => `${name}: ${counts(results[name])}`).join('; ');
    const name = `crd-projects${process.env.PEERS_SUFFIX ?? ''}`;
    writeResult(name, {
      program: 'CustomResourceDefinitions and samples of projects',
      version: names.join(', '),
      script: 'crd-projects.mjs',
      what: 'Each definition is installed and removed; each sample is created under strict validation, read in every served version and as a table, and deleted; every answer is compared.',
      reference: summary(reference),
      wheelhouse: `${summary(wheelhouse)}; ${found.length} answers differ`,
      differences: storedResult(name)?.differences ?? [],
    });
  }
}
