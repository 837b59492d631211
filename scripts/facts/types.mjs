// `npm run kind-types`: writes packages/kinds/src/gen/types/, the TypeScript types of the built-in
// kinds, from their schemas. packages/kinds/src/kind-types.test.ts compares the files with what
// `typeFiles` returns.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const sources = join(dirname(fileURLToPath(import.meta.url)), '../../packages/kinds/src');
const out = join(sources, 'gen', 'types');

/**
 * Types whose JSON form does not follow from their fields, and what other files import from
 * `meta/v1`.
 */
const namedTypes = {
  'meta.v1.Time': 'Time',
  'meta.v1.MicroTime': 'MicroTime',
  'meta.v1.Duration': 'Duration',
  'meta.v1.FieldsV1': 'FieldsV1',
  'resource.Quantity': 'Quantity',
  'intstr.IntOrString': 'IntOrString',
  'runtime.RawExtension': 'Json',
  'runtime.Object': 'Json',
};

const namedDeclarations = `/** A time with seconds, as RFC 3339 writes it: \`2026-01-02T15:04:05Z\`. */
export type Time = string;
/** A time with microseconds: \`2026-01-02T15:04:05.000000Z\`. */
export type MicroTime = string;
/** A duration: \`1h30m\`. */
export type Duration = string;
/** An amount of a resource: \`500m\`, \`1Gi\`. */
export type Quantity = string;
/** A number, or a percentage or the name of a port. */
export type IntOrString = number | string;
/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
/** A set of fields, as managedFields holds it. */
export type FieldsV1 = { [field: string]: FieldsV1 };
/** An object inside another one, such as in a list or a template, which may omit its type. */
export type Embedded<Kind> = Omit<Kind, 'apiVersion' | 'kind'> & TypeMeta;
`;

const scalars = { string: 'string', boolean: 'boolean', integer: 'number', number: 'number' };

/** Groups whose kinds are reviews, whose metadata clients may omit. */
const withoutMetadata = new Set(['authentication', 'authorization', 'imagepolicy']);

/** \`apps.v1.Deployment\` -> \`apps/v1\` and \`Deployment\`. */
function placeOf(typeName) {
  const [group, version, name] = typeName.split('.');
  return { group, file: `${group}/${version}`, name };
}

const isKind = (schema) => schema.properties?.has('kind') && schema.properties.has('apiVersion');

const hasObjects = (schema) => isKind(schema) && schema.properties.has('metadata');

/** The text of a type. `uses(typeName)` imports another type and returns its name. */
function typeText(schema, uses) {
  const at = schema.resolve === undefined ? schema : schema.resolve();
  if (Object.hasOwn(namedTypes, at.typeName ?? '')) return uses(at.typeName);
  if (at.alternatives !== undefined) return alternativesText(at.alternatives, uses);
  if (at.properties !== undefined) {
    const name = uses(at.typeName);
    return isKind(at) && !at.typeName.startsWith('meta.') ? `${uses('Embedded')}<${name}>` : name;
  }
  const values = at.validation?.enum;
  if (values !== undefined) return values.map((value) => `'${value}'`).join(' | ');
  if (at.type === 'array') {
    const item = typeText(at.items, uses);
    return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
  }
  if (at.additionalProperties !== undefined)
    return `{ [name: string]: ${typeText(at.additionalProperties, uses)} }`;
  return scalars[at.type] ?? uses('runtime.RawExtension');
}

function alternativesText({ object, list, boolean }, uses) {
  const shapes = [object, list].filter((shape) => shape !== undefined);
  const texts = shapes.map((shape) => typeText(shape, uses));
  return [...texts, ...(boolean === true ? ['boolean'] : [])].join(' | ');
}

/** Whether the server writes null for a member without a value. */
function isNullable({ schema, omitEmpty, pointer }, isRequired) {
  const at = schema.resolve === undefined ? schema : schema.resolve();
  if (at.nullable === true && pointer !== true) return true;
  const isCollection = at.type === 'array' || at.additionalProperties !== undefined;
  return isCollection && omitEmpty !== true && !isRequired;
}

function memberText([name, property], schema, uses) {
  const { group, name: typeName } = placeOf(schema.typeName);
  if (isKind(schema) && name === 'kind') return `  kind: '${typeName}';`;
  if (isKind(schema) && name === 'apiVersion') return '  apiVersion: string;';
  const isMetadata = isKind(schema) && name === 'metadata' && !withoutMetadata.has(group);
  const isRequired = isMetadata || schema.required?.includes(name) === true;
  const nullable = isNullable(property, isRequired) ? ' | null' : '';
  const key = /^\w+$/.test(name) ? name : `'${name}'`;
  return `  ${key}${isRequired ? '' : '?'}: ${typeText(property.schema, uses)}${nullable};`;
}

function declaration(schema, uses) {
  const members = [...schema.properties].map((entry) => memberText(entry, schema, uses));
  return `export type ${placeOf(schema.typeName).name} = {\n${members.join('\n')}\n};\n`;
}

/** Begins the files of versions that the current release does not serve any more. */
export const endedMark = '/** Of earlier releases';

/** The text of one file, whose types are those of a version of a group. */
function fileText(file, schemas, isEnded) {
  const imports = new Map();
  const own = new Set(schemas.map(({ typeName }) => placeOf(typeName).name));
  const uses = (typeName) => {
    const named = typeName === 'Embedded' ? typeName : namedTypes[typeName];
    const place = named === undefined ? placeOf(typeName) : { file: 'meta/v1', name: named };
    if (place.file === file) return place.name;
    const local = own.has(place.name) ? `${place.file.split('/')[0]}_${place.name}` : place.name;
    const names = imports.get(place.file) ?? new Set();
    names.add(local === place.name ? local : `${place.name} as ${local}`);
    imports.set(place.file, names);
    return local;
  };
  const declarations = schemas.map((schema) => declaration(schema, uses));
  if (file === 'meta/v1') declarations.unshift(namedDeclarations);
  const lines = [...imports].sort().map(([from, names]) => {
    const up = from.startsWith(`${file.split('/')[0]}/`) ? `./${from.split('/')[1]}` : `../${from}`;
    return `import type { ${[...names].sort().join(', ')} } from '${up}.ts';\n`;
  });
  const whose = isEnded ? `${endedMark}: the types` : '/** The types';
  const what = `${whose} of \`${file}\`; made by scripts/facts/types.mjs, do not edit. */\n`;
  return what + lines.join('') + declarations.join('');
}

/** The schemas of all structs under a schema, of the same version, in the order of first use. */
function structsUnder(schema, found = new Map()) {
  const at = schema.resolve === undefined ? schema : schema.resolve();
  for (const inner of [
    at.items,
    at.additionalProperties,
    ...Object.values(at.alternatives ?? {}),
  ]) {
    if (typeof inner === 'object') structsUnder(inner, found);
  }
  if (at.properties === undefined || found.has(at.typeName)) return found;
  found.set(at.typeName, at);
  for (const { schema: inner } of at.properties.values()) structsUnder(inner, found);
  return found;
}

/** The list of a kind, for kinds whose list has no facts. */
function listSchema(kind, listMeta) {
  const text = { type: 'string' };
  return {
    type: 'object',
    typeName: `${kind.typeName}List`,
    required: ['items'],
    properties: new Map([
      ['apiVersion', { schema: text, omitEmpty: true }],
      ['kind', { schema: text, omitEmpty: true }],
      ['metadata', { schema: listMeta, omitEmpty: true }],
      ['items', { schema: { type: 'array', items: kind } }],
    ]),
  };
}

/**
 * The generated files, by path in `gen/types`: `apps/v1.ts`.
 *
 * @param kinds what facts.ts, schema-of.ts, rules/life.ts, and apiextensions/crd-schema.ts of
 *   packages/kinds export
 */
export function typeFiles(kinds) {
  const { groupStems, versionsOfFacts, versionFacts, schemaOf, crdSchema } = kinds;
  const { currentMinor, lifeOf, livesIn } = kinds;
  const files = new Map();
  for (const group of Object.keys(groupStems)) {
    for (const version of versionsOfFacts(group)) {
      const { structNames, aliases } = versionFacts(`${group}.${version}`);
      const schemas = [...structNames, ...aliases.keys()]
        .map((name) => schemaOf(`${group}.${version}.${name}`))
        .filter(({ properties }) => properties !== undefined);
      const file = `${group}/${version}`;
      const lives = schemas.filter(hasObjects).map(({ typeName }) => lifeOf(typeName));
      const isEnded =
        lives.length > 0 && !lives.some((life) => livesIn(life, { minor: currentMinor }));
      files.set(`${file}.ts`, fileText(file, schemas, isEnded));
    }
  }
  for (const version of ['v1', 'v1beta1']) {
    const root = crdSchema(version);
    const file = `apiextensions/${version}`;
    const own = [...structsUnder(root).values()].filter(
      ({ typeName }) => placeOf(typeName).file === file,
    );
    const list = listSchema(root, schemaOf('meta.v1.ListMeta'));
    files.set(`${file}.ts`, fileText(file, [...own, list], version !== 'v1'));
  }
  return new Map([...files].sort());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = ['facts.ts', 'schema-of.ts', 'rules/life.ts', 'apiextensions/crd-schema.ts'];
  const modules = await Promise.all(names.map((name) => import(join(sources, name))));
  const kinds = Object.assign({}, ...modules);
  rmSync(out, { recursive: true, force: true });
  for (const [path, text] of typeFiles(kinds)) {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text);
  }
}
