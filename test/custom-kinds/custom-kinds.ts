import type { CustomResourceDefinitionStatus } from '@wheelhouse/kinds/types/apiextensions/v1';
import { type Answer, eventually, type ResponseBody, type TestServer } from '../support/harness.ts';

/** The path of definitions in the servers' own dialect. */
export const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';

export interface Definition {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly scope?: 'Namespaced' | 'Cluster';
  readonly names?: object;
  readonly versions?: readonly object[];
  /** The schema of the only version, `v1`, when `versions` is absent. */
  readonly schema?: object;
  readonly more?: object;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A served version with a schema. */
export function versionOf(name: string, schema: object, more: object = {}) {
  return { name, served: true, storage: false, schema: { openAPIV3Schema: schema }, ...more };
}

/** A definition as a test sends it. */
export interface DefinitionBody {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { name: string; annotations?: Readonly<Record<string, string>> };
  readonly spec: { versions: readonly object[]; conversion?: object; [member: string]: unknown };
}

/** A definition in a response, whose spec a test can change. */
export type DefinitionResponse = ResponseBody & { spec: DefinitionSpec };

/** The members of a definition's spec that tests read or change. */
export interface DefinitionSpec {
  group: string;
  scope: string;
  names: { plural: string; kind: string; shortNames?: string[]; categories?: string[] };
  conversion: { strategy: string; webhook?: { clientConfig: { url?: string } } };
  versions: [DefinitionVersion, ...DefinitionVersion[]];
}

interface DefinitionVersion {
  name: string;
  served: boolean;
  storage: boolean;
  schema: { openAPIV3Schema: DefinitionSchema };
  selectableFields?: object[];
}

interface DefinitionSchema {
  type?: string;
  description?: string;
  properties?: Record<string, DefinitionSchema>;
  maxItems?: number;
  default?: unknown;
  'x-kubernetes-map-type'?: string;
}

/** A definition for a request. */
export function definitionOf(options: Definition): DefinitionBody {
  const { group, plural, kind, scope = 'Namespaced', names, more, annotations } = options;
  const only = versionOf('v1', options.schema ?? { type: 'object' }, { storage: true });
  const versions = options.versions ?? [only];
  return {
    apiVersion: 'apiextensions.svc.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, ...(annotations === undefined ? {} : { annotations }) },
    spec: { group, names: { plural, kind, ...names }, scope, versions, ...more },
  };
}

/** A condition's status and reason, such as `True NoConflicts`. */
export function conditionOf(
  definition: { readonly [member: string]: unknown },
  type: string,
): string | undefined {
  const status = definition['status'] as CustomResourceDefinitionStatus | undefined;
  const condition = status?.conditions?.find((condition) => condition.type === type);
  return condition === undefined ? undefined : `${condition.status} ${condition.reason}`;
}

/** Creates a definition and waits until it is established; returns its state then. */
export async function establish(server: TestServer, options: Definition): Promise<ResponseBody> {
  const body = definitionOf(options);
  const created = await server.post(definitions, body);
  if (created.status !== 201) throw new Error(`definition: ${created.status} ${created.text}`);
  return eventually(async () => {
    const { body: now } = await server.get(`${definitions}/${body.metadata.name}`);
    return conditionOf(now, 'Established')?.startsWith('True') ? now : undefined;
  }, `${body.metadata.name} to be established`);
}

/** Changes a definition's spec, and retries after a conflict with its controller. */
export async function redefine(
  server: TestServer,
  name: string,
  change: (spec: DefinitionSpec) => void,
): Promise<Answer> {
  return eventually(async () => {
    const { body } = await server.get<DefinitionResponse>(`${definitions}/${name}`);
    change(body.spec);
    const answer = await server.put(`${definitions}/${name}`, body);
    return answer.status === 409 ? undefined : answer;
  }, `${name} to change`);
}

/** Waits until a path answers 404. */
export async function untilGone(server: TestServer, path: string): Promise<void> {
  await eventually(async () => (await server.get(path)).status === 404, `${path} to be gone`);
}

/** The causes of an answer, as `field: message`. */
export function causesOf(answer: Answer): readonly string[] {
  return (answer.body.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);
}
