import { jsonText } from '@wheelhouse/codec';
import {
  type CatalogueSnapshot,
  type Descriptions,
  groupOfDirectory,
  hasStructFacts,
  knownGroupVersions,
  type ResourceDef,
  splitTypeName,
  structFacts,
  type VersionDef,
} from '@wheelhouse/kinds';
import { type Dialect, type GroupVersion, type JsonObject, objectOf } from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';
import { objectText, sortedPieces } from './json-text.ts';
import {
  type DiscoveryPath,
  discoveryRoute,
  groupTag,
  isBuiltIn,
  versionDiscovery,
} from './openapi-discovery.ts';
import { customDefinitionName, definitionName } from './openapi-names.ts';
import { pathParametersText } from './openapi-parameters.ts';
import { type GroupVersionKind, type Route, type RouteSchema, routesOf } from './openapi-routes.ts';
import {
  definitionText,
  descriptionMember,
  inlineJson,
  type OpenApiForm,
  objectMembers,
  refTo,
  type SchemaContext,
  schemaContext,
  schemaJson,
  schemaText,
  typeMembers,
  typeRef,
  typeRefText,
  withRef,
} from './openapi-schema.ts';

/** The discriminator of each union type, and the members that it selects. */
const unions: Readonly<Record<string, readonly [discriminator: string, members: string[]]>> = {
  'core.AppArmorProfile': ['type', ['localhostProfile']],
  'core.SeccompProfile': ['type', ['localhostProfile']],
  'flowcontrol.LimitResponse': ['type', ['queuing']],
  'flowcontrol.PriorityLevelConfigurationSpec': ['type', ['exempt', 'limited']],
  'flowcontrol.Subject': ['kind', ['group', 'serviceAccount', 'user']],
};

/** The union extension of a definition; empty for most types. */
function unionJson({ typeName = '' }: Schema): JsonObject {
  const [directory, , name] = typeName.split('.');
  const key = `${directory}.${name}`;
  const [discriminator, members] = (Object.hasOwn(unions, key) && unions[key]) || [];
  if (discriminator === undefined || members === undefined) return {};
  const values = members.map((member) => [member, member.replace(/^./, upperCase)]);
  const union = { discriminator, 'fields-to-discriminateBy': Object.fromEntries(values) };
  return { 'x-kubernetes-unions': [union] };
}

const upperCase = (letter: string) => letter.toUpperCase();

/** The inputs of OpenAPI documents. */
export interface OpenApiSource {
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
  /** The version in the document's info (`v1.32.0`). */
  readonly release: string;
  /** Served paths that are not resources. */
  readonly plainPaths: readonly string[];
  /** `omitted` to leave out the values of enum fields of built-in types. */
  readonly enums?: 'omitted' | undefined;
  readonly descriptions: Descriptions;
}

/** Collects the paths and definitions of one document. */
export interface OpenApiBuilder {
  /** Adds the paths of a group and version. */
  add(at: GroupVersion): void;
  /** Adds a discovery path. */
  addDiscovery(path: DiscoveryPath): void;
  /**
   * Returns the JSON of the paths that were added, and of all definitions that they refer to, in
   * pieces. Yields after each path and definition.
   */
  finish(): Generator<void, OpenApiMembers>;
}

/** The JSON of an object's members, in pieces; undefined without any. */
interface OpenApiMembers {
  readonly paths: readonly string[];
  readonly definitions: readonly string[] | undefined;
}

/** Returns the JSON of a reference to a schema, or of the inline schema. */
type SchemaText = (schema: RouteSchema) => string;

/** The JSON of operations in an OpenAPI version. */
export interface OperationForm {
  /** Returns the members that are specific to the version; they precede the responses. */
  ownMembers(route: Route, schema: SchemaText): Record<string, string | undefined>;
  /** Returns the member of a response that contains its schema. */
  responseMember(route: Route, schema: string): string;
}

/** The kinds that a group version serves. */
function servedAt(
  snapshot: CatalogueSnapshot,
  { group, version }: GroupVersion,
): { def: ResourceDef; version: VersionDef }[] {
  return snapshot.ofGroup(group).flatMap((def) => {
    const served = snapshot.find(group, version, def.resource);
    return served === undefined || served.def !== def ? [] : [served];
  });
}

/** Whether a document describes a built-in API, or one that is declared by custom definitions. */
export type DescribedApi = 'own' | 'defined';

/** Creates the builder of a document. */
export function openApiBuilder(
  source: OpenApiSource,
  options: { form: OpenApiForm; operations: OperationForm; api: DescribedApi },
): OpenApiBuilder {
  const { form, operations, api } = options;
  const { dialect, snapshot, enums, descriptions } = source;
  const paths = new Map<string, string>();
  const routes = new Map<string, { route: Route; parts: OperationParts }[]>();
  const types = new Map<string, Schema>();
  const definitions = new Map<string, string>();
  const context = schemaContext({
    form,
    dialect,
    enums,
    descriptions,
    refer: (name, schema) => {
      if (!types.has(name)) types.set(name, schema);
    },
  });
  const schemaAt = (at: GroupVersion) => (schema: RouteSchema) =>
    routeSchema(context, definitions, { schema, at });
  const addRoute = (route: Route, parts: OperationParts) => {
    const existing = routes.get(route.path);
    if (existing === undefined) routes.set(route.path, [{ route, parts }]);
    else existing.push({ route, parts });
  };
  const addPath = (path: DiscoveryPath, parts: OperationParts) => {
    const route = discoveryRoute(dialect, path);
    paths.set(route.path, objectText({ get: operationText(operations, route, parts) }));
  };
  return {
    add(at) {
      const parts = {
        tag: `${groupTag(dialect, at.group)}_${at.version}`,
        schema: schemaAt(at),
      };
      if (isBuiltIn(snapshot, at.group)) addPath(versionDiscovery(dialect, at), parts);
      for (const { def, version } of servedAt(snapshot, at)) {
        for (const route of routesOf(dialect, def, version)) addRoute(route, parts);
      }
    },
    addDiscovery(path) {
      addPath(path, { tag: path.tag, schema: schemaAt({ group: '', version: 'v1' }) });
    },
    *finish() {
      for (const [path, ofPath] of routes) {
        paths.set(path, objectText(pathItem(form, operations, ofPath)));
        yield;
      }
      // The loop visits entries that are added during it: definitions that others refer to. A
      // built-in type replaces a custom kind of the same name.
      for (const [name, schema] of types) {
        const kinds = kindsOf(dialect, { schema, api });
        const more = { ...(kinds.length === 0 ? {} : kindJson(...kinds)), ...unionJson(schema) };
        definitions.set(name, definitionText(context, schema, more));
        yield;
      }
      return {
        paths: yield* sortedPieces(paths),
        definitions: definitions.size === 0 ? undefined : yield* sortedPieces(definitions),
      };
    },
  };
}

interface OperationParts {
  readonly tag: string;
  readonly schema: SchemaText;
}

/** The operations of a path, and the parameters that they have in common. */
function pathItem(
  form: OpenApiForm,
  operations: OperationForm,
  ofPath: readonly { route: Route; parts: OperationParts }[],
): Record<string, string> {
  const [first, ...others] = ofPath.map(({ route }) => route);
  const { path = '', query: firstQuery = [] } = first ?? {};
  const common = firstQuery.filter((name) => others.every(({ query }) => query.includes(name)));
  const item: Record<string, string> = { parameters: pathParametersText(form, path, common) };
  for (const { route, parts } of ofPath) {
    const query =
      common.length === 0 ? route.query : route.query.filter((name) => !common.includes(name));
    item[route.method] = operationText(operations, { ...route, query }, parts);
  }
  return item;
}

function operationText(form: OperationForm, route: Route, { tag, schema }: OperationParts): string {
  const { action, kind } = route;
  return objectText({
    tags: jsonText([tag]),
    description: jsonText(route.description),
    operationId: jsonText(route.operationId),
    ...form.ownMembers(route, schema),
    responses: responsesText(form, route, schema),
    'x-kubernetes-action': action && `"${action}"`,
    'x-kubernetes-group-version-kind': kind && jsonText(kind),
  });
}

const statusTexts = { 200: 'OK', 201: 'Created', 202: 'Accepted' } as const;

function responsesText(form: OperationForm, route: Route, schema: SchemaText): string {
  const responses = route.responses.map(([status, answer]) => {
    const responseMember = form.responseMember(route, schema(answer));
    return `"${status}":{"description":"${statusTexts[status]}",${responseMember}}`;
  });
  return `{${responses.join()},"401":{"description":"Unauthorized"}}`;
}

/** The JSON texts of definitions by name. */
type Definitions = Map<string, string>;

function routeSchema(
  context: SchemaContext,
  definitions: Definitions,
  use: { schema: RouteSchema; at: GroupVersion },
): string {
  const { schema, at } = use;
  if (schema === 'text') return '{"type":"string"}';
  if ('type' in schema) return typeRefText(context, schema.type);
  const { def, list } = schema;
  if (def.behavior.documents.schemas === 'own definition') {
    return customRef(context, definitions, { def, list, at });
  }
  const own = def.versions.find((version) => version.version === at.version)?.schema;
  if (own === undefined) return '{}';
  if (!list) return schemaText(context, own);
  const { groupVersion } = splitTypeName(resolved(own).typeName ?? '');
  const typeName = `${groupVersion}.${def.listKind}`;
  if (hasStructFacts(typeName)) return typeRefText(context, typeName);
  // Without a list type in the tables, the list has the general form.
  const name = definitionName(context.dialect, typeName);
  if (!definitions.has(name)) {
    const item = withRef(context, schemaJson(context, own), { default: {} });
    const list = listDefinition(context, { item, def, at, metadata: { default: {} } });
    definitions.set(name, jsonText(list));
  }
  return jsonText(refTo(context.form, name));
}

interface CustomUse {
  readonly def: ResourceDef;
  readonly list: boolean;
  readonly at: GroupVersion;
}

function customRef(context: SchemaContext, definitions: Definitions, use: CustomUse): string {
  const { def, list } = use;
  const at = { group: use.at.group, version: use.at.version };
  const name = customDefinitionName(at.group, at.version, def.kind);
  const fields = selectableFields(def, at.version);
  const listName = customDefinitionName(at.group, at.version, def.listKind);
  if (!definitions.has(name)) {
    const kind = { ...at, kind: def.kind };
    definitions.set(name, jsonText({ ...customDefinition(context, def, kind), ...fields }));
    const ofList = listDefinition(context, { item: refTo(context.form, name), def, at });
    definitions.set(listName, jsonText({ ...ofList, ...fields }));
  }
  return jsonText(refTo(context.form, list ? listName : name));
}

function selectableFields(def: ResourceDef, version: string): JsonObject {
  const labels = def.strategy.fieldLabels?.[version] ?? {};
  const fields = Object.keys(labels).map((fieldPath) => ({ fieldPath }));
  return { 'x-kubernetes-selectable-fields': fields };
}

function kindJson(...kinds: readonly GroupVersionKind[]): JsonObject {
  const list = kinds.map(({ group, version, kind }) => ({ group, version, kind }));
  return { 'x-kubernetes-group-version-kind': list };
}

/** The definition of a custom kind: its schema, and the members that all objects have. */
function customDefinition(
  context: SchemaContext,
  def: ResourceDef,
  kind: GroupVersionKind,
): JsonObject {
  const schema = def.versions.find((version) => version.version === kind.version)?.schema;
  // OpenAPI 2 clients treat the listed members as the only ones.
  const isOpen = schema === undefined || schema.preserveUnknownFields === true;
  if (schema === undefined || (isOpen && context.form === 'v2')) {
    return { type: 'object', ...kindJson(kind) };
  }
  const json = inlineJson(context, schema);
  const properties = { ...objectOf(json['properties']), ...objectMembers(context) };
  return { ...json, type: 'object', properties, ...kindJson(kind) };
}

interface ListOptions {
  /** The schema of an item. */
  readonly item: JsonObject;
  readonly def: ResourceDef;
  readonly at: GroupVersion;
  /** Members beside the reference to the type of `metadata`. */
  readonly metadata?: JsonObject;
}

function listDefinition(
  context: SchemaContext,
  { item, def, at, metadata }: ListOptions,
): JsonObject {
  const { descriptions } = context;
  const ofMember = (member?: 'items' | 'metadata') =>
    descriptionMember(descriptions.ofList(def.kind, member));
  return {
    ...ofMember(),
    type: 'object',
    required: ['items'],
    properties: {
      ...typeMembers(context),
      items: { ...ofMember('items'), type: 'array', items: item },
      metadata: withRef(context, typeRef(context, 'meta.v1.ListMeta'), {
        ...metadata,
        ...ofMember('metadata'),
      }),
    },
    ...kindJson({ ...at, kind: def.listKind }),
  };
}

/** Kinds of the group `meta` that all groups register. */
const metaKinds = new Set(['meta.v1.DeleteOptions', 'meta.v1.WatchEvent']);

function kindsOf(
  dialect: Dialect,
  { schema, api }: { readonly schema: Schema; readonly api: DescribedApi },
): readonly GroupVersionKind[] {
  const { typeName } = schema;
  const hasTypeMembers =
    schema.properties?.has('kind') === true && schema.properties.has('apiVersion');
  const isEvent = typeName === 'meta.v1.WatchEvent';
  if (typeName === undefined || (!isEvent && !(hasTypeMembers && isKind(typeName)))) return [];
  const { groupVersion, name } = splitTypeName(typeName);
  const [facts = '', version = ''] = groupVersion.split('.');
  if (!metaKinds.has(typeName)) {
    return [
      { group: facts === 'meta' ? '' : groupOfDirectory(dialect, facts), version, kind: name },
    ];
  }
  const all = knownGroupVersions(dialect);
  const excluded = api === 'defined' ? excludedGroups.map((stem) => dialect.group(stem)) : [];
  return all.filter((at) => !excluded.includes(at.group)).map((at) => ({ ...at, kind: name }));
}

/** Groups missing in kube-apiserver's client library, which documents of custom APIs omit. */
const excludedGroups = ['admission', 'apiextensions', 'apiregistration', 'imagepolicy'];

/** Whether a type is a kind; one without tables counts as a kind. */
function isKind(typeName: string): boolean {
  return structFacts(typeName)?.isKind ?? true;
}
