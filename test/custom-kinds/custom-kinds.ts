import {
  type Answer,
  eventually,
  type Loose,
  type ResponseBody,
  type TestServer,
} from '../support/harness.ts';

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
  readonly annotations?: object;
}

/** A served version with a schema. */
export function versionOf(name: string, schema: object, more: object = {}): Loose {
  return { name, served: true, storage: false, schema: { openAPIV3Schema: schema }, ...more };
}

/** A definition for a request. */
export function definitionOf(options: Definition): Loose {
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
export function conditionOf(definition: Loose, type: string): string | undefined {
  const found = (definition.status?.conditions ?? []).find((one: Loose) => one.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
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
  change: (spec: Loose) => void,
): Promise<Answer> {
  return eventually(async () => {
    const { body } = await server.get(`${definitions}/${name}`);
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
