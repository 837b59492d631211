import type { ApiResource } from '@wheelhouse/client';
import { isObject, type JsonObject, parseApiVersion, schemaOfKind } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { NoResourceError } from '../errors.ts';
import type { ExplainedKind } from '../explain/explain-text.ts';
import { CliError } from '../io.ts';
import { resourceText } from '../selection.ts';
import type { Session } from '../session.ts';
import { withoutControls } from '../terminal.ts';

/**
 * Prints the documentation of a kind or of the field at a path, as the server's OpenAPI has it,
 * custom kinds included.
 */
export const explainCommand: Command = {
  name: 'explain',
  completes: 'types',
  summary: "Explain the fields of a kind, from the server's schema",
  usage: 'TYPE[.FIELD ...] [-o plaintext|plaintext-openapiv2]',
  flags: [
    { name: 'recursive', type: 'boolean', help: 'Print the names of all fields, recursively' },
    { name: 'api-version', type: 'text', help: 'Explain this apiVersion of the kind' },
    {
      name: 'output',
      short: 'o',
      type: 'text',
      help: 'plaintext (default) or plaintext-openapiv2',
    },
  ],
  async run(session, args) {
    const [word, ...more] = args;
    if (word === undefined) {
      throw new CliError(
        'You must specify the type of resource to explain. ' +
          'Use "svcctl api-resources" for a complete list of supported resources.\n',
      );
    }
    if (more.length > 0) throw new CliError('We accept only this format: explain RESOURCE\n');
    const { flags, io } = session;
    const { resource, path } = await splitWord(session, word);
    const { group, kind } = resource;
    const version = versionOf(session, resource);
    const options = { path, recursive: flags.boolean('recursive') };
    const output = flags.text('output') ?? 'plaintext';
    if (output === 'plaintext-openapiv2') {
      const { explainTextOfV2 } = await import('../explain/explain-text.ts');
      const { definitions } = await session.client.get('/openapi/v2');
      const schemas = isObject(definitions) ? definitions : {};
      const text = explainTextOfV2(explainedKind({ group, version, kind, schemas }), options);
      io.out(withoutControls(text));
      return 0;
    }
    if (output !== 'plaintext') throw new CliError(`unrecognized format: ${output}`);
    const { explainText } = await import('../explain/explain-text.ts');
    const root = group === '' ? `api/${version}` : `apis/${group}/${version}`;
    const schemas = await readSchemas(session, root);
    if (schemas === undefined) {
      throw new CliError(`couldn't find resource for "${resourceText({ ...resource, version })}"`);
    }
    const text = explainText(explainedKind({ group, version, kind, schemas }), options);
    io.out(withoutControls(text));
    return 0;
  },
};

/** Adds the schema of the kind. Throws CliError if the document has none. */
function explainedKind(parts: Omit<ExplainedKind, 'schema'>): ExplainedKind {
  const { group, version, kind, schemas } = parts;
  const schema = schemaOfKind(schemas, parts);
  if (schema !== undefined) return { ...parts, schema };
  throw new CliError(`couldn't find resource for "${group}/${version}, Kind=${kind}"`);
}

/** Splits `deployments.apps.spec.replicas` after the longest prefix that names a resource. */
async function splitWord(
  session: Session,
  word: string,
): Promise<{ resource: ApiResource; path: readonly string[] }> {
  const mapper = await session.mapper();
  const parts = word.replace(/\.$/, '').split('.');
  if (parts.join('') === '') throw new CliError('a resource must be present, got: /, Resource=');
  if (parts.includes('')) {
    throw new CliError('invalid jsonpath syntax, first node must be field node');
  }
  const { resources } = await session.discovery();
  const groups = new Set(resources.map(({ group }) => group));
  for (let prefixLength = parts.length; prefixLength > 1; prefixLength -= 1) {
    const rest = parts.slice(1, prefixLength).join('.');
    // The group may follow a version: `deployments.v1.apps`.
    const group = groups.has(rest) ? rest : parts.slice(2, prefixLength).join('.');
    if (group === '' || !groups.has(group)) continue;
    const resource = mapper.byName(parts.slice(0, prefixLength).join('.'));
    if (resource !== undefined) return { resource, path: parts.slice(prefixLength) };
  }
  const resource = mapper.byName(parts[0] ?? word);
  if (resource === undefined) throw new NoResourceError({ resource: parts[0] ?? word });
  return { resource, path: parts.slice(1) };
}

function versionOf(session: Session, resource: ApiResource): string {
  const apiVersion = session.flags.text('api-version');
  if (apiVersion === undefined) return resource.version;
  const parsed = parseApiVersion(apiVersion);
  if (parsed?.group === resource.group) return parsed.version;
  throw new CliError(`couldn't find resource for "${apiVersion}, Kind=${resource.kind}"`);
}

/** The schemas of a group version; undefined if the server does not serve it. */
async function readSchemas(session: Session, root: string): Promise<JsonObject | undefined> {
  const index = await session.client.get('/openapi/v3');
  const entry = isObject(index.paths) ? index.paths[root] : undefined;
  const url = isObject(entry) ? entry.serverRelativeURL : undefined;
  if (typeof url !== 'string') return undefined;
  const document = await session.client.get(url);
  const schemas = isObject(document.components) ? document.components.schemas : undefined;
  return isObject(schemas) ? schemas : {};
}
