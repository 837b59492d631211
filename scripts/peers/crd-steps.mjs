// The steps that crd-projects.mjs runs with the definitions and samples of one project on one
// server.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { call, eventually } from './servers.mjs';

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const json = (value) => JSON.stringify(value);
const byText = (left, right) => (json(left) < json(right) ? -1 : 1);

/** The namespace of the samples that have one. */
export const namespace = 'peers-projects';

/** The name under which each server writes the status of a definition. */
const controllers = /^(kube-apiserver.*|customresourcedefinition-controller)$/;

const changing = ['uid', 'resourceVersion', 'creationTimestamp', 'time', 'lastTransitionTime'];

/** Removes the parts that depend on the server or on the time of a run. */
function plain(value) {
  const part = (key, member) => {
    if (changing.includes(key)) return undefined;
    if (key === 'manager' && controllers.test(member)) return 'the controller';
    if (key !== 'managedFields' && key !== 'conditions') return member;
    if (!Array.isArray(member)) return member;
    // Entries of the same second are ordered by their managers; the order of conditions varies.
    return [...member].sort(byText);
  };
  return JSON.parse(JSON.stringify(value, part));
}

/**
 * An answer without its variable parts; the order of several causes varies, also in the message.
 */
function outcome({ status, body, warnings }) {
  if (status < 300) return plain({ status, body, warnings });
  const { reason, message, details } = body;
  // The specification decides the status and the text before the fields differently.
  const strict = /patch: Invalid value: .*strict decoding error: (.*)$/s.exec(message);
  if (strict !== null) return { refused: strict[1] };
  const causes = details?.causes && [...details.causes].sort(byText);
  return plain({ status, reason, message: causes?.length > 1 ? undefined : message, causes });
}

/** Runs kubectl; resolves with its exit code and the lines of each stream. */
function kubectl(server, args) {
  const options = {
    env: { PATH: process.env.PATH, HOME: server.directory, KUBECONFIG: server.kubeconfig },
    maxBuffer: 1 << 28,
  };
  const all = ['--warnings-as-errors=false', '-n', namespace, ...args];
  return new Promise((resolve) => {
    execFile(server.kubectl, all, options, (error, output, errors) => {
      const plainText = (text) => text.replaceAll(`${server.directory}/`, '');
      const lines = (text) =>
        plainText(text)
          .split('\n')
          .filter((line) => line !== '');
      resolve({ code: error ? error.code : 0, lines: lines(output), errors: lines(errors).sort() });
    });
  });
}

/**
 * Installs a definition with `kubectl apply --server-side`; resolves with the established
 * definition.
 */
async function install(server, definition) {
  const { name } = definition.metadata;
  const file = join(server.directory, 'definition.json');
  writeFileSync(file, JSON.stringify(definition));
  const applied = await kubectl(server, ['apply', '--server-side', '-f', file]);
  if (applied.code !== 0) return applied;
  const isProtected = /\.(k8s|kubernetes)\.io$/.test(definition.spec.group);
  const isEstablished = async () => {
    const { body } = await call(server, { path: `${crds}/${name}` });
    const conditions = body.status?.conditions ?? [];
    const isTrue = ({ type, status }) => type === 'Established' && status === 'True';
    const isRefused = ({ type, status }) => type === 'NamesAccepted' && status === 'False';
    if (conditions.some(isRefused)) return body;
    const isReviewed = ({ type }) => type === 'KubernetesAPIApprovalPolicyConformant';
    return conditions.some(isTrue) && (!isProtected || conditions.some(isReviewed))
      ? body
      : undefined;
  };
  const established = await eventually(isEstablished, { withinMs: 60_000, everyMs: 50 });
  return { ...applied, body: established === undefined ? 'never' : plain(established) };
}

const isCommon = ({ name }) => name === 'Name' || name === 'Age';

/** The columns of a table, without Wheelhouse's descriptions, and its cells except ages. */
function shownTable({ body }) {
  const columns = body.columnDefinitions ?? [];
  return {
    columns: columns.map((column) => ({
      ...column,
      description: isCommon(column) ? undefined : column.description,
    })),
    rows: body.rows?.map(({ cells }) =>
      cells.map((cell, index) => (columns[index].type === 'date' ? 'an age' : cell)),
    ),
  };
}

/**
 * Samples with members of the wrong type, missing members, and unknown members, derived from the
 * sample's own spec.
 */
function* brokenFrom(sample) {
  yield { ...sample, peersUnknown: 1 };
  for (const wrong of [{}, [], 'text', 7, null, { peersUnknown: { nested: true } }]) {
    yield { ...sample, spec: wrong };
  }
  for (const key of Object.keys(sample.spec ?? {}).slice(0, 12)) {
    const { [key]: member, ...rest } = sample.spec;
    yield { ...sample, spec: rest };
    const wrong = typeof member === 'object' ? 'text' : { peersUnknown: 1 };
    yield { ...sample, spec: { ...rest, [key]: wrong } };
  }
}

/** The refusals of invalid samples, with their causes and warnings; none of them is stored. */
async function refusals(server, { path, sample }) {
  const answers = [];
  for (const body of brokenFrom(sample)) {
    for (const validation of ['Strict', 'Warn']) {
      const query = `?dryRun=All&fieldManager=peers&fieldValidation=${validation}`;
      const answer = await call(server, { method: 'POST', path: `${path}${query}`, body });
      const { body: object, ...shown } = outcome(answer);
      answers.push(object === undefined ? shown : { ...shown, spec: object.spec });
    }
  }
  return answers;
}

function pathsOf(definition) {
  const { group, names, scope } = definition.spec;
  const place = scope === 'Namespaced' ? `/namespaces/${namespace}` : '';
  return (version) => `/apis/${group}/${version}${place}/${names.plural}`;
}

const patches = [
  ['merge-patch', { metadata: { labels: { peers: 'patched' } } }],
  ['json-patch', [{ op: 'add', path: '/metadata/annotations', value: { peers: 'patched' } }]],
  ['json-patch', [{ op: 'test', path: '/spec/peersMissing', value: 1 }]],
  ['merge-patch', { spec: { peersUnknown: 1 } }],
  ['strategic-merge-patch', { metadata: { labels: { peers: null } } }],
];

/** Reads, changes, and deletes the stored sample; resolves with all answers. */
async function changes(server, { at, path, name, versions, sample }) {
  const seen = [];
  const ask = async (request) => seen.push(outcome(await call(server, request)));
  for (const version of versions) await ask({ path: `${at(version.name)}/${name}` });
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  for (const shown of [`${path}/${name}`, path]) {
    seen.push(shownTable(await call(server, { path: shown, headers: { accept } })));
  }
  const own = `${path}/${name}?fieldManager=peers`;
  for (const [type, body] of patches) {
    const headers = { 'content-type': `application/${type}+json` };
    await ask({ method: 'PATCH', path: own, body, headers });
    await ask({ method: 'PATCH', path: `${own}&fieldValidation=Strict`, body, headers });
  }
  const stored = await call(server, { path: `${path}/${name}` });
  const annotated = { ...stored.body.metadata, annotations: { peers: 'updated' } };
  await ask({ method: 'PUT', path: own, body: { ...stored.body, metadata: annotated } });
  await ask({ method: 'PUT', path: own, body: { ...sample, spec: { peersUnknown: 1 } } });
  const headers = { 'content-type': 'application/apply-patch+yaml' };
  const applied = { method: 'PATCH', headers, body: { ...sample, status: undefined } };
  await ask({ ...applied, path: `${path}/${name}?fieldManager=peers-apply` });
  await ask({ ...applied, path: `${path}/${name}?fieldManager=peers-apply&force=true` });
  await ask({ path: `${path}/${name}/status` });
  const status = { status: sample.status ?? { peersUnknown: 1 } };
  await ask({ method: 'PATCH', path: `${path}/${name}/status`, body: status });
  await ask({ path: `${path}/${name}/scale` });
  const removed = await call(server, { method: 'DELETE', path: `${path}/${name}` });
  seen.push(removed.status);
  const kept = { metadata: { finalizers: null } };
  await call(server, { method: 'PATCH', path: `${path}/${name}`, body: kept });
  return seen;
}

/** Creates one sample, correctly and incorrectly, then reads, changes, and deletes it. */
async function roundTrip(server, { sample, definition, isFirst }) {
  const at = pathsOf(definition);
  const path = at(sample.apiVersion.split('/').at(-1));
  const create = async () => {
    const query = '?fieldValidation=Strict&fieldManager=peers';
    const answer = await call(server, { method: 'POST', path: `${path}${query}`, body: sample });
    return answer.status === 404 ? undefined : answer;
  };
  const created = await eventually(create, { withinMs: 10_000, everyMs: 50 });
  if (created === undefined) return ['not served'];
  const seen = [outcome(created)];
  if (isFirst) seen.push(...(await refusals(server, { path, sample })));
  if (created.status >= 300) return seen;
  const versions = definition.spec.versions.filter(({ served }) => served);
  const stored = { at, path, name: sample.metadata.name, versions, sample };
  return [...seen, ...(await changes(server, stored))];
}

/** Ages are the only cells of a table that differ from run to run. */
const withoutAges = (result) => ({
  ...result,
  lines: result.lines.map((line) => line.replace(/\s+(\d+[smh])+(?=\s|$)/g, ' AGE')),
});

/** Runs kubectl commands on all samples of a project. */
async function kubectlSession(server, { samples, definitions }) {
  const at = (name) => join(server.directory, name);
  const list = { apiVersion: 'v1', kind: 'List', items: samples };
  writeFileSync(at('samples.json'), JSON.stringify(list));
  const seen = {};
  const run = async (...args) => {
    const result = await kubectl(server, args);
    seen[args.join(' ').replaceAll(`${server.directory}/`, '')] = withoutAges(result);
    return result;
  };
  await run('create', '-f', at('samples.json'));
  await run('apply', '-f', at('samples.json'));
  await run('apply', '--server-side', '--force-conflicts', '-f', at('samples.json'));
  const read = ['get', '--ignore-not-found', '--show-managed-fields', '-o', 'json'];
  const stored = await kubectl(server, [...read, '-f', at('samples.json')]);
  const items = stored.code === 0 ? JSON.parse(stored.lines.join('\n') || '{}') : stored;
  seen['get -o json'] = plain(items);
  const types = definitions.map(({ metadata }) => metadata.name);
  await run('get', types.join(), '-o', 'wide');
  const patch = '{"metadata":{"labels":{"peers":"patched"},"finalizers":null}}';
  await run('patch', '-f', at('samples.json'), '--type=merge', '-p', patch);
  await run('annotate', types.join(), '--all', 'peers=annotated');
  await run('delete', types.join(), '--all', '--wait=false');
  for (const { metadata, spec } of definitions) {
    for (const version of spec.versions.filter(({ served }) => served)) {
      const args = [metadata.name, `--api-version=${spec.group}/${version.name}`, '--recursive'];
      // The schema of a new definition is published a little after the definition is established.
      const explained = async () => {
        return (await run('explain', ...args)).code === 0;
      };
      await eventually(explained, { withinMs: 10_000, everyMs: 500 });
    }
  }
  return seen;
}

/** Removes a definition; resolves with the answers. */
async function remove(server, definition) {
  const path = `${crds}/${definition.metadata.name}`;
  await call(server, { method: 'DELETE', path });
  const isGone = async () => (await call(server, { path })).status === 404;
  const gone = await eventually(isGone, { withinMs: 60_000, everyMs: 50 });
  return gone === true ? 'gone' : 'never gone';
}

/** Runs one project on one server; resolves with all answers. */
export async function playProject(server, { definitions, kinds, samples }) {
  const installed = {};
  for (const definition of definitions) {
    installed[definition.metadata.name] = await install(server, definition);
  }
  const objects = {};
  const seenKinds = new Set();
  for (const [index, sample] of samples.entries()) {
    const definition = kinds.get(`${sample.apiVersion} ${sample.kind}`);
    const key = `${index} ${sample.kind} ${sample.metadata.name}`;
    const isFirst = !seenKinds.has(definition);
    seenKinds.add(definition);
    objects[key] = await roundTrip(server, { sample, definition, isFirst });
  }
  const commands = await kubectlSession(server, { samples, definitions });
  const removals = {};
  for (const definition of definitions) {
    removals[definition.metadata.name] = await remove(server, definition);
  }
  return { installed, objects, commands, removals };
}
