// The built-in kinds that the differential writes: their examples, paths, and schemas.
import { builtinKinds } from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import { call } from '../servers.mjs';

/**
 * Every kind with an example, in each version that both servers serve; PEERS_KINDS limits them.
 *
 * @param reference the server whose documents count
 */
export async function builtinSubjects(reference) {
  const only = process.env.PEERS_KINDS?.split(',');
  const schemaCache = new Map();
  async function schemasOf(base) {
    if (!schemaCache.has(base)) {
      const { body } = await call(reference, { path: `/openapi/v3${base}` });
      schemaCache.set(base, body.components.schemas);
    }
    return schemaCache.get(base);
  }
  const found = [];
  for (const def of builtinKinds(dialectOf('kubernetes'))) {
    if (def.example === undefined || def.isVirtual || def.isComputed) continue;
    if (!def.verbs.includes('create')) continue;
    if (only !== undefined && !only.includes(def.kind)) continue;
    const object = def.example();
    const base = def.group === '' ? '/api/v1' : `/apis/${object.apiVersion}`;
    const { status, body } = await call(reference, { path: base });
    if (status !== 200) continue;
    const hasStatus = body.resources.some(({ name }) => name === `${def.resource}/status`);
    const place = def.scope === 'Namespaced' ? '/namespaces/default' : '';
    const schemas = await schemasOf(base);
    found.push({ def, hasStatus, path: `${base}${place}/${def.resource}`, object, schemas });
  }
  return found;
}

/** The schema of a subject's kind: the component that names its group, version, and kind. */
export function schemaOfSubject({ object, schemas }) {
  const [version, group = ''] = object.apiVersion.split('/').reverse();
  for (const schema of Object.values(schemas)) {
    const own = schema['x-kubernetes-group-version-kind'] ?? [];
    if (
      own.some(
        (type) => type.kind === object.kind && type.version === version && type.group === group,
      )
    )
      return schema;
  }
  return undefined;
}
