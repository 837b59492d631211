import type { ApiResource } from '@wheelhouse/client';
import {
  descriptionOf,
  isObject,
  itemOf,
  type JsonObject,
  member,
  parseApiVersion,
  propertiesOf,
  schemaOfKind,
  typeName,
} from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import type { Session } from '../session.ts';

/** One kind's part of an OpenAPI v3 document, and the types it refers to. */
interface ExplainedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** `components.schemas` of the document. */
  readonly schemas: JsonObject;
}

const lineWidth = 80;

/**
 * Tells of a kind, or of one of its fields, what the server's schema knows. Throws CliError for a
 * kind the document has not, and for a field the kind has not.
 */
function explainText(
  of: ExplainedKind,
  options: { readonly path: readonly string[]; readonly recursive: boolean },
): string {
  const { group, version, kind, schemas } = of;
  let schema = schemaOfKind(schemas, of);
  if (schema === undefined) {
    throw new CliError(`couldn't find resource for "${group}/${version}, Kind=${kind}"`);
  }
  let shown = schema;
  for (const name of options.path) {
    const property = member(propertiesOf(itemOf(schemas, schema)), name);
    if (!isObject(property)) throw new CliError(`field ${JSON.stringify(name)} does not exist`);
    shown = property;
    schema = property;
  }
  const head = [
    ...(group === '' ? [] : [`GROUP:      ${group}`]),
    `KIND:       ${kind}`,
    `VERSION:    ${version}`,
    '',
  ];
  const field = options.path.at(-1);
  if (field !== undefined) head.push(`FIELD: ${field} <${typeName(schemas, shown)}>`, '', '');
  const target = itemOf(schemas, shown);
  const text = descriptionOf(shown) || descriptionOf(target);
  const about =
    text === ''
      ? ['DESCRIPTION:', '    <empty>', '']
      : ['DESCRIPTION:', ...wrapped(text, '    '), '    '];
  const names = Object.keys(propertiesOf(target));
  const fields =
    names.length === 0
      ? ['']
      : [
          'FIELDS:',
          ...fieldLines(target, { schemas, recursive: options.recursive, within: [] }),
          '',
        ];
  return `${[...head, ...about, ...fields].join('\n')}\n`;
}

function fieldLines(
  schema: JsonObject,
  at: {
    readonly schemas: JsonObject;
    readonly recursive: boolean;
    readonly within: readonly JsonObject[];
  },
): string[] {
  const { schemas, recursive } = at;
  // A type that holds itself is told once.
  const within = [...at.within, schema];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const indent = '  '.repeat(within.length);
  const properties = propertiesOf(schema);
  return Object.keys(properties)
    .sort()
    .flatMap((name) => {
      const property = properties[name];
      if (!isObject(property)) return [];
      const mark = required.includes(name) ? ' -required-' : '';
      const line = `${indent}${name}\t<${typeName(schemas, property)}>${mark}`;
      const values = Array.isArray(property.enum)
        ? [`${indent}enum: ${property.enum.join(', ')}`]
        : [];
      const target = itemOf(schemas, property);
      if (!recursive) {
        const text = descriptionOf(property) || descriptionOf(target);
        return [line, ...values, ...wrapped(text, `${indent}  `), ''];
      }
      const inner = within.includes(target) ? [] : fieldLines(target, { ...at, within });
      return [line, ...values, ...inner];
    });
}

function wrapped(text: string, indent: string): string[] {
  if (text === '') return [`${indent}<no description>`];
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    for (const word of paragraph.split(' ')) {
      const longer = line === '' ? word : `${line} ${word}`;
      if (line === '' || longer.length + indent.length <= lineWidth) {
        line = longer;
        continue;
      }
      lines.push(indent + line);
      line = word;
    }
    return [...lines, indent + line];
  });
}

export const explainCommand: Command = {
  name: 'explain',
  completes: 'types',
  summary: "Explain the fields of a kind, from the server's schema",
  usage: 'TYPE[.FIELD ...]',
  flags: [
    { name: 'recursive', type: 'boolean', help: 'Print the names of all fields, recursively' },
    { name: 'api-version', type: 'text', help: 'Explain this apiVersion of the kind' },
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
