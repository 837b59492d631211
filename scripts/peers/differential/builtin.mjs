// Writes to built-in kinds: examples, changed at random as the reference's OpenAPI schemas suggest.
import { call, eventually } from '../servers.mjs';
import { createMutator } from './mutate.mjs';
import { builtinSubjects, schemaOfSubject } from './subjects.mjs';

/**
 * @param options.both the servers, the reference first
 * @param options.random draws (see random.mjs)
 * @param options.send sends one request to both and reports how the answers differ
 * @returns a function that runs one round
 */
export async function builtinRounds({ both, random, send: sendTo }) {
  /** Kinds to whose status the servers' own controllers write. */
  const settles = new Set(['APIService', 'CustomResourceDefinition', 'FlowSchema']);

  const isSettled = ({ kind, status }) => {
    const conditions = status?.conditions ?? [];
    return kind === 'CustomResourceDefinition'
      ? conditions.some(({ type, status }) => type === 'Established' && status === 'True')
      : conditions.length > 0;
  };

  async function settled(path) {
    const hasStatus = async () => {
      const answers = await Promise.all(both.map((server) => call(server, { path })));
      return answers.every(({ body }) => isSettled(body));
    };
    await eventually(hasStatus, { withinMs: 1000, everyMs: 20 });
  }

  const patchTypes = [
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
    'application/apply-patch+yaml',
    'application/json-patch+json',
  ];

  /** The life of one object: create, some updates and patches, and its deletion. */
  async function live(subject, round) {
    const { def, path, object, schemas } = subject;
    const schema = schemaOfSubject(subject);
    if (schema === undefined) return;
    const { mutate } = createMutator({ random, schemas });
    const original =
      def.kind === 'CustomResourceDefinition'
        ? JSON.parse(JSON.stringify(object).replaceAll('example.com', `d${round}.example.com`))
        : structuredClone(object);
    delete original.metadata.namespace;
    const fixedName = def.scope !== 'Namespaced' && /[.:]/.test(original.metadata.name ?? '');
    if (!fixedName) original.metadata.name = `d${round}`;
    const { name } = original.metadata;
    const validation = random.pick(['Strict', 'Warn', 'Ignore']);
    const send = (request) => sendTo({ subject: def.kind, ...request });
    let made = random.chance(0.5) ? original : mutate(original, schema);
    const created = await send({
      method: 'POST',
      path: `${path}?fieldValidation=${validation}`,
      body: made,
    });
    if (created[0].status !== 201) {
      if (made === original) return;
      made = original;
      const again = await send({ method: 'POST', path, body: original });
      if (again[0].status !== 201) return;
    }
    if (settles.has(def.kind)) await settled(`${path}/${made.metadata.name}`);
    const kept = made.metadata?.name ?? name;
    const steps = 1 + random.below(4);
    for (let step = 0; step < steps; step++) {
      const part = subject.hasStatus && random.chance(0.3) ? '/status' : '';
      const target = `${path}/${kept}${part}`;
      const current = await Promise.all(both.map((server) => call(server, { path: target })));
      if (current.some(({ status }) => status !== 200)) break;
      const bodies = current.map(({ body }) => body);
      await send(changeOf({ target, bodies, mutate: (object) => mutate(object, schema) }));
    }
    await send(deletionOf(`${path}/${kept}`));
    await Promise.all(both.map((server) => call(server, forced(`${path}/${kept}`))));
  }

  const forced = (path) => ({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } });

  /** One change of the object whose current states are `bodies`: a PUT or a patch of some type. */
  function changeOf({ target, bodies, mutate }) {
    const [first] = bodies;
    const changed = mutate(stripped(first));
    const validation = `fieldValidation=${random.pick(['Warn', 'Ignore'])}`;
    if (random.chance(0.4)) {
      const own = bodies.map((body) => {
        const copy = withUid(changed, first, body);
        return { ...copy, metadata: merged(copy.metadata, body.metadata) };
      });
      return { method: 'PUT', path: `${target}?${validation}`, bodies: own };
    }
    const type = random.pick(patchTypes);
    const isApply = type.includes('apply');
    const manager = random.pick(['differ', 'other']);
    const query = isApply ? `fieldManager=${manager}&force=${random.chance(0.5)}` : validation;
    const patch =
      { 'application/apply-patch+yaml': changed }[type] ?? patchFor(type, first, changed);
    return {
      method: 'PATCH',
      path: `${target}?${query}`,
      bodies: bodies.map((body) => withUid(patch, first, body)),
      headers: { 'content-type': type },
    };
  }

  const patchFor = (type, from, to) =>
    type.includes('json-patch') ? operations(from, to) : patchOf(stripped(from), to);

  /** JSON patch operations: one that leads towards `to`, or random ones on paths of `from`. */
  function operations(from, to) {
    const paths = [];
    const walk = (value, path) => {
      if (typeof value !== 'object' || value === null) return;
      for (const key of Object.keys(value)) {
        const at = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        paths.push({ at, value: value[key] });
        walk(value[key], at);
      }
    };
    walk(stripped(from), '');
    const some = () => random.pick(paths);
    const path = () => some().at + random.pick(['', '', '', '/-', '/x', '/0', '/01', 'x']);
    const operation = () => {
      const op = random.pick(['add', 'remove', 'replace', 'test', 'move', 'copy']);
      if (op === 'move' || op === 'copy') return { op, from: some().at, path: path() };
      return op === 'remove' ? { op, path: path() } : { op, path: path(), value: some().value };
    };
    const changed = Object.keys(to).filter(
      (key) => JSON.stringify(to[key]) !== JSON.stringify(from[key]),
    );
    const towards = changed.map((key) => ({ op: 'add', path: `/${key}`, value: to[key] }));
    return random.chance(0.4) ? towards : Array.from({ length: 1 + random.below(3) }, operation);
  }

  /** A deletion with random options. */
  function deletionOf(path) {
    const body = { gracePeriodSeconds: 0 };
    const draw = random.below(8);
    if (draw === 0)
      body.propagationPolicy = random.pick(['Orphan', 'Background', 'Foreground', 'x']);
    if (draw === 1) body.orphanDependents = random.chance(0.5);
    if (draw === 2) body.preconditions = { resourceVersion: random.pick(['1', 'x', '']) };
    if (draw === 3) body.preconditions = { uid: 'x' };
    if (draw === 4) body.gracePeriodSeconds = random.pick([-1, 0, 1, 'x', null, 5000000000]);
    if (draw === 5) body.dryRun = [random.pick(['All', 'x', ''])];
    return { method: 'DELETE', path, body };
  }

  /** Replaces the uid and address of one server's object in a body by those of the other's. */
  function withUid(body, from, to) {
    let text = JSON.stringify(body).replaceAll(from.metadata.uid, to.metadata.uid);
    const { clusterIP } = from.kind === 'Service' ? from.spec : {};
    if (clusterIP) text = text.replaceAll(`"${clusterIP}"`, `"${to.spec.clusterIP}"`);
    return JSON.parse(text);
  }

  /**
   * What a client that changes `metadata` sends to each server, with that server's uid and version.
   */
  function merged(metadata, current) {
    if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
      return metadata;
    const { uid, creationTimestamp } = current;
    return { ...metadata, uid, creationTimestamp };
  }

  function stripped(object) {
    const copy = structuredClone(object);
    for (const member of ['managedFields', 'resourceVersion', 'uid', 'creationTimestamp'])
      delete copy.metadata[member];
    return copy;
  }

  /** A merge patch from one value to another. */
  function patchOf(from, to) {
    const isMap = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isMap(from) || !isMap(to)) return to;
    const patch = {};
    for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
      if (!(key in to)) patch[key] = null;
      else if (JSON.stringify(from[key]) !== JSON.stringify(to[key]))
        patch[key] = key in from ? patchOf(from[key], to[key]) : to[key];
    }
    return patch;
  }

  const all = await builtinSubjects(both[0]);
  return (round) => live(random.pick(all), round);
}
