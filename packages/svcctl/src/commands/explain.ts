import type { ApiResource } from '@wheelhouse/client';
import { isObject, type JsonObject, parseApiVersion } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { explainText } from '../output/explain.ts';
import type { Session } from '../session.ts';

export const explainCommand: Command = {
  name: 'explain',
  completes: 'types',
  summary: 'Tell the fields of a kind, from the schema of the server',
  usage: 'TYPE[.FIELD ...]',
  flags: [
    { name: 'recursive', type: 'boolean', help: 'The names of all fields, level by level' },
    { name: 'api-version', type: 'text', help: 'Use this apiVersion of the kind' },
  ],
  async run(session, args) {
    const [word, ...more] = args;
    if (word === undefined || more.length > 0) {
      throw new CliError('You must specify the type of resource to explain');
    }
    const { resource, path } = await resourceAndPath(session, word);
    const { group, kind } = resource;
    const version = versionOf(session, resource);
    const root = group === '' ? `api/${version}` : `apis/${group}/${version}`;
    const schemas = await schemasAt(session, root);
    const recursive = session.flags.boolean('recursive');
    session.io.out(explainText({ group, version, kind, schemas }, { path, recursive }));
    return 0;
  },
};

/** `deployments.apps.spec.replicas`: the longest beginning that names a resource, then fields. */
async function resourceAndPath(
  session: Session,
  word: string,
): Promise<{ resource: ApiResource; path: readonly string[] }> {
  const mapper = await session.mapper();
  const parts = word.split('.').filter((part) => part !== '');
  const { resources } = await session.discovery();
  const groups = new Set(resources.map((one) => one.group));
  for (let taken = parts.length; taken > 1; taken -= 1) {
    const rest = parts.slice(1, taken).join('.');
    // A version may stand before the group: `deployments.v1.apps`.
    const group = groups.has(rest) ? rest : parts.slice(2, taken).join('.');
    if (group === '' || !groups.has(group)) continue;
    const resource = mapper.byName(parts.slice(0, taken).join('.'));
    if (resource !== undefined) return { resource, path: parts.slice(taken) };
  }
  return { resource: await session.resource(parts[0] ?? word), path: parts.slice(1) };
}

function versionOf(session: Session, resource: ApiResource): string {
  const apiVersion = session.flags.text('api-version');
  if (apiVersion === undefined) return resource.version;
  const parsed = parseApiVersion(apiVersion);
  if (parsed?.group === resource.group) return parsed.version;
  throw new CliError(`couldn't find resource for "${apiVersion}, Kind=${resource.kind}"`);
}

async function schemasAt(session: Session, root: string): Promise<JsonObject> {
  const index = await session.client.get('/openapi/v3');
  const entry = isObject(index.paths) ? index.paths[root] : undefined;
  const url = isObject(entry) ? entry.serverRelativeURL : undefined;
  if (typeof url !== 'string') throw new CliError(`couldn't find the schema of ${root}`);
  const document = await session.client.get(url);
  const schemas = isObject(document.components) ? document.components.schemas : undefined;
  return isObject(schemas) ? schemas : {};
}
