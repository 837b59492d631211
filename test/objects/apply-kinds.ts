import type { JsonObject } from '@wheelhouse/machinery';
import type { DefinitionResponse } from '../custom-kinds/custom-kinds.ts';
import {
  type Answer,
  configMap,
  eventually,
  type ResponseBody,
  type TestServer,
} from '../support/harness.ts';

const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
let made = 0;

let names = 0;

/** A name that is unique in this process. */
export function freshName(): string {
  names += 1;
  return `m${names}`;
}

/** A ConfigMap with this data. */
export const dataMap = (name: string, data: Record<string, string>) => configMap(name, { data });

/** A custom kind `Thing` in its own group. */
export interface ThingKind {
  readonly group: string;
  /** Path of the things in a namespace. */
  path(namespace: string, version?: string): string;
  /** A body of that kind. */
  body(name: string, more: JsonObject, version?: string): JsonObject;
  /** Changes the definition, and waits until the change takes effect. */
  change(edit: (crd: DefinitionResponse) => void): Promise<void>;
}

/** One version of the definition; absent members have defaults that suit most tests. */
export interface ThingVersion {
  readonly name?: string;
  readonly properties?: JsonObject;
  readonly preserve?: boolean;
  readonly subresources?: JsonObject;
}

/** Defines a kind and waits until the server accepts its objects. */
export async function defineThing(
  server: TestServer,
  versions: readonly ThingVersion[],
): Promise<ThingKind> {
  made += 1;
  const group = `g${made}-${Math.random().toString(36).slice(2, 8)}.example.com`;
  const answer = await server.post(definitions, {
    apiVersion: 'apiextensions.svc.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: versions.map((version, index) => ({
        name: version.name ?? 'v1',
        served: true,
        storage: index === 0,
        ...(version.subresources === undefined ? {} : { subresources: version.subresources }),
        schema: { openAPIV3Schema: schemaOf(version) },
      })),
    },
  });
  if (answer.status !== 201) throw new Error(answer.text);
  const path = (namespace: string, version = versions[0]?.name ?? 'v1') =>
    `/apis/${group}/${version}/namespaces/${namespace}/things`;
  await eventually(async () => (await server.get(path('default'))).status === 200, 'the kind');
  return {
    group,
    path,
    body: (name, more, version = versions[0]?.name ?? 'v1') => ({
      apiVersion: `${group}/${version}`,
      kind: 'Thing',
      metadata: { name },
      ...more,
    }),
    change: (edit) => changeThing(server, `${definitions}/things.${group}`, { edit, path }),
  };
}

function schemaOf({ properties, preserve }: ThingVersion): JsonObject {
  return {
    type: 'object',
    ...(properties === undefined ? {} : { properties }),
    ...(preserve === true ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
  };
}

/** A probe object shows when the new definition takes effect: its name is a property's default. */
async function changeThing(
  server: TestServer,
  crdPath: string,
  { edit, path }: { edit: (crd: DefinitionResponse) => void; path: (namespace: string) => string },
): Promise<void> {
  const { body: crd } = await server.get<DefinitionResponse>(crdPath);
  edit(crd);
  const mark = `probe${Date.now()}${Math.random().toString(36).slice(2, 6)}`;
  crd.spec.versions[0].schema.openAPIV3Schema.properties![mark] = { type: 'string', default: 'x' };
  const changed = await server.put(crdPath, crd);
  if (changed.status !== 200) throw new Error(changed.text);
  const [version] = crd.spec.versions;
  const probe = {
    apiVersion: `${crd.spec.group}/${version.name}`,
    kind: 'Thing',
    metadata: { name: 'probe' },
  };
  await eventually(async () => {
    const answer = await server.post(`${path('default')}?dryRun=All`, probe);
    return answer.body?.[mark] === 'x';
  }, 'the changed definition');
}

/** Applies a body under a manager's name. */
export function apply<Body = ResponseBody>(
  server: TestServer,
  path: string,
  body: JsonObject | string,
  options: { readonly manager?: string; readonly force?: boolean; readonly query?: string } = {},
): Promise<Answer<Body>> {
  const query = new URLSearchParams({ fieldManager: options.manager ?? 'alice' });
  if (options.force === true) query.set('force', 'true');
  const more = options.query === undefined ? '' : `&${options.query}`;
  return server.patch<Body>(`${path}?${query}${more}`, body, 'apply');
}

/** The entry of a manager in a returned object. */
export function ownedBy(answer: Answer, manager: string, operation = 'Apply') {
  return answer.body.metadata.managedFields?.find(
    (entry) => entry.manager === manager && entry.operation === operation,
  )?.fieldsV1;
}

/** The managers of a returned object, such as `alice/Apply`, in order. */
export function managersOf(answer: Answer): string[] {
  return (answer.body.metadata.managedFields ?? []).map(
    ({ manager, operation, subresource }) =>
      `${manager}/${operation}${subresource === undefined ? '' : `/${subresource}`}`,
  );
}
