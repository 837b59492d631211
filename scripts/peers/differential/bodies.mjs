// Bodies as bytes: writes of JSON, YAML, protobuf, and CBOR with odd spellings, in all places where
// a request has a body.
import { call } from '../servers.mjs';
import { createCborBodies } from './bodies/cbor-bytes.mjs';
import { createJsonBodies } from './bodies/json-text.mjs';
import { createProtobufBodies } from './bodies/protobuf-bytes.mjs';
import { customKind, otherBodies, prepare } from './bodies/requests.mjs';
import { createYamlBodies } from './bodies/yaml-text.mjs';
import { createMutator } from './mutate.mjs';
import { builtinSubjects, schemaOfSubject } from './subjects.mjs';

const types = {
  json: 'application/json',
  yaml: 'application/yaml',
  protobuf: 'application/vnd.kubernetes.protobuf',
  cbor: 'application/cbor',
};
const patchTypes = [
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/apply-patch+cbor',
  'application/json-patch+json',
];
const parameters = [
  ';charset=utf-8',
  '; charset=UTF-8',
  '; charset=latin1',
  ' ',
  ';',
  ';;',
  '; a',
  '; a=b; a=c',
  '; q=1',
  '; charset="utf-8"',
  ', application/json',
  ';stream=watch',
  ';as=Table',
];
const otherTypes = [
  'text/plain',
  'text/yaml',
  'application/x-yaml',
  'application/*',
  '*/*',
  'json',
  'application/json/x',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/octet-stream',
  'application/cbor-seq',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  '',
];

/**
 * @param options as for `builtinRounds`
 * @returns a function that runs one round: some requests for one kind
 */
export async function bodyRounds({ both, random, send: sendTo }) {
  const forms = process.env.PEERS_FORMS?.split(',') ?? Object.keys(types);
  const protobuf = createProtobufBodies(random);

  /** The bodies of one kind in a form; undefined if it has none. */
  function bodyOf({ form, object, schema, schemas }) {
    const mutator = createMutator({ random, schemas });
    if (form === 'json') return createJsonBodies({ random, mutator }).jsonBody(object, schema);
    if (form === 'yaml') return createYamlBodies({ random, mutator }).yamlBody(object, schema);
    if (form === 'cbor') return createCborBodies({ random, mutator }).cborBody(object, schema);
    return protobuf.protobufBody(object);
  }

  function headersFor(type) {
    const draw = random.below(60);
    if (draw === 0) return { 'content-type': type + random.pick(parameters) };
    if (draw === 1) return { 'content-type': type.toUpperCase() };
    if (draw === 2) return { 'content-type': random.pick(otherTypes) };
    if (draw === 3) return { 'content-type': type, 'content-encoding': random.pick(encodings) };
    if (draw === 4) return {};
    return { 'content-type': type };
  }
  const encodings = ['gzip', 'identity', 'deflate', 'x', ''];

  const validation = () => `fieldValidation=${random.pick(['Strict', 'Warn', 'Ignore'])}`;
  const send = ({ subject, form, ...request }) =>
    sendTo({ subject: `${form} ${subject}`, ...request });

  /** The same object in a random form, or undefined if its kind does not have the form. */
  function drawn(subject) {
    const form = random.pick(forms);
    const body = bodyOf({ form, ...subject });
    return body === undefined ? undefined : { form, body, headers: headersFor(types[form]) };
  }

  async function create(subject) {
    const object = structuredClone(subject.object);
    if (subject.name === 'Widget') object.metadata.name = 'fresh';
    const made = drawn({ ...subject, object });
    if (made === undefined) return;
    const path = `${subject.path}?dryRun=All&${validation()}`;
    await send({ subject: subject.name, method: 'POST', path, ...made });
  }

  async function change(subject, target) {
    if (random.chance(0.5)) {
      const made = drawn(subject);
      if (made === undefined) return;
      await send({
        subject: subject.name,
        method: 'PUT',
        path: `${target}?${validation()}`,
        ...made,
      });
      return;
    }
    const type = random.pick(patchTypes);
    const form = type.endsWith('cbor') ? 'cbor' : type.endsWith('yaml') ? 'yaml' : 'json';
    if (!forms.includes(form)) return;
    const isApply = type.includes('apply');
    const query = `${validation()}${isApply ? '&fieldManager=differ&force=true' : ''}`;
    const body = type.includes('json-patch') ? operations(subject) : bodyOf({ form, ...subject });
    const headers = headersFor(type);
    const about = `${subject.name} ${type.split('/')[1]}`;
    await send({
      subject: about,
      form,
      method: 'PATCH',
      path: `${target}?${query}`,
      body,
      headers,
    });
  }

  /** A JSON patch whose values are parts of the object with odd spellings. */
  function operations({ object, schema, schemas }) {
    const mutator = createMutator({ random, schemas });
    const list = { type: 'array', items: operationSchema };
    const paths = [
      '/metadata/labels',
      '/metadata/annotations/a',
      '/spec',
      '/data',
      '',
      '/',
      'x',
      '/metadata/name',
    ];
    const some = Array.from({ length: 1 + random.below(2) }, () => {
      const op = random.pick(['add', 'remove', 'replace', 'test', 'move', 'copy']);
      const value = random.pick([{ a: '1' }, object.spec ?? 'x', 'x', 1]);
      return { op, path: random.pick(paths), from: random.pick(paths), value };
    });
    const bodies = createJsonBodies({ random, mutator });
    return schema === undefined ? bodies.jsonBody(some, {}) : bodies.jsonBody(some, list);
  }
  const operationSchema = {
    type: 'object',
    properties: {
      op: { type: 'string' },
      path: { type: 'string' },
      from: { type: 'string' },
      value: {},
    },
  };

  /** The life of one object: created by JSON, changed by odd bodies, deleted by odd options. */
  async function live(subject, round) {
    const object = structuredClone(subject.object);
    const isFixed = subject.isClusterScoped && /[.:]/.test(object.metadata.name ?? '');
    if (!isFixed) object.metadata.name = `d${round}`;
    delete object.metadata.namespace;
    const own = { ...subject, object };
    const answers = await Promise.all(
      both.map((server) => call(server, { method: 'POST', path: subject.path, body: object })),
    );
    if (answers.some(({ status }) => status !== 201)) return;
    const target = `${subject.path}/${object.metadata.name}`;
    const steps = 1 + random.below(5);
    for (let step = 0; step < steps; step++) {
      const part = subject.hasStatus && random.chance(0.2) ? '/status' : '';
      await change(own, target + part);
    }
    const forced = { method: 'DELETE', path: target, body: { gracePeriodSeconds: 0 } };
    await Promise.all(both.map((server) => call(server, forced)));
  }

  const subjects = (await builtinSubjects(both[0])).map((subject) => ({
    ...subject,
    name: subject.def.kind,
    isClusterScoped: subject.def.scope !== 'Namespaced',
    schema: schemaOfSubject(subject),
  }));
  await prepare(both);
  const custom = await customKind(both[0]);
  const others = await otherBodies(both[0]);
  const written = new Set(['CustomResourceDefinition', 'APIService', 'FlowSchema']);

  return async (round) => {
    // Options of deletions that cannot be read as meant may delete the objects.
    if (round % 40 === 0) await prepare(both);
    const draw = random.below(10);
    if (draw < 2) {
      const other = random.pick(others);
      const made = drawn(other);
      if (made !== undefined) await send({ subject: other.name, ...other.request, ...made });
      return;
    }
    const subject = draw < 4 ? custom : random.pick(subjects);
    if (subject.schema === undefined) return;
    if (random.chance(0.6)) await create(subject);
    else if (!written.has(subject.name)) await live(subject, round);
  };
}
